/* SPDX-License-Identifier: BSD-3-Clause */
/* Areas of communicators: their rank 0 allots them in its own part of the job's memory. */
#include "coll/node/node.h"

#include <stdlib.h>
#include <string.h>

/* A turn of more bytes gains little, and needs more of the processors' caches. */
#define SLOT_BYTES_MAX 65536u
#define AREA_UNIT      4096u

/* Where processes look at each other's slots so many bytes are faster there than as messages. */
#define LOOKING_BYTES 4096u

/* What each process tells the others. */
struct vote {
    uint64_t part;       /* of the commons */
    uint64_t offset;     /* rank 0: of the area in its part */
    uint64_t slot_bytes; /* rank 0: of the area */
    uint64_t bytes_max;  /* its parameter: the least of all holds */
};

/* In this process's part. Each is there until all its processes have left it. */
static struct own_area {
    struct own_area *next; /* the next one in memory */
    struct area *area;
    size_t offset, bytes;
    uint32_t ranks, slot_bytes;
} * own_areas;
static opal_mutex_t own_lock = OPAL_MUTEX_STATIC_INIT; /* guards the list */

/* 0: so many bytes are none for an area. */
static uint32_t slot_bytes_for(uint32_t ranks, size_t area_most, size_t slot_most)
{
    size_t room = area_most > sizeof(struct area) ? area_most - sizeof(struct area) : 0;
    size_t stride = room / area_slots(ranks) / AREA_ALIGN * AREA_ALIGN;
    return stride ? (uint32_t) lesser(stride - SLOT_HEAD_BYTES, slot_most) : 0;
}

/* Of an operation that is faster in turns of this size than by messages: each turn is a run of each
 * process. Half of the largest slots do for all. */
static uint64_t bytes_worth(uint32_t slot_bytes)
{
    return slot_bytes < SLOT_BYTES_MAX / 2 ? (uint64_t) slot_bytes * (1 + slot_bytes / 1024)
                                           : UINT64_MAX;
}

/* Acquire: what those that have left wrote before is done. */
static bool is_left(const struct own_area *own)
{
    return atomic_load_explicit(&own->area->left, memory_order_acquire) == own->ranks;
}

static void left_ones_free(void)
{
    struct own_area **at = &own_areas;
    while (*at) {
        struct own_area *own = *at;
        if (is_left(own)) {
            *at = own->next;
            free(own);
        } else {
            at = &own->next;
        }
    }
}

static size_t room_left(const struct multilane_commons *commons)
{
    size_t left = commons->bytes;
    for (const struct own_area *own = own_areas; own; own = own->next)
        left -= own->bytes;
    return left;
}

/* The first gap of that size. */
static struct own_area *own_area_new(const struct multilane_commons *commons, size_t bytes)
{
    struct own_area **at = &own_areas;
    struct own_area *own = calloc(1, sizeof(*own));
    size_t offset = 0;
    while (own && *at && (*at)->offset - offset < bytes) {
        offset = (*at)->offset + (*at)->bytes;
        at = &(*at)->next;
    }
    unsigned char *memory = commons->memory + commons->part * commons->stride + offset;
    if (!own || offset + bytes > commons->bytes || !commons->reserve(memory, bytes)) {
        free(own);
        return NULL;
    }
    *own = (struct own_area){
        .next = *at, .area = (struct area *) (void *) memory, .offset = offset, .bytes = bytes};
    *at = own;
    return own;
}

/* A number that this result never has: 0 would say that that of turn 2^32 - 1 is there. */
static void result_clear(unsigned char *at)
{
    atomic_store_explicit(&((struct slot *) (void *) at)->number, 1, memory_order_relaxed);
}

static void own_area_begin(struct own_area *own, uint32_t ranks, uint32_t slot_bytes)
{
    own->ranks = ranks;
    own->slot_bytes = slot_bytes;
    memset(own->area, 0, sizeof(*own->area));
    for (size_t i = 0; i < area_slots(ranks); i++)
        memset(own->area->slots + i * slot_stride(slot_bytes), 0, SLOT_HEAD_BYTES);
    result_clear(own->area->slots + (TURN_RESULTS - 1) * slot_stride(slot_bytes));
    result_clear(own->area->shorts + (TURN_SHORTS - 1) * (size_t) AREA_ALIGN);
}

/* By rank 0: at most half of what is left, for there may be more communicators. Null: there is no
 * room. */
static struct own_area *area_allot(const struct multilane_commons *commons, uint32_t ranks,
                                   size_t slot_most)
{
    struct own_area *own = NULL;
    uint32_t slot_bytes;
    OPAL_THREAD_LOCK(&own_lock);
    left_ones_free();
    for (size_t most = room_left(commons) / 2;
         !own && (slot_bytes = slot_bytes_for(ranks, most, slot_most)) > 0; most /= 2) {
        size_t units = (area_bytes(ranks, slot_bytes) + AREA_UNIT - 1) / AREA_UNIT;
        own = own_area_new(commons, units * AREA_UNIT);
        if (own)
            own_area_begin(own, ranks, slot_bytes);
    }
    OPAL_THREAD_UNLOCK(&own_lock);
    return own;
}

static void area_use(node_module_t *node, const struct multilane_commons *commons,
                     const struct vote *votes, bool looks)
{
    struct turns *turns = &node->turns;
    turns->looks = looks;
    turns->slot_bytes = (uint32_t) votes[0].slot_bytes;
    turns->slot_stride = slot_stride(turns->slot_bytes);
    node->bytes_max = bytes_worth(turns->slot_bytes);
    if (looks && node->bytes_max > LOOKING_BYTES)
        node->bytes_max = LOOKING_BYTES;
    for (uint32_t rank = 0; rank < turns->ranks; rank++) {
        node->parts[rank] = (uint32_t) votes[rank].part;
        if (votes[rank].bytes_max < node->bytes_max)
            node->bytes_max = votes[rank].bytes_max;
    }
    turns->area = (struct area *) (void *) (commons->memory + votes[0].part * commons->stride +
                                            votes[0].offset);
}

/* All can have an area, if rank 0 has room for one. */
static int area_set_up(node_module_t *node, const struct multilane_commons *commons,
                       struct vote *votes, bool looks)
{
    struct own_area *own = NULL;
    if (node->me == 0)
        own = area_allot(commons, node->turns.ranks, looks ? LOOKING_BYTES : SLOT_BYTES_MAX);
    const struct vote mine = {commons->part, own ? own->offset : 0, own ? own->slot_bytes : 0,
                              (uint64_t) node_bytes_max};
    int status = node->entry.below.coll_allgather(&mine, sizeof(mine), MPI_BYTE, votes,
                                                  sizeof(mine), MPI_BYTE, node->entry.comm,
                                                  node->entry.below.coll_allgather_module);
    /* Where this fails others may know of the area: it stays. */
    if (status == OMPI_SUCCESS && votes[0].slot_bytes > 0)
        area_use(node, commons, votes, looks);
    else
        node->entry.without = MULTILANE_NO_MEMORY;
    return status;
}

int area_obtain(node_module_t *node)
{
    struct multilane_commons commons;
    uint32_t ranks = node->turns.ranks;
    struct vote *votes = calloc(ranks, sizeof(*votes));
    int status;
    node->parts = calloc(ranks, sizeof(*node->parts));
    enum multilane_way why = node_hindrance(votes && node->parts);
    if (why == MULTILANE_BY_NODE && !node_services_find(&commons))
        why = MULTILANE_NO_SHM;
    bool shares = why == MULTILANE_BY_NODE && node_shares();
    if (all_agree(&node->entry, why, &shares, (int) ranks <= node_looking_ranks, &status))
        status = area_set_up(node, &commons, votes, !shares);
    free(votes);
    return status;
}

/* The job's memory may be gone, at its end. */
void area_leave(node_module_t *node)
{
    struct multilane_commons commons;
    if (node->turns.area && node_services_find(&commons))
        atomic_fetch_add_explicit(&node->turns.area->left, 1, memory_order_release);
    node->turns.area = NULL;
    free(node->parts);
    node->parts = NULL;
}
