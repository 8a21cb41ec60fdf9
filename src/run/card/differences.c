/* Differences between the facts of a driver and a card file. */
#include "core/string.h"

#include "cleat/card.h"

#include <math.h>
#include <stdio.h>

static const double tolerance = 0.02;

typedef struct comparison {
    cleat_string text;
    size_t count;
} comparison;

static void differ(comparison *all, const char *what, const char *driver, const char *card) {
    cleat_string_add(&all->text, "%s%s %s, but %s in the card file", all->count ? "; " : "", what, driver, card);
    ++all->count;
}

static bool same(double a, double b) {
    return fabs(a - b) <= tolerance * fmax(fabs(a), fabs(b));
}

static void compare_bytes(comparison *all, const char *what, int64_t driver, int64_t card) {
    char reported[CLEAT_BYTES_TEXT], filed[CLEAT_BYTES_TEXT];
    if (same((double)driver, (double)card)) return;
    differ(all, what, cleat_bytes_text(driver, reported), cleat_bytes_text(card, filed));
}

static void compare_count(comparison *all, const char *what, int32_t driver, int32_t card) {
    char reported[32], filed[32];
    if (same(driver, card)) return;
    snprintf(reported, sizeof reported, "%d", (int)driver);
    snprintf(filed, sizeof filed, "%d", (int)card);
    differ(all, what, reported, filed);
}

static void compare_truth(comparison *all, const char *what, bool driver, bool card) {
    if (driver != card) differ(all, what, driver ? "yes" : "no", card ? "yes" : "no");
}

size_t cleat_card_differences(const cleat_card *card, const cleat_device_facts *facts, char *text, size_t size) {
    comparison all = {0};
    const cleat_device_facts *file = &card->facts;
    compare_bytes(&all, "memory", facts->memory_total, file->memory_total);
    compare_bytes(&all, "largest allocation", facts->max_allocation, file->max_allocation);
    compare_bytes(&all, "alignment", facts->alignment, file->alignment);
    compare_bytes(&all, "local memory", facts->local_memory, file->local_memory);
    compare_count(&all, "largest work-group", facts->max_work_group, file->max_work_group);
    compare_count(&all, "compute units", facts->compute_units, file->compute_units);
    compare_count(&all, "smallest sub-group", facts->sub_group, file->sub_group);
    compare_truth(&all, "unified memory", facts->unified_memory, file->unified_memory);
    compare_truth(&all, "cl_khr_fp16", facts->half_extension, file->half_extension);
    compare_truth(&all, "cl_khr_fp64", facts->double_extension, file->double_extension);
    if (size) snprintf(text, size, "%s", all.text.data ? all.text.data : "");
    cleat_string_free(&all.text);
    return all.count;
}
