/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a receive. */
#include "request/recv_request.h"

#include "common/compat/tsan.h"
#include "base/clock.h"
#include "base/own_page.h"
#include "delivery/control.h"
#include "base/multilane.h"
#include "common/sum/crc32c.h"
#include "lane/lane.h"
#include "lane/summed.h"

/* Like MCA_PML_BASE_RECV_REQUEST_FINI, without the convertor, which is not used. */
void recv_request_return(struct recv_request *request)
{
    OMPI_REQUEST_FINI(&request->base.req_base.req_ompi);
    OBJ_RELEASE(request->base.req_base.req_comm);
    OMPI_DATATYPE_RELEASE(request->base.req_base.req_datatype);
    tsan_list_return(&mca_pml_base_recv_requests, (opal_free_list_item_t *) request);
}

/* With the receive's lock held, as the next. */
static void bytes_lost(struct recv_request *request)
{
    request->base.req_base.req_ompi.req_status.MPI_ERROR = COMPAT_ERR_PROC_FAILED;
    request->size = 0;
}

static void handle_forget(struct recv_request *request)
{
    handle_release(&multilane.handles, &request->handle);
    spans_clear(&request->claimed);
    request->promised = 0;
}

static int recv_request_free(ompi_request_t **ompi)
{
    struct recv_request *request = (struct recv_request *) *ompi;
    tsan_acquire(request); /* request_complete */
    request->base.req_base.req_free_called = true;
    if (request_ended(&request->ends))
        recv_request_return(request);
    *ompi = MPI_REQUEST_NULL;
    if (OPAL_UNLIKELY(pending_any_unsent()))
        pending_move_on(); /* for a wait or test that found the request complete */
    return OMPI_SUCCESS;
}

/* From here on no more bytes are promised; of so many none will come. Handle: the receive it must
 * be of; null: any. Where some are missing, the caller counts them as received: the thread that
 * copies the last of the others completes the receive, or else the caller does. */
static size_t recv_request_close(struct recv_request *request, const struct wire_handle *handle)
{
    size_t missing = 0;
    OPAL_THREAD_LOCK(&request->lock);
    if (handle_is_set(request->handle) && (!handle || recv_request_is(request, *handle))) {
        missing = request->wanted - request->promised;
        if (missing)
            bytes_lost(request);
        handle_forget(request);
    }
    OPAL_THREAD_UNLOCK(&request->lock);
    return missing;
}

static int recv_request_cancel(ompi_request_t *ompi, int complete)
{
    struct recv_request *request = (struct recv_request *) ompi;
    struct mca_pml_comm_t *comm = request->base.req_base.req_comm->c_pml_comm;

    biased_lock(&comm->lock);
    bool can_cancel = !request_is_complete(ompi) && !request->matched;
    if (can_cancel) {
        match_remove(&comm->posted, &request->node);
        request->matched = true;
        request->size = request->wanted = 0;
    }
    biased_unlock(&comm->lock);

    struct peer *peer = recv_request_peer(request);
    const struct protocol *holder =
        atomic_load_explicit(&request->held_by, memory_order_acquire); /* recv_request_get_failed */
    /* A matched receive completes normally; but nothing comes from a dead peer. */
    if (!can_cancel &&
        (request_is_complete(ompi) || !peer || compat_proc_is_active(peer->proc) || holder ||
         atomic_load_explicit(&request->is_answering, memory_order_relaxed)))
        return OMPI_SUCCESS;
    if (can_cancel || inbound_forget(peer, request)) {
        ompi->req_status._cancelled = true;
        recv_request_complete(request);
    } else {
        recv_request_received(request, recv_request_close(request, NULL));
    }
    return OMPI_SUCCESS;
}

static void sink_done(struct device_sink *sink)
{
    recv_request_complete(recv_request_of_sink(sink));
}

static void recv_request_construct(struct recv_request *request)
{
    ompi_request_t *ompi = &request->base.req_base.req_ompi;
    ompi->req_start = request_calls.start;
    ompi->req_free = recv_request_free;
    ompi->req_cancel = recv_request_cancel;
    request->base.req_base.req_type = MCA_PML_REQUEST_RECV;
    request->handle = (struct wire_handle){0};
    request->timer = (struct wire_handle){0};
    request->rma.count = 0;
    request->offered = NULL;
    atomic_init(&request->held_by, NULL);
    request->is_shared = false;
    request->is_summed = false;
    request->summed = request->summed_sum = 0;
    request->summed_of = (struct wire_handle){0};
    request->claimed = (struct spans){0};
    request->promised = 0;
    device_sink_construct(&request->sink, sink_done);
    OBJ_CONSTRUCT(&request->lock, opal_mutex_t);
    tsan_release(request); /* tsan_list_get */
}

static void recv_request_destruct(struct recv_request *request)
{
    OBJ_DESTRUCT(&request->sink.lock);
    OBJ_DESTRUCT(&request->lock);
}

OBJ_CLASS_INSTANCE(recv_request_t, mca_pml_base_recv_request_t, recv_request_construct,
                   recv_request_destruct);

struct recv_request *recv_request_new(void *buffer, size_t count, ompi_datatype_t *datatype,
                                      int source, int tag, ompi_communicator_t *comm,
                                      bool persistent)
{
    struct recv_request *request =
        (struct recv_request *) tsan_list_get(&mca_pml_base_recv_requests);
    if (OPAL_LIKELY(request != NULL))
        recv_request_init(request, buffer, count, datatype, source, tag, comm, persistent);
    return request;
}

void recv_request_fail(struct recv_request *request, int mpi_error)
{
    request->base.req_base.req_ompi.req_status.MPI_ERROR = mpi_error;
    request->timer = (struct wire_handle){0};
    request->size = request->wanted = 0;
    atomic_store_explicit(&request->received, 0, memory_order_relaxed); /* no piece is expected */
    recv_request_complete(request);
}

static void pieces_write(struct recv_request *request, size_t offset, const struct iovec *pieces,
                         int count)
{
    for (int i = 0; i < count && offset < request->wanted; i++) {
        size_t length = pieces[i].iov_len;
        if (length > request->wanted - offset)
            length = request->wanted - offset;
        if (OPAL_LIKELY(request->data != NULL)) {
            memcpy(request->data + offset, pieces[i].iov_base, length);
        } else if (OPAL_UNLIKELY(request->sink.view != NULL)) {
            device_sink_write(&request->sink, offset, pieces[i].iov_base, length);
        } else if (length) {
            const mca_pml_base_request_t *base = &request->base.req_base;
            datatype_unpack(base->req_datatype, base->req_count, base->req_addr, offset,
                            pieces[i].iov_base, length);
        }
        offset += length;
    }
}

static bool pieces_write_if_right(struct recv_request *request, size_t offset,
                                  const struct iovec *pieces, int count)
{
    if (count == 1 && request->data && offset <= request->wanted &&
        pieces->iov_len <= request->wanted - offset)
        return payload_copy(request->data + offset, pieces->iov_base, pieces->iov_len);
    if (count > 0 && !payload_is_right(pieces->iov_base))
        return false;
    pieces_write(request, offset, pieces, count);
    return true;
}

static void pieces_check_and_write(struct recv_request *request, size_t offset,
                                   const struct iovec *pieces, int count)
{
    if (OPAL_LIKELY(pieces_write_if_right(request, offset, pieces, count)))
        return;
    OPAL_THREAD_LOCK(&request->lock);
    bytes_lost(request);
    OPAL_THREAD_UNLOCK(&request->lock);
}

void (*recv_request_write)(struct recv_request *request, size_t offset, const struct iovec *pieces,
                           int count) = pieces_write;

void recv_requests_check(void)
{
    recv_request_write = pieces_check_and_write;
}

static void recv_request_forget_handle(struct recv_request *request)
{
    OPAL_THREAD_LOCK(&request->lock);
    handle_forget(request);
    OPAL_THREAD_UNLOCK(&request->lock);
}

static void recv_request_forget_offer(struct recv_request *request)
{
    struct peer *peer = recv_request_peer(request);
    biased_lock(&peer->lock);
    if (request->offered)
        offered_end(request->offered);
    request->offered = NULL;
    biased_unlock(&peer->lock);
}

/* The message is complete: sends word to the sender, which times it. */
static __attribute__((noinline)) void timer_answer(struct recv_request *request)
{
    struct wire_time time = {.timer = request->timer,
                             .ended_ns = clock_now_ns(),
                             .may_have_lain = request->may_have_lain};
    request->timer = (struct wire_handle){0};
    control_send(peer_control_lane(recv_request_peer(request)), WIRE_TIME, &time, sizeof(time));
}

void recv_request_complete(struct recv_request *request)
{
    if (OPAL_UNLIKELY(request->sink.view != NULL) && device_sink_end(&request->sink, &request->rma))
        return;
    if (OPAL_UNLIKELY(request->sink.error != MPI_SUCCESS)) {
        if (request->base.req_base.req_ompi.req_status.MPI_ERROR == MPI_SUCCESS)
            request->base.req_base.req_ompi.req_status.MPI_ERROR = request->sink.error;
        request->sink.error = MPI_SUCCESS;
    }
    if (OPAL_UNLIKELY(handle_is_set(request->handle)))
        recv_request_forget_handle(request);
    if (OPAL_UNLIKELY(handle_is_set(request->timer)))
        timer_answer(request);
    if (OPAL_UNLIKELY(request->rma.count))
        rma_release(&request->rma);
    if (OPAL_UNLIKELY(request->offered != NULL))
        recv_request_forget_offer(request);
    recv_request_end(request, request->size, request->wanted);
}

/* What an earlier use of the request has left, if it was cut short, was under another handle. */
static uint32_t sum_up_to(struct recv_request *request, size_t end)
{
    if (!recv_request_is(request, request->summed_of))
        request->summed = request->summed_sum = 0;
    request->summed_of = request->handle;
    request->summed_sum =
        crc32c(request->summed_sum, request->data + request->summed, end - request->summed);
    request->summed = end;
    return request->summed_sum;
}

bool recv_request_is_right(struct recv_request *request, struct lane *lane)
{
    bool is_known = request->is_summed && request->data && request->wanted == request->size;
    request->is_summed = false;
    if (OPAL_LIKELY(!is_known))
        return true;
    bool is_right = sum_up_to(request, request->wanted) == request->sum;
    request->summed = request->summed_sum = 0; /* of the next get, which has no handle */
    if (OPAL_LIKELY(is_right))
        return true;
    lane_events.wrong(lane, request->wanted);
    return false;
}

/* All was put. What is wrong comes again, over the same bytes. */
static void recv_request_check(struct recv_request *request)
{
    if (recv_request_is_right(request, rma_only_lane(&request->rma))) {
        recv_request_finish(request);
        return;
    }
    rma_release(&request->rma);
    atomic_store_explicit(&request->received, 0, memory_order_relaxed); /* no piece was asked for */
    recv_request_ask_again(request, peer_control_lane(recv_request_peer(request)));
}

void recv_request_received(struct recv_request *request, size_t bytes)
{
    /* Release: these bytes before the count. Acquire: the other threads' bytes before
     * completion. Only the thread with the last byte completes, also where a FIN says too much. */
    size_t wanted = request->wanted;
    size_t before = atomic_fetch_add_explicit(&request->received, bytes, memory_order_acq_rel);
    if (before >= wanted || bytes < wanted - before)
        return;
    received_flush(recv_request_peer(request));
    if (OPAL_UNLIKELY(request->is_summed) && handle_is_set(request->handle)) /* else it is lost */
        recv_request_check(request);
    else
        recv_request_complete(request);
}

void recv_request_lost(struct recv_request *request, struct wire_handle handle)
{
    recv_request_received(request, recv_request_close(request, &handle));
}

/* With the receive's lock held. */
static bool may_promise(struct recv_request *request, size_t bytes)
{
    bool may = bytes <= request->wanted - request->promised;
    request->promised += may ? bytes : 0;
    return may;
}

bool recv_request_hold(struct recv_request *request, size_t bytes)
{
    OPAL_THREAD_LOCK(&request->lock);
    bool good = handle_is_set(request->handle) && may_promise(request, bytes);
    OPAL_THREAD_UNLOCK(&request->lock);
    return good;
}

bool recv_request_let_go(struct recv_request *request, size_t bytes)
{
    OPAL_THREAD_LOCK(&request->lock);
    bool goes_on = handle_is_set(request->handle);
    if (goes_on)
        request->promised -= bytes;
    else
        bytes_lost(request);
    OPAL_THREAD_UNLOCK(&request->lock);
    return goes_on;
}

bool recv_request_promise(struct recv_request *request, const struct wire_fin *fin)
{
    OPAL_THREAD_LOCK(&request->lock);
    bool good = recv_request_is(request, fin->receiver) && may_promise(request, fin->size);
    OPAL_THREAD_UNLOCK(&request->lock);
    return good;
}

static inline void recv_request_bind(struct recv_request *request, struct peer *peer,
                                     const struct wire_match *match, size_t size)
{
    mca_pml_base_request_t *base = &request->base.req_base;
    const opal_datatype_t *datatype = &base->req_datatype->super;
    size_t room = datatype->size * base->req_count;

    base->req_ompi.req_status.MPI_SOURCE = match->source;
    base->req_ompi.req_status.MPI_TAG = match->tag;
    base->req_proc = peer->proc;
    atomic_store_explicit(&request->peer, peer, memory_order_relaxed); /* recv_request_cancel */
    request->size = size;
    request->base.req_bytes_packed = size;
    request->wanted = size < room ? size : room;
    if (OPAL_UNLIKELY(device_memory_possible) && request->wanted &&
        device_sink_begin(&request->sink, base->req_addr, base->req_count, base->req_datatype,
                          request->wanted)) {
        request->data = NULL;
        if (!request->sink.view) /* the bytes are dropped; it ends with an error */
            request->size = request->wanted = 0;
        return;
    }
    request->data = OPAL_LIKELY(datatype_is_contiguous(base->req_datatype, base->req_count))
                        ? (char *) base->req_addr + datatype->true_lb
                        : NULL;
}

static void match_record(const struct arrival *arrival)
{
    struct page_event *event = own_event_new(PAGE_EVENT_MATCH);
    event->rank = (int32_t) arrival->peer->name.vpid;
    event->tag = arrival->match.tag;
    event->bytes = arrival->size < UINT32_MAX ? (uint32_t) arrival->size : UINT32_MAX;
}

void recv_request_matched(struct recv_request *request, const struct arrival *arrival)
{
    recv_request_bind(request, arrival->peer, &arrival->match, arrival->size);
    if (OPAL_UNLIKELY(own_events != NULL))
        match_record(arrival);
    request->sender = arrival->sender;
    request->timer = arrival->timer;
    request->may_have_lain = looks_are_few(request->looks);
    atomic_store_explicit(&request->received, 0, memory_order_relaxed); /* no piece came yet */
}

void recv_request_take_packed(struct recv_request *request, struct peer *peer,
                              const struct wire_match *match, const unsigned char *data,
                              size_t size)
{
    struct iovec payload = {.iov_base = (void *) data, .iov_len = size};
    recv_request_bind(request, peer, match, size);
    recv_request_write(request, 0, &payload, 1);
    recv_request_complete(request);
}

void recv_request_finish(struct recv_request *request)
{
    if (OPAL_UNLIKELY(handle_is_set(request->sender)))
        recv_request_acknowledge(request, peer_control_lane(recv_request_peer(request)));
    else
        recv_request_complete(request);
}

/* How long a receive waits until its ACK has left, so that the sender gets it while this process
 * computes: enough to make a connection. Not longer, because the sender may be outside of MPI
 * with a full lane. */
#define ANSWER_PATIENCE_NS UINT64_C(20000000)

static void acknowledged(void *owner, int status)
{
    struct recv_request *request = owner;
    recv_request_complete(request); /* the message has arrived, whatever the status */
}

void recv_request_acknowledge(struct recv_request *request, struct lane *lane)
{
    struct wire_ack ack = {.sender = request->sender};
    /* From here on only `acknowledged` ends it. Relaxed: a cancel may come a little early or
     * late. */
    if (handle_is_set(request->handle))
        recv_request_forget_handle(request);
    atomic_store_explicit(&request->is_answering, true, memory_order_relaxed);
    control_send_owned(lane, WIRE_ACK, &ack, sizeof(ack), ANSWER_PATIENCE_NS, acknowledged,
                       request);
}

bool recv_request_can_answer(struct recv_request *request)
{
    struct peer *peer = recv_request_peer(request);
    struct wire_handle handle;
    if (handle_is_set(request->handle))
        return true;
    if (OPAL_UNLIKELY(handle_acquire(&multilane.handles, HANDLE_RECEIVE, request, &handle) !=
                      OMPI_SUCCESS)) {
        inbound_refuse_sender(peer, request->sender);
        recv_request_fail(request, MPI_ERR_NO_MEM);
        return false;
    }
    OPAL_THREAD_LOCK(&request->lock); /* recv_request_close */
    request->handle = handle;
    OPAL_THREAD_UNLOCK(&request->lock);
    if (OPAL_UNLIKELY(peer_is_lost(peer))) { /* lost_end may have looked before */
        recv_request_lost(request, handle);
        return false;
    }
    return true;
}

void recv_request_send_rtr(struct recv_request *request, struct lane *lane, uint32_t method,
                           const struct wire_key *key, const void *key_bytes)
{
    struct peer *peer = recv_request_peer(request);
    struct wire_rtr rtr = {.sender = request->sender, .size = request->wanted, .method = method};
    /* With a handle a lost peer may end it, in another thread: all else was read before. */
    /* One that both ends copy holds its bytes: without its handle it is lost, and ends when it lets
     * go of them. */
    if (OPAL_UNLIKELY(request->is_shared ? !handle_is_set(request->handle)
                                         : !recv_request_can_answer(request)))
        return;
    rtr.receiver = request->handle;
    if (key)
        rtr.key = *key;
    struct control_message message;
    control_write(&message, peer, WIRE_RTR, &rtr, sizeof(rtr));
    control_append(&message, key_bytes, wire_keys_length(&rtr.key));
    handle_goes_out(request);
    control_send_message(lane, &message);
}

void recv_request_get_failed(struct recv_request *request)
{
    const struct protocol *mine = atomic_load_explicit(&request->held_by, memory_order_relaxed);
    recv_request_ask(request); /* the same bytes overwrite what was got */
    /* Release, against recv_request_cancel: it finds the request as it is here. Compared,
     * because the request may have ended, and another protocol or get may hold it. */
    atomic_compare_exchange_strong_explicit(&request->held_by, &mine, NULL, memory_order_release,
                                            memory_order_relaxed);
}

void recv_request_ask(struct recv_request *request)
{
    struct peer *peer = recv_request_peer(request);
    if (OPAL_UNLIKELY(peer_is_gone(peer)))
        recv_request_fail(request, COMPAT_ERR_PROC_FAILED);
    else
        recv_request_send_rtr(request, peer_control_lane(peer), WIRE_BY_SEND, NULL, NULL);
}

void recv_request_ask_again(struct recv_request *request, struct lane *lane)
{
    /* Not changed any more but by lost_end, which lets this thread end the receive then. */
    struct wire_handle handle = request->handle;
    if (!recv_request_let_go(request, request->wanted))
        recv_request_fail(request, COMPAT_ERR_PROC_FAILED);
    else if (OPAL_UNLIKELY(peer_is_gone(recv_request_peer(request))))
        recv_request_lost(request, handle); /* lost_end may be doing the same */
    else
        recv_request_send_rtr(request, lane, WIRE_BY_SEND, NULL, NULL);
}

/* Claims bytes for the caller, which writes them and then counts the fresh ones; until then the
 * request cannot end. Its memory is never freed, so a stale handle does no harm. */
static bool recv_request_claim(struct recv_request *request, const struct wire_data *data,
                               size_t length, size_t *fresh)
{
    OPAL_THREAD_LOCK(&request->lock);
    bool good = recv_request_is(request, data->receiver) && length != 0 &&
                data->offset <= request->wanted && length <= request->wanted - data->offset &&
                spans_add(&request->claimed, data->offset, data->offset + length, fresh) &&
                may_promise(request, *fresh);
    if (good)
        request->is_summed = false; /* the puts were given up: each piece has a sum of its own */
    OPAL_THREAD_UNLOCK(&request->lock);
    return good;
}

/* That of the handle, if its message comes from the peer; else null. */
static struct recv_request *receive_from(const struct peer *peer, struct wire_handle handle)
{
    struct recv_request *request = handle_find(&multilane.handles, HANDLE_RECEIVE, handle);
    return request && recv_request_peer(request) == peer ? request : NULL;
}

bool recv_request_data(struct peer *peer, const struct wire_data *data,
                       const struct arrival *arrival)
{
    struct recv_request *request = receive_from(peer, data->receiver);
    size_t fresh;
    if (!request || !recv_request_claim(request, data, arrival->length, &fresh))
        return false;
    if (fresh == 0)
        return true; /* a duplicate */
    recv_request_write(request, data->offset, arrival->payload, arrival->payload_count);
    recv_request_received(request, fresh);
    return true;
}

bool recv_request_put(struct peer *peer, const struct wire_fin *fin)
{
    struct recv_request *request = receive_from(peer, fin->receiver);
    return request && request->protocol->fin && request->protocol->fin(request, fin);
}

bool recv_request_put_summed(struct peer *peer, const struct wire_fin_summed *summed)
{
    struct recv_request *request = receive_from(peer, summed->fin.receiver);
    if (!request)
        return false;
    OPAL_THREAD_LOCK(&request->lock);
    if (recv_request_is(request, summed->fin.receiver))
        request->sum = summed->sum;
    OPAL_THREAD_UNLOCK(&request->lock);
    return recv_request_put(peer, &summed->fin);
}

/* With threads its buffer might be the user's again meanwhile; then all is summed at the end. */
bool recv_request_so_far(struct peer *peer, const struct wire_fin *so_far)
{
    struct recv_request *request = receive_from(peer, so_far->receiver);
    if (!request)
        return false;
    OPAL_THREAD_LOCK(&request->lock);
    bool good = recv_request_is(request, so_far->receiver) && so_far->size <= request->wanted;
    OPAL_THREAD_UNLOCK(&request->lock);
    if (good && request->is_summed && request->data && !opal_using_threads() &&
        so_far->size > request->summed)
        (void) sum_up_to(request, so_far->size);
    return good;
}

bool recv_request_cancelled(struct peer *peer, const struct wire_fin *fin)
{
    struct recv_request *request = receive_from(peer, fin->receiver);
    if (!request || request->is_shared || fin->size == 0 || !recv_request_promise(request, fin))
        return false;
    request->base.req_base.req_ompi.req_status.MPI_ERROR = MPI_ERR_OTHER;
    /* Counts them as arrived: bytes that were sent may still come on another lane. */
    recv_request_received(request, fin->size);
    return true;
}
