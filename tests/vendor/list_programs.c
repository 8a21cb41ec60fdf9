/* Writes every program that a run can request from a device, one file each, ready for any OpenCL compiler:
 * the source as assembled by the host, preceded by the build options as #define lines. No device is needed:
 * graphs and launches are created from the facts of fictitious devices.
 *
 *   list_programs FOLDER [profiles]
 *
 * FOLDER receives:
 * - SHAPE/NAME.cl. SHAPE is gpu, nvidia, intel8, intel16 (Intel's cards, by the smallest sub-group size), cpu, or
 *   matrix_UNIT (the additional programs of a card with that matrix unit).
 * - SHAPE/options: the build options other than -D that all programs of the shape have (none for most).
 * - programs.tsv: shape, file of cl/, program, kernel and local size, for each kernel launched from each
 *   program.
 *
 * "profiles": only the programs of the models of profiles/, without the sweep over other widths and head
 * sizes. All usable variants of a node are included, not only the first. tools/vendor_check.sh runs this
 * program. */
#include "cleat/models.h"
#include "cleat/ops.h"
#include "core/kernel_shape.h"
#include "core/memory.h"
#include "device/programs.h"
#include "fit/workload.h"
#include "graph/graph.h"
#include "graph/launch.h"
#include "lib/shared_numbers.clh"
#include "models/model.h"
#include "nn/lstm.h"
#include "nn/transformer.h"
#include "ops/update.h"
#include "platform/files.h"
#include "session/peaks.h"
#include "source_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 512, MAX_PROGRAMS = 16384 };

typedef struct shape {
    const char *name;
    cleat_device_facts facts;
} shape;

/* The number of compute units of a card determines the tiling of products: a small card and a large one. */
static const shape shapes[] = {
#define COMMON                                                                                                         \
    .name = "nowhere", .memory_total = 1LL << 36, .max_allocation = 1LL << 34, .alignment = 256,                       \
    .local_memory = 32768, .max_work_group = 256, .pci_bus = -1
    {"gpu", {COMMON, .kind = CLEAT_DEVICE_GPU, .work_group = 256, .vector_width = 4, .compute_units = 16}},
    {"gpu", {COMMON, .kind = CLEAT_DEVICE_GPU, .work_group = 256, .vector_width = 4, .compute_units = 132}},
#define NVIDIA COMMON, .kind = CLEAT_DEVICE_GPU, .vendor = CLEAT_VENDOR_NVIDIA, .work_group = 256, .vector_width = 4
    {"nvidia", {NVIDIA, .compute_units = 16}},
    {"nvidia", {NVIDIA, .compute_units = 132}},
#define INTEL COMMON, .kind = CLEAT_DEVICE_GPU, .vendor = CLEAT_VENDOR_INTEL, .work_group = 256, .vector_width = 4
    {"intel8", {INTEL, .sub_group = 8, .compute_units = 96}},
    {"intel8", {INTEL, .sub_group = 8, .compute_units = 512}},
    {"intel16", {INTEL, .sub_group = 16, .compute_units = 448}},
    {"intel16", {INTEL, .sub_group = 16, .compute_units = 1024}},
#define MATRIX(unit)                                                                                                   \
    .matrix_unit = unit, .compute_units = 64,                                                                          \
    .matrix_bf16 = unit != CLEAT_MATRIX_NV70 && unit != CLEAT_MATRIX_NV75 && unit != CLEAT_MATRIX_AMD_DOT
#define CARD COMMON, .kind = CLEAT_DEVICE_GPU, .work_group = 256, .vector_width = 4
    {"matrix_nv70", {CARD, MATRIX(CLEAT_MATRIX_NV70)}},
    {"matrix_nv75", {CARD, MATRIX(CLEAT_MATRIX_NV75)}},
    {"matrix_nv80", {CARD, MATRIX(CLEAT_MATRIX_NV80)}},
    {"matrix_amd_dot", {CARD, MATRIX(CLEAT_MATRIX_AMD_DOT)}},
    {"matrix_amd_wmma", {CARD, MATRIX(CLEAT_MATRIX_AMD_WMMA)}},
    {"matrix_amd_mfma", {CARD, MATRIX(CLEAT_MATRIX_AMD_MFMA)}},
    {"matrix_intel8", {INTEL, .sub_group = 8, MATRIX(CLEAT_MATRIX_INTEL8)}},
    {"matrix_intel16", {INTEL, .sub_group = 16, MATRIX(CLEAT_MATRIX_INTEL16)}},
    {"matrix_emulated", {CARD, MATRIX(CLEAT_MATRIX_EMULATED)}},
    {"cpu", {COMMON, .kind = CLEAT_DEVICE_CPU, .work_group = 1, .vector_width = 16, .compute_units = 2}},
    {"cpu", {COMMON, .kind = CLEAT_DEVICE_CPU, .work_group = 1, .vector_width = 16, .compute_units = 64}},
};

typedef struct listing {
    const char *folder;
    FILE *table;
    char *seen[MAX_PROGRAMS]; /* lines of the table, without the local size */
    size_t seen_count;
    const shape *shape;
} listing;

static void stop(const char *what, const cleat_error *error) {
    fprintf(stderr, "list_programs: %s%s%s\n", what, error ? ": " : "", error ? error->text : "");
    exit(1);
}

static void must(cleat_status status, const char *what, const cleat_error *error) {
    if (status) stop(what, error);
}

/* --- programs --- */

/* "linear-F32-TRANS_A0-TRANS_B1": the stem of the file, the storage type, the op's own options. */
static void name_program(const cleat_launch *launch, char name[NAME]) {
    const char *slash = strrchr(launch->file, '/'), *stem = slash ? slash + 1 : launch->file;
    size_t used = (size_t)snprintf(name, NAME, "%.*s", (int)strcspn(stem, "."), stem);
    char options[CLEAT_OPTIONS];
    snprintf(options, sizeof options, "%s", launch->options);
    for (char *save, *word = strtok_r(options, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        if (strncmp(word, "-DWG=", 5) == 0 || strncmp(word, "-DVEC=", 6) == 0) continue;
        if (strncmp(word, "-DSUB_GROUP=", 12) == 0 || strncmp(word, "-D", 2) != 0) continue;
        const char *from = strncmp(word, "-DSTORAGE_", 10) == 0 ? word + 10 : word + 2;
        name[used++] = '-';
        for (; *from && used + 2 < NAME; ++from)
            if (*from != '=') name[used++] = *from;
    }
    name[used] = 0;
}

static void write_program(const listing *list, const cleat_launch *launch, const char *name) {
    char path[2 * NAME], options[CLEAT_OPTIONS], *source = NULL;
    const char *more = "";
    cleat_error error = {0};
    must(cleat_kernel_source_of(launch->file, launch->source, &source, &error), launch->file, &error);
    snprintf(path, sizeof path, "%s/%s/%s.cl", list->folder, list->shape->name, name);
    FILE *file = fopen(path, "w");
    if (!file) stop(path, NULL);
    snprintf(options, sizeof options, "%s", launch->options);
    for (char *save, *word = strtok_r(options, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        char *equals = strchr(word, '=');
        if (strncmp(word, "-D", 2) != 0) {
            more = word;
            continue;
        }
        if (equals) *equals = ' ';
        fprintf(file, "#define %s%s\n", word + 2, equals ? "" : " 1");
    }
    if (strcmp(more, cleat_matrix_options(list->shape->facts.matrix_unit)) != 0)
        stop("options that its shape lacks", NULL);
    fputs(source, file);
    if (fclose(file)) stop(path, NULL);
    cleat_free(source);
}

static void write_options(const listing *list, const shape *s) {
    char path[2 * NAME];
    snprintf(path, sizeof path, "%s/%s/options", list->folder, s->name);
    FILE *file = fopen(path, "w");
    if (!file) stop(path, NULL);
    fputs(cleat_matrix_options(s->facts.matrix_unit), file);
    if (fclose(file)) stop(path, NULL);
}

/* Returns false if the line was already present. */
static bool add_unique(listing *list, const char *line) {
    for (size_t i = 0; i < list->seen_count; ++i)
        if (strcmp(list->seen[i], line) == 0) return false;
    if (list->seen_count == MAX_PROGRAMS) stop("more programs than expected", NULL);
    if (!(list->seen[list->seen_count++] = strdup(line))) stop("no memory", NULL);
    return true;
}

static void list_launch(listing *list, const cleat_launch *launch) {
    char name[NAME], line[2 * NAME];
    if (list->shape->facts.matrix_unit != CLEAT_MATRIX_NONE && !strstr(launch->options, "-DMATRIX_UNIT=")) return;
    name_program(launch, name);
    snprintf(line, sizeof line, "%s\t%s\t%s", list->shape->name, launch->file, name);
    if (add_unique(list, line)) write_program(list, launch, name);
    size_t local = 1;
    for (int i = 0; i < launch->dims; ++i) local *= launch->local[i];
    snprintf(line + strlen(line), sizeof line - strlen(line), "\t%s\t%zu", launch->kernel, local);
    if (add_unique(list, line)) fprintf(list->table, "%s\n", line);
}

/* The program that opening a device runs (device/matrix_probe.c). */
static void list_matrix_probes(listing *list) {
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i) {
        const cleat_device_facts *facts = &shapes[i].facts;
        cleat_launch launch = {.file = "lib/mma_probe.cl", .kernel = "mma_probe", .dims = 1, .local = {128}};
        list->shape = &shapes[i];
        for (int bf16 = 0; facts->matrix_unit && bf16 <= facts->matrix_bf16; ++bf16) {
            snprintf(launch.options, sizeof launch.options, "-DSTORAGE_%s -DWG=128 -DVEC=4 -DMATRIX_UNIT=%d %s",
                     bf16 ? "BF16" : "F16", (int)facts->matrix_unit, cleat_matrix_options(facts->matrix_unit));
            list_launch(list, &launch);
        }
    }
}

static void list_node(listing *list, const cleat_node *node) {
    const cleat_device_facts *facts = &list->shape->facts;
    for (const cleat_variant *v = node->op->variants; v && v->name; ++v) {
        cleat_binder binder;
        cleat_error error = {0};
        if (v->refuse && v->refuse(node, facts)) continue;
        cleat_binder_init(&binder, facts);
        must(cleat_bind_node(v, node, &binder, &error), node->name, &error);
        for (size_t i = 0; i < binder.count; ++i)
            if (binder.launches[i].kind == CLEAT_LAUNCH_KERNEL) list_launch(list, &binder.launches[i]);
        cleat_binder_clear(&binder);
    }
}

static void list_graph(listing *list, const cleat_graph *graph) {
    cleat_error error = {0};
    must(cleat_graph_status(graph, &error), "graph", &error);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; ++s) {
        list->shape = &shapes[s];
        for (size_t i = 0; i < graph->node_count; ++i) list_node(list, graph->nodes[i]);
    }
}

/* The programs that measure a device's peaks. */
static void list_peaks(listing *list) {
    cleat_store *store = NULL;
    cleat_graph *graph = NULL;
    cleat_error error = {0};
    must(cleat_store_create(&store, &error), "store", &error);
    must(cleat_graph_create(store, "peaks", &graph, &error), "graph", &error);
    cleat_tensor *rounds = cleat_state(graph, "rounds", CLEAT_I32, 1, (int64_t[]){1});
    for (int kernel = CLEAT_PEAK_LAUNCH; kernel <= CLEAT_PEAK_MATRIX; ++kernel)
        cleat_peak_node(graph, (cleat_peak_kernel)kernel, rounds, 64);
    list_graph(list, graph);
    cleat_graph_destroy(graph);
    cleat_store_destroy(store);
}

/* --- programs of the profiles --- */

static const int64_t batches[][2] = {{1, 33}, {4, 300}, {48, 1200}}; /* B, L */

/* The graphs of a purpose, with a micro-batch of B samples of length L. */
static void list_workload(listing *list, const cleat_model *model, cleat_purpose purpose, int64_t batch,
                          int64_t length) {
    const cleat_device_facts roomy = {
        .alignment = 256, .max_allocation = 1LL << 50, .work_group = 1, .vector_width = 16};
    const cleat_bucket bucket = {.length = length, .micro_batch_size = batch, .global_batch_size = batch};
    cleat_workload *work = NULL;
    cleat_error error = {0};
    const cleat_workload_spec spec = {
        .facts = &roomy, .model = model, .purpose = purpose, .buckets = &bucket, .n_buckets = 1};
    must(cleat_workload_create(&spec, &work, &error), "workload", &error);
    const cleat_graph *const graphs[] = {work->train[0].graph, work->evaluate[0].graph, work->update.graph,
                                         work->refresh.graph};
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; ++i)
        if (graphs[i]) list_graph(list, graphs[i]);
    cleat_workload_destroy(work);
}

/* other: NULL, or a second assignment. */
static void list_profile(listing *list, const char *name, const char *assignment, const char *other) {
    const char *const assignments[] = {assignment, other};
    char path[NAME];
    cleat_profile *profile = NULL;
    cleat_model *model = NULL;
    cleat_error error = {0};
    snprintf(path, sizeof path, "%s/%s.ini", source_path("profiles"), name);
    must(cleat_profile_load(path, assignments, other ? 2 : assignment != NULL, &profile, &error), path, &error);
    must(cleat_profile_create_model(profile, &model, &error), path, &error);
    int64_t fixed = cleat_model_fixed_length(model);
    for (size_t b = 0; b < sizeof batches / sizeof *batches; ++b) {
        int64_t length = fixed > 0 ? fixed : batches[b][1];
        list_workload(list, model, CLEAT_FOR_TRAINING, batches[b][0], length);
        list_workload(list, model, CLEAT_FOR_PREDICTION, batches[b][0], length);
    }
    if (strcmp(name, "chat") == 0) {
        model->options.context = 256;
        list_workload(list, model, CLEAT_FOR_GENERATION, 1, 1);
        list_workload(list, model, CLEAT_FOR_GENERATION, 1, 64);
    }
    cleat_model_destroy(model);
    cleat_profile_destroy(profile);
}

/* --- the encoder in any storage type and size --- */

typedef struct sizes {
    int64_t width, heads, d_ff, vocabulary;
} sizes;

static cleat_tensor *structure_losses(cleat_graph *graph, cleat_tensor *x, cleat_tensor *rigid_frames, int64_t batch,
                                      int64_t length, cleat_tensor *lengths) {
    int64_t row[2] = {batch, length}, point[3] = {batch, length, 3}, sample_weight_shape[2] = {1, batch};
    cleat_structure target = {.coords = cleat_input(graph, "coords", CLEAT_F32, 3, point),
                              .mask = cleat_input(graph, "mask", CLEAT_F32, 2, row),
                              .lengths = lengths,
                              .partner = cleat_input(graph, "partner", CLEAT_I32, 2, row)};
    cleat_tensor *sample_weight = cleat_input(graph, "scale", CLEAT_F32, 2, sample_weight_shape);
    cleat_tensor *loss = cleat_frame_loss(graph, x, rigid_frames, &target, sample_weight, 0);
    for (int kind = CLEAT_LOSS_DISTANCE; kind <= CLEAT_LOSS_BASE_PAIR; ++kind) {
        cleat_structure_loss_spec spec = {
            .kind = (cleat_structure_loss_kind)kind, .lower = 1.0f, .upper = 2.0f, .eps = 1e-4f};
        cleat_tensor *value = cleat_structure_loss(graph, &spec, x, &target, sample_weight);
        loss = cleat_sum(graph, (cleat_tensor *[]){loss, value}, 2);
    }
    return loss;
}

static void build_encoder(cleat_graph *graph, sizes s, cleat_dtype storage, bool dropout, int64_t batch,
                          int64_t length) {
    cleat_transformer encoder = {
        .d_model = s.width, .heads = s.heads, .layers = 1, .d_ff = s.d_ff, .dropout = dropout ? 0.1f : 0.0f};
    int64_t row[2] = {batch, length}, four = 4, one = 1;
    cleat_tensor *tokens = cleat_input(graph, "tokens", CLEAT_I32, 2, row);
    cleat_tensor *lengths = cleat_input(graph, "lengths", CLEAT_I32, 1, &batch);
    cleat_tensor *rng = cleat_input(graph, "rng", CLEAT_U32, 1, &four);
    cleat_autocast(graph, storage);
    cleat_tensor *x = cleat_nn_embedding(graph, "emb", tokens, s.vocabulary, &encoder);
    x = cleat_positional_encoding(graph, x, s.width % 4 == 0 ? lengths : NULL);
    if (dropout) x = cleat_dropout(graph, x, rng, encoder.dropout);
    x = cleat_nn_encoder(graph, x, lengths, rng, &encoder, NULL);
    cleat_autocast(graph, CLEAT_F32);
    cleat_tensor *rigid_frames = NULL;
    x = cleat_rigid_chain(graph, cleat_nn_linear_zero(graph, "head", x, 6), lengths, &rigid_frames);
    cleat_tensor *loss = structure_losses(graph, x, rigid_frames, batch, length, lengths);
    cleat_backward(graph, loss, cleat_input(graph, "seed", CLEAT_F32, 1, &one));
    cleat_graph_fuse(graph);
}

static void list_encoder(listing *list, sizes s, cleat_dtype storage) {
    for (size_t b = 0; b < sizeof batches / sizeof *batches; ++b)
        for (int dropout = 0; dropout < 2; ++dropout) {
            cleat_store *store = NULL;
            cleat_graph *graph = NULL;
            cleat_error error = {0};
            must(cleat_store_create(&store, &error), "store", &error);
            must(cleat_graph_create(store, "encoder", &graph, &error), "graph", &error);
            build_encoder(graph, s, storage, dropout, batches[b][0], batches[b][1]);
            list_graph(list, graph);
            cleat_graph_destroy(graph);
            cleat_store_destroy(store);
        }
}

/* --- ops that no model of profiles/ uses --- */

static void list_row_ops(listing *list, int64_t width, cleat_dtype storage) {
    int64_t rows = 48, matrix[2] = {rows, width}, one = 1;
    cleat_store *store = NULL;
    cleat_graph *graph = NULL;
    cleat_error error = {0};
    must(cleat_store_create(&store, &error), "store", &error);
    must(cleat_graph_create(store, "rows", &graph, &error), "graph", &error);
    cleat_init zero = {.kind = CLEAT_INIT_ZERO};
    cleat_tensor *x = cleat_cast(graph, cleat_param(graph, "x", 2, matrix, zero), storage);
    cleat_tensor *y = cleat_relu(graph, cleat_softmax(graph, x));
    y = cleat_subtract(graph, cleat_multiply(graph, cleat_sigmoid(graph, y), cleat_tanh(graph, x)),
                       cleat_silu(graph, y));
    y = cleat_rms_norm(graph, y, cleat_param(graph, "gains", 1, &width, zero), 1e-6f);
    cleat_tensor *pair = cleat_reshape(graph, y, 2, (const int64_t[]){rows / 2, 2 * width});
    for (cleat_gate gate = CLEAT_GATE_SILU; gate <= CLEAT_GATE_GELU_TANH; ++gate) {
        cleat_tensor *half = cleat_gated(graph, pair, gate);
        pair = cleat_concat(graph, (cleat_tensor *[]){half, cleat_gelu_tanh(graph, half)}, 2);
    }
    pair = cleat_reshape(graph, pair, 3, (const int64_t[]){2, rows / 4, 2 * width});
    for (int interleaved = 0; interleaved < 2; ++interleaved)
        pair = cleat_rotary(graph, pair,
                            cleat_rotary_table(graph, rows, &(cleat_rotary_angles){2 * (width / 2), 1e4, 1, 0, 0, 0}),
                            NULL, 1, 1, interleaved);
    y = cleat_add(graph, y, cleat_reshape(graph, pair, 2, matrix));
    const int swap[] = {1, 0};
    cleat_tensor *turned = cleat_permute(graph, cleat_slice(graph, y, 1, 0, width), swap); /* [width, rows] */
    y = cleat_add(graph, y, cleat_permute(graph, turned, swap));
    y = cleat_layer_scale(graph, y, cleat_param(graph, "factors", 1, &width, zero), x);
    const int64_t sequences[3] = {6, rows / 6 - 1, width};
    cleat_tensor *parts = cleat_reshape(graph, cleat_slice(graph, y, 0, 0, 6 * sequences[1]), 3, sequences);
    parts = cleat_prepend_token(graph, parts, cleat_param(graph, "token", 1, &width, zero)); /* [6, rows / 6, width] */
    y = cleat_add(graph, y, cleat_reshape(graph, parts, 2, matrix));
    cleat_tensor *sample_weight = cleat_input(graph, "scale", CLEAT_F32, 1, &rows);
    cleat_tensor *terms[] = {
        cleat_mse_loss(graph, y, cleat_input(graph, "target", CLEAT_F32, 2, matrix), sample_weight),
        cleat_cross_entropy(graph, x, cleat_input(graph, "labels", CLEAT_I32, 1, &rows), sample_weight, 0.1f),
        cleat_binary_cross_entropy(graph, x, cleat_input(graph, "truth", CLEAT_F32, 2, matrix), sample_weight, 1)};
    cleat_backward(graph, cleat_sum(graph, terms, 3), cleat_input(graph, "seed", CLEAT_F32, 1, &one));
    cleat_tensor *hyper = cleat_input(graph, "hyper", CLEAT_F32, 1, (int64_t[]){HYPER_COUNT});
    for (int momentum = 0; momentum < 2; ++momentum) cleat_sgd(graph, momentum, hyper, cleat_grad_norm(graph), NULL);
    cleat_lion(graph, hyper, cleat_grad_norm(graph), NULL);
    list_graph(list, graph);
    cleat_graph_destroy(graph);
    cleat_store_destroy(store);
}

/* --- LSTM layers --- */

/* Pools with every mode: mean, first and last row. */
static void build_lstm(cleat_graph *graph, int64_t hidden, cleat_dtype storage) {
    const int64_t x_shape[3] = {64, 48, 16}, sample_weight_shape[1] = {64}, one = 1;
    cleat_tensor *lengths = cleat_input(graph, "lengths", CLEAT_I32, 1, x_shape);
    cleat_tensor *h = cleat_nn_lstm(graph, "rnn", 0, cleat_input(graph, "x", storage, 3, x_shape), hidden);
    cleat_tensor *y =
        cleat_add(graph, cleat_mean_pool(graph, h, lengths), cleat_select_row(graph, h, lengths, CLEAT_ROW_FIRST));
    y = cleat_add(graph, y, cleat_select_row(graph, h, lengths, CLEAT_ROW_LAST));
    cleat_tensor *target = cleat_input(graph, "target", CLEAT_F32, 2, (int64_t[]){x_shape[0], hidden});
    cleat_tensor *loss =
        cleat_mse_loss(graph, y, target, cleat_input(graph, "scale", CLEAT_F32, 1, sample_weight_shape));
    cleat_backward(graph, loss, cleat_input(graph, "seed", CLEAT_F32, 1, &one));
}

static void list_lstm(listing *list, int64_t hidden, cleat_dtype storage) {
    cleat_store *store = NULL;
    cleat_graph *graph = NULL;
    cleat_error error = {0};
    must(cleat_store_create(&store, &error), "store", &error);
    must(cleat_graph_create(store, "lstm", &graph, &error), "graph", &error);
    cleat_autocast(graph, storage);
    build_lstm(graph, hidden, storage);
    list_graph(list, graph);
    cleat_graph_destroy(graph);
    cleat_store_destroy(store);
}

/* --- images --- */

static void build_image_models(cleat_graph *graph, int64_t channels, cleat_dtype storage) {
    const int64_t image[4] = {2, 19, 23, channels}, one = 1;
    cleat_init zero = {.kind = CLEAT_INIT_ZERO};
    cleat_tensor *x = cleat_cast(graph, cleat_param(graph, "x", 4, image, zero), storage), *statistics = NULL;
    cleat_tensor *gamma = cleat_param(graph, "gamma", 1, &channels, zero);
    cleat_tensor *beta = cleat_param(graph, "beta", 1, &channels, zero);
    cleat_running_stats running = cleat_running_statistics(graph, "running", channels);
    cleat_tensor *samples = cleat_input(graph, "samples", CLEAT_I32, 1, &one);
    cleat_tensor *y = cleat_max_pool(graph, cleat_max_pool(graph, x, 3, 2, 1), 2, 2, 0);
    y = cleat_average_pool(graph, y, 3, 1, 1);
    const cleat_batch_norm_spec spec = {
        .gamma = gamma, .beta = beta, .samples = samples, .residual = cleat_relu(graph, y), .relu = true, .eps = 1e-5f};
    y = cleat_batch_norm(graph, y, &spec, &statistics);
    cleat_batch_norm_update_running_stats(graph, statistics, running, 0.1f);
    const cleat_batch_norm_spec known = {.gamma = gamma, .beta = beta, .relu = true, .eps = 1e-5f};
    cleat_batch_norm_inference(graph, y, &known, running);
    cleat_tensor *target = cleat_input(graph, "target", CLEAT_F32, y ? y->rank : 1, y ? y->shape : &one);
    const int64_t rows = y ? cleat_rows(y) : 1;
    cleat_tensor *loss = cleat_mse_loss(graph, y, target, cleat_input(graph, "scale", CLEAT_F32, 1, &rows));
    cleat_backward(graph, loss, cleat_input(graph, "seed", CLEAT_F32, 1, &one));
}

static void list_image_models(listing *list, int64_t channels, cleat_dtype storage) {
    cleat_store *store = NULL;
    cleat_graph *graph = NULL;
    cleat_error error = {0};
    must(cleat_store_create(&store, &error), "store", &error);
    must(cleat_graph_create(store, "images", &graph, &error), "graph", &error);
    build_image_models(graph, channels, storage);
    list_graph(list, graph);
    cleat_graph_destroy(graph);
    cleat_store_destroy(store);
}

/* --- masks --- */

static void build_masks(cleat_graph *graph, int64_t channels, cleat_dtype storage) {
    const int64_t image[4] = {2, 5, 7, channels}, kernel[3] = {3, 3, channels}, masks[4] = {2, 9, 11, 2 * channels};
    const int64_t batch = 2, one = 1;
    const cleat_mask_loss_spec spec = {2, 2, 1};
    cleat_init zero = {.kind = CLEAT_INIT_ZERO};
    cleat_tensor *x = cleat_cast(graph, cleat_param(graph, "x", 4, image, zero), storage);
    cleat_tensor *weight = cleat_param(graph, "weight", 3, kernel, zero);
    cleat_tensor *y = cleat_depthwise_conv2d(graph, x, weight, cleat_param(graph, "bias", 1, &channels, zero));
    y = cleat_depth_to_space(graph, cleat_concat(graph, (cleat_tensor *[]){x, y}, 2), 1);
    cleat_tensor *blocks = cleat_param(graph, "blocks", 2, (int64_t[]){2 * channels, channels}, zero);
    const cleat_block_diagonal_spec places = {.places = 2, .used = 3, .factor = 1, .storage = storage};
    y = cleat_linear(graph, y, cleat_block_diagonal(graph, blocks, &places), NULL, NULL);
    cleat_tensor *mask = cleat_input(graph, "mask", CLEAT_I32, 4, masks);
    cleat_tensor *sample_weight = cleat_input(graph, "scale", CLEAT_F32, 1, &batch);
    cleat_tensor *loss = cleat_mask_loss(graph, cleat_resize(graph, y, masks[1], masks[2]), mask, sample_weight, &spec);
    cleat_backward(graph, loss, cleat_input(graph, "seed", CLEAT_F32, 1, &one));
}

static void list_masks(listing *list, int64_t channels, cleat_dtype storage) {
    cleat_store *store = NULL;
    cleat_graph *graph = NULL;
    cleat_error error = {0};
    must(cleat_store_create(&store, &error), "store", &error);
    must(cleat_graph_create(store, "masks", &graph, &error), "graph", &error);
    cleat_autocast(graph, storage);
    build_masks(graph, channels, storage);
    list_graph(list, graph);
    cleat_graph_destroy(graph);
    cleat_store_destroy(store);
}

/* A 3 x 3 convolution with stride 1 and one with stride 2, with and without a bias. */
static void list_convs(listing *list, int64_t channels, int64_t features, cleat_dtype storage) {
    const int64_t image[4] = {4, 28, 30, channels}, narrow[4] = {features, 3, 3, channels},
                  wide[4] = {features, 3, 3, features}, one = 1;
    cleat_store *store = NULL;
    cleat_graph *graph = NULL;
    cleat_error error = {0};
    must(cleat_store_create(&store, &error), "store", &error);
    must(cleat_graph_create(store, "convs", &graph, &error), "graph", &error);
    cleat_autocast(graph, storage);
    cleat_init zero = {.kind = CLEAT_INIT_ZERO};
    cleat_tensor *x = cleat_cast(graph, cleat_param(graph, "x", 4, image, zero), cleat_autocast_storage(graph));
    cleat_tensor *first = cleat_param(graph, "first", 4, narrow, zero);
    cleat_tensor *second = cleat_param(graph, "second", 4, wide, zero);
    cleat_tensor *y = cleat_conv2d(graph, x, first, cleat_param(graph, "bias", 1, &features, zero), 1, 1);
    y = cleat_conv2d(graph, y, second, NULL, 2, 1);
    const int64_t rows = y ? cleat_rows(y) : 1;
    cleat_tensor *target = cleat_input(graph, "target", CLEAT_F32, y ? y->rank : 1, y ? y->shape : &one);
    cleat_tensor *loss = cleat_mse_loss(graph, y, target, cleat_input(graph, "scale", CLEAT_F32, 1, &rows));
    cleat_backward(graph, loss, cleat_input(graph, "seed", CLEAT_F32, 1, &one));
    list_graph(list, graph);
    cleat_graph_destroy(graph);
    cleat_store_destroy(store);
}

/* --- kernels that no op launches --- */

/* Scans a tensor for values that are not finite (exec/finite_check.c). */
static void list_finite_check(listing *list, cleat_dtype storage) {
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; ++s) {
        cleat_binder binder;
        list->shape = &shapes[s];
        cleat_binder_init(&binder, &list->shape->facts);
        cleat_launch_kernel(&binder, NULL, "finite_check.cl", "finite_check_scan", storage);
        cleat_launch_groups(&binder, 1);
        must(binder.error.status, "finite_check_scan", &binder.error);
        list_launch(list, &binder.launches[0]);
        cleat_binder_clear(&binder);
    }
}

int main(int argc, char **argv) {
    static const sizes models[] = {{256, 8, 1024, 5}, {96, 6, 384, 5}}; /* rna.ini, rna_small.ini */
    static const sizes sweep[] = {{64, 8, 256, 30}, {34, 2, 17, 8}, {192, 3, 768, 30}, {768, 6, 3072, 30}};
    static const char *const families[] = {"rna",
                                           "rna_small",
                                           "tweets_sentiment",
                                           "tweets_ner",
                                           "text_pretrain",
                                           "series_lstm",
                                           "series_transformer",
                                           "series_dense",
                                           "image_fashion",
                                           "image_64",
                                           "image_224",
                                           "emberformer_small",
                                           "masks",
                                           "image_finetune",
                                           "chat"};
    static const char *const networks[] = {"model.network=bert", "model.network=distilbert", "model.network=electra",
                                           "model.network=deberta-v2"};
    static const char *const answers[] = {
        "train.frozen_weights=q8", "train.frozen_weights=nf4", "train.frozen_weights=q4", "train.frozen_weights=f16",
        "model.head_size=64",      "model.head_size=128",      "model.window=16"};
    static const char *const precisions[] = {"train.precision=f32", "train.precision=f16", "train.precision=bf16"};
    static const int64_t widths[] = {10, 1000, 4001};
    static const int64_t hidden[] = {24, 67, 128, 512};
    static const int64_t channels[] = {3, 64, 96};
    static const int64_t convs[][2] = {{3, 64}, {64, 128}, {256, 512}, {17, 33}};
    static listing list;
    char path[NAME];
    if (argc < 2) stop("usage: list_programs FOLDER [profiles]", NULL);
    list.folder = argv[1];
    mkdir(list.folder, 0777);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i) {
        snprintf(path, sizeof path, "%s/%s", list.folder, shapes[i].name);
        mkdir(path, 0777);
        write_options(&list, &shapes[i]);
    }
    snprintf(path, sizeof path, "%s/programs.tsv", list.folder);
    if (!(list.table = fopen(path, "w"))) stop(path, NULL);

    list_matrix_probes(&list);
    list_peaks(&list);
    list_profile(&list, "rna", "model.head=absolute", NULL);
    list_profile(&list, "rna_memorise", NULL, NULL);
    for (size_t i = 0; i < sizeof families / sizeof *families; ++i)
        for (size_t k = 0; k < sizeof precisions / sizeof *precisions; ++k)
            list_profile(&list, families[i], precisions[k], NULL);
    for (size_t i = 0; i < sizeof networks / sizeof *networks; ++i)
        for (size_t k = 0; k < sizeof precisions / sizeof *precisions; ++k)
            list_profile(&list, "text_classify", precisions[k], networks[i]);
    for (size_t i = 0; i < sizeof answers / sizeof *answers; ++i)
        for (size_t k = 0; k < sizeof precisions / sizeof *precisions; ++k)
            list_profile(&list, "chat", precisions[k], answers[i]);
    for (int k = 0; k < 3; ++k) {
        list_profile(&list, "image_finetune", precisions[k], "model.type=image_vit");
        list_profile(&list, "image_finetune", precisions[k], "model.type=image_convnext");
    }
    bool all = argc < 3 || strcmp(argv[2], "profiles") != 0;
    for (cleat_dtype storage = CLEAT_F32; storage <= CLEAT_BF16; ++storage) {
        list_finite_check(&list, storage);
        for (size_t i = 0; i < sizeof models / sizeof *models; ++i) list_encoder(&list, models[i], storage);
        for (size_t i = 0; all && i < sizeof sweep / sizeof *sweep; ++i) list_encoder(&list, sweep[i], storage);
        for (size_t i = 0; all && i < sizeof hidden / sizeof *hidden; ++i) list_lstm(&list, hidden[i], storage);
        for (size_t i = 0; all && i < sizeof convs / sizeof *convs; ++i)
            list_convs(&list, convs[i][0], convs[i][1], storage);
        for (size_t i = 0; all && i < sizeof widths / sizeof *widths; ++i) list_row_ops(&list, widths[i], storage);
        for (size_t i = 0; all && i < sizeof channels / sizeof *channels; ++i)
            list_image_models(&list, channels[i], storage);
        for (size_t i = 0; all && i < 2; ++i) list_masks(&list, channels[i], storage);
    }
    list_encoder(&list, models[0], CLEAT_TF32);
    for (size_t i = 0; all && i < sizeof convs / sizeof *convs; ++i)
        list_convs(&list, convs[i][0], convs[i][1], CLEAT_TF32);
    if (fclose(list.table)) stop("programs.tsv", NULL);
    for (size_t i = 0; i < list.seen_count; ++i) free(list.seen[i]);
    return 0;
}
