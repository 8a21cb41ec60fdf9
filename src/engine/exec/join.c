/* Which parts become one program: each program costs 15 ms of a start with PoCL, and much more of a first one. */
#include "exec/join.h"

#include "core/memory.h"
#include "device/programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FEWEST = 4,   /* so few parts stay programs of their own */
    MAX_LARGE = 8 /* parts of a program with large files, so that several threads or processes have one to compile */
};

/* --- which belong together ------------------------------------------------------------------------------------ */

bool cleat_exec_has_backward(const cleat_graph *graph) {
    return graph->gradients && graph->forward_nodes < graph->node_count;
}

bool cleat_exec_is_evaluation(const cleat_graph *graph) {
    bool has_gradients = false;
    for (size_t i = 0; i < graph->node_count; ++i) has_gradients |= graph->nodes[i]->op->backward != NULL;
    return has_gradients && !cleat_exec_has_backward(graph);
}

/* Parts in the order of their numbers. */
static void find_evaluated(const cleat_exec *exec) {
    for (size_t g = 0; g < exec->plan->layout_count; ++g) {
        const cleat_bound_graph *bound = &exec->graphs[g];
        if (!cleat_exec_is_evaluation(bound->layout->graph)) continue;
        for (size_t i = 0; i < bound->binder.count; ++i)
            if (bound->binder.launches[i].kind == CLEAT_LAUNCH_KERNEL) exec->parts[bound->program[i]].evaluates = true;
    }
}

/* Copies the options that are not macros. */
static void copy_flags(const char *options, char flags[CLEAT_OPTIONS]) {
    size_t used = 0;
    flags[0] = 0;
    for (const char *at = options + strspn(options, " "); *at; at += strspn(at, " ")) {
        const size_t size = strcspn(at, " ");
        if (strncmp(at, "-D", 2) != 0 && used + size + 2 < CLEAT_OPTIONS)
            used += (size_t)snprintf(flags + used, CLEAT_OPTIONS - used, "%s%.*s", used ? " " : "", (int)size, at);
        at += size;
    }
}

static int compare_flags(const char *a, const char *b) {
    char one[CLEAT_OPTIONS], other[CLEAT_OPTIONS];
    copy_flags(a, one);
    copy_flags(b, other);
    return strcmp(one, other);
}

/* Operations that take most of a step have folders of cl/. */
static bool is_large(const cleat_program_part *part) {
    return strchr(part->key.file, '/') != NULL;
}

/* 0: they may be parts of one program. */
static int compare_groups(const cleat_program_part *a, const cleat_program_part *b) {
    if (a->evaluates != b->evaluates) return a->evaluates ? -1 : 1;
    if (!a->key.source != !b->key.source) return a->key.source ? 1 : -1;
    if (is_large(a) != is_large(b)) return is_large(a) ? -1 : 1;
    return compare_flags(a->key.options, b->key.options);
}

/* The order depends on the parts alone, not on what launches them first. */
static int compare_parts(const void *a, const void *b) {
    const cleat_program_part *one = a, *other = b;
    int order = compare_groups(one, other);
    if (!order) order = strcmp(one->key.file, other->key.file);
    if (!order) order = strcmp(one->key.options, other->key.options);
    return order ? order : (one->number > other->number) - (one->number < other->number);
}

/* Sorts the parts, and gives them programs, whose number is returned. */
static size_t group_parts(cleat_exec *exec) {
    cleat_program_part *parts = exec->parts;
    size_t count = 0, size = 0;
    if (exec->part_count > FEWEST) qsort(parts, exec->part_count, sizeof *parts, compare_parts);
    for (size_t i = 0; i < exec->part_count; ++i) {
        const bool joins = i > 0 && exec->part_count > FEWEST && !parts[i].key.source &&
                           compare_groups(&parts[i - 1], &parts[i]) == 0 && (!is_large(&parts[i]) || size < MAX_LARGE);
        if (!joins) ++count;
        size = joins ? size + 1 : 1;
        parts[i].program = count - 1;
    }
    return count;
}

/* --- programs ------------------------------------------------------------------------------------------------- */

/* Keeps a text that keys or launches point to. */
static cleat_status keep(cleat_exec *exec, char *text, cleat_error *error) {
    cleat_status status = cleat_grow(&exec->kept, exec->kept_count, &exec->kept_capacity, error);
    if (status)
        cleat_free(text);
    else
        exec->kept[exec->kept_count++] = text;
    return status;
}

static cleat_status keep_copy(cleat_exec *exec, const char *text, const char **kept, cleat_error *error) {
    char *copy = cleat_strdup(text);
    if (!copy) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the name of a program");
    cleat_status status = keep(exec, copy, error);
    if (!status) *kept = copy;
    return status;
}

/* "linear/linear.cl*4+pointwise.cl" */
static void print_files(const cleat_program_key *parts, size_t count, char *text, size_t size) {
    size_t used = 0;
    for (size_t i = 0, same; i < count && used < size; i += same) {
        for (same = 1; i + same < count && strcmp(parts[i + same].file, parts[i].file) == 0;) ++same;
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? "+" : "", parts[i].file);
        if (same > 1 && used < size) used += (size_t)snprintf(text + used, size - used, "*%zu", same);
    }
    if (used >= size) strcpy(text + size - 4, "...");
}

static cleat_status describe_joined(cleat_exec *exec, const cleat_program_key *parts, size_t count,
                                    cleat_program_key *program, cleat_error *error) {
    char text[CLEAT_PROGRAM_NAME], *source = NULL;
    print_files(parts, count, text, sizeof text);
    cleat_status status = keep_copy(exec, text, &program->file, error);
    copy_flags(parts[0].options, text);
    if (!status) status = keep_copy(exec, text, &program->options, error);
    if (!status) status = cleat_kernel_join(parts, count, &source, error);
    if (!status) status = keep(exec, source, error);
    if (!status) program->source = source;
    return status;
}

/* Names the launches of one part in a program of several. */
static cleat_status name_kernels(cleat_exec *exec, size_t number, const cleat_program_key *parts, size_t index,
                                 cleat_error *error) {
    char name[CLEAT_NAME];
    for (size_t g = 0; g < exec->plan->layout_count; ++g) {
        cleat_bound_graph *bound = &exec->graphs[g];
        for (size_t i = 0; i < bound->binder.count; ++i) {
            const cleat_launch *launch = &bound->binder.launches[i];
            if (launch->kind != CLEAT_LAUNCH_KERNEL || bound->program[i] != number) continue;
            cleat_kernel_joined_name(parts, index, launch->kernel, name, sizeof name);
            if (strcmp(name, launch->kernel) == 0) continue;
            cleat_status status = keep_copy(exec, name, &bound->names[i], error);
            if (status) return status;
        }
    }
    return CLEAT_OK;
}

/* Makes the key of a program of parts [first, first + count). keys: room for theirs. */
static cleat_status make_program(cleat_exec *exec, size_t first, size_t count, cleat_program_key *keys,
                                 cleat_error *error) {
    cleat_program_key *program = &exec->keys[exec->parts[first].program];
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < count; ++i) keys[i] = exec->parts[first + i].key;
    *program = keys[0];
    if (count == 1) return CLEAT_OK;
    status = describe_joined(exec, keys, count, program, error);
    for (size_t i = 0; i < count && !status; ++i)
        status = name_kernels(exec, exec->parts[first + i].number, keys, i, error);
    return status;
}

static cleat_status make_programs(cleat_exec *exec, cleat_error *error) {
    cleat_program_key *keys = cleat_alloc(exec->part_count, sizeof *keys);
    cleat_status status =
        keys ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu parts of programs", exec->part_count);
    for (size_t first = 0, count; first < exec->part_count && !status; first += count) {
        for (count = 1;
             first + count < exec->part_count && exec->parts[first + count].program == exec->parts[first].program;)
            ++count;
        status = make_program(exec, first, count, keys, error);
    }
    cleat_free(keys);
    return status;
}

static cleat_status renumber(const cleat_exec *exec, cleat_error *error) {
    size_t *programs = cleat_alloc(exec->part_count, sizeof *programs);
    if (!programs) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the numbers of programs");
    for (size_t i = 0; i < exec->part_count; ++i) programs[exec->parts[i].number] = exec->parts[i].program;
    for (size_t g = 0; g < exec->plan->layout_count; ++g)
        for (size_t i = 0; i < exec->graphs[g].binder.count; ++i)
            if (exec->graphs[g].binder.launches[i].kind == CLEAT_LAUNCH_KERNEL)
                exec->graphs[g].program[i] = programs[exec->graphs[g].program[i]];
    cleat_free(programs);
    return CLEAT_OK;
}

cleat_status cleat_exec_join_programs(cleat_exec *exec, cleat_error *error) {
    if (exec->program_count == 0) return CLEAT_OK;
    exec->parts = cleat_alloc(exec->program_count, sizeof *exec->parts);
    if (!exec->parts) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the parts of programs");
    exec->part_count = exec->program_count;
    for (size_t i = 0; i < exec->part_count; ++i)
        exec->parts[i] = (cleat_program_part){.key = exec->keys[i], .number = i};
    find_evaluated(exec);
    exec->program_count = group_parts(exec);
    cleat_status status = make_programs(exec, error);
    return status ? status : renumber(exec, error);
}

/* --- errors --------------------------------------------------------------------------------------------------- */

cleat_status cleat_exec_explain_build(cleat_exec *exec, size_t program, cleat_error *error) {
    for (size_t i = 0; i < exec->part_count; ++i) {
        cl_program built = NULL;
        bool loaded;
        if (exec->parts[i].program != program) continue;
        cleat_status status = cleat_program_build(exec->device, &exec->parts[i].key, &built, &loaded, error);
        if (status) return status;
        clReleaseProgram(built);
    }
    return CLEAT_ERR_BUILD;
}
