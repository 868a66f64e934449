/* SPDX-License-Identifier: BSD-3-Clause */
/* The slots, and the queues of copies under way.
 *
 * Each stream has a queue: a started copy adds its slot at the tail, progress takes ended ones
 * from the head. Copies of one stream end in order, so progress tests only the head. */
#include "memory/device.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/multilane.h"

enum { POOL_SMALL, POOL_LARGE, POOLS, POOL_HEAP = POOLS, POOL_NONE };

#define SMALL_BYTES ((size_t) 8 << 10)

static const struct {
    size_t slot_bytes;
    unsigned slots;
} pool_sizes[POOLS] = {[POOL_SMALL] = {SMALL_BYTES, 64}, [POOL_LARGE] = {SLOT_BYTES, 16}};

struct slot_queue {
    struct slot *head;
    struct slot **tail; /* null: means &head */
};

static struct {
    _Atomic uint32_t under_way; /* copies; a hint, read without the lock */

    opal_mutex_t lock; /* guards all below */
    struct {
        struct slot *slots; /* null: not allocated yet */
        unsigned char *bytes;
        struct copier *copier; /* the one that has pinned the bytes; null: not pinned */
        struct slot *free;
    } pools[POOLS];
    struct slot_queue queues[COPIERS_MAX][COPY_DIRECTIONS];
    unsigned used; /* copiers with a smaller index may have queues */
} staging = {.lock = OPAL_MUTEX_STATIC_INIT};

/* --- slots ------------------------------------------------------------------------------------ */

static void slot_init(struct slot *slot, unsigned char *bytes, size_t room, uint8_t pool)
{
    slot->bytes = bytes;
    slot->room = room;
    slot->pool = pool;
}

static size_t pool_bytes(uint8_t pool)
{
    return pool_sizes[pool].slots * pool_sizes[pool].slot_bytes;
}

/* Whole pages that a forked child does not inherit: kernels before Linux 5.12 would give this
 * process new pages, which the device does not know. */
static void *pages_new(size_t bytes)
{
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return NULL;
    madvise(pages, bytes, MADV_DONTFORK);
    return pages;
}

/* Allocated here and not by the driver: it must outlive the driver context that pinned it,
 * because messages of other devices may be in it. */
static void pool_pin(uint8_t pool, struct copier *copier)
{
    driver_result result = copier_pin_pages(copier, staging.pools[pool].bytes, pool_bytes(pool));
    staging.pools[pool].copier = result == DRIVER_SUCCESS ? copier : NULL;
    if (result != DRIVER_SUCCESS)
        driver_complain("no pinned memory, so that copies of device memory go slower", result);
}

/* With the lock held. False without memory. */
static bool pool_make(uint8_t pool, struct copier *copier)
{
    unsigned count = pool_sizes[pool].slots;
    size_t room = pool_sizes[pool].slot_bytes;
    struct slot *slots = calloc(count, sizeof(*slots));
    void *bytes = slots ? pages_new(pool_bytes(pool)) : NULL;
    if (!bytes) {
        free(slots);
        return false;
    }
    staging.pools[pool].slots = slots;
    staging.pools[pool].bytes = bytes;
    pool_pin(pool, copier);
    for (unsigned i = 0; i < count; i++) {
        slot_init(&slots[i], staging.pools[pool].bytes + i * room, room, pool);
        slots[i].next = staging.pools[pool].free;
        staging.pools[pool].free = &slots[i];
    }
    return true;
}

struct slot *slot_take(struct copier *copier, size_t bytes)
{
    uint8_t pool = bytes <= SMALL_BYTES ? POOL_SMALL : POOL_LARGE;
    struct slot *slot = NULL;
    OPAL_THREAD_LOCK(&staging.lock);
    if (staging.pools[pool].copier && copier_is_gone(staging.pools[pool].copier))
        pool_pin(pool, copier);
    if (staging.pools[pool].slots || pool_make(pool, copier))
        slot = staging.pools[pool].free;
    if (slot)
        staging.pools[pool].free = slot->next;
    OPAL_THREAD_UNLOCK(&staging.lock);
    return slot;
}

struct slot *slot_take_whole(struct copier *copier, size_t bytes)
{
    struct slot *slot = bytes <= SLOT_BYTES ? slot_take(copier, bytes) : NULL;
    return slot ? slot : slot_new(bytes);
}

struct slot *slot_new(size_t bytes)
{
    struct slot *slot = calloc(1, sizeof(*slot));
    unsigned char *memory = slot ? malloc(bytes) : NULL;
    if (!memory) {
        free(slot);
        return NULL;
    }
    slot_init(slot, memory, bytes, POOL_HEAP);
    return slot;
}

struct slot *slot_around(void *bytes, size_t length)
{
    struct slot *slot = calloc(1, sizeof(*slot));
    if (!slot)
        return NULL;
    slot_init(slot, bytes, length, POOL_NONE);
    slot->length = length;
    return slot;
}

void slot_return(struct slot *slot)
{
    if (slot->pool >= POOLS) {
        if (slot->pool == POOL_HEAP)
            free(slot->bytes);
        free(slot);
        return;
    }
    OPAL_THREAD_LOCK(&staging.lock);
    slot->next = staging.pools[slot->pool].free;
    staging.pools[slot->pool].free = slot;
    OPAL_THREAD_UNLOCK(&staging.lock);
}

/* --- copies under way ------------------------------------------------------------------------- */

static void queue_add(struct slot_queue *queue, struct slot *slot)
{
    atomic_fetch_add_explicit(&staging.under_way, 1, memory_order_relaxed);
    slot->next = NULL;
    if (!queue->tail)
        queue->tail = &queue->head;
    *queue->tail = slot;
    queue->tail = &slot->next;
}

/* Takes the head, if its copy has ended; else null. */
static struct slot *queue_take(struct slot_queue *queue, driver_result *result)
{
    struct slot *slot = queue->head;
    if (!slot)
        return NULL;
    *result = copier_event_test(slot->event);
    if (*result == DRIVER_NOT_READY)
        return NULL;
    queue->head = slot->next;
    if (!queue->head)
        queue->tail = &queue->head;
    atomic_fetch_sub_explicit(&staging.under_way, 1, memory_order_relaxed);
    copier_event_return(slot->copier, slot->event);
    return slot;
}

/* An ended slot of any queue. Starts at `*from`, so that no queue delays another. */
static struct slot *ended_take(unsigned *from, driver_result *result)
{
    struct slot *slot = NULL;
    OPAL_THREAD_LOCK(&staging.lock);
    while (!slot && *from < staging.used * COPY_DIRECTIONS) {
        slot =
            queue_take(&staging.queues[*from / COPY_DIRECTIONS][*from % COPY_DIRECTIONS], result);
        if (!slot)
            (*from)++;
    }
    OPAL_THREAD_UNLOCK(&staging.lock);
    return slot;
}

int staging_progress(void)
{
    int ended = 0;
    unsigned from = 0;
    driver_result result = DRIVER_SUCCESS;
    struct slot *slot;
    if (atomic_load_explicit(&staging.under_way, memory_order_relaxed) == 0)
        return 0; /* the next call sees a copy that was just added */
    while ((slot = ended_take(&from, &result)) != NULL) {
        slot->done(slot, result); /* with no lock held */
        ended++;
    }
    return ended;
}

driver_result slot_copy(struct slot *slot, const struct view *view, enum copy_direction direction,
                        void (*done)(struct slot *slot, driver_result result))
{
    struct copier *copier = view->copier;
    slot->done = done;
    slot->copier = copier;
    /* The lock gives the queue the order of the stream. */
    OPAL_THREAD_LOCK(&staging.lock);
    driver_result result = view_copy(view, direction, slot->offset, slot->length, slot->bytes);
    if (result == DRIVER_SUCCESS)
        result = copier_event_record(copier, direction, &slot->event);
    if (result == DRIVER_SUCCESS)
        queue_add(&staging.queues[copier->index][direction], slot);
    else
        copier_wait(copier, direction); /* what was started uses the slot */
    if (copier->index >= staging.used)
        staging.used = copier->index + 1;
    OPAL_THREAD_UNLOCK(&staging.lock);
    return result;
}

driver_result slot_read(struct slot *slot, const struct view *view)
{
    driver_result result = view_copy(view, COPY_TO_HOST, 0, slot->length, slot->bytes);
    driver_result waited = copier_wait(view->copier, COPY_TO_HOST);
    return result == DRIVER_SUCCESS ? waited : result;
}

bool slots_await(struct copier *copier, enum copy_direction direction, const void *owner)
{
    struct slot_queue *queue = &staging.queues[copier->index][direction];
    driver_result waited = copier_wait(copier, direction), result = waited;
    struct slot *slot;
    bool is_any = false;
    do {
        OPAL_THREAD_LOCK(&staging.lock);
        slot = queue->head && queue->head->owner == owner ? queue_take(queue, &result) : NULL;
        OPAL_THREAD_UNLOCK(&staging.lock);
        if (slot)
            slot->done(slot, waited == DRIVER_SUCCESS ? result : waited);
        is_any |= slot != NULL;
    } while (slot);
    return is_any;
}

static void pool_free(uint8_t pool)
{
    if (!staging.pools[pool].slots)
        return;
    struct copier *copier = staging.pools[pool].copier;
    if (!copier || copier_unpin_pages(copier, staging.pools[pool].bytes))
        munmap(staging.pools[pool].bytes, pool_bytes(pool)); /* else it is still pinned */
    free(staging.pools[pool].slots);
    memset(&staging.pools[pool], 0, sizeof(staging.pools[pool]));
}

void staging_fini(void)
{
    copiers_check();
    for (uint8_t pool = 0; pool < POOLS; pool++)
        pool_free(pool);
    /* Only those: to write to all is to touch all their memory, in each process. */
    memset(staging.queues, 0, staging.used * sizeof(staging.queues[0]));
    staging.used = 0;
    atomic_init(&staging.under_way, 0);
    packers_close();
    copiers_close();
}
