/* Whether a checkpoint's run continues with the settings of this process. */
#ifndef CLEAT_SRC_SAME_RUN_H
#define CLEAT_SRC_SAME_RUN_H

#include "checkpoint/checkpoint.h"
#include "train/run.h"
#include "train/run_settings.h"
#include "train/schedule.h"

/* CLEAT_ERR_PROFILE if the checkpoint was trained with settings that change the result. Another number of
 * epochs is allowed if all steps done would have had the same learning rates, as with train.schedule =
 * constant; with --resume-from every schedule of the learning rate is. *replan: the length of the schedule in
 * the checkpoint no longer applies. */
cleat_status cleat_check_same_run(const cleat_checkpoint *checkpoint, const cleat_run_settings *settings,
                                  const cleat_schedule *schedule, const cleat_run *run, bool *replan,
                                  cleat_error *error);
/* For a run whose data differ by `differences` from those of the checkpoint: CLEAT_ERR_ARGUMENT, or only a
 * warning with run.resume_other_data. */
cleat_status cleat_check_other_data(const cleat_checkpoint *checkpoint, const cleat_profile *profile,
                                    const char *differences, cleat_error *error);

#endif
