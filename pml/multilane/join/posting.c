/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts receives. */
#include "join/posting.h"

#include "base/multilane.h"
#include "base/work.h"
#include "join/meet.h"
#include "request/taking.h"

struct awaited *awaited;

static inline void request_list(struct recv_request *request, struct mca_pml_comm_t *comm,
                                int32_t source, int32_t tag)
{
    request->base.req_base.req_sequence = comm->stamp;
    request->node.source = source;
    request->node.tag = tag;
    request->node.stamp = comm->stamp++;
    match_insert(&comm->posted, &request->node);
}

/* Takes a message that has come, or begun to. A large one moves on in this call: the next one may
 * be far. */
static void receive_kept(struct inbound *inbound, struct recv_request *request)
{
    struct peer *peer = inbound->arrival.peer;
    if (inbound_take(inbound, request))
        taking_drive(peer);
}

void receive_start(struct recv_request *request)
{
    mca_pml_base_request_t *base = &request->base.req_base;
    struct mca_pml_comm_t *comm = base->req_comm->c_pml_comm;
    int32_t source = base->req_peer, tag = base->req_tag;

    MCA_PML_BASE_RECV_START(&request->base);
    recv_request_begin(request);

    awaited_post();
    biased_lock(&comm->lock);
    struct inbound *inbound = inbound_find(comm, source, tag);
    int error = OMPI_SUCCESS;
    if (inbound) {
        inbound_remove(comm, inbound);
        request->matched = true;
    } else if (OPAL_UNLIKELY(compat_comm_refuses(base->req_comm, tag))) {
        request->matched = true;
        error = compat_comm_refusal(base->req_comm);
    } else if (comm_lost(comm, source)) {
        request->matched = true;
        error = COMPAT_ERR_PROC_FAILED;
    } else {
        if (OPAL_UNLIKELY(match_is_full(&comm->posted)))
            match_table_grow(&comm->posted);
        request_list(request, comm, source, tag);
    }
    biased_unlock(&comm->lock);

    if (inbound)
        receive_kept(inbound, request);
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
        receive_start(request);
    return request;
}

/* Short path: one thread, and the receive can only wait. receive_start handles all other cases. */
static inline bool request_just_waits(const struct mca_pml_comm_t *comm, int tag)
{
    return !opal_using_threads() && !work_is_counted && !awaited && comm->unexpected.count == 0 &&
           !match_is_full(&comm->posted) && !compat_comm_refuses(comm->ompi, tag) &&
           atomic_load_explicit(&multilane.lost_peers, memory_order_relaxed) == 0;
}

struct recv_request *receive_post(void *buffer, size_t count, ompi_datatype_t *datatype, int source,
                                  int tag, ompi_communicator_t *comm)
{
    struct recv_request *request = NULL;
    if (OPAL_LIKELY(request_just_waits(comm->c_pml_comm, tag)))
        request = (struct recv_request *) opal_lifo_pop_st(&mca_pml_base_recv_requests.super);
    if (OPAL_UNLIKELY(!request))
        return request_post_any(buffer, count, datatype, source, tag, comm);
    recv_request_init(request, buffer, count, datatype, source, tag, comm, false);
    MCA_PML_BASE_RECV_START(&request->base);
    recv_request_begin(request);
    request_list(request, comm->c_pml_comm, source, tag);
    return request;
}

bool awaited_can_be(const ompi_communicator_t *comm, int tag, const struct lane *lane)
{
    return lane && request_just_waits(comm->c_pml_comm, tag) && request_may_poll();
}

void awaited_post_now(void)
{
    struct awaited *receive = awaited;
    awaited = NULL;
    receive->is_over = true;
    receive->request = receive_post(receive->buffer, receive->count, receive->datatype,
                                    receive->source, receive->tag, receive->comm);
    if (OPAL_LIKELY(receive->request != NULL))
        receive->request->looks = receive->looks;
}

static bool is_over(const void *receive)
{
    return ((const struct awaited *) receive)->is_over;
}

void awaited_wait(struct awaited *receive, struct lane *lane)
{
    receive->looks = looks_now();
    awaited = receive;
    if (!request_poll_until(is_over, receive, lane))
        awaited_post(); /* unless it came in the last round */
}
