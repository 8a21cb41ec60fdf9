/* Text: WordPiece tokenizers, loaded from a vocab.txt or trained from a corpus.
 *
 * Encoding gives the ids of Hugging Face's BertTokenizer (the slow one; tokenize_chinese_chars on,
 * strip_accents as do_lower_case), whose steps are:
 *
 *  1. [PAD] [UNK] [CLS] [SEP] [MASK] written in the text, anywhere, upper case, stay whole where the
 *     vocabulary has them; they split the text into independent parts.
 *  2. With `lowercase`: every character is lower-cased by itself, so a capital sigma is never a final one.
 *  3. U+0000, U+FFFD and all characters of a category C* are removed, so their neighbours join: control,
 *     format (zero-width joiner, byte order mark), private and unassigned ones. Tab, line feed, carriage
 *     return, Zs, U+2028, U+2029 are spaces.
 *  4. A CJK ideograph is a separate word.
 *  5. Normalisation NFC; with `lowercase` then NFD, without the characters of category Mn (accents).
 *  6. Words end at spaces; every punctuation character (ASCII other than letters and digits; category
 *     P*) is a word.
 *  7. A word of more than 100 characters is [UNK]. Any other is cut into the longest piece the
 *     vocabulary has from where the last one ended; where there is none, the whole word is [UNK].
 *
 * What is assigned, punctuation or an accent is asked of utf8proc, so its Unicode version decides about
 * characters that are newer than another tokenizer's. Differs from BertTokenizer: without `lowercase`, a
 * special token that comes about only by removing characters ("[S", zero-width space, "EP]") is ordinary
 * text here. */
#ifndef CLEAT_TEXT_H
#define CLEAT_TEXT_H

#include "cleat/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Immutable once made: any number of threads may use one at the same time. */
typedef struct cleat_tokenizer cleat_tokenizer;

/* UTF-8; need not end in a zero byte. Borrowed. */
typedef struct cleat_text_view {
    const char *data; /* [size]; may be NULL where size is 0 */
    size_t size;
} cleat_text_view;

typedef struct cleat_token {
    int32_t id;
    /* Byte range begin .. end - 1 of the source text, with stripped accents; characters that normalisation
     * composed or reordered share one range. */
    uint32_t begin, end;
    uint32_t word; /* index of the word (step 6) it is a part of, from 0 in each text */
} cleat_token;

/* --- making --------------------------------------------------------------------------------------------------- */

/* Reads the vocab.txt of BERT: UTF-8, one piece per line (LF or CRLF), id = line number from 0;
 * continuation pieces start with "##". CLEAT_ERR_FORMAT names the line (empty, repeated, not UTF-8), or
 * the missing piece of [PAD] [UNK] [CLS] [SEP]. [MASK] is optional. The caller owns the tokenizer
 * (cleat_tokenizer_destroy). */
CLEAT_API cleat_status cleat_tokenizer_load(const char *path, bool lowercase, cleat_tokenizer **tokenizer,
                                            cleat_error *error);

typedef struct cleat_tokenizer_training {
    /* Maximum vocabulary size, the five special pieces included; smaller if the corpus has no more. */
    size_t vocabulary_size;
    bool lowercase;
    uint64_t min_count;     /* minimum count of a character or pair that becomes a piece; 0: 2 */
    size_t character_limit; /* maximum number of characters, the most frequent ones; 0: 1000 */
    int workers;            /* threads for counting words; 0: the calling thread */
} cleat_tokenizer_training;

/* A vocabulary from a corpus texts [n]: [PAD] [UNK] [CLS] [SEP] [MASK]; the characters, most frequent
 * first; the same inside words ("##x"), most frequent first; then merges. A merge joins the two
 * neighbouring pieces that are met together most often in the corpus (the plain count of byte-pair
 * encoding, Sennrich, Haddow, Birch, "Neural machine translation of rare words with subword units", ACL
 * 2016; what Hugging Face's trainer does for BERT, not the likelihood of the first WordPiece). Ties go to
 * the smaller ids: the vocabulary depends on the corpus and the settings, not on the number of threads.
 * Words with a character that is left out, and those of more than 100 characters, take no part.
 * CLEAT_ERR_ARGUMENT: vocabulary_size under 6, workers not 0 to 256, no word in the corpus. */
CLEAT_API cleat_status cleat_tokenizer_train(const cleat_text_view *texts, size_t n,
                                             const cleat_tokenizer_training *training, cleat_tokenizer **tokenizer,
                                             cleat_error *error);

/* Writes vocab.txt: to a temporary name first, then renamed. */
CLEAT_API cleat_status cleat_tokenizer_save(const cleat_tokenizer *tokenizer, const char *path, cleat_error *error);
CLEAT_API void cleat_tokenizer_destroy(cleat_tokenizer *tokenizer); /* takes NULL */

/* --- using ---------------------------------------------------------------------------------------------------- */

/* The tokens of a text, without [CLS] and [SEP], in tokens [capacity]. *count is how many the text has:
 * if it exceeds `capacity`, only the first `capacity` were written (0 and NULL: only count). Bytes that
 * are not UTF-8 count as U+FFFD and are removed; cleat_text_check reports them as an error.
 * CLEAT_ERR_ARGUMENT for a text of 4 GiB or more. */
CLEAT_API cleat_status cleat_tokenizer_encode(const cleat_tokenizer *tokenizer, const char *text, size_t size,
                                              cleat_token *tokens, size_t capacity, size_t *count, cleat_error *error);

/* True where the text is UTF-8 (no overlong forms, no surrogates); else *bad_byte (may be NULL) is the
 * first byte that is not. */
CLEAT_API bool cleat_text_check(const char *text, size_t size, size_t *bad_byte);

/* --- asking --------------------------------------------------------------------------------------------------- */

/* The number of pieces; whether characters are lower-cased first. */
CLEAT_API size_t cleat_tokenizer_size(const cleat_tokenizer *tokenizer);
CLEAT_API bool cleat_tokenizer_lowercase(const cleat_tokenizer *tokenizer);
/* The id of a piece ("##ing"), -1 where the vocabulary has none such. */
CLEAT_API int32_t cleat_tokenizer_id(const cleat_tokenizer *tokenizer, const char *piece);
/* The piece of an id, zero-terminated, borrowed; NULL where there is no such id. */
CLEAT_API const char *cleat_tokenizer_piece(const cleat_tokenizer *tokenizer, int32_t id);
CLEAT_API int32_t cleat_tokenizer_pad(const cleat_tokenizer *tokenizer);
CLEAT_API int32_t cleat_tokenizer_unk(const cleat_tokenizer *tokenizer);
CLEAT_API int32_t cleat_tokenizer_cls(const cleat_tokenizer *tokenizer);
CLEAT_API int32_t cleat_tokenizer_sep(const cleat_tokenizer *tokenizer);
CLEAT_API int32_t cleat_tokenizer_mask(const cleat_tokenizer *tokenizer); /* -1: the vocabulary has none */

/* 32 hexadecimal digits and a zero that stand for all that encoding depends on: pieces, their order,
 * lower-casing, and the release of utf8proc, whose tables tell letters from punctuation. */
CLEAT_API void cleat_tokenizer_hash(const cleat_tokenizer *tokenizer, char hash[33]);

#ifdef __cplusplus
}
#endif
#endif
