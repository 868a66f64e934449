/* SPDX-License-Identifier: BSD-3-Clause */
/* Doorbells: bits in the header of a segment that make its owner look at a connection, and wake it
 * where it sleeps (common/ring/bell.h). */
#include "btl/shm/shm.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NAP_NS 50000

static void futex_wake(_Atomic uint32_t *word)
{
    (void) syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void shm_doorbell_ring(shm_peer_t *peer)
{
    if (OPAL_UNLIKELY(
            bell_ring(peer->doorbell, UINT64_C(1) << peer->doorbell_bit, &peer->segment->asleep)))
        futex_wake(&peer->segment->asleep);
}

/* Rings our own doorbell, to look at that connection again in the next round. */
static void ring_own(struct segment *segment, uint32_t index)
{
    index %= SEGMENT_DOORBELLS * 64;
    if (bell_ring(&segment->header->doorbells[index / 64], UINT64_C(1) << index % 64,
                  &segment->header->asleep))
        futex_wake(&segment->header->asleep); /* another thread of ours */
}

void shm_doorbell_ring_own_of(shm_peer_t *peer)
{
    struct segment *segment = &shm.segments[peer->in_kind];
    struct connection *connection =
        atomic_load_explicit(&peer->in_connection, memory_order_relaxed);

    if (connection) /* else it has closed meanwhile */
        ring_own(segment, (uint32_t) (connection - segment->connections));
}

/* Where the kernel does not let us sleep on a word (a sandbox), nothing wakes us. */
static void nap(int error)
{
    const struct timespec time = {.tv_nsec = NAP_NS};

    SAY_ONCE(SHM_VERBOSE,
             "this process cannot sleep on shared memory: %s; where it waits it naps for "
             "50 us at a time",
             strerror(error));
    nanosleep(&time, NULL);
}

bool shm_doorbell_arm(struct segment *segment)
{
    return bell_arm(segment->header->doorbells, segment->doorbell_words, &segment->header->asleep);
}

void shm_doorbell_disarm(struct segment *segment)
{
    /* With threads another one may sleep on the word: it stays, and the next peer that rings wakes
     * in vain, as does one that reads the old value: so relaxed. */
    if (!opal_using_threads())
        atomic_store_explicit(&segment->header->asleep, 0, memory_order_relaxed);
}

void shm_doorbell_sleep(struct segment *segment, uint32_t microseconds)
{
    const struct timespec longest = {.tv_sec = microseconds / 1000000,
                                     .tv_nsec = (long) (microseconds % 1000000) * 1000};

    /* A signal, a value that has changed and the end of the time are all the same to the caller. */
    if (syscall(SYS_futex, &segment->header->asleep, FUTEX_WAIT, 1, &longest, NULL, 0) != 0 &&
        errno != EAGAIN && errno != ETIMEDOUT && errno != EINTR)
        nap(errno);
}

void shm_doorbell_wake(struct segment_header *header)
{
    /* Sequentially consistent: behind what the sleeper looks at after shm_doorbell_arm. */
    if (atomic_load_explicit(&header->asleep, memory_order_seq_cst) != 0 &&
        atomic_exchange_explicit(&header->asleep, 0, memory_order_relaxed) != 0)
        futex_wake(&header->asleep);
}
