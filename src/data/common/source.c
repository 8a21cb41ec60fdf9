/* Text files in memory with checks of their encoding, and locale-independent conversion of numbers. */
#include "data/common/source.h"

#include "cleat/tokenizer.h"
#include "core/files.h"
#include "core/memory.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static size_t line_of(const cleat_source *source, const char *at) {
    size_t line = 1 + source->lines_before;
    for (const char *p = source->data; p < at; ++p) line += *p == '\n';
    return line;
}

static cleat_status check_utf8(const cleat_source *source, cleat_error *error) {
    size_t bad;
    if (cleat_text_check(source->at, (size_t)(source->end - source->at), &bad)) return CLEAT_OK;
    const char *p = source->at + bad;
    return cleat_fail(error, CLEAT_ERR_FORMAT,
                      "%s:%zu: byte 0x%02x at offset %zu of the file is not UTF-8; save it as UTF-8 (in Excel: type "
                      "\"CSV UTF-8\"; iconv -f WINDOWS-1252 -t UTF-8 OLD > NEW), or copy it again if it is damaged",
                      source->path, line_of(source, p), (unsigned)(unsigned char)*p,
                      source->bytes_before + (size_t)(p - source->data));
}

/* Other file types by their first bytes. PAR1 alone may be the name of a column. */
static const struct {
    const char *bytes, *what, *remedy;
} others[] = {
    {"\x1F\x8B", "compressed by gzip", "unpack it (gunzip, 7-Zip)"},
    {"BZh91AY&SY", "compressed by bzip2", "unpack it (bunzip2, 7-Zip)"},
    {"\xFD"
     "7zXZ",
     "compressed by xz", "unpack it (unxz, 7-Zip)"},
    {"\x28\xB5\x2F\xFD", "compressed by zstd", "unpack it (unzstd)"},
    {"PK\3\4", "a workbook (.xlsx, .ods) or ZIP archive", "save the sheet as CSV (UTF-8), or unpack the archive"},
    {"\xD0\xCF\x11\xE0", "a workbook (.xls)", "save the sheet as CSV (UTF-8)"},
    {"PAR1\x15", "a Parquet file", "convert it to CSV (pandas: read_parquet(OLD).to_csv(NEW, index=False))"},
    {"ARROW1", "an Arrow file", "convert it to CSV (pandas: read_feather(OLD).to_csv(NEW, index=False))"},
    {"\x89HDF", "an HDF5 file", "convert it to CSV (pandas: read_hdf(OLD).to_csv(NEW, index=False))"},
    {"SQLite format 3", "an SQLite database",
     "write a table as CSV (sqlite3 -header -csv OLD \"SELECT * FROM NAME\" > NEW)"},
};

static cleat_status refuse_other(const cleat_source *source, cleat_error *error) {
    const size_t size = (size_t)(source->end - source->at);
    for (size_t i = 0; i < sizeof others / sizeof *others; ++i) {
        const size_t length = strlen(others[i].bytes);
        if (size >= length && memcmp(source->at, others[i].bytes, length) == 0)
            return cleat_fail(error, CLEAT_ERR_FORMAT, "%s:1: is %s, not text; %s", source->path, others[i].what,
                              others[i].remedy);
    }
    return CLEAT_OK;
}

cleat_status cleat_source_check(cleat_source *source, bool utf8, cleat_error *error) {
    const char *path = source->path;
    bool start = source->bytes_before == 0;
    size_t size = (size_t)(source->end - source->at);
    const char *zero = memchr(source->at, 0, size);
    cleat_status status = start ? refuse_other(source, error) : CLEAT_OK;
    if (!status && start) status = cleat_refuse_utf16(path, source->at, size, error);
    if (status) return status;
    if (start && size >= 3 && memcmp(source->at, "\xEF\xBB\xBF", 3) == 0) source->at += 3;
    if (start && source->at == source->end) return cleat_fail(error, CLEAT_ERR_FORMAT, "%s:1: the file is empty", path);
    if (zero)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s:%zu: a zero byte: this is not a text file", path,
                          line_of(source, zero));
    return utf8 ? check_utf8(source, error) : CLEAT_OK;
}

cleat_status cleat_source_read(const char *path, bool utf8, cleat_source *source, cleat_error *error) {
    char *data = NULL;
    size_t size = 0;
    cleat_status status = cleat_file_read(path, &data, &size, error);
    if (status) return status;
    cleat_source opened = {.path = path, .data = data, .at = data, .end = data + size};
    status = cleat_source_check(&opened, utf8, error);
    if (status) {
        cleat_free(data);
        return status;
    }
    *source = opened;
    return CLEAT_OK;
}

static size_t count_invalid(const cleat_source *source) {
    size_t invalid = 0, bad;
    for (const char *p = source->at; !cleat_text_check(p, (size_t)(source->end - p), &bad); p += bad + 1) ++invalid;
    return invalid;
}

cleat_status cleat_source_repair_utf8(cleat_source *source, size_t *replaced, cleat_error *error) {
    static const char REPLACEMENT[] = "\xEF\xBF\xBD"; /* U+FFFD */
    size_t invalid = count_invalid(source), kept = (size_t)(source->end - source->at);
    *replaced = invalid;
    if (!invalid) return CLEAT_OK;
    char *repaired = cleat_alloc(kept + 2 * invalid + 1, 1), *write = repaired;
    if (!repaired) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory to repair its UTF-8", source->path);
    for (const char *p = source->at; p < source->end;) {
        size_t left = (size_t)(source->end - p), good = left;
        bool sound = cleat_text_check(p, left, &good);
        memcpy(write, p, good);
        write += good;
        p += good;
        if (sound) break;
        memcpy(write, REPLACEMENT, strlen(REPLACEMENT));
        write += strlen(REPLACEMENT);
        ++p;
    }
    cleat_free(source->data);
    source->data = source->at = repaired;
    source->end = write;
    return CLEAT_OK;
}

void cleat_source_close(cleat_source *source) {
    cleat_free(source->data);
    *source = (cleat_source){0};
}

const char *cleat_format_excerpt(const char *text, size_t length, char shown[CLEAT_EXCERPT_SIZE]) {
    size_t room = CLEAT_EXCERPT_SIZE - 4, kept = length < room ? length : room;
    while (kept < length && kept && ((unsigned char)text[kept] & 0xC0) == 0x80) --kept; /* whole characters */
    for (size_t i = 0; i < kept; ++i) shown[i] = (unsigned char)text[i] >= 0x20 && text[i] != 0x7F ? text[i] : '?';
    snprintf(shown + kept, CLEAT_EXCERPT_SIZE - kept, "%s", length > kept ? "..." : "");
    return shown;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* 10^exponent; exact up to 22, which suffices for coordinates. */
static double power_of_ten(int exponent) {
    double power = 1;
    for (int i = 0; i < exponent && i < 400; ++i) power *= 10;
    return power;
}

bool cleat_parse_decimal(const char *text, size_t length, double *value) {
    const char *p = text, *end = text + length;
    while (p < end && *p == ' ') ++p;
    while (end > p && end[-1] == ' ') --end;
    bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) ++p;
    uint64_t mantissa = 0;
    int exponent = 0, digits = 0;
    bool point = false;
    for (; p < end && (is_digit(*p) || (*p == '.' && !point)); ++p) {
        if (*p == '.') {
            point = true;
            continue;
        }
        ++digits;
        /* further digits only count */
        bool fits = mantissa < 100000000000000000u;
        if (fits) mantissa = mantissa * 10 + (uint64_t)(*p - '0');
        exponent += (fits ? 0 : 1) - (point ? 1 : 0);
    }
    if (!digits) return false;
    if (p < end && (*p == 'e' || *p == 'E')) {
        bool down = ++p < end && *p == '-';
        if (p < end && (*p == '-' || *p == '+')) ++p;
        if (p == end) return false;
        int shift = 0;
        for (; p < end && is_digit(*p); ++p) shift = shift < 9999 ? shift * 10 + (*p - '0') : shift;
        exponent += down ? -shift : shift;
    }
    if (p != end) return false;
    double scaled = (double)mantissa;
    scaled = exponent < 0 ? scaled / power_of_ten(-exponent) : scaled * power_of_ten(exponent);
    /* DBL_MAX marks unknown values in files; the rounding of its power may give infinity. */
    if (isinf(scaled) && exponent + digits <= DBL_MAX_10_EXP + 1) scaled = DBL_MAX;
    if (!isfinite(scaled)) return false;
    *value = negative ? -scaled : scaled;
    return true;
}

int cleat_format_fixed3(double value, char text[24]) {
    long long thousandths = llround(value * 1000.0);
    unsigned long long size = (unsigned long long)(thousandths < 0 ? -thousandths : thousandths);
    return snprintf(text, 24, "%s%llu.%03llu", thousandths < 0 ? "-" : "", size / 1000, size % 1000);
}
