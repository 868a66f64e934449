/* SPDX-License-Identifier: BSD-3-Clause */
/* The communicators of nodes and of their leaders. */
#include "coll/node/levels.h"

#include <stdlib.h>
#include <string.h>

#include "coll/node/node.h"

/* Each is two more communicators, with their identifiers and memory. */
#define LEVELS_MOST 64u
/* What a node's processes exchange at once goes through its memory. */
#define NODE_BYTES ((size_t) 64 << 10)

static _Atomic uint32_t levels_count; /* of this process */

/* Open MPI knows the processes of this node from the start. Of others that were never met it makes
 * no entries, and need not here. */
bool node_has(ompi_communicator_t *comm, int rank)
{
    const opal_proc_t *proc = ompi_proc_lookup(ompi_group_get_proc_name(comm->c_local_group, rank));

    return proc && OPAL_PROC_ON_LOCAL_NODE(proc->proc_flags);
}

static uint32_t leader_of_mine(ompi_communicator_t *comm)
{
    int rank = 0;
    while (rank < ompi_comm_rank(comm) && !node_has(comm, rank))
        rank++;
    return (uint32_t) rank;
}

/* MULTILANE_BY_NODE: this process can have two more communicators. */
static enum multilane_way hindrance(bool has_memory)
{
    enum multilane_way why = node_hindrance(has_memory);
    if (why != MULTILANE_BY_NODE)
        return why;
    if (compat_ft_is_on())
        return MULTILANE_ULFM;
    return atomic_load_explicit(&levels_count, memory_order_relaxed) < LEVELS_MOST
               ? MULTILANE_BY_NODE
               : MULTILANE_MANY;
}

/* Are there several nodes, one of them with several processes, and do all of these see the same
 * leader, the lowest rank on their node? */
static bool are_nodes(const uint32_t *leaders, uint32_t ranks)
{
    uint32_t nodes = 0;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        if (leaders[rank] > rank || leaders[leaders[rank]] != leaders[rank])
            return false;
        nodes += leaders[rank] == rank;
    }
    return nodes > 1 && nodes < ranks;
}

/* Nodes and places. While places are given, first[node + 1] is the node's next
 * one; in the end it is that of the node behind it. */
static void levels_order(struct levels *levels, const uint32_t *leaders, uint32_t ranks)
{
    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint32_t leader = leaders[rank];
        levels->node_of[rank] = leader == rank ? levels->nodes++ : levels->node_of[leader];
        levels->first[levels->node_of[rank] + 2]++;
    }
    for (uint32_t node = 1; node <= levels->nodes; node++)
        levels->first[node + 1] += levels->first[node];
    levels->in_order = levels->is_even = true;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        levels->place_of[rank] = levels->first[levels->node_of[rank] + 1]++;
        levels->in_order &= levels->place_of[rank] == rank;
    }
    for (uint32_t node = 0; node < levels->nodes; node++)
        levels->is_even &= levels->first[node + 1] == (node + 1) * levels->first[1];
}

static bool levels_allocate(struct levels *levels, uint32_t ranks)
{
    levels->node_of = calloc(ranks, sizeof(*levels->node_of));
    levels->place_of = calloc(ranks, sizeof(*levels->place_of));
    levels->first = calloc(ranks + 2, sizeof(*levels->first));
    return levels->node_of && levels->place_of && levels->first;
}

static int split(across_module_t *across, uint32_t color, ompi_communicator_t **comm,
                 uint32_t *index)
{
    int status = ompi_comm_split(across->entry.comm, (int) color,
                                 ompi_comm_rank(across->entry.comm), comm, false);
    if (status != OMPI_SUCCESS || *comm == MPI_COMM_NULL)
        *comm = NULL;
    else
        *index = compat_comm_index(*comm);
    return status;
}

/* The communicator is busy with these operations of its own. */
static int levels_split(across_module_t *across, uint32_t leader)
{
    struct levels *levels = &across->levels;
    bool leads = leader == (uint32_t) ompi_comm_rank(across->entry.comm);
    int status = split(across, leader, &levels->node, &levels->node_index);
    if (status == OMPI_SUCCESS)
        status = split(across, leads ? 0 : (uint32_t) MPI_UNDEFINED, &levels->leaders,
                       &levels->leaders_index);
    return status;
}

int levels_make(across_module_t *across)
{
    struct multilane_commons commons;
    struct entry *entry = &across->entry;
    uint32_t ranks = (uint32_t) ompi_comm_size(entry->comm), mine = leader_of_mine(entry->comm);
    uint32_t *leaders = calloc(ranks, sizeof(*leaders));
    bool has_memory = levels_allocate(&across->levels, ranks) && leaders;
    /* There are no commons where a process is alone on its node. */
    bool shares = across_always || (node_services_find(&commons) && node_shares());
    int status;
    across->is_busy = true;
    bool agreed = all_agree(entry, hindrance(has_memory), &shares, false, &status);
    if (agreed)
        status =
            entry->below.coll_allgather(&mine, sizeof(mine), MPI_BYTE, leaders, sizeof(mine),
                                        MPI_BYTE, entry->comm, entry->below.coll_allgather_module);
    if (agreed && status == OMPI_SUCCESS && are_nodes(leaders, ranks)) {
        levels_order(&across->levels, leaders, ranks);
        across->levels.my_node = across->levels.node_of[ompi_comm_rank(entry->comm)];
        atomic_fetch_add_explicit(&levels_count, 1, memory_order_relaxed);
        status = levels_split(across, mine);
    } else if (agreed) {
        entry->without = MULTILANE_APART;
    }
    if (status != OMPI_SUCCESS || !across->levels.node)
        levels_free(across);
    across->is_busy = false;
    free(leaders);
    return status;
}

/* MPI_Finalize frees what communicators the program has left, in the order of their indices: these
 * may come before the one that they were made for. */
static void split_free(ompi_communicator_t *comm, uint32_t index)
{
    if (comm && ompi_comm_lookup(index) == comm)
        ompi_comm_free(&comm);
}

void levels_free(across_module_t *across)
{
    struct levels *levels = &across->levels;
    split_free(levels->leaders, levels->leaders_index);
    split_free(levels->node, levels->node_index);
    if (levels->nodes)
        atomic_fetch_sub_explicit(&levels_count, 1, memory_order_relaxed);
    free(levels->node_of);
    free(levels->place_of);
    free(levels->first);
    memset(levels, 0, sizeof(*levels));
}

int node_tell(const struct levels *levels, unsigned char *bytes, size_t length, int root)
{
    int status = OMPI_SUCCESS;
    for (size_t at = 0, now; at < length && status == OMPI_SUCCESS; at += now) {
        now = lesser(length - at, NODE_BYTES);
        status = CALL(levels->node, bcast, bytes + at, (compat_count) now, MPI_BYTE, root);
    }
    return status;
}

int node_tell_elements(const struct levels *levels, void *buffer, size_t count,
                       ompi_datatype_t *type)
{
    ptrdiff_t extent = type->super.ub - type->super.lb;
    size_t each = 1 + NODE_BYTES / (type->super.size + 1);
    int status = OMPI_SUCCESS;
    for (size_t at = 0, now; at < count && status == OMPI_SUCCESS; at += now) {
        now = lesser(count - at, each);
        status = CALL(levels->node, bcast, (char *) buffer + (ptrdiff_t) at * extent,
                      (compat_count) now, type, 0);
    }
    return status;
}
