/* Compares the names of scalar arguments with those of the kernel's parameters, so two swapped integers,
 * which compile and run, fail a test. Linked with --wrap=cleat_exec_bind. Only PoCL programs that are built
 * after kept_programs_keep_names contain the names. */
#include "exec/exec.h"

#include <string.h>

/* The function itself, under the name given by the linker. */
cleat_status __real_cleat_exec_bind(cleat_exec *exec, cleat_bound_graph *bound, size_t launch, cleat_error *error);
cleat_status __wrap_cleat_exec_bind(cleat_exec *exec, cleat_bound_graph *bound, size_t launch, cleat_error *error);

/* PoCL's headers define the names of built-in functions as macros: a parameter `length` becomes `_cl_length`. */
static const char *plain_name(const char *name) {
    return strncmp(name, "_cl_", 4) == 0 ? name + 4 : name;
}

static cleat_status compare_names(cl_kernel kernel, const cleat_launch *launch, cleat_error *error) {
    cl_uint index = 0;
    for (int i = 0; i < launch->n_args; ++i) {
        const cleat_arg *arg = &launch->args[i];
        char name[CLEAT_NAME];
        if (arg->kind != CLEAT_ARG_SCALAR) {
            index += 2;
            continue;
        }
        cl_int code = clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_NAME, sizeof name, name, NULL);
        if (code == CL_KERNEL_ARG_INFO_NOT_AVAILABLE) return CLEAT_OK;
        if (code != CL_SUCCESS) return cleat_cl_fail(error, code, "the name of argument %u", index);
        if (strcmp(plain_name(name), arg->name) != 0)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                              "kernel '%s' of %s: argument %u is '%s', but the launch names it '%s'", launch->kernel,
                              launch->node->name, index, plain_name(name), arg->name);
        ++index;
    }
    return CLEAT_OK;
}

cleat_status __wrap_cleat_exec_bind(cleat_exec *exec, cleat_bound_graph *bound, size_t i, cleat_error *error) {
    const bool is_known = bound->kernels[i] != NULL;
    cleat_status status = __real_cleat_exec_bind(exec, bound, i, error);
    if (status || is_known || !bound->kernels[i] || exec->device->facts.vendor != CLEAT_VENDOR_POCL) return status;
    status = compare_names(bound->kernels[i], &bound->binder.launches[i], error);
    if (!status) return CLEAT_OK;
    clReleaseKernel(bound->kernels[i]);
    bound->kernels[i] = NULL;
    return status;
}
