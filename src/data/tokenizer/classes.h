/* Character classes of Hugging Face tokenizers. They follow the Unicode versions of its parts (BERT's accents and
 * punctuation: 8.0), so later characters are exceptions from utf8proc's tables. */
#ifndef CLEAT_SRC_CLASSES_H
#define CLEAT_SRC_CLASSES_H

#include "cleat/core.h"

bool cleat_class_space(int32_t character);  /* property White_Space */
bool cleat_class_letter(int32_t character); /* categories L* */
bool cleat_class_number(int32_t character); /* categories N* */
bool cleat_class_word(int32_t character);   /* \w of regular expressions */
bool cleat_class_mark(int32_t character);   /* StripAccents removes it */
/* BertNormalizer: removes it as a control character; puts spaces around it; strips it as an accent. */
bool cleat_class_bert_control(int32_t character);
bool cleat_class_bert_ideograph(int32_t character);
bool cleat_class_bert_accent(int32_t character);
bool cleat_class_punctuation(int32_t character); /* of BertPreTokenizer and Punctuation */

typedef struct cleat_char_range {
    int32_t first, last;
} cleat_char_range;

/* Characters of Unicode 15 and 16, which utf8proc and PCRE2 may not know. */
typedef struct cleat_new_chars {
    const char *category; /* "Lo" */
    size_t count;
    const cleat_char_range *ranges; /* [count] */
} cleat_new_chars;
enum { CLEAT_NEW_CHARS = 10 };
extern const cleat_new_chars cleat_class_new[CLEAT_NEW_CHARS];

#endif
