/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends and receives of device memory by way of the host. */
#include "request/device_memory.h"

#include <string.h>

#include "base/multilane.h"
#include "protocol/protocol.h"

/* The address that tells whose memory a buffer is: its first byte, wherever the datatype has it. */
static const char *first_byte(const void *buffer, const ompi_datatype_t *datatype)
{
    return (const char *) buffer + datatype->super.true_lb;
}

/* Memory that neither the driver nor the processor can use any more: says why. The MPI error class,
 * or MPI_SUCCESS if it is there. */
static int memory_gone(const struct memory *memory, const void *address)
{
    if (memory->kind == MEMORY_LOST) {
        staging_complain("nobody knows what memory the buffer of a message is", memory->error);
        return MPI_ERR_OTHER;
    }
    if (memory->kind != MEMORY_FREED)
        return MPI_SUCCESS;
    opal_output(0,
                "multilane: %p was device memory and has been freed: a message cannot be sent from "
                "there or received there.",
                address);
    return MPI_ERR_BUFFER;
}

/* --- sends --------------------------------------------------------------------------------------
 */

/* The protocols that start with the data take them from the host. */
static bool sends_from_host(const struct send_request *request)
{
    const struct outgoing *out = &request->out;
    if (request->base.req_send_mode == MCA_PML_BASE_SEND_BUFFERED)
        return true;
    return class_route_of(peer_class_now(out->peer), outgoing_buffer(out), out->size)
               ->protocol->method == 0;
}

static int send_bounce(struct send_request *request)
{
    /* One that waits for its receive must not keep a slot from messages that may have to go first.
     */
    bool may_wait = request->base.req_send_mode == MCA_PML_BASE_SEND_SYNCHRONOUS;
    struct slot *slot = may_wait ? slot_new(request->out.size)
                                 : slot_take_whole(request->view->copier, request->out.size);
    if (!slot)
        return MPI_ERR_NO_MEM;
    slot->length = request->out.size;
    driver_result result = slot_read(slot, request->view);
    if (result != DRIVER_SUCCESS) {
        staging_complain("cannot read the device memory of a message", result);
        slot_return(slot);
        return MPI_ERR_OTHER;
    }
    request->bounce = slot;
    request->out.data = (char *) slot->bytes;
    return OMPI_SUCCESS;
}

int device_send_begin(struct send_request *request)
{
    const struct outgoing *out = &request->out;
    driver_result result = DRIVER_SUCCESS;
    int gone = memory_gone(&out->memory, first_byte(out->buffer, out->datatype));
    if (OPAL_UNLIKELY(gone != MPI_SUCCESS))
        return gone;
    request->view = view_new(out->buffer, out->count, out->datatype, &out->memory, &result);
    if (!request->view) {
        staging_complain("cannot use the device memory of a message", result);
        return MPI_ERR_OTHER;
    }
    int rc = sends_from_host(request) ? send_bounce(request) : OMPI_SUCCESS;
    if (rc != OMPI_SUCCESS)
        device_send_end(request);
    return rc;
}

void device_send_end(struct send_request *request)
{
    if (request->bounce)
        slot_return(request->bounce);
    request->bounce = NULL;
    lane_deregister(&request->device_key);
    view_free(request->view);
    request->view = NULL;
}

/* --- receives -----------------------------------------------------------------------------------
 */

static void receive_fails(struct recv_request *request, int mpi_error)
{
    request->base.req_base.req_ompi.req_status.MPI_ERROR = mpi_error;
}

/* The message is received by nobody: its bytes are dropped, and the receive ends in error. */
static void receive_drop(struct recv_request *request, int mpi_error)
{
    receive_fails(request, mpi_error);
    request->size = request->wanted = 0;
}

bool device_receive_begin(struct recv_request *request)
{
    mca_pml_base_request_t *base = &request->base.req_base;
    const char *address = first_byte(base->req_addr, base->req_datatype);
    struct memory memory;
    driver_result result = DRIVER_SUCCESS;
    memory_ask(address, &memory);
    if (memory.kind == MEMORY_HOST)
        return false;
    request->data = NULL;
    int gone = memory_gone(&memory, address);
    if (OPAL_UNLIKELY(gone != MPI_SUCCESS)) {
        receive_drop(request, gone);
        return true;
    }
    request->view = view_new(base->req_addr, base->req_count, base->req_datatype, &memory, &result);
    if (!request->view) {
        staging_complain("cannot use the device memory of a receive", result);
        receive_drop(request, MPI_ERR_OTHER);
        return true;
    }
    request->filling = NULL;
    request->copies = 1; /* until device_receive_end */
    request->no_more = false;
    return true;
}

/* True: it was the last one, and the message is known to be whole. */
static bool copy_ended(struct recv_request *request)
{
    /* Release: our result. Acquire: the others', before the request completes. */
    return __atomic_sub_fetch(&request->copies, 1, __ATOMIC_ACQ_REL) == 0;
}

static void receive_free(struct recv_request *request)
{
    view_free(request->view);
    request->view = NULL;
}

static void slot_written(struct slot *slot, driver_result result)
{
    struct recv_request *request = slot->owner;
    slot_return(slot);
    if (OPAL_UNLIKELY(result != DRIVER_SUCCESS)) {
        staging_complain("cannot write the device memory of a receive", result);
        receive_fails(request, MPI_ERR_OTHER);
    }
    if (!copy_ended(request))
        return;
    receive_free(request);
    recv_request_complete(request);
}

/* Starts the copy of the slot that is being filled. With the request's lock held. */
static void filling_copy(struct recv_request *request)
{
    struct slot *slot = request->filling;
    if (!slot)
        return;
    request->filling = NULL;
    __atomic_fetch_add(&request->copies, 1, __ATOMIC_RELAXED); /* ours is counted still */
    driver_result result = slot_copy(slot, request->view, COPY_TO_DEVICE, slot_written);
    if (OPAL_LIKELY(result == DRIVER_SUCCESS))
        return;
    staging_complain("cannot write the device memory of a receive", result);
    receive_fails(request, MPI_ERR_OTHER);
    slot_return(slot);
    __atomic_fetch_sub(&request->copies, 1, __ATOMIC_RELAXED);
}

/* All slots are in use: the driver takes the bytes from where they are. It waits for copies only,
 * so this ends. */
static void write_now(struct recv_request *request, size_t offset, const char *bytes, size_t length)
{
    const struct view *view = request->view;
    driver_result result =
        view_copy(view, COPY_TO_DEVICE, offset, length, (void *) (uintptr_t) bytes);
    driver_result waited = copier_wait(view->copier, COPY_TO_DEVICE);
    if (result == DRIVER_SUCCESS)
        result = waited;
    if (result == DRIVER_SUCCESS)
        return;
    staging_complain("cannot write the device memory of a receive", result);
    receive_fails(request, MPI_ERR_OTHER);
}

/* The slot that takes the byte at `offset`: pieces that follow each other share one. */
static struct slot *filling_at(struct recv_request *request, size_t offset)
{
    struct slot *slot = request->filling;
    if (slot && slot->offset + slot->length == offset && slot->length < slot->room)
        return slot;
    filling_copy(request);
    slot = slot_take(request->view->copier, request->wanted - offset);
    if (slot) {
        slot->owner = request;
        slot->offset = offset;
        slot->length = 0;
    }
    request->filling = slot;
    return slot;
}

void device_receive_write(struct recv_request *request, size_t offset, const char *bytes,
                          size_t length)
{
    OPAL_THREAD_LOCK(&request->lock);
    while (length) {
        struct slot *slot = filling_at(request, offset);
        if (!slot) {
            write_now(request, offset, bytes, length);
            break;
        }
        size_t taken = slot->room - slot->length < length ? slot->room - slot->length : length;
        memcpy(slot->bytes + slot->length, bytes, taken);
        slot->length += taken;
        if (slot->length == slot->room)
            filling_copy(request);
        offset += taken;
        bytes += taken;
        length -= taken;
    }
    OPAL_THREAD_UNLOCK(&request->lock);
}

/* Its rail died after the last write, say. Another device's read would not push what this one
 * wrote, and a sender of puts has heard that all arrived and may have its buffer back: so the
 * driver flushes, for all devices, and only where it cannot does the receive end in an error. */
static void flush_failed(struct recv_request *request, int status)
{
    char words[160];
    driver_result result = copier_flush(request->view->copier);
    if (result == DRIVER_SUCCESS)
        return;
    opal_output(0,
                "multilane: what a lane wrote to device memory may not have reached it: the "
                "device's own read of it ended with %d (%s), and of a flush the CUDA driver says "
                "%s.",
                status, opal_strerror(status), driver_words(result, words, sizeof(words)));
    receive_fails(request, MPI_ERR_OTHER);
}

static void flush_ended(void *context, int status)
{
    struct recv_request *request = context;
    if (OPAL_UNLIKELY(status != OPAL_SUCCESS))
        flush_failed(request, status);
    if (!copy_ended(request))
        return;
    receive_free(request);
    recv_request_complete(request);
}

/* Each lane that may have written there is flushed, once for the message. */
static void flushes_start(struct recv_request *request)
{
    const char *place = view_contiguous(request->view);
    for (uint32_t i = 0; i < request->rma.count; i++) {
        __atomic_fetch_add(&request->copies, 1, __ATOMIC_RELAXED); /* ours is counted still */
        int rc =
            lane_flush(&request->rma.lanes[i].local, place, request->wanted, flush_ended, request);
        if (OPAL_LIKELY(rc == OMPI_SUCCESS))
            continue;
        flush_failed(request, rc);
        __atomic_fetch_sub(&request->copies, 1, __ATOMIC_RELAXED);
    }
}

bool device_receive_end(struct recv_request *request)
{
    /* The peer may be lost, or the receive cancelled, while the last copies are under way: they
     * end it. Relaxed: only the one count that it stands for depends on it. */
    if (__atomic_exchange_n(&request->no_more, true, __ATOMIC_RELAXED))
        return true;
    OPAL_THREAD_LOCK(&request->lock);
    filling_copy(request);
    OPAL_THREAD_UNLOCK(&request->lock);
    /* Relaxed: who brought the last bytes has ordered it, see recv_request_received. */
    if (request->rma.count && __atomic_load_n(&request->rma.landed, __ATOMIC_RELAXED))
        flushes_start(request);
    if (!copy_ended(request))
        return true;
    receive_free(request);
    return false;
}
