/* Reading GGUF files: metadata and the list of tensors. */
#include "core/gguf.h"

#include "core/files.h"
#include "core/memory.h"
#include "core/name_table.h"
#include "platform/files.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "GGUF files are little-endian; this machine is not"
#endif

/* The head of a file is read in pieces that grow until it is complete. */
enum { FIRST_PIECE = 1 << 20, GROWTH = 4, DEFAULT_ALIGNMENT = 32 };

struct cleat_gguf {
    char *path;
    int descriptor;
    uint64_t size; /* of the file, bytes */
    char *head;    /* everything in front of the data; texts are moved by a byte, for their zero */
    cleat_gguf_member *members;
    size_t member_count, member_capacity;
    cleat_name_table keys, names; /* indices of members and tensors */
    cleat_gguf_tensor *tensors;
    size_t tensor_count, tensor_capacity;
};

/* --- the parser ----------------------------------------------------------------------------------------------- */

typedef struct parser {
    cleat_gguf *file;
    char *at, *end;   /* of what is loaded */
    bool is_short;    /* more of the file must be loaded */
    const char *what; /* that is read now, for messages */
    cleat_error *error;
} parser;

static cleat_status fail_at(const parser *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* CLEAT_ERR_FORMAT with the file, the byte, and what is read. */
static cleat_status fail_at(const parser *p, const char *format, ...) {
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return cleat_fail(p->error, CLEAT_ERR_FORMAT, "%s: at byte %zu, %s: %s", p->file->path,
                      (size_t)(p->at - p->file->head), p->what, text);
}

static uint64_t rest(const parser *p) {
    return p->file->size - (uint64_t)(p->at - p->file->head);
}

/* Checks that `count` items of at least `size` bytes can follow, and that `bytes` of them are loaded. */
static cleat_status need(parser *p, uint64_t count, size_t size) {
    if (count > rest(p) / size)
        return fail_at(p, "has %llu items of %zu bytes or more in a file of %llu bytes; copy or download it again",
                       (unsigned long long)count, size, (unsigned long long)p->file->size);
    p->is_short = count * size > (uint64_t)(p->end - p->at);
    return p->is_short ? CLEAT_ERR_FORMAT : CLEAT_OK;
}

static cleat_status read_bytes(parser *p, void *value, size_t size) {
    cleat_status status = need(p, 1, size);
    if (status) return status;
    memcpy(value, p->at, size);
    p->at += size;
    return CLEAT_OK;
}

static cleat_status read_text(parser *p, cleat_gguf_text *text) {
    uint64_t size;
    cleat_status status = read_bytes(p, &size, sizeof size);
    if (!status && size) status = need(p, size, 1);
    if (status) return status;
    /* The last byte of the length becomes the first of the text. */
    memmove(p->at - 1, p->at, size);
    *(p->at - 1 + size) = 0;
    *text = (cleat_gguf_text){.data = p->at - 1, .size = size};
    p->at += size;
    return CLEAT_OK;
}

/* A name that is looked up: of at most 65535 bytes, none of them zero, and new in `table`. */
static cleat_status read_name(parser *p, cleat_name_table *table, size_t index, cleat_gguf_text *name) {
    uint32_t other;
    cleat_status status = read_text(p, name);
    if (status) return status;
    if (name->size == 0 || name->size > UINT16_MAX || strlen(name->data) != name->size)
        return fail_at(p, "a name of %zu bytes, with a zero among them or longer than 65535", name->size);
    if (cleat_name_table_find(table, name->data, &other)) return fail_at(p, "'%.100s' occurs twice", name->data);
    return cleat_name_table_add(table, name->data, (uint32_t)index, p->error);
}

static const uint8_t kind_bytes[CLEAT_GGUF_KINDS] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};

static cleat_status read_items(parser *p, cleat_gguf_member *member) {
    cleat_status status = need(p, member->count, kind_bytes[member->kind]);
    if (status) return status;
    if (member->kind != CLEAT_GGUF_TEXT) {
        member->numbers = p->at;
        p->at += member->count * kind_bytes[member->kind];
        return CLEAT_OK;
    }
    cleat_gguf_text *texts = cleat_alloc(member->count, sizeof *texts);
    if (!texts) return cleat_fail(p->error, CLEAT_ERR_MEMORY, "%s: no memory for its metadata", p->file->path);
    member->texts = texts;
    for (size_t i = 0; i < member->count && !status; ++i) status = read_text(p, &texts[i]);
    return status;
}

static cleat_status read_kind(parser *p, cleat_gguf_kind *kind) {
    uint32_t number;
    cleat_status status = read_bytes(p, &number, sizeof number);
    if (!status && number >= CLEAT_GGUF_KINDS)
        return fail_at(p, "a value of type %u; this cleat knows those below %d", number, CLEAT_GGUF_KINDS);
    if (!status) *kind = (cleat_gguf_kind)number;
    return status;
}

static cleat_status read_member(parser *p) {
    cleat_gguf *file = p->file;
    uint64_t count = 1;
    p->what = "a key of the metadata";
    cleat_status status = cleat_grow(&file->members, file->member_count, &file->member_capacity, p->error);
    if (status) return status;
    cleat_gguf_member *member = &file->members[file->member_count];
    *member = (cleat_gguf_member){0};
    status = read_name(p, &file->keys, file->member_count, &member->key);
    if (status) return status;
    ++file->member_count; /* its texts are freed with the file */
    p->what = member->key.data;
    status = read_kind(p, &member->kind);
    if (!status && member->kind == CLEAT_GGUF_ARRAY) {
        member->is_array = true;
        status = read_kind(p, &member->kind);
        if (!status) status = read_bytes(p, &count, sizeof count);
        if (!status && member->kind == CLEAT_GGUF_ARRAY)
            return fail_at(p, "an array of arrays, which is not supported");
    }
    member->count = count;
    return status ? status : read_items(p, member);
}

static cleat_status read_extents(parser *p, cleat_gguf_tensor *tensor) {
    uint32_t rank = 0;
    uint64_t extent;
    int64_t elements = 1;
    cleat_status status = read_bytes(p, &rank, sizeof rank);
    if (!status && rank > CLEAT_GGUF_RANK)
        return fail_at(p, "%u dimensions; at most %d are allowed", rank, CLEAT_GGUF_RANK);
    for (uint32_t i = 0; i < rank && !status; ++i) {
        status = read_bytes(p, &extent, sizeof extent);
        if (status) break;
        if (extent == 0 || extent > (uint64_t)(INT64_MAX / 8 / elements))
            return fail_at(p, "an extent of %llu", (unsigned long long)extent);
        elements *= (int64_t)extent;
        tensor->shape[rank - 1 - i] = (int64_t)extent;
    }
    tensor->rank = (int)rank;
    return status;
}

static cleat_status read_tensor(parser *p) {
    cleat_gguf *file = p->file;
    uint32_t type = 0;
    p->what = "the name of a tensor";
    cleat_status status = cleat_grow(&file->tensors, file->tensor_count, &file->tensor_capacity, p->error);
    if (status) return status;
    cleat_gguf_tensor *tensor = &file->tensors[file->tensor_count];
    *tensor = (cleat_gguf_tensor){0};
    status = read_name(p, &file->names, file->tensor_count, &tensor->name);
    if (status) return status;
    p->what = tensor->name.data;
    status = read_extents(p, tensor);
    if (!status) status = read_bytes(p, &type, sizeof type);
    if (!status) status = read_bytes(p, &tensor->offset, sizeof tensor->offset);
    if (status) return status;
    tensor->type = (cleat_gguf_type)(type < CLEAT_GGUF_TYPES ? type : CLEAT_GGUF_TYPES);
    const int64_t each = cleat_gguf_block_values(tensor->type);
    if (each == 0)
        return fail_at(p,
                       "is quantised as type %u of ggml, which cleat does not read; use a file with F32, F16, BF16, "
                       "Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K or Q6_K (llama-quantize)",
                       type);
    const int64_t row = tensor->rank ? tensor->shape[tensor->rank - 1] : 1;
    if (row % each)
        return fail_at(p, "rows of %lld values are no whole blocks of %s (%lld)", (long long)row,
                       cleat_gguf_type_name(tensor->type), (long long)each);
    int64_t elements = 1;
    for (int i = 0; i < tensor->rank; ++i) elements *= tensor->shape[i];
    tensor->bytes = (size_t)(elements / each) * cleat_gguf_block_bytes(tensor->type);
    ++file->tensor_count;
    return CLEAT_OK;
}

static int compare_offsets(const void *a, const void *b) {
    const cleat_gguf_tensor *x = *(const cleat_gguf_tensor *const *)a, *y = *(const cleat_gguf_tensor *const *)b;
    return x->offset != y->offset ? x->offset < y->offset ? -1 : 1 : 0;
}

/* Checks that tensors lie within the data, at multiples of the alignment, and share no bytes. */
static cleat_status place_tensors(parser *p) {
    cleat_gguf *file = p->file;
    const cleat_gguf_member *member = cleat_gguf_find(file, "general.alignment");
    const double wanted = member ? cleat_gguf_number(member, 0) : DEFAULT_ALIGNMENT;
    p->what = "general.alignment";
    if (!(wanted >= 1 && wanted <= 1 << 20 && ((uint64_t)wanted & ((uint64_t)wanted - 1)) == 0))
        return fail_at(p, "must be a power of 2");
    const uint64_t alignment = (uint64_t)wanted,
                   start = ((uint64_t)(p->at - file->head) + alignment - 1) / alignment * alignment;
    const cleat_gguf_tensor **order = cleat_alloc(file->tensor_count, sizeof *order);
    if (!order) return cleat_fail(p->error, CLEAT_ERR_MEMORY, "%s: no memory for its list of tensors", file->path);
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < file->tensor_count && !status; ++i) {
        cleat_gguf_tensor *tensor = &file->tensors[i];
        order[i] = tensor;
        p->what = tensor->name.data;
        if (tensor->offset % alignment)
            status = fail_at(p, "its offset %llu is no multiple of the alignment %llu",
                             (unsigned long long)tensor->offset, (unsigned long long)alignment);
        else if (start > file->size || tensor->offset > file->size - start ||
                 tensor->bytes > file->size - start - tensor->offset)
            status = fail_at(p, "its data end after the file, which has %llu bytes; copy or download it again",
                             (unsigned long long)file->size);
        tensor->offset += start;
    }
    if (!status && file->tensor_count) qsort(order, file->tensor_count, sizeof(*order), compare_offsets);
    for (size_t i = 1; i < file->tensor_count && !status; ++i) {
        p->what = order[i]->name.data;
        if (order[i]->offset < order[i - 1]->offset + order[i - 1]->bytes)
            status = fail_at(p, "its data overlap those of '%.100s'", order[i - 1]->name.data);
    }
    cleat_free(order);
    return status;
}

static cleat_status parse(parser *p) {
    uint32_t version = 0;
    uint64_t tensors = 0, members = 0;
    char magic[4];
    p->what = "the start";
    if (p->file->size < sizeof magic) return fail_at(p, "the file is empty or cut; copy or download it again");
    cleat_status status = read_bytes(p, magic, sizeof magic);
    if (!status && memcmp(magic, "GGUF", sizeof magic) != 0)
        return fail_at(p, "not a GGUF file, whose first letters are GGUF; give such a file, or a Hugging Face folder");
    if (!status) status = read_bytes(p, &version, sizeof version);
    if (!status && version != 2 && version != 3)
        return fail_at(p, "version %u of GGUF%s; this cleat reads 2 and 3: convert the model again", version,
                       version && !(version & 0xffff) ? " (big-endian)" : "");
    if (!status) status = read_bytes(p, &tensors, sizeof tensors);
    if (!status) status = read_bytes(p, &members, sizeof members);
    p->what = "the number of tensors";
    /* The least bytes of a tensor and of a member: an empty name and no extents; an empty key and a byte. */
    if (!status && tensors > rest(p) / 24)
        return fail_at(p, "%llu is too much for the file; copy or download it again", (unsigned long long)tensors);
    for (uint64_t i = 0; i < members && !status; ++i) status = read_member(p);
    for (uint64_t i = 0; i < tensors && !status; ++i) status = read_tensor(p);
    return status ? status : place_tensors(p);
}

/* --- files ---------------------------------------------------------------------------------------------------- */

static cleat_status read_at(const cleat_gguf *file, uint64_t offset, void *bytes, size_t size, cleat_error *error) {
    for (size_t done = 0; done < size;) {
        const ssize_t part = pread(file->descriptor, (char *)bytes + done, size - done, (off_t)(offset + done));
        if (part < 0 && errno == EINTR) continue;
        if (part <= 0)
            return cleat_fail(error, CLEAT_ERR_IO, "%s: %s", file->path,
                              part ? strerror(errno) : "was truncated while it was in use");
        done += (size_t)part;
    }
    return CLEAT_OK;
}

static void clear_head(cleat_gguf *file) {
    for (size_t i = 0; i < file->member_count; ++i) cleat_free((void *)file->members[i].texts);
    cleat_free(file->members);
    cleat_free(file->tensors);
    cleat_free(file->head);
    cleat_name_table_free(&file->keys);
    cleat_name_table_free(&file->names);
    *file = (cleat_gguf){.path = file->path, .descriptor = file->descriptor, .size = file->size};
}

/* Parses ever larger pieces until the head is complete. */
static cleat_status read_head(cleat_gguf *file, cleat_error *error) {
    for (uint64_t piece = FIRST_PIECE;; piece *= GROWTH) {
        const size_t size = (size_t)(piece < file->size ? piece : file->size);
        file->head = cleat_alloc(size, 1);
        if (!file->head) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for its metadata", file->path);
        cleat_status status = read_at(file, 0, file->head, size, error);
        if (status) return status;
        parser p = {.file = file, .at = file->head, .end = file->head + size, .error = error};
        status = parse(&p);
        if (!status || !p.is_short) return status;
        clear_head(file);
    }
}

cleat_status cleat_gguf_open(const char *path, cleat_gguf **file, cleat_error *error) {
    struct stat facts;
    cleat_gguf *made = cleat_alloc(1, sizeof *made);
    cleat_status status = CLEAT_OK;
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory reading it", path);
    made->descriptor = open(path, O_RDONLY | O_CLOEXEC);
    made->path = cleat_strdup(path);
    if (!made->path)
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory reading it", path);
    else if (made->descriptor < 0 || fstat(made->descriptor, &facts))
        status =
            cleat_fail(error, errno == ENOENT ? CLEAT_ERR_NOT_FOUND : CLEAT_ERR_IO, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(facts.st_mode))
        status = cleat_fail(error, CLEAT_ERR_FORMAT, "%s: is no file", path);
    if (!status) {
        made->size = (uint64_t)facts.st_size;
        status = read_head(made, error);
    }
    if (status) {
        cleat_gguf_close(made);
        return status;
    }
    *file = made;
    return CLEAT_OK;
}

void cleat_gguf_close(cleat_gguf *file) {
    if (!file) return;
    clear_head(file);
    if (file->descriptor >= 0) close(file->descriptor);
    cleat_free(file->path);
    cleat_free(file);
}

const char *cleat_gguf_path(const cleat_gguf *file) {
    return file->path;
}

/* --- metadata ------------------------------------------------------------------------------------------------- */

size_t cleat_gguf_members(const cleat_gguf *file) {
    return file->member_count;
}

const cleat_gguf_member *cleat_gguf_member_at(const cleat_gguf *file, size_t i) {
    return &file->members[i];
}

const cleat_gguf_member *cleat_gguf_find(const cleat_gguf *file, const char *key) {
    uint32_t i;
    return cleat_name_table_find(&file->keys, key, &i) ? &file->members[i] : NULL;
}

double cleat_gguf_number(const cleat_gguf_member *member, size_t i) {
    if (!member || !member->numbers || i >= member->count) return NAN;
    const char *item = (const char *)member->numbers + i * kind_bytes[member->kind];
    switch (member->kind) {
#define NUMBER(KIND, TYPE)                                                                                             \
    case KIND: {                                                                                                       \
        TYPE value;                                                                                                    \
        memcpy(&value, item, sizeof value);                                                                            \
        return (double)value;                                                                                          \
    }
        NUMBER(CLEAT_GGUF_U8, uint8_t)
        NUMBER(CLEAT_GGUF_I8, int8_t)
        NUMBER(CLEAT_GGUF_U16, uint16_t)
        NUMBER(CLEAT_GGUF_I16, int16_t)
        NUMBER(CLEAT_GGUF_U32, uint32_t)
        NUMBER(CLEAT_GGUF_I32, int32_t)
        NUMBER(CLEAT_GGUF_F32, float)
        NUMBER(CLEAT_GGUF_U64, uint64_t)
        NUMBER(CLEAT_GGUF_I64, int64_t)
        NUMBER(CLEAT_GGUF_F64, double)
#undef NUMBER
    case CLEAT_GGUF_BOOL:
        return *item != 0;
    default:
        return NAN;
    }
}

cleat_status cleat_gguf_expect(const cleat_gguf *file, const char *key, cleat_gguf_form form,
                               const cleat_gguf_member **member, cleat_error *error) {
    static const char *const words[] = {"a text", "an array of texts", "a number", "an array of numbers"};
    const bool texts = form == CLEAT_GGUF_ONE_TEXT || form == CLEAT_GGUF_TEXTS;
    const bool array = form == CLEAT_GGUF_TEXTS || form == CLEAT_GGUF_NUMBERS;
    const cleat_gguf_member *found = cleat_gguf_find(file, key);
    if (found && (found->is_array != array || (found->kind == CLEAT_GGUF_TEXT) != texts))
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: %s must be %s; convert the model again", file->path, key,
                          words[form]);
    *member = found;
    return CLEAT_OK;
}

/* --- tensors -------------------------------------------------------------------------------------------------- */

size_t cleat_gguf_count(const cleat_gguf *file) {
    return file->tensor_count;
}

const cleat_gguf_tensor *cleat_gguf_at(const cleat_gguf *file, size_t i) {
    return i < file->tensor_count ? &file->tensors[i] : NULL;
}

const cleat_gguf_tensor *cleat_gguf_find_tensor(const cleat_gguf *file, const char *name) {
    uint32_t i;
    return cleat_name_table_find(&file->names, name, &i) ? &file->tensors[i] : NULL;
}

cleat_status cleat_gguf_read(const cleat_gguf *file, const cleat_gguf_tensor *tensor, size_t first, size_t count,
                             void *bytes, cleat_error *error) {
    return read_at(file, tensor->offset + first, bytes, count, error);
}
