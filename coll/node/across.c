/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations of communicators over several nodes: see levels.h. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "coll/node/image.h"
#include "coll/node/levels.h"
#include "coll/node/node.h"
#include "coll/node/sums.h"

/* A longer broadcast goes from leader to leader in pieces of so many bytes: a leader passes one on,
 * and to its node, while the next ones come. They are sent at once, without asking, and are long
 * enough for several lanes. */
#define PIECE_BYTES ((size_t) 32 << 10)
/* So many of them are expected, and so many under way to the next leader. */
#define PIECES_COMING 4
#define PIECES_GOING  4
/* In MPI_Allgather up to so many bytes of all are told to a node at once, with its own, which its
 * processes have: that takes less than to tell what lies before those and behind them. */
#define TOLD_BYTES ((size_t) 16 << 10)
/* In MPI_Alltoall all that the processes of a node give comes to each of them. */
#define ALLTOALL_BYTES ((size_t) 512 << 10)

/* What coll/node has of the communicator of this node. Null: nothing. */
static node_module_t *module_of_node(const struct levels *levels)
{
    node_module_t *node = (node_module_t *) levels->node->c_coll->coll_barrier_module;
    return ((opal_object_t *) node)->obj_class == OBJ_CLASS(node_module_t) ? node : NULL;
}

/* They may be none. */
static int levels_begin(across_module_t *across)
{
    int status = levels_make(across);
    node_module_t *node = across->levels.node ? module_of_node(&across->levels) : NULL;
    if (node)
        node->whole = across->entry.comm;
    return status;
}

/* Does the operation go by nodes? `bytes`, equal in all, of a process. An error in *status. */
static bool goes_across(across_module_t *across, size_t bytes, int *status)
{
    *status = OMPI_SUCCESS;
    tsan_acquire(&across->entry); /* entry_enable */
    if (OPAL_UNLIKELY(across->is_busy))
        return false;
    if (OPAL_UNLIKELY(across->entry.operations <= NODE_OPERATIONS_BELOW) &&
        ++across->entry.operations > NODE_OPERATIONS_BELOW)
        *status = levels_begin(across);
    if (OPAL_UNLIKELY(!across->levels.node || bytes > INT_MAX)) {
        across->entry.way = across->levels.node ? MULTILANE_LARGE : across->entry.without;
        return false;
    }
    atomic_fetch_add_explicit(&across_operations, 1, memory_order_relaxed);
    return true;
}

/* After an error the processes of this node would wait for this one. */
static int settled(const struct levels *levels, int status)
{
    if (OPAL_LIKELY(status == OMPI_SUCCESS))
        return OMPI_SUCCESS;
    node_module_t *node = module_of_node(levels);
    return node && node->turns.area ? node_fail(node, status) : status;
}

/* Of a process, in the communicator of its node. */
static int node_rank_of(const struct levels *levels, int rank)
{
    return (int) (levels->place_of[rank] - levels->first[levels->node_of[rank]]);
}

/* --- broadcast --- */

/* A broadcast among leaders, piece by piece along a chain that begins at the leader of the root. */
struct chain {
    const struct levels *levels;
    unsigned char *bytes;
    size_t length, pieces;
    int before, behind; /* leaders; -1: none */
    ompi_request_t *coming[PIECES_COMING], *going[PIECES_GOING];
};

static size_t piece_bytes(const struct chain *chain, size_t piece)
{
    return lesser(chain->length - piece * PIECE_BYTES, PIECE_BYTES);
}

static int piece_expect(struct chain *chain, size_t piece)
{
    if (chain->before < 0 || piece >= chain->pieces)
        return OMPI_SUCCESS;
    return MCA_PML_CALL(irecv(chain->bytes + piece * PIECE_BYTES, piece_bytes(chain, piece),
                              MPI_BYTE, chain->before, MCA_COLL_BASE_TAG_BCAST,
                              chain->levels->leaders, &chain->coming[piece % PIECES_COMING]));
}

static int piece_await(struct chain *chain, size_t piece)
{
    int status = chain->before < 0
                     ? OMPI_SUCCESS
                     : ompi_request_wait(&chain->coming[piece % PIECES_COMING], MPI_STATUS_IGNORE);
    return status == OMPI_SUCCESS ? piece_expect(chain, piece + PIECES_COMING) : status;
}

static int piece_pass_on(struct chain *chain, size_t piece)
{
    ompi_request_t **going = &chain->going[piece % PIECES_GOING];
    if (chain->behind < 0)
        return OMPI_SUCCESS;
    int status = ompi_request_wait(going, MPI_STATUS_IGNORE);
    if (status != OMPI_SUCCESS)
        return status;
    return MCA_PML_CALL(isend(chain->bytes + piece * PIECE_BYTES, piece_bytes(chain, piece),
                              MPI_BYTE, chain->behind, MCA_COLL_BASE_TAG_BCAST,
                              MCA_PML_BASE_SEND_STANDARD, chain->levels->leaders, going));
}

/* After an error nothing more is to come into the buffer, and a send may wait for a leader that has
 * given up. */
static void chain_break(struct chain *chain)
{
    for (int i = 0; i < PIECES_COMING; i++)
        if (chain->coming[i] != MPI_REQUEST_NULL) {
            ompi_request_cancel(chain->coming[i]);
            ompi_request_free(&chain->coming[i]);
        }
    for (int i = 0; i < PIECES_GOING; i++)
        if (chain->going[i] != MPI_REQUEST_NULL)
            ompi_request_free(&chain->going[i]);
}

static int piece_move(struct chain *chain, size_t piece, bool node_has_it)
{
    int status = piece_await(chain, piece);
    if (status == OMPI_SUCCESS)
        status = piece_pass_on(chain, piece);
    if (status == OMPI_SUCCESS && !node_has_it)
        status = node_tell(chain->levels, chain->bytes + piece * PIECE_BYTES,
                           piece_bytes(chain, piece), 0);
    return status;
}

static int chain_bcast(const struct levels *levels, unsigned char *bytes, size_t length,
                       uint32_t root_node, bool node_has_it)
{
    uint32_t nodes = levels->nodes, at = (levels->my_node + nodes - root_node) % nodes;
    struct chain chain = {.levels = levels,
                          .bytes = bytes,
                          .length = length,
                          .pieces = (length + PIECE_BYTES - 1) / PIECE_BYTES,
                          .before = at == 0 ? -1 : (int) ((levels->my_node + nodes - 1) % nodes),
                          .behind = at == nodes - 1 ? -1 : (int) ((levels->my_node + 1) % nodes)};
    int status = OMPI_SUCCESS;
    for (int i = 0; i < PIECES_COMING; i++)
        chain.coming[i] = MPI_REQUEST_NULL;
    for (int i = 0; i < PIECES_GOING; i++)
        chain.going[i] = MPI_REQUEST_NULL;
    for (size_t i = 0; i < PIECES_COMING && status == OMPI_SUCCESS; i++)
        status = piece_expect(&chain, i);
    for (size_t i = 0; i < chain.pieces && status == OMPI_SUCCESS; i++)
        status = piece_move(&chain, i, node_has_it);
    for (int i = 0; i < PIECES_GOING && status == OMPI_SUCCESS; i++)
        status = ompi_request_wait(&chain.going[i], MPI_STATUS_IGNORE);
    if (status != OMPI_SUCCESS)
        chain_break(&chain);
    return status;
}

/* A chain takes pieces + nodes - 2 steps, a tree log2(nodes) for each piece. */
static bool chain_is_faster(size_t length, uint32_t nodes)
{
    size_t pieces = (length + PIECE_BYTES - 1) / PIECE_BYTES, depth = 0;
    while (UINT32_C(1) << depth < nodes)
        depth++;
    return pieces > 1 && pieces + nodes - 2 <= pieces * depth;
}

/* From the leader of `root_node` to all processes; but to those of this node only if they do not
 * have it. Called by all of them. */
static int leaders_tell(const struct levels *levels, unsigned char *bytes, size_t length,
                        uint32_t root_node, bool node_has_it, bool by_chain)
{
    size_t step = by_chain ? PIECE_BYTES : length;
    int status = OMPI_SUCCESS;
    if (levels->leaders && by_chain)
        return chain_bcast(levels, bytes, length, root_node, node_has_it);
    if (levels->leaders)
        status =
            CALL(levels->leaders, bcast, bytes, (compat_count) length, MPI_BYTE, (int) root_node);
    for (size_t at = 0; at < length && status == OMPI_SUCCESS && !node_has_it; at += step)
        status = node_tell(levels, bytes + at, lesser(length - at, step), 0);
    return status;
}

static int across_bcast(void *buffer, compat_count count, ompi_datatype_t *type, int root,
                        ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    across_module_t *across = (across_module_t *) module;
    const struct levels *levels = &across->levels;
    bool is_root = ompi_comm_rank(comm) == root;
    size_t bytes = packed_bytes((size_t) count, type);
    struct image image;
    int status;
    if (!goes_across(across, bytes, &status))
        return BELOW(across, status, bcast, buffer, count, type, root);
    status = is_root ? image_pack(&image, buffer, (size_t) count, type)
                     : image_make(&image, buffer, (size_t) count, type);
    uint32_t root_node = levels->node_of[root];
    bool by_chain = chain_is_faster(bytes, levels->nodes);
    if (by_chain)
        across->entry.way = MULTILANE_BY_CHAIN;
    bool is_told_first = levels->my_node == root_node && node_rank_of(levels, root) != 0;
    if (status == OMPI_SUCCESS && is_told_first)
        status = node_tell(levels, image.bytes, bytes, node_rank_of(levels, root));
    if (status == OMPI_SUCCESS)
        status = leaders_tell(levels, image.bytes, bytes, root_node, is_told_first, by_chain);
    status = settled(levels, status);
    if (OPAL_UNLIKELY(status != OMPI_SUCCESS && levels->leaders && by_chain))
        image.allocated = NULL; /* what was expected may come yet: see chain_break */
    if (!is_root)
        return image_unpack(&image, buffer, (size_t) count, type, status);
    free(image.allocated);
    return status;
}

/* --- barrier --- */

static int across_barrier(ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    across_module_t *across = (across_module_t *) module;
    const struct levels *levels = &across->levels;
    unsigned char given = 0, gathered = 0;
    int status;
    if (!goes_across(across, 0, &status))
        return status != OMPI_SUCCESS ? status
                                      : across->entry.below.coll_barrier(
                                            comm, across->entry.below.coll_barrier_module);
    status = CALL(levels->node, reduce, &given, &gathered, 1, MPI_BYTE, MPI_BOR, 0);
    if (status == OMPI_SUCCESS && levels->leaders)
        status = levels->leaders->c_coll->coll_barrier(
            levels->leaders, levels->leaders->c_coll->coll_barrier_module);
    if (status == OMPI_SUCCESS)
        status = node_tell(levels, &given, 1, 0);
    return settled(levels, status);
}

/* --- reductions --- */

/* Elements that leaders gather, in memory of their own. */
struct sums {
    void *allocated;
    void *at; /* as a buffer */
};

static int sums_make(struct sums *sums, size_t count, ompi_datatype_t *type)
{
    ptrdiff_t gap;
    size_t span = (size_t) opal_datatype_span(&type->super, count, &gap);
    sums->allocated = malloc(span ? span : 1);
    sums->at = (char *) sums->allocated - gap;
    return sums->allocated ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
}

/* To the leader of `root_node`: into `sums` of the leaders. `from` MPI_IN_PLACE: it is there, in a
 * leader. */
static int leaders_reduce(const struct levels *levels, const void *from, void *sums,
                          compat_count count, ompi_datatype_t *type, ompi_op_t *op,
                          uint32_t root_node)
{
    int status =
        CALL(levels->node, reduce, from, levels->leaders ? sums : NULL, count, type, op, 0);
    if (status != OMPI_SUCCESS || !levels->leaders)
        return status;
    bool is_root = levels->my_node == root_node;
    return CALL(levels->leaders, reduce, is_root ? MPI_IN_PLACE : sums, is_root ? sums : NULL,
                count, type, op, (int) root_node);
}

/* From the leader of the root's node to the root. */
static int root_gets(const struct levels *levels, void *sums, void *to, compat_count count,
                     ompi_datatype_t *type, int root, bool is_root)
{
    int root_in_node = node_rank_of(levels, root);
    if (root_in_node == 0 || levels->my_node != levels->node_of[root])
        return OMPI_SUCCESS;
    if (is_root)
        return MCA_PML_CALL(recv(to, (size_t) count, type, 0, MCA_COLL_BASE_TAG_REDUCE,
                                 levels->node, MPI_STATUS_IGNORE));
    if (!levels->leaders)
        return OMPI_SUCCESS;
    return MCA_PML_CALL(send(sums, (size_t) count, type, root_in_node, MCA_COLL_BASE_TAG_REDUCE,
                             MCA_PML_BASE_SEND_STANDARD, levels->node));
}

static int across_reduce(const void *from, void *to, compat_count count, ompi_datatype_t *type,
                         ompi_op_t *op, int root, ompi_communicator_t *comm,
                         mca_coll_base_module_t *module)
{
    across_module_t *across = (across_module_t *) module;
    const struct levels *levels = &across->levels;
    bool is_root = ompi_comm_rank(comm) == root;
    struct sums sums = {.allocated = NULL, .at = to};
    int status;
    bool goes = goes_across(across, packed_bytes((size_t) count, type), &status);
    if (!goes ||
        hinders(&across->entry, !levels->in_order && !ompi_op_is_commute(op), MULTILANE_OPERAND))
        return BELOW(across, status, reduce, from, to, count, type, op, root);
    if (levels->leaders && !is_root)
        status = sums_make(&sums, (size_t) count, type);
    if (is_root && from == MPI_IN_PLACE && !levels->leaders)
        from = to;
    if (status == OMPI_SUCCESS)
        status = leaders_reduce(levels, from, sums.at, count, type, op, levels->node_of[root]);
    if (status == OMPI_SUCCESS)
        status = root_gets(levels, sums.at, to, count, type, root, is_root);
    free(sums.allocated);
    return settled(levels, status);
}

static int across_allreduce(const void *from, void *to, compat_count count, ompi_datatype_t *type,
                            ompi_op_t *op, ompi_communicator_t *comm,
                            mca_coll_base_module_t *module)
{
    across_module_t *across = (across_module_t *) module;
    const struct levels *levels = &across->levels;
    int status;
    bool goes = goes_across(across, packed_bytes((size_t) count, type), &status);
    if (!goes ||
        hinders(&across->entry, !levels->in_order && !ompi_op_is_commute(op), MULTILANE_OPERAND))
        return BELOW(across, status, allreduce, from, to, count, type, op);
    if (from == MPI_IN_PLACE && !levels->leaders)
        from = to;
    size_t each = sums_piece(levels, (size_t) count, type);
    if (each > 0)
        return settled(levels, sums_allreduce(levels, from, to, (size_t) count, each, type, op));
    status = CALL(levels->node, reduce, from, levels->leaders ? to : NULL, count, type, op, 0);
    if (status == OMPI_SUCCESS && levels->leaders)
        status = CALL(levels->leaders, allreduce, MPI_IN_PLACE, to, count, type, op);
    if (status == OMPI_SUCCESS)
        status = node_tell_elements(levels, to, (size_t) count, type);
    return settled(levels, status);
}

/* --- exchanges --- */

/* The blocks of all, by place. */
static int gather_by_place(const struct levels *levels, const struct blocks *blocks,
                           unsigned char *all)
{
    size_t block = blocks->bytes, begin = levels->first[levels->my_node] * block;
    size_t end = levels->first[levels->my_node + 1] * block, whole = blocks->ranks * block;
    size_t mine = begin + (size_t) ompi_comm_rank(levels->node) * block;
    const void *give = blocks->sent.bytes == all + mine ? MPI_IN_PLACE : blocks->sent.bytes;
    int status = CALL(levels->node, allgather, give, (compat_count) block, MPI_BYTE, all + begin,
                      (compat_count) block, MPI_BYTE);
    if (status == OMPI_SUCCESS && levels->leaders)
        status = CALL(levels->leaders, allgather, MPI_IN_PLACE, 0, MPI_BYTE, all,
                      (compat_count) (end - begin), MPI_BYTE);
    if (status == OMPI_SUCCESS && whole <= TOLD_BYTES)
        return node_tell(levels, all, whole, 0);
    if (status == OMPI_SUCCESS)
        status = node_tell(levels, all, begin, 0);
    return status == OMPI_SUCCESS ? node_tell(levels, all + end, whole - end, 0) : status;
}

static int gather(const struct levels *levels, const struct blocks *blocks)
{
    unsigned char *all = blocks->received.bytes;
    if (levels->in_order)
        return gather_by_place(levels, blocks, all);
    all = malloc(blocks->ranks * blocks->bytes);
    int status = all ? gather_by_place(levels, blocks, all) : OMPI_ERR_OUT_OF_RESOURCE;
    for (size_t rank = 0; rank < blocks->ranks && status == OMPI_SUCCESS; rank++)
        memcpy(blocks->received.bytes + rank * blocks->bytes,
               all + levels->place_of[rank] * blocks->bytes, blocks->bytes);
    free(all);
    return status;
}

static int across_allgather(const void *from, compat_count from_count, ompi_datatype_t *from_type,
                            void *to, compat_count count, ompi_datatype_t *type,
                            ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    across_module_t *across = (across_module_t *) module;
    size_t ranks = (size_t) ompi_comm_size(comm);
    struct blocks blocks;
    int status;
    bool goes = goes_across(across, ranks * packed_bytes((size_t) count, type), &status);
    if (!goes || hinders(&across->entry, !across->levels.is_even, MULTILANE_UNEVEN))
        return BELOW(across, status, allgather, from, from_count, from_type, to, count, type);
    status = blocks_make(&blocks, from, (size_t) from_count, from_type, to, (size_t) count, type,
                         false, comm);
    if (status == OMPI_SUCCESS)
        status = gather(&across->levels, &blocks);
    return blocks_end(&blocks, to, (size_t) count, type, settled(&across->levels, status));
}

/* Blocks between two nodes lie by the place of their sender, then of their receiver, behind those
 * with the nodes before. Where the block from the process `sender` of a node lies, that is for the
 * process `receiver` of the other. */
static size_t pair_at(const struct levels *levels, uint32_t node, size_t sender, size_t receiver)
{
    size_t each = levels->first[1];
    return (node * each + sender) * each + receiver;
}

/* In the leader: what the processes of this node give, as `given` has it by sender and rank, by the
 * nodes that it is for. */
static void pairs_fill(const struct levels *levels, const struct blocks *blocks,
                       const unsigned char *given, unsigned char *pairs)
{
    for (size_t rank = 0; rank < blocks->ranks; rank++)
        for (size_t sender = 0; sender < levels->first[1]; sender++)
            memcpy(pairs + blocks->bytes * pair_at(levels, levels->node_of[rank], sender,
                                                   (size_t) node_rank_of(levels, (int) rank)),
                   given + (sender * blocks->ranks + rank) * blocks->bytes, blocks->bytes);
}

static void pairs_take(const struct levels *levels, const struct blocks *blocks,
                       const unsigned char *pairs)
{
    size_t me = (size_t) ompi_comm_rank(levels->node);
    for (size_t rank = 0; rank < blocks->ranks; rank++)
        memcpy(blocks->received.bytes + rank * blocks->bytes,
               pairs + blocks->bytes * pair_at(levels, levels->node_of[rank],
                                               (size_t) node_rank_of(levels, (int) rank), me),
               blocks->bytes);
}

/* `given` and `pairs` have room for what the processes of this node give. */
static int exchange(const struct levels *levels, const struct blocks *blocks, unsigned char *given,
                    unsigned char *pairs, unsigned char *come)
{
    size_t each = levels->first[1], whole = each * blocks->ranks * blocks->bytes;
    compat_count mine = (compat_count) (blocks->ranks * blocks->bytes);
    compat_count with_node = (compat_count) (each * each * blocks->bytes);
    int status =
        CALL(levels->node, allgather, blocks->sent.bytes, mine, MPI_BYTE, given, mine, MPI_BYTE);
    if (status == OMPI_SUCCESS && levels->leaders) {
        pairs_fill(levels, blocks, given, pairs);
        status =
            CALL(levels->leaders, alltoall, pairs, with_node, MPI_BYTE, come, with_node, MPI_BYTE);
    }
    if (status == OMPI_SUCCESS)
        status = node_tell(levels, come, whole, 0);
    if (status == OMPI_SUCCESS)
        pairs_take(levels, blocks, come);
    return status;
}

static int across_alltoall(const void *from, compat_count from_count, ompi_datatype_t *from_type,
                           void *to, compat_count count, ompi_datatype_t *type,
                           ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    across_module_t *across = (across_module_t *) module;
    const struct levels *levels = &across->levels;
    size_t bytes = (size_t) ompi_comm_size(comm) * packed_bytes((size_t) count, type);
    struct blocks blocks;
    int status;
    bool goes = goes_across(across, bytes, &status);
    if (!goes || hinders(&across->entry, !levels->is_even, MULTILANE_UNEVEN) ||
        hinders(&across->entry, levels->first[1] * bytes > ALLTOALL_BYTES, MULTILANE_LARGE))
        return BELOW(across, status, alltoall, from, from_count, from_type, to, count, type);
    bytes *= levels->first[1];
    unsigned char *room = malloc(3 * bytes + 1);
    status = blocks_make(&blocks, from, (size_t) from_count, from_type, to, (size_t) count, type,
                         true, comm);
    if (status == OMPI_SUCCESS)
        status = room ? exchange(levels, &blocks, room, room + bytes, room + 2 * bytes)
                      : OMPI_ERR_OUT_OF_RESOURCE;
    free(room);
    return blocks_end(&blocks, to, (size_t) count, type, settled(levels, status));
}

const mca_coll_base_comm_coll_t across_functions = {
    .coll_barrier = across_barrier,
    .coll_bcast = across_bcast,
    .coll_reduce = across_reduce,
    .coll_allreduce = across_allreduce,
    .coll_allgather = across_allgather,
    .coll_alltoall = across_alltoall,
};
