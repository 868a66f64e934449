/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages in device memory: which bytes lie where, the host memory that they go through, and the
 * two ends of such a message. */
#ifndef MULTILANE_DEVICE_H
#define MULTILANE_DEVICE_H

#include "common/compat/pml.h"
#include "common/memory/packer.h"
#include "lane/transfer.h"
#include "memory/rma.h"

/* --- view.c ----------------------------------------------------------------------------------- */

/* Checks of user buffers in device memory, for sends and receives. */

/* The first byte of the data. It determines the memory kind of the buffer. */
static inline const char *buffer_first_byte(const void *buffer, const ompi_datatype_t *datatype)
{
    return (const char *) buffer + datatype->super.true_lb;
}

/* MPI_SUCCESS, or an MPI error class after a message, where neither the driver nor the CPU can
 * use the memory any more. */
int buffer_gone(const struct memory *memory, const void *address);

/* Prints what the CUDA driver refused, in its own words; only the first few times. */
void driver_complain(const char *what, driver_result result);

/* A message is a sequence of equal elements; a contiguous one is one element of one block. */
struct view {
    struct copier *copier;
    bool is_contiguous;
    struct layout layout;
    struct pack_block blocks[]; /* of `layout` */
};

/* Null: no memory, or the driver's error in *result. The caller frees it. */
struct view *view_new(const void *buffer, size_t count, const ompi_datatype_t *datatype,
                      const struct memory *memory, driver_result *result);

/* Its first byte, if it lies in one piece; else null. */
char *view_contiguous(const struct view *view);

/* Starts copies of the packed bytes [offset, offset + bytes) to or from `host`; `host` must stay
 * until the copier has passed them. Blocks of equal length at equal distances, as in most
 * datatypes, and parts of cubes, are one copy of the driver each. A kernel packs everything
 * else; without kernels each block is one copy. */
driver_result view_copy(const struct view *view, enum copy_direction direction, size_t offset,
                        size_t bytes, void *host);

/* --- staging.c -------------------------------------------------------------------------------- */

/* Host memory for messages in device memory: slots, and the copies that fill and empty them. */

/* The size of a slot: keeps a bus busy, and lets the stages of a message overlap. */
#define SLOT_BYTES ((size_t) 512 << 10)

/* A piece of host memory, pinned where possible. The one that took it owns it; while it is
 * copied, staging.c does. */
struct slot {
    struct slot *next; /* in the free list or a queue */
    unsigned char *bytes;
    size_t room;
    size_t offset, length; /* the piece of the message in it */
    void *owner;
    uint8_t pool; /* to return it to */

    /* While it is being copied: */
    void (*done)(struct slot *slot, driver_result result);
    struct copier *copier;
    driver_event event;

    /* While it is being sent: */
    struct transfer transfer;
};

/* A slot for `bytes` or less; null: all are in use. */
struct slot *slot_take(struct copier *copier, size_t bytes);
/* A slot for all of `bytes`, from the heap if need be; null: no memory. */
struct slot *slot_take_whole(struct copier *copier, size_t bytes);
/* A slot from the heap. */
struct slot *slot_new(size_t bytes);
/* A slot whose bytes are the caller's and stay so; null: no memory. */
struct slot *slot_around(void *bytes, size_t length);
void slot_return(struct slot *slot);

/* Starts to copy the slot's piece. Progress calls `done` when it has ended or failed; not where
 * this returns an error. */
driver_result slot_copy(struct slot *slot, const struct view *view, enum copy_direction direction,
                        void (*done)(struct slot *slot, driver_result result));

/* Waits for the copies of that direction, and ends those of the owner that stand before all others.
 * False: there was none. */
bool slots_await(struct copier *copier, enum copy_direction direction, const void *owner);

/* Handles ended copies; returns how many. Progress calls it. */
int staging_progress(void);

/* Copies the whole message to the slot and waits. */
driver_result slot_read(struct slot *slot, const struct view *view);

void staging_fini(void);

/* --- device_ends.c ---------------------------------------------------------------------------- */

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
