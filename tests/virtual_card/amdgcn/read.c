/* Reads a module: sections, symbols, constants, kernel directives. decode.c reads instructions. */
#include "decode.h"

#include "../kernel.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool gcn_fail(gcn_reader *reader, const char *format, ...) {
    char what[240];
    va_list values;
    va_start(values, format);
    vsnprintf(what, sizeof what, format, values);
    va_end(values);
    snprintf(reader->message, reader->size, "line %d: %s", reader->line, what);
    return false;
}

bool gcn_is(gcn_text t, const char *word) {
    return strlen(word) == t.length && memcmp(t.at, word, t.length) == 0;
}

bool gcn_begins(gcn_text t, const char *word) {
    const size_t n = strlen(word);
    return t.length >= n && memcmp(t.at, word, n) == 0;
}

bool gcn_number(gcn_text t, int64_t *value) {
    char digits[32];
    char *end = NULL;
    if (t.length == 0 || t.length >= sizeof digits) return false;
    memcpy(digits, t.at, t.length);
    digits[t.length] = 0;
    const bool minus = digits[0] == '-';
    const char *from = digits + minus;
    if (*from < '0' || *from > '9') return false;
    const uint64_t magnitude = strtoull(from, &end, from[0] == '0' && (from[1] | 32) == 'x' ? 16 : 10);
    *value = (int64_t)(minus ? 0 - magnitude : magnitude);
    return *end == 0;
}

/* Takes the next word off a line. */
static gcn_text next_word(gcn_text *line) {
    gcn_text t = gcn_trim(*line), word = {t.at, 0};
    while (word.length < t.length && !strchr(" \t,", t.at[word.length])) word.length++;
    size_t used = word.length;
    while (used < t.length && strchr(" \t,", t.at[used])) used++;
    *line = (gcn_text){t.at + used, t.length - used};
    return word;
}

static void add_symbol(gcn_reader *reader, gcn_text name, bool is_code, uint64_t value) {
    gcn_module *module = reader->module;
    module->symbols = ptx_grow(module->symbols, module->n_symbols, &reader->symbol_capacity, sizeof *module->symbols);
    module->symbols[module->n_symbols++] =
        (gcn_symbol){.name = name.at, .length = (uint32_t)name.length, .is_code = is_code, .value = value};
}

/* --- constants */

static void add_bytes(gcn_reader *reader, const void *bytes, size_t n) {
    gcn_module *module = reader->module;
    for (size_t i = 0; i < n; ++i) {
        module->data = ptx_grow(module->data, module->data_bytes, &reader->data_capacity, 1);
        module->data[module->data_bytes++] = bytes ? ((const unsigned char *)bytes)[i] : 0;
    }
}

static bool add_numbers(gcn_reader *reader, gcn_text line, size_t bytes) {
    for (gcn_text word = next_word(&line); word.length; word = next_word(&line)) {
        int64_t value;
        if (!gcn_number(word, &value)) return gcn_fail(reader, "'%.*s' is not a number", (int)word.length, word.at);
        add_bytes(reader, &value, bytes);
    }
    return true;
}

static bool add_fill(gcn_reader *reader, gcn_text line) {
    int64_t count, size = 1, value = 0;
    gcn_text words[3] = {next_word(&line), next_word(&line), next_word(&line)};
    if (!gcn_number(words[0], &count)) return gcn_fail(reader, ".fill without a number");
    if (words[1].length) gcn_number(words[1], &size);
    if (words[2].length) gcn_number(words[2], &value);
    for (int64_t i = 0; i < count; ++i) add_bytes(reader, &value, (size_t)size);
    return true;
}

static void align_data(gcn_reader *reader, gcn_text line) {
    int64_t power = 0;
    if (!gcn_number(next_word(&line), &power) || power > 12) return;
    while (reader->module->data_bytes & ((UINT64_C(1) << power) - 1)) add_bytes(reader, NULL, 1);
}

/* A directive in a section of constants. Kernels do not need strings, so only their length is kept. */
static bool read_data(gcn_reader *reader, gcn_text name, gcn_text line) {
    static const struct {
        const char *name;
        size_t bytes;
    } sizes[] = {{".long", 4}, {".quad", 8}, {".short", 2}, {".byte", 1}, {".2byte", 2}, {".4byte", 4}, {".8byte", 8}};
    int64_t count = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
        if (gcn_is(name, sizes[i].name)) return add_numbers(reader, line, sizes[i].bytes);
    if (gcn_is(name, ".fill")) return add_fill(reader, line);
    if (gcn_is(name, ".p2align")) align_data(reader, line);
    if (gcn_is(name, ".ascii") || gcn_is(name, ".asciz")) add_bytes(reader, NULL, line.length);
    if (gcn_is(name, ".zero")) {
        if (!gcn_number(next_word(&line), &count)) return gcn_fail(reader, ".zero without a number");
        for (int64_t i = 0; i < count; ++i) add_bytes(reader, NULL, 1);
    }
    return true;
}

/* --- kernels */

static void add_kernel(gcn_module *module, gcn_text name) {
    size_t capacity = module->n_kernels; /* always grows: kernels are few */
    module->kernels = ptx_grow(module->kernels, module->n_kernels, &capacity, sizeof *module->kernels);
    gcn_kernel *kernel = &module->kernels[module->n_kernels++];
    *kernel = (gcn_kernel){.module = module, .largest_group = 1024};
    kernel->name = strndup(name.at, name.length);
    if (!kernel->name) abort();
}

/* A line between .amdhsa_kernel and its end. */
static void read_kernel_fact(gcn_kernel *kernel, gcn_text name, int64_t value) {
    const struct {
        const char *name;
        uint32_t *number;
        bool *flag;
    } facts[] = {
        {"group_segment_fixed_size", &kernel->lds_bytes, NULL},
        {"private_segment_fixed_size", &kernel->scratch_bytes, NULL},
        {"kernarg_size", &kernel->kernarg_bytes, NULL},
        {"user_sgpr_count", &kernel->user_scalars, NULL},
        {"system_vgpr_workitem_id", &kernel->item_ids, NULL},
        {"next_free_vgpr", &kernel->vectors, NULL},
        {"user_sgpr_private_segment_buffer", NULL, &kernel->has_segment},
        {"user_sgpr_dispatch_ptr", NULL, &kernel->has_dispatch},
        {"user_sgpr_queue_ptr", NULL, &kernel->has_queue},
        {"user_sgpr_kernarg_segment_ptr", NULL, &kernel->has_kernarg},
        {"user_sgpr_dispatch_id", NULL, &kernel->has_dispatch_id},
        {"user_sgpr_flat_scratch_init", NULL, &kernel->has_flat_scratch},
        {"user_sgpr_private_segment_size", NULL, &kernel->has_scratch_size},
        {"system_sgpr_workgroup_id_x", NULL, &kernel->group_id[0]},
        {"system_sgpr_workgroup_id_y", NULL, &kernel->group_id[1]},
        {"system_sgpr_workgroup_id_z", NULL, &kernel->group_id[2]},
        {"system_sgpr_workgroup_info", NULL, &kernel->has_group_info},
        {"system_sgpr_private_segment_wavefront_offset", NULL, &kernel->has_scratch_offset},
    };
    for (size_t i = 0; i < sizeof facts / sizeof *facts; ++i) {
        if (!gcn_is(name, facts[i].name)) continue;
        if (facts[i].number) *facts[i].number = (uint32_t)value;
        if (facts[i].flag) *facts[i].flag = value != 0;
    }
}

static bool read_kernel_line(gcn_reader *reader, gcn_text name, gcn_text line) {
    gcn_module *module = reader->module;
    gcn_kernel *kernel = &module->kernels[module->n_kernels - 1];
    int64_t value = 0;
    if (!gcn_begins(name, ".amdhsa_")) return gcn_fail(reader, "'%.*s' in a kernel", (int)name.length, name.at);
    name.at += 8, name.length -= 8;
    gcn_number(gcn_trim(line), &value);
    if (gcn_is(name, "wavefront_size32") && value) module->wave = 32;
    read_kernel_fact(kernel, name, value);
    return true;
}

/* --- lines */

typedef enum section { CODE, DATA, OTHER, KERNEL } section;

static section section_of(gcn_text name, gcn_text line) {
    if (gcn_is(name, ".text")) return CODE;
    const gcn_text what = gcn_trim(line);
    if (gcn_begins(what, ".text")) return CODE;
    return gcn_begins(what, ".rodata") || gcn_begins(what, ".data") ? DATA : OTHER;
}

static bool read_target(gcn_reader *reader, gcn_text line) {
    const char *gfx = strstr(line.at, "gfx");
    if (!gfx || gfx > line.at + line.length) return gcn_fail(reader, "a target without gfx");
    gfx += 3;
    reader->module->generation = gfx[0] == '9'                 ? 9
                                 : strncmp(gfx, "103", 3) == 0 ? 10
                                 : strncmp(gfx, "11", 2) == 0  ? 11
                                                               : 0;
    reader->module->wave = 64;
    return reader->module->generation ? true : gcn_fail(reader, "the target must be gfx9, gfx103 or gfx11");
}

static bool read_line(gcn_reader *reader, gcn_text line, section *now, section *before) {
    gcn_text rest = line, name = next_word(&rest);
    if (name.length > 1 && name.at[name.length - 1] == ':') {
        name.length--;
        if (*now == CODE) add_symbol(reader, name, true, reader->module->n_code);
        if (*now == DATA) add_symbol(reader, name, false, reader->module->data_bytes);
        rest = gcn_trim(rest);
        return rest.length ? read_line(reader, rest, now, before) : true;
    }
    if (gcn_is(name, ".amdgcn_target")) return read_target(reader, rest);
    if (gcn_is(name, ".amdhsa_kernel")) {
        *before = *now, *now = KERNEL;
        add_kernel(reader->module, gcn_trim(rest));
        return true;
    }
    if (gcn_is(name, ".end_amdhsa_kernel")) {
        *now = *before;
        return true;
    }
    if (*now == KERNEL) return read_kernel_line(reader, name, rest);
    if (gcn_is(name, ".text") || gcn_is(name, ".section")) {
        *now = section_of(name, rest);
        return true;
    }
    if (name.at[0] == '.') return *now == DATA ? read_data(reader, name, rest) : true;
    if (*now == CODE) return gcn_decode(reader, line);
    return true;
}

/* A line without its comment. */
static gcn_text cut_comment(const char *at, size_t length) {
    bool quoted = false;
    size_t n = 0;
    while (n < length && (quoted || at[n] != ';')) quoted ^= at[n++] == '"';
    return gcn_trim((gcn_text){at, n});
}

static bool read_lines(gcn_reader *reader) {
    section now = CODE, before = CODE;
    for (const char *at = reader->module->text; *at;) {
        const size_t length = strcspn(at, "\n");
        const gcn_text line = cut_comment(at, length);
        reader->line++;
        if (gcn_is(line, ".amdgpu_metadata"))
            return gcn_read_metadata(reader->module, at + length, reader->message, reader->size);
        if (line.length && line.at[0] != '#' && !read_line(reader, line, &now, &before)) return false;
        at += length + (at[length] == '\n');
    }
    return gcn_fail(reader, "no metadata");
}

/* --- labels */

static const gcn_symbol *find_symbol(const gcn_module *module, gcn_text name) {
    for (size_t i = 0; i < module->n_symbols; ++i)
        if (module->symbols[i].length == name.length && memcmp(module->symbols[i].name, name.at, name.length) == 0)
            return &module->symbols[i];
    return NULL;
}

static bool resolve(gcn_reader *reader) {
    gcn_module *module = reader->module;
    for (size_t i = 0; i < reader->n_fixups; ++i) {
        const struct gcn_fixup *fixup = &reader->fixups[i];
        const gcn_symbol *symbol = find_symbol(module, fixup->name);
        gcn_instruction *now = &module->code[fixup->instruction];
        if (!symbol) return gcn_fail(reader, "'%.*s' is not defined", (int)fixup->name.length, fixup->name.at);
        const uint64_t data = (uint64_t)(uintptr_t)module->data + symbol->value;
        const uint64_t address = symbol->is_code ? GCN_CODE_WINDOW | symbol->value : data;
        if (fixup->operand == 0xff)
            now->target = (uint32_t)symbol->value;
        else
            now->from[fixup->operand].value = fixup->high ? address >> 32 : (uint32_t)address;
    }
    for (size_t k = 0; k < module->n_kernels; ++k) {
        gcn_kernel *kernel = &module->kernels[k];
        const gcn_symbol *symbol = find_symbol(module, (gcn_text){kernel->name, strlen(kernel->name)});
        if (!symbol || !symbol->is_code) return gcn_fail(reader, "kernel %s has no code", kernel->name);
        kernel->entry = (uint32_t)symbol->value;
    }
    return true;
}

/* --- the contract */

gcn_module *gcn_read(const char *text, char *message, size_t size) {
    gcn_module *module = calloc(1, sizeof *module);
    if (!module || !(module->text = strdup(text))) abort();
    gcn_reader reader = {.module = module, .message = message, .size = size};
    module->cell_shift = 2;
    if (!read_lines(&reader) || !resolve(&reader)) {
        gcn_free(module);
        module = NULL;
    }
    free(reader.fixups);
    return module;
}

void gcn_free(gcn_module *module) {
    if (!module) return;
    for (size_t i = 0; i < module->n_kernels; ++i)
        free(module->kernels[i].name), free(module->kernels[i].params), free(module->kernels[i].hidden);
    free(module->kernels), free(module->code), free(module->symbols), free(module->data), free(module->text);
    free(module);
}

size_t gcn_kernels(const gcn_module *module) {
    return module->n_kernels;
}
const gcn_kernel *gcn_kernel_at(const gcn_module *module, size_t i) {
    return &module->kernels[i];
}
const char *gcn_name(const gcn_kernel *kernel) {
    return kernel->name;
}
size_t gcn_params(const gcn_kernel *kernel) {
    return kernel->n_params;
}
const ptx_param *gcn_param_at(const gcn_kernel *kernel, size_t i) {
    return &kernel->params[i];
}
uint32_t gcn_param_bytes(const gcn_kernel *kernel) {
    return kernel->param_bytes;
}
uint32_t gcn_lds_bytes(const gcn_kernel *kernel) {
    return kernel->lds_bytes;
}
uint32_t gcn_scratch_bytes(const gcn_kernel *kernel) {
    return kernel->scratch_bytes;
}
uint32_t gcn_largest_group(const gcn_kernel *kernel) {
    return kernel->largest_group;
}
bool gcn_required_group(const gcn_kernel *kernel, uint32_t size[3]) {
    memcpy(size, kernel->required, sizeof kernel->required);
    return kernel->required[0] != 0;
}
