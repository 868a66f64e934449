/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys of memory in several chunks that a program has mapped one behind the other. A key has one
 * size, so this one says where its owner has the keys of the chunks, and we read them there, which
 * takes the right that taking their file descriptors takes as well. */
#include "btl/cuda/cuda.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

/* The kinds of key that a chunk has. */
static bool is_of_chunk(const cuda_key_t *key)
{
    return (key->kind == SHARE_FABRIC || key->kind == SHARE_FD) && key->size > 0 &&
           key->size <= UINT64_MAX - key->start;
}

/* What is read came from outside: the chunks must follow each other, and the key's memory must lie
 * in them. */
static bool is_covered(const cuda_key_t *key, const cuda_key_t *chunks)
{
    uint64_t end = chunks[0].start;

    if (end > key->start)
        return false;
    for (uint32_t i = 0; i < key->handle.list.count; i++) {
        if (!is_of_chunk(&chunks[i]) || chunks[i].start != end)
            return false;
        end += chunks[i].size;
    }
    return end >= key->start && key->size <= end - key->start;
}

cuda_key_t *cuda_list_read(const cuda_key_t *key, char *why, size_t why_size)
{
    uint32_t count = key->handle.list.count;

    if (count == 0 || count > (uint32_t) cuda.handles_max) {
        snprintf(why, why_size,
                 "a message is in %" PRIu32 " chunks, and btl_cuda_handles_max is %d", count,
                 cuda.handles_max);
        return NULL;
    }
    size_t bytes = count * sizeof(cuda_key_t);
    cuda_key_t *chunks = malloc(bytes);
    struct iovec here = {chunks, bytes},
                 there = {(void *) (uintptr_t) key->handle.list.address, bytes};
    if (!chunks) {
        snprintf(why, why_size, "out of memory");
        return NULL;
    }
    ssize_t read = process_vm_readv(key->handle.list.pid, &here, 1, &there, 1, 0);
    if (read == (ssize_t) bytes && is_covered(key, chunks))
        return chunks;
    if (read == (ssize_t) bytes)
        snprintf(why, why_size, "the chunks that it names are not those of a message");
    else
        snprintf(why, why_size, "the system does not let us read which chunks it is in (%s)",
                 read < 0 ? strerror(errno) : "no such memory");
    free(chunks);
    return NULL;
}
