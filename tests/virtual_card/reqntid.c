/* Finds `define ... @NAME(...) ... !reqd_work_group_size !7` and `!7 = !{i32 X, i32 Y, i32 Z}` in textual
 * LLVM IR, and writes `.reqntid X, Y, Z` before the body of the kernel NAME. */
#include "reqntid.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 256 };

/* The three sizes of the metadata node with this number. */
static bool read_node(const char *ir, unsigned node, unsigned size[3]) {
    char wanted[32];
    snprintf(wanted, sizeof wanted, "\n!%u = !{", node);
    const char *at = strstr(ir, wanted);
    return at && sscanf(at + strlen(wanted), "i32 %u, i32 %u, i32 %u", &size[0], &size[1], &size[2]) == 3;
}

/* The work-group size of a definition; its line ends at `end`. */
static bool read_size(const char *ir, const char *line, const char *end, unsigned size[3]) {
    static const char key[] = "!reqd_work_group_size !";
    const char *at = memmem(line, (size_t)(end - line), key, sizeof key - 1);
    unsigned node;
    return at && sscanf(at + sizeof key - 1, "%u", &node) == 1 && read_node(ir, node, size);
}

/* Finds a kernel's definition in the IR. */
static bool find_size(const char *ir, const char *name, unsigned size[3]) {
    char wanted[NAME + 4];
    snprintf(wanted, sizeof wanted, " @%s(", name);
    for (const char *line = ir; (line = strstr(line, "\ndefine ")); ++line) {
        const char *end = strchr(line + 1, '\n');
        const char *at = strstr(line, wanted);
        if (!end || !at) return false;
        if (at < end) return read_size(ir, line, end, size);
    }
    return false;
}

char *vc_write_reqntid(const char *ptx, const char *ir) {
    char *result = NULL, name[NAME];
    size_t bytes = 0;
    unsigned size[3];
    const char *from = ptx, *entry;
    FILE *out = open_memstream(&result, &bytes);
    if (!out) return NULL;
    while ((entry = strstr(from, ".entry "))) {
        const char *body = strchr(entry, '{');
        if (!body) break;
        fwrite(from, 1, (size_t)(body - from), out);
        if (sscanf(entry, ".entry %255[^( \n]", name) == 1 && find_size(ir, name, size))
            fprintf(out, ".reqntid %u, %u, %u\n", size[0], size[1], size[2]);
        from = body;
    }
    fputs(from, out);
    if (fclose(out) == 0) return result;
    free(result);
    return NULL;
}
