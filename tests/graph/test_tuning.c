/* Tuning tables: keys, selection of variants, text format; and nodes extracted from their graphs. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/memory.h"
#include "core/philox.h"
#include "fake_ops.h"
#include "graph/extract_node.h"
#include "graph/tuning.h"
#include "plan_check.h"

/* --- an op with variants -------------------------------------------------------------------------------------- */

typedef struct duel_attr {
    int32_t unwilling; /* bit i: variant i refuses */
    int32_t other;     /* another attribute */
} duel_attr;

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[0];
    return cleat_set_output(node, 0, x->dtype, x->rank, x->shape, error);
}

static const char *refuse(const cleat_node *node, int variant) {
    return ((const duel_attr *)(const void *)node->attr)->unwilling >> variant & 1 ? "not today" : NULL;
}
static const char *refuse_0(const cleat_node *node, const cleat_device_facts *facts) {
    (void)facts;
    return refuse(node, 0);
}
static const char *refuse_1(const cleat_node *node, const cleat_device_facts *facts) {
    (void)facts;
    return refuse(node, 1);
}
static const char *refuse_2(const cleat_node *node, const cleat_device_facts *facts) {
    (void)facts;
    return refuse(node, 2);
}

static int64_t workspace(const cleat_node *node, const cleat_device_facts *facts) {
    (void)facts;
    return 3 * cleat_tensor_bytes(node->out[0]);
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    (void)node, (void)binder;
}

static const cleat_variant variants[] = {{.name = "first", .refuse = refuse_0, .bind = bind},
                                         {.name = "second", .refuse = refuse_1, .workspace = workspace, .bind = bind},
                                         {.name = "third one", .refuse = refuse_2, .bind = bind},
                                         {0}};
static const cleat_op duel = {.name = "duel",
                              .optional_inputs = CLEAT_EVERY_INPUT,
                              .infer = infer,
                              .variants = variants,
                              .inplace_inputs = CLEAT_IN(0)};

/* --- test fixture --------------------------------------------------------------------------------------------- */

typedef struct world {
    cleat_store *store;
    cleat_graph *graph;
} world;

static world world_create(void) {
    world w;
    assert_int_equal(cleat_store_create(&w.store, NULL), CLEAT_OK);
    assert_int_equal(cleat_graph_create(w.store, "world", &w.graph, NULL), CLEAT_OK);
    return w;
}

static void world_destroy(world *w) {
    cleat_graph_destroy(w->graph);
    cleat_store_destroy(w->store);
}

static const cleat_device_facts facts = {.name = "Fake 9000", .alignment = 256, .max_allocation = (int64_t)1 << 40};

static cleat_tensor *input(world *w, const char *name, cleat_dtype dtype, int64_t rows, int64_t columns) {
    return cleat_input(w->graph, name, dtype, 2, (int64_t[]){rows, columns});
}

static cleat_node *emit(world *w, cleat_tensor *x, cleat_tensor *bias, duel_attr attr) {
    cleat_node *node = cleat_emit(w->graph, &duel, &attr, sizeof attr, (cleat_tensor *[]){x, bias, NULL}, 3);
    assert_non_null(node);
    return node;
}

static cleat_tuning_table *table(void) {
    cleat_tuning_table *made = NULL;
    assert_int_equal(cleat_tuning_create(&made, NULL), CLEAT_OK);
    snprintf(made->device, sizeof made->device, "Fake 9000, driver 1");
    snprintf(made->kernels, sizeof made->kernels, "0123abcd");
    snprintf(made->date, sizeof made->date, "2026-11-20");
    return made;
}

static void set(cleat_tuning_table *tuning, const char *key, const char *variant) {
    cleat_error error;
    if (cleat_tuning_set(tuning, key, variant, &error) != CLEAT_OK) fail_msg("%s", error.text);
}

static void set_node(cleat_tuning_table *tuning, const cleat_node *node, const char *variant) {
    char key[CLEAT_TUNING_KEY];
    cleat_tuning_key(node, key);
    set(tuning, key, variant);
}

/* --- keys ----------------------------------------------------------------------------------------------------- */

static void keys_say_types_and_shapes(void **state) {
    (void)state;
    world w = world_create();
    char key[CLEAT_TUNING_KEY], other[CLEAT_TUNING_KEY];
    cleat_tensor *x = input(&w, "x", CLEAT_F32, 3, 1200), *half = input(&w, "half", CLEAT_F16, 3, 1200);
    cleat_tuning_key(emit(&w, x, NULL, (duel_attr){0}), key);
    assert_string_equal(key, "duel f32[3,1200] - - -> f32[3,1200]");
    cleat_tuning_key(emit(&w, half, x, (duel_attr){0}), key);
    assert_string_equal(key, "duel f16[3,1200] f32[3,1200] - -> f16[3,1200]");
    /* attributes are not part of the key */
    cleat_tuning_key(emit(&w, half, x, (duel_attr){.other = 7}), other);
    assert_string_equal(key, other);
    world_destroy(&w);
}

/* The maximum number of tensors of a node, with five large extents each. */
static void the_longest_key_is_whole(void **state) {
    (void)state;
    cleat_tensor large = {.dtype = CLEAT_BF16, .rank = CLEAT_MAX_RANK};
    cleat_node node = {.op = &duel, .n_in = CLEAT_MAX_IN, .n_out = CLEAT_MAX_OUT};
    char key[CLEAT_TUNING_KEY];
    for (int i = 0; i < CLEAT_MAX_RANK; ++i) large.shape[i] = INT64_MAX;
    for (int i = 0; i < CLEAT_MAX_IN; ++i) node.in[i] = &large;
    for (int i = 0; i < CLEAT_MAX_OUT; ++i) node.out[i] = &large;
    cleat_tuning_key(&node, key);
    size_t tensor = strlen(" bf16[9223372036854775807]") + 4 * strlen(",9223372036854775807");
    assert_int_equal(strlen(key), strlen("duel ->") + (CLEAT_MAX_IN + CLEAT_MAX_OUT) * tensor);
    assert_int_equal(key[strlen(key) - 1], ']');
}

/* --- selection ------------------------------------------------------------------------------------------------ */

static void assert_chosen(const cleat_tuning_table *tuning, const cleat_node *node, const char *name) {
    const cleat_variant *variant = cleat_choose_tuned((void *)tuning, node, &facts);
    if (!name) {
        assert_null(variant);
        return;
    }
    assert_non_null(variant);
    assert_string_equal(variant->name, name);
}

static void what_is_listed_serves(void **state) {
    (void)state;
    world w = world_create();
    cleat_tuning_table *tuning = table();
    cleat_tensor *x = input(&w, "x", CLEAT_F32, 3, 5), *y = input(&w, "y", CLEAT_F32, 3, 6);
    cleat_node *listed = emit(&w, x, NULL, (duel_attr){0}), *not_listed = emit(&w, y, NULL, (duel_attr){0});
    assert_chosen(NULL, listed, "first");
    assert_chosen(tuning, listed, "first");
    set_node(tuning, listed, "third one");
    assert_chosen(tuning, listed, "third one");
    assert_chosen(tuning, not_listed, "first");
    set_node(tuning, listed, "second");
    assert_int_equal(tuning->count, 1);
    assert_chosen(tuning, listed, "second");
    /* The same key, but the variant refuses this node: the first usable one is selected. */
    assert_chosen(tuning, emit(&w, x, NULL, (duel_attr){.unwilling = 2}), "first");
    assert_chosen(tuning, emit(&w, x, NULL, (duel_attr){.unwilling = 3}), "third one");
    assert_chosen(tuning, emit(&w, x, NULL, (duel_attr){.unwilling = 7}), NULL);
    set_node(tuning, listed, "turbo"); /* unknown variant */
    assert_chosen(tuning, listed, "first");
    cleat_tuning_destroy(tuning);
    world_destroy(&w);
}

/* Compares lookups with a list searched from its end. */
static void many_entries_are_found(void **state) {
    (void)state;
    enum { ENTRIES = 300 };
    cleat_random random = cleat_random_stream(4, 0, 0);
    static char keys[ENTRIES][48], names[ENTRIES][16];
    cleat_tuning_table *tuning = table();
    for (int i = 0; i < ENTRIES; ++i) {
        snprintf(keys[i], sizeof keys[i], "op f32[%u] -> f32[1]", cleat_random_below(&random, 150));
        snprintf(names[i], sizeof names[i], "v%u", cleat_random_below(&random, 1000));
        set(tuning, keys[i], names[i]);
        for (int k = 0; k <= i; ++k) {
            int last = i;
            while (strcmp(keys[last], keys[k]) != 0) --last;
            assert_string_equal(cleat_tuning_get(tuning, keys[k]), names[last]);
        }
    }
    for (size_t i = 1; i < tuning->count; ++i) assert_true(strcmp(tuning->items[i - 1].key, tuning->items[i].key) < 0);
    assert_true(tuning->count <= 150);
    assert_null(cleat_tuning_get(tuning, "op f32[150] -> f32[1]"));
    assert_null(cleat_tuning_get(NULL, "op f32[1] -> f32[1]"));
    cleat_tuning_destroy(tuning);
}

/* --- plans ---------------------------------------------------------------------------------------------------- */

static cleat_plan *plan_with(world *w, const cleat_tuning_table *tuning) {
    cleat_plan *plan = NULL;
    cleat_error error = {0};
    if (cleat_plan_create_with(&w->graph, 1, &facts, cleat_choose_tuned, (void *)tuning, &plan, &error) != CLEAT_OK)
        fail_msg("%s", error.text);
    if (cleat_plan_check(plan, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return plan;
}

static void tuned_plans_are_sound(void **state) {
    (void)state;
    enum { NODES = 24 };
    static const char *const names[] = {"first", "second", "third one", "turbo"};
    cleat_random random = cleat_random_stream(9, 0, 0);
    for (int round = 0; round < 20; ++round) {
        world w = world_create();
        cleat_tuning_table *tuning = table();
        const char *expected[NODES];
        size_t gone = 0, listed = 0;
        for (int i = 0; i < NODES; ++i) { /* every node has a different shape and therefore a separate key */
            char name[CLEAT_NAME];
            snprintf(name, sizeof name, "x%d", i);
            cleat_node *node = emit(&w, input(&w, name, CLEAT_F32, i + 1, 40), NULL, (duel_attr){0});
            uint32_t pick = cleat_random_below(&random, 5);
            cleat_retain(w.graph, node->out[0]);
            expected[i] = pick < 3 ? names[pick] : "first";
            if (pick == 4) continue;
            set_node(tuning, node, names[pick]);
            ++listed;
            gone += pick == 3;
        }
        cleat_plan *plan = plan_with(&w, tuning), *again = plan_with(&w, tuning), *plain = plan_with(&w, NULL);
        for (int i = 0; i < NODES; ++i) assert_string_equal(plan->layouts[0].variants[i]->name, expected[i]);
        assert_int_equal(cleat_plan_bytes(plan), cleat_plan_bytes(again));
        assert_true(cleat_plan_bytes(plain) <= cleat_plan_bytes(plan)); /* only "second" needs a workspace */
        cleat_tuning_use use = cleat_tuning_count_use(tuning, plan);
        assert_int_equal(use.nodes, NODES);
        assert_int_equal(use.listed, listed);
        assert_int_equal(use.gone, gone);
        assert_string_equal(use.example, gone ? "duel: turbo" : "");
        cleat_plan_destroy(plan);
        cleat_plan_destroy(again);
        cleat_plan_destroy(plain);
        cleat_tuning_destroy(tuning);
        world_destroy(&w);
    }
}

/* --- text ----------------------------------------------------------------------------------------------------- */

static cleat_tuning_table *example(void) {
    cleat_tuning_table *tuning = table();
    set(tuning, "linear f32[8,4] f32[2,4] - - -> f32[8,2]", "cpu");
    set(tuning, "attention f32[1,8,12] i32[1] -> f32[1,8,4] f32[1,2,8]", "cpu");
    set(tuning, "adamw ->", "one pass");
    return tuning;
}

static char *print(const cleat_tuning_table *tuning) {
    char *text = NULL;
    assert_int_equal(cleat_tuning_format(tuning, &text, NULL), CLEAT_OK);
    return text;
}

static void text_brings_the_table_back(void **state) {
    (void)state;
    cleat_tuning_table *tuning = table(), *read = NULL;
    cleat_error error = {0};
    char hash[3][9];
    set(tuning, "linear f32[8,4] f32[2,4] - - -> f32[8,2]", "cpu");
    set(tuning, "attention f32[1,8,12] i32[1] -> f32[1,8,4] f32[1,2,8]", "one pass");
    snprintf(tuning->match, sizeof tuning->match, "Fake 9000|Fake 9000 Ti");
    snprintf(tuning->shape, sizeof tuning->shape, "GPU, groups of 256, 4 lanes");
    char *text = print(tuning);
    if (cleat_tuning_parse("FILE", text, strlen(text), &read, &error) != CLEAT_OK) fail_msg("%s", error.text);
    char *again = print(read);
    assert_string_equal(text, again);
    assert_int_equal(read->count, 2);
    assert_string_equal(read->device, tuning->device);
    assert_string_equal(read->kernels, tuning->kernels);
    assert_string_equal(read->date, tuning->date);
    assert_string_equal(read->match, tuning->match);
    assert_string_equal(read->shape, tuning->shape);
    assert_string_equal(cleat_tuning_get(read, "attention f32[1,8,12] i32[1] -> f32[1,8,4] f32[1,2,8]"), "one pass");
    assert_int_equal(cleat_tuning_hash(tuning, hash[0], NULL), CLEAT_OK);
    read->date[0] = '3'; /* the hash covers the selections only */
    assert_int_equal(cleat_tuning_hash(read, hash[1], NULL), CLEAT_OK);
    set(read, "linear f32[8,4] f32[2,4] - - -> f32[8,2]", "plain");
    assert_int_equal(cleat_tuning_hash(read, hash[2], NULL), CLEAT_OK);
    assert_int_equal(strlen(hash[0]), 8);
    assert_string_equal(hash[0], hash[1]);
    assert_string_not_equal(hash[0], hash[2]);
    cleat_free(text);
    cleat_free(again);
    cleat_tuning_destroy(tuning);
    cleat_tuning_destroy(read);
}

static void blanks_and_comments_do_not_count(void **state) {
    (void)state;
    static const char text[] = "# by hand\r\n [tuned]\ndevice = a = b\nkernels = k\n\tdate = today \n; x\n[choices]\n\n"
                               "  add f32[1] f32[1]  -> f32[1] =  fast one\t\r\nadd f32[2] -> f32[2] = slow";
    cleat_tuning_table *read = NULL;
    cleat_error error = {0};
    if (cleat_tuning_parse("FILE", text, sizeof text - 1, &read, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_int_equal(read->count, 2);
    assert_string_equal(read->device, "a = b");
    assert_string_equal(read->date, "today");
    assert_string_equal(cleat_tuning_get(read, "add f32[1] f32[1]  -> f32[1]"), "fast one");
    assert_string_equal(cleat_tuning_get(read, "add f32[2] -> f32[2]"), "slow");
    cleat_tuning_destroy(read);
}

/* Valid parameters: 64 x 64 tiles of 8 x 8 work-items, and a direct kernel of 32 x 32. */
static const cleat_clblast_parameters sound = {
    {0, 1, 16, 2, 8, 8, 64, 8, 8, 64, 1, 1, 0, 0, 4, 4, 2, 8, 8, 8, 8, 1, 1, 4, 4, 32, 704}};

static void clblasts_parameters_are_kept(void **state) {
    (void)state;
    cleat_tuning_table *tuning = example(), *read = NULL;
    cleat_error error = {0};
    char hash[2][9];
    assert_int_equal(cleat_tuning_hash(tuning, hash[0], NULL), CLEAT_OK);
    tuning->has_clblast = true;
    tuning->clblast = sound;
    char *text = print(tuning);
    assert_int_equal(cleat_tuning_hash(tuning, hash[1], NULL), CLEAT_OK);
    assert_string_not_equal(hash[0], hash[1]);
    if (cleat_tuning_parse("FILE", text, strlen(text), &read, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_true(read->has_clblast);
    assert_memory_equal(&read->clblast, &sound, sizeof sound);
    assert_int_equal(read->count, tuning->count);
    cleat_tuning_destroy(read);
    cleat_free(text);

    tuning->clblast.values[CLEAT_CLBLAST_MWG] = 48; /* parses, but CLBlast cannot use it */
    text = print(tuning);
    read = NULL;
    assert_int_equal(cleat_tuning_parse("FILE", text, strlen(text), &read, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "MWG and NWG must divide 128"));
    assert_null(read);
    cleat_free(text);
    cleat_tuning_destroy(tuning);
}

/* Each rule is violated by one value; a value beyond the limits of a device is refused for that device
 * only. */
static void unsound_parameters_are_refused(void **state) {
    (void)state;
    static const struct {
        cleat_clblast_parameter which;
        int32_t value;
        const char *says;
    } rows[] = {
        {CLEAT_CLBLAST_GEMMK, 1, "GEMMK must be 0"},
        {CLEAT_CLBLAST_KREG, 4, "KWG * KREG must divide 32"},
        {CLEAT_CLBLAST_KWG, 64, "KWG * KREG must divide 32"},
        {CLEAT_CLBLAST_KWI, 3, "KWI must divide"},
        {CLEAT_CLBLAST_MWG, 256, "must divide 128"},
        {CLEAT_CLBLAST_NWG, 0, "out of range"},
        {CLEAT_CLBLAST_MDIMC, 64, "MDIMC * VWM"},
        {CLEAT_CLBLAST_NDIMC, 64, "NDIMC * VWN"},
        {CLEAT_CLBLAST_MDIMA, 64, "MDIMA * VWM"},
        {CLEAT_CLBLAST_NDIMB, 64, "NDIMB * VWN"},
        {CLEAT_CLBLAST_MDIMA, 2, "MDIMC * NDIMC / MDIMA"},
        {CLEAT_CLBLAST_NDIMB, 2, "MDIMC * NDIMC / NDIMB"},
        {CLEAT_CLBLAST_SA, 2, "must be 0 or 1"},
        {CLEAT_CLBLAST_PADB, -1, "must be 0 or 1"},
        {CLEAT_CLBLAST_VWM, 3, "1, 2, 4 or 8"},
        {CLEAT_CLBLAST_VWND, 16, "1, 2, 4 or 8"},
        {CLEAT_CLBLAST_KWID, 5, "KWID must divide"},
        {CLEAT_CLBLAST_MDIMCD, 16, "MDIMCD * VWMD"},
        {CLEAT_CLBLAST_NDIMCD, 16, "NDIMCD * VWND"},
        {CLEAT_CLBLAST_MDIMAD, 16, "MDIMAD * VWMD"},
        {CLEAT_CLBLAST_NDIMBD, 16, "NDIMBD * VWND"},
        {CLEAT_CLBLAST_MDIMAD, 1, "MDIMCD * NDIMCD / MDIMAD"},
        {CLEAT_CLBLAST_NDIMBD, 1, "MDIMCD * NDIMCD / NDIMBD"},
        {CLEAT_CLBLAST_XGEMM_MIN_INDIRECT_SIZE, 0, "out of range"},
    };
    cleat_device_facts device = {.max_work_group = 64, .local_memory = 8448};
    assert_null(cleat_clblast_refuse(&sound, NULL));
    assert_null(cleat_clblast_refuse(&sound, &device)); /* 4 x 32 x (33 + 33) bytes, and 4 x 16 x (64 + 64) */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_clblast_parameters broken = sound;
        broken.values[rows[i].which] = rows[i].value;
        const char *reason = cleat_clblast_refuse(&broken, NULL);
        if (!reason || !strstr(reason, rows[i].says))
            fail_msg("%s = %d: '%s'", cleat_clblast_names[rows[i].which], (int)rows[i].value, reason ? reason : "");
    }
    --device.local_memory;
    assert_non_null(strstr(cleat_clblast_refuse(&sound, &device), "local memory"));
    ++device.local_memory;
    --device.max_work_group;
    assert_non_null(strstr(cleat_clblast_refuse(&sound, &device), "work-group limit"));
}

/* --- shipped tables ------------------------------------------------------------------------------------------- */

static void shipped_answers_fill_gaps(void **state) {
    (void)state;
    cleat_tuning_table *own = table(), *shipped = table(), *empty = table();
    char text[CLEAT_TUNING_TEXT];
    set(own, "a -> x", "mine");
    set(shipped, "a -> x", "theirs");
    set(shipped, "b -> x", "theirs");
    shipped->has_clblast = true;
    shipped->clblast = sound;
    snprintf(shipped->date, sizeof shipped->date, "2026-10-01");
    assert_int_equal(cleat_tuning_add_shipped(own, "t4", shipped, NULL), CLEAT_OK);
    assert_int_equal(own->count, 2);
    assert_string_equal(cleat_tuning_get(own, "a -> x"), "mine");
    assert_string_equal(cleat_tuning_get(own, "b -> x"), "theirs");
    assert_true(!own->items[0].shipped && own->items[1].shipped);
    assert_false(own->has_clblast); /* local entries were tuned with the built-in parameters of CLBlast */
    cleat_tuning_describe(own, text);
    assert_non_null(strstr(text, "1 choices tuned here on "));
    assert_non_null(strstr(text, " and 1 choices shipped for t4, measured on 2026-10-01"));
    set(own, "b -> x", "mine now");
    assert_null(strstr(cleat_tuning_describe(own, text), "shipped"));

    assert_int_equal(cleat_tuning_add_shipped(empty, "t4", shipped, NULL), CLEAT_OK);
    assert_true(empty->has_clblast && empty->clblast_shipped);
    assert_memory_equal(&empty->clblast, &sound, sizeof sound);
    assert_string_equal(cleat_tuning_describe(empty, text),
                        "2 choices shipped for t4, measured on 2026-10-01, with shipped parameters for CLBlast");
    assert_string_equal(cleat_tuning_describe(NULL, text), "the defaults");
    cleat_tuning_destroy(own);
    cleat_tuning_destroy(shipped);
    cleat_tuning_destroy(empty);
}

#define HEAD "[tuned]\ndevice = d\nkernels = k\ndate = t\n[choices]\n"

static void damaged_text_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "must set device"},
        {"[tuned]\ndevice = d\ndate = t\n[choices]\n", "must set device"},
        {"device = d\n", "FILE:1"},
        {"[tuned]\ndevice = d\ndevice = d\n", "FILE:3: is given twice"},
        {"[tuned]\ncolour = red\n", "FILE:2"},
        {"[tuned]\ndevice =\n", "FILE:2"},
        {"[tuned]\ndate = 2026-11-20 and much more\n", "FILE:2: is too long"},
        {"[fish]\n", "FILE:1: unknown section"},
        {HEAD "add f32[1] -> f32[1]\n", "FILE:6"},
        {HEAD "add f32[1] f32[1] = fast\n", "FILE:6"},
        {HEAD "add -> x = \n", "FILE:6"},
        {HEAD "add -> x = 0123456789012345678901234567890123456789012345678901234567890123456789\n", "FILE:6"},
        {HEAD "add -> x = a\nadd -> x = b\n", "FILE:7: has two choices"},
        {HEAD "[clblast]\nMWG = 64\n", "FILE:6: [clblast] lacks GEMMK"},
        {HEAD "[clblast]\nMWG = 64\nMWG = 64\n", "FILE:8: is given twice"},
        {HEAD "[clblast]\nMWG = many\n", "FILE:7: a whole number"},
        {HEAD "[clblast]\nMWG = 64 \nNWG = -1\n", "FILE:8: a whole number"},
        {HEAD "[clblast]\nMWG = 64x\n", "FILE:7: a whole number"},
        {HEAD "[clblast]\nFISH = 1\n", "FILE:7: CLBlast has no such parameter"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_tuning_table *read = NULL;
        cleat_error error = {0};
        cleat_status status = cleat_tuning_parse("FILE", rows[i].text, strlen(rows[i].text), &read, &error);
        if (status != CLEAT_ERR_FORMAT || !strstr(error.text, rows[i].says))
            fail_msg("row %zu: status %d, '%s'", i, (int)status, error.text);
        assert_null(read);
    }
    static const char zero[] = HEAD "add -> x = a\0b\n";
    cleat_tuning_table *read = NULL;
    assert_int_equal(cleat_tuning_parse("FILE", zero, sizeof zero - 1, &read, NULL), CLEAT_ERR_FORMAT);
}

/* A text truncated at any place, or with any byte changed, is rejected or gives a valid table. */
static void any_bytes_may_come(void **state) {
    (void)state;
    cleat_tuning_table *tuning = example();
    char *text = print(tuning);
    size_t size = strlen(text);
    cleat_random random = cleat_random_stream(2, 0, 0);
    for (size_t i = 0; i < 4 * size; ++i) {
        char *copy = cleat_strdup(text);
        cleat_tuning_table *read = NULL;
        if (i >= size) copy[cleat_random_below(&random, (uint32_t)size)] = (char)cleat_random_below(&random, 256);
        cleat_status status = cleat_tuning_parse("FILE", copy, i < size ? i : size, &read, NULL);
        assert_true(!status || status == CLEAT_ERR_FORMAT);
        assert_true((!status) == (read != NULL));
        if (read) assert_true(read->count <= 3);
        cleat_tuning_destroy(read);
        cleat_free(copy);
    }
    cleat_free(text);
    cleat_tuning_destroy(tuning);
}

static void memory_may_end_anywhere(void **state) {
    (void)state;
    cleat_tuning_table *tuning = example();
    char *text = print(tuning);
    cleat_status status = CLEAT_ERR_MEMORY;
    for (long n = 1; status && n < 100; ++n) {
        cleat_tuning_table *read = NULL;
        cleat_fail_allocation(n);
        status = cleat_tuning_parse("FILE", text, strlen(text), &read, NULL);
        cleat_fail_allocation(0);
        assert_true(!status || (status == CLEAT_ERR_MEMORY && !read));
        cleat_tuning_destroy(read);
    }
    assert_int_equal(status, CLEAT_OK);
    cleat_free(text);
    cleat_tuning_destroy(tuning);
}

/* --- extracted nodes ------------------------------------------------------------------------------------------ */

/* Extracts every node of a graph that has gradients and a persistent tensor changed in place: the key is the
 * same, the plan is valid, and the extracted graph owns all its tensors. */
static void assert_extracted(const cleat_node *node) {
    world w = world_create();
    char key[CLEAT_TUNING_KEY], extracted[CLEAT_TUNING_KEY];
    cleat_node *copy = cleat_extract_node(w.graph, node);
    cleat_error error = {0};
    if (!copy) fail_msg("%s: %s", node->name, w.graph->error.text);
    cleat_tuning_key(node, key);
    cleat_tuning_key(copy, extracted);
    assert_string_equal(key, extracted);
    assert_ptr_equal(copy->op, node->op);
    assert_memory_equal(copy->attr, node->attr, sizeof node->attr);
    for (int i = 0; i < node->n_in; ++i) {
        assert_true((node->in[i] == NULL) == (copy->in[i] == NULL));
        if (copy->in[i]) assert_int_equal(copy->in[i]->role, CLEAT_ROLE_STATE);
        for (int k = 0; k < node->n_in; ++k) assert_true((node->in[i] == node->in[k]) == (copy->in[i] == copy->in[k]));
        for (int k = 0; k < node->n_out; ++k)
            assert_true((node->in[i] == node->out[k]) == (copy->in[i] == copy->out[k]));
    }
    cleat_plan *plan = NULL;
    if (cleat_plan_create(&w.graph, 1, &facts, &plan, &error) != CLEAT_OK) fail_msg("%s", error.text);
    if (cleat_plan_check(plan, &error) != CLEAT_OK) fail_msg("%s: %s", node->name, error.text);
    cleat_plan_destroy(plan);
    world_destroy(&w);
}

static void nodes_can_be_taken_out(void **state) {
    (void)state;
    world w = world_create();
    const fake_transformer shape = {.layers = 2, .rows = 24, .width = 16, .hidden = 32, .heads = 2, .train = true};
    cleat_error error = {0};
    fake_transformer_build(w.graph, &shape);
    int64_t four = 4;
    cleat_tensor *persistent = cleat_state(w.graph, "counter", CLEAT_F32, 1, &four);
    fake_update(w.graph, &w.graph->nodes[0]->out[0], 1, persistent);
    if (cleat_graph_status(w.graph, &error) != CLEAT_OK) fail_msg("%s", error.text);
    size_t taken = 0;
    for (size_t i = 0; i < w.graph->node_count; ++i) {
        if (!w.graph->nodes[i]->op->variants) continue; /* a reshape has no variants to extract */
        assert_extracted(w.graph->nodes[i]);
        ++taken;
    }
    assert_true(taken > 40);
    world_destroy(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_say_types_and_shapes),
        cmocka_unit_test(the_longest_key_is_whole),
        cmocka_unit_test(what_is_listed_serves),
        cmocka_unit_test(many_entries_are_found),
        cmocka_unit_test(tuned_plans_are_sound),
        cmocka_unit_test(text_brings_the_table_back),
        cmocka_unit_test(blanks_and_comments_do_not_count),
        cmocka_unit_test(clblasts_parameters_are_kept),
        cmocka_unit_test(unsound_parameters_are_refused),
        cmocka_unit_test(shipped_answers_fill_gaps),
        cmocka_unit_test(damaged_text_is_refused),
        cmocka_unit_test(any_bytes_may_come),
        cmocka_unit_test(memory_may_end_anywhere),
        cmocka_unit_test(nodes_can_be_taken_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
