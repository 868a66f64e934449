/* SPDX-License-Identifier: BSD-3-Clause */
/* Packing and unpacking of random datatypes, in pieces in any order, against Open MPI's convertor.
 */
#include "check.h"

#include <string.h>

#include "base/datatype.h"
#include "open_mpi.h"

#define ROOM  ((size_t) 1 << 20) /* of a message with its gaps, on both sides of its address */
#define DEPTH 4

static opal_convertor_t *convertor;
static uint64_t chance = 20261124;
static unsigned char *source, *expected, *result, *packed, *packed_again;

/* Not long double: its padding is not copied where it is copied as a number. */
static const ompi_datatype_t *basic_type(void)
{
    const ompi_datatype_t *types[] = {
        &ompi_mpi_char.dt,   &ompi_mpi_short.dt,      &ompi_mpi_int.dt,       &ompi_mpi_double.dt,
        &ompi_mpi_2int.dt,   &ompi_mpi_double_int.dt, &ompi_mpi_short_int.dt, &ompi_mpi_byte.dt,
        &ompi_mpi_c_bool.dt, &ompi_mpi_float.dt};
    return types[chance_below(&chance, sizeof(types) / sizeof(types[0]))];
}

static ptrdiff_t extent_of(const ompi_datatype_t *type)
{
    return type->super.ub - type->super.lb;
}

static ptrdiff_t span_of(const ompi_datatype_t *type)
{
    return type->super.true_ub - type->super.true_lb;
}

/* Rows, also backwards or with blocks that touch. */
static ompi_datatype_t *vector_of(const ompi_datatype_t *old)
{
    ompi_datatype_t *type = NULL;
    int count = 1 + (int) chance_below(&chance, 6), length = 1 + (int) chance_below(&chance, 4);
    ptrdiff_t block = extent_of(old) * (length - 1) + span_of(old);
    ptrdiff_t stride = block + (ptrdiff_t) chance_below(&chance, 5) * 4;
    if (chance_below(&chance, 4) == 0)
        stride = -stride;
    ompi_datatype_create_hvector(count, length, stride, old, &type);
    return type;
}

/* Members one after the other, with gaps or without, as in a struct or an index. */
static ompi_datatype_t *struct_of(const ompi_datatype_t *old)
{
    int members = 1 + (int) chance_below(&chance, 5);
    ompi_datatype_t *type = ompi_datatype_create(64);
    ptrdiff_t at = 0;
    for (int i = 0; i < members; i++) {
        const ompi_datatype_t *member = chance_below(&chance, 3) ? basic_type() : old;
        size_t count = 1 + chance_below(&chance, 3);
        ptrdiff_t extent =
            extent_of(member) < span_of(member) ? span_of(member) : extent_of(member);
        ompi_datatype_add(type, member, count, at - member->super.true_lb, extent);
        at += extent * (ptrdiff_t) count + (ptrdiff_t) chance_below(&chance, 3) * 8;
    }
    return type;
}

static ompi_datatype_t *resized_of(const ompi_datatype_t *old)
{
    ompi_datatype_t *type = NULL;
    ompi_datatype_create_resized(old, old->super.true_lb,
                                 span_of(old) + (ptrdiff_t) chance_below(&chance, 40), &type);
    return type;
}

static ompi_datatype_t *contiguous_of(const ompi_datatype_t *old)
{
    ompi_datatype_t *type = NULL;
    ompi_datatype_create_contiguous(1 + (int) chance_below(&chance, 5), old, &type);
    return type;
}

static ompi_datatype_t *random_type(void)
{
    static ompi_datatype_t *(*const makers[])(const ompi_datatype_t *) = {
        vector_of, struct_of, resized_of, contiguous_of};
    const ompi_datatype_t *old = basic_type();
    ompi_datatype_t *type = NULL;
    int depth = 1 + (int) chance_below(&chance, DEPTH);
    for (int i = 0; i < depth; i++) {
        ompi_datatype_t *above = makers[chance_below(&chance, 4)](old);
        if (type)
            ompi_datatype_destroy(&type);
        old = type = above;
    }
    ompi_datatype_commit(&type);
    return type;
}

/* Open MPI's answer, all at once. */
static void packed_by_open_mpi(const ompi_datatype_t *type, size_t count, size_t bytes)
{
    opal_convertor_t own;
    struct iovec iov = {.iov_base = packed, .iov_len = bytes};
    uint32_t iov_count = 1;
    size_t done = bytes;
    OBJ_CONSTRUCT(&own, opal_convertor_t);
    opal_convertor_copy_and_prepare_for_send(convertor, &type->super, count, source + ROOM, 0,
                                             &own);
    opal_convertor_pack(&own, &iov, &iov_count, &done);
    OBJ_DESTRUCT(&own);
    CHECK(done == bytes, "%zu of %zu bytes packed", done, bytes);
}

static void unpacked_by_open_mpi(const ompi_datatype_t *type, size_t count, size_t bytes)
{
    opal_convertor_t own;
    struct iovec iov = {.iov_base = packed, .iov_len = bytes};
    uint32_t iov_count = 1;
    size_t done = bytes;
    OBJ_CONSTRUCT(&own, opal_convertor_t);
    opal_convertor_copy_and_prepare_for_recv(convertor, &type->super, count, expected + ROOM, 0,
                                             &own);
    opal_convertor_unpack(&own, &iov, &iov_count, &done);
    OBJ_DESTRUCT(&own);
}

/* Cuts the message, and calls `move` for the pieces: those with odd numbers first. */
static void in_pieces(size_t bytes,
                      void (*move)(const ompi_datatype_t *type, size_t count, size_t offset,
                                   size_t length),
                      const ompi_datatype_t *type, size_t count)
{
    size_t cuts[10] = {0};
    unsigned last = 1 + (unsigned) chance_below(&chance, 8);
    for (unsigned i = 1; i < last; i++)
        cuts[i] = cuts[i - 1] + chance_below(&chance, bytes - cuts[i - 1] + 1);
    cuts[last] = bytes;
    for (unsigned odd = 2; odd-- > 0;)
        for (unsigned i = odd; i < last; i += 2)
            move(type, count, cuts[i], cuts[i + 1] - cuts[i]);
}

static void piece_pack(const ompi_datatype_t *type, size_t count, size_t offset, size_t length)
{
    datatype_pack(type, count, source + ROOM, offset, packed_again + offset, length);
}

static void piece_unpack(const ompi_datatype_t *type, size_t count, size_t offset, size_t length)
{
    datatype_unpack(type, count, result + ROOM, offset, packed + offset, length);
}

static bool is_small(const ompi_datatype_t *type, size_t count)
{
    size_t far = ROOM / (count + 1);
    return type->super.size && (size_t) llabs(type->super.true_lb) < far &&
           (size_t) llabs(type->super.true_ub) < far && (size_t) llabs(extent_of(type)) < far;
}

static void type_check(const ompi_datatype_t *type, size_t count)
{
    size_t bytes = type->super.size * count;
    packed_by_open_mpi(type, count, bytes);
    packed_again[bytes] = 0xa5;
    in_pieces(bytes, piece_pack, type, count);
    CHECK(memcmp(packed, packed_again, bytes) == 0,
          "%zu elements of %zu bytes are packed otherwise", count, type->super.size);
    CHECK(packed_again[bytes] == 0xa5, "a byte is written behind %zu", bytes);
    memset(expected, 0x5a, 2 * ROOM);
    memset(result, 0x5a, 2 * ROOM);
    unpacked_by_open_mpi(type, count, bytes);
    in_pieces(bytes, piece_unpack, type, count);
    CHECK(memcmp(expected, result, 2 * ROOM) == 0,
          "%zu elements of %zu bytes are unpacked otherwise", count, type->super.size);
}

static void random_types_are_packed_as_by_open_mpi(void)
{
    unsigned types = check_is_long() ? 200000 : 2000, checked = 0;
    for (unsigned i = 0; i < types; i++) {
        ompi_datatype_t *type = random_type();
        size_t count = 1 + chance_below(&chance, 5);
        if (is_small(type, count)) {
            type_check(type, count);
            checked++;
        }
        ompi_datatype_destroy(&type);
    }
    CHECK(checked > types / 2, "only %u of %u types were small enough", checked, types);
}

/* Every size of a block that has a loop of its own, and those between. */
static void columns_are_packed_as_by_open_mpi(void)
{
    for (int block = 1; block <= 200; block++) {
        ompi_datatype_t *type = NULL;
        ompi_datatype_create_hvector(37, block, block + 13, &ompi_mpi_byte.dt, &type);
        ompi_datatype_commit(&type);
        type_check(type, 2);
        ompi_datatype_destroy(&type);
    }
}

int main(void)
{
    convertor = open_mpi_begin();
    unsigned char **buffers[] = {&source, &expected, &result, &packed, &packed_again};
    for (int i = 0; i < 5; i++)
        if (!(*buffers[i] = malloc(2 * ROOM + 1)))
            return 1;
    for (size_t i = 0; i < 2 * ROOM; i++)
        source[i] = (unsigned char) chance_next(&chance);
    columns_are_packed_as_by_open_mpi();
    random_types_are_packed_as_by_open_mpi();
    for (int i = 0; i < 5; i++)
        free(*buffers[i]);
    return check_end();
}
