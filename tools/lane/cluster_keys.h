/* SPDX-License-Identifier: BSD-3-Clause */
/* The section [cluster] of a lane file: the cluster model as people write it. */
#ifndef TOOLS_LANE_CLUSTER_KEYS_H
#define TOOLS_LANE_CLUSTER_KEYS_H

#include "tools/model/cluster.h"

/* Reads one key into a struct cluster_model. False: *why says what is wrong with it. */
bool cluster_key_read(void *cluster_model, const char *key, const char *value,
                      struct model_error *why);

#endif
