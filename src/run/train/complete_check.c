/* Which samples have no prediction, or an incomplete one. */
#include "train/complete_check.h"

#include "core/string.h"

enum { NAMED = 5 };

/* Samples of a state: their number, and the first names. */
static size_t find_samples(const cleat_dataset *dataset, const unsigned char *states, cleat_sample_state state,
                           cleat_string *names) {
    size_t found = 0;
    for (size_t i = 0; i < cleat_dataset_count(dataset); ++i) {
        if (states[i] != state) continue;
        if (found++ < NAMED) cleat_string_add(names, "%s%s", found > 1 ? ", " : "", cleat_dataset_id(dataset, i));
    }
    if (found > NAMED) cleat_string_add(names, ", ...");
    return found;
}

cleat_status cleat_check_complete(const cleat_dataset *dataset, const unsigned char *states, int64_t max_length,
                                  const char *out, cleat_error *error) {
    const size_t all = cleat_dataset_count(dataset);
    cleat_string cut = {0}, unread = {0}, text = {0};
    const size_t n_cut = find_samples(dataset, states, CLEAT_SAMPLE_CUT, &cut),
                 n_unread = find_samples(dataset, states, CLEAT_SAMPLE_UNREADABLE, &unread);
    cleat_status status = CLEAT_OK;
    if (n_unread && unread.data)
        cleat_string_add(&text, "%zu of %zu files cannot be read and have no prediction: %s", n_unread, all,
                         unread.data);
    if (n_cut && cut.data)
        cleat_string_add(
            &text,
            "%s%zu of %zu samples are longer than data.max_length = %lld, and their ends are not predicted: "
            "%s; a larger data.max_length predicts them whole",
            n_unread ? "; " : "", n_cut, all, (long long)max_length, cut.data);
    if (cut.failed || unread.failed || text.failed)
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the names of samples");
    else if (n_unread || n_cut)
        status = cleat_fail(error, n_unread ? CLEAT_ERR_FORMAT : CLEAT_ERR_ARGUMENT, "predictions in %s: %s", out,
                            text.data);
    cleat_string_free(&cut);
    cleat_string_free(&unread);
    cleat_string_free(&text);
    return status;
}
