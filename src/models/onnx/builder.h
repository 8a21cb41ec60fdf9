/* Building an ONNX model in memory: nodes, constants, names. Everything that a builder creates is freed with
 * it.
 *
 * Callers need no error check per line: the builder keeps its first error (out of memory, or cleat_onnx_fail), and
 * later calls do nothing and return "". Values are known by their names, which the builder owns. */
#ifndef CLEAT_SRC_ONNX_BUILDER_H
#define CLEAT_SRC_ONNX_BUILDER_H

#include "core/name_table.h"
#include "onnx.pb-c.h"

enum { CLEAT_ONNX_OPSET = 17, CLEAT_ONNX_IR_VERSION = 8, CLEAT_ONNX_RANK = 8 };

/* A list that grows; `items` are pointers to messages. */
typedef struct cleat_onnx_list {
    void **items; /* [count] */
    size_t count, capacity;
} cleat_onnx_list;

/* Nodes of the model's graph, or of the body of a loop. */
typedef struct cleat_onnx_part {
    cleat_onnx_list nodes, inputs, outputs;
} cleat_onnx_part;

typedef struct cleat_onnx_block cleat_onnx_block;

typedef struct cleat_onnx_builder {
    cleat_error error;
    cleat_onnx_block *blocks; /* memory of messages and strings */
    cleat_onnx_part main, *part;
    cleat_onnx_list initializers;
    cleat_onnx_list metadata;
    cleat_name_table names;      /* every value's name */
    cleat_name_table kept;       /* cleat_onnx_keep: index into `kept_values` */
    cleat_onnx_list kept_values; /* const char * */
    char scope[80];              /* first part of the names of new values */
} cleat_onnx_builder;

/* A zeroed builder whose `part` is &main. The caller frees it. */
void cleat_onnx_builder_init(cleat_onnx_builder *b);
void cleat_onnx_builder_free(cleat_onnx_builder *b);
/* The first error counts. Returns "". */
const char *cleat_onnx_fail(cleat_onnx_builder *b, cleat_status status, const char *format, ...) CLEAT_PRINTF(3, 4);
bool cleat_onnx_failed(const cleat_onnx_builder *b);

/* Zeroed memory, and a formatted string, that live as long as the builder; NULL and "" after an error. */
void *cleat_onnx_alloc(cleat_onnx_builder *b, size_t count, size_t size);
char *cleat_onnx_text(cleat_onnx_builder *b, const char *format, ...) CLEAT_PRINTF(2, 3);

/* A new name: `wanted`, with a number appended if it is taken. */
const char *cleat_onnx_new_name(cleat_onnx_builder *b, const char *wanted);

typedef Cleat__Onnx__Tensor__DataType cleat_onnx_type;
#define CLEAT_ONNX_FLOAT CLEAT__ONNX__TENSOR__DATA_TYPE__FLOAT
#define CLEAT_ONNX_INT32 CLEAT__ONNX__TENSOR__DATA_TYPE__INT32
#define CLEAT_ONNX_INT64 CLEAT__ONNX__TENSOR__DATA_TYPE__INT64
#define CLEAT_ONNX_BOOL CLEAT__ONNX__TENSOR__DATA_TYPE__BOOL

/* An initializer of the model over `data` [product of shape], which must outlive the builder. */
const char *cleat_onnx_initializer(cleat_onnx_builder *b, const char *name, cleat_onnx_type type, int rank,
                                   const int64_t *shape, const void *data);
/* Constants; equal ones are stored once. ints: i64 [count]; number: f32 []; whole: i32 []. */
const char *cleat_onnx_ints(cleat_onnx_builder *b, const int64_t *values, int count);
const char *cleat_onnx_int(cleat_onnx_builder *b, int64_t value); /* i64 [1] */
const char *cleat_onnx_number(cleat_onnx_builder *b, float value);
const char *cleat_onnx_whole(cleat_onnx_builder *b, int32_t value);
/* A constant f32 [rank dimensions] whose `values` are copied. */
const char *cleat_onnx_table(cleat_onnx_builder *b, const char *name, int rank, const int64_t *shape,
                             const float *values);

/* Values that several nodes share, by a key: kept returns NULL if none was kept. keep returns `value`. */
const char *cleat_onnx_kept(const cleat_onnx_builder *b, const char *key);
const char *cleat_onnx_keep(cleat_onnx_builder *b, const char *key, const char *value);

/* An attribute of a node. */
typedef struct cleat_onnx_attribute {
    const char *name;
    Cleat__Onnx__Attribute__Type type;
    float number;
    int64_t integer;
    const char *text;
    const int64_t *integers; /* [count] copied */
    int count;
    Cleat__Onnx__Graph *graph;
} cleat_onnx_attribute;

#define CLEAT_ONNX_I(NAME, VALUE)                                                                                      \
    (cleat_onnx_attribute) {                                                                                           \
        .name = NAME, .type = CLEAT__ONNX__ATTRIBUTE__TYPE__INT, .integer = VALUE                                      \
    }
#define CLEAT_ONNX_F(NAME, VALUE)                                                                                      \
    (cleat_onnx_attribute) {                                                                                           \
        .name = NAME, .type = CLEAT__ONNX__ATTRIBUTE__TYPE__FLOAT, .number = VALUE                                     \
    }
#define CLEAT_ONNX_S(NAME, VALUE)                                                                                      \
    (cleat_onnx_attribute) {                                                                                           \
        .name = NAME, .type = CLEAT__ONNX__ATTRIBUTE__TYPE__STRING, .text = VALUE                                      \
    }
#define CLEAT_ONNX_IS(NAME, VALUES, COUNT)                                                                             \
    (cleat_onnx_attribute) {                                                                                           \
        .name = NAME, .type = CLEAT__ONNX__ATTRIBUTE__TYPE__INTS, .integers = VALUES, .count = COUNT                   \
    }
#define CLEAT_ONNX_G(NAME, GRAPH)                                                                                      \
    (cleat_onnx_attribute) {                                                                                           \
        .name = NAME, .type = CLEAT__ONNX__ATTRIBUTE__TYPE__GRAPH, .graph = GRAPH                                      \
    }

typedef struct cleat_onnx_node {
    const char *type;      /* "MatMul" */
    const char *const *in; /* [n_in]; NULL or "": absent */
    int n_in;
    const cleat_onnx_attribute *attributes; /* [n_attributes] */
    int n_attributes;
    int n_out; /* 0: one */
} cleat_onnx_node;

/* Appends a node to the current part. Its outputs get new names, written to out [n_out]. */
void cleat_onnx_emit(cleat_onnx_builder *b, const cleat_onnx_node *node, const char **out);
/* A node with one output, whose name is returned. */
const char *cleat_onnx_op(cleat_onnx_builder *b, const char *type, const cleat_onnx_attribute *attributes,
                          int n_attributes, const char *const *in, int n_in);

/* OP(b, "Add", x, y): a node without attributes. OP_WITH(b, "Softmax", ATTRIBUTES(CLEAT_ONNX_I("axis", -1)), x) */
#define OP(B, TYPE, ...)                                                                                               \
    cleat_onnx_op(B, TYPE, NULL, 0, (const char *const[]){__VA_ARGS__},                                                \
                  (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)))
#define ATTRIBUTES(...)                                                                                                \
    (const cleat_onnx_attribute[]){__VA_ARGS__},                                                                       \
        (int)(sizeof((const cleat_onnx_attribute[]){__VA_ARGS__}) / sizeof(cleat_onnx_attribute))
#define OP_WITH(B, TYPE, WITH, ...)                                                                                    \
    cleat_onnx_op(B, TYPE, WITH, (const char *const[]){__VA_ARGS__},                                                   \
                  (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)))
#define INTS(B, ...)                                                                                                   \
    cleat_onnx_ints(B, (const int64_t[]){__VA_ARGS__}, (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

/* Frequent nodes. axes: i64. */
const char *cleat_onnx_transpose(cleat_onnx_builder *b, const char *x, int rank, const int64_t *axes);
#define TRANSPOSE(B, X, ...)                                                                                           \
    cleat_onnx_transpose(B, X, (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                        \
                         (const int64_t[]){__VA_ARGS__})
const char *cleat_onnx_cast(cleat_onnx_builder *b, const char *x, cleat_onnx_type to);

/* A size of an input or output: `value`, or if `param` is not NULL a name. */
typedef struct cleat_onnx_size {
    int64_t value;
    const char *param;
} cleat_onnx_size;

/* Declares an input or output of the current part, which has this name already. rank < 0: shape unknown. */
void cleat_onnx_declare(cleat_onnx_builder *b, cleat_onnx_list *list, const char *name, cleat_onnx_type type, int rank,
                        const cleat_onnx_size *shape, const char *text);

/* Begins the body of a Scan; ends it and returns its graph. Bodies do not nest. */
void cleat_onnx_begin_body(cleat_onnx_builder *b, cleat_onnx_part *body);
Cleat__Onnx__Graph *cleat_onnx_end_body(cleat_onnx_builder *b, const char *name);

void cleat_onnx_metadata(cleat_onnx_builder *b, const char *key, const char *value);

/* Removes nodes and initializers that no output depends on. Call it before the model is written. */
void cleat_onnx_drop_unused(cleat_onnx_builder *b);
/* Writes the model atomically. Values of initializers go to PATH.data if *external, or if the file would
 * exceed 2 GB, which is protobuf's limit; *external is then true. *bytes receives the size of all files. */
cleat_status cleat_onnx_write(cleat_onnx_builder *b, const char *path, const char *name, const char *text,
                              bool *external, int64_t *bytes, cleat_error *error);

#endif
