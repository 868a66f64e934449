/* SPDX-License-Identifier: BSD-3-Clause */
/* Looking at rings and handing out what they hold. */
#include "btl/shm/shm.h"

#include <sched.h>
#include <time.h>

#include "opal/runtime/opal_progress.h"

/* Messages taken from one ring before the others get their turn, and bytes after which no further
 * one is begun: the caller may have what it waits for by now, and a large message that comes before
 * its receive is posted is copied twice. */
#define RECEIVE_BATCH       32
#define RECEIVE_BATCH_BYTES 4096u

/* Every so many rounds of progress (powers of two): a ring that is not attended is looked at; it is
 * looked whether peers live, if the last look is LIFE_CHECK_MS ago. */
#define SWEEP_ROUNDS  32u
#define LIFE_ROUNDS   1024u
#define LIFE_CHECK_MS 100u

/* Rounds in vain before the processor is given away, where processes outnumber processors: the one
 * that should answer may be waiting for it. */
#define YIELD_OVERSUBSCRIBED 16u

/* Whoever takes it alone looks at the ring. It is taken without waiting, also to keep a callback
 * that makes progress from looking at the ring whose message it handles. */
static inline bool receiving_take(shm_peer_t *peer)
{
    if (atomic_load_explicit(&peer->receiving, memory_order_relaxed))
        return false;
    if (OPAL_UNLIKELY(opal_using_threads()))
        /* Acquire: pairs with the release in receiving_leave of the thread before. */
        return !atomic_exchange_explicit(&peer->receiving, true, memory_order_acquire);
    atomic_store_explicit(&peer->receiving, true, memory_order_relaxed);
    return true;
}

static inline void receiving_leave(shm_peer_t *peer)
{
    atomic_store_explicit(&peer->receiving, false, memory_order_release);
}

static void message_unwanted(shm_peer_t *peer, const struct ring_message *message)
{
    if (atomic_fetch_add_explicit(&shm.broken_headers, 1, memory_order_relaxed) == 0)
        SHM_SAY(
            "a message of %u bytes from process %s has tag %u, which nobody here listens to; it "
            "and others like it are dropped. Do both processes use the same pml?",
            message->length, OPAL_NAME_PRINT(peer->name), message->tag);
}

/* False: the message breaks the rules. */
static inline bool message_hand_out(shm_peer_t *peer, const struct ring_message *message)
{
    mca_btl_base_segment_t segment;

    if (OPAL_UNLIKELY(message->kind != SHM_KIND_ACTIVE))
        return message->kind == SHM_KIND_REMOTE &&
               shm_remote_handle(peer, message->payload, message->length);
    segment.seg_addr.pval = message->payload;
    segment.seg_len = message->length;
    if (OPAL_UNLIKELY(!compat_btl_deliver(&shm_module.super, peer->known ? peer : NULL,
                                          message->tag, &segment, 1)))
        message_unwanted(peer, message);
    return true;
}

static __attribute__((noinline)) void ring_break(shm_peer_t *peer)
{
    /* Nothing that follows in this ring can be believed. */
    atomic_store_explicit(&peer->in_open, false, memory_order_release);
    atomic_fetch_add_explicit(&shm.broken_headers, 1, memory_order_relaxed);
    shm_peer_fail(peer, "its ring holds what no message can be");
}

static inline int ring_empty(shm_peer_t *peer, int batch)
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
    return events;
}

static inline int receive_some(shm_peer_t *peer, int batch)
{
    int events = 0;

    if (!receiving_take(peer))
        return 0;
    if (OPAL_LIKELY(in_is_open(peer)) && ring_has_message(&peer->in))
        events = ring_empty(peer, batch);
    receiving_leave(peer);
    return events;
}

int shm_receive_one(shm_peer_t *peer)
{
    return receive_some(peer, 1);
}

int shm_receive_told(shm_peer_t *peer)
{
    int events = 0;

    if (!receiving_take(peer))
        /* Another thread, or a callback further up, is at it: it is told again later. */
        shm_doorbell_ring_own(peer);
    else {
        if (OPAL_LIKELY(in_is_open(peer)) && ring_has_message(&peer->in))
            events = ring_empty(peer, RECEIVE_BATCH);
        if (in_is_open(peer) && !peer->in_attended && ring_has_message(&peer->in))
            shm_doorbell_ring_own(peer);
        receiving_leave(peer);
    }
    return events;
}

/* A place among the attended for one that has something to say: an empty one, or that of a peer
 * that has been silent since it was last asked to make room. One is asked each time. -1: none. */
static int attended_place(void)
{
    uint32_t at = shm.attended_next;
    shm_peer_t *old;

    for (int i = 0; i < (int) SHM_ATTENDED_MAX; i++)
        if (!atomic_load_explicit(&shm.attended[i], memory_order_relaxed))
            return i;
    shm.attended_next = (at + 1) % SHM_ATTENDED_MAX;
    old = atomic_load_explicit(&shm.attended[at], memory_order_relaxed);
    if (old->in.tail != old->in_tail_seen) {
        old->in_tail_seen = old->in.tail;
        return -1;
    }
    old->in_attended = false;
    ring_attend(&old->in, false);
    /* What came before the sender could see that is found here; the little that a sender may have
     * under way in this very moment, by the sweep. */
    atomic_thread_fence(memory_order_seq_cst);
    if (ring_has_message(&old->in))
        shm_doorbell_ring_own(old);
    return (int) at;
}

void shm_receive_attend(shm_peer_t *peer)
{
    int at;

    if (peer->in_attended || !in_is_open(peer))
        return;
    at = attended_place();
    if (at < 0)
        return;
    peer->in_attended = true;
    peer->in_tail_seen = peer->in.tail;
    ring_attend(&peer->in, true);
    /* Release: whoever reads the entry sees the peer complete (shm_receive_progress). */
    atomic_store_explicit(&shm.attended[at], peer, memory_order_release);
    if ((uint32_t) at >= atomic_load_explicit(&shm.attended_end, memory_order_relaxed))
        atomic_store_explicit(&shm.attended_end, (uint32_t) at + 1, memory_order_relaxed);
}

void shm_receive_forget(shm_peer_t *peer)
{
    uint32_t end = 0;

    for (uint32_t i = 0; i < SHM_ATTENDED_MAX; i++)
        if (peer == atomic_load_explicit(&shm.attended[i], memory_order_relaxed))
            atomic_store_explicit(&shm.attended[i], NULL, memory_order_relaxed);
        else if (atomic_load_explicit(&shm.attended[i], memory_order_relaxed))
            end = i + 1;
    atomic_store_explicit(&shm.attended_end, end, memory_order_relaxed);
    peer->in_attended = false;
}

/* Under shm.lock: the ring of a visitor that left, once it is empty. */
static void closing_finish(shm_peer_t *peer)
{
    if (!peer->in_closing || !receiving_take(peer))
        return;
    if (!in_is_open(peer) || !ring_has_message(&peer->in))
        shm_accept_end(peer);
    receiving_leave(peer);
}

/* One peer each time: has a message come whose bell was missed, has its visitor left? */
static void sweep(void)
{
    if (OPAL_THREAD_TRYLOCK(&shm.lock) != 0)
        return;
    if (shm.peer_count > 0) {
        shm_peer_t *peer = shm.peers[shm.sweep_next++ % shm.peer_count];

        if (in_is_open(peer) && !peer->in_attended && ring_has_message(&peer->in))
            shm_doorbell_ring_own(peer);
        closing_finish(peer);
        if (!peer->known || peer->gone || peer->left_connection) {
            OPAL_THREAD_LOCK(&peer->lock);
            if (!peer->known && peer->out_state == OUT_OPEN && opal_list_is_empty(&peer->pending)) {
                shm_outbound_leave(peer);
                peer->out_state = OUT_NONE;
            }
            shm_outbound_retire(peer);
            OPAL_THREAD_UNLOCK(&peer->lock);
        }
    }
    OPAL_THREAD_UNLOCK(&shm.lock);
}

static void lives_check(void)
{
    struct timespec time;
    uint64_t now_ms;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    now_ms = (uint64_t) time.tv_sec * 1000 + (uint64_t) time.tv_nsec / 1000000;
    /* Relaxed: if two threads check at once, nothing is lost. */
    if (now_ms - atomic_load_explicit(&shm.life_checked_ms, memory_order_relaxed) < LIFE_CHECK_MS)
        return;
    atomic_store_explicit(&shm.life_checked_ms, now_ms, memory_order_relaxed);
    shm_peers_check();
}

static __attribute__((noinline)) void round_extra(uint32_t round)
{
    sweep();
    if (round % LIFE_ROUNDS == 0)
        lives_check();
}

/* Where processes outnumber processors. Open MPI, told to, gives the processor away itself. */
static __attribute__((noinline)) void processor_share(int events)
{
    static _Thread_local uint32_t idle_rounds;

    if (opal_progress_yield_when_idle)
        return;
    idle_rounds = events ? 0 : idle_rounds + 1;
    if (idle_rounds >= YIELD_OVERSUBSCRIBED)
        sched_yield();
}

int shm_receive_progress(void)
{
    uint32_t round = atomic_load_explicit(&shm.round, memory_order_relaxed) + 1;
    /* Relaxed: one that was just attended is seen in the next round. */
    uint32_t end = atomic_load_explicit(&shm.attended_end, memory_order_relaxed);
    int events = 0;

    /* Several threads may count one round; nothing depends on it. */
    atomic_store_explicit(&shm.round, round, memory_order_relaxed);
    for (uint32_t i = 0; i < end; i++) {
        shm_peer_t *peer = atomic_load_explicit(&shm.attended[i], memory_order_acquire);

        if (peer)
            events += receive_some(peer, RECEIVE_BATCH);
    }
    if (OPAL_UNLIKELY(shm_doorbell_rang()))
        events += shm_doorbell_answer();
    if (OPAL_UNLIKELY(atomic_load_explicit(&shm.pending_count, memory_order_relaxed) != 0))
        events += shm_send_pending();
    if (OPAL_UNLIKELY(round % SWEEP_ROUNDS == 0))
        round_extra(round);
    if (OPAL_UNLIKELY(shm.oversubscribed))
        processor_share(events);
    return events;
}
