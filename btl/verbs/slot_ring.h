/* SPDX-License-Identifier: BSD-3-Clause */
/* The FIFO that a peer's slots are written into, as memory: where each goes, when it is whole, how
 * many there are. No RDMA here: slots.c moves what this lays out. */
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
    /* The ready flag, last: how many times the FIFO has been through with this place; 0: it was
     * never written. So nothing has to be cleared before it is written again. */
    _Atomic uint32_t lap;
};

struct slot_ring {
    /* Of our slots in the peer's FIFO it has read so many; written by the peer as well. */
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

/* A depth for a lane that may have so many bytes in flight, in messages of at least so many. */
uint32_t verbs_slot_ring_depth(double in_flight_bytes, double smallest_bytes);

/* Lays out slot `number` with a message of at most SLOT_MESSAGE_MAX bytes. */
void verbs_slot_fill(struct slot *slot, uint32_t number, uint32_t depth, const void *message,
                     size_t length, uint8_t tag);

enum slot_state {
    SLOT_EMPTY, /* it was not written yet */
    SLOT_TORN,  /* it is marked ready, and is not what was laid out: look again */
    SLOT_WHOLE  /* `taken` holds it */
};

enum slot_state verbs_slot_take(struct slot_ring *ring, uint32_t number, uint32_t depth,
                                struct slot *taken);

#endif
