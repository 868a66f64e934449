/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies between a buffer and its image: messages of this process to itself. */
#include <stdatomic.h>
#include <stdlib.h>

#include "coll/multilane/coll.h"

/* Each message has a tag of its own, so that those of several threads and operations are not
 * mistaken for each other: below those of Open MPI's collectives, where no receive of the program's
 * looks. Relaxed: a number that is used by one thread. */
#define TAGS 0x100000

static int tag_next(void)
{
    static atomic_uint used;
    unsigned number = atomic_fetch_add_explicit(&used, 1, memory_order_relaxed);

    return MCA_COLL_BASE_TAG_NEIGHBOR_END - 2 - (int) (number % TAGS);
}

static int block_move(ompi_communicator_t *comm, const struct block *block, const char *from,
                      char *to, ompi_request_t **requests)
{
    int tag = tag_next(), self = ompi_comm_rank(comm);
    int status = MCA_PML_CALL(
        irecv(to + block->at, block->elements, block->type, self, tag, comm, &requests[1]));

    if (status != OMPI_SUCCESS)
        return status;
    status = MCA_PML_CALL(isend((void *) (from + block->at), block->elements, block->type, self,
                                tag, MCA_PML_BASE_SEND_STANDARD, comm, &requests[0]));
    if (status == OMPI_SUCCESS)
        return status;
    ompi_request_cancel(requests[1]);
    ompi_request_wait(&requests[1], MPI_STATUS_IGNORE);
    return status;
}

int transfer_start(struct transfer *transfer, ompi_communicator_t *comm, const struct block *blocks,
                   size_t count, const char *from, char *to)
{
    int status = OMPI_SUCCESS;

    transfer->count = 0;
    transfer->requests = calloc(2 * count, sizeof(*transfer->requests));
    if (!transfer->requests)
        return OMPI_ERR_OUT_OF_RESOURCE;
    for (size_t i = 0; i < count && status == OMPI_SUCCESS; i++) {
        if (blocks[i].elements == 0)
            continue;
        status = block_move(comm, &blocks[i], from, to, &transfer->requests[transfer->count]);
        if (status == OMPI_SUCCESS)
            transfer->count += 2;
    }
    if (status != OMPI_SUCCESS)
        transfer_wait(transfer);
    return status;
}

static void status_note(int *status, int found)
{
    if (*status == OMPI_SUCCESS)
        *status = found;
}

bool transfer_test(struct transfer *transfer, int *status)
{
    *status = OMPI_SUCCESS;
    for (size_t i = 0; i < transfer->count; i++) {
        ompi_request_t *request = transfer->requests[i];

        if (request_is_complete(request))
            continue;
        /* A send that failed before anything left is a receive that nothing will come for. */
        if (i % 2 && request_is_complete(transfer->requests[i - 1]) &&
            transfer->requests[i - 1]->req_status.MPI_ERROR != MPI_SUCCESS)
            ompi_request_cancel(request);
        return false;
    }
    for (size_t i = 0; i < transfer->count; i++) {
        status_note(status, transfer->requests[i]->req_status.MPI_ERROR);
        ompi_request_free(&transfer->requests[i]);
    }
    free(transfer->requests);
    *transfer = (struct transfer){0};
    return true;
}

int transfer_wait(struct transfer *transfer)
{
    int status;

    while (!transfer_test(transfer, &status))
        opal_progress();
    return status;
}
