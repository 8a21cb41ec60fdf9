/* Trains a WordPiece vocabulary by merging the most frequent pair of adjacent pieces repeatedly.
 *
 * Every word is a row of pieces. A pair stores its frequency and the rows that contain it or did. The heap
 * stores pairs with their frequency when they were pushed, which is never below the current one. Hence the
 * pair on top is the most frequent one if its stored frequency is current; otherwise it is pushed again. */
#include "core/memory.h"
#include "tokenizer/count.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/unicode.h"

#include <stdlib.h>
#include <string.h>

enum { DEFAULT_MIN_COUNT = 2, DEFAULT_CHARACTER_LIMIT = 1000, FEWEST_SLOTS = 4096, CHARACTERS = 0x110000 };

typedef struct row {
    int32_t *pieces; /* [size] ids, in `trainer.pieces` */
    uint32_t size;
    uint64_t count; /* of the word in the corpus */
} row;

typedef struct pair {
    int32_t left, right;
    uint64_t count;
    uint32_t *rows; /* [n_rows] the rows that contain the pair, or did */
    size_t n_rows, capacity;
} pair;

typedef struct heaped {
    uint64_t count;
    int32_t left, right; /* copied from the pair: they order equally rare pairs, which most are */
    uint32_t pair;
} heaped;

typedef struct trainer {
    const cleat_tokenizer_training *settings;
    uint64_t min_count;
    cleat_vocabulary vocabulary;
    cleat_word_counts words;
    int32_t *pieces; /* pieces of all rows */
    row *rows;       /* [n_rows] */
    size_t n_rows;
    pair *pairs; /* [n_pairs] */
    size_t n_pairs, pairs_capacity;
    /* [n_slots] index of a pair + 1, 0: free. n_slots is a power of two; at most half of them are used. */
    uint32_t *slots;
    size_t n_slots;
    heaped *heap; /* [n_heap] */
    size_t n_heap, heap_capacity;
} trainer;

static bool comes_before(heaped a, heaped b) {
    if (a.count != b.count) return a.count > b.count;
    if (a.left != b.left) return a.left < b.left;
    return a.right < b.right;
}

/* A pair that is too rare is pushed once its frequency suffices. */
static cleat_status push(trainer *t, uint32_t index, cleat_error *error) {
    const pair *p = &t->pairs[index];
    if (p->count < t->min_count) return CLEAT_OK;
    cleat_status status = cleat_grow(&t->heap, t->n_heap, &t->heap_capacity, error);
    if (status) return status;
    const heaped item = {p->count, p->left, p->right, index};
    size_t at = t->n_heap++;
    for (; at > 0 && comes_before(item, t->heap[(at - 1) / 2]); at = (at - 1) / 2) t->heap[at] = t->heap[(at - 1) / 2];
    t->heap[at] = item;
    return CLEAT_OK;
}

static heaped pop(trainer *t) {
    heaped top = t->heap[0], last = t->heap[--t->n_heap];
    size_t at = 0;
    for (size_t child = 1; child < t->n_heap; child = 2 * at + 1) {
        if (child + 1 < t->n_heap && comes_before(t->heap[child + 1], t->heap[child])) ++child;
        if (!comes_before(t->heap[child], last)) break;
        t->heap[at] = t->heap[child];
        at = child;
    }
    t->heap[at] = last;
    return top;
}

static uint32_t *slot_of(const trainer *t, int32_t left, int32_t right) {
    uint64_t h = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9E3779B97F4A7C15u;
    size_t mask = t->n_slots - 1, at = (size_t)(h >> 32) & mask;
    for (;; at = (at + 1) & mask) {
        if (!t->slots[at]) return &t->slots[at];
        const pair *p = &t->pairs[t->slots[at] - 1];
        if (p->left == left && p->right == right) return &t->slots[at];
    }
}

static cleat_status enlarge(trainer *t, cleat_error *error) {
    size_t n_slots = t->n_slots ? t->n_slots * 2 : FEWEST_SLOTS;
    uint32_t *slots = cleat_alloc(n_slots, sizeof *slots);
    if (!slots) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu token pairs", t->n_pairs);
    cleat_free(t->slots);
    t->slots = slots;
    t->n_slots = n_slots;
    for (size_t i = 0; i < t->n_pairs; ++i) *slot_of(t, t->pairs[i].left, t->pairs[i].right) = (uint32_t)i + 1;
    return CLEAT_OK;
}

static cleat_status find_or_add_pair(trainer *t, int32_t left, int32_t right, uint32_t *index, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    if (t->n_pairs * 2 >= t->n_slots) status = enlarge(t, error);
    if (!status) status = cleat_grow(&t->pairs, t->n_pairs, &t->pairs_capacity, error);
    if (status) return status;
    uint32_t *slot = slot_of(t, left, right);
    if (!*slot) {
        t->pairs[t->n_pairs] = (pair){.left = left, .right = right};
        *slot = (uint32_t)++t->n_pairs;
    }
    *index = *slot - 1;
    return CLEAT_OK;
}

/* Records one more occurrence of this pair in row `r`. */
static cleat_status add_pair(trainer *t, int32_t left, int32_t right, uint32_t r, uint32_t *index, cleat_error *error) {
    cleat_status status = find_or_add_pair(t, left, right, index, error);
    if (status) return status;
    pair *p = &t->pairs[*index];
    p->count += t->rows[r].count;
    if (p->n_rows && p->rows[p->n_rows - 1] == r) return CLEAT_OK;
    status = cleat_grow(&p->rows, p->n_rows, &p->capacity, error);
    if (!status) p->rows[p->n_rows++] = r;
    return status;
}

static bool has_pair(const row *r, int32_t left, int32_t right) {
    for (uint32_t i = 0; i + 1 < r->size; ++i)
        if (r->pieces[i] == left && r->pieces[i + 1] == right) return true;
    return false;
}

static void remove_row_pairs(trainer *t, const row *r) {
    for (uint32_t i = 0; i + 1 < r->size; ++i)
        t->pairs[*slot_of(t, r->pieces[i], r->pieces[i + 1]) - 1].count -= r->count;
}

static void join(row *r, int32_t left, int32_t right, int32_t joined) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->size; ++i) {
        bool here = i + 1 < r->size && r->pieces[i] == left && r->pieces[i + 1] == right;
        r->pieces[kept++] = here ? joined : r->pieces[i];
        i += here;
    }
    r->size = kept;
}

/* Counts the pairs of a row after a merge. Pairs without the joined piece are known and in the heap. Pairs
 * with it from index `first` on are new and are pushed when all rows are counted; earlier ones, whose piece
 * was also joined from other halves, are pushed now because their frequency has grown. */
static cleat_status add_row_pairs(trainer *t, uint32_t r, int32_t joined, size_t first, cleat_error *error) {
    const row *here = &t->rows[r];
    cleat_status status = CLEAT_OK;
    for (uint32_t i = 0; i + 1 < here->size && !status; ++i) {
        int32_t left = here->pieces[i], right = here->pieces[i + 1];
        uint32_t index;
        if (left != joined && right != joined) {
            t->pairs[*slot_of(t, left, right) - 1].count += here->count;
            continue;
        }
        status = add_pair(t, left, right, r, &index, error);
        if (!status && index < first) status = push(t, index, error);
    }
    return status;
}

/* Adds the piece "leftright" for the pair "left", "##right". */
static cleat_status add_joined(trainer *t, int32_t left, int32_t right, int32_t *joined, cleat_error *error) {
    char name[2 + CLEAT_WORD_BYTES + 1];
    const char *first = cleat_vocabulary_piece(&t->vocabulary, left);
    const char *second = cleat_vocabulary_piece(&t->vocabulary, right) + 2;
    size_t size = strlen(first), more = strlen(second);
    memcpy(name, first, size);
    memcpy(name + size, second, more);
    return cleat_vocabulary_add(&t->vocabulary, name, size + more, joined, error);
}

static cleat_status merge_pair(trainer *t, uint32_t index, cleat_error *error) {
    pair merged = t->pairs[index];
    const size_t first = t->n_pairs;
    int32_t joined = -1;
    cleat_status status = add_joined(t, merged.left, merged.right, &joined, error);
    /* The list now belongs to this function, because the array of pairs moves when it grows. */
    t->pairs[index].rows = NULL;
    t->pairs[index].n_rows = t->pairs[index].capacity = 0;
    for (size_t i = 0; i < merged.n_rows && !status; ++i) {
        row *r = &t->rows[merged.rows[i]];
        if (!has_pair(r, merged.left, merged.right)) continue;
        remove_row_pairs(t, r);
        join(r, merged.left, merged.right, joined);
        status = add_row_pairs(t, merged.rows[i], joined, first, error);
    }
    for (size_t p = first; p < t->n_pairs && !status; ++p) status = push(t, (uint32_t)p, error);
    cleat_free(merged.rows);
    return status;
}

static cleat_status merge_all(trainer *t, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    while (!status && t->n_heap && t->vocabulary.count < t->settings->vocabulary_size) {
        heaped top = pop(t);
        uint64_t count = t->pairs[top.pair].count;
        if (count < t->min_count) continue;
        status = count == top.count ? merge_pair(t, top.pair, error) : push(t, top.pair, error);
    }
    return status;
}

typedef struct counted_character {
    int32_t character;
    uint64_t all, inside; /* frequency, and frequency other than as the first character of a word */
} counted_character;

static int by_all(const void *left, const void *right) {
    const counted_character *a = left, *b = right;
    if (a->all != b->all) return a->all > b->all ? -1 : 1;
    return (a->character > b->character) - (a->character < b->character);
}

static int by_inside(const void *left, const void *right) {
    const counted_character *a = left, *b = right;
    if (a->inside != b->inside) return a->inside > b->inside ? -1 : 1;
    return (a->character > b->character) - (a->character < b->character);
}

/* Leaves the characters that occur at the beginning of `counts` and returns their number. */
static size_t count_characters(const trainer *t, counted_character counts[CHARACTERS]) {
    size_t met = 0;
    for (size_t w = 0; w < t->words.words.count; ++w) {
        const char *word = cleat_vocabulary_piece(&t->words.words, (int32_t)w);
        const size_t size = strlen(word);
        for (size_t at = 0, length; at < size; at += length) {
            int32_t c;
            length = cleat_utf8_decode(word + at, size - at, &c);
            counts[c].all += t->words.counts[w];
            if (at) counts[c].inside += t->words.counts[w];
        }
    }
    for (int32_t c = 0; c < CHARACTERS; ++c)
        if (counts[c].all) counts[met++] = (counted_character){c, counts[c].all, counts[c].inside};
    return met;
}

static cleat_status add_character(trainer *t, int32_t character, bool inside, cleat_error *error) {
    char piece[6] = "##";
    int32_t id;
    size_t size = cleat_utf8_encode(character, piece + 2);
    if (t->vocabulary.count >= t->settings->vocabulary_size) return CLEAT_OK;
    return cleat_vocabulary_add(&t->vocabulary, inside ? piece : piece + 2, inside ? size + 2 : size, &id, error);
}

static cleat_status add_characters(trainer *t, cleat_error *error) {
    size_t limit = t->settings->character_limit ? t->settings->character_limit : DEFAULT_CHARACTER_LIMIT, kept = 0;
    cleat_status status = CLEAT_OK;
    counted_character *counts = cleat_alloc(CHARACTERS, sizeof *counts);
    if (!counts) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory to count characters");
    size_t met = count_characters(t, counts);
    qsort(counts, met, sizeof *counts, by_all);
    while (kept < met && kept < limit && counts[kept].all >= t->min_count) ++kept;
    for (size_t i = 0; i < kept && !status; ++i) status = add_character(t, counts[i].character, false, error);
    qsort(counts, kept, sizeof *counts, by_inside);
    for (size_t i = 0; i < kept && counts[i].inside && !status; ++i)
        status = add_character(t, counts[i].character, true, error);
    cleat_free(counts);
    return status;
}

static cleat_status add_specials(trainer *t, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (int i = 0; i < CLEAT_SPECIALS && !status; ++i) {
        const char *name = cleat_special_token_name((cleat_special_token)i);
        int32_t id;
        status = cleat_vocabulary_add(&t->vocabulary, name, strlen(name), &id, error);
    }
    return status;
}

/* Writes the pieces of a word, one per character. Returns 0 if the vocabulary lacks one of them. */
static uint32_t spell(const trainer *t, const char *word, int32_t *pieces) {
    uint32_t size = 0;
    int32_t c;
    for (size_t at = 0, length; word[at]; at += length) {
        char piece[6] = "##";
        length = cleat_utf8_decode(word + at, strlen(word + at), &c);
        memcpy(piece + 2, word + at, length);
        int32_t id = at ? cleat_vocabulary_find(&t->vocabulary, piece, length + 2)
                        : cleat_vocabulary_find(&t->vocabulary, piece + 2, length);
        if (id < 0) return 0;
        pieces[size++] = id;
    }
    return size;
}

static cleat_status make_rows(trainer *t, cleat_error *error) {
    size_t used = 0;
    const cleat_vocabulary *words = &t->words.words;
    t->pieces = cleat_alloc(words->text_size, sizeof *t->pieces);
    t->rows = cleat_alloc(words->count, sizeof *t->rows);
    if (!t->pieces || !t->rows)
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu different words", words->count);
    for (size_t w = 0; w < words->count; ++w) {
        uint32_t size = spell(t, cleat_vocabulary_piece(words, (int32_t)w), t->pieces + used);
        if (!size) continue;
        t->rows[t->n_rows++] = (row){t->pieces + used, size, t->words.counts[w]};
        used += size;
    }
    return CLEAT_OK;
}

static cleat_status count_pairs(trainer *t, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    uint32_t index;
    for (size_t r = 0; r < t->n_rows; ++r)
        for (uint32_t i = 0; i + 1 < t->rows[r].size && !status; ++i)
            status = add_pair(t, t->rows[r].pieces[i], t->rows[r].pieces[i + 1], (uint32_t)r, &index, error);
    for (size_t p = 0; p < t->n_pairs && !status; ++p) status = push(t, (uint32_t)p, error);
    return status;
}

static void free_trainer(trainer *t) {
    for (size_t i = 0; i < t->n_pairs; ++i) cleat_free(t->pairs[i].rows);
    cleat_free(t->pairs);
    cleat_free(t->slots);
    cleat_free(t->heap);
    cleat_free(t->rows);
    cleat_free(t->pieces);
    cleat_word_counts_free(&t->words);
    cleat_vocabulary_free(&t->vocabulary);
}

static cleat_status check(const cleat_text_view *texts, size_t n, const cleat_tokenizer_training *training,
                          cleat_error *error) {
    if (!training || (n && !texts))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "training a tokenizer requires texts and settings");
    if (training->vocabulary_size <= CLEAT_SPECIALS)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "vocabulary_size is %zu; it must be larger than the %d special tokens",
                          training->vocabulary_size, (int)CLEAT_SPECIALS);
    if (training->workers < 0 || training->workers > CLEAT_MAX_COUNT_WORKERS)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "workers is %d; it must be 0 to %d", training->workers,
                          (int)CLEAT_MAX_COUNT_WORKERS);
    return CLEAT_OK;
}

cleat_status cleat_tokenizer_train(const cleat_text_view *texts, size_t n, const cleat_tokenizer_training *training,
                                   cleat_tokenizer **tokenizer, cleat_error *error) {
    cleat_status status = check(texts, n, training, error);
    if (status) return status;
    trainer t = {.settings = training, .min_count = training->min_count ? training->min_count : DEFAULT_MIN_COUNT};
    cleat_word_rules rules = {.lowercase = training->lowercase, .special = {true, true, true, true, true}};
    status = cleat_words_count(texts, n, &rules, training->workers, &t.words, error);
    if (!status && !t.words.words.count)
        status = cleat_fail(error, CLEAT_ERR_ARGUMENT, "the %zu texts of the corpus contain no words to learn from", n);
    if (!status) status = add_specials(&t, error);
    if (!status) status = add_characters(&t, error);
    if (!status) status = make_rows(&t, error);
    if (!status) status = count_pairs(&t, error);
    if (!status) status = merge_all(&t, error);
    if (!status) status = cleat_tokenizer_create(&t.vocabulary, training->lowercase, "training", tokenizer, error);
    free_trainer(&t);
    return status;
}
