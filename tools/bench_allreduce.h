/* cleat bench allreduce: the sum of gradients over several ranks. */
#ifndef CLEAT_TOOLS_BENCH_ALLREDUCE_H
#define CLEAT_TOOLS_BENCH_ALLREDUCE_H

#include "launch.h"

#define BENCH_ALLREDUCE "allreduce"

/* Runs on the devices of `options`, or on the ranks that a launcher started with this one. Returns the exit code. */
int bench_allreduce_run(const cli_command *command, launch_options *options, double seconds, bool json, int argc,
                        char **argv);

#endif
