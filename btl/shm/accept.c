/* SPDX-License-Identifier: BSD-3-Clause */
/* The connections that peers send by: a peer writes in our segment where its ring is, and rings a
 * doorbell; then the ring is mapped here. */
#include "btl/shm/shm.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void shm_accept_end(shm_peer_t *peer)
{
    struct connection *connection =
        atomic_load_explicit(&peer->in_connection, memory_order_relaxed);

    shm_attended_remove(peer);
    if (peer->in_channel)
        shm_segment_unmap(peer->in_channel, peer->in_bytes);
    peer->in_channel = NULL;
    atomic_store_explicit(&peer->in_open, false, memory_order_release);
    atomic_store_explicit(&peer->in_left, peer->in_closing, memory_order_relaxed);
    atomic_store_explicit(&peer->in_connection, NULL, memory_order_release);
    peer->in_closing = false;
    if (connection) {
        *peer->in_connection_peer = NULL;
        /* Release: nothing of the connection is read after this (connection_claim). */
        atomic_store_explicit(&connection->state, CONNECTION_FREE, memory_order_release);
    }
}

/* Why the sender's ring cannot be mapped, or NULL. *error is 0, or the errno. */
static const char *ring_map(shm_peer_t *peer, const struct connection *connection, int *error)
{
    *error = 0;

    if (in_is_open(peer))
        return "it is connected already";
    if (!ring_lines_valid(connection->lines) || connection->channel % SEGMENT_ALIGN != 0 ||
        connection->pid <= 0)
        return "its ring has an impossible size or address";
    int descriptor = shm_segment_open(connection->pid, connection->fd, &connection->nonce);
    if (descriptor >= 0) {
        peer->in_bytes = channel_bytes(connection->lines);
        peer->in_channel = shm_segment_map(descriptor, connection->channel, peer->in_bytes);
        *error = !peer->in_channel ? errno : 0;
        close(descriptor);
    } else {
        *error = errno;
    }
    return *error == 0 ? NULL : strerror(*error);
}

static void connection_refuse(struct connection *connection, const opal_process_name_t *name,
                              const char *why)
{
    SHM_SAY("the ring of process %s cannot be mapped by process %s: %s", OPAL_NAME_PRINT(*name),
            OPAL_NAME_PRINT(OPAL_PROC_MY_NAME), why);
    atomic_store_explicit(&connection->state, CONNECTION_REFUSED, memory_order_release);
}

static void connection_accept(struct segment *segment, uint32_t index)
{
    /* A copy: the sender could write on while we check. */
    struct connection *connection = &segment->connections[index];
    struct connection seen = {.jobid = connection->jobid,
                              .vpid = connection->vpid,
                              .pid = connection->pid,
                              .fd = connection->fd,
                              .lines = connection->lines,
                              .channel = connection->channel,
                              .nonce = connection->nonce};
    opal_process_name_t name = {.jobid = seen.jobid, .vpid = seen.vpid};
    shm_peer_t *peer = shm_peer_find(&name);
    const char *why;
    int error = 0;

    if (!peer)
        peer = shm_peer_create(&name);
    why = !peer ? "out of memory" : ring_map(peer, &seen, &error);
    if (shm_is_shortage(peer, error)) {
        shm_doorbell_ring_own(segment, index);
        return;
    }
    if (why) {
        connection_refuse(connection, &name, why);
        return;
    }
    /* Relaxed: the kernel makes the mapping, and this word orders nothing else (peer_awaits). */
    atomic_store_explicit(&peer->in_channel->is_mapped, 1, memory_order_relaxed);
    ring_receiver_init(&peer->in, peer->in_channel->lines, seen.lines, &peer->in_channel->feedback);
    atomic_store_explicit(&peer->in_connection, connection, memory_order_release);
    peer->in_connection_peer = &shm.connection_peers[segment->kind][index];
    *peer->in_connection_peer = peer;
    peer->in_kind = segment->kind;
    atomic_store_explicit(&peer->in_left, false, memory_order_relaxed);
    atomic_store_explicit(&peer->in_open, true, memory_order_release);
    shm_attended_add(peer);
}

/* The peer at this connection, if it may have sent something. */
static shm_peer_t *connection_look(struct segment *segment, uint32_t index)
{
    /* Acquire: what the sender wrote before it opened or closed (connection_write,
     * shm_outbound_leave). */
    uint32_t state = atomic_load_explicit(&segment->connections[index].state, memory_order_acquire);
    shm_peer_t *peer = shm.connection_peers[segment->kind][index];

    if (!peer && (state == CONNECTION_OPEN || state == CONNECTION_CLOSED)) {
        connection_accept(segment, index);
        peer = shm.connection_peers[segment->kind][index];
    }
    if (peer) {
        if (state == CONNECTION_CLOSED)
            peer->in_closing = true;
        shm_attended_add(peer);
    }
    return peer;
}

static void rung_take(struct segment *segment, unsigned word, struct shm_rung *rung)
{
    /* Acquire: the partner is shm_doorbell_ring. */
    uint64_t bits =
        atomic_exchange_explicit(&segment->header->doorbells[word], 0, memory_order_acquire);
    uint64_t later = 0;

    for (; bits != 0; bits &= bits - 1) {
        unsigned bit = (unsigned) __builtin_ctzll(bits);
        uint32_t index = word * 64 + bit;

        for (; index < segment->connection_count; index += SEGMENT_DOORBELLS * 64) {
            if (rung->count < SHM_ACCEPT_BATCH) {
                shm_peer_t *peer = connection_look(segment, index);

                if (peer)
                    rung->peers[rung->count++] = peer;
            } else {
                later |= UINT64_C(1) << bit;
            }
        }
    }
    if (later != 0)
        atomic_fetch_or_explicit(&segment->header->doorbells[word], later, memory_order_relaxed);
}

void shm_accept(struct shm_rung *rung)
{
    for (int kind = 0; kind < SEGMENT_KINDS; kind++) {
        struct segment *segment = &shm.segments[kind];

        for (unsigned word = 0; shm_own_segment_is_live(kind) && word < segment->doorbell_words;
             word++)
            if (atomic_load_explicit(&segment->header->doorbells[word], memory_order_relaxed) != 0)
                rung_take(segment, word, rung);
    }
}
