/* Status codes, error text and logging: shared by every part of cleat.
 *
 * Every fallible call returns a cleat_status and takes a `cleat_error *` last, which may be NULL. On
 * failure the error holds a sentence with cause, place and remedy. Out-parameters are written on success
 * only. */
#ifndef CLEAT_CORE_H
#define CLEAT_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __GNUC__
#define CLEAT_API __attribute__((visibility("default")))
#define CLEAT_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else /* Microsoft's compiler: libcleat.dll exports by a list */
#define CLEAT_API
#define CLEAT_PRINTF(text, first)
#endif

#define CLEAT_STATUS_LIST(X)                                                                                           \
    X(CLEAT_OK, "ok")                                                                                                  \
    X(CLEAT_ERR_ARGUMENT, "invalid argument")                                                                          \
    X(CLEAT_ERR_PROFILE, "invalid profile")                                                                            \
    X(CLEAT_ERR_IO, "input/output failed")                                                                             \
    X(CLEAT_ERR_FORMAT, "malformed file")                                                                              \
    X(CLEAT_ERR_SHAPE, "shapes do not fit together")                                                                   \
    X(CLEAT_ERR_MEMORY, "out of host memory")                                                                          \
    X(CLEAT_ERR_DEVICE_MEMORY, "out of device memory")                                                                 \
    X(CLEAT_ERR_FIT, "does not fit the device")                                                                        \
    X(CLEAT_ERR_DEVICE, "device failed")                                                                               \
    X(CLEAT_ERR_NO_DEVICE, "no such device")                                                                           \
    X(CLEAT_ERR_BUILD, "kernel does not compile")                                                                      \
    X(CLEAT_ERR_NOT_FOUND, "not found")                                                                                \
    X(CLEAT_ERR_NOT_SUPPORTED, "not supported here")                                                                   \
    X(CLEAT_ERR_NAN, "stopped on a value that is not finite")                                                          \
    X(CLEAT_ERR_TIME_UP, "time is up")                                                                                 \
    X(CLEAT_ERR_INTERRUPTED, "interrupted")                                                                            \
    X(CLEAT_ERR_RANK_LOST, "another rank is gone or does not answer")

typedef enum cleat_status {
#define CLEAT_STATUS_ENUM(code, text) code,
    CLEAT_STATUS_LIST(CLEAT_STATUS_ENUM)
#undef CLEAT_STATUS_ENUM
} cleat_status;

/* The generic text of a status ("ok", "malformed file", ...). Never NULL. */
CLEAT_API const char *cleat_status_text(cleat_status status);

enum { CLEAT_ERROR_TEXT = 2048 };

typedef struct cleat_error {
    cleat_status status;
    int cl_code; /* OpenCL error code that caused it; 0: none */
    char text[CLEAT_ERROR_TEXT];
} cleat_error;

/* Fills `error` (may be NULL) and returns `status`, so that a failing function ends in `return
 * cleat_fail(...)`. The text is truncated to CLEAT_ERROR_TEXT and cleaned (cleat_clean_text). */
CLEAT_API cleat_status cleat_fail(cleat_error *error, cleat_status status, const char *format, ...) CLEAT_PRINTF(3, 4);

/* Prefixes "what: " to the text that an inner call left in `error`; returns error->status (`status` if
 * error is NULL). */
CLEAT_API cleat_status cleat_fail_in(cleat_error *error, cleat_status status, const char *format, ...)
    CLEAT_PRINTF(3, 4);

typedef enum cleat_log_level {
    CLEAT_LOG_ERROR,
    CLEAT_LOG_WARNING,
    CLEAT_LOG_INFO,
    CLEAT_LOG_DEBUG,
    CLEAT_LOG_DISPATCH, /* chosen kernel variant of each node, and why others were refused */
} cleat_log_level;

typedef void (*cleat_log_fn)(void *user, cleat_log_level level, const char *text);

/* Installs the log callback: the library prints nothing by itself. Messages above `level` are dropped. NULL
 * turns logging off. Not thread-safe; call it before anything else. `text` has no newline at its end. */
CLEAT_API void cleat_set_log(cleat_log_fn log, void *user, cleat_log_level level);
CLEAT_API void cleat_log(cleat_log_level level, const char *format, ...) CLEAT_PRINTF(2, 3);

/* Formats a number of bytes for display ("512 bytes", "1.50 KiB", "301.25 MiB", "14.56 GiB") in `text`,
 * which is returned. */
enum { CLEAT_BYTES_TEXT = 32 };
CLEAT_API const char *cleat_bytes_text(int64_t bytes, char text[CLEAT_BYTES_TEXT]);

/* Writes `word` as one word of a shell command: in quotes if a shell would otherwise change or split it.
 * False, with an empty text, if it does not fit, or if PowerShell and cmd have no common form for it. */
CLEAT_API bool cleat_shell_word(const char *word, char *text, size_t size);

/* Replaces control characters except tabs and newlines by '?', in place: those of ASCII, and U+0080 to U+009F
 * in UTF-8. Messages quote names and cells of files, which must not control the terminal; the texts of errors
 * and of the log are already clean. */
CLEAT_API void cleat_clean_text(char *text);

/* The nearest of `names` [count] by edit distance (insert, delete, replace, swap neighbours), for "did you
 * mean"; NULL if none is near. Points into `names`. */
CLEAT_API const char *cleat_nearest_name(const char *name, const char *const *names, size_t count);

/* The version of the running library, "0.2.0", which may be newer than this header. Static string. */
CLEAT_API const char *cleat_version(void);

#ifdef __cplusplus
}
#endif
#endif
