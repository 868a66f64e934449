/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI's receives, and the start of persistent requests. */
#include <string.h>

#include "join/posting.h"
#include "request/send_start.h"
#include "match/credit.h"
#include "match/inbound.h"
#include "base/multilane.h"
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

/* Without a request: takes a whole message that has come already. Polls once first for short
 * ones, because keeping one for a moment costs less than a request. */
static inline bool recv_kept(void *buffer, size_t count, ompi_datatype_t *datatype, int source,
                             int tag, ompi_communicator_t *comm, ompi_status_public_t *status)
{
    if (OPAL_UNLIKELY(driver_is_loaded || !datatype_is_contiguous(datatype, count)))
        return false;
    size_t room = datatype->super.size * count;
    struct inbound *inbound = inbound_take_plain(comm->c_pml_comm, source, tag, room);
    if (!inbound && room <= sizeof(inbound->bytes) &&
        request_look_once(comm_likely_lane(comm->c_pml_comm, source))) {
        inbound = inbound_take_plain(comm->c_pml_comm, source, tag, room);
        if (inbound) /* it counted as unexpected, but its receive was here */
            counter_add(&multilane.unexpected_messages, UINT64_C(0) - 1);
    }
    if (!inbound)
        return false;
    const struct arrival *arrival = &inbound->arrival;
    ompi_status_public_t told = {.MPI_SOURCE = arrival->match.source,
                                 .MPI_TAG = arrival->match.tag,
                                 .MPI_ERROR = MPI_SUCCESS,
                                 ._ucount = arrival->size};
    struct peer *peer = arrival->peer;
    if (arrival->size)
        memcpy((char *) buffer + datatype->super.true_lb, inbound->data, arrival->size);
    inbound_free(inbound);
    credit_tell_if_due(peer);
    if (status != MPI_STATUS_IGNORE)
        OMPI_COPY_STATUS(status, told, false);
    return true;
}

int module_recv(void *buffer, size_t count, ompi_datatype_t *datatype, int source, int tag,
                ompi_communicator_t *comm, ompi_status_public_t *status)
{
    if (recv_kept(buffer, count, datatype, source, tag, comm, status))
        return OMPI_SUCCESS;
    struct recv_request *receive = receive_post(buffer, count, datatype, source, tag, comm);
    if (OPAL_UNLIKELY(!receive))
        return OMPI_ERR_OUT_OF_RESOURCE;
    ompi_request_t *request = &receive->base.req_base.req_ompi;
    request_wait(request, comm_likely_lane(comm->c_pml_comm, source));
    int rc = compat_recv_status(request);
    if (status != MPI_STATUS_IGNORE)
        OMPI_COPY_STATUS(status, request->req_status, false);
    ompi_request_free(&request);
    return rc;
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
    out.synchronous = (struct wire_handle){0};
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
    return send_request_start(send, false);
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
