/* The files of the platform: what Windows does otherwise than Linux. */
/* ctest: quick */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "platform/files.h"
#include "platform/processes.h"
#include "platform/text.h"

#define HARD "a \\\"b\"\" c:\\ "

typedef struct place {
    char folder[64], path[96];
} place;

static int make_place(void **state) {
    place *p = calloc(1, sizeof *p);
    if (!p) return -1;
    snprintf(p->folder, sizeof p->folder, "/tmp/cleat-platform-XXXXXX");
    if (!mkdtemp(p->folder)) return -1;
    snprintf(p->path, sizeof p->path, "%s/file", p->folder);
    *state = p;
    return 0;
}

static int remove_place(void **state) {
    place *p = *state;
    unlink(p->path);
    const int left = rmdir(p->folder);
    free(p);
    return left;
}

/* Neither positions nor sizes of calls have 32 bits. */
static void files_are_larger_than_4_gib(void **state) {
    const place *p = *state;
    const int64_t at = (int64_t)4 << 30 | 7;
    char bytes[4] = "";
    struct stat about;
    const int file = open(p->path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(file >= 0);
    assert_int_equal(ftruncate(file, at), 0);
    assert_int_equal(lseek(file, 0, SEEK_END), at);
    assert_int_equal(write(file, "abc", 3), 3);
    assert_int_equal(pread(file, bytes, 3, (off_t)at), 3);
    assert_string_equal(bytes, "abc");
    assert_int_equal(fstat(file, &about), 0);
    assert_int_equal(about.st_size, at + 3);
    char *volatile room = calloc(1, 32 << 20); /* to the file's end; wine looks at all that it may read at once */
    assert_non_null(room);
    for (int shift = 31; shift <= 32; ++shift) {
        assert_int_equal(lseek(file, (off_t)at, SEEK_SET), at);
        assert_int_equal(read(file, room, (size_t)1 << shift), 3);
    }
    assert_string_equal(room, "abc");
    free(room);
    close(file);
}

static const char *read_back(const char *path, char text[64]) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    text[fread(text, 1, 63, file)] = 0;
    fclose(file);
    return text;
}

/* A program that inherits a file opened for appending continues it, as `cleat sweep` continues the log of a run. */
static void programs_append(void **state) {
    const place *p = *state;
    char text[64];
    for (int i = 0; i < 2; ++i) {
        const int file = open(p->path, O_WRONLY | O_CREAT | O_APPEND, 0600);
        assert_true(file >= 0);
        if (i == 0) assert_int_equal(write(file, "begin ", 6), 6);
        char *const words[] = {(char *)"files", (char *)"append", NULL};
        const pid_t child = cleat_spawn(NULL, words, file, file, SIGKILL);
        assert_true(child > 0);
        close(file);
        int code = -1;
        assert_int_equal(waitpid(child, &code, 0), child);
        assert_int_equal(code, 0);
    }
    assert_string_equal(read_back(p->path, text), "begin out err out err ");
}

static int append(void) {
    return write(STDOUT_FILENO, "out ", 4) == 4 && write(STDERR_FILENO, "err ", 4) == 4 ? 0 : 1;
}

/* As many names as there are; of a folder that is missing, an error. */
static void folders_are_listed(void **state) {
    const place *p = *state;
    int count = 0;
    close(open(p->path, O_WRONLY | O_CREAT, 0600));
    DIR *folder = opendir(p->folder);
    assert_non_null(folder);
    errno = 0;
    for (const struct dirent *entry; (entry = readdir(folder));) count += entry->d_name[0] != '.';
    assert_int_equal(errno, 0);
    assert_int_equal(count, 1);
    closedir(folder);
    folder = opendir("/");
    assert_non_null(folder);
    closedir(folder);
    assert_null(opendir("/tmp/cleat-platform-missing"));
    assert_int_equal(errno, ENOENT);
}

/* Words that a command line must quote, and a word longer than a path. */
static void words_arrive_as_they_are(void **state) {
    enum { LONG = 10000 };
    char *word = calloc(1, LONG + 1);
    (void)state;
    assert_non_null(word);
    memset(word, 'x', LONG);
    memcpy(word, HARD, sizeof HARD - 1);
    char *const words[] = {(char *)"files", (char *)"words", word, (char *)"", NULL};
    const pid_t child = cleat_spawn(NULL, words, STDOUT_FILENO, STDERR_FILENO, SIGKILL);
    assert_true(child > 0);
    free(word);
    int code = -1;
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
}

/* What is left of a program that ends at once. */
static void messages_are_not_kept_back(void **state) {
    const place *p = *state;
    char *const words[] = {(char *)"files", (char *)"message", NULL};
    char text[64];
    const int file = open(p->path, O_WRONLY | O_CREAT, 0600);
    assert_true(file >= 0);
    const pid_t child = cleat_spawn(NULL, words, file, file, SIGKILL);
    assert_true(child > 0);
    close(file);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_string_equal(read_back(p->path, text), "7 words");
}

static int message(void) {
    fprintf(stderr, "%d words", 7);
    _exit(0);
}

/* A stream for reading stands for one that cannot be written, as on a full disk. */
static void a_print_that_fails_says_so(void **state) {
    const place *p = *state;
    close(open(p->path, O_WRONLY | O_CREAT, 0600));
    FILE *stream = fopen(p->path, "rb");
    assert_non_null(stream);
    assert_true(fprintf(stream, "%d words", 7) < 0);
    fclose(stream);
}

/* Windows has another number for it. */
static void a_pipe_without_a_reader_is_told_apart(void **state) {
    int ends[2];
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    errno = 0;
    assert_int_equal(write(ends[1], "x", 1), -1);
    assert_int_equal(errno, CLEAT_UNREAD);
    close(ends[1]);
}

/* A folder is not replaced, nor waited for. */
static void a_folder_is_in_the_way(void **state) {
    const place *p = *state;
    struct timespec begin, end;
    close(open(p->path, O_WRONLY | O_CREAT, 0600));
    clock_gettime(CLOCK_MONOTONIC, &begin);
    assert_int_equal(rename(p->path, p->folder), -1);
    clock_gettime(CLOCK_MONOTONIC, &end);
    assert_true(end.tv_sec - begin.tv_sec <= 1);
    assert_int_equal(access(p->path, F_OK), 0);
}

#ifdef _WIN32
static void prefixes_of_drives_are_removed(void **state) {
    static const char *const rows[][2] = {{"\\\\?\\C:\\a", "C:/a"},
                                          {"\\\\?\\UNC\\a\\b", "//a/b"},
                                          {"\\\\a\\b", "//a/b"},
                                          {"\\\\?\\Volume{0}\\a", "//?/Volume{0}/a"},
                                          {"a\\b", "a/b"}};
    char path[64];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        snprintf(path, sizeof path, "%s", rows[i][0]);
        cleat_path_from_user(path);
        assert_string_equal(path, rows[i][1]);
    }
}
#endif

/* As glibc orders them. */
static void numbers_in_texts_are_ordered(void **state) {
    static const char *const texts[] = {"",   "000", "00",   "01",  "010", "09",    "0",   "1",    "9",
                                        "10", "a",   "a1_x", "a1x", "a2",  "a10_x", "a12", "a101", "b"};
    (void)state;
    for (int i = 0; i < (int)(sizeof texts / sizeof *texts); ++i)
        for (int k = 0; k < (int)(sizeof texts / sizeof *texts); ++k) {
            const int order = strverscmp(texts[i], texts[k]);
            if ((order > 0) - (order < 0) != (i > k) - (i < k)) fail_msg("'%s' and '%s'", texts[i], texts[k]);
        }
}

static void patterns_match(void **state) {
    static const struct {
        const char *pattern, *name;
        bool matches;
    } rows[] = {{"", "", true},
                {"", "a", false},
                {"a", "", false},
                {"*", "", true},
                {"*", "gelu", true},
                {"gelu", "gelu", true},
                {"gelu", "gelus", false},
                {"l?near", "linear", true},
                {"linear?", "linear", false},
                {"*norm*", "layer_norm", true},
                {"*norm", "batch_norms", false},
                {"a*b*c", "axbxbc", true},
                {"a*b*c", "axcxb", false},
                {"**a", "bca", true}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
        if ((fnmatch(rows[i].pattern, rows[i].name, 0) == 0) != rows[i].matches)
            fail_msg("'%s' and '%s'", rows[i].pattern, rows[i].name);
}

int main(int count, char **words) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_are_larger_than_4_gib, make_place, remove_place),
        cmocka_unit_test_setup_teardown(programs_append, make_place, remove_place),
        cmocka_unit_test_setup_teardown(folders_are_listed, make_place, remove_place),
        cmocka_unit_test_setup_teardown(a_folder_is_in_the_way, make_place, remove_place),
        cmocka_unit_test(words_arrive_as_they_are),
        cmocka_unit_test_setup_teardown(messages_are_not_kept_back, make_place, remove_place),
        cmocka_unit_test_setup_teardown(a_print_that_fails_says_so, make_place, remove_place),
        cmocka_unit_test(a_pipe_without_a_reader_is_told_apart),
        cmocka_unit_test(patterns_match),
        cmocka_unit_test(numbers_in_texts_are_ordered),
#ifdef _WIN32
        cmocka_unit_test(prefixes_of_drives_are_removed),
#endif
    };
    if (count == 4 && strcmp(words[1], "words") == 0)
        return strncmp(words[2], HARD, sizeof HARD - 1) == 0 && strlen(words[2]) == 10000 && !*words[3] ? 0 : 1;
    if (count == 2 && strcmp(words[1], "append") == 0) return append();
    if (count == 2 && strcmp(words[1], "message") == 0) return message();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
