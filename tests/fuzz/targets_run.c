/* Targets of the fuzzer: profiles, cards, weights, checkpoints, trajectories, caches of a device. */
#include "fuzz.h"

#include "card/file.h"
#include "checkpoint/state.h"
#include "cleat/profile.h"
#include "cleat/tokenizer.h"
#include "core/files.h"
#include "core/memory.h"
#include "core/safetensors.h"
#include "data/image/common.h"
#include "graph/tuning.h"
#include "profile/adopt.h"
#include "session/rates.h"
#include "verify/golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void profile(const uint8_t *bytes, size_t size) {
    char *text = fuzz_text(bytes, size);
    cleat_profile *made = NULL;
    if (!cleat_profile_create(&made, NULL)) {
        if (!cleat_profile_read_text(made, "fuzz", text, size, NULL)) (void)!cleat_profile_check(made, NULL);
        cleat_profile_destroy(made);
    }
    free(text);
}

static void card(const uint8_t *bytes, size_t size) {
    char *text = fuzz_text(bytes, size);
    cleat_card read;
    (void)!cleat_card_read("fuzz", "fuzz.ini", text, size, &read, NULL);
    free(text);
}

static void safetensors(const uint8_t *bytes, size_t size) {
    cleat_safetensors *file = NULL;
    char sum = 0;
    if (cleat_safetensors_parse("fuzz", bytes, size, &file, NULL)) return;
    for (size_t i = 0; i < cleat_safetensors_count(file); ++i) {
        const cleat_st_tensor *tensor = cleat_safetensors_at(file, i);
        for (size_t k = 0; k < cleat_st_bytes(tensor); ++k) sum ^= ((const char *)tensor->data)[k];
    }
    if (sum == 1) (void)cleat_safetensors_metadata(file, "format");
    cleat_safetensors_close(file);
}

/* Sets the sizes of a family's profile from the weights. */
static void adopt(const cleat_model_class *family, cleat_weights *opened) {
    char assignment[96];
    cleat_profile *made = NULL;
    if (cleat_profile_create(&made, NULL)) return;
    snprintf(assignment, sizeof assignment, "model.type=%s", family->name);
    if (!cleat_profile_set(made, assignment, NULL)) (void)!cleat_profile_adopt(made, opened, NULL);
    cleat_profile_destroy(made);
}

/* Adopts the sizes and reads the end of each tensor. One family, selected by the input's size, adopts those of the
 * fuzzer's inputs; all families those of the corpus. Closes the weights. */
static void use_weights(cleat_weights *opened, size_t whole) {
    size_t families = 0;
    while (cleat_model_classes[families]) ++families;
    for (size_t i = 0; i < families; ++i)
        if (!fuzz_is_quick || i == whole % families) adopt(cleat_model_classes[i], opened);
    for (size_t i = 0; i < cleat_weights_count(opened); ++i) {
        const cleat_st_tensor *tensor = cleat_weights_at(opened, i);
        float values[16];
        const int64_t elements = cleat_st_elements(tensor), count = elements < 16 ? elements : 16;
        (void)!cleat_weights_read_part(opened, tensor, elements - count, count, values, NULL);
    }
    cleat_weights_close(opened);
}

/* config.json, then the file of tensors. */
static void weights(const uint8_t *bytes, size_t size) {
    const uint8_t *part = bytes;
    const size_t whole = size;
    cleat_weights *opened = NULL;
    const size_t length = fuzz_part(&bytes, &size, &part);
    fuzz_file("config.json", part, length);
    fuzz_file("model.safetensors", bytes, size);
    if (!cleat_weights_open(fuzz_folder(), &opened, NULL)) use_weights(opened, whole);
}

/* The tokenizer in the metadata, then the tensors. */
static void gguf(const uint8_t *bytes, size_t size) {
    cleat_weights *opened = NULL;
    cleat_tokenizer *tokenizer = NULL;
    float sum = 0;
    const char *path = fuzz_file("model.gguf", bytes, size);
    if (!cleat_tokenizer_load(path, false, &tokenizer, NULL)) cleat_tokenizer_destroy(tokenizer);
    if (cleat_weights_open(path, &opened, NULL)) return;
    const cleat_gguf *file = cleat_weights_gguf(opened);
    for (size_t i = 0; i < cleat_gguf_members(file); ++i) {
        const cleat_gguf_member *member = cleat_gguf_member_at(file, i);
        for (size_t k = 0; k < member->count; ++k)
            sum += member->texts ? (float)strlen(member->texts[k].data) : (float)cleat_gguf_number(member, k);
    }
    use_weights(opened, sum == 1 ? 0 : size);
}

/* The input is the inner JSON; the text around it and its hash are valid. */
static void state(const uint8_t *bytes, size_t size) {
    cleat_train_state read;
    cleat_checkpoint_files files = {0};
    char hash[33];
    char *text = malloc(size + 128);
    if (!text) abort();
    cleat_hash_text(size ? (const void *)bytes : "", size, hash);
    int length = sprintf(text, "{\"state\":");
    if (size) memcpy(text + length, bytes, size);
    length += (int)size;
    length += sprintf(text + length, ",\"hash\":\"%s\"}\n", hash);
    (void)!cleat_state_decode("fuzz", text, (size_t)length, &read, &files, NULL);
    free(text);
}

static void tuned(const uint8_t *bytes, size_t size) {
    char *text = fuzz_text(bytes, size);
    cleat_tuning_table *table = NULL;
    if (!cleat_tuning_parse("fuzz", text, size, &table, NULL)) cleat_tuning_destroy(table);
    free(text);
}

static void rates(const uint8_t *bytes, size_t size) {
    cleat_rates read;
    (void)cleat_rates_read(fuzz_file("x.rates", bytes, size), &read);
}

static void trajectory(const uint8_t *bytes, size_t size) {
    cleat_safetensors *file = NULL;
    cleat_golden golden = {0};
    if (cleat_safetensors_parse("fuzz", bytes, size, &file, NULL)) return;
    if (!cleat_golden_open(file, NULL, 0, &golden, NULL)) cleat_golden_close(&golden);
    cleat_safetensors_close(file);
}

static void preprocessor(const uint8_t *bytes, size_t size) {
    cleat_image_preprocessor fitted = {0};
    fuzz_file("pictures.json", bytes, size);
    (void)!cleat_image_preprocessor_read(fuzz_folder(), &fitted, NULL);
    cleat_image_preprocessor_free(&fitted);
}

const fuzz_target fuzz_run_targets[] = {
    {"profile", profile},
    {"card", card},
    {"safetensors", safetensors},
    {"weights", weights},
    {"gguf", gguf},
    {"state", state},
    {"tuned", tuned},
    {"rates", rates},
    {"trajectory", trajectory},
    {"preprocessor", preprocessor},
    {NULL, NULL},
};
