/* A loader that a test makes slow: the linker replaces the filling of a sample (CMakeLists.txt: --wrap). */
#ifndef CLEAT_TESTS_SLOW_SAMPLES_H
#define CLEAT_TESTS_SLOW_SAMPLES_H

/* How long every sample takes longer than its filling; 0 at the start. To be set while no thread loads. */
extern long slow_samples_ns;

#endif
