/* Definitions of an LSTM layer and its gradient. A step is defined by the kernel's own result of the previous
 * step: if each step is correct, the recurrence is. The gradient of a whole layer does not write its steps:
 * they are computed here. */
#include "core/memory.h"
#include "ops/lib/define.h"
#include "ops/lstm/lstm.h"

enum { INPUT, FORGET, CELL, OUTPUT };

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

/* Where the gates and the cell state of step `at` (of B L) are stored, and the step that is stored at `place`. */
static int64_t place_of(const cleat_lstm_size *s, int64_t at) {
    return s->time_major ? at % s->length * s->batch + at / s->length : at;
}
static int64_t step_at(const cleat_lstm_size *s, int64_t place) {
    return s->time_major ? place % s->batch * s->length + place / s->batch : place;
}

/* --- forward -------------------------------------------------------------------------------------------------- */

/* Row `row` (of 4 H) of the products at step `at` (of B L), and whether at is the first step of its sample. */
static cleat_expected_value define_sum(const cleat_node *node, cleat_host_values *values, int64_t at, int64_t row) {
    const cleat_lstm_size s = cleat_lstm_size_of(node);
    const float *weight = values->in[CLEAT_LSTM_WEIGHT].f, *weight_ih = values->in[CLEAT_LSTM_WEIGHT_IH].f;
    cleat_expected_value sum = cleat_define_begin(values, CLEAT_LSTM_BIAS, row);
    if (values->in[CLEAT_LSTM_PRODUCTS].f)
        cleat_define_add(&sum, cleat_host_value(values, CLEAT_LSTM_PRODUCTS, at * 4 * s.hidden + row));
    for (int64_t k = 0; k < s.inputs; ++k)
        cleat_define_add(&sum,
                         (double)values->in[CLEAT_LSTM_X].f[at * s.inputs + k] * (double)weight_ih[row * s.inputs + k]);
    for (int64_t k = 0; at % s.length > 0 && k < s.hidden; ++k)
        cleat_define_add(&sum, (double)values->out[CLEAT_LSTM_H].f[(at - 1) * s.hidden + k] *
                                   (double)weight[row * s.hidden + k]);
    values->work += (double)(s.inputs + s.hidden);
    sum.rounded = sum.size;
    return sum;
}

/* Slopes of sigmoid and tanh are at most 1. */
static cleat_expected_value define_gate(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const cleat_lstm_size s = cleat_lstm_size_of(node);
    const int64_t row = element % (4 * s.hidden);
    cleat_expected_value gate = define_sum(node, values, step_at(&s, element / (4 * s.hidden)), row);
    gate.value = row / s.hidden == CELL ? tanh(gate.value) : sigmoid(gate.value);
    gate.size += 1;
    return gate;
}

static double gate_of(const cleat_host_values *values, const cleat_lstm_size *s, int64_t at, int64_t unit, int gate) {
    return (double)values->out[CLEAT_LSTM_GATES].f[(place_of(s, at) * 4 + gate) * s->hidden + unit];
}
static double state_of(const cleat_host_values *values, const cleat_lstm_size *s, int64_t at, int64_t unit) {
    return (double)values->out[CLEAT_LSTM_CELLS].f[place_of(s, at) * s->hidden + unit];
}

cleat_expected_value cleat_lstm_define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const cleat_lstm_size s = cleat_lstm_size_of(node);
    const int64_t place = element / s.hidden, unit = element % s.hidden;
    if (values->output == CLEAT_LSTM_GATES) return define_gate(node, values, element);
    if (values->output == CLEAT_LSTM_H) {
        const double state = state_of(values, &s, place, unit), size = 1 + fabs(state);
        return (cleat_expected_value){
            .value = gate_of(values, &s, place, unit, OUTPUT) * tanh(state), .size = size, .rounded = size};
    }
    const int64_t at = step_at(&s, place);
    const double before = at % s.length ? state_of(values, &s, at - 1, unit) : 0;
    cleat_expected_value c = {.value = 0};
    cleat_define_add(&c, gate_of(values, &s, at, unit, FORGET) * before);
    cleat_define_add(&c, gate_of(values, &s, at, unit, INPUT) * gate_of(values, &s, at, unit, CELL));
    c.rounded = c.size;
    return c;
}

/* --- gradient: out = {dproducts, dweight} --------------------------------------------------------------------- */

enum { DPRODUCTS, DWEIGHT };

/* Gates and cell states that the forward pass saved; 0 past the end of a sample. */
typedef struct cell {
    double gate[4], c, before;
} cell;

static cell cell_of(const cleat_host_values *values, const cleat_lstm_size *s, int64_t at, int64_t unit) {
    const int64_t place = place_of(s, at);
    cell of = {.c = cleat_host_value(values, CLEAT_LSTM_GRAD_CELLS, place * s->hidden + unit)};
    for (int g = 0; g < 4; ++g)
        of.gate[g] = cleat_host_value(values, CLEAT_LSTM_GRAD_GATES, (place * 4 + g) * s->hidden + unit);
    if (at % s->length)
        of.before = cleat_host_value(values, CLEAT_LSTM_GRAD_CELLS, place_of(s, at - 1) * s->hidden + unit);
    return of;
}

/* The gradient of h at step `at`: the incoming gradient plus the gradients of the next step's products. */
static cleat_expected_value define_dh(cleat_host_values *values, const cleat_lstm_size *s, int64_t at, int64_t unit) {
    const float *next = values->out[DPRODUCTS].f + (at + 1) * 4 * s->hidden,
                *weight = values->in[CLEAT_LSTM_GRAD_WEIGHT].f;
    cleat_expected_value dh = cleat_define_begin(values, CLEAT_LSTM_GRAD_DH, at * s->hidden + unit);
    for (int64_t row = 0; at % s->length + 1 < s->length && row < 4 * s->hidden; ++row)
        cleat_define_add(&dh, (double)next[row] * (double)weight[row * s->hidden + unit]);
    values->work += 4 * (double)s->hidden;
    return dh;
}

/* The gradient of the cell state, which is not stored: from the last step of the sample to step `at`. */
static cleat_expected_value define_dc(cleat_host_values *values, const cleat_lstm_size *s, int64_t at, int64_t unit,
                                      cleat_expected_value *dh) {
    cleat_expected_value dc = {.value = 0};
    for (int64_t step = at - at % s->length + s->length - 1; step >= at; --step) {
        const cell of = cell_of(values, s, step, unit);
        const double t = tanh(of.c), slope = of.gate[OUTPUT] * (1 - t * t);
        *dh = define_dh(values, s, step, unit);
        dc.value += dh->value * slope;
        dc.size += dh->size * (fabs(slope) + fabs(of.gate[OUTPUT])); /* 1 - t t may cancel */
        if (step == at) break;
        dc.value *= of.gate[FORGET];
        dc.size *= fabs(of.gate[FORGET]);
    }
    return dc;
}

static cleat_expected_value define_dproduct(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const cleat_lstm_size s = cleat_lstm_size_of(node);
    const int64_t at = element / (4 * s.hidden), gate = element / s.hidden % 4, unit = element % s.hidden;
    const cell of = cell_of(values, &s, at, unit);
    cleat_expected_value dh = {.value = 0}, sum = define_dc(values, &s, at, unit, &dh);
    const double g = of.gate[gate], slope = gate == CELL ? 1 - g * g : g * (1 - g);
    const double with = gate == INPUT    ? of.gate[CELL]
                        : gate == FORGET ? of.before
                        : gate == CELL   ? of.gate[INPUT]
                                         : tanh(of.c);
    const cleat_expected_value from = gate == OUTPUT ? dh : sum;
    const double size = from.size * fabs(with) * (fabs(slope) + fabs(g));
    return (cleat_expected_value){.value = from.value * with * slope, .size = size, .rounded = size};
}

/* dweight[row, k]: a sum over all steps but the first of each sample. NaN, which is not compared, if the
 * products have no gradient, because it would take all steps of all samples. */
static cleat_expected_value define_dweight(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const cleat_lstm_size s = cleat_lstm_size_of(node);
    const int64_t row = element / s.hidden, k = element % s.hidden;
    cleat_expected_value sum = cleat_define_begin(values, CLEAT_LSTM_GRAD_IN + DWEIGHT, element);
    if (!values->out[DPRODUCTS].f) return (cleat_expected_value){.value = NAN};
    for (int64_t at = 0; at < s.batch * s.length; ++at)
        if (at % s.length)
            cleat_define_add(&sum, (double)values->out[DPRODUCTS].f[at * 4 * s.hidden + row] *
                                       cleat_host_value(values, CLEAT_LSTM_GRAD_H, (at - 1) * s.hidden + k));
    values->work += (double)(s.batch * s.length);
    sum.rounded = sum.size;
    return sum;
}

cleat_expected_value cleat_lstm_define_grad(const cleat_node *node, cleat_host_values *values, int64_t element) {
    return values->output == DPRODUCTS ? define_dproduct(node, values, element) : define_dweight(node, values, element);
}

/* --- gradient of a whole layer: out = {dx, dweight_hh, dweight_ih, dbias} --------------------------------------- */

/* dh[unit] += sum of row[k] weight[k, unit], k < 4 H */
static void add_product(const double *row, const float *weight, int64_t hidden, double *dh) {
    for (int64_t k = 0; k < 4 * hidden; ++k)
        for (int64_t unit = 0; unit < hidden; ++unit) dh[unit] += row[k] * (double)weight[k * hidden + unit];
}

/* Steps of sample b, the last one first. dproducts [B, L, 4 H]; dh, dc [H]: room. */
static void fill_sample(const cleat_host_values *values, const cleat_lstm_size *s, int64_t b, double *dproducts,
                        double *dh, double *dc) {
    for (int64_t unit = 0; unit < s->hidden; ++unit) dc[unit] = 0;
    for (int64_t at = (b + 1) * s->length - 1; at >= b * s->length; --at) {
        double *row = dproducts + at * 4 * s->hidden;
        for (int64_t unit = 0; unit < s->hidden; ++unit)
            dh[unit] = cleat_host_value(values, CLEAT_LSTM_GRAD_DH, at * s->hidden + unit);
        if ((at + 1) % s->length) add_product(row + 4 * s->hidden, values->in[CLEAT_LSTM_GRAD_WEIGHT].f, s->hidden, dh);
        for (int64_t unit = 0; unit < s->hidden; ++unit) {
            const cell of = cell_of(values, s, at, unit);
            const double t = tanh(of.c), *g = of.gate, d = dc[unit] + dh[unit] * g[OUTPUT] * (1 - t * t);
            row[INPUT * s->hidden + unit] = d * g[CELL] * g[INPUT] * (1 - g[INPUT]);
            row[FORGET * s->hidden + unit] = d * of.before * g[FORGET] * (1 - g[FORGET]);
            row[CELL * s->hidden + unit] = d * g[INPUT] * (1 - g[CELL] * g[CELL]);
            row[OUTPUT * s->hidden + unit] = dh[unit] * t * g[OUTPUT] * (1 - g[OUTPUT]);
            dc[unit] = d * g[FORGET];
        }
    }
}

/* The gradients of the products [B, L, 4 H], computed for the first element that needs them. NULL if they
 * would take too long, or if memory is short. */
static const double *dproducts_of(const cleat_lstm_size *s, cleat_host_values *values) {
    const double most_products = 4e9;
    const int64_t steps = s->batch * s->length;
    if (values->kept || (double)steps * 4 * (double)(s->hidden * s->hidden) > most_products) return values->kept;
    values->kept = cleat_alloc((size_t)((steps * 4 + 2) * s->hidden), sizeof *values->kept);
    if (!values->kept) return NULL;
    double *dh = values->kept + steps * 4 * s->hidden, *dc = dh + s->hidden;
    for (int64_t b = 0; b < s->batch; ++b) fill_sample(values, s, b, values->kept, dh, dc);
    return values->kept;
}

/* dx[at, i], of B L steps. */
static cleat_expected_value define_dx(const cleat_lstm_size *s, cleat_host_values *values, const double *dproducts,
                                      int64_t element) {
    const int64_t at = element / s->inputs, i = element % s->inputs;
    cleat_expected_value sum = cleat_define_begin(values, CLEAT_LSTM_LAYER_GRAD_IN + CLEAT_LSTM_DX, element);
    for (int64_t row = 0; row < 4 * s->hidden; ++row)
        cleat_define_add(&sum, dproducts[at * 4 * s->hidden + row] *
                                   cleat_host_value(values, CLEAT_LSTM_GRAD_WEIGHT_IH, row * s->inputs + i));
    values->work += 4 * (double)s->hidden;
    return sum;
}

/* Element k of the factor of step `at`: h of the previous step, x, or 1. */
static double factor_of(const cleat_lstm_size *s, const cleat_host_values *values, int output, int64_t at, int64_t k) {
    if (output == CLEAT_LSTM_DBIAS) return 1;
    if (output == CLEAT_LSTM_DWEIGHT_IH) return cleat_host_value(values, CLEAT_LSTM_GRAD_X, at * s->inputs + k);
    return at % s->length ? cleat_host_value(values, CLEAT_LSTM_GRAD_H, (at - 1) * s->hidden + k) : 0;
}

cleat_expected_value cleat_lstm_define_layer_grad(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const cleat_lstm_size s = cleat_lstm_size_of(node);
    const double *dproducts = dproducts_of(&s, values);
    if (!dproducts) return (cleat_expected_value){.value = NAN};
    cleat_expected_value sum;
    if (values->output == CLEAT_LSTM_DX) {
        sum = define_dx(&s, values, dproducts, element);
    } else {
        const int64_t width = values->output == CLEAT_LSTM_DBIAS        ? 1
                              : values->output == CLEAT_LSTM_DWEIGHT_IH ? s.inputs
                                                                        : s.hidden;
        const int64_t row = element / width, k = element % width;
        sum = cleat_define_begin(values, CLEAT_LSTM_LAYER_GRAD_IN + values->output, element);
        for (int64_t at = 0; at < s.batch * s.length; ++at)
            cleat_define_add(&sum, dproducts[at * 4 * s.hidden + row] * factor_of(&s, values, values->output, at, k));
        values->work += (double)(s.batch * s.length);
    }
    sum.rounded = sum.size;
    return sum;
}
