/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that have arrived, and those of them that are kept until a receive asks for them. */
#ifndef MULTILANE_INBOUND_H
#define MULTILANE_INBOUND_H

#include "match/comm.h"
#include "common/compat/pml.h"
#include "base/spans.h"

#include <sys/uio.h>

struct recv_request;

/* A message (or a part of one) as it stands on the wire, checked. It lives on the stack of the
 * receive callback, or in an inbound that keeps it. */
struct arrival {
    struct peer *peer;
    struct wire_match match;
    struct wire_handle sender; /* who waits for our answer: of a RTS, or with WIRE_SYNCHRONOUS */
    uint64_t size;             /* of the whole message */
    uint8_t type;
    uint8_t flags;
    /* What follows is not set in an inbound that is plain. */
    mca_btl_base_module_t *btl; /* that it came over, and */
    struct lane *lane;          /* the peer's lane over it; null if that is none of its lanes */
    struct wire_cid cid;        /* with WIRE_CID */
    uint64_t offset;            /* of this part */
    uint32_t method;            /* of a RTS */
    struct wire_key key;        /* of a RTS by get */
    const unsigned char *key_bytes;
    size_t length; /* of the payload, the sum of these: */
    int payload_count;
    const struct iovec *payload;
};

/* An arrival that is kept: early, unexpected, or of a communicator not known yet. Programs that run
 * behind keep thousands of small ones, so what these need lies close together. */
struct inbound {
    opal_free_list_item_t super;
    struct inbound *next;  /* early messages, or matched ones to be taken */
    struct match_node key; /* by which it can be asked for, see match.h */
    unsigned char *data;   /* the payload: `bytes` or, if it does not fit, on the heap */
    uint64_t assembled;    /* bytes here so far, of a message in parts */
    uint32_t held;         /* its cost while it waits for a receive, else 0; see credit.h */
    bool refused;          /* nobody will receive it */
    bool is_plain;         /* it came whole, and nobody waits for an answer */
    struct arrival arrival;
    unsigned char bytes[128];
    struct match_node wildcard_keys[3]; /* by which it can be asked for as well */
    struct inbound *next_assembly;      /* messages whose parts are not all here */
    struct recv_request *receiver;
    struct spans claimed; /* which of its parts are here or being copied */
};

/* What a message took, or would take, while it waits for its receive. */
static inline uint32_t arrival_cost(const struct arrival *arrival)
{
    return flow_cost(arrival->type == WIRE_RTS ? 0 : arrival->size);
}

typedef struct inbound inbound_t;
OBJ_CLASS_DECLARATION(inbound_t);

/* Keeps a plain message that is in its turn and found no receive. False: there is no memory. With
 * the peer's and the communicator's lock held. */
bool inbound_keep_plain(struct peer *peer, struct mca_pml_comm_t *comm,
                        const struct wire_match *match, const void *data, size_t size);

/* The oldest message that a receive with this source and tag takes; null if there is none. With the
 * communicator's lock held. */
struct inbound *inbound_find(struct mca_pml_comm_t *comm, int source, int tag);
/* The same, removed from them, if it is plain and has no more than `room` bytes. No lock is held.
 */
struct inbound *inbound_take_plain(struct mca_pml_comm_t *comm, int source, int tag, size_t room);
void inbound_remove(struct mca_pml_comm_t *comm, struct inbound *inbound);
struct inbound *inbound_of_node(struct match_node *node);

void inbound_free(struct inbound *inbound);
/* Frees what came before its turn, of all peers. */
void inbounds_fini(void);

/* A copy of the arrival that outlives the receive callback, for a part without its payload. Null
 * without memory, which was said. */
struct inbound *inbound_keep(const struct arrival *arrival);
/* What is left of an arrival that is refused: enough to answer it. Null as above. */
struct inbound *inbound_refusal(const struct arrival *arrival);
/* Room for a payload. False without memory. */
bool inbound_make_room(struct inbound *inbound, size_t bytes);
size_t arrival_copy(const struct arrival *arrival, unsigned char *to);

/* It waits for a receive, and takes of the sender's room meanwhile; it does not any more. With the
 * peer's lock held. */
void inbound_hold(struct inbound *inbound);
void inbound_release(struct inbound *inbound);

/* Puts it behind the others. With the communicator's lock held. */
void inbound_enqueue(struct mca_pml_comm_t *comm, struct inbound *inbound);

/* Answers a message that will never be received, so that its sender does not wait for ever. */
void inbound_refuse(struct inbound *inbound);
void inbound_refuse_sender(struct peer *peer, struct wire_handle sender);

/* A receive ends though parts of its message may still come: they find nobody. No lock is held. */
void inbound_forget(struct peer *peer, const struct recv_request *receiver);

/* Throws away a message that nobody can receive any more. No lock is held. */
void inbound_drop(struct inbound *inbound);

/* Counts a header that makes no sense, and gives up the lane that it came on. */
void inbound_reject(mca_btl_base_module_t *btl, const char *what, uint64_t value);

#endif
