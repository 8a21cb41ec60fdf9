/* Memory, names, constants and nodes of a model. */
#include "onnx/builder.h"

#include "core/memory.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct cleat_onnx_block {
    cleat_onnx_block *next;
    max_align_t data[];
};

void cleat_onnx_builder_init(cleat_onnx_builder *b) {
    *b = (cleat_onnx_builder){.part = &b->main};
}

static void free_part(cleat_onnx_part *part) {
    cleat_free(part->nodes.items);
    cleat_free(part->inputs.items);
    cleat_free(part->outputs.items);
}

void cleat_onnx_builder_free(cleat_onnx_builder *b) {
    while (b->blocks) {
        cleat_onnx_block *next = b->blocks->next;
        cleat_free(b->blocks);
        b->blocks = next;
    }
    free_part(&b->main);
    if (b->part != &b->main) free_part(b->part);
    cleat_free(b->initializers.items);
    cleat_free(b->metadata.items);
    cleat_free(b->kept_values.items);
    cleat_name_table_free(&b->names);
    cleat_name_table_free(&b->kept);
    cleat_onnx_builder_init(b);
}

bool cleat_onnx_failed(const cleat_onnx_builder *b) {
    return b->error.status != CLEAT_OK;
}

const char *cleat_onnx_fail(cleat_onnx_builder *b, cleat_status status, const char *format, ...) {
    if (cleat_onnx_failed(b)) return "";
    va_list list;
    va_start(list, format);
    vsnprintf(b->error.text, sizeof b->error.text, format, list);
    va_end(list);
    b->error.status = status;
    return "";
}

void *cleat_onnx_alloc(cleat_onnx_builder *b, size_t count, size_t size) {
    if (cleat_onnx_failed(b)) return NULL;
    cleat_onnx_block *block =
        size && count > (SIZE_MAX - sizeof *block) / size ? NULL : cleat_alloc(sizeof *block + count * size, 1);
    if (!block) {
        cleat_onnx_fail(b, CLEAT_ERR_MEMORY, "no memory for an ONNX model");
        return NULL;
    }
    block->next = b->blocks;
    b->blocks = block;
    return block->data;
}

char *cleat_onnx_text(cleat_onnx_builder *b, const char *format, ...) {
    static char none[] = "";
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    const int size = vsnprintf(NULL, 0, format, list);
    char *made = size < 0 ? NULL : cleat_onnx_alloc(b, (size_t)size + 1, 1);
    if (made) vsnprintf(made, (size_t)size + 1, format, again);
    va_end(again);
    va_end(list);
    return made ? made : none;
}

static void append(cleat_onnx_builder *b, cleat_onnx_list *list, void *item) {
    if (cleat_onnx_failed(b)) return;
    cleat_error error;
    cleat_status status = cleat_grow(&list->items, list->count, &list->capacity, &error);
    if (status)
        cleat_onnx_fail(b, status, "%s", error.text);
    else
        list->items[list->count++] = item;
}

static void register_name(cleat_onnx_builder *b, const char *name) {
    cleat_error error;
    if (cleat_onnx_failed(b)) return;
    cleat_status status = cleat_name_table_add(&b->names, name, 0, &error);
    if (status) cleat_onnx_fail(b, status, "%s", error.text);
}

const char *cleat_onnx_new_name(cleat_onnx_builder *b, const char *wanted) {
    uint32_t number;
    char *name = cleat_onnx_text(b, "%s", wanted);
    for (int i = 2; !cleat_onnx_failed(b) && cleat_name_table_find(&b->names, name, &number); ++i)
        name = cleat_onnx_text(b, "%s_%d", wanted, i);
    register_name(b, name);
    return cleat_onnx_failed(b) ? "" : name;
}

static size_t size_of(cleat_onnx_type type) {
    return type == CLEAT_ONNX_INT64 ? 8 : type == CLEAT_ONNX_BOOL ? 1 : 4;
}

const char *cleat_onnx_initializer(cleat_onnx_builder *b, const char *name, cleat_onnx_type type, int rank,
                                   const int64_t *shape, const void *data) {
    Cleat__Onnx__Tensor *made = cleat_onnx_alloc(b, 1, sizeof *made);
    int64_t *dims = cleat_onnx_alloc(b, (size_t)rank + 1, sizeof *dims), elements = 1;
    if (!made || !dims) return "";
    for (int i = 0; i < rank; ++i) elements *= dims[i] = shape[i];
    cleat__onnx__tensor__init(made);
    made->name = (char *)cleat_onnx_new_name(b, name);
    made->data_type = (int32_t)type;
    made->dims = dims;
    made->n_dims = (size_t)rank;
    made->raw_data = (ProtobufCBinaryData){.len = (size_t)elements * size_of(type), .data = (uint8_t *)data};
    append(b, &b->initializers, made);
    return made->name;
}

/* The constant with this name, which contains its value, or NULL. */
static const char *constant(const cleat_onnx_builder *b, const char *name) {
    return cleat_onnx_kept(b, name);
}

static const char *make_constant(cleat_onnx_builder *b, const char *name, cleat_onnx_type type, int rank,
                                 const int64_t *shape, const void *values) {
    int64_t elements = 1;
    for (int i = 0; i < rank; ++i) elements *= shape[i];
    void *copy = cleat_onnx_alloc(b, (size_t)elements, size_of(type));
    if (!copy) return "";
    memcpy(copy, values, (size_t)elements * size_of(type));
    return cleat_onnx_initializer(b, name, type, rank, shape, copy);
}

const char *cleat_onnx_ints(cleat_onnx_builder *b, const int64_t *values, int count) {
    char name[24 * CLEAT_ONNX_RANK + 8] = "ints";
    size_t used = strlen(name);
    for (int i = 0; i < count && used < sizeof name; ++i)
        used += (size_t)snprintf(name + used, sizeof name - used, "_%" PRId64, values[i]);
    const char *found = constant(b, name);
    const int64_t shape[1] = {count};
    return found ? found : cleat_onnx_keep(b, name, make_constant(b, name, CLEAT_ONNX_INT64, 1, shape, values));
}

const char *cleat_onnx_int(cleat_onnx_builder *b, int64_t value) {
    return cleat_onnx_ints(b, &value, 1);
}

const char *cleat_onnx_number(cleat_onnx_builder *b, float value) {
    char name[40];
    snprintf(name, sizeof name, "number_%.9g", (double)value);
    const char *found = constant(b, name);
    return found ? found : cleat_onnx_keep(b, name, make_constant(b, name, CLEAT_ONNX_FLOAT, 0, NULL, &value));
}

const char *cleat_onnx_whole(cleat_onnx_builder *b, int32_t value) {
    char name[40];
    snprintf(name, sizeof name, "whole_%" PRId32, value);
    const char *found = constant(b, name);
    return found ? found : cleat_onnx_keep(b, name, make_constant(b, name, CLEAT_ONNX_INT32, 0, NULL, &value));
}

const char *cleat_onnx_table(cleat_onnx_builder *b, const char *name, int rank, const int64_t *shape,
                             const float *values) {
    return make_constant(b, name, CLEAT_ONNX_FLOAT, rank, shape, values);
}

const char *cleat_onnx_kept(const cleat_onnx_builder *b, const char *key) {
    uint32_t index;
    return cleat_name_table_find(&b->kept, key, &index) ? b->kept_values.items[index] : NULL;
}

const char *cleat_onnx_keep(cleat_onnx_builder *b, const char *key, const char *value) {
    cleat_error error;
    const uint32_t index = (uint32_t)b->kept_values.count;
    append(b, &b->kept_values, (void *)value);
    if (cleat_onnx_failed(b)) return "";
    cleat_status status = cleat_name_table_add(&b->kept, key, index, &error);
    return status ? cleat_onnx_fail(b, status, "%s", error.text) : value;
}

static Cleat__Onnx__Attribute *make_attribute(cleat_onnx_builder *b, const cleat_onnx_attribute *attribute) {
    Cleat__Onnx__Attribute *made = cleat_onnx_alloc(b, 1, sizeof *made);
    int64_t *ints = cleat_onnx_alloc(b, (size_t)attribute->count + 1, sizeof *ints);
    if (!made || !ints) return NULL;
    cleat__onnx__attribute__init(made);
    made->name = cleat_onnx_text(b, "%s", attribute->name);
    made->type = attribute->type;
    made->f = attribute->number;
    made->i = attribute->integer;
    made->g = attribute->graph;
    if (attribute->text) {
        made->s.data = (uint8_t *)cleat_onnx_text(b, "%s", attribute->text);
        made->s.len = strlen(attribute->text);
    }
    if (attribute->count) memcpy(ints, attribute->integers, (size_t)attribute->count * sizeof *ints);
    made->ints = ints;
    made->n_ints = (size_t)attribute->count;
    return made;
}

void cleat_onnx_emit(cleat_onnx_builder *b, const cleat_onnx_node *node, const char **out) {
    static char absent[] = "";
    const size_t n_in = (size_t)node->n_in, n_out = node->n_out ? (size_t)node->n_out : 1,
                 n_attributes = (size_t)node->n_attributes;
    Cleat__Onnx__Node *made = cleat_onnx_alloc(b, 1, sizeof *made);
    char **in = cleat_onnx_alloc(b, n_in + n_out, sizeof *in), **names = in ? in + n_in : NULL;
    Cleat__Onnx__Attribute **attributes = cleat_onnx_alloc(b, n_attributes + 1, sizeof *attributes);
    for (size_t i = 0; i < n_out; ++i) out[i] = "";
    if (!made || !in || !attributes) return;
    cleat__onnx__node__init(made);
    for (size_t i = 0; i < n_in; ++i) in[i] = node->in[i] ? (char *)node->in[i] : absent;
    for (size_t i = 0; i < n_out; ++i)
        out[i] = names[i] = (char *)cleat_onnx_new_name(b, cleat_onnx_text(b, "%s%s", b->scope, node->type));
    for (size_t i = 0; i < n_attributes; ++i) attributes[i] = make_attribute(b, &node->attributes[i]);
    made->op_type = cleat_onnx_text(b, "%s", node->type);
    made->name = names[0];
    made->input = in;
    made->n_input = n_in;
    made->output = names;
    made->n_output = n_out;
    made->attribute = attributes;
    made->n_attribute = n_attributes;
    append(b, &b->part->nodes, made);
}

const char *cleat_onnx_op(cleat_onnx_builder *b, const char *type, const cleat_onnx_attribute *attributes,
                          int n_attributes, const char *const *in, int n_in) {
    const char *out = "";
    const cleat_onnx_node node = {
        .type = type, .in = in, .n_in = n_in, .attributes = attributes, .n_attributes = n_attributes};
    cleat_onnx_emit(b, &node, &out);
    return out;
}

const char *cleat_onnx_transpose(cleat_onnx_builder *b, const char *x, int rank, const int64_t *axes) {
    return OP_WITH(b, "Transpose", ATTRIBUTES(CLEAT_ONNX_IS("perm", axes, rank)), x);
}

const char *cleat_onnx_cast(cleat_onnx_builder *b, const char *x, cleat_onnx_type to) {
    return OP_WITH(b, "Cast", ATTRIBUTES(CLEAT_ONNX_I("to", (int64_t)to)), x);
}

static Cleat__Onnx__Shape *make_shape(cleat_onnx_builder *b, int rank, const cleat_onnx_size *sizes) {
    Cleat__Onnx__Shape *shape = cleat_onnx_alloc(b, 1, sizeof *shape);
    Cleat__Onnx__Shape__Dim **dims = cleat_onnx_alloc(b, (size_t)rank + 1, sizeof *dims);
    if (!shape || !dims) return NULL;
    cleat__onnx__shape__init(shape);
    for (int i = 0; i < rank; ++i) {
        dims[i] = cleat_onnx_alloc(b, 1, sizeof *dims[i]);
        if (!dims[i]) return NULL;
        cleat__onnx__shape__dim__init(dims[i]);
        dims[i]->value_case =
            sizes[i].param ? CLEAT__ONNX__SHAPE__DIM__VALUE_DIM_PARAM : CLEAT__ONNX__SHAPE__DIM__VALUE_DIM_VALUE;
        if (sizes[i].param)
            dims[i]->dim_param = cleat_onnx_text(b, "%s", sizes[i].param);
        else
            dims[i]->dim_value = sizes[i].value;
    }
    shape->dim = dims;
    shape->n_dim = (size_t)rank;
    return shape;
}

void cleat_onnx_declare(cleat_onnx_builder *b, cleat_onnx_list *list, const char *name, cleat_onnx_type type, int rank,
                        const cleat_onnx_size *shape, const char *text) {
    Cleat__Onnx__Value *value = cleat_onnx_alloc(b, 1, sizeof *value);
    Cleat__Onnx__Type *made = cleat_onnx_alloc(b, 1, sizeof *made);
    Cleat__Onnx__Type__TensorType *tensor = cleat_onnx_alloc(b, 1, sizeof *tensor);
    if (!value || !made || !tensor) return;
    cleat__onnx__value__init(value);
    cleat__onnx__type__init(made);
    cleat__onnx__type__tensor_type__init(tensor);
    tensor->elem_type = (int32_t)type;
    if (rank >= 0) tensor->shape = make_shape(b, rank, shape);
    made->tensor_type = tensor;
    value->type = made;
    value->name = (char *)name;
    value->doc_string = cleat_onnx_text(b, "%s", text);
    append(b, list, value);
}

void cleat_onnx_begin_body(cleat_onnx_builder *b, cleat_onnx_part *body) {
    *body = (cleat_onnx_part){.nodes = {0}};
    b->part = body;
}

/* Moves the items to memory of the builder and empties the list. */
static void *const *detach(cleat_onnx_builder *b, cleat_onnx_list *list, size_t *count) {
    void **items = cleat_onnx_alloc(b, list->count + 1, sizeof *items);
    if (items && list->count) memcpy(items, list->items, list->count * sizeof *items);
    *count = items ? list->count : 0;
    cleat_free(list->items);
    *list = (cleat_onnx_list){0};
    return items;
}

Cleat__Onnx__Graph *cleat_onnx_end_body(cleat_onnx_builder *b, const char *name) {
    cleat_onnx_part *body = b->part;
    Cleat__Onnx__Graph *graph = cleat_onnx_alloc(b, 1, sizeof *graph);
    Cleat__Onnx__Graph unused, *made = graph ? graph : &unused;
    cleat__onnx__graph__init(made);
    made->name = cleat_onnx_text(b, "%s", name);
    made->node = (Cleat__Onnx__Node **)detach(b, &body->nodes, &made->n_node);
    made->input = (Cleat__Onnx__Value **)detach(b, &body->inputs, &made->n_input);
    made->output = (Cleat__Onnx__Value **)detach(b, &body->outputs, &made->n_output);
    b->part = &b->main;
    return graph;
}

void cleat_onnx_metadata(cleat_onnx_builder *b, const char *key, const char *value) {
    Cleat__Onnx__Entry *entry = cleat_onnx_alloc(b, 1, sizeof *entry);
    if (!entry) return;
    cleat__onnx__entry__init(entry);
    entry->key = cleat_onnx_text(b, "%s", key);
    entry->value = cleat_onnx_text(b, "%s", value);
    append(b, &b->metadata, entry);
}
