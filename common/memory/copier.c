/* SPDX-License-Identifier: BSD-3-Clause */
/* One copier for each context: streams, and events that are used again. */
#include "common/memory/copier.h"

#include <pthread.h>
#include <string.h>

#define EVENTS_KEPT 64

static struct {
    pthread_mutex_t lock; /* guards all below, but for copiers that are whole */
    struct copier copiers[COPIERS_MAX];
    _Atomic unsigned count; /* written under the lock with release, after the copier it counts */
    struct {
        driver_event kept[EVENTS_KEPT];
        unsigned count;
    } events[COPIERS_MAX];
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* While any thread of the program captures a graph, the driver forbids most calls to all, and each
 * breaks the capture. What we do is no part of a graph: this thread is let off, for as long as it
 * is in here. */
static __thread struct {
    unsigned depth;
    int mode; /* of the program */
} captures;

static void captures_ignore(void)
{
    if (captures.depth++)
        return;
    captures.mode = DRIVER_CAPTURE_RELAXED;
    driver.capture_exchange(&captures.mode);
}

static void captures_mind(void)
{
    if (--captures.depth == 0)
        driver.capture_exchange(&captures.mode);
}

driver_result context_enter(driver_context context)
{
    driver_result result = driver.context_push(context);
    if (result == DRIVER_SUCCESS)
        captures_ignore();
    return result;
}

driver_result copier_enter(const struct copier *copier)
{
    return copier_is_gone(copier) ? DRIVER_INVALID_CONTEXT : context_enter(copier->context);
}

void context_leave(void)
{
    driver_context context;
    captures_mind();
    driver.context_pop(&context);
}

/* --- contexts that end ------------------------------------------------------------------------ */

/* 0: it belongs to no allocation. */
static driver_result buffer_id_at(driver_ptr address, uint64_t *id)
{
    static const int attribute[] = {DRIVER_POINTER_BUFFER_ID};
    unsigned long long found = 0;
    void *values[] = {&found};
    driver_result result = driver.pointer_attributes(1, attribute, values, address);
    *id = found;
    return result;
}

/* In the copier's context. */
static void witness_take(struct copier *copier)
{
    if (driver.mem_alloc(&copier->witness, 1) != DRIVER_SUCCESS)
        copier->witness = 0;
    else if (buffer_id_at(copier->witness, &copier->witness_id) != DRIVER_SUCCESS)
        copier->witness_id = 0;
}

enum witness { WITNESS_THERE, WITNESS_GONE, WITNESS_SILENT };

static enum witness witness_ask(const struct copier *copier)
{
    uint64_t id;
    if (!copier->witness_id)
        return WITNESS_SILENT;
    driver_result result = buffer_id_at(copier->witness, &id);
    if (result == DRIVER_SUCCESS)
        return id == copier->witness_id ? WITNESS_THERE : WITNESS_GONE;
    return result == DRIVER_INVALID_CONTEXT || result == DRIVER_CONTEXT_IS_DESTROYED ||
                   result == DRIVER_DEINITIALIZED
               ? WITNESS_GONE
               : WITNESS_SILENT;
}

/* Relaxed: a use of a context while it ends fails anyway. */
static void copier_mark_gone(struct copier *copier)
{
    atomic_store_explicit(&copier->is_gone, true, memory_order_relaxed);
}

bool copier_is_alive(struct copier *copier)
{
    if (copier_is_gone(copier))
        return false;
    /* Of a device that is lost nothing is said: what is done with it next tells why. */
    if (witness_ask(copier) != WITNESS_GONE)
        return true;
    copier_mark_gone(copier);
    return false;
}

unsigned copiers_count(void)
{
    return atomic_load_explicit(&all.count, memory_order_acquire); /* copier_make */
}

static struct copier *copier_find(driver_context context)
{
    unsigned count = copiers_count();
    for (unsigned i = 0; i < count; i++)
        if (all.copiers[i].context == context && copier_is_alive(&all.copiers[i]))
            return &all.copiers[i];
    return NULL;
}

/* The same for memory of the context. While there is the memory that was asked about last time,
 * there is the context it was in. */
static struct copier *copier_find_for(const struct memory *memory)
{
    unsigned count = copiers_count();
    for (unsigned i = 0; i < count; i++)
        if (all.copiers[i].context == memory->context && !copier_is_gone(&all.copiers[i]) &&
            atomic_load_explicit(&all.copiers[i].last_buffer, memory_order_relaxed) ==
                memory->buffer_id)
            return &all.copiers[i];
    struct copier *copier = copier_find(memory->context);
    if (copier)
        atomic_store_explicit(&copier->last_buffer, memory->buffer_id, memory_order_relaxed);
    return copier;
}

void copiers_check(void)
{
    unsigned count = copiers_count();
    for (unsigned i = 0; i < count; i++)
        if (witness_ask(&all.copiers[i]) != WITNESS_THERE)
            copier_mark_gone(&all.copiers[i]);
}

/* --- making ----------------------------------------------------------------------------------- */

static void streams_destroy(struct copier *copier)
{
    for (int direction = 0; direction < COPY_DIRECTIONS; direction++)
        if (copier->streams[direction])
            driver.stream_destroy(copier->streams[direction]);
}

static driver_result streams_create(struct copier *copier)
{
    driver_result result = copier_enter(copier);
    if (result != DRIVER_SUCCESS)
        return result;
    for (int direction = 0; direction < COPY_DIRECTIONS && result == DRIVER_SUCCESS; direction++)
        result = driver.stream_create(&copier->streams[direction], DRIVER_STREAM_NON_BLOCKING);
    if (result == DRIVER_SUCCESS)
        witness_take(copier);
    else
        streams_destroy(copier);
    context_leave();
    return result;
}

static bool device_needs_flush(int device)
{
    int orders = 0, host_pages = 1;
    return !driver.device_attribute ||
           driver.device_attribute(&orders, DRIVER_DEVICE_ORDERS, device) != DRIVER_SUCCESS ||
           driver.device_attribute(&host_pages, DRIVER_DEVICE_HOST_PAGES, device) !=
               DRIVER_SUCCESS ||
           orders < DRIVER_FLUSH_TO_ALL_DEVICES || host_pages;
}

/* With the lock held. A context that has ended may not be asked for any more: who waits to hear of
 * it (see pml/multilane/memory/staging.c) does so by now. */
static struct copier *copier_make(driver_context context, int device, bool is_retained,
                                  driver_result *result)
{
    unsigned count = atomic_load_explicit(&all.count, memory_order_relaxed);
    if (count == COPIERS_MAX) {
        *result = DRIVER_OUT_OF_MEMORY;
        return NULL;
    }
    for (unsigned i = 0; i < count; i++)
        (void) copier_is_alive(&all.copiers[i]);
    struct copier *copier = &all.copiers[count];
    *copier = (struct copier){.context = context,
                              .device = device,
                              .index = count,
                              .is_retained = is_retained,
                              .needs_flush = device_needs_flush(device)};
    *result = streams_create(copier);
    if (*result != DRIVER_SUCCESS)
        return NULL;
    atomic_store_explicit(&all.count, count + 1, memory_order_release); /* copier_find */
    return copier;
}

/* While its witness is there, the primary context is the one that it was. */
static struct copier *copier_find_primary(int device)
{
    unsigned count = copiers_count();
    for (unsigned i = 0; i < count; i++)
        if (all.copiers[i].device == device && all.copiers[i].witness_id &&
            atomic_load_explicit(&all.copiers[i].is_primary, memory_order_relaxed) &&
            copier_is_alive(&all.copiers[i]))
            return &all.copiers[i];
    return NULL;
}

struct copier *copier_of_device(int device, driver_result *result)
{
    driver_context context;
    struct copier *copier = copier_find_primary(device);
    *result = DRIVER_SUCCESS;
    if (copier)
        return copier;
    captures_ignore();
    *result = driver.primary_retain(&context, device);
    captures_mind();
    if (*result != DRIVER_SUCCESS)
        return NULL;
    pthread_mutex_lock(&all.lock);
    copier = copier_find(context);
    bool is_new = !copier;
    if (is_new)
        copier = copier_make(context, device, true, result);
    if (copier) /* relaxed: who does not see it yet asks the driver */
        atomic_store_explicit(&copier->is_primary, true, memory_order_relaxed);
    bool keep = is_new && copier;
    pthread_mutex_unlock(&all.lock);
    if (!keep)
        driver.primary_release(device);
    return copier;
}

struct copier *copier_get(const struct memory *memory, driver_result *result)
{
    *result = DRIVER_SUCCESS;
    if (!memory->context) /* and maybe of no device: all of them reach it */
        return copier_of_device(memory->device < 0 ? 0 : memory->device, result);
    struct copier *copier = copier_find_for(memory);
    if (copier)
        return copier;
    pthread_mutex_lock(&all.lock);
    copier = copier_find(memory->context);
    if (!copier)
        copier = copier_make(memory->context, memory->device, false, result);
    pthread_mutex_unlock(&all.lock);
    return copier;
}

/* Numbers of allocations that are settled, each at the place that its remainder gives it.
 * Relaxed, as what was under way has ended before the number is there, outside of our memory. */
#define SETTLED_MAX 256
static _Atomic uint64_t settled[SETTLED_MAX];

void copier_settle(const struct copier *copier, const struct memory *memory)
{
    static const unsigned yes = 1;
    _Atomic uint64_t *place = &settled[memory->buffer_id % SETTLED_MAX];
    if (memory->kind != MEMORY_DEVICE || !driver.pointer_set ||
        atomic_load_explicit(place, memory_order_relaxed) == memory->buffer_id ||
        copier_enter(copier) != DRIVER_SUCCESS)
        return;
    driver.pointer_set(&yes, DRIVER_POINTER_SYNC_COPIES, memory->start);
    context_leave();
    atomic_store_explicit(place, memory->buffer_id, memory_order_relaxed);
}

/* --- copies ----------------------------------------------------------------------------------- */

static driver_result copy_rows(const struct copy_shape *shape, driver_stream stream)
{
    const struct driver_copy_2d copy = {.from_type = DRIVER_MEMORY_UNIFIED,
                                        .from_device = shape->from.start,
                                        .from_pitch = shape->from.pitch,
                                        .to_type = DRIVER_MEMORY_UNIFIED,
                                        .to_device = shape->to.start,
                                        .to_pitch = shape->to.pitch,
                                        .width_bytes = shape->bytes,
                                        .height = shape->rows};
    return driver.copy_2d_async(&copy, stream);
}

static driver_result copy_planes(const struct copy_shape *shape, driver_stream stream)
{
    const struct driver_copy_3d copy = {.from_type = DRIVER_MEMORY_UNIFIED,
                                        .from_device = shape->from.start,
                                        .from_pitch = shape->from.pitch,
                                        .from_height = shape->from.rows,
                                        .to_type = DRIVER_MEMORY_UNIFIED,
                                        .to_device = shape->to.start,
                                        .to_pitch = shape->to.pitch,
                                        .to_height = shape->to.rows,
                                        .width_bytes = shape->bytes,
                                        .height = shape->rows,
                                        .depth = shape->planes};
    return driver.copy_3d_async(&copy, stream);
}

static driver_result copy_halves(driver_ptr to, driver_ptr from, size_t half, driver_stream stream)
{
    const struct copy_shape shape = {.to = {.start = to, .pitch = half},
                                     .from = {.start = from, .pitch = half},
                                     .bytes = half,
                                     .rows = 2,
                                     .planes = 1};
    return copy_rows(&shape, stream);
}

/* Rows are of one length: an odd byte goes with its neighbour, which is copied twice. */
static driver_result copy_few(driver_ptr to, driver_ptr from, size_t bytes, driver_stream stream)
{
    driver_result result = copy_halves(to, from, bytes / 2, stream);
    if (result == DRIVER_SUCCESS && bytes % 2)
        result = copy_halves(to + bytes - 2, from + bytes - 2, 1, stream);
    return result;
}

/* The most that the driver hands over that way, of any memory of the host. */
#define FEW_BYTES ((size_t) 64 << 10)

driver_result copier_copy(struct copier *copier, enum copy_direction direction, driver_ptr to,
                          driver_ptr from, size_t bytes)
{
    bool by_rows = direction == COPY_TO_DEVICE && bytes > 1 && bytes <= FEW_BYTES &&
                   atomic_load_explicit(&copier->is_shared, memory_order_relaxed);
    return IN_CONTEXT(copier, by_rows
                                  ? copy_few(to, from, bytes, copier->streams[direction])
                                  : driver.copy_async(to, from, bytes, copier->streams[direction]));
}

driver_result copier_copy_shape(struct copier *copier, enum copy_direction direction,
                                const struct copy_shape *shape)
{
    driver_stream stream = copier->streams[direction];
    return IN_CONTEXT(copier,
                      shape->planes == 1 ? copy_rows(shape, stream) : copy_planes(shape, stream));
}

driver_result copier_wait(struct copier *copier, enum copy_direction direction)
{
    return IN_CONTEXT(copier, driver.stream_synchronize(copier->streams[direction]));
}

/* An event from before, or a new one; the context is current. */
static driver_result event_get(struct copier *copier, driver_event *event)
{
    *event = NULL;
    pthread_mutex_lock(&all.lock);
    if (all.events[copier->index].count)
        *event = all.events[copier->index].kept[--all.events[copier->index].count];
    pthread_mutex_unlock(&all.lock);
    return *event ? DRIVER_SUCCESS : driver.event_create(event, DRIVER_EVENT_NO_TIMING);
}

driver_result copier_event_record(struct copier *copier, enum copy_direction direction,
                                  driver_event *event)
{
    driver_result result = copier_enter(copier);
    if (result != DRIVER_SUCCESS)
        return result;
    result = event_get(copier, event);
    if (result == DRIVER_SUCCESS)
        result = driver.event_record(*event, copier->streams[direction]);
    context_leave();
    if (result != DRIVER_SUCCESS && *event)
        copier_event_return(copier, *event);
    return result;
}

driver_result copier_event_test(driver_event event)
{
    captures_ignore();
    driver_result result = driver.event_query(event);
    captures_mind();
    return result;
}

void copier_event_return(struct copier *copier, driver_event event)
{
    if (copier_is_gone(copier))
        return;
    pthread_mutex_lock(&all.lock);
    bool is_kept = all.events[copier->index].count < EVENTS_KEPT;
    if (is_kept)
        all.events[copier->index].kept[all.events[copier->index].count++] = event;
    pthread_mutex_unlock(&all.lock);
    if (!is_kept)
        (void) IN_CONTEXT(copier, driver.event_destroy(event));
}

driver_result copier_flush(const struct copier *copier)
{
    int ways = 0;
    if (!driver.remote_flush || !driver.device_attribute)
        return DRIVER_NOT_SUPPORTED;
    driver_result result = driver.device_attribute(&ways, DRIVER_DEVICE_FLUSHES, copier->device);
    if (result != DRIVER_SUCCESS)
        return result;
    if (!(ways & DRIVER_FLUSHES_BY_CALL))
        return DRIVER_NOT_SUPPORTED;
    return IN_CONTEXT(
        copier, driver.remote_flush(DRIVER_FLUSH_CURRENT_CONTEXT, DRIVER_FLUSH_TO_ALL_DEVICES));
}

void *copier_pin(struct copier *copier, size_t bytes, driver_result *result)
{
    void *pinned = NULL;
    *result = IN_CONTEXT(copier, driver.mem_host_alloc(&pinned, bytes, DRIVER_HOST_PORTABLE));
    return *result == DRIVER_SUCCESS ? pinned : NULL;
}

void copier_unpin(struct copier *copier, void *bytes)
{
    (void) IN_CONTEXT(copier, driver.mem_host_free(bytes));
}

driver_result copier_pin_pages(struct copier *copier, void *memory, size_t bytes)
{
    driver_result result = IN_CONTEXT(copier, driver.host_pin(memory, bytes, DRIVER_HOST_PORTABLE));
    return result == DRIVER_ALREADY_PINNED ? DRIVER_SUCCESS : result;
}

bool copier_unpin_pages(struct copier *copier, void *memory)
{
    return IN_CONTEXT(copier, driver.host_unpin(memory)) == DRIVER_SUCCESS;
}

/* The driver itself may be gone: what it says to all this changes nothing. */
static void copier_close(struct copier *copier)
{
    if (copier_enter(copier) == DRIVER_SUCCESS) {
        for (unsigned i = 0; i < all.events[copier->index].count; i++)
            driver.event_destroy(all.events[copier->index].kept[i]);
        streams_destroy(copier);
        if (copier->witness)
            driver.mem_free(copier->witness);
        context_leave();
    }
    all.events[copier->index].count = 0;
    if (copier->is_retained)
        driver.primary_release(copier->device);
}

void copiers_close(void)
{
    copiers_check();
    pthread_mutex_lock(&all.lock);
    unsigned count = atomic_load_explicit(&all.count, memory_order_relaxed);
    for (unsigned i = 0; i < count; i++)
        copier_close(&all.copiers[i]);
    atomic_store_explicit(&all.count, 0, memory_order_relaxed);
    pthread_mutex_unlock(&all.lock);
}
