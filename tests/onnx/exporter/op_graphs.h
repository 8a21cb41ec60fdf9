/* Small graphs of operations, so that every translation is run and not only those that the families use. */
#ifndef CLEAT_TESTS_ONNX_OP_GRAPHS_H
#define CLEAT_TESTS_ONNX_OP_GRAPHS_H

#include "models/model.h"

/* A model whose graph is the one of this name; NULL: there is none. One model at a time. */
const cleat_model *op_graph_find(const char *name);
/* The i-th name; NULL after the last. */
const char *op_graph_name(size_t i);
/* Length with which it is run. */
int64_t op_graph_length(const char *name);

#endif
