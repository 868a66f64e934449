/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI's sends: describe the message, look up its plan, call its protocol. */
#include "base/pending.h"
#include "common/ring/ring.h"
#include "match/inbound.h"
#include "entry/calls.h"
#include "base/protocol.h"
#include "request/request.h"
#include "request/send_request.h"
#include "request/timer.h"

/* Sends without a request: LANE_LEFT. Else a request must send it, with the number drawn here. */
static inline __opal_attribute_always_inline__ int send_now(struct outgoing *out, bool leaves)
{
    enum class_buffer contiguous = leaves ? outgoing_left_buffer(out) : CLASS_CONTIGUOUS;
    struct route *route =
        outgoing_route(out, out->data != NULL || out->size == 0 ? contiguous : CLASS_PACKED);
    outgoing_draw(out, route, route->eager_mask);
    if (OPAL_UNLIKELY(!flow_is_within(
            out->mark, atomic_load_explicit(&out->peer->out.limit, memory_order_relaxed))))
        return LANE_AGAIN; /* relaxed: see flow.c */
    return route->post(out, route);
}

static int send_unreachable(ompi_communicator_t *comm, int destination)
{
    const struct peer *peer = comm_peer(comm->c_pml_comm, destination);
    return peer && peer_is_lost(peer) ? COMPAT_ERR_PROC_FAILED
                                      : compat_unreachable(comm, destination);
}

/* Bytes wait in this process: moves them on first. True: the message must wait behind others. */
static __attribute__((noinline)) bool waits_behind(const struct outgoing *out)
{
    pending_move_on();
    return send_queue_any(out->peer);
}

static inline bool needs_request(const struct outgoing *out, mca_pml_base_send_mode_t mode)
{
    return mode == MCA_PML_BASE_SEND_SYNCHRONOUS || mode == MCA_PML_BASE_SEND_BUFFERED ||
           OPAL_UNLIKELY(out->memory.kind != MEMORY_HOST) ||
           (OPAL_UNLIKELY(pending_any_unsent()) && waits_behind(out));
}

int module_isend_init(const void *buffer, size_t count, ompi_datatype_t *datatype, int destination,
                      int tag, mca_pml_base_send_mode_t mode, ompi_communicator_t *comm,
                      ompi_request_t **request)
{
    struct outgoing out;
    if (!outgoing_init(&out, buffer, count, datatype, destination, tag, comm))
        return send_unreachable(comm, destination);
    struct send_request *send = send_request_new(&out, mode, true);
    if (!send)
        return OMPI_ERR_OUT_OF_RESOURCE;
    send->base.req_base.req_pml_complete = true;
    *request = &send->base.req_base.req_ompi;
    return OMPI_SUCCESS;
}

/* Makes the request of a send to a dead process: complete, with an error. */
static int isend_failed(const void *buffer, size_t count, ompi_datatype_t *datatype,
                        int destination, int tag, ompi_communicator_t *comm,
                        ompi_request_t **request)
{
    int rc = send_unreachable(comm, destination);
    if (rc != COMPAT_ERR_PROC_FAILED)
        return rc;
    struct peer *peer = comm_peer(comm->c_pml_comm, destination);
    if (!peer)
        return rc;
    struct outgoing out = {.comm = comm->c_pml_comm,
                           .peer = peer,
                           .buffer = buffer,
                           .count = count,
                           .datatype = datatype,
                           .destination = destination,
                           .tag = tag};
    struct send_request *send = send_request_new(&out, MCA_PML_BASE_SEND_STANDARD, false);
    if (!send)
        return OMPI_ERR_OUT_OF_RESOURCE;
    send_request_begin(send);
    send_request_fail(send, COMPAT_ERR_PROC_FAILED);
    *request = &send->base.req_base.req_ompi;
    return OMPI_SUCCESS;
}

/* Makes the request of a message that has its number. The number must be used or given back: the
 * receiver would wait for it. */
static struct send_request *request_of_number(struct outgoing *out, mca_pml_base_send_mode_t mode,
                                              bool *is_numbered)
{
    struct send_request *send = send_request_new(out, mode, false);
    while (OPAL_UNLIKELY(!send) && *is_numbered) {
        *is_numbered = !peer_undraw(out->peer, out->cost, out->sequence);
        if (*is_numbered) { /* other threads have drawn later ones */
            progress_of_wait();
            send = send_request_new(out, mode, false);
        }
    }
    return send;
}

static __attribute__((noinline)) int isend_by_request(struct outgoing *out,
                                                      mca_pml_base_send_mode_t mode,
                                                      bool is_numbered, bool leaves,
                                                      ompi_request_t **request)
{
    struct send_request *send = request_of_number(out, mode, &is_numbered);
    if (OPAL_UNLIKELY(!send))
        return OMPI_ERR_OUT_OF_RESOURCE;
    int rc = send_request_start(send, is_numbered, leaves);
    if (OPAL_UNLIKELY(rc != OMPI_SUCCESS)) {
        send_request_return(send);
        return rc;
    }
    *request = &send->base.req_base.req_ompi;
    return OMPI_SUCCESS;
}

int module_isend(const void *buffer, size_t count, ompi_datatype_t *datatype, int destination,
                 int tag, mca_pml_base_send_mode_t mode, ompi_communicator_t *comm,
                 ompi_request_t **request)
{
    struct outgoing out;
    if (OPAL_UNLIKELY(!outgoing_init(&out, buffer, count, datatype, destination, tag, comm)))
        return isend_failed(buffer, count, datatype, destination, tag, comm, request);
    bool is_numbered = !needs_request(&out, mode);
    if (OPAL_UNLIKELY(!is_numbered) || OPAL_UNLIKELY(send_now(&out, true) != LANE_LEFT))
        return isend_by_request(&out, mode, is_numbered, true, request);
    *request = compat_empty_send_request();
    return OMPI_SUCCESS;
}

static __attribute__((noinline)) int
send_by_request(struct outgoing *out, mca_pml_base_send_mode_t mode, bool is_numbered)
{
    ompi_request_t *request;
    int rc = isend_by_request(out, mode, is_numbered, false, &request);
    if (OPAL_UNLIKELY(rc != OMPI_SUCCESS))
        return rc;
    request_wait(request, peer_control_lane(out->peer));
    rc = request->req_status.MPI_ERROR;
    ompi_request_free(&request);
    return rc;
}

/* A full lane has room as soon as the receiver has read some: try again before making a request,
 * which would notice later. */
#define TRIES_PER_PROGRESS 16
#define TURNS              64

static __attribute__((noinline)) bool send_when_room(const struct outgoing *out)
{
    const struct route *route = out->route;
    struct lane *lane = route_lane(route, out->peer, 0);
    for (int turn = 0; turn < TURNS && !peer_is_gone(out->peer); turn++) {
        /* Where processors are short the receiver may wait for this process to yield. */
        int most = waiting_shares() ? 1 : TRIES_PER_PROGRESS;
        for (int tries = 0; tries < most; tries++) {
            int rc = route->protocol->post(out, route);
            if (rc != LANE_FULL)
                return rc == LANE_LEFT;
            if (!lane_poll(lane)) /* polling makes room */
                ring_relax();
        }
        progress_of_wait();
    }
    return false;
}

int module_send(const void *buffer, size_t count, ompi_datatype_t *datatype, int destination,
                int tag, mca_pml_base_send_mode_t mode, ompi_communicator_t *comm)
{
    struct outgoing out;
    if (OPAL_UNLIKELY(!outgoing_init(&out, buffer, count, datatype, destination, tag, comm)))
        return send_unreachable(comm, destination);
    bool is_numbered = !needs_request(&out, mode);
    if (OPAL_UNLIKELY(!is_numbered))
        return send_by_request(&out, mode, false);
    int rc = send_now(&out, false);
    if (OPAL_LIKELY(rc == LANE_LEFT) || (rc == LANE_FULL && send_when_room(&out)))
        return OMPI_SUCCESS;
    return send_by_request(&out, mode, true);
}
