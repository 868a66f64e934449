/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs whose processes call different operations: a sentence, where messages would hang. */
#include "coll/node/node.h"

#include <stdio.h>

#include "opal/util/output.h"

#define CALL_SHIFT 28u

uint32_t node_call_word(enum multilane_call call, int root, size_t bytes)
{
    uint32_t rest = (uint32_t) root * UINT32_C(2654435761) + (uint32_t) bytes;
    return (uint32_t) call << CALL_SHIFT | (rest & ((UINT32_C(1) << CALL_SHIFT) - 1));
}

static const char *call_name(uint32_t word)
{
    return multilane_call_name(word >> CALL_SHIFT);
}

/* Of a communicator across nodes: what its operations are made of says nothing of the program's. */
static int parts_differ(const node_module_t *node)
{
    opal_output(0,
                "multilane: rank %d and other processes of one node call different collective "
                "operations of %s. It cannot be used any more.",
                ompi_comm_rank(node->whole), compat_comm_name(node->whole));
    return MPI_ERR_OTHER;
}

/* `call` is what another process calls; it may have gone on. */
static int calls_differ(const node_module_t *node, uint32_t call)
{
    bool is_same_name = call >> CALL_SHIFT == node->turns.call >> CALL_SHIFT;
    uint32_t stranger, rank = turn_stranger(&node->turns, &stranger);
    char other[32] = "another one";

    if (node->whole)
        return parts_differ(node);
    if (rank < node->turns.ranks)
        snprintf(other, sizeof(other), "rank %u", rank);
    opal_output(0,
                "multilane: the processes of %s call different collective operations: rank %u "
                "calls %s, and %s calls %s%s. It cannot be used any more.",
                compat_comm_name(node->entry.comm), node->me, call_name(node->turns.call), other,
                call_name(call), is_same_name ? " with another root or length" : "");
    return MPI_ERR_OTHER;
}

int node_calls_differ(const node_module_t *node)
{
    uint32_t call;
    if (node->whole)
        return parts_differ(node);
    if (turn_stranger(&node->turns, &call) < node->turns.ranks)
        return calls_differ(node, call);
    opal_output(0,
                "multilane: the processes of %s call different collective operations: rank %u "
                "calls %s, and others have called another one and gone on. It cannot be used any "
                "more.",
                compat_comm_name(node->entry.comm), node->me, call_name(node->turns.call));
    return MPI_ERR_OTHER;
}

int node_all_call_this(const node_module_t *node)
{
    uint32_t call, rank = turn_stranger(&node->turns, &call);
    return OPAL_LIKELY(rank == node->turns.ranks) ? OMPI_SUCCESS : calls_differ(node, call);
}

int node_teller_calls_this(const node_module_t *node)
{
    uint32_t call =
        (uint32_t) atomic_load_explicit(&turn_result(&node->turns)->arrival, memory_order_relaxed);
    return OPAL_LIKELY(call == node->turns.call) ? OMPI_SUCCESS : calls_differ(node, call);
}
