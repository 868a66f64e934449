/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI's probes. */
#include "match/inbound.h"
#include "entry/calls.h"
#include "request/request.h"

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

/* So many turns make a wait long: it is told from then on; at once where it may sleep. */
#define TURNS_UNTIL_LONG 256u

/* Waits for a message. Looks at the lane that it will come by first, and at all else in each second
 * turn, because that costs more. Null: none can come, *rc is the error. */
static struct inbound *probe_wait(int source, int tag, ompi_communicator_t *comm, bool take,
                                  ompi_status_public_t *status, int *rc)
{
    struct inbound *inbound;
    struct lane *lane = comm_likely_lane(comm->c_pml_comm, source);
    struct wait_story story;
    bool is_told = false;
    *rc = OMPI_SUCCESS;
    for (unsigned turn = 0; !(inbound = probe_once(source, tag, comm, take, status)); turn++) {
        if (!is_told && (waiting_shares_now() || turn > TURNS_UNTIL_LONG)) {
            wait_story_begin_probe(&story, comm, source, tag);
            is_told = true;
        }
        if (lane && turn % 2 == 0)
            request_look(lane);
        else
            progress_of_wait();
        *rc = receive_error(comm, source, tag);
        if (*rc != OMPI_SUCCESS)
            break;
    }
    if (is_told)
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
