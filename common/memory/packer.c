/* SPDX-License-Identifier: BSD-3-Clause */
/* A packer for each copier and direction: room on the device where packed bytes pass, and tables of
 * blocks. Everything a packer does goes through one stream in order, so its memory is used again
 * and again without asking whether the device has finished with it. */
#include "common/memory/packer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory/kernels.h"

/* What one kernel packs: a slot of the staging ring fits. */
#define ROOM_BYTES ((size_t) 512 << 10)

/* Blocks of a table. A datatype with more is packed in parts, whose tables follow each other. */
#define TABLE_BLOCKS 16384
#define TABLE_BYTES  (TABLE_BLOCKS * sizeof(struct pack_block))

/* Tables that are kept, so that messages may take turns. */
#define TABLES 4

struct table {
    uint64_t serial;       /* of the layout that it is part of; 0: of none */
    uint32_t first, count; /* of its blocks */
    uint64_t last_use;
    struct pack_block *host; /* from where it is brought to the device */
    driver_ptr device;
    driver_event brought; /* behind what brings it there; null: nothing does */
};

static struct {
    pthread_mutex_t lock; /* guards all below, and keeps a kernel and its copy together in the
                           * stream */
    struct packer {
        struct copier *copier;
        bool is_tried;
        driver_result result;
        driver_ptr room;
        bool is_pinned; /* the tables' host memory */
        struct pack_block *table_blocks;
        driver_ptr table_memory;
        struct table tables[TABLES];
        uint64_t uses;
    } of[COPIERS_MAX][COPY_DIRECTIONS];
    bool is_used; /* has any of them been tried? To look at all is to touch all their memory */
} packers = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- layouts ---------------------------------------------------------------------------------- */

void layout_end(struct layout *layout)
{
    static _Atomic uint64_t last_serial;
    uint64_t bits = (uint64_t) (uintptr_t) layout->base | (uint64_t) layout->extent | 8;
    for (uint32_t i = 0; i <= layout->block_count; i++)
        bits |= layout->blocks[i].offset | (uint64_t) layout->blocks[i].displacement;
    layout->word = (uint32_t) (bits & (~bits + 1)); /* its lowest bit that is set */
    /* Relaxed: only that each is given once. */
    layout->serial = atomic_fetch_add_explicit(&last_serial, 1, memory_order_relaxed) + 1;
}

uint32_t layout_block_at(const struct layout *layout, size_t within)
{
    uint32_t low = 0, high = layout->block_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (layout->blocks[middle].offset <= within)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* --- memory ----------------------------------------------------------------------------------- */

static void packer_free(struct packer *packer)
{
    for (int i = 0; i < TABLES; i++)
        if (packer->tables[i].brought)
            copier_event_return(packer->copier, packer->tables[i].brought);
    if (packer->is_pinned)
        copier_unpin(packer->copier, packer->table_blocks);
    else
        free(packer->table_blocks);
    if (copier_enter(packer->copier) == DRIVER_SUCCESS) {
        if (packer->room)
            driver.mem_free(packer->room);
        if (packer->table_memory)
            driver.mem_free(packer->table_memory);
        context_leave();
    }
    memset(packer, 0, sizeof(*packer));
}

static driver_result device_memory_get(struct packer *packer)
{
    driver_result result = copier_enter(packer->copier);
    if (result != DRIVER_SUCCESS)
        return result;
    /* A word more: packed bytes that begin in the middle of one stay aligned. */
    result = driver.mem_alloc(&packer->room, ROOM_BYTES + 8);
    if (result == DRIVER_SUCCESS)
        result = driver.mem_alloc(&packer->table_memory, TABLES * TABLE_BYTES);
    context_leave();
    return result;
}

static driver_result host_memory_get(struct packer *packer)
{
    driver_result result;
    packer->table_blocks = copier_pin(packer->copier, TABLES * TABLE_BYTES, &result);
    packer->is_pinned = packer->table_blocks != NULL;
    if (!packer->is_pinned) /* slower, and as good */
        packer->table_blocks = malloc(TABLES * TABLE_BYTES);
    return packer->table_blocks ? DRIVER_SUCCESS : DRIVER_OUT_OF_MEMORY;
}

/* With the lock held. */
static driver_result packer_make(struct packer *packer, struct copier *copier)
{
    driver_result result = kernels_ready(copier);
    if (result != DRIVER_SUCCESS)
        return result;
    packer->copier = copier;
    result = device_memory_get(packer);
    if (result == DRIVER_SUCCESS)
        result = host_memory_get(packer);
    if (result != DRIVER_SUCCESS) {
        packer_free(packer);
        return result;
    }
    for (uint32_t i = 0; i < TABLES; i++) {
        packer->tables[i].host = packer->table_blocks + (size_t) i * TABLE_BLOCKS;
        packer->tables[i].device = packer->table_memory + i * TABLE_BYTES;
    }
    return DRIVER_SUCCESS;
}

driver_result packer_ready(struct copier *copier, enum copy_direction direction)
{
    struct packer *packer = &packers.of[copier->index][direction];
    pthread_mutex_lock(&packers.lock);
    if (!packer->is_tried) {
        driver_result result = packer_make(packer, copier);
        packer->result = result;
        packer->is_tried = packers.is_used = true;
    }
    pthread_mutex_unlock(&packers.lock);
    return packer->result;
}

void packers_close(void)
{
    pthread_mutex_lock(&packers.lock);
    for (int i = 0; packers.is_used && i < COPIERS_MAX; i++)
        for (int direction = 0; direction < COPY_DIRECTIONS; direction++)
            if (packers.of[i][direction].copier)
                packer_free(&packers.of[i][direction]);
            else
                packers.of[i][direction].is_tried = false;
    packers.is_used = false;
    kernels_close();
    pthread_mutex_unlock(&packers.lock);
}

/* --- tables ----------------------------------------------------------------------------------- */

static bool table_holds(const struct table *table, const struct layout *layout, uint32_t block)
{
    return table->serial == layout->serial && block >= table->first &&
           block - table->first < table->count;
}

/* What brought the last contents may not have read them yet. These are copies and kernels of ours
 * only, so waiting for them ends. */
static driver_result table_clear(const struct packer *packer, enum copy_direction direction,
                                 struct table *table)
{
    driver_result result = DRIVER_SUCCESS;
    table->serial = 0;
    if (!table->brought)
        return DRIVER_SUCCESS;
    if (copier_event_test(table->brought) == DRIVER_NOT_READY)
        result = copier_wait(packer->copier, direction);
    copier_event_return(packer->copier, table->brought);
    table->brought = NULL;
    return result;
}

/* Brings blocks from `block` on to the device, or all if there is room. */
static driver_result table_fill(struct packer *packer, enum copy_direction direction,
                                struct table *table, const struct layout *layout, uint32_t block)
{
    driver_result result = table_clear(packer, direction, table);
    if (result != DRIVER_SUCCESS)
        return result;
    bool is_all = layout->block_count <= TABLE_BLOCKS;
    uint32_t left = layout->block_count - block;
    table->first = is_all ? 0 : block;
    table->count = is_all ? layout->block_count : left < TABLE_BLOCKS ? left : TABLE_BLOCKS;
    size_t bytes = table->count * sizeof(struct pack_block);
    memcpy(table->host, layout->blocks + table->first, bytes);
    result = copier_copy(packer->copier, direction, table->device,
                         (driver_ptr) (uintptr_t) table->host, bytes);
    if (result == DRIVER_SUCCESS)
        result = copier_event_record(packer->copier, direction, &table->brought);
    if (result == DRIVER_SUCCESS)
        table->serial = layout->serial;
    return result;
}

/* The table with that block of the layout, which is there when what is started now runs. */
static struct table *table_get(struct packer *packer, enum copy_direction direction,
                               const struct layout *layout, uint32_t block, driver_result *result)
{
    struct table *oldest = &packer->tables[0];
    *result = DRIVER_SUCCESS;
    for (int i = 0; i < TABLES; i++) {
        struct table *table = &packer->tables[i];
        if (table_holds(table, layout, block)) {
            table->last_use = ++packer->uses;
            return table;
        }
        if (table->last_use < oldest->last_use)
            oldest = table;
    }
    oldest->last_use = ++packer->uses;
    *result = table_fill(packer, direction, oldest, layout, block);
    return oldest;
}

/* --- packing ---------------------------------------------------------------------------------- */

/* How many of the bytes from `offset` on one kernel moves: those of the table, and what there is
 * room for. */
static size_t part_bytes(const struct layout *layout, const struct table *table, size_t offset,
                         size_t bytes)
{
    size_t room = ROOM_BYTES;
    if (table->count < layout->block_count) {
        size_t end = (size_t) layout->blocks[table->first + table->count].offset;
        if (end - offset % layout->element_bytes < room)
            room = end - offset % layout->element_bytes;
    }
    return bytes < room ? bytes : room;
}

/* With the lock held. */
static driver_result part_move(struct packer *packer, enum copy_direction direction,
                               const struct layout *layout, const struct table *table,
                               size_t offset, size_t bytes, driver_ptr host)
{
    const struct pack pack = {.packed = packer->room + offset % layout->word,
                              .base = (uint64_t) (uintptr_t) layout->base,
                              .table = table->device,
                              .from = offset,
                              .bytes = bytes,
                              .element_bytes = layout->element_bytes,
                              .extent = layout->extent,
                              .blocks = table->count,
                              .word = layout->word,
                              .unpacks = direction == COPY_TO_DEVICE};
    driver_result result = DRIVER_SUCCESS;
    if (direction == COPY_TO_DEVICE)
        result = copier_copy(packer->copier, direction, pack.packed, host, bytes);
    if (result == DRIVER_SUCCESS)
        result = kernels_start(packer->copier, direction, &pack);
    if (result == DRIVER_SUCCESS && direction == COPY_TO_HOST)
        result = copier_copy(packer->copier, direction, host, pack.packed, bytes);
    return result;
}

driver_result packer_copy(struct copier *copier, enum copy_direction direction,
                          const struct layout *layout, size_t offset, size_t bytes, void *host)
{
    struct packer *packer = &packers.of[copier->index][direction];
    driver_ptr at = (driver_ptr) (uintptr_t) host;
    driver_result result = DRIVER_SUCCESS;
    pthread_mutex_lock(&packers.lock);
    while (bytes && result == DRIVER_SUCCESS) {
        uint32_t block = layout_block_at(layout, offset % layout->element_bytes);
        const struct table *table = table_get(packer, direction, layout, block, &result);
        if (result != DRIVER_SUCCESS)
            break;
        size_t part = part_bytes(layout, table, offset, bytes);
        result = part_move(packer, direction, layout, table, offset, part, at);
        offset += part;
        at += part;
        bytes -= part;
    }
    pthread_mutex_unlock(&packers.lock);
    return result;
}
