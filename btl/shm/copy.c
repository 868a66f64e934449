/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies between the memories of two processes by the kernel (process_vm_readv and writev); only
 * one of the two takes part. */
#include "btl/shm/shm.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

static enum peer_copy copy_of(const shm_peer_t *peer)
{
    return (enum peer_copy) atomic_load_explicit(&peer->copy, memory_order_relaxed); /* peer_copy */
}

static void copy_set(shm_peer_t *peer, enum peer_copy copy)
{
    atomic_store_explicit(&peer->copy, (uint8_t) copy, memory_order_relaxed); /* peer_copy */
}

/* Says so once for all such processes, if the user asked for cma by name. */
static void copy_refused(const shm_peer_t *peer, const char *why)
{
    if (shm.single_copy.number != SHM_COPY_CMA)
        SHM_VERBOSE("no single copy with process %s: %s", OPAL_NAME_PRINT(peer->name), why);
    else
        SAY_ONCE(
            SHM_SAY,
            "btl_shm_single_copy is cma, but the memory of process %s (pid %d) cannot be read: "
            "%s. Messages to such processes are copied through the ring. Let processes of one "
            "user read each other's memory (as with ptrace), or give auto.",
            OPAL_NAME_PRINT(peer->name), (int) peer->record.pid, why);
}

/* Why the proof is not tried, or NULL. */
static const char *copy_barred(const shm_peer_t *peer)
{
    if (peer->record.copies == SHM_COPY_NONE)
        return "its btl_shm_single_copy is none";
    if (peer->kind != SEGMENT_MEMFD)
        return "the two are in different containers, or the system closes one of them to others";
    return NULL;
}

/* Reads a value that the peer published, and compares: the process number may belong to another
 * process, in another namespace or started later. Under peer->lock. */
static void copy_prove(shm_peer_t *peer)
{
    uint64_t value = 0;
    struct iovec here = {.iov_base = &value, .iov_len = sizeof(value)};
    struct iovec there = {.iov_base = (void *) (uintptr_t) peer->record.proof_address,
                          .iov_len = sizeof(value)};
    const char *why = copy_barred(peer);

    if (shm.single_copy.number == SHM_COPY_NONE) {
        copy_set(peer, COPY_REFUSED);
        return;
    }
    if (!why && process_vm_readv(peer->record.pid, &here, 1, &there, 1, 0) < 0)
        why = strerror(errno);
    else if (!why && value != peer->record.proof_value)
        why = "that number is another process";
    copy_set(peer, why ? COPY_REFUSED : COPY_PROVEN); /* only now: others look without the lock */
    if (!why)
        atomic_store_explicit(&shm.copies_work, true, memory_order_relaxed); /* a hint */
    else
        copy_refused(peer, why);
}

bool shm_copy_possible(shm_peer_t *peer)
{
    if (OPAL_UNLIKELY(copy_of(peer) == COPY_UNTRIED && peer->known)) {
        biased_lock(&peer->lock);
        if (copy_of(peer) == COPY_UNTRIED)
            copy_prove(peer);
        biased_unlock(&peer->lock);
    }
    return copy_of(peer) == COPY_PROVEN;
}

bool shm_copy_expected(shm_peer_t *peer)
{
    return (copy_of(peer) == COPY_UNTRIED && !copy_barred(peer) &&
            atomic_load_explicit(&shm.copies_work, memory_order_relaxed)) ||
           shm_copy_possible(peer);
}

/* The return code for an errno of the system. */
static int copy_error(shm_peer_t *peer, int error)
{
    switch (error) {
    case EFAULT:
        return OPAL_ERR_BAD_PARAM;
    case ENOMEM:
        return OPAL_ERR_OUT_OF_RESOURCE;
    case ESRCH:
        /* Of a process whose first thread has ended the kernel finds no memory. Otherwise the next
         * check of liveness reports it. */
        if (!shm_peer_owner_lives(peer)) {
            copy_set(peer, COPY_REFUSED);
            return OPAL_ERR_UNREACH;
        }
        break;
    default:
        break;
    }
    copy_set(peer, COPY_REFUSED);
    copy_refused(peer, strerror(error));
    return OPAL_ERR_NOT_SUPPORTED;
}

/* One call moves at most 2 GiB less a page. A page that cannot be read ends it early, and only the
 * next call returns the error. */
static int copy_move(shm_peer_t *peer, bool write, unsigned char *local, uint64_t remote_address,
                     size_t length)
{
    if (!shm_copy_possible(peer))
        return OPAL_ERR_NOT_SUPPORTED;
    while (length > 0) {
        struct iovec here = {.iov_base = local, .iov_len = length};
        struct iovec there = {.iov_base = (void *) (uintptr_t) remote_address, .iov_len = length};
        ssize_t moved = write ? process_vm_writev(peer->record.pid, &here, 1, &there, 1, 0)
                              : process_vm_readv(peer->record.pid, &here, 1, &there, 1, 0);

        if (OPAL_UNLIKELY(moved <= 0)) {
            if (moved < 0 && errno == EINTR)
                continue;
            return copy_error(peer, moved < 0 ? errno : EFAULT);
        }
        local += moved;
        remote_address += (uint64_t) moved;
        length -= (size_t) moved;
    }
    return OPAL_SUCCESS;
}

int shm_copy_from(mca_btl_base_module_t *btl, shm_peer_t *peer, void *local,
                  uint64_t remote_address, size_t length)
{
    return copy_move(peer, false, local, remote_address, length);
}

int shm_copy_to(mca_btl_base_module_t *btl, shm_peer_t *peer, const void *local,
                uint64_t remote_address, size_t length)
{
    /* The kernel only reads it; struct iovec has no const. */
    return copy_move(peer, true, (unsigned char *) (uintptr_t) local, remote_address, length);
}
