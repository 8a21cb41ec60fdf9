/* Binding: turns launches, which are plain data, into OpenCL kernels with all arguments set. */
#include "core/memory.h"
#include "exec/compile_help.h"
#include "exec/exec.h"
#include "exec/join.h"

#include <string.h>

/* --- programs --- */

static bool same_text(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

static cleat_status find_program(cleat_exec *exec, const cleat_launch *launch, size_t *index, cleat_error *error) {
    const cleat_program_key wanted = {.file = launch->file, .source = launch->source, .options = launch->options};
    for (size_t i = 0; i < exec->program_count; ++i) {
        const cleat_program_key *key = &exec->keys[i];
        if (same_text(key->file, wanted.file) && same_text(key->source, wanted.source) &&
            same_text(key->options, wanted.options)) {
            *index = i;
            return CLEAT_OK;
        }
    }
    cleat_status status = cleat_grow(&exec->keys, exec->program_count, &exec->program_capacity, error);
    if (status) return status;
    exec->keys[exec->program_count] = wanted;
    *index = exec->program_count++;
    return CLEAT_OK;
}

static cleat_status describe_nodes(cleat_bound_graph *bound, cleat_error *error) {
    const cleat_graph *graph = bound->layout->graph;
    for (size_t i = 0; i < graph->node_count; ++i) {
        const cleat_variant *variant = bound->layout->variants[i];
        bound->first[i] = bound->binder.count;
        if (!variant) continue;
        cleat_status status = cleat_bind_node(variant, graph->nodes[i], &bound->binder, error);
        if (status) return cleat_fail_in(error, status, "variant '%s' of %s", variant->name, graph->nodes[i]->name);
    }
    bound->first[graph->node_count] = bound->binder.count;
    return CLEAT_OK;
}

static cleat_status describe_graph(cleat_exec *exec, cleat_bound_graph *bound, cleat_error *error) {
    cleat_binder_init(&bound->binder, &exec->plan->facts);
    bound->first = cleat_alloc(bound->layout->graph->node_count + 1, sizeof *bound->first);
    if (!bound->first) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the launches of a graph");
    cleat_status status = describe_nodes(bound, error);
    if (status) return status;
    size_t count = bound->binder.count;
    bound->program = cleat_alloc(count, sizeof *bound->program);
    bound->names = cleat_alloc(count, sizeof *bound->names);
    bound->kernels = cleat_alloc(count, sizeof *bound->kernels);
    bound->gemms = cleat_alloc(count, sizeof *bound->gemms);
    if (!bound->program || !bound->names || !bound->kernels || !bound->gemms)
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu kernels", count);
    for (size_t i = 0; i < count && !status; ++i) {
        if (bound->binder.launches[i].kind != CLEAT_LAUNCH_KERNEL) continue;
        bound->names[i] = bound->binder.launches[i].kernel;
        status = find_program(exec, &bound->binder.launches[i], &bound->program[i], error);
    }
    return status;
}

cleat_status cleat_exec_list_programs(cleat_exec *exec, cleat_error *error) {
    const cleat_plan *plan = exec->plan;
    exec->graphs = cleat_alloc(plan->layout_count, sizeof *exec->graphs);
    if (!exec->graphs) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu graphs", plan->layout_count);
    for (size_t i = 0; i < plan->layout_count; ++i) {
        exec->graphs[i].layout = &plan->layouts[i];
        cleat_status status = describe_graph(exec, &exec->graphs[i], error);
        if (status) return status;
    }
    return cleat_exec_join_programs(exec, error);
}

cleat_status cleat_exec_describe(cleat_exec *exec, cleat_error *error) {
    cleat_status status = cleat_exec_list_programs(exec, error);
    if (status) return status;
    cleat_compile_help_start(exec, &exec->help);
    const cleat_program_gate gate = {cleat_compile_help_is_done, exec->help};
    return cleat_programs_start(exec->device, exec->keys, exec->program_count, exec->help ? &gate : NULL,
                                &exec->programs, error);
}

/* Flushes the queue before it waits for a program, so that the device works on what is already enqueued. */
static cleat_status get_program(cleat_exec *exec, size_t index, cl_program *program, cleat_error *error) {
    if (!cleat_programs_is_ready(exec->programs, index)) clFlush(exec->device->compute);
    cleat_status status = cleat_programs_get(exec->programs, index, program, error);
    return status == CLEAT_ERR_BUILD ? cleat_exec_explain_build(exec, index, error) : status;
}

cleat_status cleat_exec_build(cleat_exec *exec, cleat_error *error) {
    cl_program program;
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < exec->program_count && !status; ++i) status = get_program(exec, i, &program, error);
    return status;
}

cleat_build_stats cleat_exec_build_stats(const cleat_exec *exec) {
    cleat_program_stats stats = cleat_programs_count(exec->programs);
    return (cleat_build_stats){.programs = (int64_t)stats.count,
                               .built = (int64_t)stats.built,
                               .loaded = (int64_t)stats.loaded,
                               .waited_seconds = stats.waited};
}

/* --- arguments --- */

cleat_slab_place cleat_exec_find_argument(const cleat_exec *exec, const cleat_bound_graph *bound,
                                          const cleat_launch *launch, const cleat_arg *arg, int64_t *element) {
    cleat_slab_place place = exec->plan->counters;
    int64_t size = sizeof(cl_int);
    *element = 0;
    if (arg->kind == CLEAT_ARG_TENSOR) {
        if (!arg->tensor) return (cleat_slab_place){.slab = -1};
        place = cleat_plan_place(exec->plan, bound->layout, arg->tensor);
        size = cleat_dtype_size(arg->tensor->dtype);
        place.offset += arg->offset * size;
    } else if (arg->kind == CLEAT_ARG_WORKSPACE) {
        place = bound->layout->workspaces[launch->node->index];
        size = arg->size;
        place.offset += arg->offset;
    }
    *element = place.offset / size;
    return place;
}

/* The slab of a place, or NULL, which callers report as an error: a kernel without the buffer of a required
 * tensor would write to arbitrary memory. */
static const cl_mem *slab_of(const cleat_exec *exec, cleat_slab_place place) {
    return place.slab >= 0 && exec->slabs[place.slab] ? &exec->slabs[place.slab] : NULL;
}

/* Sets the two kernel arguments of a TENSOR(): buffer and element offset. */
static cleat_status set_place(const cleat_exec *exec, const cleat_bound_graph *bound, const cleat_launch *launch,
                              cl_kernel kernel, cl_uint *index, const cleat_arg *arg, cl_int *code,
                              cleat_error *error) {
    int64_t element;
    const cl_mem *slab = slab_of(exec, cleat_exec_find_argument(exec, bound, launch, arg, &element));
    const bool is_tensor = arg->kind == CLEAT_ARG_TENSOR;
    if (!slab && !(is_tensor && !arg->tensor))
        return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "the plan has no memory for %s",
                          is_tensor                          ? arg->tensor->name
                          : arg->kind == CLEAT_ARG_WORKSPACE ? "the workspace of this node"
                                                             : "the counters");
    const cl_ulong offset = (cl_ulong)element;
    *code = clSetKernelArg(kernel, (*index)++, sizeof *slab, slab);
    if (*code == CL_SUCCESS) *code = clSetKernelArg(kernel, (*index)++, sizeof offset, &offset);
    return CLEAT_OK;
}

static cleat_status set_arguments(const cleat_exec *exec, const cleat_bound_graph *bound, const cleat_launch *launch,
                                  cl_kernel kernel, cleat_error *error) {
    cl_uint index = 0;
    for (int i = 0; i < launch->n_args; ++i) {
        const cleat_arg *arg = &launch->args[i];
        cl_int code = CL_SUCCESS;
        cleat_status status = CLEAT_OK;
        if (arg->kind == CLEAT_ARG_SCALAR)
            code = clSetKernelArg(kernel, index++, (size_t)arg->size, &arg->value);
        else
            status = set_place(exec, bound, launch, kernel, &index, arg, &code, error);
        if (status) return status;
        if (code != CL_SUCCESS)
            return cleat_cl_fail(error, code, "setting argument %d (kernel argument %u)", i, index - 1);
    }
    return CLEAT_OK;
}

/* Without this check, a kernel with unset arguments would fail at its first enqueue with an uninformative
 * error. */
static cleat_status check_argument_count(cl_kernel kernel, const cleat_launch *launch, cleat_error *error) {
    cl_uint has = 0, given = 0;
    for (int i = 0; i < launch->n_args; ++i) given += launch->args[i].kind == CLEAT_ARG_SCALAR ? 1 : 2;
    clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof has, &has, NULL);
    if (has == given) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_ARGUMENT, "the kernel has %u arguments, but the launch provides %u", has, given);
}

static cleat_status create_kernel(cleat_exec *exec, cleat_bound_graph *bound, size_t i, cleat_error *error) {
    const cleat_launch *launch = &bound->binder.launches[i];
    cl_int code = CL_SUCCESS;
    cl_program program = NULL;
    cleat_status status = get_program(exec, bound->program[i], &program, error);
    if (status) return status;
    cl_kernel kernel = clCreateKernel(program, bound->names[i], &code);
    if (code != CL_SUCCESS) return cleat_cl_fail(error, code, "creating it from %s", launch->file);
    bound->kernels[i] = kernel;
    status = check_argument_count(kernel, launch, error);
    return status ? status : set_arguments(exec, bound, launch, kernel, error);
}

/* --- CLBlast --- */

/* Creates a sub-buffer for CLBlast, which takes offsets of 32 bits, copies every matrix that does not begin
 * at offset 0, and takes no offset for its workspace. A sub-buffer begins at a multiple of the device's
 * alignment; *offset is the number of bytes from there to the place (a parameter may begin anywhere in its
 * flat buffer). */
static cleat_status create_region(const cleat_exec *exec, cleat_slab_place place, int64_t bytes, cl_mem *region,
                                  int64_t *offset, cleat_error *error) {
    const cl_mem *slab = slab_of(exec, place);
    if (!slab) return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "the plan has no memory for it");
    int64_t before = place.offset % exec->plan->facts.alignment;
    cl_buffer_region where = {(size_t)(place.offset - before), (size_t)(before + bytes)};
    cl_int code = CL_SUCCESS;
    cl_mem created = clCreateSubBuffer(*slab, 0, CL_BUFFER_CREATE_TYPE_REGION, &where, &code);
    if (code != CL_SUCCESS)
        return cleat_cl_fail(error, code, "a sub-buffer of %zu bytes at %zu", where.size, where.origin);
    *region = created;
    *offset = before;
    return CLEAT_OK;
}

/* Creates a sub-buffer for `elements` elements of `tensor` from element `at` on; *offset is in elements. */
static cleat_status create_operand(const cleat_exec *exec, const cleat_bound_graph *bound, const cleat_tensor *tensor,
                                   int64_t at, int64_t elements, cl_mem *region, int64_t *offset, cleat_error *error) {
    cleat_slab_place place = cleat_plan_place(exec->plan, bound->layout, tensor);
    int64_t size = cleat_dtype_size(tensor->dtype), bytes = 0;
    place.offset += at * size;
    cleat_status status = create_region(exec, place, elements * size, region, &bytes, error);
    if (status) return cleat_fail_in(error, status, "'%s'", tensor->name);
    *offset = bytes / size;
    return CLEAT_OK;
}

/* The plan's bound holds for CLBlast's default parameters and for those that cleat accepts; other code in the
 * process may have set larger ones. */
static cleat_status check_workspace(const cleat_exec *exec, const cleat_clblast_gemm *gemm, int64_t planned,
                                    cleat_error *error) {
    int64_t needed = 0;
    cleat_status status = cleat_clblast_workspace(exec->device, gemm, &needed, error);
    if (status || needed <= planned) return status;
    return cleat_fail(error, CLEAT_ERR_DEVICE,
                      "CLBlast requires %lld bytes of workspace, but %lld are planned: its parameters for '%s' have "
                      "larger tiles than the built-in ones; remove the override",
                      (long long)needed, (long long)planned, exec->plan->facts.name);
}

static cleat_status create_gemm(const cleat_exec *exec, cleat_bound_graph *bound, size_t i, cleat_error *error) {
    const cleat_launch *launch = &bound->binder.launches[i];
    const cleat_sgemm *g = &launch->sgemm;
    cleat_clblast_gemm *p = &bound->gemms[i];
    *p = (cleat_clblast_gemm){
        .trans_a = g->trans_a, .trans_b = g->trans_b, .m = g->m, .n = g->n, .k = g->k, .beta = g->beta};
    int64_t none = 0; /* workspaces begin at multiples of the alignment */
    cleat_status status = create_operand(exec, bound, g->a, g->a_at, g->m * g->k, &p->a, &p->a_offset, error);
    if (!status) status = create_operand(exec, bound, g->b, g->b_at, g->k * g->n, &p->b, &p->b_offset, error);
    if (!status) status = create_operand(exec, bound, g->c, g->c_at, g->m * g->n, &p->c, &p->c_offset, error);
    if (!status) status = check_workspace(exec, p, g->workspace, error);
    if (!status && g->workspace > 0)
        status = create_region(exec, bound->layout->workspaces[launch->node->index], g->workspace, &p->workspace, &none,
                               error);
    return status;
}

static void release_gemm(cleat_clblast_gemm *gemm) {
    cl_mem regions[] = {gemm->a, gemm->b, gemm->c, gemm->workspace};
    for (size_t i = 0; i < sizeof regions / sizeof *regions; ++i)
        if (regions[i]) clReleaseMemObject(regions[i]);
    *gemm = (cleat_clblast_gemm){0};
}

/* --- graphs --- */

cleat_status cleat_exec_bind(cleat_exec *exec, cleat_bound_graph *bound, size_t i, cleat_error *error) {
    const cleat_launch *launch = &bound->binder.launches[i];
    if (launch->kind == CLEAT_LAUNCH_SGEMM) {
        if (bound->gemms[i].a) return CLEAT_OK;
        cleat_status status = create_gemm(exec, bound, i, error);
        if (!status) return CLEAT_OK;
        release_gemm(&bound->gemms[i]);
        return cleat_fail_in(error, status, "CLBlast sgemm of %s", launch->node->name);
    }
    if (bound->kernels[i]) return CLEAT_OK;
    cleat_status status = create_kernel(exec, bound, i, error);
    if (!status) return CLEAT_OK;
    if (bound->kernels[i]) clReleaseKernel(bound->kernels[i]);
    bound->kernels[i] = NULL;
    return cleat_fail_in(error, status, "kernel '%s' of %s", launch->kernel, launch->node->name);
}

static void unbind_graph(cleat_bound_graph *bound) {
    for (size_t i = 0; i < bound->binder.count; ++i) {
        if (bound->kernels && bound->kernels[i]) clReleaseKernel(bound->kernels[i]);
        if (bound->gemms) release_gemm(&bound->gemms[i]);
    }
    if (bound->ended) clReleaseEvent(bound->ended);
    cleat_free(bound->gemms);
    cleat_free(bound->kernels);
    cleat_free(bound->names);
    cleat_free(bound->program);
    cleat_free(bound->first);
    cleat_binder_clear(&bound->binder);
}

void cleat_exec_unbind(cleat_exec *exec) {
    cleat_programs_destroy(exec->programs); /* first: running builds read the texts of the launches, and ask the help */
    cleat_compile_help_destroy(exec->help);
    for (size_t i = 0; exec->graphs && i < exec->plan->layout_count; ++i) unbind_graph(&exec->graphs[i]);
    cleat_free(exec->graphs);
    for (size_t i = 0; i < exec->kept_count; ++i) cleat_free(exec->kept[i]);
    cleat_free(exec->kept);
    cleat_free(exec->parts);
    cleat_free(exec->keys);
}
