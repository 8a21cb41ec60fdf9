/* Card files: facts about cards by name, so that a run can be planned for a card that is absent, and so
 * that the facts of its driver can be compared with the file if it is present. The files are
 * profiles/devices/NAME.ini, embedded in the library. */
#ifndef CLEAT_CARD_H
#define CLEAT_CARD_H

#include "cleat/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Plain data. Every figure has a source in the file. */
typedef struct cleat_card {
    char name[32]; /* "t4": the name for --card */
    /* facts as the driver reports them; memory_free: memory_total less the driver's own use */
    cleat_device_facts facts;
    char match[256];     /* parts of device names that mean this card, separated by "|" */
    double f32_flops;    /* f32 peak, operations per second; a multiply-add is two */
    double f16_flops;    /* peak of f16 arithmetic outside matrix units, operations per second */
    double matrix_flops; /* peak of the matrix units with half inputs, operations per second; 0: none */
    double bandwidth;    /* peak, bytes per second */
    int64_t workers;     /* recommended loader threads */
    double board_watts;  /* power at full load; 0: unknown */
    cleat_rates rates;   /* sustained: the file's efficiencies times the peaks */
} cleat_card;

/* The number of embedded card files, and their names in alphabetical order. */
CLEAT_API size_t cleat_card_count(void);
CLEAT_API const char *cleat_card_name(size_t i); /* NULL past the last */

/* Reads the card called `name`, or the card file `name` if it ends in ".ini". CLEAT_ERR_NOT_FOUND lists
 * the embedded cards and the nearest name; CLEAT_ERR_PROFILE names file and line of an invalid entry. */
CLEAT_API cleat_status cleat_card_open(const char *name, cleat_card *card, cleat_error *error);

/* Finds the card file of a device by its name, and by its memory if the name is ambiguous. False: none
 * matches; `card` is then unchanged. */
CLEAT_API bool cleat_card_match(const cleat_device_facts *facts, cleat_card *card);

/* Writes the facts that differ by more than 2 % between driver and card file ("memory 15.6 GiB, the card
 * file says 14.6 GiB; ...") to `text` [size], cut if too long; returns their number. */
CLEAT_API size_t cleat_card_differences(const cleat_card *card, const cleat_device_facts *facts, char *text,
                                        size_t size);

#ifdef __cplusplus
}
#endif
#endif
