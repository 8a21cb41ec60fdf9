/* Reading the small files of /proc and /sys. */
#include "monitor/kernel_files.h"

#include "core/files.h"
#include "platform/files.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 1024 };

static bool read_start(char *text, size_t size, const char *path) {
    size_t used = 0;
    ssize_t got = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    while (used < size - 1 && (got = read(file, text + used, size - 1 - used)) > 0) used += (size_t)got;
    close(file);
    text[used] = 0;
    return got >= 0 && used > 0;
}

static bool print_path(char path[PATH_BYTES], const char *format, va_list rest) {
    int length = vsnprintf(path, PATH_BYTES, format, rest);
    return length > 0 && length < PATH_BYTES;
}

bool cleat_kernel_text(char *text, size_t size, const char *path, ...) {
    char whole[PATH_BYTES];
    va_list rest;
    va_start(rest, path);
    bool fits = print_path(whole, path, rest);
    va_end(rest);
    return fits && read_start(text, size, whole);
}

/* Parses a decimal integer that is followed by white space or the end. */
static bool parse_number(const char *text, double *number) {
    char *end = NULL;
    const long long value = strtoll(text, &end, 10);
    if (end == text || (*end && !strchr(" \t\n", *end))) return false;
    *number = (double)value;
    return true;
}

bool cleat_kernel_number(double *number, const char *path, ...) {
    char whole[PATH_BYTES], text[64];
    va_list rest;
    va_start(rest, path);
    bool fits = print_path(whole, path, rest);
    va_end(rest);
    return fits && read_start(text, sizeof text, whole) && parse_number(text, number);
}

bool cleat_kernel_field(const char *text, const char *word, double *number) {
    const size_t length = strlen(word);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, word, length) == 0) return parse_number(line + length, number);
    }
    return false;
}

bool cleat_kernel_hwmon(const char *device, char *path, size_t size) {
    char folder[PATH_BYTES];
    cleat_name_list listing = {0};
    if ((size_t)snprintf(folder, sizeof folder, "%s/hwmon", device) >= sizeof folder) return false;
    if (cleat_listing_read(folder, NULL, &listing, NULL)) return false;
    bool found = listing.count > 0 && (size_t)snprintf(path, size, "%s/%s", folder, listing.names[0]) < size;
    cleat_name_list_free(&listing);
    return found;
}

/* The kernel gives the first namespace this number on every system (PROC_PID_INIT_INO). In others, processes have
 * other numbers, and a driver's number may belong to another process. */
#define FIRST_NAMESPACE "pid:[4026531836]"

bool cleat_kernel_process(const char *root, long *process) {
    char path[PATH_BYTES], target[64] = "";
    double number = 0;
    snprintf(path, sizeof path, "%s/proc/self/ns/pid", root);
    if (readlink(path, target, sizeof target - 1) <= 0 || strcmp(target, FIRST_NAMESPACE) != 0) return false;
    if (!cleat_kernel_number(&number, "%s/proc/self/stat", root)) return false;
    *process = (long)number;
    return true;
}

double cleat_kernel_growth(cleat_kernel_counter *counter, double value) {
    const double growth = counter->known && value >= counter->last ? value - counter->last : NAN;
    counter->last = value;
    counter->known = true;
    return growth;
}
