/* SPDX-License-Identifier: BSD-3-Clause */
/* The two ends of a message in device memory. */
#ifndef MULTILANE_DEVICE_ENDS_H
#define MULTILANE_DEVICE_ENDS_H

#include <stdatomic.h>

#include "memory/rma.h"
#include "memory/staging.h"

/* Sends a message from device memory. */

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

struct device_sink {
    struct view *view;       /* null: the message does not go to device memory */
    size_t bytes;            /* how many bytes go there */
    _Atomic uint32_t copies; /* copies under way, plus 1 until device_sink_end */
    _Atomic bool no_more;    /* no piece will come */
    int error;               /* an MPI error class, once a copy has failed */
    opal_mutex_t lock;       /* guards filling */
    struct slot *filling;    /* takes the next piece */
    /* Called when the last copy has ended; view is null. No lock is held. */
    void (*done)(struct device_sink *sink);
    void (*pulled)(struct device_sink *sink); /* see device_sink_pull */
};

/* Call it once; then the sink may be used many times. */
void device_sink_construct(struct device_sink *sink, void (*done)(struct device_sink *sink));

/* Begins a message of which `bytes` go to this buffer. False: host memory. True: write all by
 * device_sink_write; where sink->error is set it fails. */
bool device_sink_begin(struct device_sink *sink, const void *buffer, size_t count,
                       const ompi_datatype_t *datatype, size_t bytes);

/* Starts to copy a piece to the device. */
void device_sink_write(struct device_sink *sink, size_t offset, const char *bytes, size_t length);

/* Starts to copy the whole message from host memory of this process, which stays as it is until
 * `done` is called. False: nothing was started. */
bool device_sink_pull(struct device_sink *sink, void *bytes,
                      void (*done)(struct device_sink *sink));

/* Ends the message; `rma` names the lanes that may have written to the device. False: all bytes
 * are there, and view is null. True: copies or flushes are under way, and `done` will be called. */
bool device_sink_end(struct device_sink *sink, const struct rma *rma);

#endif
