/* SPDX-License-Identifier: BSD-3-Clause */
/* Areas of communicators: their rank 0 allots them in its own part of the job's memory. */
#include "coll/node/node.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory/driver.h"

/* A slot is as large as that an area has at most so many bytes; and not larger than is worth it. */
#define AREA_BYTES_MAX ((size_t) 1 << 20)
#define SLOT_BYTES_MAX 16384u
#define AREA_UNIT      4096u
#define NO_PART        UINT32_MAX

/* What each process tells the others. */
struct vote {
    uint32_t part;      /* of the commons; NO_PART: it cannot use them */
    uint32_t shares;    /* its processor */
    uint64_t offset;    /* rank 0: of the area in its part */
    uint64_t bytes_max; /* its parameter: the least of all holds */
};

/* In this process's part. Each is there until all its processes have left it. */
static struct own_area {
    struct own_area *next; /* the next one in memory */
    struct area *area;
    size_t offset, bytes;
    uint32_t ranks;
} * own_areas;
static opal_mutex_t own_lock = OPAL_MUTEX_STATIC_INIT; /* guards the list */

static uint32_t slot_bytes_for(uint32_t ranks)
{
    size_t each = (AREA_BYTES_MAX - sizeof(struct area)) / area_slots(ranks);
    size_t bytes = each / AREA_ALIGN * AREA_ALIGN - SLOT_HEAD_BYTES;
    return bytes < SLOT_BYTES_MAX ? (uint32_t) bytes : SLOT_BYTES_MAX;
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

/* By rank 0. Null: there is no room. */
static struct own_area *area_allot(const struct multilane_commons *commons, uint32_t ranks)
{
    size_t bytes = area_bytes(ranks, slot_bytes_for(ranks));
    bytes = (bytes + AREA_UNIT - 1) / AREA_UNIT * AREA_UNIT;
    OPAL_THREAD_LOCK(&own_lock);
    left_ones_free();
    struct own_area *own = own_area_new(commons, bytes);
    if (own) {
        own->ranks = ranks;
        memset(own->area, 0, sizeof(*own->area));
        for (size_t i = 0; i < area_slots(ranks); i++)
            memset(own->area->slots + i * slot_stride(slot_bytes_for(ranks)), 0, SLOT_HEAD_BYTES);
    }
    OPAL_THREAD_UNLOCK(&own_lock);
    return own;
}

/* The communicator does without. */
static void area_give_back(struct own_area *own)
{
    if (own)
        atomic_store_explicit(&own->area->left, own->ranks, memory_order_release);
}

/* Can all use the commons, and is any of them short of a processor? */
static bool are_agreed(const struct vote *votes, uint32_t ranks,
                       const struct multilane_commons *commons)
{
    bool any_shares = false;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        if (votes[rank].part >= commons->parts)
            return false;
        any_shares |= votes[rank].shares != 0;
    }
    return any_shares &&
           votes[0].offset <= commons->bytes - area_bytes(ranks, slot_bytes_for(ranks));
}

static void area_use(node_module_t *node, const struct multilane_commons *commons,
                     const struct vote *votes)
{
    struct turns *turns = &node->turns;
    node->bytes_max = UINT64_MAX;
    for (uint32_t rank = 0; rank < turns->ranks; rank++) {
        node->parts[rank] = votes[rank].part;
        if (votes[rank].bytes_max < node->bytes_max)
            node->bytes_max = votes[rank].bytes_max;
    }
    turns->slot_bytes = slot_bytes_for(turns->ranks);
    turns->slot_stride = slot_stride(turns->slot_bytes);
    turns->area = (struct area *) (void *) (commons->memory + votes[0].part * commons->stride +
                                            votes[0].offset);
}

int area_obtain(node_module_t *node)
{
    struct multilane_commons commons;
    uint32_t ranks = node->turns.ranks;
    struct vote mine = {.part = NO_PART}, *votes = calloc(ranks, sizeof(*votes));
    struct own_area *own = NULL;
    node->parts = calloc(ranks, sizeof(*node->parts));
    if (!votes || !node->parts) {
        free(votes);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    /* What lies on a device cannot be read here. */
    bool can = !driver_load() && !device_memory_possible && node_services_find(&commons);
    if (can) {
        own = node->me == 0 ? area_allot(&commons, ranks) : NULL;
        mine = (struct vote){.part = node->me == 0 && !own ? NO_PART : commons.part,
                             .shares = node_shares(),
                             .offset = own ? own->offset : 0,
                             .bytes_max = node_bytes_max};
    }
    int status =
        node->below.coll_allgather(&mine, sizeof(mine), MPI_BYTE, votes, sizeof(mine), MPI_BYTE,
                                   node->comm, node->below.coll_allgather_module);
    if (status == OMPI_SUCCESS && mine.part != NO_PART && are_agreed(votes, ranks, &commons))
        area_use(node, &commons, votes);
    else
        area_give_back(own);
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
