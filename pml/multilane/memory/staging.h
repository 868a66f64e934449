/* SPDX-License-Identifier: BSD-3-Clause */
/* Host memory through which device memory passes: slots, and the copies that fill and empty them.
 */
#ifndef MULTILANE_STAGING_H
#define MULTILANE_STAGING_H

#include "lane/transfer.h"
#include "memory/view.h"

/* The most that one slot carries: enough to keep a bus busy, and small enough that the stages of a
 * message overlap. */
#define SLOT_BYTES ((size_t) 512 << 10)

/* A piece of host memory, pinned where the driver has some left. Whoever took it owns it until it
 * is given back; while it is being copied, staging does. */
struct slot {
    struct slot *next; /* free ones, or those of a queue */
    unsigned char *bytes;
    size_t room;
    size_t offset, length; /* of the message, while it holds a piece of one */
    void *owner;
    uint8_t pool; /* which one it goes back to */

    /* While it is being copied: */
    void (*done)(struct slot *slot, driver_result result);
    struct copier *copier;
    driver_event event;

    /* While it is being sent: */
    struct transfer transfer;
    opal_convertor_t convertor;
};

/* A slot for `bytes`, or for as many of them as one has room for; null: all are in use. */
struct slot *slot_take(struct copier *copier, size_t bytes);
/* One that has room for all of `bytes`, from the heap if need be; null: there is no memory. */
struct slot *slot_take_whole(struct copier *copier, size_t bytes);
/* One from the heap. */
struct slot *slot_new(size_t bytes);
void slot_return(struct slot *slot);

/* Starts to copy the slot's piece from or to its place. `done` is called from progress when it is
 * there, or something failed; not if this itself returns an error. */
driver_result slot_copy(struct slot *slot, const struct view *view, enum copy_direction way,
                        void (*done)(struct slot *slot, driver_result result));

/* Ends copies that are through; returns how many. */
int staging_progress(void);
/* From now on opal_progress calls it; else from the first copy on. */
void staging_listen(void);

/* Copies the whole message to the slot, and waits for it. */
driver_result slot_read(struct slot *slot, const struct view *view);

void staging_fini(void);

#endif
