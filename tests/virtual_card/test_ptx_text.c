/* Invalid PTX is rejected with a message that names the error and its place. No text is read past its end,
 * and none hangs. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ptx_rig.h"

enum { TEXT = 65536 };

/* Reads a text from memory of exactly its size, so a sanitizer detects reads past its end. Returns a module,
 * or NULL with a message. */
static ptx_module *read_exactly(const char *text, size_t length, char message[512]) {
    char *copy = malloc(length + 1);
    assert_non_null(copy);
    memcpy(copy, text, length);
    copy[length] = 0;
    message[0] = 0;
    ptx_module *module = ptx_read(copy, message, 512);
    free(copy);
    if (!module && strncmp(message, "line ", 5) != 0) fail_msg("no line in the message \"%s\" of\n%s", message, text);
    return module;
}

/* Returns whether the text is rejected with a message that contains this part; prints a mismatch. */
static bool has_message(const char *text, const char *part, const char *what) {
    char message[512];
    ptx_module *module = read_exactly(text, strlen(text), message);
    const bool right = !module && strstr(message, part);
    if (!right) print_error("\"%s\" instead of \"%s\" of\n%s\n", module ? "accepted" : message, part, what);
    ptx_free(module);
    return right;
}

/* Each row has a body and a part of its message. */
static void check_bodies(const char *const (*rows)[2], size_t n) {
    size_t wrong = 0;
    for (size_t i = 0; i < n; ++i) {
        static char text[TEXT];
        rig_text("", rows[i][0], text, sizeof text);
        wrong += !has_message(text, rows[i][1], rows[i][0]);
    }
    assert_int_equal(wrong, 0);
}

static void instructions_that_do_not_exist(void **unused) {
    (void)unused;
    static const char *const rows[][2] = {
        {"frobnicate.u32 %r4, %r5;", "an unknown instruction: 'frobnicate.u32'"},
        {"add.u33 %r4, %r5, %r6;", "an unknown instruction"},
        {"add.lo.u32 %r4, %r5, %r6;", "an unknown instruction"},
        {"add.u32.u32 %r4, %r5, %r6;", "an unknown instruction"},
        {"add %r4, %r5, %r6;", "an unknown instruction"},
        {"mul.u32 %r4, %r5, %r6;", "an unknown instruction"}, /* integer forms name the half */
        {"fma.f32 %f4, %f5, %f6, %f7;", "an unknown instruction"},
        {"ld.global.v3.u32 {%r4, %r5, %r6}, [%d0];", "an unknown instruction"},
        {"ld.global.v4.u64 {%d4, %d5, %d6, %d7}, [%d0];", "an unknown instruction"},
        {"mma.sync.aligned.m16n8k8.row.row.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r5, %r6}, {%r7}, {%f0, %f1, %f2, "
         "%f3};",
         "an unknown instruction"},
        {"call.uni (%r4), callee, (%r5);", "an operand is expected"},
        {"st.param.u32 [k_param_2], %r5;", "an unknown instruction"},
        {"vote.ballot.b32 %r4, %p1;", "an unknown instruction"}, /* without .sync: invalid since sm_70 */
        {"shfl.bfly.b32 %r4, %r5, 1, 31;", "an unknown instruction"},
    };
    check_bodies(rows, sizeof rows / sizeof *rows);
}

static void operands_that_do_not_fit(void **unused) {
    (void)unused;
#define SHAPE "operands that do not fit the instruction"
#define WIDTH "a register of the wrong width for the instruction"
    static const char *const rows[][2] = {
        /* number and form */
        {"add.u32 %r4, %r5;", SHAPE},
        {"add.u32 %r4, %r5, %r6, %r7;", SHAPE},
        {"add.u32;", SHAPE},
        {"add.u32 {%r4, %r5}, %r6, %r7;", SHAPE},
        {"ld.global.u32 %r4, %d0;", SHAPE},
        {"add.u32 %r4, [%d0], %r5;", SHAPE},
        {"ld.global.v2.u32 %r4, [%d0];", SHAPE},
        {"ld.global.v2.u32 {%r4, %r5, %r6}, [%d0];", SHAPE},
        {"bar.sync;", SHAPE},
        {"ret %r4;", SHAPE},
        {"add.u32 , %r4, %r5;", "an operand is expected: ','"},
        {"add.u32 %r4,, %r5;", "an operand is expected: ','"},
        {"add.u32 %r4, %r5, %r6, ;", "an operand is expected: ';'"},
        {"add.u32 %r4 %r5 %r6;", "';' is expected before '%r5'"},
        {"ld.global.u32 %r4, [%d0;", "']' is expected before ';'"},
        {"ld.global.v2.u32 {%r4, %r5, [%d0];", "an operand is expected: '['"},
        {"ld.global.v2.u32 {}, [%d0];", "an operand is expected: '}'"},
        {"ld.global.u32 %r4, [];", "an operand is expected: ']'"},
        {"ld.global.u32 %r4, [%d0+%d1];", "a number up to"},
        {"ld.global.u32 %r4, [%d0+99999999999];", "a number up to"},
        {"add.u32 %r4, %r5, %r6 %r7;", "';' is expected"},
        {"add.u32 %r4, %r5, \"text\";", "an operand is expected"},
        {"add.u32 "
         "%r1,%r1,%r1,%r1,%r1,%r1,%r1,%r1,%r1,%r1,%r1,%r1,%r1,%r1,%r1,%r1,%r1,%r1,%r1,%r1,%r1,%r1,%r1,%r1,%r1,%r1,%r1,%"
         "r1,%r1,%r1,%r1,"
         "%r1,%r1,%r1;",
         "too many operands"},
        /* registers */
        {"add.u32 %r4, %r5, %q6;", "undeclared, or not allowed here: '%q6'"},
        {"add.u32 %r4, %r5, %r40;", "undeclared, or not allowed here: '%r40'"},
        {"add.u32 %r99999999999999999999, %r5, %r4;", "undeclared"},
        {"add.u32 %r, %r5, %r4;", "undeclared"},
        {"add.u32 %r4x, %r5, %r4;", "undeclared"},
        {"ld.global.u32 %r4, [%q5];", "undeclared: '%q5'"},
        {"add.u32 %r4, %r5, %d6;", WIDTH},
        {"add.u32 %d4, %r5, %r6;", WIDTH},
        {"add.u64 %d4, %d5, %r6;", WIDTH},
        {"add.f32 %f4, %f5, %h6;", WIDTH},
        {"add.f64 %x4, %x5, %f6;", WIDTH},
        {"add.u32 %r4, %r5, %p1;", WIDTH},
        {"and.pred %p1, %p2, %r3;", WIDTH},
        {"setp.eq.u32 %r4, %r5, %r6;", WIDTH},
        {"selp.b32 %r4, %r5, %r6, %r7;", WIDTH},
        {"ld.global.u32 %h4, [%d0];", WIDTH},
        {"ld.global.u64 %r4, [%d0];", WIDTH},
        {"ld.global.u32 %p1, [%d0];", WIDTH},
        {"st.global.u64 [%d0], %r4;", WIDTH},
        {"mov.u64 %d4, %tid.x;", WIDTH},
        {"ld.global.u32 %r4, [%h5];", "an address below 32 bits"},
        {"ld.global.u32 %r4, [%p1];", "an address below 32 bits"},
        /* results */
        {"add.u32 5, %r5, %r6;", "a result that is not a register"},
        {"add.u32 k_param_2, %r5, %r6;", "a result that is not a register"},
        {"mov.u32 %tid.x, %r6;", "a result that is not a register"},
        /* signs and numbers */
        {"add.u32 %r4, -%r5, %r6;", "arithmetic on a register"},
        {"add.u32 %r4, %r5+4, %r6;", "arithmetic on a register"},
        {"add.u32 %r4, !%r5, %r6;", "'!' before a register that is not a predicate"},
        {"add.u32 %r4, !5, %r6;", "'!' before a number"},
        {"ld.global.u32 %r4, [-%d0];", "a sign before an address"},
        {"ld.global.u32 %r4, [!%d0];", "a sign before an address"},
        {"mov.u32 %r4, 12abc;", "not a number: '12abc'"},
        {"mov.u32 %r4, 0x;", "not a number"},
        {"mov.f32 %f4, 0fXYZ;", "not a number"},
        {"mov.f32 %f4, 0f;", "not a number"},
        {"mov.f32 %f4, 1.5.5;", "not a number"},
        {"mov.u32 %r4, 1111111111111111111111111111111111111111111111111111111111111111111111;", "not a number"},
        {"cp.async.ca.shared.global [%r4], [%d0], %r5;", "a number is expected: '%r5'"},
        {"bar.sync %r4;", "a number is expected"},
        {"lop3.b32 %r4, %r5, %r6, %r7, %r8;", "a number is expected"},
        /* branches, predicates, labels */
        {"bra NOWHERE;", "no label NOWHERE"},
        {"bra %r4;", "no label"},
        {"bra 5;", "a label is expected: '5'"},
        {"bra L+4;\nL:", "a label is expected"},
        {"L:\nL:", "a label is defined twice"},
        {"@%r4 bra L;\nL:", "'%r4' is not a predicate"},
        {"@%p10 bra L;\nL:", "'%p10' is not a predicate"},
        {"@5 bra L;\nL:", "'5' is not a predicate"},
        {"@!", "is not a predicate"},
        {"@%p1 @%p2 ret;", "an instruction is expected: '@'"},
        {"@%p1 L: ret;", "is expected"},
    };
    check_bodies(rows, sizeof rows / sizeof *rows);
}

static void statements_that_are_none(void **unused) {
    (void)unused;
    static const char *const rows[][2] = {
        {"5;", "a statement is expected"},
        {"%r4 = 5;", "an operand is expected: '='"},
        {"{", "the text ends within a kernel"},
        {"}", "'ret' is not understood"},
        {"{ { { { { { { { { { { { { { { { { { { {", "more than 16 scopes"},
        {"{ .reg .b32 %own; }\nmov.u32 %own, 5;", "undeclared"},
        {".reg .b33 %y<4>;", "registers of an unknown type"},
        {".reg .b128 %y<4>;", "registers of an unknown type"},
        {".reg .b32 5;", "a register name is expected"},
        {".reg .b32 %y<>;", "a number up to"},
        {".reg .b32 %y<99999999>;", "a number up to"},
        {".reg .b32 %y<1048576>;", "more than 1048576 registers"},
        {".reg .b32 %y<4;", "'>' is expected"},
        {".reg .b32 %y<4>", "';' is expected"},
        {".local .align 3 .b8 x[4];", "an alignment that is not a power of two"},
        {".local .b8 x[];", "an array without a size"},
        {".local .b8 x[-4];", "a number up to"},
        {".local .b8 x[268435456];", "more than 524288 bytes of local or shared memory"},
        {".local .b8 x[268435456][268435456];", "an array of more than"},
        {".local .b64 x[268435456];", "a variable of more than"},
        {".shared .b8 x[524289];", "more than 524288 bytes of local or shared memory"},
        {".local x[4];", "a variable without type or name"},
        {".local .b8;", "a variable without type or name"},
        {".local .pred x;", "a variable with .pred"},
        {".global .b8 x[4];", ".global within a kernel"},
        {".entry inner() { ret; }", ".entry within a kernel"},
        {"/* a comment that does not end", "the text ends within a kernel"},
        {"mov.u32 %r4, 5", "';' is expected"},
        {"\x01", "a statement is expected"},
        {"\xff\xfe", "a statement is expected"},
        {"mov.u32 %r4, \xc3\xa4;", "an operand is expected"},
    };
    check_bodies(rows, sizeof rows / sizeof *rows);
}

static void modules_that_are_none(void **unused) {
    (void)unused;
#define HEAD ".version 7.5\n.target sm_80\n.address_size 64\n"
    static const char *const rows[][2] = {
        {"", "line 1: .version is expected first"},
        {".target sm_80\n", "line 1: .version is expected first"},
        {"hello", ".version is expected first"},
        {HEAD "hello", "line 4: 'hello' is not understood"},
        {HEAD ".entry", ".entry without a name"},
        {HEAD ".entry 5", ".entry without a name"},
        {HEAD ".entry k", "'{' is expected"},
        {HEAD ".entry k()", "'{' is expected"},
        {HEAD ".entry k(;", "'.param' is expected"},
        {HEAD ".entry k(.param .u32 x", "')' is expected"},
        {HEAD ".entry k(.param .u32 x,) { ret; }", "'.param' is expected"},
        {HEAD ".entry k(.param .u32) { ret; }", "a parameter without type or name"},
        {HEAD ".entry k(.param x) { ret; }", "a parameter without type or name"},
        {HEAD ".entry k(.param .u32 .surface x) { ret; }", "a parameter with .surface"},
        {HEAD ".entry k(.param .align 3 .b8 x[4]) { ret; }", "an alignment of 3"},
        {HEAD ".entry k(.param .align 8 .b8 x[4096], .param .b8 a[4096], .param .b8 b[4096], .param .b8 c[4096], "
              ".param .b8 d[4096], .param .b8 e[4096], "
              ".param .b8 f[4096], .param .b8 g[4096]) { ret; }",
         "more parameters than 32764 bytes"},
        {HEAD ".entry k(.param .b8 x[4097]) { ret; }", "a number up to 4096"},
        {HEAD ".entry k() { ret; ", "the text ends within a kernel"},
        {HEAD ".entry k() { ret; }\n.entry k() { ret; }", "line 5: a second kernel k"},
        {HEAD ".entry k() .reqntid { ret; }", "a number up to"},
        {HEAD ".entry k() .reqntid -1 { ret; }", "a number up to"},
        {HEAD ".entry k() .cluster 2 { ret; }", "a kernel with .cluster"},
        {HEAD ".func f() { ret;", "the text ends within a function"},
        {HEAD ".func f() { { ret; }", "the text ends within a function"},
        {HEAD ".func f()", "the text ends within a function"},
        {HEAD ".global .u32", "a variable without type or name"},
        {HEAD ".global .u32 x", "';' is expected"},
        {HEAD ".global .u32 x[2] = {1, 2, 3};", "more initialisers than elements"},
        {HEAD ".global .u32 x[2] = {1, y};", "an initialiser 'y' that is not a number"},
        {HEAD ".global .u32 x[2] = {1, 2", "';' is expected"},
        {HEAD ".global .u32 x[2] = {1, 2}}", "';' is expected"},
        {HEAD ".global .b128 x;", "a variable with 128-bit elements"},
        {HEAD ".global .u64 x[268435456];", "a variable of more than"},
        {HEAD ".shared .u32 x = 5;", "';' is expected"},
    };
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) wrong += !has_message(rows[i][0], rows[i][1], rows[i][0]);
    assert_int_equal(wrong, 0);
}

/* --- valid texts, truncated and damaged */

/* A mixture of features. It always terminates. */
static const char sample_declarations[] =
    "// a comment\n.global .align 4 .u32 table[4] = {1, -2, 0x3, 4};\n.const .f32 half = 0f3F000000;\n"
    ".shared .align 16 .b8 tile[1024];\n.func helper() { ret; }\n";
static const char sample_body[] =
    "    .local .align 8 .b8 own[32];\n    .reg .pred %extra;\n    setp.lt.u32 %p1, %r0, 10;\n    @%p1 bra $A;\n"
    "$B: add.u32 %r5, %r5, 1;\n    setp.lt.u32 %p2, %r5, %r0;\n    @%p2 bra $B;\n    bra $C;\n"
    "$A: ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%d0+16];\n    fma.rn.f32 %f1, %f2, %f3, 0f3F800000;\n"
    "$C: mov.u32 %r9, tile;\n    mad.lo.u32 %r10, %r0, 16, %r9;\n    st.shared.v2.u32 [%r10+8], {%r5, %r0};\n    "
    "bar.sync 0;\n"
    "    cp.async.ca.shared.global [%r10], [%d0], 8;\n    cp.async.commit_group;\n    cp.async.wait_group 0;\n"
    "    st.local.u64 [own+8], %d0;\n    ld.local.u8 %h1, [own+8];\n    cvt.rn.f16.f32 %h2, %f1;\n    cvt.u64.u32 %d5, "
    "%r5;\n"
    "    { .reg .b32 %inner<3>;\n    mov.b64 {%inner1, %inner2}, %d5; }\n    mov.b64 %d6, {%r5, %r6};\n    selp.b32 "
    "%r7, %r5, -1, !%p1;\n"
    "    shfl.sync.bfly.b32 %r8|%p3, %r7, 1, 0x1f, -1;\n    vote.sync.ballot.b32 %r11, %p3, -1;\n    activemask.b32 "
    "%r12;\n"
    "    red.shared.add.u32 [tile], 1;\n    atom.global.cas.b32 %r13, [table], 1, 5;\n    ld.const.f32 %f5, [half];\n"
    "    mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f10, %f11, %f12, %f13}, {%r5, %r6}, {%r7}, {%f10, %f11, "
    "%f12, %f13};\n"
    "    ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r14, %r15}, [%r9];\n    lop3.b32 %r16, %r5, %r6, %r7, 0x96;\n"
    "    prmt.b32 %r17, %r5, %r6, 0x5410;\n    bfe.u32 %r18, %r5, 3, %r6;\n    div.s32 %r19, %r5, %r6;\n    "
    "membar.gl;\n"
    "    mul.wide.u32 %d2, %r1, 16;\n    add.s64 %d2, %d2, %d1;\n    st.global.v4.u32 [%d2], {%r5, %r7, %r8, %r17};\n";

/* A truncated text is rejected, unless the cut follows the last brace. */
static void texts_that_are_cut_off(void **unused) {
    (void)unused;
    static char text[TEXT];
    rig_text(sample_declarations, sample_body, text, sizeof text);
    const size_t length = strlen(text), kernel = (size_t)(strstr(text, ".entry") - text);
    char message[512];
    for (size_t n = 0; n <= length; ++n) {
        ptx_module *module = read_exactly(text, n, message);
        const bool whole = n > length - 2;
        if (whole != (module != NULL) && n > kernel)
            fail_msg("%zu of %zu characters: %s", n, length, module ? "accepted" : message);
        ptx_free(module);
    }
}

/* A launch of an accepted text must end, with or without faults. */
static void run_whatever_it_is(const ptx_module *module) {
    static _Alignas(64) unsigned char in[4096], out[4096];
    const ptx_kernel *kernel = ptx_find(module, "k");
    uint64_t params[5000] = {(uintptr_t)in, (uintptr_t)out, 64};
    if (!kernel || ptx_param_bytes(kernel) > sizeof params || ptx_local_bytes(kernel) > 4096) return;
    const ptx_range ranges[] = {{(uintptr_t)in, (uintptr_t)in + sizeof in, true},
                                {(uintptr_t)out, (uintptr_t)out + sizeof out, false}};
    const ptx_launch launch = {.groups = {2, 1, 1},
                               .local = {40, 1, 1},
                               .params = params,
                               .ranges = ranges,
                               .n_ranges = 2,
                               .threads = 1,
                               .races = true,
                               .steps = 2000};
    ptx_counters counters = {0};
    ptx_run(kernel, &launch, &counters);
}

/* Replaces a character, a digit or a letter, removes or repeats some, or inserts a word. */
static size_t damage(char *text, size_t length, uint64_t *state) {
    const uint64_t random = rig_random(state);
    const size_t at = (size_t)(random >> 8) % length, size = 1 + (size_t)(random >> 40) % 12;
    static const char *const words[] = {"-1",   "0",    "99999999999", "%d0", "%r0", "%p1",  "[",      "]",      "{",
                                        "}",    ";",    ",",           ":",   "@",   "!",    "%tid.x", "_",      "4",
                                        "ret;", "//",   "/*",          "*/",  "\"",  "0f7F", ".reg",   ".local", "tile",
                                        "$A",   ".b64", "bra",         "0x",  "+",   "<",    ">",      "(",      ")",
                                        "=",    "\n",   "8",           "32",  ".v4", "16"};
    const char *word = words[(random >> 48) % (sizeof words / sizeof *words)];
    const size_t n = strlen(word), rest = length - at;
    switch (random & 7) {
    case 0:
        text[at] = (char)(random >> 32);
        if (!text[at]) text[at] = ' ';
        return length;
    case 1: /* remove */
        if (rest <= size) return length;
        memmove(text + at, text + at + size, rest - size + 1);
        return length - size;
    case 2: /* repeat */
        if (rest <= size) return length;
        memmove(text + at + size, text + at, rest + 1);
        return length + size;
    case 3: /* a number */
    case 4:
        for (size_t i = at; i < length; ++i)
            if (text[i] >= '0' && text[i] <= '9') {
                text[i] = (char)('0' + (random >> 36) % 10);
                break;
            }
        return length;
    case 5: /* replaces a letter: of a type, of a register */
        for (size_t i = at; i < length; ++i)
            if (strchr("rdfhxpubs", text[i])) {
                text[i] = "rdfhxpubs"[(random >> 36) % 9];
                break;
            }
        return length;
    default:
        memmove(text + at + n, text + at, rest + 1);
        memcpy(text + at, word, n);
        return length + n;
    }
}

static void damaged_texts(void **unused) {
    (void)unused;
    static char whole[TEXT], text[TEXT];
    rig_text(sample_declarations, sample_body, whole, sizeof whole);
    const size_t length = strlen(whole);
    uint64_t state = 20261123;
    int accepted = 0;
    for (int i = 0; i < 6000; ++i) {
        memcpy(text, whole, length + 1);
        size_t n = length;
        for (uint64_t k = 1 + (rig_random(&state) >> 63); k-- > 0;) n = damage(text, n, &state);
        char message[512];
        ptx_module *module = read_exactly(text, n, message);
        if (!module) continue;
        accepted++;
        run_whatever_it_is(module);
        ptx_free(module);
    }
    /* Both must happen, or nothing is tested: most damage is detected, some only changes a number. */
    assert_in_range(accepted, 300, 5000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instructions_that_do_not_exist), cmocka_unit_test(operands_that_do_not_fit),
        cmocka_unit_test(statements_that_are_none),       cmocka_unit_test(modules_that_are_none),
        cmocka_unit_test(texts_that_are_cut_off),         cmocka_unit_test(damaged_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
