/* The part of the schema that does not depend on the model family: sections, and the keys of the run. */
#include "profile/schema.h"

#define RECORD cleat_profile
#include "ini/rows.h"

static const char *const lr_scalings[] = {"none", "linear", "sqrt", NULL};
static const char *const schedules[] = {"constant", "cosine", "step", "linear", NULL};
static const char *const precisions[] = {"auto", "f32", "f16", "bf16", "tf32", NULL};
static const char *const optimizers[] = {"adamw", "sgd", "lion", NULL};
static const char *const checkpointings[] = {"auto", "false", "true", "selective", NULL};
static const char *const budget_policies[] = {"fit", "stop", NULL};
static const char *const self_checks[] = {"once", "always", "never", NULL};

const cleat_section cleat_profile_sections[] = {
    {"model", "model architecture"},
    {"data", "data set, splits and preprocessing"},
    {"loss", "training objective"},
    {"train", "optimizer, batch sizes, learning rate and precision"},
    {"loader", "data loader"},
    {"run", "device, output, checkpoints and stopping"},
    {"distribute", "training on several devices"},
    {NULL, NULL},
};

enum { DAY = 24 * 60 * 60 };

const cleat_key cleat_run_keys[] = {
    {FIELD(model, type, type), CHOICE(NULL, NULL), SHAPES, .help = "Model type."},
    {FIELD(model, init, init), STRING(init, 0, ""), A_PATH,
     .help = "Weights to start from: a Hugging Face folder, a .safetensors or .gguf file, or a run of cleat; empty: "
             "random ones."},

    {AT(train, epochs), INT(1, 1e6, "40"), COMPUTES, .help = "Epochs: passes over the training data."},
    {AT(train, batch_size), INT(1, MAX_SAMPLES, "auto"), OR_AUTO,
     .help = "Maximum micro-batch size in samples; auto: for each bucket, the largest that fits the device memory."},
    {AT(train, effective_batch_size), INT(1, MAX_SAMPLES, "auto"), OR_AUTO, COMPUTES,
     .help = "Global batch size in samples per optimizer step; auto: batch_size x gradient_accumulation_steps, or 8."},
    {AT(train, gradient_accumulation_steps), INT(1, MAX_SAMPLES, "auto"), OR_AUTO,
     .help = "Micro-batches per optimizer step; auto: as few as batch_size allows."},
    {AT(train, bucket_batch_sizes), LIST(1, MAX_SAMPLES, "auto"), OR_AUTO, .kinds = CLEAT_IF_BUCKETS, .unordered = true,
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
    {AT(train, warmup_ratio), FLOAT(0, 0.99, "0"), COMPUTES, .later = true,
     .help = "Length of the linear warm-up as a share of the run's optimizer steps, instead of the other two."},
    {AT(train, warmup_start_lr), FLOAT(0, 10, "0"), COMPUTES, .help = "Learning rate at the first warm-up step."},
    {AT(train, schedule), CHOICE(schedules, "constant"), COMPUTES, .help = "Learning rate schedule after the warm-up."},
    {AT(train, step_epochs), INT(1, 1e6, "none"), OR_NONE, COMPUTES,
     .help = "schedule = step: epochs between learning rate decays."},
    {AT(train, step_gamma), FLOAT(1e-6, 1, "0.1"), COMPUTES, .help = "schedule = step: decay factor."},
    {AT(train, min_learning_rate), FLOAT(0, 10, "0"), COMPUTES, .help = "Lower bound of the learning rate schedule."},
    {AT(train, precision), CHOICE(precisions, "auto"),
     .help =
         "Type of activations and compute weights; tf32: f32, with products of TF32 (NVIDIA from 8.0 on); auto: f16 "
         "where it is faster, else f32."},
    {AT(train, loss_scale), INT(1, 1099511627776.0, "auto"), OR_AUTO,
     .help = "f16: initial loss scale, a power of two; halved after an overflow. auto: 65536."},
    {AT(train, loss_scale_growth_interval), INT(1, 1e9, "2000"),
     .help = "f16: number of consecutive steps without overflow after which the loss scale is doubled."},
    {AT(train, gradient_checkpointing), CHOICE(checkpointings, "auto"),
     .help = "Recompute activations in backward; selective: only of layer norm and f32 GELU, nearly free; auto: if it "
             "pays off."},
    {AT(train, max_grad_norm), FLOAT(1e-6, 1e9, "1"), OR_NONE, COMPUTES,
     .help = "Gradient clipping: maximum global gradient norm."},
    {AT(train, optimizer), CHOICE(optimizers, "adamw"), COMPUTES, .later = true,
     .help = "adamw; sgd, as torch.optim.SGD, learning rate 0.01 to 0.1; lion, at a tenth of AdamW's learning rate and "
             "10 times "
             "its weight decay."},
    {AT(train, momentum), FLOAT(0, 0.999999, "0.9"), COMPUTES, .later = true,
     .help = "SGD: momentum; 0: none, and no optimizer state."},
    {AT(train, lion_beta2), FLOAT(0, 0.999999, "0.99"), COMPUTES, .later = true,
     .help = "Lion: decay of the momentum, which beta1 weighs in the update."},
    {AT(train, nesterov), BOOL("false"), COMPUTES, .later = true, .help = "SGD: Nesterov's momentum."},
    {AT(train, weight_decay), FLOAT(0, 1, "0.01"), COMPUTES,
     .help = "AdamW, Lion: decoupled weight decay. SGD: factor of the parameters that are added to the gradient."},
    {AT(train, beta1), FLOAT(0, 0.999999, "0.9"), COMPUTES,
     .help = "AdamW: decay of the first moment. Lion: its weight in the update."},
    {AT(train, beta2), FLOAT(0, 0.999999, "0.999"), COMPUTES, .help = "AdamW: decay of the second moment."},
    {AT(train, eps), FLOAT(1e-16, 0.1, "1e-8"), COMPUTES,
     .help = "AdamW: epsilon added to the square root of the second moment."},
    {AT(train, average_decay), FLOAT(1e-6, 0.9999, "none"), OR_NONE, COMPUTES,
     .help = "Decay per epoch of the running average of parameters, which is then evaluated and saved."},
    {FIELD(train, backbone_learning_rate, train.params.backbone_learning_rate), FLOAT(1e-12, 10, "none"), OR_NONE,
     COMPUTES, .later = true, .help = "Peak learning rate of all but the head; none: learning_rate."},
    {FIELD(train, layer_decay, train.params.layer_decay), FLOAT(0.01, 1, "1"), COMPUTES, .later = true,
     .help = "Layer-wise decay: factor of the learning rate from each block to the one before it; the head is exempt."},
    {FIELD(train, decay_norm_bias, train.params.decay_norm_bias), BOOL("true"), COMPUTES, .later = true,
     .help = "Apply weight decay also to biases, norms and other vectors; fine-tuning usually does not."},
    {FIELD(train, freeze, train.params.freeze), STRING(train.params.freeze, 1, "none"), COMPUTES, .later = true,
     .help = "Parameters that are not trained: none, embeddings, a number of blocks (and embeddings), or backbone."},
    {FIELD(train, lora_rank, train.params.lora_rank), INT(1, 1024, "none"), OR_NONE, SHAPES, .later = true,
     .help =
         "Rank of low-rank adapters (LoRA), which are trained with the head instead of the backbone; none: no LoRA."},
    {FIELD(train, lora_alpha, train.params.lora_alpha), FLOAT(1e-3, 1e6, "16"), SHAPES, .later = true,
     .help = "LoRA: the adapters' results are multiplied by lora_alpha / lora_rank."},
    {FIELD(train, lora_layers, train.params.lora_layers), STRING(train.params.lora_layers, 1, "query value"), SHAPES,
     .later = true,
     .help = "LoRA: adapted linear layers: query, key, value, names such as att.out, f1, or all-linear."},
    {FIELD(train, lora_dropout, train.params.lora_dropout), FLOAT(0, 0.95, "0"), COMPUTES, .later = true,
     .help = "LoRA: dropout rate of the adapters' input."},
    {FIELD(train, frozen_weights, train.params.frozen_weights), STRING(train.params.frozen_weights, 1, "auto"),
     COMPUTES, .later = true, .initially = "float",
     .help = "Frozen matrices on the device: float, f16, q8, q4, nf4 (QLoRA), NAME=FORM for some; auto: as in a GGUF "
             "file, else float."},

    {AT(loader, num_workers), INT(0, 256, "auto"), OR_AUTO,
     .help = "Loader threads that prepare batches; 0: the training thread; auto: adjusted while training. Results do "
             "not depend on it."},
    {AT(loader, pin_memory), BOOL("true"), .help = "Stage batches in pinned memory."},
    {AT(loader, prefetch_factor), INT(1, 64, "2"), .help = "Batches prepared ahead by each worker."},
    {AT(loader, persistent_workers), BOOL("true"), .help = "Keep the worker threads between epochs."},

    {AT(run, device), STRING(run.device, 1, "auto"),
     .help = "Device: auto, gpu, cpu, a number of `cleat devices`, or part of a device name."},
    {AT(run, seed), INT(0, 9007199254740992, "1"), COMPUTES,
     .help = "Random seed of parameter initialization, sample order, augmentation and dropout."},
    {AT(run, out), STRING(run.out, 1, "auto"), A_PATH, .help = "Run folder; auto: runs/MODEL-DATE-TIME."},
    {AT(run, max_memory_usage), FLOAT(0.05, 1, "0.9"), .help = "Fraction of the free device memory that may be used."},
    {AT(run, checkpoint_every_epochs), INT(1, 1e6, "1"), OR_NONE, .help = "Epochs between checkpoints."},
    {AT(run, checkpoint_every_minutes), INT(1, 1e6, "none"), OR_NONE, .help = "Minutes between checkpoints."},
    {AT(run, keep_checkpoints), INT(1, 1000, "3"), .help = "Number of newest checkpoints to keep, besides the best."},
    {AT(run, evaluate_every_epochs), INT(1, 1e6, "1"), OR_NONE, .help = "Epochs between evaluations."},
    {AT(run, early_stopping_patience), INT(1, 1e6, "none"), OR_NONE,
     .help = "Early stopping: number of evaluations without improvement of the metric."},
    {AT(run, metric), STRING(run.metric, 1, "loss"), COMPUTES,
     .help = "Validation metric that selects the best checkpoint."},
    {AT(run, time_budget), QUOTA(1, 3650.0 * DAY, "none"), OR_NONE,
     .help = "Time limit of the run over all its processes, e.g. 30h; 30h/12h: also of each process; stops in time, "
             "with a checkpoint."},
    {AT(run, budget), CHOICE(budget_policies, "fit"),
     .help = "If time_budget is too short: shorten the schedule to the epochs that fit, or only stop in time."},
    {AT(run, log_every_steps), INT(1, 1e6, "10"),
     .help =
         "Optimizer steps whose metrics are read from the device together, at most 64; the log has one line per step."},
    {AT(run, monitor), PERIOD(0.1, 60 * 60, "1s"), OR_NONE,
     .help = "Time between two records of the monitor in system.jsonl: speed, idle time, memory, power, hints."},
    {AT(run, check_finite), BOOL("false"),
     .help = "Check every tensor of every step and stop at the first non-finite one, except overflows caused by f16's "
             "loss scale (slow)."},
    {AT(run, self_check), CHOICE(self_checks, "once"),
     .help = "Compare the results of the first batches with double precision; once: for each device, driver and "
             "program."},
    {AT(run, tensorboard), BOOL("false"),
     .help = "Write an event file for TensorBoard into the run folder during training."},
    {AT(run, trace), .former = "profile", STRING(run.trace, 1, "none"),
     .help = "Steps whose kernels are timed, e.g. wait=5,warmup=2,active=3,repeat=1; the run folder then has the "
             "tables and a trace."},
    {AT(run, resume_other_data), BOOL("false"),
     .help = "Resume even if the data differ from those that the checkpoint was trained on."},

    {AT(distribute, shares), LIST(0, MAX_SAMPLES, "measured"), .word = "measured", .word_value = -1, .unordered = true,
     .help =
         "Parts of a global batch that the ranks compute, e.g. 3,1 for two; measured: by the speed of the devices."},
    {AT(distribute, check_every_steps), INT(1, 1e9, "100"), OR_NONE,
     .help = "Optimizer steps between two comparisons of the ranks' parameters, which must have the same bits."},
    {AT(distribute, timeout), FLOAT(1, 86400, "20"),
     .help = "Seconds of silence (during steps: at least the time of ten) after which a rank counts as lost."},
    {.section = NULL, .name = NULL},
};

_Static_assert((int)CLEAT_PROFILE_TEXT <= (int)CLEAT_INI_TEXT, "a profile's texts are texts of an INI record");
_Static_assert(sizeof(cleat_int_list) == (1 + CLEAT_INI_LIST) * sizeof(int64_t), "a profile's lists are its lists");
