/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of communicators, by index and by extended id, and their members. */
#include "match/comm.h"

#include <stdlib.h>
#include <string.h>

#include "base/multilane.h"
#include "contact/contact.h"

/* By index, read without a lock: two levels, the first is fixed and the second only grows.
 * Written with the component's lock held. */
#define COMM_CHUNK  256
#define COMM_CHUNKS ((COMPAT_MAX_CONTEXT + COMM_CHUNK) / COMM_CHUNK)

typedef struct mca_pml_comm_t *_Atomic comm_slot;
static comm_slot *_Atomic chunks[COMM_CHUNKS];
static struct mca_pml_comm_t *comms_by_cid; /* a list, guarded by the component's lock */

/* Acquire, both, against comm_list: what is found is whole. */
static comm_slot *chunk_at(uint32_t index)
{
    return atomic_load_explicit(&chunks[index], memory_order_acquire);
}

static struct mca_pml_comm_t *slot_comm(const comm_slot *slot)
{
    return atomic_load_explicit(slot, memory_order_acquire);
}

struct mca_pml_comm_t *comm_of_index(uint32_t index)
{
    if (OPAL_UNLIKELY(index / COMM_CHUNK >= COMM_CHUNKS))
        return NULL;
    const comm_slot *chunk = chunk_at(index / COMM_CHUNK);
    return chunk ? slot_comm(&chunk[index % COMM_CHUNK]) : NULL;
}

size_t comm_write_extended(const struct mca_pml_comm_t *comm, const struct peer *peer, void *at,
                           uint8_t type, uint32_t sequence, int tag, struct wire_handle answer)
{
    const struct wire_match match = comm_match(comm, sequence, tag);
    uint8_t flags = comm->wire_flags;
    if (answer.generation)
        flags |= answer.index >= WIRE_TIMER_FIRST ? WIRE_TIMED : WIRE_SYNCHRONOUS;
    unsigned char *end = peer_write_base(peer, at, type, flags);
    if (flags & WIRE_CID) {
        memcpy(end, &comm->cid, sizeof(comm->cid));
        end += sizeof(comm->cid);
    }
    if (answer.generation) {
        memcpy(end, &answer, sizeof(answer));
        end += sizeof(answer);
    }
    memcpy(end, &match, sizeof(match));
    return (size_t) (end + sizeof(match) - (unsigned char *) at);
}

static struct mca_pml_comm_t *comm_find_cid(const struct wire_cid *cid)
{
    struct mca_pml_comm_t *comm = comms_by_cid;
    while (comm && (comm->cid.sub != cid->sub || comm->cid.base != cid->base))
        comm = comm->next_by_cid;
    return comm;
}

struct mca_pml_comm_t *comm_of_cid(const struct wire_cid *cid)
{
    OPAL_THREAD_LOCK(&multilane.comm_lock);
    struct mca_pml_comm_t *comm = comm_find_cid(cid);
    OPAL_THREAD_UNLOCK(&multilane.comm_lock);
    return comm;
}

/* Release, against chunk_at and slot_comm. */
int comm_list(struct mca_pml_comm_t *comm)
{
    comm_slot *chunk = chunk_at(comm->index / COMM_CHUNK);
    if (!chunk) {
        chunk = calloc(COMM_CHUNK, sizeof(*chunk));
        if (!chunk)
            return OMPI_ERR_OUT_OF_RESOURCE;
        atomic_store_explicit(&chunks[comm->index / COMM_CHUNK], chunk, memory_order_release);
    }
    atomic_store_explicit(&chunk[comm->index % COMM_CHUNK], comm, memory_order_release);
    if (comm->wire_flags & WIRE_CID) {
        OPAL_THREAD_LOCK(&multilane.comm_lock);
        comm->next_by_cid = comms_by_cid;
        comms_by_cid = comm;
        OPAL_THREAD_UNLOCK(&multilane.comm_lock);
    }
    return OMPI_SUCCESS;
}

void comm_unlist(struct mca_pml_comm_t *comm)
{
    comm_slot *chunk = chunk_at(comm->index / COMM_CHUNK);
    atomic_store_explicit(&chunk[comm->index % COMM_CHUNK], NULL, memory_order_release);
    if (!(comm->wire_flags & WIRE_CID))
        return;
    OPAL_THREAD_LOCK(&multilane.comm_lock);
    struct mca_pml_comm_t **at = &comms_by_cid;
    while (*at && *at != comm)
        at = &(*at)->next_by_cid;
    if (*at)
        *at = comm->next_by_cid;
    OPAL_THREAD_UNLOCK(&multilane.comm_lock);
}

struct mca_pml_comm_t *comm_next(const struct mca_pml_comm_t *at)
{
    struct mca_pml_comm_t *next = NULL;
    for (uint32_t i = at ? at->index + 1 : 0; !next && i < COMM_CHUNKS * COMM_CHUNK; i++) {
        const comm_slot *chunk = chunk_at(i / COMM_CHUNK);
        if (chunk)
            next = slot_comm(&chunk[i % COMM_CHUNK]);
        else
            i |= COMM_CHUNK - 1; /* none of them */
    }
    return next;
}

struct peer *comm_contact(struct mca_pml_comm_t *comm, uint32_t rank)
{
    ompi_proc_t *proc = ompi_comm_peer_lookup(comm->ompi, (int) rank);
    struct peer *peer = proc ? peer_contact(proc->super.proc_name, proc) : NULL;
    if (peer && peer_is_reachable(peer))
        atomic_store_explicit(&comm->peers[rank], peer, memory_order_release); /* comm_peer */
    return peer;
}

opal_process_name_t comm_name_of(const struct mca_pml_comm_t *comm, uint32_t rank)
{
    return ompi_group_get_proc_name(comm->ompi->c_remote_group, (int) rank);
}

static bool is_of(const struct mca_pml_comm_t *comm, uint32_t rank, const struct peer *peer)
{
    if (rank >= comm->size)
        return false;
    opal_process_name_t name = comm_name_of(comm, rank);
    return name.jobid == peer->name.jobid && name.vpid == peer->name.vpid;
}

/* All ranks by name: comm->peers holds only peers that this process has sent to. */
bool comm_has(const struct mca_pml_comm_t *comm, int32_t source, const struct peer *peer)
{
    if (source != MATCH_ANY)
        return is_of(comm, (uint32_t) source, peer);
    for (uint32_t rank = 0; rank < comm->size; rank++)
        if (is_of(comm, rank, peer))
            return true;
    return false;
}

bool peer_has_parted(const struct peer *peer)
{
    bool is_member = false;
    if (!peer->is_of_other_job || atomic_load_explicit(&peer->has_ended, memory_order_relaxed))
        return peer->is_of_other_job;
    multilane_lock();
    for (const struct mca_pml_comm_t *comm = comm_next(NULL); comm && !is_member;
         comm = comm_next(comm))
        is_member = comm_has(comm, MATCH_ANY, peer);
    multilane_unlock();
    return !is_member;
}

bool comm_lost_any(const struct mca_pml_comm_t *comm, int32_t source)
{
    for (const struct peer *peer = peer_next(NULL); peer; peer = peer_next(peer))
        if (peer_is_lost(peer) && comm_has(comm, source, peer))
            return true;
    return false;
}

void comms_fini(void)
{
    for (unsigned i = 0; i < COMM_CHUNKS; i++) {
        free(chunk_at(i));
        atomic_init(&chunks[i], NULL);
    }
    comms_by_cid = NULL;
}
