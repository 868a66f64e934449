/* SPDX-License-Identifier: BSD-3-Clause */
/* A whole lane file: what lanes there are, and the cluster model if there is one in it. */
#ifndef TOOLS_LANE_LANE_INPUT_H
#define TOOLS_LANE_LANE_INPUT_H

#include "common/lane/lane_file.h"
#include "tools/model/cluster.h"

/* The same as lane_file_parse, with the section [cluster]: where file->has_cluster is set, *cluster
 * is what it says. */
bool lane_input_parse(const char *name, const char *text, size_t length, struct lane_file *file,
                      struct cluster_model *cluster, struct error_text *error);

/* Reads a file, or standard input for "-". */
bool lane_input_read(const char *name, struct lane_file *file, struct cluster_model *cluster,
                     struct error_text *error);

#endif
