/* A made-up batch, and the clock around training steps. */
#include "train/steps.h"

#include "core/clock.h"
#include "core/memory.h"
#include "core/philox.h"

#include <stdlib.h>

enum { WARM_UP_STEPS = 2, MOST_STEPS = 2000 };

cleat_status cleat_made_batch_create(int64_t batch, int64_t length, int64_t vocabulary, cleat_made_batch *made,
                                     cleat_error *error) {
    int64_t rows = batch * length;
    cleat_made_batch b = {.tokens = cleat_alloc((size_t)rows, sizeof *b.tokens),
                          .target = cleat_alloc((size_t)rows * 3, sizeof *b.target)};
    if (!b.tokens || !b.target) {
        cleat_made_batch_free(&b);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a batch of %lld x %lld", (long long)batch,
                          (long long)length);
    }
    cleat_random random = cleat_random_stream(1, 0, 0);
    for (int64_t i = 0; i < rows; ++i) b.tokens[i] = cleat_random_below(&random, (uint32_t)vocabulary);
    for (int64_t i = 0; i < rows * 3; ++i) b.target[i] = (float)(10 * cleat_random_normal(&random));
    b.reference = (cleat_reference){.batch = batch, .length = length, .input = b.tokens, .target = b.target};
    *made = b;
    return CLEAT_OK;
}

void cleat_made_batch_free(cleat_made_batch *made) {
    cleat_free(made->tokens);
    cleat_free(made->target);
    *made = (cleat_made_batch){.tokens = NULL};
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* One step, and the loss on the host at its end, as other frameworks' benchmarks do it. */
static cleat_status step(cleat_trajectory *run, double *milliseconds, double *loss, cleat_error *error) {
    double start = cleat_seconds();
    cleat_status status = cleat_trajectory_forward_backward(run, error);
    if (status == CLEAT_OK) status = cleat_trajectory_update(run, error);
    if (status == CLEAT_OK) status = cleat_exec_finish(run->session->exec, error);
    if (status == CLEAT_OK) status = cleat_trajectory_loss(run, loss, error);
    *milliseconds = (cleat_seconds() - start) * 1e3;
    return status;
}

cleat_status cleat_time_steps(cleat_trajectory *run, double seconds, int64_t least, cleat_step_times *times,
                              cleat_error *error) {
    double *each = cleat_alloc(MOST_STEPS, sizeof *each), loss = 0;
    if (!each) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for timings");
    cleat_status status = CLEAT_OK;
    int64_t count = 0;
    for (int i = 0; i < WARM_UP_STEPS && status == CLEAT_OK; ++i) status = step(run, &each[0], &loss, error);
    double end = cleat_seconds() + seconds;
    while (status == CLEAT_OK && count < MOST_STEPS && (count < least || cleat_seconds() < end))
        status = step(run, &each[count++], &loss, error);
    if (status == CLEAT_OK) {
        qsort(each, (size_t)count, sizeof *each, ascending);
        *times = (cleat_step_times){
            .steps = count, .ms_median = each[count / 2], .ms_min = each[0], .ms_max = each[count - 1], .loss = loss};
    }
    cleat_free(each);
    return status;
}
