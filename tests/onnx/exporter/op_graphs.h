/* Small graphs of operations that run every translation, including those that no family uses. */
#ifndef CLEAT_TESTS_ONNX_OP_GRAPHS_H
#define CLEAT_TESTS_ONNX_OP_GRAPHS_H

#include "models/model.h"

/* A model with the graph of this name; NULL if unknown. One model at a time. */
const cleat_model *op_graph_find(const char *name);
/* The i-th name; NULL after the last. */
const char *op_graph_name(size_t i);
/* The length to run it with. */
int64_t op_graph_length(const char *name);

#endif
