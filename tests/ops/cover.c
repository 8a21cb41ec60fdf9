/* Selects the cases of an op test that run (cover.h). */
#include "cover.h"

#include "graph/launch.h"
#include "platform/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 160, MAX_LINES = 4096 };

/* A case with more operations takes longer with plain kernels than the optimizer does. */
#define SMALL_WORK 6e7

static char covered[MAX_LINES][LINE]; /* "op kernel storage shape", and the same with the variant in front */
static int covered_count;

bool cover_shape(const op_shape *shape, cleat_device_kind kind, const char *only) {
    if (*only) return strcmp(only, shape->name) == 0;
    return kind != CLEAT_DEVICE_GPU || shape->kind != CLEAT_DEVICE_CPU;
}

void cover_begin(void) {
    covered_count = 0;
}

static bool is_covered(const char *line) {
    for (int i = 0; i < covered_count; ++i)
        if (strcmp(covered[i], line) == 0) return true;
    return false;
}

static void cover(const char *line) {
    if (is_covered(line)) return;
    if (covered_count == MAX_LINES) fail_msg("more than %d kernels to cover", MAX_LINES);
    snprintf(covered[covered_count++], LINE, "%s", line);
}

/* Visits each launch of the graph, with its variant or without. Returns true, and stops, when `visit` returns
 * true or when an op fails to describe its launches. */
static bool any_launch(const op_case *c, bool with_variant, bool (*visit)(const char *line)) {
    const cleat_device_facts facts = op_facts(c->shape);
    bool found = false;
    for (size_t i = 0; i < c->graph->node_count && !found; ++i) {
        const cleat_node *node = c->graph->nodes[i];
        const cleat_variant *variant = op_variant(c->test->op, c->variant, node, &facts);
        cleat_binder binder;
        cleat_binder_init(&binder, &facts);
        if (variant) found = cleat_bind_node(variant, node, &binder, NULL) != CLEAT_OK;
        for (size_t k = 0; k < binder.count && !found; ++k) {
            char line[LINE];
            const cleat_launch *launch = &binder.launches[k];
            snprintf(line, sizeof line, "%s%s%s %s %s %s", with_variant ? variant->name : "", with_variant ? ": " : "",
                     node->op->name, launch->kind == CLEAT_LAUNCH_KERNEL ? launch->kernel : "sgemm",
                     cleat_dtype_name(c->storage), c->shape->name);
            found = visit(line);
        }
        cleat_binder_clear(&binder);
    }
    return found;
}

static bool is_new(const char *line) {
    return !is_covered(line);
}

static bool record_line(const char *line) {
    cover(line);
    return false;
}

static bool is_set(const char *name) {
    const char *value = getenv(name);
    return value && *value;
}

/* Whether the test has enough rows to split them between f16 and bf16. */
static bool halves_take_turns(const op_test *test) {
    const uint32_t both = 1u << CLEAT_F16 | 1u << CLEAT_BF16;
    return test->row_count >= 4 && (!test->only || (test->only & both) == both);
}

bool cover_needed(const op_case *c) {
    if (is_set("CLEAT_TEST_ROW") || is_set("CLEAT_TEST_FULL")) return true;
    if (is_set("CLEAT_TEST_TURNS") && c->storage == CLEAT_F32 && (c->row % 2 == 1) != c->chained)
        return any_launch(c, false, is_new);
    if (c->shape == &op_shape_gpu64) return c->row % 2 == 0 || any_launch(c, false, is_new);
    if (c->storage == CLEAT_F32 || !halves_take_turns(c->test)) return true;
    return (c->row + (int)c->storage) % 2 == 0 || any_launch(c, false, is_new);
}

bool cover_skips(const op_case *c) {
    if (c->storage == CLEAT_F32 || c->test->no_backward || is_set("CLEAT_TEST_FULL")) return false;
    const int turn = halves_take_turns(c->test) ? c->row / 2 : c->row + (int)c->storage;
    return (turn % 2 == 0) == c->chained;
}

/* Floating-point operations of the graph. */
static double work(const op_case *c) {
    double flops = 0;
    for (size_t i = 0; i < c->graph->node_count; ++i) {
        const cleat_node *node = c->graph->nodes[i];
        flops += cleat_node_cost(node).flops;
    }
    return flops;
}

bool cover_optimizes(const op_case *c) {
    const bool worth_it = c->shape == &op_shape_cpu || (c->shape == &op_shape_gpu && c->storage == CLEAT_F32);
    return is_set("CLEAT_TEST_FULL") || work(c) > SMALL_WORK || (worth_it && any_launch(c, true, is_new));
}

void cover_record(const op_case *c) {
    any_launch(c, false, record_line);
    any_launch(c, true, record_line);
}
