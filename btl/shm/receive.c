/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the rings and hands out their messages: progress. */
#include "btl/shm/shm.h"
#include "common/lock/clock.h"

#include <sched.h>
#include <stdlib.h>

#include "opal/runtime/opal_progress.h"

/* Messages read from one ring before the next ring, and bytes after which no further message is
 * begun: the caller may have what it waits for by now, and a large message that comes before its
 * receive is posted is copied twice. */
#define RECEIVE_BATCH 32

#define RECEIVE_BATCH_BYTES 4096u

/* Every so many rounds of progress (powers of two) the sweep looks at one peer, and some peers are
 * checked for life. */
#define SWEEP_ROUNDS 32u

#define LIFE_ROUNDS 1024u

/* Rounds without an event before the processor is yielded, where processes outnumber processors:
 * the process that is to answer may wait for it. */
#define YIELD_OVERSUBSCRIBED 16u

static bool message_other(shm_peer_t *peer, const struct ring_message *message);

/* False: the message breaks the rules. */
static inline bool message_hand_out(shm_peer_t *peer, const struct ring_message *message)
{
    if (OPAL_UNLIKELY(message->kind != SHM_KIND_ACTIVE))
        return message_other(peer, message);
    fragment_deliver(&shm_module, peer->known ? peer : NULL, message->tag, message->payload,
                     message->length);
    return true;
}

static __attribute__((noinline)) bool message_other(shm_peer_t *peer,
                                                    const struct ring_message *message)
{
    struct ring_message whole;

    if (message->kind == SHM_KIND_REMOTE)
        return shm_serve(peer, message->payload, message->length);
    if (!shm_piece_add(peer, message, &whole))
        return false;
    bool good = !whole.payload || message_hand_out(peer, &whole);
    free(whole.payload);
    return good;
}

static __attribute__((noinline)) void ring_break(shm_peer_t *peer)
{
    /* Nothing that follows in this ring can be trusted. */
    atomic_store_explicit(&peer->in_open, false, memory_order_release);
    shm_peer_fail(peer, "that process's ring holds an invalid message");
}

/* *bulk: it ended because of the bytes. */
static inline int ring_empty(shm_peer_t *peer, int batch, bool *bulk)
{
    struct ring_message message;
    size_t bytes = 0;
    int events = 0;

    while (events < batch && bytes < RECEIVE_BATCH_BYTES) {
        enum ring_result result = ring_peek(&peer->in, &message);

        if (result == RING_EMPTY)
            break;
        if (OPAL_UNLIKELY(result == RING_BROKEN || !message_hand_out(peer, &message))) {
            ring_break(peer);
            break;
        }
        bytes += message.length;
        ring_release(&peer->in, &message);
        events++;
    }
    *bulk |= bytes >= RECEIVE_BATCH_BYTES;
    return events;
}

static inline int receive_some(shm_peer_t *peer, int batch, bool *bulk)
{
    int events = 0;

    if (!shm_receiving_take(peer))
        return 0;
    if (OPAL_LIKELY(in_is_open(peer)) && ring_has_message(&peer->in))
        events = ring_empty(peer, batch, bulk);
    shm_receiving_leave(peer);
    return events;
}

int shm_receive_one(mca_btl_base_module_t *btl, shm_peer_t *peer)
{
    bool bulk = false;

    return receive_some(peer, 1, &bulk);
}

/* By the thread that set `receiving`. */
static __attribute__((noinline)) void ring_next(shm_peer_t *peer)
{
    OPAL_THREAD_LOCK(&shm.lock);
    (void) shm_accept_next(peer);
    OPAL_THREAD_UNLOCK(&shm.lock);
}

/* Reads a ring whose doorbell rang, attended or not; if messages are left, the doorbell rings
 * again. */
static int receive_rung(shm_peer_t *peer, bool *bulk)
{
    int events = 0;

    if (!shm_receiving_take(peer))
        /* Another thread, or a callback further up, is reading it: look again later. */
        shm_doorbell_ring_own_of(peer);
    else {
        if (OPAL_LIKELY(in_is_open(peer)) && ring_has_message(&peer->in))
            events = ring_empty(peer, RECEIVE_BATCH, bulk);
        if (OPAL_UNLIKELY(atomic_load_explicit(&peer->in_moving, memory_order_relaxed)))
            ring_next(peer);
        else if (in_is_open(peer) && !in_is_attended(peer) && ring_has_message(&peer->in))
            shm_doorbell_ring_own_of(peer);
        shm_receiving_leave(peer);
    }
    return events;
}

/* Under shm.lock: ends a connection that its sender has closed, once its ring is empty. */
static void closing_finish(shm_peer_t *peer)
{
    if (!peer->in_closing || !shm_receiving_take(peer))
        return;
    if (!in_is_open(peer) || (!ring_has_message(&peer->in) && !shm_accept_next(peer)))
        shm_accept_end(peer);
    shm_receiving_leave(peer);
}

/* A message whose doorbell was missed. Where another thread reads the ring, it rings for what it
 * leaves. */
static void unattended_look(shm_peer_t *peer)
{
    if (in_is_attended(peer) || !shm_receiving_take(peer))
        return;
    if (in_is_open(peer) && ring_has_message(&peer->in))
        shm_doorbell_ring_own_of(peer);
    shm_receiving_leave(peer);
}

/* Looks at one peer: for a message whose doorbell was missed, and for connections that end. */
static void sweep(void)
{
    if (OPAL_THREAD_TRYLOCK(&shm.lock) != 0)
        return;
    shm_own_others_look(false);
    if (shm.peer_count > 0) {
        shm_peer_t *peer = shm.peers[shm.sweep_next++ % shm.peer_count];

        unattended_look(peer);
        closing_finish(peer);
        if (!peer->known || peer->gone || peer->left_connection) {
            biased_lock(&peer->lock);
            if (!peer->known && peer->out_state == OUT_OPEN && shm_outbound_is_settled(peer)) {
                shm_outbound_leave(peer);
                peer->out_state = OUT_NONE;
            }
            shm_outbound_retire(peer);
            biased_unlock(&peer->lock);
        }
    }
    OPAL_THREAD_UNLOCK(&shm.lock);
}

static __attribute__((noinline)) void round_extra(uint32_t round)
{
    sweep();
    if (round % LIFE_ROUNDS == 0)
        shm_liveness_check();
}

void shm_receive_skip_rounds(void)
{
    uint32_t round = atomic_load_explicit(&shm.round, memory_order_relaxed);

    /* Relaxed: as in shm_receive_progress. */
    atomic_store_explicit(&shm.round, round | (LIFE_ROUNDS - 1), memory_order_relaxed);
}

/* Where processes outnumber processors, unless Open MPI yields the processor itself. */
static __attribute__((noinline)) void processor_share(int events)
{
    static _Thread_local uint32_t idle_rounds;

    if (opal_progress_yield_when_idle)
        return;
    idle_rounds = events ? 0 : idle_rounds + 1;
    if (idle_rounds >= YIELD_OVERSUBSCRIBED)
        sched_yield();
}

static int doorbells_answer(bool *bulk)
{
    struct shm_rung rung = {.count = 0};
    int events = 0;

    OPAL_THREAD_LOCK(&shm.lock);
    shm_accept(&rung);
    OPAL_THREAD_UNLOCK(&shm.lock);
    for (uint32_t i = 0; i < rung.count; i++)
        events += receive_rung(rung.peers[i], bulk);
    return events;
}

static inline int rings_read(bool *bulk)
{
    /* Relaxed: an entry that was just added is seen in the next round. */
    uint32_t end = atomic_load_explicit(&shm.attended_end, memory_order_relaxed);
    int events = 0;

    for (uint32_t i = 0; i < end; i++) {
        shm_peer_t *peer = atomic_load_explicit(&shm.attended[i], memory_order_acquire);

        if (peer)
            events += receive_some(peer, RECEIVE_BATCH, bulk);
    }
    if (OPAL_UNLIKELY(shm_doorbell_rang()))
        events += doorbells_answer(bulk);
    return events;
}

/* --- the share of a call that only looks ------------------------------------------------------ */

/* A call that only looks, and finds more than a batch, takes what is there for so long: a part of
 * the time since the last such call. Between these bounds, so that looks in a loop stay short, and
 * one after a long computation is not one itself. */
#define SHARE_PART   16u
#define SHARE_MIN_NS 30000u
#define SHARE_MAX_NS 1000000u
/* So long it waits for the next piece of a large message, whose sender fills the ring meanwhile. */
#define QUIET_PART   64u
#define QUIET_MAX_NS 5000u

void shm_receive_waits_at(const _Atomic uint32_t *waits)
{
    atomic_store_explicit(&shm.waits, waits, memory_order_relaxed);
    /* A tool that keeps MPI_T open keeps this BTL open, too, when MPI has ended; a session may
     * begin after that. */
    shm_own_segments_are(waits ? SEGMENT_OPEN : SEGMENT_FINALIZED);
}

static inline bool call_only_looks(void)
{
    const _Atomic uint32_t *waits = atomic_load_explicit(&shm.waits, memory_order_relaxed);

    return waits && atomic_load_explicit(waits, memory_order_relaxed) == 0;
}

/* A batch of each ring in turn, so that all senders have their part. */
static __attribute__((noinline)) int share_take(void)
{
    uint64_t begin = clock_read_ns(CLOCK_MONOTONIC), now = begin, quiet_since = begin;
    uint64_t since = begin - atomic_load_explicit(&shm.share_ended_ns, memory_order_relaxed);
    uint64_t share = since / SHARE_PART, quiet = since / QUIET_PART;
    int events = 0;

    if (share < SHARE_MIN_NS)
        share = SHARE_MIN_NS;
    else if (share > SHARE_MAX_NS)
        share = SHARE_MAX_NS;
    if (quiet > QUIET_MAX_NS)
        quiet = QUIET_MAX_NS;
    do {
        bool bulk = false;
        int more = rings_read(&bulk);

        now = clock_read_ns(CLOCK_MONOTONIC);
        events += more;
        if (more > 0)
            quiet_since = now;
        else
            ring_relax();
    } while (now - begin < share && now - quiet_since <= quiet);
    atomic_store_explicit(&shm.share_ended_ns, now, memory_order_relaxed);
    return events;
}

static __attribute__((noinline)) int round_make(uint32_t round)
{
    bool bulk = false;
    int events = rings_read(&bulk);
    if (OPAL_UNLIKELY(bulk || events >= RECEIVE_BATCH) && call_only_looks())
        events += share_take();
    if (OPAL_UNLIKELY(peer_list_count(&shm.pending) != 0))
        events += shm_pending_progress();
    if (OPAL_UNLIKELY(round % SWEEP_ROUNDS == 0))
        round_extra(round);
    if (OPAL_UNLIKELY(shm.crowded))
        processor_share(events);
    return events;
}

/* A program that tests for messages in a loop makes most rounds in vain: they take few
 * instructions. With threads another one may change a ring that it reads. */
static inline bool round_is_empty(uint32_t round)
{
    if (round % SWEEP_ROUNDS == 0 || shm.crowded || opal_using_threads() ||
        peer_list_count(&shm.pending) != 0)
        return false;
    uint32_t end = atomic_load_explicit(&shm.attended_end, memory_order_relaxed);
    for (uint32_t i = 0; i < end; i++) {
        const shm_peer_t *peer = atomic_load_explicit(&shm.attended[i], memory_order_acquire);
        if (peer && in_is_open(peer) && ring_has_message(&peer->in))
            return false;
    }
    return !shm_doorbell_rang();
}

int shm_receive_progress(void)
{
    uint32_t round = atomic_load_explicit(&shm.round, memory_order_relaxed) + 1;

    /* Several threads may count the same round; nothing depends on it. */
    atomic_store_explicit(&shm.round, round, memory_order_relaxed);
    return round_is_empty(round) ? 0 : round_make(round);
}
