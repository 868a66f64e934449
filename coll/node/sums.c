/* SPDX-License-Identifier: BSD-3-Clause */
/* A long MPI_Allreduce across nodes: see sums.h. */
#include "coll/node/sums.h"

#include <stdlib.h>

#include "coll/node/node.h"

/* A piece goes as messages of a node's share of it: long enough for several lanes. */
#define PIECE_BYTES ((size_t) 512 << 10)
#define PART_BYTES  ((size_t) 32 << 10)
/* Of fewer the last ones' way, during which nothing is added up, counts too much. */
#define PIECES_LEAST 4
/* A piece's parts are awaited when those of so many more are on their way, and then its sums. */
#define AHEAD      2u
#define UNDER_WAY  (AHEAD + 1)
#define ROOM_ALIGN 64u

/* What leaders send each other of a piece. */
enum what { PARTS, SUMS, WHATS };

struct sums {
    const struct levels *levels;
    const void *from;
    char *to;
    size_t count, each, pieces;
    ompi_datatype_t *type;
    ompi_op_t *op;
    ptrdiff_t extent, gap;
    /* In a leader: its parts that come from the others, and what is under way. */
    char *room;
    size_t room_stride;
    ompi_request_t **requests;
};

/* Elements, of those of all pieces. */
struct range {
    size_t first, count;
};

size_t sums_piece(const struct levels *levels, size_t count, ompi_datatype_t *type)
{
    size_t size = type->super.size, bytes = PIECE_BYTES;
    if (bytes < levels->nodes * PART_BYTES)
        bytes = levels->nodes * PART_BYTES;
    return size > 0 && size <= PART_BYTES && count >= PIECES_LEAST * bytes / size ? bytes / size
                                                                                  : 0;
}

static struct range piece_of(const struct sums *sums, size_t piece)
{
    size_t first = piece * sums->each;
    return (struct range){first, lesser(sums->count - first, sums->each)};
}

/* That the leader of a node adds up. */
static struct range part_of(const struct sums *sums, size_t piece, uint32_t node)
{
    struct range all = piece_of(sums, piece);
    size_t begin = all.count * node / sums->levels->nodes;
    size_t end = all.count * (node + 1) / sums->levels->nodes;
    return (struct range){all.first + begin, end - begin};
}

static char *place_of(const struct sums *sums, struct range range)
{
    return sums->to + (ptrdiff_t) range.first * sums->extent;
}

/* For this leader's part as another one has it. */
static char *room_of(const struct sums *sums, size_t piece, uint32_t node)
{
    size_t index = piece % UNDER_WAY * sums->levels->nodes + node;
    return sums->room + index * sums->room_stride - sums->gap;
}

/* A piece's, by node: receives, then sends. */
static ompi_request_t **requests_of(const struct sums *sums, enum what what, size_t piece)
{
    return sums->requests + (what * UNDER_WAY + piece % UNDER_WAY) * 2 * sums->levels->nodes;
}

static int tag_of(enum what what)
{
    return what == PARTS ? MCA_COLL_BASE_TAG_ALLREDUCE : MCA_COLL_BASE_TAG_ALLGATHER;
}

static int expect(const struct sums *sums, enum what what, size_t piece)
{
    const struct levels *levels = sums->levels;
    ompi_request_t **requests = requests_of(sums, what, piece);
    int status = OMPI_SUCCESS;
    for (uint32_t node = 0; node < levels->nodes && status == OMPI_SUCCESS; node++) {
        struct range part = part_of(sums, piece, what == PARTS ? levels->my_node : node);
        char *at = what == PARTS ? room_of(sums, piece, node) : place_of(sums, part);
        if (node != levels->my_node)
            status = MCA_PML_CALL(irecv(at, part.count, sums->type, (int) node, tag_of(what),
                                        levels->leaders, &requests[node]));
    }
    return status;
}

/* Each leader begins with the one behind it. */
static int give(const struct sums *sums, enum what what, size_t piece)
{
    const struct levels *levels = sums->levels;
    ompi_request_t **requests = requests_of(sums, what, piece) + levels->nodes;
    int status = OMPI_SUCCESS;
    for (uint32_t step = 1; step < levels->nodes && status == OMPI_SUCCESS; step++) {
        uint32_t node = (levels->my_node + step) % levels->nodes;
        struct range part = part_of(sums, piece, what == PARTS ? node : levels->my_node);
        status = MCA_PML_CALL(isend(place_of(sums, part), part.count, sums->type, (int) node,
                                    tag_of(what), MCA_PML_BASE_SEND_STANDARD, levels->leaders,
                                    &requests[node]));
    }
    return status;
}

static int await(const struct sums *sums, enum what what, size_t piece)
{
    return ompi_request_wait_all(2 * (size_t) sums->levels->nodes, requests_of(sums, what, piece),
                                 MPI_STATUSES_IGNORE);
}

/* From the last node to the first: sums are the same each time, and right for what is not
 * commutative. */
static void part_add_up(const struct sums *sums, size_t piece)
{
    uint32_t me = sums->levels->my_node, node = sums->levels->nodes - 1;
    struct range part = part_of(sums, piece, me);
    char *mine = place_of(sums, part), *sum = node == me ? mine : room_of(sums, piece, node);
    if (part.count == 0)
        return;
    while (node-- > 0)
        ompi_op_reduce(sums->op, node == me ? mine : room_of(sums, piece, node), sum,
                       (compat_count) part.count, sums->type);
    if (sum != mine)
        (void) ompi_datatype_copy_content_same_ddt(sums->type, (compat_count) part.count, mine,
                                                   sum);
}

/* --- the steps of a piece --- */

static int piece_give(const struct sums *sums, size_t piece)
{
    const struct levels *levels = sums->levels;
    struct range all = piece_of(sums, piece);
    const void *from = sums->from;
    int status = levels->leaders ? expect(sums, PARTS, piece) : OMPI_SUCCESS;
    if (status != OMPI_SUCCESS)
        return status;
    if (from != MPI_IN_PLACE)
        from = (const char *) from + (ptrdiff_t) all.first * sums->extent;
    status = CALL(levels->node, reduce, from, levels->leaders ? place_of(sums, all) : NULL,
                  (compat_count) all.count, sums->type, sums->op, 0);
    return status == OMPI_SUCCESS && levels->leaders ? give(sums, PARTS, piece) : status;
}

/* Sums of others come to where the parts lie that they were given. */
static int piece_add_up(const struct sums *sums, size_t piece)
{
    if (!sums->levels->leaders)
        return OMPI_SUCCESS;
    int status = await(sums, PARTS, piece);
    if (status != OMPI_SUCCESS)
        return status;
    part_add_up(sums, piece);
    status = expect(sums, SUMS, piece);
    return status == OMPI_SUCCESS ? give(sums, SUMS, piece) : status;
}

static int piece_tell(const struct sums *sums, size_t piece)
{
    struct range all = piece_of(sums, piece);
    int status = sums->levels->leaders ? await(sums, SUMS, piece) : OMPI_SUCCESS;
    return status == OMPI_SUCCESS
               ? node_tell_elements(sums->levels, place_of(sums, all), all.count, sums->type)
               : status;
}

static int pieces_move(const struct sums *sums)
{
    int status = OMPI_SUCCESS;
    for (size_t i = 0; i < sums->pieces + 2 * AHEAD && status == OMPI_SUCCESS; i++) {
        if (i < sums->pieces)
            status = piece_give(sums, i);
        if (status == OMPI_SUCCESS && i >= AHEAD && i - AHEAD < sums->pieces)
            status = piece_add_up(sums, i - AHEAD);
        if (status == OMPI_SUCCESS && i >= 2 * AHEAD)
            status = piece_tell(sums, i - 2 * AHEAD);
    }
    return status;
}

/* --- in a leader --- */

static size_t requests_count(const struct sums *sums)
{
    return (size_t) WHATS * UNDER_WAY * 2 * sums->levels->nodes;
}

static int leader_begin(struct sums *sums)
{
    size_t nodes = sums->levels->nodes, part = sums->each / nodes + 1;
    size_t span = (size_t) opal_datatype_span(&sums->type->super, part, &sums->gap);
    sums->room_stride = (span + ROOM_ALIGN - 1) / ROOM_ALIGN * ROOM_ALIGN;
    sums->room = malloc(UNDER_WAY * nodes * sums->room_stride);
    sums->requests = malloc(requests_count(sums) * sizeof(*sums->requests));
    for (size_t i = 0; sums->requests && i < requests_count(sums); i++)
        sums->requests[i] = MPI_REQUEST_NULL;
    return sums->room && sums->requests ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
}

/* After an error what was expected may come yet: the room for it stays. */
static void leader_end(struct sums *sums, int status)
{
    for (size_t i = 0; sums->requests && i < requests_count(sums); i++)
        if (sums->requests[i] != MPI_REQUEST_NULL) {
            ompi_request_cancel(sums->requests[i]);
            ompi_request_free(&sums->requests[i]);
        }
    if (status == OMPI_SUCCESS || !sums->requests)
        free(sums->room);
    free(sums->requests);
}

int sums_allreduce(const struct levels *levels, const void *from, void *to, size_t count,
                   size_t each, ompi_datatype_t *type, ompi_op_t *op)
{
    struct sums sums = {.levels = levels,
                        .from = from,
                        .to = to,
                        .count = count,
                        .each = each,
                        .pieces = (count + each - 1) / each,
                        .type = type,
                        .op = op,
                        .extent = type->super.ub - type->super.lb};
    int status = levels->leaders ? leader_begin(&sums) : OMPI_SUCCESS;
    if (status == OMPI_SUCCESS)
        status = pieces_move(&sums);
    leader_end(&sums, status);
    return status;
}
