/* Finite check of outputs on the host, where they are read anyway. */
#include "train/output_check.h"

#include <math.h>
#include <stdio.h>

int64_t cleat_output_own_values(const cleat_session *session, const cleat_fed_batch *fed, uint32_t sample,
                                int64_t each) {
    const cleat_tensor *output = session->work->evaluate[fed->micro_batch->bucket].built.output;
    const int64_t length = fed->host.length, own = cleat_dataset_length(fed->host.dataset, sample);
    const bool rows = cleat_model_fixed_length(session->model) == 0 && output->rank >= 3 && output->shape[1] == length;
    return rows && own < length ? each / length * own : each;
}

static bool is_finite(const float *values, int64_t count) {
    int64_t i = 0;
    while (i < count && isfinite(values[i])) ++i;
    return i == count;
}

void cleat_output_check_add(cleat_output_check *found, const cleat_session *session, const cleat_fed_batch *fed,
                            const float *output) {
    const cleat_tensor *tensor = session->work->evaluate[fed->micro_batch->bucket].built.output;
    const int64_t each = cleat_tensor_elements(tensor) / fed->host.batch;
    found->samples += fed->micro_batch->count;
    for (uint32_t i = 0; i < fed->micro_batch->count; ++i) {
        const uint32_t sample = fed->micro_batch->samples[i];
        if (is_finite(output + i * each, cleat_output_own_values(session, fed, sample, each))) continue;
        if (found->bad == 0 || sample < found->first) found->first = sample;
        ++found->bad;
    }
}

void cleat_output_check_format(const cleat_output_check *found, const cleat_session *session,
                               const cleat_dataset *dataset, char *text) {
    text[0] = 0;
    if (found->bad == 0) return;
    snprintf(text, CLEAT_OUTPUT_CHECK_TEXT, "%zu of %zu outputs are not finite, the first that of sample %.80s; %s",
             found->bad, found->samples, cleat_dataset_id(dataset, found->first),
             session->work->storage == CLEAT_F16
                 ? "f16 overflows above 65504: train.precision = bf16 or f32 can represent larger values"
                 : "check the data and the parameters for values that are far too large or not finite");
}
