# The driver of the virtual card, its compiler, and its tests.

# The newest clang with a libclc that it can read. The packages libclc-N have the same files, so one of them is installed.
if(NOT VIRTUAL_CLANG OR NOT EXISTS "${VIRTUAL_CLANG}")
  set(sample ${CMAKE_CURRENT_BINARY_DIR}/sample.cl)
  file(WRITE ${sample} "__kernel void sample(__global float *x) { x[get_global_id(0)] = exp(x[get_local_id(0)]); }\n")
  foreach(case 19.ptx80 18.ptx80 17.ptx80 16.ptx78 15.ptx75 14.ptx75)
    string(REPLACE "." ";" case ${case})
    list(GET case 0 version)
    list(GET case 1 feature)
    find_program(clang_${version} clang-${version})
    mark_as_advanced(clang_${version})
    foreach(folder /usr/lib/llvm-${version}/share/libclc /usr/lib/clc)
      set(bitcode ${folder}/nvptx64--nvidiacl.bc)
      if(VIRTUAL_CLANG OR NOT clang_${version} OR NOT EXISTS ${bitcode})
        continue()
      endif()
      execute_process(COMMAND ${clang_${version}} -x cl -cl-std=CL1.2 -Xclang -finclude-default-header -target nvptx64-nvidia-nvcl -Xclang
                              -target-feature -Xclang +${feature} -Xclang -mlink-builtin-bitcode -Xclang ${bitcode} -S -o ${sample}.ptx ${sample}
                      RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
      if(NOT failed)
        set(VIRTUAL_CLANG ${clang_${version}} CACHE INTERNAL "")
        set(VIRTUAL_LIBCLC ${bitcode} CACHE INTERNAL "")
        set(VIRTUAL_PTX_FEATURE ${feature} CACHE INTERNAL "")
      endif()
    endforeach()
  endforeach()
endif()
if(VIRTUAL_CLANG)
  message(STATUS "Virtual card: ${VIRTUAL_CLANG} with ${VIRTUAL_LIBCLC}")
else()
  message(STATUS "Virtual card: no clang with libclc for NVPTX; its tests are skipped (tools/setup.sh --tests installs them)")
endif()

# For AMD's cards: AMD's device libraries (package rocm-device-libs), which clang 17 and later read; older ones write faulty code for gfx11.
find_path(VIRTUAL_ROCM ocml.bc PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/amdgcn/bitcode /usr/lib/x86_64-linux-gnu/amdgcn/bitcode
                                     /opt/rocm/amdgcn/bitcode NO_DEFAULT_PATH)
mark_as_advanced(VIRTUAL_ROCM)
if(VIRTUAL_ROCM AND VIRTUAL_CLANG MATCHES "clang-(17|18|19)$" AND EXISTS ${VIRTUAL_ROCM}/oclc_abi_version_500.bc)
  set(rocm ${VIRTUAL_ROCM})
  message(STATUS "Virtual AMD card: ${rocm}")
else()
  set(rocm)
  message(STATUS "Virtual AMD card: no clang 17 to 19 with rocm-device-libs; its tests are skipped (tools/setup.sh --tests installs them)")
endif()

add_library(virtual_card MODULE cards.c code.c compile.c compile_amd.c contexts.c counters_report.c devices.c events.c faults.c files.c icd.c kernels.c launch.c
                                mappings.c memory.c objects.c options.c program.c queue.c reqntid.c transfers.c)
set_target_properties(virtual_card PROPERTIES OUTPUT_NAME cleat_virtual_card LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/virtual_card)
target_link_libraries(virtual_card PRIVATE cleat_options virtual_card_gcn virtual_card_ptx Threads::Threads m)
target_include_directories(virtual_card PRIVATE ${OPENCL_INCLUDE_DIRS} ${XXHASH_INCLUDE})
target_compile_definitions(virtual_card PRIVATE VC_CLANG="${VIRTUAL_CLANG}" VC_LIBCLC="${VIRTUAL_LIBCLC}" VC_PTX_FEATURE="${VIRTUAL_PTX_FEATURE}"
                                                VC_NATIVE="${CMAKE_CURRENT_SOURCE_DIR}/native.clh" VC_ROCM="${rocm}"
                                                VC_AMD_ISA="${CMAKE_CURRENT_SOURCE_DIR}/amd_isa.clh")
file(WRITE ${CMAKE_BINARY_DIR}/virtual_card/cleat_virtual_card.icd "${CMAKE_BINARY_DIR}/virtual_card/libcleat_virtual_card.so\n")

# --- tests

set(card_environment OCL_ICD_VENDORS=${CMAKE_BINARY_DIR}/virtual_card/ CLEAT_VIRTUAL_CARD_CACHE=${CLEAT_TEST_CACHE}/virtual_card
                     CLEAT_CACHE_DIR=${CLEAT_TEST_CACHE}/virtual_card_cleat)
file(MAKE_DIRECTORY ${CLEAT_TEST_CACHE}/virtual_card ${CLEAT_TEST_CACHE}/virtual_card_cleat)

# About how many CPU seconds the longest of the tests below take, which share programs and scripts (as cost=N of a line `ctest:`).
set(costs a100.linear_mma=17 a100.mutants=25 h100.far.attention=12 mi210.batch_norm=12 mi210.conv_mma=19 mi210.linear.5=13
    mi210.linear_mma=18 mi210.mutants=25 rx6800xt.conv_mma=14 rx6800xt.linear_mma=13 rx6800xt.mutants=25 rx7900xt.batch_norm=13
    rx7900xt.linear.5=11 rx7900xt.linear_mma=22 rx7900xt.mutants=30 t4.attention=15 t4.clblast=14 t4.conv=30 t4.disentangled_attention=21
    t4.epilogue=19 t4.linear=78 t4.mutants=150 t4.startup_timing=15 v100.linear.5=10 v100.mutants=20)
foreach(case t4.f32 t4.f16 v100.f16 a100.f16 a100.bf16 h100.bf16 mi210.f32 mi210.bf16 rx7900xt.f16)
  string(REPLACE "." ".verify.emberformer." case ${case})
  list(APPEND costs ${case}=14)
endforeach()

# card_test(NAME WORDS CARD "VARIABLE=VALUE;..." COMMAND...): a test on that card. It is skipped where there is no compiler.
set(amd_cards mi210 rx7900xt) # those with matrix units, and a card without one
set(amd_card_without rx6800xt)
function(card_test name words card settings)
  string(REPLACE virtual_card. "" short ${name})
  if(";${costs};" MATCHES ";${short}=([0-9]+);")
    list(APPEND words cost=${CMAKE_MATCH_1})
  endif()
  if(VIRTUAL_CLANG AND (rocm OR NOT (card IN_LIST amd_cards OR card STREQUAL amd_card_without)))
    cleat_test(${name} "${words}" ${ARGN})
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT ${card_environment} CLEAT_VIRTUAL_CARD=${card} ${settings})
  else()
    cleat_test(${name} "${words}" sh -c "exit 77")
  endif()
endfunction()

foreach(part driver queue launch)
  add_executable(virtual_card_${part} test_${part}.c driver_rig.c)
  target_link_libraries(virtual_card_${part} PRIVATE cleat_options PkgConfig::OPENCL PkgConfig::CMOCKA Threads::Threads)
  target_compile_definitions(virtual_card_${part} PRIVATE VC_CLANG="${VIRTUAL_CLANG}")
  add_dependencies(virtual_card_${part} virtual_card)
  # They leak on purpose: the driver shall say so, not a sanitizer.
  cleat_words(test_${part}.c words)
  card_test(virtual_card.${part} "${words}" t4 "ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=0" virtual_card_${part})
endforeach()

add_executable(virtual_card_amd test_amd.c driver_rig.c)
target_link_libraries(virtual_card_amd PRIVATE cleat_options PkgConfig::OPENCL PkgConfig::CMOCKA Threads::Threads)
target_compile_definitions(virtual_card_amd PRIVATE VC_CLANG="${VIRTUAL_CLANG}")
add_dependencies(virtual_card_amd virtual_card)
cleat_words(test_amd.c words)
foreach(card ${amd_cards})
  card_test(virtual_card.${card}.driver "${words}" ${card} "ASAN_OPTIONS=detect_leaks=0" virtual_card_amd)
endforeach()

# Op tests in the shape of GPUs, and reference trajectories. Any fault of the card fails them.
set(strict CLEAT_VIRTUAL_CARD_STRICT=1 CLEAT_VIRTUAL_CARD_MAY_LEAK=program,context CLEAT_TEST_SHAPE=gpu)

# The threads that build programs, on a device whose threads ThreadSanitizer sees.
card_test(virtual_card.t4.build_threads quick t4 "${strict}" device_build_threads)

# The rest would take long under a sanitizer, and the library's code is the same as on other devices.
if(CLEAT_SANITIZE)
  return()
endif()

# What tools/kernel_counts.py counts: a table of one small kernel, and one of a kernel for matrix units.
add_executable(run_op run_op.c)
target_link_libraries(run_op PRIVATE cleat_options cleat_bench)
add_dependencies(run_op virtual_card)
if(PYTHON3)
  cleat_words(test_kernel_counts.py words)
  foreach(card t4 ${amd_cards} ${amd_card_without})
    card_test(virtual_card.${card}.kernel_counts "${words}" ${card} "" ${PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/test_kernel_counts.py
              ${CMAKE_SOURCE_DIR}/tools/kernel_counts.py ${CMAKE_BINARY_DIR} ${card})
  endforeach()
  cleat_words(test_matrix_counts.py words)
  foreach(card t4 v100 a100 ${amd_cards})
    card_test(virtual_card.${card}.matrix_counts "${words}" ${card} "" ${PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/test_matrix_counts.py
              $<TARGET_FILE:run_op> ${card})
  endforeach()
endif()

# Spills in products and attention of the workloads, where ptxas is installed
if(PYTHON3 AND VIRTUAL_CLANG)
  cleat_script(vendor.spills ${CMAKE_SOURCE_DIR}/tests/vendor/test_spills.py ${CMAKE_SOURCE_DIR}/tools $<TARGET_FILE:workload_programs>
             ${VIRTUAL_CLANG} ${VIRTUAL_LIBCLC} ${VIRTUAL_PTX_FEATURE} ${CMAKE_CURRENT_SOURCE_DIR}/native.clh)
endif()
# Quick: a small row (CARD:OP:ROW) of the ops with the most kernels.
foreach(case t4:gelu:2 t4:layer_norm:1 t4:adamw:0 t4:linear:5 t4:attention:1 t4:softmax:0 t4:conv:0 a100:linear:5 v100:linear:5
        mi210:gelu:2 mi210:layer_norm:1 mi210:adamw:0 mi210:softmax:0 mi210:linear:5 rx7900xt:softmax:0 rx7900xt:linear:5 rx6800xt:softmax:0 rx6800xt:linear:5)
  string(REPLACE ":" ";" case ${case})
  list(GET case 0 card)
  list(GET case 1 op)
  list(GET case 2 row)
  card_test(virtual_card.${card}.${op}.${row} quick ${card} "${strict};CLEAT_TEST_ROW=${row}" ops_${op})
endforeach()

# Quick as well: f32 as three products of TF32, which the tuner alone would choose; and as one
card_test(virtual_card.a100.linear_tf32 quick a100 "${strict};CLEAT_TEST_ROW=13;CLEAT_TEST_VARIANT=tf32x3;CLEAT_TEST_STORAGE=f32" ops_linear)
card_test(virtual_card.a100.conv_tf32 quick a100 "${strict};CLEAT_TEST_ROW=10;CLEAT_TEST_VARIANT=tf32x3;CLEAT_TEST_STORAGE=f32" ops_conv)
card_test(virtual_card.a100.linear_tf32_once quick a100 "${strict};CLEAT_TEST_ROW=13;CLEAT_TEST_VARIANT=mma;CLEAT_TEST_STORAGE=tf32" ops_linear)
card_test(virtual_card.a100.conv_tf32_once quick a100 "${strict};CLEAT_TEST_ROW=10;CLEAT_TEST_VARIANT=mma;CLEAT_TEST_STORAGE=tf32" ops_conv)

# Slow: every op on the T4 and on AMD's cards; there not those whose tests take more than half a minute (they passed on 2026-11-23). A row of f32
# runs plain or chained by turns, as rows of half types do; PoCL runs both in the same shape.
set(too_long_on_amd attention causal_attention conv disentangled_attention epilogue linear)
list(REMOVE_ITEM kernel_ops definitions) # compares host code, by kernels of CPUs
foreach(op ${kernel_ops})
  card_test(virtual_card.t4.${op} slow t4 "${strict};CLEAT_TEST_TURNS=1" ops_${op})
  if(NOT op IN_LIST too_long_on_amd)
    foreach(card ${amd_cards})
      card_test(virtual_card.${card}.${op} slow ${card} "${strict};CLEAT_TEST_TURNS=1" ops_${op})
    endforeach()
  endif()
endforeach()
foreach(case v100:linear v100:attention v100:cross_attention v100:conv a100:linear a100:attention a100:cross_attention a100:causal_attention a100:conv
        a100:lstm mi210:linear mi210:attention mi210:causal_attention mi210:conv rx7900xt:linear rx7900xt:attention rx6800xt:linear rx6800xt:attention rx6800xt:conv)
  string(REPLACE ":" ";" case ${case})
  list(GET case 0 card)
  list(GET case 1 op)
  card_test(virtual_card.${card}.${op}_mma slow ${card} "${strict};CLEAT_TEST_VARIANT=mma" ops_${op})
endforeach()

cleat_words(test_mutants.sh words)
foreach(card t4 v100 a100 ${amd_cards} ${amd_card_without})
  card_test(virtual_card.${card}.mutants "${words}" ${card} "" ${CMAKE_CURRENT_SOURCE_DIR}/test_mutants.sh $<TARGET_FILE:cleat>
            $<TARGET_FILE_DIR:ops_linear>/ops_ ${CMAKE_SOURCE_DIR} ${card})
endforeach()
foreach(card t4 v100 a100 ${amd_cards} ${amd_card_without})
  card_test(virtual_card.${card}.peaks quick ${card} "${strict}" session_peaks)
endforeach()
# Few compute units, so that the last tiles of a product are in parts behind whole ones.
card_test(virtual_card.t4.uneven slow t4 "${strict};CLEAT_VIRTUAL_CARD_UNITS=6;CLEAT_TEST_ROW=10;CLEAT_TEST_STORAGE=f32;CLEAT_TEST_VARIANT=gpu" ops_linear)
foreach(card t4 v100 a100)
  card_test(virtual_card.${card}.uneven_mma slow ${card}
            "${strict};CLEAT_VIRTUAL_CARD_UNITS=2;CLEAT_TEST_ROW=14;CLEAT_TEST_STORAGE=f16;CLEAT_TEST_VARIANT=mma_small" ops_linear)
endforeach()
card_test(virtual_card.t4.device quick t4 "${strict}" device_device)
card_test(virtual_card.t4.clblast slow t4 "${strict}" device_clblast)

# Whole runs: a queue that is not flushed, a buffer used too soon, an object that is not released, a device that is lost.
foreach(test program_cache lost)
  cleat_words(test_${test}.sh words)
  card_test(virtual_card.t4.${test} "${words}" t4 CLEAT_VIRTUAL_CARD_STRICT=1 ${CMAKE_CURRENT_SOURCE_DIR}/test_${test}.sh $<TARGET_FILE:cleat>
            ${CMAKE_SOURCE_DIR})
endforeach()
foreach(test whole_run startup_timing overlap)
  card_test(virtual_card.t4.${test} quick t4 "${strict}" train_${test})
endforeach()

# Tensors 8.8 GB behind the beginning of every buffer: offsets in bytes need 64 bits, in f32 elements 32 without a sign, in halves more. Memory
# that is never touched costs nothing.
foreach(case linear:5:slow attention:1:slow embedding:1:quick layer_norm:1:quick adamw:0:quick conv:0:slow gelu:2:quick)
  string(REPLACE ":" ";" case ${case})
  list(GET case 0 op)
  list(GET case 1 row)
  list(GET case 2 label)
  card_test(virtual_card.h100.far.${op} ${label} h100 "${strict};CLEAT_TEST_ROW=${row};CLEAT_TEST_GAP=8800000000" ops_${op})
endforeach()

# Trajectories: f32 on one card, tf32 on one, the half precisions on all. Quick on the T4: two of the smallest.
set(quick_files dense text)
file(GLOB trajectories ${CMAKE_SOURCE_DIR}/tests/golden/*.safetensors)
foreach(path ${trajectories})
  get_filename_component(file ${path} NAME_WE)
  foreach(case t4:f32 t4:f16 v100:f16 a100:f16 a100:bf16 a100:tf32 h100:bf16 mi210:f32 mi210:bf16 rx7900xt:f16)
    string(REGEX MATCH "^(.*):(.*)$" whole ${case})
    set(card ${CMAKE_MATCH_1})
    set(precision ${CMAKE_MATCH_2})
    set(labels slow)
    if(card STREQUAL t4 AND file IN_LIST quick_files)
      set(labels quick)
    endif()
    card_test(virtual_card.${card}.verify.${file}.${precision} ${labels} ${card} CLEAT_VIRTUAL_CARD_STRICT=1 cleat verify --quiet --precision
              ${precision} ${path})
  endforeach()
endforeach()
