/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns datatypes into blocks, and blocks into few copies. */
#include "memory/device.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/datatype.h"
#include "common/memory/other_devices.h"

/* Detects freed device memory, and prints the first few errors of the CUDA driver. */

#define COMPLAINTS 4

void driver_complain(const char *what, driver_result result)
{
    static _Atomic uint32_t said; /* relaxed: it orders nothing */
    char words[160];
    if (atomic_fetch_add_explicit(&said, 1, memory_order_relaxed) < COMPLAINTS)
        opal_output(0, "multilane: %s: the CUDA driver says %s.", what,
                    driver_words(result, words, sizeof(words)));
}

static void other_device_complain(const void *address)
{
    static _Atomic uint32_t said; /* relaxed: it orders nothing */
    const char *library = other_devices_library();
    if (atomic_fetch_add_explicit(&said, 1, memory_order_relaxed) < COMPLAINTS)
        opal_output(0,
                    "multilane: the processor cannot touch the memory at %p, and the program uses "
                    "%s: of devices, Multilane sends and receives CUDA's memory only. Copy it to "
                    "host memory first, or use a PML that was built for such devices.",
                    address, library ? library : "other devices");
}

int buffer_gone(const struct memory *memory, const void *address)
{
    if (memory->kind == MEMORY_LOST) {
        driver_complain("cannot tell what memory the buffer of a message is", memory->error);
        return MPI_ERR_OTHER;
    }
    if (memory->kind == MEMORY_OTHER) {
        other_device_complain(address);
        return MPI_ERR_BUFFER;
    }
    if (memory->kind != MEMORY_FREED)
        return MPI_SUCCESS;
    opal_output(0,
                "multilane: %p was device memory and has been freed: a message cannot be sent from "
                "there or received there.",
                address);
    return MPI_ERR_BUFFER;
}

/* --- the blocks of a datatype ----------------------------------------------------------------- */

/* The blocks of one element, which Open MPI lists without reading the memory. True: all of them. */
static bool blocks_list(const ompi_datatype_t *datatype, char *base, struct iovec *blocks,
                        uint32_t *count)
{
    opal_convertor_t convertor;
    size_t bytes = datatype->super.size;
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &datatype->super, 1, base, 0,
                                             &convertor);
    bool is_all = opal_convertor_raw(&convertor, blocks, count, &bytes) == 1;
    OBJ_DESTRUCT(&convertor);
    return is_all;
}

/* All blocks of one element. Null: no memory. */
static struct iovec *blocks_of(const ompi_datatype_t *datatype, char *base, uint32_t *count)
{
    struct iovec *blocks = NULL;
    for (uint32_t room = 64;; room *= 4) {
        struct iovec *larger = realloc(blocks, room * sizeof(*blocks));
        if (!larger)
            break;
        blocks = larger;
        *count = room;
        if (blocks_list(datatype, base, blocks, count))
            return blocks;
        if (room > UINT32_MAX / 4)
            break;
    }
    free(blocks);
    return NULL;
}

static struct view *view_make(uint32_t block_count, char *base, size_t element_bytes,
                              ptrdiff_t extent)
{
    struct view *view = malloc(sizeof(*view) + (block_count + 1) * sizeof(view->blocks[0]));
    if (view) {
        view->is_contiguous = false;
        view->layout = (struct layout){.base = base,
                                       .element_bytes = element_bytes,
                                       .extent = extent,
                                       .block_count = block_count,
                                       .blocks = view->blocks};
        view->blocks[block_count] = (struct pack_block){.offset = element_bytes};
    }
    return view;
}

static struct view *view_of_blocks(char *base, const ompi_datatype_t *datatype)
{
    uint32_t count;
    struct iovec *blocks = blocks_of(datatype, base, &count);
    if (!blocks)
        return NULL;
    struct view *view =
        view_make(count, base, datatype->super.size, datatype->super.ub - datatype->super.lb);
    size_t offset = 0;
    for (uint32_t i = 0; view && i < count; i++) {
        view->blocks[i] = (struct pack_block){.offset = offset,
                                              .displacement = (char *) blocks[i].iov_base - base};
        offset += blocks[i].iov_len;
    }
    free(blocks);
    return view;
}

static struct view *view_of_one(char *base, size_t bytes, ptrdiff_t displacement)
{
    struct view *view = view_make(1, base, bytes, 0);
    if (view) {
        view->blocks[0] = (struct pack_block){.displacement = displacement};
        view->is_contiguous = true;
    }
    return view;
}

struct view *view_new(const void *buffer, size_t count, const ompi_datatype_t *datatype,
                      const struct memory *memory, driver_result *result)
{
    char *base = (char *) (uintptr_t) buffer;
    struct copier *copier = copier_get(memory, result);
    if (!copier)
        return NULL;
    struct view *view =
        datatype_is_contiguous(datatype, count)
            ? view_of_one(base, datatype->super.size * count, datatype->super.true_lb)
            : view_of_blocks(base, datatype);
    if (!view) {
        *result = DRIVER_OUT_OF_MEMORY;
        return NULL;
    }
    copier_settle(copier, memory);
    view->copier = copier;
    layout_end(&view->layout);
    return view;
}

char *view_contiguous(const struct view *view)
{
    return view->is_contiguous ? view->layout.base + view->blocks[0].displacement : NULL;
}

/* --- copies ----------------------------------------------------------------------------------- */

/* The largest distance between rows (the driver's limit is 2 GiB less a byte on every known
 * device). */
#define PITCH_MAX ((size_t) 1 << 30)

/* Pieces of equal length at equal distances. */
struct rows {
    driver_ptr host;    /* the first row in packed memory */
    driver_ptr address; /* and on the device */
    size_t bytes, count;
    size_t pitch; /* 0 while there is one */
};

/* Equal rows at equal distances: a part of a cube. */
struct planes {
    struct rows rows; /* of the first one */
    size_t count;
    size_t pitch; /* 0 while there is one */
};

/* A part of a cube, cut inside a row at both ends, is five shapes. What needs more is irregular,
 * and a kernel moves it faster. */
#define SHAPES_MAX 5

/* Shapes found and not copied yet: complete shapes, then planes that may grow, then rows that
 * may grow. */
struct found {
    const struct view *view;
    enum copy_direction direction;
    struct planes shapes[SHAPES_MAX];
    unsigned shape_count;
    bool is_irregular; /* for a kernel; nothing was copied */
    struct planes planes;
    struct rows rows;
};

static driver_result shape_copy(const struct found *found, const struct planes *planes)
{
    struct copier *copier = found->view->copier;
    const struct rows *rows = &planes->rows;
    const struct copy_end packed = {rows->host, rows->bytes, rows->count};
    const struct copy_end apart = {rows->address, rows->pitch,
                                   rows->pitch ? planes->pitch / rows->pitch : 0};
    bool to_host = found->direction == COPY_TO_HOST;
    if (planes->count == 1 && rows->count == 1)
        return copier_copy(copier, found->direction, to_host ? rows->host : rows->address,
                           to_host ? rows->address : rows->host, rows->bytes);
    return copier_copy_shape(copier, found->direction,
                             &(struct copy_shape){.to = to_host ? packed : apart,
                                                  .from = to_host ? apart : packed,
                                                  .bytes = rows->bytes,
                                                  .rows = rows->count,
                                                  .planes = planes->count});
}

static driver_result shapes_copy(struct found *found)
{
    driver_result result = DRIVER_SUCCESS;
    for (unsigned i = 0; i < found->shape_count && result == DRIVER_SUCCESS; i++)
        result = shape_copy(found, &found->shapes[i]);
    found->shape_count = 0;
    return result;
}

/* Is there a kernel? Prints once why not, where one was expected. */
static bool can_pack(const struct view *view, enum copy_direction direction)
{
    static _Atomic bool was_said; /* relaxed: only that it is said once */
    driver_result result = packer_ready(view->copier, direction);
    if (result != DRIVER_SUCCESS && result != DRIVER_NOT_SUPPORTED &&
        !atomic_exchange_explicit(&was_said, true, memory_order_relaxed))
        driver_complain("no kernel packs irregular datatypes, which are copied block by block",
                        result);
    return result == DRIVER_SUCCESS;
}

/* The planes are complete: adds them as a shape, if there is room. */
static driver_result planes_end(struct found *found)
{
    driver_result result = DRIVER_SUCCESS;
    if (found->planes.count == 0)
        return DRIVER_SUCCESS;
    if (found->shape_count == SHAPES_MAX) {
        found->is_irregular = can_pack(found->view, found->direction);
        if (found->is_irregular)
            return DRIVER_SUCCESS;
        result = shapes_copy(found);
    }
    found->shapes[found->shape_count++] = found->planes;
    return result;
}

/* Does it follow at equal distance? The second one sets the distance. */
static bool is_next(driver_ptr first, size_t count, size_t *pitch, size_t least, driver_ptr address)
{
    if (count > 1)
        return address == first + count * *pitch;
    if (address < first + least || address - first > PITCH_MAX)
        return false;
    *pitch = (size_t) (address - first);
    return true;
}

/* Adds the piece as the next row, or to the end of the only row. */
static bool rows_take(struct rows *rows, driver_ptr address, size_t bytes)
{
    if (rows->count == 1 && address == rows->address + rows->bytes) {
        rows->bytes += bytes;
        return true;
    }
    if (rows->count == 0 || bytes != rows->bytes ||
        !is_next(rows->address, rows->count, &rows->pitch, bytes, address))
        return false;
    rows->count++;
    return true;
}

/* Adds the rows as the next plane. The driver counts the distance of planes in rows. */
static bool planes_take(struct planes *planes, const struct rows *rows)
{
    const struct rows *first = &planes->rows;
    if (rows->count < 2 || rows->count != first->count || rows->bytes != first->bytes ||
        rows->pitch != first->pitch || (rows->address - first->address) % first->pitch ||
        !is_next(first->address, planes->count, &planes->pitch, first->count * first->pitch,
                 rows->address))
        return false;
    planes->count++;
    return true;
}

/* The rows are complete: adds them to the planes; if they do not fit there, the planes end
 * first. */
static driver_result rows_end(struct found *found)
{
    if (found->rows.count == 0 || planes_take(&found->planes, &found->rows))
        return DRIVER_SUCCESS;
    driver_result result = planes_end(found);
    found->planes = (struct planes){.rows = found->rows, .count = 1};
    return result;
}

static driver_result found_add(struct found *found, driver_ptr address, size_t bytes)
{
    struct rows *rows = &found->rows;
    if (rows_take(rows, address, bytes))
        return DRIVER_SUCCESS;
    driver_result result = rows_end(found);
    *rows = (struct rows){.host = rows->host + rows->count * rows->bytes,
                          .address = address,
                          .bytes = bytes,
                          .count = 1};
    return result;
}

static driver_result found_end(struct found *found)
{
    driver_result result = rows_end(found);
    if (result == DRIVER_SUCCESS && !found->is_irregular)
        result = planes_end(found);
    if (result != DRIVER_SUCCESS || found->is_irregular)
        return result;
    return shapes_copy(found);
}

/* Walks the blocks of the packed bytes [offset, offset + bytes). */
static driver_result found_walk(struct found *found, const struct layout *layout, size_t offset,
                                size_t bytes)
{
    char *element = layout->base + (ptrdiff_t) (offset / layout->element_bytes) * layout->extent;
    size_t within = offset % layout->element_bytes;
    uint32_t i = layout_block_at(layout, within);
    driver_result result = DRIVER_SUCCESS;
    while (bytes && result == DRIVER_SUCCESS && !found->is_irregular) {
        const struct pack_block *block = &layout->blocks[i];
        size_t skipped = within - (size_t) block->offset;
        size_t taken = layout_block_bytes(layout, i) - skipped;
        if (taken > bytes)
            taken = bytes;
        result = found_add(
            found, (driver_ptr) (uintptr_t) (element + block->displacement + (ptrdiff_t) skipped),
            taken);
        bytes -= taken;
        within += taken;
        if (++i == layout->block_count) {
            i = 0;
            within = 0;
            element += layout->extent;
        }
    }
    return result;
}

driver_result view_copy(const struct view *view, enum copy_direction direction, size_t offset,
                        size_t bytes, void *host)
{
    struct found found = {
        .view = view, .direction = direction, .rows.host = (driver_ptr) (uintptr_t) host};
    driver_result result = found_walk(&found, &view->layout, offset, bytes);
    if (result == DRIVER_SUCCESS)
        result = found_end(&found);
    if (result == DRIVER_SUCCESS && found.is_irregular)
        result = packer_copy(view->copier, direction, &view->layout, offset, bytes, host);
    return result;
}
