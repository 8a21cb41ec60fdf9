/* Object references and holds, the lock, and answers to queries. */
#include "objects.h"

#include "faults.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ALIVE 0x43a1d0c4u
#define RELEASED 0xdeadc4a1u

/* Released objects are kept for a while to detect their use. */
enum { KEPT = 65536 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static int alive[VC_KINDS];
static vc_object *kept[KEPT];
static size_t next_kept;

static const struct {
    const char *name;
    cl_int code;
} kinds[VC_KINDS] = {
    [VC_PLATFORM] = {"platform", CL_INVALID_PLATFORM}, [VC_DEVICE] = {"device", CL_INVALID_DEVICE},
    [VC_CONTEXT] = {"context", CL_INVALID_CONTEXT},    [VC_QUEUE] = {"command queue", CL_INVALID_COMMAND_QUEUE},
    [VC_BUFFER] = {"buffer", CL_INVALID_MEM_OBJECT},   [VC_PROGRAM] = {"program", CL_INVALID_PROGRAM},
    [VC_KERNEL] = {"kernel", CL_INVALID_KERNEL},       [VC_EVENT] = {"event", CL_INVALID_EVENT},
};

void vc_lock(void) {
    pthread_mutex_lock(&lock);
}

void vc_unlock(void) {
    pthread_mutex_unlock(&lock);
}

void vc_unlock_guard(const int *guard) {
    (void)guard;
    vc_unlock();
}

void vc_changed(void) {
    pthread_cond_broadcast(&change);
}

void vc_wait_for_change(int milliseconds) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += milliseconds % 1000 * 1000000L;
    until.tv_sec += milliseconds / 1000 + until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_cond_timedwait(&change, &lock, &until);
}

cl_ulong vc_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (cl_ulong)now.tv_sec * 1000000000u + (cl_ulong)now.tv_nsec;
}

void vc_object_init(vc_object *object, vc_kind kind) {
    object->dispatch = &vc_dispatch;
    object->magic = ALIVE;
    object->kind = kind;
    object->references = 1;
}

void *vc_object_new(vc_kind kind, size_t bytes, void (*destroy)(vc_object *object)) {
    vc_object *object = calloc(1, bytes);
    if (!object) return NULL;
    vc_object_init(object, kind);
    object->destroy = destroy;
    ++alive[kind];
    return object;
}

cl_int vc_check(const void *handle, vc_kind kind, const char *function) {
    const vc_object *object = handle;
    if (object && object->kind == kind && object->magic == ALIVE) return CL_SUCCESS;
    if (object && object->kind == kind && object->magic == RELEASED)
        vc_fault("%s: the %s was released before", function, kinds[kind].name);
    return kinds[kind].code;
}

/* The object itself is kept for a while. */
static void end(vc_object *object) {
    if (object->destroy) object->destroy(object);
    free(kept[next_kept]);
    kept[next_kept] = object;
    next_kept = (next_kept + 1) % KEPT;
}

cl_int vc_retain(void *handle, vc_kind kind, const char *function) {
    cl_int code = vc_check(handle, kind, function);
    if (code == CL_SUCCESS) ++((vc_object *)handle)->references;
    return code;
}

cl_int vc_release(void *handle, vc_kind kind, const char *function) {
    vc_object *object = handle;
    cl_int code = vc_check(handle, kind, function);
    if (code != CL_SUCCESS || --object->references > 0) return code;
    object->magic = RELEASED;
    --alive[kind];
    if (object->holds == 0) end(object);
    return CL_SUCCESS;
}

void vc_hold(void *handle) {
    if (handle) ++((vc_object *)handle)->holds;
}

void vc_drop(void *handle) {
    vc_object *object = handle;
    if (object && --object->holds == 0 && object->references == 0) end(object);
}

int vc_alive(vc_kind kind) {
    return alive[kind];
}

const char *vc_kind_name(vc_kind kind) {
    return kinds[kind].name;
}

cl_int vc_answer(const void *value, size_t bytes, size_t size, void *out, size_t *needed) {
    if (out && size < bytes) return CL_INVALID_VALUE;
    if (needed) *needed = bytes;
    if (out) memcpy(out, value, bytes);
    return CL_SUCCESS;
}

cl_int vc_answer_text(const char *text, size_t size, void *out, size_t *needed) {
    return vc_answer(text, strlen(text) + 1, size, out, needed);
}
