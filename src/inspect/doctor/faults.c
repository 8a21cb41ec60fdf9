/* The table of faults: severity, cause, and the commands that remove it on each distribution. */
#include "core/shell.h"
#include "doctor/doctor.h"
#include "platform/files.h"

#include <stdio.h>
#include <string.h>

typedef struct fault {
    const char *code, *variant; /* variant NULL: for all situations without a row */
    cleat_doctor_result result;
    const char *cause;
    /* Lines for all distributions of Linux; "debian: COMMAND" is for one, "apt: COMMAND" for Debian and Ubuntu,
     * "windows: COMMAND" for Windows alone, "any: COMMAND" for all systems. */
    const char *commands;
} fault;

/* In causes and commands, {} is the argument, and {sudo} "sudo " unless the user is root. */
#define INSTALL_NVIDIA                                                                                                 \
    "debian: {sudo}apt-get install nvidia-driver nvidia-opencl-icd  # from the archive areas contrib and non-free\n"   \
    "ubuntu: {sudo}ubuntu-drivers install\n"                                                                           \
    "fedora: {sudo}dnf install akmod-nvidia xorg-x11-drv-nvidia-cuda  # from RPM Fusion\n"                             \
    "arch: {sudo}pacman -S nvidia opencl-nvidia\n"                                                                     \
    "other: install NVIDIA's driver: https://www.nvidia.com/en-us/drivers/unix/\n"
#define UPDATE_DRIVER "windows: install the current graphics driver of the card's maker, which brings OpenCL\n"
#define USE_CONSOLE                                                                                                    \
    "windows: in a session of Remote Desktop, which may hide the card: start cleat at the machine "                    \
    "itself\n" UPDATE_DRIVER
#define INSTALL_CPU "windows: for training on the CPU, install the Intel CPU Runtime for OpenCL Applications\n"
/* Mesa's rusticl, as of 2026: in mesa-opencl-icd of Debian, and of Ubuntu from 24.04 on. Debian 13 dropped Intel's
 * runtime. */
#define INSTALL_AMD                                                                                                    \
    "debian: {sudo}apt-get install mesa-opencl-icd && export RUSTICL_ENABLE=radeonsi  # Debian 13: or "                \
    "rocm-opencl-icd\n"                                                                                                \
    "ubuntu: {sudo}apt-get install mesa-opencl-icd && export RUSTICL_ENABLE=radeonsi  # Ubuntu 24.04 or later\n"       \
    "ubuntu: install rocm-opencl-runtime from AMD's repository: https://rocm.docs.amd.com\n"                           \
    "fedora: {sudo}dnf install rocm-opencl\n"                                                                          \
    "arch: {sudo}pacman -S rocm-opencl-runtime\n"                                                                      \
    "other: install AMD's OpenCL runtime: https://rocm.docs.amd.com\n"                                                 \
    "windows: install AMD's graphics driver: https://www.amd.com/en/support\n"
#define APT_INTEL                                                                                                      \
    "debian: {sudo}apt-get install intel-opencl-icd  # Debian 12 only\n"                                               \
    "debian: {sudo}apt-get install mesa-opencl-icd && export RUSTICL_ENABLE=iris  # Debian 13 or later\n"              \
    "ubuntu: {sudo}apt-get install intel-opencl-icd\n"
#define INSTALL_INTEL                                                                                                  \
    APT_INTEL                                                                                                          \
    "fedora: {sudo}dnf install intel-compute-runtime\n"                                                                \
    "arch: {sudo}pacman -S intel-compute-runtime\n"                                                                    \
    "other: install Intel's runtime: https://github.com/intel/compute-runtime/releases\n"                              \
    "windows: install Intel's graphics driver: https://www.intel.com/content/www/us/en/support/detect.html\n"
#define INSTALL_POCL                                                                                                   \
    "apt: {sudo}apt-get install pocl-opencl-icd\n"                                                                     \
    "fedora: {sudo}dnf install pocl\n"                                                                                 \
    "arch: {sudo}pacman -S pocl\n"                                                                                     \
    "other: install PoCL, OpenCL for the CPU: https://portablecl.org\n" UPDATE_DRIVER INSTALL_CPU
#define SEE_RESETS                                                                                                     \
    "{sudo}dmesg | tail -n 50\n"                                                                                       \
    "windows: Event Viewer, Windows Logs, System, source Display: shows whether Windows has reset the driver\n"        \
    "any: choose another device: cleat train --device NAME\n"
#define NEW_WINDOW "windows: open a new terminal, which has this variable\n"
#define DISABLE_ICD "{sudo}mv {} {}.off  # the OpenCL loader then ignores the driver\n" UPDATE_DRIVER
#define REINSTALL                                                                                                      \
    "apt: dpkg -S {}  # prints the package of the file: reinstall it\n"                                                \
    "fedora: rpm -qf {}  # prints the package of the file: reinstall it\n"                                             \
    "arch: pacman -Qo {}  # prints the package of the file: reinstall it\n"

static const fault faults[] = {
    /* --- cards --- */
    {"kernel-driver-missing", "nvidia", CLEAT_CHECK_FAIL,
     "No kernel driver is bound to the card: it is not installed, not built for this kernel, or not loaded.",
     INSTALL_NVIDIA "{sudo}modprobe nvidia  # dmesg shows why it is refused, for example by Secure Boot\n"},
    {"kernel-driver-missing", "amd", CLEAT_CHECK_FAIL,
     "No kernel driver is bound to the card: amdgpu is not loaded, or its firmware is missing.",
     "{sudo}modprobe amdgpu\n"
     "debian: {sudo}apt-get install firmware-amd-graphics  # from the archive area non-free-firmware\n"
     "{sudo}dmesg | grep amdgpu\n"},
    {"kernel-driver-missing", "intel", CLEAT_CHECK_FAIL,
     "No kernel driver is bound to the card: i915 or xe is not loaded, or the kernel is older than the card.",
     "{sudo}modprobe i915  # Arc B and later: xe, from Linux 6.12 on\n"
     "{sudo}dmesg | grep -E 'i915|xe'\n"},
    {"nouveau-bound", NULL, CLEAT_CHECK_FAIL,
     "The kernel driver nouveau is bound to the card. NVIDIA's OpenCL works only with NVIDIA's own kernel driver.",
     INSTALL_NVIDIA "{sudo}reboot\n"},
    {"radeon-bound", NULL, CLEAT_CHECK_FAIL,
     "The old kernel driver radeon is bound to the card. OpenCL 1.2 needs amdgpu, which serves cards from GCN 1 on.",
     "add radeon.si_support=0 radeon.cik_support=0 amdgpu.si_support=1 amdgpu.cik_support=1 to the kernel command "
     "line, then reboot\n"},
    {"reserved-for-guest", NULL, CLEAT_CHECK_WARN,
     "The card is bound to {}, which reserves it for a virtual machine; no program of this system can use it.",
     "use cleat inside the virtual machine, or unbind the card from {}\n"},
    {"node-missing", NULL, CLEAT_CHECK_FAIL,
     "The kernel driver is bound, but the device node through which programs reach the card does not exist.",
     "{sudo}modprobe {}\n"
     "{sudo}dmesg | tail -n 50\n"},
    {"node-missing", "nvidia", CLEAT_CHECK_FAIL,
     "The kernel driver is bound, but the device node through which programs reach the card does not exist.",
     "{sudo}nvidia-modprobe -u -c=0\n"
     "nvidia-smi\n"},
    {"node-missing", "container", CLEAT_CHECK_FAIL,
     "The card's device node is missing in this container: the container was started without the card.",
     "start the container with --device /dev/dri (and --device /dev/kfd for ROCm)\n"},
    {"node-missing", "nvidia-container", CLEAT_CHECK_FAIL,
     "The card's device node is missing in this container: the container was started without the card.",
     "start the container with --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility\n"},
    {"group-missing", NULL, CLEAT_CHECK_FAIL,
     "Only members of the group {} may open the device node, and this user is not a member.",
     "{sudo}usermod -aG {} $(id -un)  # then log out and in again\n"},
    {"group-not-active", NULL, CLEAT_CHECK_FAIL,
     "This user was added to the group {}, but this session started before that.",
     "log out and in again, or: newgrp {}\n"},
    {"node-permission", NULL, CLEAT_CHECK_FAIL, "This user may not open the device node.",
     "ls -l {}; id\n"
     "{sudo}chmod a+rw {}  # until the next start; udev rules make it permanent\n"},
    {"nvidia-icd-missing", NULL, CLEAT_CHECK_FAIL, "NVIDIA's OpenCL library is not registered, and it was not found.",
     "debian: {sudo}apt-get install nvidia-opencl-icd  # from the archive area non-free\n"
     "ubuntu: {sudo}apt-get install libnvidia-compute-$(modinfo -F version nvidia | cut -d. -f1)\n"
     "fedora: {sudo}dnf install xorg-x11-drv-nvidia-cuda  # from RPM Fusion\n"
     "arch: {sudo}pacman -S opencl-nvidia\n"
     "other: install NVIDIA's driver with its OpenCL library\n"
     "windows: install NVIDIA's graphics driver: https://www.nvidia.com/en-us/drivers/\n"},
    {"nvidia-icd-missing", "container", CLEAT_CHECK_FAIL,
     "NVIDIA's OpenCL library is neither registered nor present in this container: the container toolkit adds it "
     "only if NVIDIA_DRIVER_CAPABILITIES includes compute.",
     "start the container with --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility\n"
     "mkdir -p /etc/OpenCL/vendors && echo libnvidia-opencl.so.1 > /etc/OpenCL/vendors/nvidia.icd\n"},
    {"nvidia-icd-missing", "library", CLEAT_CHECK_FAIL,
     "NVIDIA's OpenCL library is present, but no .icd file names it, so the OpenCL loader does not find it.",
     "{sudo}mkdir -p {}\n"
     "echo libnvidia-opencl.so.1 | {sudo}tee {}/nvidia.icd\n"},
    {"amd-icd-missing", NULL, CLEAT_CHECK_FAIL, "No OpenCL driver for AMD cards is registered.", INSTALL_AMD},
    {"intel-icd-missing", NULL, CLEAT_CHECK_FAIL, "No OpenCL driver for Intel GPUs is registered.", INSTALL_INTEL},
    {"nvidia-version-mismatch", NULL, CLEAT_CHECK_FAIL,
     "The kernel driver and the library have different versions, for example after an update without a reboot; the "
     "library refuses to work.",
     "{sudo}reboot\n"},
    {"card-not-listed", NULL, CLEAT_CHECK_FAIL,
     "The card's driver is registered, but OpenCL does not list this card; {}.", "clinfo -l\n" USE_CONSOLE},
    {"card-not-listed", "intel", CLEAT_CHECK_FAIL,
     "Intel's driver is registered, but OpenCL does not list this card; {}. Intel's current runtime supports GPUs "
     "from Tiger Lake (2020) on, and its releases before 24.35 support GPUs from Broadwell (2014) on. Older GPUs "
     "need Intel's legacy runtime.",
     "clinfo -l\n" APT_INTEL USE_CONSOLE},
    {"card-unusable", NULL, CLEAT_CHECK_FAIL, "OpenCL lists the card, but it does not compute correctly: {}.", ""},
    {"wsl-no-opencl", NULL, CLEAT_CHECK_WARN,
     "WSL passes the card through as /dev/dxg, for which NVIDIA and AMD ship no OpenCL driver; Intel's runtime has "
     "one.",
     "debian: {sudo}apt-get install intel-opencl-icd  # Intel GPUs; not in Debian 13\n"
     "ubuntu: {sudo}apt-get install intel-opencl-icd  # Intel GPUs\n" INSTALL_POCL},
    /* --- drivers --- */
    {"icd-folder-missing", NULL, CLEAT_CHECK_FAIL,
     "The folder in which the OpenCL loader looks for drivers does not exist: no driver is installed.", INSTALL_POCL},
    {"icd-folder-missing", "variable", CLEAT_CHECK_FAIL,
     "The variable {} names a path that does not exist, so the OpenCL loader finds no driver.",
     "unset {}\n" INSTALL_POCL},
    {"icd-none", NULL, CLEAT_CHECK_FAIL, "In {} no driver is registered, so the OpenCL loader finds none.",
     INSTALL_POCL},
    {"icd-file-empty", NULL, CLEAT_CHECK_FAIL,
     "The first line of an .icd file names the driver's library; {} has none.", DISABLE_ICD},
    {"icd-file-unreadable", NULL, CLEAT_CHECK_FAIL, "This user may not read {}.", "{sudo}chmod a+r {}\n"},
    {"icd-library-missing", NULL, CLEAT_CHECK_FAIL,
     "The library that is registered is not installed, or is in no folder that is searched for libraries.",
     REINSTALL DISABLE_ICD},
    {"icd-library-broken", NULL, CLEAT_CHECK_FAIL,
     "The library exists, but cannot be loaded: it is damaged, or a library that it needs is missing or has another "
     "version.",
     REINSTALL DISABLE_ICD},
    {"icd-library-not-opencl", NULL, CLEAT_CHECK_FAIL,
     "The library is not an OpenCL driver: it has no clGetExtensionFunctionAddress.", DISABLE_ICD},
    {"driver-hangs", NULL, CLEAT_CHECK_FAIL,
     "The driver does not answer when it is asked for its devices. Every OpenCL program, including cleat, waits for "
     "it. On a very busy machine, repeat with --seconds 60.",
     DISABLE_ICD "{sudo}dmesg | tail -n 50\n"},
    {"driver-crashes", NULL, CLEAT_CHECK_FAIL,
     "The driver crashes when it is asked for its devices. Every OpenCL program that uses it crashes too, including "
     "cleat.",
     DISABLE_ICD},
    {"driver-no-platform", NULL, CLEAT_CHECK_FAIL, "The library loads, but offers no OpenCL platform.", DISABLE_ICD},
    {"driver-no-device", NULL, CLEAT_CHECK_FAIL, "The driver loads, but lists no device.", "clinfo -l\n" USE_CONSOLE},
    {"rusticl-disabled", NULL, CLEAT_CHECK_FAIL,
     "Mesa's rusticl lists devices only for the drivers that RUSTICL_ENABLE names, and this variable is not set.",
     "export RUSTICL_ENABLE={}\n"},
    {"clover-no-device", NULL, CLEAT_CHECK_FAIL,
     "Mesa's Clover lists no device; it is no longer developed and supports no current card.", INSTALL_AMD},
    {"device-refused", NULL, CLEAT_CHECK_FAIL, "The driver lists a device that cleat cannot use.",
     "clinfo\n" UPDATE_DRIVER},
    {"drivers-together-fail", NULL, CLEAT_CHECK_FAIL,
     "Each driver works alone, but listing the devices of all drivers fails: two drivers conflict.",
     "mkdir -p ~/icd && cp {}/NAME.icd ~/icd && export OCL_ICD_VENDORS=~/icd  # NAME: the driver to "
     "keep\n" UPDATE_DRIVER},
    /* --- devices --- */
    {"device-open-fails", NULL, CLEAT_CHECK_FAIL, "The driver lists the device, but cannot open it.",
     "clinfo\n" USE_CONSOLE},
    {"device-build-fails", NULL, CLEAT_CHECK_FAIL,
     "The driver cannot compile a kernel of a few lines, so it cannot compile cleat's kernels either.",
     "clinfo\n" UPDATE_DRIVER},
    {"device-build-fails", "amd", CLEAT_CHECK_FAIL,
     "The driver cannot compile a kernel of a few lines, so it cannot compile cleat's kernels either. Parts of its "
     "compiler may be missing.",
     "apt: {sudo}apt-get install --reinstall mesa-opencl-icd libclc-15  # for Mesa's drivers\n" UPDATE_DRIVER},
    {"pocl-processor-unknown", NULL, CLEAT_CHECK_FAIL,
     "PoCL's compiler (LLVM) does not support this processor: it is newer than LLVM, or a virtual machine hides its "
     "model. A newer PoCL comes with a newer release of the distribution; without one, Intel's OpenCL runtime for "
     "CPUs serves processors of Intel and AMD.",
     "python3 -m venv ~/intel-cpu && ~/intel-cpu/bin/pip install intel-opencl-rt intel-cmplr-lib-rt\n"
     "export OCL_ICD_FILENAMES=~/intel-cpu/lib/libintelocl.so LD_LIBRARY_PATH=~/intel-cpu/lib\n"
     "apt: upgrade to Debian 12, Ubuntu 24.04 or later, whose PoCL is newer\n"
     "in a virtual machine: expose the host's processor to the guest (QEMU: -cpu host)\n" INSTALL_CPU},
    {"device-wrong-result", NULL, CLEAT_CHECK_FAIL,
     "A kernel of three operations gives a wrong result. Training on this device would give wrong results too.",
     "any: update the driver, or choose another device: cleat train --device NAME\n"},
    {"device-hangs", NULL, CLEAT_CHECK_FAIL,
     "The device did not finish a small kernel in time. On a very busy machine, repeat with --seconds 60.", SEE_RESETS},
    {"device-crashes", NULL, CLEAT_CHECK_FAIL, "The driver crashed while it ran a small kernel.", SEE_RESETS},
    {"device-memory-low", NULL, CLEAT_CHECK_WARN,
     "Little of the device's memory is free because other programs use it; micro-batches will be small.",
     "nvidia-smi  # or nvtop, radeontop: shows which program uses it\n"
     "windows: Task Manager, Details, column 'Dedicated GPU memory': shows which program uses it\n"},
    /* --- host --- */
    {"cpu-quota", NULL, CLEAT_CHECK_WARN,
     "A control group limits the CPU time below the number of CPUs that programs see; additional threads only wait.",
     "more CPU time for a container: docker update --cpus=N CONTAINER; a service: systemctl set-property\n"},
    {"memory-limit", NULL, CLEAT_CHECK_WARN,
     "The limit of a control group leaves little memory; the kernel kills a process that exceeds the limit.",
     "more memory for a container: docker update --memory=8g --memory-swap=8g CONTAINER\n"},
    {"host-memory-low", NULL, CLEAT_CHECK_WARN,
     "Little host memory is free; it must hold the data and, for training on a CPU, the whole model.",
     "ps aux --sort=-rss | head\n"
     "windows: Task Manager, Details, column 'Memory': shows which program uses it\n"},
    {"shm-missing", NULL, CLEAT_CHECK_WARN,
     "/dev/shm is not writable; programs that consist of several processes (MPI) need it.",
     "{sudo}mount -t tmpfs tmpfs /dev/shm  # a container: --shm-size=1g\n"},
    {"mpi-launcher-missing", NULL, CLEAT_CHECK_WARN,
     "Training on several devices starts one process for each with Open MPI's mpirun, and there is none in PATH.",
     "apt: {sudo}apt-get install openmpi-bin\n"
     "fedora: {sudo}dnf install openmpi && module load mpi/openmpi-x86_64\n"
     "arch: {sudo}pacman -S openmpi\n"
     "other: install Open MPI: https://www.open-mpi.org\n"},
    {"mpi-plugin-missing", NULL, CLEAT_CHECK_WARN,
     "Training on several devices needs cleat's plug-in libcleat-mpi.so, which is built where the headers of MPI are "
     "installed.",
     "apt: {sudo}apt-get install libopenmpi-dev  # then configure and build cleat again, or install cleat-mpi\n"
     "fedora: {sudo}dnf install openmpi-devel  # then configure and build cleat again\n"
     "arch: {sudo}pacman -S openmpi  # then configure and build cleat again\n"
     "other: install Open MPI with its headers, then configure and build cleat again\n"},
    {"mpi-plugin-broken", NULL, CLEAT_CHECK_WARN,
     "Training on several devices needs cleat's plug-in libcleat-mpi.so, but the dynamic linker cannot load it: the "
     "MPI that it was built with is missing or has another version.",
     "ldd {}\n"
     "apt: {sudo}apt-get install openmpi-bin libopenmpi-dev  # then configure and build cleat again\n"
     "unset CLEAT_RANKS_LIBRARY  # if it names another plug-in\n"},
    {"cache-unwritable", NULL, CLEAT_CHECK_WARN,
     "The cache folder cannot be written: at each start, kernels are compiled and the device is measured and checked "
     "again.",
     "export CLEAT_CACHE_DIR=/a/folder/you/can/write\n"
     "windows: setx CLEAT_CACHE_DIR D:\\a\\folder\\you\\can\\write\n" NEW_WINDOW},
    {"cache-full", NULL, CLEAT_CHECK_WARN,
     "The file system of the cache folder is full: kernels, measured speeds and results of checks cannot be stored.",
     "df -h {}\n"
     "export CLEAT_CACHE_DIR=/a/folder/with/space\n"
     "windows: setx CLEAT_CACHE_DIR D:\\a\\folder\\with\\space\n" NEW_WINDOW},
    {"pocl-cache-unwritable", NULL, CLEAT_CHECK_WARN,
     "PoCL cannot write to its cache folder, and then lists no device: the CPU cannot be used.",
     "export POCL_CACHE_DIR=/a/folder/you/can/write\n"},
    {"cache-noexec", NULL, CLEAT_CHECK_WARN,
     "The file system does not allow programs (noexec), but PoCL loads its compiled kernels from its cache as "
     "libraries.",
     "export POCL_CACHE_DIR=/a/folder/without/noexec\n"},
    {"run-folder-unwritable", NULL, CLEAT_CHECK_WARN, "A run cannot write its checkpoints there.",
     "any: cleat train ... --out ANOTHER_FOLDER\n"},
    {"run-folder-full", NULL, CLEAT_CHECK_WARN, "Little disk space is left for checkpoints.",
     "df -h {}\n"
     "any: cleat train ... --out FOLDER_ON_ANOTHER_DISK\n"},
    /* --- result --- */
    {"no-usable-device", NULL, CLEAT_CHECK_FAIL, "cleat cannot train here: {}.", INSTALL_POCL},
    {"no-usable-device", "explained", CLEAT_CHECK_FAIL,
     "cleat cannot train here: {}. The failed checks above list commands that help.", ""},
    {"no-usable-device", "wanted", CLEAT_CHECK_FAIL, "cleat cannot train on the requested device: {}.",
     "any: cleat devices\n"},
};
enum { N_FAULTS = sizeof faults / sizeof faults[0] };

size_t cleat_fault_count(void) {
    return N_FAULTS;
}

const char *cleat_fault_code(size_t row) {
    return faults[row].code;
}

static const fault *find_fault(const char *code, const char *variant) {
    const fault *common = NULL;
    for (size_t i = 0; i < N_FAULTS; ++i) {
        if (strcmp(faults[i].code, code) != 0) continue;
        if (variant && faults[i].variant && strcmp(faults[i].variant, variant) == 0) return &faults[i];
        if (!faults[i].variant || !common) common = &faults[i];
    }
    return common;
}

/* Copies a template [length]; {} becomes the argument, {sudo} "sudo " where it is needed. */
static void expand(const char *template, size_t length, const char *argument, char *text, size_t size) {
    const char *end = template + length;
    size_t used = 0;
    text[0] = 0;
    while (template <end &&used + 1 < size) {
        const char *piece = NULL;
        if (strncmp(template, "{}", 2) == 0) {
            piece = argument ? argument : "";
            template += 2;
        } else if (strncmp(template, "{sudo}", 6) == 0) {
            piece = geteuid() == 0 ? "" : "sudo ";
            template += 6;
        }
        if (piece) {
            int added = snprintf(text + used, size - used, "%s", piece);
            used += (size_t)added < size - used ? (size_t)added : size - used - 1;
        } else {
            text[used++] = *template ++;
            text[used] = 0;
        }
    }
}

/* The command of a line; NULL if it is for another system. */
static const char *command_of(const char *line, cleat_distribution here) {
    static const struct {
        const char *name;
        int distributions;
    } names[] = {{"debian: ", DISTRIBUTION_DEBIAN},
                 {"ubuntu: ", DISTRIBUTION_UBUNTU},
                 {"apt: ", DISTRIBUTION_DEBIAN | DISTRIBUTION_UBUNTU},
                 {"fedora: ", DISTRIBUTION_FEDORA},
                 {"arch: ", DISTRIBUTION_ARCH},
                 {"other: ", DISTRIBUTION_OTHER},
                 {"windows: ", DISTRIBUTION_WINDOWS},
                 {"any: ", ~0}};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
        if (strncmp(line, names[i].name, strlen(names[i].name)) == 0)
            return names[i].distributions & here ? line + strlen(names[i].name) : NULL;
    return here == DISTRIBUTION_WINDOWS ? NULL : line;
}

void cleat_fault_describe(const cleat_system *system, const char *variant, const char *argument,
                          cleat_doctor_check *check) {
    const fault *row = find_fault(check->code, variant);
    if (!row) return;
    check->result = row->result;
    expand(row->cause, strlen(row->cause), argument, check->cause, sizeof check->cause);
    /* The commands run as root: a path among them must be one word, whatever it contains. */
    char word[CLEAT_CHECK_COMMAND / 2];
    if (argument) argument = cleat_shell_path(argument, word, sizeof word);
    for (const char *line = row->commands; *line && check->n_commands < CLEAT_CHECK_COMMANDS;
         line = strchr(line, '\n') + 1) {
        const char *command = command_of(line, system->distribution);
        if (command)
            expand(command, strcspn(command, "\n"), argument, check->commands[check->n_commands++],
                   CLEAT_CHECK_COMMAND);
    }
}

void cleat_check_lower(cleat_doctor_check *check) {
    if (check && check->result == CLEAT_CHECK_FAIL) check->result = CLEAT_CHECK_WARN;
}
