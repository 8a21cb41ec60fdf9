/* A convolution or linear layer with the batch normalisation that reads its result, as one node, on CPUs: the product's
 * kernel leaves the moments of its columns (cl/lib/moments.clh), so that the result is not read again for them.
 *
 * The node has the inputs of the product, then those of the normalisation but x, which is an output: the gradient reads it.
 * All functions see it as two nodes, each as its own op would have it. */
#include "ops/batch_norm.h"
#include "ops/conv/conv.h"
#include "ops/fusible.h"
#include "ops/lib/count.h"
#include "ops/linear/linear.h"

#include <string.h>

enum { CONV_IN = 3, LINEAR_IN = CLEAT_LINEAR_RESIDUAL + 1 }; /* inputs of the products */
enum { PRODUCT = CLEAT_BATCH_NORM_OUT, OUT };                /* outputs: those of the normalisation, then the product */
enum { WORKSPACE_STEP = 64 };

typedef struct normed_attr {
    unsigned char product[CLEAT_NORMED_PRODUCT_BYTES];
    cleat_batch_norm_attr norm;
} normed_attr;

static const cleat_op conv_norm, linear_norm;

static int product_inputs(const cleat_node *node) {
    return node->n_in - (CLEAT_BATCH_NORM_IN - 1);
}

/* The product, with its own op. */
static cleat_node product_of(const cleat_node *node) {
    cleat_node product = *node;
    product.op = node->op == &conv_norm ? &cleat_conv2d_op : &cleat_linear_op;
    product.n_in = product_inputs(node);
    product.n_out = 1;
    product.out[0] = node->out[PRODUCT];
    memcpy(product.attr, ((const normed_attr *)node->attr)->product, sizeof((normed_attr *)0)->product);
    return product;
}

/* The normalisation, which reads the product. */
static cleat_node norm_of(const cleat_node *node) {
    cleat_node norm = *node;
    norm.op = &cleat_batch_norm_op;
    norm.n_in = CLEAT_BATCH_NORM_IN;
    norm.n_out = CLEAT_BATCH_NORM_OUT;
    norm.in[CLEAT_BATCH_NORM_X] = node->out[PRODUCT];
    for (int i = 1; i < CLEAT_BATCH_NORM_IN; ++i) norm.in[i] = node->in[product_inputs(node) + i - 1];
    memcpy(norm.attr, &((const normed_attr *)node->attr)->norm, sizeof(cleat_batch_norm_attr));
    return norm;
}

static cleat_cost cost(const cleat_node *node) {
    const cleat_node product = product_of(node), norm = norm_of(node);
    const cleat_cost a = product.op->cost(&product), b = norm.op->cost(&norm);
    /* The moments do not read it. */
    return (cleat_cost){.flops = a.flops + b.flops,
                        .bytes = a.bytes + b.bytes - (double)cleat_tensor_bytes(node->out[PRODUCT]),
                        .work = CLEAT_WORK_PRODUCT};
}

static cleat_defined define(const cleat_node *node, cleat_host_values *values, int output, int64_t element) {
    if (output == PRODUCT) {
        const cleat_node product = product_of(node);
        return product.op->define(&product, values, 0, element);
    }
    const cleat_node norm = norm_of(node);
    cleat_host_values its = *values;
    its.in[CLEAT_BATCH_NORM_X] = values->out[PRODUCT];
    for (int i = 1; i < CLEAT_BATCH_NORM_IN; ++i) its.in[i] = values->in[product_inputs(node) + i - 1];
    const cleat_defined defined = norm.op->define(&norm, &its, output, element);
    values->work = its.work;
    values->kept = its.kept;
    return defined;
}

/* --- variants ------------------------------------------------------------------------------------------------- */

/* How a variant of the product computes it; parts: of the moments, 0 if its kernel leaves none. */
typedef struct product_form {
    const char *(*refuse)(const cleat_node *product, const cleat_device_facts *facts);
    int64_t (*workspace)(const cleat_node *product, const cleat_device_facts *facts);
    int64_t (*parts)(const cleat_node *product, const cleat_device_facts *facts);
    void (*bind)(const cleat_node *product, const cleat_moments *moments, cleat_binder *binder);
} product_form;

static cleat_moments moments_of(const cleat_node *node, const product_form *form, const cleat_node *product,
                                const cleat_device_facts *facts) {
    const cleat_tensor *x = node->out[PRODUCT];
    return (cleat_moments){.samples = node->in[product_inputs(node) + CLEAT_BATCH_NORM_SAMPLES - 1],
                           .at = form->workspace ? round_up(form->workspace(product, facts), WORKSPACE_STEP) : 0,
                           .parts = form->parts ? form->parts(product, facts) : 0,
                           .images = x->shape[0],
                           .columns = cleat_width(x)};
}

static const char *refuse(const product_form *form, const cleat_node *node, const cleat_device_facts *facts) {
    const cleat_node product = product_of(node);
    return form->refuse ? form->refuse(&product, facts) : NULL;
}

static int64_t workspace(const product_form *form, const cleat_node *node, const cleat_device_facts *facts) {
    const cleat_node product = product_of(node);
    const cleat_moments moments = moments_of(node, form, &product, facts);
    return moments.at + cleat_moments_bytes(&moments, node->out[PRODUCT], facts);
}

static void bind(const product_form *form, const cleat_node *node, cleat_binder *binder) {
    const cleat_node product = product_of(node), norm = norm_of(node);
    const cleat_moments moments = moments_of(node, form, &product, binder->facts);
    const size_t first = binder->count;
    form->bind(&product, &moments, binder);
    cleat_bind_batch_norm(&norm, &moments, binder);
    for (size_t i = first; i < binder->count; ++i) binder->launches[i].node = node;
}

#define VARIANT(id)                                                                                                    \
    static const char *refuse_##id(const cleat_node *node, const cleat_device_facts *facts) {                          \
        return refuse(&id, node, facts);                                                                               \
    }                                                                                                                  \
    static int64_t workspace_##id(const cleat_node *node, const cleat_device_facts *facts) {                           \
        return workspace(&id, node, facts);                                                                            \
    }                                                                                                                  \
    static void bind_##id(const cleat_node *node, cleat_binder *binder) {                                              \
        bind(&id, node, binder);                                                                                       \
    }
#define ROW(text, id)                                                                                                  \
    { .name = text, .refuse = refuse_##id, .workspace = workspace_##id, .bind = bind_##id }

static void conv_without_moments(const cleat_node *product, const cleat_moments *moments, cleat_binder *binder) {
    (void)moments;
    cleat_conv_bind_plain(product, binder);
}

static void linear_without_moments(const cleat_node *product, const cleat_moments *moments, cleat_binder *binder) {
    (void)moments;
    cleat_linear_bind_plain(product, binder);
}

static const product_form conv_winograd = {.refuse = cleat_refuse_conv_winograd,
                                           .workspace = cleat_workspace_conv_winograd,
                                           .parts = cleat_conv_winograd_parts,
                                           .bind = cleat_bind_conv_winograd_moments},
                          conv_cpu = {.refuse = cleat_refuse_conv_cpu,
                                      .parts = cleat_conv_cpu_parts,
                                      .bind = cleat_bind_conv_cpu_moments},
                          conv_plain = {.bind = conv_without_moments},
                          linear_cpu = {.refuse = cleat_refuse_linear_cpu,
                                        .workspace = cleat_workspace_linear_cpu,
                                        .parts = cleat_linear_cpu_parts,
                                        .bind = cleat_bind_linear_cpu_moments},
                          linear_plain = {.bind = linear_without_moments};
VARIANT(conv_winograd)
VARIANT(conv_cpu)
VARIANT(conv_plain)
VARIANT(linear_cpu)
VARIANT(linear_plain)

static const cleat_variant conv_variants[] = {
    ROW("winograd", conv_winograd), ROW("cpu", conv_cpu), ROW("plain", conv_plain), {0}};
static const cleat_variant linear_variants[] = {ROW("cpu", linear_cpu), ROW("plain", linear_plain), {0}};

/* --- fusion --------------------------------------------------------------------------------------------------- */

/* y may overwrite the residual, the last input. */
static const cleat_op conv_norm = {.name = "conv2d_batch_norm",
                                   .discontinuous = true,
                                   .cost = cost,
                                   .variants = conv_variants,
                                   .define = define,
                                   .inplace_inputs = CLEAT_IN(CONV_IN + CLEAT_BATCH_NORM_RESIDUAL - 1)};
static const cleat_op linear_norm = {.name = "linear_batch_norm",
                                     .discontinuous = true,
                                     .cost = cost,
                                     .variants = linear_variants,
                                     .define = define,
                                     .inplace_inputs = CLEAT_IN(LINEAR_IN + CLEAT_BATCH_NORM_RESIDUAL - 1)};

bool cleat_batch_norm_fuse_product(cleat_node *node, const cleat_node *producer, bool wide) {
    const bool conv = producer->op == &cleat_conv2d_op, linear = producer->op == &cleat_linear_op;
    cleat_tensor *x = node->in[CLEAT_BATCH_NORM_X];
    if (!wide || !(conv || linear) || x->producer != producer || node->in[CLEAT_BATCH_NORM_RESIDUAL] == x) return false;
    if (producer->n_in + CLEAT_BATCH_NORM_IN - 1 > CLEAT_MAX_IN) return false;
    normed_attr attr = {.norm = *(const cleat_batch_norm_attr *)node->attr};
    memcpy(attr.product, producer->attr, sizeof attr.product);
    cleat_tensor *own[CLEAT_BATCH_NORM_IN];
    memcpy(own, node->in, sizeof own);
    for (int i = 0; i < producer->n_in; ++i) node->in[i] = producer->in[i];
    for (int i = 1; i < CLEAT_BATCH_NORM_IN; ++i) node->in[producer->n_in + i - 1] = own[i];
    node->op = conv ? &conv_norm : &linear_norm;
    node->n_in = producer->n_in + CLEAT_BATCH_NORM_IN - 1;
    if (node->n_out <= CLEAT_BATCH_NORM_STATISTICS) node->out[CLEAT_BATCH_NORM_STATISTICS] = NULL;
    node->n_out = OUT;
    node->out[PRODUCT] = x;
    memcpy(node->attr, &attr, sizeof attr);
    return true;
}
