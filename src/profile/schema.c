/* The schema table: every section and key of a profile. */
#include "profile/schema.h"

#define RECORD cleat_profile
#include "ini/rows.h"

static const char *const model_types[] = {
    "rna_transformer", "text_classifier", "text_tagger",    "series_lstm", "series_transformer",
    "series_dense",    "image_resnet",    "mask_segformer", "emberformer", NULL};
static const char *const rna_heads[] = {"frames", "absolute", NULL};
static const char *const position_kinds[] = {"start", "both_ends", NULL};
static const char *const lr_scalings[] = {"none", "linear", "sqrt", NULL};
static const char *const schedules[] = {"constant", "cosine", "step", NULL};
static const char *const precisions[] = {"auto", "f32", "f16", "bf16", NULL};
static const char *const checkpointings[] = {"auto", "false", "true", NULL};
static const char *const budget_policies[] = {"fit", "stop", NULL};
static const char *const self_checks[] = {"once", "always", "never", NULL};
static const char *const poolings[] = {"mean", "first", NULL};
static const char *const empty_texts[] = {"error", "skip", "keep", NULL};
static const char *const encodings[] = {"error", "replace", NULL};
static const char *const tag_policies[] = {"error", "repair", NULL};
static const char *const weightings[] = {"none", "balanced", NULL};
static const char *const gap_policies[] = {"error", "fill", "skip", "rows", NULL};
static const char *const anchors[] = {"none", "last", "season", NULL};
static const char *const depths[] = {"18", "34", NULL};
static const char *const stems[] = {"large", "small", NULL};
static const char *const backbones[] = {"b0", "b1", "b2", NULL};
static const char *const transforms[] = {"none", "log1p", NULL};
static const char *const day_policies[] = {"error", "skip", NULL};
static const char *const cell_policies[] = {"error", "fill", "skip", NULL};

/* The models a key has a meaning for. */
#define RNA (1u << CLEAT_MODEL_RNA_TRANSFORMER)
#define CLASSIFIER (1u << CLEAT_MODEL_TEXT_CLASSIFIER)
#define TAGGER (1u << CLEAT_MODEL_TEXT_TAGGER)
#define TEXT (CLASSIFIER | TAGGER)
#define LSTM (1u << CLEAT_MODEL_SERIES_LSTM)
#define SERIES_TRANSFORMER (1u << CLEAT_MODEL_SERIES_TRANSFORMER)
#define DENSE (1u << CLEAT_MODEL_SERIES_DENSE)
#define SERIES (LSTM | SERIES_TRANSFORMER | DENSE)
#define RESNET (1u << CLEAT_MODEL_IMAGE_RESNET)
#define SEGFORMER (1u << CLEAT_MODEL_MASK_SEGFORMER)
#define EMBERFORMER (1u << CLEAT_MODEL_EMBERFORMER)
#define IMAGES (RESNET | SEGFORMER)
#define MASKS (SEGFORMER | EMBERFORMER)
#define TRANSFORMERS (RNA | TEXT | SERIES_TRANSFORMER | EMBERFORMER)
#define ONLY(MODELS) .kinds = (MODELS)

const cleat_section cleat_sections[] = {
    {"model", "what is trained"},
    {"data", "what it is trained on"},
    {"loss", "what is made small"},
    {"train", "how it is trained"},
    {"loader", "how batches are prepared"},
    {"run", "where it runs, what it writes, when it stops"},
    {NULL, NULL},
};

#define OR_AUTO .word = "auto", .word_value = CLEAT_AUTO
#define OR_NONE .word = "none", .word_value = CLEAT_NONE
#define COMPUTES .computes = true
#define SHAPES .computes = true, .shapes = true

/* Weights of the loss terms differ in nothing but name and default. */
#define WEIGHT(NAME, INITIAL, HELP)                                                                                    \
    { AT(loss, NAME), FLOAT(0, 1e6, INITIAL), COMPUTES, ONLY(RNA), .help = HELP }

enum { DAY = 24 * 60 * 60 };

const cleat_key cleat_keys[] = {
    {AT(model, type), CHOICE(model_types, "rna_transformer"), SHAPES, .help = "Kind of model."},
    {AT(model, d_model), INT(8, 16384, "256"), SHAPES, ONLY(TRANSFORMERS), .help = "Width: features of a position."},
    {AT(model, heads), INT(1, 256, "8"), SHAPES, ONLY(TRANSFORMERS),
     .help = "Attention heads; d_model is a multiple of it."},
    {AT(model, layers), INT(1, 256, "5"), SHAPES, ONLY(TRANSFORMERS | LSTM | DENSE),
     .help = "Transformer blocks, LSTM layers, or hidden dense layers."},
    {AT(model, d_ff), INT(8, 65536, "1024"), SHAPES, ONLY(TRANSFORMERS), .help = "Width of the feed-forward layers."},
    {AT(model, hidden), INT(1, 16384, "128"), SHAPES, ONLY(LSTM | DENSE), .help = "Width of a layer."},
    {AT(model, dropout), FLOAT(0, 0.95, "0.1"), COMPUTES, .help = "Part of the activations dropped in training."},
    {AT(model, head), CHOICE(rna_heads, "frames"), SHAPES, ONLY(RNA),
     .help = "Output: steps and turns from residue to residue, or coordinates as they are."},
    {AT(model, positions), CHOICE(position_kinds, "both_ends"), SHAPES, ONLY(RNA),
     .help = "Sinusoidal positions counted from the first residue, or half of the columns from the last."},
    {AT(model, pooling), CHOICE(poolings, "mean"), SHAPES, ONLY(CLASSIFIER),
     .help = "What of a text its class is told from: the mean of its tokens, or the first one."},
    {AT(model, depth), CHOICE(depths, "18"), SHAPES, ONLY(RESNET),
     .help = "Layers of the residual network: 2, 2, 2, 2 or 3, 4, 6, 3 blocks of two."},
    {AT(model, width), INT(4, 1024, "64"), SHAPES, ONLY(RESNET),
     .help = "Channels of its first stage; each of the three others has twice those of the one before."},
    {AT(model, stem), CHOICE(stems, "large"), SHAPES, ONLY(RESNET),
     .help = "What comes first: 7 x 7 with stride 2 and pooling, or 3 x 3 for small images."},
    {AT(model, backbone), CHOICE(backbones, "b0"), SHAPES, ONLY(MASKS),
     .help = "Size of the SegFormer: 3.7, 14 or 27 million parameters."},
    {AT(model, stem_stride), INT(1, 4, "4"), SHAPES, ONLY(MASKS),
     .help =
         "Pixels from one patch of its first stage to the next: 4 as published; 1 or 2 see smaller things, and cost "
         "16 and 4 times as much."},
    {AT(model, features), INT(1, 256, "3"), SHAPES, ONLY(EMBERFORMER),
     .help = "Numbers a pixel that the temporal part hands to the SegFormer."},
    {AT(model, threshold), FLOAT(0, 1, "0.5"), ONLY(MASKS), .help = "A pixel is in the mask from this probability on."},

    {AT(data, path), STRING(data.path, 0, ""),
     .help = "File or folder of the data; relative to the current directory."},
    {AT(data, max_length), INT(1, 65536, "1200"), COMPUTES, ONLY(RNA | TEXT),
     .help = "Of a longer sequence training takes a random stretch (RNA), evaluation the first so many; of a longer "
             "text both take the first so many tokens."},
    {AT(data, val_fraction), FLOAT(0, 0.9, "0.1"), COMPUTES,
     .help = "Part held out for validation where the data name no split; of a series the part before the test part."},
    {AT(data, test_fraction), FLOAT(0, 0.9, "0"), COMPUTES, ONLY(TEXT | SERIES | IMAGES | EMBERFORMER),
     .help = "Part held out for a test where the data name no split; of a series its end."},
    {AT(data, buckets), LIST(1, 65536, "auto"), OR_AUTO, COMPUTES, ONLY(RNA | TEXT),
     .help = "Lengths that sequences are padded to."},
    {AT(data, limit), INT(1, 1e9, "none"), OR_NONE, COMPUTES, .help = "Train on the first so many samples only."},
    {AT(data, generated), INT(1, 99999, "none"), OR_NONE, COMPUTES, ONLY(RNA),
     .help = "Training: so many generated hairpins and duplexes are added to the data."},
    {AT(data, mutation), FLOAT(0, 1, "0"), COMPUTES, ONLY(RNA),
     .help = "Training: part of the chains whose letters are varied; pairs stay pairs."},
    {AT(data, min_length), INT(1, 65536, "none"), OR_NONE, ONLY(RNA | TEXT),
     .help = "Where not even one sample fits the device, max_length may be lowered to this."},
    {AT(data, crop), FLOAT(0, 1, "0"), COMPUTES, ONLY(RNA),
     .help = "Training: part of the chains cut to a random stretch."},

    {AT(data, train_file), STRING(data.train_file, 0, ""), COMPUTES, ONLY(TEXT),
     .help = "File of data.path to train on; empty: the one whose name says train."},
    {AT(data, val_file), STRING(data.val_file, 0, ""), COMPUTES, ONLY(TEXT),
     .help = "File to validate on; empty: the one whose name says val or dev, or part of the training file."},
    {AT(data, test_file), STRING(data.test_file, 0, ""), COMPUTES, ONLY(TEXT),
     .help = "File to test on; empty: the one whose name says test, if any."},
    {AT(data, text_column), STRING(data.text_column, 1, "text"), COMPUTES, ONLY(CLASSIFIER),
     .help = "Column of the texts."},
    {AT(data, label_column), STRING(data.label_column, 1, "label"), COMPUTES, ONLY(CLASSIFIER),
     .help = "Column of the classes."},
    {AT(data, id_column), STRING(data.id_column, 0, ""), ONLY(CLASSIFIER),
     .help = "Column that names a row in predictions; empty: its number."},
    {AT(data, labels), STRING(data.labels, 0, ""), COMPUTES, ONLY(TEXT | RESNET),
     .help = "Classes, or kinds of entities, in order, separated by blanks; empty: those of the training part."},
    {AT(data, vocabulary), STRING(data.vocabulary, 0, ""), COMPUTES, ONLY(TEXT),
     .help = "A vocab.txt as BERT has it; empty: learnt from the training texts."},
    {AT(data, vocabulary_size), INT(64, 1e6, "8000"), COMPUTES, ONLY(TEXT), .help = "Pieces of a learnt vocabulary."},
    {AT(data, lowercase), BOOL("true"), SHAPES, ONLY(TEXT), .help = "Letters lose their case and their accents."},
    {AT(data, word_dropout), FLOAT(0, 0.9, "0"), COMPUTES, ONLY(TEXT),
     .help = "Training: part of the tokens that become unknown, so that the others must tell."},
    {AT(data, empty_texts), CHOICE(empty_texts, "error"), COMPUTES, ONLY(CLASSIFIER),
     .help = "A row without a text is an error, left out, or a sample of its own."},
    {AT(data, invalid_utf8), CHOICE(encodings, "error"), COMPUTES, ONLY(TEXT),
     .help = "Bytes that are no UTF-8 are an error, or left out."},
    {AT(data, bad_tags), CHOICE(tag_policies, "error"), COMPUTES, ONLY(TAGGER),
     .help = "An entity that begins with I- is an error, or taken as B-."},
    {AT(data, cache), BOOL("true"), ONLY(TEXT), .help = "Keep encoded texts in the cache folder."},

    {AT(data, time_column), STRING(data.time_column, 0, ""), COMPUTES, ONLY(SERIES),
     .help = "Column of the times; empty: the first one."},
    {AT(data, features), STRING(data.features, 0, ""), COMPUTES, ONLY(SERIES),
     .help = "Columns the model sees, separated by commas; empty: all but the time."},
    {AT(data, targets), STRING(data.targets, 0, ""), COMPUTES, ONLY(SERIES),
     .help = "Columns it forecasts, separated by commas; empty: the features."},
    {AT(data, frames), LIST(1, 525600, "none"), OR_NONE, COMPUTES, ONLY(SERIES),
     .help = "Further time frames, in minutes, that the file is averaged to, seen beside its own."},
    {AT(data, lookback), INT(1, 65536, "96"), SHAPES, ONLY(SERIES), .help = "Steps of each frame that the model sees."},
    {AT(data, horizon), INT(1, 65536, "24"), SHAPES, ONLY(SERIES), .help = "Steps it forecasts."},
    {AT(data, stride), INT(1, 65536, "1"), COMPUTES, ONLY(SERIES),
     .help = "Steps from one training window to the next."},
    {AT(data, eval_stride), INT(1, 65536, "1"), COMPUTES, ONLY(SERIES),
     .help = "Steps from one validation or test window to the next."},
    {AT(data, anchor), CHOICE(anchors, "none"), SHAPES, ONLY(SERIES),
     .help = "Look-back and forecast as differences from the last known values, the forecast also from those a season "
             "earlier."},
    {AT(data, season), INT(1, 65536, "none"), OR_NONE, SHAPES, ONLY(SERIES),
     .help = "Steps of a season, for anchor = season and the forecast of its last value."},
    {AT(data, train_rows), INT(1, 1e9, "none"), OR_NONE, COMPUTES, ONLY(SERIES),
     .help = "First rows, to train on; none: by val_fraction and test_fraction."},
    {AT(data, val_rows), INT(1, 1e9, "none"), OR_NONE, COMPUTES, ONLY(SERIES),
     .help = "Rows after them, to validate on."},
    {AT(data, test_rows), INT(1, 1e9, "none"), OR_NONE, COMPUTES, ONLY(SERIES),
     .help = "Rows after those, to test on."},
    {AT(data, gaps), CHOICE(gap_policies, "error"), COMPUTES, ONLY(SERIES),
     .help = "Steps missing in the file are an error, filled with the last values, left out, or none: rows follow each "
             "other."},
    {AT(data, missing), CHOICE(cell_policies, "error"), COMPUTES, ONLY(SERIES),
     .help = "Empty cells are an error, the last value, or left out with the windows that touch them."},

    {AT(data, image_size), INT(8, 8192, "224"), COMPUTES, ONLY(IMAGES | EMBERFORMER),
     .help = "Pixels of a side: images are scaled to it; maps keep their own, and only plans without data use it."},
    {AT(data, channels), INT(1, 3, "auto"), OR_AUTO, COMPUTES, ONLY(IMAGES),
     .help = "1: grey, 3: colour; auto: colour where any training image is."},
    {AT(data, crop_scale), FLOAT(0.05, 1, "1"), COMPUTES, ONLY(IMAGES),
     .help = "Training: a random part of each image, of at least so much of its area."},
    {AT(data, shift), INT(0, 512, "0"), COMPUTES, ONLY(IMAGES),
     .help = "Training: moved by up to so many pixels both ways."},
    {AT(data, flip), BOOL("false"), COMPUTES, ONLY(IMAGES | EMBERFORMER),
     .help = "Training: left and right exchanged at random."},
    {AT(data, flip_vertical), BOOL("false"), COMPUTES, ONLY(IMAGES | EMBERFORMER),
     .help = "Training: top and bottom exchanged at random."},
    {AT(data, turn), BOOL("false"), COMPUTES, ONLY(IMAGES), .help = "Training: turned by quarters at random."},
    {AT(data, brightness), FLOAT(0, 1, "0"), COMPUTES, ONLY(IMAGES),
     .help = "Training: colours times a random factor from 1 - x to 1 + x."},
    {AT(data, contrast), FLOAT(0, 1, "0"), COMPUTES, ONLY(IMAGES), .help = "Training: the same of the contrast."},
    {AT(data, saturation), FLOAT(0, 1, "0"), COMPUTES, ONLY(IMAGES), .help = "Training: the same of the saturation."},
    {AT(data, cache_mb), INT(0, 1e7, "256"), ONLY(IMAGES), .help = "MiB of decoded images kept in memory at most."},
    {AT(data, inputs), STRING(data.inputs, 0, ""), COMPUTES, ONLY(EMBERFORMER),
     .help = "Grids that are seen, by what stands before _YYYYMMDD in their names, separated by blanks; empty: all."},
    {AT(data, target), STRING(data.target, 0, ""), COMPUTES, ONLY(EMBERFORMER),
     .help = "The grid that is forecast: where it is above 0; empty: the first input."},
    {AT(data, history), INT(1, 4096, "6"), SHAPES, ONLY(EMBERFORMER), .help = "Frames that are seen at most."},
    {AT(data, ahead), INT(1, 4096, "1"), SHAPES, ONLY(EMBERFORMER),
     .help = "Days from the last frame seen to the forecast."},
    {AT(data, patch), INT(1, 64, "4"), SHAPES, ONLY(EMBERFORMER),
     .help = "Pixels of a patch's side: each patch is a sequence over time."},
    {AT(data, transform), CHOICE(transforms, "none"), COMPUTES, ONLY(EMBERFORMER),
     .help = "log1p: inputs as sign(x) log(1 + |x|), for counts."},
    {AT(data, missing_days), CHOICE(day_policies, "error"), COMPUTES, ONLY(EMBERFORMER),
     .help = "A day without its files is an error, or a frame less."},
    {AT(data, val_days), INT(1, 1e6, "none"), OR_NONE, COMPUTES, ONLY(EMBERFORMER),
     .help = "Days to validate on, before those of the test; none: by val_fraction."},
    {AT(data, test_days), INT(1, 1e6, "none"), OR_NONE, COMPUTES, ONLY(EMBERFORMER),
     .help = "Last days, to test on; none: by test_fraction."},

    WEIGHT(pair_distance, "1", "Distances of all pairs of residues."),
    WEIGHT(lddt, "1", "Local distance difference: smooth form of the metric lddt."),
    WEIGHT(frame, "0.4", "Where each residue's frame sees the others; tells mirror images apart."),
    WEIGHT(handedness, "1", "Mirror images: signed volumes of neighbouring residues."),
    WEIGHT(bond_length, "1", "Distance of neighbouring C1' atoms."),
    WEIGHT(bond_angle, "1", "Angle of three neighbouring C1' atoms."),
    WEIGHT(clash, "1", "Residues closer than atoms allow."),
    WEIGHT(base_pair, "1", "C1' distance of Watson-Crick pairs."),
    WEIGHT(coordinate, "0", "Squared error of coordinates as they stand (head = absolute)."),
    {AT(loss, label_smoothing), FLOAT(0, 0.9, "0"), COMPUTES, ONLY(TEXT | RESNET),
     .help = "Part of the truth that is shared among all classes."},
    {AT(loss, class_weights), CHOICE(weightings, "none"), COMPUTES, ONLY(TEXT | RESNET),
     .help = "balanced: a class weighs the more the rarer it is."},
    {AT(loss, positive_weight), FLOAT(1e-3, 1e6, "auto"), OR_AUTO, COMPUTES, ONLY(MASKS),
     .help = "Factor on the cross entropy of pixels of the mask; auto: the root of how many times rarer they are."},
    {AT(loss, focal_gamma), FLOAT(0, 10, "0"), COMPUTES, ONLY(MASKS),
     .help = "Focal loss: cross entropy times (1 - probability of the truth)^gamma; 0: plain."},
    {AT(loss, dice), FLOAT(0, 1e3, "1"), COMPUTES, ONLY(MASKS), .help = "Weight of the Dice loss beside it."},

    {AT(train, epochs), INT(1, 1e6, "40"), COMPUTES, .help = "Passes over the data."},
    {AT(train, batch_size), INT(1, MAX_SAMPLES, "auto"), OR_AUTO,
     .help = "Samples a micro-batch at most; auto: for each bucket as many as fit the device."},
    {AT(train, effective_batch_size), INT(1, MAX_SAMPLES, "auto"), OR_AUTO, COMPUTES,
     .help = "Samples an optimizer step; auto: batch_size x gradient_accumulation_steps, or 8."},
    {AT(train, gradient_accumulation_steps), INT(1, MAX_SAMPLES, "auto"), OR_AUTO,
     .help = "Micro-batches an optimizer step; auto: as few as batch_size allows."},
    {AT(train, bucket_batch_sizes), LIST(1, MAX_SAMPLES, "auto"), OR_AUTO, ONLY(RNA | TEXT), .unordered = true,
     .help = "Samples a micro-batch, one number for each of data.buckets; auto: as batch_size says."},
    {AT(train, learning_rate), FLOAT(1e-12, 10, "5e-4"), COMPUTES,
     .help = "Peak learning rate, for base_batch_size samples a step where lr_scaling is on."},
    {AT(train, base_batch_size), INT(1, MAX_SAMPLES, "none"), OR_NONE, COMPUTES,
     .help = "The batch learning_rate was chosen for."},
    {AT(train, lr_scaling), CHOICE(lr_scalings, "none"), COMPUTES,
     .help = "Factor on learning_rate: 1, r or sqrt(r), r = effective_batch_size / base_batch_size."},
    {AT(train, warmup_epochs), INT(0, 1e6, "0"), COMPUTES, .help = "Epochs of linear warm-up."},
    {AT(train, warmup_steps), INT(0, 1e9, "0"), COMPUTES, .help = "Or optimizer steps of it."},
    {AT(train, warmup_start_lr), FLOAT(0, 10, "0"), COMPUTES, .help = "Learning rate at the first step of it."},
    {AT(train, schedule), CHOICE(schedules, "constant"), COMPUTES, .help = "Learning rate after the warm-up."},
    {AT(train, step_epochs), INT(1, 1e6, "none"), OR_NONE, COMPUTES,
     .help = "schedule = step: epochs from one decay to the next."},
    {AT(train, step_gamma), FLOAT(1e-6, 1, "0.1"), COMPUTES, .help = "schedule = step: the factor of a decay."},
    {AT(train, min_learning_rate), FLOAT(0, 10, "0"), COMPUTES, .help = "Schedules do not fall below it."},
    {AT(train, precision), CHOICE(precisions, "auto"),
     .help =
         "Storage of activations and of the weights they meet (sums are f32). auto: f16 on cards that multiply halves "
         "faster, else f32."},
    {AT(train, loss_scale), INT(1, 1099511627776.0, "auto"), OR_AUTO,
     .help = "f16: factor on the loss at the start, a power of two; halved after a step that overflows. auto: 65536."},
    {AT(train, loss_scale_growth_interval), INT(1, 1e9, "2000"),
     .help = "f16: after so many steps without an overflow the loss scale is doubled."},
    {AT(train, gradient_checkpointing), CHOICE(checkpointings, "auto"),
     .help = "Recompute activations in backward; auto: where that buys larger micro-batches that are worth it."},
    {AT(train, max_grad_norm), FLOAT(1e-6, 1e9, "1"), OR_NONE, COMPUTES,
     .help = "Gradients with a larger global norm are scaled down to it."},
    {AT(train, weight_decay), FLOAT(0, 1, "0.01"), COMPUTES, .help = "AdamW: decoupled weight decay."},
    {AT(train, beta1), FLOAT(0, 0.999999, "0.9"), COMPUTES, .help = "AdamW: decay of the first moment."},
    {AT(train, beta2), FLOAT(0, 0.999999, "0.999"), COMPUTES, .help = "AdamW: decay of the second moment."},
    {AT(train, eps), FLOAT(1e-16, 0.1, "1e-8"), COMPUTES, .help = "AdamW: added to the root of the second moment."},
    {AT(train, average_decay), FLOAT(1e-6, 0.9999, "none"), OR_NONE, COMPUTES,
     .help = "Evaluate and save the running average of the parameters over epochs, with this decay an epoch."},

    {AT(loader, num_workers), INT(0, 256, "auto"), OR_AUTO,
     .help = "Threads that prepare batches; 0: the training thread does. The order of samples is the same."},
    {AT(loader, pin_memory), BOOL("true"), .help = "Stage batches in pinned memory."},
    {AT(loader, prefetch_factor), INT(1, 64, "2"), .help = "Batches each worker prepares ahead."},
    {AT(loader, persistent_workers), BOOL("true"), .help = "Keep the threads from epoch to epoch."},

    {AT(run, device), STRING(run.device, 1, "auto"), .help = "auto, gpu, cpu, a number, or a part of its name."},
    {AT(run, seed), INT(0, 9007199254740992, "1"), COMPUTES, .help = "Of starting values, order, and dropout."},
    {AT(run, out), STRING(run.out, 1, "auto"), .help = "Folder of the run; auto: runs/MODEL-DATE-TIME."},
    {AT(run, max_memory_usage), FLOAT(0.05, 1, "0.9"), .help = "Part of the free device memory to plan with."},
    {AT(run, checkpoint_every_epochs), INT(1, 1e6, "1"), OR_NONE, .help = "Epochs between checkpoints."},
    {AT(run, checkpoint_every_minutes), INT(1, 1e6, "none"), OR_NONE, .help = "Minutes between checkpoints."},
    {AT(run, keep_checkpoints), INT(1, 1000, "3"), .help = "How many of the newest stay, besides the best."},
    {AT(run, evaluate_every_epochs), INT(1, 1e6, "1"), OR_NONE, .help = "Epochs between evaluations."},
    {AT(run, early_stopping_patience), INT(1, 1e6, "none"), OR_NONE,
     .help = "Stop after so many evaluations without a better metric."},
    {AT(run, metric), STRING(run.metric, 1, "loss"), COMPUTES, .help = "Decides which checkpoint is the best."},
    {AT(run, time_budget), DURATION(1, 3650.0 * DAY, "none"), OR_NONE,
     .help = "Stop in time, with a checkpoint, e.g. 30h or 1h30m; the time of all --resume together."},
    {AT(run, budget), CHOICE(budget_policies, "fit"),
     .help = "Where time_budget is too short: shorten the schedule to the epochs that fit, or only stop in time."},
    {AT(run, log_every_steps), INT(1, 1e6, "10"),
     .help = "Optimizer steps whose figures are read from the device at once, 64 at most; each step has its line in "
             "the log."},
    {AT(run, check_finite), BOOL("false"),
     .help = "Look at every tensor of every step, stop at the first that is not finite, but for what f16's loss scale "
             "makes so (slow)."},
    {AT(run, self_check), CHOICE(self_checks, "once"),
     .help = "A small reference training first; once: for each device, driver, model type and precision."},
    {.section = NULL, .name = NULL},
};

const cleat_schema cleat_profile_schema = {
    .noun = "profile", .sections = cleat_sections, .keys = cleat_keys, .kind_key = "model.type", .kinds = model_types};

_Static_assert((int)CLEAT_PROFILE_TEXT <= (int)CLEAT_INI_TEXT, "a profile's texts are texts of an INI record");
_Static_assert(sizeof(cleat_int_list) == (1 + CLEAT_INI_LIST) * sizeof(int64_t), "a profile's lists are its lists");

const cleat_key *cleat_key_find(const char *section, const char *name) {
    return cleat_schema_find(&cleat_profile_schema, section, name);
}
