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
    {"model", "model architecture"},
    {"data", "data set, splits and preprocessing"},
    {"loss", "training objective"},
    {"train", "optimizer, batch sizes, learning rate and precision"},
    {"loader", "data loader"},
    {"run", "device, output, checkpoints and stopping"},
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
    {AT(model, type), CHOICE(model_types, "rna_transformer"), SHAPES, .help = "Model type."},
    {AT(model, d_model), INT(8, 16384, "256"), SHAPES, ONLY(TRANSFORMERS),
     .help = "Model width: features per position."},
    {AT(model, heads), INT(1, 256, "8"), SHAPES, ONLY(TRANSFORMERS),
     .help = "Attention heads; d_model must be a multiple of this number."},
    {AT(model, layers), INT(1, 256, "5"), SHAPES, ONLY(TRANSFORMERS | LSTM | DENSE),
     .help = "Number of transformer blocks, LSTM layers, or hidden dense layers."},
    {AT(model, d_ff), INT(8, 65536, "1024"), SHAPES, ONLY(TRANSFORMERS),
     .help = "Width of the hidden layer of each feed-forward network."},
    {AT(model, hidden), INT(1, 16384, "128"), SHAPES, ONLY(LSTM | DENSE), .help = "Units per hidden layer."},
    {AT(model, dropout), FLOAT(0, 0.95, "0.1"), COMPUTES, .help = "Dropout probability in training."},
    {AT(model, head), CHOICE(rna_heads, "frames"), SHAPES, ONLY(RNA),
     .help = "Output head: rigid transforms from residue to residue (frames), or absolute coordinates."},
    {AT(model, positions), CHOICE(position_kinds, "both_ends"), SHAPES, ONLY(RNA),
     .help =
         "Sinusoidal positional encoding from the first residue (start), or with half of the channels from the last."},
    {AT(model, pooling), CHOICE(poolings, "mean"), SHAPES, ONLY(CLASSIFIER),
     .help = "Pooling of token features for classification: mean of all tokens, or the first token."},
    {AT(model, depth), CHOICE(depths, "18"), SHAPES, ONLY(RESNET),
     .help = "ResNet depth: stages of 2, 2, 2, 2 (18) or 3, 4, 6, 3 (34) basic blocks of two convolutions."},
    {AT(model, width), INT(4, 1024, "64"), SHAPES, ONLY(RESNET),
     .help = "Channels of the first stage; each of the three later stages doubles them."},
    {AT(model, stem), CHOICE(stems, "large"), SHAPES, ONLY(RESNET),
     .help = "Stem: 7 x 7 convolution with stride 2 and max pooling (large), or 3 x 3 convolution for small images."},
    {AT(model, backbone), CHOICE(backbones, "b0"), SHAPES, ONLY(MASKS),
     .help = "SegFormer size: 3.7, 14 or 27 million parameters."},
    {AT(model, stem_stride), INT(1, 4, "4"), SHAPES, ONLY(MASKS),
     .help = "Stride of the first patch embedding in pixels: 4 as published; 1 or 2 resolve smaller objects, at 16 and "
             "4 times the cost."},
    {AT(model, features), INT(1, 256, "3"), SHAPES, ONLY(EMBERFORMER),
     .help = "Channels per pixel passed from the temporal encoder to SegFormer."},
    {AT(model, threshold), FLOAT(0, 1, "0.5"), ONLY(MASKS),
     .help = "Minimum probability for a pixel to belong to the predicted mask."},

    {AT(data, path), STRING(data.path, 0, ""), .help = "Data file or folder, relative to the current directory."},
    {AT(data, max_length), INT(1, 65536, "1200"), COMPUTES, ONLY(RNA | TEXT),
     .help = "Maximum sequence length. RNA: training crops longer chains at random, evaluation keeps their first "
             "residues; text: the first tokens are kept."},
    {AT(data, val_fraction), FLOAT(0, 0.9, "0.1"), COMPUTES,
     .help =
         "Fraction held out for validation if the data define no split; for a series, the part before the test part."},
    {AT(data, test_fraction), FLOAT(0, 0.9, "0"), COMPUTES, ONLY(TEXT | SERIES | IMAGES | EMBERFORMER),
     .help = "Fraction held out for testing if the data define no split; for a series, its end."},
    {AT(data, buckets), LIST(1, 65536, "auto"), OR_AUTO, COMPUTES, ONLY(RNA | TEXT),
     .help = "Length buckets: lengths that sequences are padded to."},
    {AT(data, limit), INT(1, 1e9, "none"), OR_NONE, COMPUTES,
     .help = "Maximum number of training samples; the first ones are used."},
    {AT(data, generated), INT(1, 99999, "none"), OR_NONE, COMPUTES, ONLY(RNA),
     .help = "Training: number of generated hairpins and duplexes added to the data."},
    {AT(data, mutation), FLOAT(0, 1, "0"), COMPUTES, ONLY(RNA),
     .help = "Training: fraction of chains whose bases are mutated; base pairs are preserved."},
    {AT(data, min_length), INT(1, 65536, "none"), OR_NONE, ONLY(RNA | TEXT),
     .help = "Lower limit for reducing max_length if not even one sample fits the device memory."},
    {AT(data, crop), FLOAT(0, 1, "0"), COMPUTES, ONLY(RNA),
     .help = "Training: fraction of chains cropped to a random stretch."},

    {AT(data, train_file), STRING(data.train_file, 0, ""), COMPUTES, ONLY(TEXT),
     .help = "Training file in data.path; empty: the file with train in its name."},
    {AT(data, val_file), STRING(data.val_file, 0, ""), COMPUTES, ONLY(TEXT),
     .help = "Validation file; empty: the file with val or dev in its name, or part of the training file."},
    {AT(data, test_file), STRING(data.test_file, 0, ""), COMPUTES, ONLY(TEXT),
     .help = "Test file; empty: the file with test in its name, if any."},
    {AT(data, text_column), STRING(data.text_column, 1, "text"), COMPUTES, ONLY(CLASSIFIER),
     .help = "Name of the text column."},
    {AT(data, label_column), STRING(data.label_column, 1, "label"), COMPUTES, ONLY(CLASSIFIER),
     .help = "Name of the class label column."},
    {AT(data, id_column), STRING(data.id_column, 0, ""), ONLY(CLASSIFIER),
     .help = "Column that identifies rows in predictions; empty: the row number."},
    {AT(data, labels), STRING(data.labels, 0, ""), COMPUTES, ONLY(TEXT | RESNET),
     .help = "Classes, or entity types, in order, separated by spaces; empty: those of the training split."},
    {AT(data, vocabulary), STRING(data.vocabulary, 0, ""), COMPUTES, ONLY(TEXT),
     .help = "Vocabulary file in BERT's vocab.txt format; empty: learned from the training texts."},
    {AT(data, vocabulary_size), INT(64, 1e6, "8000"), COMPUTES, ONLY(TEXT),
     .help = "Number of tokens in a learned vocabulary."},
    {AT(data, lowercase), BOOL("true"), SHAPES, ONLY(TEXT), .help = "Convert text to lower case and strip accents."},
    {AT(data, word_dropout), FLOAT(0, 0.9, "0"), COMPUTES, ONLY(TEXT),
     .help = "Training: probability of replacing a token by [UNK] (word dropout)."},
    {AT(data, empty_texts), CHOICE(empty_texts, "error"), COMPUTES, ONLY(CLASSIFIER),
     .help = "Rows with an empty text: report an error, skip the row, or keep it as a sample."},
    {AT(data, invalid_utf8), CHOICE(encodings, "error"), COMPUTES, ONLY(TEXT),
     .help = "Invalid UTF-8 bytes: report an error, or drop them."},
    {AT(data, bad_tags), CHOICE(tag_policies, "error"), COMPUTES, ONLY(TAGGER),
     .help = "Entities that begin with I-: report an error, or read the tag as B-."},
    {AT(data, cache), BOOL("true"), ONLY(TEXT), .help = "Cache tokenized texts in the cache folder."},

    {AT(data, time_column), STRING(data.time_column, 0, ""), COMPUTES, ONLY(SERIES),
     .help = "Name of the time column; empty: the first column."},
    {AT(data, features), STRING(data.features, 0, ""), COMPUTES, ONLY(SERIES),
     .help = "Input columns, separated by commas; empty: all except the time."},
    {AT(data, targets), STRING(data.targets, 0, ""), COMPUTES, ONLY(SERIES),
     .help = "Columns to forecast, separated by commas; empty: the features."},
    {AT(data, frames), LIST(1, 525600, "none"), OR_NONE, COMPUTES, ONLY(SERIES),
     .help = "Additional time frames in minutes: the file averaged to each of them, as inputs besides its own step."},
    {AT(data, lookback), INT(1, 65536, "96"), SHAPES, ONLY(SERIES),
     .help = "Input window length in steps of each time frame."},
    {AT(data, horizon), INT(1, 65536, "24"), SHAPES, ONLY(SERIES), .help = "Forecast length in time steps."},
    {AT(data, stride), INT(1, 65536, "1"), COMPUTES, ONLY(SERIES),
     .help = "Stride between training windows in time steps."},
    {AT(data, eval_stride), INT(1, 65536, "1"), COMPUTES, ONLY(SERIES),
     .help = "Stride between validation or test windows in time steps."},
    {AT(data, anchor), CHOICE(anchors, "none"), SHAPES, ONLY(SERIES),
     .help = "Reference subtracted from inputs and targets: nothing, the last known values, or (targets) the values "
             "one season earlier."},
    {AT(data, season), INT(1, 65536, "none"), OR_NONE, SHAPES, ONLY(SERIES),
     .help = "Season length in time steps, for anchor = season and for the seasonal persistence baseline."},
    {AT(data, train_rows), INT(1, 1e9, "none"), OR_NONE, COMPUTES, ONLY(SERIES),
     .help = "Number of training rows, from the start of the file; none: by val_fraction and test_fraction."},
    {AT(data, val_rows), INT(1, 1e9, "none"), OR_NONE, COMPUTES, ONLY(SERIES),
     .help = "Number of validation rows, after the training rows."},
    {AT(data, test_rows), INT(1, 1e9, "none"), OR_NONE, COMPUTES, ONLY(SERIES),
     .help = "Number of test rows, after the validation rows."},
    {AT(data, gaps), CHOICE(gap_policies, "error"), COMPUTES, ONLY(SERIES),
     .help = "Missing time steps: report an error, fill with the last values, skip windows that contain them, or treat "
             "rows as consecutive."},
    {AT(data, missing), CHOICE(cell_policies, "error"), COMPUTES, ONLY(SERIES),
     .help = "Empty cells: report an error, fill with the last value, or skip windows that contain them."},

    {AT(data, image_size), INT(8, 8192, "224"), COMPUTES, ONLY(IMAGES | EMBERFORMER),
     .help = "Image side in pixels: images are resized to it; maps keep their own size and use it only for plans "
             "without data."},
    {AT(data, channels), INT(1, 3, "auto"), OR_AUTO, COMPUTES, ONLY(IMAGES),
     .help = "Image channels: 1 for grey, 3 for colour; auto: colour if any training image is in colour."},
    {AT(data, crop_scale), FLOAT(0.05, 1, "1"), COMPUTES, ONLY(IMAGES),
     .help = "Training: minimum area of the random resized crop, as a fraction of the image."},
    {AT(data, shift), INT(0, 512, "0"), COMPUTES, ONLY(IMAGES),
     .help = "Training: maximum random shift in pixels, in both directions."},
    {AT(data, flip), BOOL("false"), COMPUTES, ONLY(IMAGES | EMBERFORMER), .help = "Training: random horizontal flip."},
    {AT(data, flip_vertical), BOOL("false"), COMPUTES, ONLY(IMAGES | EMBERFORMER),
     .help = "Training: random vertical flip."},
    {AT(data, turn), BOOL("false"), COMPUTES, ONLY(IMAGES),
     .help = "Training: random rotation by multiples of 90 degrees."},
    {AT(data, brightness), FLOAT(0, 1, "0"), COMPUTES, ONLY(IMAGES),
     .help = "Training: random brightness factor from 1 - x to 1 + x."},
    {AT(data, contrast), FLOAT(0, 1, "0"), COMPUTES, ONLY(IMAGES),
     .help = "Training: random contrast factor from 1 - x to 1 + x."},
    {AT(data, saturation), FLOAT(0, 1, "0"), COMPUTES, ONLY(IMAGES),
     .help = "Training: random saturation factor from 1 - x to 1 + x."},
    {AT(data, cache_mb), INT(0, 1e7, "256"), ONLY(IMAGES),
     .help = "Maximum size of the in-memory cache of decoded images in MiB."},
    {AT(data, inputs), STRING(data.inputs, 0, ""), COMPUTES, ONLY(EMBERFORMER),
     .help = "Input grids by their file name prefix before _YYYYMMDD, separated by spaces; empty: all."},
    {AT(data, target), STRING(data.target, 0, ""), COMPUTES, ONLY(EMBERFORMER),
     .help = "Grid to forecast: the target mask is where it is above 0; empty: the first input."},
    {AT(data, history), INT(1, 4096, "6"), SHAPES, ONLY(EMBERFORMER), .help = "Maximum number of input frames (days)."},
    {AT(data, ahead), INT(1, 4096, "1"), SHAPES, ONLY(EMBERFORMER),
     .help = "Days from the last input frame to the forecast."},
    {AT(data, patch), INT(1, 64, "4"), SHAPES, ONLY(EMBERFORMER),
     .help = "Patch side in pixels; each patch is a sequence over time."},
    {AT(data, transform), CHOICE(transforms, "none"), COMPUTES, ONLY(EMBERFORMER),
     .help = "Input transform; log1p: sign(x) log(1 + |x|), for counts."},
    {AT(data, missing_days), CHOICE(day_policies, "error"), COMPUTES, ONLY(EMBERFORMER),
     .help = "Days with missing files: report an error, or skip the frame."},
    {AT(data, val_days), INT(1, 1e6, "none"), OR_NONE, COMPUTES, ONLY(EMBERFORMER),
     .help = "Number of validation days, before the test days; none: by val_fraction."},
    {AT(data, test_days), INT(1, 1e6, "none"), OR_NONE, COMPUTES, ONLY(EMBERFORMER),
     .help = "Number of test days, at the end; none: by test_fraction."},

    WEIGHT(pair_distance, "1", "Weight of the distances between all pairs of residues."),
    WEIGHT(lddt, "1", "Weight of the local distance difference, a smooth form of the metric lddt."),
    WEIGHT(frame, "0.4", "Weight of the frame-aligned error of residue positions; distinguishes mirror images."),
    WEIGHT(handedness, "1", "Weight of the chirality: signed volumes of neighbouring residues."),
    WEIGHT(bond_length, "1", "Weight of the distance between neighbouring C1' atoms."),
    WEIGHT(bond_angle, "1", "Weight of the angle of three neighbouring C1' atoms."),
    WEIGHT(clash, "1", "Weight of steric clashes: residues closer than atoms allow."),
    WEIGHT(base_pair, "1", "Weight of the C1' distance of Watson-Crick pairs."),
    WEIGHT(coordinate, "0", "Weight of the squared error of absolute coordinates (head = absolute)."),
    {AT(loss, label_smoothing), FLOAT(0, 0.9, "0"), COMPUTES, ONLY(TEXT | RESNET), .help = "Label smoothing."},
    {AT(loss, class_weights), CHOICE(weightings, "none"), COMPUTES, ONLY(TEXT | RESNET),
     .help = "Class weights; balanced: inversely proportional to class frequency."},
    {AT(loss, positive_weight), FLOAT(1e-3, 1e6, "auto"), OR_AUTO, COMPUTES, ONLY(MASKS),
     .help = "Cross entropy weight of mask pixels; auto: square root of the ratio of background to mask pixels."},
    {AT(loss, focal_gamma), FLOAT(0, 10, "0"), COMPUTES, ONLY(MASKS),
     .help = "Focal loss: cross entropy times (1 - probability of the target)^gamma; 0: plain cross entropy."},
    {AT(loss, dice), FLOAT(0, 1e3, "1"), COMPUTES, ONLY(MASKS),
     .help = "Weight of the Dice loss, added to the cross entropy."},

    {AT(train, epochs), INT(1, 1e6, "40"), COMPUTES, .help = "Epochs: passes over the training data."},
    {AT(train, batch_size), INT(1, MAX_SAMPLES, "auto"), OR_AUTO,
     .help = "Maximum micro-batch size in samples; auto: for each bucket, the largest that fits the device memory."},
    {AT(train, effective_batch_size), INT(1, MAX_SAMPLES, "auto"), OR_AUTO, COMPUTES,
     .help = "Global batch size in samples per optimizer step; auto: batch_size x gradient_accumulation_steps, or 8."},
    {AT(train, gradient_accumulation_steps), INT(1, MAX_SAMPLES, "auto"), OR_AUTO,
     .help = "Micro-batches per optimizer step; auto: as few as batch_size allows."},
    {AT(train, bucket_batch_sizes), LIST(1, MAX_SAMPLES, "auto"), OR_AUTO, ONLY(RNA | TEXT), .unordered = true,
     .help = "Micro-batch size for each of data.buckets; auto: by batch_size."},
    {AT(train, learning_rate), FLOAT(1e-12, 10, "5e-4"), COMPUTES,
     .help = "Peak learning rate; with lr_scaling, for a global batch of base_batch_size samples."},
    {AT(train, base_batch_size), INT(1, MAX_SAMPLES, "none"), OR_NONE, COMPUTES,
     .help = "Global batch size that learning_rate was chosen for."},
    {AT(train, lr_scaling), CHOICE(lr_scalings, "none"), COMPUTES,
     .help = "Scaling of learning_rate: 1, r or sqrt(r), with r = effective_batch_size / base_batch_size."},
    {AT(train, warmup_epochs), INT(0, 1e6, "0"), COMPUTES, .help = "Length of the linear warm-up in epochs."},
    {AT(train, warmup_steps), INT(0, 1e9, "0"), COMPUTES,
     .help = "Length of the linear warm-up in optimizer steps, instead of warmup_epochs."},
    {AT(train, warmup_start_lr), FLOAT(0, 10, "0"), COMPUTES, .help = "Learning rate at the first warm-up step."},
    {AT(train, schedule), CHOICE(schedules, "constant"), COMPUTES, .help = "Learning rate schedule after the warm-up."},
    {AT(train, step_epochs), INT(1, 1e6, "none"), OR_NONE, COMPUTES,
     .help = "schedule = step: epochs between learning rate decays."},
    {AT(train, step_gamma), FLOAT(1e-6, 1, "0.1"), COMPUTES, .help = "schedule = step: decay factor."},
    {AT(train, min_learning_rate), FLOAT(0, 10, "0"), COMPUTES, .help = "Lower bound of the learning rate schedule."},
    {AT(train, precision), CHOICE(precisions, "auto"),
     .help = "Data type of activations and compute weights (accumulation is f32). auto: f16 on cards with faster f16 "
             "arithmetic, else f32."},
    {AT(train, loss_scale), INT(1, 1099511627776.0, "auto"), OR_AUTO,
     .help = "f16: initial loss scale, a power of two; halved after an overflow. auto: 65536."},
    {AT(train, loss_scale_growth_interval), INT(1, 1e9, "2000"),
     .help = "f16: number of consecutive steps without overflow after which the loss scale is doubled."},
    {AT(train, gradient_checkpointing), CHOICE(checkpointings, "auto"),
     .help =
         "Recompute activations in the backward pass; auto: if the larger micro-batches outweigh the recomputation."},
    {AT(train, max_grad_norm), FLOAT(1e-6, 1e9, "1"), OR_NONE, COMPUTES,
     .help = "Gradient clipping: maximum global gradient norm."},
    {AT(train, weight_decay), FLOAT(0, 1, "0.01"), COMPUTES, .help = "AdamW: decoupled weight decay."},
    {AT(train, beta1), FLOAT(0, 0.999999, "0.9"), COMPUTES, .help = "AdamW: decay of the first moment."},
    {AT(train, beta2), FLOAT(0, 0.999999, "0.999"), COMPUTES, .help = "AdamW: decay of the second moment."},
    {AT(train, eps), FLOAT(1e-16, 0.1, "1e-8"), COMPUTES,
     .help = "AdamW: epsilon added to the square root of the second moment."},
    {AT(train, average_decay), FLOAT(1e-6, 0.9999, "none"), OR_NONE, COMPUTES,
     .help = "Decay per epoch of the running average of parameters, which is then evaluated and saved."},

    {AT(loader, num_workers), INT(0, 256, "auto"), OR_AUTO,
     .help = "Loader threads that prepare batches; 0: the training thread. The sample order does not depend on it."},
    {AT(loader, pin_memory), BOOL("true"), .help = "Stage batches in pinned memory."},
    {AT(loader, prefetch_factor), INT(1, 64, "2"), .help = "Batches prepared ahead by each worker."},
    {AT(loader, persistent_workers), BOOL("true"), .help = "Keep the worker threads between epochs."},

    {AT(run, device), STRING(run.device, 1, "auto"),
     .help = "Device: auto, gpu, cpu, a number of `cleat devices`, or part of a device name."},
    {AT(run, seed), INT(0, 9007199254740992, "1"), COMPUTES,
     .help = "Random seed of parameter initialization, sample order, augmentation and dropout."},
    {AT(run, out), STRING(run.out, 1, "auto"), .help = "Run folder; auto: runs/MODEL-DATE-TIME."},
    {AT(run, max_memory_usage), FLOAT(0.05, 1, "0.9"), .help = "Fraction of the free device memory that may be used."},
    {AT(run, checkpoint_every_epochs), INT(1, 1e6, "1"), OR_NONE, .help = "Epochs between checkpoints."},
    {AT(run, checkpoint_every_minutes), INT(1, 1e6, "none"), OR_NONE, .help = "Minutes between checkpoints."},
    {AT(run, keep_checkpoints), INT(1, 1000, "3"), .help = "Number of newest checkpoints to keep, besides the best."},
    {AT(run, evaluate_every_epochs), INT(1, 1e6, "1"), OR_NONE, .help = "Epochs between evaluations."},
    {AT(run, early_stopping_patience), INT(1, 1e6, "none"), OR_NONE,
     .help = "Early stopping: number of evaluations without improvement of the metric."},
    {AT(run, metric), STRING(run.metric, 1, "loss"), COMPUTES,
     .help = "Validation metric that selects the best checkpoint."},
    {AT(run, time_budget), DURATION(1, 3650.0 * DAY, "none"), OR_NONE,
     .help = "Time limit of the run, including earlier processes before --resume, e.g. 30h or 1h30m; stops in time, "
             "with a checkpoint."},
    {AT(run, budget), CHOICE(budget_policies, "fit"),
     .help = "If time_budget is too short: shorten the schedule to the epochs that fit, or only stop in time."},
    {AT(run, log_every_steps), INT(1, 1e6, "10"),
     .help =
         "Optimizer steps whose metrics are read from the device together, at most 64; the log has one line per step."},
    {AT(run, check_finite), BOOL("false"),
     .help = "Check every tensor of every step and stop at the first non-finite one, except overflows caused by f16's "
             "loss scale (slow)."},
    {AT(run, self_check), CHOICE(self_checks, "once"),
     .help = "Small reference training before the run; once: for each device, driver, model type and precision."},
    {.section = NULL, .name = NULL},
};

const cleat_schema cleat_profile_schema = {
    .noun = "profile", .sections = cleat_sections, .keys = cleat_keys, .kind_key = "model.type", .kinds = model_types};

_Static_assert((int)CLEAT_PROFILE_TEXT <= (int)CLEAT_INI_TEXT, "a profile's texts are texts of an INI record");
_Static_assert(sizeof(cleat_int_list) == (1 + CLEAT_INI_LIST) * sizeof(int64_t), "a profile's lists are its lists");

const cleat_key *cleat_key_find(const char *section, const char *name) {
    return cleat_schema_find(&cleat_profile_schema, section, name);
}
