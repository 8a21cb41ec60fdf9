/* The routes of a machine made of files, and checks of their readings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tree_routes.h"

#include <math.h>

cleat_device_facts tree_card(cleat_vendor vendor) {
    return (cleat_device_facts){.kind = CLEAT_DEVICE_GPU, .vendor = vendor, .pci_bus = 0x0b};
}

cleat_device_facts tree_cpu(void) {
    return (cleat_device_facts){
        .kind = CLEAT_DEVICE_CPU, .vendor = CLEAT_VENDOR_POCL, .unified_memory = true, .pci_bus = -1};
}

cleat_routes *tree_open(cleat_device_facts facts) {
    cleat_routes *routes = NULL;
    cleat_error error = {0};
    assert_int_equal(cleat_routes_open_at(&facts, tree_root, 100, &routes, &error), CLEAT_OK);
    return routes;
}

void tree_read(cleat_routes *routes, double now, double values[CLEAT_ROUTE_FIGURES]) {
    cleat_routes_read_at(routes, now, values);
    for (int i = 0; i < CLEAT_ROUTE_FIGURES; ++i) {
        assert_false(isinf(values[i]));
        if (!isnan(values[i])) assert_non_null(cleat_routes_source(routes, (cleat_figure)i));
    }
}

void tree_expect(const double values[CLEAT_ROUTE_FIGURES], cleat_figure figure, double value) {
    if (fabs(values[figure] - value) <= 1e-6 * fabs(value)) return;
    fail_msg("%s is %.10g, expected %.10g", cleat_figure_describe(figure)->name, values[figure], value);
}

void tree_expect_unknown(const double values[CLEAT_ROUTE_FIGURES], cleat_figure figure) {
    if (!isnan(values[figure]))
        fail_msg("%s is %.10g, expected to be unknown", cleat_figure_describe(figure)->name, values[figure]);
}

void tree_expect_nothing(const double values[CLEAT_ROUTE_FIGURES]) {
    for (int i = 0; i < CLEAT_ROUTE_FIGURES; ++i)
        if (i != CLEAT_FIGURE_HOST_CPU) tree_expect_unknown(values, (cleat_figure)i);
}

void tree_expect_source(const cleat_routes *routes, cleat_figure figure, const char *part) {
    const char *source = cleat_routes_source(routes, figure);
    if (!source || !strstr(source, part))
        fail_msg("source of %s is '%s', expected '%s'", cleat_figure_describe(figure)->name, source ? source : "none",
                 part);
}
