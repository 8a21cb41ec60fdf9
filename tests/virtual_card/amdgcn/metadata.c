/* Kernel metadata: the YAML that clang writes after the code, read line by line. */
#include "decode.h"

#include "../kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The argument or kernel being read. */
typedef struct metadata {
    gcn_module *module;
    gcn_kernel *kernel; /* looked up by name after the kernel's last line */
    ptx_param *params;
    size_t n_params, param_capacity;
    struct gcn_hidden *hidden;
    size_t n_hidden, hidden_capacity;
    uint32_t offset, size, required[3], largest;
    int n_required; /* -1: not in that list */
    char kind[40], name[256];
    bool in_argument;
} metadata;

static void end_argument(metadata *m) {
    if (!m->in_argument) return;
    m->in_argument = false;
    if (strncmp(m->kind, "hidden_", 7) == 0) {
        m->hidden = ptx_grow(m->hidden, m->n_hidden, &m->hidden_capacity, sizeof *m->hidden);
        struct gcn_hidden *hidden = &m->hidden[m->n_hidden++];
        *hidden = (struct gcn_hidden){.offset = m->offset, .size = m->size};
        snprintf(hidden->what, sizeof hidden->what, "%.23s", m->kind + 7);
        return;
    }
    m->params = ptx_grow(m->params, m->n_params, &m->param_capacity, sizeof *m->params);
    m->params[m->n_params++] = (ptx_param){.offset = m->offset,
                                           .size = m->size,
                                           .pointer = strcmp(m->kind, "global_buffer") == 0,
                                           .shared = strcmp(m->kind, "dynamic_shared_pointer") == 0};
}

static bool end_kernel(metadata *m) {
    end_argument(m);
    if (!m->name[0]) return true;
    gcn_kernel *kernel = NULL;
    for (size_t i = 0; i < m->module->n_kernels; ++i)
        if (strcmp(m->module->kernels[i].name, m->name) == 0) kernel = &m->module->kernels[i];
    if (!kernel) return false;
    kernel->params = m->params, kernel->n_params = m->n_params;
    kernel->hidden = m->hidden, kernel->n_hidden = m->n_hidden;
    for (size_t i = 0; i < m->n_params; ++i)
        if (m->params[i].offset + m->params[i].size > kernel->param_bytes)
            kernel->param_bytes = m->params[i].offset + m->params[i].size;
    memcpy(kernel->required, m->required, sizeof kernel->required);
    if (m->largest) kernel->largest_group = m->largest;
    *m = (metadata){.module = m->module, .n_required = -1};
    return true;
}

static void copy_text(gcn_text value, char *to, size_t size) {
    if (value.length > 1 && (value.at[0] == '\'' || value.at[0] == '"')) value.at++, value.length -= 2;
    snprintf(to, size, "%.*s", (int)value.length, value.at);
}

/* A field such as ".offset: 16". Only .name is a field of both kernels and arguments. */
static void read_field(metadata *m, gcn_text line) {
    const char *colon = memchr(line.at, ':', line.length);
    int64_t number = 0;
    if (!colon) return;
    const gcn_text name = {line.at, (size_t)(colon - line.at)};
    const gcn_text value = gcn_trim((gcn_text){colon + 1, line.length - name.length - 1});
    gcn_number(value, &number);
    m->n_required = gcn_is(name, ".reqd_workgroup_size") ? 0 : -1;
    if (gcn_is(name, ".offset")) m->offset = (uint32_t)number;
    if (gcn_is(name, ".size")) m->size = (uint32_t)number;
    if (gcn_is(name, ".value_kind")) copy_text(value, m->kind, sizeof m->kind);
    if (gcn_is(name, ".name") && !m->in_argument) copy_text(value, m->name, sizeof m->name);
    if (gcn_is(name, ".max_flat_workgroup_size")) m->largest = (uint32_t)number;
}

/* The indentation identifies a line: kernels begin with "  - ", arguments with "      - ". */
static bool read_metadata_line(metadata *m, const char *at, size_t length) {
    size_t indent = 0;
    while (indent < length && at[indent] == ' ') indent++;
    gcn_text line = gcn_trim((gcn_text){at, length});
    int64_t number;
    const bool begins = gcn_begins(line, "- ");
    if (begins) line = gcn_trim((gcn_text){line.at + 2, line.length - 2});
    if (begins && m->n_required >= 0 && m->n_required < 3 && gcn_number(line, &number)) {
        m->required[m->n_required++] = (uint32_t)number;
        return true;
    }
    if (begins && indent == 2 && !end_kernel(m)) return false;
    if (begins && indent == 6) {
        end_argument(m);
        m->in_argument = line.at[0] == '.';
    } else if (indent <= 4) {
        end_argument(m);
    }
    read_field(m, line);
    return true;
}

bool gcn_read_metadata(gcn_module *module, const char *text, char *message, size_t size) {
    metadata m = {.module = module, .n_required = -1};
    bool done = true;
    for (const char *at = text; done && *at && strncmp(at, "amdhsa.target", 13) != 0;) {
        const size_t length = strcspn(at, "\n");
        if (length > 1 && at[0] == ' ') done = read_metadata_line(&m, at, length);
        at += length + (at[length] == '\n');
    }
    done = done && end_kernel(&m);
    if (done) return true;
    free(m.params), free(m.hidden);
    snprintf(message, size, "metadata of a missing kernel: %s", m.name);
    return false;
}
