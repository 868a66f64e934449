/* SPDX-License-Identifier: BSD-3-Clause */
/* The connections that peers send by: a peer claims an entry of our segment, which holds its first
 * ring, and rings a doorbell. Later it may go on in a ring of its own segment, which is mapped
 * here. */
#include "btl/shm/shm.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Relaxed: written and acted on under shm.lock; read without it as a hint (receive_rung). */
static void moving_set(shm_peer_t *peer, bool moving)
{
    atomic_store_explicit(&peer->in_moving, moving, memory_order_relaxed);
}

/* Under shm.lock. Who finds the old one has no line in it: its sender would not have left it. */
static void in_channel_set(shm_peer_t *peer, struct channel *channel)
{
    struct channel *before = atomic_load_explicit(&peer->in_channel, memory_order_relaxed);

    atomic_store_explicit(&peer->in_channel, channel, memory_order_release); /* control_find */
    if (before)
        munmap(before, peer->in_bytes);
}

void shm_accept_end(shm_peer_t *peer)
{
    struct connection *connection =
        atomic_load_explicit(&peer->in_connection, memory_order_relaxed);

    shm_attended_remove(peer);
    in_channel_set(peer, NULL);
    moving_set(peer, false);
    free(peer->in_whole);
    peer->in_whole = NULL;
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

/* Maps the channel that holds the ring announced last; NULL and errno. */
static struct channel *channel_map(const struct connection *connection, uint32_t lines)
{
    struct segment_nonce nonce = connection->nonce;
    int descriptor = shm_segment_open(connection->pid, connection->fd, &nonce);

    if (descriptor < 0)
        return NULL;
    struct channel *channel =
        shm_segment_map(descriptor, connection->move.place, channel_bytes(lines));
    int error = errno;
    close(descriptor);
    errno = error;
    return channel;
}

static void connection_refuse(struct connection *connection, const opal_process_name_t *name,
                              const char *why)
{
    SHM_SAY("the ring of process %s cannot be mapped by process %s: %s", OPAL_NAME_PRINT(*name),
            OPAL_NAME_PRINT(OPAL_PROC_MY_NAME), why);
    atomic_store_explicit(&connection->state, CONNECTION_REFUSED, memory_order_release);
}

static void ring_receive_small(shm_peer_t *peer, struct connection *connection)
{
    ring_receiver_init(&peer->in, connection->lines, CONNECTION_LINES, &connection->feedback);
}

static void connection_accept(struct segment *segment, uint32_t index)
{
    /* A copy: the sender could write on while we check. */
    struct connection *connection = &segment->connections[index];
    opal_process_name_t name = {.jobid = connection->jobid, .vpid = connection->vpid};
    shm_peer_t *peer = peer_table_find(&shm.names, &name);

    if (!peer)
        peer = shm_peer_create(&name);
    if (!peer || in_is_open(peer)) {
        connection_refuse(connection, &name, !peer ? "out of memory" : "it is connected already");
        return;
    }
    ring_receive_small(peer, connection);
    peer->in_ring = 0;
    atomic_store_explicit(&peer->in_connection, connection, memory_order_release);
    peer->in_connection_peer = &shm.connection_peers[segment->kind][index];
    *peer->in_connection_peer = peer;
    peer->in_kind = segment->kind;
    atomic_store_explicit(&peer->in_left, false, memory_order_relaxed);
    atomic_store_explicit(&peer->in_open, true, memory_order_release);
    shm_attended_add(peer);
}

/* Reads on in a channel of the peer, or with NULL in the small ring. */
static void ring_begin(shm_peer_t *peer, struct connection *connection, struct channel *channel,
                       uint32_t lines)
{
    ring_attend(&peer->in, false); /* the sender may come back to it, and then has to ring */
    in_channel_set(peer, channel);
    peer->in_bytes = channel_bytes(lines);
    if (channel)
        ring_receiver_init(&peer->in, channel->lines, lines, &channel->feedback);
    else
        ring_receive_small(peer, connection);
    ring_attend(&peer->in, shm_attended_is_marked(peer));
    peer->in_tail_seen = 0;
}

/* The next ring cannot be mapped, for want of descriptors or of the right: the peer's messages come
 * by the small one again, which needs neither. */
static void ring_refuse(shm_peer_t *peer, struct connection *connection, int error)
{
    SAY_ONCE(SHM_SAY,
             "a ring of process %s cannot be mapped by process %s: %s. Its messages go by a "
             "small ring for now, which is slower.%s",
             OPAL_NAME_PRINT(peer->name), OPAL_NAME_PRINT(OPAL_PROC_MY_NAME),
             shm_segment_open_error(error),
             error == EMFILE ? " A higher limit (ulimit -n) helps." : "");
    shm_connection_clear(connection);
    ring_begin(peer, connection, NULL, 0);
    ring_move_refuse(&connection->move, peer->in_ring);
}

/* Under shm.lock: begins with the ring that the peer announced last. */
static void ring_follow(shm_peer_t *peer, struct connection *connection)
{
    struct channel *channel = NULL;

    peer->in_ring = ring_move_seen(&connection->move);
    uint32_t lines = connection->move.lines;
    moving_set(peer, false);
    if (lines != 0 && (!ring_lines_valid(lines) || connection->move.place % SEGMENT_ALIGN != 0)) {
        connection_refuse(connection, &peer->name, "its ring has an impossible size or address");
    } else if (lines != 0 && !(channel = channel_map(connection, lines))) {
        ring_refuse(peer, connection, errno);
    } else {
        ring_begin(peer, connection, channel, lines);
        ring_move_take(&connection->move, peer->in_ring);
    }
}

bool shm_accept_next(shm_peer_t *peer)
{
    if (!atomic_load_explicit(&peer->in_moving, memory_order_relaxed) || !in_is_open(peer))
        return false;
    struct connection *connection =
        atomic_load_explicit(&peer->in_connection, memory_order_relaxed);
    /* Asked after the announcement was seen: what it says of the ring is final. */
    if (!ring_has_message(&peer->in))
        ring_follow(peer, connection);
    /* The peer may have rung before. */
    shm_doorbell_ring_own_of(peer);
    return true;
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
        /* After the state: a sender that has closed announces no more. */
        if (ring_move_seen(&segment->connections[index].move) != peer->in_ring)
            moving_set(peer, true);
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
    uint32_t claimed = atomic_load_explicit(&segment->header->connection_end, memory_order_relaxed);
    uint32_t end = claimed < segment->connection_count ? claimed : segment->connection_count;
    uint64_t later = 0;

    for (; bits != 0; bits &= bits - 1) {
        unsigned bit = (unsigned) __builtin_ctzll(bits);
        uint32_t index = word * 64 + bit;

        for (; index < end; index += SEGMENT_DOORBELLS * 64) {
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
