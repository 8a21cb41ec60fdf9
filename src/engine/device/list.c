/* Finds the devices of all platforms and selects one. */
#include "core/memory.h"
#include "device/cpu_driver.h"
#include "device/probe.h"
#include "platform/system.h"
#include "platform/text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- finding --- */

static cleat_status fail_no_driver(cleat_error *error) {
    return cleat_fail(error, CLEAT_ERR_NO_DEVICE,
                      "no OpenCL device found. " CLEAT_GET_OPENCL "; `cleat doctor` says why");
}

static cleat_status add_device(cl_platform_id platform, cl_device_id id, cleat_found_device **found, size_t *count,
                               size_t *capacity, cleat_error *error) {
    cleat_found_device device = {.platform = platform, .id = id};
    cleat_error reason;
    if (cleat_read_facts(platform, id, &device.facts, &reason)) {
        cleat_log(CLEAT_LOG_WARNING, "device skipped: %s", reason.text);
        return CLEAT_OK;
    }
    cleat_read_locality(id, &device.facts);
    cleat_read_free_memory(id, &device.facts);
    cleat_status status = cleat_grow(found, *count, capacity, error);
    if (!status) (*found)[(*count)++] = device;
    return status;
}

static cleat_status add_platform(cl_platform_id platform, cleat_found_device **found, size_t *count, size_t *capacity,
                                 cleat_error *error) {
    cl_uint n = 0;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &n) != CL_SUCCESS || n == 0) return CLEAT_OK;
    cl_device_id *ids = cleat_alloc(n, sizeof *ids);
    if (!ids) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a list of %u devices", n);
    cleat_status status = CLEAT_OK;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, n, ids, NULL) == CL_SUCCESS)
        for (cl_uint i = 0; i < n && !status; ++i) status = add_device(platform, ids[i], found, count, capacity, error);
    cleat_free(ids);
    return status;
}

cleat_status cleat_find_devices(cleat_found_device **found, size_t *count, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    cleat_found_device *list = NULL;
    size_t n = 0, capacity = 0;
    cl_uint platforms = 0;
    cleat_use_own_cpu_driver();
    if (clGetPlatformIDs(0, NULL, &platforms) != CL_SUCCESS || platforms == 0) return fail_no_driver(error);
    cl_platform_id *ids = cleat_alloc(platforms, sizeof *ids);
    if (!ids) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a list of %u platforms", platforms);
    if (clGetPlatformIDs(platforms, ids, NULL) != CL_SUCCESS) {
        status = fail_no_driver(error);
        goto done;
    }
    for (cl_uint i = 0; i < platforms && !status; ++i) status = add_platform(ids[i], &list, &n, &capacity, error);
    if (!status && n == 0) status = fail_no_driver(error);
    if (status) goto done;
    *found = list;
    *count = n;
    list = NULL;
done:
    cleat_free(list);
    cleat_free(ids);
    return status;
}

cleat_status cleat_device_list(cleat_device_facts **facts, size_t *count, cleat_error *error) {
    cleat_found_device *found = NULL;
    size_t n = 0;
    cleat_status status = cleat_find_devices(&found, &n, error);
    if (status) return status;
    cleat_device_facts *list = cleat_alloc(n, sizeof *list);
    if (list) {
        for (size_t i = 0; i < n; ++i) list[i] = found[i].facts;
        *facts = list;
        *count = n;
    } else {
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the facts of %zu devices", n);
    }
    cleat_free(found);
    return status;
}

void cleat_device_list_free(cleat_device_facts *facts) {
    cleat_free(facts);
}

/* --- selecting --- */

/* Writes the devices as lines "  0  GPU  Tesla T4 (NVIDIA CUDA)" for an error message. */
static void describe_devices(const cleat_device_facts *const *facts, size_t count, char *text, size_t size) {
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; i < count && used < size; ++i)
        used += (size_t)snprintf(text + used, size - used, "\n  %zu  %s  %s (%s)", i,
                                 cleat_device_kind_text(facts[i]->kind), facts[i]->name, facts[i]->platform);
}

static cleat_status fail_selection(cleat_error *error, cleat_status status, const cleat_device_facts *const *facts,
                                   size_t count, const char *selector, const char *what) {
    char list[1200];
    describe_devices(facts, count, list, sizeof list);
    return cleat_fail(error, status,
                      "device '%s': %s. Use auto, gpu, cpu, a number or part of a name. Available devices:%s%s",
                      selector, what, list, status == CLEAT_ERR_NO_DEVICE ? "\n`cleat doctor` says why" : "");
}

/* A GPU with dedicated memory is faster than one that reports most of the host's memory as its own. */
static bool is_larger(const cleat_device_facts *a, const cleat_device_facts *b) {
    if (a->unified_memory != b->unified_memory) return !a->unified_memory;
    if (a->memory_total != b->memory_total) return a->memory_total > b->memory_total;
    return a->compute_units > b->compute_units;
}

/* Among devices of `kind`, prefers dedicated memory, then the largest memory, then the largest number of
 * compute units. Returns `count` if there is none. */
static size_t largest_of_kind(const cleat_device_facts *const *facts, size_t count, cleat_device_kind kind) {
    size_t best = count;
    for (size_t i = 0; i < count; ++i) {
        if (facts[i]->kind == kind && (best == count || is_larger(facts[i], facts[best]))) best = i;
    }
    return best;
}

static size_t select_auto(const cleat_device_facts *const *facts, size_t count) {
    static const cleat_device_kind order[] = {CLEAT_DEVICE_GPU, CLEAT_DEVICE_CPU, CLEAT_DEVICE_OTHER};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; ++i) {
        size_t best = largest_of_kind(facts, count, order[i]);
        if (best < count) return best;
    }
    return count;
}

static bool contains_word(const char *text, const char *part) {
    size_t length = strlen(part);
    for (; *text; ++text)
        if (strncasecmp(text, part, length) == 0) return true;
    return false;
}

static bool is_number(const char *text) {
    for (const char *at = text; *at; ++at)
        if (!isdigit((unsigned char)*at)) return false;
    return text[0] != 0 && strlen(text) < 10;
}

static cleat_status select_by_name(const cleat_device_facts *const *facts, size_t count, const char *selector,
                                   size_t *index, cleat_error *error) {
    size_t matches = 0, exact = 0, match = 0, exact_match = 0;
    for (size_t i = 0; i < count; ++i) {
        if (strcasecmp(facts[i]->name, selector) == 0) {
            exact_match = i;
            ++exact;
        }
        if (contains_word(facts[i]->name, selector)) {
            match = i;
            ++matches;
        }
    }
    if (exact == 1 || matches == 1) {
        *index = exact == 1 ? exact_match : match;
        return CLEAT_OK;
    }
    if (matches > 1)
        return fail_selection(error, CLEAT_ERR_ARGUMENT, facts, count, selector,
                              "the name matches more than one device; use a number");
    return fail_selection(error, CLEAT_ERR_NO_DEVICE, facts, count, selector,
                          is_number(selector) ? "no device has this number or name" : "no device has this name");
}

cleat_status cleat_select_device(const cleat_device_facts *const *facts, size_t count, const char *selector,
                                 size_t *index, cleat_error *error) {
    size_t chosen = count;
    if (!selector) selector = "auto";
    if (!selector[0]) return fail_selection(error, CLEAT_ERR_ARGUMENT, facts, count, selector, "an empty name");
    bool automatic = strcasecmp(selector, "auto") == 0;
    bool gpu = strcasecmp(selector, "gpu") == 0, cpu = strcasecmp(selector, "cpu") == 0;
    if (automatic)
        chosen = select_auto(facts, count);
    else if (gpu || cpu)
        chosen = largest_of_kind(facts, count, gpu ? CLEAT_DEVICE_GPU : CLEAT_DEVICE_CPU);
    else if (is_number(selector) && strtoul(selector, NULL, 10) < count)
        chosen = strtoul(selector, NULL, 10);
    else
        return select_by_name(facts, count, selector, index, error);
    if (chosen == count)
        return fail_selection(error, CLEAT_ERR_NO_DEVICE, facts, count, selector, "no device of this kind");
    *index = chosen;
    return CLEAT_OK;
}
