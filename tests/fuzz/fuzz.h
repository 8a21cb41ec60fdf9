/* What every target of the fuzzer shares: the list of parsers, and files made of its bytes. */
#ifndef CLEAT_TESTS_FUZZ_H
#define CLEAT_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Gives the bytes [size] to one parser of the library, which must end without a fault; what it reads is freed. */
typedef void (*fuzz_parser)(const uint8_t *bytes, size_t size);
typedef struct fuzz_target {
    const char *name; /* folder of its inputs in tests/fuzz/corpus */
    fuzz_parser parse;
} fuzz_target;

/* Each list ends with a NULL name. */
extern const fuzz_target fuzz_data_targets[], fuzz_text_targets[], fuzz_run_targets[];
const fuzz_target *fuzz_find(const char *name); /* NULL: there is none */
/* The fuzzer: an input does a part of what a parser is used for. Else, in the replay, all of it. */
extern const bool fuzz_is_quick;

/* A folder of this process, which is empty at first and removed at its end. */
const char *fuzz_folder(void);
/* Writes FOLDER/name; the path is valid until fuzz_clear. */
const char *fuzz_file(const char *name, const uint8_t *bytes, size_t size);
/* Removes the files of the folder. */
void fuzz_clear(void);
/* Takes a part off the input, whose first two bytes are its length. Returns the rest in *bytes and *size. */
size_t fuzz_part(const uint8_t **bytes, size_t *size, const uint8_t **part);
/* A copy with a zero behind it; the caller frees it (free). */
char *fuzz_text(const uint8_t *bytes, size_t size);

#endif
