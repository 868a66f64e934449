/* SPDX-License-Identifier: BSD-3-Clause */
/* A receive request: posted, matched, filled. */
#ifndef MULTILANE_RECV_REQUEST_H
#define MULTILANE_RECV_REQUEST_H

#include <stdatomic.h>
#include <string.h>

#include "common/memory/driver.h"
#include "match/inbound.h"
#include "request/request.h"
#include "base/protocol.h"
#include "memory/device.h"
#include "base/pending.h"

/* Bytes for the protocol's own data in a receive. */
#define RECV_OWN_BYTES (32 + WIRE_KEY_MAX)

/* The members that a short receive uses come first, up to `counted`. */
struct recv_request {
    mca_pml_base_recv_request_t base; /* first, Open MPI looks into it */
    struct match_node node;           /* in its communicator's queue of posted receives */
    struct peer *_Atomic peer;
    char *data;    /* where the first byte goes in a contiguous buffer in host memory; else null */
    size_t size;   /* of the message */
    size_t wanted; /* bytes of it that fit the buffer */
    _Atomic size_t received;   /* bytes that are there */
    _Atomic uint32_t ends;     /* see request_ended */
    uint32_t looks;            /* when it was posted: lane/waiting.h */
    bool matched;              /* guarded by the communicator's lock */
    bool counted;              /* see work_begins_for */
    _Atomic bool is_answering; /* complete, and the answer to the sender must leave */
    struct wire_handle handle;
    struct wire_handle sender;
    struct wire_handle timer;        /* set while a message that is timed arrives */
    bool may_have_lain;              /* before it was looked for; of a timed message */
    const struct protocol *protocol; /* chosen for an announced message, */
    const struct route *route;       /* and whose lanes a put to here takes */
    /* The protocol that may write to the buffer until it ends; null: none. */
    const struct protocol *_Atomic held_by;
    bool is_shared;          /* both ends copy the message: the sender cannot cancel it */
    struct device_sink sink; /* for a message that goes */
    struct rma rma;          /* of a get or put */
    struct offered *offered; /* what the sender of an RTS offers; or null: match/inbound.h */
    struct transfer transfer;
    opal_mutex_t lock;    /* guards the handle, claimed and promised */
    struct spans claimed; /* bytes that came as WIRE_DATA, also those still being copied */
    size_t promised;      /* bytes that have come or are being copied: `received` grows to it */
    bool is_summed;       /* what is got or put has this sum */
    uint32_t sum;
    /* Of so many bytes from the first on, while it has this handle: see sum_up_to. */
    uint32_t summed_sum;
    size_t summed;
    struct wire_handle summed_of;
    /* The protocol's. At the RTS it still holds what the last message left there. */
    _Alignas(8) unsigned char own[RECV_OWN_BYTES];
};

typedef struct recv_request recv_request_t;
OBJ_CLASS_DECLARATION(recv_request_t);

static inline struct recv_request *recv_request_of_node(struct match_node *node)
{
    return (struct recv_request *) ((char *) node - offsetof(struct recv_request, node));
}

/* Removes and returns the posted receive that matches the message; null: none. With the
 * communicator's lock held. */
static inline __opal_attribute_always_inline__ struct recv_request *
recv_request_take_posted(struct mca_pml_comm_t *comm, const struct wire_match *match)
{
    struct match_node *node = match_take_posted(&comm->posted, match->source, match->tag);
    if (!node)
        return NULL;
    struct recv_request *request = recv_request_of_node(node);
    request->matched = true;
    return request;
}

/* Is it still the receive of that handle? With its lock held. */
static inline bool recv_request_is(const struct recv_request *request, struct wire_handle handle)
{
    return request->handle.index == handle.index && request->handle.generation == handle.generation;
}

static inline struct recv_request *recv_request_of_transfer(struct transfer *transfer)
{
    return (struct recv_request *) ((char *) transfer - offsetof(struct recv_request, transfer));
}

/* The sender's peer; null before the match. Relaxed: recv_request_cancel reads it at any time;
 * every thread knew the peer before the match. */
static inline struct peer *recv_request_peer(const struct recv_request *request)
{
    return atomic_load_explicit(&request->peer, memory_order_relaxed);
}

/* The buffer, if the whole message goes there in one piece, in host memory or (*is_device)
 * device memory; else null. */
static inline char *recv_request_place(const struct recv_request *request, bool *is_device)
{
    *is_device = request->sink.view != NULL;
    return OPAL_UNLIKELY(*is_device) ? view_contiguous(request->sink.view) : request->data;
}

static inline struct recv_request *recv_request_of_sink(struct device_sink *sink)
{
    return (struct recv_request *) ((char *) sink - offsetof(struct recv_request, sink));
}

struct recv_request *recv_request_new(void *buffer, size_t count, ompi_datatype_t *datatype,
                                      int source, int tag, ompi_communicator_t *comm,
                                      bool persistent);
/* Resets a receive that has no message yet. */
static inline void recv_request_begin(struct recv_request *request)
{
    /* Relaxed, all: no other thread uses the request yet. */
    atomic_store_explicit(&request->ends, 0, memory_order_relaxed);
    request->looks = looks_now();
    request->matched = false;
    atomic_store_explicit(&request->is_answering, false, memory_order_relaxed);
    atomic_store_explicit(&request->peer, NULL, memory_order_relaxed);
    work_begins_for(&request->counted);
}

void recv_request_return(struct recv_request *request);

/* Initialises a request from the free list. */
static inline __opal_attribute_always_inline__ void
recv_request_init(struct recv_request *request, void *buffer, size_t count,
                  ompi_datatype_t *datatype, int source, int tag, ompi_communicator_t *comm,
                  bool persistent)
{
    request->base.req_base.req_type = MCA_PML_REQUEST_RECV;
    MCA_PML_BASE_RECV_REQUEST_INIT(&request->base, buffer, count, datatype, source, tag, comm,
                                   persistent);
    /* The PML has nothing to do with it until it is started. Relaxed: as in recv_request_begin. */
    atomic_store_explicit(&request->ends, persistent, memory_order_relaxed);
}

/* Takes over the match: source, tag, size, and how many bytes the buffer takes. */
void recv_request_matched(struct recv_request *request, const struct arrival *arrival);

/* recv_request_take (join/posting.h) for a whole message whose sender expects no answer, to any
 * buffer. */
void recv_request_take_packed(struct recv_request *request, struct peer *peer,
                              const struct wire_match *match, const unsigned char *data,
                              size_t size);

/* Writes a piece of the packed message to the buffer. */
extern __attribute__((visibility("hidden"))) void (*recv_request_write)(
    struct recv_request *request, size_t offset, const struct iovec *pieces, int count);
/* From now on it checks payloads that are handed up unchecked (lane/summed.h). The receive of a
 * wrong one ends in an error, as where its sender is lost. */
void recv_requests_check(void);
/* So many more bytes have arrived; completes the receive with the last ones. */
void recv_request_received(struct recv_request *request, size_t bytes);
/* All bytes have arrived: sends word to the sender, if it expects that, and completes. */
void recv_request_finish(struct recv_request *request);
void recv_request_complete(struct recv_request *request);
/* Ends a receive without a message, with an MPI error class. No thread copies to it. */
void recv_request_fail(struct recv_request *request, int mpi_error);
/* Its peer is lost. Ends the receive of that handle, or leaves that to the last thread that copies
 * to it. */
void recv_request_lost(struct recv_request *request, struct wire_handle handle);

/* Call before so many bytes are copied by this process's own doing: it does not end meanwhile, not
 * for a lost peer either. False: it has ended, or that is more than is missing. */
bool recv_request_hold(struct recv_request *request, size_t bytes);
/* They were not copied. False: the peer is lost, and the caller ends the receive. */
bool recv_request_let_go(struct recv_request *request, size_t bytes);

/* All bytes have arrived: sends the ACK on this lane, then completes. */
void recv_request_acknowledge(struct recv_request *request, struct lane *lane);
/* The gets of a message have failed: it asks for the message by sends. Until then a cancel waits
 * for their end (held_by). */
void recv_request_get_failed(struct recv_request *request);
/* All has come by gets, puts or copies, over this lane, or several (null): has it the sum that was
 * announced? Of device memory, and of a message that is cut short, that is not known. */
bool recv_request_is_right(struct recv_request *request, struct lane *lane);
/* Asks for the message as active messages (RTR). */
void recv_request_ask(struct recv_request *request);
/* The same of one that has a handle, and has promised all bytes: they come once more, over the same
 * bytes. The lane must not be overtaken. */
void recv_request_ask_again(struct recv_request *request, struct lane *lane);
/* Makes the handle by which the sender answers. False: the receive has ended with an error; there
 * is no memory, which the sender is told, or it is lost. */
bool recv_request_can_answer(struct recv_request *request);
/* Sends an RTR. The receive may have ended as for recv_request_can_answer. */
void recv_request_send_rtr(struct recv_request *request, struct lane *lane, uint32_t method,
                           const struct wire_key *key, const void *key_bytes);

/* WIRE_DATA, WIRE_FIN, WIRE_FIN_SUMMED, WIRE_SO_FAR and WIRE_CANCEL. False: they fit no
 * request. */
bool recv_request_data(struct peer *peer, const struct wire_data *data,
                       const struct arrival *arrival);
bool recv_request_put(struct peer *peer, const struct wire_fin *fin);
bool recv_request_put_summed(struct peer *peer, const struct wire_fin_summed *summed);
bool recv_request_so_far(struct peer *peer, const struct wire_fin *so_far);
bool recv_request_cancelled(struct peer *peer, const struct wire_fin *fin);
/* As recv_request_hold, for the bytes of a FIN. False: it is not of this receive. */
bool recv_request_promise(struct recv_request *request, const struct wire_fin *fin);

/* The last step of a receive that holds nothing to release. */
static inline __opal_attribute_always_inline__ void recv_request_end(struct recv_request *request,
                                                                     size_t size, size_t wanted)
{
    ompi_request_t *ompi = &request->base.req_base.req_ompi;
    ompi->req_status._ucount = size;
    if (OPAL_UNLIKELY(size > wanted))
        ompi->req_status.MPI_ERROR = MPI_ERR_TRUNCATE;
    work_ends_for(&request->counted);
    request->base.req_base.req_pml_complete = true;
    request_complete(ompi);
    if (request_ended(&request->ends))
        recv_request_return(request);
}

/* recv_request_take for the most frequent case: a whole message whose sender expects no answer. */
static inline __opal_attribute_always_inline__ void
recv_request_take_whole(struct recv_request *request, struct peer *peer,
                        const struct wire_match *match, const unsigned char *data, size_t size)
{
    mca_pml_base_request_t *base = &request->base.req_base;
    const ompi_datatype_t *datatype = base->req_datatype;
    if (OPAL_UNLIKELY(device_memory_possible ||
                      !datatype_is_contiguous(datatype, base->req_count))) {
        recv_request_take_packed(request, peer, match, data, size);
        return;
    }
    size_t room = datatype->super.size * base->req_count;
    size_t wanted = size < room ? size : room;
    base->req_ompi.req_status.MPI_SOURCE = match->source;
    base->req_ompi.req_status.MPI_TAG = match->tag;
    base->req_proc = peer->proc;
    request->base.req_bytes_packed = size;
    if (OPAL_LIKELY(wanted))
        memcpy((char *) base->req_addr + datatype->super.true_lb, data, wanted);
    recv_request_end(request, size, wanted);
}

#endif
