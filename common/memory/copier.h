/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies from, to and between device memory, by streams of our own. */
#ifndef COMMON_MEMORY_COPIER_H
#define COMMON_MEMORY_COPIER_H

#include <stdatomic.h>

#include "common/memory/memory.h"

/* Each has a stream, so that the directions overlap; copies of one stream end in their order. */
enum copy_direction { COPY_TO_HOST, COPY_TO_DEVICE, COPY_BETWEEN, COPY_DIRECTIONS };

/* Most contexts that one process copies in, those that have ended included. */
#define COPIERS_MAX 1024

/* Everything that copies in one context of a device need. It is made at first use and lives until
 * copiers_close.
 *
 * A program may end its contexts, or reset a device, while we go on; then all that was of the
 * context is gone, and the driver crashes when it is used. It does not tell, and may give the
 * next context the same address. But the number of an allocation is never used again: so each
 * copier has one of its own, the witness, and while its number is there the context is. */
struct copier {
    driver_context context;
    int device;
    unsigned index;          /* below COPIERS_MAX */
    bool is_retained;        /* the context is the device's primary one, and we hold it */
    _Atomic bool is_primary; /* it is the primary one, held by us or not */
    _Atomic bool is_gone;    /* its context is; it is entered no more */
    bool needs_flush;        /* see copier_flush */
    _Atomic bool is_shared;  /* other processes use the device; see copier_copy */
    driver_ptr witness;
    uint64_t witness_id;          /* 0: there was no memory for one, and nothing is known */
    _Atomic uint64_t last_buffer; /* id of the memory that copier_get was last asked for */
    driver_stream streams[COPY_DIRECTIONS];
};

/* The copier for such memory: of the context it was allocated in, else of its device. Null: *result
 * says why. Needs no lock of the caller. */
struct copier *copier_get(const struct memory *memory, driver_result *result);

/* Of copies that the program has waited for, the driver lets some go on: those from pageable host
 * memory, and those within a device. Our streams would overtake them. After this none is under way
 * in memory of the copier's context, nor will one be. Asks the driver once an allocation. Memory
 * from a pool, and what a program maps itself, it does not do it for. */
void copier_settle(const struct copier *copier, const struct memory *memory);

/* The copier in the primary context of a device. */
struct copier *copier_of_device(int device, driver_result *result);

/* Is the copier's context still there? Asks the driver. */
bool copier_is_alive(struct copier *copier);

/* The same, as far as it was found out before. */
static inline bool copier_is_gone(const struct copier *copier)
{
    return atomic_load_explicit(&copier->is_gone, memory_order_relaxed);
}

/* Before all is given back: a context that may have ended counts as gone, so that nothing of
 * it is touched. */
void copiers_check(void);

/* Starts a copy of `bytes`; it may be under way when this returns.
 *
 * Few bytes for a device the driver hands over by that part of it which runs kernels, and that
 * belongs to one process at a time: measured on an H200, 141 us in place of 6 where another process
 * had it. Rows go by the copy engines, which all share (8 us). So on a device that is shared few
 * bytes are two rows. */
driver_result copier_copy(struct copier *copier, enum copy_direction direction, driver_ptr to,
                          driver_ptr from, size_t bytes);

/* Rows of equal length at equal distances, and planes of such rows at equal distances. */
struct copy_end {
    driver_ptr start;
    size_t pitch; /* from the start of a row to that of the next one */
    size_t rows;  /* from the first row of a plane to that of the next one, in rows */
};

struct copy_shape {
    struct copy_end to, from;
    size_t bytes, rows, planes; /* of a row; of a plane; in all */
};

/* Starts a copy of all of it. */
driver_result copier_copy_shape(struct copier *copier, enum copy_direction direction,
                                const struct copy_shape *shape);

/* Waits for all copies of that direction: those before it in the stream are copies too, so it ends.
 */
driver_result copier_wait(struct copier *copier, enum copy_direction direction);

/* An event that stands behind the copies started so far. It is the caller's until
 * copier_event_return. */
driver_result copier_event_record(struct copier *copier, enum copy_direction direction,
                                  driver_event *event);
/* DRIVER_SUCCESS: they are done; DRIVER_NOT_READY: not yet; else what went wrong with them. */
driver_result copier_event_test(driver_event event);
void copier_event_return(struct copier *copier, driver_event event);

/* Copiers that there were so far: each has a smaller index. */
unsigned copiers_count(void);

/* Not needed where the device itself orders what others write before what any device reads after
 * the processor has heard of it, as the driver says. It says that of the device alone: where the
 * processor may hear by another bus than the bytes come by (a device that shares its page tables),
 * it is needed all the same.
 *
 * After it other devices' writes to memory of the copier's context that the processor has heard of
 * are there. DRIVER_NOT_SUPPORTED: this device, or its driver, offers no such thing. */
driver_result copier_flush(const struct copier *copier);

/* Pinned memory of the host; null where there is none left. */
void *copier_pin(struct copier *copier, size_t bytes, driver_result *result);
void copier_unpin(struct copier *copier, void *bytes);

/* The same for whole pages of the caller's, which stay what they are when the context goes. False:
 * the driver may still take them for pinned, so they must not become anything else. */
driver_result copier_pin_pages(struct copier *copier, void *memory, size_t bytes);
bool copier_unpin_pages(struct copier *copier, void *memory);

/* Gives everything back. Nothing is under way any more. */
void copiers_close(void);

/* Makes a context, or that of a copier, the one of this thread for other calls of the driver, until
 * context_leave; meanwhile no capture of the program's forbids this thread anything. An error: it
 * cannot be, or is gone. */
driver_result context_enter(driver_context context);
driver_result copier_enter(const struct copier *copier);
void context_leave(void);

/* What one call of the driver, or several that end with one, says in the context of a copier; or
 * why it cannot be made the one of this thread: then nothing is called. */
#define IN_CONTEXT(copier, call)                                                                   \
    __extension__({                                                                                \
        driver_result result_ = copier_enter(copier);                                              \
        if (result_ == DRIVER_SUCCESS) {                                                           \
            result_ = (call);                                                                      \
            context_leave();                                                                       \
        }                                                                                          \
        result_;                                                                                   \
    })

#endif
