/* SPDX-License-Identifier: BSD-3-Clause */
/* Images in host memory of buffers on a device. */
#include <stdint.h>
#include <stdlib.h>

#include "coll/multilane/coll.h"
#include "common/memory/memory.h"

/* An image lies to these as its buffer does: operations may count on it. */
#define ALIGNMENT 64

/* An operation that uses only what lies behind the start of its buffer has an image that starts
 * before its memory, maybe where the other buffer starts. Open MPI takes two buffers that start at
 * one address for MPI_IN_PLACE. */
static int buffer_look(struct buffer *buffer, const void *at, struct blocks blocks,
                       const void *other)
{
    ptrdiff_t start, end;

    *buffer = (struct buffer){.at = (char *) at, .count = blocks.count};
    if (at == MPI_IN_PLACE || !blocks_span(&blocks, &start, &end) ||
        !memory_is_of_device(buffer->at + start))
        return OMPI_SUCCESS;
    buffer->blocks =
        malloc(blocks.count * sizeof(*buffer->blocks) + (size_t) (end - start) + 2 * ALIGNMENT);
    if (!buffer->blocks)
        return OMPI_ERR_OUT_OF_RESOURCE;
    for (size_t i = 0; i < blocks.count; i++)
        buffer->blocks[i] = blocks_get(&blocks, i);
    uintptr_t first = (uintptr_t) (buffer->blocks + blocks.count);
    first += ((uintptr_t) (buffer->at + start) - first) % ALIGNMENT;
    buffer->image = (char *) (first - (uintptr_t) start);
    if (buffer->image == other)
        buffer->image += ALIGNMENT;
    return OMPI_SUCCESS;
}

int staging_make(struct staging *staging, ompi_communicator_t *comm, const void **send,
                 struct blocks sent, void **receive, struct blocks received, bool keeps)
{
    staging->comm = comm;
    staging->keeps = keeps || *send == MPI_IN_PLACE;
    staging->received.blocks = NULL;
    int status = buffer_look(&staging->sent, *send, sent, *receive);
    if (staging->sent.blocks)
        *send = staging->sent.image;
    if (status == OMPI_SUCCESS)
        status = buffer_look(&staging->received, *receive, received, *send);
    if (status != OMPI_SUCCESS) {
        staging_free(staging);
        return status;
    }
    if (staging->received.blocks)
        *receive = staging->received.image;
    return OMPI_SUCCESS;
}

/* The communicator in which this process has a number. */
static ompi_communicator_t *comm_of_self(const struct staging *staging)
{
    return OMPI_COMM_IS_INTER(staging->comm) ? staging->comm->c_local_comm : staging->comm;
}

static int buffer_fill(struct staging *staging, struct buffer *buffer)
{
    struct transfer transfer;
    int status = transfer_start(&transfer, comm_of_self(staging), buffer->blocks, buffer->count,
                                buffer->at, buffer->image);

    return status == OMPI_SUCCESS ? transfer_wait(&transfer) : status;
}

int staging_fill(struct staging *staging)
{
    int status = OMPI_SUCCESS;

    if (staging->sent.blocks)
        status = buffer_fill(staging, &staging->sent);
    if (status == OMPI_SUCCESS && staging->received.blocks && staging->keeps)
        status = buffer_fill(staging, &staging->received);
    return status;
}

int staging_empty(struct staging *staging, struct transfer *transfer)
{
    struct buffer *buffer = &staging->received;

    *transfer = (struct transfer){0};
    if (!buffer->blocks)
        return OMPI_SUCCESS;
    return transfer_start(transfer, comm_of_self(staging), buffer->blocks, buffer->count,
                          buffer->image, buffer->at);
}

void staging_free(struct staging *staging)
{
    free(staging->sent.blocks);
    free(staging->received.blocks);
    staging->sent.blocks = staging->received.blocks = NULL;
}

int staging_end(struct staging *staging, int status)
{
    struct transfer back;

    if (!staging_is_used(staging))
        return status;
    if (status == OMPI_SUCCESS)
        status = staging_empty(staging, &back);
    if (status == OMPI_SUCCESS)
        status = transfer_wait(&back);
    staging_free(staging);
    return status;
}
