/* Reads and writes NPY files: a prefix of ten or twelve bytes, a Python dictionary as text, the elements. */
#include "data/maps/npy.h"

#include "core/files.h"
#include "core/memory.h"
#include "platform/files.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAGIC_BYTES = 8, LONGEST_HEADER = 65536, PART = 65536, ALIGNMENT = 64 };

static const char magic[6] = "\x93NUMPY";

static bool host_is_little(void) {
    const uint16_t one = 1;
    uint8_t low;
    memcpy(&low, &one, 1);
    return low == 1;
}

static cleat_status io_fail(const char *path, const char *what, cleat_error *error) {
    return cleat_fail(error, errno == ENOENT ? CLEAT_ERR_NOT_FOUND : CLEAT_ERR_IO, "%s: cannot %s: %s", path, what,
                      strerror(errno));
}

static cleat_status truncated_file(const char *path, cleat_error *error) {
    return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: the file is truncated; copy it again, or save the array again",
                      path);
}

static cleat_status read_at(int file, const char *path, int64_t offset, void *data, size_t size, cleat_error *error) {
    for (size_t done = 0; done < size;) {
        ssize_t got = pread(file, (char *)data + done, size - done, (off_t)(offset + (int64_t)done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return io_fail(path, "read", error);
        if (got == 0) return truncated_file(path, error);
        done += (size_t)got;
    }
    return CLEAT_OK;
}

static cleat_status open_file(const char *path, int *file, int64_t *size, cleat_error *error) {
    struct stat about;
    int opened = open(path, O_RDONLY | O_CLOEXEC);
    if (opened < 0) return io_fail(path, "open", error);
    if (fstat(opened, &about) != 0 || !S_ISREG(about.st_mode)) {
        close(opened);
        return cleat_fail(error, CLEAT_ERR_IO, "%s: is not a regular file", path);
    }
    *file = opened;
    *size = (int64_t)about.st_size;
    return CLEAT_OK;
}

/* State of parsing the header text: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } */
typedef struct dictionary {
    const char *path;
    const char *at; /* zero-terminated */
    cleat_npy *npy;
    bool descr, order, shape; /* keys found so far */
} dictionary;

static cleat_status malformed(const dictionary *d, const char *what, cleat_error *error) {
    return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: the header %s; save the array again with np.save", d->path, what);
}

static void skip_blanks(dictionary *d) {
    d->at += strspn(d->at, " \t");
}

static bool accept_char(dictionary *d, char wanted) {
    skip_blanks(d);
    if (*d->at != wanted) return false;
    ++d->at;
    return true;
}

/* Parses a string in either kind of quotes. Returns false if there is none or it does not fit. */
static bool parse_string(dictionary *d, char *text, size_t room) {
    skip_blanks(d);
    char quote = *d->at;
    if (quote != '\'' && quote != '"') return false;
    const char *end = strchr(d->at + 1, quote);
    size_t size = end ? (size_t)(end - d->at - 1) : room;
    if (size >= room) return false;
    memcpy(text, d->at + 1, size);
    text[size] = 0;
    d->at = end + 1;
    return true;
}

static bool parse_word(dictionary *d, const char *word) {
    skip_blanks(d);
    size_t size = strlen(word);
    if (strncmp(d->at, word, size) != 0) return false;
    d->at += size;
    return true;
}

static cleat_status parse_descr(dictionary *d, cleat_error *error) {
    static const char *const known[] = {"f4", "f8", "u1", "i1", "i2", "i4", "b1"};
    char text[32] = "";
    cleat_npy *npy = d->npy;
    if (!parse_string(d, text, sizeof text))
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s: the elements are records, not numbers; save one of their fields: np.save(file, "
                          "array['field'])",
                          d->path);
    bool ordered = *text && strchr("<>=|", *text);
    for (size_t i = 0; ordered && i < sizeof known / sizeof *known; ++i) {
        if (strcmp(text + 1, known[i]) != 0) continue;
        npy->kind = text[1];
        npy->bytes = text[2] - '0';
        if (*text == '|' && npy->bytes > 1) break;
        npy->swapped = npy->bytes > 1 && *text != '=' && (*text == '<') != host_is_little();
        d->descr = true;
        return CLEAT_OK;
    }
    return cleat_fail(error, CLEAT_ERR_FORMAT,
                      "%s: elements of type '%s' are not supported, only f4, f8, u1, i1, i2, i4 and b1: np.save(file, "
                      "array.astype('f4'))",
                      d->path, text);
}

static cleat_status parse_order(dictionary *d, cleat_error *error) {
    if (parse_word(d, "True"))
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s: the array is in Fortran order; save it in C order: np.save(file, "
                          "np.ascontiguousarray(array))",
                          d->path);
    if (!parse_word(d, "False")) return malformed(d, "has a fortran_order that is neither True nor False", error);
    d->order = true;
    return CLEAT_OK;
}

/* Parses an integer; Python 2 wrote an L after it. */
static bool parse_extent(dictionary *d, int64_t *extent) {
    int64_t value = 0;
    skip_blanks(d);
    if (*d->at < '0' || *d->at > '9') return false;
    for (; *d->at >= '0' && *d->at <= '9'; ++d->at) {
        if (value > INT64_MAX / 10 - 1) return false;
        value = value * 10 + (*d->at - '0');
    }
    if (*d->at == 'L') ++d->at;
    *extent = value;
    return true;
}

static cleat_status parse_shape(dictionary *d, cleat_error *error) {
    cleat_npy *npy = d->npy;
    int64_t extent;
    if (!accept_char(d, '(')) return malformed(d, "has a shape that is not a tuple", error);
    npy->elements = 1;
    while (!accept_char(d, ')')) {
        if (npy->rank == CLEAT_NPY_RANK)
            return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: more than %d dimensions; save the array with fewer",
                              d->path, CLEAT_NPY_RANK);
        if (!parse_extent(d, &extent))
            return malformed(d, "has a shape that contains something other than whole numbers", error);
        if (extent == 0)
            return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: the array is empty: dimension %d is 0; remove the file",
                              d->path, npy->rank);
        if (npy->elements > INT64_MAX / 16 / extent) return malformed(d, "declares more elements than fit", error);
        npy->elements *= extent;
        npy->shape[npy->rank++] = extent;
        skip_blanks(d);
        if (*d->at != ')' && !accept_char(d, ','))
            return malformed(d, "has a shape that contains something other than whole numbers", error);
    }
    d->shape = true;
    return CLEAT_OK;
}

static cleat_status parse_entry(dictionary *d, cleat_error *error) {
    char key[32];
    if (!parse_string(d, key, sizeof key) || !accept_char(d, ':')) return malformed(d, "is not a dictionary", error);
    if (strcmp(key, "descr") == 0 && !d->descr) return parse_descr(d, error);
    if (strcmp(key, "fortran_order") == 0 && !d->order) return parse_order(d, error);
    if (strcmp(key, "shape") == 0 && !d->shape) return parse_shape(d, error);
    return malformed(d, "has a key other than descr, fortran_order and shape, or one of them twice", error);
}

static cleat_status parse_dictionary(dictionary *d, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    if (!accept_char(d, '{')) return malformed(d, "is not a dictionary", error);
    while (!accept_char(d, '}')) {
        status = parse_entry(d, error);
        if (status) return status;
        skip_blanks(d);
        if (*d->at != '}' && !accept_char(d, ',')) return malformed(d, "is not a dictionary", error);
    }
    if (d->at[strspn(d->at, " \t\n")]) return malformed(d, "continues after its dictionary", error);
    if (!d->descr || !d->order || !d->shape) return malformed(d, "lacks descr, fortran_order or shape", error);
    return CLEAT_OK;
}

/* Position and size of the dictionary in the file. */
static cleat_status read_prefix(int file, const char *path, int64_t size, int64_t *begin, int64_t *length,
                                cleat_error *error) {
    uint8_t start[MAGIC_BYTES + 4] = {0};
    if (size == 0) return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: the file is empty", path);
    cleat_status status =
        read_at(file, path, 0, start, size < (int64_t)sizeof start ? (size_t)size : sizeof start, error);
    if (status) return status;
    if (memcmp(start, "PK", 2) == 0)
        return cleat_fail(
            error, CLEAT_ERR_FORMAT,
            "%s: this is an .npz archive; save each of its arrays separately: np.save(file, np.load(archive)['name'])",
            path);
    if (memcmp(start, magic, sizeof magic) != 0)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: not an NPY file: it does not begin with \\x93NUMPY", path);
    int version = start[6];
    if (version < 1 || version > 3 || start[7] != 0)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: NPY version %d.%d is not supported, only 1.0, 2.0 and 3.0",
                          path, version, start[7]);
    if (size < (int64_t)sizeof start) return truncated_file(path, error);
    *begin = MAGIC_BYTES + (version == 1 ? 2 : 4);
    *length = start[8] + 256 * start[9];
    if (version > 1) *length += 65536 * (int64_t)start[10] + 16777216 * (int64_t)start[11];
    if (*length > LONGEST_HEADER)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: a header of %lld bytes; the maximum is %d", path,
                          (long long)*length, LONGEST_HEADER);
    return *begin + *length <= size ? CLEAT_OK : truncated_file(path, error);
}

static cleat_status check_size(const char *path, const cleat_npy *npy, int64_t size, cleat_error *error) {
    int64_t wanted = npy->offset + npy->elements * npy->bytes;
    if (size == wanted) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_FORMAT,
                      "%s: %lld elements of %d bytes require a file of %lld bytes, but it has %lld; %s", path,
                      (long long)npy->elements, npy->bytes, (long long)wanted, (long long)size,
                      size < wanted ? "it is truncated: copy it again"
                                    : "a file contains one array: save each separately with np.save");
}

static cleat_status read_header(int file, const char *path, int64_t size, cleat_npy *npy, cleat_error *error) {
    int64_t begin = 0, length = 0;
    cleat_status status = read_prefix(file, path, size, &begin, &length, error);
    if (status) return status;
    char *text = cleat_alloc((size_t)length + 1, 1);
    if (!text) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for the header", path);
    dictionary d = {.path = path, .at = text, .npy = npy};
    npy->offset = begin + length;
    status = read_at(file, path, begin, text, (size_t)length, error);
    if (!status) status = parse_dictionary(&d, error);
    if (!status) status = check_size(path, npy, size, error);
    cleat_free(text);
    return status;
}

cleat_status cleat_npy_probe(const char *path, cleat_npy *npy, cleat_error *error) {
    cleat_npy found = {0};
    int file;
    int64_t size;
    cleat_status status = open_file(path, &file, &size, error);
    if (status) return status;
    status = read_header(file, path, size, &found, error);
    close(file);
    if (!status) *npy = found;
    return status;
}

static void swap_bytes(uint8_t *data, int64_t count, int bytes) {
    for (; count > 0; --count, data += bytes)
        for (int i = 0; i < bytes / 2; ++i) {
            uint8_t low = data[i];
            data[i] = data[bytes - 1 - i];
            data[bytes - 1 - i] = low;
        }
}

static double element(const cleat_npy *npy, const uint8_t *at) {
    float f4 = 0;
    double f8 = 0;
    int16_t i2 = 0;
    int32_t i4 = 0;
    switch (npy->kind) {
    case 'f':
        memcpy(npy->bytes == 4 ? (void *)&f4 : (void *)&f8, at, (size_t)npy->bytes);
        return npy->bytes == 4 ? f4 : f8;
    case 'i':
        if (npy->bytes == 1) return (int8_t)*at;
        memcpy(npy->bytes == 4 ? (void *)&i4 : (void *)&i2, at, (size_t)npy->bytes);
        return npy->bytes == 4 ? i4 : i2;
    case 'b':
        return *at != 0;
    default:
        return *at;
    }
}

/* Converts part [count elements]; `first` is the index of its first element, for messages. */
static cleat_status convert(const char *path, const cleat_npy *npy, uint8_t *part, int64_t first, int64_t count,
                            float *values, cleat_error *error) {
    if (npy->swapped) swap_bytes(part, count, npy->bytes);
    for (int64_t i = 0; i < count; ++i) {
        double value = element(npy, part + i * npy->bytes);
        values[i] = (float)value;
        if (isinf(values[i]))
            return cleat_fail(error, CLEAT_ERR_FORMAT,
                              "%s: element %lld (counted from 0) is %g, which single precision cannot represent; write "
                              "NaN where a value is unknown",
                              path, (long long)(first + i), value);
    }
    return CLEAT_OK;
}

cleat_status cleat_npy_read(const char *path, const cleat_npy *npy, int64_t first, int64_t count, float *values,
                            cleat_error *error) {
    if (first < 0 || count < 0 || first > npy->elements - count)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%s: elements %lld to %lld of %lld", path, (long long)first,
                          (long long)(first + count), (long long)npy->elements);
    int file;
    int64_t size;
    cleat_status status = open_file(path, &file, &size, error);
    if (status) return status;
    uint8_t part[PART];
    int64_t whole = PART / npy->bytes;
    for (int64_t done = 0; done < count && !status; done += whole) {
        int64_t now = count - done < whole ? count - done : whole, from = first + done;
        status = read_at(file, path, npy->offset + from * npy->bytes, part, (size_t)(now * npy->bytes), error);
        if (!status) status = convert(path, npy, part, from, now, values + done, error);
    }
    close(file);
    return status;
}

cleat_status cleat_npy_write(const char *path, const float *values, int64_t rows, int64_t columns, cleat_error *error) {
    char header[3 * ALIGNMENT];
    if (!path || !values || rows < 1 || columns < 1 || rows > INT64_MAX / 8 / columns)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "an NPY file of %lld x %lld values", (long long)rows,
                          (long long)columns);
    int length =
        snprintf(header, sizeof header, "%.6s%c%c  {'descr': '<f4', 'fortran_order': False, 'shape': (%lld, %lld), }",
                 magic, 1, 0, (long long)rows, (long long)columns);
    /* with at least one byte for the newline */
    size_t begin = ((size_t)length + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    size_t bytes = (size_t)(rows * columns) * sizeof *values;
    memset(header + length, ' ', begin - (size_t)length);
    header[begin - 1] = '\n';
    header[8] = (char)((begin - MAGIC_BYTES - 2) & 0xFF);
    header[9] = (char)((begin - MAGIC_BYTES - 2) >> 8);
    uint8_t *data = cleat_alloc(begin + bytes, 1);
    if (!data) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for %zu bytes", path, begin + bytes);
    memcpy(data, header, begin);
    memcpy(data + begin, values, bytes);
    if (!host_is_little()) swap_bytes(data + begin, rows * columns, sizeof *values);
    cleat_status status = cleat_file_write(path, data, begin + bytes, error);
    cleat_free(data);
    return status;
}
