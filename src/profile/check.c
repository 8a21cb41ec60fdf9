/* What no single value shows: values that contradict one another, are missing, or ask for what this version
 * cannot do. */
#include "profile/schema.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { DEFAULT_EFFECTIVE_BATCH = 8 };

/* --- metrics a model has -------------------------------------------------------------------------------------- */

typedef struct metric {
    cleat_model_type model;
    const char *name;
    bool ascends; /* larger is better */
} metric;

static const metric metrics[] = {
    {CLEAT_MODEL_RNA_TRANSFORMER, "loss", false},     {CLEAT_MODEL_RNA_TRANSFORMER, "rmsd", false},
    {CLEAT_MODEL_RNA_TRANSFORMER, "lddt", true},      {CLEAT_MODEL_RNA_TRANSFORMER, "tm", true},
    {CLEAT_MODEL_RNA_TRANSFORMER, "pair_mae", false}, {CLEAT_MODEL_RNA_TRANSFORMER, "pair_mae_local", false},
};

static const metric *find_metric(const cleat_profile *profile) {
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; ++i)
        if ((int)metrics[i].model == profile->model.type && strcmp(metrics[i].name, profile->run.metric) == 0)
            return &metrics[i];
    return NULL;
}

bool cleat_profile_metric_ascends(const cleat_profile *profile) {
    const metric *chosen = find_metric(profile);
    return chosen && chosen->ascends;
}

/* --- sentences ------------------------------------------------------------------------------------------------ */

/* "rna.ini:3: heads = 8", "--set model.heads=8" or "model.heads = 8 (default)". */
static void add_place(const cleat_profile *profile, const char *section, const char *name, cleat_text *text) {
    const cleat_key *key = cleat_key_find(section, name);
    const char *origin = cleat_profile_origin(profile, key);
    if (origin) {
        cleat_text_add(text, "%.400s", origin);
        return;
    }
    cleat_text_add(text, "%s.%s = ", section, name);
    cleat_value_print(key, profile, text);
    cleat_text_add(text, " (default)");
}

static cleat_status refuse(const cleat_profile *profile, cleat_error *error, const char *section, const char *name,
                           const char *format, ...) CLEAT_PRINTF(5, 6);

/* "PLACE: sentence". */
static cleat_status refuse(const cleat_profile *profile, cleat_error *error, const char *section, const char *name,
                           const char *format, ...) {
    char sentence[512];
    va_list arguments;
    cleat_text place = {0};
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    add_place(profile, section, name, &place);
    cleat_fail(error, CLEAT_ERR_PROFILE, "%s: %s", place.data ? place.data : name, sentence);
    cleat_text_free(&place);
    return CLEAT_ERR_PROFILE;
}

/* A key of the contradiction below. */
typedef struct named {
    const char *section, *name;
} named;

static cleat_status contradict(const cleat_profile *profile, cleat_error *error, named one, named other,
                               const char *format, ...) CLEAT_PRINTF(5, 6);

/* "PLACE contradicts PLACE: sentence". */
static cleat_status contradict(const cleat_profile *profile, cleat_error *error, named one, named other,
                               const char *format, ...) {
    char sentence[512];
    va_list arguments;
    cleat_text places = {0};
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    add_place(profile, one.section, one.name, &places);
    cleat_text_add(&places, "\n  contradicts ");
    add_place(profile, other.section, other.name, &places);
    cleat_fail(error, CLEAT_ERR_PROFILE, "%s\n  %s", places.data ? places.data : one.name, sentence);
    cleat_text_free(&places);
    return CLEAT_ERR_PROFILE;
}

/* --- sections ------------------------------------------------------------------------------------------------- */

static cleat_status check_model(const cleat_profile *p, cleat_error *error) {
    int64_t width = p->model.d_model, heads = p->model.heads;
    if (width % heads == 0) return CLEAT_OK;
    int64_t below = width - width % heads;
    return contradict(p, error, (named){"model", "d_model"}, (named){"model", "heads"},
                      "d_model must be a multiple of heads: for %lld heads e.g. %lld", (long long)heads,
                      (long long)(below ? below : heads));
}

static cleat_status check_data(const cleat_profile *p, cleat_error *error) {
    const cleat_int_list *buckets = &p->data.buckets;
    if (!*p->data.path)
        return refuse(p, error, "data", "path",
                      "say where the data are: a file or folder, here or with --set "
                      "data.path=...");
    if (buckets->count > 0 && buckets->values[buckets->count - 1] < p->data.max_length)
        return contradict(p, error, (named){"data", "buckets"}, (named){"data", "max_length"},
                          "the largest bucket must hold the longest sequence: add %lld, or lower max_length",
                          (long long)p->data.max_length);
    return CLEAT_OK;
}

static cleat_status check_loss(const cleat_profile *p, cleat_error *error) {
    const cleat_key *first = NULL;
    for (const cleat_key *key = cleat_keys; key->name; ++key) {
        double weight;
        if (strcmp(key->section, "loss") != 0) continue;
        if (!first) first = key;
        memcpy(&weight, (const char *)p + key->offset, sizeof weight);
        if (weight > 0) return CLEAT_OK;
    }
    return refuse(p, error, "loss", first->name, "all weights of [loss] are 0: there is nothing to learn");
}

/* Of the divisors of `whole`, the largest that is no larger than `most`. */
static int64_t divisor_below(int64_t whole, int64_t most) {
    int64_t best = 1;
    for (int64_t d = 1; d <= most && d <= whole; ++d)
        if (whole % d == 0) best = d;
    return best;
}

static cleat_status check_divides(const cleat_profile *p, cleat_error *error, const char *part_name, int64_t part,
                                  int64_t whole) {
    named one = {"train", part_name}, other = {"train", "effective_batch_size"};
    if (part == CLEAT_AUTO) return CLEAT_OK;
    if (part > whole) return contradict(p, error, one, other, "%s must be at most %lld", part_name, (long long)whole);
    if (whole % part == 0) return CLEAT_OK;
    return contradict(p, error, one, other, "%s must divide %lld: take e.g. %lld", part_name, (long long)whole,
                      (long long)divisor_below(whole, part));
}

static cleat_status check_batch(const cleat_profile *p, cleat_error *error) {
    int64_t batch = p->train.batch_size, accumulation = p->train.gradient_accumulation_steps;
    int64_t effective = cleat_profile_effective_batch(p);
    cleat_status status = check_divides(p, error, "batch_size", batch, effective);
    if (status == CLEAT_OK) status = check_divides(p, error, "gradient_accumulation_steps", accumulation, effective);
    if (status != CLEAT_OK || batch == CLEAT_AUTO || accumulation == CLEAT_AUTO) return status;
    if (batch * accumulation == effective) return CLEAT_OK;
    return contradict(p, error, (named){"train", "gradient_accumulation_steps"},
                      (named){"train", "effective_batch_size"},
                      "batch_size x gradient_accumulation_steps is %lld; make one of the three auto",
                      (long long)(batch * accumulation));
}

static cleat_status check_scaling(const cleat_profile *p, cleat_error *error) {
    if (p->train.lr_scaling == CLEAT_LR_SCALING_NONE || p->train.base_batch_size != CLEAT_NONE) return CLEAT_OK;
    return refuse(p, error, "train", "lr_scaling",
                  "scaling needs train.base_batch_size: the batch that learning_rate was chosen for");
}

static cleat_status check_rates(const cleat_profile *p, cleat_error *error) {
    named rate = {"train", "learning_rate"};
    /* With lr_scaling the peak is known only there (src/train/schedule.c), where it is checked again. */
    if (p->train.lr_scaling != CLEAT_LR_SCALING_NONE) return CLEAT_OK;
    if (p->train.warmup_start_lr > p->train.learning_rate)
        return contradict(p, error, (named){"train", "warmup_start_lr"}, rate, "a warm-up rises to learning_rate");
    if (p->train.min_learning_rate > p->train.learning_rate)
        return contradict(p, error, (named){"train", "min_learning_rate"}, rate, "the floor lies above the peak");
    return CLEAT_OK;
}

static cleat_status check_schedule(const cleat_profile *p, cleat_error *error) {
    named epochs = {"train", "epochs"};
    if (p->train.warmup_epochs > 0 && p->train.warmup_steps > 0)
        return contradict(p, error, (named){"train", "warmup_steps"}, (named){"train", "warmup_epochs"},
                          "give the warm-up in epochs or in steps, not both");
    if (p->train.warmup_epochs >= p->train.epochs)
        return contradict(p, error, (named){"train", "warmup_epochs"}, epochs,
                          "the warm-up must be shorter than the run");
    if (p->train.schedule == CLEAT_SCHEDULE_STEP && p->train.step_epochs == CLEAT_NONE)
        return refuse(p, error, "train", "schedule", "needs train.step_epochs: the epochs from one decay to the next");
    if (p->train.schedule != CLEAT_SCHEDULE_STEP && p->train.step_epochs != CLEAT_NONE)
        return contradict(p, error, (named){"train", "step_epochs"}, (named){"train", "schedule"},
                          "step_epochs is for schedule = step only");
    return check_rates(p, error);
}

static cleat_status check_precision(const cleat_profile *p, cleat_error *error) {
    if (p->train.precision == CLEAT_PRECISION_F16 || p->train.precision == CLEAT_PRECISION_BF16)
        return refuse(p, error, "train", "precision",
                      "this version trains in f32 only (its kernels read f16 and bf16, training does not use them): "
                      "take auto or f32");
    if (p->train.gradient_checkpointing == CLEAT_CHECKPOINTING_TRUE)
        return refuse(p, error, "train", "gradient_checkpointing",
                      "this version stores all activations and cannot recompute them: take auto or false, and a "
                      "smaller batch_size where memory is short");
    return CLEAT_OK;
}

static cleat_status check_run(const cleat_profile *p, cleat_error *error) {
    if (!find_metric(p)) {
        const char *names[sizeof metrics / sizeof *metrics];
        size_t count = 0;
        cleat_text all = {0};
        for (size_t i = 0; i < sizeof metrics / sizeof *metrics; ++i)
            if ((int)metrics[i].model == p->model.type) {
                cleat_text_add(&all, "%s%s", count ? ", " : "", metrics[i].name);
                names[count++] = metrics[i].name;
            }
        const char *near = cleat_nearest_name(p->run.metric, names, count);
        refuse(p, error, "run", "metric", "the model has no such metric%s%s%s; it has %s",
               near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", all.data ? all.data : "others");
        cleat_text_free(&all);
        return CLEAT_ERR_PROFILE;
    }
    if (p->run.early_stopping_patience != CLEAT_NONE && p->run.evaluate_every_epochs == CLEAT_NONE)
        return contradict(p, error, (named){"run", "early_stopping_patience"}, (named){"run", "evaluate_every_epochs"},
                          "early stopping needs evaluations");
    return CLEAT_OK;
}

cleat_status cleat_profile_check(const cleat_profile *profile, cleat_error *error) {
    typedef cleat_status (*check)(const cleat_profile *profile, cleat_error *error);
    static const check checks[] = {check_model,   check_data,     check_loss,      check_batch,
                                   check_scaling, check_schedule, check_precision, check_run};
    for (size_t i = 0; i < sizeof checks / sizeof *checks; ++i) {
        cleat_status status = checks[i](profile, error);
        if (status != CLEAT_OK) return status;
    }
    return CLEAT_OK;
}

int64_t cleat_profile_effective_batch(const cleat_profile *profile) {
    int64_t accumulation = profile->train.gradient_accumulation_steps;
    if (profile->train.effective_batch_size != CLEAT_AUTO) return profile->train.effective_batch_size;
    if (profile->train.batch_size == CLEAT_AUTO) return DEFAULT_EFFECTIVE_BATCH;
    return profile->train.batch_size * (accumulation == CLEAT_AUTO ? 1 : accumulation);
}
