/* Causal language models: each token is predicted from those before it. Loss: cross entropy, the mean over the learned
 * tokens of a global batch, whose logits are never stored (cleat_linear_cross_entropy). */
#include "models/causal_lm.h"

#include "core/cpus.h"
#include "core/files.h"
#include "core/memory.h"
#include "data/dataset.h"
#include "data/text/chat.h"
#include "graph/graph.h"
#include "models/masked_tokens.h"
#include "models/published/llama.h"
#include "models/text_networks.h"
#include "models/text_tokenizer.h"
#include "models/token_guess.h"
#include "json/member.h"

#include <math.h>
#include <string.h>

static const char *const terms[] = {"cross_entropy"};

/* Indices of the dataset's fields. */
enum { TOKENS, LABELS, STARTS, POSITIONS };

const char *const cleat_causal_network_names[] = {
    [CLEAT_CAUSAL_LLAMA] = "llama", [CLEAT_CAUSAL_MISTRAL] = "mistral",    [CLEAT_CAUSAL_QWEN2] = "qwen2",
    [CLEAT_CAUSAL_QWEN3] = "qwen3", [CLEAT_CAUSAL_GEMMA3] = "gemma3_text", [CLEAT_CAUSAL_GPT2] = "gpt2",
    [CLEAT_CAUSAL_NETWORKS] = NULL};
const char *const cleat_rope_scaling_names[] = {
    [CLEAT_ROPE_NONE] = "none", [CLEAT_ROPE_LINEAR] = "linear", [CLEAT_ROPE_LLAMA3] = "llama3", NULL};
static const char *const train_on_names[] = {[CLEAT_ON_COMPLETIONS] = "completions", [CLEAT_ON_ALL] = "all", NULL};

#define RECORD cleat_causal_settings
#include "ini/rows.h"

static const cleat_key keys[] = {
    {FIELD(model, network, network), CHOICE(cleat_causal_network_names, "llama"), SHAPES,
     .help =
         "Decoder: Llama's; mistral has a window; qwen2 biases of q, k, v; qwen3 norms of q and k; Gemma's; GPT-2's."},
    {FIELD(model, d_model, d_model), INT(8, 16384, "256"), SHAPES, .help = "Model width: features per position."},
    {FIELD(model, heads, heads), INT(1, 256, "8"), SHAPES, .help = "Attention heads of the queries."},
    {FIELD(model, kv_heads, kv_heads), INT(1, 256, "auto"), OR_AUTO, SHAPES,
     .help = "Heads of keys and values, each shared by heads / kv_heads heads of queries; auto: heads."},
    {FIELD(model, head_size, head_size), INT(2, 256, "auto"), OR_AUTO, SHAPES,
     .help = "Elements of a head, an even number; auto: d_model / heads."},
    LAYERS_ROW(layers),
    {FIELD(model, d_ff, d_ff), INT(8, 65536, "1024"), SHAPES,
     .help = "Width of the gated hidden layer of each feed-forward network."},
    {FIELD(model, max_positions, max_positions), INT(2, 1e7, "2048"), COMPUTES,
     .help = "Most tokens of a text that the network was trained for; data.max_length must not exceed it."},
    {FIELD(model, embedding_rows, embedding_rows), INT(1, 1e7, "auto"), OR_AUTO, SHAPES,
     .help = "Rows of the word embeddings, at least the vocabulary size; auto: the vocabulary size."},
    {FIELD(model, tied, tied), BOOL("true"), SHAPES,
     .help = "The output layer is the table of word embeddings; false: it has separate weights."},
    {FIELD(model, window, window), INT(1, 1e7, "none"), OR_NONE, COMPUTES,
     .help = "Number of last tokens that a token sees, itself included (Mistral); none: all."},
    {FIELD(model, global_every, global_every), INT(1, 1e4, "none"), OR_NONE, COMPUTES,
     .help = "A layer whose number, from 1, is a multiple of this sees all tokens in spite of model.window (Gemma)."},
    {FIELD(model, query_scalar, query_scalar), FLOAT(1e-6, 1e6, "auto"), OR_AUTO, COMPUTES,
     .help = "Scores of attention are divided by the root of this number; auto: elements of a head."},
    {FIELD(model, norm_eps, norm_eps), FLOAT(0, 1, "1e-5"), COMPUTES,
     .help = "Added to the mean square in RMS norms, or to the variance in layer norms."},
    {FIELD(model, rope_base, rope_base), FLOAT(1.001, 1e9, "10000"), COMPUTES,
     .help = "Base of the frequencies of rotary positions (rope_theta)."},
    {FIELD(model, local_rope_base, local_rope_base), FLOAT(1.001, 1e9, "none"), OR_NONE, COMPUTES,
     .help = "Base in layers with a window, whose frequencies have no scaling (Gemma 3); none: as in all layers."},
    {FIELD(model, rope_scaling, rope_scaling), CHOICE(cleat_rope_scaling_names, "none"), COMPUTES,
     .help = "Frequencies for longer texts: all divided by rope_factor (linear), or the slow ones (llama3)."},
    {FIELD(model, rope_factor, rope_factor), FLOAT(1, 1e6, "1"), COMPUTES,
     .help = "Divisor of the frequencies of rotary positions with a rope_scaling."},
    {FIELD(model, rope_low, rope_low), FLOAT(0, 1e6, "1"), COMPUTES,
     .help = "rope_scaling = llama3: fewer turns in rope_old_length are divided whole."},
    {FIELD(model, rope_high, rope_high), FLOAT(0, 1e6, "4"), COMPUTES,
     .help = "rope_scaling = llama3: more turns in rope_old_length are not divided."},
    {FIELD(model, rope_old_length, rope_old_length), INT(1, 1e7, "8192"), COMPUTES,
     .help = "rope_scaling = llama3: length in which turns are counted."},
    PATH_ROW(common),
    {FIELD(data, max_length, common.max_length), INT(2, 1e6, "512"), COMPUTES,
     .help = "Tokens of a row. Longer plain texts are divided, longer conversations lose their end."},
    TEXT_SPLIT_ROWS,
    {AT(data, prompt_column), TEXT(1, 127, "prompt"), COMPUTES,
     .help = "Column, or member of JSON lines, with the prompts."},
    {AT(data, completion_column), TEXT(1, 127, "completion"), COMPUTES,
     .help = "Column, or member of JSON lines, with the completions of the prompts."},
    {AT(data, text_column), TEXT(1, 127, "text"), COMPUTES,
     .help = "Column, or member of JSON lines, with texts that are learned whole."},
    {FIELD(data, train_on, data.train_on), CHOICE(train_on_names, "completions"), COMPUTES,
     .help = "Learn answers and completions only, or all tokens; plain texts are always learned whole."},
    {FIELD(data, pack, data.pack), BOOL("true"), COMPUTES,
     .help = "Several samples share a row of max_length tokens, without seeing each other."},
    {FIELD(data, template, data.chat_name), TEXT(1, 31, "auto"), COMPUTES,
     .help = "Chat template: chatml, llama3, ..., none; auto: the tokenizer's own. Exports have it."},
    {FIELD(data, system, data.system), TEXT(0, 4095, ""), COMPUTES,
     .help = "System message of conversations without one; empty: that of the chat template."},
    {FIELD(data, date, data.date), TEXT(0, 63, ""), COMPUTES,
     .help = "Date in the system message of Llama 3.1 and later; empty: 26 Jul 2024, as in its template."},
    {AT(data, vocabulary), TEXT(0, 1023, ""), A_PATH, COMPUTES,
     .help = "Tokenizer: a folder of a published model, its tokenizer.json, or a GGUF file; model.init sets it."},
    TEXT_CACHE_ROW,
    {.name = NULL},
};

static const cleat_causal_settings *settings_of(const cleat_model *model) {
    return model->settings;
}

static void defaults(void *settings) {
    ((cleat_causal_settings *)settings)->data = cleat_causal_defaults();
}

static int64_t kv_heads_of(const cleat_causal_settings *s) {
    return s->kv_heads == CLEAT_AUTO ? s->heads : s->kv_heads;
}

static int64_t head_of(const cleat_causal_settings *s) {
    return s->head_size == CLEAT_AUTO ? s->d_model / s->heads : s->head_size;
}

static cleat_status check(const void *settings, const cleat_record *record, cleat_error *error) {
    const cleat_causal_settings *s = settings;
    if (s->heads % kv_heads_of(s) != 0)
        return cleat_record_contradict(record, error, "model.kv_heads", "model.heads",
                                       "%lld heads of queries cannot share %lld heads of keys evenly",
                                       (long long)s->heads, (long long)s->kv_heads);
    if (s->head_size == CLEAT_AUTO && s->d_model % s->heads != 0)
        return cleat_record_contradict(record, error, "model.d_model", "model.heads",
                                       "d_model must be a multiple of heads, unless model.head_size is given");
    if (s->network == CLEAT_CAUSAL_GPT2 && (kv_heads_of(s) != s->heads || head_of(s) * s->heads != s->d_model))
        return cleat_record_contradict(record, error, "model.kv_heads", "model.heads",
                                       "in gpt2, queries, keys and values all have d_model elements");
    if (head_of(s) % 2 != 0 || head_of(s) < 2)
        return cleat_record_contradict(record, error, "model.d_model", "model.heads",
                                       "a head has %lld elements, but rotary positions turn pairs of them",
                                       (long long)head_of(s));
    if (s->common.max_length > s->max_positions)
        return cleat_record_contradict(record, error, "data.max_length", "model.max_positions",
                                       "the network was trained for %lld tokens; set data.max_length to at most that",
                                       (long long)s->max_positions);
    return cleat_fractions_check(s->data.val_fraction, s->data.test_fraction, record, error);
}

static int64_t vocabulary_of(const cleat_model *model) {
    const int64_t rows = settings_of(model)->embedding_rows;
    if (model->sizes.vocabulary) return model->sizes.vocabulary;
    return rows == CLEAT_AUTO ? 256 : rows;
}

static cleat_rotary_angles angles_of(const cleat_causal_settings *s) {
    cleat_rotary_angles angles = {.width = head_of(s), .base = s->rope_base, .factor = 1};
    if (s->rope_scaling != CLEAT_ROPE_NONE) angles.factor = s->rope_factor;
    if (s->rope_scaling != CLEAT_ROPE_LLAMA3) return angles;
    angles.old_length = s->rope_old_length;
    angles.low_turns = (float)s->rope_low;
    angles.high_turns = (float)s->rope_high;
    return angles;
}

cleat_llama cleat_causal_shape(const cleat_model *model) {
    const cleat_causal_settings *s = settings_of(model);
    const bool is_gemma = s->network == CLEAT_CAUSAL_GEMMA3;
    return (cleat_llama){.vocabulary = vocabulary_of(model),
                         .d_model = s->d_model,
                         .layers = s->layers,
                         .d_ff = s->d_ff,
                         .heads = s->heads,
                         .kv_heads = kv_heads_of(s),
                         .head = head_of(s),
                         .window = s->window,
                         .global_every = s->global_every,
                         .angles = angles_of(s),
                         .local_base = s->local_rope_base,
                         .embedding_factor = is_gemma ? (float)sqrt((double)s->d_model) : 0,
                         .score_factor = s->query_scalar == CLEAT_AUTO ? 0 : (float)(1 / sqrt(s->query_scalar)),
                         .norm_eps = (float)s->norm_eps,
                         .gate = is_gemma ? CLEAT_GATE_GELU_TANH : CLEAT_GATE_SILU,
                         .end_norms = is_gemma,
                         .learned = s->network == CLEAT_CAUSAL_GPT2 ? s->max_positions : 0,
                         .qkv_bias = s->network == CLEAT_CAUSAL_QWEN2,
                         .head_norms = is_gemma || s->network == CLEAT_CAUSAL_QWEN3,
                         .tied = s->tied};
}

/* --- data ----------------------------------------------------------------------------------------------------- */

/* Opens data, and takes the size of the vocabulary from them. */
static cleat_status open_with(cleat_model *model, const char *path, const cleat_causal_options *options,
                              cleat_dataset **dataset, cleat_error *error) {
    const int64_t rows = settings_of(model)->embedding_rows;
    cleat_dataset *opened = NULL;
    cleat_status status = cleat_causal_open(path, options, &opened, error);
    if (status) return status;
    const int64_t tokens = (int64_t)cleat_tokenizer_size(cleat_causal_tokenizer(opened));
    if (rows != CLEAT_AUTO && tokens > rows) {
        cleat_dataset_destroy(opened);
        return cleat_fail(error, CLEAT_ERR_PROFILE,
                          "%s: the vocabulary has %lld tokens, and the word embeddings have model.embedding_rows = "
                          "%lld: give the tokenizer of this network (data.vocabulary), or the network of this one",
                          path, (long long)tokens, (long long)rows);
    }
    model->sizes.vocabulary = rows == CLEAT_AUTO ? tokens : rows;
    *dataset = opened;
    return CLEAT_OK;
}

cleat_status cleat_causal_open_prompts(cleat_model *model, const char *path, const char *fitted,
                                       const cleat_tokenizer *tokenizer, cleat_dataset **dataset, cleat_error *error) {
    cleat_causal_options options = settings_of(model)->data;
    options.max_length = settings_of(model)->max_positions;
    options.fitted = fitted ? fitted : "";
    options.workers = 1;
    options.predicted = true;
    options.cache = false; /* prompts are short, and often typed */
    options.tokenizer = tokenizer;
    return open_with(model, path, &options, dataset, error);
}

int64_t cleat_causal_positions(const cleat_model *model) {
    return settings_of(model)->max_positions;
}

/* The value of data.template = auto. */
static cleat_status keep_template(cleat_model *model, cleat_dataset *dataset, cleat_error *error) {
    const char **name = &((cleat_causal_settings *)model->settings)->data.chat_name;
    char *copy = cleat_strdup(cleat_causal_template(dataset));
    if (!copy) {
        cleat_dataset_destroy(dataset);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the name of a chat template");
    }
    cleat_free((void *)*name);
    *name = copy;
    return CLEAT_OK;
}

static cleat_status open_data(cleat_model *model, const char *path, cleat_mode mode, const char *fitted,
                              cleat_dataset **dataset, cleat_error *error) {
    const int most = 16, cpus = cleat_cpus();
    cleat_causal_options options = settings_of(model)->data;
    options.max_length = settings_of(model)->common.max_length;
    options.fitted = fitted ? fitted : "";
    options.workers = model->options.workers != CLEAT_AUTO ? (int)model->options.workers : cpus > most ? most : cpus;
    options.predicted = mode == CLEAT_MODE_PREDICT;
    options.positions = settings_of(model)->network == CLEAT_CAUSAL_GPT2;
    cleat_status status = open_with(model, path, &options, dataset, error);
    return status || mode != CLEAT_MODE_TRAIN ? status : keep_template(model, *dataset, error);
}

static size_t fields(const cleat_model *model, cleat_synthetic_field *made) {
    const int64_t row[1] = {-1};
    made[TOKENS] = cleat_synthetic_integers("tokens", vocabulary_of(model), 1, row);
    made[LABELS] = cleat_synthetic_integers("labels", vocabulary_of(model), 1, row);
    made[STARTS] = cleat_synthetic_integers("starts", 1, 1, row);
    made[POSITIONS] = cleat_synthetic_integers("positions", 1, 1, row);
    return settings_of(model)->network == CLEAT_CAUSAL_GPT2 ? POSITIONS + 1 : POSITIONS;
}

/* --- graph ---------------------------------------------------------------------------------------------------- */

/* sample_weight [B, L]: 1 / number of learned tokens of the global batch. */
static void sample_weight(const cleat_model *model, const cleat_host_batch *batch,
                          const cleat_global_batch *global_batch, float *values) {
    const float weight = global_batch->items > 0 ? 1.0f / (float)global_batch->items : 0.0f;
    (void)model;
    for (int64_t i = 0; i < batch->batch * batch->length; ++i) values[i] = weight;
}

/* Places of the graph hold consecutive tokens of one text; `last` marks the one whose successor is wanted. */
static void build_generation(const cleat_model *model, cleat_graph *graph, const int64_t *row,
                             cleat_model_graph *built) {
    const cleat_llama shape = cleat_causal_shape(model);
    cleat_tensor *tokens = cleat_input(graph, "tokens", CLEAT_I32, 2, row);
    cleat_tensor *positions = cleat_input(graph, "positions", CLEAT_I32, 2, row);
    cleat_tensor *last = cleat_input(graph, "last", CLEAT_I32, 2, row);
    cleat_tensor *x = cleat_nn_llama_cached(graph, tokens, positions, model->options.context, &shape);
    x = cleat_select_marked(graph, x, last, 1, NULL);
    cleat_model_output(graph, cleat_linear(graph, x, cleat_nn_llama_head(graph, &shape), NULL, NULL), built);
}

/* The output of an evaluation is the loss of each token f32 [B, L]; of a prediction the logits f32 [B, V] of the token
 * behind a prompt. */
static void build(const cleat_model *model, cleat_graph *graph, cleat_mode mode, int64_t batch, int64_t length,
                  cleat_model_graph *built) {
    const int64_t row[2] = {batch, length};
    if (mode == CLEAT_MODE_GENERATE) {
        build_generation(model, graph, row, built);
        return;
    }
    const cleat_llama shape = cleat_causal_shape(model);
    cleat_tensor *tokens = cleat_input(graph, "tokens", CLEAT_I32, 2, row);
    cleat_tensor *labels = cleat_input(graph, "labels", CLEAT_I32, 2, row);
    cleat_tensor *starts = cleat_input(graph, "starts", CLEAT_I32, 2, row), *each = NULL;
    cleat_model_inputs inputs = cleat_model_add_inputs(graph, mode, 2, row);
    cleat_tensor *positions = shape.learned ? cleat_input(graph, "positions", CLEAT_I32, 2, row) : NULL;
    cleat_tensor *x = cleat_nn_llama(graph, tokens, starts, positions, &shape);
    cleat_tensor *head = cleat_nn_llama_head(graph, &shape);
    if (mode == CLEAT_MODE_PREDICT) {
        cleat_tensor *last = cleat_select_marked(graph, x, labels, 1, NULL); /* [B, 1, D] */
        cleat_model_output(graph, cleat_linear(graph, last, head, NULL, NULL), built);
        return;
    }
    const bool trains = mode == CLEAT_MODE_TRAIN;
    cleat_tensor *loss =
        cleat_linear_cross_entropy(graph, x, head, labels, inputs.sample_weight, 0, 0, trains ? NULL : &each);
    if (!trains) cleat_model_output(graph, cleat_reshape(graph, each, 2, row), built);
    cleat_model_add_loss(graph, mode, &inputs, loss, built);
}

static int64_t layers(const cleat_model *model) {
    return settings_of(model)->layers;
}

/* A separate output layer is pretrained as the blocks are, not a head for a new task: adapters leave it frozen. */
static int64_t layer_of(const cleat_model *model, const char *param) {
    const int64_t depth = cleat_nn_encoder_layer_of(param, layers(model));
    return depth < layers(model) ? depth : layers(model);
}

/* --- metrics -------------------------------------------------------------------------------------------------- */

static const cleat_metric_info metrics[] = {{"perplexity", false}, {NULL, false}};

enum { COUNT, NEGATIVE_LOG, STATE };

static size_t metric_state_size(const cleat_model *model) {
    (void)model;
    return STATE;
}

static cleat_status metric_update(const cleat_model *model, const cleat_host_batch *batch, const float *output,
                                  double *metric_state, cleat_error *error) {
    const int32_t *labels = batch->fields[LABELS];
    (void)model, (void)error;
    for (int64_t b = 0; b < batch->count; ++b) {
        double sum = 0, count = 0;
        for (int64_t i = b * batch->length; i < (b + 1) * batch->length; ++i) {
            if (labels[i] < 0) continue;
            sum += (double)output[i];
            count += 1;
        }
        metric_state[COUNT] += count;
        metric_state[NEGATIVE_LOG] += sum;
        if (batch->badness) batch->badness[b] = sum / count;
    }
    return CLEAT_OK;
}

static void metric_compute(const cleat_model *model, const double *metric_state, cleat_metrics *found) {
    (void)model;
    cleat_metrics_add(found, "perplexity", exp(metric_state[NEGATIVE_LOG] / metric_state[COUNT]));
}

/* --- examples and predictions --------------------------------------------------------------------------------- */

/* Of a prompt, the most probable next tokens are kept; of an evaluation, the loss of each token. */
static cleat_status condense(const cleat_model *model, const cleat_host_batch *batch, int64_t b, const float *output,
                             int64_t each, float **kept, int64_t *values, cleat_error *error) {
    const int32_t *labels = batch->fields[LABELS];
    const cleat_masked_logits from = {.logits = output,
                                      .rows = 1,
                                      .vocabulary = vocabulary_of(model),
                                      .labels = labels + b * batch->length,
                                      .length = batch->length,
                                      .tokenizer = cleat_causal_tokenizer(batch->dataset)};
    if (cleat_causal_prompt(batch->dataset, batch->samples[b])) {
        const cleat_status status = cleat_masked_condense(&from, kept, error);
        if (!status) *values = cleat_masked_kept_values(*kept);
        return status;
    }
    float *made = cleat_alloc((size_t)each, sizeof *made);
    if (!made)
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for an evaluation of %lld tokens", (long long)each);
    memcpy(made, output, (size_t)each * sizeof *made);
    *kept = made;
    *values = each;
    return CLEAT_OK;
}

enum { TOKENS_SHOWN = 200, TOKENS_BEFORE = 40, TOKEN_BYTES = 128, TOKEN_CHARACTERS = 40 };

/* A row of a dataset. */
typedef struct row {
    const cleat_prediction *from;
    int32_t *tokens, *labels, *starts;
    int64_t first, end; /* places that are shown */
} row;

/* Appends a member with a value for each token that is shown: its text, or the probability that the network gave it
 * (null: it was not learned). */
static void add_tokens(const row *r, const char *name, bool words, cleat_string *json) {
    const cleat_tokenizer *tokenizer = cleat_causal_tokenizer(r->from->dataset);
    json_add(json, json_open(name, '['));
    for (int64_t l = r->first; l < r->end; ++l) {
        char text[TOKEN_BYTES];
        const bool learned = r->labels[l] >= 0, begins = r->starts[l] == l || l == r->first;
        const bool continues = learned || (l + 1 < r->end && r->starts[l + 1] == r->starts[l]);
        const int32_t shown[] = {r->tokens[l], learned ? r->labels[l] : continues ? r->tokens[l + 1] : -1};
        for (int i = begins ? 0 : 1; i < (continues ? 2 : 1); ++i) {
            const bool known = cleat_tokenizer_piece_text(tokenizer, shown[i], text, sizeof text);
            if (words)
                cleat_examples_add_string(json, NULL, known ? text : NULL, TOKEN_CHARACTERS);
            else
                json_add(json, json_digits(NULL, i && learned ? exp(-(double)r->from->output[l]) : (double)NAN, 4));
        }
    }
    json_add(json, json_close(']'));
}

static cleat_status add_example(const cleat_model *model, const cleat_evaluation *evaluated, size_t index,
                                cleat_string *json, cleat_error *error) {
    const cleat_prediction *of = &evaluated->predictions[index];
    int64_t length = cleat_dataset_length(of->dataset, of->sample);
    int32_t *all = cleat_alloc((size_t)of->length, 3 * sizeof *all);
    row r = {.from = of, .tokens = all, .labels = all + of->length, .starts = all + 2 * of->length};
    void *const slots[] = {r.tokens, r.labels, r.starts, NULL};
    (void)model;
    if (!all) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %lld tokens", (long long)of->length);
    cleat_status status = cleat_dataset_fill(of->dataset, of->sample, of->length, NULL, slots, error);
    if (!status) {
        while (length > 1 && r.tokens[length - 1] < 0) --length; /* padding of a packed row */
        while (r.first < length - 1 && r.labels[r.first] < 0) ++r.first;
        r.first = r.first > TOKENS_BEFORE ? r.first - TOKENS_BEFORE : 0;
        r.end = length < r.first + TOKENS_SHOWN ? length : r.first + TOKENS_SHOWN;
        cleat_examples_begin(json, "likelihood", of);
        add_tokens(&r, "words", true, json);
        add_tokens(&r, "confidence", false, json);
        json_add(json, json_close('}'));
    }
    cleat_free(all);
    return status;
}

static cleat_status baseline(const cleat_model *model, const cleat_evaluation *evaluated, double *metric_state,
                             char *text, cleat_error *error) {
    cleat_token_guess guess = {.count = 0};
    const cleat_status status = cleat_guess_tokens(evaluated, LABELS, vocabulary_of(model), &guess, text, error);
    metric_state[COUNT] = guess.count;
    metric_state[NEGATIVE_LOG] = guess.negative_log;
    return status;
}

static const cleat_model_examples examples = {.add = add_example, .baseline = baseline};

/* The tokens that end an answer, for transformers: those of the weights, EOS, that of the template. */
static cleat_status write_ends(const cleat_tokenizer *tokenizer, const cleat_chat *chat, const char *folder,
                               cleat_error *error) {
    static const char name[] = "generation_config.json";
    cJSON *config = NULL;
    cleat_status status = cleat_json_read_file(folder, name, &config, error);
    if (!status && !config) config = cJSON_CreateObject();
    cJSON *ends = cJSON_CreateArray();
    const char *end = cleat_chat_end(chat);
    for (int32_t id = 0; !status && id < (int32_t)cleat_tokenizer_size(tokenizer); ++id)
        if (cleat_tokenizer_ends(tokenizer, id) || (end && cleat_tokenizer_id(tokenizer, end) == id))
            cJSON_AddItemToArray(ends, cJSON_CreateNumber(id));
    cJSON_DeleteItemFromObjectCaseSensitive(config, "eos_token_id");
    cJSON_AddItemToObject(config, "eos_token_id", ends);
    if (!status) status = cleat_json_write_file(folder, name, config, error);
    cJSON_Delete(config);
    return status;
}

/* A template that the profile names and the tokenizer lacks, with the profile's system message. */
static cleat_status write_template(const cleat_causal_settings *s, cleat_chat *chat, const char *folder,
                                   cleat_error *error) {
    static const char name[] = "tokenizer_config.json";
    cJSON *config = NULL;
    cleat_string program = {0};
    char *const own = chat->system;
    if (*s->data.system) chat->system = (char *)s->data.system;
    cleat_status status = cleat_chat_program(chat, &program, error);
    chat->system = own;
    if (!status) status = cleat_file_write_in(folder, "chat_template.jinja", &program, error);
    cleat_string_free(&program);
    if (!status) status = cleat_json_read_file(folder, name, &config, error);
    cJSON_DeleteItemFromObjectCaseSensitive(config, "chat_template");
    if (!status && config) status = cleat_json_write_file(folder, name, config, error);
    cJSON_Delete(config);
    return status;
}

static cleat_status export_files(const cleat_model *model, const cleat_model_export *spec, cleat_error *error) {
    const cleat_causal_settings *s = settings_of(model);
    cleat_tokenizer *tokenizer = NULL;
    cleat_chat chat = {0};
    cleat_status status = cleat_text_export(spec, false, s->max_positions, false, error);
    if (!status) status = cleat_tokenizer_load(spec->out, false, &tokenizer, error);
    if (!status) status = cleat_chat_open(s->data.chat_name, s->data.date, tokenizer, &chat, error);
    if (!status && chat.published && chat.form && *s->data.system)
        cleat_log(CLEAT_LOG_WARNING,
                  "%s: the tokenizer's own chat template does not have data.system: begin conversations with it",
                  spec->out);
    if (!status && !chat.published) status = write_template(s, &chat, spec->out, error);
    if (!status && !spec->adapters) status = write_ends(tokenizer, &chat, spec->out, error);
    cleat_chat_free(&chat);
    cleat_tokenizer_destroy(tokenizer);
    return status;
}

static const cleat_architecture *architecture(const cleat_model *model, bool timm) {
    return timm ? NULL : cleat_published_causal_of(settings_of(model)->network);
}

const cleat_model_class cleat_causal_lm = {.name = "causal_lm",
                                           .keys = keys,
                                           .settings_size = sizeof(cleat_causal_settings),
                                           .defaults = defaults,
                                           .check = check,
                                           .metrics = metrics,
                                           .terms = terms,
                                           .n_terms = 1,
                                           .check_data = cleat_model_check_path,
                                           .open_data = open_data,
                                           .fields = fields,
                                           .build = build,
                                           .layer_of = layer_of,
                                           .layers = layers,
                                           .sample_weight = sample_weight,
                                           .metric_state_size = metric_state_size,
                                           .metric_update = metric_update,
                                           .metric_compute = metric_compute,
                                           .write = cleat_masked_write,
                                           .condense = condense,
                                           .export_files = export_files,
                                           .examples = &examples,
                                           .architectures = cleat_published_causal,
                                           .architecture = architecture,
                                           .instead_of_onnx = "hf or gguf",
                                           .peft_task = "CAUSAL_LM",
                                           .init_profile = "chat"};
