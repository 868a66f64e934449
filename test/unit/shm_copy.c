/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the kernel copies from a process is found out by one thread; another one that asks
 * meanwhile gets the same answer. */
#define _GNU_SOURCE
#include "check.h"

#include <pthread.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

#include "btl/shm/shm.h"

struct shm_state shm;

static shm_peer_t peer;
static uint64_t proof;
static unsigned reads;
static bool other_answer;
static pthread_t other;

bool shm_peer_owner_lives(const shm_peer_t *of)
{
    return of == &peer;
}

static void *ask(void *unused)
{
    other_answer = shm_copy_possible(&peer);
    return unused;
}

/* Stands before the system's own: the other thread asks while the first one waits here. */
ssize_t process_vm_readv(pid_t pid, const struct iovec *here, unsigned long here_count,
                         const struct iovec *there, unsigned long there_count, unsigned long flags)
{
    const struct timespec time = {0, 50000000};
    (void) pid, (void) here_count, (void) there_count, (void) flags;
    if (reads++ == 0 && pthread_create(&other, NULL, ask, NULL) == 0)
        nanosleep(&time, NULL);
    memcpy(here->iov_base, there->iov_base, here->iov_len);
    return (ssize_t) here->iov_len;
}

static void both_threads_get(bool answer)
{
    reads = 0;
    other_answer = !answer;
    peer.copy = COPY_UNTRIED;
    CHECK(shm_copy_possible(&peer) == answer, "the first one does not");
    pthread_join(other, NULL);
    CHECK(other_answer == answer, "the other one does not");
    CHECK(reads == 1, "it was tried %u times", reads);
}

int main(void)
{
    OBJ_CONSTRUCT(&peer.lock, opal_mutex_t);
    opal_set_using_threads(true);
    peer.known = true;
    peer.kind = SEGMENT_MEMFD;
    peer.record.copies = SHM_COPY_AUTO;
    peer.record.proof_address = (uintptr_t) &proof;
    both_threads_get(true);
    proof = 1; /* another process has that number */
    both_threads_get(false);
    opal_set_using_threads(false);
    return check_end();
}
