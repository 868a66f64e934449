/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI's receives and probes, also of matched messages, and the start of persistent requests. */
#include <string.h>

#include "join/posting.h"
#include "match/inbound.h"
#include "entry/calls.h"
#include "request/recv_request.h"
#include "request/request.h"
#include "request/send_request.h"

int module_irecv_init(void *buffer, size_t count, ompi_datatype_t *datatype, int source, int tag,
                      ompi_communicator_t *comm, ompi_request_t **request)
{
    struct recv_request *receive =
        recv_request_new(buffer, count, datatype, source, tag, comm, true);
    if (!receive)
        return OMPI_ERR_OUT_OF_RESOURCE;
    receive->base.req_base.req_pml_complete = true;
    *request = &receive->base.req_base.req_ompi;
    return OMPI_SUCCESS;
}

int module_irecv(void *buffer, size_t count, ompi_datatype_t *datatype, int source, int tag,
                 ompi_communicator_t *comm, ompi_request_t **request)
{
    struct recv_request *receive = receive_post(buffer, count, datatype, source, tag, comm);
    if (OPAL_UNLIKELY(!receive))
        return OMPI_ERR_OUT_OF_RESOURCE;
    *request = &receive->base.req_base.req_ompi;
    return OMPI_SUCCESS;
}

/* Can a message out of the queue be copied to this buffer without a request? */
static inline bool buffer_is_plain(size_t count, const ompi_datatype_t *datatype)
{
    return OPAL_LIKELY(!device_memory_possible && datatype_is_contiguous(datatype, count));
}

/* Copies a plain message that fits to a plain buffer, and frees it. */
static inline void plain_receive(struct inbound *inbound, void *buffer,
                                 const ompi_datatype_t *datatype, ompi_status_public_t *status)
{
    const struct arrival *arrival = &inbound->arrival;
    ompi_status_public_t result = {.MPI_SOURCE = arrival->match.source,
                                   .MPI_TAG = arrival->match.tag,
                                   .MPI_ERROR = MPI_SUCCESS,
                                   ._ucount = arrival->size};
    struct peer *peer = arrival->peer;
    if (arrival->size)
        memcpy((char *) buffer + datatype->super.true_lb, inbound->data, arrival->size);
    inbound_free(inbound);
    credit_send_if_due(peer);
    if (status != MPI_STATUS_IGNORE)
        OMPI_COPY_STATUS(status, result, false);
}

/* Takes a whole message that has come already. False: none has. */
static inline bool recv_kept(void *buffer, const ompi_datatype_t *datatype, size_t room, int source,
                             int tag, ompi_communicator_t *comm, ompi_status_public_t *status)
{
    struct inbound *inbound = inbound_take_plain(comm->c_pml_comm, source, tag, room);
    if (inbound)
        plain_receive(inbound, buffer, datatype, status);
    return inbound;
}

/* Waits for a receive, on the lane that its message may come by, and frees it. */
static int receive_wait(struct recv_request *receive, struct lane *lane,
                        ompi_status_public_t *status)
{
    ompi_request_t *request = &receive->base.req_base.req_ompi;
    request_wait(request, lane);
    int rc = compat_recv_status(request);
    if (status != MPI_STATUS_IGNORE)
        OMPI_COPY_STATUS(status, request->req_status, false);
    ompi_request_free(&request);
    return rc;
}

/* Waits without a request as long as that is possible. */
static int recv_direct(void *buffer, size_t count, ompi_datatype_t *datatype, size_t room,
                       int source, int tag, ompi_communicator_t *comm, struct lane *lane,
                       ompi_status_public_t *status)
{
    struct direct_receive receive = {.comm = comm,
                                     .buffer = buffer,
                                     .count = count,
                                     .datatype = datatype,
                                     .room = room,
                                     .source = source,
                                     .tag = tag};
    direct_wait(&receive, lane);
    if (OPAL_LIKELY(receive.is_received)) {
        if (status != MPI_STATUS_IGNORE)
            OMPI_COPY_STATUS(status, receive.status, false);
        return OMPI_SUCCESS;
    }
    return receive.request ? receive_wait(receive.request, lane, status) : OMPI_ERR_OUT_OF_RESOURCE;
}

int module_recv(void *buffer, size_t count, ompi_datatype_t *datatype, int source, int tag,
                ompi_communicator_t *comm, ompi_status_public_t *status)
{
    struct lane *lane = comm_likely_lane(comm->c_pml_comm, source);
    if (buffer_is_plain(count, datatype)) {
        size_t room = datatype->super.size * count;
        if (recv_kept(buffer, datatype, room, source, tag, comm, status))
            return OMPI_SUCCESS;
        if (direct_can_be(comm, tag, lane))
            return recv_direct(buffer, count, datatype, room, source, tag, comm, lane, status);
    }
    struct recv_request *receive = receive_post(buffer, count, datatype, source, tag, comm);
    if (OPAL_UNLIKELY(!receive))
        return OMPI_ERR_OUT_OF_RESOURCE;
    return receive_wait(receive, lane, status);
}

/* Starts the receive of a matched message; null: no memory. */
static struct recv_request *matched_receive(void *buffer, size_t count, ompi_datatype_t *datatype,
                                            const ompi_message_t *message)
{
    struct inbound *inbound = message->req_ptr;
    const struct wire_match *match = &inbound->arrival.match;
    struct recv_request *receive =
        recv_request_new(buffer, count, datatype, match->source, match->tag, message->comm, false);
    if (!receive)
        return NULL;
    MCA_PML_BASE_RECV_START(&receive->base);
    recv_request_begin(receive);
    receive->matched = true;
    (void) inbound_take(inbound, receive);
    return receive;
}

static void message_end(ompi_message_t **message)
{
    OBJ_RELEASE((*message)->comm); /* message_new */
    tsan_release(*message);        /* message_new */
    ompi_message_return(*message);
    *message = MPI_MESSAGE_NULL;
}

int module_imrecv(void *buffer, size_t count, ompi_datatype_t *datatype, ompi_message_t **message,
                  ompi_request_t **request)
{
    struct recv_request *receive = matched_receive(buffer, count, datatype, *message);
    if (!receive)
        return OMPI_ERR_OUT_OF_RESOURCE;
    message_end(message);
    *request = &receive->base.req_base.req_ompi;
    return OMPI_SUCCESS;
}

int module_mrecv(void *buffer, size_t count, ompi_datatype_t *datatype, ompi_message_t **message,
                 ompi_status_public_t *status)
{
    struct inbound *inbound = (*message)->req_ptr;
    if (buffer_is_plain(count, datatype) &&
        inbound_is_plain(inbound, datatype->super.size * count)) {
        inbound_unhold(inbound);
        plain_receive(inbound, buffer, datatype, status);
        message_end(message);
        return OMPI_SUCCESS;
    }
    struct recv_request *receive = matched_receive(buffer, count, datatype, *message);
    if (!receive)
        return OMPI_ERR_OUT_OF_RESOURCE;
    message_end(message);
    return receive_wait(receive, NULL, status);
}

/* Makes a request to take the place of a persistent one. */
static int request_repeat(const mca_pml_base_request_t *base, ompi_request_t **fresh)
{
    if (base->req_type == MCA_PML_REQUEST_RECV)
        return module_irecv_init(base->req_addr, base->req_count, base->req_datatype,
                                 base->req_peer, base->req_tag, base->req_comm, fresh);
    /* Not module_isend_init, which refuses a lost peer: the send must start, and then end with
     * an error. */
    const struct send_request *send = (const struct send_request *) base;
    struct outgoing out = send->out;
    out.answer = (struct wire_handle){0};
    struct send_request *repeated = send_request_new(&out, send->base.req_send_mode, true);
    if (!repeated)
        return OMPI_ERR_OUT_OF_RESOURCE;
    repeated->base.req_base.req_pml_complete = true;
    *fresh = &repeated->base.req_base.req_ompi;
    return OMPI_SUCCESS;
}

/* A persistent request may be complete for its user long before the PML is done with it: a
 * buffered send, one to a dead process, or one whose completion calls this. Then a new request
 * takes its place, and the old one is freed later. */
static int request_make_idle(ompi_request_t **slot, const _Atomic uint32_t *ends)
{
    mca_pml_base_request_t *base = (mca_pml_base_request_t *) *slot;
    ompi_request_t *fresh;
    if (OPAL_LIKELY(request_is_idle(ends)))
        return OMPI_SUCCESS;
    int rc = request_repeat(base, &fresh);
    if (rc != OMPI_SUCCESS)
        return rc;
    fresh->req_complete_cb = base->req_ompi.req_complete_cb;
    fresh->req_complete_cb_data = base->req_ompi.req_complete_cb_data;
    ompi_request_free(slot);
    *slot = fresh;
    return OMPI_SUCCESS;
}

static int send_start(ompi_request_t **slot)
{
    int rc = request_make_idle(slot, &((struct send_request *) *slot)->ends);
    if (rc != OMPI_SUCCESS)
        return rc;
    struct send_request *send = (struct send_request *) *slot;
    outgoing_look(&send->out);
    return send_request_start(send, false, true);
}

static int recv_start(ompi_request_t **slot)
{
    int rc = request_make_idle(slot, &((struct recv_request *) *slot)->ends);
    if (rc == OMPI_SUCCESS)
        receive_start((struct recv_request *) *slot);
    return rc;
}

int module_start(size_t count, ompi_request_t **requests)
{
    for (size_t i = 0; i < count; i++) {
        mca_pml_base_request_t *base = (mca_pml_base_request_t *) requests[i];
        if (!base || requests[i]->req_type != OMPI_REQUEST_PML)
            continue;
        /* It is still active. One whose completion calls this passes: it is complete for the
         * PML. */
        if (OPAL_UNLIKELY(!request_is_complete(requests[i]) && !base->req_pml_complete))
            return OMPI_ERR_REQUEST;
        int rc = base->req_type == MCA_PML_REQUEST_SEND   ? send_start(&requests[i])
                 : base->req_type == MCA_PML_REQUEST_RECV ? recv_start(&requests[i])
                                                          : OMPI_ERR_REQUEST;
        if (rc != OMPI_SUCCESS)
            return rc;
    }
    return OMPI_SUCCESS;
}

/* --- probes ----------------------------------------------------------------------------------- */

/* Looks for a message; `take`: also removes it. */
static struct inbound *probe_once(int source, int tag, ompi_communicator_t *ompi, bool take,
                                  ompi_status_public_t *status)
{
    struct mca_pml_comm_t *comm = ompi->c_pml_comm;
    biased_lock(&comm->lock);
    struct inbound *inbound = inbound_find(comm, source, tag);
    if (inbound) {
        if (take)
            inbound_remove(comm, inbound);
        if (status != MPI_STATUS_IGNORE) { /* all but MPI_ERROR, as MPI wants it */
            status->MPI_SOURCE = inbound->arrival.match.source;
            status->MPI_TAG = inbound->arrival.match.tag;
            status->_ucount = inbound->arrival.size;
            status->_cancelled = 0;
        }
    }
    biased_unlock(&comm->lock);
    if (!inbound) { /* relaxed, read in inbound.c */
        atomic_store_explicit(&comm->probe_source, source, memory_order_relaxed);
        atomic_store_explicit(&comm->probe_missed, true, memory_order_relaxed);
    }
    return inbound;
}

/* An error where no message can come; else OMPI_SUCCESS. */
static int receive_error(ompi_communicator_t *comm, int source, int tag)
{
    return comm_lost(comm->c_pml_comm, source) ? COMPAT_ERR_PROC_FAILED
                                               : compat_comm_receive_error(comm, source, tag);
}

/* So many turns make a wait long: others can read of it from then on; at once where it may sleep.
 */
#define TURNS_UNTIL_LONG 256u

/* Waits for a message. Looks at the lane that it will come by first, and at all else in each second
 * turn, because that costs more. Null: none can come, *rc is the error. */
static struct inbound *probe_wait(int source, int tag, ompi_communicator_t *comm, bool take,
                                  ompi_status_public_t *status, int *rc)
{
    struct inbound *inbound;
    struct lane *lane = comm_likely_lane(comm->c_pml_comm, source);
    struct wait_story story;
    bool has_story = false;
    *rc = OMPI_SUCCESS;
    for (unsigned turn = 0; !(inbound = probe_once(source, tag, comm, take, status)); turn++) {
        if (!has_story && (waiting_shares_now() || turn > TURNS_UNTIL_LONG)) {
            wait_story_begin_probe(&story, comm, source, tag);
            has_story = true;
        }
        if (lane && turn % 2 == 0)
            request_look(lane);
        else
            progress_of_wait();
        *rc = receive_error(comm, source, tag);
        if (*rc != OMPI_SUCCESS)
            break;
    }
    if (has_story)
        wait_story_end(&story);
    return inbound;
}

/* Looks for a message that may have come, and once more after progress. */
static struct inbound *probe_now(int source, int tag, ompi_communicator_t *comm, bool take,
                                 ompi_status_public_t *status)
{
    struct inbound *inbound = probe_once(source, tag, comm, take, status);
    if (!inbound) {
        opal_progress();
        inbound = probe_once(source, tag, comm, take, status);
    }
    return inbound;
}

int module_iprobe(int source, int tag, ompi_communicator_t *comm, int *found,
                  ompi_status_public_t *status)
{
    *found = probe_now(source, tag, comm, false, status) != NULL;
    return *found ? OMPI_SUCCESS : receive_error(comm, source, tag);
}

int module_probe(int source, int tag, ompi_communicator_t *comm, ompi_status_public_t *status)
{
    int rc;
    probe_wait(source, tag, comm, false, status, &rc);
    return rc;
}

/* MPI's message object for a message out of the queue; module_imrecv takes it apart. */
static int message_new(struct inbound *inbound, ompi_communicator_t *comm, ompi_message_t **message)
{
    const struct arrival *arrival = &inbound->arrival;
    *message = ompi_message_alloc();
    if (OPAL_UNLIKELY(!*message)) {
        inbounds_refuse(inbound);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    tsan_acquire(*message); /* message_end */
    OBJ_RETAIN(comm);       /* it may be freed before the message is received */
    (*message)->comm = comm;
    (*message)->req_ptr = inbound;
    (*message)->peer = arrival->match.source;
    (*message)->count = arrival->size;
    return OMPI_SUCCESS;
}

int module_improbe(int source, int tag, ompi_communicator_t *comm, int *found,
                   ompi_message_t **message, ompi_status_public_t *status)
{
    struct inbound *inbound = probe_now(source, tag, comm, true, status);
    *found = inbound != NULL;
    if (!inbound)
        return receive_error(comm, source, tag);
    return message_new(inbound, comm, message);
}

int module_mprobe(int source, int tag, ompi_communicator_t *comm, ompi_message_t **message,
                  ompi_status_public_t *status)
{
    int rc;
    struct inbound *inbound = probe_wait(source, tag, comm, true, status, &rc);
    return inbound ? message_new(inbound, comm, message) : rc;
}
