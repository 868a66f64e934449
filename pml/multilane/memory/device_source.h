/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends a message from device memory. */
#ifndef MULTILANE_DEVICE_SOURCE_H
#define MULTILANE_DEVICE_SOURCE_H

#include "memory/staging.h"
#include "memory/view.h"

/* Zeroed: the message is not in device memory. */
struct device_source {
    struct view *view;
    struct slot *bounce; /* the copy in host memory that the protocol reads; or null */
};

enum device_bounce {
    BOUNCE_NONE,
    BOUNCE_SOON, /* needed until the message has left */
    BOUNCE_LONG  /* needed until its receive matches: must not keep a slot from others */
};

/* Copies the message of `bytes` to host memory, if wanted, before it has a number, so that no
 * receiver waits for it. An MPI error class where that fails. */
int device_source_begin(struct device_source *source, const void *buffer, size_t count,
                        const ompi_datatype_t *datatype, const struct memory *memory, size_t bytes,
                        enum device_bounce bounce);
void device_source_end(struct device_source *source);

#endif
