/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that have arrived: put into MPI's order, matched with receives. */
#ifndef MULTILANE_INBOUND_H
#define MULTILANE_INBOUND_H

#include "comm.h"
#include "common/compat/pml.h"
#include "spans.h"

#include <sys/uio.h>

struct recv_request;

/* A message (or a part of one) as it stands on the wire, checked. It lives on the stack of the
 * receive callback, or in an inbound that keeps it. */
struct arrival {
    struct peer *peer;
    mca_btl_base_module_t *btl;  /* that it came over, and */
    struct lane *lane;           /* the peer's lane over it; null if that is none of its lanes */
    struct mca_pml_comm_t *comm; /* null while this process does not know it */
    struct wire_match match;
    struct wire_cid cid; /* with WIRE_CID */
    uint8_t type;
    uint8_t flags;
    struct wire_handle sender; /* who waits for our answer: of a RTS, or with WIRE_SYNCHRONOUS */
    uint64_t size;             /* of the whole message */
    uint64_t offset;           /* of this part */
    uint32_t method;           /* of a RTS */
    struct wire_key key;       /* of a RTS by get */
    const unsigned char *key_bytes;
    size_t length; /* of the payload, the sum of these: */
    int payload_count;
    const struct iovec *payload;
};

/* An arrival that is kept: early, unexpected, or of a communicator not known yet. */
struct inbound {
    opal_free_list_item_t super;
    struct match_node keys[4]; /* one for each way to ask for it, see match.h */
    uint64_t stamp;            /* order of arrival in its communicator */
    struct arrival arrival;
    struct inbound *next;          /* early messages, or matched ones to be taken */
    struct inbound *next_assembly; /* messages whose parts are not all here */
    struct recv_request *receiver;
    uint64_t assembled;   /* bytes here so far, of a message in parts */
    struct spans claimed; /* which of its parts are here or being copied */
    bool refused;         /* nobody will receive it */
    uint32_t held;        /* its cost while it waits for a receive, else 0; see credit.h */
    struct iovec whole;   /* the payload: here below or, if it does not fit, on the heap */
    unsigned char *heap;
    unsigned char bytes[128];
};

typedef struct inbound inbound_t;
OBJ_CLASS_DECLARATION(inbound_t);

/* A whole message, or a RTS, in whatever order it comes; a part of one. The arrival is of the
 * caller, and may be gone when it returns. No lock is held. */
void inbound_message(struct arrival *arrival);
void inbound_part(struct arrival *part);

/* The oldest message that a receive with this source and tag takes, removed from the unexpected
 * ones; null if there is none. With the communicator's lock held. */
struct inbound *inbound_find(struct mca_pml_comm_t *comm, int source, int tag);
void inbound_remove(struct mca_pml_comm_t *comm, struct inbound *inbound);
struct inbound *inbound_of_node(struct match_node *node);

void inbound_free(struct inbound *inbound);

/* A new communicator takes the messages that came for it before it was known. With the component's
 * lock held. */
void inbound_adopt_orphans(struct mca_pml_comm_t *comm);

/* The message goes to this receive, which it was matched with and which holds nothing else. Frees
 * the inbound, now or when its last part is there. No lock is held. */
void inbound_take(struct inbound *inbound, struct recv_request *receiver);

/* Answers a message that will never be received, so that its sender does not wait for ever. */
void inbound_refuse(struct inbound *inbound);

/* The peer is lost: ends receives of messages of which parts are missing. No lock is held. */
void inbound_lost(struct peer *peer);

/* Throws away a message that nobody can receive any more. No lock is held. */
void inbound_drop(struct inbound *inbound);

/* Counts a header that makes no sense, and gives up the lane that it came on. */
void inbound_reject(mca_btl_base_module_t *btl, const char *what, uint64_t value);

#endif
