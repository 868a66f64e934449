/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators come and go. */
#include "match/comm.h"

#include <stdlib.h>
#include <string.h>

#include "match/credit.h"
#include "match/inbound.h"
#include "base/multilane.h"
#include "request/recv_request.h"

/* Found by index without a lock: two levels, of which the first is never moved and the second only
 * added to. Written with the component's lock held. */
#define COMM_CHUNK  256
#define COMM_CHUNKS ((COMPAT_MAX_CONTEXT + COMM_CHUNK) / COMM_CHUNK)

static struct mca_pml_comm_t **chunks[COMM_CHUNKS];
static struct mca_pml_comm_t *comms_by_cid; /* a list, guarded by the component's lock */

struct mca_pml_comm_t *comm_of_index(uint32_t index)
{
    if (OPAL_UNLIKELY(index / COMM_CHUNK >= COMM_CHUNKS))
        return NULL;
    struct mca_pml_comm_t **chunk =
        __atomic_load_n(&chunks[index / COMM_CHUNK], __ATOMIC_ACQUIRE); /* comm_list */
    return chunk ? __atomic_load_n(&chunk[index % COMM_CHUNK], __ATOMIC_ACQUIRE) : NULL;
}

size_t comm_write_extended(const struct mca_pml_comm_t *comm, const struct peer *peer, void *at,
                           uint8_t type, uint32_t sequence, int tag, struct wire_handle synchronous)
{
    const struct wire_match match = comm_match(comm, sequence, tag);
    uint8_t flags = comm->wire_flags;
    if (synchronous.generation)
        flags |= WIRE_SYNCHRONOUS;
    unsigned char *end = peer_write_base(peer, at, type, flags);
    if (flags & WIRE_CID) {
        memcpy(end, &comm->cid, sizeof(comm->cid));
        end += sizeof(comm->cid);
    }
    if (flags & WIRE_SYNCHRONOUS) {
        memcpy(end, &synchronous, sizeof(synchronous));
        end += sizeof(synchronous);
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

/* Release, against comm_of_index: what is found is whole. */
static int comm_list(struct mca_pml_comm_t *comm)
{
    struct mca_pml_comm_t **chunk = chunks[comm->index / COMM_CHUNK];
    if (!chunk) {
        chunk = calloc(COMM_CHUNK, sizeof(*chunk));
        if (!chunk)
            return OMPI_ERR_OUT_OF_RESOURCE;
        __atomic_store_n(&chunks[comm->index / COMM_CHUNK], chunk, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&chunk[comm->index % COMM_CHUNK], comm, __ATOMIC_RELEASE);
    if (comm->wire_flags & WIRE_CID) {
        OPAL_THREAD_LOCK(&multilane.comm_lock);
        comm->next_by_cid = comms_by_cid;
        comms_by_cid = comm;
        OPAL_THREAD_UNLOCK(&multilane.comm_lock);
    }
    return OMPI_SUCCESS;
}

static void comm_unlist(struct mca_pml_comm_t *comm)
{
    __atomic_store_n(&chunks[comm->index / COMM_CHUNK][comm->index % COMM_CHUNK], NULL,
                     __ATOMIC_RELEASE);
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

void comms_visit(void (*visit)(struct mca_pml_comm_t *comm, void *with), void *with)
{
    OPAL_THREAD_LOCK(&multilane.lock);
    for (uint32_t i = 0; i < COMM_CHUNKS; i++)
        for (uint32_t j = 0; chunks[i] && j < COMM_CHUNK; j++)
            if (chunks[i][j])
                visit(chunks[i][j], with);
    OPAL_THREAD_UNLOCK(&multilane.lock);
}

struct peer *comm_contact(struct mca_pml_comm_t *comm, uint32_t rank)
{
    ompi_proc_t *proc = ompi_comm_peer_lookup(comm->ompi, (int) rank);
    struct peer *peer = proc ? peer_contact(proc->super.proc_name, proc) : NULL;
    if (peer && peer->reachable)
        __atomic_store_n(&comm->peers[rank], peer, __ATOMIC_RELEASE); /* comm_peer */
    return peer;
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
    compat_comm_subscribe(ompi);
    ompi->c_pml_comm = comm;

    OPAL_THREAD_LOCK(&multilane.lock);
    /* Once it is listed other threads deliver to it, which must not be before the orphans. */
    OPAL_THREAD_LOCK(&comm->lock);
    int rc = comm_list(comm);
    if (rc == OMPI_SUCCESS)
        inbound_adopt_orphans(comm);
    OPAL_THREAD_UNLOCK(&comm->lock);
    OPAL_THREAD_UNLOCK(&multilane.lock);
    return rc;
}

/* Messages that nobody received and nobody can receive any more. */
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

/* By name: to look the process itself up would make those that were never met. */
static opal_process_name_t name_of(const struct mca_pml_comm_t *comm, uint32_t rank)
{
    return ompi_group_get_proc_name(comm->ompi->c_remote_group, (int) rank);
}

/* Notes which processes of other jobs are in a communicator, by the number of this search. */
static void members_note(struct mca_pml_comm_t *comm, void *with)
{
    const uint32_t *search = with;
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        struct peer *peer = peer_find(name_of(comm, rank));
        /* Relaxed: of this thread's or a later search, both of which are told that it is there. */
        if (peer && peer->foreign &&
            (int32_t) (*search - __atomic_load_n(&peer->found_by, __ATOMIC_RELAXED)) > 0)
            __atomic_store_n(&peer->found_by, *search, __ATOMIC_RELAXED);
    }
}

/* Processes of other jobs, which are in no communicator any more, have disconnected. They may be
 * met again: what they were promised stays so, and counts again when they use it. Each communicator
 * is looked through once, however many of them are in it. */
static void comm_part(const struct mca_pml_comm_t *comm)
{
    static uint32_t searches; /* atomic */
    if (!multilane.foreign_peers)
        return;
    uint32_t search = __atomic_add_fetch(&searches, 1, __ATOMIC_RELAXED);
    comms_visit(members_note, &search);
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        struct peer *peer = peer_find(name_of(comm, rank));
        if (peer && peer->foreign &&
            (int32_t) (__atomic_load_n(&peer->found_by, __ATOMIC_RELAXED) - search) < 0)
            credit_end(peer);
    }
}

int module_del_comm(ompi_communicator_t *ompi)
{
    struct mca_pml_comm_t *comm = ompi->c_pml_comm;
    if (!comm)
        return OMPI_SUCCESS;
    OPAL_THREAD_LOCK(&multilane.lock);
    comm_unlist(comm);
    OPAL_THREAD_UNLOCK(&multilane.lock);
    comm_drop_unexpected(comm);
    comm_part(comm);
    match_table_fini(&comm->posted);
    match_table_fini(&comm->unexpected);
    OBJ_DESTRUCT(&comm->lock);
    ompi->c_pml_comm = NULL;
    free(comm);
    return OMPI_SUCCESS;
}

static bool is_of(const struct mca_pml_comm_t *comm, uint32_t rank, const struct peer *peer)
{
    if (rank >= comm->size)
        return false;
    opal_process_name_t name = name_of(comm, rank);
    return name.jobid == peer->name.jobid && name.vpid == peer->name.vpid;
}

/* Who has not been sent to may have sent: the communicator's peers are not all. */
bool comm_has(const struct mca_pml_comm_t *comm, int32_t source, const struct peer *peer)
{
    if (source != MATCH_ANY)
        return is_of(comm, (uint32_t) source, peer);
    for (uint32_t rank = 0; rank < comm->size; rank++)
        if (is_of(comm, rank, peer))
            return true;
    return false;
}

struct membership {
    const struct peer *peer;
    bool is_member;
};

static void membership_look(struct mca_pml_comm_t *comm, void *with)
{
    struct membership *membership = with;
    if (!membership->is_member && comm_has(comm, MATCH_ANY, membership->peer))
        membership->is_member = true;
}

bool comms_have(const struct peer *peer)
{
    struct membership membership = {.peer = peer};
    comms_visit(membership_look, &membership);
    return membership.is_member;
}

/* A chain in this bucket whose messages the revoked communicator must not deliver, or null. All
 * messages of one chain under an exact key have the same tag, and each message is in one. */
static struct match_node *bucket_refused(struct mca_pml_comm_t *comm, uint32_t bucket)
{
    struct match_node *head = comm->unexpected.buckets[bucket];
    while (head && (match_kind(head->source, head->tag) != 0 ||
                    !compat_comm_refuses(comm->ompi, head->tag)))
        head = head->next_head;
    return head;
}

/* Takes them out of the queue. */
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
    OPAL_THREAD_LOCK(&comm->lock);
    compat_comm_mark_revoked(ompi, collectives_only);
    struct inbound *refused = comm_take_refused(comm);
    OPAL_THREAD_UNLOCK(&comm->lock);
    while (refused) {
        struct inbound *next = refused->next;
        inbound_refuse(refused);
        refused = next;
    }
    return OMPI_SUCCESS;
}

void comms_fini(void)
{
    for (unsigned i = 0; i < COMM_CHUNKS; i++) {
        free(chunks[i]);
        chunks[i] = NULL;
    }
    comms_by_cid = NULL;
}
