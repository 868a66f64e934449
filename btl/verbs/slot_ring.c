/* SPDX-License-Identifier: BSD-3-Clause */
/* Lays out slots and reads them. */
#include "btl/verbs/slot_ring.h"

#include <string.h>

static uint32_t lap_of(uint32_t number, uint32_t depth)
{
    return number / depth + 1;
}

static uint32_t check_of(const struct slot *slot, uint32_t lap)
{
    uint32_t words[offsetof(struct slot, check) / sizeof(uint32_t)];
    uint32_t sum = lap * 0x9e3779b1u;

    memcpy(words, slot, sizeof(words));
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        sum = (sum ^ words[i]) * 0x85ebca6bu;
        sum ^= sum >> 15;
    }
    return sum;
}

uint32_t verbs_slot_ring_depth(double in_flight_bytes, double smallest_bytes)
{
    uint32_t depth = SLOTS_DEPTH_LEAST;

    while (depth < SLOTS_DEPTH_MOST && depth * smallest_bytes < in_flight_bytes)
        depth *= 2;
    return depth;
}

void verbs_slot_fill(struct slot *slot, uint32_t number, uint32_t depth, const void *message,
                     size_t length, uint8_t tag)
{
    uint32_t lap = lap_of(number, depth);

    memset(slot, 0, sizeof(*slot));
    memcpy(slot->message, message, length);
    slot->length = (uint16_t) length;
    slot->tag = tag;
    slot->check = check_of(slot, lap);
    atomic_init(&slot->lap, lap);
}

enum slot_state verbs_slot_take(struct slot_ring *ring, uint32_t number, uint32_t depth,
                                struct slot *taken)
{
    const struct slot *slot = &ring->slots[number % depth];
    uint32_t lap = lap_of(number, depth);

    /* Acquire: pairs with the peer's device, which writes the lap last. */
    if (lap != atomic_load_explicit(&slot->lap, memory_order_acquire))
        return SLOT_EMPTY;
    memcpy(taken, slot, offsetof(struct slot, lap));
    return check_of(taken, lap) == taken->check ? SLOT_WHOLE : SLOT_TORN;
}
