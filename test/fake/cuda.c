/* SPDX-License-Identifier: BSD-3-Clause */
/* A stand-in for libcuda.so.1 on machines without a GPU: for tests, never for figures.
 *
 * "Device" memory is a range of addresses that the processor may not touch: whoever does crashes.
 * Its bytes are in a memfd that is mapped a second time, where only this library copies. A stream
 * is a thread that does its copies some time after they were started; an IPC handle names the
 * memfd, which another process opens. Calls are as strict as the real driver's or stricter: a copy
 * needs a current context that is its stream's, a handle cannot be opened by who made it, nor
 * twice.
 *
 * MULTILANE_FAKE_CUDA is a list of words: devices=N, delay-us=N, no-ipc, ipc-open-fails,
 * no-pinned, no-peer, old, fail-copy=N (the Nth copy fails when it is done, and all after it). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/memory/driver.h"

#define API         __attribute__((visibility("default")))
#define DEVICES_MAX 8

/* --- what is switched on ------------------------------------------------------------------------
 */

static struct {
    int devices;
    long delay_us;
    long fail_copy;
    bool no_ipc, ipc_open_fails, no_pinned, no_peer, old;
} settings = {.devices = 2, .delay_us = 20};

static void setting_read(const char *word)
{
    long number = 0;
    if (sscanf(word, "devices=%ld", &number) == 1)
        settings.devices = (int) (number < DEVICES_MAX ? number : DEVICES_MAX);
    else if (sscanf(word, "delay-us=%ld", &number) == 1)
        settings.delay_us = number;
    else if (sscanf(word, "fail-copy=%ld", &number) == 1)
        settings.fail_copy = number;
    else if (strcmp(word, "no-ipc") == 0)
        settings.no_ipc = true;
    else if (strcmp(word, "ipc-open-fails") == 0)
        settings.ipc_open_fails = true;
    else if (strcmp(word, "no-pinned") == 0)
        settings.no_pinned = true;
    else if (strcmp(word, "no-peer") == 0)
        settings.no_peer = true;
    else if (strcmp(word, "old") == 0)
        settings.old = true;
    else
        fprintf(stderr, "stand-in for libcuda: MULTILANE_FAKE_CUDA does not know \"%s\"\n", word);
}

__attribute__((constructor)) static void settings_read(void)
{
    const char *given = getenv("MULTILANE_FAKE_CUDA");
    char text[256], *rest = text;
    if (!given)
        return;
    snprintf(text, sizeof(text), "%s", given);
    for (char *word; (word = strsep(&rest, ",")) != NULL;)
        if (*word)
            setting_read(word);
}

/* --- memory -------------------------------------------------------------------------------------
 */

struct allocation {
    struct allocation *next;
    char *start;  /* what the program sees */
    char *shadow; /* where the bytes are */
    size_t size;
    unsigned type; /* enum driver_memory_type */
    bool managed, imported;
    int fd;
    int device;
    driver_context context;
    unsigned long long id;
    unsigned long long origin; /* of an imported one: who made it, and its id there */
    int origin_pid;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all but the streams' queues */
static struct allocation *allocations;
static unsigned long long next_id = 1; /* atomic */
static bool started;

static size_t round_up(size_t size)
{
    size_t page = (size_t) sysconf(_SC_PAGESIZE);
    return (size + page - 1) / page * page;
}

/* With the lock held. */
static struct allocation *allocation_at(const void *address)
{
    for (struct allocation *at = allocations; at; at = at->next)
        if ((char *) address >= at->start && (char *) address < at->start + at->size)
            return at;
    return NULL;
}

/* Where the bytes of an address are; null if it is not the driver's or too few are left. */
static char *bytes_of(driver_ptr address, size_t size, bool *is_known)
{
    char *pointer = (char *) (uintptr_t) address, *bytes = NULL;
    pthread_mutex_lock(&lock);
    struct allocation *at = allocation_at(pointer);
    if (at && size <= (size_t) (at->start + at->size - pointer))
        bytes = at->shadow + (pointer - at->start);
    pthread_mutex_unlock(&lock);
    *is_known = at != NULL;
    return bytes;
}

static struct allocation *allocation_map(int fd, size_t size, bool is_hidden)
{
    struct allocation *new = calloc(1, sizeof(*new));
    if (!new)
        return NULL;
    new->size = size;
    new->fd = fd;
    new->shadow = mmap(NULL, round_up(size), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    new->start = is_hidden ? mmap(NULL, round_up(size), PROT_NONE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                           : new->shadow;
    if (new->shadow == MAP_FAILED || new->start == MAP_FAILED) {
        free(new);
        return NULL;
    }
    return new;
}

static void allocation_add(struct allocation *new)
{
    pthread_mutex_lock(&lock);
    new->next = allocations;
    allocations = new;
    pthread_mutex_unlock(&lock);
}

static void allocation_free(struct allocation *old)
{
    munmap(old->shadow, round_up(old->size));
    if (old->start != old->shadow)
        munmap(old->start, round_up(old->size));
    close(old->fd);
    free(old);
}

/* Takes the allocation that begins there out of the list; null: none does. */
static struct allocation *allocation_take(const void *start, bool imported)
{
    pthread_mutex_lock(&lock);
    struct allocation **at = &allocations, *found;
    while (*at && ((*at)->start != start || (*at)->imported != imported))
        at = &(*at)->next;
    found = *at;
    if (found)
        *at = found->next;
    pthread_mutex_unlock(&lock);
    return found;
}

/* --- contexts -----------------------------------------------------------------------------------
 */

struct driver_context_s {
    int device;
    unsigned holds; /* of the primary one */
};

static struct driver_context_s primaries[DEVICES_MAX];

#define STACK_MAX 16
static __thread driver_context stack[STACK_MAX];
static __thread int stack_height;

static driver_context current(void)
{
    return stack_height ? stack[stack_height - 1] : NULL;
}

API driver_result cuInit(unsigned flags)
{
    (void) flags;
    if (settings.devices == 0)
        return DRIVER_NO_DEVICE;
    for (int i = 0; i < DEVICES_MAX; i++)
        primaries[i].device = i;
    started = true;
    return DRIVER_SUCCESS;
}

API driver_result cuGetErrorName(driver_result result, const char **name)
{
    static const struct {
        driver_result result;
        const char *name;
    } names[] = {{DRIVER_SUCCESS, "CUDA_SUCCESS"},
                 {DRIVER_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
                 {DRIVER_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
                 {DRIVER_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"},
                 {DRIVER_NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
                 {DRIVER_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
                 {DRIVER_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
                 {DRIVER_ALREADY_MAPPED, "CUDA_ERROR_ALREADY_MAPPED"},
                 {DRIVER_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
                 {DRIVER_NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
                 {DRIVER_NOT_READY, "CUDA_ERROR_NOT_READY"},
                 {DRIVER_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                 {DRIVER_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].result == result) {
            *name = names[i].name;
            return DRIVER_SUCCESS;
        }
    return DRIVER_INVALID_VALUE;
}

API driver_result cuGetErrorString(driver_result result, const char **text)
{
    static const char words[] = "said by a stand-in for the driver";
    (void) result;
    *text = words;
    return DRIVER_SUCCESS;
}

API driver_result cuDeviceGetCount(int *count)
{
    *count = settings.devices;
    return started ? DRIVER_SUCCESS : DRIVER_NOT_INITIALIZED;
}

API driver_result cuDeviceGetUuid(struct driver_uuid *uuid, driver_device device)
{
    if (device < 0 || device >= settings.devices)
        return DRIVER_INVALID_DEVICE;
    *uuid = (struct driver_uuid){.bytes = "stand-in"};
    uuid->bytes[15] = (char) device;
    return DRIVER_SUCCESS;
}

API driver_result cuDeviceCanAccessPeer(int *can, driver_device device, driver_device peer)
{
    *can = device != peer && !settings.no_peer;
    return DRIVER_SUCCESS;
}

API driver_result cuDevicePrimaryCtxRetain(driver_context *context, driver_device device)
{
    if (!started)
        return DRIVER_NOT_INITIALIZED;
    if (device < 0 || device >= settings.devices)
        return DRIVER_INVALID_DEVICE;
    __atomic_add_fetch(&primaries[device].holds, 1, __ATOMIC_RELAXED);
    *context = &primaries[device];
    return DRIVER_SUCCESS;
}

API driver_result cuDevicePrimaryCtxRelease(driver_device device)
{
    if (device < 0 || device >= settings.devices ||
        __atomic_load_n(&primaries[device].holds, __ATOMIC_RELAXED) == 0)
        return DRIVER_INVALID_CONTEXT;
    __atomic_sub_fetch(&primaries[device].holds, 1, __ATOMIC_RELAXED);
    return DRIVER_SUCCESS;
}

API driver_result cuCtxPushCurrent(driver_context context)
{
    if (!context || stack_height == STACK_MAX)
        return DRIVER_INVALID_CONTEXT;
    stack[stack_height++] = context;
    return DRIVER_SUCCESS;
}

API driver_result cuCtxPopCurrent(driver_context *context)
{
    if (!stack_height)
        return DRIVER_INVALID_CONTEXT;
    driver_context popped = stack[--stack_height];
    if (context)
        *context = popped;
    return DRIVER_SUCCESS;
}

/* --- allocating ---------------------------------------------------------------------------------
 */

static driver_result allocate(driver_ptr *pointer, size_t size, bool is_hidden, unsigned type)
{
    if (!current())
        return DRIVER_INVALID_CONTEXT;
    if (!size)
        return DRIVER_INVALID_VALUE;
    char name[64];
    unsigned long long id = __atomic_fetch_add(&next_id, 1, __ATOMIC_RELAXED);
    snprintf(name, sizeof(name), "standin-%d-%llu", (int) getpid(), id);
    int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t) round_up(size)) != 0) {
        close(fd);
        return DRIVER_OUT_OF_MEMORY;
    }
    struct allocation *new = allocation_map(fd, size, is_hidden);
    if (!new) {
        close(fd);
        return DRIVER_OUT_OF_MEMORY;
    }
    new->id = id;
    new->type = type;
    new->context = current();
    new->device = new->context->device;
    allocation_add(new);
    *pointer = (driver_ptr) (uintptr_t) new->start;
    return DRIVER_SUCCESS;
}

API driver_result cuMemAlloc(driver_ptr *pointer, size_t size)
{
    return allocate(pointer, size, true, DRIVER_MEMORY_DEVICE);
}

/* Managed memory is hidden too: the PML must not touch it while a kernel may run. */
API driver_result cuMemAllocManaged(driver_ptr *pointer, size_t size, unsigned flags)
{
    (void) flags;
    driver_result result = allocate(pointer, size, true, DRIVER_MEMORY_DEVICE);
    if (result == DRIVER_SUCCESS) {
        pthread_mutex_lock(&lock);
        allocation_at((void *) (uintptr_t) *pointer)->managed = true;
        pthread_mutex_unlock(&lock);
    }
    return result;
}

API driver_result cuMemFree(driver_ptr pointer)
{
    struct allocation *old = allocation_take((void *) (uintptr_t) pointer, false);
    if (!old)
        return DRIVER_INVALID_VALUE;
    allocation_free(old);
    return DRIVER_SUCCESS;
}

API driver_result cuMemHostAlloc(void **pointer, size_t size, unsigned flags)
{
    (void) flags;
    driver_ptr address;
    if (settings.no_pinned)
        return DRIVER_OUT_OF_MEMORY;
    driver_result result = allocate(&address, size, false, DRIVER_MEMORY_HOST);
    if (result == DRIVER_SUCCESS)
        *pointer = (void *) (uintptr_t) address;
    return result;
}

API driver_result cuMemFreeHost(void *pointer)
{
    return cuMemFree((driver_ptr) (uintptr_t) pointer);
}

static void attribute_of(const struct allocation *at, int attribute, void *value)
{
    switch (attribute) {
    case DRIVER_POINTER_CONTEXT:
        *(driver_context *) value = at ? at->context : NULL;
        break;
    case DRIVER_POINTER_MEMORY_TYPE:
        *(unsigned *) value = at ? at->type : 0;
        break;
    case DRIVER_POINTER_BUFFER_ID:
        *(unsigned long long *) value = at ? at->id : 0;
        break;
    case DRIVER_POINTER_IS_MANAGED:
        *(bool *) value = at && at->managed;
        break;
    case DRIVER_POINTER_DEVICE:
        *(int *) value = at ? at->device : -2;
        break;
    case DRIVER_POINTER_IPC_CAPABLE:
        *(bool *) value =
            at && !at->managed && at->start != at->shadow && !at->imported && !settings.no_ipc;
        break;
    case DRIVER_POINTER_RANGE_START:
        *(driver_ptr *) value = at ? (driver_ptr) (uintptr_t) at->start : 0;
        break;
    case DRIVER_POINTER_RANGE_SIZE:
        *(size_t *) value = at ? at->size : 0;
        break;
    default:
        break;
    }
}

API driver_result cuPointerGetAttributes(unsigned count, const int *attributes, void **values,
                                         driver_ptr pointer)
{
    if (!started)
        return DRIVER_NOT_INITIALIZED;
    pthread_mutex_lock(&lock);
    const struct allocation *at = allocation_at((void *) (uintptr_t) pointer);
    for (unsigned i = 0; i < count; i++)
        attribute_of(at, attributes[i], values[i]);
    pthread_mutex_unlock(&lock);
    return DRIVER_SUCCESS;
}

/* --- streams and events -------------------------------------------------------------------------
 */

struct driver_event_s {
    driver_context context;
    bool pending; /* atomic */
    driver_result result;
};

struct operation {
    struct operation *next;
    char *to, *from;
    size_t to_pitch, from_pitch, bytes, rows;
    char *snapshot; /* of pageable memory, read when the copy was started */
    driver_event event;
};

struct driver_stream_s {
    driver_context context;
    pthread_t thread;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    struct operation *first, **last;
    bool busy, ending;
};

static long copies_done;
static driver_result sticky = DRIVER_SUCCESS;

static void operation_do(struct operation *operation)
{
    if (settings.delay_us)
        usleep((useconds_t) settings.delay_us);
    if (operation->event) {
        operation->event->result = __atomic_load_n(&sticky, __ATOMIC_RELAXED);
        /* Release: the copies before it. */
        __atomic_store_n(&operation->event->pending, false, __ATOMIC_RELEASE);
    } else {
        long number = __atomic_add_fetch(&copies_done, 1, __ATOMIC_RELAXED);
        if (settings.fail_copy && number >= settings.fail_copy)
            __atomic_store_n(&sticky, DRIVER_ILLEGAL_ADDRESS, __ATOMIC_RELAXED);
        else
            for (size_t row = 0; row < operation->rows; row++)
                memcpy(operation->to + row * operation->to_pitch,
                       operation->from + row * operation->from_pitch, operation->bytes);
    }
    free(operation->snapshot);
    free(operation);
}

static void *stream_run(void *argument)
{
    driver_stream stream = argument;
    pthread_mutex_lock(&stream->lock);
    for (;;) {
        while (!stream->first && !stream->ending)
            pthread_cond_wait(&stream->changed, &stream->lock);
        if (!stream->first)
            break;
        struct operation *operation = stream->first;
        stream->first = operation->next;
        if (!stream->first)
            stream->last = &stream->first;
        stream->busy = true;
        pthread_mutex_unlock(&stream->lock);
        operation_do(operation);
        pthread_mutex_lock(&stream->lock);
        stream->busy = false;
        pthread_cond_broadcast(&stream->changed);
    }
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

API driver_result cuStreamCreate(driver_stream *out, unsigned flags)
{
    (void) flags;
    if (!current())
        return DRIVER_INVALID_CONTEXT;
    driver_stream stream = calloc(1, sizeof(*stream));
    if (!stream)
        return DRIVER_OUT_OF_MEMORY;
    stream->context = current();
    stream->last = &stream->first;
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->changed, NULL);
    if (pthread_create(&stream->thread, NULL, stream_run, stream) != 0) {
        free(stream);
        return DRIVER_OUT_OF_MEMORY;
    }
    *out = stream;
    return DRIVER_SUCCESS;
}

API driver_result cuStreamSynchronize(driver_stream stream)
{
    if (!stream || stream->context != current())
        return DRIVER_INVALID_HANDLE;
    pthread_mutex_lock(&stream->lock);
    while (stream->first || stream->busy)
        pthread_cond_wait(&stream->changed, &stream->lock);
    pthread_mutex_unlock(&stream->lock);
    return __atomic_load_n(&sticky, __ATOMIC_RELAXED);
}

API driver_result cuStreamDestroy(driver_stream stream)
{
    pthread_mutex_lock(&stream->lock);
    stream->ending = true;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    pthread_join(stream->thread, NULL);
    pthread_mutex_destroy(&stream->lock);
    pthread_cond_destroy(&stream->changed);
    free(stream);
    return DRIVER_SUCCESS;
}

static driver_result stream_add(driver_stream stream, const struct operation *wanted)
{
    struct operation *operation = malloc(sizeof(*operation));
    if (!operation)
        return DRIVER_OUT_OF_MEMORY;
    *operation = *wanted;
    operation->next = NULL;
    pthread_mutex_lock(&stream->lock);
    *stream->last = operation;
    stream->last = &operation->next;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    return DRIVER_SUCCESS;
}

API driver_result cuEventCreate(driver_event *event, unsigned flags)
{
    (void) flags;
    if (!current())
        return DRIVER_INVALID_CONTEXT;
    *event = calloc(1, sizeof(**event));
    if (!*event)
        return DRIVER_OUT_OF_MEMORY;
    (*event)->context = current();
    return DRIVER_SUCCESS;
}

API driver_result cuEventRecord(driver_event event, driver_stream stream)
{
    if (!stream || event->context != stream->context || stream->context != current())
        return DRIVER_INVALID_HANDLE;
    __atomic_store_n(&event->pending, true, __ATOMIC_RELAXED);
    const struct operation operation = {.event = event};
    return stream_add(stream, &operation);
}

API driver_result cuEventQuery(driver_event event)
{
    /* Acquire, against operation_do. */
    if (__atomic_load_n(&event->pending, __ATOMIC_ACQUIRE))
        return DRIVER_NOT_READY;
    return event->result;
}

API driver_result cuEventDestroy(driver_event event)
{
    while (cuEventQuery(event) == DRIVER_NOT_READY)
        usleep(10);
    free(event);
    return DRIVER_SUCCESS;
}

/* --- copies -------------------------------------------------------------------------------------
 */

static size_t span(size_t bytes, size_t pitch, size_t rows)
{
    return rows ? pitch * (rows - 1) + bytes : 0;
}

/* Both ends as bytes that may be touched. An address that is not ours is the host's, as it is. */
static driver_result ends_find(struct operation *operation, driver_ptr to, driver_ptr from,
                               bool *to_pageable, bool *from_pageable)
{
    bool to_known, from_known;
    operation->to =
        bytes_of(to, span(operation->bytes, operation->to_pitch, operation->rows), &to_known);
    operation->from =
        bytes_of(from, span(operation->bytes, operation->from_pitch, operation->rows), &from_known);
    if ((to_known && !operation->to) || (from_known && !operation->from))
        return DRIVER_INVALID_VALUE; /* it ends outside its allocation */
    if (!to_known)
        operation->to = (char *) (uintptr_t) to;
    if (!from_known)
        operation->from = (char *) (uintptr_t) from;
    *to_pageable = !to_known;
    *from_pageable = !from_known;
    return DRIVER_SUCCESS;
}

/* Pageable memory is read before this returns, and written before it returns. */
static driver_result copy_start(driver_ptr to, driver_ptr from, struct operation *operation,
                                driver_stream stream)
{
    bool to_pageable, from_pageable;
    if (!started)
        return DRIVER_NOT_INITIALIZED;
    if (!stream || !current() || stream->context != current())
        return DRIVER_INVALID_CONTEXT;
    driver_result result = ends_find(operation, to, from, &to_pageable, &from_pageable);
    if (result != DRIVER_SUCCESS || !operation->bytes || !operation->rows)
        return result;
    if (from_pageable) {
        size_t size = span(operation->bytes, operation->from_pitch, operation->rows);
        operation->snapshot = malloc(size);
        if (!operation->snapshot)
            return DRIVER_OUT_OF_MEMORY;
        memcpy(operation->snapshot, operation->from, size);
        operation->from = operation->snapshot;
    }
    result = stream_add(stream, operation);
    if (result == DRIVER_SUCCESS && to_pageable)
        result = cuStreamSynchronize(stream);
    return result;
}

API driver_result cuMemcpyAsync(driver_ptr to, driver_ptr from, size_t bytes, driver_stream stream)
{
    struct operation operation = {
        .to_pitch = bytes, .from_pitch = bytes, .bytes = bytes, .rows = 1};
    return copy_start(to, from, &operation, stream);
}

API driver_result cuMemcpy2DAsync(const struct driver_copy_2d *copy, driver_stream stream)
{
    struct operation operation = {.to_pitch = copy->to_pitch,
                                  .from_pitch = copy->from_pitch,
                                  .bytes = copy->width_bytes,
                                  .rows = copy->height};
    if (copy->from_type != DRIVER_MEMORY_UNIFIED || copy->to_type != DRIVER_MEMORY_UNIFIED ||
        copy->width_bytes > copy->to_pitch || copy->width_bytes > copy->from_pitch ||
        copy->from_x_bytes || copy->from_y || copy->to_x_bytes || copy->to_y)
        return DRIVER_INVALID_VALUE;
    return copy_start(copy->to_device, copy->from_device, &operation, stream);
}

API driver_result cuMemcpy(driver_ptr to, driver_ptr from, size_t bytes)
{
    struct operation operation = {
        .to_pitch = bytes, .from_pitch = bytes, .bytes = bytes, .rows = 1};
    bool to_pageable, from_pageable;
    if (!current())
        return DRIVER_INVALID_CONTEXT;
    driver_result result = ends_find(&operation, to, from, &to_pageable, &from_pageable);
    if (result == DRIVER_SUCCESS && bytes)
        memcpy(operation.to, operation.from, bytes);
    return result;
}

/* --- between processes --------------------------------------------------------------------------
 */

struct handle {
    char magic[8];
    int pid, fd, device;
    unsigned long long id;
    size_t size;
};

_Static_assert(sizeof(struct handle) <= sizeof(struct driver_ipc_handle), "fits the real one");

API driver_result cuIpcGetMemHandle(struct driver_ipc_handle *out, driver_ptr pointer)
{
    struct handle handle = {.magic = "standin", .pid = (int) getpid()};
    if (settings.no_ipc)
        return DRIVER_NOT_SUPPORTED;
    pthread_mutex_lock(&lock);
    const struct allocation *at = allocation_at((void *) (uintptr_t) pointer);
    bool good = at && !at->managed && at->start != at->shadow && !at->imported;
    if (good) {
        handle.fd = at->fd;
        handle.device = at->device;
        handle.id = at->id;
        handle.size = at->size;
    }
    pthread_mutex_unlock(&lock);
    memset(out, 0, sizeof(*out));
    memcpy(out, &handle, sizeof(handle));
    return good ? DRIVER_SUCCESS : DRIVER_INVALID_VALUE;
}

static bool is_open(const struct handle *handle)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (struct allocation *at = allocations; at && !found; at = at->next)
        found = at->imported && at->origin_pid == handle->pid && at->origin == handle->id;
    pthread_mutex_unlock(&lock);
    return found;
}

/* The file is the one that the handle was made for, not a later one under its number. */
static int file_open(const struct handle *handle)
{
    char path[64], target[128], wanted[128];
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", handle->pid, handle->fd);
    snprintf(wanted, sizeof(wanted), "/memfd:standin-%d-%llu (deleted)", handle->pid, handle->id);
    ssize_t length = readlink(path, target, sizeof(target) - 1);
    if (length < 0)
        return -1;
    target[length] = '\0';
    return strcmp(target, wanted) == 0 ? open(path, O_RDWR | O_CLOEXEC) : -1;
}

API driver_result cuIpcOpenMemHandle(driver_ptr *pointer, struct driver_ipc_handle in,
                                     unsigned flags)
{
    struct handle handle;
    (void) flags;
    memcpy(&handle, &in, sizeof(handle));
    if (!current() || handle.pid == (int) getpid())
        return DRIVER_INVALID_CONTEXT;
    if (settings.ipc_open_fails || strcmp(handle.magic, "standin") != 0)
        return DRIVER_INVALID_HANDLE;
    if (is_open(&handle))
        return DRIVER_ALREADY_MAPPED;
    int fd = file_open(&handle);
    struct allocation *new = fd < 0 ? NULL : allocation_map(fd, handle.size, true);
    if (!new) {
        if (fd >= 0)
            close(fd);
        return DRIVER_INVALID_HANDLE;
    }
    new->id = __atomic_fetch_add(&next_id, 1, __ATOMIC_RELAXED);
    new->type = DRIVER_MEMORY_DEVICE;
    new->imported = true;
    new->context = current();
    new->device = handle.device;
    new->origin = handle.id;
    new->origin_pid = handle.pid;
    allocation_add(new);
    *pointer = (driver_ptr) (uintptr_t) new->start;
    return DRIVER_SUCCESS;
}

API driver_result cuIpcCloseMemHandle(driver_ptr pointer)
{
    struct allocation *old = allocation_take((void *) (uintptr_t) pointer, true);
    if (!old)
        return DRIVER_INVALID_VALUE;
    allocation_free(old);
    return DRIVER_SUCCESS;
}

/* --- finding the functions ----------------------------------------------------------------------
 */

#define ENTRY(name)                                                                                \
    {                                                                                              \
#name, (void (*)(void))(name)                                                              \
    }

static const struct {
    const char *name;
    void (*function)(void);
} functions[] = {ENTRY(cuInit),
                 ENTRY(cuGetErrorName),
                 ENTRY(cuGetErrorString),
                 ENTRY(cuDeviceGetCount),
                 ENTRY(cuDeviceGetUuid),
                 ENTRY(cuDeviceCanAccessPeer),
                 ENTRY(cuDevicePrimaryCtxRetain),
                 ENTRY(cuDevicePrimaryCtxRelease),
                 ENTRY(cuCtxPushCurrent),
                 ENTRY(cuCtxPopCurrent),
                 ENTRY(cuPointerGetAttributes),
                 ENTRY(cuMemAlloc),
                 ENTRY(cuMemAllocManaged),
                 ENTRY(cuMemFree),
                 ENTRY(cuMemHostAlloc),
                 ENTRY(cuMemFreeHost),
                 ENTRY(cuMemcpy),
                 ENTRY(cuMemcpyAsync),
                 ENTRY(cuMemcpy2DAsync),
                 ENTRY(cuStreamCreate),
                 ENTRY(cuStreamSynchronize),
                 ENTRY(cuStreamDestroy),
                 ENTRY(cuEventCreate),
                 ENTRY(cuEventRecord),
                 ENTRY(cuEventQuery),
                 ENTRY(cuEventDestroy),
                 ENTRY(cuIpcGetMemHandle),
                 ENTRY(cuIpcOpenMemHandle),
                 ENTRY(cuIpcCloseMemHandle)};

API driver_result cuGetProcAddress(const char *name, void **function, int version, uint64_t flags)
{
    (void) version;
    (void) flags;
    *function = NULL;
    if (settings.old)
        return DRIVER_NOT_FOUND;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
        if (strcmp(functions[i].name, name) == 0) {
            memcpy(function, &functions[i].function, sizeof(*function));
            return DRIVER_SUCCESS;
        }
    return DRIVER_NOT_FOUND;
}
