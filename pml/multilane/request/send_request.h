/* SPDX-License-Identifier: BSD-3-Clause */
/* A message on its way out, and the request that follows it where one is needed. */
#ifndef MULTILANE_SEND_REQUEST_H
#define MULTILANE_SEND_REQUEST_H

#include <stdatomic.h>

#include "match/comm.h"
#include "common/memory/memory.h"
#include "peer/peer_class.h"
#include "base/protocol.h"
#include "memory/device_source.h"
#include "request/request.h"
#include "memory/rma.h"
#include "lane/transfer.h"

/* What is to be sent where. Lives on the sender's stack, or in its request. */
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
    uint32_t mark, cost;            /* see flow.h */
    const struct route *route;      /* by which they were drawn: plans may change */
    struct wire_handle synchronous; /* set: an eager message asks for an ACK */
    struct memory memory;           /* whose the buffer is; of the host's the kind alone is set */
};

enum send_state {
    SEND_IDLE,
    SEND_STARTED,   /* handed to its protocol */
    SEND_ANNOUNCED, /* RTS is out: RTR, ACK or NACK may come */
    SEND_MOVING     /* RTR is here */
};

/* What a protocol may keep in a send. */
#define SEND_OWN_BYTES 32

struct send_request {
    mca_pml_base_send_request_t base; /* first, Open MPI looks into it */
    struct outgoing out;
    const struct route *route;
    const struct protocol *protocol;
    enum send_state state;
    _Atomic uint32_t ends; /* see request_ended */
    /* Things that must happen before it is complete. Its protocol is done with it, and, if
     * it has a handle, the answer is here, or the thread that has taken the handle says that none
     * comes. */
    _Atomic uint32_t unfinished;
    struct wire_handle handle;
    struct wire_handle receiver;
    struct transfer transfer;
    struct rma rma; /* of a get or put */
    struct pending pending;
    struct send_request *next_waiting; /* see send_queue.h */
    bool is_waiting;
    bool is_admitted; /* while it waits: the receiver has room, so that it waits for a lane */
    struct device_source source; /* of a message in device memory */
    _Atomic size_t unsent;       /* bytes of it that no lane has taken yet */
    /* The protocol that reads the buffer until it is told to stop; null: none. */
    const struct protocol *_Atomic held_by;
    _Alignas(8) unsigned char own[SEND_OWN_BYTES]; /* the protocol's, see send_request_own */
    bool counted;                                  /* see work_begins_for */
    uint8_t expecting; /* so many of the peer's lanes were told to expect the RTR */
};

OBJ_CLASS_DECLARATION(send_request_t);
typedef struct send_request send_request_t;

static inline struct send_request *send_request_of_transfer(struct transfer *transfer)
{
    return (struct send_request *) ((char *) transfer - offsetof(struct send_request, transfer));
}

/* The protocol's own part of the request. It is zero when the message is given to the protocol, and
 * when the protocol has ended it. */
static inline void *send_request_own(struct send_request *request)
{
    return request->own;
}

/* Where the whole message lies in one piece, in memory of the host's or, `*is_device`, of a
 * device's; null: in several. */
static inline char *send_request_place(const struct send_request *request, bool *is_device)
{
    *is_device = !request->out.data && request->source.view;
    return OPAL_UNLIKELY(*is_device) ? view_contiguous(request->source.view)
                                     : (char *) request->out.data;
}

/* Copies the whole message, packed. */
void outgoing_pack(const struct outgoing *out, void *to);

static inline void outgoing_copy(const struct outgoing *out, void *to)
{
    if (OPAL_LIKELY(out->data != NULL))
        memcpy(to, out->data, out->size);
    else if (out->size)
        outgoing_pack(out, to);
}

struct send_request *send_request_new(const struct outgoing *out, mca_pml_base_send_mode_t mode,
                                      bool persistent);
/* The state of a request whose message was not given to a protocol yet. */
void send_request_begin(struct send_request *request);

/* The message may go, in this way. */
void send_request_admitted(struct send_request *request, enum flow_verdict way);
/* Gives it to its protocol; LANE_AGAIN: to be tried again. */
int send_request_try(struct send_request *request);

bool send_request_is_buffered(const struct send_request *request);
/* All is done: gives back what it holds, and completes it for the user. */
void send_request_complete(struct send_request *request);
/* One of the things that the request waits for has happened. */
void send_request_step(struct send_request *request);
/* The RTR of this request is expected, on whatever lane it comes. */
void send_request_expect(struct send_request *request, bool expects);
/* Its message was not sent, and will not be: ends it with an MPI error class. */
void send_request_fail(struct send_request *request, int mpi_error);
/* Its receiver is lost, and will not answer. The request may have ended meanwhile, and be another
 * one: then the handle is not its own any more. */
void send_request_lost(struct send_request *request, struct wire_handle handle);
/* A lane reported an error of what it carried, and that was told. Ends the request where the loss
 * of its peer does not end the job. */
void send_request_broke(struct send_request *request);
void send_request_return(struct send_request *request);

/* Draws what the message is known by; `eager_mask` as of a route. */
static inline void outgoing_draw(struct outgoing *out, const struct route *route, size_t eager_mask)
{
    out->route = route;
    out->cost = flow_cost(out->size & eager_mask);
    peer_draw(out->peer, out->cost, &out->sequence, &out->mark);
}

/* Looks whose memory the buffer is now, once a message: what it was for an earlier one does not
 * count, as addresses are used again. */
static inline void outgoing_look(struct outgoing *out)
{
    const char *first = (const char *) out->buffer + out->datatype->super.true_lb;
    out->memory.kind = MEMORY_HOST;
    out->data = NULL;
    if (out->size == 0)
        return;
    memory_look(first, &out->memory);
    if (OPAL_LIKELY(out->memory.kind == MEMORY_HOST) &&
        datatype_is_contiguous(out->datatype, out->count))
        out->data = first;
}

static inline bool outgoing_init(struct outgoing *out, const void *buffer, size_t count,
                                 ompi_datatype_t *datatype, int destination, int tag,
                                 ompi_communicator_t *comm)
{
    out->comm = comm->c_pml_comm;
    out->peer = comm_peer(out->comm, destination);
    if (OPAL_UNLIKELY(!out->peer || !out->peer->reachable))
        return false;
    out->buffer = buffer;
    out->count = count;
    out->datatype = datatype;
    out->size = datatype->super.size * count;
    out->destination = destination;
    out->tag = tag;
    out->synchronous = (struct wire_handle){0};
    outgoing_look(out);
    return true;
}

/* What the plans call its memory. */
static inline enum class_buffer outgoing_buffer(const struct outgoing *out)
{
    if (OPAL_UNLIKELY(out->memory.kind != MEMORY_HOST))
        return !datatype_is_contiguous(out->datatype, out->count) ? CLASS_DEVICE_PACKED
               : peer_declines(out->peer)                         ? CLASS_DEVICE_DECLINED
                                                                  : CLASS_DEVICE;
    return out->data != NULL || out->size == 0 ? CLASS_CONTIGUOUS : CLASS_PACKED;
}

#endif
