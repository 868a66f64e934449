/* SPDX-License-Identifier: BSD-3-Clause */
/* What libmpi itself reads and writes with the processor, on images as well: the buffers of
 * MPI_Pack and MPI_Unpack, and what MPI_Sendrecv_replace and MPI_Isendrecv_replace put aside. All
 * go through two functions of Open MPI's datatype engine, for which no component can stand in;
 * libmpi is made to call those of this file in their place. */
#include "coll/multilane/coll.h"
#include "common/compat/accelerator.h"
#include "common/compat/library_calls.h"
#include "common/memory/memory.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/util/output.h"

/* Between the convertor's buffer, which has a datatype, and packed bytes. */
typedef int32_t engine(opal_convertor_t *convertor, struct iovec *packed, uint32_t *count,
                       size_t *bytes);

static struct blocks elements(size_t count, const void *type)
{
    return (struct blocks){.count = 1,
                           .elements = count,
                           .kind = BLOCKS_ONE,
                           .type = (ompi_datatype_t *) (uintptr_t) type};
}

/* The engine on the images of what it reads and writes; below 0: an error. */
static int32_t images_convert(engine *function, struct staging *staging,
                              opal_convertor_t *convertor, void *typed, struct iovec *packed,
                              size_t *bytes)
{
    unsigned char *buffer = convertor->pBaseBuf;
    uint32_t count = 1;
    int32_t done = -1;
    int status = staging->comm ? staging_fill(staging) : OMPI_ERROR;

    if (status == OMPI_SUCCESS) {
        convertor->pBaseBuf = typed;
        done = function(convertor, packed, &count, bytes);
        convertor->pBaseBuf = buffer;
        status = done < 0 ? OMPI_ERROR : OMPI_SUCCESS;
    }
    return staging_end(staging, status) == OMPI_SUCCESS ? done : -1;
}

static int32_t convert(engine *function, bool packs, opal_convertor_t *convertor,
                       struct iovec *packed, uint32_t *count, size_t *bytes)
{
    const void *from = packs ? convertor->pBaseBuf : packed->iov_base;
    void *to = packs ? packed->iov_base : convertor->pBaseBuf;
    struct staging staging;
    size_t all;

    if (*count != 1 || !packed->iov_base) /* it asks where the bytes are */
        return function(convertor, packed, count, bytes);
    opal_convertor_get_packed_size(convertor, &all);
    bool is_part = packed->iov_len < all;
    struct blocks typed = elements(convertor->count, convertor->pDesc);
    struct blocks flat = elements(is_part ? packed->iov_len : all, &ompi_mpi_byte);
    if (staging_make(&staging, NULL, &from, packs ? typed : flat, &to, packs ? flat : typed,
                     is_part) != OMPI_SUCCESS)
        return -1;
    if (!staging_is_used(&staging))
        return function(convertor, packed, count, bytes);
    struct iovec image = {packs ? to : (void *) (uintptr_t) from, packed->iov_len};
    staging.comm = module_comm_hold();
    int32_t done = images_convert(function, &staging, convertor,
                                  packs ? (void *) (uintptr_t) from : to, &image, bytes);
    if (staging.comm)
        OBJ_RELEASE(staging.comm);
    packed->iov_len = image.iov_len;
    return done;
}

static int32_t pack(opal_convertor_t *convertor, struct iovec *packed, uint32_t *count,
                    size_t *bytes)
{
    return convert(opal_convertor_pack, true, convertor, packed, count, bytes);
}

static int32_t unpack(opal_convertor_t *convertor, struct iovec *packed, uint32_t *count,
                      size_t *bytes)
{
    return convert(opal_convertor_unpack, false, convertor, packed, count, bytes);
}

/* What packs: libmpi, of which a program may have another form (of the standard ABI), and for
 * external32 in 6.0 the library below it. */
#define PACKS          "libmpi"
#define PACKS_EXTERNAL "libopen_mpi"

static bool engine_set(const char *name, engine *function)
{
    bool is_set = library_entry_set(PACKS, name, (uintptr_t) function);

    (void) library_entry_set(PACKS_EXTERNAL, name, (uintptr_t) function);
    return is_set;
}

/* 1: not the host's. */
static int accelerator_check(const void *address, int *device, uint64_t *flags)
{
    *device = 0;
    *flags = 0;
    return memory_is_of_device(address);
}

void pack_open(void)
{
    if (engine_set("opal_convertor_pack", pack) && engine_set("opal_convertor_unpack", unpack))
        compat_accelerator_answer(PACKS, accelerator_check);
    else
        opal_output_verbose(10, ompi_coll_base_framework.framework_output,
                            "coll/multilane: MPI_Pack, MPI_Unpack and MPI_Sendrecv_replace take no "
                            "device memory, as libmpi does not call the datatype engine by name");
}

void pack_close(void)
{
    compat_accelerator_restore(PACKS);
    (void) engine_set("opal_convertor_pack", opal_convertor_pack);
    (void) engine_set("opal_convertor_unpack", opal_convertor_unpack);
}
