/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory layout of the FIFO of slots: where each slot is, when it is complete, how many there
 * are. No RDMA here: slots.c moves the bytes. */
#ifndef MULTILANE_VERBS_SLOT_RING_H
#define MULTILANE_VERBS_SLOT_RING_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define SLOT_BYTES        128u /* one packet, and one write of a device into memory */
#define SLOT_MESSAGE_MAX  (SLOT_BYTES - 12)
#define SLOTS_DEPTH_LEAST 16u
#define SLOTS_DEPTH_MOST  256u

struct slot {
    unsigned char message[SLOT_MESSAGE_MAX];
    uint16_t length;
    uint8_t tag;
    uint8_t zero;
    uint32_t check; /* of all before it and the lap, for devices that do not write in order */
    /* The ready flag, last in the slot: the lap, which counts how often the FIFO went round; 0:
     * never written. So a slot need not be cleared before it is written again. */
    _Atomic uint32_t lap;
};

struct slot_ring {
    /* How many of our slots in its own FIFO the peer has read; the peer writes it. */
    _Alignas(SLOT_BYTES) _Atomic uint32_t freed;
    _Alignas(SLOT_BYTES) struct slot slots[];
};

_Static_assert(sizeof(struct slot) == SLOT_BYTES, "one slot, one packet");
_Static_assert(offsetof(struct slot, lap) == SLOT_BYTES - 4, "ready last");
_Static_assert(offsetof(struct slot_ring, slots) == SLOT_BYTES, "slots keep their alignment");

/* Slots are numbered from 0; depths are powers of two, so that numbers may go round. */
static inline size_t slot_offset(uint32_t number, uint32_t depth)
{
    return offsetof(struct slot_ring, slots) + number % depth * sizeof(struct slot);
}

static inline size_t slot_ring_bytes(uint32_t depth)
{
    return offsetof(struct slot_ring, slots) + depth * sizeof(struct slot);
}

/* The depth for a lane with so many bytes in flight, in messages of at least so many bytes. */
uint32_t verbs_slot_ring_depth(double in_flight_bytes, double smallest_bytes);

/* Lays out slot `number` with a message of at most SLOT_MESSAGE_MAX bytes. */
void verbs_slot_fill(struct slot *slot, uint32_t number, uint32_t depth, const void *message,
                     size_t length, uint8_t tag);

enum slot_state {
    SLOT_EMPTY, /* it was not written yet */
    SLOT_TORN,  /* marked ready, but its check fails: look again */
    SLOT_WHOLE  /* `taken` holds it */
};

enum slot_state verbs_slot_take(struct slot_ring *ring, uint32_t number, uint32_t depth,
                                struct slot *taken);

#endif
