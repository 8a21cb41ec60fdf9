/* Reads attributes of nodes by the tables of their ops. */
#include "graph/attributes.h"

#include <string.h>

static double element_of(const cleat_node *node, const cleat_attribute *attribute, int i) {
    const unsigned char *at = node->attr + attribute->offset;
    int32_t i32;
    int64_t i64;
    float f32;
    double f64;
    bool truth;
    switch (attribute->type) {
    case CLEAT_ATTRIBUTE_I32:
        memcpy(&i32, at + (size_t)i * sizeof i32, sizeof i32);
        return i32;
    case CLEAT_ATTRIBUTE_I64:
        memcpy(&i64, at + (size_t)i * sizeof i64, sizeof i64);
        return (double)i64;
    case CLEAT_ATTRIBUTE_F32:
        memcpy(&f32, at + (size_t)i * sizeof f32, sizeof f32);
        return (double)f32;
    case CLEAT_ATTRIBUTE_F64:
        memcpy(&f64, at + (size_t)i * sizeof f64, sizeof f64);
        return f64;
    case CLEAT_ATTRIBUTE_BOOL:
        memcpy(&truth, at + (size_t)i * sizeof truth, sizeof truth);
        return truth;
    }
    return 0;
}

bool cleat_node_attribute(const cleat_node *node, const char *name, int i, double *value) {
    for (const cleat_attribute *a = node->op->attributes; a && a->name; ++a) {
        if (strcmp(a->name, name) != 0 || i < 0 || i >= a->count) continue;
        *value = element_of(node, a, i);
        return true;
    }
    return false;
}

bool cleat_node_same_attributes(const cleat_node *a, const cleat_node *b) {
    for (const cleat_attribute *at = a->op->attributes; at && at->name; ++at)
        for (int i = 0; i < at->count; ++i)
            if (element_of(a, at, i) != element_of(b, at, i)) return false;
    return true;
}
