/* Generation: prompts in chunks, then token by token, through two graphs with one cache. */
#include "cleat/generate.h"

#include "checkpoint/checkpoint.h"
#include "cleat/causal_texts.h"
#include "core/clock.h"
#include "core/memory.h"
#include "core/string.h"
#include "generate/sample.h"
#include "models/causal_lm.h"
#include "tokenizer/tokenizer.h"
#include "train/load_model.h"
#include "train/model_tensors.h"
#include "verify/program_check.h"

#include <math.h>

/* Tokens of a prompt at once. */
enum { CHUNK = 64 };
/* The graphs, by bucket. */
enum { ONE, MANY, GRAPHS };

struct cleat_generator {
    const cleat_profile *profile;
    cleat_generate_options options;
    cleat_device *device;
    cleat_model *model;
    cleat_dataset *first; /* the first prompts, with the tokenizer */
    cleat_session *session;
    cleat_program_check *check;
    int64_t vocabulary;
    float *logits;         /* [vocabulary] */
    cleat_candidate *room; /* [vocabulary] */
    uint32_t texts;        /* answered so far */
    bool stopped;
};

/* --- opening ---------------------------------------------------------------------------------------------------- */

cleat_status cleat_generator_open(const cleat_profile *profile, const cleat_generate_options *options,
                                  cleat_generator **generator, cleat_error *error) {
    const cleat_sampling *s = &options->sampling;
    if (profile->family != &cleat_causal_lm)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "only causal_lm generates texts; model.type is %s",
                          profile->family->name);
    if (!options->checkpoint && !*profile->init)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "generation needs a checkpoint, or weights: model.init");
    if (!(s->temperature >= 0 && isfinite(s->temperature)) || s->top_k < 0 || !(s->top_p > 0 && s->top_p <= 1))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "temperature %g, top_k %lld, top_p %g: at least 0, at least 0, above 0 up to 1",
                          s->temperature, (long long)s->top_k, s->top_p);
    if (options->max_tokens < 1 || options->context < 0 || options->context == 1)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "at most %lld tokens in a context of %lld: at least 1 and 2",
                          (long long)options->max_tokens, (long long)options->context);
    cleat_generator *made = cleat_alloc(1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a generator");
    made->profile = profile;
    made->options = *options;
    *generator = made;
    return CLEAT_OK;
}

void cleat_generator_close(cleat_generator *g) {
    if (!g) return;
    cleat_program_check_destroy(g->check);
    cleat_session_destroy(g->session);
    cleat_device_close(g->device);
    cleat_dataset_destroy(g->first);
    cleat_model_destroy(g->model);
    cleat_free(g->logits);
    cleat_free(g->room);
    cleat_free(g);
}

int64_t cleat_generator_context(const cleat_generator *generator) {
    return generator->session ? generator->model->options.context : 0;
}

/* Room for the longest of the first prompts, unless the caller has chosen. */
static int64_t choose_context(const cleat_generator *g) {
    const int64_t most = cleat_causal_positions(g->model);
    int64_t context = g->options.context, longest = 0;
    for (size_t i = 0; i < cleat_dataset_count(g->first); ++i) {
        const int64_t length = cleat_dataset_length(g->first, i);
        if (length > longest) longest = length;
    }
    if (context == 0) context = longest + g->options.max_tokens;
    return context < most ? context : most;
}

static cleat_status open_session(cleat_generator *g, cleat_checkpoint *checkpoint, cleat_error *error) {
    const cleat_bucket buckets[GRAPHS] = {[ONE] = {.length = 1, .micro_batch_size = 1, .global_batch_size = 1},
                                          [MANY] = {.length = CHUNK, .micro_batch_size = 1, .global_batch_size = 1}};
    g->model->options.context = choose_context(g);
    cleat_status status = cleat_rank_open_device(NULL, g->profile->run.device, &g->device, error);
    const cleat_session_spec spec = {.device = g->device,
                                     .profile = g->profile,
                                     .model = g->model,
                                     .purpose = CLEAT_FOR_GENERATION,
                                     .buckets = buckets,
                                     .n_buckets = GRAPHS};
    if (!status) status = cleat_session_create(&spec, &g->session, error);
    if (status) return status;
    g->vocabulary = cleat_width(g->session->work->evaluate[ONE].built.output);
    g->logits = cleat_alloc((size_t)g->vocabulary, sizeof *g->logits);
    g->room = cleat_alloc((size_t)g->vocabulary, sizeof *g->room);
    if (!g->logits || !g->room) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the logits");
    status = checkpoint ? cleat_load_values(g->session, checkpoint, error)
                        : cleat_load_published(g->session, g->profile->init, error);
    return status ? status : cleat_program_check_create(g->session, &g->check, error);
}

static cleat_status open_first(cleat_generator *g, const char *path, cleat_error *error) {
    cleat_checkpoint *saved = NULL;
    cleat_settings settings;
    cleat_status status = cleat_model_settings(g->profile, &settings, error);
    if (!status && g->options.checkpoint) status = cleat_checkpoint_open_best(g->options.checkpoint, &saved, error);
    if (!status && saved) status = cleat_checkpoint_expect_settings(saved, settings.items, settings.count, error);
    if (!status) status = cleat_profile_create_model(g->profile, &g->model, error);
    if (!status)
        status = cleat_causal_open_prompts(g->model, path, saved ? saved->folder : NULL, NULL, &g->first, error);
    if (!status) status = open_session(g, saved, error);
    cleat_checkpoint_close(saved);
    return status;
}

/* --- the network ------------------------------------------------------------------------------------------------ */

static cleat_status write_inputs(cleat_generator *g, const cleat_work_graph *graph, const int32_t *tokens,
                                 int64_t count, int64_t at, cleat_error *error) {
    static const char *const names[] = {"tokens", "positions", "last"};
    int32_t inputs[3][CHUNK];
    const int64_t places = graph == &g->session->work->evaluate[ONE] ? 1 : CHUNK;
    cleat_status status = CLEAT_OK;
    for (int64_t i = 0; i < places; ++i) {
        inputs[0][i] = i < count ? tokens[i] : -1;
        inputs[1][i] = i < count ? (int32_t)(at + i) : -1;
        inputs[2][i] = i == count - 1 ? 0 : -1;
    }
    for (int k = 0; k < 3 && !status; ++k)
        status = cleat_exec_write(g->session->exec, graph->index, cleat_graph_find(graph->graph, names[k]), inputs[k],
                                  (size_t)places * sizeof **inputs, error);
    return status;
}

/* Runs tokens [count], of which the first has position `at`; at most CHUNK of them. */
static cleat_status run_tokens(cleat_generator *g, const int32_t *tokens, int64_t count, int64_t at,
                               cleat_error *error) {
    const cleat_work_graph *graph = &g->session->work->evaluate[count > 1 ? MANY : ONE];
    cleat_status status = write_inputs(g, graph, tokens, count, at, error);
    if (!status && cleat_program_check_is_due(g->check, graph->index)) {
        status = cleat_program_check_run(g->check, graph->index, error);
        if (!status) status = write_inputs(g, graph, tokens, count, at, error);
    }
    return status ? status : cleat_exec_run(g->session->exec, graph->index, error);
}

/* The logits behind the last token that ran. */
static cleat_status read_logits(cleat_generator *g, int64_t ran, cleat_error *error) {
    const cleat_work_graph *graph = &g->session->work->evaluate[ran > 1 ? MANY : ONE];
    cleat_status status = cleat_exec_read(g->session->exec, graph->index, graph->built.output, g->logits,
                                          (size_t)g->vocabulary * sizeof *g->logits, error);
    for (int64_t i = 0; i < g->vocabulary && !status; ++i)
        if (!isfinite(g->logits[i]))
            status = cleat_fail(error, CLEAT_ERR_NAN,
                                "the logit of token %lld is %g: a larger range helps, "
                                "train.precision = f32 or bf16",
                                (long long)i, (double)g->logits[i]);
    return status;
}

/* --- answers ---------------------------------------------------------------------------------------------------- */

/* An answer while it grows. */
typedef struct growing {
    cleat_generator *g;
    const cleat_dataset *dataset;
    cleat_token_stream *stream;
    cleat_string text;
    cleat_answer answer;
    cleat_answer_callback callback;
    void *user;
} growing;

static cleat_status add_text(growing *a, const cleat_text_view *text, cleat_error *error) {
    const size_t before = a->text.size;
    if (text->size) cleat_string_add_bytes(&a->text, text->data, text->size);
    if (a->text.failed) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for an answer");
    a->answer.text = (cleat_text_view){a->text.data, a->text.size};
    a->answer.new_text = (cleat_text_view){a->text.data ? a->text.data + before : NULL, a->text.size - before};
    return CLEAT_OK;
}

/* Whether the token ends an answer; it is not shown. */
static bool is_end(const growing *a, int32_t token) {
    return token == cleat_causal_end(a->dataset) || cleat_tokenizer_ends(cleat_causal_tokenizer(a->dataset), token);
}

static cleat_status add_token(growing *a, int32_t token, cleat_error *error) {
    const cleat_generator *g = a->g;
    cleat_answer *answer = &a->answer;
    cleat_text_view text = {0}, rest = {0};
    ++answer->tokens;
    answer->end = is_end(a, token)                                                      ? CLEAT_ANSWER_COMPLETE
                  : answer->tokens == g->options.max_tokens                             ? CLEAT_ANSWER_MAX_TOKENS
                  : answer->prompt_tokens + answer->tokens >= g->model->options.context ? CLEAT_ANSWER_CONTEXT
                                                                                        : CLEAT_ANSWER_GOES_ON;
    cleat_status status = CLEAT_OK;
    if (answer->end != CLEAT_ANSWER_COMPLETE) status = cleat_token_stream_add(a->stream, token, &text, error);
    if (!status) status = add_text(a, &text, error);
    if (status || answer->end == CLEAT_ANSWER_GOES_ON) return status;
    const size_t before = a->text.size - text.size;
    status = cleat_token_stream_end(a->stream, &rest, error);
    if (!status) status = add_text(a, &rest, error);
    if (!status && a->text.data) answer->new_text = (cleat_text_view){a->text.data + before, a->text.size - before};
    return status;
}

static cleat_status run_prompt(cleat_generator *g, const int32_t *tokens, int64_t count, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    int64_t ran = 0;
    for (int64_t at = 0; at < count && !status; at += ran) {
        ran = count - at < CHUNK ? count - at : CHUNK;
        status = run_tokens(g, tokens + at, ran, at, error);
    }
    return status ? status : read_logits(g, ran, error);
}

static cleat_status grow(growing *a, const int32_t *tokens, cleat_error *error) {
    cleat_generator *g = a->g;
    cleat_answer *answer = &a->answer;
    double begun = cleat_seconds();
    cleat_status status = run_prompt(g, tokens, answer->prompt_tokens, error);
    answer->prompt_seconds = cleat_seconds() - begun;
    for (begun = cleat_seconds(); !status && !g->stopped;) {
        const int32_t token = cleat_sample_token(&g->options.sampling, g->logits, g->vocabulary, g->texts,
                                                 (uint32_t)answer->tokens, g->room);
        status = add_token(a, token, error);
        answer->seconds = cleat_seconds() - begun;
        if (status) break;
        g->stopped = !a->callback(a->user, answer);
        if (answer->end != CLEAT_ANSWER_GOES_ON) break;
        status = run_tokens(g, &token, 1, answer->prompt_tokens + answer->tokens - 1, error);
        if (!status) status = read_logits(g, 1, error);
    }
    ++g->texts;
    return status;
}

/* The sample's tokens, for the caller to free. */
static cleat_status read_prompt(const cleat_generator *g, const cleat_dataset *dataset, size_t sample, int32_t **tokens,
                                cleat_error *error) {
    const int64_t count = cleat_dataset_length(dataset, sample), most = g->model->options.context;
    void *slots[CLEAT_FEED_FIELDS] = {NULL};
    if (count >= most)
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "prompt %s has %lld tokens, which leaves no room for an answer: the context is %lld tokens, "
                          "model.max_positions %lld",
                          cleat_dataset_id(dataset, sample), (long long)count, (long long)most,
                          (long long)cleat_causal_positions(g->model));
    *tokens = cleat_alloc((size_t)count, sizeof **tokens);
    if (!*tokens) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a prompt");
    slots[cleat_dataset_find_field(dataset, "tokens")] = *tokens;
    return cleat_dataset_fill(dataset, sample, count, NULL, slots, error);
}

static cleat_status answer_sample(cleat_generator *g, const cleat_dataset *dataset, size_t sample,
                                  cleat_answer_callback callback, void *user, cleat_error *error) {
    int32_t *tokens = NULL;
    growing a = {.g = g,
                 .dataset = dataset,
                 .callback = callback,
                 .user = user,
                 .answer = {.id = cleat_dataset_id(dataset, sample),
                            .prompt = cleat_causal_prompt(dataset, sample),
                            .truth = cleat_causal_truth(dataset, sample),
                            .prompt_tokens = cleat_dataset_length(dataset, sample)}};
    cleat_status status = read_prompt(g, dataset, sample, &tokens, error);
    if (!status) status = cleat_token_stream_create(cleat_causal_tokenizer(dataset), true, &a.stream, error);
    if (!status) status = grow(&a, tokens, error);
    cleat_token_stream_destroy(a.stream);
    cleat_string_free(&a.text);
    cleat_free(tokens);
    return status;
}

cleat_status cleat_generate(cleat_generator *generator, const char *path, cleat_answer_callback callback, void *user,
                            cleat_error *error) {
    cleat_dataset *later = NULL;
    const bool is_first = !generator->session;
    if (is_first && generator->model)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "the generator failed to open; open another one");
    cleat_status status = is_first ? open_first(generator, path, error)
                                   : cleat_causal_open_prompts(generator->model, path, NULL,
                                                               cleat_causal_tokenizer(generator->first), &later, error);
    const cleat_dataset *dataset = is_first ? generator->first : later;
    for (size_t i = 0; !status && !generator->stopped && i < cleat_dataset_count(dataset); ++i)
        status = answer_sample(generator, dataset, i, callback, user, error);
    cleat_dataset_destroy(later);
    return status;
}
