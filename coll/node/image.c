/* SPDX-License-Identifier: BSD-3-Clause */
/* Elements of a buffer, packed: see image.h. */
#include "coll/node/image.h"

#include <stdlib.h>

int image_make(struct image *image, const void *buffer, size_t count, ompi_datatype_t *type)
{
    size_t bytes = packed_bytes(count, type);
    image->allocated = NULL;
    if (OPAL_LIKELY(bytes == 0 ||
                    opal_datatype_is_contiguous_memory_layout(&type->super, count == 1 ? 1 : 2))) {
        image->bytes = (unsigned char *) buffer + type->super.true_lb;
        return OMPI_SUCCESS;
    }
    image->bytes = image->allocated = malloc(bytes);
    return image->bytes ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
}

int image_pack(struct image *image, const void *buffer, size_t count, ompi_datatype_t *type)
{
    int status = image_make(image, buffer, count, type);
    return image->allocated
               ? ompi_datatype_sndrcv(buffer, (compat_count) count, type, image->bytes,
                                      (compat_count) packed_bytes(count, type), MPI_PACKED)
               : status;
}

int image_unpack(struct image *image, void *buffer, size_t count, ompi_datatype_t *type, int status)
{
    if (image->allocated && status == OMPI_SUCCESS)
        status = ompi_datatype_sndrcv(image->bytes, (compat_count) packed_bytes(count, type),
                                      MPI_PACKED, buffer, (compat_count) count, type);
    free(image->allocated);
    return status;
}

int blocks_make(struct blocks *blocks, const void *from, size_t from_count,
                ompi_datatype_t *from_type, void *to, size_t count, ompi_datatype_t *type,
                bool is_for_each, ompi_communicator_t *comm)
{
    size_t ranks = (size_t) ompi_comm_size(comm), block = packed_bytes(count, type);
    size_t mine = is_for_each ? 0 : (size_t) ompi_comm_rank(comm) * block;
    *blocks = (struct blocks){.bytes = block, .ranks = ranks};
    int status = from == MPI_IN_PLACE ? image_pack(&blocks->received, to, ranks * count, type)
                                      : image_make(&blocks->received, to, ranks * count, type);
    if (status != OMPI_SUCCESS || from == MPI_IN_PLACE) {
        blocks->sent.bytes = blocks->received.bytes + mine;
        return status;
    }
    return image_pack(&blocks->sent, from, (is_for_each ? ranks : 1) * from_count, from_type);
}

int blocks_end(struct blocks *blocks, void *to, size_t count, ompi_datatype_t *type, int status)
{
    free(blocks->sent.allocated);
    return image_unpack(&blocks->received, to, blocks->ranks * count, type, status);
}
