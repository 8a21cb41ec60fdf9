/* Progress of a run: a bar, lines or none, and the choice between them. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* In a notebook of Jupyter, Kaggle or Colab `!cleat` gets a terminal, but each redrawing is kept as output.
 * Jupyter's servers set the first two for each kernel, Kaggle and Colab the others. */
static const char *const notebook_variables[] = {"JPY_PARENT_PID", "JPY_SESSION_NAME", "KAGGLE_KERNEL_RUN_TYPE",
                                                 "COLAB_RELEASE_TAG", "COLAB_GPU"};

static bool is_notebook(void) {
    for (size_t i = 0; i < sizeof notebook_variables / sizeof *notebook_variables; ++i) {
        const char *value = getenv(notebook_variables[i]);
        if (value && *value) return true;
    }
    return false;
}

bool cli_can_redraw(int file) {
    return cli_is_terminal(file) && !is_notebook();
}

static void print_progress(void *user, const char *text) {
    (void)user;
    fputs(text, stderr);
    fflush(stderr);
}

int cli_terminal_width(void) {
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    const int given = columns ? atoi(columns) : 0;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) return size.ws_col;
    return given > 20 && given < 1000 ? given : 80;
}

int cli_progress(const cli_command *command, const char *form, cleat_train_options *options) {
    const bool automatic = !form || strcmp(form, "auto") == 0, bar = !automatic && strcmp(form, "bar") == 0;
    const bool none = !automatic && strcmp(form, "none") == 0;
    if (!automatic && !bar && !none && strcmp(form, "lines") != 0)
        return cli_usage(command, "--progress %s: must be auto, bar, lines or none", form);
    options->print = none || cli_is_quiet() ? NULL : print_progress;
    options->terminal = bar || (automatic && cli_can_redraw(STDERR_FILENO));
    options->width = cli_terminal_width();
    return 0;
}
