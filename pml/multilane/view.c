/* SPDX-License-Identifier: BSD-3-Clause */
/* Datatypes as blocks, and blocks as few copies. */
#include "view.h"

#include <stdlib.h>
#include <string.h>

#include "send_request.h"

/* --- the blocks of a datatype ------------------------------------------------------------------
 */

/* The blocks of one element, which Open MPI finds without touching them. True: all of them. */
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

/* An array of blocks that is long enough for all. Null without memory. */
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
    struct view *view = malloc(sizeof(*view) + block_count * sizeof(view->blocks[0]));
    if (view) {
        view->base = base;
        view->element_bytes = element_bytes;
        view->extent = extent;
        view->is_contiguous = false;
        view->block_count = block_count;
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
        view->blocks[i] = (struct view_block){.offset = offset,
                                              .bytes = blocks[i].iov_len,
                                              .displacement = (char *) blocks[i].iov_base - base};
        offset += blocks[i].iov_len;
    }
    free(blocks);
    return view;
}

struct view *view_new(const void *buffer, size_t count, const ompi_datatype_t *datatype,
                      const struct memory *memory, driver_result *result)
{
    char *base = (char *) (uintptr_t) buffer;
    size_t bytes = datatype->super.size * count;
    struct copier *copier = copier_get(memory, result);
    struct view *view = NULL;
    if (!copier)
        return NULL;
    if (datatype_is_contiguous(datatype, count)) {
        view = view_make(1, base, bytes, 0);
        if (view) {
            view->blocks[0] =
                (struct view_block){.bytes = bytes, .displacement = datatype->super.true_lb};
            view->is_contiguous = true;
        }
    } else {
        view = view_of_blocks(base, datatype);
    }
    if (view)
        view->copier = copier;
    else
        *result = DRIVER_OUT_OF_MEMORY;
    return view;
}

void view_free(struct view *view)
{
    free(view);
}

char *view_contiguous(const struct view *view)
{
    return view->is_contiguous ? view->base + view->blocks[0].displacement : NULL;
}

/* --- copies -------------------------------------------------------------------------------------
 */

/* The driver takes no larger distance between rows (2 GiB less a byte on every device known). */
#define PITCH_MAX ((size_t) 1 << 30)

/* Pieces of equal length at equal distances. */
struct rows {
    driver_ptr host;    /* where the first one is, packed */
    driver_ptr address; /* and on the device */
    size_t bytes, count;
    size_t pitch; /* 0 while there is one */
};

/* Such rows again and again, as those of a part of a cube are. */
struct planes {
    struct rows rows; /* of the first one */
    size_t count;
    size_t pitch; /* 0 while there is one */
};

/* What was found of a message and not copied yet: the last rows, and planes before them. */
struct found {
    struct copier *copier;
    enum copy_way way;
    struct planes planes;
    struct rows rows;
};

static driver_result planes_copy(const struct found *found)
{
    const struct planes *planes = &found->planes;
    const struct rows *rows = &planes->rows;
    const struct copy_end packed = {rows->host, rows->bytes, rows->count};
    const struct copy_end apart = {rows->address, rows->pitch,
                                   rows->pitch ? planes->pitch / rows->pitch : 0};
    bool to_host = found->way == COPY_TO_HOST;
    if (planes->count == 0)
        return DRIVER_SUCCESS;
    if (planes->count == 1 && rows->count == 1)
        return copier_copy(found->copier, found->way, to_host ? rows->host : rows->address,
                           to_host ? rows->address : rows->host, rows->bytes);
    return copier_copy_shape(found->copier, found->way,
                             &(struct copy_shape){.to = to_host ? packed : apart,
                                                  .from = to_host ? apart : packed,
                                                  .bytes = rows->bytes,
                                                  .rows = rows->count,
                                                  .planes = planes->count});
}

/* Is it the next one at equal distances behind the first? The distance of two is that of all. */
static bool is_next(driver_ptr first, size_t count, size_t *pitch, size_t least, driver_ptr address)
{
    if (count > 1)
        return address == first + count * *pitch;
    if (address < first + least || address - first > PITCH_MAX)
        return false;
    *pitch = (size_t) (address - first);
    return true;
}

/* Is this piece the next row, or the end of the only one? */
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

/* Are these rows the next plane? The driver counts the distance of planes in rows. */
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

/* The rows are complete: they join the planes before them, which else are copied now. */
static driver_result rows_end(struct found *found)
{
    if (found->rows.count == 0 || planes_take(&found->planes, &found->rows))
        return DRIVER_SUCCESS;
    driver_result result = planes_copy(found);
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
    return result == DRIVER_SUCCESS ? planes_copy(found) : result;
}

/* The block that holds a byte of an element. */
static uint32_t block_at(const struct view *view, size_t offset)
{
    uint32_t low = 0, high = view->block_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (view->blocks[middle].offset <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

driver_result view_copy(const struct view *view, enum copy_way way, size_t offset, size_t bytes,
                        void *host)
{
    struct found found = {
        .copier = view->copier, .way = way, .rows.host = (driver_ptr) (uintptr_t) host};
    char *element = view->base + (ptrdiff_t) (offset / view->element_bytes) * view->extent;
    size_t within = offset % view->element_bytes;
    uint32_t i = block_at(view, within);
    driver_result result = DRIVER_SUCCESS;
    while (bytes && result == DRIVER_SUCCESS) {
        const struct view_block *block = &view->blocks[i];
        size_t skipped = within - block->offset, taken = block->bytes - skipped;
        if (taken > bytes)
            taken = bytes;
        result = found_add(
            &found, (driver_ptr) (uintptr_t) (element + block->displacement + (ptrdiff_t) skipped),
            taken);
        bytes -= taken;
        within += taken;
        if (++i == view->block_count) {
            i = 0;
            within = 0;
            element += view->extent;
        }
    }
    return result == DRIVER_SUCCESS ? found_end(&found) : result;
}
