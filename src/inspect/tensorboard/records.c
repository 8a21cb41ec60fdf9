/* Lines of metrics.jsonl and system.jsonl as records of an event file. */
#include "tensorboard/tensorboard.h"

#include "core/string.h"
#include "json/member.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 128 }; /* scalars of a line */

/* "" if there is none. */
static const char *text_of(const cJSON *object, const char *name) {
    const char *text = cleat_json_text(object, name);
    return text ? text : "";
}

static cleat_status parse(const char *line, cJSON **object, int64_t *step, cleat_error *error) {
    cJSON *parsed = cJSON_Parse(line);
    const double number = cleat_json_number(parsed, "step");
    if (isnan(number)) {
        cJSON_Delete(parsed);
        return cleat_fail(error, CLEAT_ERR_FORMAT, "not a record of a run: %.100s", line);
    }
    *step = (int64_t)number;
    *object = parsed;
    return CLEAT_OK;
}

/* Numbers of the object, without `skip` (terminated by NULL); null: `unknown`, or left out if `drop_null`. */
static size_t collect(const cJSON *object, const char *const *skip, bool drop_null, cleat_scalar *scalars) {
    size_t count = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, object) {
        const char *const *name = skip;
        while (*name && strcmp(*name, item->string) != 0) ++name;
        if (*name || count == MOST) continue;
        if (cJSON_IsNumber(item))
            scalars[count++] = (cleat_scalar){item->string, item->valuedouble};
        else if (cJSON_IsNull(item) && !drop_null)
            scalars[count++] = (cleat_scalar){item->string, NAN};
    }
    return count;
}

cleat_status cleat_tensorboard_metrics_line(cleat_tensorboard *board, double time, const char *line,
                                            cleat_error *error) {
    static const char *const skip[] = {"kind", "epoch", "step", NULL};
    cleat_scalar scalars[MOST];
    cJSON *object = NULL;
    int64_t step = 0;
    cleat_status status = parse(line, &object, &step, error);
    if (status) return status;
    size_t count = collect(object, skip, false, scalars);
    status = cleat_tensorboard_scalars(board, time, step, text_of(object, "kind"), scalars, count, error);
    cJSON_Delete(object);
    return status;
}

static cleat_status write_sample(cleat_tensorboard *board, double time, int64_t step, const cJSON *object,
                                 cleat_error *error) {
    static const char *const skip[] = {NULL};
    cleat_scalar scalars[MOST];
    size_t count = collect(cleat_json_member(object, "values"), skip, true, scalars);
    return cleat_tensorboard_scalars(board, time, step, "system", scalars, count, error);
}

static cleat_status write_event(cleat_tensorboard *board, double time, int64_t step, const cJSON *object,
                                cleat_error *error) {
    cleat_string text = {0};
    char tag[100];
    const char *command = text_of(object, "command");
    snprintf(tag, sizeof tag, "event/%s", text_of(object, "name"));
    cleat_string_add(&text, "%s: %s", text_of(object, "what"), text_of(object, "text"));
    if (*command) cleat_string_add(&text, "\n\n    %s\n", command);
    cleat_status status = text.failed ? cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a text")
                                      : cleat_tensorboard_text(board, time, step, tag, text.data, error);
    cleat_string_free(&text);
    return status;
}

cleat_status cleat_tensorboard_system_line(cleat_tensorboard *board, const char *line, cleat_error *error) {
    cJSON *object = NULL;
    int64_t step = 0;
    cleat_status status = parse(line, &object, &step, error);
    if (status) return status;
    const double time = cleat_json_number(object, "time");
    const char *kind = text_of(object, "kind");
    if (isnan(time))
        status = cleat_fail(error, CLEAT_ERR_FORMAT, "a record without time: %.100s", line);
    else if (strcmp(kind, "sample") == 0)
        status = write_sample(board, time, step, object, error);
    else if (strcmp(kind, "event") == 0)
        status = write_event(board, time, step, object, error);
    cJSON_Delete(object);
    return status;
}
