/* Golden files: creates a model and a dataset from profile text and named arrays. */
#include "verify/golden.h"

#include "core/memory.h"

#include <stdio.h>
#include <string.h>

/* Adds the file's array `source` to the content; integers are converted to 32 bits. */
static cleat_status copy_array(cleat_golden_content *content, const cleat_st_tensor *source, cleat_error *error) {
    const bool wide = source->dtype == CLEAT_ST_I64;
    if (source->rank < 1 || source->rank > CLEAT_MAX_RANK ||
        (!wide && source->dtype != CLEAT_ST_I32 && source->dtype != CLEAT_ST_F32))
        return cleat_fail(error, CLEAT_ERR_FORMAT, "the trajectory has no array '%s' of I64, I32 or F32", source->name);
    if (content->count == CLEAT_GOLDEN_ARRAYS)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "the trajectory has more than %d arrays of data",
                          CLEAT_GOLDEN_ARRAYS);
    cleat_golden_array *made = &content->arrays[content->count];
    *made = (cleat_golden_array){.integers = source->dtype != CLEAT_ST_F32, .rank = source->rank};
    snprintf(made->name, sizeof made->name, "%s", source->name);
    memcpy(made->shape, source->shape, (size_t)source->rank * sizeof *source->shape);
    made->data = cleat_alloc((size_t)cleat_st_elements(source), sizeof(float));
    if (!made->data) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the trajectory's %s", source->name);
    ++content->count;
    if (!wide && source->data) memcpy(made->data, source->data, cleat_st_bytes(source));
    for (int64_t i = 0; wide && i < cleat_st_elements(source); ++i) {
        const int64_t value = ((const int64_t *)source->data)[i];
        if (value < INT32_MIN || value > INT32_MAX)
            return cleat_fail(error, CLEAT_ERR_FORMAT, "the trajectory's %s holds %lld, more than 32 bits",
                              source->name, (long long)value);
        ((int32_t *)made->data)[i] = (int32_t)value;
    }
    return CLEAT_OK;
}

static const cleat_golden_array *find_array(const cleat_golden_content *content, const char *name) {
    for (size_t i = 0; i < content->count; ++i)
        if (strcmp(content->arrays[i].name, name) == 0) return &content->arrays[i];
    return NULL;
}

static cleat_status read_content(const cleat_safetensors *file, cleat_golden_content *content, cleat_error *error) {
    const char *profile = cleat_safetensors_metadata(file, "profile"),
               *sizes = cleat_safetensors_metadata(file, "sizes");
    cleat_status status = CLEAT_OK;
    if (!profile && cleat_safetensors_metadata(file, "config"))
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "a reference trajectory of the old format: its metadata have 'config' instead of 'profile'; "
                          "tests/golden/convert.py FILE OUT converts it");
    if (!profile)
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "the metadata have no 'profile': the file is not a reference trajectory");
    cleat_string_add(&content->profile, "%s", profile);
    if (sizes) cleat_string_add(&content->sizes, "%s", sizes);
    for (size_t i = 0; i < cleat_safetensors_count(file) && !status; ++i) {
        const cleat_st_tensor *tensor = cleat_safetensors_at(file, i);
        const bool is_result =
            strchr(tensor->name, '/') || strcmp(tensor->name, "output") == 0 || strcmp(tensor->name, "loss") == 0;
        if (!is_result) status = copy_array(content, tensor, error);
    }
    return status;
}

static cleat_status make_model(const cleat_golden_content *content, const char *const *assignments, size_t count,
                               cleat_golden *golden, cleat_error *error) {
    if (content->profile.failed || content->sizes.failed)
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the trajectory's profile");
    cleat_status status = cleat_profile_create(&golden->profile, error);
    if (!status)
        status = cleat_profile_read_text(golden->profile, "the trajectory's profile", content->profile.data,
                                         content->profile.size, error);
    for (size_t i = 0; i < count && !status; ++i) status = cleat_profile_set(golden->profile, assignments[i], error);
    if (!status) status = cleat_profile_create_model(golden->profile, &golden->model, error);
    if (!status && content->sizes.size > 0) status = cleat_model_set_sizes(golden->model, content->sizes.data, error);
    return status;
}

static cleat_status wrong_shape(const cleat_golden_array *array, cleat_error *error) {
    return cleat_fail(error, CLEAT_ERR_FORMAT,
                      "the trajectory's %s does not have the type and shape that its profile and sizes give this field",
                      array->name);
}

/* Returns the extent of the padded-length dimension of an array; 0 if the field has none, or if the rank
 * differs. */
static int64_t length_in(const cleat_field *field, const cleat_golden_array *array) {
    for (int i = 0; i < field->rank && array->rank == field->rank + 1; ++i)
        if (field->shape[i] < 0) return array->shape[i + 1];
    return 0;
}

static cleat_status check_values(const cleat_synthetic_field *rule, const cleat_golden_array *array, int64_t count,
                                 int64_t length, cleat_error *error) {
    const int32_t *values = array->data;
    const bool is_length = rule->values == CLEAT_VALUES_LENGTH;
    const int64_t min = is_length ? 1 : rule->field.pad, max = is_length ? length : rule->below - 1;
    for (int64_t i = 0; i < count; ++i)
        if ((is_length || rule->below > 0) && (values[i] < min || values[i] > max))
            return cleat_fail(error, CLEAT_ERR_FORMAT,
                              "the trajectory's %s: value %lld is %ld; it must be %lld to %lld", array->name,
                              (long long)i, (long)values[i], (long long)min, (long long)max);
    return CLEAT_OK;
}

/* Checks that the array has the field's shape for B samples of this length, and that integers are within
 * bounds. */
static cleat_status check_array(const cleat_synthetic_field *rule, const cleat_golden_array *array, int64_t batch,
                                int64_t length, cleat_error *error) {
    const cleat_field *field = &rule->field;
    bool same =
        array->rank == field->rank + 1 && array->shape[0] == batch && array->integers == (field->dtype == CLEAT_I32);
    for (int i = 0; same && i < field->rank; ++i)
        same = array->shape[i + 1] == (field->shape[i] < 0 ? length : field->shape[i]);
    if (!same) return wrong_shape(array, error);
    if (!array->integers) return CLEAT_OK;
    return check_values(rule, array, batch * cleat_field_elements(field, length), length, error);
}

static cleat_status make_dataset(cleat_golden *golden, cleat_error *error) {
    cleat_synthetic_field fields[CLEAT_MODEL_FIELDS];
    const cleat_golden_array *arrays[CLEAT_MODEL_FIELDS] = {NULL};
    const size_t n_fields = golden->model->type->fields(golden->model, fields);
    int64_t length = cleat_model_fixed_length(golden->model), batch = 0;
    cleat_status status = CLEAT_OK;
    for (size_t f = 0; f < n_fields; ++f) {
        arrays[f] = find_array(&golden->content, fields[f].field.name);
        if (!arrays[f])
            return cleat_fail(error, CLEAT_ERR_FORMAT, "the trajectory has no array '%s'", fields[f].field.name);
        if (length == 0) length = length_in(&fields[f].field, arrays[f]);
        if (f == 0) batch = arrays[f]->shape[0];
        fields[f].given = arrays[f]->data;
    }
    if (length < 1 || batch < 1) return wrong_shape(arrays[0], error);
    for (size_t f = 0; f < n_fields && !status; ++f) status = check_array(&fields[f], arrays[f], batch, length, error);
    if (status) return status;
    return cleat_synthetic_open(fields, n_fields, (size_t)batch, length, 0, &golden->dataset, error);
}

cleat_status cleat_golden_open(const cleat_safetensors *file, const char *const *assignments, size_t count,
                               cleat_golden *golden, cleat_error *error) {
    cleat_golden made = {0};
    cleat_status status = read_content(file, &made.content, error);
    if (!status) status = make_model(&made.content, assignments, count, &made, error);
    if (!status) status = make_dataset(&made, error);
    if (status) {
        cleat_golden_close(&made);
        return status;
    }
    *golden = made;
    const cleat_golden_array *lengths = find_array(&golden->content, "lengths");
    golden->lengths = lengths && lengths->rank == 1 ? lengths : NULL;
    golden->weights = find_array(&golden->content, "scale");
    return CLEAT_OK;
}

void cleat_golden_close(cleat_golden *golden) {
    cleat_dataset_destroy(golden->dataset);
    cleat_model_destroy(golden->model);
    cleat_profile_destroy(golden->profile);
    for (size_t i = 0; i < golden->content.count; ++i) cleat_free(golden->content.arrays[i].data);
    cleat_string_free(&golden->content.profile);
    cleat_string_free(&golden->content.sizes);
    *golden = (cleat_golden){0};
}
