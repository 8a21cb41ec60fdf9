/* An executable amdgcn module, and the instruction tables that decode it. */
#ifndef VIRTUAL_CARD_GCN_MODULE_H
#define VIRTUAL_CARD_GCN_MODULE_H

#include "gcn.h"

/* Table rows omit fields that they do not need. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

enum {
    GCN_LANES = 64,   /* lanes of a vector register; a wave of 32 uses half */
    GCN_VECTORS = 520 /* 256 v, 256 a, and temporaries of the decoder */
};
enum { GCN_ACCUMULATORS = 256, GCN_SPARE = 512 };

/* Scalar registers by index. Special ones have the numbers of gfx9. */
enum {
    GCN_FLAT_SCRATCH = 102,
    GCN_XNACK = 104,
    GCN_VCC = 106,
    GCN_TTMP = 108,
    GCN_M0 = 124,
    GCN_NULL = 125, /* reads as 0; writes are discarded */
    GCN_EXEC = 126,
    GCN_SCALARS = 144
};

typedef struct gcn_wave gcn_wave;
typedef struct gcn_instruction gcn_instruction;
typedef struct gcn_lanes gcn_lanes;

/* Executes an instruction for the lanes of `exec`. */
typedef void gcn_action(gcn_wave *wave, const gcn_instruction *now);

typedef enum gcn_operand_kind { GCN_OFF, GCN_VECTOR, GCN_SCALAR, GCN_CONSTANT, GCN_SCC } gcn_operand_kind;
/* Register parts that SDWA selects. */
typedef enum gcn_part { GCN_DWORD, GCN_BYTE0, GCN_BYTE1, GCN_BYTE2, GCN_BYTE3, GCN_WORD0, GCN_WORD1 } gcn_part;

typedef struct gcn_operand {
    uint8_t kind, type;          /* the letter of its form */
    uint8_t words;               /* registers */
    uint8_t part;                /* SDWA */
    bool negate, absolute, sign; /* sign: a part is sign-extended */
    uint16_t index;
    uint64_t value; /* of a constant */
} gcn_operand;

typedef enum gcn_kind {
    GCN_PLAIN,
    GCN_BRANCH, /* `code`: the condition */
    GCN_CALL,   /* s_swappc_b64 */
    GCN_RETURN, /* s_setpc_b64 */
    GCN_BARRIER,
    GCN_END
} gcn_kind;
enum { GCN_ALWAYS, GCN_SCC0, GCN_SCC1, GCN_VCCZ, GCN_VCCNZ, GCN_EXECZ, GCN_EXECNZ };

/* The unit that executes an instruction, for the counters; GCN_NO_UNIT: none. */
typedef enum gcn_unit { GCN_OTHER_UNIT, GCN_VECTOR_UNIT, GCN_SCALAR_UNIT, GCN_NO_UNIT } gcn_unit;

typedef enum gcn_space { GCN_FLAT, GCN_GLOBAL, GCN_SCRATCH, GCN_LDS } gcn_space;
/* How a loaded value fills its register. */
typedef enum gcn_extend { GCN_ZEROS, GCN_SIGNS, GCN_LOW_HALF, GCN_HIGH_HALF } gcn_extend;

typedef void gcn_lane_function(const gcn_lanes *x);
/* A scalar operation on one or two values, which reads and writes `scc`. */
typedef uint64_t gcn_scalar_function(uint64_t a, uint64_t b, bool *scc);

/* A row of a table of instructions.
 *
 * The operands are letters, with the results before '=':
 *   i 32 bits, q 64 bits, w 16 bits; f h d floats of 32, 16, 64 bits
 *   P two halves (f16), I two 16-bit integers, F two f32 in two registers; x an f32 or an f16 (fma_mix)
 *   m a mask with one bit per lane; V a vector of registers of any length + not in the text: the result is
 *   also an operand
 */
typedef struct gcn_form {
    const char *name, *operands;
    gcn_action *run;
    gcn_lane_function *lanes;
    gcn_scalar_function *scalar;
    int16_t code;
    uint8_t kind;
    uint8_t space, element, count, extend; /* memory: bytes per element, elements, extension of a short one */
    uint8_t counts;                        /* GCN_COUNTS_... */
} gcn_form;
enum { GCN_COUNTS_FMA = 1, GCN_COUNTS_TWO_FMA, GCN_COUNTS_MMA, GCN_COUNTS_SPECIAL };
enum { GCN_SETS_EXEC = 16 }; /* flag in the code of a compare, added to its condition */

typedef struct gcn_table {
    const gcn_form *forms;
    size_t count;
} gcn_table;
#define GCN_TABLE(forms)                                                                                               \
    { (forms), sizeof(forms) / sizeof *(forms) }

/* Arithmetic files are compiled twice, like those of PTX. */
#define GCN_JOIN2(a, b) a##_##b
#define GCN_JOIN(a, b) GCN_JOIN2(a, b)
#ifdef PTX_SUFFIX
#define GCN_VARIANT(name) GCN_JOIN(name, PTX_SUFFIX)
#endif
#define GCN_TABLES_OF(suffix)                                                                                          \
    extern const gcn_table GCN_JOIN(gcn_float_table, suffix), GCN_JOIN(gcn_half_table, suffix),                        \
        GCN_JOIN(gcn_integer_table, suffix), GCN_JOIN(gcn_compare_table, suffix);
GCN_TABLES_OF(plain)
GCN_TABLES_OF(avx2)
extern const gcn_table gcn_scalar_table, gcn_control_table, gcn_global_table, gcn_atomic_table, gcn_lds_table,
    gcn_cross_table, gcn_matrix_table;

/* DPP: which lane each lane reads. */
typedef enum gcn_dpp {
    GCN_NO_DPP,
    GCN_QUAD_PERM,
    GCN_ROW_SHL,
    GCN_ROW_SHR,
    GCN_ROW_ROR,
    GCN_WAVE_SHL,
    GCN_WAVE_SHR,
    GCN_ROW_MIRROR,
    GCN_ROW_HALF_MIRROR,
    GCN_ROW_BCAST15,
    GCN_ROW_BCAST31,
    GCN_ROW_SHARE,
    GCN_ROW_XMASK
} gcn_dpp;

struct gcn_instruction {
    gcn_action *run;
    const gcn_form *form;
    gcn_operand to[2], from[4];
    uint8_t n_to, n_from;
    uint8_t counted_as; /* PTX_FLOATS, ... */
    uint8_t issues;     /* 0: the second half of one written instruction */
    uint8_t unit;
    bool clamp, returns, sdwa;                          /* returns: an atomic that returns the old value */
    uint8_t op_sel, op_sel_hi, negate_low, negate_high; /* one bit per operand; op_sel bit 3: the result */
    uint8_t part, unused;                               /* of the result (SDWA); unused: 0 zeros, 1 signs, 2 kept */
    uint8_t dpp, dpp_value, row_mask, bank_mask;
    bool bound_zero;
    int32_t offset, offset1;
    uint32_t target;  /* of a branch */
    const char *text; /* within the module's text, not terminated */
    uint32_t length;
};

struct gcn_kernel {
    const gcn_module *module;
    char *name;
    ptx_param *params; /* as the metadata gives them */
    size_t n_params;
    struct gcn_hidden {
        char what[24]; /* "block_count_x" */
        uint32_t offset, size;
    } * hidden;
    size_t n_hidden;
    uint32_t param_bytes, kernarg_bytes, lds_bytes, scratch_bytes, largest_group;
    uint32_t required[3];
    uint32_t entry; /* index of the first instruction */
    /* Contents of the first registers (.amdhsa_...). */
    bool has_segment, has_dispatch, has_queue, has_kernarg, has_dispatch_id, has_flat_scratch, has_scratch_size;
    bool group_id[3], has_group_info, has_scratch_offset;
    uint32_t user_scalars, item_ids;
    uint32_t vectors; /* v and a registers that it may use; only these are kept */
};

typedef struct gcn_symbol {
    const char *name;
    uint32_t length;
    bool is_code;
    uint64_t value; /* index of an instruction, or offset in the data */
} gcn_symbol;

struct gcn_module {
    char *text;
    int generation; /* 9, 10, 11 */
    int wave;       /* lanes */
    gcn_instruction *code;
    size_t n_code;
    gcn_kernel *kernels;
    size_t n_kernels;
    gcn_symbol *symbols;
    size_t n_symbols;
    unsigned char *data; /* constants of the program */
    size_t data_bytes;
    uint8_t cell_shift; /* the race check works in cells of 1 << cell_shift bytes of LDS */
};

/* Code addresses as seen by instructions; no host address lies in this window. */
#define GCN_CODE_WINDOW (UINT64_C(0x5d) << 56)
/* Flat addresses of LDS and scratch; the low 32 bits are the offset. */
#define GCN_LDS_WINDOW (UINT64_C(0x5e) << 56)
#define GCN_SCRATCH_WINDOW (UINT64_C(0x5f) << 56)

/* tables.c: the row of an opcode without its suffix (_e32, ...). NULL: none. */
const gcn_form *gcn_find_form(const char *name, size_t length);

/* metadata.c: reads the YAML at `text` up to its end into the existing kernels. On failure returns false with
 * the reason in message. */
bool gcn_read_metadata(gcn_module *module, const char *text, char *message, size_t size);

#endif
