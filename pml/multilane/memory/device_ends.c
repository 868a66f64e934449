/* SPDX-License-Identifier: BSD-3-Clause */
/* Brings a message from device memory to host memory, where its protocol needs that, and received
 * pieces to device memory, through slots of host memory. */
#include "memory/device.h"

#include <stdlib.h>
#include <string.h>

#include "plan/costs.h"

/* Brings a message from device memory to host memory, where its protocol needs that. */

static int bounce_fill(struct device_source *source, size_t bytes, enum device_bounce bounce)
{
    struct slot *slot =
        bounce == BOUNCE_LONG ? slot_new(bytes) : slot_take_whole(source->view->copier, bytes);
    if (!slot)
        return MPI_ERR_NO_MEM;
    slot->length = bytes;
    driver_result result = slot_read(slot, source->view);
    if (result != DRIVER_SUCCESS) {
        driver_complain("cannot read the device memory of a message", result);
        slot_return(slot);
        return MPI_ERR_OTHER;
    }
    source->bounce = slot;
    return OMPI_SUCCESS;
}

int device_source_begin(struct device_source *source, const void *buffer, size_t count,
                        const ompi_datatype_t *datatype, const struct memory *memory, size_t bytes,
                        enum device_bounce bounce)
{
    driver_result result = DRIVER_SUCCESS;
    source->view = view_new(buffer, count, datatype, memory, &result);
    if (!source->view) {
        driver_complain("cannot use the device memory of a message", result);
        return MPI_ERR_OTHER;
    }
    int rc = bounce == BOUNCE_NONE ? OMPI_SUCCESS : bounce_fill(source, bytes, bounce);
    if (rc != OMPI_SUCCESS)
        device_source_end(source);
    return rc;
}

void device_source_end(struct device_source *source)
{
    if (source->bounce)
        slot_return(source->bounce);
    free(source->view);
    *source = (struct device_source){.view = NULL};
}

void device_sink_construct(struct device_sink *sink, void (*done)(struct device_sink *sink))
{
    sink->view = NULL;
    sink->done = done;
    sink->error = MPI_SUCCESS;
    OBJ_CONSTRUCT(&sink->lock, opal_mutex_t);
}

bool device_sink_begin(struct device_sink *sink, const void *buffer, size_t count,
                       const ompi_datatype_t *datatype, size_t bytes)
{
    const char *address = buffer_first_byte(buffer, datatype);
    struct memory memory;
    driver_result result = DRIVER_SUCCESS;
    memory_ask(address, &memory);
    if (memory.kind == MEMORY_HOST)
        return false;
    sink->error = buffer_gone(&memory, address);
    if (OPAL_UNLIKELY(sink->error != MPI_SUCCESS))
        return true;
    device_costs_use(&memory);
    sink->view = view_new(buffer, count, datatype, &memory, &result);
    if (!sink->view) {
        driver_complain("cannot use the device memory of a receive", result);
        sink->error = MPI_ERR_OTHER;
        return true;
    }
    sink->bytes = bytes;
    sink->filling = NULL;
    /* Relaxed, both: no other thread uses the sink yet. */
    atomic_store_explicit(&sink->copies, 1, memory_order_relaxed); /* until device_sink_end */
    atomic_store_explicit(&sink->no_more, false, memory_order_relaxed);
    return true;
}

/* True: it was the last copy. */
static bool copy_ended(struct device_sink *sink)
{
    /* Release: our result. Acquire: the others', before the sink completes. */
    return atomic_fetch_sub_explicit(&sink->copies, 1, memory_order_acq_rel) == 1;
}

static void sink_free(struct device_sink *sink)
{
    free(sink->view);
    sink->view = NULL;
}

/* Keeps how a copy ended, if it is the first that failed. */
static void copy_result(struct device_sink *sink, driver_result result)
{
    if (OPAL_LIKELY(result == DRIVER_SUCCESS))
        return;
    driver_complain("cannot write the device memory of a receive", result);
    sink->error = MPI_ERR_OTHER;
}

static void slot_written(struct slot *slot, driver_result result)
{
    struct device_sink *sink = slot->owner;
    slot_return(slot);
    copy_result(sink, result);
    if (!copy_ended(sink))
        return;
    sink_free(sink);
    sink->done(sink);
}

/* Starts the copy of the slot that is being filled. With the lock held. */
static void filling_copy(struct device_sink *sink)
{
    struct slot *slot = sink->filling;
    if (!slot)
        return;
    sink->filling = NULL;
    atomic_fetch_add_explicit(&sink->copies, 1, memory_order_relaxed); /* `copies` is not 0 */
    driver_result result = slot_copy(slot, sink->view, COPY_TO_DEVICE, slot_written);
    if (OPAL_LIKELY(result == DRIVER_SUCCESS))
        return;
    copy_result(sink, result);
    slot_return(slot);
    atomic_fetch_sub_explicit(&sink->copies, 1, memory_order_relaxed);
}

/* All slots are in use, by other messages too: the driver copies from where the bytes are. This
 * waits for the driver only, so it ends. */
static void write_now(struct device_sink *sink, size_t offset, const char *bytes, size_t length)
{
    const struct view *view = sink->view;
    driver_result result =
        view_copy(view, COPY_TO_DEVICE, offset, length, (void *) (uintptr_t) bytes);
    driver_result waited = copier_wait(view->copier, COPY_TO_DEVICE);
    copy_result(sink, result == DRIVER_SUCCESS ? waited : result);
}

/* Where all slots are in use the sink's own come free when their copies have ended: pieces may come
 * faster than progress looks. */
static struct slot *slot_get(struct device_sink *sink, size_t bytes)
{
    struct slot *slot = slot_take(sink->view->copier, bytes);
    /* The sink does not end by that, as `copies` is not 0. */
    if (!slot && slots_await(sink->view->copier, COPY_TO_DEVICE, sink))
        slot = slot_take(sink->view->copier, bytes);
    return slot;
}

/* The slot for the byte at `offset`; adjacent pieces share one. */
static struct slot *filling_at(struct device_sink *sink, size_t offset)
{
    struct slot *slot = sink->filling;
    if (slot && slot->offset + slot->length == offset && slot->length < slot->room)
        return slot;
    filling_copy(sink);
    slot = slot_get(sink, sink->bytes - offset);
    if (slot) {
        slot->owner = sink;
        slot->offset = offset;
        slot->length = 0;
    }
    sink->filling = slot;
    return slot;
}

void device_sink_write(struct device_sink *sink, size_t offset, const char *bytes, size_t length)
{
    OPAL_THREAD_LOCK(&sink->lock);
    while (length) {
        struct slot *slot = filling_at(sink, offset);
        if (!slot) {
            write_now(sink, offset, bytes, length);
            break;
        }
        size_t taken = slot->room - slot->length < length ? slot->room - slot->length : length;
        memcpy(slot->bytes + slot->length, bytes, taken);
        slot->length += taken;
        if (slot->length == slot->room)
            filling_copy(sink);
        offset += taken;
        bytes += taken;
        length -= taken;
    }
    OPAL_THREAD_UNLOCK(&sink->lock);
}

/* For example, its rail died after the last write. A read by another device would not push these
 * writes, and the sender of puts may have its buffer back. So the driver flushes for all
 * devices; where it cannot, the receive ends with an error. */
static void flush_failed(struct device_sink *sink, int status)
{
    char words[160];
    driver_result result = copier_flush(sink->view->copier);
    if (result == DRIVER_SUCCESS)
        return;
    opal_output(0,
                "multilane: what a lane wrote to device memory may not have reached it: the "
                "device's own read of it ended with %d (%s), and of a flush the CUDA driver says "
                "%s.",
                status, opal_strerror(status), driver_words(result, words, sizeof(words)));
    sink->error = MPI_ERR_OTHER;
}

static void flush_ended(void *context, int status)
{
    struct device_sink *sink = context;
    if (OPAL_UNLIKELY(status != OPAL_SUCCESS))
        flush_failed(sink, status);
    if (!copy_ended(sink))
        return;
    sink_free(sink);
    sink->done(sink);
}

/* Flushes each lane that may have written there, once per message. */
static void flushes_start(struct device_sink *sink, const struct rma *rma)
{
    const char *place = view_contiguous(sink->view);
    for (uint32_t i = 0; i < rma->count; i++) {
        atomic_fetch_add_explicit(&sink->copies, 1, memory_order_relaxed); /* `copies` is not 0 */
        int rc = lane_flush(&rma->lanes[i].local, place, sink->bytes, flush_ended, sink);
        if (OPAL_LIKELY(rc == OMPI_SUCCESS))
            continue;
        flush_failed(sink, rc);
        atomic_fetch_sub_explicit(&sink->copies, 1, memory_order_relaxed);
    }
}

static void pulled(struct slot *slot, driver_result result)
{
    struct device_sink *sink = slot->owner;
    slot_return(slot);
    copy_result(sink, result);
    sink->pulled(sink);
}

bool device_sink_pull(struct device_sink *sink, void *bytes, void (*done)(struct device_sink *sink))
{
    struct slot *slot = slot_around(bytes, sink->bytes);
    if (!slot)
        return false;
    slot->owner = sink;
    sink->pulled = done;
    if (slot_copy(slot, sink->view, COPY_TO_DEVICE, pulled) == DRIVER_SUCCESS)
        return true;
    slot_return(slot);
    return false;
}

bool device_sink_end(struct device_sink *sink, const struct rma *rma)
{
    /* True before: a lost peer or a cancel has ended it, and the last copies complete it.
     * Relaxed: it guards only the one count in `copies`. */
    if (atomic_exchange_explicit(&sink->no_more, true, memory_order_relaxed))
        return true;
    OPAL_THREAD_LOCK(&sink->lock);
    filling_copy(sink);
    OPAL_THREAD_UNLOCK(&sink->lock);
    /* Relaxed: recv_request_received has ordered it. */
    if (rma->count && sink->view->copier->needs_flush &&
        atomic_load_explicit(&rma->landed, memory_order_relaxed))
        flushes_start(sink, rma);
    if (!copy_ended(sink))
        return true;
    sink_free(sink);
    return false;
}
