/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI's probes, and receives of matched messages (MPI_Mrecv). */
#include "join/meet.h"
#include "match/inbound.h"
#include "base/multilane.h"
#include "entry/calls.h"
#include "request/recv_request.h"
#include "request/request.h"
#include "request/wait_story.h"

/* Looks for a message; `take`: also removes it. */
static struct inbound *probe_once(int source, int tag, ompi_communicator_t *ompi, bool take,
                                  ompi_status_public_t *status)
{
    struct mca_pml_comm_t *comm = ompi->c_pml_comm;
    OPAL_THREAD_LOCK(&comm->lock);
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
    OPAL_THREAD_UNLOCK(&comm->lock);
    if (!inbound) { /* relaxed, read in credit.c */
        atomic_store_explicit(&comm->probe_source, source, memory_order_relaxed);
        atomic_store_explicit(&comm->probe_missed, true, memory_order_relaxed);
    }
    return inbound;
}

static struct inbound *probe_and_progress(int source, int tag, ompi_communicator_t *comm, bool take,
                                          ompi_status_public_t *status)
{
    struct inbound *inbound = probe_once(source, tag, comm, take, status);
    if (!inbound) {
        opal_progress();
        inbound = probe_once(source, tag, comm, take, status);
    }
    return inbound;
}

/* An error where no message can come; else OMPI_SUCCESS. */
static int receive_error(ompi_communicator_t *comm, int source, int tag)
{
    return comm_lost(comm->c_pml_comm, source) ? COMPAT_ERR_PROC_FAILED
                                               : compat_comm_receive_error(comm, source, tag);
}

/* So many turns make a wait long: it is told from then on; at once where it may sleep. */
#define TURNS_UNTIL_LONG 256u

/* Waits for a message. Null: none can come, *rc is the error. */
static struct inbound *probe_wait(int source, int tag, ompi_communicator_t *comm, bool take,
                                  ompi_status_public_t *status, int *rc)
{
    struct inbound *inbound;
    struct lane *lane = comm_likely_lane(comm->c_pml_comm, source);
    struct wait_story story;
    unsigned turns = 0;
    bool is_told = false;
    *rc = OMPI_SUCCESS;
    while (!(inbound = probe_and_progress(source, tag, comm, take, status))) {
        if (!is_told && (waiting_shares_now() || ++turns > TURNS_UNTIL_LONG)) {
            wait_story_begin_probe(&story, comm, source, tag);
            is_told = true;
        }
        request_look(lane);
        *rc = receive_error(comm, source, tag);
        if (*rc != OMPI_SUCCESS)
            break;
    }
    if (is_told)
        wait_story_end(&story);
    return inbound;
}

int module_iprobe(int source, int tag, ompi_communicator_t *comm, int *found,
                  ompi_status_public_t *status)
{
    *found = probe_and_progress(source, tag, comm, false, status) != NULL;
    return *found ? OMPI_SUCCESS : receive_error(comm, source, tag);
}

int module_probe(int source, int tag, ompi_communicator_t *comm, ompi_status_public_t *status)
{
    int rc;
    probe_wait(source, tag, comm, false, status, &rc);
    return rc;
}

/* MPI's message object carries a request: a receive that is never started and holds the
 * message's address as its buffer. */
static int message_new(struct inbound *inbound, ompi_communicator_t *comm, ompi_message_t **message)
{
    const struct arrival *arrival = &inbound->arrival;
    *message = ompi_message_alloc();
    struct recv_request *receive =
        *message ? recv_request_new(inbound, 0, &ompi_mpi_char.dt, arrival->match.source,
                                    arrival->match.tag, comm, false)
                 : NULL;
    if (!receive)
        return OMPI_ERR_OUT_OF_RESOURCE;
    receive->base.req_base.req_type = MCA_PML_REQUEST_MPROBE;
    (*message)->comm = comm;
    (*message)->req_ptr = receive;
    (*message)->peer = arrival->match.source;
    (*message)->count = arrival->size;
    return OMPI_SUCCESS;
}

int module_improbe(int source, int tag, ompi_communicator_t *comm, int *found,
                   ompi_message_t **message, ompi_status_public_t *status)
{
    struct inbound *inbound = probe_and_progress(source, tag, comm, true, status);
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

int module_imrecv(void *buffer, size_t count, ompi_datatype_t *datatype, ompi_message_t **message,
                  ompi_request_t **request)
{
    struct recv_request *probed = (*message)->req_ptr;
    struct inbound *inbound = probed->base.req_base.req_addr;
    struct recv_request *receive =
        recv_request_new(buffer, count, datatype, inbound->arrival.match.source,
                         inbound->arrival.match.tag, (*message)->comm, false);
    if (!receive)
        return OMPI_ERR_OUT_OF_RESOURCE;
    recv_request_return(probed);
    ompi_message_return(*message);
    *message = MPI_MESSAGE_NULL;

    *request = &receive->base.req_base.req_ompi;
    MCA_PML_BASE_RECV_START(&receive->base);
    recv_request_begin(receive);
    receive->matched = true;
    inbound_take(inbound, receive);
    return OMPI_SUCCESS;
}

int module_mrecv(void *buffer, size_t count, ompi_datatype_t *datatype, ompi_message_t **message,
                 ompi_status_public_t *status)
{
    ompi_request_t *request;
    int rc = module_imrecv(buffer, count, datatype, message, &request);
    if (rc != OMPI_SUCCESS)
        return rc;
    request_wait(request, NULL);
    rc = compat_recv_status(request);
    if (status != MPI_STATUS_IGNORE)
        OMPI_COPY_STATUS(status, request->req_status, false);
    ompi_request_free(&request);
    return rc;
}
