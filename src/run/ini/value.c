/* One value of a record: parsing, printing, and what its key allows. */
#include "core/memory.h"
#include "ini/schema.h"
#include "platform/files.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum verdict { GOOD, NOT_ONE, OUT_OF_RANGE, NOT_ASCENDING, TOO_MANY, LONG_SESSION, UNPRINTABLE } verdict;

/* A parsed value before it is stored in its field. */
typedef struct parsed {
    int64_t integer; /* also of choices, booleans and bytes */
    double number;
    int64_t list[1 + CLEAT_INI_LIST]; /* count, values */
    int64_t quota[2];
} parsed;

static bool in_range(const cleat_key *key, double value) {
    return value >= key->min && value <= key->max;
}

/* --- parsing -------------------------------------------------------------------------------------------------- */

static verdict parse_int(const cleat_key *key, const char *text, int64_t *value) {
    char *end;
    if (!isdigit((unsigned char)*text) && *text != '-' && *text != '+') return NOT_ONE;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (end == text || *end) return NOT_ONE;
    if (errno == ERANGE || !in_range(key, (double)number)) return OUT_OF_RANGE;
    *value = number;
    return GOOD;
}

static verdict parse_choice(const char *const *choices, const char *text, int64_t *value) {
    for (int64_t i = 0; choices[i]; ++i)
        if (strcmp(choices[i], text) == 0) {
            *value = i;
            return GOOD;
        }
    return NOT_ONE;
}

/* A string must survive being written to an INI file and read back: there " ;" begins a comment, and a
 * backslash at the end continues the line. */
static verdict parse_string(const cleat_key *key, const char *text) {
    size_t length = strlen(text);
    for (size_t i = 0; i < length; ++i)
        if (iscntrl((unsigned char)text[i])) return UNPRINTABLE;
    if (*text == ';' || strstr(text, " ;")) return UNPRINTABLE;
    if (length && (isspace((unsigned char)*text) || isspace((unsigned char)text[length - 1]))) return UNPRINTABLE;
    if (length && text[length - 1] == '\\') return UNPRINTABLE;
    return in_range(key, (double)length) ? GOOD : OUT_OF_RANGE;
}

static int64_t unit_seconds(char unit) {
    switch (unit) {
    case 's':
        return 1;
    case 'm':
        return 60;
    case 'h':
        return 60 * 60;
    case 'd':
        return 24 * 60 * 60;
    }
    return 0;
}

/* Reads the number at *text, and moves *text behind it. */
static bool read_number(const char **text, double *value) {
    char number[32];
    const size_t digits = strspn(*text, "0123456789.");
    if (digits == 0 || digits >= sizeof number) return false;
    snprintf(number, sizeof number, "%.*s", (int)digits, *text);
    *text += digits;
    return cleat_number_parse(number, value);
}

/* Parses "30h", "1h30m", "0.5s": numbers with units. */
static verdict parse_seconds(const cleat_key *key, const char *text, double *value) {
    double seconds = 0;
    if (!*text) return NOT_ONE;
    while (*text) {
        double amount;
        if (!read_number(&text, &amount) || unit_seconds(*text) == 0) return NOT_ONE;
        seconds += amount * (double)unit_seconds(*text++);
    }
    *value = seconds;
    return in_range(key, seconds) ? GOOD : OUT_OF_RANGE;
}

static verdict parse_duration(const cleat_key *key, const char *text, int64_t *value) {
    double seconds;
    verdict found = parse_seconds(key, text, &seconds);
    if (found != GOOD) return found;
    if (seconds != rint(seconds)) return NOT_ONE;
    *value = (int64_t)seconds;
    return GOOD;
}

/* Parses "30h" to {108000, 0}, "30h/12h" and "none/12h"; `word` stands for 0. */
static verdict parse_quota(const cleat_key *key, const char *text, int64_t quota[2]) {
    char total[64];
    const char *slash = strchr(text, '/');
    const size_t length = slash ? (size_t)(slash - text) : strlen(text);
    if (length >= sizeof total) return NOT_ONE;
    memcpy(total, text, length);
    total[length] = 0;
    quota[0] = quota[1] = 0;
    const bool is_limited = !key->word || strcmp(total, key->word) != 0;
    verdict found = is_limited ? parse_duration(key, total, &quota[0]) : GOOD;
    if (found == GOOD && slash) found = parse_duration(key, slash + 1, &quota[1]);
    if (found != GOOD) return found;
    return is_limited && quota[1] > quota[0] ? LONG_SESSION : GOOD;
}

typedef struct binary_unit {
    const char *name;
    int64_t size;
} binary_unit;

static const binary_unit binary_units[] = {
    {"TiB", (int64_t)1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}, {"", 1}, {NULL, 0},
};

/* Parses "15.6 GiB", "48 KiB", "1024", rounded to whole bytes. */
static verdict parse_bytes(const cleat_key *key, const char *text, int64_t *value) {
    double amount;
    const binary_unit *chosen = binary_units;
    if (!read_number(&text, &amount)) return NOT_ONE;
    text += strspn(text, " ");
    while (chosen->name && strcmp(chosen->name, text) != 0) ++chosen;
    if (!chosen->name) return NOT_ONE;
    amount = rint(amount * (double)chosen->size);
    if (!in_range(key, amount)) return OUT_OF_RANGE;
    *value = (int64_t)amount;
    return GOOD;
}

/* Parses numbers to `list`: the count, then the values. */
static verdict parse_list(const cleat_key *key, const char *text, int64_t *list) {
    int64_t count = 0;
    while (*text) {
        char item[32];
        size_t length = strcspn(text, ", ");
        if (length == 0 || length >= sizeof item) return NOT_ONE;
        snprintf(item, sizeof item, "%.*s", (int)length, text);
        text += length;
        text += strspn(text, " ");
        if (*text == ',') {
            ++text;
            text += strspn(text, " ");
            if (!*text) return NOT_ONE;
        }
        int64_t value;
        verdict of_item = parse_int(key, item, &value);
        if (of_item != GOOD) return of_item;
        if (count == CLEAT_INI_LIST) return TOO_MANY;
        if (!key->unordered && count > 0 && value <= list[count]) return NOT_ASCENDING;
        list[++count] = value;
    }
    list[0] = count;
    return count ? GOOD : NOT_ONE;
}

static const char *const booleans[] = {"false", "true", NULL};

static const char *const *choices_of(const cleat_key *key) {
    return key->type == CLEAT_KEY_BOOL && !key->choices ? booleans : key->choices;
}

static verdict parse_by_type(const cleat_key *key, const char *text, parsed *value) {
    if (key->word && strcmp(text, key->word) == 0) {
        value->integer = value->list[0] = key->word_value;
        value->number = (double)key->word_value;
        return GOOD;
    }
    if (key->or_auto && strcmp(text, "auto") == 0) {
        value->integer = -1;
        return GOOD;
    }
    switch (key->type) {
    case CLEAT_KEY_INT:
        return parse_int(key, text, &value->integer);
    case CLEAT_KEY_FLOAT:
        if (!cleat_number_parse(text, &value->number)) return NOT_ONE;
        return in_range(key, value->number) ? GOOD : OUT_OF_RANGE;
    case CLEAT_KEY_BOOL:
    case CLEAT_KEY_CHOICE:
        return parse_choice(choices_of(key), text, &value->integer);
    case CLEAT_KEY_STRING:
    case CLEAT_KEY_TEXT:
        return parse_string(key, text);
    case CLEAT_KEY_QUOTA:
        return parse_quota(key, text, value->quota);
    case CLEAT_KEY_PERIOD:
        return parse_seconds(key, text, &value->number);
    case CLEAT_KEY_BYTES:
        return parse_bytes(key, text, &value->integer);
    case CLEAT_KEY_LIST:
        return parse_list(key, text, value->list);
    }
    return NOT_ONE;
}

static cleat_status store_text(const char *text, const char *place, void *into, cleat_error *error) {
    const char **field = into;
    char *copy = cleat_strdup(text);
    if (!copy) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", place);
    cleat_free((void *)*field);
    *field = copy;
    return CLEAT_OK;
}

static void store(const cleat_key *key, const char *text, const parsed *value, void *into) {
    switch (key->type) {
    case CLEAT_KEY_INT:
    case CLEAT_KEY_BYTES:
        *(int64_t *)into = value->integer;
        break;
    case CLEAT_KEY_FLOAT:
    case CLEAT_KEY_PERIOD:
        *(double *)into = value->number;
        break;
    case CLEAT_KEY_BOOL:
        *(bool *)into = value->integer != 0;
        break;
    case CLEAT_KEY_CHOICE:
        *(int *)into = (int)value->integer;
        break;
    case CLEAT_KEY_STRING:
        snprintf(into, key->room, "%s", text);
        break;
    case CLEAT_KEY_TEXT: /* store_text */
        break;
    case CLEAT_KEY_QUOTA:
        memcpy(into, value->quota, sizeof value->quota);
        break;
    case CLEAT_KEY_LIST:
        memcpy(into, value->list, sizeof value->list);
        break;
    }
}

static const char *nearest_value(const cleat_key *key, const char *text) {
    const char *names[32] = {0};
    size_t count = 0;
    const char *const *choices = choices_of(key);
    for (; choices && *choices && count < 31; ++choices) names[count++] = *choices;
    if (key->word) names[count++] = key->word;
    if (key->or_auto) names[count++] = "auto";
    return cleat_nearest_name(text, names, count);
}

static const char *complaint(verdict judged) {
    switch (judged) {
    case OUT_OF_RANGE:
        return "is out of range";
    case NOT_ASCENDING:
        return "is not in ascending order";
    case TOO_MANY:
        return "has too many entries";
    case LONG_SESSION:
        return "has a session longer than the total";
    case UNPRINTABLE:
        return "is not possible in a ";
    default:
        return "is not allowed";
    }
}

/* Whether `text` becomes a valid value if its comma is a decimal point, or without its thousands
 * separators; `point` receives it. */
static bool with_point(const cleat_key *key, const char *text, char point[32]) {
    parsed value = {0};
    const char *comma = strchr(text, ',');
    size_t size = 0;
    if (!comma || strlen(text) >= 32 || (key->type != CLEAT_KEY_INT && key->type != CLEAT_KEY_FLOAT)) return false;
    strcpy(point, text);
    point[comma - text] = '.';
    if (parse_by_type(key, point, &value) == GOOD) return true;
    for (const char *at = text; *at; ++at)
        if (*at != ',') point[size++] = *at;
    point[size] = 0;
    return parse_by_type(key, point, &value) == GOOD;
}

cleat_status cleat_value_parse(const char *noun, const cleat_key *key, const char *text, const char *place,
                               void *fields, cleat_error *error) {
    parsed value = {0};
    char path[CLEAT_INI_TEXT];
    const size_t length = strlen(text);
    if (key->path && length < sizeof path) {
        const bool quoted = length > 1 && text[0] == '"' && text[length - 1] == '"'; /* as the Explorer copies paths */
        snprintf(path, sizeof path, "%.*s", (int)(length - 2 * quoted), text + quoted);
        cleat_path_from_user(path);
        text = path;
    }
    verdict judged = parse_by_type(key, text, &value);
    void *into = fields ? (char *)fields + key->offset : NULL;
    if (judged == GOOD) {
        if (into && key->type == CLEAT_KEY_TEXT) return store_text(text, place, into, error);
        if (into) store(key, text, &value, into);
        return CLEAT_OK;
    }
    cleat_string allowed = {0};
    cleat_value_allowed(key, &allowed);
    char point[32];
    const char *near = with_point(key, text, point) ? point : nearest_value(key, text);
    cleat_fail(error, CLEAT_ERR_PROFILE, "%s: '%.100s' %s%s%s; %s.%s takes %s%s%s%s", place, text, complaint(judged),
               judged == UNPRINTABLE ? noun : "",
               judged == UNPRINTABLE ? " (control characters, \" ;\", a last backslash)" : "", key->section, key->name,
               allowed.data ? allowed.data : "another value", near ? "; did you mean '" : "", near ? near : "",
               near ? "'?" : "");
    cleat_string_free(&allowed);
    return CLEAT_ERR_PROFILE;
}

/* --- printing ------------------------------------------------------------------------------------------------- */

static void print_number(double value, cleat_string *text) {
    char digits[32];
    if (value == rint(value) && fabs(value) < 1e16)
        snprintf(digits, sizeof digits, "%.0f", value);
    else
        cleat_number_print(value, digits);
    cleat_string_add(text, "%s", digits);
}

static void print_duration(int64_t seconds, cleat_string *text) {
    static const char units[] = "dhms";
    for (const char *unit = units; *unit; ++unit) {
        int64_t size = unit_seconds(*unit);
        if (*unit == 'd' && seconds % size != 0) continue; /* 30h reads better than 1d6h */
        if (seconds >= size) cleat_string_add(text, "%lld%c", (long long)(seconds / size), *unit);
        seconds %= size;
    }
}

static void print_quota(const cleat_key *key, const int64_t quota[2], cleat_string *text) {
    if (quota[0] || !key->word)
        print_duration(quota[0], text);
    else
        cleat_string_add(text, "%s", key->word);
    if (!quota[1]) return;
    cleat_string_add(text, "/");
    print_duration(quota[1], text);
}

/* Prints in the largest unit in which the value is a whole number. */
static void print_bytes(int64_t bytes, cleat_string *text) {
    const binary_unit *chosen = binary_units;
    while (chosen->size > 1 && (bytes == 0 || bytes % chosen->size != 0)) ++chosen;
    cleat_string_add(text, "%lld%s%s", (long long)(bytes / chosen->size), chosen->size > 1 ? " " : "",
                     chosen->size > 1 ? chosen->name : "");
}

static bool is_word(const cleat_key *key, const void *from) {
    if (!key->word || key->type == CLEAT_KEY_QUOTA) return false;
    if (key->type == CLEAT_KEY_FLOAT || key->type == CLEAT_KEY_PERIOD)
        return *(const double *)from == (double)key->word_value;
    return *(const int64_t *)from == key->word_value; /* also the count of a list, its first field */
}

void cleat_value_print(const cleat_key *key, const void *fields, cleat_string *text) {
    const void *from = (const char *)fields + key->offset;
    if (is_word(key, from)) {
        cleat_string_add(text, "%s", key->word);
        return;
    }
    if (key->or_auto && *(const int64_t *)from == -1) {
        cleat_string_add(text, "auto");
        return;
    }
    switch (key->type) {
    case CLEAT_KEY_INT:
        cleat_string_add(text, "%lld", (long long)*(const int64_t *)from);
        break;
    case CLEAT_KEY_QUOTA:
        print_quota(key, from, text);
        break;
    case CLEAT_KEY_PERIOD:
        print_number(*(const double *)from, text);
        cleat_string_add(text, "s");
        break;
    case CLEAT_KEY_BYTES:
        print_bytes(*(const int64_t *)from, text);
        break;
    case CLEAT_KEY_FLOAT:
        print_number(*(const double *)from, text);
        break;
    case CLEAT_KEY_BOOL:
        cleat_string_add(text, "%s", choices_of(key)[*(const bool *)from]);
        break;
    case CLEAT_KEY_CHOICE:
        cleat_string_add(text, "%s", key->choices[*(const int *)from]);
        break;
    case CLEAT_KEY_STRING:
        cleat_string_add(text, "%s", (const char *)from);
        break;
    case CLEAT_KEY_TEXT:
        cleat_string_add(text, "%s", *(const char *const *)from ? *(const char *const *)from : "");
        break;
    case CLEAT_KEY_LIST:
        for (const int64_t *list = from, *at = list + 1; at <= list + list[0]; ++at)
            cleat_string_add(text, "%s%lld", at > list + 1 ? ", " : "", (long long)*at);
        break;
    }
}

static void print_range(const cleat_key *key, cleat_string *text) {
    cleat_string_add(text, " from ");
    print_number(key->min, text);
    cleat_string_add(text, " to ");
    print_number(key->max, text);
}

void cleat_value_allowed(const cleat_key *key, cleat_string *text) {
    switch (key->type) {
    case CLEAT_KEY_INT:
        cleat_string_add(text, "a whole number");
        print_range(key, text);
        break;
    case CLEAT_KEY_FLOAT:
        cleat_string_add(text, "a number");
        print_range(key, text);
        break;
    case CLEAT_KEY_BOOL:
        if (!key->choices) {
            cleat_string_add(text, "true or false");
            break;
        } /* fall through */
    case CLEAT_KEY_CHOICE:
        cleat_string_add(text, "one of ");
        for (int i = 0; key->choices[i]; ++i) cleat_string_add(text, "%s%s", i ? ", " : "", key->choices[i]);
        break;
    case CLEAT_KEY_STRING:
    case CLEAT_KEY_TEXT:
        if (key->min > 0)
            cleat_string_add(text, "a text of %.0f to %.0f characters", key->min, key->max);
        else
            cleat_string_add(text, "a text of at most %.0f characters", key->max);
        break;
    case CLEAT_KEY_QUOTA:
        cleat_string_add(text, "a duration such as 30h or 1h30m, in whole seconds, of at most ");
        print_duration((int64_t)key->max, text);
        cleat_string_add(text, ", or two such as 30h/12h: in total, and per session");
        if (key->word) cleat_string_add(text, ", with %s/12h for sessions only", key->word);
        break;
    case CLEAT_KEY_PERIOD:
        cleat_string_add(text, "a duration such as 0.5s, 10s or 1m, from ");
        print_number(key->min, text);
        cleat_string_add(text, "s to ");
        print_duration((int64_t)key->max, text);
        break;
    case CLEAT_KEY_BYTES:
        cleat_string_add(text, "a size such as 15.6 GiB, 512 MiB, 48 KiB or 1024, from ");
        print_bytes((int64_t)key->min, text);
        cleat_string_add(text, " to ");
        print_bytes((int64_t)key->max, text);
        break;
    case CLEAT_KEY_LIST:
        cleat_string_add(text, key->unordered ? "whole numbers" : "ascending whole numbers");
        print_range(key, text);
        cleat_string_add(text, ", separated by commas, at most %d", CLEAT_INI_LIST);
        break;
    }
    if (key->word) cleat_string_add(text, ", %sor %s", key->or_auto ? "auto " : "", key->word);
}
