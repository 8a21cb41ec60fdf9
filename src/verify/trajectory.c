/* One model, one batch, steps on demand. */
#include "verify/trajectory.h"

#include "graph/graph.h"
#include "graph/plan.h"

#include <string.h>

static cleat_status fill_batch(const cleat_trajectory *trajectory, const cleat_reference *reference,
                               cleat_error *error) {
    const cleat_session *session = trajectory->session;
    const cleat_work_graph *train = &session->work->train[0];
    const uint32_t rng[4] = {1, 0, 0, 0};
    const float seed = 1.0f;
    const int32_t samples = (int32_t)session->work->buckets[0].micro_batch_size;
    char *bytes = cleat_staging_data(trajectory->batch);
    for (size_t i = 0; i < train->graph->tensor_count; ++i) {
        const cleat_tensor *tensor = train->graph->tensors[i];
        if (tensor->role != CLEAT_ROLE_INPUT) continue;
        void *values = bytes + cleat_exec_input_offset(session->exec, train->index, tensor);
        cleat_status status = cleat_model_reference_input(trajectory->model, reference, tensor, values, error);
        if (status != CLEAT_OK) return status;
    }
    if (train->rng_offset >= 0) memcpy(bytes + train->rng_offset, rng, sizeof rng);
    if (train->seed_offset >= 0) memcpy(bytes + train->seed_offset, &seed, sizeof seed);
    if (train->samples_offset >= 0) memcpy(bytes + train->samples_offset, &samples, sizeof samples);
    return CLEAT_OK;
}

cleat_status cleat_trajectory_start(cleat_trajectory *trajectory, const cleat_reference *reference,
                                    cleat_error *error) {
    cleat_exec *exec = trajectory->session->exec;
    int64_t batch_bytes = cleat_session_input_bytes(trajectory->session);
    int64_t update_bytes = cleat_exec_input_bytes(exec, trajectory->session->work->update.index);
    cleat_status status = cleat_session_initialise(trajectory->session, 1, error);
    if (status == CLEAT_OK) status = cleat_staging_create(exec, batch_bytes, true, &trajectory->batch, error);
    if (status == CLEAT_OK) status = cleat_staging_create(exec, update_bytes, true, &trajectory->update, error);
    return status == CLEAT_OK ? fill_batch(trajectory, reference, error) : status;
}

static cleat_bucket bucket_of(const cleat_reference *reference) {
    return (cleat_bucket){
        .length = reference->length, .global_batch_size = reference->batch, .micro_batch_size = reference->batch};
}

cleat_status cleat_trajectory_prepare(cleat_trajectory *trajectory, const cleat_reference *reference,
                                      cleat_error *error) {
    cleat_bucket bucket = bucket_of(reference);
    cleat_status status = cleat_profile_create(&trajectory->profile, error);
    if (status == CLEAT_OK)
        status = cleat_session_create(trajectory->device, trajectory->profile, trajectory->model, CLEAT_FOR_TRAINING,
                                      &bucket, 1, 0, &trajectory->session, error);
    return status == CLEAT_OK ? cleat_trajectory_start(trajectory, reference, error) : status;
}

const cleat_variant *cleat_variant_of_rank(const cleat_node *node, const cleat_device_facts *facts, int rank,
                                           bool *more) {
    const cleat_variant *found = NULL;
    for (const cleat_variant *v = node->op->variants; v && v->name; ++v) {
        if (v->refuse && v->refuse(node, facts)) continue;
        if (rank-- < 0) {
            *more = true;
            break;
        }
        found = v;
    }
    return found;
}

/* A table in which each node of the plan has its variant of that rank. */
static cleat_status choose_rank(const cleat_plan *plan, int rank, cleat_tuning_table **tuning, bool *more,
                                cleat_error *error) {
    bool further = false;
    cleat_status status = cleat_tuning_create(tuning, error);
    for (size_t g = 0; g < plan->layout_count; ++g)
        for (size_t i = 0; i < plan->layouts[g].graph->node_count && status == CLEAT_OK; ++i) {
            const cleat_node *node = plan->layouts[g].graph->nodes[i];
            char key[CLEAT_TUNING_KEY];
            const cleat_variant *variant = cleat_variant_of_rank(node, &plan->facts, rank, &further);
            if (!variant || !cleat_op_is_tunable(node->op)) continue;
            cleat_tuning_key(node, key);
            status = cleat_tuning_set(*tuning, key, variant->name, error);
        }
    *more = further;
    return status;
}

cleat_status cleat_trajectory_prepare_rank(cleat_trajectory *trajectory, const cleat_reference *reference, int rank,
                                           bool *more, cleat_error *error) {
    const cleat_device_facts *facts = cleat_device_get_facts(trajectory->device);
    const cleat_bucket bucket = bucket_of(reference);
    cleat_workload *planned = NULL, *work = NULL;
    cleat_tuning_table *tuning = NULL;
    cleat_status status = cleat_profile_create(&trajectory->profile, error);
    if (status == CLEAT_OK)
        status =
            cleat_workload_create(facts, NULL, trajectory->model, CLEAT_FOR_TRAINING, &bucket, 1, 0, &planned, error);
    if (status == CLEAT_OK) status = choose_rank(planned->plan, rank, &tuning, more, error);
    if (status == CLEAT_OK)
        status =
            cleat_workload_create(facts, tuning, trajectory->model, CLEAT_FOR_TRAINING, &bucket, 1, 0, &work, error);
    if (status == CLEAT_OK)
        status = cleat_session_open(trajectory->device, trajectory->profile, trajectory->model, work,
                                    &trajectory->session, error);
    cleat_tuning_destroy(tuning);
    cleat_workload_destroy(planned);
    return status == CLEAT_OK ? cleat_trajectory_start(trajectory, reference, error) : status;
}

void cleat_trajectory_weigh_evenly(cleat_trajectory *trajectory) {
    const cleat_workload *work = trajectory->session->work;
    const cleat_bucket *bucket = &work->buckets[0];
    const cleat_tensor *tensor = cleat_graph_find(work->train[0].graph, "scale");
    char *bytes = cleat_staging_data(trajectory->batch);
    float *sample_weight = (float *)(void *)(bytes + work->train[0].sample_weight_offset); /* some [.., B, ..] */
    int64_t items = tensor->shape[tensor->rank - 1] == bucket->micro_batch_size
                        ? 1
                        : cleat_tensor_elements(tensor) / bucket->micro_batch_size;
    for (int64_t i = 0; i < cleat_tensor_elements(tensor); ++i)
        sample_weight[i] = 1.0f / (float)(bucket->global_batch_size * items);
}

void cleat_trajectory_close(cleat_trajectory *trajectory) {
    cleat_staging_destroy(trajectory->batch);
    cleat_staging_destroy(trajectory->update);
    cleat_session_destroy(trajectory->session);
    if (!trajectory->borrowed) cleat_device_close(trajectory->device);
    cleat_profile_destroy(trajectory->profile);
    cleat_model_destroy(trajectory->model);
    *trajectory = (cleat_trajectory){0};
}

cleat_status cleat_trajectory_forward_backward(cleat_trajectory *trajectory, cleat_error *error) {
    cleat_session *session = trajectory->session;
    size_t index = session->work->train[0].index;
    cleat_status status = cleat_exec_upload(session->exec, index, trajectory->batch, error);
    return status == CLEAT_OK ? cleat_exec_run(session->exec, index, error) : status;
}

cleat_status cleat_trajectory_update(cleat_trajectory *trajectory, cleat_error *error) {
    cleat_session *session = trajectory->session;
    cleat_status status = cleat_staging_wait(trajectory->update, error);
    if (status != CLEAT_OK) return status;
    cleat_session_prepare_update(session, cleat_staging_data(trajectory->update),
                                 trajectory->profile->train.learning_rate, trajectory->step++);
    status = cleat_exec_upload(session->exec, session->work->update.index, trajectory->update, error);
    return status == CLEAT_OK ? cleat_exec_run(session->exec, session->work->update.index, error) : status;
}

cleat_status cleat_trajectory_loss(cleat_trajectory *trajectory, double *loss, cleat_error *error) {
    const cleat_work_graph *train = &trajectory->session->work->train[0];
    float value;
    cleat_status status = cleat_exec_read(trajectory->session->exec, train->index, train->built.loss, &value, error);
    if (status == CLEAT_OK) *loss = value;
    return status;
}
