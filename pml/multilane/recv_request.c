/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a receive. */
#include "recv_request.h"

#include <string.h>

#include "common/compat/tsan.h"
#include "device_memory.h"
#include "inbound.h"
#include "lost.h"
#include "multilane.h"
#include "protocol/protocol.h"
#include "request.h"
#include "send_request.h"
#include "stripe.h"
#include "work.h"

/* Does what MCA_PML_BASE_RECV_REQUEST_FINI does, to a convertor only where there is one. */
static inline __opal_attribute_always_inline__ void request_return(struct recv_request *request)
{
    if (OPAL_UNLIKELY(request->has_convertor)) {
        opal_convertor_cleanup(&request->base.req_base.req_convertor);
        request->has_convertor = false;
    }
    OMPI_REQUEST_FINI(&request->base.req_base.req_ompi);
    OBJ_RELEASE(request->base.req_base.req_comm);
    OMPI_DATATYPE_RELEASE(request->base.req_base.req_datatype);
    tsan_list_return(&mca_pml_base_recv_requests, (opal_free_list_item_t *) request);
}

void recv_request_return(struct recv_request *request)
{
    request_return(request);
}

static int recv_request_free(ompi_request_t **ompi)
{
    struct recv_request *request = (struct recv_request *) *ompi;
    tsan_acquire(request); /* request_complete */
    request->base.req_base.req_free_called = true;
    if (request_ended(&request->ends))
        request_return(request);
    *ompi = MPI_REQUEST_NULL;
    if (OPAL_UNLIKELY(request_any_unsent()))
        request_move_on(); /* of a wait or test that found it complete */
    return OMPI_SUCCESS;
}

static int recv_request_cancel(ompi_request_t *ompi, int complete)
{
    struct recv_request *request = (struct recv_request *) ompi;
    struct mca_pml_comm_t *comm = request->base.req_base.req_comm->c_pml_comm;
    (void) complete;

    OPAL_THREAD_LOCK(&comm->lock);
    bool can_cancel = !request_is_complete(ompi) && !request->matched;
    if (can_cancel) {
        match_remove(&comm->posted, &request->node);
        request->matched = true;
        request->size = request->wanted = 0;
    }
    OPAL_THREAD_UNLOCK(&comm->lock);

    /* Relaxed: the peer was known to all threads before the receive met it. */
    struct peer *peer = __atomic_load_n(&request->peer, __ATOMIC_RELAXED);
    /* What is matched completes as it would have; but from a dead peer nothing comes any more. */
    if (!can_cancel &&
        (request_is_complete(ompi) || !peer || compat_proc_is_active(peer->proc) ||
         __atomic_load_n(&request->in_get, __ATOMIC_ACQUIRE) || /* recv_request_get_failed */
         __atomic_load_n(&request->is_answering, __ATOMIC_RELAXED)))
        return OMPI_SUCCESS;
    if (!can_cancel && recv_request_in_ring(request)) { /* it ends with the ring */
        rndv_ring_stop(peer, false);
        return OMPI_SUCCESS;
    }
    if (!can_cancel)
        inbound_forget(peer, request);
    ompi->req_status._cancelled = true;
    recv_request_complete(request);
    return OMPI_SUCCESS;
}

static void recv_request_construct(struct recv_request *request)
{
    ompi_request_t *ompi = &request->base.req_base.req_ompi;
    ompi->req_start = module_start;
    ompi->req_free = recv_request_free;
    ompi->req_cancel = recv_request_cancel;
    request->base.req_base.req_type = MCA_PML_REQUEST_RECV;
    request->handle = (struct wire_handle){0};
    request->rma.count = 0;
    request->has_convertor = false;
    request->control = NULL;
    request->in_ring = false;
    request->in_get = false;
    request->claimed = (struct spans){0};
    request->view = NULL;
    OBJ_CONSTRUCT(&request->lock, opal_mutex_t);
    tsan_release(request); /* tsan_list_get */
}

static void recv_request_destruct(struct recv_request *request)
{
    OBJ_DESTRUCT(&request->lock);
}

OBJ_CLASS_INSTANCE(recv_request_t, mca_pml_base_recv_request_t, recv_request_construct,
                   recv_request_destruct);

static inline __opal_attribute_always_inline__ void
request_init(struct recv_request *request, void *buffer, size_t count, ompi_datatype_t *datatype,
             int source, int tag, ompi_communicator_t *comm, bool persistent)
{
    request->base.req_base.req_type = MCA_PML_REQUEST_RECV;
    MCA_PML_BASE_RECV_REQUEST_INIT(&request->base, buffer, count, datatype, source, tag, comm,
                                   persistent);
    request->ends = persistent; /* the PML has nothing to do with it until it is started */
}

struct recv_request *recv_request_new(void *buffer, size_t count, ompi_datatype_t *datatype,
                                      int source, int tag, ompi_communicator_t *comm,
                                      bool persistent)
{
    struct recv_request *request =
        (struct recv_request *) tsan_list_get(&mca_pml_base_recv_requests);
    if (OPAL_LIKELY(request != NULL))
        request_init(request, buffer, count, datatype, source, tag, comm, persistent);
    return request;
}

void recv_request_fail(struct recv_request *request, int mpi_error)
{
    request->base.req_base.req_ompi.req_status.MPI_ERROR = mpi_error;
    request->size = request->wanted = request->received = 0;
    recv_request_complete(request);
}

void recv_request_begin(struct recv_request *request)
{
    request->ends = 0;
    request->matched = false;
    request->is_answering = false;
    request->peer = NULL;
    request_work_begins(&request->counted);
}

static inline void request_list(struct recv_request *request, struct mca_pml_comm_t *comm,
                                int32_t source, int32_t tag)
{
    request->base.req_base.req_sequence = comm->stamp;
    request->node.source = source;
    request->node.tag = tag;
    request->node.stamp = comm->stamp++;
    match_insert(&comm->posted, &request->node);
}

void recv_request_start(struct recv_request *request)
{
    mca_pml_base_request_t *base = &request->base.req_base;
    struct mca_pml_comm_t *comm = base->req_comm->c_pml_comm;
    int32_t source = base->req_peer, tag = base->req_tag;

    MCA_PML_BASE_RECV_START(&request->base);
    recv_request_begin(request);

    OPAL_THREAD_LOCK(&comm->lock);
    struct inbound *inbound = inbound_find(comm, source, tag);
    int error = OMPI_SUCCESS;
    if (inbound) {
        inbound_remove(comm, inbound);
        request->matched = true;
    } else if (OPAL_UNLIKELY(compat_comm_refuses(base->req_comm, tag))) {
        request->matched = true;
        error = compat_comm_refusal(base->req_comm);
    } else if (lost_concerns(comm, source)) {
        request->matched = true;
        error = COMPAT_ERR_PROC_FAILED;
    } else {
        if (OPAL_UNLIKELY(match_is_full(&comm->posted)))
            match_table_grow(&comm->posted);
        request_list(request, comm, source, tag);
    }
    OPAL_THREAD_UNLOCK(&comm->lock);

    if (inbound)
        inbound_take(inbound, request);
    else if (OPAL_UNLIKELY(error != OMPI_SUCCESS))
        recv_request_fail(request, error);
}

static __attribute__((noinline)) struct recv_request *request_post_any(void *buffer, size_t count,
                                                                       ompi_datatype_t *datatype,
                                                                       int source, int tag,
                                                                       ompi_communicator_t *comm)
{
    struct recv_request *request =
        recv_request_new(buffer, count, datatype, source, tag, comm, false);
    if (OPAL_LIKELY(request != NULL))
        recv_request_start(request);
    return request;
}

/* Whether a receive of the only thread will have to wait, and nothing but that. Whatever else there
 * is to be done, recv_request_start does it. */
static inline bool request_just_waits(const struct mca_pml_comm_t *comm, int tag)
{
    return !opal_using_threads() && !work_is_counted && comm->unexpected.count == 0 &&
           !match_is_full(&comm->posted) && !compat_comm_refuses(comm->ompi, tag) &&
           __atomic_load_n(&multilane.lost_peers, __ATOMIC_RELAXED) == 0;
}

struct recv_request *recv_request_post(void *buffer, size_t count, ompi_datatype_t *datatype,
                                       int source, int tag, ompi_communicator_t *comm)
{
    struct recv_request *request = NULL;
    if (OPAL_LIKELY(request_just_waits(comm->c_pml_comm, tag)))
        request = (struct recv_request *) opal_lifo_pop_st(&mca_pml_base_recv_requests.super);
    if (OPAL_UNLIKELY(!request))
        return request_post_any(buffer, count, datatype, source, tag, comm);
    request_init(request, buffer, count, datatype, source, tag, comm, false);
    MCA_PML_BASE_RECV_START(&request->base);
    recv_request_begin(request);
    request_list(request, comm->c_pml_comm, source, tag);
    return request;
}

static void recv_request_prepare_convertor(struct recv_request *request)
{
    mca_pml_base_request_t *base = &request->base.req_base;
    if (request->has_convertor)
        opal_convertor_cleanup(&base->req_convertor);
    opal_convertor_copy_and_prepare_for_recv(request->peer->proc->super.proc_convertor,
                                             &base->req_datatype->super, base->req_count,
                                             base->req_addr, 0, &base->req_convertor);
    request->has_convertor = true;
}

/* Pieces may come in any order and end within an element. Open MPI's convertor, moved on from
 * within an element, loses the bytes of it that it had; from the beginning it finds every place. */
static void position_set(opal_convertor_t *convertor, size_t offset)
{
    size_t position = 0;
    if (offset == convertor->bConverted)
        return;
    if (convertor->partial_length)
        opal_convertor_set_position(convertor, &position);
    position = offset;
    opal_convertor_set_position(convertor, &position);
}

void recv_request_write(struct recv_request *request, size_t offset, const struct iovec *pieces,
                        int count)
{
    for (int i = 0; i < count && offset < request->wanted; i++) {
        size_t length = pieces[i].iov_len;
        if (length > request->wanted - offset)
            length = request->wanted - offset;
        if (OPAL_LIKELY(request->data != NULL)) {
            memcpy(request->data + offset, pieces[i].iov_base, length);
        } else if (OPAL_UNLIKELY(request->view != NULL)) {
            device_receive_write(request, offset, pieces[i].iov_base, length);
        } else if (length) {
            struct iovec iov = {.iov_base = pieces[i].iov_base, .iov_len = length};
            uint32_t iov_count = 1;
            size_t unpacked = length;
            opal_convertor_t *convertor = &request->base.req_base.req_convertor;
            OPAL_THREAD_LOCK(&request->lock);
            position_set(convertor, offset);
            opal_convertor_unpack(convertor, &iov, &iov_count, &unpacked);
            OPAL_THREAD_UNLOCK(&request->lock);
        }
        offset += length;
    }
}

static void recv_request_forget_handle(struct recv_request *request)
{
    OPAL_THREAD_LOCK(&request->lock);
    handle_release(&multilane.handles, &request->handle);
    spans_clear(&request->claimed);
    OPAL_THREAD_UNLOCK(&request->lock);
}

void recv_request_complete(struct recv_request *request)
{
    if (OPAL_UNLIKELY(request->view != NULL) && device_receive_end(request))
        return;
    if (OPAL_UNLIKELY(handle_is_set(request->handle)))
        recv_request_forget_handle(request);
    if (OPAL_UNLIKELY(request->rma.count))
        rma_release(&request->rma);
    recv_request_end(request, request->size, request->wanted);
}

void recv_request_received(struct recv_request *request, size_t bytes)
{
    /* Release: our bytes before the count. Acquire: the others' bytes before completion. Only who
     * brings the last byte completes it, also if a FIN says more than there was. */
    size_t wanted = request->wanted;
    size_t before = __atomic_fetch_add(&request->received, bytes, __ATOMIC_ACQ_REL);
    if (before >= wanted || bytes < wanted - before)
        return;
    stripe_flush(request->peer);
    recv_request_complete(request);
}

static inline void recv_request_meet(struct recv_request *request, struct peer *peer,
                                     const struct wire_match *match, size_t size)
{
    mca_pml_base_request_t *base = &request->base.req_base;
    const opal_datatype_t *datatype = &base->req_datatype->super;
    size_t room = datatype->size * base->req_count;

    base->req_ompi.req_status.MPI_SOURCE = match->source;
    base->req_ompi.req_status.MPI_TAG = match->tag;
    base->req_proc = peer->proc;
    __atomic_store_n(&request->peer, peer, __ATOMIC_RELAXED); /* recv_request_cancel */
    request->size = size;
    request->base.req_bytes_packed = size;
    request->wanted = size < room ? size : room;
    if (OPAL_UNLIKELY(driver_is_loaded) && request->wanted && device_receive_begin(request))
        return;
    if (OPAL_LIKELY(datatype_is_contiguous(base->req_datatype, base->req_count))) {
        request->data = (char *) base->req_addr + datatype->true_lb;
    } else {
        request->data = NULL;
        if (request->wanted)
            recv_request_prepare_convertor(request);
    }
}

void recv_request_match(struct recv_request *request, const struct arrival *arrival)
{
    recv_request_meet(request, arrival->peer, &arrival->match, arrival->size);
    request->sender = arrival->sender;
    request->received = 0;
}

void recv_request_take_packed(struct recv_request *request, struct peer *peer,
                              const struct wire_match *match, const unsigned char *data,
                              size_t size)
{
    struct iovec payload = {.iov_base = (void *) data, .iov_len = size};
    recv_request_meet(request, peer, match, size);
    recv_request_write(request, 0, &payload, 1);
    recv_request_complete(request);
}

void recv_request_take(struct recv_request *request, const struct arrival *arrival)
{
    recv_request_match(request, arrival);
    if (OPAL_LIKELY(arrival->type == WIRE_EAGER)) {
        recv_request_write(request, 0, arrival->payload, arrival->payload_count);
        recv_request_finish(request);
        return;
    }
    if (request->wanted == 0) {
        recv_request_finish(request);
        return;
    }
    if (OPAL_UNLIKELY(peer_is_lost(arrival->peer))) { /* its announcement was kept */
        recv_request_fail(request, COMPAT_ERR_PROC_FAILED);
        return;
    }
    /* What a former life that did not come to its end has left; nobody else knows of this one yet.
     */
    request->in_get = false;
    request->control = NULL;
    protocol_of_method(arrival->method)->receive(request, arrival);
}

void recv_request_finish(struct recv_request *request)
{
    if (OPAL_UNLIKELY(handle_is_set(request->sender)))
        recv_request_acknowledge(request, peer_control_lane(request->peer));
    else
        recv_request_complete(request);
}

/* So long a receive waits until its answer has left, for a sender that waits for it while we
 * compute: a connection is made meanwhile. A sender that is not in MPI, and whose lane is full, is
 * not waited for. */
#define ANSWER_PATIENCE_NS UINT64_C(20000000)

static void acknowledged(void *owner, int status)
{
    struct recv_request *request = owner;
    (void) status; /* the message is here, whatever becomes of the answer */
    recv_request_complete(request);
}

void recv_request_acknowledge(struct recv_request *request, struct lane *lane)
{
    unsigned char bytes[WIRE_CONTROL_MAX];
    struct wire_ack ack = {.sender = request->sender};
    unsigned char *end = peer_write_base(request->peer, bytes, WIRE_ACK, 0);
    memcpy(end, &ack, sizeof(ack));
    /* From here on nothing else ends it. Relaxed: cancelling it too early or too late is the same
     * to who cancels. */
    if (handle_is_set(request->handle))
        recv_request_forget_handle(request);
    __atomic_store_n(&request->is_answering, true, __ATOMIC_RELAXED);
    lane_send_owned(lane, bytes, (size_t) (end + sizeof(ack) - bytes), ANSWER_PATIENCE_NS,
                    acknowledged, request);
}

bool recv_request_can_answer(struct recv_request *request)
{
    if (handle_is_set(request->handle) ||
        OPAL_LIKELY(handle_acquire(&multilane.handles, HANDLE_RECEIVE, request, &request->handle) ==
                    OMPI_SUCCESS))
        return true;
    inbound_refuse_sender(request->peer, request->sender);
    recv_request_fail(request, MPI_ERR_NO_MEM);
    return false;
}

void recv_request_send_rtr(struct recv_request *request, struct lane *lane, size_t offset,
                           uint32_t method, const struct wire_key *key, const void *key_bytes)
{
    if (OPAL_UNLIKELY(!recv_request_can_answer(request)))
        return;
    struct wire_rtr rtr = {.sender = request->sender,
                           .receiver = request->handle,
                           .offset = offset,
                           .size = request->wanted - offset,
                           .method = method};
    if (key)
        rtr.key = *key;
    unsigned char bytes[WIRE_CONTROL_MAX];
    unsigned char *end = peer_write_base(request->peer, bytes, WIRE_RTR, 0);
    memcpy(end, &rtr, sizeof(rtr));
    end += sizeof(rtr);
    if (wire_keys_length(&rtr.key)) {
        memcpy(end, key_bytes, wire_keys_length(&rtr.key));
        end += wire_keys_length(&rtr.key);
    }
    handle_goes_out(request);
    /* Who proposed a put waits for it, see send_request_expect. */
    if (method == WIRE_BY_PUT)
        lane_send_expected(lane, bytes, (size_t) (end - bytes));
    else
        lane_send_control(lane, bytes, (size_t) (end - bytes));
}

void recv_request_get_begins(struct recv_request *request)
{
    __atomic_store_n(&request->in_get, true, __ATOMIC_RELAXED);
}

void recv_request_get_failed(struct recv_request *request)
{
    recv_request_ask(request, 0); /* over what was got come the same bytes */
    /* Release: a cancel that sees it finds the request as it is left here. Last, though the request
     * may have ended: its next get, if it has one yet, is one of another life. */
    __atomic_store_n(&request->in_get, false, __ATOMIC_RELEASE);
}

void recv_request_ask_on(struct recv_request *request, struct lane *lane, size_t offset)
{
    if (OPAL_UNLIKELY(lost_or_dead(request->peer)))
        recv_request_fail(request, COMPAT_ERR_PROC_FAILED);
    else
        recv_request_send_rtr(request, lane, offset, WIRE_BY_SEND, NULL, NULL);
}

void recv_request_ask(struct recv_request *request, size_t offset)
{
    recv_request_ask_on(request, peer_control_lane(request->peer), offset);
}

/* Claims the bytes for the caller, who then writes them and counts the fresh ones; until they are
 * counted the request stays. Its memory is never given back, so that a handle which goes at this
 * moment does no harm. */
static bool recv_request_claim(struct recv_request *request, struct peer *peer,
                               const struct wire_data *data, size_t length, size_t *fresh)
{
    OPAL_THREAD_LOCK(&request->lock);
    bool good = request->handle.index == data->receiver.index &&
                request->handle.generation == data->receiver.generation && request->peer == peer &&
                length != 0 && data->offset <= request->wanted &&
                length <= request->wanted - data->offset &&
                spans_add(&request->claimed, data->offset, data->offset + length, fresh);
    OPAL_THREAD_UNLOCK(&request->lock);
    return good;
}

bool recv_request_data(struct peer *peer, const struct wire_data *data,
                       const struct arrival *arrival)
{
    struct recv_request *request = handle_find(&multilane.handles, HANDLE_RECEIVE, data->receiver);
    size_t fresh;
    if (!request || recv_request_in_ring(request) ||
        !recv_request_claim(request, peer, data, arrival->length, &fresh))
        return false;
    if (fresh == 0)
        return true; /* a duplicate */
    recv_request_write(request, data->offset, arrival->payload, arrival->payload_count);
    recv_request_received(request, fresh);
    return true;
}

bool recv_request_put(struct peer *peer, const struct wire_fin *fin)
{
    struct recv_request *request = handle_find(&multilane.handles, HANDLE_RECEIVE, fin->receiver);
    if (request && request->peer == peer && request->control)
        return rndv_both_last(request);
    if (!request || request->peer != peer || request->rma.count == 0 ||
        fin->size > request->wanted - __atomic_load_n(&request->received, __ATOMIC_RELAXED))
        return false;
    __atomic_store_n(&request->rma.landed, true, __ATOMIC_RELAXED); /* device_receive_end */
    recv_request_received(request, fin->size);
    return true;
}

bool recv_request_cancelled(struct peer *peer, const struct wire_fin *fin)
{
    if (fin->size == 0) { /* its receive may have gone on without the ring, and ended */
        rndv_ring_stop(peer, false);
        return true;
    }
    struct recv_request *request = handle_find(&multilane.handles, HANDLE_RECEIVE, fin->receiver);
    if (!request || request->peer != peer || request->control || recv_request_in_ring(request) ||
        fin->size > request->wanted - __atomic_load_n(&request->received, __ATOMIC_RELAXED))
        return false;
    request->base.req_base.req_ompi.req_status.MPI_ERROR = MPI_ERR_OTHER;
    /* Counted as if they were here: what was sent may still be on its way on another lane. */
    recv_request_received(request, fin->size);
    return true;
}
