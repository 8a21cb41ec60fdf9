/* Opens a device for a run. If `auto` chooses a CPU or finds nothing although a card is installed, the message names
 * what keeps the card from being used. */
#include "doctor/doctor.h"
#include "platform/text.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* The first fault in the sections of this name; NULL: none. */
static const cleat_doctor_check *first_fault(const cleat_doctor_subject *sections, size_t count, const char *name) {
    for (size_t s = 0; s < count; ++s)
        for (size_t c = 0; c < sections[s].count && strcmp(sections[s].name, name) == 0; ++c)
            if (sections[s].checks[c].result >= CLEAT_CHECK_WARN) return &sections[s].checks[c];
    return NULL;
}

/* What keeps the card of a section from being used; NULL: nothing, or it was given to a virtual machine on purpose. */
static const cleat_doctor_check *reason_of(const cleat_doctor_report *report, const cleat_doctor_subject *card) {
    const cleat_doctor_check *fault = first_fault(card, 1, "card");
    if (!fault || strcmp(fault->code, "reserved-for-guest") == 0) return NULL;
    const cleat_doctor_check *driver = first_fault(report->sections, report->count, "driver");
    return driver && strcmp(fault->code, "card-not-listed") == 0 ? driver : fault;
}

/* One section for each card, in order; a section after them is about the cards of Windows. */
static const char *name_of(const cleat_doctor *doctor, size_t section) {
    return section < doctor->n_cards ? doctor->cards[section].name : "a card of Windows (WSL)";
}

/* Cards of NVIDIA and AMD before Intel's, which are mostly integrated. */
static bool is_preferred(const cleat_doctor *doctor, size_t section) {
    return section < doctor->n_cards && doctor->cards[section].vendor != PCI_INTEL;
}

static bool describe(const cleat_doctor *doctor, char *text, size_t size) {
    const cleat_doctor_report *report = doctor->report;
    const cleat_doctor_check *reason = NULL;
    size_t at = 0, others = 0;
    char more[40] = "";
    for (size_t s = 0; s < report->count && strcmp(report->sections[s].name, "card") == 0; ++s) {
        const cleat_doctor_check *found = reason_of(report, &report->sections[s]);
        if (!found) continue;
        if (reason) ++others;
        if (reason && (is_preferred(doctor, at) || !is_preferred(doctor, s))) continue;
        reason = found;
        at = s;
    }
    if (!reason) return false;
    if (others) snprintf(more, sizeof more, " (and %zu more)", others);
    snprintf(text, size, "%s%s is installed, but cannot be used: %s. %s", name_of(doctor, at), more, reason->evidence,
             reason->cause);
    return true;
}

bool cleat_unused_card(const cleat_doctor_request *request, char *text, size_t size) {
    cleat_doctor *doctor = cleat_doctor_create(request, NULL);
    if (!doctor) return false;
    cleat_system_read(doctor->root, &doctor->system);
    doctor->n_cards = cleat_cards_read(doctor->root, doctor->cards);
    doctor->listing = CHILD_ANSWERED;
    if (doctor->n_cards > 0) cleat_drivers_look(doctor);
    cleat_check_cards(doctor);
    cleat_check_drivers(doctor);
    bool found = !doctor->status && describe(doctor, text, size);
    cleat_doctor_destroy(doctor);
    return found;
}

static bool asks_for(const char *selector, const char *word) {
    return strcasecmp(selector ? selector : "auto", word) == 0;
}

/* Warns once in a process: a benchmark opens the device many times. */
static atomic_bool warned;

void cleat_unused_card_warned(void) {
    warned = true;
}

static void warn_once(void) {
    char card[CLEAT_UNUSED_CARD];
    const cleat_doctor_request request = {.list_only = true};
    if (atomic_exchange(&warned, true) || !cleat_unused_card(&request, card, sizeof card)) return;
    cleat_log(
        CLEAT_LOG_WARNING,
        "device = auto chose the CPU. %s `cleat doctor` lists the commands that help; `--device cpu` selects the CPU",
        card);
}

cleat_status cleat_doctor_open_device(const char *selector, cleat_device **device, cleat_error *error) {
    cleat_error failure = {0};
    char card[CLEAT_UNUSED_CARD];
    const cleat_doctor_request request = {.list_only = true};
    bool automatic = asks_for(selector, "auto");
    cleat_status status = cleat_device_open(selector, device, &failure);
    if (!status && automatic && cleat_device_get_facts(*device)->kind == CLEAT_DEVICE_CPU) warn_once();
    if (status && error) *error = failure;
    if (status == CLEAT_ERR_NO_DEVICE && (automatic || asks_for(selector, "gpu")) &&
        cleat_unused_card(&request, card, sizeof card))
        cleat_fail(error, status, "%s\n%s", failure.text, card);
    return status;
}
