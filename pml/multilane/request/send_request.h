/* SPDX-License-Identifier: BSD-3-Clause */
/* A message to send, and the request for it where one is needed. */
#ifndef MULTILANE_SEND_REQUEST_H
#define MULTILANE_SEND_REQUEST_H

#include <stdatomic.h>

#include "match/comm.h"
#include "common/memory/memory.h"
#include "plan/peer_class.h"
#include "contact/peer_lanes.h"
#include "base/protocol.h"
#include "memory/device.h"
#include "request/request.h"

/* Describes a message to send. On the stack of the caller, or in its request. */
struct outgoing {
    struct mca_pml_comm_t *comm;
    struct peer *peer;
    const char *data; /* the first byte of a contiguous message in host memory, else null */
    const void *buffer;
    size_t count;
    ompi_datatype_t *datatype;
    size_t size; /* in bytes, packed */
    int destination;
    int tag;
    uint32_t sequence;
    uint32_t mark, cost;       /* see flow.h */
    const struct route *route; /* the route at that time: plans may change */
    struct wire_handle answer; /* set: an eager message asks for an ACK, or any for its time */
    struct memory memory;      /* the buffer's memory; for host memory only `kind` is set */
};

/* What it offers to its receiver: request/pieces.h. */
struct send_offer {
    struct multilane_control *control; /* its word, of this lane; null: nothing is offered */
    struct lane *lane;
    uint64_t line;
    uint32_t tag;
    bool is_open; /* the word is not the sender's alone */
};

enum send_state {
    SEND_IDLE,
    SEND_STARTED,   /* handed to its protocol */
    SEND_ANNOUNCED, /* the RTS has left: RTR, ACK or NACK may come */
    SEND_MOVING     /* the RTR has come */
};

/* Bytes for the protocol's own data in a send. */
#define SEND_OWN_BYTES 32

struct send_request {
    mca_pml_base_send_request_t base; /* first, Open MPI looks into it */
    struct outgoing out;
    const struct route *route;
    const struct protocol *protocol;
    _Atomic enum send_state state; /* see send_state_of */
    _Atomic uint32_t ends;         /* see request_ended */
    /* Steps left until completion: the protocol is done; and, with a handle, the answer has
     * come, or the thread that removed the handle says that none will. */
    _Atomic uint32_t unfinished;
    struct wire_handle handle;
    struct wire_handle receiver;
    struct transfer transfer;
    struct rma rma; /* of a get or put */
    struct send_offer offer;
    struct pending pending;
    struct send_request *next_waiting; /* see send_start.c */
    bool is_waiting;
    bool is_admitted;            /* while it waits: the receiver has room, the lane has none */
    struct device_source source; /* for a message in device memory */
    _Atomic size_t unsent;       /* bytes that no lane has taken yet */
    /* The protocol's: zero when a protocol starts, and again when it has ended. */
    _Alignas(8) unsigned char own[SEND_OWN_BYTES];
    bool counted;      /* see work_begins_for */
    bool is_under_way; /* counted by its peer */
    bool is_summed;    /* its RTS has announced a sum: */
    uint32_t sum;
    size_t summed;           /* bytes that it is of, so far */
    _Atomic bool is_putting; /* see send_request_ready */
    size_t again;            /* bytes to be sent once the puts have ended */
};

OBJ_CLASS_DECLARATION(send_request_t);
typedef struct send_request send_request_t;

static inline struct send_request *send_request_of_transfer(struct transfer *transfer)
{
    return (struct send_request *) ((char *) transfer - offsetof(struct send_request, transfer));
}

/* Relaxed, both: the lock of the handles orders the threads that find the request by its handle. */
static inline enum send_state send_state_of(const struct send_request *request)
{
    return atomic_load_explicit(&request->state, memory_order_relaxed);
}

static inline void send_state_set(struct send_request *request, enum send_state state)
{
    atomic_store_explicit(&request->state, state, memory_order_relaxed);
}

/* True for one caller: of the threads that have the RTR, a copy of it, or know of the peer's end.
 */
static inline bool send_state_leave_announced(struct send_request *request, enum send_state to)
{
    enum send_state announced = SEND_ANNOUNCED;
    return atomic_compare_exchange_strong_explicit(&request->state, &announced, to,
                                                   memory_order_relaxed, memory_order_relaxed);
}

/* Are its bytes read from a device, and not from a copy in host memory? */
static inline bool send_request_is_of_device(const struct send_request *request)
{
    return !request->out.data && request->source.view;
}

/* The buffer, if the whole message lies there in one piece, in host memory or (*is_device)
 * device memory; else null. */
static inline char *send_request_place(const struct send_request *request, bool *is_device)
{
    *is_device = send_request_is_of_device(request);
    return OPAL_UNLIKELY(*is_device) ? view_contiguous(request->source.view)
                                     : (char *) request->out.data;
}

/* Packs the whole message to `to`. */
void outgoing_pack(const struct outgoing *out, void *to);

static inline void outgoing_copy(const struct outgoing *out, void *to)
{
    if (OPAL_LIKELY(out->data != NULL))
        memcpy(to, out->data, out->size);
    else if (out->size)
        outgoing_pack(out, to);
}

/* To what lane_reserve gave. */
static inline void outgoing_copy_to_lane(const struct outgoing *out, const struct lane *lane,
                                         void *to)
{
    if (OPAL_LIKELY(out->data != NULL))
        lane->copy(to, out->data, out->size);
    else if (out->size)
        outgoing_pack(out, to);
}

struct send_request *send_request_new(const struct outgoing *out, mca_pml_base_send_mode_t mode,
                                      bool persistent);
/* Resets a request before its protocol starts. */
void send_request_begin(struct send_request *request);

/* Flow control has admitted the message in this way. */
void send_request_admitted(struct send_request *request, enum flow_verdict way);
/* Starts its protocol; LANE_AGAIN: try again later. */
int send_request_try(struct send_request *request);

bool send_request_is_buffered(const struct send_request *request);
/* The send is done: releases what it holds, and completes. */
void send_request_complete(struct send_request *request);
/* One step of `unfinished` is done. */
void send_request_step(struct send_request *request);
/* Goes on with its sum, up to there. */
void send_request_sum(struct send_request *request, size_t end);
/* The message was not sent and never will be: ends with an MPI error class. */
void send_request_fail(struct send_request *request, int mpi_error);
/* The receiver is lost. The request may have ended and been used again: then `handle` is not its
 * own any more, and nothing is done. */
void send_request_lost(struct send_request *request, struct wire_handle handle);
/* A lane has failed with part of the message, which was reported. Ends the request, where that
 * does not end the job. */
void send_request_broke(struct send_request *request);
void send_request_return(struct send_request *request);

/* Draws number and mark of the message; `eager_mask` as in its route. */
static inline void outgoing_draw(struct outgoing *out, const struct route *route, size_t eager_mask)
{
    out->route = route;
    out->cost = flow_cost(out->size & eager_mask);
    peer_draw(out->peer, out->cost, &out->sequence, &out->mark);
}

/* Finds the kind of the buffer's memory, for each message anew: addresses are used again. */
static inline void outgoing_look(struct outgoing *out)
{
    const char *first = (const char *) out->buffer + out->datatype->super.true_lb;
    out->memory.kind = MEMORY_HOST;
    out->data = NULL;
    if (out->size == 0)
        return;
    memory_look(first, &out->memory);
    if (OPAL_UNLIKELY(out->memory.kind != MEMORY_HOST))
        peer_use_device(out->peer, &out->memory);
    else if (datatype_is_contiguous(out->datatype, out->count))
        out->data = first;
}

static inline bool outgoing_init(struct outgoing *out, const void *buffer, size_t count,
                                 ompi_datatype_t *datatype, int destination, int tag,
                                 ompi_communicator_t *comm)
{
    out->comm = comm->c_pml_comm;
    out->peer = comm_peer(out->comm, destination);
    if (OPAL_UNLIKELY(!out->peer || !peer_is_reachable(out->peer)))
        return false;
    out->buffer = buffer;
    out->count = count;
    out->datatype = datatype;
    out->size = datatype->super.size * count;
    out->destination = destination;
    out->tag = tag;
    out->answer = (struct wire_handle){0};
    outgoing_look(out);
    return true;
}

/* Of a contiguous message in host memory: the buffer type of one that is started, not waited for.
 */
static inline enum class_buffer outgoing_left_buffer(const struct outgoing *out)
{
    return OPAL_UNLIKELY(out->size >= CLASS_LEAVING_BYTES) &&
                   class_planned(peer_class_now(out->peer), CLASS_LEAVING)
               ? CLASS_LEAVING
               : CLASS_CONTIGUOUS;
}

/* The buffer type in the words of the plans. */
static inline enum class_buffer outgoing_buffer(const struct outgoing *out)
{
    if (OPAL_UNLIKELY(out->memory.kind != MEMORY_HOST))
        return datatype_is_contiguous(out->datatype, out->count) ? CLASS_DEVICE
                                                                 : CLASS_DEVICE_PACKED;
    return out->data != NULL || out->size == 0 ? CLASS_CONTIGUOUS : CLASS_PACKED;
}

/* --- send_start.c ----------------------------------------------------------------------------- */

/* Starts a send, keeps those that wait for room, and handles the receiver's answers and MPI_Cancel.
 */

/* The queue of each peer: messages that wait for room at the receiver (flow.h) or on a lane. */

/* A peer is contacted: starts with the units that it has promised. */
void send_queue_begin(struct peer *peer, uint32_t promised);

/* Does a message to this peer wait? Relaxed: sending past it is harmless, order comes from the
 * numbers. */
static inline bool send_queue_any(const struct peer *peer)
{
    return atomic_load_explicit(&peer->waiting, memory_order_relaxed) != NULL;
}
/* Removes a request from the queue. False: it was not in it. */
bool send_queue_withdraw(struct send_request *request);
/* The peer is lost: ends the waiting sends with an error. No lock is held. */
void send_queue_lost(struct peer *peer);
/* WIRE_CREDIT: takes over the limits. False: impossible limits. */
bool send_queue_credit(struct peer *peer, const struct wire_credit *credit);

/* Starts the send; `is_numbered`: out.sequence is drawn already; `leaves`: the caller does not wait
 * for its end. An error leaves the request
 * unstarted. */
int send_request_start(struct send_request *request, bool is_numbered, bool leaves);

/* RTR; ACK or (not `taken`) NACK. False: they fit no request. */
bool send_request_ready(struct peer *peer, struct lane *lane, const struct wire_rtr *rtr,
                        const unsigned char *key);
bool send_request_acknowledged(struct peer *peer, struct wire_handle handle, bool taken);

int send_request_cancel(ompi_request_t *ompi, int flag);

#endif
