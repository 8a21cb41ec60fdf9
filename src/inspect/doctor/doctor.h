/* Internals of the doctor: what is collected about the machine, and how checks are reported. Collecting (pci.c,
 * system.c, drivers.c, compute.c) precedes deciding (card_checks.c, driver_checks.c, host_checks.c). */
#ifndef CLEAT_SRC_DOCTOR_H
#define CLEAT_SRC_DOCTOR_H

#include "cleat/doctor.h"
#include "core/string.h"

enum { DOCTOR_PATH = 512, DOCTOR_CARDS = 16, DOCTOR_DRIVERS = 16, DOCTOR_DEVICES = 16, DOCTOR_PLATFORMS = 4 };

/* --- what is collected ---------------------------------------------------------------------------------------- */

/* Distributions by their package manager; bits, so that a command can be for several of them. */
typedef enum cleat_distribution {
    DISTRIBUTION_DEBIAN = 1,
    DISTRIBUTION_UBUNTU = 2,
    DISTRIBUTION_FEDORA = 4,
    DISTRIBUTION_ARCH = 8,
    DISTRIBUTION_OTHER = 16,
    DISTRIBUTION_WINDOWS = 32,
} cleat_distribution;

typedef struct cleat_system {
    cleat_distribution distribution;
    char distribution_name[96]; /* PRETTY_NAME of /etc/os-release */
    char kernel[96];            /* release of the Linux kernel; build of Windows */
    char container[32];         /* "docker", "podman", ...; "": none recognised */
    bool windows, wsl, kaggle, colab;
} cleat_system;

void cleat_system_read(const char *root, cleat_system *system);

/* A card as the kernel shows it. */
typedef struct cleat_card_slot {
    char address[24]; /* "0000:01:00.0"; "" if only a device node shows the card */
    unsigned pci_class, vendor, device;
    char name[160];                  /* "NVIDIA TU104GL [Tesla T4]" */
    char kernel_driver[32];          /* "" if none is bound; on Windows the version of the graphics driver */
    char node[DOCTOR_PATH];          /* path below / of its device node; "" if the kernel made none */
    char more_nodes[2][32];          /* further nodes that its driver opens: "/dev/nvidiactl", "/dev/kfd"; "" */
    int domain, bus, slot, function; /* bus -1: no address */
    bool blocked;                    /* a fault before its OpenCL driver keeps it from being listed */
} cleat_card_slot;

enum { PCI_NVIDIA = 0x10de, PCI_AMD = 0x1002, PCI_INTEL = 0x8086 };

/* Display controllers and processing accelerators of /sys/bus/pci, then NVIDIA's cards that only /proc or /dev
 * shows (containers); on Windows the display adapters. Returns their number. */
size_t cleat_cards_read(const char *root, cleat_card_slot cards[DOCTOR_CARDS]);

typedef enum cleat_driver_family {
    DRIVER_OTHER,
    DRIVER_NVIDIA,
    DRIVER_AMD,     /* ROCm or AMDGPU-PRO */
    DRIVER_RUSTICL, /* Mesa */
    DRIVER_CLOVER,  /* Mesa, before rusticl */
    DRIVER_INTEL,   /* GPUs */
    DRIVER_INTEL_CPU,
    DRIVER_POCL,
} cleat_driver_family;

/* How the child that tried a driver ended. */
typedef enum cleat_child_result { CHILD_ANSWERED, CHILD_HUNG, CHILD_CRASHED, CHILD_NOT_RUN } cleat_child_result;

/* An installable client driver (ICD), and the findings of a child that loads it alone. */
typedef struct cleat_driver {
    char file[DOCTOR_PATH];    /* path of the .icd file; "" if a variable names the library */
    char library[DOCTOR_PATH]; /* its first line; "" if it has none */
    bool readable;
    cleat_driver_family family;
    cleat_child_result child;
    char end[160];         /* how the child ended, if not CHILD_ANSWERED */
    bool loads, has_entry; /* dlopen succeeded; it has the functions that the loader calls */
    char load_error[512];  /* text of dlerror */
    char loaded_from[DOCTOR_PATH];
    char platforms[DOCTOR_PLATFORMS][128];
    size_t n_platforms, n_devices;
    char refused[512]; /* why cleat cannot use a device it listed; "" */
} cleat_driver;

/* A device of the list that cleat itself sees, with the result of a small kernel. */
typedef struct cleat_doctor_device {
    cleat_device_facts facts;
    cleat_child_result child;
    char end[160];
    char step[32]; /* under way at the end: "building a kernel" */
    bool untried;  /* devices are only listed */
    bool computes;
    char failure[1024]; /* why not; "" */
    bool wrong;         /* it ran, and a number was wrong */
    bool build_failed, processor_unknown;
    bool matrix_known; /* facts.matrix_unit was determined */
} cleat_doctor_device;

typedef struct cleat_doctor {
    const char *root; /* "" outside tests */
    cleat_doctor_request request;
    cleat_doctor_report *report;
    cleat_system system;
    cleat_card_slot cards[DOCTOR_CARDS];
    size_t n_cards;
    char vendors[DOCTOR_PATH];  /* the folder of ICD files, as the loader looks for it; "the registry" */
    const char *vendors_set_by; /* name of the environment variable that sets it; NULL: none */
    bool vendors_exist;
    cleat_driver *drivers; /* [DOCTOR_DRIVERS] */
    size_t n_drivers;
    cleat_child_result listing; /* of the child that listed all devices as cleat does */
    char listing_end[160];
    cleat_doctor_device *devices; /* [DOCTOR_DEVICES] */
    size_t n_devices;
    cleat_status status; /* the first failure of the doctor itself; later calls do nothing */
    cleat_error error;
} cleat_doctor;

/* A doctor with the defaults of the request; the caller destroys it. NULL: out of memory. */
cleat_doctor *cleat_doctor_create(const cleat_doctor_request *request, cleat_error *error);
/* Frees the doctor and its report; a caller that keeps the report sets it to NULL. NULL is allowed. */
void cleat_doctor_destroy(cleat_doctor *doctor);

/* Finds the ICD files and tries each driver in a child. */
void cleat_drivers_read(cleat_doctor *doctor);
/* The same without children, in a process whose OpenCL loader has used the drivers. */
void cleat_drivers_look(cleat_doctor *doctor);
/* Lists all devices in a child, then runs a kernel on each in children. */
void cleat_devices_read(cleat_doctor *doctor);

/* Seconds that one child may take: 0.7 of the time given, times the number of cards (drivers start one after
 * the other, and some take seconds), times the load of the machine. */
double cleat_doctor_patience(const cleat_doctor *doctor);

/* In a child: sends the driver's own output to /dev/null, and writes no core file. */
void cleat_doctor_quiet_child(void);
/* In a child: the loader uses the ICD files of `vendors` (a folder, a file or a library) and no others. `library`:
 * the same for loaders that take libraries only; NULL: leaves OCL_ICD_FILENAMES alone. */
void cleat_doctor_use_vendors(const char *vendors, const char *library);
struct cleat_child_end;
cleat_child_result cleat_doctor_child_result(const struct cleat_child_end *end);

/* --- reporting ------------------------------------------------------------------------------------------------ */

/* Begins a section; the checks that follow belong to it. */
void cleat_doctor_section(cleat_doctor *doctor, const char *name, const char *title, ...) CLEAT_PRINTF(3, 4);
/* A check without a fault; `code` names the check. */
void cleat_doctor_ok(cleat_doctor *doctor, const char *code, const char *evidence, ...) CLEAT_PRINTF(3, 4);
void cleat_doctor_skip(cleat_doctor *doctor, const char *code, const char *evidence, ...) CLEAT_PRINTF(3, 4);
/* A fault of the table in faults.c. `variant`: the row for this vendor or situation, or NULL; `argument` takes the
 * place of {} in causes and commands. Returns the check, or NULL after a failure. */
cleat_doctor_check *cleat_doctor_fault(cleat_doctor *doctor, const char *code, const char *variant,
                                       const char *argument, const char *evidence, ...) CLEAT_PRINTF(5, 6);
/* Lowers a failure to a warning. NULL is allowed. */
void cleat_check_lower(cleat_doctor_check *check);

/* Fills cause, commands and severity of a fault. */
void cleat_fault_describe(const cleat_system *system, const char *variant, const char *argument,
                          cleat_doctor_check *check);
/* Number of rows of the table of faults, and the code of a row: for tests. */
size_t cleat_fault_count(void);
const char *cleat_fault_code(size_t row);

/* --- deciding ------------------------------------------------------------------------------------------------- */

void cleat_check_cards(cleat_doctor *doctor);
void cleat_check_drivers(cleat_doctor *doctor);
void cleat_check_devices(cleat_doctor *doctor);
void cleat_check_host(cleat_doctor *doctor);
void cleat_check_mpi(cleat_doctor *doctor);
/* Which fault keeps a device from computing; NULL: none. */
const char *cleat_device_fault(const cleat_doctor_device *device);

enum { CLEAT_UNUSED_CARD = 2 * CLEAT_CHECK_TEXT + 300 };
/* In a process whose OpenCL loader lists no GPU: names an installed card and the reason why it cannot be used, in
 * sentences. False: there is none, or out of memory. */
bool cleat_unused_card(const cleat_doctor_request *request, char *text, size_t size);
/* cleat_doctor_open_device no longer warns: a child process has warned. */
void cleat_unused_card_warned(void);

/* Whether drivers of this family serve cards of this vendor. */
bool cleat_driver_serves(cleat_driver_family family, unsigned vendor);
/* The listed device that is this card; NULL: there is none. */
const cleat_doctor_device *cleat_card_device(const cleat_doctor *doctor, const cleat_card_slot *card);

/* --- files below the root ------------------------------------------------------------------------------------- */

/* The root of a request: as given, else CLEAT_SYSTEM_ROOT, else "". */
const char *cleat_root_of(const cleat_doctor_request *request);
/* Joins root and path; "" names nothing: the path does not fit, or is one that this system does not have. */
void cleat_root_path(const char *root, const char *path, char whole[DOCTOR_PATH]);
bool cleat_root_exists(const char *root, const char *path);
/* Reads the first line without its end; false if there is none. */
bool cleat_root_line(const char *root, const char *path, char *line, size_t size);
/* Reads the rest of the first line that begins with `word`, without blanks around it. */
bool cleat_root_field(const char *root, const char *path, const char *word, char *value, size_t size);

#endif
