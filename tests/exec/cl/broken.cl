/* A kernel that does not compile, for the test of build errors. */
#include "lib/common.clh"

__kernel void broken_kernel(TENSOR(float, x)) {
    AT(x)[0] = this_name_is_not_declared;
}
