/* SPDX-License-Identifier: BSD-3-Clause */
/* Host memory for messages in device memory: slots, and the copies that fill and empty them. */
#ifndef MULTILANE_STAGING_H
#define MULTILANE_STAGING_H

#include "lane/transfer.h"
#include "memory/view.h"

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

#endif
