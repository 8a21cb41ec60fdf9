/* Predicts the trace of C1' atoms from an RNA sequence. Embedding, sinusoidal positional encoding, a
 * pre-norm transformer encoder, and a head. The head `frames` predicts the translation and rotation of
 * each residue relative to the previous one, starting from ideal A-form helix geometry, and integrates
 * them along the chain; `absolute` predicts coordinates directly. Every loss term is a mean over the items
 * of a chain, then a mean over chains. */
#include "cleat/ops.h"
#include "core/files.h"
#include "core/json.h"
#include "core/memory.h"
#include "core/name_table.h"
#include "data/rna/helix.h"
#include "graph/graph.h"
#include "models/baselines.h"
#include "models/rna.h"
#include "models/rna_metrics.h"
#include "nn/transformer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const cleat_rna_network_names[] = {"cleat", "rnafm", NULL};
typedef enum rna_head { HEAD_RIGID_FRAMES, HEAD_ABSOLUTE } rna_head;
static const char *const head_names[] = {"frames", "absolute", NULL};
typedef enum rna_positions { POSITIONS_START, POSITIONS_BOTH_ENDS } rna_positions;
static const char *const position_names[] = {"start", "both_ends", NULL};

/* Loss terms in the order of the log. */
enum { DISTANCE, LOCAL, FRAME, CHIRALITY, BOND, ANGLE, CLASH, BASE_PAIR, COORDINATE, N_TERMS };

typedef struct rna_settings {
    cleat_data_settings common;
    cleat_encoder_settings encoder;
    int network; /* a cleat_rna_network */
    int64_t max_positions;
    double norm_eps;
    rna_head head;
    rna_positions positions;
    cleat_rna_options data;
    double loss[N_TERMS]; /* weights */
} rna_settings;

#define RECORD rna_settings
#include "ini/rows.h"

#define WEIGHT(NAME, TERM, INITIAL, HELP)                                                                              \
    { FIELD(loss, NAME, loss[TERM]), FLOAT(0, 1e6, INITIAL), COMPUTES, .help = HELP }

static const cleat_key keys[] = {
    ENCODER_ROWS(encoder),
    {FIELD(model, network, network), CHOICE(cleat_rna_network_names, "cleat"), SHAPES_LATER,
     .help = "Network: cleat's, or the RNA language model RNA-FM as multimolecule saves it; model.init sets it."},
    {FIELD(model, max_positions, max_positions), INT(4, 65536, "1026"), SHAPES_LATER,
     .help = "network = rnafm: rows of the position embeddings, 4 more than residues of the longest chain."},
    {FIELD(model, norm_eps, norm_eps), FLOAT(1e-12, 1, "1e-05"), SHAPES_LATER,
     .help = "network = rnafm: added to the variance in layer norms."},
    {FIELD(model, head, head), CHOICE(head_names, "frames"), SHAPES,
     .help = "Output head: rigid transforms from residue to residue (frames), or absolute coordinates."},
    {FIELD(model, positions, positions), CHOICE(position_names, "both_ends"), SHAPES,
     .help =
         "Sinusoidal positional encoding from the first residue (start), or with half of the channels from the last."},
    PATH_ROW(common),
    MAX_LENGTH_ROW(common),
    VAL_FRACTION_ROW(data.val_fraction),
    FOLD_ROWS(data.fold),
    BUCKETS_ROW(common),
    LIMIT_ROW(common),
    {AT(data, generated), INT(1, 99999, "none"), OR_NONE, COMPUTES,
     .help = "Training: number of generated hairpins and duplexes added to the data."},
    {AT(data, mutation), FLOAT(0, 1, "0"), COMPUTES,
     .help = "Training: fraction of chains whose bases are mutated; base pairs are preserved."},
    MIN_LENGTH_ROW(common),
    {AT(data, crop), FLOAT(0, 1, "0"), COMPUTES, .help = "Training: fraction of chains cropped to a random stretch."},
    WEIGHT(pair_distance, DISTANCE, "1", "Weight of the distances between all pairs of residues."),
    WEIGHT(lddt, LOCAL, "1", "Weight of the local distance difference, a smooth form of the metric lddt."),
    WEIGHT(frame, FRAME, "0.4", "Weight of the frame-aligned error of residue positions; distinguishes mirror images."),
    WEIGHT(handedness, CHIRALITY, "1", "Weight of the chirality: signed volumes of neighbouring residues."),
    WEIGHT(bond_length, BOND, "1", "Weight of the distance between neighbouring C1' atoms."),
    WEIGHT(bond_angle, ANGLE, "1", "Weight of the angle of three neighbouring C1' atoms."),
    WEIGHT(clash, CLASH, "1", "Weight of steric clashes: residues closer than atoms allow."),
    WEIGHT(base_pair, BASE_PAIR, "1", "Weight of the C1' distance of Watson-Crick pairs."),
    WEIGHT(coordinate, COORDINATE, "0", "Weight of the squared error of absolute coordinates (head = absolute)."),
    {.name = NULL},
};

static void defaults(void *settings) {
    ((rna_settings *)settings)->data = cleat_rna_defaults();
}

static const rna_settings *settings_of(const cleat_model *model) {
    return model->settings;
}

/* Tokens of multimolecule: <pad> <cls> <eos> <unk> <mask> <null> A C G U N ..., and the number of rows of its position
 * table that no residue gets: 0, 1, and those of <cls> and <eos> for the longest chain. */
enum { START_TOKEN = 1, END_TOKEN = 2, LETTER_TOKENS = 6, FM_TOKENS = 28, START_POSITION = 2, UNUSED_POSITIONS = 4 };

/* --- the loss ------------------------------------------------------------------------------------------------- */

static const char *const terms[N_TERMS] = {
    [DISTANCE] = "pair_distance", [LOCAL] = "lddt_loss",  [FRAME] = "frame", [CHIRALITY] = "handedness",
    [BOND] = "bond_length",       [ANGLE] = "bond_angle", [CLASH] = "clash", [BASE_PAIR] = "base_pair",
    [COORDINATE] = "coordinate"};

/* Bounds of the physics terms in Angstrom, from chains of the PDB (252 chains of 156 entries):
 * neighbouring C1' atoms 5.0 to 7.0 (median 5.5; an A-form helix has 5.7); Watson-Crick pairs in helices
 * 10.6 +- 0.3 (10.7 in the standard reference frame, Olson et al. 2001, J. Mol. Biol. 313, 229); residues
 * further apart in the chain are rarely closer than 4.5; two successive bonds turn back by at most the
 * angle of cosine -0.2. */
static const cleat_structure_loss_spec specs[N_TERMS] = {
    [DISTANCE] = {.kind = CLEAT_LOSS_DISTANCE},
    [LOCAL] = {.kind = CLEAT_LOSS_LDDT, .lower = 15.0f},
    [CHIRALITY] = {.kind = CLEAT_LOSS_CHIRALITY},
    [BOND] = {.kind = CLEAT_LOSS_BOND, .lower = 5.0f, .upper = 7.0f, .eps = 1e-4f},
    [ANGLE] = {.kind = CLEAT_LOSS_ANGLE, .lower = -0.2f, .eps = 1e-4f},
    [CLASH] = {.kind = CLEAT_LOSS_CLASH, .lower = 4.5f},
    [BASE_PAIR] = {.kind = CLEAT_LOSS_BASE_PAIR, .lower = 10.6f},
    [COORDINATE] = {.kind = CLEAT_LOSS_COORDINATE},
};

/* Reference trajectories require a bond term with a single target length. */
static cleat_structure_loss_spec spec_of(const cleat_model *model, int term) {
    cleat_structure_loss_spec spec = specs[term];
    spec.term = term;
    if (term == BOND && model->sizes.bond > 0) {
        spec.lower = spec.upper = (float)model->sizes.bond;
        spec.eps = 1e-6f;
    }
    return spec;
}

static cleat_status check(const void *settings, const cleat_record *record, cleat_error *error) {
    const rna_settings *s = settings;
    cleat_status status = cleat_encoder_check(&s->encoder, record, error);
    if (!status) status = cleat_fractions_check(s->data.val_fraction, 0, record, error);
    if (!status && s->network == CLEAT_RNA_FM && s->common.max_length > s->max_positions - UNUSED_POSITIONS)
        status = cleat_record_contradict(record, error, "data.max_length", "model.max_positions",
                                         "this network has positions for at most %lld residues; set data.max_length",
                                         (long long)s->max_positions - UNUSED_POSITIONS);
    if (status) return status;
    for (int k = 0; k < N_TERMS; ++k)
        if (s->loss[k] > 0) return CLEAT_OK;
    return cleat_record_refuse(record, error, "loss.pair_distance",
                               "all weights of [loss] are 0: there is nothing to train");
}

/* Indices of the dataset's fields. */
enum { TOKENS, LENGTHS, COORDS, MASK, PARTNER, MARKED, END };

/* Weights for a mean over chains; empty slots have weight 0. */
static void sample_weight(const cleat_model *model, const cleat_host_batch *batch,
                          const cleat_global_batch *global_batch, float *values) {
    const double *weights = settings_of(model)->loss;
    const int32_t *lengths = batch->fields[LENGTHS];
    for (int k = 0; k < N_TERMS; ++k)
        for (int64_t b = 0; b < batch->batch; ++b)
            values[k * batch->batch + b] = lengths[b] > 0 ? (float)(weights[k] / (double)global_batch->samples) : 0.0f;
}

/* Output of the head: a trace, and the frames of the residues if the head has them. */
typedef struct head_output {
    cleat_tensor *x;            /* [B, L, 3] */
    cleat_tensor *rigid_frames; /* [B, L, 9] or NULL */
} head_output;

/* Terms of neighbours along the chain are built together: they share launches. */
static bool is_chain_term(int term) {
    return term == CHIRALITY || term == BOND || term == ANGLE || term == BASE_PAIR || term == COORDINATE;
}

static void build_chain_terms(const cleat_model *model, cleat_graph *graph, head_output found,
                              const cleat_structure *target, cleat_tensor *sample_weight, cleat_tensor **values) {
    cleat_structure_loss_spec chain[N_TERMS];
    cleat_tensor *chain_values[N_TERMS];
    int count = 0;
    for (int k = 0; k < N_TERMS; ++k)
        if (settings_of(model)->loss[k] != 0 && is_chain_term(k)) chain[count++] = spec_of(model, k);
    cleat_scope(graph, "chain/");
    cleat_structure_losses(graph, chain, count, found.x, target, sample_weight, chain_values);
    for (int i = 0; i < count; ++i) values[chain[i].term] = chain_values[i];
}

/* Builds every term of non-zero weight and their sum, and records both for the log. */
static cleat_tensor *build_loss(const cleat_model *model, cleat_graph *graph, head_output found,
                                const cleat_structure *target, cleat_tensor *sample_weight, cleat_tensor *state) {
    const double *weights = settings_of(model)->loss;
    cleat_tensor *values[N_TERMS], *found_terms[N_TERMS];
    int indices[N_TERMS], count = 0;
    build_chain_terms(model, graph, found, target, sample_weight, values);
    for (int k = 0; k < N_TERMS; ++k) {
        if (weights[k] == 0 || (k == FRAME && !found.rigid_frames)) continue;
        const cleat_structure_loss_spec spec = spec_of(model, k);
        cleat_scope(graph, "%s/", terms[k]);
        if (k == FRAME)
            values[k] = cleat_frame_loss(graph, found.x, found.rigid_frames, target, sample_weight, k);
        else if (!is_chain_term(k))
            values[k] = cleat_structure_loss(graph, &spec, found.x, target, sample_weight);
        found_terms[count] = values[k];
        indices[count++] = k;
    }
    cleat_scope(graph, NULL);
    if (count == 0) {
        cleat_graph_fail(graph, CLEAT_ERR_PROFILE,
                         "all weights in [loss] that apply to this head are zero: there is nothing to train");
        return NULL;
    }
    return cleat_sum_metrics(graph, found_terms, indices, count, N_TERMS, state);
}

static head_output build_head(const cleat_model *model, cleat_graph *graph, cleat_tensor *x, cleat_tensor *lengths) {
    head_output found = {NULL, NULL};
    cleat_model_begin_f32_head(graph);
    if (settings_of(model)->head == HEAD_RIGID_FRAMES)
        found.x = cleat_rigid_chain(graph, cleat_nn_linear_zero(graph, "head", x, 6), lengths, &found.rigid_frames);
    else
        found.x = cleat_nn_linear(graph, "head", x, 3, NULL);
    return found;
}

static int64_t vocabulary_of(const cleat_model *model) {
    if (settings_of(model)->network == CLEAT_RNA_FM) return FM_TOKENS;
    return model->sizes.vocabulary ? model->sizes.vocabulary : CLEAT_RNA_TOKENS;
}

static int64_t layers(const cleat_model *model) {
    return settings_of(model)->encoder.layers;
}

static int64_t layer_of(const cleat_model *model, const char *param) {
    return cleat_nn_encoder_layer_of(param, layers(model));
}

/* RNA-FM (Chen et al. 2022) as multimolecule has it: <cls>, the residues and <eos> with learned positions, a norm, and
 * the pre-norm encoder. <eos> comes second here: the order of rows means nothing to attention, and where a chain ends
 * differs. tokens i32 [B, L] -> T [B, L, D] */
static cleat_tensor *rna_fm(cleat_graph *graph, cleat_tensor *tokens, cleat_tensor *rng, const cleat_transformer *shape,
                            int64_t max_positions) {
    const cleat_init normal = {CLEAT_INIT_NORMAL, shape->init_std};
    const int64_t batch = tokens->shape[0], length = tokens->shape[1], width = shape->d_model;
    const int64_t words_shape[2] = {FM_TOKENS, width}, places_shape[2] = {max_positions, width};
    const int64_t row[3] = {batch, 1, width}, one[2] = {batch, width}, flat[2] = {batch, length * width};
    const int64_t joined[3] = {batch, length + 1, width};
    const cleat_dtype storage = cleat_autocast_storage(graph);
    cleat_tensor *marked = cleat_input(graph, "marked_lengths", CLEAT_I32, 1, &batch);
    cleat_tensor *end = cleat_input(graph, "end", CLEAT_I32, 1, &batch);
    cleat_scope(graph, "emb/");
    cleat_tensor *words = cleat_param(graph, "emb.word.weight", 2, words_shape, normal);
    cleat_tensor *places = cleat_param(graph, "emb.position.weight", 2, places_shape, normal);
    cleat_tensor *x = cleat_embedding(graph, tokens, words, storage);
    x = cleat_position_embedding(graph, x, places, START_POSITION + 1);
    cleat_tensor *last = cleat_reshape(graph, cleat_embedding(graph, end, places, storage), 3, row);
    last = cleat_position_embedding(graph, last, words, END_TOKEN);
    cleat_tensor *parts[] = {cleat_reshape(graph, last, 2, one), cleat_reshape(graph, x, 2, flat)};
    x = cleat_reshape(graph, cleat_concat(graph, parts, 2), 3, joined);
    cleat_tensor *start = cleat_add(graph, cleat_slice(graph, words, 0, START_TOKEN, START_TOKEN + 1),
                                    cleat_slice(graph, places, 0, START_POSITION, START_POSITION + 1));
    x = cleat_prepend_token(graph, x, cleat_reshape(graph, start, 1, &width));
    x = cleat_nn_layer_norm_eps(graph, "emb.norm", x, shape->norm_eps);
    return cleat_slice(graph, cleat_nn_encoder(graph, x, marked, rng, shape, NULL), 1, 2, length + 2);
}

static void build(const cleat_model *model, cleat_graph *graph, cleat_mode mode, int64_t batch, int64_t length,
                  cleat_model_graph *built) {
    const bool drops = mode == CLEAT_MODE_PREDICT && model->options.dropout_in_prediction;
    const rna_settings *s = settings_of(model);
    cleat_transformer shape = cleat_encoder_shape(&settings_of(model)->encoder, drops ? CLEAT_MODE_TRAIN : mode);
    int64_t row[2] = {batch, length}, point[3] = {batch, length, 3}, sample_weight_shape[2] = {N_TERMS, batch};
    int64_t four = 4, n_state = N_TERMS + 1;
    cleat_structure target = {0};
    cleat_tensor *rng = NULL, *sample_weight = NULL, *seed = NULL;
    cleat_tensor *tokens = cleat_input(graph, "tokens", CLEAT_I32, 2, row);
    target.lengths = cleat_input(graph, "lengths", CLEAT_I32, 1, &batch);
    if (mode != CLEAT_MODE_PREDICT) {
        target.coords = cleat_input(graph, "coords", CLEAT_F32, 3, point);
        target.mask = cleat_input(graph, "mask", CLEAT_F32, 2, row);
        target.partner = cleat_input(graph, "partner", CLEAT_I32, 2, row);
        sample_weight = cleat_input(graph, "scale", CLEAT_F32, 2, sample_weight_shape);
        rng = cleat_input(graph, "rng", CLEAT_U32, 1, &four);
        seed = cleat_model_add_seed(graph);
    } else if (shape.dropout > 0) {
        rng = cleat_input(graph, "rng", CLEAT_U32, 1, &four);
    }
    cleat_tensor *x;
    if (s->network == CLEAT_RNA_FM) {
        shape.norm_eps = (float)s->norm_eps;
        shape.init_std = 0.02f;
        x = rna_fm(graph, tokens, rng, &shape, s->max_positions);
    } else {
        x = cleat_nn_embedding(graph, "emb", tokens, vocabulary_of(model), &shape); /* [B, L, D] */
        x = cleat_positional_encoding(graph, x, s->positions == POSITIONS_BOTH_ENDS ? target.lengths : NULL);
        if (shape.dropout > 0) x = cleat_dropout(graph, x, rng, shape.dropout);
        x = cleat_nn_encoder(graph, x, target.lengths, rng, &shape, NULL);
    }
    head_output found = build_head(model, graph, x, target.lengths);
    found.x = cleat_model_output(graph, found.x, built);
    if (mode == CLEAT_MODE_PREDICT) return;
    built->terms = cleat_state(graph, "terms", CLEAT_F32, 1, &n_state);
    built->loss = build_loss(model, graph, found, &target, sample_weight, built->terms);
    cleat_retain(graph, built->loss);
    if (mode == CLEAT_MODE_TRAIN && built->loss) cleat_backward(graph, built->loss, seed);
}

/* --- data and metrics ----------------------------------------------------------------------------------------- */

static cleat_status open_data(cleat_model *model, const char *path, cleat_mode mode, const char *fitted,
                              cleat_dataset **dataset, cleat_error *error) {
    (void)fitted;
    cleat_rna_options options = settings_of(model)->data;
    options.max_length = settings_of(model)->common.max_length;
    options.structures = mode != CLEAT_MODE_PREDICT;
    if (mode != CLEAT_MODE_TRAIN) options.generated = 0;
    if (settings_of(model)->network == CLEAT_RNA_FM) options.first_token = LETTER_TOKENS;
    return cleat_rna_open(path, &options, dataset, error);
}

static size_t fields(const cleat_model *model, cleat_synthetic_field *made) {
    const int64_t row[1] = {-1}, points[2] = {-1, 3};
    made[TOKENS] = cleat_synthetic_integers("tokens", vocabulary_of(model), 1, row);
    made[LENGTHS] = cleat_synthetic_values("lengths", CLEAT_VALUES_LENGTH, 0, NULL);
    made[COORDS] = cleat_synthetic_floats("coords", 2, points);
    made[MASK] = cleat_synthetic_values("mask", CLEAT_VALUES_ONE, 1, row);
    made[PARTNER] = cleat_synthetic_values("partner", CLEAT_VALUES_OPPOSITE, 1, row);
    made[MARKED] = cleat_synthetic_values("marked_lengths", CLEAT_VALUES_LENGTH, 0, NULL);
    made[END] = cleat_synthetic_values("end", CLEAT_VALUES_LENGTH, 0, NULL);
    return settings_of(model)->network == CLEAT_RNA_FM ? END + 1 : MARKED;
}

enum { PAIR_MAE, PAIR_MAE_LOCAL, LDDT, RMSD, TM, N_METRICS };
static const char *const metric_names[N_METRICS] = {"pair_mae", "pair_mae_local", "lddt", "rmsd", "tm"};
static const cleat_metric_info metrics[] = {
    {"rmsd", false}, {"lddt", true}, {"tm", true}, {"pair_mae", false}, {"pair_mae_local", false}, {NULL, false}};

/* Metric state: the sum of each metric over chains, the number of chains that have it, and both of the best TM-score of
 * several models. */
enum { TM_BEST = 2 * N_METRICS, BEST_COUNT, METRIC_STATE_SIZE };
static size_t metric_state_size(const cleat_model *model) {
    (void)model;
    return METRIC_STATE_SIZE;
}

static void metric_compute(const cleat_model *model, const double *metric_state, cleat_metrics *found) {
    (void)model;
    for (int i = 0; i < N_METRICS; ++i)
        cleat_metrics_add(found, metric_names[i], metric_state[i] / metric_state[N_METRICS + i]);
    if (metric_state[BEST_COUNT] > 0)
        cleat_metrics_add(found, "tm_best", metric_state[TM_BEST] / metric_state[BEST_COUNT]);
}

/* Shorter chains have too few neighbours for a meaningful lDDT. */
enum { LDDT_SHORTEST = 20 };

static void add(double *metric_state, int metric, double value, bool counted) {
    if (!counted) return;
    metric_state[metric] += value;
    metric_state[N_METRICS + metric] += 1;
}

static bool is_known(const float *mask, int64_t length) {
    for (int64_t i = 0; i < length; ++i)
        if (mask[i] != 0) return true;
    return false;
}

/* A chain without known residues does not count. */
static cleat_status add_chain(const float *x, const float *coords, const float *mask, int64_t length,
                              double *metric_state, double *badness, cleat_error *error) {
    cleat_rna_metrics f;
    if (!is_known(mask, length)) return CLEAT_OK;
    cleat_status status = cleat_rna_metrics_compute(x, coords, mask, length, &f, error);
    if (status) return status;
    add(metric_state, PAIR_MAE, f.pair_mae, f.has_pairs);
    add(metric_state, PAIR_MAE_LOCAL, f.pair_mae_local, f.has_local_pairs);
    add(metric_state, LDDT, f.lddt, length >= LDDT_SHORTEST);
    add(metric_state, RMSD, f.rmsd, true);
    add(metric_state, TM, f.tm, true);
    if (badness) *badness = 1 - f.tm;
    return CLEAT_OK;
}

static cleat_status metric_update(const cleat_model *model, const cleat_host_batch *batch, const float *output,
                                  double *metric_state, cleat_error *error) {
    (void)model;
    const int32_t *lengths = batch->fields[LENGTHS];
    const float *coords = batch->fields[COORDS], *mask = batch->fields[MASK];
    cleat_status status = CLEAT_OK;
    for (int64_t b = 0; b < batch->batch && !status; ++b) {
        const int64_t first = b * batch->length;
        status = add_chain(output + 3 * first, coords + 3 * first, mask + first, lengths[b], metric_state,
                           batch->badness ? batch->badness + b : NULL, error);
    }
    return status;
}

/* The best TM-score of up to five structures, which the competition averages over its chains. */
static cleat_status metric_update_members(const cleat_model *model, const cleat_host_batch *batch, int64_t b,
                                          const float *const *outputs, size_t n, double *metric_state,
                                          cleat_error *error) {
    const int64_t length = ((const int32_t *)batch->fields[LENGTHS])[b], first = b * batch->length;
    const float *coords = (const float *)batch->fields[COORDS] + 3 * first;
    const float *mask = (const float *)batch->fields[MASK] + first;
    double best = 0;
    (void)model;
    if (!is_known(mask, length)) return CLEAT_OK;
    for (size_t k = 0; k < n && k < CLEAT_RNA_STRUCTURES; ++k) {
        cleat_rna_metrics f;
        cleat_status status = cleat_rna_metrics_compute(outputs[k], coords, mask, length, &f, error);
        if (status) return status;
        best = fmax(best, f.tm);
    }
    metric_state[TM_BEST] += best;
    metric_state[BEST_COUNT] += 1;
    return CLEAT_OK;
}

/* Models' coordinates lie in different frames, and their mean would have shorter bonds than any of them: chooses the
 * structure with the least sum of RMSD to the others, the first of equals. */
static cleat_status combine(const cleat_model *model, const float *const *outputs, size_t n, int64_t values,
                            float *combined, cleat_error *error) {
    double least = INFINITY, rmsd = 0;
    size_t medoid = 0;
    cleat_status status = CLEAT_OK;
    (void)model;
    for (size_t i = 0; i < n && n > 2 && !status; ++i) {
        double sum = 0;
        for (size_t j = 0; j < n && !status; ++j, sum += rmsd)
            status = cleat_rna_superpose(outputs[i < j ? j : i], outputs[i < j ? i : j], NULL, values / 3, combined,
                                         &rmsd, error);
        if (sum < least) {
            least = sum;
            medoid = i;
        }
    }
    memcpy(combined, outputs[medoid], (size_t)values * sizeof *combined);
    return status;
}

static cleat_rna_chain chain_of(const cleat_prediction *prediction) {
    return (cleat_rna_chain){.id = cleat_dataset_id(prediction->dataset, prediction->sample),
                             .sequence = cleat_rna_sequence(prediction->dataset, prediction->sample),
                             .length = cleat_dataset_length(prediction->dataset, prediction->sample),
                             .coords = prediction->output};
}

/* Path FOLDER/ID.pdb, or FOLDER/ID-2.pdb if an earlier id maps to the same file name. */
static cleat_status pdb_path(const char *folder, const char *id, cleat_name_table *taken, char path[CLEAT_FILE_PATH],
                             cleat_error *error) {
    char name[CLEAT_FILE_PATH];
    uint32_t earlier;
    for (int number = 1;; ++number) {
        int length = snprintf(name, sizeof name, number > 1 ? "%s-%d" : "%s", id, number);
        if (length < 0 || (size_t)length >= sizeof name || !cleat_rna_pdb_path(folder, name, path, CLEAT_FILE_PATH))
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "path too long: %.100s.../%.100s.pdb", folder, id);
        if (!cleat_name_table_find(taken, path, &earlier)) return cleat_name_table_add(taken, path, 0, error);
    }
}

/* A chain that does not fit the columns of a PDB file is written only to the CSV. */
static cleat_status write_pdb_files(const cleat_rna_chain *chains, size_t count, const char *folder,
                                    cleat_error *error) {
    char path[CLEAT_FILE_PATH];
    cleat_name_table taken = {0};
    cleat_error why, first = {0};
    size_t left_out = 0;
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < count && !status; ++i) {
        status = pdb_path(folder, chains[i].id, &taken, path, &why);
        if (!status) status = cleat_rna_write_pdb(path, &chains[i], 1, &why);
        if (status != CLEAT_ERR_NOT_SUPPORTED) continue;
        if (!left_out++) first = why;
        status = CLEAT_OK;
    }
    cleat_name_table_free(&taken);
    if (left_out)
        cleat_log(CLEAT_LOG_WARNING, "%s: %zu of %zu chains are only in predictions.csv; the first: %s", folder,
                  left_out, count, first.text);
    return status ? cleat_fail(error, status, "%s", why.text) : CLEAT_OK;
}

/* Writes FOLDER/predictions.csv with all chains, and a PDB file for each chain. */
static cleat_status write(const cleat_model *model, const cleat_prediction *predictions, size_t count,
                          const char *folder, cleat_error *error) {
    (void)model;
    char path[CLEAT_FILE_PATH];
    cleat_rna_chain *chains = cleat_alloc(count, sizeof *chains);
    if (!chains) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu chains", count);
    for (size_t i = 0; i < count; ++i) chains[i] = chain_of(&predictions[i]);
    cleat_status status = cleat_path_join(folder, "predictions.csv", path, sizeof path, error);
    if (!status) status = cleat_rna_write_csv(path, chains, count, error);
    if (!status) status = write_pdb_files(chains, count, folder, error);
    cleat_free(chains);
    return status;
}

/* A chain as the dataset gives it. */
typedef struct known_chain {
    int64_t length;
    int32_t *tokens; /* [length] */
    float *coords;   /* [length, 3] */
    float *mask;     /* [length] */
    float *x;        /* [length, 3] for a prediction */
} known_chain;

static void free_chain(known_chain *chain) {
    cleat_free(chain->tokens);
    cleat_free(chain->coords);
    cleat_free(chain->mask);
    cleat_free(chain->x);
}

/* The caller frees the chain, also on failure. */
static cleat_status read_chain(const cleat_dataset *dataset, size_t sample, known_chain *chain, cleat_error *error) {
    const size_t length = (size_t)cleat_dataset_length(dataset, sample);
    *chain = (known_chain){.length = (int64_t)length,
                           .tokens = cleat_alloc(length, sizeof *chain->tokens),
                           .coords = cleat_alloc(3 * length, sizeof *chain->coords),
                           .mask = cleat_alloc(length, sizeof *chain->mask),
                           .x = cleat_alloc(3 * length, sizeof *chain->x)};
    if (!chain->tokens || !chain->coords || !chain->mask || !chain->x)
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a chain of length %zu", length);
    void *slots[END + 1] = {[TOKENS] = chain->tokens, [COORDS] = chain->coords, [MASK] = chain->mask};
    return cleat_dataset_fill(dataset, sample, chain->length, NULL, slots, error);
}

/* "member": [[x, y, z], ...], with null for an unknown residue (mask NULL: all are known). */
static void add_points(cleat_string *json, const char *member, const float *points, const float *mask, int64_t length) {
    json_add(json, json_open(member, '['));
    for (int64_t i = 0; i < length; ++i) {
        const float *p = points + 3 * i;
        const bool known = (!mask || mask[i] != 0) && isfinite(p[0]) && isfinite(p[1]) && isfinite(p[2]);
        json_add(json, known ? json_open(NULL, '[') : json_text(NULL, NULL));
        for (int k = 0; known && k < 3; ++k)
            json_add(json, json_digits(NULL, round(100 * (double)p[k]) / 100, 9)); /* 0.01 A */
        if (known) json_add(json, json_close(']'));
    }
    json_add(json, json_close(']'));
}

static cleat_status add_example(const cleat_model *model, const cleat_evaluation *evaluated, size_t index,
                                cleat_string *json, cleat_error *error) {
    const cleat_prediction *prediction = &evaluated->predictions[index];
    known_chain chain;
    double rmsd = NAN;
    (void)model;
    cleat_status status = read_chain(prediction->dataset, prediction->sample, &chain, error);
    if (!status && is_known(chain.mask, chain.length))
        status = cleat_rna_superpose(prediction->output, chain.coords, chain.mask, chain.length, chain.x, &rmsd, error);
    else if (!status)
        memcpy(chain.x, prediction->output, 3 * (size_t)chain.length * sizeof *chain.x);
    if (!status) {
        cleat_examples_begin(json, "rna", prediction);
        cleat_json_add_name(json, "sequence");
        cleat_string_add(json, "\"");
        cleat_string_add_bytes(json, cleat_rna_sequence(prediction->dataset, prediction->sample), (size_t)chain.length);
        cleat_string_add(json, "\"");
        add_points(json, "truth", chain.coords, chain.mask, chain.length);
        add_points(json, "prediction", chain.x, NULL, chain.length);
        json_add(json, json_digits("score", rmsd, 6), json_text("score_name", "rmsd"), json_close('}'));
    }
    free_chain(&chain);
    return status;
}

/* One strand of an ideal A-form helix, which is what the head `frames` predicts before training. */
static cleat_status baseline_of(const cleat_model *model, const cleat_evaluation *evaluated, double *metric_state,
                                char *text, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    (void)model;
    for (size_t i = 0; i < evaluated->n_samples && !status; ++i) {
        known_chain chain;
        status = read_chain(evaluated->dataset, evaluated->samples[i], &chain, error);
        for (int64_t r = 0; !status && r < chain.length; ++r) {
            double atom[3];
            cleat_rna_helix_atom((int)r, false, atom);
            for (int k = 0; k < 3; ++k) chain.x[3 * r + k] = (float)atom[k];
        }
        if (!status) status = add_chain(chain.x, chain.coords, chain.mask, chain.length, metric_state, NULL, error);
        free_chain(&chain);
    }
    snprintf(text, CLEAT_BASELINE_TEXT, "one strand of an ideal A-form helix for every sequence");
    return status;
}

/* Adds the distances of a chain's known residues to the sums [separations] and numbers of pairs of their separations
 * |i - j|; or to the metric state, with the means of the separations as the prediction. */
static void visit_pairs(const known_chain *chain, double *sums, double *pairs, double *metric_state) {
    double error = 0, all = 0;
    for (int64_t i = 0; i < chain->length; ++i)
        for (int64_t j = i + 1; j < chain->length; ++j) {
            const float *a = chain->coords + 3 * i, *b = chain->coords + 3 * j;
            const double x = (double)(a[0] - b[0]), y = (double)(a[1] - b[1]), z = (double)(a[2] - b[2]);
            const double distance = sqrt(x * x + y * y + z * z);
            if (chain->mask[i] == 0 || chain->mask[j] == 0) continue;
            if (metric_state) error += fabs(sums[j - i] / pairs[j - i] - distance), all += 1;
            if (!metric_state) sums[j - i] += distance, pairs[j - i] += 1;
        }
    if (metric_state) add(metric_state, PAIR_MAE, error / all, all > 0);
}

static cleat_status visit_chains(const cleat_dataset *dataset, const uint32_t *samples, size_t count, double *sums,
                                 double *pairs, double *metric_state, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < count && !status; ++i) {
        known_chain chain;
        status = read_chain(dataset, samples[i], &chain, error);
        if (!status) visit_pairs(&chain, sums, pairs, metric_state);
        free_chain(&chain);
    }
    return status;
}

/* The mean distance of each separation in the training chains; pair_mae only. */
static cleat_status fitted_baseline(const cleat_model *model, const cleat_evaluation *evaluated, double *metric_state,
                                    char *text, cleat_error *error) {
    const size_t longest = (size_t)settings_of(model)->common.max_length + 1;
    double *sums = cleat_alloc(2 * longest, sizeof *sums), *pairs = sums + longest;
    uint32_t *samples = NULL;
    size_t count = 0;
    if (!sums) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the mean distances of a baseline");
    cleat_status status = cleat_baseline_samples(evaluated, 200000, &samples, &count, error);
    if (!status) status = visit_chains(evaluated->dataset, samples, count, sums, pairs, NULL, error);
    for (size_t s = 1; s < longest; ++s) /* a separation that is not in the training chains: the next smaller one */
        if (pairs[s] == 0) sums[s] = sums[s - 1], pairs[s] = pairs[s - 1];
    if (!status && count) {
        status = visit_chains(evaluated->dataset, evaluated->samples, evaluated->n_samples, sums, pairs, metric_state,
                              error);
        snprintf(text, CLEAT_BASELINE_TEXT, "the mean distance of each separation in the training chains");
    }
    cleat_samples_free(samples);
    cleat_free(sums);
    return status;
}

static const cleat_architecture *architecture(const cleat_model *model, bool timm) {
    (void)timm;
    return settings_of(model)->network == CLEAT_RNA_FM ? cleat_published_rna[0] : NULL;
}

static const cleat_model_examples examples = {.add = add_example, .baseline = baseline_of, .fitted = fitted_baseline};

const cleat_model_class cleat_rna_transformer = {.name = "rna_transformer",
                                                 .keys = keys,
                                                 .settings_size = sizeof(rna_settings),
                                                 .defaults = defaults,
                                                 .check = check,
                                                 .metrics = metrics,
                                                 .terms = terms,
                                                 .n_terms = N_TERMS,
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
                                                 .metric_update_members = metric_update_members,
                                                 .write = write,
                                                 .combine = combine,
                                                 .write_submission = cleat_rna_write_submission,
                                                 .examples = &examples,
                                                 .architectures = cleat_published_rna,
                                                 .architecture = architecture,
                                                 .init_profile = "rna_finetune"};
