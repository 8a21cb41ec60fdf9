/* The TensorBoard file of a run. A file that can no longer be written is a warning, not the end of the run:
 * metrics.jsonl has the same values, and a file can be made of it later. */
#include "train/run_board.h"

#include "core/clock.h"
#include "core/files.h"
#include "core/memory.h"
#include "tensorboard/tensorboard.h"

static void warn(cleat_status status, const cleat_error *why) {
    if (!status) return;
    cleat_log(CLEAT_LOG_WARNING,
              "%s; the run continues without its TensorBoard file, which `run.tensorboard` asked for", why->text);
}

void cleat_run_board_metrics(cleat_run *run, const char *line) {
    cleat_error why = {0};
    if (run->board) warn(cleat_tensorboard_metrics_line(run->board, cleat_wall_seconds(), line, &why), &why);
}

void cleat_run_board_system(void *run, const char *line) {
    cleat_tensorboard *board = ((cleat_run *)run)->board;
    cleat_error why = {0};
    if (board) warn(cleat_tensorboard_system_line(board, line, &why), &why);
}

static cleat_status write_profile(cleat_run *run, int64_t step, cleat_error *error) {
    char path[CLEAT_PATH + 32], *text;
    size_t size;
    cleat_status status = cleat_path_join(run->folder, "resolved.ini", path, sizeof path, error);
    if (!status) status = cleat_file_read(path, &text, &size, error);
    if (status) return status;
    status = cleat_tensorboard_verbatim(run->board, cleat_wall_seconds(), step, "profile", text, error);
    cleat_free(text);
    return status;
}

cleat_status cleat_run_board_open(cleat_run *run, const cleat_profile *resolved, int64_t step, cleat_error *error) {
    if (!resolved->run.tensorboard) return CLEAT_OK;
    const bool continues = cleat_tensorboard_exists(run->folder);
    const int64_t first_step = continues ? step : 0;
    cleat_status status = cleat_tensorboard_create(run->folder, &run->board, error);
    if (!status) status = cleat_tensorboard_start(run->board, cleat_wall_seconds(), first_step, error);
    if (!status) status = write_profile(run, step, error);
    if (!status) status = cleat_tensorboard_replay(run->board, run->folder, first_step, step, NULL, error);
    return status;
}

void cleat_run_board_close(cleat_run *run) {
    cleat_tensorboard_close(run->board);
    run->board = NULL;
}
