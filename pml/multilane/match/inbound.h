/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrived messages, those kept until a receive takes them, and what their senders are granted of
 * the room for more. */
#ifndef MULTILANE_INBOUND_H
#define MULTILANE_INBOUND_H

#include <sys/uio.h>

#include "match/comm.h"
#include "base/spans.h"

/* Flow control at the receiver. flow.h explains it; send_queue.h is the sender's part. */

/* The peer sends nothing for now: its part of the pool goes back. No lock is held. */
void credit_end(struct peer *peer);

/* With the peer's lock held: where its limits are used up, starts to look for a receive that
 * waits for it. */
void credit_look(struct peer *peer);

/* With the peer's lock held: a receive has matched a message of that cost at its arrival. */
static inline void credit_matched(struct peer *peer, uint32_t cost)
{
    if (OPAL_UNLIKELY(flow_matched(&peer->in, cost)))
        atomic_store_explicit(&peer->credit_due, true,
                              memory_order_relaxed); /* credit_send_if_due */
    if (OPAL_UNLIKELY(peer->in.held != 0))
        credit_look(peer);
}

void credit_send(struct peer *peer);

/* Tells the peer its limits, if that is due. No lock is held. Relaxed: the thread that set
 * credit_due comes here. */
static inline void credit_send_if_due(struct peer *peer)
{
    if (OPAL_UNLIKELY(atomic_load_explicit(&peer->credit_due, memory_order_relaxed)))
        credit_send(peer);
}

/* A peer is contacted: starts with the limits promised to it. */
void credit_begin(struct peer *peer);

struct offered;
struct recv_request;

/* A message, or a part of one, with its checked header. It lives on the stack of the receive
 * callback, or in an inbound. */
struct arrival {
    struct peer *peer;
    struct wire_match match;
    struct wire_handle sender; /* it waits for an answer: of an RTS or a synchronous send */
    struct wire_handle timer;  /* the sender times the message */
    uint64_t size;             /* of the whole message */
    uint8_t type;
    uint8_t flags;
    /* A plain inbound leaves the rest unset. */
    mca_btl_base_module_t *btl; /* that it arrived on, and */
    struct lane *lane;          /* the peer's lane over it, or null */
    struct wire_cid cid;        /* with WIRE_CID */
    uint64_t offset;            /* of this part */
    uint32_t method;            /* of a RTS, */
    uint32_t memory;            /* likewise: enum wire_memory; and with WIRE_SUMMED */
    uint32_t sum;
    struct wire_key key; /* of a RTS by get */
    const unsigned char *key_bytes;
    const struct wire_offer *offer; /* of a part; or null */
    size_t length;                  /* of the payload, the sum of these */
    int payload_count;
    const struct iovec *payload;
};

/* A kept arrival: early, unexpected, or of a communicator not made yet. Slow programs keep
 * thousands of small ones, so their members come first, close together. */
struct inbound {
    opal_free_list_item_t super;
    struct inbound *next;  /* in the list of early, ready or refused messages */
    struct match_node key; /* in the unexpected queue, see match.h */
    unsigned char *data;   /* the payload: `bytes` or, if it does not fit, on the heap */
    uint64_t assembled;    /* bytes of a message in parts that have arrived */
    uint32_t held;         /* its cost while it waits for a receive, else 0 */
    bool refused;          /* no receive will get it; one that it has ends with the last copy */
    bool is_plain;         /* it came whole, and the sender expects no answer */
    struct arrival arrival;
    unsigned char bytes[128];
    struct match_node wildcard_keys[3]; /* in the unexpected queue under wildcards */
    struct inbound *next_assembly;      /* in its bucket of the peer's assemblies */
    struct recv_request *receiver;
    uint32_t copying;        /* threads that copy bytes to the receiver */
    struct offered *offered; /* what its sender offers; or null: request/taking.c */
    struct spans claimed;    /* bytes that have arrived or are being copied */
};

/* The cost of the message in flow control. */
static inline uint32_t arrival_cost(const struct arrival *arrival)
{
    return flow_cost(arrival->type == WIRE_RTS ? 0 : arrival->size);
}

/* Can it be copied to a buffer of `room` bytes, with nothing else to do? */
static inline bool inbound_is_plain(const struct inbound *inbound, size_t room)
{
    return inbound->is_plain && inbound->arrival.size <= room;
}

/* A peer's messages with missing parts, by number: there may be thousands, where one lane is far
 * behind another. Guarded by the peer's lock. */
#define ASSEMBLY_BUCKETS 256u

static inline struct inbound **assembly_bucket(struct peer *peer, uint32_t sequence)
{
    return &peer->assemblies[sequence % ASSEMBLY_BUCKETS];
}

/* One after the other, in any order: the first one, or the one behind `at`. Null: no more. */
struct inbound *assembly_next(struct peer *peer, const struct inbound *at);

typedef struct inbound inbound_t;
OBJ_CLASS_DECLARATION(inbound_t);

/* Keeps a plain message in its turn for which no receive waits. False: no memory. With the
 * peer's and the communicator's lock held. */
bool inbound_keep_plain(struct peer *peer, struct mca_pml_comm_t *comm,
                        const struct wire_match *match, const void *data, size_t size);

/* The oldest message for this source and tag, or null. With the communicator's lock held. */
struct inbound *inbound_find(struct mca_pml_comm_t *comm, int source, int tag);
/* The same, removed from the queue, if it is plain and at most `room` bytes long. No lock is
 * held. */
struct inbound *inbound_take_plain(struct mca_pml_comm_t *comm, int source, int tag, size_t room);
void inbound_remove(struct mca_pml_comm_t *comm, struct inbound *inbound);
struct inbound *inbound_of_node(struct match_node *node);

void inbound_free(struct inbound *inbound);
/* Frees the early messages of all peers. */
void inbounds_fini(void);

/* A copy of the arrival that outlives the receive callback; of a part, without its payload.
 * Null: no memory, already reported. */
struct inbound *inbound_keep(const struct arrival *arrival);
/* An inbound to answer a refused arrival with. Null as above. */
struct inbound *inbound_refusal(const struct arrival *arrival);
/* Allocates room for a payload. False: no memory. */
bool inbound_make_room(struct inbound *inbound, size_t bytes);
size_t arrival_copy(const struct arrival *arrival, unsigned char *to);

/* hold: it waits for a receive and counts in flow control. release: it counts no more. With the
 * peer's lock held. */
void inbound_hold(struct inbound *inbound);
void inbound_release(struct inbound *inbound);
/* The same as release, with no lock held. */
void inbound_unhold(struct inbound *inbound);

/* Appends it to the unexpected queue. With the communicator's lock held. */
void inbound_enqueue(struct mca_pml_comm_t *comm, struct inbound *inbound);

/* Refuses messages, linked by `next`: their senders get a NACK, if they wait for an answer. */
void inbounds_refuse(struct inbound *refused);
void inbound_refuse_sender(struct peer *peer, struct wire_handle sender);

/* A receive ends early: drops the parts of its message that still arrive. False: it has none, or
 * the thread that copies the last one will end it. No lock is held. */
bool inbound_forget(struct peer *peer, const struct recv_request *receiver);

/* Frees a message that no receive can match any more. No lock is held. */
void inbound_drop(struct inbound *inbound);

/* Counts a bad header and fails the lane that it came on. Prints it the first time. */
void inbound_reject(mca_btl_base_module_t *btl, const char *what, uint64_t value);

/* --- rests on offer --------------------------------------------------------------------------- */

/* A message whose rest its sender offers (base/offer_word.h), at its receiver. */

/* In the list of its peer, whose lock guards it, until the message is whole. */
struct offered {
    struct offered *next;
    struct peer *peer;
    struct lane *lane;
    struct wire_offer offer;
    uint64_t size;                 /* of the message */
    struct inbound *assembly;      /* that its parts come to, and that knows the receiver; */
    struct recv_request *receiver; /* or the receiver that its pieces come to, when it has asked */
    /* The bytes from `from` on are copied, or were not. With the peer's lock held, which it
     * releases. */
    void (*taken)(struct offered *offered, uint64_t from, bool good);
    bool is_busy;   /* they are being copied: neither the message nor its receive ends meanwhile */
    bool is_futile; /* this process cannot copy them */
};

/* All that a peer offers. Guarded by its lock. */
struct peer_offers {
    struct peer *peer;
    struct offered *first;  /* the oldest */
    struct pending pending; /* looks at them */
    bool is_pending;
    uint64_t arrived;  /* how much of them had come when something came last, */
    uint64_t since_ns; /* and when that was */
};

/* Null: there is no lane for it, or no memory; then the sender moves all. With the peer's lock
 * held, as the next. */
struct offered *offered_new(struct peer *peer, const struct wire_offer *offer, uint64_t size,
                            void (*taken)(struct offered *offered, uint64_t from, bool good));
/* All its bytes are there, or its receive has ended. */
void offered_end(struct offered *offered);

#endif
