/* Processes, their signals, pipes and processors, by the names of POSIX. */
#ifndef CLEAT_SRC_PLATFORM_PROCESSES_H
#define CLEAT_SRC_PLATFORM_PROCESSES_H

#ifdef _WIN32
#include "platform/windows/processes.h"
#else
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

#endif
