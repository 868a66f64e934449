/* SPDX-License-Identifier: BSD-3-Clause */
/* What messages inside this node cost: measured by the first process of the job on the node, and
 * read by the others. */
#ifndef MULTILANE_NODE_COSTS_H
#define MULTILANE_NODE_COSTS_H

#include "common/compat/pml.h"
#include "common/lane/startup.h"

/* In the node's first process: measures, if there is no profile, and publishes. Call it once,
 * before processes read what others have published. */
void node_costs_publish(void);

/* Tells which processes there are, by which the first one of this node is found. */
void node_costs_meet(ompi_proc_t *const *procs, size_t count);

/* A record of that name that the node's first process alone publishes. False: it has not, or it is
 * not known yet which that is. */
int node_record_send(const char *name, const void *record, size_t bytes);
bool node_record_read(const char *name, void *record, size_t bytes);

/* As the first process has measured them; all zero but for change_s: it has not. */
const struct startup_costs *node_costs(void);

void node_costs_fini(void);

#endif
