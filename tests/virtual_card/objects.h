/* The driver's objects behind OpenCL handles, and their common lock. */
#ifndef VIRTUAL_CARD_OBJECTS_H
#define VIRTUAL_CARD_OBJECTS_H

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_icd.h>

#include <stdbool.h>
#include <stdint.h>

#include "code.h"

typedef enum vc_kind {
    VC_PLATFORM,
    VC_DEVICE,
    VC_CONTEXT,
    VC_QUEUE,
    VC_BUFFER,
    VC_PROGRAM,
    VC_KERNEL,
    VC_EVENT,
    VC_KINDS
} vc_kind;

/* The header of every object. The program owns references; other objects and queued commands own holds.
 * Without references the handle must not be used; without either, the object's content is freed. */
typedef struct vc_object {
    const cl_icd_dispatch *dispatch; /* first: the loader of OpenCL reads it */
    uint32_t magic;
    vc_kind kind;
    int references, holds;
    void (*destroy)(struct vc_object *object); /* frees the content, not the object; may be NULL */
} vc_object;

struct _cl_platform_id {
    vc_object object;
};

struct _cl_device_id {
    vc_object object;
    const vc_card *card;
    uint64_t allocated; /* bytes of all buffers */
};

struct _cl_context {
    vc_object object;
    cl_int lost; /* CL_SUCCESS, or the error of every later command after an aborted kernel */
    void(CL_CALLBACK *notify)(const char *text, const void *data, size_t bytes, void *user);
    void *user;
};

typedef struct vc_command vc_command;

struct _cl_command_queue {
    vc_object object;
    cl_context context;
    cl_command_queue_properties properties;
    vc_command *first, *last;       /* pending commands in the order of enqueueing */
    bool running;                   /* a thread is running the first command */
    struct _cl_command_queue *next; /* list of all queues */
};

/* A part of a buffer that is mapped at `host`. */
typedef struct vc_mapping {
    struct vc_mapping *next;
    unsigned char *host;
    size_t offset, bytes;
    bool write, own; /* written back on unmap; `host` belongs to the mapping */
} vc_mapping;

struct _cl_mem {
    vc_object object;
    cl_context context;
    cl_mem_flags flags;
    unsigned char *data; /* also the address on the device */
    size_t bytes, origin;
    cl_mem parent;  /* of a sub-buffer; else NULL */
    void *host_ptr; /* of CL_MEM_USE_HOST_PTR */
    vc_mapping *mappings;
};

struct _cl_program {
    vc_object object;
    cl_context context;
    char *source, *options, *log, *assembly; /* NULL: none */
    vc_code *code;                           /* NULL: not built */
    cl_build_status status;
    int kernels; /* existing kernels, which prevent another build */
};

/* An argument that clSetKernelArg has set. */
typedef struct vc_argument {
    bool set;
    unsigned char *value; /* of the parameter's size; NULL for memory objects */
    cl_mem buffer;        /* NULL: none */
    size_t local_bytes;
} vc_argument;

struct _cl_kernel {
    vc_object object;
    cl_program program;
    const vc_code_kernel *code;
    vc_argument *arguments;
};

struct _cl_event {
    vc_object object;
    cl_context context;
    cl_command_queue queue; /* NULL: a user event */
    cl_command_type type;
    cl_int status;                              /* CL_QUEUED ... CL_COMPLETE, or an error */
    cl_ulong queued, submitted, started, ended; /* nanoseconds */
};

extern cl_icd_dispatch vc_dispatch;
extern struct _cl_platform_id vc_platform;
extern struct _cl_device_id vc_device;

/* The lock of all objects. VC_LOCKED holds it until the end of the block. */
void vc_lock(void);
void vc_unlock(void);
void vc_unlock_guard(const int *guard);
#define VC_LOCKED                                                                                                      \
    __attribute__((cleanup(vc_unlock_guard))) const int vc_guard = 0;                                                  \
    vc_lock()

/* Waits for vc_changed, or until the timeout. Releases the lock meanwhile. */
void vc_wait_for_change(int milliseconds);
void vc_changed(void);

/* A new object with one reference; `bytes` is the size of its struct. NULL: no memory. */
void *vc_object_new(vc_kind kind, size_t bytes, void (*destroy)(vc_object *object));

/* An object that is part of the library. */
void vc_object_init(vc_object *object, vc_kind kind);

/* CL_SUCCESS for a handle of this kind, otherwise the kind's error (CL_INVALID_EVENT, ...). A released object
 * is a fault. With vc_lock. */
cl_int vc_check(const void *object, vc_kind kind, const char *function);

/* With vc_lock. */
cl_int vc_retain(void *object, vc_kind kind, const char *function);
cl_int vc_release(void *object, vc_kind kind, const char *function);
void vc_hold(void *object);
void vc_drop(void *object);

/* Number of unreleased objects of this kind. */
int vc_alive(vc_kind kind);
const char *vc_kind_name(vc_kind kind);

/* Answers a query: copies the value, or returns CL_INVALID_VALUE if `size` is too small. */
cl_int vc_answer(const void *value, size_t bytes, size_t size, void *out, size_t *needed);
cl_int vc_answer_text(const char *text, size_t size, void *out, size_t *needed);
/* Answers with an expression converted to this type. */
#define VC_ANSWER(type, ...) vc_answer(&(type){__VA_ARGS__}, sizeof(type), size, out, needed)

/* Monotonic time in nanoseconds. */
cl_ulong vc_now(void);

/* Writes *code; `code` may be NULL. */
static inline void vc_return(cl_int *code, cl_int value) {
    if (code) *code = value;
}

#endif
