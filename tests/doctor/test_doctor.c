/* The doctor on machines made of files and stub drivers: every fault gets its own code only, and machines
 * without a fault get none. */
/* ctest: quick no-memcheck */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "doctor/doctor.h"
#include "machine.h"
#include "platform/files.h"
#include "platform/processes.h"

#define NVIDIA_CONF "platform=NVIDIA CUDA\nvendor=NVIDIA Corporation\ndevice=Tesla T4\npci=0000:00:04.0\n"
#define AMD_CONF                                                                                                       \
    "platform=AMD Accelerated Parallel Processing\nvendor=Advanced Micro Devices, Inc.\n"                              \
    "device=gfx1100\npci=0000:03:00.0\n"
#define RUSTICL_CONF "platform=rusticl\nvendor=AMD\ndevice=AMD Radeon RX 6600\npci=0000:03:00.0\n"
#define INTEL_CONF                                                                                                     \
    "platform=Intel(R) OpenCL Graphics\nvendor=Intel(R) Corporation\ndevice=Intel(R) Arc(TM) A770\n"                   \
    "pci=0000:03:00.0\n"
#define POCL_CONF "platform=Portable Computing Language\nvendor=GenuineIntel\ndevice=cpu-skylake\ntype=cpu\n"

/* --- machines without a fault --------------------------------------------------------------------------------- */

static void nvidia_card(void) {
    machine_card("0000:00:04.0", "0x030200", "0x10de", "0x1eb8", "nvidia", NULL);
    machine_nvidia("0000:00:04.0", 0, "Tesla T4");
}

static void nvidia(void) {
    nvidia_card();
    machine_driver("nvidia", "libnvidia-opencl.so.1", NVIDIA_CONF);
}

static void amd_card(void) {
    machine_card("0000:03:00.0", "0x030000", "0x1002", "0x744c", "amdgpu", "renderD128");
    tree_put_text("/dev/kfd", "");
}

static void amd(void) {
    amd_card();
    machine_driver("amdocl64", "libamdocl64.so", AMD_CONF);
}

static void rusticl(void) {
    amd_card();
    tree_drop("/dev/kfd");
    setenv("RUSTICL_ENABLE", "radeonsi", 1);
    machine_driver("rusticl", "libRusticlOpenCL.so.1", RUSTICL_CONF);
}

static void intel_card(void) {
    machine_card("0000:03:00.0", "0x030000", "0x8086", "0x56a0", "xe", "renderD128");
}

static void intel(void) {
    intel_card();
    machine_driver("intel", "libigdrcl.so", INTEL_CONF);
}

static void pocl(void) {
    machine_driver("pocl", "libpocl.so.2", POCL_CONF);
}

/* Kaggle: no sysfs, a container, two cards. */
static void kaggle(void) {
    tree_put_text("/.dockerenv", "");
    tree_folder("/kaggle/working");
    machine_nvidia("0000:00:04.0", 0, "Tesla T4");
    machine_nvidia("0000:00:05.0", 1, "Tesla T4");
    machine_driver("nvidia", "libnvidia-opencl.so.1", NVIDIA_CONF "device=Tesla T4\npci=0000:00:05.0\n");
}

/* A server: the management chip has a display; Intel's and Mesa's drivers are installed without matching cards. */
static void server(void) {
    nvidia();
    machine_card("0000:6a:00.0", "0x030000", "0x1a03", "0x2000", "ast", NULL);
    machine_card("0000:6b:00.0", "0x120000", "0x8086", "0x643e", "intel_vpu", NULL);
    machine_driver("intel", "libigdrcl.so", "fault=no-platform\n");
    machine_driver("mesa", "libMesaOpenCL.so.1", "platform=Clover\n");
    pocl();
}

/* --- faults ---------------------------------------------------------------------------------------------------- */

static void nonexistent_vendors(void) {
    pocl();
    setenv("OCL_ICD_VENDORS", "/nonexistent", 1);
}
static void one_icd_by_name(void) {
    pocl();
    machine_icd("broken", "libgone.so\n");
    setenv("OCL_ICD_VENDORS", "pocl.icd", 1);
}
static void no_vendors_folder(void) {
    tree_drop("/etc/OpenCL");
}
static void no_icd(void) {
}
static void missing_library(void) {
    machine_icd("pocl", "libpocl-that-is-gone.so.2\n");
}
static void no_elf(void) {
    pocl();
    tree_put_text("/usr/lib/libpocl.so.2", "this is no library");
}
static void missing_symbol(void) {
    machine_icd("other", CLEAT_BROKEN_DRIVER "\n");
}
static void not_opencl(void) {
    machine_icd("other", "libm.so.6\n");
}
static void empty_icd(void) {
    machine_icd("pocl", "");
}
static void icd_of_two_words(void) {
    machine_icd("two words; id", "");
}
static void no_kernel_driver(void) {
    pocl();
    machine_card("0000:00:04.0", "0x030200", "0x10de", "0x1eb8", NULL, NULL);
}
static void nouveau(void) {
    pocl();
    machine_card("0000:00:04.0", "0x030000", "0x10de", "0x1eb8", "nouveau", "renderD128");
}
static void radeon(void) {
    pocl();
    machine_card("0000:03:00.0", "0x030000", "0x1002", "0x6798", "radeon", "renderD128");
}
static void vfio(void) {
    pocl();
    machine_card("0000:00:04.0", "0x030000", "0x10de", "0x1eb8", "vfio-pci", NULL);
}
static void no_node(void) {
    intel();
    machine_driver("intel", "libigdrcl.so", "fault=no-platform\n");
    tree_drop("/dev/dri");
}
static void no_kfd(void) {
    amd();
    machine_driver("amdocl64", "libamdocl64.so", "platform=AMD Accelerated Parallel Processing\n");
    tree_drop("/dev/kfd");
}
static void no_node_in_container(void) {
    pocl();
    machine_card("0000:00:04.0", "0x030200", "0x10de", "0x1eb8", "nvidia", NULL);
    tree_put_text("/.dockerenv", "");
}
static void unregistered_nvidia(void) {
    nvidia_card();
    pocl();
    tree_put_text("/usr/lib/x86_64-linux-gnu/libnvidia-opencl.so.1", "");
}
static void nvidia_without_compute(void) {
    kaggle();
    tree_drop("/etc/OpenCL/vendors/nvidia.icd");
    pocl();
}
static void unregistered_amd(void) {
    amd_card();
    pocl();
}
static void unregistered_intel(void) {
    intel_card();
    pocl();
}
static void other_version(void) {
    nvidia_card();
    pocl();
    machine_driver("nvidia", "libnvidia-opencl.so.550.90.07", "fault=no-platform\n");
}
static void rusticl_not_enabled(void) {
    rusticl();
    machine_driver("rusticl", "libRusticlOpenCL.so.1", "platform=rusticl\n");
    unsetenv("RUSTICL_ENABLE");
}
static void clover(void) {
    amd_card();
    machine_driver("mesa", "libMesaOpenCL.so.1", "platform=Clover\n");
}
static void nvidia_lists_nothing(void) {
    nvidia();
    machine_driver("nvidia", "libnvidia-opencl.so.1", "platform=NVIDIA CUDA\n");
}
static void nvidia_no_platform(void) {
    nvidia();
    machine_driver("nvidia", "libnvidia-opencl.so.1", "fault=no-platform\n");
}
static void second_card_not_listed(void) {
    nvidia();
    machine_card("0000:00:05.0", "0x030200", "0x10de", "0x1eb8", "nvidia", NULL);
    machine_nvidia("0000:00:05.0", 1, "Tesla T4");
}
static void hangs(void) {
    pocl();
    machine_driver("other", "libother.so", "fault=hang-list\n");
}
static void crashes(void) {
    pocl();
    machine_driver("other", "libother.so", "fault=crash-list\n");
}
static void ends_the_process(void) {
    pocl();
    machine_driver("other", "libother.so", "fault=exit-list\n");
}
static void crashes_beside_others(void) {
    pocl();
    machine_driver("other", "libother.so", "device=x\nfault=crash-in-folder\n");
}
static void computes_wrongly(void) {
    nvidia();
    machine_driver("nvidia", "libnvidia-opencl.so.1", NVIDIA_CONF "fault=wrong\n");
}
static void kernel_hangs(void) {
    pocl();
    machine_driver("pocl", "libpocl.so.2", POCL_CONF "fault=hang-kernel\n");
}
static void kernel_crashes(void) {
    pocl();
    machine_driver("pocl", "libpocl.so.2", POCL_CONF "fault=crash-kernel\n");
}
static void does_not_build(void) {
    pocl();
    machine_driver("pocl", "libpocl.so.2", POCL_CONF "fault=build-fails\nlog=error: no libclc\n");
}
static void unknown_processor(void) {
    pocl();
    machine_driver("pocl", "libpocl.so.2",
                   POCL_CONF "version=OpenCL 1.2 pocl 1.8  Linux, None+Asserts, RELOC, LLVM 11.1.0, SLEEF, DISTRO\n"
                             "fault=build-fails\nlog=error: unknown target CPU 'generic'\n");
}
static void does_not_open(void) {
    pocl();
    machine_driver("pocl", "libpocl.so.2", POCL_CONF "fault=no-context\n");
}
static void pocl_without_device(void) {
    machine_driver("pocl", "libpocl.so.2", "platform=Portable Computing Language\n");
}
static void old_opencl(void) {
    machine_driver("pocl", "libpocl.so.2", POCL_CONF "version=OpenCL 1.1\n");
}
static void memory_in_use(void) {
    amd();
    machine_driver("amdocl64", "libamdocl64.so", AMD_CONF "free_kib=200000\n");
}
static void quota(void) {
    pocl();
    tree_put_text("/proc/self/cgroup", "0::/\n");
    tree_put_text("/sys/fs/cgroup/cpu.max", "50000 100000\n");
}
static void memory_limit(void) {
    pocl();
    tree_put_text("/proc/self/cgroup", "0::/\n");
    tree_put_text("/sys/fs/cgroup/memory.max", "1073741824\n");
    tree_put_text("/sys/fs/cgroup/memory.current", "805306368\n");
}
static void little_memory(void) {
    pocl();
    tree_put_text("/proc/meminfo", "MemTotal: 2097152 kB\nMemAvailable: 300000 kB\n");
}
static void no_shm(void) {
    pocl();
    tree_drop("/dev/shm");
}
static void cache_unwritable(void) {
    pocl();
    setenv("CLEAT_CACHE_DIR", "/dev/null/cache", 1);
}
static void pocl_cache_unwritable(void) {
    setenv("POCL_CACHE_DIR", "/dev/null/pocl", 1);
    pocl();
}
static void cache_noexec(void) {
    char text[256];
    pocl();
    snprintf(text, sizeof text,
             "22 1 0:1 / / rw,relatime - ext4 /dev/vda rw\n"
             "30 22 0:40 / %s/cache rw,nosuid,noexec - tmpfs tmpfs rw\n",
             tree_root);
    tree_put_text("/proc/self/mountinfo", text);
}
static void wsl(void) {
    pocl();
    tree_put_text("/dev/dxg", "");
}

static void laptop(void) {
    nvidia();
    machine_card("0000:00:02.0", "0x030000", "0x8086", "0x9a49", "i915", "renderD128");
}
static void stale_driver(void) {
    pocl();
    machine_icd("intel", "/usr/lib/intel-opencl/libigdrcl-gone.so\n");
}

/* --- running them ---------------------------------------------------------------------------------------------- */

typedef struct machine {
    const char *name;
    void (*make)(void);
    const char *code;   /* the expected fault; NULL: none */
    const char *word;   /* in its evidence; NULL: any */
    bool usable;        /* with --device auto */
    double seconds;     /* 0: 60, so a busy machine is not a fault */
    const char *device; /* NULL: auto */
    const char *run_folder;
    cleat_doctor_result severity; /* the fault's status; CLEAT_CHECK_OK: warn or fail */
    const char *command;          /* in its first command; NULL: any */
} machine;

#define MACHINE(its_name, its_make, its_code, its_word, is_usable, ...)                                                \
    { .name = its_name, .make = its_make, .code = its_code, .word = its_word, .usable = is_usable, __VA_ARGS__ }

/* Consequences of other faults, reported with them. */
static bool is_consequence(const char *code) {
    static const char *const codes[] = {"no-usable-device", "card-not-listed", "card-unusable"};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; ++i)
        if (strcmp(code, codes[i]) == 0) return true;
    return false;
}

static void print_piece(void *user, const char *text) {
    (void)user;
    print_message("%s", text);
}

static int complain(const cleat_doctor_report *report, const char *name, const char *what, const char *code) {
    print_message("machine '%s': %s %s\n", name, what, code ? code : "");
    cleat_doctor_write_text(report, print_piece, NULL, NULL);
    return 1;
}

static int count_other_faults(const cleat_doctor_report *report, const machine *m) {
    int faults = 0;
    for (size_t s = 0; s < report->count; ++s) {
        const cleat_doctor_subject *section = &report->sections[s];
        for (size_t c = 0; c < section->count; ++c) {
            const cleat_doctor_check *check = &section->checks[c];
            if (check->result > section->result && check->result != CLEAT_CHECK_SKIPPED)
                faults += complain(report, m->name, "a section does not fail with its check", check->code);
            if (check->result < CLEAT_CHECK_WARN || (m->code && is_consequence(check->code))) continue;
            if (!m->code || strcmp(check->code, m->code) != 0)
                faults += complain(report, m->name, "reported, but not there:", check->code);
        }
    }
    return faults;
}

static int check_fault(const cleat_doctor_report *report, const machine *m) {
    const cleat_doctor_check *check = cleat_doctor_find(report, m->code);
    if (!check) return complain(report, m->name, "not reported:", m->code);
    if (check->result < CLEAT_CHECK_WARN) return complain(report, m->name, "reported without severity:", m->code);
    if (m->severity && check->result != m->severity) return complain(report, m->name, "wrong severity:", m->code);
    if (!check->cause[0]) return complain(report, m->name, "no cause:", m->code);
    if (check->n_commands == 0 && !is_consequence(m->code)) return complain(report, m->name, "no command:", m->code);
    if (m->command && !strstr(check->commands[0], m->command))
        return complain(report, m->name, "command without", m->command);
    if (m->word && !strstr(check->evidence, m->word)) return complain(report, m->name, "evidence without", m->word);
    return 0;
}

/* Returns the number of the doctor's errors, not of the machine's faults. */
static int examine(const machine *m) {
    char runs[128];
    cleat_doctor_report *report = NULL;
    cleat_error error = {0};
    snprintf(runs, sizeof runs, "%s/runs", tree_root);
    const cleat_doctor_request request = {.root = tree_root,
                                          .device = m->device,
                                          .run_folder = m->run_folder ? m->run_folder : runs,
                                          .seconds = m->seconds > 0 ? m->seconds : 60};
    if (cleat_doctor_run(&request, &report, &error) != CLEAT_OK) {
        print_message("machine '%s': %s\n", m->name, error.text);
        return 1;
    }
    int faults = m->code ? check_fault(report, m) : 0;
    faults += count_other_faults(report, m);
    if (report->usable != m->usable) faults += complain(report, m->name, "usable:", report->usable ? "yes" : "no");
    if (!report->usable && report->result != CLEAT_CHECK_FAIL)
        faults += complain(report, m->name, "no usable device, but no failure", NULL);
    cleat_doctor_free(report);
    return faults;
}

static int examine_all(const machine *machines, size_t count) {
    int faults = 0;
    for (size_t i = 0; i < count; ++i) {
        machine_create();
        machines[i].make();
        faults += examine(&machines[i]);
        machine_remove();
    }
    return faults;
}
#define EXAMINE(machines) assert_int_equal(examine_all(machines, sizeof machines / sizeof machines[0]), 0)

static void no_alarm_on_healthy_machines(void **state) {
    static const machine machines[] = {
        {.name = "NVIDIA", .make = nvidia, .usable = true},
        {.name = "AMD with ROCm", .make = amd, .usable = true},
        {.name = "AMD with rusticl", .make = rusticl, .usable = true},
        {.name = "Intel", .make = intel, .usable = true},
        {.name = "PoCL only", .make = pocl, .usable = true},
        {.name = "Kaggle", .make = kaggle, .usable = true},
        {.name = "server", .make = server, .usable = true},
        {.name = "one of several .icd files", .make = one_icd_by_name, .usable = true},
    };
    (void)state;
    EXAMINE(machines);
}

static void faults_of_icd_files(void **state) {
    static const machine machines[] = {
        MACHINE("OCL_ICD_VENDORS=/nonexistent", nonexistent_vendors, "icd-folder-missing", "/nonexistent", false),
        MACHINE("no folder", no_vendors_folder, "icd-folder-missing", "/etc/OpenCL/vendors", false),
        MACHINE("empty folder", no_icd, "icd-none", "contains no .icd file", false),
        MACHINE("library missing", missing_library, "icd-library-missing", "libpocl-that-is-gone.so.2", false),
        MACHINE("no ELF file", no_elf, "icd-library-broken", "libpocl.so.2", false),
        MACHINE("missing symbol", missing_symbol, "icd-library-broken", "function_of_a_library_that_is_gone", false),
        MACHINE("no OpenCL", not_opencl, "icd-library-not-opencl", "libm", false),
        MACHINE("empty file", empty_icd, "icd-file-empty", "pocl.icd", false),
        MACHINE("a name that a shell would split", icd_of_two_words, "icd-file-empty", "two words; id.icd", false,
                .command = "/two words; id.icd'.off"),
    };
    (void)state;
    EXAMINE(machines);
}

static void faults_of_cards(void **state) {
    static const machine machines[] = {
        MACHINE("no kernel driver", no_kernel_driver, "kernel-driver-missing", "0000:00:04.0", true),
        MACHINE("nouveau", nouveau, "nouveau-bound", NULL, true),
        MACHINE("radeon", radeon, "radeon-bound", NULL, true),
        MACHINE("vfio", vfio, "reserved-for-guest", "vfio-pci", true),
        MACHINE("no render node", no_node, "node-missing", "/dev/dri/renderD128", false),
        MACHINE("no kfd", no_kfd, "node-missing", "/dev/kfd", false),
        MACHINE("no node in a container", no_node_in_container, "node-missing", NULL, true),
        MACHINE("NVIDIA's library without .icd", unregistered_nvidia, "nvidia-icd-missing", NULL, true),
        MACHINE("container without compute", nvidia_without_compute, "nvidia-icd-missing", NULL, true),
        MACHINE("AMD without driver", unregistered_amd, "amd-icd-missing", NULL, true),
        MACHINE("Intel without driver", unregistered_intel, "intel-icd-missing", NULL, true),
        MACHINE("version mismatch", other_version, "nvidia-version-mismatch", "550.90.07", true),
        MACHINE("second card not listed", second_card_not_listed, "card-not-listed", NULL, true),
        MACHINE("WSL", wsl, "wsl-no-opencl", "/dev/dxg", true),
    };
    (void)state;
    EXAMINE(machines);
}

/* A fault that does not affect the requested device is a warning. */
static void severity_follows_the_need(void **state) {
    static const machine machines[] = {
        MACHINE("card unused beside a CPU", unregistered_amd, "amd-icd-missing", NULL, true,
                .severity = CLEAT_CHECK_FAIL),
        MACHINE("card unused, CPU wanted", unregistered_amd, "amd-icd-missing", NULL, true,
                .severity = CLEAT_CHECK_WARN, .device = "cpu"),
        MACHINE("second GPU without driver", laptop, "intel-icd-missing", NULL, true, .severity = CLEAT_CHECK_WARN),
        MACHINE("driver left behind by a card", stale_driver, "icd-library-missing", NULL, true,
                .severity = CLEAT_CHECK_WARN),
        MACHINE("CPU's driver missing", missing_library, "icd-library-missing", NULL, false,
                .severity = CLEAT_CHECK_FAIL),
    };
    (void)state;
    EXAMINE(machines);
}

static void faults_of_drivers(void **state) {
    static const machine machines[] = {
        MACHINE("rusticl not enabled", rusticl_not_enabled, "rusticl-disabled", "RUSTICL_ENABLE", false),
        MACHINE("Clover", clover, "clover-no-device", "Clover", false),
        MACHINE("NVIDIA lists nothing", nvidia_lists_nothing, "driver-no-device", "NVIDIA CUDA", false),
        MACHINE("NVIDIA without platform", nvidia_no_platform, "driver-no-platform", NULL, false),
        MACHINE("PoCL lists nothing", pocl_without_device, "driver-no-device", NULL, false),
        MACHINE("OpenCL 1.1", old_opencl, "device-refused", "OpenCL 1.2 is required", false),
        MACHINE("hangs", hangs, "driver-hangs", "no answer within", false, .seconds = 2),
        MACHINE("crashes", crashes, "driver-crashes", "libother.so", false),
        MACHINE("calls exit", ends_the_process, "driver-crashes", "libother.so", false),
        MACHINE("crashes beside others", crashes_beside_others, "drivers-together-fail", NULL, false),
    };
    (void)state;
    EXAMINE(machines);
}

static void faults_of_devices(void **state) {
    static const machine machines[] = {
        MACHINE("wrong number", computes_wrongly, "device-wrong-result", "1 of 4096 results are wrong", false),
        MACHINE("kernel hangs", kernel_hangs, "device-hangs", "running a kernel", false, .seconds = 2),
        MACHINE("kernel crashes", kernel_crashes, "device-crashes", "running a kernel", false),
        MACHINE("does not build", does_not_build, "device-build-fails", "no libclc", false),
        MACHINE("unknown processor", unknown_processor, "pocl-processor-unknown",
                "PoCL 1.8 is built with LLVM 11.1.0, which does not support this processor", false),
        MACHINE("does not open", does_not_open, "device-open-fails", "CL_OUT_OF_HOST_MEMORY", false),
        MACHINE("memory in use", memory_in_use, "device-memory-low", "195.31 MiB", true),
    };
    (void)state;
    EXAMINE(machines);
}

static void faults_of_the_host(void **state) {
    static const machine machines[] = {
        MACHINE("CPU quota", quota, "cpu-quota", "0.5", true),
        MACHINE("memory limit", memory_limit, "memory-limit", "256.00 MiB", true),
        MACHINE("little memory", little_memory, "host-memory-low", NULL, true),
        MACHINE("no /dev/shm", no_shm, "shm-missing", NULL, true),
        MACHINE("cache unwritable", cache_unwritable, "cache-unwritable", "/dev/null", true),
        MACHINE("PoCL's cache unwritable", pocl_cache_unwritable, "pocl-cache-unwritable", "/dev/null/pocl", true),
        MACHINE("cache noexec", cache_noexec, "cache-noexec", "noexec", true),
        {"run folder unwritable", pocl, "run-folder-unwritable", "/dev/null/runs", true,
         .run_folder = "/dev/null/runs"},
    };
    (void)state;
    EXAMINE(machines);
}

static void the_device_wanted_decides(void **state) {
    static const machine machines[] = {
        MACHINE("no GPU", pocl, "no-usable-device", "--device gpu", false, .device = "gpu"),
        MACHINE("no CPU", nvidia, "no-usable-device", "--device cpu", false, .device = "cpu"),
        MACHINE("no such name", pocl, "no-usable-device", "no device has this name", false, .device = "Radeon"),
        MACHINE("a CPU wanted", pocl, NULL, NULL, true, .device = "cpu"),
    };
    (void)state;
    EXAMINE(machines);
}

/* --- permissions: as a user who is not root -------------------------------------------------------------------- */

enum { NOBODY = 65534, SKIPPED = 77 };

/* Runs a machine in a child that drops root privileges; returns its number of errors. */
static int examine_as_nobody(const machine *m) {
    int code = 1;
    pid_t pid = fork();
    if (pid == 0) {
        if (geteuid() == 0 && (setresgid(NOBODY, NOBODY, NOBODY) != 0 || setresuid(NOBODY, NOBODY, NOBODY) != 0))
            _exit(SKIPPED);
        _exit(examine(m) > 0);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &code, 0), pid);
    assert_true(WIFEXITED(code));
    return WEXITSTATUS(code);
}

static void change_mode(const char *path, mode_t mode, gid_t group) {
    char whole[256];
    snprintf(whole, sizeof whole, "%s%s", tree_root, path);
    if (geteuid() == 0) assert_int_equal(chown(whole, 0, group), 0);
    assert_int_equal(chmod(whole, mode), 0);
}

static void make_private_node(void) {
    intel_card();
    machine_driver("intel", "libigdrcl.so", "fault=no-platform\n");
    pocl();
}

/* Creates the folders that a user other than root writes to. */
static void open_folders(void) {
    static const char *const folders[] = {"/runs", "/cache", "/dev/shm"};
    for (int i = 0; i < 3; ++i) {
        tree_folder(folders[i]);
        change_mode(folders[i], 0777, 0);
    }
}

static void node_of_a_group(void **state) {
    static const machine m = {.name = "group missing", .code = "group-missing", .word = "group render", .usable = true};
    (void)state;
    if (geteuid() != 0) skip();
    machine_create();
    make_private_node();
    open_folders();
    change_mode("/dev/dri/renderD128", 0660, 105);
    assert_int_equal(examine_as_nobody(&m), 0);
    machine_remove();
}

static void node_of_nobody(void **state) {
    static const machine m = {.name = "unreadable node", .code = "node-permission", .word = "mode 000", .usable = true};
    (void)state;
    machine_create();
    make_private_node();
    open_folders();
    change_mode("/dev/dri/renderD128", 0, 0);
    assert_int_equal(examine_as_nobody(&m), 0);
    machine_remove();
}

static void icd_of_nobody(void **state) {
    static const machine m = {
        .name = "unreadable ICD file", .code = "icd-file-unreadable", .word = "other.icd", .usable = true};
    (void)state;
    machine_create();
    pocl();
    machine_driver("other", "libother.so", POCL_CONF);
    open_folders();
    change_mode("/etc/OpenCL/vendors/other.icd", 0, 0);
    assert_int_equal(examine_as_nobody(&m), 0);
    machine_remove();
}

/* Runs a machine in a child whose cache folder is on a file system of 1 MiB. */
static void cache_full(void **state) {
    static const machine m = {.name = "cache full", .code = "cache-full", .word = "free", .usable = true};
    char path[128];
    int code = 1;
    (void)state;
    machine_create();
    pocl();
    snprintf(path, sizeof path, "%s/cache", tree_root);
    pid_t pid = fork();
    if (pid == 0) {
        if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
            mount("tmpfs", path, "tmpfs", 0, "size=1m") != 0)
            _exit(SKIPPED);
        _exit(examine(&m) > 0);
    }
    assert_int_equal(waitpid(pid, &code, 0), pid);
    machine_remove();
    assert_true(WIFEXITED(code));
    if (WEXITSTATUS(code) == SKIPPED) skip();
    assert_int_equal(WEXITSTATUS(code), 0);
}

/* --- commands -------------------------------------------------------------------------------------------------- */

static void commands_are_for_the_distribution(void **state) {
    static const struct {
        const char *release, *command;
    } rows[] = {{"ID=debian\n", "apt-get install pocl-opencl-icd"},
                {"ID=ubuntu\nID_LIKE=debian\n", "apt-get install pocl-opencl-icd"},
                {"ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", "apt-get install pocl-opencl-icd"},
                {"ID=fedora\n", "dnf install pocl"},
                {"ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", "dnf install pocl"},
                {"ID=arch\n", "pacman -S pocl"},
                {"ID=nixos\n", "https://portablecl.org"},
                {"ID=windows\n", "install the current graphics driver"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        cleat_doctor_report *report = NULL;
        machine_create();
        tree_put_text("/etc/os-release", rows[i].release);
        const cleat_doctor_request request = {.root = tree_root};
        assert_int_equal(cleat_doctor_run(&request, &report, NULL), CLEAT_OK);
        const cleat_doctor_check *check = cleat_doctor_find(report, "icd-none");
        assert_non_null(check);
        /* the result does not repeat the command of the fault that explains it */
        assert_int_equal(cleat_doctor_find(report, "no-usable-device")->n_commands, 0);
        if (!strstr(check->commands[0], rows[i].command)) fail_msg("'%s' for %s", check->commands[0], rows[i].release);
        cleat_doctor_free(report);
        machine_remove();
    }
}

/* Every row of the table, on every distribution, has a cause, and texts without placeholders. */
static void rows_of_the_table_are_complete(void **state) {
    (void)state;
    for (size_t row = 0; row < cleat_fault_count(); ++row)
        for (int d = DISTRIBUTION_DEBIAN; d <= DISTRIBUTION_OTHER; d *= 2) {
            const cleat_system system = {.distribution = (cleat_distribution)d};
            cleat_doctor_check check = {.result = CLEAT_CHECK_OK};
            snprintf(check.code, sizeof check.code, "%s", cleat_fault_code(row));
            cleat_fault_describe(&system, NULL, "ARGUMENT", &check);
            assert_true(check.result >= CLEAT_CHECK_WARN);
            assert_true(check.cause[0]);
            if (check.n_commands == 0 && !is_consequence(check.code)) fail_msg("%s: no command on %d", check.code, d);
            if (strchr(check.cause, '{')) fail_msg("%s: %s", check.code, check.cause);
            for (size_t i = 0; i < check.n_commands; ++i)
                if (strchr(check.commands[i], '{')) fail_msg("%s: %s", check.code, check.commands[i]);
        }
}

static void append_piece(void *user, const char *text) {
    char *whole = user;
    strncat(whole, text, 65535 - strlen(whole));
}

static void the_report_is_json(void **state) {
    static char text[65536];
    cleat_doctor_report *report = NULL;
    (void)state;
    machine_create();
    does_not_build();
    const cleat_doctor_request request = {.root = tree_root, .seconds = 60};
    assert_int_equal(cleat_doctor_run(&request, &report, NULL), CLEAT_OK);
    assert_int_equal(cleat_doctor_write_json(report, append_piece, text, NULL), CLEAT_OK);
    cJSON *json = cJSON_Parse(text);
    assert_non_null(json);
    assert_string_equal(cJSON_GetObjectItem(json, "result")->valuestring, "fail");
    assert_true(cJSON_IsFalse(cJSON_GetObjectItem(json, "usable")));
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(json, "device")));
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "sections")), report->count);
    const cJSON *devices = cJSON_GetObjectItem(json, "devices");
    assert_int_equal(cJSON_GetArraySize(devices), 1);
    assert_non_null(
        strstr(cJSON_GetObjectItem(cJSON_GetArrayItem(devices, 0), "failure")->valuestring, "device-build-fails"));
    cJSON_Delete(json);
    cleat_doctor_free(report);
    machine_remove();
}

static void checks_of_the_caller_count(void **state) {
    cleat_doctor_report *report = NULL;
    cleat_doctor_check check = {.code = "profile-does-not-fit", .result = CLEAT_CHECK_FAIL};
    (void)state;
    machine_create();
    pocl();
    char runs[128];
    snprintf(runs, sizeof runs, "%s/runs", tree_root);
    const cleat_doctor_request request = {.root = tree_root, .run_folder = runs, .seconds = 60};
    assert_int_equal(cleat_doctor_run(&request, &report, NULL), CLEAT_OK);
    assert_int_equal(report->result, CLEAT_CHECK_OK);
    assert_true(report->n_devices > 0);
    assert_string_equal(report->devices[report->device_index].facts.name, report->device.name);
    assert_string_equal(report->devices[report->device_index].failure, "");
    assert_int_equal(cleat_doctor_add(report, "profile", "profile x.ini", &check, NULL), CLEAT_OK);
    assert_int_equal(report->result, CLEAT_CHECK_FAIL);
    assert_ptr_equal(cleat_doctor_find(report, "profile-does-not-fit"), report->sections[report->count - 1].checks);
    cleat_doctor_free(report);
    machine_remove();
}

/* An MPI plug-in that does not load is a fault; a missing one is not. */
static void a_broken_mpi_plugin_is_named(void **state) {
    cleat_doctor_report *report = NULL;
    (void)state;
    machine_create();
    pocl();
    const cleat_doctor_request request = {.root = tree_root, .seconds = 60};
    setenv("CLEAT_RANKS_LIBRARY", CLEAT_BROKEN_DRIVER, 1);
    assert_int_equal(cleat_doctor_run(&request, &report, NULL), CLEAT_OK);
    const cleat_doctor_check *check = cleat_doctor_find(report, "mpi-plugin-broken");
    assert_non_null(check);
    assert_int_equal(check->result, CLEAT_CHECK_WARN);
    assert_non_null(strstr(check->commands[0], CLEAT_BROKEN_DRIVER));
    cleat_doctor_free(report);
    unsetenv("CLEAT_RANKS_LIBRARY");
    assert_int_equal(cleat_doctor_run(&request, &report, NULL), CLEAT_OK);
    assert_null(cleat_doctor_find(report, "mpi-plugin-broken"));
    assert_non_null(cleat_doctor_find(report, "mpi"));
    cleat_doctor_free(report);
    machine_remove();
}

static void advice_is_for_the_distribution(void **state) {
    cleat_doctor_check check;
    (void)state;
    machine_create();
    tree_put_text("/etc/os-release", "ID=fedora\n");
    setenv("CLEAT_SYSTEM_ROOT", tree_root, 1);
    cleat_doctor_describe("mpi-launcher-missing", &check);
    unsetenv("CLEAT_SYSTEM_ROOT");
    machine_remove();
    assert_string_equal(check.code, "mpi-launcher-missing");
    assert_true(check.cause[0]);
    assert_int_equal(check.n_commands, 1);
    assert_non_null(strstr(check.commands[0], "dnf install openmpi"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_alarm_on_healthy_machines),
        cmocka_unit_test(faults_of_icd_files),
        cmocka_unit_test(faults_of_cards),
        cmocka_unit_test(severity_follows_the_need),
        cmocka_unit_test(faults_of_drivers),
        cmocka_unit_test(faults_of_devices),
        cmocka_unit_test(faults_of_the_host),
        cmocka_unit_test(the_device_wanted_decides),
        cmocka_unit_test(node_of_a_group),
        cmocka_unit_test(node_of_nobody),
        cmocka_unit_test(icd_of_nobody),
        cmocka_unit_test(cache_full),
        cmocka_unit_test(commands_are_for_the_distribution),
        cmocka_unit_test(rows_of_the_table_are_complete),
        cmocka_unit_test(the_report_is_json),
        cmocka_unit_test(checks_of_the_caller_count),
        cmocka_unit_test(a_broken_mpi_plugin_is_named),
        cmocka_unit_test(advice_is_for_the_distribution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
