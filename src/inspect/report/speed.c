/* Time of the device, forecasts and measurements, and the events of the run. */
#include "report/html.h"
#include "report/sections.h"

#include <math.h>
#include <string.h>

static void add_time_bar(const cleat_report_run *run, cleat_string *page) {
    char shown[6][CLEAT_SHOWN];
    const double waits[] = {1 - run->dry,        run->dry_loader, run->dry_evaluate,
                            run->dry_checkpoint, run->dry_read,   run->dry_other};
    static const char *const names[] = {"working",          "idle: loader",          "idle: evaluation on the host",
                                        "idle: checkpoint", "idle: reading results", "idle: other"};
    static const int colours[] = {2, 5, 1, 3, 4, 7};
    cleat_bar_part parts[6];
    if (!isfinite(run->dry)) return;
    for (int i = 0; i < 6; ++i)
        parts[i] = (cleat_bar_part){names[i], cleat_show_share(waits[i], shown[i]), waits[i], colours[i]};
    cleat_string_add(page, "<h3>Time of the device</h3>");
    cleat_stacked_bar(parts, 6, 1, page);
}

static void add_forecast_row(const char *name, const char *forecast, const char *measured, const char *source,
                             cleat_string *page) {
    cleat_html_add(page, "<tr><th scope=\"row\">%s</th><td>%s</td><td>%s</td><td class=\"text\">%s</td></tr>", name,
                   forecast, measured, source);
}

static void add_forecast(const cleat_report_run *run, cleat_string *page) {
    char a[CLEAT_SHOWN], b[CLEAT_SHOWN];
    double step = cleat_report_start_number(run, "forecast", "step_seconds"),
           bytes = cleat_report_start_number(run, "plan", "bytes");
    double allocated = cleat_report_last(run, "memory_allocated"), own = cleat_report_last(run, "memory_own");
    const char *source = cleat_report_start_text(run, "forecast", "source");
    if (isnan(step) && isnan(bytes)) return;
    cleat_string_add(
        page,
        "<h3>Forecast and measurement</h3><div "
        "class=\"scroll\"><table><thead><tr><th></th><th>forecast</th><th>measured</th><th></th></tr></thead><tbody>");
    if (isfinite(step)) {
        add_forecast_row("a step", cleat_show_duration(step, a), cleat_show_duration(run->step_seconds, b),
                         source ? source : "", page);
        double total = step * run->total_steps;
        if (isfinite(total) && run->outcome == CLEAT_REPORT_FINISHED)
            add_forecast_row("the run", cleat_show_duration(total, a), cleat_show_duration(run->seconds, b),
                             "forecast: steps only", page);
    }
    if (isfinite(bytes))
        add_forecast_row("device memory of the plan", cleat_show_bytes(bytes, a), cleat_show_bytes(allocated, b),
                         "allocated by cleat", page);
    if (isfinite(own))
        add_forecast_row("with the driver's own buffers", "", cleat_show_bytes(own, b),
                         "of this process, from the driver", page);
    cleat_string_add(page, "</tbody></table></div>");
}

static const char *event_name(const char *what) {
    return !what ? "event" : strcmp(what, "workers") == 0 ? "loader" : what;
}

enum { SHOWN_EVENTS = 60 };

static void add_events(const cleat_report_run *run, cleat_string *page) {
    char shown[CLEAT_SHOWN];
    size_t first = run->n_events > SHOWN_EVENTS ? run->n_events - SHOWN_EVENTS : 0;
    if (!run->n_events) return;
    cleat_string_add(page,
                     "<details><summary>%zu event%s%s</summary><div class=\"scroll\"><table "
                     "class=\"events\"><thead><tr><th>step</th><th></th><th></th></tr></thead><tbody>",
                     run->n_events, run->n_events > 1 ? "s" : "", first ? ", the last 60 shown" : "");
    for (size_t i = first; i < run->n_events; ++i) {
        cleat_html_add(page, "<tr><td>%s</td><th>%s</th><td class=\"text\">%s</td></tr>",
                       cleat_show_number(cleat_json_number(run->events[i], "step"), shown),
                       event_name(cleat_json_text(run->events[i], "what")), cleat_json_text(run->events[i], "text"));
    }
    cleat_string_add(page, "</tbody></table></div></details>");
}

void cleat_section_speed(const cleat_report_run *runs, size_t count, cleat_string *page, cleat_string *data) {
    bool any = false;
    for (size_t r = 0; r < count; ++r) any |= runs[r].samples || runs[r].n_events || runs[r].profile;
    if (!any) return;
    cleat_section_begin("speed", "Speed", page);
    if (count == 1) add_time_bar(runs, page);
    cleat_section_system_plots(runs, count, page, data);
    if (count == 1) {
        add_forecast(runs, page);
        cleat_section_profile(runs, page);
        add_events(runs, page);
    }
    cleat_string_add(page, "</section>\n");
}
