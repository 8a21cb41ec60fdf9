/* Known cards: those that are embedded in the library, cards from files, and the card of a device. */
#include "card/file.h"
#include "platform/text.h"

#include "core/files.h"
#include "core/memory.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_NAMES = 128 };

static const char ending[] = ".ini";
/* Cards of the same name whose memory differs by more are different cards. */
static const double memory_tolerance = 0.15;

size_t cleat_card_count(void) {
    size_t count = 0;
    while (cleat_embedded_cards[count].name) ++count;
    return count;
}

const char *cleat_card_name(size_t i) {
    return i < cleat_card_count() ? cleat_embedded_cards[i].name : NULL;
}

/* --- opening ---------------------------------------------------------------------------------------------------- */

static cleat_status read_embedded(const cleat_embedded_file *file, cleat_card *card, cleat_error *error) {
    char place[128];
    snprintf(place, sizeof place, "profiles/devices/%s%s", file->name, ending);
    return cleat_card_read(file->name, place, file->text, strlen(file->text), card, error);
}

/* The name of a card is that of its file without folders and extension. */
static cleat_status read_file(const char *path, cleat_card *card, cleat_error *error) {
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    char name[sizeof card->name], *text;
    size_t size;
    snprintf(name, sizeof name, "%.*s", (int)(strlen(base) - strlen(ending)), base);
    cleat_status status = cleat_file_read_text(path, &text, &size, error);
    if (status) return status;
    status = cleat_card_read(name, path, text, size, card, error);
    cleat_free(text);
    return status;
}

static cleat_status unknown_card(const char *name, cleat_error *error) {
    const char *names[MAX_NAMES];
    char lower[64];
    size_t count = 0, length = 0;
    cleat_string all = {0};
    for (; cleat_card_name(count) && count < MAX_NAMES; ++count) {
        names[count] = cleat_card_name(count);
        cleat_string_add(&all, "%s%s", count ? ", " : "", names[count]);
    }
    for (; name[length] && length < sizeof lower - 1; ++length)
        lower[length] = (char)tolower((unsigned char)name[length]);
    lower[length] = 0;
    const char *near = cleat_nearest_name(lower, names, count);
    cleat_fail(error, CLEAT_ERR_NOT_FOUND,
               "unknown card '%.60s'%s%s%s; known cards are %s; describe another card by a file: --card FILE.ini", name,
               near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", all.data ? all.data : "");
    cleat_string_free(&all);
    return CLEAT_ERR_NOT_FOUND;
}

cleat_status cleat_card_open(const char *name, cleat_card *card, cleat_error *error) {
    if (!name || !card) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "cleat_card_open requires a name and a card");
    if (strcmp(cleat_name_ending(name), ending) == 0) return read_file(name, card, error);
    for (const cleat_embedded_file *file = cleat_embedded_cards; file->name; ++file)
        if (strcasecmp(file->name, name) == 0) return read_embedded(file, card, error);
    return unknown_card(name, error);
}

/* --- matching a device ------------------------------------------------------------------------------------------- */

static bool word_ends(char a, char b) {
    return !isalnum((unsigned char)a) || !isalnum((unsigned char)b);
}

/* Whether `part` [size] occurs in `name` as whole words: "T400" does not contain "T4". */
static bool contains(const char *name, const char *part, size_t size) {
    for (const char *at = name; strlen(at) >= size; ++at) {
        if (strncasecmp(at, part, size) != 0) continue;
        if ((at == name || word_ends(at[-1], *at)) && word_ends(at[size - 1], at[size])) return true;
    }
    return false;
}

bool cleat_name_matches(const char *match, const char *device) {
    const char *part = match;
    if (!*part) return true;
    for (;;) {
        size_t size = strcspn(part, "|"), blank = strspn(part, " "), used = size;
        while (used > blank && part[used - 1] == ' ') --used;
        if (used > blank && contains(device, part + blank, used - blank)) return true;
        if (!part[size]) return false;
        part += size + 1;
    }
}

bool cleat_card_match(const cleat_device_facts *facts, cleat_card *card) {
    double nearest = 0;
    bool found = false;
    for (const cleat_embedded_file *file = cleat_embedded_cards; file->name; ++file) {
        cleat_card known;
        if (read_embedded(file, &known, NULL) != CLEAT_OK) continue;
        if (known.facts.vendor != facts->vendor || known.facts.kind != facts->kind) continue;
        if (!cleat_name_matches(known.match, facts->name)) continue;
        /* The size of memory that is shared with the host is the host's and does not identify the card. */
        const double a = (double)known.facts.memory_total, b = (double)facts->memory_total;
        const double apart = known.facts.unified_memory || !(fmax(a, b) > 0) ? 0 : fabs(a - b) / fmax(a, b);
        if (found ? apart >= nearest : apart > memory_tolerance) continue;
        nearest = apart;
        *card = known;
        found = true;
    }
    return found;
}
