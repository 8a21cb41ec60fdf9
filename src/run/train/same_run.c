/* Whether a checkpoint's run continues with the settings of this process. */
#include "train/same_run.h"

#include "cleat/train.h"
#include "core/shell.h"

#include <stdio.h>
#include <string.h>

/* The profile of the checkpoint, or NULL. */
static cleat_profile *profile_of(const cleat_checkpoint *checkpoint) {
    char path[CLEAT_CHECKPOINT_PATH];
    cleat_profile *then = NULL;
    if (cleat_checkpoint_find_profile(checkpoint->folder, path, NULL) == CLEAT_OK)
        cleat_profile_load(path, NULL, 0, &then, NULL);
    return then;
}

static void format_differences(const cleat_run_settings *settings, const char *folder, char *text, size_t size) {
    char path[CLEAT_PATH + 32];
    cleat_profile *then = NULL;
    snprintf(path, sizeof path, "%s/resolved.ini", folder);
    *text = 0;
    if (cleat_profile_load(path, NULL, 0, &then, NULL)) return;
    cleat_run_settings_differences(settings, then, text, size);
    cleat_profile_destroy(then);
}

static cleat_status refuse(const cleat_checkpoint *checkpoint, const cleat_run_settings *settings, const char *folder,
                           cleat_error *error) {
    char differences[1024];
    format_differences(settings, folder, differences, sizeof differences);
    return cleat_fail(error, CLEAT_ERR_PROFILE,
                      "%s was trained with different settings%s%s. Resume with the same profile, or start a separate "
                      "run with another --out",
                      checkpoint->folder, *differences ? ": " : "", differences);
}

/* The first completed step whose learning rate would differ with the other schedule; `steps` if there is
 * none. */
static int64_t first_other_rate(const cleat_schedule *then, const cleat_schedule *now, int64_t steps) {
    int64_t step = 0;
    while (step < steps && cleat_schedule_rate(then, step) == cleat_schedule_rate(now, step)) ++step;
    return step;
}

/* Only the schedule of the learning rate differs, which `differences` lists: a longer run, for example. */
static cleat_status check_schedules(const cleat_checkpoint *checkpoint, const cleat_schedule *then,
                                    const cleat_schedule *now, const char *differences, const cleat_run *run,
                                    cleat_error *error) {
    const cleat_train_state *state = &checkpoint->state;
    char word[2 * CLEAT_PATH];
    const int64_t done = state->epoch + (state->position > 0), step = first_other_rate(then, now, state->step);
    if (now->epochs < done)
        return cleat_fail(error, CLEAT_ERR_PROFILE, "train.epochs = %lld, but the run in %s has trained %lld epochs%s",
                          (long long)now->epochs, run->folder, (long long)state->epoch,
                          state->position ? " and a part of one" : "");
    if (step == state->step) {
        cleat_log(CLEAT_LOG_INFO,
                  "another schedule (%s): the %lld steps so far would have had the same learning rates, so the run "
                  "continues as if it had been started with it",
                  differences, (long long)state->step);
        return CLEAT_OK;
    }
    if (run->options->resume_from) {
        cleat_log(CLEAT_LOG_WARNING,
                  "a new schedule of the learning rate (%s) from step %lld on: %g after %g in the last step; results "
                  "are not those of a run that had it from the start",
                  differences, (long long)state->step + 1, cleat_schedule_rate(now, state->step),
                  cleat_schedule_rate(then, state->step - 1));
        return CLEAT_OK;
    }
    return cleat_fail(
        error, CLEAT_ERR_PROFILE,
        "%s was trained with another schedule of the learning rate (%s): step %lld had %g and would have "
        "had %g. To continue with the new schedule, as a separate run: --resume-from %s --out FOLDER. "
        "Only the epochs of train.schedule = constant or step, with a warm-up that does not depend on them, can "
        "be changed in the same run",
        checkpoint->folder, differences, (long long)step + 1, cleat_schedule_rate(then, step),
        cleat_schedule_rate(now, step), cleat_shell_path(run->folder, word, sizeof word));
}

/* Whether the checkpoint was trained with these settings except for the number of epochs, or the whole schedule;
 * *earlier is then its schedule. */
static bool is_same_with_schedule(const cleat_checkpoint *checkpoint, const cleat_run_settings *settings,
                                  const cleat_profile *then, bool only_epochs, const cleat_schedule *now,
                                  cleat_schedule *earlier) {
    cleat_profile *same = NULL;
    char hash[33] = "";
    bool is_same = then->family == settings->resolved->family &&
                   !cleat_run_settings_with_schedule(settings, then, only_epochs, hash, &same, NULL) &&
                   strcmp(hash, checkpoint->state.profile_hash) == 0 &&
                   !cleat_schedule_create(same, now->steps_per_epoch, earlier, NULL);
    cleat_profile_destroy(same);
    return is_same;
}

cleat_status cleat_check_same_run(const cleat_checkpoint *checkpoint, const cleat_run_settings *settings,
                                  const cleat_schedule *schedule, const cleat_run *run, bool *replan,
                                  cleat_error *error) {
    const cleat_train_state *state = &checkpoint->state;
    if (settings->cut || !*state->profile_hash || strcmp(settings->hash, state->profile_hash) == 0) {
        *replan = false;
        return CLEAT_OK;
    }
    cleat_profile *then = profile_of(checkpoint);
    cleat_schedule earlier;
    const bool epochs = then && is_same_with_schedule(checkpoint, settings, then, true, schedule, &earlier),
               schedules = epochs || (then && run->options->resume_from &&
                                      is_same_with_schedule(checkpoint, settings, then, false, schedule, &earlier));
    cleat_profile_destroy(then);
    if (!schedules) return refuse(checkpoint, settings, run->folder, error);
    if (state->epochs > 0) cleat_schedule_set_epochs(&earlier, state->epochs); /* as shortened by a time budget */
    char differences[1024];
    format_differences(settings, run->folder, differences, sizeof differences);
    cleat_status status = check_schedules(checkpoint, &earlier, schedule, differences, run, error);
    if (!status) *replan = true;
    return status;
}

cleat_status cleat_check_other_data(const cleat_checkpoint *checkpoint, const cleat_profile *profile,
                                    const char *differences, cleat_error *error) {
    if (!profile->run.resume_other_data)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "%s was trained on other data than %s has now: %s. Resume with the data of the run, start a "
                          "new one with another --out, or continue with these: --set run.resume_other_data=true",
                          checkpoint->folder, profile->data->path, differences);
    cleat_log(CLEAT_LOG_WARNING,
              "%s was trained on other data than %s has now: %s; run.resume_other_data allows it, but results are not "
              "those of a run on either of them",
              checkpoint->folder, profile->data->path, differences);
    return CLEAT_OK;
}
