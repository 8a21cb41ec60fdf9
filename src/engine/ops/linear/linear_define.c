/* Definition of the linear ops: an element is a dot product. */
#include "ops/lib/define.h"
#include "ops/linear/linear.h"

/* Indices of the operands among the inputs of a node; -1: it has none. */
typedef struct operands {
    int a, b, bias, accum, saved, sums_accum;
} operands;

static int index_of(const cleat_node *node, const cleat_tensor *tensor, int from) {
    for (int i = from; tensor && i < node->n_in; ++i)
        if (node->in[i] == tensor) return i;
    return -1;
}

/* The accumulator may be the same tensor as an operand, but comes after the two operands. */
static operands operands_of(const cleat_node *node, const cleat_gemm *p) {
    return (operands){.a = 0,
                      .b = p->b ? 1 : -1,
                      .bias = index_of(node, p->bias, p->b ? 2 : 1),
                      .accum = index_of(node, p->accum, 2),
                      .saved = p->epilogue == CLEAT_EPILOGUE_RELU_GRAD || p->epilogue == CLEAT_EPILOGUE_GELU_GRAD
                                   ? index_of(node, p->saved, 2)
                                   : -1,
                      .sums_accum = index_of(node, p->sums_accum, 1)};
}

static void add(cleat_expected_value *sum, const cleat_host_values *values, int in, int64_t i) {
    if (in >= 0) cleat_define_add(sum, cleat_host_value(values, in, i));
}

/* A long sum in f32 loses terms below half a digit of what was added before. They may all have one direction: the
 * gradient of the 49,152 logits of SmolLM2, thousands of whose tokens were never seen and have the same embedding, is
 * 1,950 roundings off. */
static cleat_expected_value of_terms(cleat_expected_value sum, int64_t count) {
    enum { FEW = 1024 };
    sum.size *= fmax(1, (double)count / FEW);
    return sum;
}

/* sums[m] */
static cleat_expected_value define_sum(const cleat_gemm *p, const operands *of, cleat_host_values *values, int64_t m) {
    cleat_expected_value sum = {.value = 0};
    add(&sum, values, of->sums_accum, m);
    for (int64_t k = 0; k < p->k; ++k) cleat_define_add(&sum, (double)values->in[of->a].f[k * p->m + m]);
    values->work += (double)p->k;
    return of_terms(sum, p->k);
}

/* C[m, n] before the epilogue. */
static cleat_expected_value define_product(const cleat_gemm *p, const operands *of, cleat_host_values *values,
                                           int64_t m, int64_t n) {
    const float *a = values->in[of->a].f + (p->trans_a ? m : m * p->k);
    const float *b = values->in[of->b].f + (p->trans_b ? n * p->k : n);
    const int64_t a_step = p->trans_a ? p->m : 1, b_step = p->trans_b ? 1 : p->n;
    cleat_expected_value sum = {.value = 0};
    add(&sum, values, of->bias, n);
    add(&sum, values, of->accum, m * p->n + n);
    for (int64_t k = 0; k < p->k; ++k) cleat_define_add(&sum, (double)a[k * a_step] * (double)b[k * b_step]);
    values->work += (double)p->k;
    return of_terms(sum, p->k);
}

/* Slopes of GELU are below 1.13. */
static cleat_expected_value apply(cleat_epilogue epilogue, cleat_expected_value sum, double saved) {
    switch (epilogue) {
    case CLEAT_EPILOGUE_RELU:
        return (cleat_expected_value){.value = fmax(sum.value, 0), .size = sum.size};
    case CLEAT_EPILOGUE_GELU:
        return (cleat_expected_value){.value = cleat_define_gelu(sum.value), .size = 2 * sum.size};
    case CLEAT_EPILOGUE_RELU_GRAD:
        return saved > 0 ? sum : (cleat_expected_value){.value = 0};
    case CLEAT_EPILOGUE_GELU_GRAD: {
        const double slope = cleat_define_gelu_slope(saved);
        return (cleat_expected_value){.value = sum.value * slope, .size = sum.size * (fabs(slope) + 1)};
    }
    case CLEAT_EPILOGUE_NONE:
        break;
    }
    return sum;
}

cleat_expected_value cleat_linear_define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const cleat_gemm p = cleat_linear_gemm(node);
    const operands of = operands_of(node, &p);
    if (node->out[values->output] == p.sums) return define_sum(&p, &of, values, element);
    cleat_expected_value sum = define_product(&p, &of, values, element / p.n, element % p.n);
    if (cleat_linear_blocks(&p)) sum.rounded += sum.size; /* for matrix units, to the storage type */
    if (values->output == 1) return sum;                  /* input of an activation's gradient */
    return apply(p.epilogue, sum, of.saved < 0 ? 0 : cleat_host_value(values, of.saved, element));
}
