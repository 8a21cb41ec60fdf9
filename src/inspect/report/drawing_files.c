/* Figures: the drawings of single predictions as SVG files of their own. */
#include "core/files.h"
#include "report/html.h"
#include "report/sections.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 120, GAP = 10, TOP = 54 };

/* Literal colours, since few programs besides browsers know variables of CSS; a ground for pages of any colour. */
static const char style[] =
    "<style>text{font:12px system-ui,Helvetica,Arial,sans-serif;fill:#5b636b}.title{font-size:15px;fill:#1c2024}"
    ".grid,.diagonal{stroke:#e3e5e2;fill:none}.line{fill:none;stroke-width:1.6;stroke-linejoin:round}"
    ".trace{fill:none;stroke-width:2.2;stroke-linejoin:round}.contacts{fill:none;stroke-width:1}"
    ".c0,.truth{stroke:#0072b2}.c1,.prediction{stroke:#d55e00}.c7{stroke:#868b8f}"
    ".band{fill:#d55e00;fill-opacity:.2}.diagonal{stroke-width:.4}</style>"
    "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>";
static const char colours[] = "<tspan fill=\"#0072b2\">truth</tspan>  <tspan fill=\"#d55e00\">prediction</tspan>";

/* The name of the sample, and of its column, as a file name that is not taken yet. */
static cleat_status choose_path(const cJSON *example, const char *folder, cleat_name_table *taken,
                                char path[CLEAT_FILE_PATH], cleat_error *error) {
    const char *column = cleat_json_text(example, "column");
    char name[NAME_BYTES], file[NAME_BYTES + 32];
    uint32_t before;
    snprintf(name, sizeof name, "%s%s%s", column ? column : "", column ? "-" : "", cleat_json_text(example, "name"));
    for (char *at = name; *at; ++at)
        if (!isalnum((unsigned char)*at) && !strchr("-_.", *at) && !(*at & 0x80)) *at = '_';
    if (name[0] == '.') name[0] = '_';
    snprintf(file, sizeof file, "%s.svg", name);
    for (int number = 2; cleat_name_table_find(taken, file, &before); ++number)
        snprintf(file, sizeof file, "%s-%d.svg", name, number);
    cleat_status status = cleat_name_table_add(taken, file, 0, error);
    return status ? status : cleat_path_join(folder, file, path, CLEAT_FILE_PATH, error);
}

/* The drawings of the page, each an <svg>, beside each other below title and legend. */
static void compose(const cJSON *example, bool series, const cleat_string *drawings, cleat_string *svg) {
    const int width = series ? 640 : 320, height = series ? 240 : 320, whole = series ? 660 : 670;
    const char *column = cleat_json_text(example, "column");
    int x = GAP;
    cleat_string_add(svg,
                     "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">%s",
                     whole, TOP + height + GAP, whole, TOP + height + GAP, style);
    cleat_html_add(svg, "<text class=\"title\" x=\"10\" y=\"22\">%s%s%s</text><text x=\"10\" y=\"42\">",
                   column ? column : "", column ? ", from " : "", cleat_json_text(example, "name"));
    cleat_string_add(svg, "%s%s%s</text>", series ? "<tspan fill=\"#868b8f\">past</tspan>  " : "", colours,
                     !series                               ? "; pairs of C1' atoms nearer than 12 Å"
                     : cleat_json_member(example, "error") ? "; shaded: ± 1.28 root mean square errors of the "
                                                             "validation (80 % if errors are normal)"
                                                           : "");
    for (const char *at = drawings->data, *next; at && *at; at = next, x += width + GAP) {
        next = strstr(at + 1, "<svg");
        cleat_string_add(svg, "<svg x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"", x, TOP, width, height);
        cleat_string_add_bytes(svg, at + 4, next ? (size_t)(next - at) - 4 : strlen(at + 4));
    }
    cleat_string_add(svg, "</svg>\n");
}

cleat_status cleat_figure_write(const cJSON *example, const char *folder, cleat_name_table *taken, cleat_error *error) {
    const char *kind = cleat_json_text(example, "kind");
    const bool series = kind && strcmp(kind, "series") == 0;
    cleat_string drawings = {0}, svg = {0};
    char path[CLEAT_FILE_PATH];
    if (!kind || !cleat_json_text(example, "name") || (!series && strcmp(kind, "rna") != 0)) return CLEAT_OK;
    cleat_status status = choose_path(example, folder, taken, path, error);
    if (status) return status;
    if (series)
        cleat_example_series(example, false, &drawings);
    else
        cleat_example_rna(example, &drawings);
    compose(example, series, &drawings, &svg);
    svg.failed |= drawings.failed;
    cleat_string_free(&drawings);
    return cleat_file_write_text(path, &svg, error);
}
