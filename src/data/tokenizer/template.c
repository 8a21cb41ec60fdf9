/* Templates of special tokens, and their application to one text or two. */
#include "tokenizer/template.h"

#include "core/memory.h"
#include "tokenizer/tokenizer.h"

#include <string.h>

/* A file may repeat a special token of many ids: memory would grow with the square of its size. */
enum { MAX_ITEMS = 4096 };

cleat_status cleat_template_add(cleat_template *t, cleat_template_kind kind, int32_t id, int32_t type,
                                cleat_error *error) {
    if (t->count >= MAX_ITEMS)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "a template of more than %d tokens", MAX_ITEMS);
    cleat_status status = cleat_grow(&t->items, t->count, &t->capacity, error);
    if (!status) t->items[t->count++] = (cleat_template_item){kind, id, type};
    return status;
}

static size_t count_specials(const cleat_template *t) {
    size_t count = 0;
    for (size_t i = 0; i < t->count; ++i) count += t->items[i].kind == CLEAT_TEMPLATE_TOKEN;
    return count;
}

void cleat_template_free(cleat_template *t) {
    cleat_free(t->items);
    *t = (cleat_template){0};
}

/* Shortens two texts to at most `room` tokens together, the longer one first; if both exceed half of the room, the
 * shorter one gets the smaller half. */
static void shorten_longest(size_t room, size_t *first, size_t *second) {
    size_t *shorter = *first <= *second ? first : second, *longer = shorter == first ? second : first;
    if (*first + *second <= room) return;
    *longer = *shorter < room && room - *shorter > *shorter ? room - *shorter : *shorter;
    if (*shorter + *longer > room) {
        *shorter = room / 2;
        *longer = room - room / 2;
    }
}

typedef struct frame_writer {
    int32_t *ids, *types; /* each may be NULL */
    size_t count;
} frame_writer;

static void write_ids(frame_writer *w, const int32_t *ids, size_t count, int32_t type) {
    if (w->ids && count) memcpy(w->ids + w->count, ids, count * sizeof *ids);
    for (size_t i = 0; i < count && w->types; ++i) w->types[w->count + i] = type;
    w->count += count;
}

size_t cleat_tokenizer_specials(const cleat_tokenizer *tokenizer, bool pair) {
    return count_specials(&tokenizer->templates[pair]);
}

/* Number of special tokens before (or from) the texts. */
size_t cleat_tokenizer_leading(const cleat_tokenizer *tokenizer) {
    const cleat_template *t = &tokenizer->templates[0];
    size_t count = 0;
    while (count < t->count && t->items[count].kind == CLEAT_TEMPLATE_TOKEN) ++count;
    return count;
}

cleat_status cleat_tokenizer_frame(const cleat_tokenizer *tokenizer, const cleat_ids *first, const cleat_ids *second,
                                   size_t max_length, int32_t *ids, int32_t *types, cleat_token_counts *framed,
                                   cleat_error *error) {
    if (!tokenizer || !first || !framed)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "framing requires a tokenizer, tokens, and a result");
    const cleat_template *t = &tokenizer->templates[second != NULL];
    const size_t specials = count_specials(t);
    if (max_length < specials)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%zu tokens cannot hold the %zu special tokens", max_length,
                          specials);
    cleat_token_counts made = {.first = first->count, .second = second ? second->count : 0};
    const size_t room = max_length - specials;
    if (second)
        shorten_longest(room, &made.first, &made.second);
    else if (made.first > room)
        made.first = room;
    made.cut = made.first < first->count || (second && made.second < second->count);
    frame_writer w = {.ids = ids, .types = types};
    for (size_t i = 0; i < t->count; ++i) {
        const cleat_template_item *item = &t->items[i];
        if (item->kind == CLEAT_TEMPLATE_TOKEN)
            write_ids(&w, &item->id, 1, item->type);
        else if (item->kind == CLEAT_TEMPLATE_FIRST)
            write_ids(&w, first->ids, made.first, item->type);
        else if (second)
            write_ids(&w, second->ids, made.second, item->type);
    }
    made.count = w.count;
    *framed = made;
    return CLEAT_OK;
}
