/* Text: WordPiece tokenizers, loaded from a vocab.txt or trained on a corpus.
 *
 * Encoding produces the same ids as Hugging Face's BertTokenizer (the slow one; tokenize_chinese_chars on,
 * strip_accents equal to do_lower_case). Its steps are:
 *
 * 1. [PAD] [UNK] [CLS] [SEP] [MASK], in upper case and anywhere in the text, remain whole tokens if the
 *     vocabulary contains them. They split the text into independent parts.
 * 2. With `lowercase`, each character is lower-cased separately, so a capital sigma never becomes a final
 *     sigma.
 * 3. U+0000, U+FFFD and all characters of the categories C* (control, private use, unassigned, and format
 *     characters such as the zero-width joiner and the byte order mark) are removed, which joins their
 *     neighbours. Tab, line feed, carriage return, category Zs, U+2028 and U+2029 count as spaces.
 * 4. Each CJK ideograph is a separate word. 5. Unicode normalisation NFC; with `lowercase` then NFD and
 * removal of category Mn (accents). 6. Words end at spaces. Each punctuation character (ASCII other than
 * letters and digits; categories P*)
 *     is a word.
 * 7. A word of more than 100 characters is [UNK]. Any other word is split greedily: each piece is the
 *     longest one in the vocabulary that matches where the previous piece ended. If no piece matches, the
 *     whole word is [UNK].
 *
 * utf8proc classifies characters (assigned, punctuation, accent), so results for characters newer than
 * another tokenizer's Unicode version may differ. One difference from BertTokenizer: without `lowercase`, a
 * special token that appears only after characters are removed ("[S", zero-width space, "EP]") is ordinary
 * text here. */
#ifndef CLEAT_TEXT_H
#define CLEAT_TEXT_H

#include "cleat/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Immutable after creation: any number of threads may use a tokenizer at the same time. */
typedef struct cleat_tokenizer cleat_tokenizer;

/* UTF-8 text, borrowed; it need not be zero-terminated. */
typedef struct cleat_text_view {
    const char *data; /* [size]; may be NULL if size is 0 */
    size_t size;
} cleat_text_view;

typedef struct cleat_token {
    int32_t id;
    /* Byte range begin .. end - 1 of the source text, including stripped accents. Characters that
     * normalisation composed or reordered share one range. */
    uint32_t begin, end;
    uint32_t word; /* index of the word (step 6) that contains the token, from 0 in each text */
} cleat_token;

/* --- making --------------------------------------------------------------------------------------------------- */

/* Loads a vocab.txt of BERT: UTF-8, one piece per line (LF or CRLF), id = line number from 0; continuation
 * pieces start with "##". The caller owns the tokenizer (cleat_tokenizer_destroy). CLEAT_ERR_FORMAT: an
 * empty, repeated or non-UTF-8 line, which the message names, or a missing piece of [PAD] [UNK] [CLS] [SEP];
 * [MASK] is optional. */
CLEAT_API cleat_status cleat_tokenizer_load(const char *path, bool lowercase, cleat_tokenizer **tokenizer,
                                            cleat_error *error);

typedef struct cleat_tokenizer_training {
    /* Maximum vocabulary size, including the five special pieces; the result is smaller if the corpus has
     * fewer pieces. */
    size_t vocabulary_size;
    bool lowercase;
    uint64_t min_count;     /* minimum count for a character or pair to become a piece; 0: 2 */
    size_t character_limit; /* maximum number of distinct characters, most frequent first; 0: 1000 */
    int workers;            /* threads that count words; 0: the calling thread */
} cleat_tokenizer_training;

/* Trains a vocabulary on a corpus texts [n]. Its pieces are, in this order: [PAD] [UNK] [CLS] [SEP] [MASK];
 * characters, most frequent first; characters inside words ("##x"), most frequent first; merges. Each merge
 * joins the pair of neighbouring pieces with the highest count in the corpus: the criterion of byte-pair
 * encoding (Sennrich, Haddow, Birch, "Neural machine translation of rare words with subword units", ACL 2016)
 * and of Hugging Face's trainer for BERT, not the likelihood of the original WordPiece. Ties are resolved in
 * favour of the smaller ids, so the vocabulary depends on the corpus and the settings only, not on the number
 * of threads. Words with an excluded character and words of more than 100 characters are ignored. The caller
 * owns *tokenizer. CLEAT_ERR_ARGUMENT: vocabulary_size under 6, workers outside 0 to 256, no word in the
 * corpus. */
CLEAT_API cleat_status cleat_tokenizer_train(const cleat_text_view *texts, size_t n,
                                             const cleat_tokenizer_training *training, cleat_tokenizer **tokenizer,
                                             cleat_error *error);

/* Writes vocab.txt atomically: to a temporary file, which is then renamed. */
CLEAT_API cleat_status cleat_tokenizer_save(const cleat_tokenizer *tokenizer, const char *path, cleat_error *error);
CLEAT_API void cleat_tokenizer_destroy(cleat_tokenizer *tokenizer); /* accepts NULL */

/* --- using ---------------------------------------------------------------------------------------------------- */

/* Encodes a text without [CLS] and [SEP] into tokens [capacity]. *count receives the number of tokens of the
 * text; if it exceeds `capacity`, only the first `capacity` tokens are written (capacity 0 and tokens NULL:
 * count only). Invalid UTF-8 bytes count as U+FFFD and are removed; use cleat_text_check to reject them.
 * CLEAT_ERR_ARGUMENT: a text of 4 GiB or more. */
CLEAT_API cleat_status cleat_tokenizer_encode(const cleat_tokenizer *tokenizer, const char *text, size_t size,
                                              cleat_token *tokens, size_t capacity, size_t *count, cleat_error *error);

/* True if the text is valid UTF-8 (no overlong forms, no surrogates). Otherwise *bad_byte (may be NULL)
 * receives the offset of the first invalid byte. */
CLEAT_API bool cleat_text_check(const char *text, size_t size, size_t *bad_byte);

/* --- asking --------------------------------------------------------------------------------------------------- */

/* Number of pieces, and whether characters are lower-cased before encoding. */
CLEAT_API size_t cleat_tokenizer_size(const cleat_tokenizer *tokenizer);
CLEAT_API bool cleat_tokenizer_lowercase(const cleat_tokenizer *tokenizer);
/* Id of a piece ("##ing"); -1 if the vocabulary does not contain it. */
CLEAT_API int32_t cleat_tokenizer_id(const cleat_tokenizer *tokenizer, const char *piece);
/* Piece of an id, zero-terminated, borrowed; NULL if the id is out of range. */
CLEAT_API const char *cleat_tokenizer_piece(const cleat_tokenizer *tokenizer, int32_t id);
CLEAT_API int32_t cleat_tokenizer_pad(const cleat_tokenizer *tokenizer);
CLEAT_API int32_t cleat_tokenizer_unk(const cleat_tokenizer *tokenizer);
CLEAT_API int32_t cleat_tokenizer_cls(const cleat_tokenizer *tokenizer);
CLEAT_API int32_t cleat_tokenizer_sep(const cleat_tokenizer *tokenizer);
/* -1 if the vocabulary has no [MASK] */
CLEAT_API int32_t cleat_tokenizer_mask(const cleat_tokenizer *tokenizer);

/* Hash of everything that determines the encoding, as 32 hexadecimal digits and a zero: the pieces, their
 * order, lower-casing, and the version of utf8proc, whose tables distinguish letters from punctuation. */
CLEAT_API void cleat_tokenizer_hash(const cleat_tokenizer *tokenizer, char hash[33]);

#ifdef __cplusplus
}
#endif
#endif
