/* Reads the parameters of a network from a published checkpoint, one block at a time. */
#include "core/memory.h"
#include "graph/graph.h"
#include "graph/store.h"
#include "weights/architecture.h"
#include "weights/layout.h"
#include "weights/position_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Elements of a block: 1 MiB, which caches keep from the file to the device. */
enum { BLOCK = 1 << 18 };

typedef struct stage {
    float *values; /* [capacity] */
    int64_t capacity;
} stage;

typedef enum tensor_use { NOT_USED, USED, DRAWN_ANEW } tensor_use;

typedef struct loader {
    const cleat_weights *weights;
    const cleat_weight_target *target;
    bool bare;    /* the file's names lack the architecture's base */
    int layout;   /* of the current parameter: CLEAT_TRANSPOSED, or 0 for that of its rank */
    float added;  /* to its values */
    uint8_t *use; /* tensor_use [tensors of the file]; NULL: not recorded */
    stage stored; /* elements in the layout of the file, if cleat's differs */
    stage values; /* the same in the layout of cleat */
    cleat_weight_report report;
} loader;

/* --- the table ------------------------------------------------------------------------------------------------ */

/* Replaces the numbers of a name by `*`, so that the blocks of a network share a line. */
static void generalise(const char *name, char pattern[CLEAT_WEIGHT_NAME]) {
    size_t used = 0;
    for (const char *at = name; *at && used + 1 < CLEAT_WEIGHT_NAME; ++at) {
        const bool digit = *at >= '0' && *at <= '9', starts = at == name || at[-1] == '.';
        if (!digit || !starts) {
            pattern[used++] = *at;
            continue;
        }
        const size_t digits = strspn(at, "0123456789");
        if (at[digits] != '.' && at[digits] != 0) {
            pattern[used++] = *at;
            continue;
        }
        pattern[used++] = '*';
        at += digits - 1;
    }
    pattern[used] = 0;
}

static cleat_status add_line(cleat_weight_report *report, cleat_weight_fate fate, const char *name, const char *reason,
                             cleat_error *error) {
    cleat_weight_line line = {.fate = fate, .count = 1};
    generalise(name, line.name);
    snprintf(line.reason, sizeof line.reason, "%s", reason);
    ++report->tensors[fate];
    for (size_t i = 0; i < report->count; ++i) {
        cleat_weight_line *known = &report->lines[i];
        if (known->fate != fate || strcmp(known->name, line.name) != 0 || strcmp(known->reason, line.reason) != 0)
            continue;
        ++known->count;
        return CLEAT_OK;
    }
    cleat_status status = cleat_grow(&report->lines, report->count, &report->capacity, error);
    if (!status) report->lines[report->count++] = line;
    return status;
}

void cleat_weight_report_free(cleat_weight_report *report) {
    cleat_free(report->lines);
    *report = (cleat_weight_report){0};
}

void cleat_weight_report_add_text(const cleat_weight_report *report, const char *prefix, cleat_string *text) {
    static const char *const words[] = {
        [CLEAT_WEIGHT_TAKEN] = "taken", [CLEAT_WEIGHT_NEW] = "new", [CLEAT_WEIGHT_LEFT] = "left"};
    for (size_t i = 0; i < report->count; ++i) {
        const cleat_weight_line *line = &report->lines[i];
        cleat_string_add(text, "%s%-5s  %4zu  %s%s%s\n", prefix, words[line->fate], line->count, line->name,
                         *line->reason ? ": " : "", line->reason);
    }
}

/* --- finding tensors ------------------------------------------------------------------------------------------ */

/* Files of the first BERT call the parameters of a layer norm gamma and beta. */
static const cleat_st_tensor *find_old_name(const cleat_weights *weights, const char *name) {
    static const struct { const char *now, *then; } suffixes[] = {{".weight", ".gamma"}, {".bias", ".beta"}};
    char old[2 * CLEAT_WEIGHT_NAME + 8];
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; ++i) {
        const size_t size = strlen(name), tail = strlen(suffixes[i].now);
        if (size < tail || strcmp(name + size - tail, suffixes[i].now) != 0) continue;
        snprintf(old, sizeof old, "%.*s%s", (int)(size - tail), name, suffixes[i].then);
        return cleat_weights_find(weights, old);
    }
    return NULL;
}

static const cleat_st_tensor *find(const loader *l, const char *name) {
    const char *base = l->target->architecture ? l->target->architecture->base : "";
    char full[2 * CLEAT_WEIGHT_NAME];
    if (l->bare && strncmp(name, base, strlen(base)) == 0) name += strlen(base);
    snprintf(full, sizeof full, "%s%s", l->target->prefix, name);
    const cleat_st_tensor *found = cleat_weights_find(l->weights, full);
    return found ? found : find_old_name(l->weights, full);
}

/* A file of a bare backbone has the first source of some row without `base`, and none with it. */
static bool is_bare(const cleat_weight_target *target, const cleat_weights *weights) {
    char base[CLEAT_WEIGHT_NAME];
    snprintf(base, sizeof base, "%s%s", target->prefix, target->architecture ? target->architecture->base : "");
    for (size_t i = 0; i < cleat_weights_count(weights); ++i)
        if (strncmp(cleat_weights_at(weights, i)->name, base, strlen(base)) == 0) return false;
    return true;
}

/* --- one parameter -------------------------------------------------------------------------------------------- */

static void describe_shape(int rank, const int64_t *shape, char text[96]) {
    size_t used = (size_t)snprintf(text, 96, "[");
    for (int i = 0; i < rank && used < 80; ++i)
        used += (size_t)snprintf(text + used, 96 - used, "%s%lld", i ? ", " : "", (long long)shape[i]);
    snprintf(text + used, 96 - used, "]");
}

/* The shape in the file of a parameter with `rank` dimensions there. Leading ones make up for dimensions that
 * only the file has. */
static int file_shape(const loader *l, const cleat_tensor *param, int rank, int64_t shape[CLEAT_ST_RANK]) {
    int64_t there[CLEAT_MAX_RANK];
    const bool own = !l->target->architecture; /* in the layouts of cleat */
    const int known = cleat_torch_shape(param, own ? 0 : l->layout ? l->layout : rank, there);
    const int missing = rank > known ? rank - known : 0;
    for (int i = 0; i < missing; ++i) shape[i] = 1;
    for (int i = 0; i < known; ++i) shape[missing + i] = there[i];
    return missing + known;
}

/* A vector followed by ones: layer_scale [D, 1, 1]. */
static bool is_vector(const cleat_tensor *param, const cleat_st_tensor *stored) {
    return param->rank == 1 && stored->rank > 1 && stored->shape[0] == param->shape[0] &&
           cleat_st_elements(stored) == param->shape[0];
}

static bool fits(const loader *l, const cleat_tensor *param, size_t parts, const cleat_st_tensor *stored) {
    int64_t wanted[CLEAT_ST_RANK];
    if (parts == 1 && is_vector(param, stored)) return true;
    if (file_shape(l, param, stored->rank, wanted) != stored->rank) return false;
    if (stored->rank > 0 && wanted[0] % (int64_t)parts) return false;
    for (int i = 0; i < stored->rank; ++i)
        if (stored->shape[i] != (i == 0 ? wanted[0] / (int64_t)parts : wanted[i])) return false;
    return true;
}

static cleat_status wrong_shape(const loader *l, const cleat_tensor *param, size_t parts, const cleat_st_tensor *stored,
                                cleat_error *error) {
    char there[96], here[96];
    int64_t wanted[CLEAT_ST_RANK];
    const int rank = file_shape(l, param, stored->rank, wanted);
    if (rank > 0) wanted[0] /= (int64_t)parts;
    describe_shape(stored->rank, stored->shape, there);
    describe_shape(rank, wanted, here);
    return cleat_fail(error, CLEAT_ERR_SHAPE, "%s: tensor '%.100s' is %s; the network of this profile needs %s",
                      cleat_weights_path(l->weights), stored->name, there, here);
}

static void mark(loader *l, const cleat_st_tensor *stored, tensor_use use) {
    if (l->use) l->use[cleat_weights_index(l->weights, stored)] = (uint8_t)use;
}

/* Initialises a parameter, because the head of the file, `parts` [count], is for another task. */
static cleat_status draw_because(loader *l, cleat_tensor *param, const cleat_st_tensor *const *parts, size_t count,
                                 const char *reason, cleat_error *error) {
    cleat_status status = l->target->draw(l->target->user, param, error);
    for (size_t i = 0; i < count; ++i) mark(l, parts[i], DRAWN_ANEW);
    return status ? status : add_line(&l->report, CLEAT_WEIGHT_NEW, param->name, reason, error);
}

/* The same for a part of another shape (`other`), or a missing one. */
static cleat_status draw(loader *l, cleat_tensor *param, const cleat_st_tensor *const *parts, size_t count,
                         const cleat_st_tensor *other, cleat_error *error) {
    char there[96], here[96], reason[160];
    describe_shape(param->rank, param->shape, here);
    if (other) describe_shape(other->rank, other->shape, there);
    snprintf(reason, sizeof reason, other ? "%.40s here, %.40s in the file" : "%.40s; the file has none", here,
             other ? there : "");
    return draw_because(l, param, parts, count, reason, error);
}

static bool keeps(const loader *l, const cleat_tensor *param) {
    const cleat_architecture *architecture = l->target->architecture;
    return !architecture || !architecture->keeps || architecture->keeps(l->target->model, l->weights, param->name);
}

/* Whether a parameter of a network of cleat belongs to its last layer, which has a row for each label. */
static bool is_output(const cleat_tensor *param) {
    static const char *const layers[] = {"head", "head.out", "fc", "cls"};
    const char *dot = strrchr(param->name, '.');
    const size_t size = dot ? (size_t)(dot - param->name) : 0;
    for (size_t i = 0; i < sizeof layers / sizeof *layers; ++i)
        if (strlen(layers[i]) == size && strncmp(param->name, layers[i], size) == 0) return true;
    return false;
}

static cleat_status reserve(const loader *l, stage *b, int64_t elements, cleat_error *error) {
    if (elements <= b->capacity) return CLEAT_OK;
    cleat_free(b->values);
    *b = (stage){.values = cleat_alloc((size_t)elements, sizeof *b->values), .capacity = elements};
    if (b->values) return CLEAT_OK;
    b->capacity = 0;
    return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for %lld values", cleat_weights_path(l->weights),
                      (long long)elements);
}

/* Reads elements first .. first + count - 1 of the stack of `parts`, of `each` elements. */
static cleat_status read_stack(const loader *l, const cleat_st_tensor *const *parts, int64_t each, int64_t first,
                               int64_t count, float *values, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    while (count > 0 && !status) {
        const int64_t at = first % each, some = count < each - at ? count : each - at;
        status = cleat_weights_read_part(l->weights, parts[first / each], at, some, values, error);
        first += some;
        values += some;
        count -= some;
    }
    return status;
}

/* Passes on the stored rows of a matrix of a GGUF file. */
static cleat_status pass_rows(loader *l, cleat_tensor *param, const cleat_st_tensor *part, int64_t first,
                              const cleat_weight_blocks *stored, cleat_error *error) {
    const int64_t most = BLOCK / stored->columns > 1 ? BLOCK / stored->columns : 1;
    cleat_status status = CLEAT_OK;
    for (int64_t row = 0; row < stored->rows && !status; row += most) {
        const int64_t rows = stored->rows - row < most ? stored->rows - row : most;
        status = reserve(l, &l->stored, (rows * (int64_t)stored->row_bytes + 3) / (int64_t)sizeof(float), error);
        if (!status) status = cleat_weights_read_blocks(l->weights, part, row, rows, l->stored.values, error);
        if (!status)
            status = l->target->write_stored(l->target->user, param, first + row * stored->columns,
                                             rows * stored->columns, stored->type, l->stored.values, error);
    }
    return status;
}

/* Whether a frozen matrix takes its parts as they are stored. */
static bool takes_stored(const loader *l, const cleat_tensor *param, const cleat_st_tensor *const *parts, size_t count,
                         cleat_weight_blocks *stored) {
    const bool as_in_file = !l->layout && l->added == 0;
    bool takes = as_in_file && l->target->write_stored && param->rule.blocks != CLEAT_F32 && param->rank == 2;
    for (size_t i = 0; i < count && takes; ++i)
        takes = cleat_weights_blocks(l->weights, parts[i], &stored[i]) && !stored[i].is_transposed;
    return takes;
}

/* Reads the stacked parts of a parameter, converts their layout, and passes them on. */
static cleat_status read_parts(loader *l, cleat_tensor *param, const cleat_st_tensor *const *parts, size_t count,
                               cleat_error *error) {
    int64_t shape[CLEAT_ST_RANK];
    const int there = file_shape(l, param, parts[0]->rank, shape), known = l->target->architecture ? there : 0;
    const int rank = l->layout ? l->layout : known;
    const int64_t elements = cleat_tensor_elements(param), unit = cleat_torch_unit(param, rank);
    const int64_t block = elements < BLOCK ? elements : unit < BLOCK ? BLOCK / unit * unit : unit;
    cleat_weight_blocks as[CLEAT_WEIGHT_PARTS];
    const bool stored_rows = takes_stored(l, param, parts, count, as);
    for (size_t i = 0; i < count; ++i) mark(l, parts[i], USED);
    cleat_status status = reserve(l, &l->values, block, error);
    if (!status && unit > 1) status = reserve(l, &l->stored, block, error);
    for (size_t i = 0; i < count && !status && stored_rows; ++i)
        status = pass_rows(l, param, parts[i], elements / (int64_t)count * (int64_t)i, &as[i], error);
    for (int64_t i = 0; i < elements && !status && !stored_rows; i += block) {
        const int64_t some = elements - i < block ? elements - i : block;
        float *stored = unit > 1 ? l->stored.values : l->values.values;
        status = read_stack(l, parts, elements / (int64_t)count, i, some, stored, error);
        if (status) break;
        if (unit > 1) cleat_from_torch_part(param, rank, some, stored, l->values.values);
        for (int64_t k = 0; k < some && l->added != 0; ++k) l->values.values[k] += l->added;
        status = l->target->write(l->target->user, param, i, some, l->values.values, error);
    }
    return status ? status : add_line(&l->report, CLEAT_WEIGHT_TAKEN, param->name, "", error);
}

/* Without an architecture, names and layouts are those of cleat. */
static void own_sources(const loader *l, const cleat_tensor *param, cleat_weight_sources *sources) {
    static const char *const heads[] = {"head.", "fc.", "cls.", "out.", "mlm."};
    const cleat_architecture *shared = l->target->shared;
    cleat_weight_sources row = {.head = true};
    const bool has_row = shared && cleat_architecture_sources(shared, l->target->model, false, param->name, &row);
    *sources = (cleat_weight_sources){.count = 1, .head = shared && (!has_row || row.head)};
    snprintf(sources->names[0], CLEAT_WEIGHT_NAME, "%s", param->name);
    for (size_t i = 0; i < sizeof heads / sizeof *heads; ++i)
        if (strncmp(param->name, heads[i], strlen(heads[i])) == 0) sources->head = true;
    if (strstr(param->name, ".lora_")) sources->head = true; /* adapters of this training */
}

/* PREFIX_mean [C] and PREFIX_var [C] are rows of PREFIX [2, C] in a checkpoint of cleat. *found: the file has it. */
static cleat_status load_own_statistics(loader *l, cleat_tensor *buffer, bool *found, cleat_error *error) {
    char name[CLEAT_NAME];
    const char *bar = strrchr(buffer->name, '_');
    *found = false;
    if (l->target->architecture || !buffer->is_buffer || buffer->rank != 1 || !bar) return CLEAT_OK;
    snprintf(name, sizeof name, "%.*s", (int)(bar - buffer->name), buffer->name);
    const cleat_st_tensor *stored = cleat_weights_find(l->weights, name);
    const int64_t channels = buffer->shape[0];
    if (!stored || stored->rank != 2 || stored->shape[0] != 2 || stored->shape[1] != channels) return CLEAT_OK;
    *found = true;
    mark(l, stored, USED);
    const int64_t row = strcmp(bar, "_var") == 0 ? channels : 0;
    cleat_status status = reserve(l, &l->values, channels, error);
    if (!status) status = cleat_weights_read_part(l->weights, stored, row, channels, l->values.values, error);
    if (!status) status = l->target->write(l->target->user, buffer, 0, channels, l->values.values, error);
    return status ? status : add_line(&l->report, CLEAT_WEIGHT_TAKEN, buffer->name, "", error);
}

/* Positions of images of another size. */
static cleat_status load_positions(loader *l, cleat_tensor *param, const cleat_st_tensor *stored, cleat_error *error) {
    const int64_t width = param->shape[1], rows = cleat_st_elements(stored) / width;
    int64_t from = 0, to = 0, prefix = 0;
    char reason[160];
    if (stored->shape[stored->rank - 1] != width || !cleat_positions_grids(rows, param->shape[0], &prefix, &from, &to))
        return wrong_shape(l, param, 1, stored, error);
    const int64_t elements = cleat_tensor_elements(param);
    mark(l, stored, USED);
    cleat_status status = reserve(l, &l->stored, rows * width, error);
    if (!status) status = reserve(l, &l->values, elements, error);
    if (!status) status = cleat_weights_read(l->weights, stored, l->stored.values, error);
    if (!status) status = cleat_positions_resample(l->stored.values, from, l->values.values, to, prefix, width, error);
    if (!status) status = l->target->write(l->target->user, param, 0, elements, l->values.values, error);
    snprintf(reason, sizeof reason, "resampled from %lld x %lld patches to %lld x %lld", (long long)from,
             (long long)from, (long long)to, (long long)to);
    return status ? status : add_line(&l->report, CLEAT_WEIGHT_TAKEN, param->name, reason, error);
}

/* The tensors of a parameter; false: some are missing. */
static bool find_parts(const loader *l, const cleat_weight_sources *sources, const cleat_st_tensor **parts) {
    for (size_t i = 0; i < sources->count; ++i) {
        parts[i] = find(l, sources->names[i]);
        if (!parts[i]) return false;
    }
    return true;
}

static bool find_sources(const loader *l, const cleat_tensor *param, bool other, cleat_weight_sources *sources) {
    if (l->target->architecture)
        return cleat_architecture_sources(l->target->architecture, l->target->model, other, param->name, sources);
    own_sources(l, param, sources);
    return !other;
}

static cleat_status load_one(loader *l, cleat_tensor *param, cleat_error *error) {
    const cleat_st_tensor *parts[CLEAT_WEIGHT_PARTS] = {NULL};
    cleat_weight_sources sources, others;
    bool found;
    cleat_status status = load_own_statistics(l, param, &found, error);
    if (status || found) return status;
    if (!find_sources(l, param, false, &sources)) return draw(l, param, NULL, 0, NULL, error);
    found = find_parts(l, &sources, parts);
    if (!found && find_sources(l, param, true, &others) && (found = find_parts(l, &others, parts))) sources = others;
    if (!found && sources.head) return draw(l, param, NULL, 0, NULL, error);
    l->layout = sources.rank == CLEAT_TRANSPOSED ? CLEAT_TRANSPOSED : 0;
    l->added = sources.added;
    if (!found)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: has no tensor '%s%s', the network's %s",
                          cleat_weights_path(l->weights), l->target->prefix, sources.names[0], param->name);
    if (sources.positions && !fits(l, param, 1, parts[0])) return load_positions(l, param, parts[0], error);
    for (size_t i = 0; i < sources.count; ++i) {
        if (fits(l, param, sources.count, parts[i])) continue;
        if (sources.head) return draw(l, param, parts, sources.count, parts[i], error);
        return wrong_shape(l, param, sources.count, parts[i], error);
    }
    if (sources.head && is_output(param) && l->target->other_labels)
        return draw_because(l, param, parts, sources.count, l->target->other_labels, error);
    if (sources.head && !keeps(l, param))
        return draw_because(l, param, parts, sources.count, "the file has other labels, or another order", error);
    return read_parts(l, param, parts, sources.count, error);
}

/* --- the rest ------------------------------------------------------------------------------------------------- */

/* Whether the name matches the pattern, in which each `*` stands for any text. */
static bool is_like(const char *pattern, const char *name) {
    const char *star = NULL, *resume = NULL;
    while (*name) {
        if (*pattern == '*') {
            star = pattern++;
            resume = name;
        } else if (*pattern == *name) {
            ++pattern;
            ++name;
        } else if (star) {
            pattern = star + 1;
            name = ++resume;
        } else {
            return false;
        }
    }
    while (*pattern == '*') ++pattern;
    return *pattern == 0;
}

static bool is_ignored(const cleat_architecture *architecture, const char *name) {
    for (const char *const *pattern = architecture ? architecture->ignored : NULL; pattern && *pattern; ++pattern)
        if (is_like(*pattern, name)) return true;
    return false;
}

/* Without its adapters, the network of a LoRA training is the one that it started from. */
static cleat_status fail_adapters(const loader *l, const char *name, cleat_error *error) {
    return cleat_fail(
        error, CLEAT_ERR_NOT_SUPPORTED,
        "%s: has adapters, such as '%s', that this network lacks: start from its cleat export --format hf or "
        "timm, which merges them, or set train.lora_rank and train.lora_layers as in that training",
        cleat_weights_path(l->weights), name);
}

/* Whether a tensor belongs to a block that the network lacks: a used one has the same name except for
 * numbers. */
static bool is_further(const loader *l, const char *name) {
    char pattern[CLEAT_WEIGHT_NAME], other[CLEAT_WEIGHT_NAME];
    generalise(name, pattern);
    if (!strchr(pattern, '*')) return false;
    for (size_t i = 0; i < cleat_weights_count(l->weights); ++i) {
        if (l->use[i] != USED) continue;
        generalise(cleat_weights_at(l->weights, i)->name, other);
        if (strcmp(pattern, other) == 0) return true;
    }
    return false;
}

/* The only number among the parts of a name; -1: there are several. */
static int64_t block_of(const char *name) {
    int64_t number = -1;
    for (; *name; name += strcspn(name, "."), name += *name == '.') {
        const size_t digits = strspn(name, "0123456789");
        if (digits == 0 || digits > 9 || (name[digits] != '.' && name[digits] != 0)) continue;
        if (number >= 0) return -1;
        number = strtoll(name, NULL, 10);
    }
    return number;
}

static void count_further(loader *l, const char *name) {
    cleat_weight_report *r = &l->report;
    const int64_t block = block_of(name);
    if (r->further == 0 || (r->further_first >= 0 && block < r->further_first)) r->further_first = block;
    if (r->further == 0 || block > r->further_last) r->further_last = block;
    if (r->further_first < 0) r->further_last = -1;
    ++r->further;
}

/* Marks the tensors of further blocks in `further` [tensors of the file], and writes the reason. */
static void find_further(loader *l, bool *further, char reason[160]) {
    cleat_weight_report *r = &l->report;
    for (size_t i = 0; i < cleat_weights_count(l->weights); ++i) {
        const char *name = cleat_weights_at(l->weights, i)->name;
        further[i] = l->use[i] == NOT_USED && !is_ignored(l->target->architecture, name) && is_further(l, name);
        if (further[i]) count_further(l, name);
    }
    cleat_weight_report_further(r, reason);
}

void cleat_weight_report_further(const cleat_weight_report *report, char text[160]) {
    if (report->further_first < 0)
        snprintf(text, 160, "further blocks of the file are not used");
    else if (report->further_first == report->further_last)
        snprintf(text, 160, "block %lld of the file is not used", (long long)report->further_first);
    else
        snprintf(text, 160, "blocks %lld to %lld of the file are not used", (long long)report->further_first,
                 (long long)report->further_last);
}

static cleat_status report_left(loader *l, cleat_error *error) {
    const size_t count = cleat_weights_count(l->weights);
    char further_reason[160];
    bool *further = cleat_alloc(count + 1, sizeof *further);
    if (!further) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", cleat_weights_path(l->weights));
    find_further(l, further, further_reason);
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < count && !status; ++i) {
        const char *name = cleat_weights_at(l->weights, i)->name;
        if (l->use[i] == USED) continue;
        const char *reason = l->use[i] == DRAWN_ANEW                     ? "initialised here"
                             : further[i]                                ? further_reason
                             : is_ignored(l->target->architecture, name) ? "not needed here"
                                                                         : "this network has no such parameter";
        status = !l->target->architecture && strstr(name, ".lora_")
                     ? fail_adapters(l, name, error)
                     : add_line(&l->report, CLEAT_WEIGHT_LEFT, name, reason, error);
    }
    cleat_free(further);
    return status;
}

static void loader_free(loader *l) {
    cleat_free(l->use);
    cleat_free(l->stored.values);
    cleat_free(l->values.values);
}

cleat_status cleat_weights_load(const cleat_weights *weights, const cleat_weight_target *target,
                                cleat_weight_report *report, cleat_error *error) {
    const cleat_store *store = target->store;
    loader l = {.weights = weights,
                .target = target,
                .bare = is_bare(target, weights),
                .use = cleat_alloc(cleat_weights_count(weights) + 1, sizeof *l.use)};
    cleat_status status = CLEAT_OK;
    if (!l.use)
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for the names of %zu tensors",
                            cleat_weights_path(weights), cleat_weights_count(weights));
    for (size_t i = 0; i < store->count && !status; ++i) status = load_one(&l, store->params[i], error);
    for (size_t i = 0; i < store->buffer_count && !status; ++i) status = load_one(&l, store->buffers[i], error);
    if (!status) status = report_left(&l, error);
    loader_free(&l);
    if (status) {
        cleat_weight_report_free(&l.report);
        return status;
    }
    *report = l.report;
    return CLEAT_OK;
}

cleat_status cleat_weights_load_one(const cleat_weights *weights, const cleat_weight_target *target,
                                    cleat_tensor *tensor, cleat_error *error) {
    loader l = {.weights = weights, .target = target, .bare = is_bare(target, weights)};
    cleat_status status = load_one(&l, tensor, error);
    loader_free(&l);
    cleat_weight_report_free(&l.report);
    return status;
}
