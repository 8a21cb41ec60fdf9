/* Small PTX kernels in tests: their text, a launch, and its effects. */
#include "ptx_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void rig_init(rig *r) {
    memset(r, 0, sizeof *r);
    r->items = 32, r->groups = 1, r->threads = 1, r->declarations = "";
}

void rig_text(const char *declarations, const char *body, char *text, size_t size) {
    const int n = snprintf(text, size,
                           ".version 7.5\n.target sm_80, texmode_independent\n.address_size 64\n%s\n"
                           ".entry k(\n"
                           "    .param .u64 .ptr .global .align 16 k_param_0,\n"
                           "    .param .u64 .ptr .global .align 16 k_param_1,\n"
                           "    .param .u32 k_param_2,\n"
                           "    .param .u64 .ptr .shared .align 16 k_param_3\n)\n{\n"
                           "    .reg .pred %%p<10>;\n    .reg .b16 %%h<40>;\n    .reg .b32 %%r<40>;\n"
                           "    .reg .f32 %%f<40>;\n    .reg .b64 %%d<40>;\n    .reg .f64 %%x<40>;\n"
                           "    mov.u32 %%r0, %%tid.x;\n    mov.u32 %%r2, %%ctaid.x;\n    mov.u32 %%r3, %%ntid.x;\n"
                           "    mad.lo.s32 %%r1, %%r2, %%r3, %%r0;\n"
                           "    ld.param.u64 %%d0, [k_param_0];\n    ld.param.u64 %%d1, [k_param_1];\n"
                           "%s\n    ret;\n}\n",
                           declarations, body);
    assert_true(n > 0 && (size_t)n < size);
}

static void collect_fault(void *context, const char *text) {
    rig *r = context;
    if (r->n_faults < RIG_FAULTS) snprintf(r->faults[r->n_faults++], sizeof r->faults[0], "%s", text);
}

void rig_run(rig *r, const char *body) {
    static char text[65536];
    char message[512];
    rig_text(r->declarations, body, text, sizeof text);
    ptx_module *module = ptx_read(text, message, sizeof message);
    if (!module) fail_msg("%s\n%s", message, text);
    const ptx_kernel *kernel = ptx_find(module, "k");
    assert_non_null(kernel);
    const struct {
        uint64_t in, out;
        uint32_t n, padding;
        uint64_t shared;
    } params = {(uintptr_t)r->in, (uintptr_t)r->out, r->items, 0, ptx_shared_bytes(kernel)};
    assert_int_equal(ptx_param_bytes(kernel), sizeof params);
    const ptx_range ranges[] = {{(uintptr_t)r->in, (uintptr_t)r->in + sizeof r->in, r->input_only},
                                {(uintptr_t)r->out, (uintptr_t)r->out + sizeof r->out, false}};
    const ptx_launch launch = {.groups = {r->groups, 1, 1},
                               .local = {r->items, 1, 1},
                               .params = &params,
                               .dynamic_shared = r->dynamic_shared,
                               .ranges = ranges,
                               .n_ranges = 2,
                               .threads = r->threads,
                               .races = true,
                               .registers = r->registers,
                               .steps = r->steps,
                               .fault = collect_fault,
                               .context = r};
    r->n_faults = 0;
    memset(&r->counters, 0, sizeof r->counters);
    r->finished = ptx_run(kernel, &launch, &r->counters);
    ptx_free(module);
}

void rig_expect_fault(const rig *r, const char *part) {
    if (!part && r->n_faults) fail_msg("unexpected fault: %s", r->faults[0]);
    if (!part) return;
    if (r->n_faults != 1)
        fail_msg("%d faults instead of \"%s\": %s", r->n_faults, part, r->n_faults ? r->faults[0] : "");
    if (!strstr(r->faults[0], part)) fail_msg("\"%s\" is not in: %s", part, r->faults[0]);
}

void rig_append(char *text, size_t size, const char *format, ...) {
    const size_t used = strlen(text);
    va_list values;
    va_start(values, format);
    const int n = vsnprintf(text + used, size - used, format, values);
    va_end(values);
    assert_true(n >= 0 && (size_t)n < size - used);
}

uint64_t rig_random(uint64_t *state) {
    uint64_t x = *state;
    x ^= x >> 12, x ^= x << 25, x ^= x >> 27;
    *state = x;
    return x * UINT64_C(2685821657736338717);
}
