/* The ladder down when a card has less memory than was planned with: each rung is said aloud. What a step computes
 * does not depend on the rung, only how its window is cut; but batch normalisation sees micro-batches. */
#include "checkpoint/format.h"
#include "train/trainer.h"

#include <stdio.h>
#include <string.h>

enum { LENGTH_STEP = 8 };

/* The steps that are done, as a checkpoint. Where that fails, or the failure came while the device held something else
 * than the training state, the last checkpoint of the folder has to do: the same steps are then computed again. */
static void save_steps(cleat_trainer *trainer) {
    cleat_error error = {0};
    bool keep = trainer->log && trainer->is_savable && trainer->state.step > 0;
    if (keep && cleat_trainer_save_within_epoch(trainer, &error) != CLEAT_OK)
        cleat_log(CLEAT_LOG_WARNING, "the steps since the last checkpoint must be repeated: %s", error.text);
}

/* Three quarters of the longest length, as far as data.min_length allows. */
static bool shorten(cleat_trainer *trainer) {
    int64_t least = trainer->profile->data.min_length, most = trainer->profile->data.max_length;
    int64_t length = most * 3 / 4 / LENGTH_STEP * LENGTH_STEP;
    if (least == CLEAT_NONE || most <= least) return false;
    if (length < least) length = least;
    cleat_profile_shorten(trainer->profile, length, &trainer->shortened);
    trainer->profile = &trainer->shortened;
    trainer->cut = true;
    cleat_log(CLEAT_LOG_WARNING,
              "out of memory: longer sequences are cut to length %lld instead of %lld (allowed by data.min_length)",
              (long long)length, (long long)most);
    return true;
}

/* "the checkpoint of step 12" or "the beginning". */
static const char *format_resume_point(const cleat_trainer *trainer, char text[64]) {
    cleat_checkpoint_name last;
    if (cleat_checkpoint_pointer(trainer->folder, "last", &last))
        snprintf(text, 64, "the checkpoint of step %lld", (long long)last.step);
    else
        snprintf(text, 64, "%s", cleat_checkpoint_exists(trainer->folder) ? "the newest checkpoint" : "the beginning");
    return text;
}

bool cleat_trainer_oom_fallback(cleat_trainer *trainer, cleat_error *error) {
    int64_t planned = trainer->session ? cleat_plan_bytes(trainer->session->work->plan) : 0;
    if (error->status == CLEAT_ERR_DEVICE_MEMORY) trainer->refused = *error;
    if (planned > 0) {
        int64_t limit = cleat_session_reduced_limit(planned);
        char text[2][CLEAT_BYTES_TEXT], place[64];
        save_steps(trainer);
        cleat_log(CLEAT_LOG_WARNING,
                  "out of device memory (%s): continuing from %s with at most %s instead of %s; the global batch size "
                  "remains %lld",
                  error->text, format_resume_point(trainer, place), cleat_bytes_text(limit, text[0]),
                  cleat_bytes_text(planned, text[1]), (long long)cleat_profile_effective_batch(trainer->profile));
        trainer->limit = limit;
    } else if (!shorten(trainer)) {
        if (trainer->refused.status) { /* the device had the first word */
            cleat_error last = *error;
            *error = trainer->refused;
            cleat_fail_in(error, error->status, "no smaller setting fits either (%.600s); the device reported",
                          last.text);
        }
        return false;
    }
    cleat_trainer_close(trainer);
    trainer->resume = cleat_checkpoint_exists(trainer->folder);
    return true;
}
