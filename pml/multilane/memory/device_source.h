/* SPDX-License-Identifier: BSD-3-Clause */
/* The device memory that a message is sent from. */
#ifndef MULTILANE_DEVICE_SOURCE_H
#define MULTILANE_DEVICE_SOURCE_H

#include "memory/staging.h"
#include "memory/view.h"

/* Zeroed: the message is not in device memory. */
struct device_source {
    struct view *view;
    struct slot
        *bounce; /* the message in host memory, where its protocol wants it there; or null */
};

enum device_bounce {
    BOUNCE_NONE,
    BOUNCE_SOON, /* needed until it has left */
    BOUNCE_LONG  /* needed until the message meets its receive: must not keep a slot from others */
};

/* Before the message of `bytes` has a number, so that no receiver waits for it: brings it into host
 * memory if wanted. An MPI error class where that is not possible. */
int device_source_begin(struct device_source *source, const void *buffer, size_t count,
                        const ompi_datatype_t *datatype, const struct memory *memory, size_t bytes,
                        enum device_bounce bounce);
void device_source_end(struct device_source *source);

#endif
