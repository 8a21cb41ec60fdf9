/* Profiles: every key of the schema at and beyond its bounds, messages, contradictions, unusual files, and
 * the dump, which can be loaded. */
/* ctest: quick no-memcheck */
#include "core/memory.h"
#include "profile/schema.h"
#include "source_path.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char minimal[] = "[data]\npath = somewhere\n";

static cleat_profile *make(void) {
    cleat_profile *profile = NULL;
    cleat_error error;
    assert_int_equal(cleat_profile_create(&profile, &error), CLEAT_OK);
    return profile;
}

static cleat_status read_text(cleat_profile *profile, const char *text, cleat_error *error) {
    return cleat_profile_read_text(profile, "test.ini", text, strlen(text), error);
}

static char *dump(const cleat_profile *profile) {
    char *text = NULL;
    assert_int_equal(cleat_profile_dump(profile, &text, NULL), CLEAT_OK);
    return text;
}

static void expect_contains(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("\"%s\" does not contain \"%s\"", text, part);
}

/* Asserts that the dump of `profile` loads into a profile with the same dump and hash. */
static void expect_round_trip(const cleat_profile *profile) {
    cleat_profile *again = make();
    cleat_error error = {0};
    char *first = dump(profile), hash[33], hash_again[33];
    if (read_text(again, first, &error) != CLEAT_OK) fail_msg("%s", error.text);
    char *second = dump(again);
    assert_string_equal(first, second);
    cleat_profile_hash(profile, hash);
    cleat_profile_hash(again, hash_again);
    assert_string_equal(hash, hash_again);
    assert_int_equal(strlen(hash), 32);
    free(first);
    free(second);
    cleat_profile_destroy(again);
}

static cleat_profile *any; /* with defaults, for its tables */

static int open_any(void **state) {
    (void)state;
    any = make();
    return 0;
}

static int close_any(void **state) {
    (void)state;
    cleat_profile_destroy(any);
    return 0;
}

/* Iterates over the keys of all families. */
static const cleat_schema *all_keys(void) {
    return &any->keys->all;
}

/* A profile of the first family that has the key. */
static cleat_profile *make_for(const cleat_key *key) {
    cleat_profile *profile = make();
    int type = 0;
    char assignment[128];
    while (!cleat_key_applies(key, type)) ++type;
    snprintf(assignment, sizeof assignment, "model.type=%s", cleat_model_classes[type]->name);
    assert_int_equal(cleat_profile_set(profile, assignment, NULL), CLEAT_OK);
    return profile;
}

static bool accepts(const cleat_key *key, const char *value) {
    cleat_profile *profile = make_for(key);
    char assignment[CLEAT_PROFILE_TEXT + 256];
    cleat_error error = {0};
    char *before = dump(profile);
    snprintf(assignment, sizeof assignment, "%s.%s=%s", key->section, key->name, value);
    cleat_status status = cleat_profile_set(profile, assignment, &error);
    if (!status) {
        expect_round_trip(profile);
    } else {
        char *after = dump(profile);
        assert_int_equal(status, CLEAT_ERR_PROFILE);
        assert_string_equal(before, after);
        expect_contains(error.text, key->name);
        expect_contains(error.text, "takes");
        free(after);
    }
    free(before);
    cleat_profile_destroy(profile);
    return !status;
}

static void expect_bounds(const cleat_key *key, double step) {
    char text[64];
    snprintf(text, sizeof text, "%.17g", key->min);
    assert_true(accepts(key, text));
    snprintf(text, sizeof text, "%.17g", key->max);
    assert_true(accepts(key, text));
    snprintf(text, sizeof text, "%.17g", key->min - step);
    assert_false(accepts(key, text));
    snprintf(text, sizeof text, "%.17g", key->max + step);
    assert_false(accepts(key, text));
}

static void every_key_keeps_its_bounds(void **state) {
    (void)state;
    for (const cleat_key *key = all_keys()->keys; key->name; ++key) {
        bool text = key->type == CLEAT_KEY_STRING || key->type == CLEAT_KEY_TEXT;
        print_message("%s.%s\n", key->section, key->name);
        assert_true(accepts(key, key->initial));
        assert_int_equal(accepts(key, "nan"), text);
        assert_int_equal(accepts(key, "inf"), text);
        assert_int_equal(accepts(key, "1e999"), text);
        assert_int_equal(accepts(key, "3 x"), text);
        assert_int_equal(accepts(key, "0x10"), text);
        assert_int_equal(accepts(key, "99999999999999999999999"), text);
        assert_int_equal(accepts(key, ""), text && key->min == 0);
        if (!text && key->type != CLEAT_KEY_CHOICE) {
            assert_int_equal(accepts(key, "auto"), key->or_auto || (key->word && strcmp(key->word, "auto") == 0));
            assert_int_equal(accepts(key, "none"), key->word && strcmp(key->word, "none") == 0);
        }
        if (key->type == CLEAT_KEY_INT || key->type == CLEAT_KEY_LIST) expect_bounds(key, key->max > 1e15 ? 2 : 1);
        if (key->type == CLEAT_KEY_FLOAT) expect_bounds(key, fmax(key->max * 1e-6, 1e-6));
    }
}

static void the_schema_is_sound(void **state) {
    (void)state;
    assert_true(cleat_keys_count(all_keys()->keys) > 50);
    for (const cleat_key *key = all_keys()->keys; key->name; ++key) {
        /* no name occurs twice */
        assert_ptr_equal(cleat_schema_find(all_keys(), key->section, key->name), key);
        assert_int_equal(cleat_schema_require_section(all_keys(), key->section, "here", NULL), CLEAT_OK);
        assert_true(strlen(key->help) > 10 && strlen(key->help) < 150);
        assert_true(key->part == CLEAT_PART_FAMILY || key->offset < sizeof(cleat_profile));
    }
}

static void assert_setting(const cleat_profile *profile, const char *name, const char *wanted) {
    char value[64];
    assert_int_equal(cleat_profile_get(profile, name, value, sizeof value, NULL), CLEAT_OK);
    assert_string_equal(value, wanted);
}

static void periods_may_be_fractions_of_a_second(void **state) {
    static const char *const rows[][2] = {{"1s", "1s"}, {"0.25s", "0.25s"}, {"1m", "60s"}, {"none", "none"}};
    (void)state;
    cleat_profile *profile = make(), *copy = NULL;
    assert_setting(profile, "run.monitor", "1s");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        char assignment[64];
        snprintf(assignment, sizeof assignment, "run.monitor=%s", rows[i][0]);
        assert_int_equal(cleat_profile_set(profile, assignment, NULL), CLEAT_OK);
        assert_setting(profile, "run.monitor", rows[i][1]);
    }
    assert_true(profile->run.monitor == 0);
    assert_int_equal(cleat_profile_set(profile, "run.monitor=0.25s", NULL), CLEAT_OK);
    assert_int_equal(cleat_profile_clone(profile, &copy, NULL), CLEAT_OK);
    assert_true(copy->run.monitor == 0.25);
    char then[33], now[33];
    cleat_profile_hash(profile, now);
    cleat_profile_set(copy, "run.monitor=none", NULL);
    cleat_profile_hash(copy, then);
    assert_string_equal(then, now); /* not part of what a run computes */
    cleat_profile_destroy(copy);
    cleat_profile_destroy(profile);
}

static void keys_can_be_listed(void **state) {
    char name[96], value[1200];
    size_t count = 0;
    (void)state;
    cleat_profile *profile = make();
    for (; cleat_profile_key(profile, count, name, sizeof name); ++count)
        assert_int_equal(cleat_profile_get(profile, name, value, sizeof value, NULL), CLEAT_OK);
    assert_true(count > 40);
    cleat_profile_destroy(profile);
}

static void values_arrive_in_their_fields(void **state) {
    (void)state;
    cleat_profile *profile = make();
    cleat_error error = {0};
    const char text[] = "# comment\n[model]\n  heads = 4 ; a comment\n\td_model: 128\n\n[data]\npath = a b/c.csv\n"
                        "max_length = 256\nbuckets = 64, 128 256\n[train]\nlearning_rate = 3.5e-4\nbatch_size "
                        "= auto\n"
                        "max_grad_norm = none\nschedule = cosine\n[loader]\npin_memory = false\n[run]\n"
                        "time_budget = 1h30m\nseed = 9007199254740991\n[model]\nlayers = 2\n";
    if (read_text(profile, text, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_setting(profile, "model.heads", "4");
    assert_setting(profile, "model.d_model", "128");
    assert_setting(profile, "model.layers", "2");
    assert_setting(profile, "model.d_ff", "1024");
    assert_string_equal(profile->data->path, "a b/c.csv");
    assert_int_equal(profile->data->buckets.count, 3);
    assert_int_equal(profile->data->buckets.values[2], 256);
    assert_true(profile->train.learning_rate == 3.5e-4);
    assert_int_equal(profile->train.batch_size, CLEAT_AUTO);
    assert_true(profile->train.max_grad_norm == CLEAT_NONE);
    assert_int_equal(profile->train.schedule, CLEAT_SCHEDULE_COSINE);
    assert_false(profile->loader.pin_memory);
    assert_int_equal(profile->run.time_budget.total, 5400);
    assert_int_equal(profile->run.time_budget.session, CLEAT_NONE);
    assert_int_equal(profile->run.seed, 9007199254740991);
    assert_int_equal(cleat_profile_check(profile, &error), CLEAT_OK);
    expect_round_trip(profile);
    char value[64];
    assert_int_equal(cleat_profile_get(profile, "run.time_budget", value, sizeof value, NULL), CLEAT_OK);
    assert_string_equal(value, "1h30m");
    assert_int_equal(cleat_profile_get(profile, "run.nothing", value, sizeof value, NULL), CLEAT_ERR_NOT_FOUND);
    cleat_profile_destroy(profile);
}

static void a_time_budget_has_sessions(void **state) {
    (void)state;
    static const struct {
        const char *text, *printed;
        int64_t total, session;
    } rows[] = {{"30h/12h", "30h/12h", 108000, 43200},
                {"30h/11h30m", "30h/11h30m", 108000, 41400},
                {"none/90m", "none/1h30m", CLEAT_NONE, 5400},
                {"45s/45s", "45s/45s", 45, 45},
                {"none", "none", CLEAT_NONE, CLEAT_NONE}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_profile *profile = make();
        cleat_error error = {0};
        char assignment[64], value[64];
        snprintf(assignment, sizeof assignment, "run.time_budget=%s", rows[i].text);
        if (cleat_profile_set(profile, assignment, &error) != CLEAT_OK) fail_msg("%s", error.text);
        assert_int_equal(profile->run.time_budget.total, rows[i].total);
        assert_int_equal(profile->run.time_budget.session, rows[i].session);
        assert_int_equal(cleat_profile_get(profile, "run.time_budget", value, sizeof value, NULL), CLEAT_OK);
        assert_string_equal(value, rows[i].printed);
        expect_round_trip(profile);
        cleat_profile_destroy(profile);
    }
}

static void any_float_survives_the_dump(void **state) {
    (void)state;
    cleat_profile *profile = make();
    uint64_t random = 88172645463325252u;
    for (int i = 0; i < 300; ++i) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        double value = ldexp((double)(random >> 11), -53 - (int)(random % 30));
        profile->train.learning_rate = value < 1e-12 ? 1e-12 : value;
        cleat_profile *again = make();
        char *text = dump(profile);
        assert_int_equal(read_text(again, text, NULL), CLEAT_OK);
        assert_memory_equal(&again->train.learning_rate, &profile->train.learning_rate, sizeof(double));
        free(text);
        cleat_profile_destroy(again);
    }
    cleat_profile_destroy(profile);
}

/* --- messages ------------------------------------------------------------------------------------------------- */

typedef struct message {
    const char *text; /* in the file, or in an assignment */
    const char *parts[4];
} message;

static const message bad_files[] = {
    {"[model]\nd_modl = 256\n", {"test.ini:2: d_modl = 256", "'d_model'", "d_model, heads"}},
    {"[modle]\nheads = 8\n", {"test.ini:1: [modle]", "[model]", "[model], [data]"}},
    {"[model]\n\n[nothing like it]\n", {"test.ini:3", "unknown section", "sections are"}},
    {"[train]\nheads = 8\n", {"test.ini:2: heads = 8", "belongs in [model]"}},
    {"[train]\nprecision = fp16\n", {"test.ini:2: precision = fp16", "auto, f32, f16, bf16, tf32", "'f16'"}},
    {"[train]\nschedule = cosin\n", {"test.ini:2: schedule = cosin", "constant, cosine, step", "'cosine'"}},
    {"[train]\nepochs = many\n", {"test.ini:2: epochs = many", "'many'", "a whole number from 1 to 1000000"}},
    {"[train]\nepochs = 0\n", {"'0' is out of range", "from 1 to 1000000"}},
    {"[train]\nepochs = 3.5\n", {"'3.5'", "whole number"}},
    {"[train]\nbatch_size = aut\n", {"did you mean 'auto'?"}},
    {"[train]\nepochs = 1\n[run]\nseed = 2\n[train]\nepochs = 2\n", {"test.ini:6: epochs = 2", "line 2", "duplicate"}},
    {"[train]\nepochs = 40\nepochs\n", {"test.ini:3: epochs", "neither"}},
    {"[train\nepochs = 40\n", {"test.ini:1: [train", "neither"}},
    {"epochs = 40\n", {"test.ini:1: epochs = 40", "before the first [section]"}},
    {"[run]\ntime_budget = 30\n", {"'30'", "30h", "none"}},
    {"[run]\ntime_budget = 12h/30h\n", {"'12h/30h'", "session longer", "30h/12h"}},
    {"[run]\ntime_budget = 30h/\n", {"'30h/'", "30h/12h"}},
    {"[run]\ntime_budget = 30h/none\n", {"'30h/none'", "none/12h"}},
    {"[run]\ntime_budget = 30h/12h/6h\n", {"'30h/12h/6h'"}},
    {"[run]\nmonitor = 0.05s\n", {"out of range", "from 0.1s to 1h", "none"}},
    {"[run]\nmonitor = 5\n", {"'5'", "0.5s", "none"}},
    {"[run]\ntime_budget = 0.3s\n", {"whole seconds"}},
    {"[loader]\npin_memory = yes\n", {"true or false"}},
    {"[data]\nbuckets = 64, 32\n", {"ascending"}},
    {"[data]\nbuckets = 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17\n", {"too many"}},
    {"[data]\nbuckets = 64,\n", {"'64,'"}},
    {"[train]\nepochs = x\nepochs = y\n", {"test.ini:2"}},
    {"[train]\nepochs = x\nnonsense\n", {"test.ini:2"}},
    {"[train]\nnonsense\nepochs = x\n", {"test.ini:2"}},
    {"[train]\nepochs = \n", {"test.ini:2: epochs =", "whole number"}},
    {"[train]\n= 5\n", {"test.ini:2"}},
};

static void files_with_errors_are_refused_with_their_line(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad_files / sizeof *bad_files; ++i) {
        cleat_profile *profile = make();
        cleat_error error = {0};
        if (read_text(profile, bad_files[i].text, &error) != CLEAT_ERR_PROFILE)
            fail_msg("accepted: %s", bad_files[i].text);
        assert_int_equal(error.status, CLEAT_ERR_PROFILE);
        for (int j = 0; j < 4 && bad_files[i].parts[j]; ++j) expect_contains(error.text, bad_files[i].parts[j]);
        assert_int_equal(read_text(profile, bad_files[i].text, NULL), CLEAT_ERR_PROFILE);
        cleat_profile_destroy(profile);
    }
}

static const message bad_assignments[] = {
    {"train.epochs=x", {"--set train.epochs=x", "whole number"}},
    {"train.epoch=3", {"--set train.epoch=3", "'epochs'"}},
    {"epochs=3", {"section.key=value", "train.epochs=3?"}},
    {"train.epochs", {"section.key=value"}},
    {"", {"section.key=value"}},
    {"=", {"section.key=value"}},
    {".=", {"unknown section []"}},
    {"trian.epochs=3", {"[train]"}},
    {"data.path=a ;b", {"is not possible in a profile"}},
    {"data.path=a\nb", {"is not possible in a profile"}},
    {"run.device=a\\", {"is not possible in a profile"}},
};

static void assignments_obey_the_same_rules(void **state) {
    (void)state;
    cleat_profile *profile = make();
    for (size_t i = 0; i < sizeof bad_assignments / sizeof *bad_assignments; ++i) {
        cleat_error error = {0};
        if (cleat_profile_set(profile, bad_assignments[i].text, &error) != CLEAT_ERR_PROFILE)
            fail_msg("accepted: %s", bad_assignments[i].text);
        for (int j = 0; j < 4 && bad_assignments[i].parts[j]; ++j)
            expect_contains(error.text, bad_assignments[i].parts[j]);
    }
    assert_int_equal(cleat_profile_set(profile, " train . epochs = 3 ", NULL), CLEAT_OK);
    assert_int_equal(profile->train.epochs, 3);
    assert_int_equal(cleat_profile_set(profile, "data.path=/a=b.c/d", NULL), CLEAT_OK);
    assert_string_equal(profile->data->path, "/a=b.c/d");
    assert_int_equal(cleat_profile_set(profile, "data.path=\"D:/my data/x.csv\"", NULL), CLEAT_OK);
    assert_string_equal(profile->data->path, "D:/my data/x.csv");
    assert_int_equal(cleat_profile_set(profile, "data.path=\"", NULL), CLEAT_OK);
    assert_string_equal(profile->data->path, "\"");
    cleat_profile_destroy(profile);
}

static const message contradictions[] = {
    {"[model]\nd_model = 100\nheads = 8\n", {"test.ini:2: d_model = 100", "test.ini:3: heads = 8", "multiple", "96"}},
    {"[model]\nheads = 7\n", {"model.d_model = 256 (default)", "test.ini:2: heads = 7"}},
    {"[train]\nwarmup_ratio = 0.1\nwarmup_epochs = 2\n", {"test.ini:2", "test.ini:3", "add train.warmup_epochs=0"}},
    {"[train]\nwarmup_steps = 9\nwarmup_ratio = 0.1\n", {"test.ini:3", "test.ini:2", "add train.warmup_steps=0"}},
    {"[train]\nwarmup_epochs = 1\nwarmup_steps = 5\n", {"not both"}},
    {"[train]\nbatch_size = 16\neffective_batch_size = 8\n", {"at most 8"}},
    {"[train]\nbatch_size = 49\neffective_batch_size = 48\n", {"at most 48", "effective_batch_size = 48"}},
    {"[train]\nbucket_batch_sizes = 4, 2\n", {"one micro-batch size for each bucket"}},
    {"[data]\nmin_length = 2000\n", {"above max_length"}},
    {"[train]\nbatch_size = 8\neffective_batch_size = 48\ngradient_accumulation_steps = 3\n", {"make 6", "auto"}},
    {"[train]\nlr_scaling = linear\n", {"base_batch_size"}},
    {"[train]\nlearning_rate = 1e-4\nwarmup_start_lr = 1e-3\nwarmup_steps = 3\n", {"must increase"}},
    {"[train]\nlearning_rate = 1e-4\nmin_learning_rate = 1e-3\n", {"the minimum is above"}},
    {"[train]\nschedule = step\n", {"step_epochs"}},
    {"[train]\nstep_epochs = 3\n", {"only to schedule = step", "train.schedule = constant (default)"}},
    {"[run]\nmetric = lddr\n", {"'lddt'", "rmsd"}},
    {"[run]\nearly_stopping_patience = 3\nevaluate_every_epochs = none\n", {"requires evaluations"}},
    {"[data]\nlookback = 8\n", {"test.ini:2: lookback = 8", "does not apply", "rna_transformer"}},
    {"[model]\ntype = series_lstm\nheads = 4\n", {"test.ini:3: heads = 4", "does not apply", "series_lstm"}},
    {"[model]\ntype = text_tagger\n[data]\nval_fraction = 0.6\ntest_fraction = 0.5\n",
     {"no data are left for training"}},
    {"[model]\ntype = series_dense\n[data]\ntrain_rows = 60\n", {"val_rows"}},
    {"[model]\ntype = series_dense\n[data]\nanchor = season\n", {"test.ini:4: anchor = season", "data.season"}},
    {"[train]\nbatch_size = 65536\ngradient_accumulation_steps = 17\n",
     {"test.ini:2", "test.ini:3", "1114112 samples", "1048576"}},
    {"[model]\ntype = text_classifier\n[run]\nmetric = entity_f1\n", {"macro_f1"}},
};

static void contradictions_name_both_lines(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof contradictions / sizeof *contradictions; ++i) {
        cleat_profile *profile = make();
        cleat_error error = {0};
        assert_int_equal(cleat_profile_set(profile, "data.path=somewhere", &error), CLEAT_OK);
        if (read_text(profile, contradictions[i].text, &error) != CLEAT_OK) fail_msg("%s", error.text);
        if (cleat_profile_check(profile, &error) != CLEAT_ERR_PROFILE) fail_msg("accepted: %s", contradictions[i].text);
        for (int j = 0; j < 4 && contradictions[i].parts[j]; ++j)
            expect_contains(error.text, contradictions[i].parts[j]);
        cleat_profile_destroy(profile);
    }
}

static void all_weights_zero_are_refused(void **state) {
    (void)state;
    cleat_profile *profile = make();
    cleat_error error = {0};
    assert_int_equal(read_text(profile, minimal, &error), CLEAT_OK);
    assert_int_equal(cleat_profile_check(profile, &error), CLEAT_OK);
    for (const cleat_key *key = all_keys()->keys; key->name; ++key) {
        char assignment[128];
        if (strcmp(key->section, "loss") != 0 || !cleat_key_applies(key, profile->type)) continue;
        snprintf(assignment, sizeof assignment, "loss.%s=0", key->name);
        assert_int_equal(cleat_profile_set(profile, assignment, &error), CLEAT_OK);
    }
    assert_int_equal(cleat_profile_check(profile, &error), CLEAT_ERR_PROFILE);
    expect_contains(error.text, "nothing to train");
    cleat_profile_destroy(profile);
}

static void a_path_is_required_and_overrides_are_named(void **state) {
    (void)state;
    cleat_profile *profile = make();
    cleat_error error = {0};
    assert_int_equal(cleat_profile_check(profile, &error), CLEAT_ERR_PROFILE);
    expect_contains(error.text, "data.path");
    assert_int_equal(read_text(profile, minimal, &error), CLEAT_OK);
    assert_int_equal(cleat_profile_check(profile, &error), CLEAT_OK);
    assert_int_equal(cleat_profile_set(profile, "model.heads=5", &error), CLEAT_OK);
    assert_int_equal(cleat_profile_check(profile, &error), CLEAT_ERR_PROFILE);
    expect_contains(error.text, "--set model.heads=5");
    cleat_profile_destroy(profile);
}

/* --- families ------------------------------------------------------------------------------------------------- */

/* Assigns each row's default to a profile of its family. */
static void every_family_keeps_its_settings(void **state) {
    (void)state;
    for (int f = 0; cleat_model_classes[f]; ++f) {
        const cleat_model_class *family = cleat_model_classes[f];
        cleat_profile *profile = make();
        char assignment[256];
        cleat_error error = {0};
        snprintf(assignment, sizeof assignment, "model.type=%s", family->name);
        if (cleat_profile_set(profile, assignment, &error)) fail_msg("%s", error.text);
        assert_ptr_equal(profile->family, family);
        assert_int_equal(profile->type, f);
        for (const cleat_key *key = family->keys; key->name; ++key) {
            assert_true(key->offset < family->settings_size);
            assert_true(key->initial && !key->kinds);
            assert_ptr_not_equal(cleat_schema_find(&profile->keys->own, key->section, key->name), NULL);
            snprintf(assignment, sizeof assignment, "%s.%s=%s", key->section, key->name, key->initial);
            if (cleat_profile_set(profile, assignment, &error)) fail_msg("%s", error.text);
        }
        expect_round_trip(profile);
        cleat_profile_destroy(profile);
    }
}

/* The family may follow its settings, and may be repeated: earlier settings are kept. */
static void the_type_may_come_last(void **state) {
    (void)state;
    cleat_profile *profile = make();
    cleat_error error = {0};
    const char text[] = "[data]\npath = x\nlookback = 7\nval_fraction = 0.25\n[model]\nlayers = 3\nd_model = 64\n"
                        "type = series_transformer\n";
    if (read_text(profile, text, &error)) fail_msg("%s", error.text);
    assert_setting(profile, "data.lookback", "7");
    assert_setting(profile, "model.layers", "3");
    assert_string_equal(profile->data->path, "x");
    if (cleat_profile_check(profile, &error)) fail_msg("%s", error.text);
    assert_int_equal(cleat_profile_set(profile, "model.type=series_lstm", &error), CLEAT_OK);
    assert_setting(profile, "data.val_fraction", "0.25");
    assert_setting(profile, "model.layers", "3");
    assert_int_equal(cleat_profile_check(profile, &error), CLEAT_ERR_PROFILE);
    expect_contains(error.text, "test.ini:7: d_model = 64: does not apply to model.type series_lstm");
    char *text_of_lstm = dump(profile);
    assert_null(strstr(text_of_lstm, "d_model"));
    free(text_of_lstm);
    assert_int_equal(cleat_profile_set(profile, "model.type=series_transformer", &error), CLEAT_OK);
    if (cleat_profile_check(profile, &error)) fail_msg("%s", error.text);
    assert_setting(profile, "model.d_model", "64");
    assert_int_equal(cleat_profile_set(profile, "model.type=series", &error), CLEAT_ERR_PROFILE);
    assert_setting(profile, "model.type", "series_transformer");
    assert_int_equal(cleat_profile_set(profile, "data.horizon=0", &error), CLEAT_ERR_PROFILE);
    /* a key of another family */
    assert_int_equal(cleat_profile_set(profile, "model.hidden=0", &error), CLEAT_ERR_PROFILE);
    cleat_profile_destroy(profile);
}

static void a_clone_shares_nothing(void **state) {
    (void)state;
    cleat_profile *profile = make(), *copy = NULL;
    cleat_error error = {0};
    const char text[] =
        "[model]\ntype = text_tagger\n[data]\npath = x\nlabels = PER LOC\nlookback = 5\n[train]\nepochs = 3\n";
    if (read_text(profile, text, &error)) fail_msg("%s", error.text);
    profile->data->max_length = 77; /* as in a run */
    profile->train.batch_size = 4;
    assert_int_equal(cleat_profile_clone(profile, &copy, &error), CLEAT_OK);
    char *whole = dump(profile), *same = dump(copy);
    assert_string_equal(whole, same);
    assert_int_equal(cleat_profile_set(profile, "data.labels=ORG", &error), CLEAT_OK);
    cleat_profile_destroy(profile);
    assert_setting(copy, "data.labels", "PER LOC");
    assert_int_equal(cleat_profile_check(copy, &error), CLEAT_ERR_PROFILE);
    expect_contains(error.text, "test.ini:6: lookback = 5");
    cleat_profile_shorten(copy, 50);
    assert_setting(copy, "data.max_length", "50");
    cleat_profile_destroy(copy);
    free(whole);
    free(same);
}

/* --- unusual files -------------------------------------------------------------------------------------------- */

static void odd_line_ends_and_marks_are_read(void **state) {
    (void)state;
    cleat_profile *profile = make();
    cleat_error error = {0};
    if (read_text(profile, "\xEF\xBB\xBF[train]\r\nepochs = 7\r\n\r\n; end", &error) != CLEAT_OK)
        fail_msg("%s", error.text);
    assert_int_equal(profile->train.epochs, 7);
    assert_int_equal(read_text(profile, "", &error), CLEAT_OK);
    assert_int_equal(read_text(profile, "[train]\nepochs=9", &error), CLEAT_OK);
    assert_int_equal(profile->train.epochs, 9);
    const char zero[] = "[train]\nepochs = 1\0 2\n";
    assert_int_equal(cleat_profile_read_text(profile, "z.ini", zero, sizeof zero - 1, &error), CLEAT_ERR_PROFILE);
    expect_contains(error.text, "z.ini:2");
    expect_contains(error.text, "zero byte");
    assert_int_equal(cleat_profile_read(profile, "/nonexistent/x.ini", &error), CLEAT_ERR_NOT_FOUND);
    assert_int_equal(cleat_profile_read(profile, "/", &error), CLEAT_ERR_IO);
    cleat_profile_destroy(profile);
}

static void long_lines_are_refused_and_long_values_continue(void **state) {
    (void)state;
    cleat_profile *profile = make();
    cleat_error error = {0};
    char text[4096], path[CLEAT_PROFILE_TEXT];
    memset(path, 0, sizeof path);
    for (size_t length = 1; length < sizeof path; length += length < 420 ? 1 : 97) {
        for (size_t i = 0; i < length; ++i) path[i] = i % 11 == 3 ? ' ' : i % 7 == 5 ? ';' : (char)('a' + i % 26);
        for (size_t i = 1; i < length; ++i)
            if (path[i] == ';' && path[i - 1] == ' ') path[i] = '#';
        path[length - 1] = 'z';
        path[length] = 0;
        char assignment[CLEAT_PROFILE_TEXT + 16];
        snprintf(assignment, sizeof assignment, "data.path=%s", path);
        if (cleat_profile_set(profile, assignment, &error) != CLEAT_OK) fail_msg("%s", error.text);
        expect_round_trip(profile);
        snprintf(text, sizeof text, "[data]\npath = %s\n", path);
        cleat_status status = read_text(profile, text, &error);
        assert_int_equal(status, length + 7 <= 196 ? CLEAT_OK : CLEAT_ERR_PROFILE);
        if (status) expect_contains(error.text, "backslash");
        if (!status) assert_string_equal(profile->data->path, path);
    }
    assert_int_equal(read_text(profile, "[data]\npath = a/\\\n  b/\\\nc\nmax_length = 5\n", &error), CLEAT_OK);
    assert_string_equal(profile->data->path, "a/b/c");
    assert_int_equal(profile->data->max_length, 5);
    assert_int_equal(read_text(profile, "[data]\n# comment \\\npath = q\n", &error), CLEAT_OK);
    assert_string_equal(profile->data->path, "q");
    cleat_profile_destroy(profile);
}

static void damaged_files_never_crash(void **state) {
    (void)state;
    cleat_profile *whole = make();
    char *text = dump(whole);
    size_t size = strlen(text);
    uint64_t random = 1442695040888963407u;
    for (int i = 0; i < 2000; ++i) {
        cleat_profile *profile = make();
        cleat_error error = {0};
        char *damaged = malloc(size);
        assert_non_null(damaged);
        memcpy(damaged, text, size);
        for (int j = 0; j < 4; ++j) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            damaged[(random >> 33) % size] = (char)(random >> 24);
        }
        size_t part = (random >> 40) % (size + 1);
        if (cleat_profile_read_text(profile, "d.ini", damaged, part, &error) != CLEAT_OK)
            expect_contains(error.text, "d.ini:");
        free(damaged);
        cleat_profile_destroy(profile);
    }
    free(text);
    cleat_profile_destroy(whole);
}

static void every_failing_allocation_is_survived(void **state) {
    (void)state;
    for (long n = 1;; ++n) {
        cleat_profile *profile = NULL, *copy = NULL;
        char *text = NULL;
        cleat_fail_allocation(n);
        cleat_status status = cleat_profile_create(&profile, NULL);
        if (!status) status = read_text(profile, minimal, NULL);
        if (!status) status = cleat_profile_set(profile, "model.heads=16", NULL);
        if (!status) status = cleat_profile_set(profile, "model.type=text_classifier", NULL);
        if (!status) status = cleat_profile_clone(profile, &copy, NULL);
        if (!status) status = cleat_profile_dump(profile, &text, NULL);
        cleat_fail_allocation(0);
        free(text);
        cleat_profile_destroy(profile);
        cleat_profile_destroy(copy);
        if (!status) {
            assert_true(n > 5);
            return;
        }
        assert_int_equal(status, CLEAT_ERR_MEMORY);
    }
}

/* --- the rest ------------------------------------------------------------------------------------------------- */

static void the_hash_sees_what_computes_and_nothing_else(void **state) {
    (void)state;
    cleat_profile *then = make(), *now = make();
    char a[33], b[33], text[256];
    cleat_profile_hash(then, a);
    assert_int_equal(cleat_profile_set(now, "loader.num_workers=3", NULL), CLEAT_OK);
    assert_int_equal(cleat_profile_set(now, "run.out=elsewhere", NULL), CLEAT_OK);
    cleat_profile_hash(now, b);
    assert_string_equal(a, b);
    assert_int_equal(cleat_profile_differences(then, now, text, sizeof text), 0);
    assert_int_equal(cleat_profile_set(now, "train.epochs=3", NULL), CLEAT_OK);
    assert_int_equal(cleat_profile_set(now, "run.seed=2", NULL), CLEAT_OK);
    cleat_profile_hash(now, b);
    assert_string_not_equal(a, b);
    assert_int_equal(cleat_profile_differences(then, now, text, sizeof text), 2);
    assert_string_equal(text, "train.epochs = 3 (was 40), run.seed = 2 (was 1)");
    assert_int_equal(cleat_profile_differences(then, now, text, 10), 2);
    assert_true(strlen(text) < 10);
    cleat_profile_destroy(then);
    cleat_profile_destroy(now);
}

/* The hash of the defaults is that of version 0.1.0, whose runs can be resumed. Defaults of added keys are
 * not hashed (`later` of their rows). */
static void newer_keys_leave_old_hashes(void **state) {
    (void)state;
    cleat_profile *profile = make();
    char hash[33], before[33];
    cleat_profile_hash(profile, before);
    assert_string_equal(before, "bba4b557399b7c0812863a6cbbc725a2");
    assert_int_equal(cleat_profile_set(profile, "train.warmup_ratio=0.1", NULL), CLEAT_OK);
    cleat_profile_hash(profile, hash);
    assert_string_not_equal(hash, before);
    assert_int_equal(cleat_profile_set(profile, "train.warmup_ratio=0", NULL), CLEAT_OK);
    cleat_profile_hash(profile, hash);
    assert_string_equal(hash, before);
    cleat_profile_destroy(profile);
}

/* A model trained with another value of these keys would forecast or read different data. */
static void checkpoints_keep_what_a_sample_is(void **state) {
    (void)state;
    static const struct {
        const char *type, *key;
    } rows[] = {{"series_lstm", "data.season"},    {"series_lstm", "data.anchor"},
                {"text_tagger", "data.lowercase"}, {"text_classifier", "data.lowercase"},
                {"emberformer", "data.ahead"},     {"emberformer", "data.history"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_profile *profile = make();
        char type[64], name[64];
        bool found = false;
        snprintf(type, sizeof type, "model.type=%s", rows[i].type);
        assert_int_equal(cleat_profile_set(profile, type, NULL), CLEAT_OK);
        for (size_t k = 0; !found && cleat_profile_shaping_key(profile, k, name, sizeof name); ++k)
            found = strcmp(name, rows[i].key) == 0;
        if (!found) fail_msg("%s: %s is not kept", rows[i].type, rows[i].key);
        cleat_profile_destroy(profile);
    }
}

/* The resolved profile of a run with the largest step. */
static void the_largest_step_loads_again(void **state) {
    (void)state;
    cleat_profile *p = make();
    cleat_error error = {0};
    assert_int_equal(read_text(p, minimal, &error), CLEAT_OK);
    p->train.effective_batch_size = p->train.batch_size = MAX_SAMPLES;
    p->train.gradient_accumulation_steps = 1;
    p->data->buckets = (cleat_int_list){.count = 1, .values = {1200}};
    p->train.bucket_batch_sizes = (cleat_int_list){.count = 1, .values = {MAX_SAMPLES}};
    if (cleat_profile_check(p, &error) != CLEAT_OK) fail_msg("%s", error.text);
    expect_round_trip(p);
    p->train.batch_size = 1;
    p->train.bucket_batch_sizes.values[0] = 1;
    p->train.gradient_accumulation_steps = MAX_SAMPLES;
    if (cleat_profile_check(p, &error) != CLEAT_OK) fail_msg("%s", error.text);
    expect_round_trip(p);
    cleat_profile_destroy(p);
}

/* Sequences longer than the last bucket may occur in predictions only; training with one names it. */
static void buckets_may_end_below_the_maximum_length(void **state) {
    (void)state;
    cleat_profile *p = make();
    cleat_error error = {0};
    assert_int_equal(read_text(p, "[data]\npath = x\nmax_length = 1200\nbuckets = 64, 128\n", &error), CLEAT_OK);
    if (cleat_profile_check(p, &error) != CLEAT_OK) fail_msg("%s", error.text);
    expect_round_trip(p);
    cleat_profile_destroy(p);
}

static void effective_batch_follows_what_is_given(void **state) {
    (void)state;
    cleat_profile *p = make();
    assert_int_equal(cleat_profile_effective_batch(p), 8);
    p->train.batch_size = 6;
    assert_int_equal(cleat_profile_effective_batch(p), 6);
    p->train.gradient_accumulation_steps = 4;
    assert_int_equal(cleat_profile_effective_batch(p), 24);
    p->train.effective_batch_size = 48;
    assert_int_equal(cleat_profile_effective_batch(p), 48);
    assert_false(cleat_profile_metric_ascends(p));
    assert_int_equal(cleat_profile_set(p, "run.metric=lddt", NULL), CLEAT_OK);
    assert_true(cleat_profile_metric_ascends(p));
    cleat_profile_destroy(p);
}

static void help_names_every_key(void **state) {
    (void)state;
    char *text = NULL;
    assert_int_equal(cleat_profile_help(&text, NULL), CLEAT_OK);
    for (const cleat_key *key = all_keys()->keys; key->name; ++key) {
        char line[256];
        snprintf(line, sizeof line, "\n  %s = %s\n      %s\n", key->name, key->initial, key->help);
        expect_contains(text, line);
    }
    free(text);
}

static void shipped_profiles_load(void **state) {
    (void)state;
    const char *const paths[] = {source_path("profiles/rna.ini"), source_path("profiles/rna_small.ini")};
    const char *sets[] = {"run.seed=5", "data.path=x"};
    for (size_t i = 0; i < 2; ++i) {
        cleat_profile *profile = NULL;
        cleat_error error = {0};
        if (cleat_profile_load(paths[i], sets, 2, &profile, &error) != CLEAT_OK) fail_msg("%s", error.text);
        assert_int_equal(profile->run.seed, 5);
        expect_round_trip(profile);
        cleat_profile_destroy(profile);
    }
}

static void near_names_are_found(void **state) {
    (void)state;
    static const char *const names[] = {"epochs", "heads", "layers", "lr"};
    assert_string_equal(cleat_nearest_name("epoch", names, 4), "epochs");
    assert_string_equal(cleat_nearest_name("hedas", names, 4), "heads");
    assert_string_equal(cleat_nearest_name("rl", names, 4), "lr");
    assert_null(cleat_nearest_name("", names, 4));
    assert_null(cleat_nearest_name("completely different", names, 4));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_schema_is_sound),
        cmocka_unit_test(every_key_keeps_its_bounds),
        cmocka_unit_test(values_arrive_in_their_fields),
        cmocka_unit_test(a_time_budget_has_sessions),
        cmocka_unit_test(periods_may_be_fractions_of_a_second),
        cmocka_unit_test(keys_can_be_listed),
        cmocka_unit_test(any_float_survives_the_dump),
        cmocka_unit_test(files_with_errors_are_refused_with_their_line),
        cmocka_unit_test(assignments_obey_the_same_rules),
        cmocka_unit_test(contradictions_name_both_lines),
        cmocka_unit_test(all_weights_zero_are_refused),
        cmocka_unit_test(a_path_is_required_and_overrides_are_named),
        cmocka_unit_test(every_family_keeps_its_settings),
        cmocka_unit_test(the_type_may_come_last),
        cmocka_unit_test(a_clone_shares_nothing),
        cmocka_unit_test(odd_line_ends_and_marks_are_read),
        cmocka_unit_test(long_lines_are_refused_and_long_values_continue),
        cmocka_unit_test(damaged_files_never_crash),
        cmocka_unit_test(every_failing_allocation_is_survived),
        cmocka_unit_test(the_hash_sees_what_computes_and_nothing_else),
        cmocka_unit_test(newer_keys_leave_old_hashes),
        cmocka_unit_test(checkpoints_keep_what_a_sample_is),
        cmocka_unit_test(the_largest_step_loads_again),
        cmocka_unit_test(buckets_may_end_below_the_maximum_length),
        cmocka_unit_test(effective_batch_follows_what_is_given),
        cmocka_unit_test(help_names_every_key),
        cmocka_unit_test(shipped_profiles_load),
        cmocka_unit_test(near_names_are_found),
    };
    return cmocka_run_group_tests(tests, open_any, close_any);
}
