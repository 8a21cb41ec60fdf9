/* Implements names.h. Wine starts a program of the host, but does not wait for it: the command writes its exit status
 * into a file. */
#include <windows.h>

enum { PATH = 64, POLL_MS = 5 };

static unsigned commands;
static struct {
    FILE *file;
    int status;
} piped;

/* Writes `text` to a new file `path`.`ending`. */
static int put(const char *path, const char *ending, const char *text) {
    char name[PATH];
    snprintf(name, sizeof name, "%s.%s", path, ending);
    FILE *file = fopen(name, "wb");
    if (!file) return -1;
    fputs(text, file);
    return fclose(file);
}

/* Runs the command; its output goes to the file `path`.out, or NULL: to the output of this program. */
static int run(const char *command, const char *path, int keeps_output) {
    char line[3 * PATH], name[PATH], text[4096];
    STARTUPINFOA start = {.cb = sizeof start};
    PROCESS_INFORMATION process;
    fflush(NULL);
    snprintf(text, sizeof text, "(\n%s\n) %s%s%s\necho $? >%s.tmp\nmv %s.tmp %s.status\n", command,
             keeps_output ? ">" : "", keeps_output ? path : "", keeps_output ? ".out" : "", path, path, path);
    snprintf(line, sizeof line, "sh %s.sh", path);
    if (put(path, "sh", text) != 0 ||
        !CreateProcessA("Z:\\bin\\sh", line, NULL, NULL, TRUE, 0, NULL, NULL, &start, &process))
        return -1;
    snprintf(name, sizeof name, "%s.status", path);
    FILE *file = NULL;
    while (!(file = fopen(name, "rb"))) Sleep(POLL_MS);
    int status = -1;
    if (fscanf(file, "%d", &status) != 1) status = -1;
    fclose(file);
    remove(name);
    snprintf(name, sizeof name, "%s.sh", path);
    remove(name);
    return status;
}

static void new_path(char path[PATH]) {
    snprintf(path, PATH, "/tmp/cleat-host-%lu-%u", GetCurrentProcessId(), commands++);
}

int host_system(const char *command) {
    char path[PATH];
    new_path(path);
    return run(command, path, 0);
}

FILE *host_popen(const char *command, const char *mode) {
    char path[PATH], name[PATH + 4];
    (void)mode;
    new_path(path);
    piped.status = run(command, path, 1);
    snprintf(name, sizeof name, "%s.out", path);
    piped.file = fopen(name, "rb");
    remove(name);
    return piped.file;
}

int host_pclose(FILE *file) {
    fclose(file);
    return piped.status;
}

int host_mkstemps(char *path, int ending) {
    static unsigned number;
    char *digits = path + strlen(path) - ending - 6;
    const char kept = digits[6];
    snprintf(digits, 7, "%06lu", (GetCurrentProcessId() * 31 + number++) % 1000000);
    digits[6] = kept;
    return open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
}

/* A copy: wine takes a link for the file that it names, and removes that one. */
int host_symlink(const char *target, const char *path) {
    char command[2048];
    snprintf(command, sizeof command, "cp '%s' '%s'", target, path);
    return host_system(command) == 0 ? 0 : -1;
}
