/* SPDX-License-Identifier: BSD-3-Clause */
/* coll/node: collective operations of processes that share the processors of a node. With trees of
 * messages each process runs several times in an operation, and where there are more processes than
 * processors each time is a change of processes. Here each one runs once: it leaves what it gives
 * in memory that all have mapped, and the last to arrive does the rest. Two processes that have a
 * processor each exchange short ones there, too: one line, in place of a message (`looks`).
 *
 * The memory is a part of what btl/shm has mapped for the job (struct multilane_commons). A
 * communicator gets its area after some blocking operations, which go by the functions below, as
 * do all operations where there is no area, and those that are too large for it. All processes
 * choose alike: by the communicator, by sizes that MPI wants to be equal in all, and by what they
 * have told each other when they got the area. */
#ifndef COLL_NODE_NODE_H
#define COLL_NODE_NODE_H

#include "common/compat/coll.h"
#include "common/compat/pml.h"

#include "coll/node/entry.h"
#include "coll/node/turn.h"
#include "multilane/extension.h"
#include "multilane/service.h"

/* Operations before an area, or the communicators of levels.h, are made: many communicators have
 * few. */
#define NODE_OPERATIONS_BELOW 4u

static inline size_t lesser(size_t a, size_t b)
{
    return a < b ? a : b;
}

typedef struct node_module {
    struct entry entry;
    uint32_t me;        /* its rank */
    struct turns turns; /* area null: none */
    uint32_t *parts;    /* of the commons, of each rank */
    uint64_t bytes_max; /* of an operation that goes by the area */
    /* Whose operations these are parts of, where the communicator is that of a node (levels.h). */
    ompi_communicator_t *whole;
} node_module_t;
OBJ_CLASS_DECLARATION(node_module_t);

/* --- component.c --- */

extern __attribute__((visibility("hidden"))) int node_bytes_max;
extern __attribute__((visibility("hidden"))) int node_looking_ranks;
/* That went by an area, for people. */
extern __attribute__((visibility("hidden"))) _Atomic uint64_t node_operations;

/* --- area.c --- */

/* With the communicator's other processes, at the same operation of each. Afterwards there may be
 * none: they go on below. */
int area_obtain(node_module_t *node);
void area_leave(node_module_t *node);

/* --- waits.c --- */

/* No operation goes by the area any more: `status` for this process, and an error for the others.
 */
int node_fail(node_module_t *node, int status);
/* What operations by the area end with since then; else OMPI_SUCCESS. */
int node_failure(const node_module_t *node);

/* What the job's memory and the PML offer; false: they are not there. */
bool node_services_find(struct multilane_commons *commons);
/* Does this process share its processor? */
bool node_shares(void);
/* Are messages recorded? Then operations go by them. */
bool node_records(void);
/* Where the PML has operations counted. Null: it has not. */
struct multilane_calls *node_calls(void);

/* Wait until all have arrived at the turn; until the result of the turn under way is there. `tag`
 * is Open MPI's for the operation. An error: no turn will end any more. */
int node_wait_others(node_module_t *node, uint32_t turn, int tag);
int node_wait_result(node_module_t *node, int tag);
/* Wakes those that sleep, after what they wait for has come. */
void node_wake(const node_module_t *node);

/* --- calls.c: do all call the same operation? --- */

/* The same number for the same root and length. */
uint32_t node_call_word(enum multilane_call call, int root, size_t bytes);
/* After all have arrived; or, of the process that has written the result, after that. Says what
 * differs. */
int node_all_call_this(const node_module_t *node);
int node_teller_calls_this(const node_module_t *node);
/* Says that they do; an error. */
int node_calls_differ(const node_module_t *node);

/* --- operations.c --- */

extern const mca_coll_base_comm_coll_t node_functions;

/* --- module.c --- */

mca_coll_base_module_t *node_module_new(ompi_communicator_t *comm);

#endif
