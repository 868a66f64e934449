/* SPDX-License-Identifier: BSD-3-Clause */
/* What the modules of both kinds begin with: those on a node (node.h), and across nodes (levels.h).
 * And which way operations went, for the explain report. */
#ifndef COLL_NODE_ENTRY_H
#define COLL_NODE_ENTRY_H

#include "common/compat/coll.h"
#include "common/compat/tsan.h"
#include "multilane/service.h"

struct entry {
    mca_coll_base_module_t super;
    mca_coll_base_comm_coll_t below; /* the communicator's functions before ours */
    ompi_communicator_t *comm;
    const mca_coll_base_comm_coll_t *functions; /* its own */
    uint32_t operations;                        /* so far, up to NODE_OPERATIONS_BELOW + 1 */
    uint32_t turn;                              /* operations so far, where they are noted */
    enum multilane_way usual;                   /* of operations that nothing hinders */
    enum multilane_way without;                 /* why there is no area, or there are no levels */
    enum multilane_way way; /* of the operation under way: written where it is not the usual one */
};

/* What an operation does that goes by neither. */
#define BELOW(module, status, name, ...)                                                           \
    ((status) != OMPI_SUCCESS                                                                      \
         ? (status)                                                                                \
         : (module)->entry.below.coll_##name(__VA_ARGS__, (module)->entry.comm,                    \
                                             (module)->entry.below.coll_##name##_module))

/* Does something hinder an operation that would not go below otherwise? */
static inline bool hinders(struct entry *entry, bool it_does, enum multilane_way why)
{
    if (OPAL_UNLIKELY(it_does))
        entry->way = why;
    return it_does;
}

/* --- agree.c --- */

/* Of what a node's memory and its leaders have to do without: what lies on a device cannot be read
 * here. MULTILANE_BY_NODE: nothing. */
enum multilane_way node_hindrance(bool has_memory);

/* With the communicator's other processes: may they all, which have MULTILANE_BY_NODE for `why`
 * then, and does one share its processor, or may they also where none does? `without` says why not.
 * *shares: does this process share its processor; afterwards, does one of them. An error in
 * *status. */
bool all_agree(struct entry *entry, enum multilane_way why, bool *shares, bool unshared_too,
               int *status);

/* --- count.c --- */

/* From now on; null: nothing wants to know. */
void count_into(struct multilane_calls *calls);
/* coll/node is not on a communicator. */
void count_left(enum multilane_way why);
/* What a communicator gets, whose module has these functions. */
const mca_coll_base_comm_coll_t *counted(const mca_coll_base_comm_coll_t *functions);

#endif
