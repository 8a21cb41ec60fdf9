/* Detects the matrix unit of a device: candidates from its facts, a test of each on the device, and the
 * result stored on disk.
 *
 * Half precision has three tiers, each used only after it has computed correctly on the device: storage
 * alone, with arithmetic in f32 (everywhere, without cl_khr_fp16); dot products of pairs with f32 sums
 * (AMD's v_dot2: RX 6000, Radeon VII, gfx12); matrix units (mma.sync of NVIDIA from V100 on, AMD's WMMA
 * and MFMA, Intel's DPAS). Packed half multiply-adds sum in half precision and are not used. Extension
 * strings do not help: NVIDIA's driver does not list cl_khr_fp16, yet has the units. If several processes
 * start at once, one tests and the others wait. */
#include "device/matrix.h"
#include "core/clock.h"
#include "core/files.h"
#include "core/kernel_shape.h"
#include "core/lock.h"
#include "core/memory.h"
#include "core/string.h"
#include "device/probe.h"
#include "platform/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORMAT = 2, HASH = 33, PATH = 1024, LINE = 64 };

/* Seconds for which a process waits for another one that is testing the units: compilers need one or two
 * seconds per unit. */
enum { PATIENCE = 60 };

/* From cl_nv_device_attribute_query; CL/cl_ext.h calls them CL_DEVICE_COMPUTE_CAPABILITY_..._NV. */
enum { COMPUTE_CAPABILITY_MAJOR = 0x4000, COMPUTE_CAPABILITY_MINOR = 0x4001 };

/* --- candidates --- */

static int nvidia_candidates(int32_t capability, cleat_matrix_unit *units) {
    int count = 0;
    if (capability >= 80) units[count++] = CLEAT_MATRIX_NV80;
    if (capability >= 75) units[count++] = CLEAT_MATRIX_NV75;
    if (capability >= 70 && capability < 75) units[count++] = CLEAT_MATRIX_NV70;
    return count;
}

/* AMD's driver reports the instruction set as the device name: "gfx90a:sramecc+:xnack-". The matrix units of
 * gfx12 have another layout, so it uses v_dot2 here. gfx906 has v_dot2 too, and so does RDNA from gfx1011 on,
 * except gfx1013. */
static int amd_candidates(const char *name, cleat_matrix_unit *units) {
    static const struct {
        const char *begins;
        cleat_matrix_unit unit;
    } sets[] = {{"gfx11", CLEAT_MATRIX_AMD_WMMA},  {"gfx908", CLEAT_MATRIX_AMD_MFMA}, {"gfx90a", CLEAT_MATRIX_AMD_MFMA},
                {"gfx94", CLEAT_MATRIX_AMD_MFMA},  {"gfx95", CLEAT_MATRIX_AMD_MFMA},  {"gfx906", CLEAT_MATRIX_AMD_DOT},
                {"gfx1011", CLEAT_MATRIX_AMD_DOT}, {"gfx1012", CLEAT_MATRIX_AMD_DOT}, {"gfx103", CLEAT_MATRIX_AMD_DOT},
                {"gfx12", CLEAT_MATRIX_AMD_DOT}};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; ++i)
        if (strncmp(name, sets[i].begins, strlen(sets[i].begins)) == 0) {
            units[0] = sets[i].unit;
            return 1;
        }
    return 0;
}

static int intel_candidates(const cleat_device_facts *facts, bool listed, cleat_matrix_unit *units) {
    if (!listed || (facts->sub_group != 8 && facts->sub_group != 16)) return 0;
    units[0] = facts->sub_group == 8 ? CLEAT_MATRIX_INTEL8 : CLEAT_MATRIX_INTEL16;
    return 1;
}

int cleat_matrix_candidates(const cleat_device_facts *facts, const cleat_matrix_signs *signs,
                            cleat_matrix_unit units[CLEAT_MATRIX_CANDIDATES]) {
    if (facts->kind != CLEAT_DEVICE_GPU) return 0;
    if (facts->vendor == CLEAT_VENDOR_NVIDIA) return nvidia_candidates(signs->compute_capability, units);
    if (facts->vendor == CLEAT_VENDOR_AMD) return amd_candidates(facts->name, units);
    if (facts->vendor == CLEAT_VENDOR_INTEL) return intel_candidates(facts, signs->sub_group_matrix_intel, units);
    return 0;
}

static int32_t read_capability(const cleat_device *device) {
    cl_uint major = 0, minor = 0;
    if (device->facts.vendor != CLEAT_VENDOR_NVIDIA) return 0;
    if (clGetDeviceInfo(device->id, COMPUTE_CAPABILITY_MAJOR, sizeof major, &major, NULL) != CL_SUCCESS) return 0;
    if (clGetDeviceInfo(device->id, COMPUTE_CAPABILITY_MINOR, sizeof minor, &minor, NULL) != CL_SUCCESS) return 0;
    return (int32_t)(10 * major + minor);
}

/* --- the stored result --- */

/* Hashes everything that the result depends on. */
static cleat_status make_key(const cleat_device *device, char key[HASH], cleat_error *error) {
    char *source = NULL, *text = NULL;
    cleat_string joined = {0};
    cleat_status status = cleat_kernel_source("lib/mma_probe.cl", &source, error);
    if (status) return status;
    cleat_string_add(&joined, "matrix %d\n%s\n%s\n%s\n%s", (int)FORMAT, device->facts.platform, device->facts.name,
                     device->facts.driver, source);
    status = cleat_string_detach(&joined, &text, error);
    if (!status) cleat_hash_text(text, strlen(text), key);
    cleat_free(text);
    cleat_free(source);
    return status;
}

cleat_status cleat_matrix_path(const cleat_device *device, char *path, size_t size, cleat_error *error) {
    char key[HASH];
    cleat_status status = make_key(device, key, error);
    return status ? status : cleat_cache_path("", key, ".matrix", path, size, error);
}

/* The file contains "trying 1" while a test runs. It keeps this text if the test gives no result because it
 * crashed the process, the process was killed, or the device failed. The testing process holds
 * the file's lock, so the next holder recognises such an unfinished test. After ATTEMPTS of them no
 * process tries again. */
static const char trying[] = "trying";
enum { ATTEMPTS = 2 };

/* The possible lines are "nv80 bf16\n", "nv75\n", "none\n", for example. */
static void print_answer(const cleat_device_facts *facts, char text[LINE]) {
    snprintf(text, LINE, "%s%s\n", cleat_matrix_unit_text(facts->matrix_unit), facts->matrix_bf16 ? " bf16" : "");
}

static bool parse_answer(const char *text, cleat_device_facts *facts) {
    char line[LINE];
    for (int i = 0; i < 2 * CLEAT_MATRIX_UNITS; ++i) {
        cleat_device_facts guess = {.matrix_unit = (cleat_matrix_unit)(i / 2), .matrix_bf16 = i % 2};
        print_answer(&guess, line);
        if (strcmp(text, line) != 0) continue;
        facts->matrix_unit = guess.matrix_unit;
        facts->matrix_bf16 = guess.matrix_bf16;
        return true;
    }
    return false;
}

/* True if the stored result was read; else *attempts is the number of tests that were begun so far. */
static bool load_answer(const char *path, cleat_device_facts *facts, int *attempts) {
    char *data = NULL;
    size_t size = 0;
    *attempts = 0;
    if (!path[0] || !cleat_file_exists(path) || cleat_file_read(path, &data, &size, NULL)) return false;
    bool known = parse_answer(data, facts);
    if (!known && strncmp(data, trying, strlen(trying)) == 0)
        *attempts = strtol(data + strlen(trying), NULL, 10) < ATTEMPTS ? 1 : ATTEMPTS;
    else if (!known)
        cleat_log(CLEAT_LOG_DEBUG, "matrix unit: %s is damaged, testing again", path);
    cleat_free(data);
    return known;
}

static void save_answer(const char *path, const char *text) {
    cleat_error error = {0};
    if (path[0] && cleat_file_write(path, text, strlen(text), &error))
        cleat_log(CLEAT_LOG_DEBUG, "matrix unit: result not saved: %s", error.text);
}

/* --- testing --- */

/* Returns false if the test itself could not be run: a later start may succeed. */
static bool probe_unit(cleat_device *device, cleat_matrix_unit unit, bool bf16, bool *right) {
    cleat_error error = {0};
    cleat_status status = cleat_matrix_check(device, unit, bf16, &error);
    *right = !status;
    if (!*right)
        cleat_log(CLEAT_LOG_INFO, "matrix unit %s of '%s' cannot multiply %s: %s", cleat_matrix_unit_text(unit),
                  device->facts.name, bf16 ? "bf16" : "f16", error.text);
    return *right || status == CLEAT_ERR_BUILD || status == CLEAT_ERR_NOT_SUPPORTED;
}

/* Returns false as probe_unit does. */
static bool probe_candidates(cleat_device *device, const cleat_matrix_unit *units, int count) {
    for (int i = 0; i < count; ++i) {
        bool f16 = false, bf16 = false;
        if (!probe_unit(device, units[i], false, &f16)) return false;
        if (!f16) continue;
        if (cleat_matrix_may_have_bf16(units[i]) && !probe_unit(device, units[i], true, &bf16)) return false;
        device->facts.matrix_unit = units[i];
        device->facts.matrix_bf16 = bf16;
        return true;
    }
    return true;
}

/* Tests the units and stores the result. */
static void find_answer(cleat_device *device, const cleat_matrix_unit *units, int count, int attempt,
                        const char *path) {
    char text[LINE];
    double start = cleat_seconds();
    snprintf(text, sizeof text, "%s %d\n", trying, attempt);
    save_answer(path, text);
    bool known = probe_candidates(device, units, count);
    print_answer(&device->facts, text);
    if (known) save_answer(path, text);
    cleat_log(CLEAT_LOG_INFO, "matrix unit of '%s': %.*s, found in %.2f s", device->facts.name,
              (int)strcspn(text, "\n"), text, cleat_seconds() - start);
}

/* CLEAT_OK: no other process is testing; CLEAT_ERR_TIME_UP: another one is; others: locks do not work
 * here. */
static cleat_status lock_answer(const cleat_device *device, const char *path, double patience, int *lock) {
    cleat_error error = {0};
    cleat_status status = cleat_lock(path, 0, lock, &error);
    if (status == CLEAT_ERR_TIME_UP) {
        cleat_log(CLEAT_LOG_INFO, "another process is testing the matrix unit of '%s': waiting for it, at most %g s",
                  device->facts.name, patience);
        status = cleat_lock(path, patience, lock, &error);
    }
    if (status) cleat_log(CLEAT_LOG_DEBUG, "matrix unit: %s", error.text);
    return status;
}

void cleat_matrix_detect(cleat_device *device, const cleat_matrix_unit *units, int count, double patience) {
    char path[PATH] = "";
    int lock = -1, attempts = 0;
    if (cleat_matrix_path(device, path, sizeof path, NULL)) path[0] = 0;
    if (load_answer(path, &device->facts, &attempts)) return;
    cleat_status locked = path[0] ? lock_answer(device, path, patience, &lock) : CLEAT_ERR_NOT_SUPPORTED;
    if (locked == CLEAT_ERR_TIME_UP) {
        cleat_log(CLEAT_LOG_WARNING,
                  "'%s' is used without its matrix unit this time: another process is still testing it",
                  device->facts.name);
        return;
    }
    /* The previous holder of the lock may have found it. */
    bool known = load_answer(path, &device->facts, &attempts);
    if (!known && attempts < ATTEMPTS) find_answer(device, units, count, attempts + 1, path);
    if (!known && attempts == ATTEMPTS)
        cleat_log(
            CLEAT_LOG_WARNING,
            "'%s' is used without its matrix unit: %d attempts to test it had no result%s. To test it again, remove %s",
            device->facts.name, attempts, locked ? ", or other processes are testing it" : "", path);
    if (!locked) cleat_unlock(lock);
}

void cleat_matrix_find(cleat_device *device) {
    cleat_matrix_unit units[CLEAT_MATRIX_CANDIDATES];
    cleat_matrix_signs signs = {read_capability(device),
                                cleat_has_extension(device->id, "cl_intel_subgroup_matrix_multiply_accumulate")};
    const char *setting = getenv("CLEAT_MATRIX_UNIT");
    if (setting && setting[0]) return; /* override_matrix_unit has set the facts */
    int count = cleat_matrix_candidates(&device->facts, &signs, units);
    if (count > 0) cleat_matrix_detect(device, units, count, PATIENCE);
}
