/* SPDX-License-Identifier: BSD-3-Clause */
/* A receive: posted, matched, filled. */
#ifndef MULTILANE_RECV_REQUEST_H
#define MULTILANE_RECV_REQUEST_H

#include <string.h>

#include "match/comm.h"
#include "common/memory/driver.h"
#include "match/inbound.h"
#include "request/request.h"
#include "request/rma.h"
#include "lane/transfer.h"
#include "base/work.h"

struct slot;
struct view;

/* What a short receive needs lies close together, up to counted. */
struct recv_request {
    mca_pml_base_recv_request_t base; /* first, Open MPI looks into it */
    struct match_node node;           /* in its communicator's queue of posted receives */
    struct peer *peer;
    char *data;      /* where the first byte goes in a contiguous buffer of the host's, else null */
    size_t size;     /* of the message */
    size_t wanted;   /* bytes of it that fit the buffer */
    size_t received; /* atomic: bytes that are there */
    uint32_t ends;   /* see request_ended */
    bool matched;    /* guarded by the communicator's lock */
    bool has_convertor;
    bool in_ring;      /* atomic: rndv-ring may write to the buffer */
    bool in_get;       /* atomic: a get may, which is never told to stop */
    bool counted;      /* see request_work_begins */
    bool is_answering; /* atomic: its message is here, the answer to the sender is to leave */
    struct wire_handle handle;
    struct wire_handle sender;
    struct view *view;                 /* of device memory, else null; see device_memory.h */
    struct multilane_control *control; /* of rndv-both, while chunks are copied */
    struct lane *control_lane;         /* what it is a line of */
    struct rma rma;                    /* of a get or put */
    struct transfer transfer;
    opal_mutex_t lock;     /* guards the convertor, the handle and claimed */
    struct spans claimed;  /* bytes that have come as WIRE_DATA, or are being copied */
    uint32_t control_ends; /* atomic: our end has copied its last chunk, and somebody the last; of
                            * rndv-ring: the RTR is out, and the ring is done */
    /* Of device memory: */
    int ring_status;        /* of rndv-ring, once it is done */
    uint32_t copies;        /* atomic: under way, and one more as long as pieces may come */
    bool no_more;           /* atomic: none will come, whoever says so first */
    struct slot *filling;   /* takes the next piece; guarded by lock */
    uint64_t device_remote; /* of rndv_device: byte 0 at the sender, and the key of its memory */
    unsigned char device_key[WIRE_KEY_MAX];
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

/* Relaxed: it is asked of what waits for a lost peer, and the ring's end looks for that too. */
static inline bool recv_request_in_ring(const struct recv_request *request)
{
    return __atomic_load_n(&request->in_ring, __ATOMIC_RELAXED);
}

struct recv_request *recv_request_new(void *buffer, size_t count, ompi_datatype_t *datatype,
                                      int source, int tag, ompi_communicator_t *comm,
                                      bool persistent);
/* The state of a receive that has no message yet. */
void recv_request_begin(struct recv_request *request);
/* Looks for a message that has come already; else posts the receive. */
void recv_request_start(struct recv_request *request);
/* Both at once, with less to do for most. Null: no memory. */
struct recv_request *recv_request_post(void *buffer, size_t count, ompi_datatype_t *datatype,
                                       int source, int tag, ompi_communicator_t *comm);
void recv_request_return(struct recv_request *request);

/* Sets what the match has told, and how much of the message the buffer takes. */
void recv_request_match(struct recv_request *request, const struct arrival *arrival);

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
void recv_request_get_begins(struct recv_request *request);
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
    request_work_ends(&request->counted);
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
