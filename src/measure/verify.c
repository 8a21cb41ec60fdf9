/* Verification: a reference trajectory repeated on a device, and every figure of it compared. */
#include "cleat/measure.h"
#include "core/memory.h"
#include "graph/graph.h"
#include "measure/trajectory.h"
#include "train/safetensors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double output_tolerance = 1e-5, gradient_tolerance = 1e-4, parameter_tolerance = 1e-3;
/* A gradient this small beside the whole one is rounding noise, and AdamW makes steps of full size of it. */
static const double noise = 1e-6;

typedef struct verifier {
    cleat_safetensors *file;
    cleat_trajectory run;
    cleat_verify_report *report;
    size_t capacity;
    float *flat, *before; /* [flat elements] */
    int64_t flat_elements;
} verifier;

static cleat_status add(verifier *v, const char *name, double deviation, double tolerance, cleat_error *error) {
    cleat_verify_report *report = v->report;
    cleat_status status = cleat_grow(&report->items, report->count, &v->capacity, sizeof *report->items, error);
    if (status != CLEAT_OK) return status;
    cleat_verification *item = &report->items[report->count++];
    snprintf(item->name, sizeof item->name, "%s", name);
    item->deviation = deviation;
    item->tolerance = tolerance;
    item->ok = deviation <= tolerance; /* false for NaN */
    report->failed += !item->ok;
    return CLEAT_OK;
}

/* --- reading the file ----------------------------------------------------------------------------------------- */

static cleat_status take_array(const cleat_safetensors *file, const char *name, cleat_reference_array *array,
                               cleat_error *error) {
    const cleat_st_tensor *tensor = cleat_safetensors_find(file, name);
    if (!tensor || tensor->rank < 1 || tensor->rank > CLEAT_MAX_RANK ||
        (tensor->dtype != CLEAT_ST_I64 && tensor->dtype != CLEAT_ST_F32))
        return cleat_fail(error, CLEAT_ERR_FORMAT, "the trajectory has no array '%s' of I64 or F32", name);
    *array =
        (cleat_reference_array){.data = tensor->data, .integers = tensor->dtype == CLEAT_ST_I64, .rank = tensor->rank};
    memcpy(array->shape, tensor->shape, (size_t)tensor->rank * sizeof *array->shape);
    return CLEAT_OK;
}

static cleat_status find_reference(const cleat_safetensors *file, cleat_reference *reference, cleat_error *error) {
    cleat_reference_array input, target;
    const cleat_st_tensor *lengths = cleat_safetensors_find(file, "lengths");
    cleat_status status = take_array(file, "input", &input, error);
    if (status == CLEAT_OK) status = take_array(file, "target", &target, error);
    if (status != CLEAT_OK) return status;
    int64_t batch = input.shape[0], length = input.integers || input.rank > 2 ? input.shape[1] : 1;
    if (lengths && (lengths->rank != 1 || lengths->dtype != CLEAT_ST_I64 || lengths->shape[0] != batch))
        return cleat_fail(error, CLEAT_ERR_FORMAT, "the trajectory's lengths must be I64 [%lld]", (long long)batch);
    for (int64_t b = 0; lengths && b < lengths->shape[0]; ++b) {
        int64_t own = ((const int64_t *)lengths->data)[b];
        if (own < 1 || own > length)
            return cleat_fail(error, CLEAT_ERR_FORMAT, "the trajectory's length %lld is %lld; it may be 1 to %lld",
                              (long long)b, (long long)own, (long long)length);
    }
    *reference = (cleat_reference){
        .batch = batch, .length = length, .input = input, .target = target, .lengths = lengths ? lengths->data : NULL};
    return CLEAT_OK;
}

static int64_t extent_of(void *user, const char *name, int axis) {
    char path[CLEAT_NAME + 16];
    snprintf(path, sizeof path, "param/%s", name);
    const cleat_st_tensor *tensor = cleat_safetensors_find(user, path);
    return tensor && axis < tensor->rank ? tensor->shape[axis] : 0;
}

/* A graph reads as many values as its own shapes say. */
static cleat_status check_arrays(const cleat_model *model, const cleat_reference *reference, cleat_error *error) {
    cleat_reference wanted = {.batch = reference->batch, .length = reference->length};
    model->type->reference_arrays(model, &wanted);
    const struct {
        const char *name;
        const cleat_reference_array *is, *wanted;
    } pairs[] = {{"input", &reference->input, &wanted.input}, {"target", &reference->target, &wanted.target}};
    for (int i = 0; i < 2; ++i) {
        const cleat_reference_array *is = pairs[i].is, *want = pairs[i].wanted;
        bool same = is->integers == want->integers && is->rank == want->rank;
        for (int k = 0; same && k < is->rank; ++k) same = is->shape[k] == want->shape[k];
        if (!same)
            return cleat_fail(error, CLEAT_ERR_FORMAT, "the trajectory's %s has not the type and shape its config says",
                              pairs[i].name);
    }
    return CLEAT_OK;
}

/* "AdamW lr=1e-3 betas=(0.9,0.999) eps=1e-8 weight_decay=0.01" */
static cleat_status read_optimizer(const cleat_safetensors *file, cleat_profile *profile, cleat_error *error) {
    const char *text = cleat_safetensors_metadata(file, "optimizer");
    if (!text ||
        sscanf(text, "AdamW lr=%lf betas=(%lf,%lf) eps=%lf weight_decay=%lf", &profile->train.learning_rate,
               &profile->train.beta1, &profile->train.beta2, &profile->train.eps, &profile->train.weight_decay) != 5)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "the trajectory's optimizer is not understood: %s",
                          text ? text : "none");
    profile->train.max_grad_norm = CLEAT_NONE;
    return CLEAT_OK;
}

/* The array PREFIX/NAME of a parameter, in the parameter's shape. */
static cleat_status array_of(const verifier *v, const char *prefix, const cleat_tensor *param, const float **values,
                             cleat_error *error) {
    char name[CLEAT_NAME + 16];
    const cleat_st_tensor *tensor = NULL;
    snprintf(name, sizeof name, "%s/%s", prefix, param->name);
    cleat_status status =
        cleat_safetensors_expect(v->file, name, CLEAT_ST_F32, param->rank, param->shape, &tensor, error);
    if (status == CLEAT_OK) *values = tensor->data;
    return status;
}

static cleat_status load_parameters(verifier *v, cleat_error *error) {
    const cleat_store *store = v->run.session->work->store;
    for (size_t i = 0; i < cleat_store_count(store); ++i) {
        const cleat_tensor *param = cleat_store_param(store, i);
        const float *values;
        cleat_status status = array_of(v, "param", param, &values, error);
        if (status != CLEAT_OK) return status;
        memcpy(v->before + param->flat_offset, values, (size_t)cleat_tensor_bytes(param));
    }
    return cleat_session_write_flat(v->run.session, 0, v->before, error);
}

/* --- comparing ------------------------------------------------------------------------------------------------ */

/* The larger one; not a number as soon as one of them is. */
static double larger(double a, double b) {
    return isnan(a) || b <= a ? a : b;
}

static cleat_status compare_output(verifier *v, cleat_error *error) {
    const cleat_work_graph *graph = &v->run.session->work->train[0];
    const cleat_tensor *output = graph->built.output;
    int64_t elements = cleat_tensor_elements(output);
    const cleat_st_tensor *expected = NULL;
    cleat_status status =
        cleat_safetensors_expect(v->file, "output", CLEAT_ST_F32, output->rank, output->shape, &expected, error);
    if (status != CLEAT_OK) return status;
    float *values = cleat_alloc((size_t)elements, sizeof *values);
    if (!values) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the output");
    status = cleat_exec_read(v->run.session->exec, graph->index, output, values, error);
    if (status == CLEAT_OK) {
        const cleat_st_tensor *lengths = cleat_safetensors_find(v->file, "lengths");
        double largest = 0, worst = 0;
        int64_t length = output->rank > 2 ? output->shape[1] : 1, width = elements / (output->shape[0] * length);
        for (int64_t i = 0; i < elements; ++i) {
            int64_t row = i / width, b = row / length;
            if (lengths && length > 1 && row % length >= ((const int64_t *)lengths->data)[b])
                continue; /* padding: nobody reads it */
            double reference = ((const float *)expected->data)[i], difference = fabs((double)values[i] - reference);
            if (fabs(reference) > largest) largest = fabs(reference);
            worst = larger(worst, difference);
        }
        status = add(v, "output", worst / largest, output_tolerance, error);
    }
    cleat_free(values);
    return status;
}

static double square(double x) {
    return x * x;
}

/* The norm of the whole reference gradient. */
static cleat_status gradient_norm(const verifier *v, double *norm, cleat_error *error) {
    const cleat_store *store = v->run.session->work->store;
    double sum = 0;
    for (size_t i = 0; i < cleat_store_count(store); ++i) {
        const cleat_tensor *param = cleat_store_param(store, i);
        const float *expected;
        cleat_status status = array_of(v, "grad", param, &expected, error);
        if (status != CLEAT_OK) return status;
        for (int64_t k = 0; k < cleat_tensor_elements(param); ++k) sum += square(expected[k]);
    }
    *norm = sqrt(sum);
    return CLEAT_OK;
}

static cleat_status compare_gradients(verifier *v, cleat_error *error) {
    const cleat_session *session = v->run.session;
    double whole = 0;
    cleat_status status = gradient_norm(v, &whole, error);
    if (status == CLEAT_OK) status = cleat_exec_read(session->exec, 0, &session->work->store->flat[1], v->flat, error);
    for (size_t i = 0; i < cleat_store_count(session->work->store) && status == CLEAT_OK; ++i) {
        const cleat_tensor *param = cleat_store_param(session->work->store, i);
        const float *expected = NULL;
        status = array_of(v, "grad", param, &expected, error);
        if (status != CLEAT_OK) break;
        double difference = 0, own = 0;
        for (int64_t k = 0; k < cleat_tensor_elements(param); ++k) {
            difference += square((double)v->flat[param->flat_offset + k] - expected[k]);
            own += square(expected[k]);
        }
        char name[CLEAT_NAME + 16];
        snprintf(name, sizeof name, "grad/%s", param->name);
        status = add(v, name, sqrt(difference) / fmax(sqrt(own), noise * whole), gradient_tolerance, error);
    }
    return status;
}

/* What ten steps did to the parameters, but for elements whose gradient is noise: the difference as a share
 * of the change. */
static cleat_status compare_parameters(verifier *v, cleat_error *error) {
    const cleat_session *session = v->run.session;
    double difference = 0, change = 0, whole = 0;
    cleat_status status = gradient_norm(v, &whole, error);
    if (status == CLEAT_OK) status = cleat_session_read_flat(v->run.session, 0, v->flat, error);
    for (size_t i = 0; i < cleat_store_count(session->work->store) && status == CLEAT_OK; ++i) {
        const cleat_tensor *param = cleat_store_param(session->work->store, i);
        const float *after = NULL, *gradient = NULL;
        status = array_of(v, "after", param, &after, error);
        if (status == CLEAT_OK) status = array_of(v, "grad", param, &gradient, error);
        for (int64_t k = 0; status == CLEAT_OK && k < cleat_tensor_elements(param); ++k) {
            if (!(fabs((double)gradient[k]) > noise * whole)) continue;
            int64_t at = param->flat_offset + k;
            difference += square((double)v->flat[at] - after[k]);
            change += square((double)after[k] - v->before[at]);
        }
    }
    return status == CLEAT_OK ? add(v, "parameters", sqrt(difference / change), parameter_tolerance, error) : status;
}

static cleat_status compare_loss(verifier *v, const cleat_st_tensor *curve, cleat_error *error) {
    double worst = 0;
    for (int64_t step = 0; step < curve->shape[0]; ++step) {
        double loss, expected = ((const float *)curve->data)[step];
        cleat_status status = CLEAT_OK;
        if (step > 0) {
            status = cleat_trajectory_update(&v->run, error);
            if (status == CLEAT_OK) status = cleat_trajectory_forward_backward(&v->run, error);
        }
        if (status == CLEAT_OK) status = cleat_trajectory_loss(&v->run, &loss, error);
        if (status != CLEAT_OK) return status;
        double deviation = fabs(loss - expected) / fabs(expected);
        worst = larger(worst, deviation);
    }
    return add(v, "loss", worst, output_tolerance, error);
}

static cleat_status verify(verifier *v, const char *device, cleat_error *error) {
    cleat_reference reference;
    const int64_t steps = 11;
    const cleat_st_tensor *curve = NULL;
    const char *config = cleat_safetensors_metadata(v->file, "config");
    if (!config)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "the file has no 'config': it is not a reference trajectory");
    cleat_status status = find_reference(v->file, &reference, error);
    if (status == CLEAT_OK) status = cleat_safetensors_expect(v->file, "loss", CLEAT_ST_F32, 1, &steps, &curve, error);
    if (status == CLEAT_OK) status = cleat_device_open(device, &v->run.device, error);
    const cleat_reference_config parameters = {.extent = extent_of, .user = v->file};
    if (status == CLEAT_OK) status = cleat_model_from_reference(config, &parameters, &v->run.model, error);
    if (status == CLEAT_OK) status = check_arrays(v->run.model, &reference, error);
    if (status == CLEAT_OK) status = cleat_trajectory_prepare(&v->run, &reference, error);
    if (status == CLEAT_OK) status = read_optimizer(v->file, v->run.profile, error);
    if (status != CLEAT_OK) return status;
    v->flat_elements = cleat_session_flat(v->run.session);
    v->flat = cleat_alloc((size_t)v->flat_elements, sizeof *v->flat);
    v->before = cleat_alloc((size_t)v->flat_elements, sizeof *v->before);
    if (!v->flat || !v->before) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the parameters");
    status = load_parameters(v, error);
    if (status == CLEAT_OK) status = cleat_trajectory_forward_backward(&v->run, error);
    if (status == CLEAT_OK) status = compare_output(v, error);
    if (status == CLEAT_OK) status = compare_gradients(v, error);
    if (status == CLEAT_OK) status = compare_loss(v, curve, error);
    if (status == CLEAT_OK) status = compare_parameters(v, error);
    return status;
}

cleat_status cleat_verify(const char *device, const char *file, cleat_verify_report *report, cleat_error *error) {
    cleat_verify_report made = {0};
    verifier v = {.report = &made};
    cleat_status status = cleat_safetensors_open(file, &v.file, error);
    if (status == CLEAT_OK) {
        status = verify(&v, device, error);
        if (status != CLEAT_OK && error && !strstr(error->text, file)) cleat_fail_in(error, status, "%s", file);
    }
    cleat_trajectory_close(&v.run);
    cleat_safetensors_close(v.file);
    cleat_free(v.flat);
    cleat_free(v.before);
    if (status == CLEAT_OK)
        *report = made;
    else
        cleat_verify_free(&made);
    return status;
}

void cleat_verify_free(cleat_verify_report *report) {
    cleat_free(report->items);
    *report = (cleat_verify_report){0};
}
