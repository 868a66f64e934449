/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators are made, freed and revoked. */
#include <stdatomic.h>
#include <stdlib.h>

#include "join/posting.h"
#include "base/multilane.h"
#include "entry/calls.h"
#include "match/inbound.h"

/* The process of a rank, where it is of another job and was met; else null. */
static struct peer *peer_of_other_job(const struct mca_pml_comm_t *comm, uint32_t rank)
{
    struct peer *peer = peer_find(comm_name_of(comm, rank));
    return peer && peer->is_of_other_job ? peer : NULL;
}

/* A process of another job that had ended, and is in a new communicator, has begun anew. */
static void members_begin(const struct mca_pml_comm_t *comm)
{
    if (!atomic_load_explicit(&multilane.other_job_peers, memory_order_relaxed))
        return;
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        struct peer *peer = peer_of_other_job(comm, rank);
        if (peer) /* peer_has_parted */
            atomic_store_explicit(&peer->has_ended, false, memory_order_relaxed);
    }
}

int module_add_comm(ompi_communicator_t *ompi)
{
    uint32_t size = (uint32_t) ompi->c_remote_group->grp_proc_count;
    uint32_t index = compat_comm_index(ompi);
    if (index > COMPAT_MAX_CONTEXT)
        return OMPI_ERR_OUT_OF_RESOURCE;
    struct mca_pml_comm_t *comm = calloc(1, sizeof(*comm) + size * sizeof(comm->peers[0]));
    if (!comm)
        return OMPI_ERR_OUT_OF_RESOURCE;
    comm->ompi = ompi;
    comm->size = size;
    comm->index = index;
    if (!compat_comm_has_common_index(ompi)) {
        comm->wire_flags = WIRE_CID;
        compat_comm_cid(ompi, &comm->cid.base, &comm->cid.sub);
    }
    OBJ_CONSTRUCT(&comm->lock, opal_mutex_t);
    match_table_init(&comm->posted);
    match_table_init(&comm->unexpected);
    ompi_comm_assert_subscribe(ompi, OMPI_COMM_ASSERT_NO_ANY_SOURCE);
    ompi_comm_assert_subscribe(ompi, OMPI_COMM_ASSERT_ALLOW_OVERTAKE);
    ompi->c_pml_comm = comm;
    members_begin(comm);

    multilane_lock();
    /* Once it is listed, other threads deliver to it; the orphans must come first. */
    biased_lock(&comm->lock);
    int rc = comm_list(comm);
    if (rc == OMPI_SUCCESS)
        order_adopt_orphans(comm);
    biased_unlock(&comm->lock);
    multilane_unlock();
    return rc;
}

/* Drops messages that no receive can match any more. */
static void comm_drop_unexpected(struct mca_pml_comm_t *comm)
{
    for (uint32_t i = 0; i <= comm->unexpected.mask; i++) {
        while (comm->unexpected.buckets[i]) {
            struct inbound *inbound = inbound_of_node(comm->unexpected.buckets[i]);
            inbound_remove(comm, inbound);
            inbound_drop(inbound);
        }
    }
}

static bool has_other_job(const struct mca_pml_comm_t *comm)
{
    uint32_t rank = 0;
    while (rank < comm->size && !peer_of_other_job(comm, rank))
        rank++;
    return rank < comm->size;
}

/* Marks which processes of other jobs are in the communicator, with the number of this search. */
static void members_mark(const struct mca_pml_comm_t *comm, uint32_t search)
{
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        struct peer *peer = peer_of_other_job(comm, rank);
        /* Relaxed: a later search of another thread marks the same. */
        if (peer &&
            (int32_t) (search - atomic_load_explicit(&peer->found_by, memory_order_relaxed)) > 0)
            atomic_store_explicit(&peer->found_by, search, memory_order_relaxed);
    }
}

/* Processes of other jobs that are in no communicator any more have disconnected: their part of
 * the pool goes back. They may come back with the limits that they know. One pass over the
 * communicators serves all of them. */
static void comm_part(const struct mca_pml_comm_t *comm)
{
    static _Atomic uint32_t searches;
    if (!atomic_load_explicit(&multilane.other_job_peers, memory_order_relaxed) ||
        !has_other_job(comm))
        return;
    uint32_t search = atomic_fetch_add_explicit(&searches, 1, memory_order_relaxed) + 1;
    multilane_lock();
    for (const struct mca_pml_comm_t *other = comm_next(NULL); other; other = comm_next(other))
        members_mark(other, search);
    multilane_unlock();
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        struct peer *peer = peer_of_other_job(comm, rank);
        if (peer &&
            (int32_t) (atomic_load_explicit(&peer->found_by, memory_order_relaxed) - search) < 0)
            credit_end(peer);
    }
}

int module_del_comm(ompi_communicator_t *ompi)
{
    struct mca_pml_comm_t *comm = ompi->c_pml_comm;
    if (!comm)
        return OMPI_SUCCESS;
    multilane_lock();
    comm_unlist(comm);
    multilane_unlock();
    comm_drop_unexpected(comm);
    comm_part(comm);
    match_table_fini(&comm->posted);
    match_table_fini(&comm->unexpected);
    OBJ_DESTRUCT(&comm->lock);
    ompi->c_pml_comm = NULL;
    free(comm);
    return OMPI_SUCCESS;
}

/* A chain in this bucket with messages that the revoked communicator refuses, or null. All
 * messages of a chain under an exact key have one tag, and each message is in one such chain. */
static struct match_node *bucket_refused(struct mca_pml_comm_t *comm, uint32_t bucket)
{
    struct match_node *head = comm->unexpected.buckets[bucket];
    while (head && (match_kind(head->source, head->tag) != 0 ||
                    !compat_comm_refuses(comm->ompi, head->tag)))
        head = head->next_head;
    return head;
}

/* Removes refused messages from the queue. */
static struct inbound *comm_take_refused(struct mca_pml_comm_t *comm)
{
    struct inbound *refused = NULL;
    struct match_node *node;
    for (uint32_t i = 0; i <= comm->unexpected.mask; i++) {
        while ((node = bucket_refused(comm, i))) {
            struct inbound *inbound = inbound_of_node(node);
            inbound_remove(comm, inbound);
            inbound->next = refused;
            refused = inbound;
        }
    }
    return refused;
}

int module_revoke_comm(ompi_communicator_t *ompi, bool collectives_only)
{
    struct mca_pml_comm_t *comm = ompi->c_pml_comm;
    if (OMPI_COMM_IS_INTER(ompi))
        module_revoke_comm(ompi->c_local_comm, collectives_only);
    if (!comm)
        return OMPI_SUCCESS;
    biased_lock(&comm->lock);
    compat_comm_mark_revoked(ompi, collectives_only);
    struct inbound *refused = comm_take_refused(comm);
    biased_unlock(&comm->lock);
    inbounds_refuse(refused);
    return OMPI_SUCCESS;
}
