/* Text: tokenizers, loaded from the files of published checkpoints or from a vocab.txt, or trained on a corpus.
 *
 * A tokenizer.json is a pipeline of parts, which are applied as the file defines: normalizer, pre_tokenizer,
 * model (WordPiece, BPE or Unigram), post_processor (templates of special tokens) and added tokens. The ids
 * are those of Hugging Face's tokenizers 0.23. The truncation and padding of the file are not used.
 * utf8proc and PCRE2 classify characters; those newer than Unicode 16 may be split differently.
 *
 * A vocab.txt alone, or a trained vocabulary, is encoded by these rules, which are those of Hugging Face's old
 * BertTokenizer (the slow one; tokenize_chinese_chars on, strip_accents equal to do_lower_case):
 *
 * 1. [PAD] [UNK] [CLS] [SEP] [MASK], in upper case and anywhere in the text, remain whole tokens if the
 *    vocabulary contains them. They split the text into independent parts.
 * 2. With `lowercase`, each character is lower-cased separately, so a capital sigma never becomes a final
 *    sigma.
 * 3. U+0000, U+FFFD and all characters of the categories C* (control, private use, unassigned, and format
 *    characters such as the zero-width joiner and the byte order mark) are removed, which joins their
 *    neighbours. Tab, line feed, carriage return, category Zs, U+2028 and U+2029 count as spaces.
 * 4. Each CJK ideograph is a separate word.
 * 5. Unicode normalisation NFC; with `lowercase` then NFD and removal of category Mn (accents).
 * 6. Words end at spaces. Each punctuation character (ASCII other than letters and digits; categories P*)
 *    is a word.
 * 7. A word of more than 100 characters is [UNK]. Any other word is split greedily: each piece is the
 *    longest one in the vocabulary that matches where the previous piece ended. If no piece matches, the
 *    whole word is [UNK].
 *
 * One difference from BertTokenizer: without `lowercase`, a special token that appears only after characters are
 * removed ("[S", zero-width space, "EP]") is ordinary text here. */
#ifndef CLEAT_TOKENIZER_H
#define CLEAT_TOKENIZER_H

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
    uint32_t word; /* index of the word that contains the token, from 0 in each text */
} cleat_token;

/* --- making --------------------------------------------------------------------------------------------------- */

/* Loads a tokenizer. `path` is one of
 *   a folder: its tokenizer.json, else its vocab.txt, else its vocab.json and merges.txt (RoBERTa), else its
 *     sentencepiece.bpe.model (XLM-RoBERTa), spm.model (DeBERTa-v2 and v3) or tokenizer.model (Llama 2, Mistral,
 *     Gemma; a blank precedes each part of a text between special tokens, as in their published tokenizer.json)
 *   a .json file: a tokenizer.json, or a vocab.json with the merges.txt beside it; one of these .model files
 *   a .gguf file: the tokenizer in its metadata
 *   any other file: a vocab.txt of BERT, which is UTF-8, one piece per line (LF or CRLF), id = line number from 0;
 *     continuation pieces start with "##". Beside a tokenizer.json, tokenizer_config.json or config.json it
 *     belongs to a published checkpoint and follows the rules of today's BertTokenizer, otherwise the rules
 *     above
 * `lowercase` applies to a vocab.txt unless a tokenizer_config.json defines it. The caller owns the tokenizer
 * (cleat_tokenizer_destroy). As in transformers, settings of tokenizer_config.json for BERT's rules and for
 * RoBERTa's first space apply if it or config.json names the tokenizer's class; ignored settings are logged.
 * CLEAT_ERR_FORMAT: damaged files; in vocab.txt an empty, repeated or non-UTF-8 line, which the message
 * names, or a missing piece of [PAD] [UNK] [CLS] [SEP]; [MASK] is optional. CLEAT_ERR_NOT_SUPPORTED: a part
 * of an unknown type (the message lists the known types); files older than tokenizer.json with another class
 * than theirs. */
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
 * favour of the smaller ids, so the vocabulary depends only on the corpus and the settings, not on the number
 * of threads. Words with an excluded character and words of more than 100 characters are ignored. The caller
 * owns *tokenizer. CLEAT_ERR_ARGUMENT: vocabulary_size under 6, workers outside 0 to 256, no word in the
 * corpus. */
CLEAT_API cleat_status cleat_tokenizer_train(const cleat_text_view *texts, size_t n,
                                             const cleat_tokenizer_training *training, cleat_tokenizer **tokenizer,
                                             cleat_error *error);

/* Writes vocab.txt, or the tokenizer.json as it was loaded, atomically: to a temporary file, which is then renamed. */
CLEAT_API cleat_status cleat_tokenizer_save(const cleat_tokenizer *tokenizer, const char *path, cleat_error *error);
/* Writes the tokenizer's files into `folder`, which must exist, as Hugging Face's AutoTokenizer loads them.
 * Loaded files (tokenizer.json, tokenizer_config.json, special_tokens_map.json, vocab.txt, vocab.json,
 * merges.txt, ...) are written unchanged, except that tokenizer.json includes the changes of
 * tokenizer_config.json. If one of these two is missing, it is created, also from a trained vocabulary or a
 * vocab.txt. */
CLEAT_API cleat_status cleat_tokenizer_save_folder(const cleat_tokenizer *tokenizer, const char *folder,
                                                   cleat_error *error);
CLEAT_API void cleat_tokenizer_destroy(cleat_tokenizer *tokenizer); /* accepts NULL */

/* --- using ---------------------------------------------------------------------------------------------------- */

/* Encodes a text without special tokens around it into tokens [capacity]. *count receives the number of
 * tokens of the text; if it exceeds `capacity`, only the first `capacity` tokens are written (capacity 0 and
 * tokens NULL: count only). Invalid UTF-8 bytes count as U+FFFD and are removed; use cleat_text_check to
 * reject them. CLEAT_ERR_ARGUMENT: a text of 4 GiB or more. */
CLEAT_API cleat_status cleat_tokenizer_encode(const cleat_tokenizer *tokenizer, const char *text, size_t size,
                                              cleat_token *tokens, size_t capacity, size_t *count, cleat_error *error);

/* The same for one word of a sentence: a byte-level tokenizer encodes it as if a space preceded it, as
 * Hugging Face does with add_prefix_space for words that are already split. */
CLEAT_API cleat_status cleat_tokenizer_encode_word(const cleat_tokenizer *tokenizer, const char *word, size_t size,
                                                   cleat_token *tokens, size_t capacity, size_t *count,
                                                   cleat_error *error);

/* Token ids of a text, borrowed. */
typedef struct cleat_ids {
    const int32_t *ids; /* [count]; may be NULL if count is 0 */
    size_t count;
} cleat_ids;

typedef struct cleat_token_counts {
    size_t count;         /* number of tokens, special ones included */
    size_t first, second; /* tokens of each text that were kept */
    bool cut;             /* tokens were left out */
} cleat_token_counts;

/* Number of special tokens around one text or a pair of texts, and before a text. */
CLEAT_API size_t cleat_tokenizer_specials(const cleat_tokenizer *tokenizer, bool pair);
CLEAT_API size_t cleat_tokenizer_leading(const cleat_tokenizer *tokenizer);
/* Puts special tokens around the tokens of a text, or of two texts (`second` is not NULL), as the tokenizer's
 * file defines ([CLS] a [SEP] b [SEP]; <s> a </s> </s> b </s>). Texts with too many tokens lose their last
 * ones, in a pair the longer text first (transformers' "longest_first"). Writes ids and types
 * [min(max_length, count)]; the type of a token is that of its text; each may be NULL. CLEAT_ERR_ARGUMENT:
 * max_length is below the number of special tokens. */
CLEAT_API cleat_status cleat_tokenizer_frame(const cleat_tokenizer *tokenizer, const cleat_ids *first,
                                             const cleat_ids *second, size_t max_length, int32_t *ids, int32_t *types,
                                             cleat_token_counts *framed, cleat_error *error);

/* True if the text is valid UTF-8 (no overlong forms, no surrogates). Otherwise *bad_byte (may be NULL)
 * receives the offset of the first invalid byte. */
CLEAT_API bool cleat_text_check(const char *text, size_t size, size_t *bad_byte);

/* --- decoding ------------------------------------------------------------------------------------------------- */

/* Writes the text of ids [count] by the decoder of tokenizer.json (that of BERT for a vocab.txt), as Hugging Face's
 * tokenizers do: UTF-8, with U+FFFD for bytes that are not; ids without a token are left out. *size receives
 * the number of bytes; if it exceeds `capacity`, only the first `capacity` are written (capacity 0 and text NULL:
 * count only). There is no zero at the end. `skip_special` leaves special tokens out. CLEAT_ERR_NOT_SUPPORTED: a
 * decoder of an unknown type, which the message names. */
CLEAT_API cleat_status cleat_tokenizer_decode(const cleat_tokenizer *tokenizer, const int32_t *ids, size_t count,
                                              bool skip_special, char *text, size_t capacity, size_t *size,
                                              cleat_error *error);

/* The text of ids that come one after the other, for one thread. The texts together are that of
 * cleat_tokenizer_decode; each has whole characters only. */
typedef struct cleat_token_stream cleat_token_stream;
/* The caller owns *stream; the tokenizer must outlive it. CLEAT_ERR_NOT_SUPPORTED as above. */
CLEAT_API cleat_status cleat_token_stream_create(const cleat_tokenizer *tokenizer, bool skip_special,
                                                 cleat_token_stream **stream, cleat_error *error);
/* Appends a token. *text, borrowed until the next call, receives what can no longer change; often nothing, if a
 * character consists of several tokens. */
CLEAT_API cleat_status cleat_token_stream_add(cleat_token_stream *stream, int32_t id, cleat_text_view *text,
                                              cleat_error *error);
/* Gives the rest of the text. The next token begins another one. */
CLEAT_API cleat_status cleat_token_stream_end(cleat_token_stream *stream, cleat_text_view *text, cleat_error *error);
CLEAT_API void cleat_token_stream_destroy(cleat_token_stream *stream); /* accepts NULL */

/* --- queries -------------------------------------------------------------------------------------------------- */

/* Highest id + 1, and whether characters are lower-cased before encoding. */
CLEAT_API size_t cleat_tokenizer_size(const cleat_tokenizer *tokenizer);
CLEAT_API bool cleat_tokenizer_lowercase(const cleat_tokenizer *tokenizer);
/* True if a file (tokenizer.json or its older forms) defines how texts are split; false for BERT's vocab.txt
 * alone. */
CLEAT_API bool cleat_tokenizer_is_published(const cleat_tokenizer *tokenizer);
/* Id of a piece ("##ing") or of an added token ("<|im_start|>"); -1 if the vocabulary does not contain it. */
CLEAT_API int32_t cleat_tokenizer_id(const cleat_tokenizer *tokenizer, const char *piece);
/* Piece of an id, zero-terminated, borrowed; NULL if the id is out of range. */
CLEAT_API const char *cleat_tokenizer_piece(const cleat_tokenizer *tokenizer, int32_t id);
/* Writes the text of a piece, zero-terminated, to text [size], truncated if too long: the bytes of a
 * byte-level piece (" the", not "\u0120the"), and spaces for SentencePiece's marks; "##ing" as it is. A piece
 * that is not text by itself, such as half a character, is written as it is. False: the id does not exist. */
CLEAT_API bool cleat_tokenizer_piece_text(const cleat_tokenizer *tokenizer, int32_t id, char *text, size_t size);
/* Ids of special tokens; -1: none; a vocab.txt may lack only [MASK]. cls and sep are the first and the last
 * special token of the template for one text (RoBERTa: <s> and </s>). */
CLEAT_API int32_t cleat_tokenizer_pad(const cleat_tokenizer *tokenizer);
CLEAT_API int32_t cleat_tokenizer_unk(const cleat_tokenizer *tokenizer);
CLEAT_API int32_t cleat_tokenizer_cls(const cleat_tokenizer *tokenizer);
CLEAT_API int32_t cleat_tokenizer_sep(const cleat_tokenizer *tokenizer);
CLEAT_API int32_t cleat_tokenizer_mask(const cleat_tokenizer *tokenizer);
/* Ids of the tokens that begin and end a text of a language model: bos_token and eos_token of tokenizer_config.json,
 * else of special_tokens_map.json; else the first token of the template, and the first of <|end_of_text|>,
 * <|endoftext|>, <eos>, </s> that exists; -1: none. cleat_tokenizer_frame adds bos only if the template has it:
 * cleat_tokenizer_leading is then 1. */
CLEAT_API int32_t cleat_tokenizer_bos(const cleat_tokenizer *tokenizer);
CLEAT_API int32_t cleat_tokenizer_eos(const cleat_tokenizer *tokenizer);
/* Whether a token ends an answer: eos, or eos_token_id, a number or a list, of generation_config.json. */
CLEAT_API bool cleat_tokenizer_ends(const cleat_tokenizer *tokenizer, int32_t id);
/* Whether a token is special: it is not text, and decoding may leave it out. False if the id does not exist. */
CLEAT_API bool cleat_tokenizer_is_special(const cleat_tokenizer *tokenizer, int32_t id);

/* Hash of everything that determines the encoding, as 32 hexadecimal digits and a zero: the tokenizer.json,
 * or the pieces, their order and lower-casing; and the version of utf8proc, whose tables distinguish letters from
 * punctuation. */
CLEAT_API void cleat_tokenizer_hash(const cleat_tokenizer *tokenizer, char hash[33]);

#ifdef __cplusplus
}
#endif
#endif
