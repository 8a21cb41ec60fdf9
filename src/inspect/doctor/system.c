/* The system: distribution, kernel, container, WSL, Kaggle, Colab. */
#include "platform/system.h"
#include "doctor/doctor.h"
#include "platform/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The value of os-release without its quotes. */
static bool read_release(const char *root, const char *key, char *value, size_t size) {
    if (!cleat_root_field(root, "/etc/os-release", key, value, size) &&
        !cleat_root_field(root, "/usr/lib/os-release", key, value, size))
        return false;
    size_t length = strlen(value);
    if (length >= 2 && (value[0] == '"' || value[0] == '\'') && value[length - 1] == value[0]) {
        memmove(value, value + 1, length - 2);
        value[length - 2] = 0;
    }
    return true;
}

/* Ubuntu before Debian, because derivatives of Ubuntu name both. */
static cleat_distribution distribution_of(const char *ids) {
    static const struct {
        const char *id;
        cleat_distribution distribution;
    } known[] = {{"ubuntu", DISTRIBUTION_UBUNTU}, {"debian", DISTRIBUTION_DEBIAN}, {"fedora", DISTRIBUTION_FEDORA},
                 {"rhel", DISTRIBUTION_FEDORA},   {"arch", DISTRIBUTION_ARCH},     {"windows", DISTRIBUTION_WINDOWS}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; ++i)
        if (cleat_has_word(ids, known[i].id, ' ')) return known[i].distribution;
    return DISTRIBUTION_OTHER;
}

static void read_distribution(const char *root, cleat_system *system) {
    char id[64] = "", like[128] = "", ids[200];
    read_release(root, "ID=", id, sizeof id);
    read_release(root, "ID_LIKE=", like, sizeof like);
    snprintf(ids, sizeof ids, "%s %s", id, like);
    system->distribution = distribution_of(ids);
    system->windows = system->distribution == DISTRIBUTION_WINDOWS;
    if (!read_release(root, "PRETTY_NAME=", system->distribution_name, sizeof system->distribution_name))
        snprintf(system->distribution_name, sizeof system->distribution_name, "unknown distribution");
}

static void read_container(const char *root, cleat_system *system) {
    char line[256];
    const char *kind = "";
    if (cleat_root_exists(root, "/.dockerenv"))
        kind = "docker";
    else if (cleat_root_exists(root, "/run/.containerenv"))
        kind = "podman";
    else if (cleat_root_line(root, "/run/systemd/container", line, sizeof line))
        kind = line;
    else if (cleat_root_exists(root, "/var/run/secrets/kubernetes.io"))
        kind = "kubernetes";
    snprintf(system->container, sizeof system->container, "%.31s", kind);
}

/* The environment belongs to the machine, not to a fixture. */
static bool has_variable(const char *root, const char *name) {
    return !root[0] && getenv(name);
}

void cleat_system_read(const char *root, cleat_system *system) {
    struct utsname machine;
    *system = (cleat_system){0};
    read_distribution(root, system);
    read_container(root, system);
    if (!cleat_root_line(root, "/proc/sys/kernel/osrelease", system->kernel, sizeof system->kernel) && !root[0] &&
        uname(&machine) == 0)
        snprintf(system->kernel, sizeof system->kernel, "%s", machine.release);
    system->wsl = strstr(system->kernel, "icrosoft") || cleat_root_exists(root, "/dev/dxg");
    system->kaggle = cleat_root_exists(root, "/kaggle") || has_variable(root, "KAGGLE_KERNEL_RUN_TYPE");
    system->colab =
        !system->kaggle && (cleat_root_exists(root, "/content/sample_data") || has_variable(root, "COLAB_RELEASE_TAG"));
}
