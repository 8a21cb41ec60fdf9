/* Cards that are not there: facts of cards by name, so that a run can be planned for them, and compared with what
 * a driver tells where the card is there after all. The files are profiles/devices/NAME.ini; they are part of
 * the library. */
#ifndef CLEAT_CARD_H
#define CLEAT_CARD_H

#include "cleat/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Plain data; no figure is a guess without a source in the file. */
typedef struct cleat_card {
    char name[32];            /* "t4": what --card calls it */
    cleat_device_facts facts; /* as its driver would tell them; memory_free: what a driver leaves of memory_total */
    char match[256];          /* parts of device names that mean this card, separated by "|" */
    double f32_flops;         /* peak, a second; a multiply-add is two */
    double f16_flops;         /* peak of half arithmetic outside matrix units */
    double matrix_flops;      /* peak of the matrix units with half inputs; 0: it has none */
    double bandwidth;         /* bytes a second, peak */
    int64_t workers;          /* recommended loader threads */
    cleat_rates rates;        /* sustained: the file's efficiencies times the peaks */
} cleat_card;

/* The cards the library knows, in the order of their names. */
CLEAT_API size_t cleat_card_count(void);
CLEAT_API const char *cleat_card_name(size_t i); /* NULL behind the last */

/* The card called `name`, or described by the file `name` where it ends in ".ini". CLEAT_ERR_NOT_FOUND lists the
 * known ones and the nearest name; CLEAT_ERR_PROFILE names file and line of what is wrong in a file. */
CLEAT_API cleat_status cleat_card_open(const char *name, cleat_card *card, cleat_error *error);

/* The card a device is, by its name and where that is not enough its memory; false where none is known. */
CLEAT_API bool cleat_card_match(const cleat_device_facts *facts, cleat_card *card);

/* Writes where the driver's facts differ from the card file's by more than 2 % ("memory 15.6 GiB, the card file says
 * 14.6 GiB; ...") into `text`; returns how many do. */
CLEAT_API size_t cleat_card_differences(const cleat_card *card, const cleat_device_facts *facts, char *text,
                                        size_t size);

#ifdef __cplusplus
}
#endif
#endif
