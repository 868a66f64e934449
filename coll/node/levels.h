/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators over several nodes, of which some have several processes: what a node's processes
 * exchange goes through the node, and one of each node, its leader, exchanges with the other
 * leaders. So each byte comes to a node once, and by all lanes of its leader.
 *
 * A communicator gets two others for that, after some blocking operations: of each node's
 * processes, and of the leaders. What happens in them is theirs: coll/node's areas, or Open MPI's
 * functions. All processes choose alike, as in node.h. */
#ifndef COLL_NODE_LEVELS_H
#define COLL_NODE_LEVELS_H

#include "coll/node/entry.h"
#include "common/compat/pml.h"

/* The function `name` of a communicator, with what comes before the communicator. */
#define CALL(comm, name, ...)                                                                      \
    (comm)->c_coll->coll_##name(__VA_ARGS__, (comm), (comm)->c_coll->coll_##name##_module)

/* Where the processes of a communicator are. Their places: by nodes, and by rank within a node;
 * nodes come in the order of their leaders, which have the lowest ranks. */
struct levels {
    ompi_communicator_t *node;    /* null: there are none */
    ompi_communicator_t *leaders; /* null in a process that is none */
    uint32_t node_index;          /* of these two */
    uint32_t leaders_index;
    uint32_t nodes;
    uint32_t my_node;
    uint32_t *node_of;  /* of each rank */
    uint32_t *place_of; /* of each rank */
    uint32_t *first;    /* place of each node's first process, and behind the last */
    bool in_order;      /* places are ranks */
    bool is_even;       /* all nodes have as many processes */
};

typedef struct across_module {
    struct entry entry;
    bool is_busy; /* making the levels, by operations of this communicator */
    struct levels levels;
} across_module_t;
OBJ_CLASS_DECLARATION(across_module_t);

/* --- component.c --- */

/* By nodes also where each process has a processor of its own. */
extern __attribute__((visibility("hidden"))) bool across_always;
/* That went by nodes, for people. */
extern __attribute__((visibility("hidden"))) _Atomic uint64_t across_operations;

/* --- levels.c --- */

/* Is that process of the communicator on this node? */
bool node_has(ompi_communicator_t *comm, int rank);

/* With the communicator's other processes, at the same operation of each. Afterwards there may be
 * none: they go on below. */
int levels_make(across_module_t *across);
void levels_free(across_module_t *across);

/* To all processes of this node. */
int node_tell(const struct levels *levels, unsigned char *bytes, size_t length, int root);
/* The same of elements of which all have the same type, from the leader. */
int node_tell_elements(const struct levels *levels, void *buffer, size_t count,
                       ompi_datatype_t *type);

/* --- across.c --- */

extern const mca_coll_base_comm_coll_t across_functions;

#endif
