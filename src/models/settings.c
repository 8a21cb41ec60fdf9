/* Settings of model families: creation with defaults, copying, assignment; checks shared by several
 * families. */
#include "models/settings.h"

#include "core/memory.h"
#include "models/model.h"

#include <string.h>

static const char *noun = "profile";

static char **text_of(const cleat_key *key, void *settings) {
    return (char **)((char *)settings + key->offset);
}

static void forget_texts(const cleat_model_class *family, void *settings) {
    for (const cleat_key *key = family->keys; key->name; ++key)
        if (key->type == CLEAT_KEY_TEXT) *text_of(key, settings) = NULL;
}

cleat_status cleat_settings_create(const cleat_model_class *family, cleat_data_settings **settings,
                                   cleat_error *error) {
    void *made = cleat_alloc(1, family->settings_size);
    cleat_status status = CLEAT_OK;
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the settings of %s", family->name);
    if (family->defaults) family->defaults(made);
    forget_texts(family, made);
    for (const cleat_key *key = family->keys; key->name && !status; ++key)
        status = cleat_value_parse(noun, key, key->initial, "default", made, error);
    if (status) {
        cleat_settings_destroy(family, made);
        return status;
    }
    *settings = made;
    return CLEAT_OK;
}

cleat_status cleat_settings_clone(const cleat_model_class *family, const cleat_data_settings *settings,
                                  cleat_data_settings **copy, cleat_error *error) {
    void *made = cleat_alloc(1, family->settings_size);
    bool complete = made;
    if (made) {
        memcpy(made, settings, family->settings_size);
        forget_texts(family, made);
    }
    for (const cleat_key *key = family->keys; key->name && complete; ++key) {
        if (key->type != CLEAT_KEY_TEXT) continue;
        *text_of(key, made) = cleat_strdup(*text_of(key, (void *)settings));
        complete = *text_of(key, made);
    }
    if (!complete) {
        cleat_settings_destroy(family, made);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the settings of %s", family->name);
    }
    *copy = made;
    return CLEAT_OK;
}

void cleat_settings_destroy(const cleat_model_class *family, cleat_data_settings *settings) {
    if (!settings) return;
    for (const cleat_key *key = family->keys; key->name; ++key)
        if (key->type == CLEAT_KEY_TEXT) cleat_free(*text_of(key, settings));
    cleat_free(settings);
}

cleat_transformer cleat_encoder_shape(const cleat_encoder_settings *encoder, cleat_mode mode) {
    return (cleat_transformer){.d_model = encoder->d_model,
                               .heads = encoder->heads,
                               .layers = encoder->layers,
                               .d_ff = encoder->d_ff,
                               .dropout = mode == CLEAT_MODE_TRAIN ? (float)encoder->dropout : 0.0f};
}

cleat_status cleat_encoder_check(const cleat_encoder_settings *encoder, const cleat_record *record,
                                 cleat_error *error) {
    const int64_t width = encoder->d_model, heads = encoder->heads;
    if (width % heads == 0) return CLEAT_OK;
    const int64_t below = width - width % heads;
    return cleat_record_contradict(record, error, "model.d_model", "model.heads",
                                   "d_model must be a multiple of heads: for %lld heads e.g. %lld", (long long)heads,
                                   (long long)(below ? below : heads));
}

cleat_status cleat_fractions_check(double val, double test, const cleat_record *record, cleat_error *error) {
    if (val + test < 1) return CLEAT_OK;
    return cleat_record_contradict(record, error, "data.val_fraction", "data.test_fraction",
                                   "no data are left for training");
}
