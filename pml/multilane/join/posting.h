/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages and receives find each other: MPI's order, messages in parts, receives. */
#ifndef MULTILANE_POSTING_H
#define MULTILANE_POSTING_H

#include "match/inbound.h"
#include "request/recv_request.h"

/* --- order.c ---------------------------------------------------------------------------------- */

/* Keeps MPI's order of the messages of a peer over all lanes: delivers each in its turn, to its
 * receive or to the unexpected queue. */

/* Handles an arrived whole message or RTS, in any order. The caller owns the arrival, which is
 * invalid on return. No lock is held. */
void message_arrived(struct arrival *arrival);

/* Moves the messages that came for this communicator before it was made. With the component's
 * lock held. */
void order_adopt_orphans(struct mca_pml_comm_t *comm);

/* No lane overtakes another by so many messages. */
#define EARLY_MAX (1 << 24)

/* --- order.c: messages in parts --------------------------------------------------------------- */

/* Joins the parts of eager messages. */

/* Handles an arrived part, in any order. The caller owns the arrival. No lock is held. */
void part_arrived(struct arrival *part);

/* Is this a part of a message that has its receive? */
bool part_is_awaited(struct peer *peer, uint32_t sequence);

/* The peer is lost: ends the receives of messages with missing parts. No lock is held. */
void assemblies_lost(struct peer *peer);

/* Frees what waits for parts that never came, when MPI ends. */
void assemblies_fini(void);

/* --- posting.c -------------------------------------------------------------------------------- */

/* Receives a matched message. One that its sender has announced it proposes to move in a way that
 * it has chosen without knowing the memory that it goes to, and says what its own is; the receiver
 * knows both, and chooses. */

/* No lock is held; the request may be complete and freed on return. */
void recv_request_take(struct recv_request *request, const struct arrival *arrival);

/* Gives a kept message to its receive. */

/* Gives the message to the matched receive. Frees the inbound, now or with its last part. True: it
 * had not come whole. No lock is held. */
bool inbound_take(struct inbound *inbound, struct recv_request *receiver);

/* The same for a message with missing parts: moves what has gathered; later parts follow. With
 * the peer's lock held. */
void inbound_attach(struct inbound *inbound, struct recv_request *receiver);

/* A blocking receive into a contiguous buffer in host memory, while its message is near, in a
 * process with one thread: it needs no request. It stands behind all receives that are posted, and
 * becomes one of them (direct_post) before another is posted, before anything but a whole message
 * that fits is matched, and when it has waited for long. */
struct direct_receive {
    ompi_communicator_t *comm;
    void *buffer;
    size_t count;
    ompi_datatype_t *datatype;
    size_t room; /* in bytes */
    int source;  /* a rank */
    int tag;
    uint32_t looks;               /* when it began to wait: lane/waiting.h */
    bool is_over;                 /* one of these: */
    bool is_received;             /* status is set */
    struct recv_request *request; /* it waits on; */
    ompi_status_public_t status;  /* else no memory was left */
};

/* That of this process; null: none. */
extern __attribute__((visibility("hidden"))) struct direct_receive *direct_receive;

void direct_post_now(void);

/* Posts it, if there is one. */
static inline void direct_post(void)
{
    if (OPAL_UNLIKELY(direct_receive != NULL))
        direct_post_now();
}

/* Is it to be posted before a whole message of this size is matched? */
static inline bool direct_is_short_for(size_t size)
{
    return direct_receive && size > direct_receive->room;
}

/* Gives it a whole message, which fits and no posted receive matches. False: it is for another. */
static inline bool direct_take(const struct mca_pml_comm_t *comm, const struct wire_match *match,
                               const void *data, size_t size)
{
    struct direct_receive *to = direct_receive;
    if (!to || to->comm != comm->ompi || to->source != match->source ||
        (to->tag != match->tag && (to->tag != MATCH_ANY || match->tag < 0)))
        return false;
    if (size)
        memcpy((char *) to->buffer + to->datatype->super.true_lb, data, size);
    to->status = (ompi_status_public_t){.MPI_SOURCE = match->source,
                                        .MPI_TAG = match->tag,
                                        .MPI_ERROR = MPI_SUCCESS,
                                        ._ucount = size};
    to->is_over = to->is_received = true;
    direct_receive = NULL;
    return true;
}

/* Waits until it is over: for a short while before it is posted. */
void direct_wait(struct direct_receive *receive, struct lane *lane);

/* Can a receive of this tag be direct? Not where a thread may look for it among those that are
 * posted, where it could only fail, or where waiting must not keep the processor. */
bool direct_can_be(const ompi_communicator_t *comm, int tag, const struct lane *lane);

/* Takes a message that has come, or posts the receive. */
void receive_start(struct recv_request *request);
/* Makes and starts a receive, by a short path where possible. Null: no memory. */
struct recv_request *receive_post(void *buffer, size_t count, ompi_datatype_t *datatype, int source,
                                  int tag, ompi_communicator_t *comm);

#endif
