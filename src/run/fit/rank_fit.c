/* Fits the samples of one rank with the search of fit.c, as if they were a global batch. */
#include "fit/rank_fit.h"

#include "fit/estimate.h"
#include "graph/store.h"

#include <stdio.h>

static cleat_status estimate_bucket(const cleat_workload *work, size_t b, const cleat_rates *rates, double update,
                                    cleat_rank_fit *fit, cleat_error *error) {
    double seconds = 0;
    cleat_status status = cleat_estimate_graph(work->plan, work->train[b].index, rates, &seconds, error);
    if (!status) status = cleat_estimate_backward(work->plan, work->train[b].index, rates, &fit->backward[b], error);
    if (!status) fit->seconds[b] = (double)fit->buckets[b].micro_batches * seconds + update;
    return status;
}

static void describe_tables(const cleat_workload *work, cleat_rank_fit *fit) {
    fit->tables = cleat_row_tables_find(work, fit->table);
    for (int t = 0; t < fit->tables; ++t) {
        const cleat_row_table *table = &fit->table[t];
        snprintf(fit->table_names[t], sizeof fit->table_names[t], "%s", work->store->params[table->parameter]->name);
        for (size_t b = 0; b < work->n_buckets; ++b)
            fit->numbers[t][b] = fit->buckets[b].micro_batches * cleat_row_table_numbers(work, table, b);
    }
}

static cleat_status describe(const cleat_workload *work, const cleat_rates *rates, const int64_t *samples,
                             cleat_rank_fit *fit, cleat_error *error) {
    double update = 0;
    fit->fits = true;
    fit->recompute = work->recompute != 0;
    fit->bytes = cleat_plan_bytes(work->plan);
    fit->gradient_bytes = cleat_store_trained(work->store) * (int64_t)sizeof(float);
    cleat_status status = cleat_estimate_graph(work->plan, work->update.index, rates, &update, error);
    for (size_t b = 0; b < work->n_buckets && !status; ++b) {
        fit->buckets[b] = (cleat_fit_bucket){.length = work->buckets[b].length};
        if (samples[b] == 0) continue;
        fit->buckets[b].global_batch_size = samples[b];
        fit->buckets[b].micro_batch_size = work->buckets[b].micro_batch_size;
        fit->buckets[b].micro_batches = cleat_fit_micro_batches(&work->buckets[b]);
        status = estimate_bucket(work, b, rates, update, fit, error);
    }
    describe_tables(work, fit);
    return status;
}

/* Micro-batches that the profile sets follow from its effective batch; the batch of this rank applies only
 * to the search. */
static cleat_status search(const cleat_rank_setup *setup, const cleat_profile *of_rank, const cleat_lengths *lengths,
                           const cleat_device_facts *facts, const cleat_rates *rates, cleat_rank_fit *fit,
                           cleat_error *error) {
    cleat_fit_result chosen = {0};
    cleat_error why = {0};
    cleat_fit_request request =
        cleat_fit_request_for(setup->profile, setup->model, CLEAT_FOR_TRAINING, lengths, facts, rates);
    request.profile = of_rank;
    fit->limit = request.limit;
    cleat_status status = cleat_fit_search(&request, &chosen, NULL, fit->reason, sizeof fit->reason, &why);
    if (!status)
        status = describe(chosen.work, rates, lengths->samples, fit, &why);
    else if (status == CLEAT_ERR_FIT) {
        snprintf(fit->reason, sizeof fit->reason, "%.511s", why.text);
        status = CLEAT_OK;
    }
    if (status && error) *error = why;
    cleat_fit_result_clear(&chosen);
    return status;
}

cleat_status cleat_rank_fit_make(const cleat_rank_setup *setup, const cleat_device_facts *facts,
                                 const cleat_rates *rates, const int64_t *samples, cleat_rank_fit *fit,
                                 cleat_error *error) {
    cleat_rank_fit made = {.storage = cleat_precision_storage(setup->profile->train.precision, facts)};
    cleat_lengths lengths = *setup->lengths;
    cleat_profile *of_rank = NULL;
    int64_t most = 0;
    for (size_t b = 0; b < lengths.count; ++b) {
        lengths.samples[b] = samples[b];
        if (samples[b] > most) most = samples[b];
    }
    if (most < 1) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "a rank without samples cannot be fitted");
    cleat_status status = cleat_profile_clone(setup->profile, &of_rank, error);
    if (status) return status;
    of_rank->train.effective_batch_size = most;
    status = search(setup, of_rank, &lengths, facts, rates, &made, error);
    cleat_profile_destroy(of_rank);
    if (!status) *fit = made;
    return status;
}
