/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations, each in one turn, or in several where a slot does not hold it. */
#include "coll/node/image.h"
#include "coll/node/node.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* In MPI_Alltoall each pair has bytes of its own, which messages copy once and an area twice: above
 * this messages are faster. */
#define ALLTOALL_BYTES_MAX 16384u
/* A reduction is divided among all where it takes so many turns, or there are so many processes and
 * so many bytes for each. Each then runs once more, which costs more where there are many. */
#define RANGES_TURNS 4u
#define RANGES_RANKS 4u
#define RANGES_BYTES 16384u
/* A process that never has to wait for the others makes progress on its messages once in so many
 * turns. */
#define TURNS_TO_PROGRESS 32u

/* Where only the root waits, messages are faster: the other process sends ahead, and needs no slot
 * that is free. */
static inline bool is_faster_below(const node_module_t *node, enum multilane_call call)
{
    return node->turns.looks && (call == MULTILANE_REDUCE || call == MULTILANE_GATHER);
}

/* Not inlined, so that goes_by_area can be. */
static __attribute__((noinline)) bool goes_below(node_module_t *node, enum multilane_call call)
{
    if (!node->turns.area)
        node->entry.way = node->entry.without;
    else
        node->entry.way = is_faster_below(node, call) ? MULTILANE_UNSHARED : MULTILANE_LARGE;
    return false;
}

/* Is the operation one that goes by the area? `bytes`: what a process gives, or reads of the
 * result, and `root`: equal in all, so that all choose alike. An error in *status. */
static inline bool is_for_area(node_module_t *node, enum multilane_call call, int root,
                               size_t bytes, int *status)
{
    *status = OMPI_SUCCESS;
    tsan_acquire(&node->entry); /* entry_enable */
    if (OPAL_UNLIKELY(node->entry.operations <= NODE_OPERATIONS_BELOW) &&
        ++node->entry.operations > NODE_OPERATIONS_BELOW)
        *status = area_obtain(node);
    if (node->turns.looks && node->turns.turn % TURNS_TO_PROGRESS == 0)
        opal_progress();
    node->turns.is_short = bytes <= SHORT_BYTES;
    node->turns.call = node_call_word(call, root, bytes);
    if (OPAL_UNLIKELY(!node->turns.area || bytes > node->bytes_max || is_faster_below(node, call)))
        return goes_below(node, call);
    atomic_fetch_add_explicit(&node_operations, 1, memory_order_relaxed);
    return true;
}

/* False where the area has failed: an error in *status. */
static inline bool area_works(const node_module_t *node, int *status)
{
    *status = node_failure(node);
    return OPAL_LIKELY(*status == OMPI_SUCCESS);
}

/* The same, and whether the area can still be used. */
static inline bool goes_by_area(node_module_t *node, enum multilane_call call, int root,
                                size_t bytes, int *status)
{
    return is_for_area(node, call, root, bytes, status) && area_works(node, status);
}

static void publish(node_module_t *node)
{
    turn_publish(&node->turns);
    node_wake(node);
}

/* For operations of which some do not wait for all: some may wait to write. */
static void arrive_and_go(node_module_t *node)
{
    if (turn_arrive(&node->turns, node->me) || node->turns.looks)
        node_wake(node);
}

static int all_call_this(node_module_t *node)
{
    int status = node_all_call_this(node);
    return OPAL_LIKELY(status == OMPI_SUCCESS) ? OMPI_SUCCESS : node_fail(node, status);
}

/* Only those that `wait` go on when all have arrived. */
static int arrive_and_wait(node_module_t *node, bool waits, int tag)
{
    arrive_and_go(node);
    if (!waits)
        return OMPI_SUCCESS;
    int status = node_wait_others(node, node->turns.turn, tag);
    return status == OMPI_SUCCESS ? all_call_this(node) : status;
}

/* All have arrived, and nothing else is needed of the turn. */
static int arrive_and_meet(node_module_t *node, int tag)
{
    if (node->turns.looks)
        return arrive_and_wait(node, true, tag);
    if (!turn_arrive(&node->turns, node->me))
        return node_wait_result(node, tag);
    int status = all_call_this(node);
    if (status == OMPI_SUCCESS)
        publish(node);
    return status;
}

/* --- elements to reduce: in slots as in the user's memory, less what lies before the first --- */

struct elements {
    ompi_datatype_t *type;
    ompi_op_t *op;
    ptrdiff_t extent, gap;
    size_t span; /* of one */
    size_t each; /* so many in a slot */
};

static struct elements elements_of(const node_module_t *node, ompi_datatype_t *type, ompi_op_t *op)
{
    struct elements elements = {.type = type, .op = op, .extent = type->super.ub - type->super.lb};
    size_t room = node->turns.slot_bytes;
    elements.span = (size_t) opal_datatype_span(&type->super, 1, &elements.gap);
    if (elements.extent > 0 && elements.span <= room)
        elements.each = 1 + (room - elements.span) / (size_t) elements.extent;
    return elements;
}

static void elements_copy(const struct elements *elements, size_t count, const void *from, void *to)
{
    (void) ompi_datatype_copy_content_same_ddt(elements->type, count, (char *) to, (char *) from);
}

static void *elements_in(const struct elements *elements, struct slot *slot)
{
    return slot->bytes - elements->gap;
}

/* What a rank has given; `own`: where this process has its own, or null. Its own slot, which others
 * have just read, is no faster for it than theirs. */
static char *given_by(const node_module_t *node, const struct elements *elements, uint32_t rank,
                      const void *own)
{
    return own && rank == node->me ? (char *) own
                                   : elements_in(elements, turn_slot(&node->turns, rank));
}

/* `own` of elements that become `to`. In place they are overwritten, unless the result begins as
 * them. */
static const void *own_for(const node_module_t *node, const void *from, const void *to)
{
    return from != to || node->me == node->turns.ranks - 1 ? from : NULL;
}

/* From the last rank to the first: so what is not commutative is right, and sums are the same each
 * time, whichever process was the last. */
static void elements_reduce(const node_module_t *node, const struct elements *elements,
                            size_t first, size_t count, const void *own, void *to)
{
    ptrdiff_t at = (ptrdiff_t) first * elements->extent;
    uint32_t rank = node->turns.ranks - 1;
    if (own != to) /* else the last rank's are there */
        elements_copy(elements, count, given_by(node, elements, rank, own) + at, (char *) to + at);
    while (rank-- > 0)
        ompi_op_reduce(elements->op, given_by(node, elements, rank, own) + at, (char *) to + at,
                       (compat_count) count, elements->type);
}

/* The part of `count` elements that belongs to this process. */
static void range_reduce(const node_module_t *node, const struct elements *elements, size_t count,
                         const void *own)
{
    size_t ranks = node->turns.ranks, first = count * node->me / ranks;
    size_t end = count * (node->me + 1) / ranks;
    if (end > first)
        elements_reduce(node, elements, first, end - first, own,
                        elements_in(elements, turn_result_next(&node->turns)));
}

/* `from` null: the others need none of this process. */
static int elements_give(node_module_t *node, const struct elements *elements, size_t count,
                         const void *from, int tag)
{
    int status = node_wait_others(node, turn_to_give(&node->turns), tag);
    if (status == OMPI_SUCCESS && from)
        elements_copy(elements, count, from,
                      elements_in(elements, turn_slot(&node->turns, node->me)));
    return status;
}

/* --- operations --- */

static int node_barrier(ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    node_module_t *node = (node_module_t *) module;
    int status;
    if (!goes_by_area(node, MULTILANE_BARRIER, 0, 0, &status))
        return status != OMPI_SUCCESS
                   ? status
                   : node->entry.below.coll_barrier(comm, node->entry.below.coll_barrier_module);
    status = arrive_and_meet(node, MCA_COLL_BASE_TAG_BARRIER);
    node->turns.turn++;
    return status;
}

static int bcast_turn(node_module_t *node, unsigned char *bytes, size_t length, bool is_root)
{
    int status = OMPI_SUCCESS;
    if (is_root)
        status = node_wait_others(node, turn_to_tell(&node->turns), MCA_COLL_BASE_TAG_BCAST);
    if (status != OMPI_SUCCESS)
        return status;
    if (is_root)
        memcpy(turn_result(&node->turns)->bytes, bytes, length);
    arrive_and_go(node);
    if (is_root) {
        publish(node);
        return OMPI_SUCCESS;
    }
    status = node_wait_result(node, MCA_COLL_BASE_TAG_BCAST);
    if (status == OMPI_SUCCESS)
        memcpy(bytes, turn_result(&node->turns)->bytes, length);
    return status;
}

static int node_bcast(void *buffer, compat_count count, ompi_datatype_t *type, int root,
                      ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    node_module_t *node = (node_module_t *) module;
    bool is_root = ompi_comm_rank(comm) == root;
    size_t bytes = packed_bytes((size_t) count, type);
    struct image image;
    int status;
    if (!goes_by_area(node, MULTILANE_BCAST, root, bytes, &status))
        return BELOW(node, status, bcast, buffer, count, type, root);
    status = is_root ? image_pack(&image, buffer, (size_t) count, type)
                     : image_make(&image, buffer, (size_t) count, type);
    if (OPAL_UNLIKELY(status != OMPI_SUCCESS)) /* the others would wait for this process */
        (void) node_fail(node, status);
    for (size_t at = 0, length; at < bytes && status == OMPI_SUCCESS; at += length) {
        length = lesser(bytes - at, node->turns.slot_bytes);
        status = bcast_turn(node, image.bytes + at, length, is_root);
        node->turns.turn++;
    }
    if (!is_root)
        return image_unpack(&image, buffer, (size_t) count, type, status);
    free(image.allocated);
    return status;
}

/* Each gives elements; who `waits` goes on when all have. */
static int give_turn(node_module_t *node, const struct elements *elements, size_t count,
                     const void *from, bool waits, int tag)
{
    int status = elements_give(node, elements, count, from, tag);
    return status == OMPI_SUCCESS ? arrive_and_wait(node, waits, tag) : status;
}

static int reduce_turn(node_module_t *node, const struct elements *elements, size_t count,
                       const void *from, void *to, bool is_root)
{
    const void *own = is_root ? own_for(node, from, to) : NULL;
    int status =
        give_turn(node, elements, count, own ? NULL : from, is_root, MCA_COLL_BASE_TAG_REDUCE);
    if (is_root && status == OMPI_SUCCESS)
        elements_reduce(node, elements, 0, count, own, to);
    return status;
}

/* Each reduces for itself. In place rank 0 does it in the turn's result, which no other uses, so
 * that its own elements are whole meanwhile. */
static int allreduce_look_turn(node_module_t *node, const struct elements *elements, size_t count,
                               const void *from, void *to)
{
    bool is_apart = from == to && node->me == 0;
    void *result = is_apart ? elements_in(elements, turn_result(&node->turns)) : to;
    int status = give_turn(node, elements, count, from, true, MCA_COLL_BASE_TAG_ALLREDUCE);
    if (status != OMPI_SUCCESS)
        return status;
    elements_reduce(node, elements, 0, count, own_for(node, from, result), result);
    if (is_apart)
        elements_copy(elements, count, result, to);
    return status;
}

/* The last one reduces for all. */
static int allreduce_turn(node_module_t *node, const struct elements *elements, size_t count,
                          const void *from, void *to)
{
    if (node->turns.looks)
        return allreduce_look_turn(node, elements, count, from, to);
    void *result = elements_in(elements, turn_result(&node->turns));
    int status = elements_give(node, elements, count, from, MCA_COLL_BASE_TAG_ALLREDUCE);
    if (status != OMPI_SUCCESS)
        return status;
    if (turn_arrive(&node->turns, node->me)) {
        status = all_call_this(node);
        if (status == OMPI_SUCCESS) {
            elements_reduce(node, elements, 0, count, from, result);
            publish(node);
        }
    } else {
        status = node_wait_result(node, MCA_COLL_BASE_TAG_ALLREDUCE);
    }
    if (status == OMPI_SUCCESS)
        elements_copy(elements, count, result, to);
    return status;
}

/* Many elements: in the turn in which a piece is given each process reduces its range of it, and in
 * the next gets those of all. So each runs once in a turn, and none works while the others wait. */
static int allreduce_by_ranges(node_module_t *node, const struct elements *elements, size_t count,
                               const char *from, char *to)
{
    size_t pieces = (count + elements->each - 1) / elements->each;
    size_t each = (count + pieces - 1) / pieces;
    for (size_t at = 0, before = 0, now; at < count || before > 0; at += now, before = now) {
        now = lesser(count - at, each);
        const char *own = from + (ptrdiff_t) at * elements->extent;
        int status = give_turn(node, elements, now, own, true, MCA_COLL_BASE_TAG_ALLREDUCE);
        if (status != OMPI_SUCCESS)
            return status;
        elements_copy(elements, before, elements_in(elements, turn_result(&node->turns)),
                      to + (ptrdiff_t) (at - before) * elements->extent);
        range_reduce(node, elements, now, own);
        node->turns.turn++;
    }
    return OMPI_SUCCESS;
}

static bool is_divided(const node_module_t *node, const struct elements *elements, size_t count)
{
    size_t ranks = node->turns.ranks, bytes = count * (size_t) elements->extent;
    return !node->turns.is_short &&
           (count > (RANGES_TURNS - 1) * elements->each ||
            (ranks >= RANGES_RANKS && count >= ranks && bytes >= RANGES_BYTES * ranks));
}

/* `root` -1: all get the result. */
static int reduce(node_module_t *node, const struct elements *elements, size_t count,
                  const void *from, void *to, int root)
{
    int status = OMPI_SUCCESS;
    if (from == MPI_IN_PLACE)
        from = to;
    node->turns.is_short = elements->span + (count - 1) * (size_t) elements->extent <= SHORT_BYTES;
    if (root < 0 && is_divided(node, elements, count))
        return allreduce_by_ranges(node, elements, count, from, to);
    for (size_t done = 0, now; done < count && status == OMPI_SUCCESS; done += now) {
        ptrdiff_t at = (ptrdiff_t) done * elements->extent;
        now = lesser(count - done, elements->each);
        status = root < 0 ? allreduce_turn(node, elements, now, (const char *) from + at,
                                           (char *) to + at)
                          : reduce_turn(node, elements, now, (const char *) from + at,
                                        (char *) to + at, (int) node->me == root);
        node->turns.turn++;
    }
    return status;
}

static int node_reduce(const void *from, void *to, compat_count count, ompi_datatype_t *type,
                       ompi_op_t *op, int root, ompi_communicator_t *comm,
                       mca_coll_base_module_t *module)
{
    node_module_t *node = (node_module_t *) module;
    int status;
    bool goes =
        is_for_area(node, MULTILANE_REDUCE, root, packed_bytes((size_t) count, type), &status);
    struct elements elements = elements_of(node, type, op);
    if (!goes || hinders(&node->entry, !elements.each, MULTILANE_OPERAND) ||
        !area_works(node, &status))
        return BELOW(node, status, reduce, from, to, count, type, op, root);
    return reduce(node, &elements, (size_t) count, from, to, root);
}

static int node_allreduce(const void *from, void *to, compat_count count, ompi_datatype_t *type,
                          ompi_op_t *op, ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    node_module_t *node = (node_module_t *) module;
    int status;
    bool goes =
        is_for_area(node, MULTILANE_ALLREDUCE, 0, packed_bytes((size_t) count, type), &status);
    struct elements elements = elements_of(node, type, op);
    if (!goes || hinders(&node->entry, !elements.each, MULTILANE_OPERAND) ||
        !area_works(node, &status))
        return BELOW(node, status, allreduce, from, to, count, type, op);
    return reduce(node, &elements, (size_t) count, from, to, -1);
}

/* Who gets what: each process a block of each, or one of its own of each, or the root alone. */
struct exchange {
    bool is_for_each;
    int root; /* -1: all get */
    int tag;
};

static bool gets(const node_module_t *node, const struct exchange *exchange)
{
    return exchange->root < 0 || exchange->root == (int) node->me;
}

/* A piece of what the others get. */
static void blocks_write(const node_module_t *node, const struct exchange *exchange,
                         const struct blocks *blocks, size_t at, size_t length)
{
    unsigned char *slot = turn_slot(&node->turns, node->me)->bytes;
    const unsigned char *sent = blocks->sent.bytes + at;
    if (!exchange->is_for_each && exchange->root != (int) node->me)
        memcpy(slot, sent, length);
    for (uint32_t rank = 0; exchange->is_for_each && rank < node->turns.ranks; rank++)
        if (rank != node->me)
            memcpy(slot + rank * length, sent + rank * blocks->bytes, length);
}

/* The same piece of what this process gets; its own comes from its own memory. */
static void blocks_read(const node_module_t *node, const struct exchange *exchange,
                        const struct blocks *blocks, size_t at, size_t length)
{
    uint32_t mine = exchange->is_for_each ? node->me : 0;
    for (uint32_t rank = 0; rank < node->turns.ranks; rank++) {
        const unsigned char *from = turn_slot(&node->turns, rank)->bytes + mine * length;
        unsigned char *to = blocks->received.bytes + rank * blocks->bytes + at;
        if (rank == node->me)
            from = blocks->sent.bytes + mine * blocks->bytes + at;
        if (from != to)
            memcpy(to, from, length);
    }
}

/* Piece by piece; in the slot of the one behind each other, in the order of the others where each
 * gets something of its own. */
static int exchange_blocks(node_module_t *node, const struct exchange *exchange,
                           const struct blocks *blocks)
{
    const struct turns *turns = &node->turns;
    size_t block = blocks->bytes;
    size_t each = exchange->is_for_each ? turns->slot_bytes / turns->ranks : turns->slot_bytes;
    int status = OMPI_SUCCESS;
    for (size_t at = 0, length; at < block && status == OMPI_SUCCESS; at += length) {
        length = lesser(block - at, each);
        status = node_wait_others(node, turn_to_give(turns), exchange->tag);
        if (status != OMPI_SUCCESS)
            return status;
        blocks_write(node, exchange, blocks, at, length);
        status = exchange->root < 0 ? arrive_and_meet(node, exchange->tag)
                                    : arrive_and_wait(node, gets(node, exchange), exchange->tag);
        if (gets(node, exchange) && status == OMPI_SUCCESS)
            blocks_read(node, exchange, blocks, at, length);
        node->turns.turn++;
    }
    return status;
}

/* As exchange_blocks, between buffers. */
static int exchange_typed(node_module_t *node, const struct exchange *exchange, const void *from,
                          size_t from_count, ompi_datatype_t *from_type, void *to, size_t count,
                          ompi_datatype_t *type)
{
    struct blocks blocks = {.bytes = 0};
    int status;
    if (gets(node, exchange)) {
        status = blocks_make(&blocks, from, from_count, from_type, to, count, type,
                             exchange->is_for_each, node->entry.comm);
    } else {
        blocks.bytes = packed_bytes(from_count, from_type);
        status = image_pack(&blocks.sent, from, from_count, from_type);
    }
    if (OPAL_UNLIKELY(status != OMPI_SUCCESS)) /* as in node_bcast */
        (void) node_fail(node, status);
    else
        status = exchange_blocks(node, exchange, &blocks);
    return blocks_end(&blocks, to, count, type, status);
}

/* What all give is packed in one piece, whose length is an int in MPI 3. */
static size_t bytes_of_each(const node_module_t *node, size_t block)
{
    return block <= INT_MAX / (size_t) ompi_comm_size(node->entry.comm) ? block : SIZE_MAX;
}

static int node_allgather(const void *from, compat_count from_count, ompi_datatype_t *from_type,
                          void *to, compat_count count, ompi_datatype_t *type,
                          ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    node_module_t *node = (node_module_t *) module;
    size_t bytes = bytes_of_each(node, packed_bytes((size_t) count, type));
    int status;
    if (!goes_by_area(node, MULTILANE_ALLGATHER, 0, bytes, &status))
        return BELOW(node, status, allgather, from, from_count, from_type, to, count, type);
    const struct exchange exchange = {.root = -1, .tag = MCA_COLL_BASE_TAG_ALLGATHER};
    return exchange_typed(node, &exchange, from, (size_t) from_count, from_type, to, (size_t) count,
                          type);
}

static int node_alltoall(const void *from, compat_count from_count, ompi_datatype_t *from_type,
                         void *to, compat_count count, ompi_datatype_t *type,
                         ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    node_module_t *node = (node_module_t *) module;
    size_t block = packed_bytes((size_t) count, type);
    size_t bytes = block <= ALLTOALL_BYTES_MAX ? block * node->turns.ranks : SIZE_MAX;
    int status;
    if (!goes_by_area(node, MULTILANE_ALLTOALL, 0, bytes, &status))
        return BELOW(node, status, alltoall, from, from_count, from_type, to, count, type);
    const struct exchange exchange = {true, -1, MCA_COLL_BASE_TAG_ALLTOALL};
    return exchange_typed(node, &exchange, from, (size_t) from_count, from_type, to, (size_t) count,
                          type);
}

static int node_gather(const void *from, compat_count from_count, ompi_datatype_t *from_type,
                       void *to, compat_count count, ompi_datatype_t *type, int root,
                       ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    node_module_t *node = (node_module_t *) module;
    const struct exchange exchange = {false, root, MCA_COLL_BASE_TAG_GATHER};
    size_t block = gets(node, &exchange) ? packed_bytes((size_t) count, type)
                                         : packed_bytes((size_t) from_count, from_type);
    int status;
    if (!goes_by_area(node, MULTILANE_GATHER, root, bytes_of_each(node, block), &status))
        return BELOW(node, status, gather, from, from_count, from_type, to, count, type, root);
    return exchange_typed(node, &exchange, from, (size_t) from_count, from_type, to, (size_t) count,
                          type);
}

const mca_coll_base_comm_coll_t node_functions = {
    .coll_barrier = node_barrier,
    .coll_bcast = node_bcast,
    .coll_reduce = node_reduce,
    .coll_allreduce = node_allreduce,
    .coll_allgather = node_allgather,
    .coll_alltoall = node_alltoall,
    .coll_gather = node_gather,
};
