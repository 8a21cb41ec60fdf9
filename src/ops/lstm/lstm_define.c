/* Definitions of an LSTM layer and its gradient. A step is defined by what the kernel itself wrote for the step before:
 * if every step is correct, so are all. */
#include "ops/lib/define.h"
#include "ops/lstm/lstm.h"

enum { INPUT, FORGET, CELL, OUTPUT };

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

/* --- forward -------------------------------------------------------------------------------------------------- */

/* Row `row` (of 4 H) of the products at step `at` (of B L), and whether at is the first step of its sample. */
static cleat_defined define_sum(const cleat_node *node, cleat_host_values *values, int64_t at, int64_t row) {
    const cleat_lstm_size s = cleat_lstm_size_of(node);
    const float *weight = values->in[CLEAT_LSTM_WEIGHT].f, *weight_ih = values->in[CLEAT_LSTM_WEIGHT_IH].f;
    cleat_defined sum = cleat_define_begin(values, CLEAT_LSTM_BIAS, row);
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
static cleat_defined define_gate(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const cleat_lstm_size s = cleat_lstm_size_of(node);
    const int64_t row = element % (4 * s.hidden);
    cleat_defined gate = define_sum(node, values, element / (4 * s.hidden), row);
    gate.value = row / s.hidden == CELL ? tanh(gate.value) : sigmoid(gate.value);
    gate.size += 1;
    return gate;
}

static double gate_of(const cleat_host_values *values, const cleat_lstm_size *s, int64_t cell, int gate) {
    return (double)values->out[CLEAT_LSTM_GATES].f[(cell / s->hidden * 4 + gate) * s->hidden + cell % s->hidden];
}

cleat_defined cleat_lstm_define(const cleat_node *node, cleat_host_values *values, int output, int64_t element) {
    const cleat_lstm_size s = cleat_lstm_size_of(node);
    if (output == CLEAT_LSTM_GATES) return define_gate(node, values, element);
    if (output == CLEAT_LSTM_H) {
        const double c = tanh((double)values->out[CLEAT_LSTM_CELLS].f[element]),
                     o = gate_of(values, &s, element, OUTPUT);
        const double size = 1 + fabs((double)values->out[CLEAT_LSTM_CELLS].f[element]);
        return (cleat_defined){.value = o * c, .size = size, .rounded = size};
    }
    const bool first = element / s.hidden % s.length == 0;
    const double before = first ? 0 : (double)values->out[CLEAT_LSTM_CELLS].f[element - s.hidden];
    cleat_defined c = {.value = 0};
    cleat_define_add(&c, gate_of(values, &s, element, FORGET) * before);
    cleat_define_add(&c, gate_of(values, &s, element, INPUT) * gate_of(values, &s, element, CELL));
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
    cell of = {.c = cleat_host_value(values, CLEAT_LSTM_GRAD_CELLS, at * s->hidden + unit)};
    for (int g = 0; g < 4; ++g)
        of.gate[g] = cleat_host_value(values, CLEAT_LSTM_GRAD_GATES, (at * 4 + g) * s->hidden + unit);
    if (at % s->length) of.before = cleat_host_value(values, CLEAT_LSTM_GRAD_CELLS, (at - 1) * s->hidden + unit);
    return of;
}

/* The gradient of h at step `at`: what arrives, and what the gradients of the next step's products give back. */
static cleat_defined define_dh(cleat_host_values *values, const cleat_lstm_size *s, int64_t at, int64_t unit) {
    const float *next = values->out[DPRODUCTS].f + (at + 1) * 4 * s->hidden,
                *weight = values->in[CLEAT_LSTM_GRAD_WEIGHT].f;
    cleat_defined dh = cleat_define_begin(values, CLEAT_LSTM_GRAD_DH, at * s->hidden + unit);
    for (int64_t row = 0; at % s->length + 1 < s->length && row < 4 * s->hidden; ++row)
        cleat_define_add(&dh, (double)next[row] * (double)weight[row * s->hidden + unit]);
    values->work += 4 * (double)s->hidden;
    return dh;
}

/* The gradient of the cell state, which is not stored: from the last step of the sample to step `at`. */
static cleat_defined define_dc(cleat_host_values *values, const cleat_lstm_size *s, int64_t at, int64_t unit,
                               cleat_defined *dh) {
    cleat_defined dc = {.value = 0};
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

static cleat_defined define_dproduct(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const cleat_lstm_size s = cleat_lstm_size_of(node);
    const int64_t at = element / (4 * s.hidden), gate = element / s.hidden % 4, unit = element % s.hidden;
    const cell of = cell_of(values, &s, at, unit);
    cleat_defined dh = {.value = 0}, sum = define_dc(values, &s, at, unit, &dh);
    const double g = of.gate[gate], slope = gate == CELL ? 1 - g * g : g * (1 - g);
    const double with = gate == INPUT    ? of.gate[CELL]
                        : gate == FORGET ? of.before
                        : gate == CELL   ? of.gate[INPUT]
                                         : tanh(of.c);
    const cleat_defined from = gate == OUTPUT ? dh : sum;
    const double size = from.size * fabs(with) * (fabs(slope) + fabs(g));
    return (cleat_defined){.value = from.value * with * slope, .size = size, .rounded = size};
}

/* dweight[row, k]: a sum over the steps but the first of each sample. Not a number, which is not compared, where the
 * products have no gradient: it would take all steps of all samples. */
static cleat_defined define_dweight(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const cleat_lstm_size s = cleat_lstm_size_of(node);
    const int64_t row = element / s.hidden, k = element % s.hidden;
    cleat_defined sum = cleat_define_begin(values, CLEAT_LSTM_GRAD_IN + DWEIGHT, element);
    if (!values->out[DPRODUCTS].f) return (cleat_defined){.value = NAN};
    for (int64_t at = 0; at < s.batch * s.length; ++at)
        if (at % s.length)
            cleat_define_add(&sum, (double)values->out[DPRODUCTS].f[at * 4 * s.hidden + row] *
                                       cleat_host_value(values, CLEAT_LSTM_GRAD_H, (at - 1) * s.hidden + k));
    values->work += (double)(s.batch * s.length);
    sum.rounded = sum.size;
    return sum;
}

cleat_defined cleat_lstm_define_grad(const cleat_node *node, cleat_host_values *values, int output, int64_t element) {
    return output == DPRODUCTS ? define_dproduct(node, values, element) : define_dweight(node, values, element);
}
