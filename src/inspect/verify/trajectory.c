/* Runs one model on one batch, step by step. */
#include "verify/trajectory.h"

#include "exec/copy.h"
#include "graph/graph.h"
#include "graph/plan.h"
#include "session/one_batch.h"

#include <string.h>

typedef struct inputs {
    const cleat_session *session;
    const cleat_work_graph *graph;
} inputs;

static int64_t offset_of(void *user, const cleat_tensor *input) {
    const inputs *of = user;
    return cleat_exec_input_offset(of->session->exec, of->graph->index, input);
}

static cleat_status fill_batch(const cleat_session *session, const cleat_work_graph *graph,
                               const cleat_dataset *dataset, void *bytes, cleat_error *error) {
    const cleat_dropout_key key = {.seed = 1};
    inputs of = {session, graph};
    cleat_one_batch batch = {.dataset = dataset,
                             .graph = graph->graph,
                             .bucket = &session->work->buckets[0],
                             .offset = offset_of,
                             .user = &of,
                             .bytes = bytes};
    cleat_status status = cleat_one_batch_load(&batch, error);
    if (status) return status;
    cleat_global_batch global_batch;
    const cleat_host_batch host = cleat_one_batch_host(&batch, &global_batch);
    cleat_session_prepare(session, graph, batch.bytes, &host, &global_batch, &key);
    return CLEAT_OK;
}

cleat_status cleat_trajectory_start(cleat_trajectory *trajectory, const cleat_dataset *dataset, cleat_error *error) {
    cleat_exec *exec = trajectory->session->exec;
    int64_t batch_bytes = cleat_session_input_bytes(trajectory->session);
    int64_t update_bytes = cleat_exec_input_bytes(exec, trajectory->session->work->update.index);
    cleat_status status = cleat_session_initialise(trajectory->session, 1, error);
    if (!status) status = cleat_staging_create(exec, batch_bytes, true, &trajectory->batch, error);
    if (!status) status = cleat_staging_create(exec, update_bytes, true, &trajectory->update, error);
    if (status) return status;
    return fill_batch(trajectory->session, &trajectory->session->work->train[0], dataset,
                      cleat_staging_data(trajectory->batch), error);
}

static cleat_bucket bucket_of(const cleat_dataset *dataset) {
    const int64_t count = (int64_t)cleat_dataset_count(dataset);
    return (cleat_bucket){
        .length = cleat_dataset_length(dataset, 0), .global_batch_size = count, .micro_batch_size = count};
}

cleat_status cleat_trajectory_prepare(cleat_trajectory *trajectory, const cleat_dataset *dataset, cleat_error *error) {
    cleat_bucket bucket = bucket_of(dataset);
    const cleat_session_spec spec = {.device = trajectory->device,
                                     .profile = trajectory->profile,
                                     .model = trajectory->model,
                                     .purpose = CLEAT_FOR_TRAINING,
                                     .buckets = &bucket,
                                     .n_buckets = 1};
    cleat_status status = cleat_session_create(&spec, &trajectory->session, error);
    return status ? status : cleat_trajectory_start(trajectory, dataset, error);
}

static const cleat_variant *variant_of_rank(const cleat_node *node, const cleat_device_facts *facts, int rank,
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

/* Creates a tuning table that selects the variant of a given rank for each node of the plan. */
static cleat_status choose_rank(const cleat_plan *plan, int rank, cleat_tuning_table **tuning, bool *more,
                                cleat_error *error) {
    bool further = false;
    cleat_status status = cleat_tuning_create(tuning, error);
    for (size_t g = 0; g < plan->layout_count; ++g)
        for (size_t i = 0; i < plan->layouts[g].graph->node_count && !status; ++i) {
            const cleat_node *node = plan->layouts[g].graph->nodes[i];
            char key[CLEAT_TUNING_KEY];
            const cleat_variant *variant = variant_of_rank(node, &plan->facts, rank, &further);
            if (!variant || !cleat_op_is_tunable(node->op)) continue;
            cleat_tuning_key(node, key);
            status = cleat_tuning_set(*tuning, key, variant->name, error);
        }
    *more = further;
    return status;
}

cleat_status cleat_trajectory_prepare_rank(cleat_trajectory *trajectory, const cleat_dataset *dataset, int rank,
                                           bool *more, cleat_error *error) {
    const cleat_device_facts *facts = cleat_device_get_facts(trajectory->device);
    const cleat_bucket bucket = bucket_of(dataset);
    cleat_workload *planned = NULL, *work = NULL;
    cleat_tuning_table *tuning = NULL;
    cleat_workload_spec spec = {
        .facts = facts, .model = trajectory->model, .purpose = CLEAT_FOR_TRAINING, .buckets = &bucket, .n_buckets = 1};
    cleat_status status = cleat_workload_create(&spec, &planned, error);
    if (!status) status = choose_rank(planned->plan, rank, &tuning, more, error);
    spec.tuning = tuning;
    if (!status) status = cleat_workload_create(&spec, &work, error);
    if (!status)
        status = cleat_session_open(trajectory->device, trajectory->profile, trajectory->model, work,
                                    &trajectory->session, error);
    cleat_tuning_destroy(tuning);
    cleat_workload_destroy(planned);
    return status ? status : cleat_trajectory_start(trajectory, dataset, error);
}

cleat_status cleat_trajectory_set_sample_weight(cleat_trajectory *trajectory, const cleat_golden_array *values,
                                                cleat_error *error) {
    const cleat_work_graph *train = &trajectory->session->work->train[0];
    const cleat_tensor *input = cleat_graph_find(train->graph, "scale");
    char *bytes = cleat_staging_data(trajectory->batch);
    bool same = input && !values->integers && values->rank == input->rank;
    for (int i = 0; same && i < input->rank; ++i) same = values->shape[i] == input->shape[i];
    if (!same)
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "the trajectory's %s does not have the shape of the model's sample weights", values->name);
    memcpy(bytes + train->sample_weight_offset, values->data, (size_t)cleat_tensor_bytes(input));
    return CLEAT_OK;
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

cleat_status cleat_trajectory_evaluate(cleat_trajectory *trajectory, const cleat_dataset *dataset, cleat_error *error) {
    cleat_session *session = trajectory->session;
    const cleat_work_graph *graph = &session->work->evaluate[0];
    cleat_staging *staging = NULL;
    cleat_status status =
        cleat_staging_create(session->exec, cleat_session_input_bytes(session), true, &staging, error);
    if (!status) status = fill_batch(session, graph, dataset, cleat_staging_data(staging), error);
    if (!status) status = cleat_exec_upload(session->exec, graph->index, staging, error);
    if (!status) status = cleat_exec_run(session->exec, graph->index, error);
    if (!status) status = cleat_exec_finish(session->exec, error);
    cleat_staging_destroy(staging);
    return status;
}

cleat_status cleat_trajectory_forward_backward(cleat_trajectory *trajectory, cleat_error *error) {
    cleat_session *session = trajectory->session;
    size_t index = session->work->train[0].index;
    cleat_status status = cleat_exec_upload(session->exec, index, trajectory->batch, error);
    return status ? status : cleat_exec_enqueue(session->exec, index, error);
}

cleat_status cleat_trajectory_update(cleat_trajectory *trajectory, cleat_error *error) {
    cleat_session *session = trajectory->session;
    cleat_status status = cleat_staging_wait(trajectory->update, error);
    if (status) return status;
    cleat_session_prepare_update(session, cleat_staging_data(trajectory->update),
                                 trajectory->profile->train.learning_rate, trajectory->step++);
    status = cleat_exec_upload(session->exec, session->work->update.index, trajectory->update, error);
    return status ? status : cleat_exec_enqueue(session->exec, session->work->update.index, error);
}

cleat_status cleat_trajectory_loss(cleat_trajectory *trajectory, double *loss, cleat_error *error) {
    const cleat_work_graph *train = &trajectory->session->work->train[0];
    float value;
    cleat_status status =
        cleat_exec_read_unchecked(trajectory->session->exec, train->index, train->built.loss, &value, error);
    if (!status) *loss = value;
    return status;
}
