/* One batch in host memory, accessed by the names of graph inputs. */
#include "bench/tune_batch.h"

#include "core/memory.h"
#include "models/model.h"

#include <stdio.h>
#include <string.h>

static const cleat_tune_input *find_input(const cleat_tune_batch *batch, const char *name) {
    for (size_t i = 0; i < batch->count; ++i)
        if (strcmp(batch->inputs[i].name, name) == 0) return &batch->inputs[i];
    return NULL;
}

static int64_t offset_of(void *user, const cleat_tensor *input) {
    const cleat_tune_input *found = find_input(user, input->name);
    return found ? found->offset : -1;
}

static cleat_status place_inputs(const cleat_graph *graph, cleat_tune_batch *batch, cleat_error *error) {
    const int64_t alignment = sizeof(float);
    int64_t end = 0;
    for (size_t i = 0; i < graph->tensor_count && batch->count < CLEAT_TUNE_INPUTS; ++i) {
        const cleat_tensor *tensor = graph->tensors[i];
        if (tensor->role != CLEAT_ROLE_INPUT) continue;
        cleat_tune_input *input = &batch->inputs[batch->count++];
        snprintf(input->name, sizeof input->name, "%s", tensor->name);
        input->offset = end;
        input->size = cleat_tensor_bytes(tensor);
        end += (input->size + alignment - 1) / alignment * alignment;
    }
    batch->bytes = cleat_alloc((size_t)end, 1);
    return batch->bytes ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a batch");
}

/* Fills the runtime's own inputs: nodes must not treat the slots of the batch as empty. */
static void fill_own(const cleat_model *model, const cleat_one_batch *loaded, cleat_tune_batch *batch) {
    const cleat_tune_input *scale = find_input(batch, "scale"), *samples = find_input(batch, "samples");
    const int32_t count = (int32_t)batch->bucket.micro_batch_size;
    cleat_global_batch global_batch;
    const cleat_host_batch host = cleat_one_batch_host(loaded, &global_batch);
    if (scale) cleat_model_sample_weight(model, &host, &global_batch, (float *)(void *)(batch->bytes + scale->offset));
    if (samples) memcpy(batch->bytes + samples->offset, &count, sizeof count);
}

cleat_status cleat_tune_batch_open(const cleat_model *model, const cleat_graph *graph, const cleat_bucket *bucket,
                                   cleat_tune_batch *batch, cleat_error *error) {
    cleat_tune_batch made = {.bucket = *bucket};
    cleat_dataset *dataset = NULL;
    cleat_status status = place_inputs(graph, &made, error);
    if (!status) status = cleat_model_open_synthetic(model, bucket->micro_batch_size, bucket->length, &dataset, error);
    cleat_one_batch loaded = {
        .dataset = dataset, .graph = graph, .bucket = bucket, .offset = offset_of, .user = &made, .bytes = made.bytes};
    if (!status) status = cleat_one_batch_load(&loaded, error);
    if (!status) fill_own(model, &loaded, &made);
    cleat_dataset_destroy(dataset);
    if (status)
        cleat_tune_batch_close(&made);
    else
        *batch = made;
    return status;
}

void cleat_tune_batch_close(cleat_tune_batch *batch) {
    cleat_free(batch->bytes);
    *batch = (cleat_tune_batch){.bytes = NULL};
}

bool cleat_tune_batch_serves(const cleat_tune_batch *batch, const cleat_bucket *bucket) {
    return batch->bytes && batch->bucket.micro_batch_size == bucket->micro_batch_size &&
           batch->bucket.length == bucket->length;
}

void cleat_tune_batch_read(const cleat_tune_batch *batch, const cleat_tensor *tensor, void *values) {
    const cleat_tune_input *input = find_input(batch, tensor->name);
    if (input && input->size == cleat_tensor_bytes(tensor))
        memcpy(values, batch->bytes + input->offset, (size_t)input->size);
}
