/* Small parts of sections: headings, table rows, bars made of coloured segments. */
#include "report/html.h"
#include "report/sections.h"

void cleat_section_begin(const char *id, const char *title, cleat_string *page) {
    cleat_html_add(page, "<section id=\"%s\"><h2>%s</h2>", id, title);
}

void cleat_table_row(const char *name, const char *value, cleat_string *page) {
    cleat_html_add(page, "<tr><th scope=\"row\">%s</th><td>%s</td></tr>", name, value);
}

/* Invalid values of a damaged file have no width. */
static bool has_width(const cleat_bar_part *part) {
    return part->value > 0 && part->value < 1e300;
}

void cleat_stacked_bar(const cleat_bar_part *parts, size_t count, double whole, cleat_string *page) {
    double sum = 0;
    for (size_t i = 0; i < count; ++i)
        if (has_width(&parts[i])) sum += parts[i].value;
    if (!(sum > 0)) return;
    if (!(whole >= sum && whole < 1e300)) whole = sum;
    cleat_string_add(page, "<div class=\"stack\" aria-hidden=\"true\">");
    for (size_t i = 0; i < count; ++i)
        if (has_width(&parts[i]))
            cleat_string_add(page, "<i class=\"b%d\" style=\"width:%.2f%%\"></i>", parts[i].colour,
                             100 * parts[i].value / whole);
    cleat_string_add(page, "</div><ul class=\"legend\">");
    for (size_t i = 0; i < count; ++i) {
        if (has_width(&parts[i]))
            cleat_html_add(page, "<li><i class=\"key b%d\"></i>%s <b>%s</b></li>", parts[i].colour, parts[i].name,
                           parts[i].shown);
    }
    cleat_string_add(page, "</ul>");
}
