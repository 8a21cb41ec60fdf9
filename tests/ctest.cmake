# cleat_test, cleat_script and cleat_words: a ctest test, its labels and its cost.
#
# The first lines of a test's file have lines `ctest: WORD ...`. Words are labels and
#   cost=N                        about how many CPU seconds it takes with cold caches, where that is 10 or more: ctest starts these first, so
#                                 that no core waits for a long one at the end. From 30 on the test gets the label long, unless it shall run on
#                                 every change.
#   with=FILE                     another source file of this folder
#   wrap=NAME,...                 functions that the linker replaces by __wrap_NAME
#   no-memcheck                   takes ten CPU seconds and more under memcheck, or needs a library from another folder
#   oclgrind=ROW[:STORAGE][@COST] the rows of an op test that Oclgrind interprets; row 0 where there is no such word
#   none                          no label
# Labels: quick (no device, or seconds on one; all of them within two minutes), device (runs kernels), slow (minutes on a CPU), oclgrind, valgrind,
# long (not run on every change, as slow ones).

# What tests and sanitizers are told. The OpenCL drivers and the LLVM inside them are not ours: their leaks are suppressed, and LeakSanitizer keeps
# out of thread-local memory, where it now and then crashes on PoCL's threads. Tests make allocations that must fail.
set(test_environment
    CLEAT_SOURCE_DIR=${CMAKE_SOURCE_DIR} # source_path.h
    CLEAT_CACHE_DIR=${CLEAT_TEST_CACHE}/cleat
    POCL_CACHE_DIR=${CLEAT_TEST_CACHE}/pocl
    "ASAN_OPTIONS=allocator_may_return_null=1:strict_string_checks=1:detect_stack_use_after_return=1"
    "LSAN_OPTIONS=suppressions=${CMAKE_CURRENT_SOURCE_DIR}/lsan.supp:print_suppressions=0:use_tls=0"
    "UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1"
    "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1")
if(WIN32) # programs of Windows, under wine; the fixture windows_prefix makes the prefix before tests use it at the same time
  list(APPEND test_environment WINEPREFIX=${CMAKE_BINARY_DIR}/wine WINEDEBUG=-all "WINEDLLOVERRIDES=mscoree,mshtml=" LC_ALL=C.UTF-8)
  file(STRINGS windows_skips.txt windows_skips REGEX "^[^#]+: ")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS windows_skips.txt)
  foreach(line ${windows_skips}) # parts of tests, ROOM.NAME/PART: REASON
    if(line MATCHES "^([a-z_.]+/[a-z_]+): (.*)$")
      add_test(NAME ${CMAKE_MATCH_1} COMMAND sh -c "echo 'skipped: ${CMAKE_MATCH_2}'; exit 77")
      set_tests_properties(${CMAKE_MATCH_1} PROPERTIES LABELS windows_skip SKIP_RETURN_CODE 77)
    endif()
  endforeach()
  add_test(NAME windows.prefix COMMAND sh -c "exec >/dev/null 2>&1; wineserver64 -p120; exec wine64 wineboot --init </dev/null")
  set_tests_properties(windows.prefix PROPERTIES FIXTURES_SETUP windows_prefix ENVIRONMENT "${test_environment};PATH=/usr/lib/wine:$ENV{PATH}")
endif()
file(MAKE_DIRECTORY ${CLEAT_TEST_CACHE}/cleat ${CLEAT_TEST_CACHE}/pocl)

# The self-checks of all families, which train.families runs, are most of what runs of training compile on a new machine. With cold caches
# tests beside it would compile the same kernels once more: those that train wait for it, while op tests are run.
set(trains "^(bench|campaign|cli|models|notebooks|onnx|peft|trace|published|python|ranks|session|train|verify)\\.")

# cleat_skipped(NAME VARIABLE): why the test does not run in this build, from windows_skips.txt; empty if it does.
function(cleat_skipped name variable)
  set(${variable} "" PARENT_SCOPE)
  foreach(line ${windows_skips})
    string(REGEX MATCH "^([^:]+): (.*)$" line "${line}")
    if(name MATCHES "^(${CMAKE_MATCH_1})$")
      string(REGEX REPLACE "^[^:]+: " "" reason "${line}")
      set(${variable} "${reason}" PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# cleat_test(NAME "WORD;..." COMMAND...): WORDs as in the line `ctest:` of a file.
function(cleat_test name words)
  cleat_skipped(${name} reason)
  if(reason)
    add_test(NAME ${name} COMMAND sh -c "echo 'skipped: ${reason}'; exit 77")
    set_tests_properties(${name} PROPERTIES LABELS windows_skip SKIP_RETURN_CODE 77)
    return()
  endif()
  set(unknown ${words})
  list(FILTER unknown EXCLUDE REGEX "^((quick|device|slow|oclgrind|valgrind|no-memcheck|none)$|(cost|with|wrap|oclgrind)=)")
  if(unknown)
    message(FATAL_ERROR "test ${name}: ctest.cmake does not list the word ${unknown}")
  endif()
  add_test(NAME ${name} COMMAND ${ARGN})
  set(labels ${words})
  list(FILTER labels EXCLUDE REGEX "=|^no-memcheck$|^none$")
  if(words MATCHES "cost=([0-9]+)")
    set_tests_properties(${name} PROPERTIES COST ${CMAKE_MATCH_1})
    if(CMAKE_MATCH_1 GREATER_EQUAL 30)
      list(APPEND labels long)
    endif()
  endif()
  if(name MATCHES "${trains}" AND "device" IN_LIST labels AND NOT name STREQUAL "train.families")
    set_tests_properties(${name} PROPERTIES DEPENDS train.families)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" SKIP_RETURN_CODE 77 TIMEOUT 1800 ENVIRONMENT "${test_environment}")
  if(WIN32)
    set_tests_properties(${name} PROPERTIES FIXTURES_REQUIRED windows_prefix)
  endif()
endfunction()

# cleat_words(FILE VARIABLE): the words of the file's lines `ctest:`, as a list. A changed line configures again.
function(cleat_words file variable)
  cmake_path(ABSOLUTE_PATH file)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(STRINGS ${file} words REGEX "^(#|/\\*) ctest: ")
  if(words MATCHES "/\\* ctest:[^;]*[^/;](;|$)")
    message(FATAL_ERROR "${file}: a line `ctest:` is a comment of its own")
  endif()
  list(TRANSFORM words REPLACE "^.* ctest: +| *\\*/" "")
  if(NOT words)
    message(FATAL_ERROR "${file}: no line `ctest: WORD ...` (ctest.cmake lists the words)")
  endif()
  string(REPLACE " " ";" words "${words}")
  set(${variable} ${words} PARENT_SCOPE)
endfunction()

# cleat_runnable(TARGET VARIABLE): the path by which scripts start a program; where it is one of Windows, that of a script that has wine run it.
function(cleat_runnable target variable)
  set(path $<TARGET_FILE:${target}>)
  if(WIN32)
    set(path ${CMAKE_BINARY_DIR}/by_wine/${target})
    file(GENERATE OUTPUT ${path} CONTENT "#!/bin/sh\nexec ${CMAKE_CROSSCOMPILING_EMULATOR} '$<TARGET_FILE:${target}>' \"$@\"\n"
         FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  endif()
  set(${variable} ${path} PARENT_SCOPE)
endfunction()

# cleat_script(NAME FILE ARGUMENT...): a script, run by its interpreter.
function(cleat_script name file)
  cleat_words(${file} words)
  cmake_path(ABSOLUTE_PATH file)
  set(interpreter)
  if(file MATCHES "\\.py$")
    set(interpreter ${PYTHON3})
  endif()
  cleat_test(${name} "${words}" ${interpreter} ${file} ${ARGN})
endfunction()
