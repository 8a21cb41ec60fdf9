/* Card files: every file of the library is valid and matches its own device names; invalid files are refused
 * with file, line and remedy; a file truncated or damaged at any byte is either read or refused. */
/* ctest: quick */
#include "card/file.h"
#include "core/memory.h"
#include "platform/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const double GiB = 1024.0 * 1024 * 1024;

static void expect_contains(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("\"%s\" does not contain \"%s\"", text, part);
}

static cleat_card open_card(const char *name) {
    cleat_card card;
    cleat_error error = {0};
    if (cleat_card_open(name, &card, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return card;
}

/* --- the library's cards ---------------------------------------------------------------------------------------- */

static void every_card_is_plausible(void **state) {
    (void)state;
    assert_true(cleat_card_count() >= 19);
    assert_null(cleat_card_name(cleat_card_count()));
    for (size_t i = 0; i < cleat_card_count(); ++i) {
        cleat_card card = open_card(cleat_card_name(i));
        const cleat_device_facts *facts = &card.facts;
        char source[96];
        print_message("%s\n", card.name);
        if (i > 0) assert_true(strcmp(cleat_card_name(i - 1), cleat_card_name(i)) < 0);
        assert_string_equal(card.name, cleat_card_name(i));
        assert_true(facts->max_allocation <= facts->memory_total && facts->max_allocation >= facts->memory_total / 8);
        assert_true(facts->memory_free > 0 && facts->memory_free <= facts->memory_total);
        assert_true(facts->alignment >= 256 && (facts->alignment & (facts->alignment - 1)) == 0);
        assert_true(facts->local_memory >= 32 * 1024); /* the amount cleat's kernels may use */
        assert_int_equal(facts->work_group, facts->kind == CLEAT_DEVICE_CPU ? 1 : 256);
        assert_int_equal(facts->vector_width, facts->kind == CLEAT_DEVICE_CPU ? 16 : 4);
        assert_int_equal(facts->half_extension && facts->vendor == CLEAT_VENDOR_NVIDIA, false);
        /* f32 operations per byte: from 7 (a CPU) to 82 (RTX 4090) */
        assert_true(card.f32_flops / card.bandwidth > 5 && card.f32_flops / card.bandwidth < 100);
        assert_true(card.f16_flops >= card.f32_flops);
        assert_true(card.matrix_flops == 0 || card.matrix_flops >= card.f16_flops);
        assert_true(card.rates.flops >= 0.25 * card.f32_flops && card.rates.flops <= 0.8 * card.f32_flops);
        assert_true(card.rates.bytes >= 0.5 * card.bandwidth && card.rates.bytes <= 0.95 * card.bandwidth);
        assert_true(card.rates.launch_seconds >= 1e-6 && card.rates.launch_seconds <= 1e-4);
        assert_true(card.workers >= 1 && card.workers <= 16);
        assert_true(card.board_watts == 0 || (card.board_watts >= 50 && card.board_watts <= 1000));
        snprintf(source, sizeof source, "card file %s", card.name);
        assert_string_equal(card.rates.source, source);
        assert_string_equal(facts->memory_source, source);
    }
}

static void the_guides_cards_are_there(void **state) {
    static const struct {
        const char *name;
        double least, most; /* GiB */
    } rows[] = {
        {"k80", 11, 12},     {"p100", 15.5, 16},   {"t4", 14, 16},        {"v100_16", 15.5, 16},
        {"v100_32", 31, 32}, {"rtx3080", 9.5, 10}, {"rtx3090", 23.3, 24}, {"rtx4090", 23.3, 24},
        {"a100_40", 39, 40}, {"a100_80", 78, 80},  {"h100", 78, 80},      {"h200", 138, 141},
        {"mi210", 63, 64},   {"mi300x", 191, 192}, {"rx6600xt", 7.9, 8},  {"rx7900xtx", 23.9, 24},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        double memory = (double)open_card(rows[i].name).facts.memory_total / GiB;
        if (!(memory > rows[i].least && memory <= rows[i].most)) fail_msg("%s has %g GiB", rows[i].name, memory);
    }
    expect_contains(open_card("k80").facts.name, "one die of two");
}

/* --- matching --------------------------------------------------------------------------------------------------- */

static void every_card_matches_itself(void **state) {
    (void)state;
    for (size_t i = 0; i < cleat_card_count(); ++i) {
        cleat_card card = open_card(cleat_card_name(i)), found;
        char parts[sizeof card.match], *rest = parts;
        snprintf(parts, sizeof parts, "%s", card.match);
        for (char *part = strtok_r(parts, "|", &rest); part; part = strtok_r(NULL, "|", &rest)) {
            cleat_device_facts device = card.facts;
            snprintf(device.name, sizeof device.name, "%s", part);
            assert_true(cleat_card_match(&device, &found));
            assert_string_equal(found.name, card.name);
        }
    }
}

/* Cards of the same name differ in memory by more than the match's tolerance. */
static void no_two_cards_are_one(void **state) {
    (void)state;
    for (size_t i = 0; i < cleat_card_count(); ++i)
        for (size_t j = i + 1; j < cleat_card_count(); ++j) {
            cleat_card a = open_card(cleat_card_name(i)), b = open_card(cleat_card_name(j));
            double small = (double)a.facts.memory_total, large = (double)b.facts.memory_total;
            if (a.facts.vendor != b.facts.vendor || a.facts.kind != b.facts.kind) continue;
            assert_true(*a.match && *b.match); /* either vendor or kind may be "any", but not both */
            if (strcmp(a.match, b.match) != 0) {
                char parts[sizeof a.match], *rest = parts;
                snprintf(parts, sizeof parts, "%s", a.match);
                for (char *part = strtok_r(parts, "|", &rest); part; part = strtok_r(NULL, "|", &rest))
                    assert_null(strstr(b.match, part));
            } else {
                assert_true(small < 0.8 * large || large < 0.8 * small);
            }
        }
}

/* A device as listed by a driver, and the name of its card, or NULL. */
typedef struct device_row {
    const char *name;
    cleat_vendor vendor;
    double memory; /* GiB */
    const char *card;
} device_row;

static void devices_are_recognised(void **state) {
    static const device_row rows[] = {
        {"Tesla K80", CLEAT_VENDOR_NVIDIA, 11.17, "k80"},
        {"Tesla T4", CLEAT_VENDOR_NVIDIA, 15.6, "t4"},
        {"tesla t4", CLEAT_VENDOR_NVIDIA, 14.75, "t4"},
        {"NVIDIA T400 4GB", CLEAT_VENDOR_NVIDIA, 14.56, NULL},
        {"Tesla T4", CLEAT_VENDOR_POCL, 14.56, NULL},
        {"Tesla V100-SXM2-16GB", CLEAT_VENDOR_NVIDIA, 15.77, "v100_16"},
        {"Tesla V100-PCIE-32GB", CLEAT_VENDOR_NVIDIA, 31.74, "v100_32"},
        {"NVIDIA A100-SXM4-80GB", CLEAT_VENDOR_NVIDIA, 79.15, "a100_80"},
        {"NVIDIA A100-SXM4-40GB", CLEAT_VENDOR_NVIDIA, 39.39, "a100_40"},
        {"NVIDIA A100-SXM4-80GB MIG 3g.40gb", CLEAT_VENDOR_NVIDIA, 20, NULL},
        {"NVIDIA GeForce RTX 3080", CLEAT_VENDOR_NVIDIA, 9.77, "rtx3080"},
        {"NVIDIA GeForce RTX 3080 Ti", CLEAT_VENDOR_NVIDIA, 11.76, NULL},
        {"NVIDIA GeForce RTX 4090", CLEAT_VENDOR_NVIDIA, 23.6, "rtx4090"},
        {"NVIDIA GeForce RTX 4090 Laptop GPU", CLEAT_VENDOR_NVIDIA, 15.7, NULL},
        {"NVIDIA H100 80GB HBM3", CLEAT_VENDOR_NVIDIA, 79.1, "h100"},
        {"NVIDIA H200", CLEAT_VENDOR_NVIDIA, 139.7, "h200"},
        {"gfx90a:sramecc+:xnack-", CLEAT_VENDOR_AMD, 63.98, "mi210"},
        {"gfx942:sramecc+:xnack-", CLEAT_VENDOR_AMD, 191.5, "mi300x"},
        {"gfx942:sramecc+:xnack-", CLEAT_VENDOR_AMD, 128, NULL},
        {"gfx1032", CLEAT_VENDOR_AMD, 7.98, "rx6600xt"},
        {"gfx1100", CLEAT_VENDOR_AMD, 23.98, "rx7900xtx"},
        {"gfx1100", CLEAT_VENDOR_AMD, 19.98, NULL},
        {"AMD Radeon RX 7900 XTX", CLEAT_VENDOR_AMD, 23.98, "rx7900xtx"},
        {"AMD Radeon RX 7900 XT", CLEAT_VENDOR_AMD, 19.98, NULL},
        {"Intel(R) Arc(TM) A770 Graphics", CLEAT_VENDOR_INTEL, 15.11, "arc_a770"},
        {"Intel(R) Arc(TM) A770 Graphics", CLEAT_VENDOR_INTEL, 12.65, "arc_a770"},
        {"Intel(R) Arc(TM) A770 Graphics", CLEAT_VENDOR_INTEL, 7.5, NULL},
        {"Intel(R) Iris(R) Xe Graphics", CLEAT_VENDOR_INTEL, 28.77, "intel_igpu"},
        {"Intel(R) UHD Graphics 630", CLEAT_VENDOR_INTEL, 12.5, NULL},
        {"", CLEAT_VENDOR_NVIDIA, 14.56, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_device_facts device = {.kind = CLEAT_DEVICE_GPU, .vendor = rows[i].vendor};
        cleat_card card = {.name = "untouched"};
        snprintf(device.name, sizeof device.name, "%s", rows[i].name);
        device.memory_total = (int64_t)(rows[i].memory * GiB);
        bool found = cleat_card_match(&device, &card);
        print_message("%s, %g GiB: %s\n", rows[i].name, rows[i].memory, card.name);
        assert_int_equal(found, rows[i].card != NULL);
        assert_string_equal(card.name, rows[i].card ? rows[i].card : "untouched");
    }
}

static void any_cpu_of_pocl_is_pocl_cpu(void **state) {
    static const double memories[] = {0.5, 8, 512};
    (void)state;
    for (size_t i = 0; i < sizeof memories / sizeof *memories; ++i) {
        cleat_device_facts device = {.name = "pthread-skylake", .kind = CLEAT_DEVICE_CPU, .vendor = CLEAT_VENDOR_POCL};
        cleat_card card;
        device.memory_total = (int64_t)(memories[i] * GiB);
        assert_true(cleat_card_match(&device, &card));
        assert_string_equal(card.name, "pocl_cpu");
        device.vendor = CLEAT_VENDOR_INTEL;
        assert_false(cleat_card_match(&device, &card));
    }
}

static void differences_are_told(void **state) {
    cleat_card card = open_card("t4");
    cleat_device_facts device = card.facts;
    char text[512], tiny[16];
    (void)state;
    assert_int_equal(cleat_card_differences(&card, &device, text, sizeof text), 0);
    assert_string_equal(text, "");
    device.memory_total += device.memory_total / 100; /* within 2 % */
    assert_int_equal(cleat_card_differences(&card, &device, text, sizeof text), 0);
    device.memory_total = (int64_t)(15.6 * GiB);
    assert_int_equal(cleat_card_differences(&card, &device, text, sizeof text), 1);
    assert_string_equal(text, "memory 15.60 GiB, but 14.56 GiB in the card file");
    device.half_extension = true;
    device.compute_units = 38;
    device.local_memory = 64 * 1024;
    device.max_allocation = 2048LL << 20;
    device.alignment = 256;
    assert_int_equal(cleat_card_differences(&card, &device, text, sizeof text), 6);
    expect_contains(text, "; largest allocation 2.00 GiB, but 3.64 GiB in the card file");
    expect_contains(text, "; alignment 256 bytes, but 512 bytes in the card file");
    expect_contains(text, "; local memory 64.00 KiB, but 48.00 KiB in the card file");
    expect_contains(text, "; compute units 38, but 40 in the card file");
    expect_contains(text, "; cl_khr_fp16 yes, but no in the card file");
    assert_int_equal(cleat_card_differences(&card, &device, tiny, sizeof tiny), 6);
    assert_string_equal(tiny, "memory 15.60 Gi");
    assert_int_equal(cleat_card_differences(&card, &device, NULL, 0), 6);
}

/* --- opening ---------------------------------------------------------------------------------------------------- */

static void unknown_cards_are_refused(void **state) {
    cleat_card card = {.name = "untouched"};
    cleat_error error = {0};
    (void)state;
    assert_int_equal(cleat_card_open("v100", &card, &error), CLEAT_ERR_NOT_FOUND);
    expect_contains(error.text, "unknown card 'v100'");
    assert_int_equal(cleat_card_open("RTX4O90", &card, &error), CLEAT_ERR_NOT_FOUND);
    expect_contains(error.text, "did you mean 'rtx4090'?");
    expect_contains(error.text, "a100_40, a100_80, arc_a770");
    expect_contains(error.text, "FILE.ini");
    assert_int_equal(cleat_card_open("", &card, &error), CLEAT_ERR_NOT_FOUND);
    assert_int_equal(cleat_card_open(".ini", &card, NULL), CLEAT_ERR_NOT_FOUND);
    assert_int_equal(cleat_card_open(NULL, &card, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_card_open("/nowhere/mine.ini", &card, &error), CLEAT_ERR_NOT_FOUND);
    expect_contains(error.text, "/nowhere/mine.ini");
    assert_int_equal(cleat_card_open("/nowhere/.ini", &card, &error), CLEAT_ERR_NOT_FOUND);
    assert_string_equal(card.name, "untouched");
    assert_string_equal(open_card("T4").name, "t4");
}

/* The library's t4 with the first line of `key` replaced, or removed if `line` is NULL. The caller frees
 * it. */
static char *changed(const char *key, const char *line) {
    const char *text = NULL;
    char start[64];
    for (const cleat_embedded_file *file = cleat_embedded_cards; file->name; ++file)
        if (strcmp(file->name, "t4") == 0) text = file->text;
    assert_non_null(text);
    snprintf(start, sizeof start, "\n%s", key);
    const char *at = strstr(text, start), *end = at ? strchr(at + 1, '\n') : NULL;
    if (!end) fail_msg("no line of %s", key);
    char *made = malloc(strlen(text) + 512);
    sprintf(made, "%.*s%s%s%s", (int)(at - text), text, line ? "\n" : "", line ? line : "", end);
    return made;
}

static void own_cards_come_from_files(void **state) {
    char path[] = "/tmp/cleat_card_XXXXXX.ini";
    char *text = changed("title", "title = Mine");
    int file = mkstemps(path, 4);
    (void)state;
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), (int)strlen(text));
    close(file);
    cleat_card card = open_card(path);
    unlink(path);
    free(text);
    assert_string_equal(card.facts.name, "Mine");
    assert_memory_equal(card.name, path + 5, strlen(path) - 9); /* without folder and ending */
    assert_int_equal(strlen(card.name), strlen(path) - 9);
    expect_contains(card.rates.source, card.name);
}

static void wrong_files_are_refused(void **state) {
    static const struct {
        const char *key, *line, *says[3];
    } rows[] = {
        {"memory",
         "memroy = 16 GiB",
         {"my.ini:8: memroy = 16 GiB: [card] has no key 'memroy'", "did you mean 'memory'?"}},
        {"memory", "f32_tflops = 1", {"my.ini:8: ", "it belongs in [speed]"}},
        {"memory", NULL, {"my.ini:3: card.memory is missing; add 'memory = ...' to [card]: a size such as"}},
        {"memory", "memory = 0", {"my.ini:8: memory = 0: ", "out of range", "from 64 MiB to 16 TiB"}},
        {"memory", "memory = sixteen", {"my.ini:8: ", "'sixteen' is not allowed", "15.6 GiB"}},
        {"memory", "memory = 16 GB", {"my.ini:8: ", "'16 GB' is not allowed"}},
        {"memory", "memory = -1", {"my.ini:8: ", "not allowed"}},
        {"memory", "memory = 3 GiB", {"my.ini:10: max_allocation = 3.64 GiB\n  contradicts my.ini:8: memory = 3 GiB"}},
        {"reserved", "reserved = 14.56 GiB", {"my.ini:9: ", "contradicts my.ini:8: ", "no memory would be left"}},
        {"alignment", "alignment = 384", {"my.ini:11: alignment = 384: must be a power of two"}},
        {"alignment", "alignment = 512\nalignment = 512", {"my.ini:12: ", "first set in line 11"}},
        {"half_extension", "half_extension = maybe", {"my.ini:16: ", "true or false"}},
        {"matrix_unit", "matrix_unit = nv_75", {"my.ini:18: ", "did you mean 'nv75'?"}},
        {"vendor", "vendor = nvida", {"my.ini:5: ", "did you mean 'nvidia'?"}},
        {"match", "match = Tesla T4||T4", {"my.ini:7: ", "a part between | is empty"}},
        {"match", "match = Tesla T4|", {"my.ini:7: ", "is empty"}},
        {"gemm_efficiency", "gemm_efficiency = 1.2", {"my.ini:25: ", "out of range", "from 0.01 to 1"}},
        {"gemm_efficiency", "gemm_efficiency = 0", {"my.ini:25: ", "out of range"}},
        {"f32_tflops", "f32_tflops = nan", {"my.ini:21: ", "not allowed"}},
        {"bandwidth_gb", "bandwidth_gb = 0", {"my.ini:24: ", "out of range"}},
        {"gemm_efficiency = ass", NULL, {"my.ini:38: source.gemm_efficiency is missing", "[source]"}},
        {"gemm_efficiency = ass", "gemm_efficiency =", {"my.ini:52: ", "a text of 8 to 511 characters"}},
        {"board_watts = data", NULL, {"my.ini:33: board_watts = 70: has no source"}},
        {"board_watts", "board_watts = -1", {"my.ini:33: ", "out of range"}},
        {"product_us", "product_us = -1", {"my.ini:30: ", "out of range"}},
        {"within", "within = 0.5", {"my.ini:32: ", "out of range", "from 1 to 100"}},
        {"measured = an", NULL, {"my.ini:28: matrix_efficiency = 0.322: has no source"}},
        {"[loader]", "[lodaer]", {"my.ini:35: [lodaer]: unknown section", "did you mean [loader]?"}},
        {"title", "title", {"my.ini:4: title: neither"}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char *text = changed(rows[i].key, rows[i].line);
        cleat_card card = {.name = "untouched"};
        cleat_error error = {0};
        cleat_status status = cleat_card_read("my", "my.ini", text, strlen(text), &card, &error);
        print_message("%s\n", error.text);
        assert_int_equal(status, CLEAT_ERR_PROFILE);
        assert_string_equal(card.name, "untouched");
        for (size_t j = 0; j < 3 && rows[i].says[j]; ++j) expect_contains(error.text, rows[i].says[j]);
        free(text);
    }
}

/* Values of [speed] that a card file may omit, because they have to be measured, share the source `measured`. */
static bool is_measured(const char *name) {
    static const char *const names[] = {"matrix_efficiency", "lstm_efficiency", "product_us", "matrix_product_us",
                                        "within"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

/* Every other value of a card file has a source with its name; extensions share one. */
static void every_figure_needs_its_source(void **state) {
    (void)state;
    for (const cleat_key *key = cleat_card_schema.keys; key->name; ++key) {
        if (is_measured(key->name)) continue;
        bool figure = key->type == CLEAT_KEY_BYTES || key->type == CLEAT_KEY_INT || key->type == CLEAT_KEY_FLOAT;
        if (strcmp(key->name, "board_watts") != 0 && strcmp(key->name, "measured") != 0)
            assert_null(key->initial); /* no other default */
        if (figure && !cleat_schema_find(&cleat_card_schema, "source", key->name)) fail_msg("no source.%s", key->name);
    }
    assert_non_null(cleat_schema_find(&cleat_card_schema, "source", "extensions"));
    assert_non_null(cleat_schema_find(&cleat_card_schema, "source", "measured"));
}

static void cut_files_are_refused(void **state) {
    char *text = changed("title", "title = Cut");
    size_t size = strlen(text), last = (size_t)(strstr(text, "\nworkers = pract") - text) + strlen("\nworkers = pract");
    (void)state;
    for (size_t i = 0; i < size; ++i) {
        /* allocated with its exact size: the sanitizer reports a read beyond it */
        char *cut = malloc(i ? i : 1);
        cleat_card card;
        cleat_error error = {0};
        memcpy(cut, text, i);
        cleat_status status = cleat_card_read("cut", "cut.ini", cut, i, &card, &error);
        if (status) {
            assert_int_equal(status, CLEAT_ERR_PROFILE);
            expect_contains(error.text, "cut.ini:");
        }
        if (i < last - 7) assert_int_equal(status, CLEAT_ERR_PROFILE);
        free(cut);
    }
    free(text);
}

static void damaged_bytes_never_crash(void **state) {
    static const char bytes[] = {0, '\n', '[', ']', '=', ';', '\\', '|', '9', (char)0xff};
    char *text = changed("title", "title = Damaged");
    size_t size = strlen(text);
    (void)state;
    for (size_t i = 0; i < size; i += 3) {
        char kept = text[i];
        cleat_card card;
        text[i] = bytes[i / 3 % sizeof bytes];
        cleat_status status = cleat_card_read("bad", "bad.ini", text, size, &card, NULL);
        assert_true(!status || status == CLEAT_ERR_PROFILE);
        text[i] = kept;
    }
    free(text);
}

static void failing_allocations_are_reported(void **state) {
    (void)state;
    for (long n = 1;; ++n) {
        cleat_card card = {.name = "untouched"};
        cleat_fail_allocation(n);
        cleat_status status = cleat_card_open("t4", &card, NULL);
        cleat_fail_allocation(0);
        if (!status) {
            assert_true(n > 40); /* at least one allocation per key */
            return;
        }
        assert_int_equal(status, CLEAT_ERR_MEMORY);
        assert_string_equal(card.name, "untouched");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_card_is_plausible),       cmocka_unit_test(the_guides_cards_are_there),
        cmocka_unit_test(every_card_matches_itself),     cmocka_unit_test(no_two_cards_are_one),
        cmocka_unit_test(devices_are_recognised),        cmocka_unit_test(any_cpu_of_pocl_is_pocl_cpu),
        cmocka_unit_test(differences_are_told),          cmocka_unit_test(unknown_cards_are_refused),
        cmocka_unit_test(own_cards_come_from_files),     cmocka_unit_test(wrong_files_are_refused),
        cmocka_unit_test(every_figure_needs_its_source), cmocka_unit_test(cut_files_are_refused),
        cmocka_unit_test(damaged_bytes_never_crash),     cmocka_unit_test(failing_allocations_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
