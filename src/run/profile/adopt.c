/* Settings from the config.json of the weights from which a run starts (model.init). */
#include "profile/adopt.h"

#include "core/string.h"
#include "models/param_rules.h"

#include <stdio.h>
#include <string.h>

typedef struct adopter {
    cleat_profile *profile;
    cleat_profile *trial; /* a copy, to compare values however they are written */
    const char *source;   /* the file that determines the settings, for messages */
} adopter;

static cleat_status assign(cleat_profile *profile, const cleat_key *key, const char *value, const char *place,
                           cleat_error *error) {
    const cleat_record reader = cleat_profile_reader(profile);
    cleat_status status = cleat_record_assign(&reader, key, value, place, error);
    if (!status) cleat_profile_given(profile->keys, key)->adopted = true;
    return status;
}

/* Whether the profile requires the first part of the network only. */
static bool is_part(const cleat_key *key, const char *own, const char *theirs) {
    double here, there;
    return key->fewer && cleat_number_parse(own, &here) && cleat_number_parse(theirs, &there) && here < there;
}

/* For a setting that the profile gives: a value that shapes the network must equal that of the weights. */
static cleat_status compare(const adopter *a, const cleat_key *key, const char *setting, const char *place,
                            const char *given, cleat_error *error) {
    char own[CLEAT_PROFILE_TEXT], theirs[CLEAT_PROFILE_TEXT];
    cleat_status status = cleat_profile_get(a->profile, setting, own, sizeof own, error);
    if (!status) status = cleat_profile_get(a->trial, setting, theirs, sizeof theirs, error);
    if (status || !key->shapes || strcmp(own, theirs) == 0) return status;
    if (is_part(key, own, theirs)) return CLEAT_OK;
    /* Weights of the default resolution suit a network of another one. */
    if (key->resolves && strcmp(theirs, key->initial) == 0) return CLEAT_OK;
    const char *better = a->profile->family->init_profile;
    return cleat_fail(
        error, CLEAT_ERR_PROFILE,
        "%s contradicts %s: the weights of model.init have this shape; remove the setting%s%s%s, or start "
        "without model.init",
        given, place, better ? ", train the profile " : "", better ? better : "",
        better ? ", which takes its network from them" : "");
}

static cleat_status set(void *user, const char *setting, const char *value, const char *key_of_source,
                        cleat_error *error) {
    adopter *a = user;
    const cleat_key *key = cleat_schema_find_setting(&a->profile->keys->own, setting);
    char place[2 * CLEAT_PROFILE_TEXT];
    if (!key)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "%s: %s = %s: models of type %s have no setting %s",
                          a->source, key_of_source, value, a->profile->keys->types[a->profile->type], setting);
    snprintf(place, sizeof place, "%s: %s = %s", a->source, key_of_source, value);
    const cleat_assignment *given = cleat_profile_given(a->profile->keys, key);
    cleat_status status = assign(a->trial, key, value, place, error);
    if (status) return status;
    return given->value ? compare(a, key, setting, place, given->place, error)
                        : assign(a->profile, key, value, place, error);
}

static cleat_status adopt(cleat_profile *profile, const char *source,
                          cleat_status (*pass)(const cleat_weights *, const cleat_setting_sink *, void *,
                                               cleat_error *),
                          const cleat_weights *weights, void *user, cleat_error *error) {
    adopter a = {.profile = profile, .source = source};
    cleat_status status = cleat_profile_clone(profile, &a.trial, error);
    const cleat_setting_sink sink = {.set = set, .user = &a};
    if (!status) status = pass(weights, &sink, user, error);
    cleat_profile_destroy(a.trial);
    return status;
}

/* --- published weights ---------------------------------------------------------------------------------------- */

static cleat_status pass_config(const cleat_weights *weights, const cleat_setting_sink *sink, void *user,
                                cleat_error *error) {
    return cleat_architecture_configure(user, weights, sink, error);
}

/* Frozen weights keep the form of a quantised file: train.frozen_weights = auto becomes `text`. */
static cleat_status adopt_forms(cleat_profile *profile, const char *text, const char *source, cleat_error *error) {
    char place[2 * CLEAT_PROFILE_TEXT];
    const cleat_param_options *params = &profile->train.params;
    const bool freezes = params->lora_rank != CLEAT_NONE || cleat_frozen_depths(params->freeze) > 0;
    const cleat_key *key = cleat_schema_find_setting(&profile->keys->own, "train.frozen_weights");
    if (!freezes || strcmp(params->frozen_weights, "auto") != 0 || strcmp(text, "float") == 0) return CLEAT_OK;
    snprintf(place, sizeof place, "%s: its types", source);
    return assign(profile, key, text, place, error);
}

static cleat_status adopt_published(cleat_profile *profile, const cleat_weights *weights, cleat_error *error) {
    const cleat_architecture *architecture = NULL;
    cleat_status status = cleat_profile_architecture(profile, weights, &architecture, error);
    if (status) return status;
    char source[CLEAT_PROFILE_TEXT + 16];
    if (cleat_weights_config(weights))
        snprintf(source, sizeof source, "%s/config.json", cleat_weights_folder(weights));
    else
        snprintf(source, sizeof source, "%s", cleat_weights_path(weights));
    char forms[CLEAT_FROZEN_TEXT];
    status = adopt(profile, source, pass_config, weights, (void *)architecture, error);
    cleat_weights_forms(weights, architecture, forms);
    return status ? status : adopt_forms(profile, forms, source, error);
}

cleat_status cleat_profile_architecture(const cleat_profile *profile, const cleat_weights *weights,
                                        const cleat_architecture **architecture, cleat_error *error) {
    if (profile->family->architectures)
        return cleat_architecture_find(profile->family->architectures, weights, architecture, error);
    return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                      "%s: model.type = %s can start only from a checkpoint of cleat, and this is not one",
                      cleat_weights_path(weights), profile->family->name);
}

/* --- a checkpoint of cleat ------------------------------------------------------------------------------------ */

bool cleat_weights_are_own(const cleat_weights *weights) {
    return cleat_weights_metadata(weights, "model.type") != NULL;
}

/* The settings of its network, but not its type, because the head may differ, nor those of its training
 * (adapters). */
static cleat_status pass_metadata(const cleat_weights *weights, const cleat_setting_sink *sink, void *user,
                                  cleat_error *error) {
    const cleat_profile *profile = user;
    char name[128];
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; !status && cleat_profile_shaping_key(profile, i, name, sizeof name); ++i) {
        const char *value = cleat_weights_metadata(weights, name);
        const bool of_network = strcmp(name, "model.type") != 0 && strncmp(name, "train.", 6) != 0;
        if (value && of_network) status = sink->set(sink->user, name, value, name, error);
    }
    return status;
}

/* The run belongs to the profile's family, or to one with the same parameters except the head. */
static cleat_status check_family(const cleat_profile *profile, const cleat_weights *weights, cleat_error *error) {
    const cleat_model_class *family = profile->family;
    const char *type = cleat_weights_metadata(weights, "model.type");
    cleat_string known = {0};
    if (strcmp(type, family->name) == 0 || cleat_model_origin_of(family, type)) return CLEAT_OK;
    cleat_string_add(&known, "runs of type %s", family->name);
    for (const cleat_model_origin *one = family->origins; one && one->type; ++one)
        cleat_string_add(&known, ", %s", one->type);
    for (const cleat_architecture *const *one = family->architectures; one && *one; ++one)
        cleat_string_add(&known, "%s%s", one == family->architectures ? "; published weights of type " : ", ",
                         (*one)->name);
    cleat_status status = cleat_fail(
        error, CLEAT_ERR_NOT_SUPPORTED, "%s: is a run of model.type = %.60s; model.type = %s can start from: %s",
        cleat_weights_path(weights), type, family->name, known.failed ? family->name : known.data);
    cleat_string_free(&known);
    return status;
}

/* The texts of the fine-tuning are encoded as those of the checkpoint were. */
static cleat_status pass_vocabulary(const cleat_weights *weights, const cleat_setting_sink *sink, void *user,
                                    cleat_error *error) {
    const char *const *name = user;
    char path[CLEAT_PROFILE_TEXT];
    cleat_status status = cleat_path_join(cleat_weights_folder(weights), *name, path, sizeof path, error);
    if (status || !cleat_file_exists(path)) return status;
    return sink->set(sink->user, "data.vocabulary", path, *name, error);
}

static cleat_status adopt_own(cleat_profile *profile, const cleat_weights *weights, cleat_error *error) {
    static const char *const vocabularies[] = {"tokenizer.json", "vocab.txt"};
    cleat_status status = check_family(profile, weights, error);
    if (!status) status = adopt(profile, cleat_weights_path(weights), pass_metadata, weights, profile, error);
    const cleat_key *key = cleat_schema_find_setting(&profile->keys->own, "data.vocabulary");
    if (!key) return status;
    for (size_t i = 0; i < sizeof vocabularies / sizeof *vocabularies && !status; ++i) {
        if (!cleat_profile_given(profile->keys, key)->value)
            status =
                adopt(profile, cleat_weights_path(weights), pass_vocabulary, weights, (void *)&vocabularies[i], error);
    }
    return status;
}

cleat_status cleat_profile_adopt(cleat_profile *profile, const cleat_weights *weights, cleat_error *error) {
    return cleat_weights_are_own(weights) ? adopt_own(profile, weights, error)
                                          : adopt_published(profile, weights, error);
}

cleat_status cleat_profile_find_parameters(const cleat_profile *profile, const cleat_model *model,
                                           const cleat_weights *weights, cleat_weight_target *target,
                                           cleat_error *error) {
    target->model = model;
    target->prefix = "";
    if (!cleat_weights_are_own(weights))
        return cleat_profile_architecture(profile, weights, &target->architecture, error);
    const cleat_model_origin *origin =
        cleat_model_origin_of(profile->family, cleat_weights_metadata(weights, "model.type"));
    target->shared = origin ? origin->shared : NULL;
    return CLEAT_OK;
}

/* --- the profile of a checkpoint ------------------------------------------------------------------------------ */

cleat_status cleat_profile_adopt_profile(cleat_profile *profile, const cleat_profile *then, const char *source,
                                         cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (const cleat_key *key = profile->keys->own.keys; key->name && !status; ++key) {
        char name[128], value[CLEAT_PROFILE_TEXT], place[2 * CLEAT_PROFILE_TEXT + 160];
        if (key->part != CLEAT_PART_FAMILY || cleat_profile_given(profile->keys, key)->value) continue;
        snprintf(name, sizeof name, "%s.%s", key->section, key->name);
        status = cleat_profile_get(then, name, value, sizeof value, error);
        snprintf(place, sizeof place, "%s: %s = %s", source, key->name, value);
        if (!status) status = assign(profile, key, value, place, error);
    }
    return status ? status : adopt_forms(profile, then->train.params.frozen_weights, source, error);
}
