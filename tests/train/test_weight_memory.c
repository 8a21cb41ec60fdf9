/* Host memory never holds all weights: counts the library's allocated bytes while a network of many tensors
 * is loaded from a published checkpoint, evaluated from a checkpoint, and exported. The linker replaces the
 * allocator (CMakeLists.txt); device memory belongs to the driver and is not counted. */
/* ctest: device wrap=malloc,calloc,realloc,free,cleat_session_load_weights,cleat_checkpointing_save */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "checkpoint/checkpoint.h"
#include "cleat/weights.h"
#include "core/files.h"
#include "core/half.h"
#include "core/memory.h"
#include "core/safetensors.h"
#include "platform/files.h"
#include "platform/system.h"
#include "session/session.h"
#include "tiny.h"
#include "train/checkpointing.h"

/* --- counted memory ------------------------------------------------------------------------------------------- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void __wrap_free(void *memory);

static atomic_llong live, most;

static void *counted(void *memory) {
    const long long now =
        atomic_fetch_add(&live, (long long)malloc_usable_size(memory)) + (long long)malloc_usable_size(memory);
    long long before = atomic_load(&most);
    while (now > before && !atomic_compare_exchange_weak(&most, &before, now)) continue;
    return memory;
}

static void uncounted(void *memory) {
    atomic_fetch_sub(&live, (long long)malloc_usable_size(memory));
}

void *__wrap_malloc(size_t size) {
    return counted(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size) {
    return counted(__real_calloc(count, size));
}

void *__wrap_realloc(void *memory, size_t size) {
    uncounted(memory);
    return counted(__real_realloc(memory, size));
}

void __wrap_free(void *memory) {
    uncounted(memory);
    __real_free(memory);
}

static long long start;

static void begin(void) {
    start = atomic_load(&live);
    atomic_store(&most, start);
}

/* The maximum of allocated bytes since `begin`, relative to that moment. */
static long long peak(void) {
    return atomic_load(&most) - start;
}

/* Host memory while the weights are loaded into the session. */
static long long loading;

cleat_status __real_cleat_session_load_weights(cleat_session *session, const cleat_weights *weights, uint64_t seed,
                                               const char *other_labels, cleat_weight_report *report,
                                               cleat_error *error);
cleat_status __wrap_cleat_session_load_weights(cleat_session *session, const cleat_weights *weights, uint64_t seed,
                                               const char *other_labels, cleat_weight_report *report,
                                               cleat_error *error);
cleat_status __wrap_cleat_session_load_weights(cleat_session *session, const cleat_weights *weights, uint64_t seed,
                                               const char *other_labels, cleat_weight_report *report,
                                               cleat_error *error) {
    begin();
    cleat_status status = __real_cleat_session_load_weights(session, weights, seed, other_labels, report, error);
    loading = peak();
    return status;
}

/* Host memory while a checkpoint is saved. */
static long long saving;

cleat_status __real_cleat_checkpointing_save(const char *folder, cleat_engine *engine, const cleat_train_state *state,
                                             const cleat_profile *profile, const cleat_dataset *dataset, bool best,
                                             cleat_error *error);
cleat_status __wrap_cleat_checkpointing_save(const char *folder, cleat_engine *engine, const cleat_train_state *state,
                                             const cleat_profile *profile, const cleat_dataset *dataset, bool best,
                                             cleat_error *error);
cleat_status __wrap_cleat_checkpointing_save(const char *folder, cleat_engine *engine, const cleat_train_state *state,
                                             const cleat_profile *profile, const cleat_dataset *dataset, bool best,
                                             cleat_error *error) {
    begin();
    cleat_status status = __real_cleat_checkpointing_save(folder, engine, state, profile, dataset, best, error);
    saving = peak();
    return status;
}

/* --- a published checkpoint ----------------------------------------------------------------------------------- */

enum { D = 256, FF = 4 * D, LAYERS = 8, WORDS = 8192, POSITIONS = 32, MOST = 16 * LAYERS + 16, MIB = 1 << 20 };

/* Bytes in f32 of the embedding, which is the largest tensor, and of all matrices. */
static const long long largest = (long long)WORDS * D * 4, network = largest + (long long)LAYERS * 12 * D * D * 4;

static const char config[] =
    "{\"model_type\": \"bert\", \"vocab_size\": 8192, \"hidden_size\": 256, \"num_attention_heads\": "
    "4, \"num_hidden_layers\": 8, \"intermediate_size\": 1024, \"max_position_embeddings\": 32, "
    "\"type_vocab_size\": 2, \"layer_norm_eps\": 1e-12, \"hidden_act\": \"gelu\", "
    "\"hidden_dropout_prob\": 0.0, \"id2label\": {\"0\": \"bad\", \"1\": \"good\"}}";

typedef struct content {
    char names[MOST][128];
    cleat_st_tensor tensors[MOST];
    size_t count;
    cleat_st_dtype dtype;
    float values[WORDS * D];
    uint16_t halves[WORDS * D];
} content;

static void add(content *c, int layer, const char *name, int64_t rows, int64_t columns) {
    char *full = c->names[c->count];
    if (layer < 0)
        snprintf(full, sizeof c->names[0], "%s", name);
    else
        snprintf(full, sizeof c->names[0], "bert.encoder.layer.%d.%.64s", layer, name);
    c->tensors[c->count++] =
        (cleat_st_tensor){.name = full, .dtype = c->dtype, .rank = columns ? 2 : 1, .shape = {rows, columns}};
}

static void add_linear(content *c, int layer, const char *name, int64_t rows, int64_t columns) {
    char full[96];
    snprintf(full, sizeof full, "%s.weight", name);
    add(c, layer, full, rows, columns);
    snprintf(full, sizeof full, "%s.bias", name);
    add(c, layer, full, rows, 0);
}

/* Values that identify the tensor and the element, and that are exact in f16. */
static cleat_status value_of(void *user, size_t i, const void **data, cleat_error *error) {
    content *c = user;
    (void)error;
    for (size_t k = 0; k < WORDS * D; ++k) c->values[k] = (float)((int)(k * 7 + i * 13) % 127 - 63) / 1024;
    cleat_to_f16(c->values, WORDS * D, c->halves);
    *data = c->dtype == CLEAT_ST_F16 ? (const void *)c->halves : c->values;
    return CLEAT_OK;
}

static void put_weights(const tiny *t, const char *folder, cleat_st_dtype dtype) {
    static const char *const projections[] = {"attention.self.query", "attention.self.key", "attention.self.value",
                                              "attention.output.dense"};
    char path[TINY_PATH], name[64];
    content *c = __real_calloc(1, sizeof *c);
    assert_non_null(c);
    c->dtype = dtype;
    add(c, -1, "bert.embeddings.word_embeddings.weight", WORDS, D);
    add(c, -1, "bert.embeddings.position_embeddings.weight", POSITIONS, D);
    add(c, -1, "bert.embeddings.token_type_embeddings.weight", 2, D);
    add_linear(c, -1, "bert.embeddings.LayerNorm", D, 0);
    for (int i = 0; i < LAYERS; ++i) {
        for (int k = 0; k < 4; ++k) add_linear(c, i, projections[k], D, D);
        add_linear(c, i, "attention.output.LayerNorm", D, 0);
        add_linear(c, i, "intermediate.dense", FF, D);
        add_linear(c, i, "output.dense", D, FF);
        add_linear(c, i, "output.LayerNorm", D, 0);
    }
    add_linear(c, -1, "bert.pooler.dense", D, D);
    add_linear(c, -1, "classifier", 2, D);
    const cleat_st_source source = {.data = value_of, .user = c};
    snprintf(name, sizeof name, "%s/model.safetensors", folder);
    assert_int_equal(
        cleat_safetensors_write_from(tiny_path(t, name, path), c->tensors, c->count, &source, NULL, 0, NULL, NULL),
        CLEAT_OK);
    __real_free(c);
}

static void put(const tiny *t, const char *folder, const char *file, const char *text) {
    char path[TINY_PATH], name[64];
    snprintf(name, sizeof name, "%s/%s", folder, file);
    tiny_write(tiny_path(t, name, path), text, strlen(text));
}

static void put_checkpoint(const tiny *t, const char *folder, cleat_st_dtype dtype) {
    char path[TINY_PATH], *vocabulary = __real_calloc(WORDS, 16), *end = vocabulary;
    end += sprintf(end, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ngood\nbad\nday\n");
    assert_int_equal(cleat_folder_make(tiny_path(t, folder, path), NULL), CLEAT_OK);
    for (int i = 8; i < WORDS; ++i) end += sprintf(end, "##%d\n", i);
    put(t, folder, "config.json", config);
    put(t, folder, "vocab.txt", vocabulary);
    __real_free(vocabulary);
    put_weights(t, folder, dtype);
}

/* --- runs ----------------------------------------------------------------------------------------------------- */

static void ok(cleat_status status, const cleat_error *error) {
    if (status) fail_msg("%s", error->text);
}

static cleat_profile *profile_from(const tiny *t, const char *folder, const char *precision) {
    static const char text[] = "[model]\ntype = text_classifier\n[data]\nmax_length = 16\n"
                               "[train]\nepochs = 1\neffective_batch_size = 4\nlearning_rate = 1e-12\n"
                               "[loader]\nnum_workers = 1\n[run]\nself_check = never\n";
    static const char *const parts[] = {"model.init=%s/%s", "data.path=%s/texts.csv"};
    const char *device = getenv("CLEAT_TEST_DEVICE");
    char assignment[TINY_PATH];
    cleat_error error = {0};
    cleat_profile *profile = NULL;
    ok(cleat_profile_create(&profile, &error), &error);
    ok(cleat_profile_read_text(profile, "test", text, sizeof text - 1, &error), &error);
    for (size_t i = 0; i < 2; ++i) {
        snprintf(assignment, sizeof assignment, parts[i], t->folder, folder);
        ok(cleat_profile_set(profile, assignment, &error), &error);
    }
    snprintf(assignment, sizeof assignment, "train.precision=%s", precision);
    ok(cleat_profile_set(profile, assignment, &error), &error);
    snprintf(assignment, sizeof assignment, "run.device=%s", device ? device : "auto");
    ok(cleat_profile_set(profile, assignment, &error), &error);
    ok(cleat_profile_apply_init(profile, &error), &error);
    return profile;
}

/* One step with a learning rate of nearly 0. */
static cleat_profile *train(const tiny *t, const char *folder, const char *precision, const char *run,
                            const char *const *set, char out[TINY_PATH]) {
    cleat_error error = {0};
    cleat_train_report report;
    volatile int stop = 0;
    cleat_profile *profile = profile_from(t, folder, precision);
    for (; set && *set; ++set) ok(cleat_profile_set(profile, *set, &error), &error);
    const cleat_train_options options = {
        .out = tiny_path(t, run, out), .stop = &stop, .user = (void *)&stop, .began = tiny_stop};
    loading = -1;
    cleat_status status = cleat_train(profile, &options, &report, &error);
    if (status != CLEAT_ERR_INTERRUPTED) fail_msg("%s", error.text);
    return profile;
}

static void assert_below(const char *what, long long bytes, long long bound) {
    print_message("%s: %.2f MiB of a network of %.1f MiB\n", what, (double)bytes / MIB, (double)network / MIB);
    if (bytes < 0 || bytes > bound)
        fail_msg("%s: %lld bytes of host memory, more than the required %lld", what, bytes, bound);
}

static void weights_pass_through_a_block(void **state) {
    static const struct {
        const char *folder, *precision, *run;
        cleat_st_dtype dtype;
    } cases[] = {{"f32", "f32", "run_f32", CLEAT_ST_F32}, {"f16", "bf16", "run_bf16", CLEAT_ST_F16}};
    const tiny *t = *state;
    char out[TINY_PATH];
    put(t, "", "texts.csv", "text,label\ngood day,good\nbad day,bad\ngood,good\nbad,bad\nday good,good\nday bad,bad\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        put_checkpoint(t, cases[i].folder, cases[i].dtype);
        cleat_profile_destroy(train(t, cases[i].folder, cases[i].precision, cases[i].run, NULL, out));
        assert_below("loading", loading, largest / 2); /* a block, its halves, memory of other threads */
    }
}

/* Frozen weights of a GGUF file keep its 4 and 8 bits: its largest tensor too, of 28 million values in 8 bits, is never
 * in host memory as a whole. */
static void a_gguf_file_passes_through_a_block(void **state) {
    static const char text[] = "[model]\ntype = causal_lm\n[data]\nmax_length = 32\nmin_length = none\n"
                               "[train]\neffective_batch_size = 1\nepochs = 1\nlora_rank = 2\n"
                               "[loader]\nnum_workers = 1\n[run]\nself_check = never\n";
    const tiny *t = *state;
    const char *file = getenv("CLEAT_SMOLLM2");
    char out[TINY_PATH], assignment[TINY_PATH], value[64];
    cleat_error error = {0};
    cleat_profile *profile = NULL;
    cleat_train_report report;
    volatile int stop = 0;
    const cleat_train_options options = {
        .out = tiny_path(t, "run_gguf", out), .stop = &stop, .user = (void *)&stop, .began = tiny_stop};
    if (!file || !*file) skip();
    put(t, "", "train.jsonl", "{\"text\": \"A good day.\"}\n{\"text\": \"A bad day.\"}\n");
    ok(cleat_profile_create(&profile, &error), &error);
    ok(cleat_profile_read_text(profile, "test", text, sizeof text - 1, &error), &error);
    snprintf(assignment, sizeof assignment, "model.init=%s", file);
    ok(cleat_profile_set(profile, assignment, &error), &error);
    snprintf(assignment, sizeof assignment, "data.path=%s/train.jsonl", t->folder);
    ok(cleat_profile_set(profile, assignment, &error), &error);
    ok(cleat_profile_apply_init(profile, &error), &error);
    ok(cleat_profile_get(profile, "train.frozen_weights", value, sizeof value, &error), &error);
    assert_string_equal(value, "q4 emb=q8");
    loading = -1;
    assert_int_equal(cleat_train(profile, &options, &report, &error), CLEAT_ERR_INTERRUPTED);
    assert_below("loading GGUF", loading, 8 * MIB);
    cleat_profile_destroy(profile);
}

/* Fails unless both files have the same tensors, with equal or almost equal values. */
static void assert_same_tensors(const tiny *t, const char *a, const char *b) {
    char path[TINY_PATH];
    cleat_safetensors *x = NULL, *y = NULL;
    cleat_error error = {0};
    ok(cleat_safetensors_open(tiny_path(t, a, path), &x, &error), &error);
    ok(cleat_safetensors_open(tiny_path(t, b, path), &y, &error), &error);
    assert_int_equal(cleat_safetensors_count(x), cleat_safetensors_count(y));
    for (size_t i = 0; i < cleat_safetensors_count(x); ++i) {
        const cleat_st_tensor *p = cleat_safetensors_at(x, i), *q = cleat_safetensors_find(y, p->name);
        assert_non_null(q);
        assert_int_equal(cleat_st_bytes(p), cleat_st_bytes(q));
        for (int64_t k = 0; k < cleat_st_elements(p); ++k)
            assert_float_equal(((const float *)p->data)[k], ((const float *)q->data)[k], 1e-6);
    }
    cleat_safetensors_close(x);
    cleat_safetensors_close(y);
}

/* The values of weights in blocks are neither in host memory nor in the file. */
static void checkpoints_hold_a_weight_in_blocks(void **state) {
    static const char *const set[] = {"train.frozen_weights=q8", "train.lora_rank=2", NULL};
    const tiny *t = *state;
    char out[TINY_PATH], path[CLEAT_CHECKPOINT_PATH + 32];
    cleat_error error = {0};
    cleat_checkpoint *saved = NULL;
    struct stat about;
    cleat_profile_destroy(train(t, "f32", "f32", "run_q8", set, out));
    assert_below("saving", saving, largest / 2);
    ok(cleat_checkpoint_open_last(out, &saved, &error), &error);
    snprintf(path, sizeof path, "%s/model.safetensors", saved->folder);
    assert_int_equal(stat(path, &about), 0);
    assert_true(about.st_size < network / 3);
    cleat_checkpoint_close(saved);
}

/* The step moves no value by more than its learning rate, so the export equals the loaded weights. */
static void exports_hold_a_tensor(void **state) {
    const tiny *t = *state;
    char run[TINY_PATH], out[TINY_PATH];
    cleat_error error = {0};
    cleat_profile *profile = train(t, "f32", "f32", "run", NULL, run);
    begin();
    ok(cleat_export_weights(profile, run, CLEAT_WEIGHTS_HF, tiny_path(t, "hf", out), NULL, &error), &error);
    assert_below("export --format hf", peak(), largest + MIB);
    begin();
    ok(cleat_export_weights(profile, run, CLEAT_WEIGHTS_CLEAT, tiny_path(t, "own", out), NULL, &error), &error);
    assert_below("export --format cleat", peak(), MIB);
    assert_same_tensors(t, "f32/model.safetensors", "hf/model.safetensors");
    cleat_profile_destroy(profile);
}

/* Graphs, plan, dataset and the texts of kernels that other threads compile are also in memory, independently of
 * the size of the tensors: 3.6 to 4.6 MiB. */
static void an_evaluation_reads_through_a_block(void **state) {
    const tiny *t = *state;
    char run[TINY_PATH];
    cleat_error error = {0};
    cleat_metrics metrics;
    cleat_profile *profile = profile_from(t, "f32", "f32");
    begin();
    ok(cleat_evaluate(profile, tiny_path(t, "run", run), "all", &metrics, &error), &error);
    assert_below("evaluation", peak(), largest);
    cleat_profile_destroy(profile);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_pass_through_a_block),        cmocka_unit_test(a_gguf_file_passes_through_a_block),
        cmocka_unit_test(checkpoints_hold_a_weight_in_blocks), cmocka_unit_test(exports_hold_a_tensor),
        cmocka_unit_test(an_evaluation_reads_through_a_block),
    };
    tiny_require_device();
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}
