/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads lane files. */
#ifndef COMMON_LANE_LANE_PARSE_H
#define COMMON_LANE_LANE_PARSE_H

#include <stddef.h>

#include "common/lane/lane_file.h"

/* A file above this is not one that people write. */
#define LANE_FILE_BYTES_MAX (1u << 20)

/* Reads the text of a file. `name` stands in front of every complaint. `text` need not end in 0 and
 * is not changed. The keys of the section [cluster] go to `cluster_key` with `cluster`; null: they
 * are passed over. */
bool lane_file_parse(const char *name, const char *text, size_t length, struct lane_file *file,
                     lane_file_cluster_key cluster_key, void *cluster, struct model_error *error);

#endif
