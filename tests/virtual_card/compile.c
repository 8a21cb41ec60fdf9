/* Compiles programs with clang's back ends and caches the assembly in a folder. compile_amd.c has AMD's
 * arguments.
 *
 * NVIDIA takes two steps, because clang's PTX lacks the kernels' reqd_work_group_size: source -> LLVM IR,
 * which still has it, and IR -> PTX, to which reqntid.c adds it. */
#include "compile.h"

#include "compile_amd.h"
#include "files.h"
#include "options.h"
#include "reqntid.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* CMake sets these: VC_CLANG, VC_LIBCLC and VC_ROCM (empty: not found), VC_PTX_FEATURE (ptx80), VC_NATIVE
 * (the path of native.clh). */

enum { PATH = 512, TARGET = 16 };

extern char **environ;

static const char *setting(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    return value && value[0] ? value : otherwise;
}

static const char *clang(void) {
    return setting("CLEAT_VIRTUAL_CLANG", VC_CLANG);
}

/* The library of built-in functions: a file, or a folder for AMD. */
static const char *libraries(void) {
    return vc_device.card->maker->amd ? setting("CLEAT_VIRTUAL_ROCM", VC_ROCM)
                                      : setting("CLEAT_VIRTUAL_LIBCLC", VC_LIBCLC);
}

bool vc_has_compiler(void) {
    return clang()[0] && libraries()[0];
}

/* Runs a program with stdout and stderr redirected to a file. Returns whether it succeeded. */
static bool run(vc_words *command, const char *log) {
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status = -1;
    if (posix_spawn_file_actions_init(&actions) != 0) return false;
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    int failed = posix_spawnp(&child, command->words[0], &actions, NULL, command->words, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed) return false;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The path `base` with this suffix; empty if it is too long, so no file is found. */
static void join(const char *base, const char *end, char path[PATH]) {
    if (snprintf(path, PATH, "%s%s", base, end) >= PATH) path[0] = 0;
}

static void add_target(vc_words *command, const char *sm) {
    vc_words_add(command, "-target", "nvptx64-nvidia-nvcl", "-Xclang", "-target-cpu", "-Xclang", sm, "-Xclang",
                 "-target-feature", "-Xclang", "+" VC_PTX_FEATURE, "-O3", "-Wno-linker-warnings", NULL);
}

/* "-cl-ext=-all,+cl_khr_fp64,...": defines the extension macros of the card. */
static void extension_option(char *option, size_t size) {
    size_t used = (size_t)snprintf(option, size, "-cl-ext=-all");
    for (const char *at = vc_device.card->maker->extensions; *at && used < size;) {
        int bytes = (int)strcspn(at, " ");
        if (strncmp(at, "cl_khr_", 7) == 0 && strncmp(at, "cl_khr_icd", 10) != 0)
            used += (size_t)snprintf(option + used, size - used, ",+%.*s", bytes, at);
        at += bytes + (at[bytes] == ' ');
    }
}

static bool to_ir(const vc_words *options, const char *sm, const char *base, const char *log) {
    char from[PATH], to[PATH], extensions[PATH];
    vc_words command = {0};
    join(base, ".cl", from);
    join(base, ".ll", to);
    extension_option(extensions, sizeof extensions);
    vc_words_add(&command, clang(), "-x", "cl", "-Xclang", "-finclude-default-header", "-Xclang", extensions, NULL);
    add_target(&command, sm);
    /* Inlines everything, like NVIDIA's compiler for programs of this size. */
    vc_words_add(&command, "-mllvm", "-inline-threshold=100000000", "-Xclang", "-mlink-builtin-bitcode", "-Xclang",
                 libraries(), "-include", VC_NATIVE, "-D__NV_CL_C_VERSION=120", NULL);
    for (size_t i = 0; i < options->count; ++i) vc_words_add(&command, options->words[i], NULL);
    vc_words_add(&command, "-emit-llvm", "-S", "-o", to, from, NULL);
    bool done = !command.failed && run(&command, log);
    vc_words_free(&command);
    return done;
}

static bool to_ptx(const char *sm, const char *base, const char *log) {
    char from[PATH], to[PATH];
    vc_words command = {0};
    join(base, ".ll", from);
    join(base, ".s", to);
    vc_words_add(&command, clang(), "-x", "ir", NULL);
    add_target(&command, sm);
    vc_words_add(&command, "-Xclang", "-disable-llvm-passes", "-S", "-o", to, from, NULL);
    bool done = !command.failed && run(&command, log);
    vc_words_free(&command);
    return done;
}

static bool to_amdgcn(const vc_words *options, const char *base, const char *log) {
    char from[PATH], to[PATH], extensions[PATH];
    vc_words command = {0};
    join(base, ".cl", from);
    join(base, ".s", to);
    extension_option(extensions, sizeof extensions);
    vc_words_add(&command, clang(), extensions, NULL);
    vc_add_amd_words(&command, vc_device.card, libraries(), options);
    vc_words_add(&command, "-S", "-o", to, from, NULL);
    bool done = !command.failed && run(&command, log);
    vc_words_free(&command);
    return done;
}

/* NULL: compilation failed. */
static char *compile_for_amd(const vc_words *options, const char *base, const char *log) {
    char path[PATH];
    join(base, ".s", path);
    return to_amdgcn(options, base, log) ? vc_file_read(path) : NULL;
}

/* NULL: compilation failed. */
static char *compile_for_nvidia(const vc_words *options, const char *sm, const char *base, const char *log) {
    char path[PATH];
    char *ir = NULL, *assembly = NULL, *ptx = NULL;
    if (to_ir(options, sm, base, log) && to_ptx(sm, base, log)) {
        join(base, ".ll", path);
        ir = vc_file_read(path);
        join(base, ".s", path);
        assembly = vc_file_read(path);
    }
    if (ir && assembly) ptx = vc_write_reqntid(assembly, ir);
    free(ir);
    free(assembly);
    return ptx;
}

static void remove_files(const char *base) {
    static const char *const ends[] = {".cl", ".ll", ".s", ".log"};
    char path[PATH];
    for (size_t i = 0; i < sizeof ends / sizeof *ends; ++i) {
        join(base, ends[i], path);
        unlink(path);
    }
}

static void add_to_hash(XXH3_state_t *state, const char *text) {
    XXH3_128bits_update(state, text, strlen(text) + 1);
}

/* Name of the result in the cache: a hash of everything it depends on. */
static bool name_of(const char *source, const char *options, const char *target, char name[33]) {
    XXH3_state_t *state = XXH3_createState();
    char *native = vc_file_read(VC_NATIVE);
    bool done = state && native;
    if (done) {
        XXH3_128bits_reset(state);
        const char *const parts[] = {source, options, target, clang(), libraries(), VC_PTX_FEATURE, native, "format 1"};
        for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i) add_to_hash(state, parts[i]);
        XXH128_hash_t hash = XXH3_128bits_digest(state);
        snprintf(name, 33, "%016llx%016llx", (unsigned long long)hash.high64, (unsigned long long)hash.low64);
    }
    free(native);
    XXH3_freeState(state);
    return done;
}

static cl_int compile_anew(const char *source, const vc_words *options, const char *target, const char *cached,
                           char **assembly, char **log) {
    static atomic_uint serial;
    char base[PATH], path[PATH];
    char number[48];
    snprintf(number, sizeof number, ".%ld.%u", (long)getpid(), atomic_fetch_add(&serial, 1u));
    join(cached, number, base);
    join(base, ".cl", path);
    if (!vc_file_write(path, source)) return CL_OUT_OF_HOST_MEMORY;
    join(base, ".log", path);
    char *result = vc_device.card->maker->amd ? compile_for_amd(options, base, path)
                                              : compile_for_nvidia(options, target, base, path);
    *log = vc_file_read(path);
    if (result) vc_file_write(cached, result);
    remove_files(base);
    *assembly = result;
    return result ? CL_SUCCESS : CL_BUILD_PROGRAM_FAILURE;
}

cl_int vc_compile(const char *source, const char *options, char **assembly, char **log) {
    char folder[PATH / 2], cached[PATH], name[33], target[TARGET];
    const vc_card *card = vc_device.card;
    vc_words words = {0};
    if (!vc_has_compiler()) return CL_COMPILER_NOT_AVAILABLE;
    cl_int code = vc_options_read(options, &words);
    if (card->maker->amd)
        snprintf(target, sizeof target, "%s", card->processor);
    else
        snprintf(target, sizeof target, "sm_%u%u", card->major, card->minor);
    if (code == CL_SUCCESS && (!vc_cache_folder(folder, sizeof folder) || !name_of(source, options, target, name)))
        code = CL_OUT_OF_HOST_MEMORY;
    if (code == CL_SUCCESS) {
        snprintf(cached, sizeof cached, "%s/%s.s", folder, name);
        char *found = vc_file_read(cached);
        if (found)
            *assembly = found;
        else
            code = compile_anew(source, &words, target, cached, assembly, log);
    }
    vc_words_free(&words);
    return code;
}
