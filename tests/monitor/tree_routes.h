/* The routes of a machine made of files, and checks of their readings. */
#ifndef CLEAT_TESTS_TREE_ROUTES_H
#define CLEAT_TESTS_TREE_ROUTES_H

#include "file_tree.h"
#include "monitor/route.h"

/* A CPU, and a card of the given vendor at 0000:0b:00.0. */
cleat_device_facts tree_card(cleat_vendor vendor);
cleat_device_facts tree_cpu(void);

/* Opens the routes of the tree at time 100. */
cleat_routes *tree_open(cleat_device_facts facts);
/* Reads the routes, and checks the invariants: a metric with a value has a source, and one without a source
 * has no value. */
void tree_read(cleat_routes *routes, double now, double values[CLEAT_ROUTE_FIGURES]);
void tree_expect(const double values[CLEAT_ROUTE_FIGURES], cleat_figure figure, double value);
void tree_expect_unknown(const double values[CLEAT_ROUTE_FIGURES], cleat_figure figure);
/* Checks that all metrics are unknown, except the host's own, which no tree replaces. */
void tree_expect_nothing(const double values[CLEAT_ROUTE_FIGURES]);
/* Checks that the metric's source contains a text. */
void tree_expect_source(const cleat_routes *routes, cleat_figure figure, const char *part);

#endif
