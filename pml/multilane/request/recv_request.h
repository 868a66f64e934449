/* SPDX-License-Identifier: BSD-3-Clause */
/* A receive: posted, matched, filled. */
#ifndef MULTILANE_RECV_REQUEST_H
#define MULTILANE_RECV_REQUEST_H

#include <stdatomic.h>
#include <string.h>

#include "match/comm.h"
#include "common/memory/driver.h"
#include "match/inbound.h"
#include "request/request.h"
#include "base/protocol.h"
#include "memory/device_sink.h"
#include "memory/rma.h"
#include "lane/transfer.h"
#include "base/work.h"

/* What a protocol may keep in a receive. */
#define RECV_OWN_BYTES (32 + WIRE_KEY_MAX)

/* What a short receive needs lies close together, up to counted. */
struct recv_request {
    mca_pml_base_recv_request_t base; /* first, Open MPI looks into it */
    struct match_node node;           /* in its communicator's queue of posted receives */
    struct peer *_Atomic peer;
    char *data;    /* where the first byte goes in a contiguous buffer of the host's, else null */
    size_t size;   /* of the message */
    size_t wanted; /* bytes of it that fit the buffer */
    _Atomic size_t received; /* bytes that are there */
    _Atomic uint32_t ends;   /* see request_ended */
    bool matched;            /* guarded by the communicator's lock */
    bool has_convertor;
    bool counted;              /* see work_begins_for */
    _Atomic bool is_answering; /* its message is here, the answer to the sender is to leave */
    struct wire_handle handle;
    struct wire_handle sender;
    const struct protocol *protocol; /* that the sender has proposed */
    /* The protocol that may write to the buffer until it has ended; where it has `stop`, it
     * alone brings the bytes meanwhile. Null: none. */
    const struct protocol *_Atomic held_by;
    bool is_shared;          /* both ends copy the message now, which the sender cannot cancel */
    struct device_sink sink; /* of a message that goes to device memory */
    struct rma rma;          /* of a get or put */
    struct transfer transfer;
    opal_mutex_t lock;    /* guards the convertor, the handle and claimed */
    struct spans claimed; /* bytes that have come as WIRE_DATA, or are being copied */
    _Alignas(8) unsigned char own[RECV_OWN_BYTES]; /* the protocol's, see recv_request_own */
};

typedef struct recv_request recv_request_t;
OBJ_CLASS_DECLARATION(recv_request_t);

static inline struct recv_request *recv_request_of_node(struct match_node *node)
{
    return (struct recv_request *) ((char *) node - offsetof(struct recv_request, node));
}

/* The receive that was posted for this message, taken out of its queue; null if none was. With the
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

static inline struct recv_request *recv_request_of_transfer(struct transfer *transfer)
{
    return (struct recv_request *) ((char *) transfer - offsetof(struct recv_request, transfer));
}

/* The protocol's own part of the request, which is as the last message has left it when the RTS
 * comes. */
static inline void *recv_request_own(struct recv_request *request)
{
    return request->own;
}

/* Does a protocol alone bring the bytes, until it has stopped? Relaxed: it is asked of what waits
 * for a lost peer, and the protocol's end looks for that too. */
static inline bool recv_request_is_held(const struct recv_request *request)
{
    const struct protocol *holder = atomic_load_explicit(&request->held_by, memory_order_relaxed);
    return OPAL_UNLIKELY(holder != NULL) && holder->stop;
}

/* The peer whose message it takes; null before. Relaxed: every thread knew the peer before the
 * receive met its message, and recv_request_cancel reads it at any time. */
static inline struct peer *recv_request_peer(const struct recv_request *request)
{
    return atomic_load_explicit(&request->peer, memory_order_relaxed);
}

/* Where the whole message goes in one piece, in memory of the host's or, `*is_device`, of a
 * device's; null: in several. */
static inline char *recv_request_place(const struct recv_request *request, bool *is_device)
{
    *is_device = request->sink.view != NULL;
    return OPAL_UNLIKELY(*is_device) ? view_contiguous(request->sink.view) : request->data;
}

struct recv_request *recv_request_new(void *buffer, size_t count, ompi_datatype_t *datatype,
                                      int source, int tag, ompi_communicator_t *comm,
                                      bool persistent);
/* The state of a receive that has no message yet. */
static inline void recv_request_begin(struct recv_request *request)
{
    /* Relaxed: no other thread knows of this life of the request yet. */
    atomic_store_explicit(&request->ends, 0, memory_order_relaxed);
    request->matched = false;
    atomic_store_explicit(&request->is_answering, false, memory_order_relaxed);
    atomic_store_explicit(&request->peer, NULL, memory_order_relaxed);
    work_begins_for(&request->counted);
}

void recv_request_return(struct recv_request *request);

/* What recv_request_new does to one off the list. */
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

/* Sets what the match has told, and how much of the message the buffer takes. */
void recv_request_met(struct recv_request *request, const struct arrival *arrival);

/* The message that the receive was matched with. No lock is held; the request may be complete, and
 * gone, when it returns. */
void recv_request_take(struct recv_request *request, const struct arrival *arrival);

/* The same for a whole message whose sender does not wait for an answer, if the buffer is no
 * contiguous one of the host's. */
void recv_request_take_packed(struct recv_request *request, struct peer *peer,
                              const struct wire_match *match, const unsigned char *data,
                              size_t size);

/* Puts a piece of the packed message where it belongs. */
void recv_request_write(struct recv_request *request, size_t offset, const struct iovec *pieces,
                        int count);
/* So many more bytes are there; completes the receive when they are all. */
void recv_request_received(struct recv_request *request, size_t bytes);
/* All bytes are there: tells the sender, if it waits for that, and the user. */
void recv_request_finish(struct recv_request *request);
void recv_request_complete(struct recv_request *request);
/* It gets no message: ends it with an MPI error class. */
void recv_request_fail(struct recv_request *request, int mpi_error);

/* All bytes are there: tells the sender by this lane, then the user. */
void recv_request_acknowledge(struct recv_request *request, struct lane *lane);
/* Around the gets of a message, as cancelling it has to wait for them. After a failure the message
 * is asked for. */
void recv_request_get_begins(struct recv_request *request, const struct protocol *protocol);
void recv_request_get_failed(struct recv_request *request);
/* Asks for the bytes from `offset` on as active messages. */
void recv_request_ask(struct recv_request *request, size_t offset);
/* The same on a lane that has carried what must not be overtaken. */
void recv_request_ask_on(struct recv_request *request, struct lane *lane, size_t offset);
/* False: there is no memory for the handle by which the sender answers. The receive has ended in
 * an error then, and the sender was told. */
bool recv_request_can_answer(struct recv_request *request);
/* The same goes for these: the receive may have ended. */
void recv_request_send_rtr(struct recv_request *request, struct lane *lane, size_t offset,
                           uint32_t method, const struct wire_key *key, const void *key_bytes);

/* Messages of the sender. False: they do not fit any request of ours. */
bool recv_request_data(struct peer *peer, const struct wire_data *data,
                       const struct arrival *arrival);
bool recv_request_put(struct peer *peer, const struct wire_fin *fin);
bool recv_request_cancelled(struct peer *peer, const struct wire_fin *fin);

/* The last step of a receive that has nothing to give back. */
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

/* As recv_request_take, for a whole message whose sender does not wait for an answer. Most are, and
 * all that they need is here. */
static inline __opal_attribute_always_inline__ void
recv_request_take_whole(struct recv_request *request, struct peer *peer,
                        const struct wire_match *match, const unsigned char *data, size_t size)
{
    mca_pml_base_request_t *base = &request->base.req_base;
    const ompi_datatype_t *datatype = base->req_datatype;
    if (OPAL_UNLIKELY(driver_is_loaded || !datatype_is_contiguous(datatype, base->req_count))) {
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
