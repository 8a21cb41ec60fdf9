/* Opening the device of a rank. */
#include "train/rank_device.h"

#include "cleat/doctor.h"

#include <stdio.h>
#include <string.h>

/* The ranks of a machine with several GPUs take one each. */
static cleat_status choose_gpu(int local_rank, char text[24], cleat_error *error) {
    cleat_device_facts *facts = NULL;
    size_t count = 0;
    int gpus = 0, seen = 0;
    cleat_status status = cleat_device_list(&facts, &count, error);
    if (status) return status;
    for (size_t i = 0; i < count; ++i) gpus += facts[i].kind == CLEAT_DEVICE_GPU;
    for (size_t i = 0; i < count && gpus > 1; ++i)
        if (facts[i].kind == CLEAT_DEVICE_GPU && seen++ == local_rank % gpus) snprintf(text, 24, "%zu", i);
    cleat_device_list_free(facts);
    return CLEAT_OK;
}

cleat_status cleat_rank_open_device(cleat_ranks *ranks, const char *wanted, cleat_device **device, cleat_error *error) {
    const char *selector = cleat_ranks_device(ranks, wanted);
    char number[24] = "";
    cleat_status status = CLEAT_OK;
    if (ranks && (strcmp(selector, "auto") == 0 || strcmp(selector, "gpu") == 0))
        status = choose_gpu(cleat_ranks_local_rank(ranks), number, error);
    return status ? status : cleat_doctor_open_device(*number ? number : selector, device, error);
}
