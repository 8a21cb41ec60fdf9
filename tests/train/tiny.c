/* A training run of a few seconds; see tiny.h. */
#include "tiny.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cleat/data.h"
#include "core/files.h"
#include "core/memory.h"
#include "core/safetensors.h"
#include "platform/files.h"

static const char *device(void) {
    const char *selector = getenv("CLEAT_TEST_DEVICE");
    return selector ? selector : "auto";
}

void tiny_require_device(void) {
    cleat_device *opened = NULL;
    cleat_error error;
    cleat_status status = cleat_device_open(device(), &opened, &error);
    if (status) {
        fprintf(stderr, "%s\n", error.text);
        exit(status == CLEAT_ERR_NO_DEVICE ? 77 : 1);
    }
    cleat_device_close(opened);
}

int tiny_setup(void **state) {
    cleat_rna_make molecules = cleat_rna_make_defaults();
    tiny *t = calloc(1, sizeof *t);
    if (!t) return -1;
    snprintf(t->folder, sizeof t->folder, "/tmp/cleat-train-XXXXXX");
    if (!mkdtemp(t->folder)) return -1;
    snprintf(t->data, sizeof t->data, "%s/data", t->folder);
    molecules.count = 16;
    molecules.seed = 3;
    molecules.stem_min = 4;
    molecules.stem_max = 9;
    molecules.val_fraction = 0.2;
    molecules.pdb_files = 0;
    *state = t;
    return cleat_data_make_rna(t->data, &molecules, NULL) == CLEAT_OK ? 0 : -1;
}

int tiny_teardown(void **state) {
    tiny *t = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", t->folder);
    int code = system(command);
    free(t);
    return code;
}

const char *tiny_path(const tiny *t, const char *name, char *path) {
    snprintf(path, TINY_PATH, "%s/%s", t->folder, name);
    return path;
}

static const char profile_text[] = "[model]\n"
                                   "type = rna_transformer\nd_model = 16\nheads = 2\nlayers = 1\nd_ff = 16\n"
                                   "dropout = 0.1\n"
                                   "[data]\nmutation = 0.3\ncrop = 0.2\n"
                                   "[train]\n"
                                   "epochs = 2\nbatch_size = 2\neffective_batch_size = 4\n"
                                   "learning_rate = 1e-2\nwarmup_steps = 2\nschedule = cosine\n"
                                   "average_decay = 0.8\n"
                                   "[loader]\nnum_workers = 1\n"
                                   "[run]\nkeep_checkpoints = 2\nself_check = never\n";

static void set(cleat_profile *profile, const char *assignment) {
    cleat_error error;
    if (cleat_profile_set(profile, assignment, &error) != CLEAT_OK) fail_msg("%s", error.text);
}

cleat_profile *tiny_profile(const tiny *t, const char *const *assignments) {
    cleat_profile *profile = NULL;
    cleat_error error;
    char text[TINY_PATH];
    assert_int_equal(cleat_profile_create(&profile, NULL), CLEAT_OK);
    if (cleat_profile_read_text(profile, "tiny", profile_text, sizeof profile_text - 1, &error) != CLEAT_OK)
        fail_msg("%s", error.text);
    snprintf(text, sizeof text, "data.path=%s", t->data);
    set(profile, text);
    snprintf(text, sizeof text, "run.device=%s", device());
    set(profile, text);
    for (; assignments && *assignments; ++assignments) set(profile, *assignments);
    if (cleat_profile_check(profile, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return profile;
}

void tiny_stop(void *flag) {
    *(volatile int *)flag = 1;
}

tiny_result tiny_train(const tiny *t, const char *run, const char *const *assignments, bool resume, int stop) {
    tiny_result result = {.status = CLEAT_OK};
    char out[TINY_PATH];
    volatile int flag = 0;
    cleat_profile *profile = tiny_profile(t, assignments);
    cleat_train_options options = {.out = tiny_path(t, run, out),
                                   .resume = resume,
                                   .stop = &flag,
                                   .user = (void *)&flag,
                                   .began = stop ? tiny_stop : NULL};
    result.status = cleat_train(profile, &options, &result.report, &result.error);
    cleat_profile_destroy(profile);
    return result;
}

tiny_result tiny_train_to(cleat_status wanted, const tiny *t, const char *run, const char *const *assignments,
                          bool resume, int stop) {
    tiny_result result = tiny_train(t, run, assignments, resume, stop);
    if (result.status != wanted)
        fail_msg("%s ended with '%s', not '%s': %s", run, cleat_status_text(result.status), cleat_status_text(wanted),
                 !result.status ? "" : result.error.text);
    return result;
}

char *tiny_read(const char *path, size_t *size) {
    char *data = NULL;
    cleat_error error;
    if (cleat_file_read(path, &data, size, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return data;
}

void tiny_write(const char *path, const char *text, size_t size) {
    cleat_error error;
    if (cleat_file_write(path, text, size, &error) != CLEAT_OK) fail_msg("%s", error.text);
}

const char *tiny_last_file(const tiny *t, const char *run, const char *file, char *path) {
    size_t size;
    char pointer[TINY_PATH];
    snprintf(pointer, sizeof pointer, "%s/%s/last", t->folder, run);
    char *name = tiny_read(pointer, &size);
    name[strcspn(name, "\n")] = 0;
    snprintf(path, TINY_PATH, "%s/%s/%.64s/%s", t->folder, run, name, file);
    cleat_free(name);
    return path;
}

float *tiny_parameters(const tiny *t, const char *run, size_t *count) {
    char path[TINY_PATH];
    cleat_safetensors *file = NULL;
    float *values = NULL;
    size_t capacity = 0;
    *count = 0;
    assert_int_equal(cleat_safetensors_open(tiny_last_file(t, run, "model.safetensors", path), &file, NULL), CLEAT_OK);
    for (size_t i = 0; i < cleat_safetensors_count(file); ++i) {
        const cleat_st_tensor *tensor = cleat_safetensors_at(file, i);
        for (int64_t k = 0; k < cleat_st_elements(tensor); ++k) {
            assert_int_equal(cleat_grow(&values, *count, &capacity, NULL), CLEAT_OK);
            values[(*count)++] = ((const float *)tensor->data)[k];
        }
    }
    cleat_safetensors_close(file);
    return values;
}

double tiny_distance(const tiny *t, const char *a, const char *b) {
    size_t count, other;
    float *x = tiny_parameters(t, a, &count), *y = tiny_parameters(t, b, &other);
    double worst = 0;
    assert_int_equal(count, other);
    for (size_t k = 0; k < count; ++k)
        if (!(fabs((double)x[k] - y[k]) <= worst)) worst = fabs((double)x[k] - y[k]);
    cleat_free(x);
    cleat_free(y);
    return worst;
}

static void assert_same_file(const char *a, const char *b) {
    size_t size_a, size_b;
    char *data_a = tiny_read(a, &size_a), *data_b = tiny_read(b, &size_b);
    if (size_a != size_b || memcmp(data_a, data_b, size_a) != 0) fail_msg("%s and %s differ", a, b);
    cleat_free(data_a);
    cleat_free(data_b);
}

/* Removes the startup duration before a comparison: it depends on the process, not on the run. */
static void cut_starts(char *text) {
    char *to = text;
    for (char *line = text, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        end += *end == '\n';
        if (strncmp(line, "{\"kind\":\"start\"", 15) == 0) continue;
        memmove(to, line, (size_t)(end - line));
        to += end - line;
    }
    *to = 0;
}

static void assert_same_metrics(const char *a, const char *b) {
    size_t size;
    char *text_a = tiny_read(a, &size), *text_b = tiny_read(b, &size);
    cut_starts(text_a);
    cut_starts(text_b);
    if (strcmp(text_a, text_b) != 0) fail_msg("%s and %s differ", a, b);
    cleat_free(text_a);
    cleat_free(text_b);
}

void tiny_assert_same_run(const tiny *t, const char *a, const char *b) {
    char path_a[TINY_PATH], path_b[TINY_PATH];
    static const char *const files[] = {"model.safetensors", "optim.safetensors"};
    for (int i = 0; i < 2; ++i)
        assert_same_file(tiny_last_file(t, a, files[i], path_a), tiny_last_file(t, b, files[i], path_b));
    snprintf(path_a, sizeof path_a, "%s/%s/metrics.jsonl", t->folder, a);
    snprintf(path_b, sizeof path_b, "%s/%s/metrics.jsonl", t->folder, b);
    assert_same_metrics(path_a, path_b);
}
