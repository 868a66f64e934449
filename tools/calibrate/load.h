/* SPDX-License-Identifier: BSD-3-Clause */
/* The latency under load, L(m, p): what a message of one pair takes while other pairs of the same
 * two nodes, or of the same node, use what carries it. */
#ifndef TOOLS_CALIBRATE_LOAD_H
#define TOOLS_CALIBRATE_LOAD_H

#include "common/lane/profile.h"
#include "session.h"
#include "tools/model/cluster.h"

/* Adds latencies among 4, 8, ... processes to a model that has the one between two: as many as this
 * job has pairs beside rank 0 and `peer`, each process on a processor of its own. */
void load_measure(struct session *session, int peer, enum profile_placement placement,
                  struct cluster_model *model);

#endif
