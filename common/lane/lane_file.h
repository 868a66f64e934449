/* SPDX-License-Identifier: BSD-3-Clause */
/* The file that describes lanes, written by people for multilane-plan or by multilane-calibrate as
 * a profile; multilane-plan's man page says what may stand in it. */
#ifndef COMMON_LANE_LANE_FILE_H
#define COMMON_LANE_LANE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/lane/fingerprint.h"
#include "common/model/cluster.h"
#include "common/model/plan.h"

#define LANE_FILE_GROUPS_MAX 16

/* A file above this is not one that people write. */
#define LANE_FILE_BYTES_MAX (1u << 20)

/* What a profile says of itself. */
#define LANE_FILE_SCHEMA 1

/* Bytes a second that stand for an infinite bandwidth: files know no infinity. */
#define LANE_FILE_BANDWIDTH_MOST 1e30

#define LANE_FILE_TEXT_CHARS FINGERPRINT_CHARS

struct lane_file_profile {
    uint32_t schema;
    char made[LANE_FILE_TEXT_CHARS];
    struct fingerprint machine;
};

struct lane_file_group {
    char name[48];
    bool measured; /* its section gave a bandwidth */
};

struct lane_file {
    struct model_lane lanes[MODEL_LANES_MAX];
    uint32_t lane_count;
    struct lane_file_group group_names[LANE_FILE_GROUPS_MAX]; /* id i + 1 has name i */
    uint32_t group_name_count;
    struct model_group groups[LANE_FILE_GROUPS_MAX]; /* the measured ones */
    uint32_t group_count;
    struct model_surroundings around; /* bias, copies, header, limits */
    uint32_t most_eager_lanes, most_rndv_lanes;
    bool has_cluster;
    struct cluster_model cluster;
    uint32_t cluster_processes;
    bool has_profile;
    struct lane_file_profile profile;
};

/* A file without a lane, with the model's defaults. */
void lane_file_init(struct lane_file *file);

/* Reads the text of a file. `name` stands in front of every complaint. `text` need not end in 0 and
 * is not changed. */
bool lane_file_parse(const char *name, const char *text, size_t length, struct lane_file *file,
                     struct model_error *error);

/* How complaints call a file given by this name. */
const char *lane_file_name(const char *name);

/* Reads a file, or standard input for "-". */
bool lane_file_read(const char *name, struct lane_file *file, struct model_error *error);

#endif
