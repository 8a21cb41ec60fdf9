/* The devices as cleat lists them, and whether each computes a small kernel correctly; both run in child processes,
 * because drivers hang and crash. */
#include "core/child.h"
#include "core/memory.h"
#include "device/probe.h"
#include "doctor/doctor.h"

#include <stdio.h>
#include <stdlib.h>

enum { ITEMS = 4096, MAX_GROUP = 64 };

/* Local memory, a barrier, a product and a sum: every value is exact in f32, contracted or not. */
static const char kernel_source[] = "__kernel void doctor(__global const float *in, __global float *out) {\n"
                                    "    __local float tile[GROUP];\n"
                                    "    const int item = get_global_id(0), place = get_local_id(0);\n"
                                    "    tile[place] = in[item];\n"
                                    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
                                    "    out[item] = tile[GROUP - 1 - place] * 3.0f + (float)item;\n"
                                    "}\n";

static float input_of(int item) {
    return (float)(item * 37 % 101 - 50) / 8;
}

typedef struct list_record {
    bool last;
    cleat_device_facts facts;
} list_record;
_Static_assert(sizeof(list_record) <= 4096, "a record is written to the pipe at once");

static void use_vendors(const cleat_doctor *doctor) {
    cleat_doctor_quiet_child();
    if (doctor->root[0] && !doctor->vendors_set_by) cleat_doctor_use_vendors(doctor->vendors, NULL);
}

static void list_devices(void *user, int out) {
    cleat_device_facts *facts = NULL;
    size_t count = 0;
    use_vendors(user);
    if (cleat_device_list(&facts, &count, NULL) != CLEAT_OK) count = 0;
    for (size_t i = 0; i < count; ++i) {
        list_record record = {.facts = facts[i]};
        cleat_child_send(out, &record, sizeof record);
    }
    list_record last = {.last = true};
    cleat_child_send(out, &last, sizeof last);
}

static void collect_device(void *user, const void *data) {
    cleat_doctor *doctor = user;
    const list_record *record = data;
    if (!record->last && doctor->n_devices < DOCTOR_DEVICES) doctor->devices[doctor->n_devices++].facts = record->facts;
}

static void read_list(cleat_doctor *doctor) {
    list_record last = {0};
    cleat_child_end end = {0};
    const cleat_child child = {.body = list_devices,
                               .user = doctor,
                               .record_bytes = sizeof last,
                               .seconds = cleat_doctor_patience(doctor),
                               .received = collect_device};
    doctor->status = cleat_child_run(&child, &last, &end, &doctor->error);
    if (doctor->status) return;
    doctor->listing = cleat_doctor_child_result(&end);
    if (doctor->listing == CHILD_ANSWERED && !last.last) doctor->listing = CHILD_CRASHED;
    snprintf(doctor->listing_end, sizeof doctor->listing_end, "%s", end.text);
    if (doctor->listing != CHILD_ANSWERED) doctor->n_devices = 0;
}

typedef enum compute_event { COMPUTE_STEP, COMPUTE_RIGHT, COMPUTE_FAILED, COMPUTE_WRONG, COMPUTE_MATRIX } compute_event;

typedef struct compute_record {
    compute_event event;
    bool build_failed, processor_unknown;
    cleat_matrix_unit matrix_unit;
    bool matrix_bf16;
    char text[1024];
} compute_record;

typedef struct compute_task {
    cleat_doctor *doctor;
    cleat_doctor_device *device;
    size_t index;
} compute_task;

typedef struct probe {
    int out;
    int group;
    cl_device_id id;
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    cl_kernel kernel;
    cl_mem in, result;
    bool build_failed, processor_unknown;
    float values[ITEMS];
} probe;

static void send_step(const probe *p, const char *step) {
    compute_record record = {.event = COMPUTE_STEP};
    snprintf(record.text, sizeof record.text, "%s", step);
    cleat_child_send(p->out, &record, sizeof record);
}

static cleat_status open_queue(probe *p, const cleat_found_device *found, cleat_error *error) {
    cl_int code = CL_SUCCESS;
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)found->platform, 0};
    send_step(p, "opening the device");
    p->id = found->id;
    p->group = found->facts.max_work_group < MAX_GROUP ? 1 : MAX_GROUP;
    p->context = clCreateContext(properties, 1, &p->id, NULL, NULL, &code);
    if (code == CL_SUCCESS) p->queue = clCreateCommandQueue(p->context, p->id, 0, &code);
    return code == CL_SUCCESS ? CLEAT_OK : cleat_cl_fail(error, code, "opening the device");
}

static cleat_status build(probe *p, const cleat_found_device *found, cleat_error *error) {
    cl_int code = CL_SUCCESS;
    const char *source = kernel_source;
    char options[32], log[600] = "";
    send_step(p, "building a kernel");
    snprintf(options, sizeof options, "-DGROUP=%d", p->group);
    p->program = clCreateProgramWithSource(p->context, 1, &source, NULL, &code);
    if (code == CL_SUCCESS) code = clBuildProgram(p->program, 1, &p->id, options, NULL, NULL);
    if (code == CL_SUCCESS) p->kernel = clCreateKernel(p->program, "doctor", &code);
    if (code == CL_SUCCESS) return CLEAT_OK;
    p->build_failed = true;
    if (p->program) clGetProgramBuildInfo(p->program, p->id, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
    if (cleat_processor_is_unknown(&found->facts, log)) {
        char reason[512];
        cleat_explain_processor(found->platform, &found->facts, reason, sizeof reason);
        p->processor_unknown = true;
        return cleat_cl_fail(error, code, "%s; %s", reason, log);
    }
    return cleat_cl_fail(error, code, "building a kernel%s%s", log[0] ? ": " : "", log);
}

static cleat_status run_kernel(probe *p, cleat_error *error) {
    cl_int code = CL_SUCCESS;
    const size_t items = ITEMS, group = (size_t)p->group;
    send_step(p, "running a kernel");
    for (int i = 0; i < ITEMS; ++i) p->values[i] = input_of(i);
    p->in = clCreateBuffer(p->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof p->values, p->values, &code);
    if (code == CL_SUCCESS) p->result = clCreateBuffer(p->context, CL_MEM_READ_WRITE, sizeof p->values, NULL, &code);
    if (code == CL_SUCCESS) code = clSetKernelArg(p->kernel, 0, sizeof p->in, &p->in);
    if (code == CL_SUCCESS) code = clSetKernelArg(p->kernel, 1, sizeof p->result, &p->result);
    if (code == CL_SUCCESS) code = clEnqueueNDRangeKernel(p->queue, p->kernel, 1, NULL, &items, &group, 0, NULL, NULL);
    if (code == CL_SUCCESS)
        code = clEnqueueReadBuffer(p->queue, p->result, CL_TRUE, 0, sizeof p->values, p->values, 0, NULL, NULL);
    return code == CL_SUCCESS ? CLEAT_OK : cleat_cl_fail(error, code, "running a kernel");
}

/* Returns the number of wrong values; describes the first one. */
static int compare(const probe *p, char *text, size_t size) {
    int wrong = 0;
    for (int i = 0; i < ITEMS; ++i) {
        float expected = input_of(i - i % p->group + p->group - 1 - i % p->group) * 3 + (float)i;
        if (p->values[i] == expected) continue;
        if (wrong++ == 0)
            snprintf(text, size, "item %d is %.9g instead of %.9g", i, (double)p->values[i], (double)expected);
    }
    return wrong;
}

static void send_result(const probe *p, cleat_status status, const cleat_error *error) {
    compute_record record = {
        .event = COMPUTE_RIGHT, .build_failed = p->build_failed, .processor_unknown = p->processor_unknown};
    char first[160] = "";
    int wrong = status ? 0 : compare(p, first, sizeof first);
    if (status) {
        record.event = COMPUTE_FAILED;
        snprintf(record.text, sizeof record.text, "%.1000s", error->text);
    } else if (wrong > 0) {
        record.event = COMPUTE_WRONG;
        snprintf(record.text, sizeof record.text, "%d of %d results are wrong; %s", wrong, (int)ITEMS, first);
    }
    cleat_child_send(p->out, &record, sizeof record);
}

/* Opening a device as cleat does tries its matrix unit, the first time by compiling kernels. */
static void send_matrix_unit(const compute_task *task, int out) {
    char number[24];
    cleat_device *device = NULL;
    snprintf(number, sizeof number, "%zu", task->index);
    if (cleat_device_open(number, &device, NULL) != CLEAT_OK) return;
    const cleat_device_facts *facts = cleat_device_get_facts(device);
    compute_record record = {
        .event = COMPUTE_MATRIX, .matrix_unit = facts->matrix_unit, .matrix_bf16 = facts->matrix_bf16};
    cleat_child_send(out, &record, sizeof record);
}

/* Nothing is released: the child ends, and some drivers hang when they release. */
static void compute(void *user, int out) {
    const compute_task *task = user;
    cleat_found_device *found = NULL;
    size_t count = 0;
    cleat_error error = {0};
    use_vendors(task->doctor);
    probe *p = cleat_alloc(1, sizeof *p);
    if (!p) return;
    p->out = out;
    cleat_status status = cleat_find_devices(&found, &count, &error);
    if (!status && task->index >= count)
        status = cleat_fail(&error, CLEAT_ERR_NO_DEVICE, "the device is no longer listed");
    if (!status) status = open_queue(p, &found[task->index], &error);
    if (!status) status = build(p, &found[task->index], &error);
    if (!status) status = run_kernel(p, &error);
    send_result(p, status, &error);
    if (!status && found[task->index].facts.kind == CLEAT_DEVICE_GPU) send_matrix_unit(task, out);
}

static void collect_result(void *user, const void *data) {
    cleat_doctor_device *device = ((compute_task *)user)->device;
    const compute_record *record = data;
    if (record->event == COMPUTE_STEP) {
        snprintf(device->step, sizeof device->step, "%.31s", record->text);
    } else if (record->event == COMPUTE_MATRIX) {
        device->matrix_known = true;
        device->facts.matrix_unit = record->matrix_unit;
        device->facts.matrix_bf16 = record->matrix_bf16;
    } else {
        device->computes = record->event == COMPUTE_RIGHT;
        device->wrong = record->event == COMPUTE_WRONG;
        device->build_failed = record->build_failed;
        device->processor_unknown = record->processor_unknown;
        snprintf(device->failure, sizeof device->failure, "%s", record->text);
    }
}

static void try_device(cleat_doctor *doctor, size_t index) {
    compute_task task = {.doctor = doctor, .device = &doctor->devices[index], .index = index};
    compute_record last = {0};
    cleat_child_end end = {0};
    const cleat_child child = {.body = compute,
                               .user = &task,
                               .record_bytes = sizeof last,
                               .seconds = cleat_doctor_patience(doctor),
                               .received = collect_result};
    doctor->status = cleat_child_run(&child, &last, &end, &doctor->error);
    if (doctor->status) return;
    task.device->child = cleat_doctor_child_result(&end);
    snprintf(task.device->end, sizeof task.device->end, "%s", end.text);
    if (task.device->child == CHILD_ANSWERED && !task.device->computes && !task.device->failure[0]) {
        task.device->child = CHILD_CRASHED;
        snprintf(task.device->end, sizeof task.device->end, "the driver ended the process");
    }
}

/* A driver that hangs or crashes alone does so in the list as well, so the list is not tried. */
static bool any_driver_fails(const cleat_doctor *doctor) {
    for (size_t i = 0; i < doctor->n_drivers; ++i)
        if (doctor->drivers[i].child == CHILD_HUNG || doctor->drivers[i].child == CHILD_CRASHED) return true;
    return false;
}

void cleat_devices_read(cleat_doctor *doctor) {
    doctor->listing = CHILD_NOT_RUN;
    const bool none = doctor->n_drivers == 0 && !doctor->system.windows; /* there the loader knows more places */
    if (doctor->status || none || any_driver_fails(doctor)) return;
    read_list(doctor);
    for (size_t i = 0; i < doctor->n_devices && !doctor->status; ++i) {
        doctor->devices[i].untried = doctor->request.list_only;
        if (!doctor->request.list_only) try_device(doctor, i);
    }
}
