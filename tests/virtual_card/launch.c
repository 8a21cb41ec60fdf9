/* Kernel launches: the driver's checks, and the call of the interpreter. */
#include "launch.h"

#include "counters_report.h"
#include "faults.h"
#include "icd.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct vc_launch {
    cl_kernel kernel; /* held together with its program */
    ptx_launch run;
    unsigned char *params;
    ptx_range *ranges;
    cl_mem *buffers; /* held; n_ranges */
};

/* Checks the sizes of a launch. */
typedef struct sizes {
    uint32_t groups[3], local[3];
} sizes;

void vc_launch_free(vc_launch *launch) {
    if (!launch) return;
    for (size_t i = 0; i < launch->run.n_ranges; ++i) vc_drop(launch->buffers[i]);
    vc_drop(launch->kernel);
    free(launch->params);
    free(launch->ranges);
    free(launch->buffers);
    free(launch);
}

static int environment_number(const char *name, int otherwise) {
    const char *text = getenv(name);
    return text && text[0] ? atoi(text) : otherwise;
}

static void report_fault(void *context, const char *text) {
    const vc_launch *launch = context;
    vc_fault("%s [%s]", text, launch->kernel->program->options ? launch->kernel->program->options : "");
}

static void notify(const struct _cl_context *context, const char *text) {
    if (context->notify) context->notify(text, NULL, 0, context->user);
}

/* CLEAT_VIRTUAL_CARD_RESET_AT=N: the driver resets the card in the N-th launch of the process, like a
 * watchdog. */
static bool is_reset(void) {
    static atomic_ulong launches; /* several threads may launch */
    const char *text = getenv("CLEAT_VIRTUAL_CARD_RESET_AT");
    return atomic_fetch_add(&launches, 1ul) + 1 == (text ? strtoul(text, NULL, 10) : 0);
}

static cl_int run_launch(vc_command *command) {
    vc_launch *launch = command->launch;
    const struct _cl_kernel *kernel = launch->kernel;
    ptx_counters counters = {0};
    cl_ulong before = vc_now();
    if (is_reset()) {
        notify(kernel->program->context, "the driver has reset the card; the context is lost");
        return CL_OUT_OF_RESOURCES;
    }
    bool done = vc_code_run(kernel->code, &launch->run, &counters);
    const vc_counted counted = {.kernel = vc_code_name(kernel->code),
                                .options = kernel->program->options ? kernel->program->options : "",
                                .ptx = kernel->program->assembly,
                                .work_items = launch->run.local[0] * launch->run.local[1] * launch->run.local[2],
                                .seconds = (double)(vc_now() - before) * 1e-9};
    vc_count(&counted, &counters);
    if (done) return CL_SUCCESS;
    notify(kernel->program->context, "a kernel was aborted; the context is lost");
    return CL_OUT_OF_RESOURCES;
}

/* The largest size up to 256 that divides the number of work-items. */
static size_t divisor(size_t items) {
    size_t size = 256;
    while (items % size) --size;
    return size;
}

static cl_int read_sizes(const vc_code_kernel *code, cl_uint dims, const size_t *global, const size_t *local,
                         sizes *found) {
    const vc_maker *maker = vc_device.card->maker;
    uint32_t required[3];
    bool is_required = vc_code_required_group(code, required);
    size_t items = 1;
    for (cl_uint i = 0; i < 3; ++i) {
        size_t wanted = i < dims ? global[i] : 1, size = 1;
        if (i < dims && local)
            size = local[i];
        else if (is_required)
            size = required[i];
        else if (i == 0)
            size = divisor(wanted);
        if (wanted == 0) return CL_INVALID_GLOBAL_WORK_SIZE;
        if (size == 0 || wanted % size) return CL_INVALID_WORK_GROUP_SIZE;
        if (is_required && size != required[i]) return CL_INVALID_WORK_GROUP_SIZE;
        if (size > maker->max_items[i]) return CL_INVALID_WORK_ITEM_SIZE;
        size_t groups = wanted / size;
        if (groups > (i == 0 ? (size_t)INT32_MAX : (size_t)maker->max_groups_above)) return CL_INVALID_GLOBAL_WORK_SIZE;
        items *= size;
        found->groups[i] = (uint32_t)groups;
        found->local[i] = (uint32_t)size;
    }
    return items > maker->max_work_items ? CL_INVALID_WORK_GROUP_SIZE : CL_SUCCESS;
}

static bool is_mapped_for_writing(const struct _cl_mem *buffer) {
    for (const vc_mapping *mapping = buffer->mappings; mapping; mapping = mapping->next)
        if (mapping->write) return true;
    return false;
}

/* Adds a buffer to the parameters and the ranges. A NULL buffer becomes a null pointer. */
static cl_int add_buffer(vc_launch *launch, const ptx_param *param, cl_mem buffer) {
    uint64_t address = 0;
    if (buffer) {
        cl_int code = vc_check(buffer, VC_BUFFER, "clEnqueueNDRangeKernel");
        if (code != CL_SUCCESS) return code;
        if (is_mapped_for_writing(buffer))
            vc_fault("%s uses a buffer that is mapped for writing", vc_code_name(launch->kernel->code));
        address = (uint64_t)(uintptr_t)buffer->data;
        size_t i = launch->run.n_ranges++;
        launch->ranges[i] = (ptx_range){address, address + buffer->bytes, (buffer->flags & CL_MEM_READ_ONLY) != 0};
        launch->buffers[i] = buffer;
        vc_hold(buffer);
    }
    memcpy(launch->params + param->offset, &address, sizeof address);
    return CL_SUCCESS;
}

/* Local memory of arguments follows the static local memory, at multiples of 16 bytes. */
static void add_local(vc_launch *launch, const ptx_param *param, size_t bytes) {
    uint32_t fixed = vc_code_local_bytes(launch->kernel->code);
    uint64_t at = (fixed + launch->run.dynamic_shared + 15u) / 16 * 16;
    memcpy(launch->params + param->offset, &at, param->size < sizeof at ? param->size : sizeof at);
    launch->run.dynamic_shared = (uint32_t)(at - fixed + bytes);
}

static cl_int add_arguments(vc_launch *launch) {
    const struct _cl_kernel *kernel = launch->kernel;
    const uint32_t most = vc_device.card->maker->local_memory;
    cl_int code = CL_SUCCESS;
    for (size_t i = 0; i < vc_code_params(kernel->code) && code == CL_SUCCESS; ++i) {
        const ptx_param *param = vc_code_param_at(kernel->code, i);
        const vc_argument *argument = &kernel->arguments[i];
        if (!argument->set)
            code = CL_INVALID_KERNEL_ARGS;
        else if (param->pointer)
            code = add_buffer(launch, param, argument->buffer);
        else if (param->shared && argument->local_bytes > most)
            code = CL_OUT_OF_RESOURCES;
        else if (param->shared)
            add_local(launch, param, argument->local_bytes);
        else
            memcpy(launch->params + param->offset, argument->value, param->size);
    }
    if (code == CL_SUCCESS && vc_code_local_bytes(kernel->code) + launch->run.dynamic_shared > most)
        code = CL_OUT_OF_RESOURCES;
    return code;
}

static cl_int create_launch(cl_kernel kernel, const sizes *size, vc_launch **created) {
    size_t count = vc_code_params(kernel->code) + 1;
    vc_launch *launch = calloc(1, sizeof *launch);
    if (!launch) return CL_OUT_OF_HOST_MEMORY;
    launch->kernel = kernel;
    vc_hold(kernel);
    launch->params = calloc(1, vc_code_param_bytes(kernel->code) + 16u);
    launch->ranges = calloc(count, sizeof *launch->ranges);
    launch->buffers = calloc(count, sizeof(cl_mem));
    cl_int code = launch->params && launch->ranges && launch->buffers ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
    if (code == CL_SUCCESS) code = add_arguments(launch);
    if (code != CL_SUCCESS) {
        vc_launch_free(launch);
        return code;
    }
    memcpy(launch->run.groups, size->groups, sizeof size->groups);
    memcpy(launch->run.local, size->local, sizeof size->local);
    launch->run.params = launch->params;
    launch->run.ranges = launch->ranges;
    launch->run.threads = environment_number("CLEAT_VIRTUAL_CARD_THREADS", (int)sysconf(_SC_NPROCESSORS_ONLN));
    launch->run.races = environment_number("CLEAT_VIRTUAL_CARD_RACES", 1) != 0;
    launch->run.registers = environment_number("CLEAT_VIRTUAL_CARD_REGISTERS", 0) != 0;
    launch->run.fault = report_fault;
    launch->run.context = launch;
    *created = launch;
    return CL_SUCCESS;
}

static cl_int check_launch(cl_command_queue queue, cl_kernel kernel, cl_uint dims, const size_t *offset,
                           const size_t *global) {
    cl_int code = vc_check(kernel, VC_KERNEL, "clEnqueueNDRangeKernel");
    if (code != CL_SUCCESS) return code;
    if (kernel->program->context != queue->context) return CL_INVALID_CONTEXT;
    if (dims < 1 || dims > 3) return CL_INVALID_WORK_DIMENSION;
    if (!global) return CL_INVALID_GLOBAL_WORK_SIZE;
    for (cl_uint i = 0; offset && i < dims; ++i)
        if (offset[i]) return CL_INVALID_GLOBAL_OFFSET; /* not modelled */
    return CL_SUCCESS;
}

static cl_int CL_API_CALL enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims, const size_t *offset,
                                         const size_t *global, const size_t *local, cl_uint n_waits,
                                         const cl_event *waits, cl_event *event) {
    VC_LOCKED;
    const vc_waits list = {n_waits, waits};
    sizes size;
    vc_launch *launch = NULL;
    cl_int code = vc_check_enqueue(queue, &list, "clEnqueueNDRangeKernel");
    if (code == CL_SUCCESS) code = check_launch(queue, kernel, dims, offset, global);
    if (code == CL_SUCCESS) code = read_sizes(kernel->code, dims, global, local, &size);
    if (code == CL_SUCCESS) code = create_launch(kernel, &size, &launch);
    if (code != CL_SUCCESS) return code;
    const vc_command command = {.type = CL_COMMAND_NDRANGE_KERNEL, .run = run_launch, .launch = launch};
    return vc_enqueue(queue, &command, &list, false, event);
}

void vc_enter_launches(cl_icd_dispatch *table) {
    table->clEnqueueNDRangeKernel = enqueue_kernel;
}
