/* Test of a matrix unit: one product, compared with the same product on the host. */
#include "core/kernel_shape.h"
#include "core/memory.h"
#include "device/matrix.h"
#include "device/programs.h"

#include <stdio.h>
#include <string.h>

enum { SIDE = 16, TILE = SIDE * SIDE, GROUP = 128, FORMS = MATRIX_PROBE_FORMS };

typedef struct sample {
    float a[TILE], b[TILE], start[TILE];
    uint16_t a_bits[TILE], b_bits[TILE];
    float expected[TILE]; /* start + A B */
} sample;

/* The bits of a value that is exact in f16 and bf16 and is a normal number or 0. */
static uint16_t bits_of(float value, bool bf16) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (bf16 || value == 0) return (uint16_t)(bits >> 16);
    uint32_t exponent = (bits >> 23 & 0xff) - 127 + 15;
    return (uint16_t)((bits >> 16 & 0x8000) | exponent << 10 | (bits >> 13 & 0x3ff));
}

/* The matrices contain multiples of 1/8 up to 15/8, without equal rows or columns. The sums start at several
 * thousand and change in steps of 1/64: they are exact in f32 in any order, and far off wherever something is
 * summed in half precision. */
static void make_sample(sample *s, bool bf16) {
    for (int i = 0; i < TILE; ++i) {
        s->a[i] = (float)((i * 37 + i / SIDE * 11 + i * i % 29) % 31 - 15) / 8;
        s->b[i] = (float)((i * 53 + i / SIDE * 7 + i * i % 23) % 31 - 15) / 8;
        s->start[i] = (i % 2 ? -4096 : 4096) + (float)(i % 61) / 64;
        s->a_bits[i] = bits_of(s->a[i], bf16);
        s->b_bits[i] = bits_of(s->b[i], bf16);
    }
    for (int m = 0; m < SIDE; ++m)
        for (int n = 0; n < SIDE; ++n) {
            double sum = s->start[m * SIDE + n];
            for (int k = 0; k < SIDE; ++k) sum += (double)s->a[m * SIDE + k] * s->b[k * SIDE + n];
            s->expected[m * SIDE + n] = (float)sum;
        }
}

static cleat_status compare(const sample *s, const float *out, int subgroups, cleat_error *error) {
    static const char *const forms[FORMS] = {"A B", "A from its transpose", "B from its transpose",
                                             "both from their transposes", "slabs"};
    for (int i = 0; i < subgroups * FORMS * TILE; ++i) {
        int at = i % TILE, form = i / TILE % FORMS;
        if (out[i] != s->expected[at])
            return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                              "subgroup %d, %s: row %d, column %d is %.9g instead of %.9g", i / (FORMS * TILE),
                              forms[form], at / SIDE, at % SIDE, (double)out[i], (double)s->expected[at]);
    }
    return CLEAT_OK;
}

/* Uses temporary buffers outside the device's memory accounting, which begins after the test. */
static cleat_status run_kernel(cleat_device *device, cl_kernel kernel, sample *s, float *out, size_t bytes,
                               cleat_error *error) {
    void *const data[] = {s->a_bits, s->b_bits, s->start, out};
    const size_t sizes[] = {sizeof s->a_bits, sizeof s->b_bits, sizeof s->start, bytes};
    const size_t group = GROUP;
    cl_mem buffers[4] = {0};
    cl_int code = CL_SUCCESS;
    for (cl_uint i = 0; i < 4 && code == CL_SUCCESS; ++i) {
        buffers[i] =
            clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizes[i], data[i], &code);
        if (code == CL_SUCCESS) code = clSetKernelArg(kernel, i, sizeof(cl_mem), &buffers[i]);
    }
    if (code == CL_SUCCESS)
        code = clEnqueueNDRangeKernel(device->compute, kernel, 1, NULL, &group, &group, 0, NULL, NULL);
    if (code == CL_SUCCESS)
        code = clEnqueueReadBuffer(device->compute, buffers[3], CL_TRUE, 0, bytes, out, 0, NULL, NULL);
    for (int i = 0; i < 4; ++i)
        if (buffers[i]) clReleaseMemObject(buffers[i]);
    return code == CL_SUCCESS ? CLEAT_OK
                              : cleat_cl_fail(error, code, "testing a matrix unit of '%s'", device->facts.name);
}

static cleat_status run_and_compare(cleat_device *device, cl_program program, int subgroups, bool bf16,
                                    cleat_error *error) {
    cl_int code = CL_SUCCESS;
    cleat_status status = CLEAT_OK;
    size_t count = (size_t)subgroups * FORMS * TILE;
    sample *s = cleat_alloc(1, sizeof *s);
    float *out = cleat_alloc(count, sizeof *out);
    cl_kernel kernel = clCreateKernel(program, "mma_probe", &code);
    if (code != CL_SUCCESS)
        status = cleat_cl_fail(error, code, "creating mma_probe");
    else if (!s || !out)
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory to test a matrix unit");
    if (!status) {
        make_sample(s, bf16);
        status = run_kernel(device, kernel, s, out, count * sizeof *out, error);
    }
    if (!status) status = compare(s, out, subgroups, error);
    if (code == CL_SUCCESS) clReleaseKernel(kernel);
    cleat_free(out);
    cleat_free(s);
    return status;
}

/* Opens the same device with a separate context and queue, because a kernel that faults makes its context
 * unusable. */
static cleat_status open_probe_device(const cleat_device *device, cleat_device *probe, cleat_error *error) {
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)device->platform, 0};
    cl_int code = CL_SUCCESS;
    cleat_device opened = *device;
    opened.context = clCreateContext(properties, 1, &opened.id, NULL, NULL, &code);
    if (code != CL_SUCCESS) return cleat_cl_fail(error, code, "creating a context to test a matrix unit");
    opened.compute = clCreateCommandQueue(opened.context, opened.id, 0, &code);
    if (code != CL_SUCCESS) {
        clReleaseContext(opened.context);
        return cleat_cl_fail(error, code, "creating a queue to test a matrix unit");
    }
    *probe = opened;
    return CLEAT_OK;
}

static void close_probe_device(const cleat_device *probe) {
    clReleaseCommandQueue(probe->compute);
    clReleaseContext(probe->context);
}

cleat_status cleat_matrix_check(const cleat_device *device, cleat_matrix_unit unit, bool bf16, cleat_error *error) {
    cleat_device probe;
    char options[128];
    cl_program program = NULL;
    bool loaded = false;
    int subgroups = GROUP / cleat_matrix_subgroup_size(unit);
    if (device->facts.max_work_group < GROUP)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "work-groups of %d work-items are required", (int)GROUP);
    snprintf(options, sizeof options, "-DSTORAGE_%s -DWG=%d -DVEC=4 -DMATRIX_UNIT=%d %s", bf16 ? "BF16" : "F16",
             (int)GROUP, (int)unit, cleat_matrix_options(unit));
    cleat_program_key key = {.file = "lib/mma_probe.cl", .options = options};
    cleat_status status = open_probe_device(device, &probe, error);
    if (status) return status;
    status = cleat_program_build(&probe, &key, &program, &loaded, error);
    if (!status) {
        status = run_and_compare(&probe, program, subgroups, bf16, error);
        clReleaseProgram(program);
    }
    close_probe_device(&probe);
    return status;
}
