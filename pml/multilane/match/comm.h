/* SPDX-License-Identifier: BSD-3-Clause */
/* The PML's part of a communicator: its peers by rank, and the two queues of matching. */
#ifndef MULTILANE_COMM_H
#define MULTILANE_COMM_H

#include <stdatomic.h>

#include "common/compat/pml.h"

#include "match/match.h"
#include "peer/peer.h"

/* Open MPI declares this name; the PML defines it. */
struct mca_pml_comm_t {
    ompi_communicator_t *ompi;
    struct mca_pml_comm_t *next_by_cid; /* in the list of communicators with WIRE_CID */
    uint32_t index;
    uint8_t wire_flags;  /* WIRE_CID where the index differs between processes */
    struct wire_cid cid; /* its name then */

    opal_mutex_t lock;             /* guards what follows, up to stamp */
    struct match_table posted;     /* struct recv_request */
    struct match_table unexpected; /* struct inbound, under its own key and, */
    bool wildcards;                /* if this is set, under each wildcard key that matches it */
    uint64_t stamp;

    /* A probe has found no message of this rank (or of any, below 0). Probes write both;
     * inbound.c clears the first. Relaxed, all. */
    _Atomic bool probe_missed;
    _Atomic int probe_source;

    uint32_t size;
    struct peer *_Atomic peers[]; /* by rank, null until comm_contact; read by comm_peer */
};

/* The communicator of a message; null: this process has not made it yet. Needs no lock. */
struct mca_pml_comm_t *comm_of_index(uint32_t index);
struct mca_pml_comm_t *comm_of_cid(const struct wire_cid *cid);

/* Adds a communicator to the tables, or removes it. OMPI_ERR_OUT_OF_RESOURCE: no memory. With
 * the component's lock held. */
int comm_list(struct mca_pml_comm_t *comm);
void comm_unlist(struct mca_pml_comm_t *comm);
void comms_fini(void);

/* All communicators, one after the other: the first one (null), or the one behind `at`. Null: no
 * more. With the component's lock held. */
struct mca_pml_comm_t *comm_next(const struct mca_pml_comm_t *at);

/* The name of a rank's process. A look-up of the process itself would make one that was never
 * met. */
opal_process_name_t comm_name_of(const struct mca_pml_comm_t *comm, uint32_t rank);

/* Does this source, a rank or MATCH_ANY, include the peer? */
bool comm_has(const struct mca_pml_comm_t *comm, int32_t source, const struct peer *peer);
/* Is it a process of another job that has said that it ends, or that is in no communicator any
 * more? That its lanes break is no error. Takes the component's lock. */
bool peer_has_parted(const struct peer *peer);

/* Is a process lost that a message from `source` could come from? */
bool comm_lost_any(const struct mca_pml_comm_t *comm, int32_t source);

static inline bool comm_lost(const struct mca_pml_comm_t *comm, int32_t source)
{
    return OPAL_UNLIKELY(atomic_load_explicit(&multilane.lost_peers, memory_order_relaxed) > 0) &&
           comm_lost_any(comm, source);
}

/* The peer of a rank at first contact; null as for peer_contact. */
struct peer *comm_contact(struct mca_pml_comm_t *comm, uint32_t rank);

static inline struct peer *comm_peer(struct mca_pml_comm_t *comm, int rank)
{
    struct peer *peer =
        atomic_load_explicit(&comm->peers[rank], memory_order_acquire); /* comm_contact */
    if (OPAL_UNLIKELY(!peer))
        peer = comm_contact(comm, (uint32_t) rank);
    return peer;
}

/* The lane on which a message from `source` most likely arrives; null: any source, or no contact
 * yet. */
static inline struct lane *comm_likely_lane(struct mca_pml_comm_t *comm, int source)
{
    if (source == OMPI_ANY_SOURCE)
        return NULL;
    struct peer *peer =
        atomic_load_explicit(&comm->peers[source], memory_order_acquire); /* comm_contact */
    return peer && peer->lanes ? peer_control_lane(peer) : NULL;
}

/* Has a message to this peer no extensions? */
static inline bool comm_is_plain(const struct mca_pml_comm_t *comm, const struct peer *peer,
                                 struct wire_handle answer)
{
    return OPAL_LIKELY(!(comm->wire_flags | peer->is_of_other_job | answer.generation));
}

/* The length of what comm_write_match will write. */
static inline size_t comm_match_length(const struct mca_pml_comm_t *comm, const struct peer *peer,
                                       struct wire_handle answer)
{
    if (comm_is_plain(comm, peer, answer))
        return sizeof(struct wire_plain);
    return sizeof(struct wire_plain) + (peer->is_of_other_job ? sizeof(struct wire_name) : 0) +
           (comm->wire_flags & WIRE_CID ? sizeof(struct wire_cid) : 0) +
           (answer.generation ? sizeof(struct wire_handle) : 0);
}

static inline struct wire_match comm_match(const struct mca_pml_comm_t *comm, uint32_t sequence,
                                           int tag)
{
    return (struct wire_match){
        .sequence = sequence, .context = comm->index, .source = comm->ompi->c_my_rank, .tag = tag};
}

/* Member by member: a copy of the whole struct would wait for the store buffer. */
static inline void comm_write_plain(const struct mca_pml_comm_t *comm, void *at, uint8_t type,
                                    uint32_t sequence, int tag)
{
    struct anywhere {
        struct wire_plain plain;
    } __attribute__((packed, may_alias)) *to = at;
    to->plain.base = (struct wire_base){.type = type, .from = multilane.me.vpid};
    to->plain.match.sequence = sequence;
    to->plain.match.context = comm->index;
    to->plain.match.source = comm->ompi->c_my_rank;
    to->plain.match.tag = tag;
}

size_t comm_write_extended(const struct mca_pml_comm_t *comm, const struct peer *peer, void *at,
                           uint8_t type, uint32_t sequence, int tag, struct wire_handle answer);

/* Writes base, extensions and match body of an eager message or RTS; returns its length. */
static inline size_t comm_write_match(const struct mca_pml_comm_t *comm, const struct peer *peer,
                                      void *at, uint8_t type, uint32_t sequence, int tag,
                                      struct wire_handle answer)
{
    if (!comm_is_plain(comm, peer, answer))
        return comm_write_extended(comm, peer, at, type, sequence, tag, answer);
    comm_write_plain(comm, at, type, sequence, tag);
    return sizeof(struct wire_plain);
}

#endif
