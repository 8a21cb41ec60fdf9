/* Shared by the fuzzer's targets: the list of parsers, and files with the fuzzer's bytes. */
#ifndef CLEAT_TESTS_FUZZ_H
#define CLEAT_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Passes the bytes [size] to one parser of the library, which must return without a fault. Frees the result. */
typedef void (*fuzz_parser)(const uint8_t *bytes, size_t size);
typedef struct fuzz_target {
    const char *name; /* folder of its inputs in tests/fuzz/corpus */
    fuzz_parser parse;
} fuzz_target;

/* Each list ends with a NULL name. */
extern const fuzz_target fuzz_data_targets[], fuzz_text_targets[], fuzz_run_targets[];
const fuzz_target *fuzz_find(const char *name); /* NULL: unknown */
/* True in the fuzzer: an input covers a part of a parser's uses. False in the replay, which covers all of
 * them. */
extern const bool fuzz_is_quick;

/* A folder of this process, initially empty and removed at exit. */
const char *fuzz_folder(void);
/* Writes FOLDER/name; the path is valid until fuzz_clear. */
const char *fuzz_file(const char *name, const uint8_t *bytes, size_t size);
/* Removes the files of the folder. */
void fuzz_clear(void);
/* Splits off a part of the input, whose first two bytes are the part's length; returns the length. *bytes and
 * *size become the rest. */
size_t fuzz_part(const uint8_t **bytes, size_t *size, const uint8_t **part);
/* A zero-terminated copy; the caller frees it (free). */
char *fuzz_text(const uint8_t *bytes, size_t size);

#endif
