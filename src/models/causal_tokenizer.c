/* The tokenizer of a GGUF file, and what chats need of it. */
#include "models/causal_lm.h"
#include "tokenizer/tokenizer.h"

/* The text of the token whose id the member has; NULL: there is none. */
static const char *token_of(const cleat_gguf *file, const char *key) {
    const cleat_gguf_member *tokens = cleat_gguf_find(file, "tokenizer.ggml.tokens");
    const double id = cleat_gguf_number(cleat_gguf_find(file, key), 0);
    return tokens && tokens->texts && id >= 0 && id < (double)tokens->count ? tokens->texts[(size_t)id].data : NULL;
}

cleat_status cleat_causal_gguf_tokenizer(const cleat_gguf *file, cleat_causal_options *options,
                                         cleat_tokenizer **tokenizer, cleat_error *error) {
    const cleat_gguf_member *chat;
    cleat_status status = cleat_gguf_expect(file, "tokenizer.chat_template", CLEAT_GGUF_ONE_TEXT, &chat, error);
    if (!status) status = cleat_tokenizer_of_gguf(file, tokenizer, error);
    if (status) return status;
    options->chat_template = chat ? chat->texts[0].data : NULL;
    options->bos_token = token_of(file, "tokenizer.ggml.bos_token_id");
    options->eos_token = token_of(file, "tokenizer.ggml.eos_token_id");
    return CLEAT_OK;
}
