/* Fallbacks when a device has less memory than planned; every fallback is logged. A fallback changes only
 * how the global batch is split into micro-batches, not the result of a step. Batch normalisation is the
 * exception: its statistics are those of a micro-batch. Shorter sequences, the last fallback, do change
 * the result. */
#include "train/oom_fallback.h"

#include "checkpoint/checkpoint.h"
#include "session/session.h"

#include <stdio.h>

enum { LENGTH_STEP = 8 };

/* Shortens sequences to three quarters of the maximum length, but not below data.min_length. */
static bool shorten(cleat_run_settings *settings) {
    int64_t least = settings->profile->data->min_length, most = settings->profile->data->max_length;
    int64_t length = most * 3 / 4 / LENGTH_STEP * LENGTH_STEP;
    if (least == CLEAT_NONE || most <= least) return false;
    if (length < least) length = least;
    if (cleat_run_settings_shorten(settings, length, NULL)) return false;
    settings->cut = true;
    cleat_log(CLEAT_LOG_WARNING,
              "out of memory: longer sequences are cut to length %lld instead of %lld (allowed by data.min_length)",
              (long long)length, (long long)most);
    return true;
}

/* "the checkpoint of step 12" or "the beginning". */
static const char *format_resume_point(const char *folder, char text[64]) {
    cleat_checkpoint_name last;
    if (cleat_checkpoint_pointer(folder, "last", &last))
        snprintf(text, 64, "the checkpoint of step %lld", (long long)last.step);
    else
        snprintf(text, 64, "%s", cleat_checkpoint_exists(folder) ? "the newest checkpoint" : "the beginning");
    return text;
}

bool cleat_oom_fallback(cleat_memory_limit *memory, cleat_run_settings *settings, const char *folder, int64_t planned,
                        cleat_error *error) {
    if (error->status == CLEAT_ERR_DEVICE_MEMORY) memory->refused = *error;
    if (planned > 0) {
        char text[2][CLEAT_BYTES_TEXT], place[64];
        memory->limit = cleat_session_reduced_limit(planned);
        cleat_log(CLEAT_LOG_WARNING,
                  "out of device memory (%s): continuing from %s with at most %s instead of %s; the global batch size "
                  "remains %lld",
                  error->text, format_resume_point(folder, place), cleat_bytes_text(memory->limit, text[0]),
                  cleat_bytes_text(planned, text[1]), (long long)cleat_profile_effective_batch(settings->profile));
        return true;
    }
    if (shorten(settings)) return true;
    if (memory->refused.status) { /* report the original refusal of the device */
        cleat_error last = *error;
        *error = memory->refused;
        cleat_fail_in(error, error->status, "no smaller setting fits either (%.600s); the device reported", last.text);
    }
    return false;
}
