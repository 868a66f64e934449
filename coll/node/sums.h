/* SPDX-License-Identifier: BSD-3-Clause */
/* A long MPI_Allreduce across nodes, in pieces: while some are between the nodes, each node's
 * processes add up the next one, and get the sum of one before. Every leader adds up a part of each
 * piece: it gets that part from the other leaders, and gives them the sum. So each byte leaves a
 * node once to be added, and once as a sum. */
#ifndef COLL_NODE_SUMS_H
#define COLL_NODE_SUMS_H

#include "coll/node/levels.h"

/* Elements of a piece, the same in all processes; 0: pieces would gain nothing. */
size_t sums_piece(const struct levels *levels, size_t count, ompi_datatype_t *type);
/* By all processes, in pieces of `each` elements. MPI_IN_PLACE is only in leaders. */
int sums_allreduce(const struct levels *levels, const void *from, void *to, size_t count,
                   size_t each, ompi_datatype_t *type, ompi_op_t *op);

#endif
