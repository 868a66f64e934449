/* SPDX-License-Identifier: BSD-3-Clause */
/* The device memory that a message is received in. */
#ifndef MULTILANE_DEVICE_SINK_H
#define MULTILANE_DEVICE_SINK_H

#include <stdatomic.h>

#include "memory/rma.h"
#include "memory/staging.h"
#include "memory/view.h"

struct device_sink {
    struct view *view;       /* null: the message does not go to device memory */
    size_t bytes;            /* of the message that go there */
    _Atomic uint32_t copies; /* under way, and one more as long as pieces may come */
    _Atomic bool no_more;    /* none will come */
    int error;               /* an MPI error class, once a copy has failed */
    opal_mutex_t lock;       /* guards filling */
    struct slot *filling;    /* takes the next piece */
    /* The last copy has ended; view is null. No lock is held. */
    void (*done)(struct device_sink *sink);
};

/* Once for a sink, which may then be used again and again. */
void device_sink_construct(struct device_sink *sink, void (*done)(struct device_sink *sink));
void device_sink_destruct(struct device_sink *sink);

/* A receive has met a message of which `bytes` go to this buffer. False: it is the host's. True:
 * all goes there by device_sink_write; or, with sink->error, it cannot. */
bool device_sink_begin(struct device_sink *sink, const void *buffer, size_t count,
                       const ompi_datatype_t *datatype, size_t bytes);

/* Puts a piece of the message on its way to the device. */
void device_sink_write(struct device_sink *sink, size_t offset, const char *bytes, size_t length);

/* No piece will come any more; `rma` is what lanes may have written to the device by. False: all
 * are there, and view is null; true: copies or flushes are under way, and `done` is called. */
bool device_sink_end(struct device_sink *sink, const struct rma *rma);

#endif
