# For CMake: 64-bit Windows programs, with Debian's mingw-w64 (POSIX threads, the runtime linked statically) and the libraries in the folder
# of this file. tools/package/windows_libraries.sh copies it there. Wine runs what the build and the tests start.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static -Wl,--gc-sections -L${CMAKE_CURRENT_LIST_DIR}/lib")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-static -Wl,--gc-sections -L${CMAKE_CURRENT_LIST_DIR}/lib")
set(CMAKE_CROSSCOMPILING_EMULATOR /usr/lib/wine/wine64)
set(CMAKE_FIND_ROOT_PATH ${CMAKE_CURRENT_LIST_DIR} /usr/share/javascript /usr/share/nodejs) # the latter: the plots of reports
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_CURRENT_LIST_DIR}/lib/pkgconfig)
set(PKG_CONFIG_ARGN --static)
