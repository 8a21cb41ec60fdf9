/* Looking at every tensor of a run, in the order in which they are written. */
#include "exec/watch.h"

#include "core/memory.h"
#include "exec/exec.h"

#include <string.h>

enum {
    TYPES = CLEAT_BF16 + 1, /* of floats: they come first */
    GROUPS = 64,            /* that look at a tensor; each writes a record of WORDS */
    WORDS = 5,
    SLOTS = 16, /* tensors whose records lie on the device at a time */
    RECORD_BYTES = GROUPS * WORDS * (int)sizeof(uint32_t),
    BUFFER_BYTES = SLOTS * RECORD_BYTES
};

typedef struct look {
    const cleat_tensor *tensor;
    const cleat_node *node; /* that wrote it; NULL: it was there before */
    cleat_scan scan;
} look;

struct cleat_watch {
    cleat_exec *exec;
    cleat_binder binder;           /* launches of the kernel, for each type that occurs */
    cleat_program_key keys[TYPES]; /* of them */
    int program[TYPES];            /* index of the key; -1: no tensor has this type */
    cleat_programs *programs;
    cl_kernel kernels[TYPES];
    cl_mem records; /* uint [SLOTS, GROUPS, WORDS] */
    look *looks;    /* of this run, in order */
    size_t count, capacity;
    size_t pending; /* the last of them, whose records are still on the device */
    size_t judged;  /* the first of them, which are known to be good or harmless */
    char *kept;     /* states, side by side; NULL: none are kept */
};

/* --- creating ------------------------------------------------------------------------------------------------- */

static void find_types(const cleat_plan *plan, bool occurs[TYPES]) {
    occurs[CLEAT_F32] = true; /* parameters */
    for (size_t g = 0; g < plan->layout_count; ++g) {
        const cleat_graph *graph = plan->layouts[g].graph;
        for (size_t i = 0; i < graph->tensor_count; ++i)
            if (cleat_is_storage(graph->tensors[i]->dtype)) occurs[graph->tensors[i]->dtype] = true;
    }
}

static cleat_status start_programs(cleat_watch *watch, cleat_error *error) {
    bool occurs[TYPES] = {false};
    size_t count = 0;
    find_types(watch->exec->plan, occurs);
    cleat_binder_init(&watch->binder, &watch->exec->plan->facts);
    for (int type = 0; type < TYPES; ++type) {
        watch->program[type] = occurs[type] ? (int)count++ : -1;
        if (occurs[type]) cleat_launch_kernel(&watch->binder, NULL, "watch.cl", "watch_scan", (cleat_dtype)type);
    }
    if (watch->binder.error.status) {
        if (error) *error = watch->binder.error;
        return watch->binder.error.status;
    }
    for (size_t i = 0; i < count; ++i)
        watch->keys[i] =
            (cleat_program_key){.file = watch->binder.launches[i].file, .options = watch->binder.launches[i].options};
    return cleat_programs_start(watch->exec->device, watch->keys, count, &watch->programs, error);
}

cleat_status cleat_watch_create(cleat_exec *exec, cleat_watch **watch, cleat_error *error) {
    cleat_watch *made = cleat_alloc(1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a watch");
    made->exec = exec;
    cleat_status status = start_programs(made, error);
    if (!status) status = cleat_buffer_create(exec->device, BUFFER_BYTES, &made->records, error);
    if (status) {
        cleat_watch_destroy(made);
        return cleat_fail_in(error, status, "watching for values that are not finite");
    }
    *watch = made;
    return CLEAT_OK;
}

void cleat_watch_destroy(cleat_watch *watch) {
    if (!watch) return;
    clFinish(watch->exec->device->compute);
    for (int type = 0; type < TYPES; ++type)
        if (watch->kernels[type]) clReleaseKernel(watch->kernels[type]);
    cleat_programs_destroy(watch->programs); /* first: builds under way read the launches' texts */
    cleat_binder_clear(&watch->binder);
    cleat_buffer_release(watch->exec->device, watch->records, BUFFER_BYTES);
    cleat_free(watch->looks);
    cleat_free(watch->kept);
    cleat_free(watch);
}

/* --- one tensor ----------------------------------------------------------------------------------------------- */

static cleat_status get_kernel(cleat_watch *watch, cleat_dtype type, cl_kernel *kernel, cleat_error *error) {
    cl_int code = CL_SUCCESS;
    cl_program program = NULL;
    if (!watch->kernels[type]) {
        cleat_status status = cleat_programs_get(watch->programs, (size_t)watch->program[type], &program, error);
        if (status) return status;
        cl_kernel created = clCreateKernel(program, "watch_scan", &code);
        if (code != CL_SUCCESS) return cleat_cl_fail(error, code, "creating kernel 'watch_scan'");
        watch->kernels[type] = created;
    }
    *kernel = watch->kernels[type];
    return CLEAT_OK;
}

static cl_int enqueue(cleat_watch *watch, cl_kernel kernel, cl_mem slab, cl_ulong at, cl_ulong elements) {
    const size_t local = (size_t)watch->exec->plan->facts.work_group, global = GROUPS * local;
    const cl_ulong record = (cl_ulong)watch->pending * GROUPS * WORDS;
    cl_int code = clSetKernelArg(kernel, 0, sizeof slab, &slab);
    if (code == CL_SUCCESS) code = clSetKernelArg(kernel, 1, sizeof at, &at);
    if (code == CL_SUCCESS) code = clSetKernelArg(kernel, 2, sizeof watch->records, &watch->records);
    if (code == CL_SUCCESS) code = clSetKernelArg(kernel, 3, sizeof record, &record);
    if (code == CL_SUCCESS) code = clSetKernelArg(kernel, 4, sizeof elements, &elements);
    if (code != CL_SUCCESS) return code;
    return clEnqueueNDRangeKernel(watch->exec->device->compute, kernel, 1, NULL, &global, &local, 0, NULL, NULL);
}

/* Enqueues a look at a tensor with a place of its own; there is a free slot. */
static cleat_status scan(cleat_watch *watch, size_t graph, const cleat_tensor *tensor, const cleat_node *node,
                         cleat_error *error) {
    cl_kernel kernel = NULL;
    cl_mem slab = NULL;
    int64_t offset = 0, elements = cleat_tensor_elements(tensor);
    if (!cleat_is_storage(tensor->dtype) || elements == 0) return CLEAT_OK;
    cleat_status status = cleat_grow(&watch->looks, watch->count, &watch->capacity, sizeof *watch->looks, error);
    if (!status) status = cleat_exec_place(watch->exec, graph, tensor, &slab, &offset, error);
    if (!status) status = get_kernel(watch, tensor->dtype, &kernel, error);
    if (status) return status;
    cl_int code =
        enqueue(watch, kernel, slab, (cl_ulong)(offset / cleat_dtype_size(tensor->dtype)), (cl_ulong)elements);
    if (code != CL_SUCCESS) return cleat_cl_fail(error, code, "looking at tensor '%s'", tensor->name);
    watch->looks[watch->count++] = (look){.tensor = tensor, .node = node, .scan = {.elements = elements}};
    ++watch->pending;
    return CLEAT_OK;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void sum_records(const uint32_t records[GROUPS][WORDS], cleat_scan *sum) {
    uint64_t first = UINT64_MAX;
    for (int g = 0; g < GROUPS; ++g) {
        uint64_t own = (uint64_t)records[g][2] << 32 | records[g][1];
        sum->bad += records[g][0];
        if (float_of(records[g][4]) > sum->largest) sum->largest = float_of(records[g][4]);
        if (records[g][0] == 0 || own >= first) continue;
        first = own;
        sum->first = (int64_t)own;
        sum->value = float_of(records[g][3]);
    }
}

/* Waits for the looks that are enqueued. */
static cleat_status take_records(cleat_watch *watch, cleat_error *error) {
    static const size_t bytes = RECORD_BYTES;
    uint32_t records[SLOTS][GROUPS][WORDS];
    if (watch->pending == 0) return CLEAT_OK;
    cl_int code = clEnqueueReadBuffer(watch->exec->device->compute, watch->records, CL_TRUE, 0, watch->pending * bytes,
                                      records, 0, NULL, NULL);
    if (code != CL_SUCCESS) {
        clFinish(watch->exec->device->compute);
        cleat_status status = cleat_exec_take_failure(watch->exec, error);
        return status ? status : cleat_cl_fail(error, code, "reading what was found in %zu tensors", watch->pending);
    }
    for (size_t i = 0; i < watch->pending; ++i)
        sum_records(records[i], &watch->looks[watch->count - watch->pending + i].scan);
    watch->pending = 0;
    return CLEAT_OK;
}

static cleat_status make_room(cleat_watch *watch, size_t slots, cleat_error *error) {
    return watch->pending + slots > SLOTS ? take_records(watch, error) : CLEAT_OK;
}

/* --- what was found ------------------------------------------------------------------------------------------- */

/* The last look at a tensor among the first `before`. */
static const look *last_look(const cleat_watch *watch, const cleat_tensor *tensor, size_t before) {
    for (size_t i = before; i-- > 0;)
        if (watch->looks[i].tensor == cleat_root(tensor)) return &watch->looks[i];
    return NULL;
}

static void describe(const cleat_watch *watch, size_t at, cleat_finding *finding) {
    const look *found = &watch->looks[at];
    *finding = (cleat_finding){.tensor = found->tensor, .node = found->node, .scan = found->scan};
    while (at > 0 && watch->looks[at - 1].node == found->node) --at; /* its first output */
    for (int i = 0; found->node && i < found->node->n_in; ++i) {
        const look *read = found->node->in[i] ? last_look(watch, found->node->in[i], at) : NULL;
        if (!read) continue;
        finding->read[i] = read->scan;
        if (read->scan.bad == 0 || finding->source) continue;
        finding->source = read->tensor;
        finding->source_scan = read->scan;
    }
}

/* Looks through the records that are there for the first tensor that went bad. */
static void judge(cleat_watch *watch, cleat_finding *finding) {
    for (; watch->judged < watch->count && !finding->tensor; ++watch->judged) {
        const look *l = &watch->looks[watch->judged];
        if (l->scan.bad > 0 && (l->node || l->tensor->role != CLEAT_ROLE_INPUT))
            describe(watch, watch->judged, finding);
    }
}

/* --- running -------------------------------------------------------------------------------------------------- */

/* What the nodes read and none of them writes. */
static cleat_status scan_sources(cleat_watch *watch, size_t graph, size_t first, size_t last, cleat_error *error) {
    const cleat_graph *nodes = watch->exec->plan->layouts[graph].graph;
    cleat_status status = CLEAT_OK;
    for (size_t n = first; n < last; ++n)
        for (int i = 0; i < nodes->nodes[n]->n_in && !status; ++i) {
            const cleat_tensor *in = nodes->nodes[n]->in[i];
            if (!in || cleat_root(in)->role == CLEAT_ROLE_ACTIVATION || last_look(watch, in, watch->count)) continue;
            status = make_room(watch, 1, error);
            if (!status) status = scan(watch, graph, cleat_root(in), NULL, error);
        }
    return status ? status : take_records(watch, error);
}

static cleat_status run_node(cleat_watch *watch, size_t graph, size_t n, cleat_error *error) {
    const cleat_layout *layout = &watch->exec->plan->layouts[graph];
    const cleat_node *node = layout->graph->nodes[n];
    cleat_status status = cleat_exec_run_nodes(watch->exec, graph, n, n + 1, error);
    if (!layout->variants[n]) return status; /* a reshape: its bytes have been looked at */
    for (int i = 0; i < node->n_out && !status; ++i)
        if (node->out[i]) status = scan(watch, graph, cleat_root(node->out[i]), node, error);
    return status;
}

cleat_status cleat_watch_run(cleat_watch *watch, size_t graph, size_t first, size_t last, cleat_finding *finding,
                             cleat_error *error) {
    cleat_finding found = {0};
    watch->count = watch->pending = watch->judged = 0;
    cleat_status status = cleat_exec_run_nodes(watch->exec, graph, first, first, error); /* inputs arrive */
    if (!status) status = scan_sources(watch, graph, first, last, error);
    if (!status) judge(watch, &found);
    size_t next = first;
    while (next < last && !status && !found.tensor) {
        status = make_room(watch, CLEAT_MAX_OUT, error);
        if (!status && watch->pending == 0) judge(watch, &found);
        if (!status && !found.tensor) status = run_node(watch, graph, next++, error);
    }
    if (!status && !found.tensor) status = take_records(watch, error);
    if (!status && !found.tensor) judge(watch, &found);
    found.next = next;
    if (!status) *finding = found;
    return status;
}

/* --- leaving no trace ----------------------------------------------------------------------------------------- */

cleat_status cleat_watch_keep(cleat_watch *watch, cleat_error *error) {
    const cleat_plan *plan = watch->exec->plan;
    size_t bytes = 1, at = 0;
    for (size_t i = 0; i < plan->state_count; ++i) bytes += (size_t)cleat_tensor_bytes(plan->store->states[i]);
    char *kept = cleat_alloc(bytes, 1);
    if (!kept) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a copy of the states");
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < plan->state_count && !status; ++i) {
        status = cleat_exec_read(watch->exec, 0, plan->store->states[i], kept + at, error);
        at += (size_t)cleat_tensor_bytes(plan->store->states[i]);
    }
    cleat_free(status ? kept : watch->kept);
    if (!status) watch->kept = kept;
    return status;
}

cleat_status cleat_watch_undo(cleat_watch *watch, cleat_error *error) {
    const cleat_plan *plan = watch->exec->plan;
    const int32_t gradients = plan->flat[CLEAT_FLAT_GRADIENTS].slab;
    cleat_status status = CLEAT_OK;
    size_t at = 0;
    if (!watch->kept) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "no states were kept");
    for (size_t i = 0; i < plan->state_count && !status; ++i) {
        status = cleat_exec_write(watch->exec, 0, plan->store->states[i], watch->kept + at, error);
        at += (size_t)cleat_tensor_bytes(plan->store->states[i]);
    }
    if (status || gradients < 0) return status;
    return cleat_buffer_zero(watch->exec->device, watch->exec->slabs[gradients], plan->slabs[gradients].bytes, error);
}
