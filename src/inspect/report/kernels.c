/* A recorded profile: phases of a step, the roofline of the device, kernels, layers, idle times. */
#include "report/html.h"
#include "report/plot.h"
#include "report/sections.h"

#include <math.h>

enum { MAX_KERNELS = 40, SHOWN_KERNELS = 12, SHOWN_LAYERS = 10, NAMED_POINTS = 5 };
enum { WIDTH = 640, HEIGHT = 300, LEFT = 60, RIGHT = 16, TOP = 12, BOTTOM = 40 };

static void add_phases(const cJSON *profile, cleat_string *page) {
    static const char *const names[] = {"forward", "backward", "recompute", "update", "copies", "idle"};
    static const int colours[] = {0, 2, 4, 3, 1, 7};
    char shown[6][CLEAT_SHOWN];
    cleat_bar_part parts[6];
    const cJSON *phases = cleat_json_member(profile, "phases");
    for (int i = 0; i < 6; ++i) {
        double seconds = cleat_json_number(phases, names[i]);
        parts[i] = (cleat_bar_part){names[i], cleat_show_duration(seconds, shown[i]), seconds, colours[i]};
    }
    cleat_stacked_bar(parts, 6, 0, page);
}

typedef struct roofline {
    double flops, matrix_flops, bytes;   /* the roof: FLOP/s, bytes/s; matrix_flops NaN: none */
    double low_x, high_x, low_y, high_y; /* logarithms of FLOP/byte and FLOP/s */
} roofline;

static double x_of(const roofline *roof, double intensity) {
    return LEFT + (log10(intensity) - roof->low_x) / (roof->high_x - roof->low_x) * (WIDTH - LEFT - RIGHT);
}

static double y_of(const roofline *roof, double flops) {
    return HEIGHT - BOTTOM - (log10(flops) - roof->low_y) / (roof->high_y - roof->low_y) * (HEIGHT - TOP - BOTTOM);
}

static bool read_kernel(const cJSON *kernel, double *intensity, double *flops) {
    double gflops = cleat_json_number(kernel, "gflops"), gbytes = cleat_json_number(kernel, "gbytes");
    if (!(gflops > 1e-9 && gflops < 1e12) || !(gbytes > 1e-9 && gbytes < 1e12))
        return false; /* no kernel reaches more */
    *intensity = gflops / gbytes;
    *flops = gflops * 1e9;
    return true;
}

static bool find_range(const cJSON *kernels, roofline *roof) {
    double top = isfinite(roof->matrix_flops) ? fmax(roof->matrix_flops, roof->flops) : roof->flops;
    double x, y, ridge = top / roof->bytes;
    double left = ridge / 100, right = ridge * 3, bottom = top / 1e4;
    const cJSON *kernel;
    bool any = false;
    cJSON_ArrayForEach(kernel, kernels) {
        if (!read_kernel(kernel, &x, &y)) continue;
        any = true;
        left = fmin(left, x / 1.5);
        right = fmax(right, x * 2);
        bottom = fmin(bottom, y / 2);
        top = fmax(top, y);
    }
    roof->low_x = log10(left);
    roof->high_x = log10(right);
    roof->low_y = log10(bottom);
    roof->high_y = log10(top * 2);
    return any;
}

static void draw_roof(const roofline *roof, double flops, const char *name, cleat_string *page) {
    double ridge = flops / roof->bytes, right = pow(10, roof->high_x), left = pow(10, roof->low_x),
           bottom = pow(10, roof->low_y);
    double start = fmax(left, bottom / roof->bytes);
    cleat_string_add(page, "<path class=\"roof\" d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1f\"/>", x_of(roof, start),
                     y_of(roof, start * roof->bytes), x_of(roof, ridge), y_of(roof, flops), x_of(roof, right),
                     y_of(roof, flops));
    cleat_string_add(page, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s, %.3g %sFLOP/s</text>", WIDTH - RIGHT,
                     y_of(roof, flops) - 5, name, flops >= 1e12 ? flops / 1e12 : flops / 1e9,
                     flops >= 1e12 ? "T" : "G");
}

static void draw_axes(const roofline *roof, cleat_string *page) {
    double ticks[12];
    char text[48];
    size_t count = cleat_axis_ticks(pow(10, roof->low_y), pow(10, roof->high_y), true, 6, ticks);
    for (size_t i = 0; i < count; ++i)
        cleat_string_add(
            page, "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>",
            LEFT, y_of(roof, ticks[i]), WIDTH - RIGHT, LEFT - 6, y_of(roof, ticks[i]) + 4,
            cleat_axis_text(ticks[i] / 1e9, "", text));
    count = cleat_axis_ticks(pow(10, roof->low_x), pow(10, roof->high_x), true, 8, ticks);
    for (size_t i = 0; i < count; ++i)
        cleat_string_add(page, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>", x_of(roof, ticks[i]),
                         HEIGHT - BOTTOM + 16, cleat_axis_text(ticks[i], "", text));
    cleat_string_add(
        page, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">FLOP per byte</text><text x=\"%d\" y=\"%d\">GFLOP/s</text>",
        WIDTH - RIGHT, HEIGHT - 6, LEFT + 4, TOP + 8);
}

static void draw_kernels(const cJSON *kernels, const roofline *roof, cleat_string *page) {
    const cJSON *kernel;
    double x, y;
    int number = 0;
    cJSON_ArrayForEach(kernel, kernels) {
        double share = cleat_json_number(kernel, "share");
        if (++number > MAX_KERNELS) break;
        if (!read_kernel(kernel, &x, &y)) continue;
        double radius = 3 + 11 * sqrt(fmin(fmax(isnan(share) ? 0 : share, 0), 1));
        cleat_html_add(page, "<circle class=\"spot\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"><title>%s</title></circle>",
                       x_of(roof, x), y_of(roof, y), radius, cleat_json_text(kernel, "kernel"));
        if (number <= NAMED_POINTS)
            cleat_string_add(page, "<text class=\"number\" x=\"%.1f\" y=\"%.1f\">%d</text>", x_of(roof, x) + radius + 2,
                             y_of(roof, y) + 4, number);
    }
}

static void add_roofline(const cleat_report_run *run, const cJSON *kernels, cleat_string *page) {
    const cJSON *rates = cleat_json_member(run->profile, "rates");
    if (!rates) rates = cleat_json_member(run->start, "rates");
    roofline roof = {.flops = cleat_json_number(rates, "flops"),
                     .matrix_flops = cleat_json_number(rates, "matrix_flops"),
                     .bytes = cleat_json_number(rates, "bytes")};
    if (!(roof.matrix_flops < 1e21)) roof.matrix_flops = NAN;
    if (!(roof.flops > 1 && roof.flops < 1e21) || !(roof.bytes > 1 && roof.bytes < 1e21) || !find_range(kernels, &roof))
        return;
    cleat_string_add(page,
                     "<figure class=\"drawn\" data-drawn=\"roofline\"><figcaption><h3>Roofline</h3><p>Each circle "
                     "is a kernel. The lines are the rates measured on this device: memory (sloped) and arithmetic "
                     "(level). Size: share of the time; numbers as in the table.</p></figcaption>"
                     "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"Roofline\">",
                     WIDTH, HEIGHT);
    draw_axes(&roof, page);
    draw_roof(&roof, roof.flops, "f32", page);
    if (roof.matrix_flops > roof.flops) draw_roof(&roof, roof.matrix_flops, "matrix units", page);
    draw_kernels(kernels, &roof, page);
    cleat_string_add(page, "</svg></figure>");
}

static void add_cell_number(const cJSON *row, const char *name, cleat_string *page) {
    char shown[CLEAT_SHOWN];
    cleat_string_add(page, "<td>%s</td>", cleat_show_number(cleat_json_number(row, name), shown));
}

static void add_kernels(const cJSON *kernels, cleat_string *page) {
    const cJSON *kernel;
    char a[CLEAT_SHOWN], b[CLEAT_SHOWN], c[CLEAT_SHOWN];
    int number = 0;
    cleat_string_add(
        page,
        "<div class=\"scroll\"><table><thead><tr><th></th><th class=\"text\">kernel</th><th>calls</th><th>time per "
        "step</th><th>share</th><th>GFLOP/s</th><th>GB/s</th><th class=\"text\">bound by</th>"
        "<th>of roofline</th><th>would save</th></tr></thead><tbody>");
    cJSON_ArrayForEach(kernel, kernels) {
        if (++number > SHOWN_KERNELS) break;
        cleat_html_add(page, "<tr><td>%d</td><th scope=\"row\"><code>%s</code></th>", number,
                       cleat_json_text(kernel, "kernel"));
        add_cell_number(kernel, "calls", page);
        cleat_string_add(page, "<td>%s</td><td>%s</td>", cleat_show_duration(cleat_json_number(kernel, "seconds"), a),
                         cleat_show_share(cleat_json_number(kernel, "share"), b));
        add_cell_number(kernel, "gflops", page);
        add_cell_number(kernel, "gbytes", page);
        cleat_html_add(page, "<td class=\"text\">%s</td><td>%s</td><td>%s</td></tr>", cleat_json_text(kernel, "bound"),
                       cleat_show_share(cleat_json_number(kernel, "roof_share"), b),
                       cleat_show_duration(cleat_json_number(kernel, "saves"), c));
    }
    cleat_string_add(page,
                     "</tbody></table></div><p class=\"note\">Would save: time per step saved if the kernel reached "
                     "the roofline; the table is sorted by it.</p>");
}

static void add_layers(const cJSON *layers, cleat_string *page) {
    const cJSON *layer;
    char shown[CLEAT_SHOWN], share[CLEAT_SHOWN];
    int number = 0;
    if (!cJSON_GetArraySize(layers)) return;
    cleat_string_add(page, "<details><summary>Layers</summary><table><thead><tr><th>layer</th><th>time per "
                           "step</th><th>share</th></tr></thead><tbody>");
    cJSON_ArrayForEach(layer, layers) {
        if (++number > SHOWN_LAYERS) break;
        cleat_html_add(page, "<tr><th scope=\"row\"><code>%s</code></th><td>%s</td><td>%s</td></tr>",
                       cleat_json_text(layer, "layer"), cleat_show_duration(cleat_json_number(layer, "seconds"), shown),
                       cleat_show_share(cleat_json_number(layer, "share"), share));
    }
    cleat_string_add(page, "</tbody></table></details>");
}

static void add_pauses(const cJSON *pauses, cleat_string *page) {
    const cJSON *pause;
    char shown[CLEAT_SHOWN];
    if (!cJSON_GetArraySize(pauses)) return;
    cleat_string_add(page, "<details><summary>Longest idle times of the device</summary><ul class=\"list\">");
    cJSON_ArrayForEach(pause, pauses) {
        cleat_html_add(page, "<li>%s: %s</li>", cleat_show_duration(cleat_json_number(pause, "seconds"), shown),
                       cleat_json_text(pause, "host"));
    }
    cleat_string_add(page, "</ul></details>");
}

void cleat_section_profile(const cleat_report_run *run, cleat_string *page) {
    const cJSON *kernels = cleat_json_member(run->profile, "kernels");
    char a[CLEAT_SHOWN], b[CLEAT_SHOWN], c[CLEAT_SHOWN], d[CLEAT_SHOWN];
    if (!cJSON_IsArray(kernels)) return;
    double profiled = cleat_json_number(run->profile, "profiled_step_seconds");
    double unprofiled = cleat_json_number(run->profile, "unprofiled_step_seconds");
    cleat_string_add(page, "<h3>Profile of %s steps from step %s</h3><p class=\"note\">",
                     cleat_show_number(cleat_json_number(run->profile, "steps"), a),
                     cleat_show_number(cleat_json_number(run->profile, "step"), b));
    if (isfinite(profiled)) cleat_string_add(page, "A traced step took %s", cleat_show_duration(profiled, c));
    if (isfinite(unprofiled)) cleat_string_add(page, ", one without tracing %s", cleat_show_duration(unprofiled, d));
    cleat_string_add(page, ".</p>");
    add_phases(run->profile, page);
    add_roofline(run, kernels, page);
    add_kernels(kernels, page);
    add_layers(cleat_json_member(run->profile, "layers"), page);
    add_pauses(cleat_json_member(run->profile, "idle"), page);
}
