/* The safetensors format: written data are read back, malformed files are refused, and no input crashes the
 * reader. */
/* ctest: quick */
#include "core/blocks.h"
#include "core/files.h"
#include "core/memory.h"
#include "core/safetensors.h"
#include "platform/files.h"
#include "platform/text.h"
#include "source_path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const double doubles[] = {1.5, -0.0, 3e300};
static const float floats[] = {1, 2, 3, 4, 5, 6};
static const uint16_t halves[] = {0x3c00, 0x7c00};
static const int64_t longs[] = {-1, INT64_MAX};
static const uint8_t bytes[] = {1, 2, 255};
static const float scalar = 7;

static const cleat_st_tensor samples[] = {
    {.name = "a\"quoted\"\\name\n", .dtype = CLEAT_ST_F64, .rank = 1, .shape = {3}, .data = doubles},
    {.name = "block.0.weight", .dtype = CLEAT_ST_F32, .rank = 2, .shape = {2, 3}, .data = floats},
    {.name = "empty", .dtype = CLEAT_ST_F32, .rank = 2, .shape = {0, 5}, .data = NULL},
    {.name = "half", .dtype = CLEAT_ST_F16, .rank = 1, .shape = {2}, .data = halves},
    {.name = "bfloat", .dtype = CLEAT_ST_BF16, .rank = 2, .shape = {1, 2}, .data = halves},
    {.name = "long", .dtype = CLEAT_ST_I64, .rank = 1, .shape = {2}, .data = longs},
    {.name = "int", .dtype = CLEAT_ST_I32, .rank = 1, .shape = {6}, .data = floats},
    {.name = "unsigned", .dtype = CLEAT_ST_U32, .rank = 1, .shape = {6}, .data = floats},
    {.name = "bytes", .dtype = CLEAT_ST_U8, .rank = 1, .shape = {3}, .data = bytes},
    {.name = "scalar",
     .dtype = CLEAT_ST_F32,
     .rank = 0,
     .shape = {0},
     .data = &scalar}, /* unaligned, after three bytes */
    {.name = "\xc3\xbcml\xc3\xa4ut", .dtype = CLEAT_ST_U8, .rank = 1, .shape = {1}, .data = bytes},
};
enum { SAMPLES = sizeof samples / sizeof *samples };

static const cleat_st_metadata metadata[] = {{"format", "cleat"}, {"note", "two\nlines \"and\" quotes"}};

static char *encode(size_t *size) {
    char *data = NULL;
    cleat_error error = {0};
    if (cleat_safetensors_encode(samples, SAMPLES, metadata, 2, &data, size, &error) != CLEAT_OK)
        fail_msg("%s", error.text);
    return data;
}

static void expect_samples(const cleat_safetensors *file) {
    assert_int_equal(cleat_safetensors_count(file), SAMPLES);
    for (size_t i = 0; i < SAMPLES; ++i) {
        const cleat_st_tensor *tensor = NULL;
        cleat_error error = {0};
        if (cleat_safetensors_expect(file, samples[i].name, samples[i].dtype, samples[i].rank, samples[i].shape,
                                     &tensor, &error) != CLEAT_OK)
            fail_msg("%s", error.text);
        assert_ptr_equal(tensor, cleat_safetensors_find(file, samples[i].name));
        assert_int_equal(cleat_st_bytes(tensor), cleat_st_bytes(&samples[i]));
        if (cleat_st_bytes(tensor) == 0) continue;
        assert_memory_equal(tensor->data, samples[i].data, cleat_st_bytes(tensor));
        assert_int_equal((uintptr_t)tensor->data % cleat_st_dtype_size(tensor->dtype), 0);
    }
    assert_string_equal(cleat_safetensors_metadata(file, "note"), metadata[1].value);
    assert_null(cleat_safetensors_metadata(file, "nothing"));
    assert_null(cleat_safetensors_find(file, "nothing"));
    assert_null(cleat_safetensors_find(file, "__metadata__"));
    assert_null(cleat_safetensors_at(file, SAMPLES));
}

static void what_is_written_comes_back(void **state) {
    (void)state;
    cleat_safetensors *file = NULL;
    cleat_error error = {0};
    size_t size;
    uint64_t header;
    char *data = encode(&size);
    memcpy(&header, data, sizeof header);
    assert_int_equal((header + 8) % 64, 0);
    if (cleat_safetensors_parse("memory", data, size, &file, &error) != CLEAT_OK) fail_msg("%s", error.text);
    expect_samples(file);
    cleat_safetensors_close(file);
    cleat_free(data);
}

static void files_come_back(void **state) {
    (void)state;
    char folder[] = "/tmp/cleat-st-XXXXXX", path[64];
    cleat_safetensors *file = NULL;
    cleat_error error = {0};
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.safetensors", folder);
    if (cleat_safetensors_write(path, samples, SAMPLES, metadata, 2, &error) != CLEAT_OK) fail_msg("%s", error.text);
    if (cleat_safetensors_open(path, &file, &error) != CLEAT_OK) fail_msg("%s", error.text);
    expect_samples(file);
    cleat_safetensors_close(file);
    unlink(path);
    assert_int_equal(cleat_safetensors_open(path, &file, &error), CLEAT_ERR_NOT_FOUND);
    rmdir(folder);
}

/* The data of the samples, which share one buffer. */
typedef struct turns {
    char buffer[256];
    size_t asked;
    cleat_status fails; /* when the last tensor is requested */
} turns;

static cleat_status next_data(void *user, size_t i, const void **data, cleat_error *error) {
    turns *t = user;
    assert_true(cleat_st_bytes(&samples[i]) <= sizeof t->buffer);
    ++t->asked;
    if (t->fails && i == SAMPLES - 1) return cleat_fail(error, t->fails, "no more data");
    memset(t->buffer, 0xee, sizeof t->buffer); /* the previous tensor's data */
    memcpy(t->buffer, samples[i].data, cleat_st_bytes(&samples[i]));
    *data = t->buffer;
    return CLEAT_OK;
}

static void a_file_is_written_tensor_by_tensor(void **state) {
    (void)state;
    char folder[] = "/tmp/cleat-st-XXXXXX", path[64], hash[33], *file;
    turns t = {.asked = 0};
    const cleat_st_source source = {.data = next_data, .user = &t};
    cleat_st_digest written;
    size_t size, file_size, wanted = 0;
    char *data = encode(&size);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.safetensors", folder);
    assert_int_equal(cleat_safetensors_write_from(path, samples, SAMPLES, &source, metadata, 2, &written, NULL),
                     CLEAT_OK);
    assert_int_equal(cleat_file_read(path, &file, &file_size, NULL), CLEAT_OK);
    assert_int_equal(file_size, size);
    assert_memory_equal(file, data, size);
    cleat_hash_text(data, size, hash);
    assert_string_equal(written.hash, hash);
    assert_int_equal(written.size, size);
    for (size_t i = 0; i < SAMPLES; ++i) wanted += cleat_st_bytes(&samples[i]) > 0;
    assert_int_equal(t.asked, wanted);
    cleat_free(file);
    cleat_free(data);
    unlink(path);
    t.fails = CLEAT_ERR_IO;
    assert_int_equal(cleat_safetensors_write_from(path, samples, SAMPLES, &source, metadata, 2, &written, NULL),
                     CLEAT_ERR_IO);
    assert_int_equal(rmdir(folder), 0); /* no file remains */
}

static void files_of_others_open(void **state) {
    (void)state;
    const char *path = shared_path("golden/rna.safetensors");
    cleat_safetensors *file = NULL;
    cleat_error error = {0};
    const int64_t steps[] = {11};
    const cleat_st_tensor *loss;
    if (!cleat_file_exists(path)) skip();
    if (cleat_safetensors_open(path, &file, &error) != CLEAT_OK) fail_msg("%s", error.text);
    const cleat_st_tensor *any = cleat_safetensors_find(file, "loss");
    assert_non_null(any);
    assert_int_equal(cleat_safetensors_expect(file, "loss", any->dtype, 1, steps, &loss, &error), CLEAT_OK);
    assert_non_null(cleat_safetensors_metadata(file, "config"));
    cleat_safetensors_close(file);
}

/* --- malformed files ------------------------------------------------------------------------------------------ */

typedef struct hostile {
    const char *header;
    size_t data; /* bytes after the header */
    const char *says;
} hostile;

#define T(SHAPE, RANGE) "{\"dtype\":\"F32\",\"shape\":" SHAPE ",\"data_offsets\":" RANGE "}"

static const hostile hostiles[] = {
    {"", 0, "not a JSON object"},
    {"[]", 0, "not a JSON object"},
    {"{", 0, "not a JSON object"},
    {"{\"a\":" T("[1]", "[0,4]") ",}", 4, "not a JSON object"},
    {"{\"a\":" T("[1 2]", "[0,4]") "}", 4, "not a JSON object"},
    {"{\"a\nb\":" T("[1]", "[0,4]") "}", 4, "not a JSON object"},
    {"{\"\\ud83d\":" T("[1]", "[0,4]") "}", 4, "not a JSON object"},
    {"{\"\\u0000\":" T("[1]", "[0,4]") "}", 4, "not a JSON object"},
    {"{\"\\u\x10\x10\x14\x16\":" T("[1]", "[0,4]") "}", 4,
     "not a JSON object"}, /* not digits, but with the same low bits */
    {"{\"a\":{\"more\":,\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "not a JSON object"},
    {"{\"a\":{\"more\":@@,\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "not a JSON object"},
    {"{}x", 0, "more than JSON"},
    {"{}", 1, "after the last"},
    {"{\"a\":3}", 0, "object"},
    {"{\"a\":{}}", 0, "dtype"},
    {"{\"a\":{\"dtype\":\"F31\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, "dtype"},
    {"{\"a\":{\"dtype\":4,\"shape\":[],\"data_offsets\":[0,4]}}", 4, "dtype"},
    {"{\"a\":" T("3", "[0,4]") "}", 4, "shape"},
    {"{\"a\":" T("[-1]", "[0,4]") "}", 4, "whole number"},
    {"{\"a\":" T("[1.5]", "[0,4]") "}", 4, "whole number"},
    {"{\"a\":" T("[\"1\"]", "[0,4]") "}", 4, "whole number"},
    {"{\"a\":" T("[1e400]", "[0,4]") "}", 4, "whole number"},
    {"{\"a\":" T("[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 4, "dimensions"},
    {"{\"a\":" T("[4294967296,4294967296]", "[0,4]") "}", 4, "too large"},
    {"{\"a\":" T("[2147483648,2147483648,2147483648]", "[0,0]") "}", 0, "too large"},
    {"{\"a\":" T("[0,4294967296,4294967296]", "[0,0]") "}", 0, "too large"},
    {"{\"a\":" T("[1]", "[0,8]") "}", 8, "do not match its shape"},
    {"{\"a\":" T("[1]", "[0]") "}", 4, "data_offsets"},
    {"{\"a\":" T("[1]", "[0,4,8]") "}", 4, "data_offsets"},
    {"{\"a\":" T("[1]", "[4,0]") "}", 4, "outside"},
    {"{\"a\":" T("[1]", "[0,4]") "}", 3, "outside"},
    {"{\"a\":" T("[1]", "[-4,0]") "}", 4, "data_offsets"},
    {"{\"a\":" T("[1]", "[4,8]") "}", 8, "gap"},
    {"{\"a\":" T("[1]", "[0,4]") ",\"b\":" T("[1]", "[0,4]") "}", 4, "overlaps"},
    {"{\"a\":" T("[2]", "[0,8]") ",\"b\":" T("[2]", "[4,12]") "}", 12, "overlaps"},
    {"{\"a\":" T("[1]", "[0,4]") ",\"b\":" T("[1]", "[8,12]") "}", 12, "gap"},
    {"{\"a\":" T("[1]", "[0,4]") ",\"a\":" T("[1]", "[4,8]") "}", 8, "twice"},
    {"{\"__metadata__\":3}", 0, "__metadata__"},
    {"{\"__metadata__\":{\"a\":3}}", 0, "strings"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "twice"},
};

/* Builds a file with this header. The caller frees it. */
static char *make_file(const char *header, size_t data, size_t *size) {
    uint64_t length = strlen(header);
    *size = 8 + length + data;
    char *file = calloc(*size, 1);
    assert_non_null(file);
    memcpy(file, &length, 8);
    memcpy(file + 8, header, length);
    return file;
}

static void malformed_headers_are_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof hostiles / sizeof *hostiles; ++i) {
        size_t size;
        cleat_safetensors *parsed = NULL;
        cleat_error error = {0};
        char *file = make_file(hostiles[i].header, hostiles[i].data, &size);
        if (cleat_safetensors_parse("h", file, size, &parsed, &error) != CLEAT_ERR_FORMAT)
            fail_msg("accepted: %s", hostiles[i].header);
        if (!strstr(error.text, hostiles[i].says))
            fail_msg("%s: \"%s\" does not contain \"%s\"", hostiles[i].header, error.text, hostiles[i].says);
        assert_null(parsed);
        free(file);
    }
}

static void any_order_in_the_header_will_do(void **state) {
    (void)state;
    size_t size;
    cleat_safetensors *parsed = NULL;
    cleat_error error = {0};
    char *file =
        make_file("{\"b\":" T("[1]", "[4,8]") ",\"z\":" T("[0]", "[4,4]") ",\"a\":" T("[1]", "[0,4]") "}  ", 8, &size);
    file[size - 8] = 1;
    file[size - 4] = 2;
    if (cleat_safetensors_parse("o", file, size, &parsed, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_string_equal(cleat_safetensors_at(parsed, 0)->name, "a");
    assert_string_equal(cleat_safetensors_at(parsed, 1)->name, "z");
    assert_int_equal(*(const char *)cleat_safetensors_find(parsed, "a")->data, 1);
    assert_int_equal(*(const char *)cleat_safetensors_find(parsed, "b")->data, 2);
    cleat_safetensors_close(parsed);
    free(file);
}

static void escapes_blanks_and_unknown_members_are_read(void **state) {
    (void)state;
    size_t size;
    cleat_safetensors *parsed = NULL;
    cleat_error error = {0};
    char *file = make_file(" { \"\\u00fc\\ud83d\\ude00\\/\\t\" : { \"more\" : [ \"]}\\\"\", {} ] , \"dtype\":\"U8\" ,\n"
                           "\"shape\" : [ 1 , 1 ], \"data_offsets\":[ 0 , 1 ] } } ",
                           1, &size);
    if (cleat_safetensors_parse("e", file, size, &parsed, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_string_equal(cleat_safetensors_at(parsed, 0)->name, "\xc3\xbc\xf0\x9f\x98\x80/\t");
    assert_int_equal(cleat_safetensors_at(parsed, 0)->rank, 2);
    cleat_safetensors_close(parsed);
    free(file);
}

static void lengths_beyond_the_file_are_refused(void **state) {
    (void)state;
    static const uint64_t lengths[] = {1, 3, 1u << 20, 1u << 25, UINT64_MAX, UINT64_MAX - 8, INT64_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
        char file[10] = {0};
        cleat_safetensors *parsed = NULL;
        memcpy(file, &lengths[i], 8);
        assert_int_equal(cleat_safetensors_parse("l", file, sizeof file, &parsed, NULL), CLEAT_ERR_FORMAT);
    }
}

static void every_cut_is_noticed(void **state) {
    (void)state;
    size_t size;
    char *whole = encode(&size);
    for (size_t part = 0; part < size; ++part) {
        /* a separate allocation, so a sanitizer detects reads beyond the end */
        char *cut = malloc(part ? part : 1);
        cleat_safetensors *parsed = NULL;
        assert_non_null(cut);
        memcpy(cut, whole, part);
        assert_int_equal(cleat_safetensors_parse("cut", cut, part, &parsed, NULL), CLEAT_ERR_FORMAT);
        free(cut);
    }
    cleat_free(whole);
}

/* Reads every byte, so a sanitizer can check the access. */
static size_t sum_of_bytes(const cleat_st_tensor *tensor) {
    const uint8_t *at = tensor->data;
    size_t sum = 0;
    for (size_t i = 0; i < cleat_st_bytes(tensor); ++i) sum += at[i];
    return sum;
}

static void damage_never_crashes(void **state) {
    (void)state;
    size_t size;
    char *whole = encode(&size), *damaged = malloc(size);
    uint64_t random = 1;
    assert_non_null(damaged);
    for (int i = 0; i < 20000; ++i) {
        cleat_safetensors *parsed = NULL;
        memcpy(damaged, whole, size);
        for (int j = 0; j < 3; ++j) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            damaged[(random >> 33) % size] ^= (char)(1 << (random >> 61));
        }
        if (cleat_safetensors_parse("d", damaged, size, &parsed, NULL) != CLEAT_OK) continue;
        for (size_t k = 0; k < cleat_safetensors_count(parsed); ++k) {
            const cleat_st_tensor *tensor = cleat_safetensors_at(parsed, k);
            assert_true(sum_of_bytes(tensor) <= 255 * cleat_st_bytes(tensor));
        }
        cleat_safetensors_close(parsed);
    }
    free(damaged);
    cleat_free(whole);
}

/* --- the rest ------------------------------------------------------------------------------------------------- */

static void expectations_name_both_shapes(void **state) {
    (void)state;
    size_t size;
    cleat_safetensors *file = NULL;
    cleat_error error = {0};
    const cleat_st_tensor *tensor = NULL;
    const int64_t wrong[] = {3, 2};
    char *data = encode(&size);
    assert_int_equal(cleat_safetensors_parse("m.safetensors", data, size, &file, NULL), CLEAT_OK);
    assert_int_equal(cleat_safetensors_expect(file, "block.0.weight", CLEAT_ST_F32, 2, wrong, &tensor, &error),
                     CLEAT_ERR_SHAPE);
    assert_non_null(strstr(error.text, "m.safetensors"));
    assert_non_null(strstr(error.text, "F32 [2, 3]"));
    assert_non_null(strstr(error.text, "F32 [3, 2]"));
    assert_int_equal(
        cleat_safetensors_expect(file, "block.0.weight", CLEAT_ST_F16, 2, samples[1].shape, &tensor, &error),
        CLEAT_ERR_SHAPE);
    assert_int_equal(cleat_safetensors_expect(file, "block.1.weight", CLEAT_ST_F32, 2, wrong, &tensor, &error),
                     CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "missing"));
    assert_null(tensor);
    cleat_safetensors_close(file);
    cleat_free(data);
}

/* Matrices in blocks, of several spans and a part of one, are read as F32, in parts too. */
static void blocks_are_read_as_values(void **state) {
    static const cleat_dtype types[] = {CLEAT_Q8, CLEAT_NF4, CLEAT_Q4, CLEAT_HALF};
    enum { ROWS = 131, COLUMNS = 320, ELEMENTS = ROWS * COLUMNS };
    float *values = calloc(3 * ELEMENTS, sizeof *values), *want = values + ELEMENTS, *got = want + ELEMENTS;
    (void)state;
    for (int i = 0; i < ELEMENTS; ++i) values[i] = (float)((i * 7919 % 1009) - 504) * (1 + (float)(i / 64 % 5)) / 99;
    for (size_t k = 0; k < sizeof types / sizeof *types; ++k) {
        cleat_st_tensor matrix = {
            .name = "w", .dtype = CLEAT_ST_F32, .rank = 2, .shape = {ROWS, COLUMNS}, .blocks = types[k]};
        const cleat_st_tensor all[] = {samples[1], matrix, samples[8]};
        void *packed = calloc(cleat_st_bytes(&matrix), 1), *back = calloc(cleat_st_bytes(&matrix), 1);
        assert_true(cleat_st_bytes(&matrix) <= ELEMENTS * 2);
        assert_int_equal(cleat_blocks_quantise(types[k], values, ELEMENTS, packed, NULL), CLEAT_OK);
        cleat_blocks_values(types[k], packed, ELEMENTS, want);
        cleat_st_tensor written[] = {all[0], all[1], all[2]};
        written[1].data = packed;
        cleat_safetensors *file;
        char *data;
        size_t size;
        assert_int_equal(cleat_safetensors_encode(written, 3, NULL, 0, &data, &size, NULL), CLEAT_OK);
        assert_int_equal(cleat_safetensors_parse("test", data, size, &file, NULL), CLEAT_OK);
        const cleat_st_tensor *found;
        assert_int_equal(cleat_safetensors_expect(file, "w", CLEAT_ST_F32, 2, matrix.shape, &found, NULL), CLEAT_OK);
        assert_int_equal(found->blocks, types[k]);
        assert_memory_equal(found->data, want, ELEMENTS * sizeof *want);
        for (int64_t first = 0, some = 1; first < ELEMENTS; first += some, some = some * 3 % 20011) {
            if (some > ELEMENTS - first) some = ELEMENTS - first;
            assert_int_equal(cleat_safetensors_read(file, found, first, some, got + first, NULL), CLEAT_OK);
        }
        assert_memory_equal(got, want, ELEMENTS * sizeof *want);
        assert_int_equal(cleat_safetensors_read_stored(file, found, back, NULL), CLEAT_OK);
        assert_memory_equal(back, packed, cleat_st_bytes(&matrix));
        cleat_safetensors_close(file);
        char *columns = memmem(data, size, "131 320", 7); /* a shape whose rows are no whole blocks */
        memcpy(columns, "320 131", 7);
        assert_int_equal(cleat_safetensors_parse("test", data, size, &file, NULL), CLEAT_ERR_FORMAT);
        memcpy(columns, "130 320", 7);
        assert_int_equal(cleat_safetensors_parse("test", data, size, &file, NULL), CLEAT_ERR_FORMAT);
        cleat_free(data);
        free(packed);
        free(back);
    }
    free(values);
}

static void bad_names_are_not_written(void **state) {
    (void)state;
    const cleat_st_tensor twice[] = {samples[1], samples[3], samples[1]};
    const cleat_st_tensor reserved[] = {
        {.name = "__metadata__", .dtype = CLEAT_ST_U8, .rank = 1, .shape = {1}, .data = bytes}};
    char *data;
    size_t size;
    assert_int_equal(cleat_safetensors_encode(twice, 3, NULL, 0, &data, &size, NULL), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_safetensors_encode(reserved, 1, NULL, 0, &data, &size, NULL), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_safetensors_encode(NULL, 0, NULL, 0, &data, &size, NULL), CLEAT_OK);
    cleat_safetensors *file = NULL;
    assert_int_equal(cleat_safetensors_parse("none", data, size, &file, NULL), CLEAT_OK);
    assert_int_equal(cleat_safetensors_count(file), 0);
    cleat_safetensors_close(file);
    cleat_free(data);
}

static void every_failing_allocation_is_survived(void **state) {
    (void)state;
    for (long n = 1;; ++n) {
        char *data = NULL;
        size_t size;
        cleat_safetensors *file = NULL;
        cleat_fail_allocation(n);
        cleat_status status = cleat_safetensors_encode(samples, SAMPLES, metadata, 2, &data, &size, NULL);
        if (!status) status = cleat_safetensors_parse("m", data, size, &file, NULL);
        cleat_fail_allocation(0);
        cleat_safetensors_close(file);
        cleat_free(data);
        if (!status) {
            assert_true(n > 8);
            return;
        }
        assert_int_equal(status, CLEAT_ERR_MEMORY);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_comes_back),
        cmocka_unit_test(files_come_back),
        cmocka_unit_test(a_file_is_written_tensor_by_tensor),
        cmocka_unit_test(blocks_are_read_as_values),
        cmocka_unit_test(files_of_others_open),
        cmocka_unit_test(malformed_headers_are_refused),
        cmocka_unit_test(any_order_in_the_header_will_do),
        cmocka_unit_test(escapes_blanks_and_unknown_members_are_read),
        cmocka_unit_test(lengths_beyond_the_file_are_refused),
        cmocka_unit_test(every_cut_is_noticed),
        cmocka_unit_test(damage_never_crashes),
        cmocka_unit_test(expectations_name_both_shapes),
        cmocka_unit_test(bad_names_are_not_written),
        cmocka_unit_test(every_failing_allocation_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
