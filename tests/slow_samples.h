/* A slow loader for tests: the linker replaces the function that fills a sample (CMakeLists.txt: --wrap). */
#ifndef CLEAT_TESTS_SLOW_SAMPLES_H
#define CLEAT_TESTS_SLOW_SAMPLES_H

/* Additional time for every sample; initially 0. Set it only while no thread loads. */
extern long slow_samples_ns;

#endif
