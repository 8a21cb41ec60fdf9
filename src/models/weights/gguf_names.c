/* The names of tensors in GGUF files (llama.cpp's tensor_mapping.py) and in transformers. */
#include "weights/gguf_network.h"

#include <stdio.h>
#include <string.h>

enum { LLAMA = 1, QWEN2 = 2, QWEN3 = 4, GEMMA2 = 8, GEMMA3 = 16, GPT2 = 32 };
enum { GEMMAS = GEMMA2 | GEMMA3, LLAMAS = LLAMA | QWEN2 | QWEN3, ROTARY = LLAMAS | GEMMAS, ALL = ROTARY | GPT2 };

static const cleat_gguf_architecture architectures[] = {
    {"llama", "llama", LLAMA}, {"llama", "mistral", LLAMA},  {"qwen2", "qwen2", QWEN2},
    {"qwen3", "qwen3", QWEN3}, {"gemma2", "gemma2", GEMMA2}, {"gemma3", "gemma3_text", GEMMA3},
    {"gpt2", "gpt2", GPT2},
};

/* Names up to the last dot; `*` is the number of a block. */
static const struct {
    const char *there, *here;
    int of;
    cleat_gguf_change change;
} rows[] = {
    {"token_embd", "model.embed_tokens", ROTARY, CLEAT_GGUF_SAME},
    {"output", "lm_head", ALL, CLEAT_GGUF_SAME},
    {"output_norm", "model.norm", LLAMAS, CLEAT_GGUF_SAME},
    {"output_norm", "model.norm", GEMMAS, CLEAT_GGUF_PLUS_ONE},
    {"blk.*.attn_norm", "model.layers.*.input_layernorm", LLAMAS, CLEAT_GGUF_SAME},
    {"blk.*.attn_norm", "model.layers.*.input_layernorm", GEMMAS, CLEAT_GGUF_PLUS_ONE},
    {"blk.*.attn_q", "model.layers.*.self_attn.q_proj", LLAMA, CLEAT_GGUF_PAIRED},
    {"blk.*.attn_k", "model.layers.*.self_attn.k_proj", LLAMA, CLEAT_GGUF_PAIRED},
    {"blk.*.attn_q", "model.layers.*.self_attn.q_proj", ROTARY, CLEAT_GGUF_SAME},
    {"blk.*.attn_k", "model.layers.*.self_attn.k_proj", ROTARY, CLEAT_GGUF_SAME},
    {"blk.*.attn_v", "model.layers.*.self_attn.v_proj", ROTARY, CLEAT_GGUF_SAME},
    {"blk.*.attn_output", "model.layers.*.self_attn.o_proj", ROTARY, CLEAT_GGUF_SAME},
    {"blk.*.attn_q_norm", "model.layers.*.self_attn.q_norm", QWEN3, CLEAT_GGUF_SAME},
    {"blk.*.attn_k_norm", "model.layers.*.self_attn.k_norm", QWEN3, CLEAT_GGUF_SAME},
    {"blk.*.attn_q_norm", "model.layers.*.self_attn.q_norm", GEMMA3, CLEAT_GGUF_PLUS_ONE},
    {"blk.*.attn_k_norm", "model.layers.*.self_attn.k_norm", GEMMA3, CLEAT_GGUF_PLUS_ONE},
    {"blk.*.ffn_norm", "model.layers.*.post_attention_layernorm", LLAMAS, CLEAT_GGUF_SAME},
    {"blk.*.post_attention_norm", "model.layers.*.post_attention_layernorm", GEMMAS, CLEAT_GGUF_PLUS_ONE},
    {"blk.*.ffn_norm", "model.layers.*.pre_feedforward_layernorm", GEMMAS, CLEAT_GGUF_PLUS_ONE},
    {"blk.*.post_ffw_norm", "model.layers.*.post_feedforward_layernorm", GEMMAS, CLEAT_GGUF_PLUS_ONE},
    {"blk.*.ffn_gate", "model.layers.*.mlp.gate_proj", ROTARY, CLEAT_GGUF_SAME},
    {"blk.*.ffn_up", "model.layers.*.mlp.up_proj", ROTARY, CLEAT_GGUF_SAME},
    {"blk.*.ffn_down", "model.layers.*.mlp.down_proj", ROTARY, CLEAT_GGUF_SAME},
    {"token_embd", "transformer.wte", GPT2, CLEAT_GGUF_SAME},
    {"position_embd", "transformer.wpe", GPT2, CLEAT_GGUF_SAME},
    {"output_norm", "transformer.ln_f", GPT2, CLEAT_GGUF_SAME},
    {"blk.*.attn_norm", "transformer.h.*.ln_1", GPT2, CLEAT_GGUF_SAME},
    {"blk.*.attn_qkv", "transformer.h.*.attn.c_attn", GPT2, CLEAT_GGUF_TRANSPOSED},
    {"blk.*.attn_output", "transformer.h.*.attn.c_proj", GPT2, CLEAT_GGUF_TRANSPOSED},
    {"blk.*.ffn_norm", "transformer.h.*.ln_2", GPT2, CLEAT_GGUF_SAME},
    {"blk.*.ffn_up", "transformer.h.*.mlp.c_fc", GPT2, CLEAT_GGUF_TRANSPOSED},
    {"blk.*.ffn_down", "transformer.h.*.mlp.c_proj", GPT2, CLEAT_GGUF_TRANSPOSED},
};

const cleat_gguf_architecture *cleat_gguf_architecture_find(const char *name, bool there) {
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; ++i)
        if (strcmp(name, there ? architectures[i].there : architectures[i].here) == 0) return &architectures[i];
    return NULL;
}

/* Compares `name` [size] with a pattern; sets number [digits] to what `*` stands for. */
static bool matches(const char *pattern, const char *name, size_t size, const char **number, size_t *digits) {
    const char *star = strchr(pattern, '*');
    const size_t before = star ? (size_t)(star - pattern) : strlen(pattern);
    *number = name + before;
    *digits = 0;
    if (size < before || strncmp(pattern, name, before) != 0) return false;
    if (!star) return size == before;
    *digits = strspn(*number, "0123456789");
    const size_t rest = strlen(star + 1);
    return *digits && size == before + *digits + rest && strncmp(star + 1, *number + *digits, rest) == 0;
}

bool cleat_gguf_rename(const cleat_gguf_architecture *architecture, const char *name, bool back,
                       char renamed[CLEAT_GGUF_NAME], cleat_gguf_change *change) {
    const char *dot = strrchr(name, '.'), *number;
    size_t digits;
    for (size_t i = 0; dot && i < sizeof rows / sizeof *rows; ++i) {
        const char *to = back ? rows[i].there : rows[i].here, *star = strchr(to, '*');
        if (!(rows[i].of & architecture->bit) ||
            !matches(back ? rows[i].here : rows[i].there, name, (size_t)(dot - name), &number, &digits))
            continue;
        const int size = snprintf(renamed, CLEAT_GGUF_NAME, "%.*s%.*s%s%s", star ? (int)(star - to) : 0, to,
                                  (int)digits, number, star ? star + 1 : to, dot);
        *change = rows[i].change;
        return size < CLEAT_GGUF_NAME;
    }
    return false;
}
