/* SPDX-License-Identifier: BSD-3-Clause */
/* Slots: short messages that the peer waits for, written by RDMA into a FIFO in its memory. They
 * take no buffer of its receive queue and bring no completion: it polls the next slot while it
 * waits for one. Both ends of a connection have a FIFO; greetings carry its address.
 *
 * The reader reports from time to time what it has read, by a write to the line before the other
 * FIFO: as in common/ring each end polls its own memory, and counters only grow. */
#include "btl/verbs/verbs.h"

#include <string.h>

/* A device that has written the flag has written the rest long before this. */
#define TORN_MAX_MS 1000u

/* --- of a connection --- */

static struct slot_ring *ring_of(const verbs_peer_t *peer)
{
    return (struct slot_ring *) (void *) peer->slots.memory.bytes;
}

void verbs_slots_begin(verbs_peer_t *peer)
{
    struct verbs_slots *slots = &peer->slots;
    struct verbs_memory *memory = &slots->memory;
    size_t bytes = slot_ring_bytes(peer->module->slot_depth);

    slots->written = slots->read = slots->told = 0;
    slots->their_depth = 0;
    slots->torn_since_ms = 0;
    if (peer->module->slot_depth == 0)
        return;
    if (memory->bytes || verbs_memory_make(memory, peer->module->pd, bytes,
                                           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE))
        memset(memory->bytes, 0, bytes);
}

void verbs_slots_close(verbs_peer_t *peer)
{
    verbs_memory_free(&peer->slots.memory);
}

void verbs_slots_tell(const verbs_peer_t *peer, struct verbs_slots_address *address)
{
    *address = (struct verbs_slots_address){.depth = 0};
    if (!peer->slots.memory.bytes)
        return;
    address->address = (uint64_t) (uintptr_t) peer->slots.memory.bytes;
    address->key = peer->slots.memory.region->rkey;
    address->depth = peer->module->slot_depth;
}

bool verbs_slots_learn(verbs_peer_t *peer, const struct verbs_slots_address *address)
{
    if (address->depth > SLOTS_DEPTH_MOST || (address->depth & (address->depth - 1)) != 0)
        return false;
    peer->slots.their_address = address->address;
    peer->slots.their_key = address->key;
    /* Without a FIFO of ours the peer has nowhere to report what it has read. */
    peer->slots.their_depth = !peer->slots.memory.bytes ? 0 : address->depth;
    return true;
}

/* --- writing --- */

/* Under peer->lock, in state READY. False: it does not fit the send queue now. */
static bool write_post(verbs_peer_t *peer, const void *bytes, size_t length, uint64_t remote)
{
    struct ibv_sge part = {.addr = (uint64_t) (uintptr_t) bytes, .length = (uint32_t) length};
    struct ibv_send_wr request = {
        .opcode = IBV_WR_RDMA_WRITE,
        .wr.rdma = {.remote_addr = remote, .rkey = peer->slots.their_key},
        .sg_list = &part,
        .num_sge = 1,
    };

    return verbs_queue_post_inline(peer, &request) == POSTED;
}

/* Under peer->lock. */
static bool slot_write(verbs_peer_t *peer, const void *bytes, size_t length, uint8_t tag)
{
    struct verbs_slots *slots = &peer->slots;
    uint32_t depth = slots->their_depth, freed;
    struct slot slot;

    if (verbs_peer_state(peer) != PEER_READY || depth == 0)
        return false;
    /* Relaxed: with a stale count the slot is sent as a message. A wrong one looks like a full
     * FIFO. */
    freed = atomic_load_explicit(&ring_of(peer)->freed, memory_order_relaxed);
    if (slots->written - freed >= depth)
        return false;
    verbs_slot_fill(&slot, slots->written, depth, bytes, length, tag);
    if (!write_post(peer, &slot, sizeof(slot),
                    slots->their_address + slot_offset(slots->written, depth)))
        return false;
    slots->written++;
    return true;
}

int verbs_slots_send(mca_btl_base_module_t *btl, verbs_peer_t *peer, const void *bytes,
                     size_t length, uint8_t tag)
{
    /* Where messages are counted it is one: slots are not. */
    if (length > SLOT_MESSAGE_MAX || verbs_peer_keeps(peer))
        return OPAL_ERR_OUT_OF_RESOURCE;
    OPAL_THREAD_LOCK(&peer->lock);
    bool sent = slot_write(peer, bytes, length, tag);
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (sent)
        atomic_fetch_add_explicit(&peer->module->slots_written, 1, memory_order_relaxed);
    return sent ? OPAL_SUCCESS : OPAL_ERR_OUT_OF_RESOURCE;
}

/* --- reading --- */

void verbs_slots_expect(mca_btl_base_module_t *btl, verbs_peer_t *peer, bool expects)
{
    struct peer_list *list = &module_of(btl)->expecting;

    OPAL_THREAD_LOCK(&peer->lock);
    peer->slots.expected += expects ? 1 : -1;
    if (peer->slots.expected != 0)
        peer_list_add(list, &peer->expecting, peer);
    else
        peer_list_remove(list, &peer->expecting);
    OPAL_THREAD_UNLOCK(&peer->lock);
}

/* Under peer->lock: reports read slots, so that the peer may write them again. */
static void read_tell(verbs_peer_t *peer)
{
    struct verbs_slots *slots = &peer->slots;

    if (slots->read - slots->told >= peer->module->slot_depth / 2 &&
        verbs_peer_state(peer) == PEER_READY && slots->their_depth != 0 &&
        write_post(peer, &slots->read, sizeof(slots->read), slots->their_address))
        slots->told = slots->read;
}

/* Takes the next slot out of the FIFO, if it has come. `stuck`: it never will. */
static bool next_take(verbs_peer_t *peer, struct slot *taken, bool *stuck)
{
    struct verbs_slots *slots = &peer->slots;
    enum slot_state state = SLOT_EMPTY;

    OPAL_THREAD_LOCK(&peer->lock);
    if (slots->memory.bytes && verbs_peer_state(peer) != PEER_FAILED) {
        state = verbs_slot_take(ring_of(peer), slots->read, peer->module->slot_depth, taken);
        if (OPAL_UNLIKELY(state == SLOT_TORN)) {
            uint64_t now = verbs_now_ms();

            if (slots->torn_since_ms == 0)
                slots->torn_since_ms = now;
            *stuck = now - slots->torn_since_ms > TORN_MAX_MS;
        } else {
            slots->torn_since_ms = 0;
        }
        slots->read += state == SLOT_WHOLE;
        read_tell(peer);
    }
    OPAL_THREAD_UNLOCK(&peer->lock);
    return state == SLOT_WHOLE;
}

static void slot_hand_out(verbs_peer_t *peer, struct slot *slot)
{
    struct verbs_module *module = peer->module;

    atomic_fetch_add_explicit(&module->slots_read, 1, memory_order_relaxed);
    if (OPAL_UNLIKELY(module->finalized)) /* the receiver's callback may be gone */
        return;
    if (OPAL_UNLIKELY(slot->length > SLOT_MESSAGE_MAX))
        verbs_message_broken(module, "a slot came with an invalid length");
    else
        fragment_deliver(&module->super, peer, slot->tag, slot->message, slot->length);
}

static int ring_read(verbs_peer_t *peer)
{
    struct slot slot;
    bool stuck = false;
    int events = 0;

    while (next_take(peer, &slot, &stuck)) {
        slot_hand_out(peer, &slot);
        events++;
    }
    if (OPAL_UNLIKELY(stuck))
        verbs_peer_fail(peer, "a slot came whose check fails");
    return events;
}

int verbs_slots_read_expected(struct verbs_module *module)
{
    int events = 0;

    for (uint32_t count = peer_list_count(&module->expecting); count > 0; count--) {
        verbs_peer_t *peer = peer_list_turn(&module->expecting);

        events += peer ? ring_read(peer) : 0;
    }
    return events;
}

int verbs_slots_read_all(struct verbs_module *module)
{
    verbs_peer_t *peer;
    int events = 0;

    for (uint32_t i = 0; module->slot_depth != 0 && (peer = verbs_peer_at(module, i)); i++)
        events += ring_read(peer);
    return events;
}
