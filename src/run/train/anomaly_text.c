/* Words an anomaly as a message for the user. */
#include "train/anomaly_text.h"

#include <math.h>
#include <stdio.h>

/* Operands of at most this magnitude do not overflow f32 in any op, exp included. */
static const float ordinary = 80.0f;

/* "[1, 3, 5]" */
static void format_index(const cleat_tensor *tensor, int64_t element, cleat_string *text) {
    int64_t at[CLEAT_MAX_RANK];
    for (int d = tensor->rank; d-- > 0; element /= tensor->shape[d]) at[d] = element % tensor->shape[d];
    for (int d = 0; d < tensor->rank; ++d) cleat_string_add(text, "%s%lld", d ? ", " : "[", (long long)at[d]);
    cleat_string_add(text, "]");
}

/* Names the sample of the element, if the first dimension of the tensor is the batch. */
static void format_sample(const cleat_tensor *tensor, int64_t element, const cleat_anomaly_context *context,
                          cleat_string *text) {
    bool of_batch = tensor->role == CLEAT_ROLE_ACTIVATION || tensor->role == CLEAT_ROLE_INPUT;
    if (!context->micro_batch || !of_batch || tensor->rank == 0 || tensor->shape[0] != context->slots) return;
    int64_t slot = element / (cleat_tensor_elements(tensor) / context->slots);
    if (slot < context->micro_batch->count)
        cleat_string_add(text, " (sample %s)", cleat_dataset_id(context->dataset, context->micro_batch->samples[slot]));
    else
        cleat_string_add(text, " (a padding slot without a sample)");
}

/* "is nan at [1, 3] (sample a); 2 of 64 elements are not finite, the largest of the others is 1.5" */
static void format_elements(const cleat_tensor *tensor, const cleat_scan *scan, const cleat_anomaly_context *context,
                            cleat_string *text) {
    cleat_string_add(text, "is %g at ", (double)scan->value);
    format_index(tensor, scan->first, text);
    format_sample(tensor, scan->first, context, text);
    cleat_string_add(text, "; %lld of %lld elements are not finite", (long long)scan->bad, (long long)scan->elements);
    if (scan->bad < scan->elements) cleat_string_add(text, ", the largest finite one is %g", (double)scan->largest);
}

static void format_tensor(const cleat_tensor *tensor, cleat_string *text) {
    char shape[128];
    cleat_tensor_describe(tensor, shape, sizeof shape);
    cleat_string_add(text, "'%s' (%s)", tensor->name, shape);
}

static void format_operands(const cleat_anomaly *anomaly, cleat_string *text) {
    const char *before = ". Its operands: ";
    for (int i = 0; i < anomaly->node->n_in; ++i) {
        if (anomaly->read[i].elements == 0) continue;
        cleat_string_add(text, "%s'%s' up to %g", before, anomaly->node->in[i]->name, (double)anomaly->read[i].largest);
        before = ", ";
    }
    cleat_string_add(text, ". ");
}

static float largest_operand(const cleat_anomaly *anomaly) {
    float largest = 0;
    for (int i = 0; i < anomaly->node->n_in; ++i) largest = fmaxf(largest, anomaly->read[i].largest);
    return largest;
}

/* The operands of the node were finite, and its result is not. */
static void format_computed_cause(const cleat_anomaly *anomaly, bool backward, const cleat_anomaly_context *context,
                                  cleat_string *text) {
    if (anomaly->tensor->dtype == CLEAT_F16 && backward && context->scaled)
        cleat_string_add(
            text, "f16 overflows above 65504: the loss scale was too high for this gradient. It is reduced "
                  "automatically; if it falls below 1, use train.precision = bf16 or a smaller train.learning_rate");
    else if (anomaly->tensor->dtype == CLEAT_F16)
        cleat_string_add(text, "f16 overflows above 65504: train.precision = bf16 or f32 can represent the value; a "
                               "smaller train.learning_rate keeps activations smaller");
    else if (largest_operand(anomaly) <= ordinary)
        cleat_string_add(text,
                         "Operands of this size do not overflow: the cause is a division by 0, a root or logarithm "
                         "outside its domain, or a driver that computes wrong results, which `cleat verify` detects");
    else
        cleat_string_add(text, "Operands this large overflow in intermediate results: a smaller train.learning_rate or "
                               "train.max_grad_norm, or a longer warm-up, may help");
}

/* The tensor is a half weight of a parameter. */
static void format_copy_cause(const cleat_tensor *copy, const cleat_anomaly_context *context, cleat_string *text) {
    if (context->parameter && isfinite(*context->parameter))
        cleat_string_add(text,
                         ". The parameter is %g there, and %s: train.precision = %s can represent it; a smaller "
                         "train.learning_rate, or a larger train.weight_decay, keeps parameters smaller",
                         (double)*context->parameter,
                         copy->dtype == CLEAT_F16 ? "f16 overflows above 65504" : "bf16 overflows above 3.39e38",
                         copy->dtype == CLEAT_F16 ? "bf16 or f32" : "f32");
    else
        cleat_string_add(text, ". It is the compute copy of a parameter that was already not finite before the step: "
                               "resume from an earlier checkpoint, with a smaller train.learning_rate");
}

/* The tensor was not finite before any node ran. */
static void format_prior_cause(const cleat_tensor *tensor, const cleat_anomaly_context *context, cleat_string *text) {
    switch (tensor->role) {
    case CLEAT_ROLE_HALF_WEIGHT:
        format_copy_cause(tensor, context, text);
        break;
    case CLEAT_ROLE_PARAMETER:
        cleat_string_add(text, ". This parameter was already not finite before the step: resume from an earlier "
                               "checkpoint, with a smaller train.learning_rate");
        break;
    case CLEAT_ROLE_GRADIENT:
        cleat_string_add(text, ". These gradients were already not finite before the nodes that read them ran");
        break;
    default:
        cleat_string_add(text, ". It was already not finite before the step: resume from an earlier checkpoint");
    }
}

/* Describes the input that made the result not finite. */
static void format_source(const cleat_anomaly *anomaly, const cleat_anomaly_context *context, cleat_string *text) {
    cleat_string_add(text, "The input ");
    format_tensor(anomaly->source, text);
    cleat_string_add(text, " ");
    format_elements(anomaly->source, &anomaly->source_scan, context, text);
    bool data = cleat_dataset_find_field(context->dataset, anomaly->source->name) >= 0;
    cleat_string_add(text, "; it reached ");
    format_tensor(anomaly->tensor, text);
    cleat_string_add(text, " through op %s at %s. %s", anomaly->node->op->name, anomaly->node->name,
                     data ? "The value comes from the data: correct that sample, or remove it"
                          : "The input is filled by the runtime, not from the data: please report this as a bug");
}

void cleat_anomaly_format(const cleat_anomaly *anomaly, const cleat_anomaly_context *context, cleat_string *text) {
    const cleat_node *node = anomaly->node;
    if (anomaly->source) {
        format_source(anomaly, context, text);
        return;
    }
    bool backward = node && (size_t)node->index >= context->graph->forward_nodes;
    cleat_string_add(text, "first tensor that is not finite: ");
    format_tensor(anomaly->tensor, text);
    if (node)
        cleat_string_add(text, ", by op %s at %s (%s)", node->op->name, node->name, backward ? "backward" : "forward");
    cleat_string_add(text, ", ");
    format_elements(anomaly->tensor, &anomaly->scan, context, text);
    if (!node) {
        format_prior_cause(anomaly->tensor, context, text);
        return;
    }
    format_operands(anomaly, text);
    format_computed_cause(anomaly, backward, context, text);
}
