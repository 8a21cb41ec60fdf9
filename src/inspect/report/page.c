/* The page: reads the runs, puts the sections together, and writes the file.
 *
 * A report is a function of the run's folder: it can be made during the run, after a kill or years later,
 * without a device. The content is HTML and SVG written by C; scripts (report/page) only add zoom. Text
 * from files is escaped in html.c and nowhere else, and the page's content security policy forbids every
 * request. */
#include "cleat/report.h"
#include "platform/text.h"

#include "core/embedded.h"
#include "core/files.h"
#include "core/memory.h"
#include "report/html.h"
#include "report/sections.h"

#include <string.h>
#include <time.h>

/* report.css, report.js, head.html, dygraphs_license.html. */
extern const cleat_embedded_file cleat_embedded_page[];
/* dygraph.min.js, dygraph.min.css (MIT); empty in a build without dygraphs. */
extern const cleat_embedded_file cleat_embedded_dygraphs[];

/* Without the line that names a source map, which a browser's tools would look for. */
static void add_file(const cleat_embedded_file *files, const char *name, cleat_string *page) {
    for (; files->name; ++files) {
        if (strcmp(files->name, name) != 0) continue;
        const char *map = strstr(files->text, "# sourceMappingURL");
        cleat_string_add_bytes(page, files->text, map ? (size_t)(map - files->text) - 2 : files->size);
        return;
    }
}

/* Whether the build found dygraphs; otherwise the page shows only its SVG drawings. */
static bool plots_zoom(void) {
    return cleat_embedded_dygraphs[0].name != NULL;
}

static void add_title(const cleat_report_run *runs, size_t count, cleat_string *page) {
    for (size_t r = 0; r < count; ++r) cleat_html_add(page, r ? " · %s" : "%s", runs[r].history->name);
}

static void add_start_of_page(const cleat_report_run *runs, size_t count, cleat_string *page) {
    const char *one = cleat_json_text(runs->examples, "text") ? "figures" : "training report";
    char day[40] = "";
    time_t now = time(NULL);
    struct tm parts;
    if (gmtime_r(&now, &parts)) strftime(day, sizeof day, "%Y-%m-%d %H:%M UTC", &parts);
    add_file(cleat_embedded_page, "head.html", page);
    cleat_string_add(page, "<title>");
    add_title(runs, count, page);
    cleat_string_add(page, " – cleat</title>\n");
    if (count == 1 && runs->next_text[0]) /* what previews of a page show */
        cleat_html_add(page, "<meta name=\"description\" content=\"%s %s\">\n", runs->next_text, runs->next_command);
    cleat_string_add(page, "<style>");
    add_file(cleat_embedded_dygraphs, "dygraph.min.css", page);
    add_file(cleat_embedded_page, "report.css", page);
    cleat_string_add(page, "</style>\n</head>\n<body>\n<header><h1>");
    add_title(runs, count, page);
    cleat_string_add(page, "</h1><p>%s<br>%s</p></header>\n<main>\n", count > 1 ? "comparison of runs" : one, day);
}

static void add_footer(const cleat_report_run *runs, size_t count, cleat_string *page) {
    long long damaged = 0;
    for (size_t r = 0; r < count; ++r) damaged += runs[r].history->damaged_lines;
    cleat_string_add(page, "</main>\n<footer><p>Made by cleat %s from the files in ", cleat_version());
    for (size_t r = 0; r < count; ++r)
        cleat_html_add(page, "%s<code>%s</code>", r ? ", " : "", runs[r].history->folder);
    cleat_string_add(page, ".");
    if (damaged)
        cleat_string_add(page, " %lld damaged line%s of the logs %s left out.", damaged, damaged > 1 ? "s" : "",
                         damaged > 1 ? "were" : "was");
    if (plots_zoom()) cleat_string_add(page, " Plots: dygraphs (MIT license).");
    cleat_string_add(page, "</p></footer>\n");
}

static void add_scripts(const cleat_string *data, cleat_string *page) {
    cleat_string_add(page, "<script type=\"application/json\" id=\"plots\">[");
    cleat_string_add_bytes(page, data->data ? data->data : "", data->size);
    cleat_string_add(page, "]</script>\n");
    if (plots_zoom()) {
        add_file(cleat_embedded_page, "dygraphs_license.html", page);
        cleat_string_add(page, "<script>");
        add_file(cleat_embedded_dygraphs, "dygraph.min.js", page);
        cleat_string_add(page, "</script>\n");
    }
    cleat_string_add(page, "<script>");
    add_file(cleat_embedded_page, "report.js", page);
    cleat_string_add(page, "</script>\n</body>\n</html>\n");
}

static void build_page(const cleat_report_run *runs, size_t count, cleat_string *page) {
    cleat_string data = {0};
    add_start_of_page(runs, count, page);
    if (count == 1)
        cleat_section_verdict(runs, page);
    else
        cleat_section_compare(runs, count, page);
    const size_t drawn = count < CLEAT_REPORT_DRAWN ? count : CLEAT_REPORT_DRAWN;
    if (drawn < count)
        cleat_string_add(page, "<p class=\"note\">Below are the first %zu of the %zu runs.</p>", drawn, count);
    cleat_section_learning(runs, drawn, page, &data);
    cleat_section_examples(runs, drawn, page);
    cleat_section_speed(runs, drawn, page, &data);
    cleat_section_memory(runs, drawn, page, &data);
    if (count == 1) cleat_section_details(runs, page);
    add_footer(runs, count, page);
    add_scripts(&data, page);
    page->failed |= data.failed;
    cleat_string_free(&data);
}

static cleat_status write_page(const cleat_report_run *runs, size_t count, const char *out, cleat_error *error) {
    char path[CLEAT_FILE_PATH];
    cleat_string page = {0};
    cleat_status status = CLEAT_OK;
    if (!out) status = cleat_path_join(runs[0].history->folder, "report.html", path, sizeof path, error);
    if (status) return status;
    build_page(runs, count, &page);
    return cleat_file_write_text(out ? out : path, &page, error);
}

static cleat_status write_tables(const cleat_report_run *runs, size_t count, const char *csv, cleat_error *error) {
    char path[CLEAT_FILE_PATH];
    if (csv) return cleat_csv_write(runs[0].history, csv, error);
    for (size_t r = 0; r < count; ++r) {
        cleat_status status = cleat_path_join(runs[r].history->folder, "metrics.csv", path, sizeof path, error);
        if (!status) status = cleat_csv_write(runs[r].history, path, error);
        if (status) return status;
    }
    return CLEAT_OK;
}

static cleat_status write_drawings(const char *folder, cleat_error *error) {
    cleat_history history = {.name = "predictions", .folder = (char *)folder};
    cleat_report_run run = {.history = &history};
    cleat_name_table taken = {0};
    cleat_string page = {0}, data = {0};
    cleat_status status = cleat_json_read_file(folder, "examples.json", &run.examples, error);
    const cJSON *example = cleat_json_member(run.examples, "examples");
    if (!status && !cJSON_IsArray(example))
        status = cleat_fail(error, CLEAT_ERR_FORMAT, "%s/examples.json is not of cleat predict --figures", folder);
    for (example = example ? example->child : NULL; example && !status; example = example->next)
        status = cleat_figure_write(example, folder, &taken, error);
    add_start_of_page(&run, 1, &page);
    cleat_section_examples(&run, 1, &page);
    add_footer(&run, 1, &page);
    add_scripts(&data, &page);
    cleat_name_table_free(&taken);
    cJSON_Delete(run.examples);
    if (!status) return cleat_file_write_in(folder, "index.html", &page, error);
    cleat_string_free(&page);
    return status;
}

static cleat_status read_and_write(const char *const *folders, size_t count, const cleat_report_options *options,
                                   cleat_error *error) {
    cleat_history *histories[CLEAT_REPORT_RUNS] = {0};
    cleat_report_run *runs = cleat_alloc(count, sizeof *runs);
    cleat_status status = runs ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a report");
    for (size_t r = 0; r < count && !status; ++r) {
        status = cleat_history_read(folders[r], &histories[r], error);
        if (!status) status = cleat_report_run_open(histories[r], &runs[r], error);
    }
    if (!status) status = write_page(runs, count, options ? options->out : NULL, error);
    if (!status) status = write_tables(runs, count, options ? options->csv : NULL, error);
    for (size_t r = 0; r < count && runs; ++r) {
        cleat_report_run_free(&runs[r]);
        cleat_history_free(histories[r]);
    }
    cleat_free(runs);
    return status;
}

cleat_status cleat_report_write(const char *const *folders, size_t count, const cleat_report_options *options,
                                cleat_error *error) {
    const bool drawings = options && options->drawings;
    if (count < 1 || count > CLEAT_REPORT_RUNS)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "a report shows 1 to %d runs, not %zu", CLEAT_REPORT_RUNS, count);
    /* Numbers of the page have a decimal point, whatever the program's locale. */
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a report");
    locale_t before = uselocale(plain);
    cleat_status status = drawings ? write_drawings(folders[0], error) : read_and_write(folders, count, options, error);
    uselocale(before);
    freelocale(plain);
    return status;
}
