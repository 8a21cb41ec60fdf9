/* The first screen: what was trained, how good it is, whether the device was used, and the command to run next. */
#include "report/html.h"
#include "report/sections.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct chip {
    const char *text, *tone;
} chip;

static void add_chip(const chip *what, cleat_string *page) {
    cleat_string_add(page, "<span class=\"chip %s\">%s</span>", what->tone, what->text);
}

void cleat_add_outcome(const cleat_report_run *run, cleat_string *page) {
    static const chip all[] = {
        [CLEAT_REPORT_FINISHED] = {"Finished", "good"},       [CLEAT_REPORT_RUNNING] = {"Still running", "plain"},
        [CLEAT_REPORT_INTERRUPTED] = {"Interrupted", "warn"}, [CLEAT_REPORT_KILLED] = {"Killed", "bad"},
        [CLEAT_REPORT_DIVERGED] = {"Diverged", "bad"},        [CLEAT_REPORT_FAILED] = {"Failed", "bad"},
        [CLEAT_REPORT_UNKNOWN] = {"Not finished", "warn"},
    };
    add_chip(&all[run->outcome], page);
}

void cleat_add_limit(const cleat_report_run *run, cleat_string *page) {
    static const chip all[] = {
        [CLEAT_REPORT_LIMIT_UNKNOWN] = {"Speed not recorded", "plain"},
        [CLEAT_REPORT_LIMIT_SHORT] = {"Too short to judge the speed", "plain"},
        [CLEAT_REPORT_LIMIT_NONE] = {"Good utilisation", "good"},
        [CLEAT_REPORT_LIMIT_LOADER] = {"Loader-bound", "bad"},
        [CLEAT_REPORT_LIMIT_LAUNCH] = {"Launch-bound", "bad"},
        [CLEAT_REPORT_LIMIT_EVALUATE] = {"Waits for evaluation", "warn"},
        [CLEAT_REPORT_LIMIT_CHECKPOINT] = {"Waits for checkpoints", "warn"},
        [CLEAT_REPORT_LIMIT_OTHER] = {"Device idle", "warn"},
        [CLEAT_REPORT_LIMIT_SLOW] = {"Below the device's speed", "warn"},
        [CLEAT_REPORT_LIMIT_SPILLING] = {"Device memory spills to the host", "bad"},
        [CLEAT_REPORT_LIMIT_QUOTA] = {"CPU quota used up", "warn"},
        [CLEAT_REPORT_LIMIT_SHARED] = {"Device shared with other processes", "warn"},
        [CLEAT_REPORT_LIMIT_HEAT] = {"Slowed down by heat", "warn"},
        [CLEAT_REPORT_LIMIT_POWER] = {"At the power limit", "warn"},
    };
    add_chip(&all[run->limit], page);
}

void cleat_add_beaten(const cleat_report_run *run, cleat_string *page) {
    if (run->is_beaten && run->outcome != CLEAT_REPORT_RUNNING)
        cleat_string_add(page, " <span class=\"chip bad\">%s the baseline</span>",
                         run->is_chance ? "Within chance of" : "Not better than");
    if (run->only) cleat_html_add(page, " <span class=\"chip bad\">Predicts only '%s'</span>", run->only);
}

static void add_headline(const cleat_report_run *run, cleat_string *page) {
    char best[CLEAT_SHOWN], base[CLEAT_SHOWN];
    cleat_string_add(page, "<h2 class=\"headline\">");
    if (isnan(run->best)) {
        cleat_string_add(page, run->step > 0 ? "No evaluation yet" : "No step completed");
    } else {
        cleat_html_add(page, "%s <strong>%s</strong>", run->metric, cleat_show_number(run->best, best));
        if (isfinite(run->baseline))
            cleat_html_add(page, " <span class=\"against\">%s %s: %s</span>",
                           run->is_chance   ? "within chance of"
                           : run->is_beaten ? "not better than"
                                            : "against",
                           cleat_show_number(run->baseline, base), run->baseline_text);
    }
    cleat_string_add(page, "</h2>");
}

static void add_what_ran(const cleat_report_run *run, cleat_string *page) {
    char text[CLEAT_SHOWN];
    const char *family = cleat_report_start_text(run, "model", "family"),
               *device = cleat_report_start_text(run, "device", "name");
    const char *precision = cleat_report_start_text(run, "model", "precision");
    double parameters = cleat_report_start_number(run, "model", "parameters");
    if (!family) family = cleat_history_setting_of(run->history, "model", "type");
    cleat_html_text(page, family ? family : "A model");
    if (isfinite(parameters)) cleat_string_add(page, " with %s parameters", cleat_show_count(parameters, text));
    cleat_string_add(page, run->outcome == CLEAT_REPORT_RUNNING ? ", training" : ", trained");
    if (device) cleat_html_add(page, " on %s", device);
    if (precision) cleat_html_add(page, " in %s", precision);
    if (run->seconds > 0) cleat_string_add(page, " for %s", cleat_show_duration(run->seconds, text));
    if (run->n_sessions > 1) cleat_string_add(page, " in %zu sessions", run->n_sessions);
    if (run->epoch >= 0 && run->epochs > 0)
        cleat_string_add(page, ": %.4g of %.0f epochs", floor(10 * run->epoch) / 10, run->epochs);
    if (run->step >= 0)
        cleat_string_add(page, "%s %s steps", run->epochs > 0 && run->epoch >= 0 ? "," : ":",
                         cleat_show_count(run->step, text));
    cleat_string_add(page, ". ");
}

static void add_ending(const cleat_report_run *run, cleat_string *page) {
    static const char failed[] = "It ended with an error (%s)%s%s. ";
    static const char *const texts[] = {
        [CLEAT_REPORT_FINISHED] = "",
        [CLEAT_REPORT_RUNNING] = "It is running; this page shows the state when it was written. ",
        [CLEAT_REPORT_INTERRUPTED] = "It stopped early (%s) and can continue. ",
        [CLEAT_REPORT_KILLED] = "No end was recorded: the process was killed, or the machine stopped. ",
        [CLEAT_REPORT_DIVERGED] = failed,
        [CLEAT_REPORT_FAILED] = failed,
        [CLEAT_REPORT_UNKNOWN] = "It has not reached its last epoch; how it ended was not recorded. "};
    cleat_html_add(page, texts[run->outcome], cleat_json_text(run->end, "status"), run->end_text[0] ? ": " : "",
                   run->end_text);
}

void cleat_trend_sentence(const cleat_report_run *run, cleat_string *page) {
    const bool at_end = run->outcome != CLEAT_REPORT_RUNNING;
    const char *const texts[] = {
        [CLEAT_REPORT_TREND_UNKNOWN] = "",
        [CLEAT_REPORT_TREND_IMPROVING] = at_end ? "It was still improving at the end. " : "It is improving. ",
        [CLEAT_REPORT_TREND_LEVEL] = "It had reached a plateau: longer training would improve it little. ",
        [CLEAT_REPORT_TREND_DECAYED] = "The schedule had lowered the learning rate to nearly 0: a longer run may be "
                                       "better. ",
        [CLEAT_REPORT_TREND_OVERFIT] = "It has overfitted since epoch %s: the evaluation loss rose while the training "
                                       "loss fell. ",
        [CLEAT_REPORT_TREND_WORSE] = "Training became unstable after epoch %s: both losses rose. "};
    char shown[CLEAT_SHOWN];
    if (run->outcome != CLEAT_REPORT_DIVERGED) /* then the evaluations before do not matter */
        cleat_string_add(page, texts[run->trend], cleat_show_number(run->trend_epoch, shown));
}

static void add_limit_sentence(const cleat_report_run *run, cleat_string *page) {
    const bool is_slow = run->limit >= CLEAT_REPORT_LIMIT_SLOW; /* or one of its causes */
    const struct {
        const char *text;
        double share;
    } all[CLEAT_REPORT_LIMITS] = {
        [CLEAT_REPORT_LIMIT_LOADER] =
            {"<b>Training was loader-bound:</b> the device waited for the loader %s of the time. ", run->dry_loader},
        [CLEAT_REPORT_LIMIT_LAUNCH] =
            {"<b>Training was launch-bound:</b> the device was busy %s of the time, but its kernels are so short that ",
             1 - run->dry},
        [CLEAT_REPORT_LIMIT_EVALUATE] = {"<b>The device waited for evaluations</b> %s of the time: evaluate less often "
                                         "(run.evaluate_every_epochs). ",
                                         run->dry_evaluate},
        [CLEAT_REPORT_LIMIT_CHECKPOINT] =
            {"<b>The device waited for checkpoints</b> %s of the time: write them less often, or to a faster disk. ",
             run->dry_checkpoint},
        [CLEAT_REPORT_LIMIT_SHARED] =
            {"<b>Other processes took %s of the device:</b> the speeds below say little about the training itself. ",
             run->foreign},
        [CLEAT_REPORT_LIMIT_OTHER] = {"<b>The device was idle</b> %s of the time. ", run->dry},
        [CLEAT_REPORT_LIMIT_NONE] = {"The device was well utilised: it was busy %s of the time. ", 1 - run->dry}};
    char share[CLEAT_SHOWN];
    if (all[run->limit].text)
        cleat_string_add(page, all[run->limit].text, cleat_show_share(all[run->limit].share, share));
    if (is_slow || run->limit == CLEAT_REPORT_LIMIT_LAUNCH)
        cleat_string_add(page, "%s reached only %s of its measured speed. ",
                         is_slow ? "The device was busy, but" : "it", cleat_show_share(run->roofline, share));
}

/* The other causes that cost a noticeable share of the time. */
static void add_further_limits(const cleat_report_run *run, cleat_string *page) {
    static const char *const names[CLEAT_REPORT_LIMITS] = {
        [CLEAT_REPORT_LIMIT_LOADER] = "waiting for the loader", [CLEAT_REPORT_LIMIT_LAUNCH] = "launching kernels",
        [CLEAT_REPORT_LIMIT_EVALUATE] = "evaluations",          [CLEAT_REPORT_LIMIT_CHECKPOINT] = "checkpoints",
        [CLEAT_REPORT_LIMIT_OTHER] = "other idle time",         [CLEAT_REPORT_LIMIT_SHARED] = "other processes"};
    char share[CLEAT_SHOWN];
    bool any = false;
    for (int limit = 0; limit < CLEAT_REPORT_LIMITS; ++limit) {
        if (!names[limit] || !(run->cost[limit] > 0) || limit == (int)run->limit) continue;
        cleat_string_add(page, "%s %s %s", any ? "," : "It also lost time:", names[limit],
                         cleat_show_share(run->cost[limit], share));
        any = true;
    }
    if (any) cleat_string_add(page, ". ");
}

static void add_tile(const char *name, const char *value, const char *below, cleat_string *page) {
    cleat_html_add(page, "<div class=\"tile\"><dt>%s</dt><dd>%s</dd><dd class=\"below\">%s</dd></div>", name, value,
                   below);
}

static void add_tiles(const cleat_report_run *run, cleat_string *page) {
    char value[CLEAT_SHOWN], other[CLEAT_SHOWN], below[160];
    cleat_string_add(page, "<dl class=\"tiles\">");
    if (isfinite(run->best)) {
        snprintf(below, sizeof below, "epoch %s; %s is better", cleat_show_number(run->best_epoch, other),
                 run->ascends ? "higher" : "lower");
        add_tile(run->metric, cleat_show_number(run->best, value), below, page);
    }
    if (isfinite(run->baseline))
        add_tile("baseline", cleat_show_number(run->baseline, value), run->baseline_text, page);
    if (run->seconds > 0) {
        snprintf(below, sizeof below, "%s steps", cleat_show_count(run->step, other));
        add_tile("time", cleat_show_duration(run->seconds, value), run->step >= 0 ? below : "", page);
    }
    if (isfinite(run->samples_per_second)) {
        snprintf(below, sizeof below, "%s per step", cleat_show_duration(run->step_seconds, other));
        char rate[CLEAT_SHOWN];
        const char *shown = run->samples_per_second >= 1000 ? cleat_show_count(run->samples_per_second, rate)
                                                            : cleat_show_number(run->samples_per_second, rate);
        snprintf(value, sizeof value, "%.40s /s", shown);
        add_tile("samples", value, isfinite(run->step_seconds) ? below : "", page);
    }
    double energy = cleat_report_last(run, "energy") / 3600, power = cleat_report_mean(run, "power");
    if (energy > 0 && run->n_sessions == 1) { /* each process counts from its own start */
        char rate[CLEAT_SHOWN];
        snprintf(below, sizeof below, "mean power %.0f W", power);
        snprintf(value, sizeof value, "%.40s Wh", cleat_show_number(energy, rate));
        add_tile("energy", value, isfinite(power) ? below : "", page);
    }
    if (cleat_report_is_on_cpu(run) && isfinite(cleat_report_last(run, "memory_own")))
        add_tile("memory", cleat_show_bytes(cleat_report_last(run, "memory_own"), value), "of the host, by this run",
                 page);
    cleat_string_add(page, "</dl>");
}

/* `is_fault`: a value outside the target is shown as a fault. */
static void add_meter(const char *name, double share, double target, double target_to, bool is_fault,
                      const char *target_text, cleat_string *page) {
    char value[CLEAT_SHOWN];
    if (!isfinite(share)) return;
    double width = fmin(fmax(share, 0), 1), to = fmin(target_to, 1);
    bool good = share >= target && share <= target_to;
    cleat_string_add(page, "<div class=\"meter %s\"><p><span>%s</span> <b>%s</b></p>",
                     good       ? "good"
                     : is_fault ? "warn"
                                : "plain",
                     name, cleat_show_share(share, value));
    cleat_string_add(page,
                     "<div class=\"track\"><i class=\"zone\" style=\"left:%.1f%%;width:%.1f%%\"></i><i class=\"fill\" "
                     "style=\"width:%.1f%%\"></i></div>",
                     100 * target, 100 * (to - target), 100 * width);
    cleat_string_add(page, "<p class=\"below\">%s</p></div>", target_text);
}

static void add_meters(const cleat_report_run *run, cleat_string *page) {
    double total = cleat_report_start_number(run, "device", "memory_total");
    double used = cleat_report_last(run, "memory_device");
    bool judged = run->limit != CLEAT_REPORT_LIMIT_SHORT;
    if (isnan(used)) used = cleat_report_last(run, "memory_allocated");
    if (isnan(run->dry) && isnan(run->roofline) && !(used / total > 0)) return;
    bool is_shared = run->cost[CLEAT_REPORT_LIMIT_SHARED] > 0;
    cleat_string_add(page, "<div class=\"meters\">");
    add_meter("device busy", 1 - run->dry, 0.9, 1.01, judged,
              "Target: 90 % or more. Common guidelines recommend 80 to 95 % utilisation.", page);
    add_meter("speed reached", run->roofline, 0.2, 1.5, judged && !is_shared,
              "Share of the speed that was measured on this device (roofline). Target: 20 % or more.", page);
    if (is_shared)
        add_meter("used by other processes", run->foreign, 0, 0.15, true,
                  "Share of the device that other processes used. Target: 15 % or less.", page);
    if (!cleat_report_is_on_cpu(run)) /* a CPU uses host memory */
        add_meter("device memory", used / total, 0.8, 0.95, used > 0.95 * total,
                  "Target: 80 to 95 %; more memory allows larger batches.", page);
    cleat_string_add(page, "</div>");
}

static void add_command(const char *command, cleat_string *page) {
    if (command[0]) cleat_html_add(page, "<pre class=\"command\"><code>%s</code></pre>", command);
}

/* Hints begin with a small letter, as log lines do. */
static void add_sentence(const char *text, cleat_string *page) {
    bool is_letter = text[0] >= 'a' && text[0] <= 'z';
    if (is_letter) cleat_string_add(page, "%c", toupper((unsigned char)text[0]));
    cleat_html_text(page, text + is_letter);
}

static void add_hint(const cleat_report_hint *hint, cleat_string *page) {
    char step[CLEAT_SHOWN];
    add_sentence(hint->text, page);
    if (isfinite(hint->step))
        cleat_string_add(page, " <small>(up to step %s)</small>", cleat_show_count(hint->step, step));
}

/* Whether the page shows it above. */
static bool is_shown(const cleat_report_run *run, const cleat_report_hint *hint) {
    return strcmp(hint->text, run->next_text) == 0 ||
           (run->limit == CLEAT_REPORT_LIMIT_SHARED && strcmp(hint->name, "foreign_load") == 0);
}

static void add_next(const cleat_report_run *run, cleat_string *page) {
    const cleat_report_hint *source = NULL; /* of the text */
    size_t others = 0;
    for (size_t i = 0; i < run->n_hints; ++i) {
        others += !is_shown(run, &run->hints[i]);
        if (strcmp(run->hints[i].text, run->next_text) == 0) source = &run->hints[i];
    }
    if (run->next_text[0]) {
        cleat_string_add(page, "<div class=\"next\"><h3>What to %s next</h3><p>", run->next_command[0] ? "run" : "do");
        if (source)
            add_hint(source, page);
        else
            add_sentence(run->next_text, page);
        cleat_string_add(page, "</p>");
        add_command(run->next_command, page);
        cleat_string_add(page, "</div>");
    }
    if (!others) return;
    cleat_string_add(page, "<details class=\"hints\"><summary>%zu more hint%s of the run</summary>", others,
                     others > 1 ? "s" : "");
    for (size_t i = 0; i < run->n_hints; ++i) {
        if (is_shown(run, &run->hints[i])) continue;
        cleat_string_add(page, "<p>");
        add_hint(&run->hints[i], page);
        cleat_string_add(page, "</p>");
        add_command(run->hints[i].command, page);
    }
    cleat_string_add(page, "</details>");
}

void cleat_add_verdict(const cleat_report_run *run, cleat_string *page) {
    add_headline(run, page);
    cleat_string_add(page, "<p class=\"words\">");
    add_what_ran(run, page);
    add_ending(run, page);
    cleat_trend_sentence(run, page);
    add_limit_sentence(run, page);
    add_further_limits(run, page);
    cleat_string_add(page, "</p>");
    add_next(run, page);
}

void cleat_section_verdict(const cleat_report_run *run, cleat_string *page) {
    cleat_string_add(page, "<section class=\"verdict\" id=\"verdict\"><p class=\"chips\">");
    cleat_add_outcome(run, page);
    cleat_string_add(page, " ");
    cleat_add_limit(run, page);
    cleat_add_beaten(run, page);
    cleat_string_add(page, "</p>");
    cleat_add_verdict(run, page);
    add_tiles(run, page);
    add_meters(run, page);
    cleat_string_add(page, "</section>\n");
}
