/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that stand before those of the component below: they end when what was received is in
 * device memory. */
#include <stdatomic.h>
#include <string.h>

#include "coll/multilane/coll.h"
#include "opal/runtime/opal_progress.h"

/* Open MPI keeps the operation's datatypes and its operator in what it begins with. */
typedef struct coll_request {
    ompi_coll_base_nbc_request_t super;
    struct staging staging;
    ompi_request_t *inner;
    bool is_copying; /* the operation below has ended */
    struct transfer back;
    struct coll_request *next; /* under way */
} coll_request_t;
static OBJ_CLASS_INSTANCE(coll_request_t, ompi_coll_base_nbc_request_t, NULL, NULL);

static struct {
    opal_mutex_t lock; /* guards under_way, and the links of those in it */
    /* Written under the lock by the threads that start and advance requests. Relaxed: read without
     * it to see whether there is any, which the next round of progress sees otherwise. */
    coll_request_t *_Atomic under_way;
    opal_free_list_t idle;
} all;

static void under_way_add(coll_request_t *request)
{
    OPAL_THREAD_LOCK(&all.lock);
    request->next = atomic_load_explicit(&all.under_way, memory_order_relaxed);
    atomic_store_explicit(&all.under_way, request, memory_order_relaxed);
    OPAL_THREAD_UNLOCK(&all.lock);
}

static coll_request_t *under_way_take(void)
{
    OPAL_THREAD_LOCK(&all.lock);
    coll_request_t *taken = atomic_exchange_explicit(&all.under_way, NULL, memory_order_relaxed);
    OPAL_THREAD_UNLOCK(&all.lock);
    return taken;
}

static void request_end(coll_request_t *request, int status)
{
    bool is_last_use = !request->super.super.req_persistent;
    ompi_communicator_t *comm = request->staging.comm;

    request->super.super.req_status.MPI_ERROR = status;
    if (is_last_use)
        staging_free(&request->staging);
    ompi_request_complete(&request->super.super, true); /* it may be another one from here on */
    if (is_last_use)
        OBJ_RELEASE(comm);
}

/* Takes it one step on; false: it is still under way. */
static bool request_advance(coll_request_t *request)
{
    int status;

    if (!request->is_copying) {
        if (!request_is_complete(request->inner))
            return false;
        status = request->inner->req_status.MPI_ERROR;
        if (request->super.super.req_persistent)
            request->inner->req_state = OMPI_REQUEST_INACTIVE;
        else
            ompi_request_free(&request->inner);
        if (status == OMPI_SUCCESS)
            status = staging_empty(&request->staging, &request->back);
        if (status != OMPI_SUCCESS) {
            request_end(request, status);
            return true;
        }
        request->is_copying = true;
    }
    if (!transfer_test(&request->back, &status))
        return false;
    request_end(request, status);
    return true;
}

/* No lock is held while messages are sent and requests end. */
static int requests_progress(void)
{
    int ended = 0;

    if (!atomic_load_explicit(&all.under_way, memory_order_relaxed))
        return 0;
    coll_request_t *mine = under_way_take();
    while (mine) {
        coll_request_t *request = mine;

        mine = request->next;
        if (request_advance(request))
            ended++;
        else
            under_way_add(request);
    }
    return ended;
}

static int request_free(ompi_request_t **handle)
{
    coll_request_t *request = (coll_request_t *) *handle;

    if (request->super.super.req_persistent) {
        ompi_request_free(&request->inner);
        staging_free(&request->staging);
        OBJ_RELEASE(request->staging.comm);
    }
    OMPI_REQUEST_FINI(*handle);
    opal_free_list_return(&all.idle, (opal_free_list_item_t *) request);
    *handle = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

static int request_cancel(ompi_request_t *request, int flag)
{
    return MPI_ERR_REQUEST;
}

static void request_activate(coll_request_t *request)
{
    ompi_request_t *base = &request->super.super;

    base->req_complete = REQUEST_PENDING;
    base->req_state = OMPI_REQUEST_ACTIVE;
    base->req_status = (ompi_status_public_t){.MPI_ERROR = MPI_SUCCESS};
    request->is_copying = false;
}

static int request_start(size_t count, ompi_request_t **handles)
{
    for (size_t i = 0; i < count; i++) {
        coll_request_t *request = (coll_request_t *) handles[i];
        int status = staging_fill(&request->staging);

        /* Nothing is to be started of an operation that has nothing to do. */
        if (status == OMPI_SUCCESS && request->inner->req_type != OMPI_REQUEST_NOOP)
            status = request->inner->req_start(1, &request->inner);
        if (status != OMPI_SUCCESS)
            return status;
        request_activate(request);
        under_way_add(request);
    }
    return OMPI_SUCCESS;
}

/* A request of ours before `inner`; null: no memory. */
static coll_request_t *request_new(struct staging *staging, ompi_request_t *inner, bool persistent)
{
    coll_request_t *request = (coll_request_t *) opal_free_list_get(&all.idle);

    if (!request)
        return NULL;
    ompi_request_t *base = &request->super.super;
    OMPI_REQUEST_INIT(base, persistent);
    memset(&request->super.data, 0, sizeof(request->super.data));
    base->req_type = OMPI_REQUEST_COLL;
    base->req_mpi_object.comm = staging->comm;
    base->req_start = request_start;
    base->req_free = request_free;
    base->req_cancel = request_cancel;
    OBJ_RETAIN(staging->comm); /* the program may free it while the operation is under way */
    request->staging = *staging;
    request->inner = inner;
    return request;
}

int request_before(struct staging *staging, int status, ompi_request_t **handle, bool persistent)
{
    if (!staging_is_used(staging))
        return status;
    coll_request_t *request =
        status == OMPI_SUCCESS ? request_new(staging, *handle, persistent) : NULL;
    if (!request) {
        /* The operation below may still use the images of what has started: they stay. */
        if (status != OMPI_SUCCESS)
            staging_free(staging);
        return status != OMPI_SUCCESS ? status : OMPI_ERR_OUT_OF_RESOURCE;
    }
    *handle = &request->super.super;
    if (!persistent) {
        request_activate(request);
        under_way_add(request);
    }
    return OMPI_SUCCESS;
}

void requests_open(void)
{
    OBJ_CONSTRUCT(&all.lock, opal_mutex_t);
    OBJ_CONSTRUCT(&all.idle, opal_free_list_t);
    opal_free_list_init(&all.idle, sizeof(coll_request_t), opal_cache_line_size,
                        OBJ_CLASS(coll_request_t), 0, opal_cache_line_size, 0, -1, 8, NULL, 0, NULL,
                        NULL, NULL);
    /* Now, while no other thread walks the list of progress functions. */
    opal_progress_register(requests_progress);
}

void requests_close(void)
{
    opal_progress_unregister(requests_progress);
    OBJ_DESTRUCT(&all.idle);
    OBJ_DESTRUCT(&all.lock);
}
