/* cleat passport: checks and measurements of a device, in one text that its owner can paste into an issue. */
#include "core/clock.h"
#include "core/files.h"
#include "passport.h"
#include "platform/files.h"
#include "platform/processes.h"
#include "platform/system.h"

#include <cleat/doctor.h>
#include <cleat/verify.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Workloads of cleat bench: a few operations, then training steps. */
static const char *const workloads[] = {
    "sgemm_1024",          "W4", "W1_B2L512",    "W2", "W5_64", "conv_64", "attention_L512_d64",
    "layer_norm_8192x512", "W3", "W6_segformer", NULL};
/* Models whose kernels are tuned, in their default sizes. */
static const char *const tuned_models[] = {"series_dense", "text_classifier", "rna_transformer", "series_lstm", NULL};

/* Share of the time after which a stage begins no further item. */
static const double check_share = 0.65, bench_share = 0.85, tune_share = 0.95;

/* Limits in seconds for a child: the minimum, the doctor, a query to a driver; and the time of a benchmark,
 * and of a candidate of the tuner. */
#define MIN_SECONDS 10.0
#define DOCTOR_SECONDS 30.0
#define DRIVER_SECONDS 30.0
#define BENCH_SECONDS "0.5"
#define TUNE_SECONDS "0.02"

/* Failures that are printed in full: their number, the lines of each, and their bytes together. */
enum { MAX_FAILURES = 12, FAILURE_LINES = 8, FAILURES_BYTES = 7 * 1024 };

typedef struct passport {
    const char *device, *out;
    double seconds, start;
    char name[128]; /* of the device */
    bool usable;    /* it opened */
    passport_text text;
    passport_text failures; /* the lines of the section */
    int failure_count;
    char *known[MAX_FAILURES]; /* messages that have a number already; owned */
} passport;

static void today(char date[16]) {
    const time_t now = time(NULL);
    struct tm parts;
    gmtime_r(&now, &parts);
    strftime(date, 16, "%Y-%m-%d", &parts);
}

/* --- children ------------------------------------------------------------------------------------------------- */

static double left(const passport *p) {
    return p->seconds - (cleat_seconds() - p->start);
}

/* Whether the time of a stage, a share of the total, is over. */
static bool is_over(const passport *p, double share) {
    return cli_child_stopped() || cleat_seconds() - p->start > share * p->seconds;
}

static void run_child(const passport *p, const char *const *words, double seconds, cli_child *child) {
    cli_child_run_self(words, fmin(seconds, fmax(left(p), 1)), child);
}

static void run_part(const passport *p, const char *part, double seconds, cli_child *child) {
    const char *words[] = {"passport", "--part", part, "--device", p->device, "--seconds", TUNE_SECONDS, NULL};
    run_child(p, words, seconds, child);
}

static void show_progress(const char *what, const cli_child *child) {
    if (cli_is_quiet()) return;
    fprintf(stderr, "passport: %s: %s (%.1f s)\n", what, child->failure[0] ? child->failure : "ok", child->seconds);
}

/* --- failures ------------------------------------------------------------------------------------------------- */

/* Number of the failure of `child`, written in full the first time; 0: there is no room for another one. */
static int add_failure(passport *p, const char *what, const cli_child *child) {
    const char *message = child->detail && *child->detail ? child->detail : child->failure;
    /* Equal for failures with the same cause: a build log without the name of the model. */
    const char *built = strstr(message, "does not compile on"), *log = built ? strchr(built, '\n') : NULL;
    const char *cause = log ? log : message;
    char key[16];
    for (int i = 0; i < p->failure_count; ++i)
        if (strcmp(p->known[i], cause) == 0) return i + 1;
    if (p->failure_count == MAX_FAILURES || !(p->known[p->failure_count] = strdup(cause))) return 0;
    snprintf(key, sizeof key, "%02d", ++p->failure_count);
    if (child->ended || message == child->failure)
        passport_line(&p->failures, key, "%s", what);
    else
        passport_line(&p->failures, key, "%s: %s; its last lines:", what, child->failure);
    passport_message(&p->failures, key, message, FAILURE_LINES);
    return p->failure_count;
}

/* "failed, 01, FIRST LINE", or "timeout, ..." if the result is unknown. */
static void write_failure(passport *p, const char *key, const char *what, const cli_child *child) {
    const int number = child->failure[0] ? add_failure(p, what, child) : 0;
    char reference[16] = "";
    if (number) snprintf(reference, sizeof reference, "%02d, ", number);
    passport_line(&p->text, key, "%s, %s%s", child->timed_out ? "timeout" : "failed", reference,
                  child->failure[0] ? child->failure : "no result");
}

static void write_failures(passport *p) {
    passport_section(&p->text, "failures");
    passport_line(&p->text, "count", "%d", p->failure_count);
    p->text.limit = PASSPORT_BYTES;
    passport_lines(&p->text, p->failures.lines.data);
    p->text.left_out += p->failures.left_out;
}

/* --- sections ------------------------------------------------------------------------------------------------- */

/* Copies what follows "KEY=" or "KEY: " in a small file of the system, without quotes; "unknown" if there is none. */
static void find_field(const char *path, const char *key, char *value, size_t size) {
    if (!cleat_file_field(path, key, value, size)) snprintf(value, size, "unknown");
    const char *at = value + strspn(value, " \t:=\"");
    memmove(value, at, strlen(at) + 1);
    value[strcspn(value, "\"")] = 0;
}

/* Variables that change what is described: of cleat, of OpenCL and of its drivers. */
static void write_environment(passport *p) {
    static const char *const starts[] = {"CLEAT_",           "OCL_ICD_",    "POCL_",      "HSA_",
                                         "ROCR_VISIBLE",     "HIP_VISIBLE", "GPU_DEVICE", "GPU_FORCE",
                                         "GPU_MAX",          "AMD_OCL",     "AMD_LOG",    "CUDA_VISIBLE",
                                         "CUDA_DEVICE",      "CUDA_LAUNCH", "MESA_",      "RUSTICL_",
                                         "NEOReadDebugKeys", "ZE_",         NULL};
    char found[1024] = "";
    for (char **variable = environ; *variable; ++variable) {
        if (strstr(*variable, "CACHE")) continue;
        for (const char *const *start = starts; *start; ++start)
            if (strncmp(*variable, *start, strlen(*start)) == 0)
                snprintf(found + strlen(found), sizeof found - strlen(found), "%s ", *variable);
    }
    passport_line(&p->text, "environment", "%s", *found ? found : "none");
}

static void write_host(passport *p) {
    char value[256];
    struct utsname kernel;
    cpu_set_t cpus;
    double load = 0;
    passport_section(&p->text, "host");
    find_field("/etc/os-release", "PRETTY_NAME", value, sizeof value);
    passport_line(&p->text, "system", "%s", value);
    if (uname(&kernel) == 0) passport_line(&p->text, "kernel", "%s %s", kernel.release, kernel.machine);
    find_field("/proc/cpuinfo", "model name", value, sizeof value);
    passport_line(&p->text, "cpu", "%s", value);
    if (sched_getaffinity(0, sizeof cpus, &cpus) == 0) passport_line(&p->text, "cpus", "%d", CPU_COUNT(&cpus));
    if (getloadavg(&load, 1) == 1) passport_line(&p->text, "load", "%.2f", load);
    find_field("/proc/meminfo", "MemTotal", value, sizeof value);
    passport_line(&p->text, "memory", "%s", value);
    write_environment(p);
}

static const char *string_of(const cJSON *object, const char *name) {
    const char *text = cleat_json_text(object, name);
    return text ? text : "";
}

/* A check: its number, since a code can occur twice, code, result, evidence and cause; in several lines if it
 * failed, since a compiler's log may follow. */
static void write_doctor_check(passport *p, int number, const cJSON *check) {
    const char *cause = string_of(check, "cause"), *result = string_of(check, "result");
    const bool passed = strcmp(result, "ok") == 0 || strcmp(result, "skipped") == 0;
    char key[64], text[2 * CLEAT_CHECK_TEXT];
    snprintf(key, sizeof key, "%02d %s", number, string_of(check, "code"));
    snprintf(text, sizeof text, "%s, %s%s%s", result, string_of(check, "evidence"), *cause ? "; " : "", cause);
    if (passed)
        passport_line(&p->text, key, "%s", text);
    else
        passport_message(&p->text, key, text, FAILURE_LINES);
}

static const cJSON *first_of(const cJSON *object, const char *name) {
    const cJSON *array = cleat_json_member(object, name);
    return array ? array->child : NULL;
}

static void write_doctor_checks(passport *p, const cJSON *report) {
    int number = 0, cards = 0;
    char key[32];
    for (const cJSON *section = first_of(report, "sections"); section; section = section->next) {
        if (strcmp(string_of(section, "section"), "card") == 0) { /* a card's name and address are in its title only */
            snprintf(key, sizeof key, "card %d", ++cards);
            passport_line(&p->text, key, "%s, %s", string_of(section, "result"), string_of(section, "title"));
        }
        for (const cJSON *check = first_of(section, "checks"); check; check = check->next)
            write_doctor_check(p, ++number, check);
    }
}

static void write_doctor(passport *p) {
    const double seconds = fmin(DOCTOR_SECONDS, p->seconds / 4);
    char drivers[32];
    const char *words[] = {"doctor", "--json", "--seconds", drivers, "--device", p->device, NULL};
    cli_child child;
    snprintf(drivers, sizeof drivers, "%.1f", seconds / 2);
    run_child(p, words, seconds, &child);
    show_progress("doctor", &child);
    cJSON *report = child.output ? cJSON_Parse(child.output) : NULL;
    passport_section(&p->text, "doctor");
    if (report) {
        passport_line(&p->text, "result", "%s", string_of(report, "result"));
        write_doctor_checks(p, report);
    } else {
        const bool missing = child.ended && child.exit_code == EXIT_USAGE;
        passport_line(&p->text, "result", "unknown, %s",
                      missing            ? "this version has no cleat doctor"
                      : child.failure[0] ? child.failure
                                         : "no report");
    }
    cJSON_Delete(report);
    cli_child_free(&child);
}

/* A section with the lines that a part prints; the caller frees *child. */
static void write_part(passport *p, const char *part, double seconds, cli_child *child) {
    run_part(p, part, seconds, child);
    show_progress(part, child);
    passport_section(&p->text, part);
    if (child->failure[0]) write_failure(p, "failed", part, child);
    if (child->output) passport_lines(&p->text, child->output);
}

static void write_device(passport *p) {
    cli_child child;
    write_part(p, "device", fmin(DRIVER_SECONDS, p->seconds / 2), &child);
    p->usable = !child.failure[0];
    const char *name = child.output ? strstr(child.output, "name = ") : NULL;
    if (!name || sscanf(name, "name = %127[^\n]", p->name) != 1) p->name[0] = 0;
    cli_child_free(&child);
}

static void write_rates(passport *p) {
    cli_child child = {.output = NULL};
    if (p->usable)
        write_part(p, "rates", DRIVER_SECONDS, &child);
    else
        passport_section(&p->text, "rates");
    cli_child_free(&child);
}

/* Whether an item is left out, which the text then says. */
static bool is_skipped(passport *p, const char *key, double share) {
    if (p->usable && !is_over(p, share)) return false;
    passport_line(&p->text, key, "skipped, %s", p->usable ? "out of time" : "no device");
    return true;
}

static void write_check(passport *p, const char *model, const char *precision) {
    char key[96], part[96];
    cli_child child;
    snprintf(key, sizeof key, "%s %s", model, precision);
    if (is_skipped(p, key, check_share)) return;
    snprintf(part, sizeof part, "check:%s:%s", model, precision);
    run_part(p, part, fmax(left(p) / 2, MIN_SECONDS), &child);
    show_progress(part, &child);
    if (child.failure[0] || !child.output)
        write_failure(p, key, part, &child);
    else
        passport_line(&p->text, key, "%s", child.output);
    cli_child_free(&child);
}

/* All families in f32 first, then family by family, so that both half precisions are tried if time is short. */
static void write_selfcheck(passport *p) {
    passport_section(&p->text, "check");
    const char *model;
    for (size_t i = 0; (model = cleat_reference_model(i)) != NULL; ++i) write_check(p, model, "f32");
    for (size_t i = 0; (model = cleat_reference_model(i)) != NULL; ++i) {
        write_check(p, model, "f16");
        write_check(p, model, "bf16");
    }
}

static void write_workload(passport *p, const char *name) {
    const char *words[] = {"bench", name, "--json", "--seconds", BENCH_SECONDS, "--device", p->device, NULL};
    cli_child child;
    run_child(p, words, fmax(left(p) / 3, MIN_SECONDS), &child);
    show_progress(name, &child);
    cJSON *result = child.output && !child.failure[0] ? cJSON_Parse(child.output) : NULL;
    if (result)
        passport_line(&p->text, name, "ok, %.4g ms, predicted %.4g ms, %.4g GFLOP/s, %.4g GB/s, %.2f of peak, %s bound",
                      cleat_json_number(result, "ms_per_step"), cleat_json_number(result, "predicted_ms"),
                      cleat_json_number(result, "gflops"), cleat_json_number(result, "gbytes_per_s"),
                      cleat_json_number(result, "share_of_peak"), string_of(result, "bound"));
    else
        write_failure(p, name, name, &child);
    cJSON_Delete(result);
    cli_child_free(&child);
}

static void write_bench(passport *p) {
    passport_section(&p->text, "bench");
    for (const char *const *name = workloads; *name; ++name)
        if (!is_skipped(p, *name, bench_share)) write_workload(p, *name);
}

/* Adds the answers that differ from the default, "KEY = VARIANT SPEEDUP DEFAULT"; returns the number of others. */
static size_t write_answers(passport *p, char *lines) {
    size_t usual = 0;
    for (char *line = strtok(lines, "\n"); line; line = strtok(NULL, "\n")) {
        const char *answer = strstr(line, " = ");
        if (answer && strchr(answer + 3, ' '))
            passport_lines(&p->text, line);
        else
            ++usual;
    }
    return usual;
}

static bool is_ini(const char *name) {
    return strcmp(cleat_name_ending(name), ".ini") == 0;
}

/* The tuner names the version of the kernels in its file, which is in the cache of this passport. */
static void write_kernels(passport *p) {
    char folder[512], path[512 + 256], hash[64];
    cleat_name_list found = {0};
    snprintf(folder, sizeof folder, "%s/tuned", getenv("CLEAT_CACHE_DIR"));
    if (cleat_listing_read(folder, is_ini, &found, NULL) == CLEAT_OK && found.count == 1) {
        snprintf(path, sizeof path, "%s/%s", folder, found.names[0]);
        find_field(path, "kernels", hash, sizeof hash);
        passport_line(&p->text, "kernels", "%s", hash);
    }
    cleat_name_list_free(&found);
}

static void write_tune(passport *p) {
    char part[96], tuned[128] = "";
    size_t usual = 0;
    passport_section(&p->text, "tune");
    for (const char *const *model = tuned_models; *model && p->usable && !is_over(p, tune_share); ++model) {
        cli_child child;
        snprintf(part, sizeof part, "tune:%s", *model);
        run_part(p, part, left(p), &child);
        if (child.timed_out) snprintf(child.failure, sizeof child.failure, "out of time: ok in part");
        show_progress(part, &child);
        if (child.output) usual += write_answers(p, child.output);
        if (child.failure[0] && !child.timed_out) write_failure(p, part, part, &child);
        snprintf(tuned + strlen(tuned), sizeof tuned - strlen(tuned), "%s%s%s", *tuned ? ", " : "", *model,
                 child.failure[0] ? " (in part)" : "");
        cli_child_free(&child);
    }
    passport_line(&p->text, "models", "%s", *tuned ? tuned : "none");
    passport_line(&p->text, "unchanged", "%zu", usual);
    if (*tuned) write_kernels(p);
}

/* --- the file ------------------------------------------------------------------------------------------------- */

/* Lower-case letters, digits and dashes. */
static void file_name(const char *device, char *path, size_t size) {
    char slug[48], date[16];
    size_t used = 0;
    for (const char *at = device; *at && used < sizeof slug - 1; ++at) {
        const char c = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at;
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
            slug[used++] = c;
        else if (used > 0 && slug[used - 1] != '-')
            slug[used++] = '-';
    }
    while (used > 0 && slug[used - 1] == '-') --used;
    slug[used] = 0;
    today(date);
    snprintf(path, size, "cleat-passport-%s-%s.txt", used ? slug : "none", date);
}

static cleat_status refuse_existing(const char *path, cleat_error *error) {
    if (access(path, F_OK) != 0) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%s: exists and is not overwritten; remove it or choose another --out",
                      path);
}

static cleat_status write_file(const char *path, const cleat_string *text, cleat_error *error) {
    if (text->failed) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the passport");
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    FILE *stream = file < 0 ? NULL : fdopen(file, "w");
    const bool wrote = stream && fwrite(text->data, 1, text->size, stream) == text->size;
    const int closed = stream ? fclose(stream) : -1;
    if (wrote && closed == 0) return CLEAT_OK;
    const int code = errno;
    if (file >= 0) unlink(path); /* created here: a partial passport is useless */
    errno = code;
    return cleat_fail(error, CLEAT_ERR_IO, "%s: cannot write: %s", path, strerror(errno));
}

/* --- the command ---------------------------------------------------------------------------------------------- */

static void on_signal(int number) {
    (void)number;
    cli_child_stop();
}

static void write_head(passport *p) {
    static const char head[] =
        "; cleat passport: checks and measurements of one device. Paste the whole text into an issue.\n"
        "; Names of users and hosts, and folders, are left out.\n";
    char date[16];
    passport_begin(&p->text, head);
    p->text.limit = PASSPORT_BYTES - FAILURES_BYTES;
    passport_begin(&p->failures, "");
    p->failures.limit = FAILURES_BYTES;
    today(date);
    passport_section(&p->text, "passport");
    passport_line(&p->text, "format", "%d", (int)PASSPORT_FORMAT);
    passport_line(&p->text, "cleat", "%s", cleat_version());
    passport_line(&p->text, "date", "%s", date);
    passport_line(&p->text, "seconds", "%.0f", p->seconds);
}

/* What a card file needs comes first, then whether the device computes correctly, then how fast it is. */
static cleat_status fill(passport *p, char path[1024], cleat_error *error) {
    write_head(p);
    write_host(p);
    write_device(p);
    if (!p->out) {
        file_name(p->name, path, 1024);
        cleat_status status = refuse_existing(path, error);
        if (status) return status;
    }
    write_rates(p);
    write_doctor(p);
    write_selfcheck(p);
    write_bench(p);
    write_tune(p);
    write_failures(p);
    if (cli_child_stopped()) return cleat_fail(error, CLEAT_ERR_INTERRUPTED, "interrupted; no passport was written");
    passport_seal(&p->text);
    return write_file(path, &p->text.lines, error);
}

static int make(passport *p) {
    char folder[512], path[1024] = "";
    cleat_error error = {0};
    cleat_status status = CLEAT_OK;
    if (p->out) {
        snprintf(path, sizeof path, "%s", p->out);
        status = refuse_existing(path, &error);
    }
    if (!status) status = cli_make_temporary("passport", folder, sizeof folder, &error);
    if (status) return cli_finish(status, &error);
    /* A separate cache: nothing is skipped because it was done before, and no tuned kernels remain. */
    setenv("CLEAT_CACHE_DIR", folder, 1);
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    status = fill(p, path, &error);
    cli_remove_temporary(folder);
    if (!status)
        printf("%s: %zu bytes in %.0f s, %d failures. Read it, then paste it into an issue of cleat.\n", path,
               p->text.lines.size, cleat_seconds() - p->start, p->failure_count);
    for (int i = 0; i < p->failure_count; ++i) free(p->known[i]);
    cleat_string_free(&p->failures.lines);
    cleat_string_free(&p->text.lines);
    return cli_finish(status, &error);
}

static int run(const cli_command *command, int argc, char **argv) {
    passport p = {.device = "auto", .seconds = 180, .start = cleat_seconds()};
    const char *part = NULL;
    cli_list words = {.count = 0};
    const cli_option options[] = {
        CLI_DEVICE(&p.device),
        {"--seconds", CLI_NUMBER, &p.seconds, "S",
         "total time; measurements that do not fit into it are left out (180)"},
        {"--out", CLI_TEXT, &p.out, "FILE", "file to create (cleat-passport-DEVICE-DATE.txt)"},
        {"--part", CLI_TEXT, &part, "NAME", "print one part only; the command runs each part in a separate process"},
        {NULL, CLI_FLAG, NULL, NULL, NULL}};
    int exit_code;
    if (!cli_parse(command, options, argc, argv, &words, &exit_code)) return exit_code;
    if (words.count) return cli_usage(command, "the command takes no arguments");
    if (!(p.seconds > 0)) return cli_usage(command, "--seconds %g: must be greater than 0", p.seconds);
    return part ? passport_part(command, part, p.device, p.seconds) : make(&p);
}

const cli_command cli_passport = {"passport", "[--device SEL] [--seconds S] [--out FILE]",
                                  "describe a device in one text to paste into an issue: correctness and speed", run};
