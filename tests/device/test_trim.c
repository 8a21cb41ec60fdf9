/* Memory left by compilers is returned to the system, and compiling still works afterwards. */
/* ctest: device */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/memory.h"
#include "open_device.h"
#include "platform/files.h"
#include "platform/processes.h"
#include "platform/threads.h"

enum { BLOCKS = 32768, BLOCK = 1024 }; /* 32 MiB */

static cleat_device *device;

static long resident_kb(void) {
    long pages = 0, all;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &all, &pages) != 2) pages = 0;
    if (file) fclose(file);
    return pages * 4;
}

/* Resident clean KB in mappings of files whose names contain `part`. */
static long library_kb(const char *part) {
    char line[4096];
    long sum = 0, kb;
    bool inside = false;
    FILE *file = fopen("/proc/self/smaps", "r");
    while (file && fgets(line, sizeof line, file)) {
        char rights[8];
        if (sscanf(line, "%*x-%*x %7s", rights) == 1) inside = strstr(line, part) && !strchr(rights, 'w');
        if (inside && (sscanf(line, "Shared_Clean: %ld", &kb) == 1 || sscanf(line, "Private_Clean: %ld", &kb) == 1))
            sum += kb;
    }
    if (file) fclose(file);
    return sum;
}

/* Leaves free blocks below a used one in the arena of one thread, as a compiler does. */
static void *fragment(void *user) {
    void **blocks = malloc((BLOCKS + 1) * sizeof *blocks);
    if (!blocks) return NULL;
    for (size_t i = 0; i <= BLOCKS; ++i)
        if ((blocks[i] = malloc(BLOCK))) memset(blocks[i], 1, BLOCK);
    for (size_t i = 0; i < BLOCKS; ++i) free(blocks[i]);
    *(void **)user = blocks[BLOCKS];
    free(blocks);
    return NULL;
}

static void free_parts_of_a_heap_go_back(void **state) {
    pthread_t thread;
    void *last = NULL;
    (void)state;
#if !defined __GLIBC__ || defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    skip(); /* another allocator */
#endif
    const long start = resident_kb();
    assert_int_equal(pthread_create(&thread, NULL, fragment, &last), 0);
    pthread_join(thread, NULL);
    const long before = resident_kb();
    cleat_trim_memory();
    const long after = resident_kb();
    free(last);
    if (before - start < 24 * 1024) skip(); /* this machine's allocator retains nothing */
    if (before - after < 24 * 1024) fail_msg("%ld KB, %ld after trimming", before, after);
}

static void a_compilers_pages_go_back_and_return(void **state) {
    const cleat_program_key key = {"pointwise.cl", "-DSTORAGE_F32 -DWG=1 -DVEC=4 -DTRIMMED=1", NULL};
    cl_program program = NULL;
    cleat_error error = {0};
    (void)state;
    const long before = library_kb("libLLVM");
    if (before < 4 * 1024) skip(); /* the driver does not load this library */
    cleat_trim_memory();
    const long after = library_kb("libLLVM");
    if (after > before / 4) fail_msg("%ld KB of libLLVM, %ld after trimming", before, after);
    if (build_program(device, &key, &program, &error)) fail_msg("%s", error.text);
    assert_int_equal(clReleaseProgram(program), CL_SUCCESS);
}

enum { THREADS = 8, TRIES = 20 };

static void *trim(void *user) {
    pthread_barrier_wait(user);
    cleat_trim_memory();
    return NULL;
}

/* Threads build programs and trim afterwards. With a sanitizer's allocator, the C library's may be first used
 * here. */
static void threads_trim_at_once(void **state) {
    (void)state;
    for (int i = 0; i < TRIES; ++i) {
        pthread_t threads[THREADS];
        pthread_barrier_t start;
        assert_int_equal(pthread_barrier_init(&start, NULL, THREADS), 0);
        for (int t = 0; t < THREADS; ++t) assert_int_equal(pthread_create(&threads[t], NULL, trim, &start), 0);
        for (int t = 0; t < THREADS; ++t) assert_int_equal(pthread_join(threads[t], NULL), 0);
        pthread_barrier_destroy(&start);
    }
}

int main(void) {
    setenv("CLEAT_BINARY_CACHE", "never", 1);
    const struct CMUnitTest first_use[] = {cmocka_unit_test(threads_trim_at_once)};
    int failed = cmocka_run_group_tests(first_use, NULL, NULL);
    device = open_device();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_compilers_pages_go_back_and_return), /* before the others trim with the driver loaded */
        cmocka_unit_test(free_parts_of_a_heap_go_back),
    };
    failed += cmocka_run_group_tests(tests, NULL, NULL);
    cleat_device_close(device);
    return failed;
}
