/* Planned bytes equal allocated bytes: random models, batches and limits, with and without recomputation,
 * both device shapes; and one step runs in the allocated memory. */
/* ctest: device cost=130 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/philox.h"
#include "device/device.h"
#include "plan_check.h"
#include "platform/processes.h"
#include "session/session.h"
#include "train/tiny.h"

enum { MODELS = 7 };

static int64_t draw(cleat_random *random, int64_t low, int64_t high) {
    return low + cleat_random_below(random, (uint32_t)(high - low + 1));
}

static void set_size(cleat_profile *profile, const char *name, int64_t size) {
    char assignment[64];
    snprintf(assignment, sizeof assignment, "%s=%lld", name, (long long)size);
    assert_int_equal(cleat_profile_set(profile, assignment, NULL), CLEAT_OK);
}

static int64_t layers_of(const cleat_profile *profile) {
    char layers[32];
    assert_int_equal(cleat_profile_get(profile, "model.layers", layers, sizeof layers, NULL), CLEAT_OK);
    return atoll(layers);
}

static cleat_profile *random_profile(const tiny *t, cleat_random *random) {
    cleat_profile *profile = tiny_profile(t, SET("train.batch_size=auto"));
    const int64_t heads = 1 << draw(random, 0, 2);
    set_size(profile, "model.heads", heads);
    set_size(profile, "model.d_model", heads * 8 * draw(random, 1, 2));
    set_size(profile, "model.layers", draw(random, 1, 4));
    set_size(profile, "model.d_ff", 8 * draw(random, 1, 6));
    assert_int_equal(cleat_profile_set(profile, draw(random, 0, 1) ? "model.dropout=0.1" : "model.dropout=0", NULL),
                     CLEAT_OK);
    profile->train.effective_batch_size = draw(random, 1, 6);
    profile->run.max_memory_usage = 1;
    return profile;
}

static cleat_lengths random_lengths(cleat_random *random) {
    cleat_lengths lengths = {.count = (size_t)draw(random, 1, 3)};
    int64_t length = 0;
    for (size_t i = 0; i < lengths.count; ++i) {
        length += draw(random, 1, 40);
        lengths.lengths[i] = length;
        lengths.samples[i] = draw(random, 1, 12);
    }
    return lengths;
}

static void run_a_step(cleat_session *session) {
    cleat_error error = {0};
    cleat_status status = cleat_session_initialise(session, 1, &error);
    for (size_t b = 0; b < session->work->n_buckets && !status; ++b)
        status = cleat_exec_run(session->exec, session->work->train[b].index, &error);
    if (!status) status = cleat_exec_run(session->exec, session->work->update.index, &error);
    if (!status) status = cleat_exec_finish(session->exec, &error);
    if (status) fail_msg("%s", error.text);
}

/* Opens the fit of `request` and compares bytes. Returns the planned bytes, or 0 if nothing fits. */
static int64_t open_and_compare(cleat_device *device, const cleat_fit_request *request) {
    cleat_session *session = NULL;
    cleat_error error = {0};
    cleat_status status = cleat_session_fit(device, request, &session, &error);
    if (status == CLEAT_ERR_FIT) return 0;
    if (status) fail_msg("%s", error.text);
    int64_t planned = cleat_plan_bytes(session->work->plan);
    assert_int_equal(cleat_device_allocated(device), planned);
    assert_true(planned <= request->limit);
    if (cleat_plan_check(session->work->plan, &error) != CLEAT_OK) fail_msg("%s", error.text);
    run_a_step(session);
    assert_int_equal(cleat_device_allocated(device), planned);
    cleat_session_destroy(session);
    assert_int_equal(cleat_device_allocated(device), 0);
    return planned;
}

static void planned_bytes_are_allocated_bytes(void **state) {
    const tiny *t = *state;
    cleat_random random = cleat_random_stream(5, 0, 0);
    int opened = 0, recomputed = 0;
    for (int i = 0; i < MODELS; ++i) {
        cleat_profile *profile = random_profile(t, &random);
        cleat_lengths lengths = random_lengths(&random);
        cleat_device *device = NULL;
        cleat_model *model = NULL;
        cleat_error error = {0};
        setenv("CLEAT_DEVICE_SHAPE", i % 3 == 2 ? "gpu" : "", 1);
        if (cleat_device_open(profile->run.device, &device, &error) != CLEAT_OK ||
            cleat_profile_create_model(profile, &model, &error) != CLEAT_OK)
            fail_msg("%s", error.text);
        cleat_fit_request request =
            cleat_fit_request_for(profile, model, CLEAT_FOR_TRAINING, &lengths, cleat_device_get_facts(device), NULL);
        int64_t whole = open_and_compare(device, &request);
        assert_true(whole > 0);
        request.limit = draw(&random, whole / 2, whole - 1);
        int64_t less = open_and_compare(device, &request);
        opened += 1 + (less > 0);
        profile->train.gradient_checkpointing = CLEAT_CHECKPOINTING_TRUE;
        request.limit = whole;
        if (layers_of(profile) > 1) recomputed += open_and_compare(device, &request) > 0;
        cleat_model_destroy(model);
        cleat_device_close(device);
        cleat_profile_destroy(profile);
    }
    unsetenv("CLEAT_DEVICE_SHAPE");
    print_message("%d sessions stored, %d recomputed\n", opened, recomputed);
    assert_true(opened > MODELS && recomputed > 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(planned_bytes_are_allocated_bytes)};
    tiny_require_device();
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}
