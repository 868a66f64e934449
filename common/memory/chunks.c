/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts the kernels of a ring, and starts them again: none waits longer than some looks. */
#include "common/memory/chunks.h"

#include <string.h>

#include "common/memory/kernels.h"

/* Looks at a counter before a kernel gives up. One takes most of a microsecond, as it goes past the
 * nearest cache, so this is about what starting a kernel anew costs. A guess, not measured. */
#define LOOKS 20

/* One block: messages are small, and their latency is what matters. */
#define THREADS 256

driver_result chunk_end_init(struct chunk_end *end, struct copier *copier, bool is_sender,
                             driver_ptr ring, driver_ptr emptied)
{
    driver_result result = kernels_ready(copier);
    driver_ptr filled = ring + (driver_ptr) CHUNK_BYTES * RING_CHUNKS;
    memset(end, 0, sizeof(*end));
    if (result != DRIVER_SUCCESS)
        return result;
    end->moved = copier_pin(copier, sizeof(*end->moved), &result);
    if (!end->moved)
        return result;
    end->copier = copier;
    end->direction = is_sender ? COPY_TO_HOST : COPY_TO_DEVICE;
    end->job = (struct chunk_job){.chunks = ring,
                                  .waits = is_sender ? emptied : filled,
                                  .tells = is_sender ? filled : emptied,
                                  .moved = (uint64_t) (uintptr_t) end->moved,
                                  .chunk_bytes = CHUNK_BYTES,
                                  .ring_chunks = RING_CHUNKS,
                                  .looks = LOOKS,
                                  .is_sender = is_sender};
    return DRIVER_SUCCESS;
}

void chunk_end_fini(struct chunk_end *end)
{
    if (end->moved)
        copier_unpin(end->copier, end->moved);
    end->moved = NULL;
}

static driver_result kernel_start(struct chunk_end *end)
{
    end->job.first = end->next;
    driver_result result =
        kernels_start(end->copier, end->direction, KERNEL_CHUNKS, &end->job, THREADS);
    if (result != DRIVER_SUCCESS)
        return result;
    result = copier_event_record(end->copier, end->direction, &end->event);
    if (result != DRIVER_SUCCESS)
        copier_wait(end->copier, end->direction); /* for some looks at most */
    return result;
}

driver_result chunk_end_start(struct chunk_end *end, driver_ptr user, size_t bytes)
{
    end->job.user = user;
    end->job.bytes = bytes;
    return kernel_start(end);
}

/* What the kernel that has ended left to do. */
static driver_result rest_start(struct chunk_end *end, bool go_on)
{
    /* Relaxed: the event has ordered it. */
    uint64_t moved = __atomic_load_n(end->moved, __ATOMIC_RELAXED);
    uint64_t bytes = moved * end->job.chunk_bytes;
    end->next += moved;
    if (bytes >= end->job.bytes)
        return DRIVER_SUCCESS;
    end->job.user += bytes;
    end->job.bytes -= bytes;
    if (!go_on)
        return DRIVER_LAUNCH_TIMEOUT;
    driver_result result = kernel_start(end);
    return result == DRIVER_SUCCESS ? DRIVER_NOT_READY : result;
}

driver_result chunk_end_test(struct chunk_end *end, bool go_on)
{
    driver_result result = copier_event_test(end->event);
    if (result == DRIVER_NOT_READY)
        return result;
    copier_event_return(end->copier, end->event);
    return result == DRIVER_SUCCESS ? rest_start(end, go_on) : result;
}
