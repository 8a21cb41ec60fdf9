/* Checks across values: contradictions, missing values, and requests that this version does not support.
 * The range of a single value is checked when it is set. */
#include "cleat/optimizer.h"
#include "models/param_rules.h"
#include "models/targets.h"
#include "profile/schema.h"

#include <string.h>

enum { DEFAULT_EFFECTIVE_BATCH = 8, DEFAULT_LOSS_SCALE = 65536, DEFAULT_GROWTH_INTERVAL = 2000 };
static const double DEFAULT_MOMENTUM = 0.9, DEFAULT_LION_BETA2 = 0.99;

/* --- metrics a model has -------------------------------------------------------------------------------------- */

static const cleat_metric_info loss = {"loss", false}; /* every model has it */

static const cleat_metric_info *find_metric(const cleat_profile *profile) {
    if (strcmp(profile->run.metric, loss.name) == 0) return &loss;
    for (const cleat_metric_info *metric = cleat_settings_metrics(profile->family, profile->data); metric->name;
         ++metric)
        if (strcmp(metric->name, profile->run.metric) == 0) return metric;
    return NULL;
}

bool cleat_profile_metric_ascends(const cleat_profile *profile) {
    const cleat_metric_info *chosen = find_metric(profile);
    return chosen && chosen->ascends;
}

static cleat_status refuse_metric(const cleat_profile *p, const cleat_record *record, cleat_error *error) {
    const char *names[CLEAT_MAX_METRICS] = {loss.name};
    size_t count = 1;
    cleat_string all = {0};
    cleat_string_add(&all, "%s", loss.name);
    for (const cleat_metric_info *metric = cleat_settings_metrics(p->family, p->data); metric->name; ++metric) {
        cleat_string_add(&all, ", %s", metric->name);
        if (count < CLEAT_MAX_METRICS) names[count++] = metric->name;
    }
    const char *near = cleat_nearest_name(p->run.metric, names, count);
    cleat_record_refuse(record, error, "run.metric", "the model has no such metric%s%s%s; its metrics are %s",
                        near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "",
                        all.data ? all.data : "others");
    cleat_string_free(&all);
    return CLEAT_ERR_PROFILE;
}

/* --- sections ------------------------------------------------------------------------------------------------- */

/* Rejects a setting that has no meaning for this model, because its user expects an effect; not its default. */
static cleat_status check_meaning(const cleat_profile *p, const cleat_record *record, cleat_error *error) {
    const cleat_profile_keys *keys = p->keys;
    for (size_t i = 0; keys->all.keys[i].name; ++i) {
        const cleat_key *key = &keys->all.keys[i];
        if (keys->given[i].place && strcmp(keys->given[i].value, key->initial) != 0 &&
            !cleat_schema_find(record->schema, key->section, key->name))
            return cleat_fail(error, CLEAT_ERR_PROFILE,
                              "%.400s: does not apply to model.type %s: remove it, or add --set %s.%s=%s (%s)",
                              keys->given[i].place, p->family->name, key->section, key->name, key->initial, key->help);
    }
    return CLEAT_OK;
}

static cleat_status check_data(const cleat_profile *p, const cleat_record *record, cleat_error *error) {
    if (!*p->data->path)
        return cleat_record_refuse(record, error, "data.path",
                                   "set the location of the data: a file or folder, here or with --set data.path=...");
    if (p->data->min_length > p->data->max_length)
        return cleat_record_contradict(record, error, "data.min_length", "data.max_length",
                                       "min_length must not be above max_length");
    return CLEAT_OK;
}

static cleat_status check_family(const cleat_profile *p, const cleat_record *record, cleat_error *error) {
    return p->family->check ? p->family->check(p->data, record, error) : CLEAT_OK;
}

static cleat_status check_at_most(const cleat_record *record, cleat_error *error, const char *part_name, int64_t part,
                                  int64_t whole) {
    if (part == CLEAT_AUTO || part <= whole) return CLEAT_OK;
    return cleat_record_contradict(record, error, part_name, "train.effective_batch_size", "%s must be at most %lld",
                                   part_name, (long long)whole);
}

/* batch_size need not divide the global batch, which is split into even micro-batches. */
static cleat_status check_batch(const cleat_profile *p, const cleat_record *record, cleat_error *error) {
    int64_t batch = p->train.batch_size, accumulation = p->train.gradient_accumulation_steps;
    int64_t effective = cleat_profile_effective_batch(p);
    if (effective > MAX_SAMPLES)
        return cleat_record_contradict(record, error, "train.batch_size", "train.gradient_accumulation_steps",
                                       "together %lld samples per step; the maximum is %d", (long long)effective,
                                       (int)MAX_SAMPLES);
    cleat_status status = check_at_most(record, error, "train.batch_size", batch, effective);
    if (!status) status = check_at_most(record, error, "train.gradient_accumulation_steps", accumulation, effective);
    if (status || batch == CLEAT_AUTO || accumulation == CLEAT_AUTO) return status;
    if ((effective + batch - 1) / batch == accumulation) return CLEAT_OK;
    return cleat_record_contradict(record, error, "train.gradient_accumulation_steps", "train.effective_batch_size",
                                   "%lld samples in micro-batches of %lld make %lld; set one of the three to auto",
                                   (long long)effective, (long long)batch,
                                   (long long)((effective + batch - 1) / batch));
}

static cleat_status check_bucket_batches(const cleat_profile *p, const cleat_record *record, cleat_error *error) {
    const cleat_int_list *batches = &p->train.bucket_batch_sizes, *buckets = &p->data->buckets;
    if (p->family->fixed_length || batches->count == CLEAT_AUTO || batches->count == buckets->count) return CLEAT_OK;
    return cleat_record_contradict(record, error, "train.bucket_batch_sizes", "data.buckets",
                                   "set one micro-batch size for each bucket");
}

static cleat_status check_scaling(const cleat_profile *p, const cleat_record *record, cleat_error *error) {
    if (p->train.lr_scaling == CLEAT_LR_SCALING_NONE || p->train.base_batch_size != CLEAT_NONE) return CLEAT_OK;
    return cleat_record_refuse(
        record, error, "train.lr_scaling",
        "scaling requires train.base_batch_size: the global batch size that learning_rate was chosen for");
}

static cleat_status check_rates(const cleat_profile *p, const cleat_record *record, cleat_error *error) {
    /* With lr_scaling the peak is known only in src/run/train/schedule.c, which checks this again. */
    if (p->train.lr_scaling != CLEAT_LR_SCALING_NONE) return CLEAT_OK;
    if (p->train.warmup_start_lr > p->train.learning_rate)
        return cleat_record_contradict(record, error, "train.warmup_start_lr", "train.learning_rate",
                                       "the warm-up must increase to learning_rate");
    if (p->train.min_learning_rate > p->train.learning_rate)
        return cleat_record_contradict(record, error, "train.min_learning_rate", "train.learning_rate",
                                       "the minimum is above the peak");
    return CLEAT_OK;
}

static cleat_status check_schedule(const cleat_profile *p, const cleat_record *record, cleat_error *error) {
    const char *other = p->train.warmup_steps > 0 ? "train.warmup_steps" : "train.warmup_epochs";
    if (p->train.warmup_epochs > 0 && p->train.warmup_steps > 0)
        return cleat_record_contradict(record, error, "train.warmup_steps", "train.warmup_epochs",
                                       "set the warm-up in epochs or in steps, not both");
    if (p->train.warmup_ratio > 0 && (p->train.warmup_steps > 0 || p->train.warmup_epochs > 0))
        return cleat_record_contradict(record, error, "train.warmup_ratio", other,
                                       "set the warm-up one way only: if the profile sets the other, add %s=0", other);
    if (p->train.schedule == CLEAT_SCHEDULE_STEP && p->train.step_epochs == CLEAT_NONE)
        return cleat_record_refuse(record, error, "train.schedule",
                                   "requires train.step_epochs: the epochs between decays");
    if (p->train.schedule != CLEAT_SCHEDULE_STEP && p->train.step_epochs != CLEAT_NONE)
        return cleat_record_contradict(record, error, "train.step_epochs", "train.schedule",
                                       "step_epochs applies only to schedule = step");
    return check_rates(p, record, error);
}

/* With precision = auto, the device decides whether there is a loss scale. A default value does not
 * request one: resolved.ini contains it in every precision. */
cleat_status cleat_profile_check_training(const cleat_profile *p, cleat_error *error) {
    const cleat_record record = cleat_profile_record(p);
    const bool none = p->train.precision != CLEAT_PRECISION_AUTO && p->train.precision != CLEAT_PRECISION_F16;
    if (none && cleat_profile_loss_scale(p) != DEFAULT_LOSS_SCALE)
        return cleat_record_contradict(
            &record, error, "train.loss_scale", "train.precision",
            "only f16 has a loss scale: f32, tf32 and bf16 represent every gradient without it; "
            "--set train.loss_scale=auto resets it");
    if (none && p->train.loss_scale_growth_interval != DEFAULT_GROWTH_INTERVAL)
        return cleat_record_contradict(
            &record, error, "train.loss_scale_growth_interval", "train.precision",
            "only f16 has a loss scale that grows: --set train.loss_scale_growth_interval=%d resets it",
            (int)DEFAULT_GROWTH_INTERVAL);
    return CLEAT_OK;
}

/* Defaults request nothing: resolved.ini contains them for every optimizer. */
static cleat_status check_optimizer(const cleat_profile *p, const cleat_record *record, cleat_error *error) {
    const bool sgd = p->train.optimizer == CLEAT_OPTIMIZER_SGD, lion = p->train.optimizer == CLEAT_OPTIMIZER_LION;
    const char *foreign = !lion && p->train.lion_beta2 != DEFAULT_LION_BETA2 ? "train.lion_beta2"
                          : !sgd && p->train.nesterov                        ? "train.nesterov"
                          : !sgd && p->train.momentum != DEFAULT_MOMENTUM    ? "train.momentum"
                                                                             : NULL;
    if (foreign)
        return cleat_record_contradict(record, error, foreign, "train.optimizer",
                                       "another optimizer has it: leave it out, or set train.optimizer=%s",
                                       strcmp(foreign, "train.lion_beta2") == 0 ? "lion" : "sgd");
    if (!p->train.nesterov || p->train.momentum > 0) return CLEAT_OK;
    return cleat_record_contradict(record, error, "train.nesterov", "train.momentum",
                                   "Nesterov's momentum must be above 0");
}

static cleat_status check_loss_scale(const cleat_profile *p, const cleat_record *record, cleat_error *error) {
    const int64_t loss_scale = p->train.loss_scale;
    if (loss_scale != CLEAT_AUTO && (loss_scale & (loss_scale - 1)) != 0)
        return cleat_record_refuse(record, error, "train.loss_scale",
                                   "must be a power of two, so that scaling is exact, e.g. 65536");
    return CLEAT_OK;
}

static cleat_status check_finetune(const cleat_profile *p, const cleat_record *record, cleat_error *error) {
    const cleat_param_options *params = &p->train.params;
    if (cleat_frozen_depths(params->freeze) < 0)
        return cleat_record_refuse(record, error, "train.freeze",
                                   "choose none, embeddings, backbone (all but the head), or a number of blocks, which "
                                   "freezes the embeddings and the first blocks");
    if (params->lora_rank != CLEAT_NONE && strcmp(params->freeze, "none") != 0)
        return cleat_record_contradict(record, error, "train.freeze", "train.lora_rank",
                                       "with adapters the whole backbone is frozen: set freeze = none");
    if (!cleat_frozen_forms_valid(params->frozen_weights))
        return cleat_record_refuse(record, error, "train.frozen_weights",
                                   "choose auto, float, f16, q8, q4 or nf4, and then NAME=FORM for matrices with "
                                   "another form, e.g. q4 emb=q8 blocks.*.att.kv=float");
    if (strcmp(params->frozen_weights, "auto") != 0 && strcmp(params->frozen_weights, "float") != 0 &&
        params->lora_rank == CLEAT_NONE && cleat_frozen_depths(params->freeze) == 0)
        return cleat_record_contradict(record, error, "train.frozen_weights", "train.freeze",
                                       "no weight is frozen: set lora_rank or freeze, or frozen_weights = float");
    return CLEAT_OK;
}

static cleat_status check_run(const cleat_profile *p, const cleat_record *record, cleat_error *error) {
    if (!find_metric(p)) return refuse_metric(p, record, error);
    if (p->run.early_stopping_patience != CLEAT_NONE && p->run.evaluate_every_epochs == CLEAT_NONE)
        return cleat_record_contradict(record, error, "run.early_stopping_patience", "run.evaluate_every_epochs",
                                       "early stopping requires evaluations");
    return CLEAT_OK;
}

cleat_status cleat_profile_check(const cleat_profile *profile, cleat_error *error) {
    typedef cleat_status (*check)(const cleat_profile *profile, const cleat_record *record, cleat_error *error);
    static const check checks[] = {check_meaning,        check_data,      check_family,   check_batch,
                                   check_bucket_batches, check_scaling,   check_schedule, check_loss_scale,
                                   check_finetune,       check_optimizer, check_run};
    cleat_record record = cleat_profile_record(profile);
    for (size_t i = 0; i < sizeof checks / sizeof *checks; ++i) {
        cleat_status status = checks[i](profile, &record, error);
        if (status) return status;
    }
    return CLEAT_OK;
}

int64_t cleat_profile_effective_batch(const cleat_profile *profile) {
    int64_t accumulation = profile->train.gradient_accumulation_steps;
    if (profile->train.effective_batch_size != CLEAT_AUTO) return profile->train.effective_batch_size;
    if (profile->train.batch_size == CLEAT_AUTO) return DEFAULT_EFFECTIVE_BATCH;
    return profile->train.batch_size * (accumulation == CLEAT_AUTO ? 1 : accumulation);
}

int64_t cleat_profile_loss_scale(const cleat_profile *profile) {
    return profile->train.loss_scale == CLEAT_AUTO ? DEFAULT_LOSS_SCALE : profile->train.loss_scale;
}

void cleat_profile_shorten(cleat_profile *profile, int64_t length) {
    cleat_int_list *buckets = &profile->data->buckets;
    profile->data->max_length = length;
    if (buckets->count <= 0 || buckets->values[buckets->count - 1] <= length) return;
    while (buckets->count > 1 && buckets->values[buckets->count - 2] >= length) --buckets->count;
    buckets->values[buckets->count - 1] = length;
    profile->train.bucket_batch_sizes.count = CLEAT_AUTO; /* these sizes were for other lengths */
}
