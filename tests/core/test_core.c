/* The core room: error text, random numbers, files, hashes, memory and half-precision conversion. */
/* ctest: quick wrap=read,write */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/files.h"
#include "core/half.h"
#include "core/json.h"
#include "core/memory.h"
#include "core/philox.h"
#include "core/string.h"
#include "platform/files.h"
#include "platform/processes.h"

/* --- errors --- */

static void error_holds_what_was_said(void **state) {
    (void)state;
    cleat_error error = {.cl_code = -5};
    assert_int_equal(cleat_fail(&error, CLEAT_ERR_SHAPE, "%s is %d", "width", 7), CLEAT_ERR_SHAPE);
    assert_int_equal(error.status, CLEAT_ERR_SHAPE);
    assert_int_equal(error.cl_code, 0);
    assert_string_equal(error.text, "width is 7");
    assert_int_equal(cleat_fail_in(&error, CLEAT_ERR_IO, "layer %d", 3), CLEAT_ERR_SHAPE);
    assert_string_equal(error.text, "layer 3: width is 7");
}

static void error_may_be_null(void **state) {
    (void)state;
    assert_int_equal(cleat_fail(NULL, CLEAT_ERR_IO, "%d", 1), CLEAT_ERR_IO);
    assert_int_equal(cleat_fail_in(NULL, CLEAT_ERR_IO, "%d", 1), CLEAT_ERR_IO);
}

/* Overlong text is truncated and remains zero-terminated. */
static void error_text_is_cut(void **state) {
    (void)state;
    char letters[2 * CLEAT_ERROR_TEXT];
    cleat_error error;
    memset(letters, 'x', sizeof letters - 1);
    letters[sizeof letters - 1] = 0;
    cleat_fail(&error, CLEAT_ERR_IO, "%s", letters);
    assert_int_equal(strlen(error.text), CLEAT_ERROR_TEXT - 1);
    cleat_fail_in(&error, CLEAT_ERR_IO, "%s", "outer");
    assert_int_equal(strlen(error.text), CLEAT_ERROR_TEXT - 1);
    assert_memory_equal(error.text, "outer: xxx", 10);
    cleat_fail_in(&error, CLEAT_ERR_IO, "%s", letters);
    assert_int_equal(strlen(error.text), CLEAT_ERROR_TEXT - 1);
    assert_non_null(strstr(error.text, "x: outer: xxx"));
}

static void every_status_has_a_text(void **state) {
    (void)state;
    for (int status = CLEAT_OK; status <= CLEAT_ERR_INTERRUPTED; ++status)
        assert_string_not_equal(cleat_status_text((cleat_status)status), "unknown status");
    assert_string_equal(cleat_status_text((cleat_status)999), "unknown status");
}

static void capture_text(void *user, cleat_log_level level, const char *text) {
    (void)level;
    snprintf(user, 64, "%s", text);
}

static void log_drops_what_is_above_its_level(void **state) {
    (void)state;
    char text[64] = "";
    cleat_set_log(capture_text, text, CLEAT_LOG_WARNING);
    cleat_log(CLEAT_LOG_INFO, "quiet");
    assert_string_equal(text, "");
    cleat_log(CLEAT_LOG_WARNING, "loud %d", 2);
    cleat_set_log(NULL, NULL, CLEAT_LOG_DEBUG);
    cleat_log(CLEAT_LOG_ERROR, "without a callback");
    assert_string_equal(text, "loud 2");
}

/* --- random numbers --- */

/* The lines "philox4x32 10" of tests/kat_vectors in Random123 1.14. */
static void philox_gives_the_published_values(void **state) {
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], expected[4];
    } rows[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        uint32_t out[4];
        cleat_philox(rows[i].counter, rows[i].key, out);
        assert_memory_equal(out, rows[i].expected, sizeof out);
    }
}

static void streams_repeat_and_differ(void **state) {
    (void)state;
    cleat_random a = cleat_random_stream(7, 1, 2), b = cleat_random_stream(7, 1, 2), c = cleat_random_stream(7, 2, 1);
    int same = 0;
    for (int i = 0; i < 1000; ++i) {
        uint32_t value = cleat_random_u32(&a);
        assert_int_equal(value, cleat_random_u32(&b));
        same += value == cleat_random_u32(&c);
    }
    assert_true(same < 3);
}

/* The device computes the same words from the seed, the stream's name and their index. */
static void a_stream_is_the_blocks_in_order(void **state) {
    const uint32_t key[2] = {0x89abcdef, 0x01234567};
    cleat_random random = cleat_random_stream(0x0123456789abcdef, 5, 6);
    (void)state;
    for (uint32_t i = 0; i < 6; ++i) {
        uint32_t block[4];
        cleat_philox((const uint32_t[4]){i, 0, 5, 6}, key, block);
        for (int j = 0; j < 4; ++j) assert_int_equal(cleat_random_u32(&random), block[j]);
    }
}

/* A counter whose low word overflows carries into the next one. */
static void stream_crosses_a_word_of_the_counter(void **state) {
    (void)state;
    cleat_random random = cleat_random_stream(1, 5, 6);
    random.counter[0] = 0xffffffff;
    for (int i = 0; i < 5; ++i) cleat_random_u32(&random);
    assert_int_equal(random.counter[0], 1);
    assert_int_equal(random.counter[1], 1);
    assert_int_equal(random.counter[2], 5);
}

static void draws_have_their_distribution(void **state) {
    (void)state;
    enum { DRAWS = 60000, SIDES = 6 };
    cleat_random random = cleat_random_stream(3, 0, 0);
    double counts[SIDES] = {0}, sum = 0, square = 0;
    for (int i = 0; i < DRAWS; ++i) {
        uint32_t side = cleat_random_below(&random, SIDES);
        assert_true(side < SIDES);
        counts[side] += 1;
        double uniform = cleat_random_uniform(&random), normal = cleat_random_normal(&random);
        assert_true(uniform >= 0 && uniform < 1);
        sum += normal;
        square += normal * normal;
    }
    double chi = 0, expected = (double)DRAWS / SIDES;
    for (int i = 0; i < SIDES; ++i) chi += (counts[i] - expected) * (counts[i] - expected) / expected;
    assert_true(chi < 20.5); /* 0.1 % of a chi-square distribution with 5 degrees of freedom lies above */
    assert_true(sum / DRAWS < 0.02 && sum / DRAWS > -0.02);
    assert_true(square / DRAWS < 1.03 && square / DRAWS > 0.97);
    assert_int_equal(cleat_random_below(&random, 1), 0);
}

/* All permutations of three occur about equally often. */
static void shuffle_is_a_fair_permutation(void **state) {
    (void)state;
    enum { ROUNDS = 6000 };
    cleat_random random = cleat_random_stream(11, 0, 0);
    int seen[27] = {0}, kinds = 0;
    for (int i = 0; i < ROUNDS; ++i) {
        uint32_t items[3] = {0, 1, 2};
        cleat_random_shuffle(&random, items, 3);
        assert_int_equal(items[0] + items[1] + items[2], 3);
        ++seen[items[0] * 9 + items[1] * 3 + items[2]];
    }
    for (int i = 0; i < 27; ++i) {
        kinds += seen[i] > 0;
        assert_true(seen[i] == 0 || (seen[i] > 850 && seen[i] < 1150));
    }
    assert_int_equal(kinds, 6);
    cleat_random_shuffle(&random, NULL, 0);
}

/* --- files --- */

typedef struct place {
    char folder[64], path[128];
} place;

static int make_place(void **state) {
    place *p = calloc(1, sizeof *p);
    if (!p) return -1;
    snprintf(p->folder, sizeof p->folder, "/tmp/cleat-core-XXXXXX");
    if (!mkdtemp(p->folder)) return -1;
    snprintf(p->path, sizeof p->path, "%s/file", p->folder);
    *state = p;
    return 0;
}

static int remove_place(void **state) {
    place *p = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", p->folder);
    int code = system(command);
    free(p);
    return code;
}

static int files_in(const char *folder) {
    char command[128];
    int count = -1;
    snprintf(command, sizeof command, "ls -A '%s' | wc -l", folder);
    FILE *pipe = popen(command, "r");
    if (pipe && fscanf(pipe, "%d", &count) != 1) count = -1;
    if (pipe) pclose(pipe);
    return count;
}

static void file_comes_back_as_written(void **state) {
    const place *p = *state;
    static const char bytes[] = {'a', 0, '\n', (char)0xff};
    char *data = NULL;
    size_t size = 0;
    assert_int_equal(cleat_file_write(p->path, "longer than what follows", 24, NULL), CLEAT_OK);
    assert_int_equal(cleat_file_write(p->path, bytes, sizeof bytes, NULL), CLEAT_OK);
    assert_int_equal(cleat_file_read(p->path, &data, &size, NULL), CLEAT_OK);
    assert_int_equal(size, sizeof bytes);
    assert_memory_equal(data, bytes, sizeof bytes);
    assert_int_equal(data[size], 0);
    cleat_free(data);
    assert_int_equal(files_in(p->folder), 1);
    assert_true(cleat_file_exists(p->path));
    assert_false(cleat_folder_exists(p->path));
}

static void empty_file_is_read(void **state) {
    const place *p = *state;
    char *data = NULL;
    size_t size = 9;
    assert_int_equal(cleat_file_write(p->path, "", 0, NULL), CLEAT_OK);
    assert_int_equal(cleat_file_read(p->path, &data, &size, NULL), CLEAT_OK);
    assert_int_equal(size, 0);
    cleat_free(data);
}

/* Files of whole parts, and of one more byte, are copied and hashed correctly. */
static void files_are_copied_and_hashed_in_parts(void **state) {
    const place *p = *state;
    static const size_t sizes[] = {0, 1, 65536, 65537, 200001};
    cleat_error error;
    char *bytes = cleat_alloc(200001, 1), *data = NULL, from[160], to[96], copy[160], hash[33], wanted[33];
    size_t size = 0;
    for (size_t i = 0; i < 200001; ++i) bytes[i] = (char)(i * 2654435761u >> 13);
    snprintf(from, sizeof from, "%s/from", p->folder);
    snprintf(to, sizeof to, "%.80s/to", p->folder);
    snprintf(copy, sizeof copy, "%s/from", to);
    assert_int_equal(cleat_folder_make(to, NULL), CLEAT_OK);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        assert_int_equal(cleat_file_write(from, bytes, sizes[i], NULL), CLEAT_OK);
        cleat_hash_text(bytes, sizes[i], wanted);
        assert_int_equal(cleat_file_hash(from, &size, hash, &error), CLEAT_OK);
        assert_int_equal(size, sizes[i]);
        assert_string_equal(hash, wanted);
        assert_int_equal(cleat_file_copy(p->folder, to, "from", false, &error), CLEAT_OK);
        assert_int_equal(cleat_file_read(copy, &data, &size, NULL), CLEAT_OK);
        assert_int_equal(size, sizes[i]);
        assert_memory_equal(data, bytes, sizes[i]);
        cleat_free(data);
    }
    cleat_free(bytes);
}

/* Network file systems and signals end calls early. The linker replaces read and write with these functions. */
static size_t most_bytes = SIZE_MAX;
static int file_calls;
ssize_t __real_read(int file, void *data, size_t size);
ssize_t __real_write(int file, const void *data, size_t size);
ssize_t __wrap_read(int file, void *data, size_t size);
ssize_t __wrap_write(int file, const void *data, size_t size);

static bool is_interrupted(void) {
    if (most_bytes == SIZE_MAX || ++file_calls % 3) return false;
    errno = EINTR;
    return true;
}

ssize_t __wrap_read(int file, void *data, size_t size) {
    return is_interrupted() ? -1 : __real_read(file, data, size < most_bytes ? size : most_bytes);
}

ssize_t __wrap_write(int file, const void *data, size_t size) {
    return is_interrupted() ? -1 : __real_write(file, data, size < most_bytes ? size : most_bytes);
}

static void interrupted_and_short_calls_lose_nothing(void **state) {
    most_bytes = 777;
    files_are_copied_and_hashed_in_parts(state);
    most_bytes = SIZE_MAX;
}

/* A missing file is named, and no file remains. */
static void what_is_no_file_is_not_copied(void **state) {
    const place *p = *state;
    char to[96];
    cleat_error error;
    snprintf(to, sizeof to, "%.80s/to", p->folder);
    assert_int_equal(cleat_folder_make(to, NULL), CLEAT_OK);
    assert_int_equal(cleat_file_copy(p->folder, to, "nothing", false, &error), CLEAT_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, "nothing"));
    assert_int_equal(cleat_file_copy(p->folder, to, "to", false, &error), CLEAT_ERR_IO);
    assert_int_equal(files_in(to), 0);
}

static void missing_file_is_named(void **state) {
    const place *p = *state;
    cleat_error error;
    char *data = NULL;
    size_t size;
    assert_int_equal(cleat_file_read(p->path, &data, &size, &error), CLEAT_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, p->path));
    assert_int_equal(cleat_file_read(p->folder, &data, &size, &error), CLEAT_ERR_IO);
    assert_non_null(strstr(error.text, "not a regular file"));
    assert_null(data);
}

static void read_without_memory_is_an_error(void **state) {
    const place *p = *state;
    char *data = NULL;
    size_t size;
    assert_int_equal(cleat_file_write(p->path, "x", 1, NULL), CLEAT_OK);
    cleat_fail_allocation(1);
    assert_int_equal(cleat_file_read(p->path, &data, &size, NULL), CLEAT_ERR_MEMORY);
    cleat_fail_allocation(0);
    assert_null(data);
}

/* The rename fails because a folder has the name: the folder remains, and no temporary file is left. */
static void failed_write_leaves_nothing(void **state) {
    const place *p = *state;
    cleat_error error;
    char inner[160];
    snprintf(inner, sizeof inner, "%s/inner", p->path);
    assert_int_equal(cleat_folder_make(inner, NULL), CLEAT_OK);
    assert_int_equal(cleat_file_write(p->path, "x", 1, &error), CLEAT_ERR_IO);
    assert_non_null(strstr(error.text, p->path));
    assert_true(cleat_folder_exists(inner));
    assert_int_equal(files_in(p->folder), 1);
    snprintf(inner, sizeof inner, "%s/no/such/folder", p->folder);
    assert_int_equal(cleat_file_write(inner, "x", 1, &error), CLEAT_ERR_NOT_FOUND);
}

static struct { char text[256]; } logged;

static void keep_log(void *user, cleat_log_level level, const char *text) {
    (void)user, (void)level;
    snprintf(logged.text, sizeof logged.text, "%s", text);
}

/* Messages contain file names and table cells, which must not move the cursor or set a title. */
static void messages_have_no_control_characters(void **state) {
    (void)state;
    static const char bad[] = "a\033[2J\rb\001\177\xC2\x9B"
                              "31mc",
                      clean[] = "a?[2J?b????31mc";
    cleat_error error;
    cleat_fail(&error, CLEAT_ERR_IO, "%s", bad);
    assert_string_equal(error.text, clean);
    cleat_fail_in(&error, CLEAT_ERR_IO, "%s", bad);
    assert_non_null(strstr(error.text, clean));
    assert_null(strchr(error.text, '\033'));
    cleat_set_log(keep_log, NULL, CLEAT_LOG_INFO);
    cleat_log(CLEAT_LOG_WARNING, "%s", bad);
    cleat_set_log(NULL, NULL, CLEAT_LOG_ERROR);
    assert_string_equal(logged.text, clean);
    cleat_fail(&error, CLEAT_ERR_IO, "%s", "two\n\tlines, \xC3\xA4 \xC2\xA0 \xE2\x82\xAC \xC2");
    assert_string_equal(error.text, "two\n\tlines, \xC3\xA4 \xC2\xA0 \xE2\x82\xAC \xC2");
}

static void folders_are_made_with_their_parents(void **state) {
    const place *p = *state;
    cleat_error error;
    char path[160], file[128];
    snprintf(path, sizeof path, "%s/a/b//c/", p->folder);
    assert_int_equal(cleat_folder_make(path, &error), CLEAT_OK);
    assert_int_equal(cleat_folder_make(path, &error), CLEAT_OK);
    assert_true(cleat_folder_exists(path));
    assert_int_equal(cleat_file_write(p->path, "x", 1, NULL), CLEAT_OK);
    snprintf(file, sizeof file, "%.100s/below", p->path);
    assert_int_not_equal(cleat_folder_make(file, &error), CLEAT_OK);
    assert_non_null(strstr(error.text, p->path));
    assert_int_equal(cleat_folder_make("", &error), CLEAT_ERR_ARGUMENT);
}

static bool is_csv(const char *name) {
    return strcmp(cleat_name_ending(name), ".csv") == 0;
}

static void folders_are_listed_in_order(void **state) {
    const place *p = *state;
    static const char *const names[] = {"b.csv", "C.csv", ".hidden.csv", "a.csv.txt", ".csv", "ends.b", "a b.csv"};
    cleat_name_list all = {0}, tables = {0};
    cleat_error error;
    char path[160];
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        assert_int_equal(cleat_path_join(p->folder, names[i], path, sizeof path, &error), CLEAT_OK);
        assert_int_equal(cleat_file_write(path, "x", 1, &error), CLEAT_OK);
    }
    assert_int_equal(cleat_listing_read(p->folder, NULL, &all, &error), CLEAT_OK);
    assert_int_equal(cleat_listing_read(p->folder, is_csv, &tables, &error), CLEAT_OK);
    assert_int_equal(all.count, 5);
    assert_string_equal(all.names[4], "ends.b");
    assert_int_equal(tables.count, 3);
    assert_string_equal(tables.names[0], "C.csv");
    assert_string_equal(tables.names[1], "a b.csv");
    assert_string_equal(tables.names[2], "b.csv");
    /* a file instead of a folder (wine: "not found"): the listing is unchanged */
    assert_int_not_equal(cleat_listing_read(path, NULL, &tables, &error), CLEAT_OK);
    assert_int_equal(tables.count, 3);
    snprintf(path, sizeof path, "%s/nowhere", p->folder);
    assert_int_equal(cleat_listing_read(path, NULL, &tables, &error), CLEAT_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, path));
    cleat_name_list_free(&tables);
    cleat_name_list_free(&all);
    assert_string_equal(cleat_name_ending(".csv"), "");
    assert_string_equal(cleat_name_ending("ends."), ".");
    assert_true(cleat_ends_in("a/IMG_1.JPG", ".jpeg .jpg") && cleat_ends_in("a.b.tsv", ".csv .tsv"));
    assert_false(cleat_ends_in("plain", ".csv") || cleat_ends_in(".csv", ".csv") || cleat_ends_in("a.cs", ".csv"));
}

static void paths_are_split_at_their_last_slash(void **state) {
    static const char *const rows[][3] = {{"a", ".", "a"}, {"/a", "/", "a"}, {"b/a", "b", "a"}, {"/c/b/", "/c/b", ""}};
    char folder[5];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        assert_string_equal(cleat_path_split(rows[i][0], folder, sizeof folder), rows[i][2]);
        assert_string_equal(folder, rows[i][1]);
    }
    assert_null(cleat_path_split("long!/a", folder, sizeof folder));
}

#if CLEAT_FORKS /* Windows has no such ids */

/* The user id that the library gets; 0: the real one. */
static uid_t pretended;

uid_t geteuid(void) {
    return pretended ? pretended : (uid_t)syscall(SYS_geteuid);
}

/* Kernels in the cache folder are executed: another user's folder is refused, even if only its owner can
 * write there. */
static void cache_folder_of_another_user_is_refused(const char *wanted) {
    char path[256] = "unchanged";
    cleat_error error = {0};
    struct stat about;
    assert_int_equal(stat(wanted, &about), 0);
    pretended = about.st_uid + 1;
    const cleat_status status = cleat_cache_folder(path, sizeof path, &error);
    pretended = 0;
    assert_int_equal(status, CLEAT_ERR_IO);
    assert_non_null(strstr(error.text, "belongs to another user"));
}

static void cache_folder_is_private(void **state) {
    const place *p = *state;
    char path[256], small[8], wanted[128], inner[160];
    struct stat about;
    const char *known = getenv("CLEAT_CACHE_DIR");
    char *before = known ? strdup(known) : NULL;
    snprintf(wanted, sizeof wanted, "%s/cache", p->folder);
    setenv("CLEAT_CACHE_DIR", wanted, 1);
    assert_int_equal(cleat_cache_folder(path, sizeof path, NULL), CLEAT_OK);
    assert_string_equal(path, wanted);
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0700);
    assert_int_equal(chmod(path, 0755), 0); /* the user chose these permissions */
    assert_int_equal(cleat_cache_folder(path, sizeof path, NULL), CLEAT_OK);
    assert_string_equal(path, wanted);
    cache_folder_of_another_user_is_refused(wanted);
    assert_int_equal(chmod(path, 01777), 0);
    assert_int_equal(cleat_cache_folder(path, sizeof path, NULL), CLEAT_OK);
    assert_int_equal(stat(wanted, &about), 0);
    assert_int_equal(about.st_mode & 07777, 01777);
    snprintf(inner, sizeof inner, "%s/cleat", wanted);
    assert_string_equal(path, inner);
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0700);
    assert_int_equal(chmod(path, 0777), 0);
    assert_int_equal(cleat_cache_folder(path, sizeof path, NULL), CLEAT_ERR_IO);
    assert_int_equal(cleat_cache_folder(small, sizeof small, NULL), CLEAT_ERR_ARGUMENT);
    if (before)
        setenv("CLEAT_CACHE_DIR", before, 1);
    else
        unsetenv("CLEAT_CACHE_DIR");
    free(before);
}
#endif

/* XXH3 of empty input, 128 bits, seed 0: the value in xxHash's own tests. */
static void hash_is_xxh3(void **state) {
    (void)state;
    char text[33], other[33];
    cleat_hash_text("", 0, text);
    assert_string_equal(text, "99aa06d3014798d86001c324468d497f");
    cleat_hash_text("abc", 3, text);
    cleat_hash_text("abd", 3, other);
    assert_string_not_equal(text, other);
}

/* --- memory --- */

static void chosen_allocation_fails_once(void **state) {
    (void)state;
    cleat_fail_allocation(2);
    void *first = cleat_alloc(1, 8), *second = cleat_alloc(1, 8), *third = cleat_alloc(0, 0);
    assert_non_null(first);
    assert_null(second);
    assert_non_null(third);
    cleat_free(first);
    cleat_free(third);
    assert_null(cleat_alloc(SIZE_MAX / 2, 3));
}

/* Reserved capacity is not reserved again, and contents are kept. */
static void texts_reserve_room(void **state) {
    cleat_string text = {0};
    (void)state;
    cleat_string_add(&text, "abc");
    cleat_string_reserve(&text, 1000);
    const size_t capacity = text.capacity;
    assert_true(capacity >= 1004 && capacity < 1100);
    assert_string_equal(text.data, "abc");
    for (int i = 0; i < 1000; ++i) cleat_string_add_bytes(&text, "x", 1);
    assert_int_equal(text.capacity, capacity);
    assert_int_equal(strlen(text.data), 1003);
    cleat_string_reserve(&text, 0);
    assert_int_equal(text.capacity, capacity);
    cleat_fail_allocation(1);
    cleat_string_reserve(&text, 5000);
    cleat_fail_allocation(0);
    assert_true(text.failed);
    assert_string_equal(text.data + 1000, "xxx");
    cleat_string_free(&text);
}

static void arrays_grow_zeroed(void **state) {
    (void)state;
    int *items = NULL;
    size_t capacity = 0;
    for (size_t count = 0; count < 100; ++count) {
        assert_int_equal(cleat_grow(&items, count, &capacity, NULL), CLEAT_OK);
        assert_true(capacity > count);
        assert_int_equal(items[count], 0);
        items[count] = (int)count + 1;
    }
    for (int i = 0; i < 100; ++i) assert_int_equal(items[i], i + 1);
    size_t before = capacity;
    cleat_error error;
    cleat_fail_allocation(1);
    assert_int_equal(cleat_grow(&items, capacity, &capacity, &error), CLEAT_ERR_MEMORY);
    assert_int_equal(capacity, before);
    assert_int_equal(items[99], 100);
    cleat_free(items);
}

/* --- halves --- */

static float half_value(uint16_t bits) {
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    float size = exponent ? ldexpf((float)(1024 + fraction), exponent - 25) : ldexpf((float)fraction, -24);
    return bits >> 15 ? -size : size;
}

static float bfloat_value(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

static void rounds_to(void (*round)(const float *, size_t, uint16_t *), float value, uint16_t expected) {
    uint16_t bits;
    round(&value, 1, &bits);
    if (bits != expected) fail_msg("%a becomes %04x instead of %04x", (double)value, bits, expected);
}

/* Every finite value, and points between it and the next: to nearest, ties to even. `most`: the bits of the
 * largest finite value. */
static void rounds_to_nearest(void (*round)(const float *, size_t, uint16_t *), float (*value)(uint16_t),
                              uint16_t most) {
    for (uint32_t sign = 0; sign < 0x10000; sign += 0x8000)
        for (uint32_t i = 0; i <= most; ++i) {
            const uint16_t low = (uint16_t)(sign | i), high = (uint16_t)(low + 1);
            /* Beyond the largest finite value, the next value would be as far away as the previous one. */
            const float here = value(low), next = i < most ? value(high) : here + (here - value((uint16_t)(low - 1)));
            const float middle = here + (next - here) / 2;
            rounds_to(round, here, low);
            if (isinf(next)) continue;
            rounds_to(round, nextafterf(middle, here), low);
            rounds_to(round, middle, i % 2 ? high : low);
            rounds_to(round, nextafterf(middle, next), high);
        }
}

static void floats_round_to_halves(void **state) {
    (void)state;
    rounds_to_nearest(cleat_to_f16, half_value, 0x7bff);
    rounds_to_nearest(cleat_to_bf16, bfloat_value, 0x7f7f);
    rounds_to(cleat_to_f16, INFINITY, 0x7c00);
    rounds_to(cleat_to_f16, -1e30f, 0xfc00);
    rounds_to(cleat_to_bf16, -INFINITY, 0xff80);
    rounds_to(cleat_to_bf16, FLT_MAX, 0x7f80);
    for (uint32_t nan = 0x7f800001; nan < 0x80000000u; nan = nan * 2 - 0x7f800000) {
        float value;
        uint16_t f16, bf16;
        memcpy(&value, &nan, sizeof value);
        cleat_to_f16(&value, 1, &f16);
        cleat_to_bf16(&value, 1, &bf16);
        assert_true((f16 & 0x7fff) > 0x7c00 && (bf16 & 0x7fff) > 0x7f80);
    }
}

/* Every bit pattern. */
static void halves_become_floats(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 0x10000; ++i) {
        const uint16_t bits = (uint16_t)i;
        float f16, bf16, expected;
        cleat_from_f16(&bits, 1, &f16);
        cleat_from_bf16(&bits, 1, &bf16);
        expected = bfloat_value(bits);
        assert_memory_equal(&bf16, &expected, sizeof expected);
        if ((bits & 0x7fff) > 0x7c00) {
            assert_true(isnan(f16));
            continue;
        }
        expected = (bits & 0x7fff) == 0x7c00 ? (bits >> 15 ? -INFINITY : INFINITY) : half_value(bits);
        if (memcmp(&f16, &expected, sizeof f16) != 0)
            fail_msg("%04x becomes %a instead of %a", (unsigned)bits, (double)f16, (double)expected);
    }
}

/* The first and the last of each length, and their neighbours. */
static void only_characters_are_utf8(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t size;
    } cases[] = {
        {"a", 1},
        {"\x7f", 1},
        {"\x80", 0},
        {"\xc1\xbf", 0},
        {"\xc2\x80", 2},
        {"\xdf\xbf", 2},
        {"\xc3(", 0},
        {"\xe0\x9f\xbf", 0},
        {"\xe0\xa0\x80", 3},
        {"\xe1\x80\x80", 3},
        {"\xed\x9f\xbf", 3},
        {"\xed\xa0\x80", 0},
        {"\xef\xbf\xbf", 3},
        {"\xe2\x82", 0},
        {"\xf0\x8f\xbf\xbf", 0},
        {"\xf0\x90\x80\x80", 4},
        {"\xf0\x9f\x98\x80", 4},
        {"\xf1\x80\x80\x80", 4},
        {"\xf4\x8f\xbf\xbf", 4},
        {"\xf4\x90\x80\x80", 0},
        {"\xf5\x80\x80\x80", 0},
        {"\xf3\xa0\x81", 0},
        {"\xff", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
        if (cleat_utf8_size(cases[i].text) != cases[i].size) fail_msg("case %zu", i);
}

static void only_finite_decimal_numbers_are_parsed(void **state) {
    (void)state;
    static const char *const bad[] = {"",      " 1",  "1 ", "0x10", "nan", "inf", "-inf",
                                      "1e999", "1,5", "+",  ".",    "e3",  "--1", "1p3"};
    static const struct {
        const char *text;
        double value;
    } good[] = {{"1.5", 1.5}, {"-2e3", -2000}, {"+.5", 0.5}, {"0", 0}, {"1e-300", 1e-300}, {"7.", 7}};
    double value = 42;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i)
        if (cleat_number_parse(bad[i], &value) || value != 42) fail_msg("'%s' is a number", bad[i]);
    for (size_t i = 0; i < sizeof good / sizeof *good; ++i) {
        assert_true(cleat_number_parse(good[i].text, &value));
        assert_true(value == good[i].value);
    }
}

static void fields_of_tables_are_quoted(void **state) {
    (void)state;
    cleat_string text = {0};
    cleat_string_add_field(&text, "plain field");
    cleat_string_add_field(&text, ",\"");
    cleat_string_add_field(&text, "a\nb");
    assert_string_equal(text.data, "plain field\",\"\"\"\"a\nb\"");
    cleat_string_free(&text);
}

static void strings_of_json_are_quoted(void **state) {
    (void)state;
    cleat_string text = {0};
    cleat_json_add_string(&text, "plain ~ \xc3\xa9");
    cleat_json_add_string(&text, "\"\\ \x1f\n\x7f");
    assert_string_equal(text.data, "\"plain ~ \xc3\xa9\"\"\\\"\\\\ \\u001f\\u000a\\u007f\"");
    cleat_string_free(&text);
}

static void documents_of_json_have_commas(void **state) {
    static const char *const expected[] = {
        "{\"a\":[1,null,{}],\"b\":{\"t\":true,\"n\":null,\"e\":null},\"x\":0.25,\"d\":0.33,\"f\":2.50,\"y\":0."
        "33333333333333331}\n[]",
        "{\"a\": [1, null, {}], \"b\": {\"t\": true, \"n\": null, \"e\": null}, \"x\": 0.25, \"d\": 0.33, \"f\": 2.50, "
        "\"y\": 0.33333333333333331}\n[]"};
    (void)state;
    for (int spaced = 0; spaced < 2; ++spaced) {
        cleat_string text = {.spaced = spaced};
        json_add(&text, json_open(NULL, '{'), json_open("a", '['), json_count(NULL, 1), json_text(NULL, NULL),
                 json_open(NULL, '{'), json_close('}'), json_close(']'), json_open("b", '{'), json_bool("t", true),
                 json_number("n", NAN), json_some("e", ""), json_close('}'), json_number("x", 0.25),
                 json_digits("d", 1 / 3.0, 2), json_fixed("f", 2.5, 2), json_exact("y", 1 / 3.0), json_close('}'));
        cleat_string_add(&text, "\n");
        json_add(&text, json_open(NULL, '['), json_close(']'));
        assert_string_equal(text.data, expected[spaced]);
        cleat_string_free(&text);
    }
}

static void times_of_json_have_milliseconds(void **state) {
    (void)state;
    cleat_string text = {0};
    json_add(&text, json_open(NULL, '['), json_time(NULL, 1764.5678), json_time(NULL, 0.0009), json_close(']'));
    assert_string_equal(text.data, "[1764.568,0.001]");
    cleat_string_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_holds_what_was_said),
        cmocka_unit_test(strings_of_json_are_quoted),
        cmocka_unit_test(documents_of_json_have_commas),
        cmocka_unit_test(times_of_json_have_milliseconds),
        cmocka_unit_test(error_may_be_null),
        cmocka_unit_test(error_text_is_cut),
        cmocka_unit_test(every_status_has_a_text),
        cmocka_unit_test(log_drops_what_is_above_its_level),
        cmocka_unit_test(philox_gives_the_published_values),
        cmocka_unit_test(streams_repeat_and_differ),
        cmocka_unit_test(a_stream_is_the_blocks_in_order),
        cmocka_unit_test(stream_crosses_a_word_of_the_counter),
        cmocka_unit_test(draws_have_their_distribution),
        cmocka_unit_test(shuffle_is_a_fair_permutation),
        cmocka_unit_test_setup_teardown(file_comes_back_as_written, make_place, remove_place),
        cmocka_unit_test_setup_teardown(empty_file_is_read, make_place, remove_place),
        cmocka_unit_test_setup_teardown(files_are_copied_and_hashed_in_parts, make_place, remove_place),
        cmocka_unit_test_setup_teardown(interrupted_and_short_calls_lose_nothing, make_place, remove_place),
        cmocka_unit_test_setup_teardown(what_is_no_file_is_not_copied, make_place, remove_place),
        cmocka_unit_test_setup_teardown(missing_file_is_named, make_place, remove_place),
        cmocka_unit_test_setup_teardown(read_without_memory_is_an_error, make_place, remove_place),
        cmocka_unit_test_setup_teardown(failed_write_leaves_nothing, make_place, remove_place),
        cmocka_unit_test(messages_have_no_control_characters),
        cmocka_unit_test_setup_teardown(folders_are_made_with_their_parents, make_place, remove_place),
        cmocka_unit_test_setup_teardown(folders_are_listed_in_order, make_place, remove_place),
        cmocka_unit_test(paths_are_split_at_their_last_slash),
#if CLEAT_FORKS
        cmocka_unit_test_setup_teardown(cache_folder_is_private, make_place, remove_place),
#endif
        cmocka_unit_test(hash_is_xxh3),
        cmocka_unit_test(chosen_allocation_fails_once),
        cmocka_unit_test(texts_reserve_room),
        cmocka_unit_test(arrays_grow_zeroed),
        cmocka_unit_test(floats_round_to_halves),
        cmocka_unit_test(only_characters_are_utf8),
        cmocka_unit_test(only_finite_decimal_numbers_are_parsed),
        cmocka_unit_test(fields_of_tables_are_quoted),
        cmocka_unit_test(halves_become_floats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
