/* Instructions that exchange values between the lanes of a wave. */
#include "wave.h"

static int first_lane(const gcn_wave *wave) {
    const uint64_t exec = gcn_exec(wave);
    return exec ? __builtin_ctzll(exec) : 0;
}

static uint32_t value_at(gcn_wave *wave, gcn_operand operand, int lane) {
    return operand.kind == GCN_VECTOR ? wave->v[operand.index][lane] : (uint32_t)gcn_scalar(wave, operand, false);
}

static void read_first(gcn_wave *wave, const gcn_instruction *now) {
    gcn_set_scalar(wave, now->to[0], value_at(wave, now->from[0], first_lane(wave)), false);
}

static void read_lane(gcn_wave *wave, const gcn_instruction *now) {
    const uint32_t lane = (uint32_t)gcn_scalar(wave, now->from[1], false) & (uint32_t)(wave->lanes - 1);
    gcn_set_scalar(wave, now->to[0], value_at(wave, now->from[0], (int)lane), false);
}

/* Ignores exec. */
static void write_lane(gcn_wave *wave, const gcn_instruction *now) {
    const uint32_t lane = (uint32_t)gcn_scalar(wave, now->from[1], false) & (uint32_t)(wave->lanes - 1);
    wave->v[now->to[0].index][lane] = (uint32_t)gcn_scalar(wave, now->from[0], false);
}

/* Each lane reads the lane that its address selects; an inactive lane gives 0. */
static void permute_back(gcn_wave *wave, const gcn_instruction *now) {
    const uint32_t *address = wave->v[now->from[0].index], *data = wave->v[now->from[1].index];
    const uint64_t exec = gcn_exec(wave);
    uint32_t result[GCN_LANES];
    for (int l = 0; l < wave->lanes; ++l) {
        const uint32_t from = (address[l] + (uint32_t)now->offset) >> 2 & (uint32_t)(wave->lanes - 1);
        result[l] = exec >> from & 1 ? data[from] : 0;
    }
    for (int l = 0; l < wave->lanes; ++l)
        if (exec >> l & 1) wave->v[now->to[0].index][l] = result[l];
}

/* Each lane writes to the lane that its address selects. */
static void permute(gcn_wave *wave, const gcn_instruction *now) {
    const uint32_t *address = wave->v[now->from[0].index], *data = wave->v[now->from[1].index];
    const uint64_t exec = gcn_exec(wave);
    uint32_t result[GCN_LANES] = {0};
    for (int l = 0; l < wave->lanes; ++l)
        if (exec >> l & 1) result[(address[l] + (uint32_t)now->offset) >> 2 & (uint32_t)(wave->lanes - 1)] = data[l];
    for (int l = 0; l < wave->lanes; ++l)
        if (exec >> l & 1) wave->v[now->to[0].index][l] = result[l];
}

static const gcn_form forms[] = {
    {"v_readfirstlane_b32", "i=i", read_first}, {"v_readlane_b32", "i=ii", read_lane},
    {"v_writelane_b32", "i=ii", write_lane},    {"ds_bpermute_b32", "V=VV", permute_back},
    {"ds_permute_b32", "V=VV", permute},
};

const gcn_table gcn_cross_table = GCN_TABLE(forms);
