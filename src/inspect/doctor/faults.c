/* The table of faults: severity, cause, and the commands that remove it on each distribution. */
#include "doctor/doctor.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FAULT_COMMANDS = 7 };

#define APT (DISTRIBUTION_DEBIAN | DISTRIBUTION_UBUNTU)
#define ANY (APT | DISTRIBUTION_FEDORA | DISTRIBUTION_ARCH | DISTRIBUTION_OTHER)

typedef struct fault_command {
    int distributions;
    const char *text; /* {}: the argument; {sudo}: "sudo " unless the user is root */
} fault_command;

typedef struct fault {
    const char *code;
    const char *variant; /* NULL: used if no variant of the code matches */
    cleat_doctor_result result;
    const char *cause;
    fault_command commands[FAULT_COMMANDS];
} fault;

#define INSTALL_NVIDIA                                                                                                 \
    {DISTRIBUTION_DEBIAN,                                                                                              \
     "{sudo}apt-get install nvidia-driver nvidia-opencl-icd  # from the archive areas contrib and non-free"},          \
        {DISTRIBUTION_UBUNTU, "{sudo}ubuntu-drivers install"},                                                         \
        {DISTRIBUTION_FEDORA, "{sudo}dnf install akmod-nvidia xorg-x11-drv-nvidia-cuda  # from RPM Fusion"},           \
        {DISTRIBUTION_ARCH, "{sudo}pacman -S nvidia opencl-nvidia"}, {                                                 \
        DISTRIBUTION_OTHER, "install NVIDIA's driver: https://www.nvidia.com/en-us/drivers/unix/"                      \
    }
/* Mesa's rusticl, as of 2026: in mesa-opencl-icd of Debian, and of Ubuntu from 24.04 on. Debian 13 dropped Intel's
 * runtime. */
#define INSTALL_AMD                                                                                                    \
    {DISTRIBUTION_DEBIAN,                                                                                              \
     "{sudo}apt-get install mesa-opencl-icd && export RUSTICL_ENABLE=radeonsi  # Debian 13: or rocm-opencl-icd"},      \
        {DISTRIBUTION_UBUNTU,                                                                                          \
         "{sudo}apt-get install mesa-opencl-icd && export RUSTICL_ENABLE=radeonsi  # Ubuntu 24.04 or later"},          \
        {DISTRIBUTION_UBUNTU, "install rocm-opencl-runtime from AMD's repository: https://rocm.docs.amd.com"},         \
        {DISTRIBUTION_FEDORA, "{sudo}dnf install rocm-opencl"},                                                        \
        {DISTRIBUTION_ARCH, "{sudo}pacman -S rocm-opencl-runtime"}, {                                                  \
        DISTRIBUTION_OTHER, "install AMD's OpenCL runtime: https://rocm.docs.amd.com"                                  \
    }
#define INSTALL_INTEL                                                                                                  \
    {DISTRIBUTION_DEBIAN, "{sudo}apt-get install intel-opencl-icd  # Debian 12 only"},                                 \
        {DISTRIBUTION_DEBIAN,                                                                                          \
         "{sudo}apt-get install mesa-opencl-icd && export RUSTICL_ENABLE=iris  # Debian 13 or later"},                 \
        {DISTRIBUTION_UBUNTU, "{sudo}apt-get install intel-opencl-icd"},                                               \
        {DISTRIBUTION_FEDORA, "{sudo}dnf install intel-compute-runtime"},                                              \
        {DISTRIBUTION_ARCH, "{sudo}pacman -S intel-compute-runtime"}, {                                                \
        DISTRIBUTION_OTHER, "install Intel's runtime: https://github.com/intel/compute-runtime/releases"               \
    }
#define INSTALL_POCL                                                                                                   \
    {APT, "{sudo}apt-get install pocl-opencl-icd"}, {DISTRIBUTION_FEDORA, "{sudo}dnf install pocl"},                   \
        {DISTRIBUTION_ARCH, "{sudo}pacman -S pocl"}, {                                                                 \
        DISTRIBUTION_OTHER, "install PoCL, OpenCL for the CPU: https://portablecl.org"                                 \
    }
#define DISABLE_ICD                                                                                                    \
    { ANY, "{sudo}mv {} {}.off  # the OpenCL loader then ignores the driver" }

static const fault faults[] = {
    /* --- cards --- */
    {"kernel-driver-missing",
     "nvidia",
     CLEAT_CHECK_FAIL,
     "No kernel driver is bound to the card: it is not installed, not built for this kernel, or not loaded.",
     {INSTALL_NVIDIA, {ANY, "{sudo}modprobe nvidia  # dmesg shows why it is refused, for example by Secure Boot"}}},
    {"kernel-driver-missing",
     "amd",
     CLEAT_CHECK_FAIL,
     "No kernel driver is bound to the card: amdgpu is not loaded, or its firmware is missing.",
     {{ANY, "{sudo}modprobe amdgpu"},
      {DISTRIBUTION_DEBIAN, "{sudo}apt-get install firmware-amd-graphics  # from the archive area non-free-firmware"},
      {ANY, "{sudo}dmesg | grep amdgpu"}}},
    {"kernel-driver-missing",
     "intel",
     CLEAT_CHECK_FAIL,
     "No kernel driver is bound to the card: i915 or xe is not loaded, or the kernel is older than the card.",
     {{ANY, "{sudo}modprobe i915  # Arc B and later: xe, from Linux 6.12 on"},
      {ANY, "{sudo}dmesg | grep -E 'i915|xe'"}}},
    {"nouveau-bound",
     NULL,
     CLEAT_CHECK_FAIL,
     "The kernel driver nouveau is bound to the card. NVIDIA's OpenCL works only with NVIDIA's own kernel driver.",
     {INSTALL_NVIDIA, {ANY, "{sudo}reboot"}}},
    {"radeon-bound",
     NULL,
     CLEAT_CHECK_FAIL,
     "The old kernel driver radeon is bound to the card. OpenCL 1.2 needs amdgpu, which serves cards from GCN 1 on.",
     {{ANY, "add radeon.si_support=0 radeon.cik_support=0 amdgpu.si_support=1 amdgpu.cik_support=1 to the kernel "
            "command line, then reboot"}}},
    {"reserved-for-guest",
     NULL,
     CLEAT_CHECK_WARN,
     "The card is bound to {}, which reserves it for a virtual machine; no program of this system can use it.",
     {{ANY, "use cleat inside the virtual machine, or unbind the card from {}"}}},
    {"node-missing",
     NULL,
     CLEAT_CHECK_FAIL,
     "The kernel driver is bound, but the device node through which programs reach the card does not exist.",
     {{ANY, "{sudo}modprobe {}"}, {ANY, "{sudo}dmesg | tail -n 50"}}},
    {"node-missing",
     "nvidia",
     CLEAT_CHECK_FAIL,
     "The kernel driver is bound, but the device node through which programs reach the card does not exist.",
     {{ANY, "{sudo}nvidia-modprobe -u -c=0"}, {ANY, "nvidia-smi"}}},
    {"node-missing",
     "container",
     CLEAT_CHECK_FAIL,
     "The card's device node is missing in this container: the container was started without the card.",
     {{ANY, "start the container with --device /dev/dri (and --device /dev/kfd for ROCm)"}}},
    {"node-missing",
     "nvidia-container",
     CLEAT_CHECK_FAIL,
     "The card's device node is missing in this container: the container was started without the card.",
     {{ANY, "start the container with --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility"}}},
    {"group-missing",
     NULL,
     CLEAT_CHECK_FAIL,
     "Only members of the group {} may open the device node, and this user is not a member.",
     {{ANY, "{sudo}usermod -aG {} $(id -un)  # then log out and in again"}}},
    {"group-not-active",
     NULL,
     CLEAT_CHECK_FAIL,
     "This user was added to the group {}, but this session started before that.",
     {{ANY, "log out and in again, or: newgrp {}"}}},
    {"node-permission",
     NULL,
     CLEAT_CHECK_FAIL,
     "This user may not open the device node.",
     {{ANY, "ls -l {}; id"}, {ANY, "{sudo}chmod a+rw {}  # until the next start; udev rules make it permanent"}}},
    {"nvidia-icd-missing",
     NULL,
     CLEAT_CHECK_FAIL,
     "NVIDIA's OpenCL library is not registered: no .icd file names it, and the library was not found.",
     {{DISTRIBUTION_DEBIAN, "{sudo}apt-get install nvidia-opencl-icd  # from the archive area non-free"},
      {DISTRIBUTION_UBUNTU, "{sudo}apt-get install libnvidia-compute-$(modinfo -F version nvidia | cut -d. -f1)"},
      {DISTRIBUTION_FEDORA, "{sudo}dnf install xorg-x11-drv-nvidia-cuda  # from RPM Fusion"},
      {DISTRIBUTION_ARCH, "{sudo}pacman -S opencl-nvidia"},
      {DISTRIBUTION_OTHER, "install NVIDIA's driver with its OpenCL library"}}},
    {"nvidia-icd-missing",
     "container",
     CLEAT_CHECK_FAIL,
     "NVIDIA's OpenCL library is neither registered nor present in this container: the container toolkit adds it only "
     "if NVIDIA_DRIVER_CAPABILITIES includes compute.",
     {{ANY, "start the container with --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility"},
      {ANY, "mkdir -p /etc/OpenCL/vendors && echo libnvidia-opencl.so.1 > /etc/OpenCL/vendors/nvidia.icd"}}},
    {"nvidia-icd-missing",
     "library",
     CLEAT_CHECK_FAIL,
     "NVIDIA's OpenCL library is present, but no .icd file names it, so the OpenCL loader does not find it.",
     {{ANY, "{sudo}mkdir -p {}"}, {ANY, "echo libnvidia-opencl.so.1 | {sudo}tee {}/nvidia.icd"}}},
    {"amd-icd-missing", NULL, CLEAT_CHECK_FAIL, "No .icd file names a driver for AMD cards.", {INSTALL_AMD}},
    {"intel-icd-missing", NULL, CLEAT_CHECK_FAIL, "No .icd file names a driver for Intel GPUs.", {INSTALL_INTEL}},
    {"nvidia-version-mismatch",
     NULL,
     CLEAT_CHECK_FAIL,
     "The kernel driver and the library have different versions, for example after an update without a reboot; the "
     "library refuses to work.",
     {{ANY, "{sudo}reboot"}}},
    {"card-not-listed",
     NULL,
     CLEAT_CHECK_FAIL,
     "The card's driver is registered, but OpenCL does not list this card; {}.",
     {{ANY, "clinfo -l"}}},
    {"card-not-listed",
     "intel",
     CLEAT_CHECK_FAIL,
     "Intel's driver is registered, but OpenCL does not list this card; {}. Intel's current runtime "
     "supports GPUs from Tiger Lake (2020) on, and its releases before 24.35 support GPUs from Broadwell (2014) on. "
     "Older "
     "GPUs need Intel's legacy runtime.",
     {{ANY, "clinfo -l"},
      {DISTRIBUTION_DEBIAN, "{sudo}apt-get install intel-opencl-icd  # Debian 12 only"},
      {DISTRIBUTION_DEBIAN,
       "{sudo}apt-get install mesa-opencl-icd && export RUSTICL_ENABLE=iris  # Debian 13 or later"},
      {DISTRIBUTION_UBUNTU, "{sudo}apt-get install intel-opencl-icd"}}},
    {"card-unusable",
     NULL,
     CLEAT_CHECK_FAIL,
     "OpenCL lists the card, but it does not compute correctly: {}.",
     {{0, NULL}}},
    {"wsl-no-opencl",
     NULL,
     CLEAT_CHECK_WARN,
     "WSL passes the card through as /dev/dxg, for which NVIDIA and AMD ship no OpenCL driver; Intel's runtime has "
     "one.",
     {{DISTRIBUTION_DEBIAN, "{sudo}apt-get install intel-opencl-icd  # Intel GPUs; not in Debian 13"},
      {DISTRIBUTION_UBUNTU, "{sudo}apt-get install intel-opencl-icd  # Intel GPUs"},
      INSTALL_POCL}},

    /* --- drivers --- */
    {"icd-folder-missing",
     NULL,
     CLEAT_CHECK_FAIL,
     "The folder in which the OpenCL loader looks for drivers does not exist: no driver is installed.",
     {INSTALL_POCL}},
    {"icd-folder-missing",
     "variable",
     CLEAT_CHECK_FAIL,
     "The variable {} names a path that does not exist, so the OpenCL loader finds no driver.",
     {{ANY, "unset {}"}, INSTALL_POCL}},
    {"icd-none",
     NULL,
     CLEAT_CHECK_FAIL,
     "The folder {} contains no .icd file, so the OpenCL loader finds no driver.",
     {INSTALL_POCL}},
    {"icd-file-empty",
     NULL,
     CLEAT_CHECK_FAIL,
     "The first line of an .icd file names the driver's library; {} has none.",
     {DISABLE_ICD}},
    {"icd-file-unreadable", NULL, CLEAT_CHECK_FAIL, "This user may not read {}.", {{ANY, "{sudo}chmod a+r {}"}}},
    {"icd-library-missing",
     NULL,
     CLEAT_CHECK_FAIL,
     "The library that the .icd file names is not installed, or is in no folder that the dynamic linker searches.",
     {{APT, "dpkg -S {}  # prints the package of the file: reinstall it"},
      {DISTRIBUTION_FEDORA, "rpm -qf {}  # prints the package of the file: reinstall it"},
      {DISTRIBUTION_ARCH, "pacman -Qo {}  # prints the package of the file: reinstall it"},
      DISABLE_ICD}},
    {"icd-library-broken",
     NULL,
     CLEAT_CHECK_FAIL,
     "The library exists, but the dynamic linker cannot load it: it is damaged, or a library that it "
     "needs is missing or has another version.",
     {{APT, "dpkg -S {}  # prints the package of the file: reinstall it"},
      {DISTRIBUTION_FEDORA, "rpm -qf {}  # prints the package of the file: reinstall it"},
      {DISTRIBUTION_ARCH, "pacman -Qo {}  # prints the package of the file: reinstall it"},
      DISABLE_ICD}},
    {"icd-library-not-opencl",
     NULL,
     CLEAT_CHECK_FAIL,
     "The library is not an OpenCL driver: it has no clGetExtensionFunctionAddress.",
     {DISABLE_ICD}},
    {"driver-hangs",
     NULL,
     CLEAT_CHECK_FAIL,
     "The driver does not answer when it is asked for its devices. Every OpenCL program, including cleat, waits for "
     "it. "
     "On a very busy machine, repeat with --seconds 60.",
     {DISABLE_ICD, {ANY, "{sudo}dmesg | tail -n 50"}}},
    {"driver-crashes",
     NULL,
     CLEAT_CHECK_FAIL,
     "The driver crashes when it is asked for its devices. Every OpenCL program that uses it crashes too, including "
     "cleat.",
     {DISABLE_ICD}},
    {"driver-no-platform", NULL, CLEAT_CHECK_FAIL, "The library loads, but offers no OpenCL platform.", {DISABLE_ICD}},
    {"driver-no-device", NULL, CLEAT_CHECK_FAIL, "The driver loads, but lists no device.", {{ANY, "clinfo -l"}}},
    {"rusticl-disabled",
     NULL,
     CLEAT_CHECK_FAIL,
     "Mesa's rusticl lists devices only for the drivers that RUSTICL_ENABLE names, and this variable is not set.",
     {{ANY, "export RUSTICL_ENABLE={}"}}},
    {"clover-no-device",
     NULL,
     CLEAT_CHECK_FAIL,
     "Mesa's Clover lists no device; it is no longer developed and supports no current card.",
     {INSTALL_AMD}},
    {"device-refused", NULL, CLEAT_CHECK_FAIL, "The driver lists a device that cleat cannot use.", {{ANY, "clinfo"}}},
    {"drivers-together-fail",
     NULL,
     CLEAT_CHECK_FAIL,
     "Each driver works alone, but listing the devices of all drivers fails: two drivers conflict.",
     {{ANY, "mkdir -p ~/icd && cp {}/NAME.icd ~/icd && export OCL_ICD_VENDORS=~/icd  # NAME: the driver to keep"}}},

    /* --- devices --- */
    {"device-open-fails",
     NULL,
     CLEAT_CHECK_FAIL,
     "The driver lists the device, but cannot open it.",
     {{ANY, "clinfo"}}},
    {"device-build-fails",
     NULL,
     CLEAT_CHECK_FAIL,
     "The driver cannot compile a kernel of a few lines, so it cannot compile cleat's kernels either.",
     {{ANY, "clinfo"}}},
    {"device-build-fails",
     "amd",
     CLEAT_CHECK_FAIL,
     "The driver cannot compile a kernel of a few lines, so it cannot compile cleat's kernels either. Parts of its "
     "compiler may be missing.",
     {{APT, "{sudo}apt-get install --reinstall mesa-opencl-icd libclc-15  # for Mesa's drivers"}}},
    {"pocl-processor-unknown",
     NULL,
     CLEAT_CHECK_FAIL,
     "PoCL's compiler (LLVM) does not know this processor: it is newer than LLVM, or a virtual machine hides its "
     "model. A newer PoCL comes with a newer release of the distribution; without one, Intel's OpenCL runtime for CPUs "
     "serves processors of Intel and AMD.",
     {{ANY, "python3 -m venv ~/intel-cpu && ~/intel-cpu/bin/pip install intel-opencl-rt intel-cmplr-lib-rt"},
      {ANY, "export OCL_ICD_FILENAMES=~/intel-cpu/lib/libintelocl.so LD_LIBRARY_PATH=~/intel-cpu/lib"},
      {APT, "upgrade to Debian 12, Ubuntu 24.04 or later, whose PoCL is newer"},
      {ANY, "in a virtual machine: let the guest see the host's processor (QEMU: -cpu host)"}}},
    {"device-wrong-result",
     NULL,
     CLEAT_CHECK_FAIL,
     "A kernel of three operations gives a wrong result. Training on this device would give wrong results too.",
     {{ANY, "update the driver, or choose another device: cleat train --device NAME"}}},
    {"device-hangs",
     NULL,
     CLEAT_CHECK_FAIL,
     "The device did not finish a small kernel in time. On a very busy machine, repeat with --seconds 60.",
     {{ANY, "{sudo}dmesg | tail -n 50"}, {ANY, "choose another device: cleat train --device NAME"}}},
    {"device-crashes",
     NULL,
     CLEAT_CHECK_FAIL,
     "The driver crashed while it ran a small kernel.",
     {{ANY, "{sudo}dmesg | tail -n 50"}, {ANY, "choose another device: cleat train --device NAME"}}},
    {"device-memory-low",
     NULL,
     CLEAT_CHECK_WARN,
     "Little of the device's memory is free because other programs use it; micro-batches will be small.",
     {{ANY, "nvidia-smi  # or nvtop, radeontop: shows which program uses it"}}},

    /* --- host --- */
    {"cpu-quota",
     NULL,
     CLEAT_CHECK_WARN,
     "A control group limits the CPU time below the number of CPUs that programs see; additional threads only wait.",
     {{ANY, "more CPU time for a container: docker update --cpus=N CONTAINER; a service: systemctl set-property"}}},
    {"memory-limit",
     NULL,
     CLEAT_CHECK_WARN,
     "The limit of a control group leaves little memory; the kernel kills a process that exceeds the limit.",
     {{ANY, "more memory for a container: docker update --memory=8g --memory-swap=8g CONTAINER"}}},
    {"host-memory-low",
     NULL,
     CLEAT_CHECK_WARN,
     "Little host memory is free; it must hold the data and, for training on a CPU, the whole model.",
     {{ANY, "ps aux --sort=-rss | head"}}},
    {"shm-missing",
     NULL,
     CLEAT_CHECK_WARN,
     "/dev/shm is not writable; programs that consist of several processes (MPI) need it.",
     {{ANY, "{sudo}mount -t tmpfs tmpfs /dev/shm  # a container: --shm-size=1g"}}},
    {"mpi-launcher-missing",
     NULL,
     CLEAT_CHECK_WARN,
     "Training on several devices starts one process for each with Open MPI's mpirun, and there is none in PATH.",
     {{APT, "{sudo}apt-get install openmpi-bin"},
      {DISTRIBUTION_FEDORA, "{sudo}dnf install openmpi && module load mpi/openmpi-x86_64"},
      {DISTRIBUTION_ARCH, "{sudo}pacman -S openmpi"},
      {DISTRIBUTION_OTHER, "install Open MPI: https://www.open-mpi.org"}}},
    {"mpi-plugin-missing",
     NULL,
     CLEAT_CHECK_WARN,
     "Training on several devices needs cleat's plug-in libcleat-mpi.so, which is built where the headers of MPI are "
     "installed.",
     {{APT, "{sudo}apt-get install libopenmpi-dev  # then configure and build cleat again, or install cleat-mpi"},
      {DISTRIBUTION_FEDORA, "{sudo}dnf install openmpi-devel  # then configure and build cleat again"},
      {DISTRIBUTION_ARCH, "{sudo}pacman -S openmpi  # then configure and build cleat again"},
      {DISTRIBUTION_OTHER, "install Open MPI with its headers, then configure and build cleat again"}}},
    {"mpi-plugin-broken",
     NULL,
     CLEAT_CHECK_WARN,
     "Training on several devices needs cleat's plug-in libcleat-mpi.so, but the dynamic linker cannot load it: the "
     "MPI that it was built with is missing or has another version.",
     {{ANY, "ldd {}"},
      {APT, "{sudo}apt-get install openmpi-bin libopenmpi-dev  # then configure and build cleat again"},
      {ANY, "unset CLEAT_RANKS_LIBRARY  # if it names another plug-in"}}},
    {"cache-unwritable",
     NULL,
     CLEAT_CHECK_WARN,
     "The cache folder cannot be written: at each start, kernels are compiled and the device is measured and checked "
     "again.",
     {{ANY, "export CLEAT_CACHE_DIR=/a/folder/you/can/write"}}},
    {"cache-full",
     NULL,
     CLEAT_CHECK_WARN,
     "The file system of the cache folder is full: kernels, measured speeds and results of checks cannot be stored.",
     {{ANY, "df -h {}"}, {ANY, "export CLEAT_CACHE_DIR=/a/folder/with/space"}}},
    {"pocl-cache-unwritable",
     NULL,
     CLEAT_CHECK_WARN,
     "PoCL cannot write to its cache folder, and then lists no device: the CPU cannot be used.",
     {{ANY, "export POCL_CACHE_DIR=/a/folder/you/can/write"}}},
    {"cache-noexec",
     NULL,
     CLEAT_CHECK_WARN,
     "The file system does not allow programs (noexec), but PoCL loads its compiled kernels from its cache as "
     "libraries.",
     {{ANY, "export POCL_CACHE_DIR=/a/folder/without/noexec"}}},
    {"run-folder-unwritable",
     NULL,
     CLEAT_CHECK_WARN,
     "A run cannot write its checkpoints there.",
     {{ANY, "cleat train ... --out /a/folder/you/can/write"}}},
    {"run-folder-full",
     NULL,
     CLEAT_CHECK_WARN,
     "Little disk space is left for checkpoints.",
     {{ANY, "df -h {}"}, {ANY, "cleat train ... --out /a/folder/with/space"}}},

    /* --- result --- */
    {"no-usable-device", NULL, CLEAT_CHECK_FAIL, "cleat cannot train here: {}.", {INSTALL_POCL}},
    {"no-usable-device",
     "explained",
     CLEAT_CHECK_FAIL,
     "cleat cannot train here: {}. The failed checks above list commands that help.",
     {{0, NULL}}},
    {"no-usable-device",
     "wanted",
     CLEAT_CHECK_FAIL,
     "cleat cannot train on the requested device: {}.",
     {{ANY, "cleat devices"}}},
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

/* Copies a template; {} becomes the argument, {sudo} "sudo " where it is needed. */
static void expand(const char *template, const char *argument, char *text, size_t size) {
    size_t used = 0;
    text[0] = 0;
    while (*template && used + 1 < size) {
        const char *piece = NULL;
        if (strncmp(template, "{}", 2) == 0) {
            piece = argument ? argument : "";
            template += 2;
        } else if (strncmp(template, "{sudo}", 6) == 0) {
            piece = geteuid() == 0 ? "" : "sudo ";
            template += 6;
        }
        if (piece) {
            int length = snprintf(text + used, size - used, "%s", piece);
            used += (size_t)length < size - used ? (size_t)length : size - used - 1;
        } else {
            text[used++] = *template ++;
            text[used] = 0;
        }
    }
}

void cleat_fault_describe(const cleat_system *system, const char *variant, const char *argument,
                          cleat_doctor_check *check) {
    const fault *row = find_fault(check->code, variant);
    if (!row) return;
    check->result = row->result;
    expand(row->cause, argument, check->cause, sizeof check->cause);
    /* The commands run as root: a path among them must be one word, whatever it contains. */
    char word[CLEAT_CHECK_COMMAND / 2];
    const bool fits = !argument || cleat_shell_word(argument, word, sizeof word);
    for (size_t i = 0; i < FAULT_COMMANDS && check->n_commands < CLEAT_CHECK_COMMANDS; ++i)
        if (row->commands[i].text && row->commands[i].distributions & system->distribution)
            expand(row->commands[i].text, argument ? fits ? word : "PATH" : NULL, check->commands[check->n_commands++],
                   CLEAT_CHECK_COMMAND);
}

void cleat_check_lower(cleat_doctor_check *check) {
    if (check && check->result == CLEAT_CHECK_FAIL) check->result = CLEAT_CHECK_WARN;
}
