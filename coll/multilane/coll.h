/* SPDX-License-Identifier: BSD-3-Clause */
/* coll/multilane: collective operations on device memory, which Open MPI's own would touch with the
 * processor. The buffers that lie on a device get an image in host memory, the component below
 * works on the images, and what it received is copied back. Every copy is a message of this process
 * to itself: the PML knows device memory and datatypes. */
#ifndef COLL_MULTILANE_COLL_H
#define COLL_MULTILANE_COLL_H

#include <stdbool.h>
#include <stddef.h>

#include "common/compat/coll.h"
#include "common/compat/pml.h"

/* --- what of a buffer an operation uses --- */

/* Blocks of elements: one that starts at the buffer, or one for each process. */
struct blocks {
    size_t count;    /* of blocks; 0: the buffer is not used */
    size_t elements; /* of the one block; BLOCKS_ONE */
    enum { BLOCKS_ONE, BLOCKS_BY_EXTENT, BLOCKS_BY_BYTE } kind;
    compat_counts counts;          /* the others: elements of each block */
    compat_displs displs;          /* BY_EXTENT: in extents; BY_BYTE: in bytes */
    ompi_datatype_t *type;         /* ONE, BY_EXTENT */
    ompi_datatype_t *const *types; /* BY_BYTE: of each block */
};

struct block {
    ptrdiff_t at; /* from the buffer, in bytes */
    size_t elements;
    ompi_datatype_t *type;
};

struct block blocks_get(const struct blocks *blocks, size_t i);

/* From the first byte that any block uses to behind the last one; false: none uses any. */
bool blocks_span(const struct blocks *blocks, ptrdiff_t *start, ptrdiff_t *end);

/* --- images --- */

/* Copies of all blocks between a buffer and its image, that are under way. */
struct transfer {
    ompi_request_t **requests; /* a send and a receive for each block with elements, in turn */
    size_t count;
};

/* Starts them; an error: none is under way. */
int transfer_start(struct transfer *transfer, ompi_communicator_t *comm, const struct block *blocks,
                   size_t count, const char *from, char *to);
/* Have all ended? Then *status is the first error, and the transfer is empty. */
bool transfer_test(struct transfer *transfer, int *status);
int transfer_wait(struct transfer *transfer);

struct buffer {
    char *at; /* the program's */
    /* What it has of an image: null where it is host memory, or is not used. The blocks are as they
     * were when the operation was called: Open MPI's Fortran frees arrays of types, and of counts
     * that it converts, when that call returns. */
    struct block *blocks;
    size_t count;
    char *image; /* what stands for `at` */
};

struct staging {
    ompi_communicator_t *comm; /* of the operation */
    struct buffer sent, received;
    bool keeps; /* the operation reads what it receives into, or leaves parts of it as they are */
};

/* Looks where the two buffers are, makes images of those on a device, and puts the images in their
 * place. `received` counts as read where `sent` is MPI_IN_PLACE. */
int staging_make(struct staging *staging, ompi_communicator_t *comm, const void **send,
                 struct blocks sent, void **receive, struct blocks received, bool keeps);
static inline bool staging_is_used(const struct staging *staging)
{
    return staging->sent.blocks || staging->received.blocks;
}
/* Copies to the images what the operation reads. */
int staging_fill(struct staging *staging);
/* Starts to copy back what it received. */
int staging_empty(struct staging *staging, struct transfer *transfer);
void staging_free(struct staging *staging);

/* Ends a blocking operation that ended with this status. */
int staging_end(struct staging *staging, int status);

/* --- requests --- */

void requests_open(void);
void requests_close(void);
/* Puts a request of ours before that of an operation that has started, or (`persistent`) will be
 * started many times. What the staging holds is the request's from now on. */
int request_before(struct staging *staging, int status, ompi_request_t **request, bool persistent);

/* --- what libmpi packs and unpacks itself --- */

void pack_open(void);
void pack_close(void);

/* --- modules --- */

typedef struct coll_module {
    mca_coll_base_module_t super;
    ompi_communicator_t *comm;
    mca_coll_base_comm_coll_t below; /* the communicator's functions before ours */
    struct coll_module *next;        /* of those in use: a younger one */
} coll_module_t;
OBJ_CLASS_DECLARATION(coll_module_t);

mca_coll_base_module_t *module_new(ompi_communicator_t *comm);
/* A communicator in use, the oldest one, for messages of this process to itself; the caller
 * releases it. Null: there is none. */
ompi_communicator_t *module_comm_hold(void);

#endif
