/* Writes a model to a file: unused nodes are dropped, and the message is streamed, so parameter values are
 * never copied. */
#include "core/files.h"
#include "onnx/builder.h"
#include "platform/files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* protobuf's limit of a message, with room for everything but initializers. */
static const int64_t largest = INT64_C(2000000000);
enum { EXTERNAL_ALIGNMENT = 4096, EXTERNAL_LEAST = 1024 /* bytes; smaller initializers stay in the model */ };

static void mark(cleat_onnx_builder *b, cleat_name_table *used, const char *name) {
    uint32_t there;
    cleat_error error;
    if (!*name || cleat_name_table_find(used, name, &there) || cleat_onnx_failed(b)) return;
    cleat_status status = cleat_name_table_add(used, name, 0, &error);
    if (status) cleat_onnx_fail(b, status, "%s", error.text);
}

static bool is_used(const cleat_name_table *used, const Cleat__Onnx__Node *node) {
    uint32_t there;
    for (size_t i = 0; i < node->n_output; ++i)
        if (cleat_name_table_find(used, node->output[i], &there)) return true;
    return false;
}

/* Marks the inputs of the node and of the nodes in its bodies, which may read values of the model. */
static void mark_inputs(cleat_onnx_builder *b, cleat_name_table *used, const Cleat__Onnx__Node *node) {
    for (size_t i = 0; i < node->n_input; ++i) mark(b, used, node->input[i]);
    for (size_t a = 0; a < node->n_attribute; ++a) {
        const Cleat__Onnx__Graph *body = node->attribute[a]->g;
        for (size_t k = 0; body && k < body->n_node; ++k)
            for (size_t i = 0; i < body->node[k]->n_input; ++i) mark(b, used, body->node[k]->input[i]);
    }
}

void cleat_onnx_drop_unused(cleat_onnx_builder *b) {
    cleat_name_table used = {0};
    cleat_onnx_list *nodes = &b->main.nodes, *initializers = &b->initializers;
    size_t kept = nodes->count;
    uint32_t there;
    if (cleat_onnx_failed(b)) return;
    for (size_t i = 0; i < b->main.outputs.count; ++i)
        mark(b, &used, ((const Cleat__Onnx__Value *)b->main.outputs.items[i])->name);
    for (size_t i = nodes->count; i-- > 0;) { /* the nodes that stay move to the end */
        if (!is_used(&used, nodes->items[i])) continue;
        mark_inputs(b, &used, nodes->items[i]);
        nodes->items[--kept] = nodes->items[i];
    }
    if (kept > 0) memmove(nodes->items, nodes->items + kept, (nodes->count - kept) * sizeof *nodes->items);
    nodes->count -= kept;
    kept = 0;
    for (size_t i = 0; i < initializers->count; ++i)
        if (cleat_name_table_find(&used, ((const Cleat__Onnx__Tensor *)initializers->items[i])->name, &there))
            initializers->items[kept++] = initializers->items[i];
    initializers->count = kept;
    cleat_name_table_free(&used);
}

/* A file under a temporary name; `base` is first, so that a ProtobufCBuffer * can be cast to this type. */
typedef struct stream {
    ProtobufCBuffer base;
    FILE *file;
    char path[4096], temporary[4112];
    int64_t bytes;
    int failed; /* errno; 0: no */
} stream;

static void append(ProtobufCBuffer *buffer, size_t size, const uint8_t *data) {
    stream *s = (stream *)buffer;
    errno = 0;
    if (!s->failed && size && fwrite(data, 1, size, s->file) != size) s->failed = errno ? errno : EIO;
    s->bytes += (int64_t)size;
}

static cleat_status stream_open(const char *path, stream *s, cleat_error *error) {
    *s = (stream){.base = {.append = append}};
    if ((size_t)snprintf(s->path, sizeof s->path, "%s", path) >= sizeof s->path)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "path too long: %.200s...", path);
    snprintf(s->temporary, sizeof s->temporary, "%s.tmp-%ld", path, (long)getpid());
    unlink(s->temporary);
    s->file = fopen(s->temporary, "wbxe"); /* x: never through a link */
    if (!s->file) return cleat_fail(error, CLEAT_ERR_IO, "%s: cannot create the file: %s", path, strerror(errno));
    return CLEAT_OK;
}

/* Closes the file; renames it on success, else removes it. */
static cleat_status stream_close(stream *s, cleat_status status, cleat_error *error) {
    if (!s->file) return status;
    if (!s->failed && (fflush(s->file) != 0 || fsync(fileno(s->file)) != 0)) s->failed = errno;
    if (fclose(s->file) != 0 && !s->failed) s->failed = errno;
    s->file = NULL;
    if (!status && !s->failed && rename(s->temporary, s->path) != 0) s->failed = errno;
    if (!status && s->failed)
        status = cleat_fail(error, CLEAT_ERR_IO, "%s: cannot write: %s", s->path, strerror(s->failed));
    if (status) unlink(s->temporary);
    return status;
}

static Cleat__Onnx__Entry *entry(cleat_onnx_builder *b, const char *key, const char *value) {
    Cleat__Onnx__Entry *made = cleat_onnx_alloc(b, 1, sizeof *made);
    if (!made) return NULL;
    cleat__onnx__entry__init(made);
    made->key = cleat_onnx_text(b, "%s", key);
    made->value = cleat_onnx_text(b, "%s", value);
    return made;
}

static void write_value(cleat_onnx_builder *b, stream *s, const char *location, Cleat__Onnx__Tensor *tensor) {
    static const uint8_t zeros[EXTERNAL_ALIGNMENT];
    enum { ENTRIES = 3 };
    Cleat__Onnx__Entry **entries = cleat_onnx_alloc(b, ENTRIES, sizeof *entries);
    if (!entries) return;
    append(&s->base, (size_t)((EXTERNAL_ALIGNMENT - s->bytes % EXTERNAL_ALIGNMENT) % EXTERNAL_ALIGNMENT), zeros);
    entries[0] = entry(b, "location", location);
    entries[1] = entry(b, "offset", cleat_onnx_text(b, "%lld", (long long)s->bytes));
    entries[2] = entry(b, "length", cleat_onnx_text(b, "%zu", tensor->raw_data.len));
    append(&s->base, tensor->raw_data.len, tensor->raw_data.data);
    tensor->external_data = entries;
    tensor->n_external_data = ENTRIES;
    tensor->data_location = CLEAT__ONNX__TENSOR__LOCATION__EXTERNAL;
    tensor->raw_data = (ProtobufCBinaryData){0};
}

static cleat_status write_external(cleat_onnx_builder *b, const char *path, int64_t *bytes, cleat_error *error) {
    stream s = {.file = NULL};
    const char *slash = strrchr(path, '/');
    const char *file = cleat_onnx_text(b, "%s.data", path),
               *location = cleat_onnx_text(b, "%s.data", slash ? slash + 1 : path);
    cleat_status status = stream_open(file, &s, error);
    for (size_t i = 0; !status && i < b->initializers.count; ++i) {
        Cleat__Onnx__Tensor *tensor = b->initializers.items[i];
        if (tensor->raw_data.len >= EXTERNAL_LEAST) write_value(b, &s, location, tensor);
    }
    if (!status && cleat_onnx_failed(b)) status = cleat_fail(error, b->error.status, "%s", b->error.text);
    *bytes += s.bytes;
    return stream_close(&s, status, error);
}

static cleat_status write_model(const Cleat__Onnx__Model *model, const char *path, int64_t *bytes, cleat_error *error) {
    stream s;
    cleat_status status = stream_open(path, &s, error);
    if (!status) cleat__onnx__model__pack_to_buffer(model, &s.base);
    *bytes += s.bytes;
    return stream_close(&s, status, error);
}

cleat_status cleat_onnx_write(cleat_onnx_builder *b, const char *path, const char *name, const char *text,
                              bool *external, int64_t *bytes, cleat_error *error) {
    Cleat__Onnx__Model model = CLEAT__ONNX__MODEL__INIT;
    Cleat__Onnx__Graph graph = CLEAT__ONNX__GRAPH__INIT;
    Cleat__Onnx__Opset opset = CLEAT__ONNX__OPSET__INIT, *opsets[] = {&opset};
    int64_t values = 0, written = 0;
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < b->initializers.count; ++i)
        values += (int64_t)((const Cleat__Onnx__Tensor *)b->initializers.items[i])->raw_data.len;
    opset.version = CLEAT_ONNX_OPSET;
    model.ir_version = CLEAT_ONNX_IR_VERSION;
    model.producer_name = cleat_onnx_text(b, "cleat");
    model.producer_version = cleat_onnx_text(b, "%s", CLEAT_VERSION);
    model.doc_string = cleat_onnx_text(b, "%s", text);
    model.graph = &graph;
    model.opset_import = opsets;
    model.n_opset_import = 1;
    model.metadata_props = (Cleat__Onnx__Entry **)b->metadata.items;
    model.n_metadata_props = b->metadata.count;
    graph.name = cleat_onnx_text(b, "%s", name);
    graph.node = (Cleat__Onnx__Node **)b->main.nodes.items;
    graph.n_node = b->main.nodes.count;
    graph.initializer = (Cleat__Onnx__Tensor **)b->initializers.items;
    graph.n_initializer = b->initializers.count;
    graph.input = (Cleat__Onnx__Value **)b->main.inputs.items;
    graph.n_input = b->main.inputs.count;
    graph.output = (Cleat__Onnx__Value **)b->main.outputs.items;
    graph.n_output = b->main.outputs.count;
    if (cleat_onnx_failed(b)) return cleat_fail(error, b->error.status, "%s", b->error.text);
    *external = *external || values > largest;
    if (*external) status = write_external(b, path, &written, error);
    if (!status) status = write_model(&model, path, &written, error);
    if (!status) *bytes = written;
    return status;
}
