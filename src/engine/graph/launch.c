/* The binder: bind functions of variants describe their launches with these calls. */
#include "graph/launch.h"

#include "core/clblast_parameters.h"
#include "core/kernel_shape.h"
#include "core/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Work-groups per compute unit: enough to balance uneven finishing times. */
enum { GROUPS_PER_UNIT = 8 };

void cleat_binder_init(cleat_binder *binder, const cleat_device_facts *facts) {
    *binder = (cleat_binder){.facts = facts};
}

void cleat_binder_clear(cleat_binder *binder) {
    cleat_free(binder->launches);
    *binder = (cleat_binder){.facts = binder->facts};
}

cleat_status cleat_bind_node(const cleat_variant *variant, const cleat_node *node, cleat_binder *binder,
                             cleat_error *error) {
    variant->bind(node, binder);
    if (binder->error.status && error) *error = binder->error;
    return binder->error.status;
}

const cleat_device_facts *cleat_binder_facts(const cleat_binder *binder) {
    return binder->facts;
}

void cleat_bind_fail(cleat_binder *binder, const cleat_node *node, const char *format, ...) {
    char text[CLEAT_ERROR_TEXT / 2];
    if (binder->error.status) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    cleat_infer_fail(node, &binder->error, "%s", text);
}

static cleat_launch *begin(cleat_binder *binder, cleat_launch_kind kind, const cleat_node *node) {
    if (binder->error.status) return NULL;
    if (cleat_grow(&binder->launches, binder->count, &binder->capacity, &binder->error) != CLEAT_OK) return NULL;
    cleat_launch *launch = &binder->launches[binder->count++];
    *launch = (cleat_launch){.kind = kind, .node = node, .work_group = binder->facts->work_group, .multiple = 1};
    return launch;
}

static cleat_launch *current(cleat_binder *binder) {
    return !binder->error.status && binder->count ? &binder->launches[binder->count - 1] : NULL;
}

static void add_word(cleat_binder *binder, const char *word) {
    cleat_launch *launch = current(binder);
    if (!launch) return;
    size_t used = strlen(launch->options);
    int more = snprintf(launch->options + used, CLEAT_OPTIONS - used, "%s%s", used ? " " : "", word);
    if (more < 0 || used + (size_t)more >= CLEAT_OPTIONS)
        cleat_fail(&binder->error, CLEAT_ERR_ARGUMENT, "kernel '%s': build options too long", launch->kernel);
}

static void add_option(cleat_binder *binder, const char *name, long long value, bool has_value) {
    char word[CLEAT_OPTIONS];
    if (has_value)
        snprintf(word, sizeof word, "-D%s=%lld", name, value);
    else
        snprintf(word, sizeof word, "-D%s", name);
    add_word(binder, word);
}

void cleat_launch_kernel(cleat_binder *binder, const cleat_node *node, const char *file, const char *kernel,
                         cleat_dtype storage) {
    cleat_launch *launch = begin(binder, CLEAT_LAUNCH_KERNEL, node);
    if (!launch) return;
    launch->file = file;
    launch->kernel = kernel;
    add_option(binder,
               storage == CLEAT_F16    ? "STORAGE_F16"
               : storage == CLEAT_BF16 ? "STORAGE_BF16"
                                       : "STORAGE_F32",
               0, false);
    add_option(binder, "WG", launch->work_group, true);
    add_option(binder, "VEC", binder->facts->vector_width, true);
    if (cleat_has_last_group(binder->facts)) add_option(binder, "LAST_GROUP", 1, true);
    if (binder->facts->sub_group > 0) add_option(binder, "SUB_GROUP", binder->facts->sub_group, true);
}

void cleat_launch_vector_kernel(cleat_binder *binder, const cleat_node *node, const char *file, const char *kernel,
                                cleat_dtype storage, int64_t multiple) {
    cleat_launch_kernel(binder, node, file, kernel, storage);
    cleat_launch *launch = current(binder);
    if (launch) launch->multiple = multiple;
}

/* Whether all vectors begin at multiples of `vector` elements, a power of two. Planned offsets are multiples
 * of 256 bytes. */
static bool is_aligned(const cleat_launch *launch, int64_t vector) {
    int64_t all = launch->multiple;
    for (int i = 0; i < launch->n_args; ++i) {
        const cleat_arg *arg = &launch->args[i];
        if (arg->kind == CLEAT_ARG_TENSOR) all |= arg->offset;
        if (arg->kind == CLEAT_ARG_WORKSPACE) all |= arg->offset / arg->size;
    }
    return all % vector == 0;
}

void cleat_launch_work_group(cleat_binder *binder, int64_t items) {
    cleat_launch *launch = current(binder);
    if (!launch || launch->work_group == items) return;
    char after[CLEAT_OPTIONS];
    char *word = strstr(launch->options, " -DWG=");
    snprintf(after, sizeof after, "%s", strchr(word + 1, ' '));
    *word = 0;
    launch->work_group = items;
    add_option(binder, "WG", items, true);
    add_word(binder, after + 1);
}

void cleat_launch_needs_values(cleat_binder *binder) {
    cleat_launch *launch = current(binder);
    if (launch) launch->needs_values = true;
}

void cleat_launch_source(cleat_binder *binder, const cleat_node *node, const char *name, const char *source,
                         const char *kernel, cleat_dtype storage) {
    cleat_launch_kernel(binder, node, name, kernel, storage);
    cleat_launch *launch = current(binder);
    if (launch) launch->source = source;
}

void cleat_launch_define(cleat_binder *binder, const char *name, int64_t value) {
    add_option(binder, name, value, true);
}

void cleat_launch_defines(cleat_binder *binder, cleat_launch_numbers numbers) {
    for (size_t i = 0; i < numbers.count; ++i)
        cleat_launch_define(binder, numbers.items[i].name, numbers.items[i].value);
}

void cleat_launch_matrix_unit(cleat_binder *binder) {
    const char *more = cleat_matrix_options(binder->facts->matrix_unit);
    add_option(binder, "MATRIX_UNIT", binder->facts->matrix_unit, true);
    if (more[0]) add_word(binder, more);
}

void cleat_launch_round_correctly(cleat_binder *binder) {
    if (binder->facts->rounds_correctly) add_word(binder, "-cl-fp32-correctly-rounded-divide-sqrt");
}

static void add_arg(cleat_binder *binder, cleat_arg arg) {
    cleat_launch *launch = current(binder);
    if (!launch) return;
    if (launch->n_args == CLEAT_MAX_ARGS) {
        cleat_fail(&binder->error, CLEAT_ERR_ARGUMENT, "kernel '%s': more than %d arguments", launch->kernel,
                   CLEAT_MAX_ARGS);
        return;
    }
    launch->args[launch->n_args++] = arg;
}

void cleat_launch_tensor_at(cleat_binder *binder, const cleat_tensor *tensor, int64_t elements) {
    add_arg(binder, (cleat_arg){.kind = CLEAT_ARG_TENSOR, .tensor = tensor, .offset = elements});
}

void cleat_launch_tensor(cleat_binder *binder, const cleat_tensor *tensor) {
    cleat_launch_tensor_at(binder, tensor, 0);
}

void cleat_launch_workspace(cleat_binder *binder, int64_t offset, int element_size) {
    add_arg(binder, (cleat_arg){.kind = CLEAT_ARG_WORKSPACE, .offset = offset, .size = element_size});
}

void cleat_launch_tensors(cleat_binder *binder, const cleat_tensor *const *tensors, size_t count) {
    for (size_t i = 0; i < count; ++i) cleat_launch_tensor(binder, tensors[i]);
}

void cleat_launch_floats_or(cleat_binder *binder, bool wanted, int64_t offset, const cleat_tensor *tensor) {
    if (wanted)
        cleat_launch_workspace(binder, offset, sizeof(float));
    else
        cleat_launch_tensor(binder, tensor);
}

bool cleat_has_last_group(const cleat_device_facts *facts) {
    return facts->vendor == CLEAT_VENDOR_NVIDIA && facts->work_group > 1;
}

bool cleat_has_counters(const cleat_device_facts *facts, int64_t count) {
    return cleat_has_last_group(facts) && count <= CLEAT_COUNTERS;
}

void cleat_launch_counters(cleat_binder *binder, bool wanted) {
    if (wanted)
        add_arg(binder, (cleat_arg){.kind = CLEAT_ARG_COUNTERS});
    else
        cleat_launch_tensor(binder, NULL);
}

void cleat_launch_i32(cleat_binder *binder, const char *name, int32_t value) {
    add_arg(binder, (cleat_arg){.kind = CLEAT_ARG_SCALAR, .name = name, .size = 4, .value.i32 = value});
}

void cleat_launch_i32s(cleat_binder *binder, cleat_launch_numbers numbers) {
    for (size_t i = 0; i < numbers.count; ++i)
        cleat_launch_i32(binder, numbers.items[i].name, (int32_t)numbers.items[i].value);
}

void cleat_launch_f32(cleat_binder *binder, const char *name, float value) {
    add_arg(binder, (cleat_arg){.kind = CLEAT_ARG_SCALAR, .name = name, .size = 4, .value.f32 = value});
}

void cleat_launch_i64(cleat_binder *binder, const char *name, int64_t value) {
    add_arg(binder, (cleat_arg){.kind = CLEAT_ARG_SCALAR, .name = name, .size = 8, .value.i64 = value});
}

void cleat_launch_range(cleat_binder *binder, int dims, const size_t *global, const size_t *local) {
    cleat_launch *launch = current(binder);
    if (!launch) return;
    if (launch->work_group > 1 && is_aligned(launch, binder->facts->vector_width))
        add_option(binder, "ALIGNED", 1, true);
    launch->dims = dims;
    for (int i = 0; i < dims; ++i) {
        launch->global[i] = global[i];
        launch->local[i] = local[i];
    }
}

void cleat_launch_groups(cleat_binder *binder, int64_t groups) {
    const cleat_launch *launch = current(binder);
    if (!launch) return;
    size_t local = (size_t)launch->work_group, global = (size_t)(groups > 0 ? groups : 1) * local;
    cleat_launch_range(binder, 1, &global, &local);
}

void cleat_launch_items(cleat_binder *binder, int64_t items) {
    const cleat_launch *launch = current(binder);
    if (!launch) return;
    int64_t work_group = launch->work_group;
    int64_t groups = (items + work_group - 1) / work_group;
    int64_t most = (int64_t)(binder->facts->compute_units > 0 ? binder->facts->compute_units : 1) * GROUPS_PER_UNIT;
    cleat_launch_groups(binder, groups < most ? groups : most);
}

void cleat_launch_sgemm(cleat_binder *binder, const cleat_node *node, const cleat_sgemm *sgemm) {
    cleat_launch *launch = begin(binder, CLEAT_LAUNCH_SGEMM, node);
    if (launch) launch->sgemm = *sgemm;
}

/* CLBlast runs its large products over copies of A, B and C that are padded to whole tiles: MWG x NWG
 * elements of C and KWG * KREG in depth. Its tuner tries tiles of up to 128 x 128 x 32; its database has no
 * larger ones, and cleat never configures larger ones. Which of the three matrices it copies depends on the
 * chosen kernel and on which matrices are stored transposed; its kernels for small products copy none. */
int64_t cleat_sgemm_workspace(int64_t m, int64_t n, int64_t k) {
    enum { TILE = CLEAT_CLBLAST_TILE, DEPTH = CLEAT_CLBLAST_DEPTH, FLOAT_BYTES = 4 };
    m = (m + TILE - 1) / TILE * TILE;
    n = (n + TILE - 1) / TILE * TILE;
    k = (k + DEPTH - 1) / DEPTH * DEPTH;
    return (m * k + n * k + m * n) * FLOAT_BYTES;
}
