/* Machines made of files (file_tree.h), with cards, drivers and limits. */
#ifndef CLEAT_TESTS_MACHINE_H
#define CLEAT_TESTS_MACHINE_H

#include "cleat/doctor.h"
#include "file_tree.h"

/* A machine without cards and drivers, whose host has no faults. Sets the environment to hide the real machine. */
void machine_create(void);
void machine_remove(void);

/* A card in /sys/bus/pci. `driver`: its kernel driver, NULL: none. `node`: its /dev/dri node, NULL: none. */
void machine_card(const char *address, const char *pci_class, const char *vendor, const char *device,
                  const char *driver, const char *node);
/* The nodes and the /proc entry of an NVIDIA card, without sysfs. */
void machine_nvidia(const char *address, int minor, const char *model);
/* A copy of the stub driver as `library`, registered as NAME.icd; `conf` as in stub/stub_driver.c. */
void machine_driver(const char *icd, const char *library, const char *conf);
/* An .icd file with this text. */
void machine_icd(const char *icd, const char *text);

#endif
