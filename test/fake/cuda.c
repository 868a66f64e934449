/* SPDX-License-Identifier: BSD-3-Clause */
/* A stand-in for libcuda.so.1 on machines without a GPU: for tests, never for figures.
 *
 * "Device" memory is a range of addresses that the processor may not touch: an access crashes.
 * Its bytes are in a memfd that is mapped a second time, where only this library copies. A stream
 * is a thread that, woken from idleness, waits before it does its copies; an IPC handle names the
 * memfd, which another process opens. Calls are as strict as the real driver's or stricter: a copy
 * needs a current context that is its stream's, a handle cannot be opened by who made it, nor
 * twice. A kernel is run as a C function of the same source, each of its accesses checked, where
 * there is one of its name; device code of another kind than nvcc's is a file that begins with
 * "stand-in". A dmabuf is the memfd, open at the place where the range begins; copies of the
 * memory have to have been made synchronous. test/fake/verbs_dmabuf.c takes it. A device that is
 * reset gives its memory back at once, and the program ends that uses a stream, an event or a
 * module from before.
 *
 * MULTILANE_FAKE_CUDA is a list of words, each maybe behind "first:", as it is then for the first
 * process of a node alone: devices=N, delay-us=N, no-ipc, ipc-open-fails,
 * ipc-one (of another process one allocation can be open at a time), own-device (each process of a
 * node sees one device, another one), no-pinned, no-peer, no-map, no-fd-handle, no-kernels,
 * no-dmabuf, dmabuf-fails, no-flush (of what other devices wrote), flush-fails, orders=N (for whom
 * the device orders that itself: 100 for itself, 200 for all), host-pages (it shares page tables
 * with the processor), fabric (there is one), long-ranges (allocations are said to be twice as long
 * as they are), late-copies (a copy to a device that the program waited for happens when the
 * program next calls something that waits for it, or demands that copies end), mig (the devices are
 * parts of one card, which only the later cuDeviceGetUuid tells apart), reset-fails (after a reset,
 * to ask about memory without an owner is an error), old, without=NAME (of a function), init-fails
 * (as where the device's files may not be opened), held (kernels of the program have the devices:
 * no copy within them or between them ends before a test says so), lost (after a copy that failed
 * even questions fail), fail-copy=N (the Nth copy or kernel fails when it is done, and all after
 * it).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/memory/driver.h"
#include "test/fake/cuda_calls.h"

#define API           __attribute__((visibility("default")))
#define DEVICES_MAX   8
#define LATER_VERSION 11070 /* what came with it is hidden from who asks for an earlier one */
#define CHUNK_BYTES   ((size_t) 2 << 20) /* physical memory comes in multiples of it */

/* --- what is switched on ------------------------------------------------------------------------
 */

static struct {
    int devices;
    int first; /* what others call this process's device 0 */
    long delay_us;
    long fail_copy;
    int orders;
    bool no_ipc, ipc_open_fails, ipc_one, own_device, no_pinned, mig, no_peer, no_map, no_fd_handle,
        no_kernels, no_dmabuf, dmabuf_fails, no_flush, flush_fails, host_pages, fabric, long_ranges,
        late_copies, reset_fails, lost, old, init_fails, held;
    char without[64];
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
    else if (strcmp(word, "ipc-one") == 0)
        settings.ipc_one = true;
    else if (strcmp(word, "own-device") == 0)
        settings.own_device = true;
    else if (strcmp(word, "no-pinned") == 0)
        settings.no_pinned = true;
    else if (strcmp(word, "no-peer") == 0)
        settings.no_peer = true;
    else if (strcmp(word, "no-map") == 0)
        settings.no_map = true;
    else if (strcmp(word, "no-fd-handle") == 0)
        settings.no_fd_handle = true;
    else if (strcmp(word, "no-kernels") == 0)
        settings.no_kernels = true;
    else if (strcmp(word, "no-dmabuf") == 0)
        settings.no_dmabuf = true;
    else if (strcmp(word, "dmabuf-fails") == 0)
        settings.dmabuf_fails = true;
    else if (strcmp(word, "no-flush") == 0)
        settings.no_flush = true;
    else if (strcmp(word, "flush-fails") == 0)
        settings.flush_fails = true;
    else if (sscanf(word, "orders=%ld", &number) == 1)
        settings.orders = (int) number;
    else if (strcmp(word, "host-pages") == 0)
        settings.host_pages = true;
    else if (strcmp(word, "fabric") == 0)
        settings.fabric = true;
    else if (strcmp(word, "long-ranges") == 0)
        settings.long_ranges = true;
    else if (strcmp(word, "late-copies") == 0)
        settings.late_copies = true;
    else if (strcmp(word, "mig") == 0)
        settings.mig = true;
    else if (strcmp(word, "reset-fails") == 0)
        settings.reset_fails = true;
    else if (strcmp(word, "lost") == 0)
        settings.lost = true;
    else if (strcmp(word, "held") == 0)
        settings.held = true;
    else if (strcmp(word, "init-fails") == 0)
        settings.init_fails = true;
    else if (sscanf(word, "without=%63s", settings.without) == 1)
        return;
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
    const char *rank = getenv("OMPI_COMM_WORLD_LOCAL_RANK");
    bool is_first = rank && atoi(rank) == 0;
    for (char *word; (word = strsep(&rest, ",")) != NULL;)
        if (strncmp(word, "first:", 6) != 0 && *word)
            setting_read(word);
        else if (*word && is_first)
            setting_read(word + 6);
    if (settings.own_device) {
        settings.first = rank ? atoi(rank) % DEVICES_MAX : 0;
        settings.devices = 1;
    }
}

/* --- what is asked of it -------------------------------------------------------------------------
 */

/* How often a function of the driver was called. */
struct call {
    const char *name;
    long count;        /* atomic */
    struct call *next; /* those that were called at all */
    bool is_listed;    /* atomic */
};

static struct call *calls; /* atomic; only ever longer */

static void call_count(struct call *call, const char *name)
{
    if (__atomic_fetch_add(&call->count, 1, __ATOMIC_RELAXED) != 0 ||
        __atomic_exchange_n(&call->is_listed, true, __ATOMIC_RELAXED))
        return;
    call->name = name;
    call->next = __atomic_load_n(&calls, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&calls, &call->next, call, true, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
        ;
}

#define CALLED()                                                                                   \
    do {                                                                                           \
        static struct call call;                                                                   \
        call_count(&call, __func__);                                                               \
    } while (0)

/* For tests: calls of that function, or of all. */
API long multilane_standin_calls(const char *name);

API long multilane_standin_calls(const char *name)
{
    long count = 0;
    for (struct call *call = __atomic_load_n(&calls, __ATOMIC_ACQUIRE); call; call = call->next)
        if (!name || strcmp(call->name, name) == 0)
            count += __atomic_load_n(&call->count, __ATOMIC_RELAXED);
    return count;
}

/* --- memory -------------------------------------------------------------------------------------
 */

/* Physical memory, by its own name. */
struct chunk {
    int fd, device;
    size_t size;
    int handle_types;
    unsigned references;
    bool imported;
};

struct allocation {
    struct allocation *next;
    struct chunk *chunk; /* of one that the program mapped */
    bool is_allowed;     /* and may use */
    char *start;         /* what the program sees */
    char *shadow;        /* where the bytes are */
    size_t size;
    unsigned type; /* enum driver_memory_type */
    bool managed, imported, is_synchronous;
    bool is_given; /* the program's own memory, pinned */
    bool is_of_pool;
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
static bool started;                   /* atomic: by cuInit, which any thread may call again */

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

/* Bytes from the pointer on, in this allocation and in chunks that are mapped right behind it. */
static size_t bytes_left(const struct allocation *at, const char *pointer)
{
    const char *start = pointer;
    while (at && (!at->chunk || at->is_allowed)) {
        pointer = at->start + at->size;
        at = at->chunk ? allocation_at(pointer) : NULL;
        if (at && !at->chunk)
            break;
    }
    return (size_t) (pointer - start);
}

/* Where the bytes of an address are; null if it is not the driver's or too few are left. */
static char *bytes_of(driver_ptr address, size_t size, bool *is_known)
{
    char *pointer = (char *) (uintptr_t) address, *bytes = NULL;
    pthread_mutex_lock(&lock);
    struct allocation *at = allocation_at(pointer);
    if (at && size <= bytes_left(at, pointer))
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
    if (!old->is_given) {
        munmap(old->shadow, round_up(old->size));
        if (old->start != old->shadow)
            munmap(old->start, round_up(old->size));
        close(old->fd);
    }
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
    unsigned holds;  /* of the primary one */
    unsigned resets; /* atomic */
};

/* What belongs to a context, as it was after so many resets. */
struct owner {
    driver_context context;
    unsigned resets;
};

static struct driver_context_s primaries[DEVICES_MAX];

#define STACK_MAX 16
static __thread driver_context stack[STACK_MAX];
static __thread int stack_height;

static driver_context current(void)
{
    return stack_height ? stack[stack_height - 1] : NULL;
}

/* --- graphs -------------------------------------------------------------------------------------
 */

static long captures;       /* atomic: under way that concern all threads */
static bool capture_breaks; /* atomic */
static __thread int capture_mode;

/* A call that no thread may make while another one captures: it breaks the capture. */
static bool capture_forbids(void)
{
    if (__atomic_load_n(&captures, __ATOMIC_RELAXED) == 0 || capture_mode == DRIVER_CAPTURE_RELAXED)
        return false;
    __atomic_store_n(&capture_breaks, true, __ATOMIC_RELAXED);
    return true;
}

API driver_result cuThreadExchangeStreamCaptureMode(int *mode);

API driver_result cuThreadExchangeStreamCaptureMode(int *mode)
{
    CALLED();
    int before = capture_mode;
    capture_mode = *mode;
    *mode = before;
    return DRIVER_SUCCESS;
}

API driver_result cuStreamBeginCapture_v2(driver_stream stream, int mode);

API driver_result cuStreamBeginCapture_v2(driver_stream stream, int mode)
{
    CALLED();
    if (!stream || mode != 0)
        return DRIVER_INVALID_VALUE;
    __atomic_add_fetch(&captures, 1, __ATOMIC_RELAXED);
    return DRIVER_SUCCESS;
}

API driver_result cuStreamEndCapture(driver_stream stream, void **graph);

API driver_result cuStreamEndCapture(driver_stream stream, void **graph)
{
    CALLED();
    (void) stream;
    *graph = NULL;
    __atomic_sub_fetch(&captures, 1, __ATOMIC_RELAXED);
    return __atomic_exchange_n(&capture_breaks, false, __ATOMIC_RELAXED)
               ? DRIVER_CAPTURE_INVALIDATED
               : DRIVER_SUCCESS;
}

static bool is_started(void)
{
    return __atomic_load_n(&started, __ATOMIC_ACQUIRE); /* cuInit */
}

static struct owner owner_now(void)
{
    driver_context context = current();
    return (struct owner){context, __atomic_load_n(&context->resets, __ATOMIC_RELAXED)};
}

/* The driver's own crash says less. */
static bool is_of_current(const struct owner *owner, const char *what)
{
    if (owner->resets != __atomic_load_n(&owner->context->resets, __ATOMIC_RELAXED)) {
        fprintf(stderr, "stand-in for libcuda: %s is used whose device was reset\n", what);
        abort();
    }
    return owner->context == current();
}

API driver_result cuInit(unsigned flags)
{
    CALLED();
    if (flags)
        return DRIVER_INVALID_VALUE;
    if (settings.init_fails)
        return DRIVER_UNKNOWN;
    if (settings.devices == 0)
        return DRIVER_NO_DEVICE;
    pthread_mutex_lock(&lock);
    for (int i = 0; !is_started() && i < DEVICES_MAX; i++)
        primaries[i].device = i;
    __atomic_store_n(&started, true, __ATOMIC_RELEASE); /* is_started */
    pthread_mutex_unlock(&lock);
    return DRIVER_SUCCESS;
}

API driver_result cuGetErrorName(driver_result result, const char **name)
{
    CALLED();
    static const struct {
        driver_result result;
        const char *name;
    } names[] = {{DRIVER_SUCCESS, "CUDA_SUCCESS"},
                 {DRIVER_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
                 {DRIVER_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
                 {DRIVER_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"},
                 {DRIVER_NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
                 {DRIVER_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
                 {DRIVER_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE"},
                 {DRIVER_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
                 {DRIVER_ALREADY_MAPPED, "CUDA_ERROR_ALREADY_MAPPED"},
                 {DRIVER_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
                 {DRIVER_NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
                 {DRIVER_NOT_READY, "CUDA_ERROR_NOT_READY"},
                 {DRIVER_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                 {DRIVER_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED"},
                 {DRIVER_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED"},
                 {DRIVER_ALREADY_PINNED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"},
                 {DRIVER_NOT_PINNED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"},
                 {DRIVER_NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED"},
                 {DRIVER_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
                 {DRIVER_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
                 {DRIVER_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].result == result) {
            *name = names[i].name;
            return DRIVER_SUCCESS;
        }
    *name = NULL;
    return DRIVER_INVALID_VALUE;
}

API driver_result cuGetErrorString(driver_result result, const char **text)
{
    CALLED();
    static const char words[] = "said by a stand-in for the driver";
    const char *name;
    driver_result known = cuGetErrorName(result, &name);
    *text = known == DRIVER_SUCCESS ? words : NULL;
    return known;
}

API driver_result cuDeviceGetCount(int *count)
{
    CALLED();
    *count = settings.devices;
    return is_started() ? DRIVER_SUCCESS : DRIVER_NOT_INITIALIZED;
}

API driver_result cuDeviceGetUuid_v2(struct driver_uuid *uuid, driver_device device)
{
    CALLED();
    if (!is_started())
        return DRIVER_NOT_INITIALIZED;
    if (device < 0 || device >= settings.devices)
        return DRIVER_INVALID_DEVICE;
    *uuid = (struct driver_uuid){.bytes = "stand-in"};
    uuid->bytes[15] = (char) (settings.first + device);
    return DRIVER_SUCCESS;
}

API driver_result cuDeviceGetUuid(struct driver_uuid *uuid, driver_device device)
{
    CALLED();
    driver_result result = cuDeviceGetUuid_v2(uuid, device);
    if (settings.mig && result == DRIVER_SUCCESS)
        uuid->bytes[15] = 0;
    return result;
}

API driver_result cuDeviceCanAccessPeer(int *can, driver_device device, driver_device peer)
{
    CALLED();
    if (!is_started())
        return DRIVER_NOT_INITIALIZED;
    if (device < 0 || device >= settings.devices || peer < 0 || peer >= settings.devices)
        return DRIVER_INVALID_DEVICE;
    *can = device != peer && !settings.no_peer;
    return DRIVER_SUCCESS;
}

API driver_result cuDevicePrimaryCtxRetain(driver_context *context, driver_device device)
{
    CALLED();
    if (!is_started())
        return DRIVER_NOT_INITIALIZED;
    if (device < 0 || device >= settings.devices)
        return DRIVER_INVALID_DEVICE;
    __atomic_add_fetch(&primaries[device].holds, 1, __ATOMIC_RELAXED);
    *context = &primaries[device];
    return DRIVER_SUCCESS;
}

API driver_result cuDevicePrimaryCtxRelease(driver_device device)
{
    CALLED();
    if (device < 0 || device >= settings.devices ||
        __atomic_load_n(&primaries[device].holds, __ATOMIC_RELAXED) == 0)
        return DRIVER_INVALID_CONTEXT;
    __atomic_sub_fetch(&primaries[device].holds, 1, __ATOMIC_RELAXED);
    return DRIVER_SUCCESS;
}

API driver_result cuCtxPushCurrent(driver_context context)
{
    CALLED();
    if (!context || stack_height == STACK_MAX)
        return DRIVER_INVALID_CONTEXT;
    stack[stack_height++] = context;
    return DRIVER_SUCCESS;
}

API driver_result cuCtxPopCurrent(driver_context *context)
{
    CALLED();
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
    CALLED();
    if (capture_forbids())
        return DRIVER_CAPTURE_UNSUPPORTED;
    return allocate(pointer, size, true, DRIVER_MEMORY_DEVICE);
}

/* Managed memory is hidden too: the PML must not touch it while a kernel may run. */
API driver_result cuMemAllocManaged(driver_ptr *pointer, size_t size, unsigned flags)
{
    CALLED();
    if (flags != 1 && flags != 2) /* for all streams, or for the host first */
        return DRIVER_INVALID_VALUE;
    driver_result result = allocate(pointer, size, true, DRIVER_MEMORY_DEVICE);
    if (result == DRIVER_SUCCESS) {
        pthread_mutex_lock(&lock);
        allocation_at((void *) (uintptr_t) *pointer)->managed = true;
        pthread_mutex_unlock(&lock);
    }
    return result;
}

/* Copies that have returned to the program and are still to come. */
struct late_copy {
    struct late_copy *next;
    char *to, *bytes;
    size_t size;
};

static struct late_copy *late_copies, **late_last = &late_copies;

static void late_copies_do(void)
{
    pthread_mutex_lock(&lock);
    while (late_copies) {
        struct late_copy *copy = late_copies;
        late_copies = copy->next;
        memcpy(copy->to, copy->bytes, copy->size);
        free(copy->bytes);
        free(copy);
    }
    late_last = &late_copies;
    pthread_mutex_unlock(&lock);
}

static driver_result late_copy_add(char *to, const char *from, size_t size)
{
    struct late_copy *copy = malloc(sizeof(*copy));
    char *bytes = copy ? malloc(size) : NULL;
    if (!bytes) {
        free(copy);
        return DRIVER_OUT_OF_MEMORY;
    }
    memcpy(bytes, from, size);
    *copy = (struct late_copy){.to = to, .bytes = bytes, .size = size};
    pthread_mutex_lock(&lock);
    *late_last = copy;
    late_last = &copy->next;
    pthread_mutex_unlock(&lock);
    return DRIVER_SUCCESS;
}

/* Is that memory of a device's whose copies may come late? */
static bool may_be_late(driver_ptr address)
{
    pthread_mutex_lock(&lock);
    const struct allocation *at = allocation_at((void *) (uintptr_t) address);
    bool may = settings.late_copies && at && at->type == DRIVER_MEMORY_DEVICE && !at->managed &&
               !at->chunk && !at->is_synchronous;
    pthread_mutex_unlock(&lock);
    return may;
}

/* Who gives memory back says what it is. */
static driver_result memory_end(void *start, bool is_device, bool is_given, driver_result otherwise)
{
    if (capture_forbids())
        return DRIVER_CAPTURE_UNSUPPORTED;
    if (!current())
        return DRIVER_INVALID_CONTEXT;
    late_copies_do();
    pthread_mutex_lock(&lock);
    const struct allocation *at = allocation_at(start);
    bool is_so = at && !at->chunk && (at->type == DRIVER_MEMORY_DEVICE) == is_device &&
                 at->is_given == is_given;
    pthread_mutex_unlock(&lock);
    struct allocation *old = is_so ? allocation_take(start, false) : NULL;
    if (!old)
        return otherwise;
    allocation_free(old);
    return DRIVER_SUCCESS;
}

API driver_result cuMemFree(driver_ptr pointer)
{
    CALLED();
    return memory_end((void *) (uintptr_t) pointer, true, false, DRIVER_INVALID_VALUE);
}

static long resets; /* atomic */

/* What was in the context is gone. What the program pinned is its own, and not pinned any more. */
API driver_result cuDevicePrimaryCtxReset(driver_device device)
{
    CALLED();
    if (device < 0 || device >= settings.devices)
        return DRIVER_INVALID_DEVICE;
    late_copies_do();
    __atomic_add_fetch(&primaries[device].resets, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&resets, 1, __ATOMIC_RELAXED);
    pthread_mutex_lock(&lock);
    for (struct allocation **at = &allocations; *at;) {
        struct allocation *old = *at;
        if (old->context != &primaries[device]) {
            at = &old->next;
            continue;
        }
        *at = old->next;
        allocation_free(old);
    }
    pthread_mutex_unlock(&lock);
    return DRIVER_SUCCESS;
}

/* Memory from the pool of a device: of no context, and not for other processes. */
API driver_result cuMemAllocAsync(driver_ptr *pointer, size_t size, driver_stream stream);

API driver_result cuMemAllocAsync(driver_ptr *pointer, size_t size, driver_stream stream)
{
    CALLED();
    (void) stream;
    driver_result result = allocate(pointer, size, true, DRIVER_MEMORY_DEVICE);
    if (result == DRIVER_SUCCESS) {
        pthread_mutex_lock(&lock);
        struct allocation *at = allocation_at((void *) (uintptr_t) *pointer);
        at->context = NULL;
        at->is_of_pool = true;
        pthread_mutex_unlock(&lock);
    }
    return result;
}

API driver_result cuMemHostAlloc(void **pointer, size_t size, unsigned flags)
{
    CALLED();
    driver_ptr address;
    if (flags & ~7u)
        return DRIVER_INVALID_VALUE;
    if (capture_forbids())
        return DRIVER_CAPTURE_UNSUPPORTED;
    if (settings.no_pinned)
        return DRIVER_OUT_OF_MEMORY;
    driver_result result = allocate(&address, size, false, DRIVER_MEMORY_HOST);
    if (result == DRIVER_SUCCESS)
        *pointer = (void *) (uintptr_t) address;
    return result;
}

API driver_result cuMemFreeHost(void *pointer)
{
    CALLED();
    return memory_end(pointer, false, false, DRIVER_INVALID_VALUE);
}

API driver_result cuMemHostRegister(void *pointer, size_t size, unsigned flags)
{
    CALLED();
    if (!size || flags & ~15u)
        return DRIVER_INVALID_VALUE;
    if (capture_forbids())
        return DRIVER_CAPTURE_UNSUPPORTED;
    if (!current())
        return DRIVER_INVALID_CONTEXT;
    if (settings.no_pinned)
        return DRIVER_OUT_OF_MEMORY;
    bool is_known;
    bytes_of((driver_ptr) (uintptr_t) pointer, 1, &is_known);
    if (is_known)
        return DRIVER_ALREADY_PINNED;
    struct allocation *new = calloc(1, sizeof(*new));
    if (!new)
        return DRIVER_OUT_OF_MEMORY;
    *new = (struct allocation){.start = pointer,
                               .shadow = pointer,
                               .size = size,
                               .type = DRIVER_MEMORY_HOST,
                               .is_given = true,
                               .context = current(),
                               .device = current()->device,
                               .id = __atomic_fetch_add(&next_id, 1, __ATOMIC_RELAXED)};
    allocation_add(new);
    return DRIVER_SUCCESS;
}

API driver_result cuMemHostUnregister(void *pointer)
{
    CALLED();
    return memory_end(pointer, false, true, DRIVER_NOT_PINNED);
}

static bool is_shareable(const struct allocation *at)
{
    return !at->managed && at->start != at->shadow && !at->imported && !at->chunk &&
           !at->is_of_pool;
}

/* Addresses without memory yet, and where the bytes of such memory will be: together as well. */
static struct range {
    struct range *next;
    char *start, *shadow;
    size_t size;
} * ranges;

/* Under the lock. Null: those addresses are not reserved. */
static const struct range *range_of(const char *start, size_t size)
{
    const struct range *at = ranges;
    while (at && (start < at->start || start + size > at->start + at->size))
        at = at->next;
    return at;
}

/* As the driver does: where addresses were reserved, their range is all that was, whatever is
 * mapped there. */
static void attribute_of(const struct allocation *at, int attribute, void *value)
{
    const struct range *range = at && at->chunk ? range_of(at->start, at->size) : NULL;
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
        *(bool *) value = at && is_shareable(at) && !settings.no_ipc;
        break;
    case DRIVER_POINTER_RANGE_START:
        *(driver_ptr *) value =
            at ? (driver_ptr) (uintptr_t) (range ? range->start : at->start) : 0;
        break;
    case DRIVER_POINTER_RANGE_SIZE:
        *(size_t *) value = range ? range->size : at ? at->size : 0;
        if (settings.long_ranges && at && !at->imported)
            *(size_t *) value *= 2;
        break;
    default:
        break;
    }
}

static long copies_done;                      /* atomic; kernels are counted too */
static driver_result sticky = DRIVER_SUCCESS; /* atomic: of the first copy that failed */
static long questions;                        /* atomic */

/* For tests, which look how often it is asked about memory. */
API long multilane_standin_questions(void);

API long multilane_standin_questions(void)
{
    return __atomic_load_n(&questions, __ATOMIC_RELAXED);
}

API driver_result cuPointerGetAttributes(unsigned count, const int *attributes, void **values,
                                         driver_ptr pointer)
{
    CALLED();
    __atomic_add_fetch(&questions, 1, __ATOMIC_RELAXED);
    if (!is_started())
        return DRIVER_NOT_INITIALIZED;
    driver_result failed = __atomic_load_n(&sticky, __ATOMIC_RELAXED);
    if (settings.lost && failed != DRIVER_SUCCESS)
        return failed;
    pthread_mutex_lock(&lock);
    const struct allocation *at = allocation_at((void *) (uintptr_t) pointer);
    for (unsigned i = 0; i < count; i++)
        attribute_of(at, attributes[i], values[i]);
    pthread_mutex_unlock(&lock);
    return !at && settings.reset_fails && __atomic_load_n(&resets, __ATOMIC_RELAXED)
               ? DRIVER_CONTEXT_IS_DESTROYED
               : DRIVER_SUCCESS;
}

/* --- for other devices --------------------------------------------------------------------------
 */

API driver_result cuDeviceGetAttribute(int *value, int attribute, driver_device device)
{
    CALLED();
    if (!is_started())
        return DRIVER_NOT_INITIALIZED;
    if (device < 0 || device >= settings.devices)
        return DRIVER_INVALID_DEVICE;
    if (attribute == DRIVER_DEVICE_DMA_BUF)
        *value = !settings.no_dmabuf;
    else if (attribute == DRIVER_DEVICE_FLUSHES)
        *value = settings.no_flush ? 0 : DRIVER_FLUSHES_BY_CALL;
    else if (attribute == DRIVER_DEVICE_ORDERS)
        *value = settings.orders;
    else if (attribute == DRIVER_DEVICE_HOST_PAGES)
        *value = settings.host_pages;
    else
        return DRIVER_INVALID_VALUE;
    return DRIVER_SUCCESS;
}

static long driver_flushes; /* atomic */

/* For tests, which look whether the driver had to. */
API long multilane_standin_driver_flushes(void);

API long multilane_standin_driver_flushes(void)
{
    return __atomic_load_n(&driver_flushes, __ATOMIC_RELAXED);
}

/* Nothing is ever on its way to this memory: it is only counted. */
API driver_result cuFlushGPUDirectRDMAWrites(int target, int scope)
{
    CALLED();
    if (!current())
        return DRIVER_INVALID_CONTEXT;
    if (settings.no_flush)
        return DRIVER_NOT_SUPPORTED;
    if (target != DRIVER_FLUSH_CURRENT_CONTEXT || scope != DRIVER_FLUSH_TO_ALL_DEVICES)
        return DRIVER_INVALID_VALUE;
    if (settings.flush_fails)
        return DRIVER_ILLEGAL_ADDRESS;
    __atomic_add_fetch(&driver_flushes, 1, __ATOMIC_RELAXED);
    return DRIVER_SUCCESS;
}

API driver_result cuPointerSetAttribute(const void *value, int attribute, driver_ptr pointer)
{
    CALLED();
    late_copies_do();
    pthread_mutex_lock(&lock);
    struct allocation *at = allocation_at((void *) (uintptr_t) pointer);
    bool good = at && !at->chunk && !at->is_of_pool && attribute == DRIVER_POINTER_SYNC_COPIES;
    if (good)
        at->is_synchronous = *(const unsigned *) value;
    pthread_mutex_unlock(&lock);
    return good ? DRIVER_SUCCESS : DRIVER_INVALID_VALUE;
}

API driver_result cuMemGetHandleForAddressRange(void *handle, driver_ptr pointer, size_t size,
                                                int type, uint64_t flags)
{
    CALLED();
    char path[64];
    off_t offset = 0;
    if (!current())
        return DRIVER_INVALID_CONTEXT;
    if (settings.no_dmabuf || settings.dmabuf_fails)
        return DRIVER_NOT_SUPPORTED;
    pthread_mutex_lock(&lock);
    const struct allocation *at = allocation_at((void *) (uintptr_t) pointer);
    bool good = at && is_shareable(at) && at->is_synchronous && type == DRIVER_RANGE_DMA_BUF_FD &&
                !flags && size && pointer == round_up(pointer) && size == round_up(size);
    if (good) {
        offset = (char *) (uintptr_t) pointer - at->start;
        good = (size_t) offset + size <= round_up(at->size);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", at->fd);
    }
    int fd = good ? open(path, O_RDWR | O_CLOEXEC) : -1; /* whose position is its own */
    pthread_mutex_unlock(&lock);
    if (fd < 0 || lseek(fd, offset, SEEK_SET) < 0)
        return DRIVER_INVALID_VALUE;
    *(int *) handle = fd;
    return DRIVER_SUCCESS;
}

/* --- streams and events -------------------------------------------------------------------------
 */

struct driver_event_s {
    struct owner owner;
    bool pending; /* atomic */
    driver_result result;
};

struct operation {
    struct operation *next;
    char *to, *from;
    size_t to_pitch, from_pitch, bytes, rows; /* of a plane */
    size_t to_distance, from_distance, planes;
    char *snapshot; /* of pageable memory, read when the copy was started */
    driver_event event;
    driver_function kernel;
    void *argument;
    bool is_within; /* devices: by kernels, which wait for the program's */
};

struct driver_stream_s {
    struct owner owner;
    pthread_t thread;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    struct operation *first, **last;
    bool busy, ending;
};

static void copy_do(const struct operation *operation)
{
    for (size_t plane = 0; plane < operation->planes; plane++)
        for (size_t row = 0; row < operation->rows; row++)
            memcpy(operation->to + plane * operation->to_distance + row * operation->to_pitch,
                   operation->from + plane * operation->from_distance + row * operation->from_pitch,
                   operation->bytes);
}

/* With an argument of its own. */
static void kernel_do(driver_function function, const void *argument);

static bool released; /* atomic */

/* For tests: ends the program's kernels, which have the devices where that is set. */
API long multilane_standin_release(void);

API long multilane_standin_release(void)
{
    return __atomic_exchange_n(&released, true, __ATOMIC_RELAXED);
}

static void operation_do(struct operation *operation)
{
    while (settings.held && operation->is_within && !__atomic_load_n(&released, __ATOMIC_RELAXED))
        usleep(100);
    if (operation->event) {
        operation->event->result = __atomic_load_n(&sticky, __ATOMIC_RELAXED);
        /* Release: the copies before it. */
        __atomic_store_n(&operation->event->pending, false, __ATOMIC_RELEASE);
    } else {
        long number = __atomic_add_fetch(&copies_done, 1, __ATOMIC_RELAXED);
        if (settings.fail_copy && number >= settings.fail_copy)
            __atomic_store_n(&sticky, DRIVER_ILLEGAL_ADDRESS, __ATOMIC_RELAXED);
        else if (operation->kernel)
            kernel_do(operation->kernel, operation->argument);
        else
            copy_do(operation);
    }
    free(operation->argument);
    free(operation->snapshot);
    free(operation);
}

static void *stream_run(void *argument)
{
    driver_stream stream = argument;
    pthread_mutex_lock(&stream->lock);
    for (;;) {
        bool was_idle = !stream->first;
        while (!stream->first && !stream->ending)
            pthread_cond_wait(&stream->changed, &stream->lock);
        if (!stream->first)
            break;
        if (was_idle && settings.delay_us) {
            stream->busy = true;
            pthread_mutex_unlock(&stream->lock);
            usleep((useconds_t) settings.delay_us);
            pthread_mutex_lock(&stream->lock);
        }
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
    CALLED();
    if (flags & ~1u)
        return DRIVER_INVALID_VALUE;
    if (!current())
        return DRIVER_INVALID_CONTEXT;
    driver_stream stream = calloc(1, sizeof(*stream));
    if (!stream)
        return DRIVER_OUT_OF_MEMORY;
    stream->owner = owner_now();
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
    CALLED();
    if (capture_forbids())
        return DRIVER_CAPTURE_UNSUPPORTED;
    if (!stream) { /* the program's: what it has not waited for are its late copies */
        late_copies_do();
        return __atomic_load_n(&sticky, __ATOMIC_RELAXED);
    }
    if (!is_of_current(&stream->owner, "a stream"))
        return DRIVER_INVALID_HANDLE;
    pthread_mutex_lock(&stream->lock);
    while (stream->first || stream->busy)
        pthread_cond_wait(&stream->changed, &stream->lock);
    pthread_mutex_unlock(&stream->lock);
    return __atomic_load_n(&sticky, __ATOMIC_RELAXED);
}

API driver_result cuStreamDestroy(driver_stream stream)
{
    CALLED();
    is_of_current(&stream->owner, "a stream");
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
    CALLED();
    if (flags & ~7u)
        return DRIVER_INVALID_VALUE;
    if (!current())
        return DRIVER_INVALID_CONTEXT;
    *event = calloc(1, sizeof(**event));
    if (!*event)
        return DRIVER_OUT_OF_MEMORY;
    (*event)->owner = owner_now();
    return DRIVER_SUCCESS;
}

API driver_result cuEventRecord(driver_event event, driver_stream stream)
{
    CALLED();
    if (!stream || !is_of_current(&event->owner, "an event") ||
        !is_of_current(&stream->owner, "a stream"))
        return DRIVER_INVALID_HANDLE;
    __atomic_store_n(&event->pending, true, __ATOMIC_RELAXED);
    const struct operation operation = {.event = event};
    return stream_add(stream, &operation);
}

API driver_result cuEventQuery(driver_event event)
{
    CALLED();
    if (capture_forbids())
        return DRIVER_CAPTURE_UNSUPPORTED;
    is_of_current(&event->owner, "an event"); /* which it need not be */
    /* Acquire, against operation_do. */
    if (__atomic_load_n(&event->pending, __ATOMIC_ACQUIRE))
        return DRIVER_NOT_READY;
    return event->result;
}

API driver_result cuEventDestroy(driver_event event)
{
    CALLED();
    if (capture_forbids())
        return DRIVER_CAPTURE_UNSUPPORTED;
    while (cuEventQuery(event) == DRIVER_NOT_READY)
        usleep(10);
    free(event);
    return DRIVER_SUCCESS;
}

/* For tests, which look how many copies a message took. */
API long multilane_standin_copies(void);

API long multilane_standin_copies(void)
{
    return __atomic_load_n(&copies_done, __ATOMIC_RELAXED);
}

/* --- copies -------------------------------------------------------------------------------------
 */

/* From the first byte to the last one. */
static size_t span(const struct operation *operation, size_t pitch, size_t distance)
{
    return distance * (operation->planes - 1) + pitch * (operation->rows - 1) + operation->bytes;
}

static size_t to_span(const struct operation *operation)
{
    return span(operation, operation->to_pitch, operation->to_distance);
}

static size_t from_span(const struct operation *operation)
{
    return span(operation, operation->from_pitch, operation->from_distance);
}

/* Both ends as bytes that may be touched. An address that is not ours is the host's, as it is. */
static driver_result ends_find(struct operation *operation, driver_ptr to, driver_ptr from,
                               bool *to_pageable, bool *from_pageable)
{
    bool to_known, from_known;
    operation->to = bytes_of(to, to_span(operation), &to_known);
    operation->from = bytes_of(from, from_span(operation), &from_known);
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

static long far_copies; /* atomic */

/* For tests, which look whether memory of other processes is copied by those it was opened for: a
 * driver may take another way for others. */
API long multilane_standin_far_copies(void);

API long multilane_standin_far_copies(void)
{
    return __atomic_load_n(&far_copies, __ATOMIC_RELAXED);
}

/* In a context of its own device, and with memory of this process's on the same. Are both ends
 * memory of devices? */
static bool far_copy_look(driver_ptr to, driver_ptr from)
{
    pthread_mutex_lock(&lock);
    const struct allocation *ends[] = {allocation_at((void *) (uintptr_t) to),
                                       allocation_at((void *) (uintptr_t) from)};
    for (int i = 0; i < 2; i++) {
        const struct allocation *other = ends[1 - i];
        if (ends[i] && ends[i]->imported &&
            (ends[i]->context != current() ||
             (other && other->type == DRIVER_MEMORY_DEVICE && other->context != current())))
            __atomic_add_fetch(&far_copies, 1, __ATOMIC_RELAXED);
    }
    bool is_within = ends[0] && ends[0]->type == DRIVER_MEMORY_DEVICE && ends[1] &&
                     ends[1]->type == DRIVER_MEMORY_DEVICE;
    pthread_mutex_unlock(&lock);
    return is_within;
}

/* Pageable memory is read before this returns, and written before it returns. */
static driver_result copy_start(driver_ptr to, driver_ptr from, struct operation *operation,
                                driver_stream stream)
{
    bool to_pageable, from_pageable;
    if (!is_started())
        return DRIVER_NOT_INITIALIZED;
    if (!stream || !current() || !is_of_current(&stream->owner, "a stream"))
        return DRIVER_INVALID_CONTEXT;
    if (!operation->bytes || !operation->rows || !operation->planes)
        return DRIVER_SUCCESS;
    driver_result result = ends_find(operation, to, from, &to_pageable, &from_pageable);
    if (result != DRIVER_SUCCESS)
        return result;
    operation->is_within = far_copy_look(to, from);
    if (from_pageable) {
        size_t size = from_span(operation);
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
    CALLED();
    struct operation operation = {.bytes = bytes, .rows = 1, .planes = 1};
    return copy_start(to, from, &operation, stream);
}

/* What a device says as its longest pitch. */
#define PITCH_MAX ((size_t) 0x7fffffff)

API driver_result cuMemcpy2DAsync(const struct driver_copy_2d *copy, driver_stream stream)
{
    CALLED();
    struct operation operation = {.to_pitch = copy->to_pitch,
                                  .from_pitch = copy->from_pitch,
                                  .bytes = copy->width_bytes,
                                  .rows = copy->height,
                                  .planes = 1};
    if (copy->from_type != DRIVER_MEMORY_UNIFIED || copy->to_type != DRIVER_MEMORY_UNIFIED ||
        copy->width_bytes > copy->to_pitch || copy->width_bytes > copy->from_pitch ||
        copy->to_pitch > PITCH_MAX || copy->from_pitch > PITCH_MAX || copy->from_x_bytes ||
        copy->from_y || copy->to_x_bytes || copy->to_y)
        return DRIVER_INVALID_VALUE;
    return copy_start(copy->to_device, copy->from_device, &operation, stream);
}

API driver_result cuMemcpy3DAsync(const struct driver_copy_3d *copy, driver_stream stream)
{
    CALLED();
    struct operation operation = {.to_pitch = copy->to_pitch,
                                  .from_pitch = copy->from_pitch,
                                  .bytes = copy->width_bytes,
                                  .rows = copy->height,
                                  .to_distance = copy->to_pitch * copy->to_height,
                                  .from_distance = copy->from_pitch * copy->from_height,
                                  .planes = copy->depth};
    if (copy->from_type != DRIVER_MEMORY_UNIFIED || copy->to_type != DRIVER_MEMORY_UNIFIED ||
        copy->width_bytes > copy->to_pitch || copy->width_bytes > copy->from_pitch ||
        copy->to_pitch > PITCH_MAX || copy->from_pitch > PITCH_MAX ||
        copy->height > copy->to_height || copy->height > copy->from_height || copy->from_x_bytes ||
        copy->from_y || copy->from_z || copy->from_lod || copy->from_reserved || copy->to_x_bytes ||
        copy->to_y || copy->to_z || copy->to_lod || copy->to_reserved)
        return DRIVER_INVALID_VALUE;
    return copy_start(copy->to_device, copy->from_device, &operation, stream);
}

API driver_result cuMemcpy(driver_ptr to, driver_ptr from, size_t bytes)
{
    CALLED();
    struct operation operation = {.bytes = bytes, .rows = 1, .planes = 1};
    bool to_pageable, from_pageable;
    if (capture_forbids())
        return DRIVER_CAPTURE_UNSUPPORTED;
    if (!current())
        return DRIVER_INVALID_CONTEXT;
    driver_result result = ends_find(&operation, to, from, &to_pageable, &from_pageable);
    late_copies_do();
    if (result != DRIVER_SUCCESS || !bytes)
        return result;
    if (from_pageable && may_be_late(to))
        return late_copy_add(operation.to, operation.from, bytes);
    memcpy(operation.to, operation.from, bytes);
    return DRIVER_SUCCESS;
}

/* --- kernels ------------------------------------------------------------------------------------
 */

/* Where an address of the device is, for a kernel. One without an allocation ends in an error of
 * the device, and what is written there is lost. */
static void *kernel_place(driver_ptr address, size_t size, size_t alignment)
{
    static __thread _Alignas(16) char nowhere[16];
    bool is_known;
    char *bytes = bytes_of(address, size, &is_known);
    if (bytes && address % alignment == 0)
        return bytes;
    __atomic_store_n(&sticky, DRIVER_ILLEGAL_ADDRESS, __ATOMIC_RELAXED);
    memset(nowhere, 0, sizeof(nowhere));
    return nowhere;
}

#define KERNEL_PLACE(type, address) ((type *) kernel_place(address, sizeof(type), _Alignof(type)))
#define KERNEL_FUNCTION             static
#define KERNEL_BARRIER()
#define KERNEL_SHARED  static __thread
#define KERNEL_PAUSE() sched_yield()
#define KERNEL_ACQUIRE(address)                                                                    \
    __atomic_load_n(KERNEL_PLACE(const uint64_t, address), __ATOMIC_ACQUIRE)
#define KERNEL_RELEASE(address, value)                                                             \
    __atomic_store_n(KERNEL_PLACE(uint64_t, address), value, __ATOMIC_RELEASE)
#include "common/memory/pack.h"
#include "test/bench/device_ring.h"

static void pack_run(const void *argument)
{
    uint64_t words = pack_words(argument);
    for (uint64_t i = 0; i < words; i++)
        pack_word(argument, i);
}

/* A block is one thread, and one block runs after the other: they do not wait for each other. */
static void ring_run(const void *argument)
{
    const struct ring_job *job = argument;
    for (uint32_t block = 0; block < job->blocks; block++)
        ring_block(job, block, 0, 1);
}

struct driver_function_s {
    const char *name;
    size_t argument_bytes;
    void (*run)(const void *argument);
};

static struct driver_function_s kernels[] = {
    {"multilane_pack", sizeof(struct pack), pack_run},
    {"multilane_ring", sizeof(struct ring_job), ring_run},
};

struct driver_module_s {
    struct owner owner;
};

static long kernels_done; /* atomic */

/* For tests, which look whether a kernel ran. */
API long multilane_standin_kernels(void);

API long multilane_standin_kernels(void)
{
    return __atomic_load_n(&kernels_done, __ATOMIC_RELAXED);
}

static void kernel_do(driver_function function, const void *argument)
{
    function->run(argument);
    __atomic_add_fetch(&kernels_done, 1, __ATOMIC_RELAXED);
}

API driver_result cuModuleLoadData(driver_module *module, const void *code)
{
    CALLED();
    static const unsigned char nvcc[] = {0x50, 0xed, 0x55, 0xba};
    if (capture_forbids())
        return DRIVER_CAPTURE_UNSUPPORTED;
    if (!current())
        return DRIVER_INVALID_CONTEXT;
    if (memcmp(code, nvcc, sizeof(nvcc)) != 0 && strncmp(code, "stand-in", 8) != 0)
        return DRIVER_INVALID_IMAGE;
    *module = malloc(sizeof(**module));
    if (!*module)
        return DRIVER_OUT_OF_MEMORY;
    (*module)->owner = owner_now();
    return DRIVER_SUCCESS;
}

API driver_result cuModuleUnload(driver_module module)
{
    CALLED();
    if (!is_of_current(&module->owner, "a module"))
        return DRIVER_INVALID_CONTEXT;
    free(module);
    return DRIVER_SUCCESS;
}

API driver_result cuModuleGetFunction(driver_function *function, driver_module module,
                                      const char *name)
{
    CALLED();
    if (!is_of_current(&module->owner, "a module"))
        return DRIVER_INVALID_CONTEXT;
    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
        if (strcmp(kernels[i].name, name) == 0) {
            *function = &kernels[i];
            return DRIVER_SUCCESS;
        }
    return DRIVER_NOT_FOUND;
}

API driver_result cuLaunchKernel(driver_function function, unsigned grid_x, unsigned grid_y,
                                 unsigned grid_z, unsigned block_x, unsigned block_y,
                                 unsigned block_z, unsigned shared_bytes, driver_stream stream,
                                 void **arguments, void **extra)
{
    CALLED();
    struct operation operation = {.kernel = function};
    (void) shared_bytes;
    if (!stream || !is_of_current(&stream->owner, "a stream"))
        return DRIVER_INVALID_CONTEXT;
    if (!grid_x || !grid_y || !grid_z || !block_x || !block_y || !block_z ||
        (uint64_t) block_x * block_y * block_z > 1024 || extra)
        return DRIVER_INVALID_VALUE;
    operation.argument = malloc(function->argument_bytes);
    if (!operation.argument)
        return DRIVER_OUT_OF_MEMORY;
    memcpy(operation.argument, arguments[0], function->argument_bytes);
    driver_result result = stream_add(stream, &operation);
    if (result != DRIVER_SUCCESS)
        free(operation.argument);
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

static long exports; /* atomic */

/* For tests, which look how often a handle is asked for. */
API long multilane_standin_exports(void);

API long multilane_standin_exports(void)
{
    return __atomic_load_n(&exports, __ATOMIC_RELAXED);
}

API driver_result cuIpcGetMemHandle(struct driver_ipc_handle *out, driver_ptr pointer)
{
    CALLED();
    struct handle handle = {.magic = "standin", .pid = (int) getpid()};
    __atomic_add_fetch(&exports, 1, __ATOMIC_RELAXED);
    if (settings.no_ipc)
        return DRIVER_NOT_SUPPORTED;
    pthread_mutex_lock(&lock);
    const struct allocation *at = allocation_at((void *) (uintptr_t) pointer);
    bool good = at && is_shareable(at) && at->start == (char *) (uintptr_t) pointer;
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

/* Is it open in this context; or, where one is all that may be, is another of that process? */
static bool is_open(const struct handle *handle)
{
    bool found = false;
    driver_context here = current();
    pthread_mutex_lock(&lock);
    for (struct allocation *at = allocations; at && !found; at = at->next)
        found = at->imported && at->context == here && at->origin_pid == handle->pid &&
                (settings.ipc_one || at->origin == handle->id);
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

static long opens, opened; /* atomic */

/* For tests, which look how often it is asked to open memory, and does. */
API long multilane_standin_opens(void);
API long multilane_standin_opened(void);

API long multilane_standin_opens(void)
{
    return __atomic_load_n(&opens, __ATOMIC_RELAXED);
}

API long multilane_standin_opened(void)
{
    return __atomic_load_n(&opened, __ATOMIC_RELAXED);
}

API driver_result cuIpcOpenMemHandle(driver_ptr *pointer, struct driver_ipc_handle in,
                                     unsigned flags)
{
    CALLED();
    struct handle handle;
    if (capture_forbids())
        return DRIVER_CAPTURE_UNSUPPORTED;
    if (flags != DRIVER_IPC_LAZY_PEER_ACCESS)
        return DRIVER_INVALID_VALUE;
    __atomic_add_fetch(&opens, 1, __ATOMIC_RELAXED);
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
    __atomic_add_fetch(&opened, 1, __ATOMIC_RELAXED);
    allocation_add(new);
    *pointer = (driver_ptr) (uintptr_t) new->start;
    return DRIVER_SUCCESS;
}

API driver_result cuIpcCloseMemHandle(driver_ptr pointer)
{
    CALLED();
    if (capture_forbids())
        return DRIVER_CAPTURE_UNSUPPORTED;
    struct allocation *old = allocation_take((void *) (uintptr_t) pointer, true);
    if (!old)
        return DRIVER_INVALID_VALUE;
    allocation_free(old);
    return DRIVER_SUCCESS;
}

/* --- memory that the program maps itself --------------------------------------------------------
 */

static struct chunk *chunk_of(driver_chunk chunk)
{
    return (struct chunk *) (uintptr_t) chunk;
}

static driver_result chunk_make(driver_chunk *out, int fd, int device, size_t size,
                                int handle_types)
{
    struct chunk *chunk = fd < 0 ? NULL : malloc(sizeof(*chunk));
    if (!chunk)
        return DRIVER_OUT_OF_MEMORY;
    *chunk = (struct chunk){fd, device, size, handle_types, 1, false};
    *out = (driver_chunk) (uintptr_t) chunk;
    return DRIVER_SUCCESS;
}

API driver_result cuMemCreate(driver_chunk *out, size_t size,
                              const struct driver_chunk_properties *properties, uint64_t flags)
{
    CALLED();
    char name[64];
    if (flags || !is_started() || properties->type != DRIVER_CHUNK_PINNED ||
        properties->location.type != DRIVER_LOCATION_DEVICE || !size || size % CHUNK_BYTES)
        return DRIVER_INVALID_VALUE;
    if ((properties->handle_types & DRIVER_HANDLE_FABRIC) && !settings.fabric)
        return DRIVER_NOT_PERMITTED; /* no channel was given to this process */
    snprintf(name, sizeof(name), "standin-chunk-%d", properties->location.device);
    int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd >= 0 && ftruncate(fd, (off_t) size) != 0) {
        close(fd);
        fd = -1;
    }
    return chunk_make(out, fd, properties->location.device, size, properties->handle_types);
}

API driver_result cuMemRelease(driver_chunk handle)
{
    CALLED();
    struct chunk *chunk = chunk_of(handle);
    pthread_mutex_lock(&lock);
    bool is_last = --chunk->references == 0;
    pthread_mutex_unlock(&lock);
    if (is_last) {
        close(chunk->fd);
        free(chunk);
    }
    return DRIVER_SUCCESS;
}

API driver_result cuMemRetainAllocationHandle(driver_chunk *out, void *address)
{
    CALLED();
    pthread_mutex_lock(&lock);
    const struct allocation *at = allocation_at(address);
    if (at && at->chunk)
        at->chunk->references++;
    pthread_mutex_unlock(&lock);
    if (!at || !at->chunk)
        return DRIVER_INVALID_VALUE;
    *out = (driver_chunk) (uintptr_t) at->chunk;
    return DRIVER_SUCCESS;
}

/* A handle of the fabric, which here ends at the machine. */
struct fabric {
    char magic[8];
    int pid, fd;
};

API driver_result cuMemExportToShareableHandle(void *out, driver_chunk handle, int type,
                                               uint64_t flags)
{
    CALLED();
    const struct chunk *chunk = chunk_of(handle);
    if (flags)
        return DRIVER_INVALID_VALUE;
    if (!(chunk->handle_types & type) || (type == DRIVER_HANDLE_FD && settings.no_fd_handle) ||
        (type == DRIVER_HANDLE_FABRIC && !settings.fabric))
        return DRIVER_NOT_SUPPORTED;
    __atomic_add_fetch(&exports, 1, __ATOMIC_RELAXED);
    if (type == DRIVER_HANDLE_FD) {
        *(int *) out = fcntl(chunk->fd, F_DUPFD_CLOEXEC, 0);
        return *(int *) out < 0 ? DRIVER_OUT_OF_MEMORY : DRIVER_SUCCESS;
    }
    struct fabric fabric = {"fabric", (int) getpid(), chunk->fd};
    memset(out, 0, sizeof(struct driver_fabric_handle));
    memcpy(out, &fabric, sizeof(fabric));
    return DRIVER_SUCCESS;
}

static long imports; /* atomic */

/* For tests, which look whether memory was opened. */
API long multilane_standin_imports(void);

API long multilane_standin_imports(void)
{
    return __atomic_load_n(&imports, __ATOMIC_RELAXED);
}

API driver_result cuMemImportFromShareableHandle(driver_chunk *out, void *handle, int type)
{
    CALLED();
    char path[64], target[128];
    struct fabric fabric = {"", (int) getpid(), (int) (intptr_t) handle};
    struct stat status;
    int device;
    if (type == DRIVER_HANDLE_FABRIC)
        memcpy(&fabric, handle, sizeof(fabric));
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", fabric.pid, fabric.fd);
    ssize_t length = readlink(path, target, sizeof(target) - 1);
    target[length < 0 ? 0 : length] = '\0';
    if (sscanf(target, "/memfd:standin-chunk-%d", &device) != 1)
        return DRIVER_INVALID_HANDLE;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0)
        return DRIVER_INVALID_HANDLE;
    driver_result result = chunk_make(out, fd, device, (size_t) status.st_size, 0);
    if (result == DRIVER_SUCCESS)
        chunk_of(*out)->imported = true;
    return result;
}

static void *nothing(void *wanted, size_t size)
{
    return mmap(wanted, size, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (wanted ? MAP_FIXED : 0), -1, 0);
}

API driver_result cuMemAddressReserve(driver_ptr *pointer, size_t size, size_t alignment,
                                      driver_ptr wanted, uint64_t flags)
{
    CALLED();
    (void) wanted;
    struct range *range = malloc(sizeof(*range));
    if (!range || flags || !size || size % CHUNK_BYTES || (alignment & (alignment - 1)) != 0) {
        free(range);
        return DRIVER_INVALID_VALUE;
    }
    *range = (struct range){ranges, nothing(NULL, size), nothing(NULL, size), size};
    pthread_mutex_lock(&lock);
    range->next = ranges;
    ranges = range;
    pthread_mutex_unlock(&lock);
    *pointer = (driver_ptr) (uintptr_t) range->start;
    return DRIVER_SUCCESS;
}

API driver_result cuMemAddressFree(driver_ptr pointer, size_t size)
{
    CALLED();
    pthread_mutex_lock(&lock);
    struct range **at = &ranges, *old;
    while (*at && (*at)->start != (char *) (uintptr_t) pointer)
        at = &(*at)->next;
    old = *at;
    if (old)
        *at = old->next;
    pthread_mutex_unlock(&lock);
    if (!old || old->size != size)
        return DRIVER_INVALID_VALUE;
    munmap(old->start, size);
    munmap(old->shadow, size);
    free(old);
    return DRIVER_SUCCESS;
}

/* Null: the range was not reserved, or is in use. */
static char *shadow_of(driver_ptr pointer, size_t size)
{
    char *start = (char *) (uintptr_t) pointer, *shadow = NULL;
    pthread_mutex_lock(&lock);
    const struct range *range = range_of(start, size);
    for (const struct allocation *at = allocations; at && range; at = at->next)
        if (at->start < start + size && start < at->start + at->size)
            range = NULL; /* something is mapped there */
    if (range)
        shadow = range->shadow + (start - range->start);
    pthread_mutex_unlock(&lock);
    return shadow;
}

API driver_result cuMemMap(driver_ptr pointer, size_t size, size_t offset, driver_chunk handle,
                           uint64_t flags)
{
    CALLED();
    struct chunk *chunk = chunk_of(handle);
    if (flags || offset || size != chunk->size)
        return DRIVER_INVALID_VALUE;
    struct allocation *new = calloc(1, sizeof(*new));
    char *shadow = shadow_of(pointer, size);
    if (shadow)
        shadow = mmap(shadow, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, chunk->fd, 0);
    if (!new || !shadow || shadow == MAP_FAILED) {
        free(new);
        return DRIVER_INVALID_VALUE;
    }
    *new = (struct allocation){.chunk = chunk,
                               .start = (char *) (uintptr_t) pointer,
                               .shadow = shadow,
                               .size = size,
                               .type = DRIVER_MEMORY_DEVICE,
                               .device = chunk->device,
                               .id = __atomic_fetch_add(&next_id, 1, __ATOMIC_RELAXED)};
    pthread_mutex_lock(&lock);
    chunk->references++;
    pthread_mutex_unlock(&lock);
    allocation_add(new);
    if (chunk->imported)
        __atomic_add_fetch(&imports, 1, __ATOMIC_RELAXED);
    return DRIVER_SUCCESS;
}

/* All that is mapped in the range, one chunk or several. */
API driver_result cuMemGetAddressRange(driver_ptr *start, size_t *size, driver_ptr pointer)
{
    CALLED();
    pthread_mutex_lock(&lock);
    const struct allocation *at = allocation_at((void *) (uintptr_t) pointer);
    *start = at ? (driver_ptr) (uintptr_t) at->start : 0;
    *size = at ? at->size : 0;
    pthread_mutex_unlock(&lock);
    return at ? DRIVER_SUCCESS : DRIVER_INVALID_VALUE;
}

API driver_result cuMemSetAccess(driver_ptr pointer, size_t size,
                                 const struct driver_access *access, size_t count)
{
    CALLED();
    char *start = (char *) (uintptr_t) pointer;
    if (count != 1 || access->flags != DRIVER_ACCESS_READ_WRITE)
        return DRIVER_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    for (struct allocation *at = allocations; at; at = at->next)
        if (at->chunk && at->start >= start && at->start < start + size)
            at->is_allowed = true;
    pthread_mutex_unlock(&lock);
    return DRIVER_SUCCESS;
}

API driver_result cuMemUnmap(driver_ptr pointer, size_t size)
{
    CALLED();
    char *start = (char *) (uintptr_t) pointer;
    for (size_t done = 0; done < size;) {
        struct allocation *old = allocation_take(start + done, false);
        if (!old || !old->chunk)
            return DRIVER_INVALID_VALUE;
        done += old->size;
        nothing(old->shadow, old->size);
        cuMemRelease((driver_chunk) (uintptr_t) old->chunk);
        free(old);
    }
    return DRIVER_SUCCESS;
}

/* --- finding the functions ----------------------------------------------------------------------
 */

#define ENTRY(name)                                                                                \
    {                                                                                              \
#name, (void (*)(void))(name)                                                              \
    }

static const struct function {
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
                 ENTRY(cuDevicePrimaryCtxReset),
                 ENTRY(cuCtxPushCurrent),
                 ENTRY(cuCtxPopCurrent),
                 ENTRY(cuThreadExchangeStreamCaptureMode),
                 ENTRY(cuPointerGetAttributes),
                 ENTRY(cuMemAlloc),
                 ENTRY(cuMemAllocManaged),
                 ENTRY(cuMemFree),
                 ENTRY(cuMemHostAlloc),
                 ENTRY(cuMemFreeHost),
                 ENTRY(cuMemHostRegister),
                 ENTRY(cuMemHostUnregister),
                 ENTRY(cuMemcpy),
                 ENTRY(cuMemcpyAsync),
                 ENTRY(cuMemcpy2DAsync),
                 ENTRY(cuMemcpy3DAsync),
                 ENTRY(cuStreamCreate),
                 ENTRY(cuStreamSynchronize),
                 ENTRY(cuStreamDestroy),
                 ENTRY(cuEventCreate),
                 ENTRY(cuEventRecord),
                 ENTRY(cuEventQuery),
                 ENTRY(cuEventDestroy),
                 ENTRY(cuIpcGetMemHandle),
                 ENTRY(cuIpcOpenMemHandle),
                 ENTRY(cuIpcCloseMemHandle),
                 ENTRY(cuDeviceGetAttribute),
                 ENTRY(cuPointerSetAttribute),
                 ENTRY(cuFlushGPUDirectRDMAWrites)},
  mapping_functions[] = {ENTRY(cuMemCreate),
                         ENTRY(cuMemRetainAllocationHandle),
                         ENTRY(cuMemRelease),
                         ENTRY(cuMemExportToShareableHandle),
                         ENTRY(cuMemImportFromShareableHandle),
                         ENTRY(cuMemAddressReserve),
                         ENTRY(cuMemAddressFree),
                         ENTRY(cuMemMap),
                         ENTRY(cuMemUnmap),
                         ENTRY(cuMemSetAccess),
                         ENTRY(cuMemGetAddressRange)},
  later_functions[] = {ENTRY(cuMemGetHandleForAddressRange),
                       {"cuDeviceGetUuid", (void (*)(void)) cuDeviceGetUuid_v2}},
  kernel_functions[] = {ENTRY(cuModuleLoadData), ENTRY(cuModuleUnload), ENTRY(cuModuleGetFunction),
                        ENTRY(cuLaunchKernel)};

static void function_find(const char *name, const struct function *known, size_t count,
                          void **function)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(known[i].name, name) == 0)
            memcpy(function, &known[i].function, sizeof(*function));
}

/* Since 12.0 a function that is not there is no error, but null. */
API driver_result cuGetProcAddress(const char *name, void **function, int version, uint64_t flags)
{
    (void) flags;
    *function = NULL;
    if (settings.old)
        return DRIVER_NOT_FOUND;
    if (strcmp(name, settings.without) == 0)
        return DRIVER_SUCCESS;
    if (version >= LATER_VERSION)
        function_find(name, later_functions, sizeof(later_functions) / sizeof(later_functions[0]),
                      function);
    if (!*function)
        function_find(name, functions, sizeof(functions) / sizeof(functions[0]), function);
    if (!settings.no_kernels)
        function_find(name, kernel_functions,
                      sizeof(kernel_functions) / sizeof(kernel_functions[0]), function);
    if (!settings.no_map)
        function_find(name, mapping_functions,
                      sizeof(mapping_functions) / sizeof(mapping_functions[0]), function);
    return DRIVER_SUCCESS;
}
