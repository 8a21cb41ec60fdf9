/* Threads, by the names of POSIX; on Windows those of mingw-w64's winpthreads. */
#ifndef CLEAT_SRC_PLATFORM_THREADS_H
#define CLEAT_SRC_PLATFORM_THREADS_H

#include <pthread.h>

#endif
