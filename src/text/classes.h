/* Character classes of Hugging Face tokenizers.
 *
 * They follow the Unicode versions that its parts were built with (BERT's accents and punctuation: 8.0), so characters
 * that came later are exceptions from utf8proc's tables. */
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

/* The general category's first letter ('L', 'M', 'N', 'P', 'S', 'Z', 'C') and second letter ('u', 'l', ...). */
void cleat_class_category(int32_t character, char category[2]);

#endif
