/* A kernel of PTX in the form that is executed, and the tables of instructions that it is decoded with. */
#ifndef VIRTUAL_CARD_KERNEL_H
#define VIRTUAL_CARD_KERNEL_H

#include "ptx.h"

/* A row of a table has only what it needs. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

enum { PTX_LANES = 32 };
#define PTX_ALL 0xffffffffu /* the mask of a whole warp */

typedef struct ptx_warp ptx_warp;
typedef struct ptx_instruction ptx_instruction;

/* Executes an instruction for the lanes of a mask, which is not 0. */
typedef void ptx_action(ptx_warp *warp, const ptx_instruction *instruction, uint32_t mask);

/* Where the 32 values of an operand are. Registers lie one after the other, each with its 32 lanes; so do
 * constants, so that an instruction need not know which it has. A predicate is 32 bits, one a lane. */
enum { PTX_REGISTERS, PTX_CONSTANTS, PTX_SPECIAL, PTX_BASES };
typedef struct ptx_operand {
    uint32_t offset; /* bytes from the base */
    int32_t add;     /* of an address: added to the value */
    uint8_t base;
    uint8_t width; /* bytes a lane; 0: a predicate */
    bool negate;   /* of a predicate: !%p1 */
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

/* Addresses without a space (generic): shared and local memory have windows, which no host address can lie
 * in. The low 32 bits are the offset. */
#define PTX_SHARED_WINDOW (UINT64_C(0x5e) << 56)
#define PTX_LOCAL_WINDOW (UINT64_C(0x5f) << 56)

#define PTX_NOWHERE UINT32_MAX /* no instruction; no predicate */

struct ptx_instruction {
    ptx_action *run;
    const ptx_operand *to, *from; /* those written, those read */
    uint8_t n_to, n_from;
    uint8_t kind, space;
    uint8_t element, vector; /* bytes and number of the elements that a memory instruction moves a lane */
    int16_t code;            /* a variant within the action */
    uint32_t predicate;      /* offset of its register, or PTX_NOWHERE */
    bool unless;             /* @!%p */
    bool fma, mma, special;  /* what it counts as */
    uint8_t issued;          /* index of its counter, if neither fma nor mma */
    uint16_t products;       /* multiply-adds of the matrix unit */
    uint32_t target;         /* of a branch */
    uint32_t reconverge;     /* of a branch: where its two ways meet; PTX_NOWHERE: only where they end */
    const char *text;        /* within the module's text, not terminated */
    uint32_t length;
};

/* A row of a table of instructions.
 *
 * The opcode is as the PTX manual writes it: [.a|.b] may be there, (.a|.b) must, one of them. The operands are letters,
 * those that are written before '='; {} is a vector, a|b a pair:
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

/* Files of arithmetic are compiled twice, without and with AVX2 and FMA: PTX_VARIANT(table) is table_plain or
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
    uint32_t register_bytes; /* of a warp */
    uint8_t cell_shift;      /* races are looked for in cells of 1 << cell_shift bytes: its smallest shared access */
};

/* A variable of the module. Those in global and constant memory have their bytes; those in shared memory get
 * an offset in each kernel that names them. */
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

/* flow.c: sets `reconverge` of each branch to the block that follows it on every way (its immediate post-dominator). */
void ptx_find_reconvergence(ptx_kernel *kernel);

/* registers.c: gives each register its own bytes. */
void ptx_place_registers(ptx_kernel *kernel);

/* Room for one more element of an array: its new address, with the capacity updated. A test ends where memory does. */
void *ptx_grow(void *array, size_t count, size_t *capacity, size_t size);

#endif
