/* A loader with one slot and no threads, for one batch. */
#include "session/one_batch.h"

#include "core/memory.h"

static const cleat_tensor *input_of(const cleat_one_batch *batch, size_t field) {
    const cleat_tensor *input = cleat_graph_find(batch->graph, cleat_dataset_field(batch->dataset, field)->name);
    return input && input->role == CLEAT_ROLE_INPUT ? input : NULL;
}

static int64_t field_offset(void *user, size_t bucket, size_t field) {
    const cleat_one_batch *batch = user;
    const cleat_tensor *input = input_of(batch, field);
    (void)bucket;
    return input ? batch->offset(batch->user, input) : -1;
}

static cleat_dtype field_storage(void *user, size_t bucket, size_t field) {
    const cleat_one_batch *batch = user;
    const cleat_tensor *input = input_of(batch, field);
    (void)bucket;
    return input ? input->dtype : cleat_dataset_field(batch->dataset, field)->dtype;
}

/* Checks that inputs have the sizes of the dataset's fields. */
static cleat_status check_fields(const cleat_one_batch *batch, cleat_error *error) {
    const size_t n_fields = cleat_dataset_fields(batch->dataset);
    if (n_fields > CLEAT_ONE_BATCH_FIELDS)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "the dataset has more than %d fields", CLEAT_ONE_BATCH_FIELDS);
    for (size_t f = 0; f < n_fields; ++f) {
        const cleat_field *field = cleat_dataset_field(batch->dataset, f);
        const cleat_tensor *input = input_of(batch, f);
        const int64_t elements = batch->bucket->micro_batch_size * cleat_field_elements(field, batch->bucket->length);
        if (input && cleat_tensor_elements(input) != elements)
            return cleat_fail(error, CLEAT_ERR_SHAPE, "the input '%s' has %lld elements, the data's field has %lld",
                              field->name, (long long)cleat_tensor_elements(input), (long long)elements);
    }
    return CLEAT_OK;
}

static cleat_status load(cleat_one_batch *batch, const cleat_batches *batches, cleat_error *error) {
    const cleat_loader_setup setup = {.dataset = batch->dataset,
                                      .buckets = batch->bucket,
                                      .n_buckets = 1,
                                      .slots = &batch->bytes,
                                      .n_slots = 1,
                                      .field_offset = field_offset,
                                      .field_storage = field_storage,
                                      .user = batch};
    cleat_loader *loader = NULL;
    cleat_loaded_batch loaded;
    cleat_status status = cleat_loader_create(&setup, &loader, error);
    if (!status) status = cleat_loader_start(loader, batches, 0, NULL, error);
    if (!status) status = cleat_loader_next(loader, &loaded, error);
    cleat_loader_destroy(loader);
    return status;
}

cleat_status cleat_one_batch_load(cleat_one_batch *batch, cleat_error *error) {
    const size_t count = (size_t)batch->bucket->micro_batch_size;
    cleat_batches *batches = NULL;
    cleat_status status = check_fields(batch, error);
    if (status) return status;
    uint32_t *samples = cleat_alloc(count, sizeof *samples);
    if (!samples) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a list of %zu samples", count);
    for (size_t i = 0; i < count; ++i) samples[i] = (uint32_t)i;
    const cleat_batches_spec spec = {
        .dataset = batch->dataset, .samples = samples, .n_samples = count, .buckets = batch->bucket, .n_buckets = 1};
    status = cleat_batches_create(&spec, &batches, error);
    if (!status) status = load(batch, batches, error);
    for (size_t f = 0; f < cleat_dataset_fields(batch->dataset) && !status; ++f) {
        const int64_t offset = field_offset(batch, 0, f);
        batch->fields[f] = offset < 0 ? NULL : (const char *)batch->bytes + offset;
    }
    cleat_batches_destroy(batches);
    cleat_free(samples);
    return status;
}

cleat_host_batch cleat_one_batch_host(const cleat_one_batch *batch, cleat_global_batch *global_batch) {
    const cleat_bucket *bucket = batch->bucket;
    int64_t items = 0;
    for (int64_t b = 0; b < bucket->micro_batch_size; ++b) items += cleat_dataset_items(batch->dataset, (size_t)b);
    *global_batch = (cleat_global_batch){.micro_batches = 1,
                                         .samples = bucket->global_batch_size,
                                         .items = items * bucket->global_batch_size / bucket->micro_batch_size};
    return (cleat_host_batch){.batch = bucket->micro_batch_size,
                              .length = bucket->length,
                              .fields = batch->fields,
                              .dataset = batch->dataset,
                              .count = bucket->micro_batch_size};
}
