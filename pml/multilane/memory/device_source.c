/* SPDX-License-Identifier: BSD-3-Clause */
/* Brings a message from device memory to host memory, where its protocol needs that. */
#include "memory/device_source.h"

#include "memory/device_buffer.h"

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
    view_free(source->view);
    *source = (struct device_source){.view = NULL};
}
