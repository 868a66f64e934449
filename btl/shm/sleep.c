/* SPDX-License-Identifier: BSD-3-Clause */
/* Sleeps until something arrives. While this process sleeps no ring is attended, and each message
 * rings the doorbell; the first that does brings attended rings back (attended.c). */
#include "btl/shm/shm.h"
#include "common/lock/clock.h"

/* Rings are still looked at for so long after their senders were told to ring: longer than a store
 * of a sender can wait in its processor while it still reads that its ring is attended. */
#define LINGER_NS 200000u
/* The longest sleep while something may come that rings no doorbell. */
#define BLIND_US 50u

/* Under shm.lock. */
static void bells_begin(void)
{
    shm.bells_since_ns = clock_read_ns(CLOCK_MONOTONIC);
    atomic_store_explicit(&shm.bells, BELLS_LINGER, memory_order_relaxed);
    for (uint32_t i = 0; i < SHM_ATTENDED_MAX; i++) {
        shm_peer_t *peer = atomic_load_explicit(&shm.attended[i], memory_order_relaxed);

        if (peer)
            shm_attended_linger(peer);
    }
}

/* Under shm.lock. */
static void linger_end(void)
{
    for (uint32_t i = 0; i < SHM_ATTENDED_MAX; i++) {
        shm_peer_t *peer = atomic_load_explicit(&shm.attended[i], memory_order_relaxed);

        if (peer) {
            shm_attended_remove(peer);
            shm_attended_leave(peer);
        }
    }
    atomic_store_explicit(&shm.bells, BELLS_ONLY, memory_order_relaxed);
}

/* Whether every message rings. Relaxed: only a thread that reads BELLS_ONLY depends on it, and what
 * it depends on are the stores of senders, which time has made visible. */
static bool bells_only(void)
{
    if (OPAL_LIKELY(atomic_load_explicit(&shm.bells, memory_order_relaxed) == BELLS_ONLY))
        return true;
    OPAL_THREAD_LOCK(&shm.lock);
    if (atomic_load_explicit(&shm.bells, memory_order_relaxed) == BELLS_AND_RINGS)
        bells_begin();
    else if (clock_read_ns(CLOCK_MONOTONIC) - shm.bells_since_ns > LINGER_NS)
        linger_end();
    OPAL_THREAD_UNLOCK(&shm.lock);
    return false;
}

/* Whether no doorbell of ours has rung; then a peer that rings one wakes us. */
static bool all_armed(int *segments)
{
    bool armed = true;

    *segments = 0;
    for (int kind = 0; kind < SEGMENT_KINDS; kind++)
        if (shm_own_segment_is_live(kind)) {
            armed = shm_doorbell_arm(&shm.segments[kind]) && armed;
            ++*segments;
        }
    return armed;
}

static void all_disarm(void)
{
    for (int kind = 0; kind < SEGMENT_KINDS; kind++)
        if (shm_own_segment_is_live(kind))
            shm_doorbell_disarm(&shm.segments[kind]);
}

/* Sequentially consistent: behind shm_doorbell_arm, the partner is shm_wake. */
static bool all_unchanged(const struct multilane_seen *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (atomic_load_explicit(words[i].word, memory_order_seq_cst) != words[i].seen)
            return false;
    return true;
}

bool shm_sleep(uint32_t microseconds, const struct multilane_seen *words, size_t count)
{
    int segments;

    if (!bells_only())
        return false;
    bool idle = all_armed(&segments) && all_unchanged(words, count);
    if (idle) {
        bool blind = segments > 1 || /* of two words one wakes */
                     peer_list_count(&shm.pending) != 0;

        shm_doorbell_sleep(shm_own_segment_awaited(),
                           blind && microseconds > BLIND_US ? BLIND_US : microseconds);
        shm_receive_skip_rounds();
        idle = !shm_doorbell_rang();
    }
    all_disarm();
    return !idle;
}

void shm_wake(void)
{
    struct segment *segment = shm_own_segment_awaited();

    if (shm_own_segment_is_live(segment->kind))
        shm_doorbell_wake(segment->header);
}
