/* The finite check: scans every tensor of a run, in the order in which tensors are written. */
#include "exec/finite_check.h"

#include "core/memory.h"
#include "exec/exec.h"
#include "lib/shared_numbers.clh"

#include <string.h>

enum {
    TYPES = CLEAT_BF16 + 1, /* number of float types, which come first in cleat_dtype */
    /* Work-groups that scan a tensor; each writes a record of WORDS words. */
    GROUPS = 64,
    WORDS = FINITE_CHECK_WORDS,
    SLOTS = 16, /* tensors whose records fit on the device at the same time */
    RECORD_BYTES = GROUPS * WORDS * (int)sizeof(uint32_t),
    BUFFER_BYTES = SLOTS * RECORD_BYTES
};

typedef struct scan_record {
    const cleat_tensor *tensor;
    const cleat_node *node; /* the node that wrote it; NULL: it was written before the run */
    cleat_scan scan;
} scan_record;

struct cleat_finite_check {
    cleat_exec *exec;
    cleat_binder binder;           /* launches of the scan kernel, one for each type that occurs */
    cleat_program_key keys[TYPES]; /* keys of these launches */
    int program[TYPES];            /* index of the key; -1: no tensor has this type */
    cleat_programs *programs;
    cl_kernel kernels[TYPES];
    cl_mem records;     /* uint [SLOTS, GROUPS, WORDS] */
    scan_record *scans; /* scans of the current run, in order */
    size_t count, capacity;
    size_t pending;  /* number of scans at the end whose records are still on the device */
    size_t examined; /* number of scans at the start that are known to be finite or harmless */
    char *saved;     /* snapshot of the states, side by side; NULL: none */
};

/* --- creating ------------------------------------------------------------------------------------------------- */

static void find_types(const cleat_plan *plan, bool occurs[TYPES]) {
    occurs[CLEAT_F32] = true; /* the type of the parameters */
    for (size_t g = 0; g < plan->layout_count; ++g) {
        const cleat_graph *graph = plan->layouts[g].graph;
        for (size_t i = 0; i < graph->tensor_count; ++i)
            if (cleat_is_storage(graph->tensors[i]->dtype)) occurs[graph->tensors[i]->dtype] = true;
    }
}

static cleat_status start_programs(cleat_finite_check *check, cleat_error *error) {
    bool occurs[TYPES] = {false};
    size_t count = 0;
    find_types(check->exec->plan, occurs);
    cleat_binder_init(&check->binder, &check->exec->plan->facts);
    for (int type = 0; type < TYPES; ++type) {
        check->program[type] = occurs[type] ? (int)count++ : -1;
        if (occurs[type])
            cleat_launch_kernel(&check->binder, NULL, "finite_check.cl", "finite_check_scan", (cleat_dtype)type);
    }
    if (check->binder.error.status) {
        if (error) *error = check->binder.error;
        return check->binder.error.status;
    }
    for (size_t i = 0; i < count; ++i)
        check->keys[i] =
            (cleat_program_key){.file = check->binder.launches[i].file, .options = check->binder.launches[i].options};
    return cleat_programs_start(check->exec->device, check->keys, count, NULL, &check->programs, error);
}

cleat_status cleat_finite_check_create(cleat_exec *exec, cleat_finite_check **check, cleat_error *error) {
    cleat_finite_check *created = cleat_alloc(1, sizeof *created);
    if (!created) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a finite check");
    created->exec = exec;
    cleat_status status = start_programs(created, error);
    if (!status) status = cleat_buffer_create(exec->device, BUFFER_BYTES, &created->records, error);
    if (status) {
        cleat_finite_check_destroy(created);
        return cleat_fail_in(error, status, "checking for values that are not finite");
    }
    *check = created;
    return CLEAT_OK;
}

void cleat_finite_check_destroy(cleat_finite_check *check) {
    if (!check) return;
    clFinish(check->exec->device->compute);
    for (int type = 0; type < TYPES; ++type)
        if (check->kernels[type]) clReleaseKernel(check->kernels[type]);
    cleat_programs_destroy(check->programs); /* first: running builds read the texts of the launches */
    cleat_binder_clear(&check->binder);
    cleat_buffer_release(check->exec->device, check->records, BUFFER_BYTES);
    cleat_free(check->scans);
    cleat_free(check->saved);
    cleat_free(check);
}

/* --- one tensor ----------------------------------------------------------------------------------------------- */

static cleat_status get_kernel(cleat_finite_check *check, cleat_dtype type, cl_kernel *kernel, cleat_error *error) {
    cl_int code = CL_SUCCESS;
    cl_program program = NULL;
    if (!check->kernels[type]) {
        cleat_status status = cleat_programs_get(check->programs, (size_t)check->program[type], &program, error);
        if (status) return status;
        cl_kernel created = clCreateKernel(program, "finite_check_scan", &code);
        if (code != CL_SUCCESS) return cleat_cl_fail(error, code, "creating kernel 'finite_check_scan'");
        check->kernels[type] = created;
    }
    *kernel = check->kernels[type];
    return CLEAT_OK;
}

static cl_int enqueue(cleat_finite_check *check, cl_kernel kernel, cl_mem slab, cl_ulong at, cl_ulong elements) {
    const size_t local = (size_t)check->exec->plan->facts.work_group, global = GROUPS * local;
    const cl_ulong record = (cl_ulong)check->pending * GROUPS * WORDS;
    cl_int code = clSetKernelArg(kernel, 0, sizeof slab, &slab);
    if (code == CL_SUCCESS) code = clSetKernelArg(kernel, 1, sizeof at, &at);
    if (code == CL_SUCCESS) code = clSetKernelArg(kernel, 2, sizeof check->records, &check->records);
    if (code == CL_SUCCESS) code = clSetKernelArg(kernel, 3, sizeof record, &record);
    if (code == CL_SUCCESS) code = clSetKernelArg(kernel, 4, sizeof elements, &elements);
    if (code != CL_SUCCESS) return code;
    return clEnqueueNDRangeKernel(check->exec->device->compute, kernel, 1, NULL, &global, &local, 0, NULL, NULL);
}

/* Enqueues the scan of a tensor that is not a reshape. The caller has reserved a slot. */
static cleat_status scan(cleat_finite_check *check, size_t graph, const cleat_tensor *tensor, const cleat_node *node,
                         cleat_error *error) {
    cl_kernel kernel = NULL;
    cl_mem slab = NULL;
    int64_t offset = 0, elements = cleat_tensor_elements(tensor);
    if (!cleat_is_storage(tensor->dtype) || elements == 0) return CLEAT_OK;
    cleat_status status = cleat_grow(&check->scans, check->count, &check->capacity, error);
    if (!status) status = cleat_exec_place(check->exec, graph, tensor, &slab, &offset, error);
    if (!status) status = get_kernel(check, tensor->dtype, &kernel, error);
    if (status) return status;
    cl_int code =
        enqueue(check, kernel, slab, (cl_ulong)(offset / cleat_dtype_size(tensor->dtype)), (cl_ulong)elements);
    if (code != CL_SUCCESS) return cleat_cl_fail(error, code, "checking tensor '%s'", tensor->name);
    check->scans[check->count++] = (scan_record){.tensor = tensor, .node = node, .scan = {.elements = elements}};
    ++check->pending;
    return CLEAT_OK;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void merge_records(const uint32_t records[GROUPS][WORDS], cleat_scan *sum) {
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

/* Waits for the enqueued scans and merges their records. */
static cleat_status read_records(cleat_finite_check *check, cleat_error *error) {
    static const size_t bytes = RECORD_BYTES;
    uint32_t records[SLOTS][GROUPS][WORDS];
    if (check->pending == 0) return CLEAT_OK;
    cl_int code = clEnqueueReadBuffer(check->exec->device->compute, check->records, CL_TRUE, 0, check->pending * bytes,
                                      records, 0, NULL, NULL);
    if (code != CL_SUCCESS) {
        clFinish(check->exec->device->compute);
        cleat_status status = cleat_exec_pop_failure(check->exec, error);
        return status ? status : cleat_cl_fail(error, code, "reading the check results of %zu tensors", check->pending);
    }
    for (size_t i = 0; i < check->pending; ++i)
        merge_records(records[i], &check->scans[check->count - check->pending + i].scan);
    check->pending = 0;
    return CLEAT_OK;
}

static cleat_status reserve_slots(cleat_finite_check *check, size_t slots, cleat_error *error) {
    return check->pending + slots > SLOTS ? read_records(check, error) : CLEAT_OK;
}

/* --- anomalies ------------------------------------------------------------------------------------------------ */

/* The last scan of a tensor among the first `before` scans. */
static const scan_record *find_last_scan(const cleat_finite_check *check, const cleat_tensor *tensor, size_t before) {
    for (size_t i = before; i-- > 0;)
        if (check->scans[i].tensor == cleat_root(tensor)) return &check->scans[i];
    return NULL;
}

static void describe(const cleat_finite_check *check, size_t at, cleat_anomaly *anomaly) {
    const scan_record *found = &check->scans[at];
    *anomaly = (cleat_anomaly){.tensor = found->tensor, .node = found->node, .scan = found->scan};
    while (at > 0 && check->scans[at - 1].node == found->node) --at; /* the scan of the node's first output */
    for (int i = 0; found->node && i < found->node->n_in; ++i) {
        const scan_record *read = found->node->in[i] ? find_last_scan(check, found->node->in[i], at) : NULL;
        if (!read) continue;
        anomaly->read[i] = read->scan;
        if (read->scan.bad == 0 || anomaly->source) continue;
        anomaly->source = read->tensor;
        anomaly->source_scan = read->scan;
    }
}

/* Searches the records read so far for the first tensor that is not finite. */
static void find_first_anomaly(cleat_finite_check *check, cleat_anomaly *anomaly) {
    for (; check->examined < check->count && !anomaly->tensor; ++check->examined) {
        const scan_record *l = &check->scans[check->examined];
        if (l->scan.bad > 0 && (l->node || l->tensor->role != CLEAT_ROLE_INPUT))
            describe(check, check->examined, anomaly);
    }
}

/* --- running -------------------------------------------------------------------------------------------------- */

/* Scans the tensors that the nodes read and none of them writes. */
static cleat_status scan_sources(cleat_finite_check *check, size_t graph, size_t first, size_t last,
                                 cleat_error *error) {
    const cleat_graph *nodes = check->exec->plan->layouts[graph].graph;
    cleat_status status = CLEAT_OK;
    for (size_t n = first; n < last; ++n)
        for (int i = 0; i < nodes->nodes[n]->n_in && !status; ++i) {
            const cleat_tensor *in = nodes->nodes[n]->in[i];
            if (!in || cleat_root(in)->role == CLEAT_ROLE_ACTIVATION || find_last_scan(check, in, check->count))
                continue;
            status = reserve_slots(check, 1, error);
            if (!status) status = scan(check, graph, cleat_root(in), NULL, error);
        }
    return status ? status : read_records(check, error);
}

static cleat_status run_node(cleat_finite_check *check, size_t graph, size_t n, cleat_error *error) {
    const cleat_layout *layout = &check->exec->plan->layouts[graph];
    const cleat_node *node = layout->graph->nodes[n];
    cleat_status status = cleat_exec_run_nodes(check->exec, graph, n, n + 1, error);
    if (!layout->variants[n]) return status; /* a reshape: its bytes have been scanned already */
    for (int i = 0; i < node->n_out && !status; ++i)
        if (node->out[i]) status = scan(check, graph, cleat_root(node->out[i]), node, error);
    return status;
}

cleat_status cleat_finite_check_run(cleat_finite_check *check, size_t graph, size_t first, size_t last,
                                    cleat_anomaly *anomaly, cleat_error *error) {
    cleat_anomaly found = {0};
    check->count = check->pending = check->examined = 0;
    /* Copies a waiting upload into the inputs. */
    cleat_status status = cleat_exec_run_nodes(check->exec, graph, first, first, error);
    if (!status) status = scan_sources(check, graph, first, last, error);
    if (!status) find_first_anomaly(check, &found);
    size_t next = first;
    while (next < last && !status && !found.tensor) {
        status = reserve_slots(check, CLEAT_MAX_OUT, error);
        if (!status && check->pending == 0) find_first_anomaly(check, &found);
        if (!status && !found.tensor) status = run_node(check, graph, next++, error);
    }
    if (!status && !found.tensor) status = read_records(check, error);
    if (!status && !found.tensor) find_first_anomaly(check, &found);
    found.next = next;
    if (!status) *anomaly = found;
    return status;
}

/* --- snapshot and restore ------------------------------------------------------------------------------------- */

cleat_status cleat_finite_check_snapshot(cleat_finite_check *check, cleat_error *error) {
    const cleat_plan *plan = check->exec->plan;
    size_t bytes = 1, at = 0;
    for (size_t i = 0; i < plan->state_count; ++i) bytes += (size_t)cleat_tensor_bytes(plan->store->states[i]);
    char *saved = cleat_alloc(bytes, 1);
    if (!saved) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a copy of the states");
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < plan->state_count && !status; ++i) {
        status = cleat_exec_read_unchecked(check->exec, 0, plan->store->states[i], saved + at, error);
        at += (size_t)cleat_tensor_bytes(plan->store->states[i]);
    }
    cleat_free(status ? saved : check->saved);
    if (!status) check->saved = saved;
    return status;
}

cleat_status cleat_finite_check_restore(cleat_finite_check *check, cleat_error *error) {
    const cleat_plan *plan = check->exec->plan;
    const int32_t gradients = plan->flat[CLEAT_FLAT_GRADIENTS].slab;
    cleat_status status = CLEAT_OK;
    size_t at = 0;
    if (!check->saved) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "no states were saved");
    for (size_t i = 0; i < plan->state_count && !status; ++i) {
        status = cleat_exec_write_unchecked(check->exec, 0, plan->store->states[i], check->saved + at, error);
        at += (size_t)cleat_tensor_bytes(plan->store->states[i]);
    }
    if (status || gradients < 0) return status;
    return cleat_buffer_zero(check->exec->device, check->exec->slabs[gradients], plan->slabs[gradients].bytes, error);
}
