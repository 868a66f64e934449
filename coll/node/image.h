/* SPDX-License-Identifier: BSD-3-Clause */
/* Elements of a buffer, packed. */
#ifndef COLL_NODE_IMAGE_H
#define COLL_NODE_IMAGE_H

#include "common/compat/coll.h"

/* The bytes of a buffer's elements: the buffer itself, where they lie there without gaps. */
struct image {
    unsigned char *bytes;
    void *allocated;
};

static inline size_t packed_bytes(size_t count, ompi_datatype_t *type)
{
    return count * type->super.size;
}

int image_make(struct image *image, const void *buffer, size_t count, ompi_datatype_t *type);
/* The image of what is given. */
int image_pack(struct image *image, const void *buffer, size_t count, ompi_datatype_t *type);
/* The image is what was received, where `status` is OMPI_SUCCESS. */
int image_unpack(struct image *image, void *buffer, size_t count, ompi_datatype_t *type,
                 int status);

/* The packed blocks of all ranks in `to`, and what this process gives in `from`: its own block, or,
 * where `is_for_each`, one for each rank. */
struct blocks {
    struct image received, sent;
    size_t bytes; /* of one */
    size_t ranks;
};

/* blocks_end follows in any case. */
int blocks_make(struct blocks *blocks, const void *from, size_t from_count,
                ompi_datatype_t *from_type, void *to, size_t count, ompi_datatype_t *type,
                bool is_for_each, ompi_communicator_t *comm);
/* What was received is there, where `status` is OMPI_SUCCESS. */
int blocks_end(struct blocks *blocks, void *to, size_t count, ompi_datatype_t *type, int status);

#endif
