/* An executable PTX kernel, and the instruction tables that decode it. */
#ifndef VIRTUAL_CARD_KERNEL_H
#define VIRTUAL_CARD_KERNEL_H

#include "ptx.h"

/* Table rows omit fields that they do not need. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

enum { PTX_LANES = 32 };
#define PTX_ALL 0xffffffffu /* the mask of a whole warp */

typedef struct ptx_warp ptx_warp;
typedef struct ptx_instruction ptx_instruction;

/* Executes an instruction for the lanes of a nonzero mask. */
typedef void ptx_action(ptx_warp *warp, const ptx_instruction *instruction, uint32_t mask);

/* The location of an operand's 32 values. Registers and constants have the same layout, 32 lanes each in
 * sequence, so instructions need not distinguish them. A predicate has 32 bits, one per lane. */
enum { PTX_REGISTERS, PTX_CONSTANTS, PTX_SPECIAL, PTX_BASES };
typedef struct ptx_operand {
    uint32_t offset; /* bytes from the base */
    int32_t add;     /* address: added to the value */
    uint8_t base;
    uint8_t width; /* bytes per lane; 0: a predicate */
    bool negate;   /* predicate: !%p1 */
} ptx_operand;

typedef enum ptx_kind { PTX_PLAIN, PTX_BRANCH, PTX_EXIT, PTX_BARRIER } ptx_kind;
typedef enum ptx_space {
    PTX_GENERIC,
    PTX_GLOBAL,
    PTX_SHARED,
    PTX_LOCAL,
    PTX_PARAMETER,
    PTX_CONST,
} ptx_space;

/* Generic addresses: shared and local memory have windows that contain no host address. The low 32 bits are
 * the offset. */
#define PTX_SHARED_WINDOW (UINT64_C(0x5e) << 56)
#define PTX_LOCAL_WINDOW (UINT64_C(0x5f) << 56)

#define PTX_NOWHERE UINT32_MAX /* no instruction; no predicate */

struct ptx_instruction {
    ptx_action *run;
    const ptx_operand *to, *from; /* written and read operands */
    uint8_t n_to, n_from;
    uint8_t kind, space;
    uint8_t element, vector; /* memory: bytes per element, elements per lane */
    int16_t code;            /* a variant within the action */
    uint32_t predicate;      /* offset of its register, or PTX_NOWHERE */
    bool unless;             /* @!%p */
    bool fma, mma, special;  /* counted as */
    uint8_t issued;          /* its counter, if neither fma nor mma */
    uint16_t products;       /* multiply-adds of the matrix unit */
    uint32_t target;         /* of a branch */
    uint32_t reconverge;     /* of a branch: where its paths meet; PTX_NOWHERE: at their ends */
    const char *text;        /* within the module's text, not terminated */
    uint32_t length;
};

/* A row of a table of instructions.
 *
 * The opcode follows the PTX manual: [.a|.b] is optional, (.a|.b) required. The operands are letters, with
 * the results before '='; {} is a vector, a|b a pair:
 *   h w l   16, 32, 64 bits; p a predicate; x a register of at least the element's width, y of any width
 *   m       an address, [%rd1+8]; n a number; t a label
 */
typedef struct ptx_form {
    const char *opcode, *operands;
    ptx_action *run;
    int16_t code;
    uint8_t element, vector;
    uint8_t kind;
    bool fma, mma, special;
} ptx_form;

typedef struct ptx_table {
    const ptx_form *forms;
    size_t count;
} ptx_table;
#define PTX_TABLE(forms)                                                                                               \
    { (forms), sizeof(forms) / sizeof *(forms) }

/* Arithmetic files are compiled twice, without and with AVX2 and FMA: PTX_VARIANT(table) is table_plain or
 * table_avx2. */
#define PTX_JOIN2(a, b) a##_##b
#define PTX_JOIN(a, b) PTX_JOIN2(a, b)
#ifdef PTX_SUFFIX
#define PTX_VARIANT(name) PTX_JOIN(name, PTX_SUFFIX)
#endif
#define PTX_TABLES_OF(suffix)                                                                                          \
    extern const ptx_table PTX_JOIN(ptx_integer_table, suffix), PTX_JOIN(ptx_float_table, suffix),                     \
        PTX_JOIN(ptx_compare_table, suffix), PTX_JOIN(ptx_convert_table, suffix), PTX_JOIN(ptx_matrix_table, suffix);
PTX_TABLES_OF(plain)
PTX_TABLES_OF(avx2)
extern const ptx_table ptx_memory_table, ptx_atomic_table, ptx_async_table, ptx_warp_table;

struct ptx_kernel {
    const ptx_module *module;
    char *name;
    ptx_param *params;
    char **param_names;
    size_t n_params;
    uint32_t param_bytes, shared_bytes, local_bytes;
    uint32_t required[3];  /* .reqntid; 0: none */
    ptx_instruction *code; /* the last one ends the kernel */
    size_t n_code;
    ptx_operand *operands; /* of all instructions */
    size_t n_operands;
    unsigned char *constants; /* [n][32 lanes] */
    size_t constant_bytes;
    uint8_t *register_widths; /* of the registers as declared; 0: a predicate */
    size_t n_registers;
    uint32_t register_bytes; /* per warp */
    uint8_t cell_shift;      /* the race check works in cells of 1 << cell_shift bytes, the smallest shared access */
};

/* A variable of the module. Global and constant variables have bytes; shared ones get an offset in each
 * kernel that uses them. */
typedef struct ptx_variable {
    char *name;
    ptx_space space;
    size_t size, align;
    unsigned char *bytes;
} ptx_variable;

struct ptx_module {
    char *text;
    ptx_kernel **kernels;
    size_t n_kernels;
    ptx_variable *variables;
    size_t n_variables;
};

/* flow.c: sets `reconverge` of each branch to its immediate post-dominator. */
void ptx_find_reconvergence(ptx_kernel *kernel);

/* registers.c: assigns memory to registers. */
void ptx_place_registers(ptx_kernel *kernel);

/* Makes room for one more element of an array. Returns its new address and updates the capacity. Aborts
 * without memory. */
void *ptx_grow(void *array, size_t count, size_t *capacity, size_t size);

#endif
