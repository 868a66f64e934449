/* SPDX-License-Identifier: BSD-3-Clause */
/* What a file that describes lanes says: written by people for multilane-plan, or by
 * multilane-calibrate as a profile. multilane-plan's man page lists its sections and keys. */
#ifndef COMMON_LANE_LANE_FILE_H
#define COMMON_LANE_LANE_FILE_H

#include <stdbool.h>

#include "common/lane/fingerprint.h"
#include "common/model/plan.h"

#define LANE_FILE_GROUPS_MAX 16

/* What a profile says of itself. */
#define LANE_FILE_SCHEMA 3

/* Bytes a second that stand for an infinite bandwidth: files know no infinity. */
#define LANE_FILE_BANDWIDTH_MOST 1e30

#define LANE_FILE_TEXT_CHARS FINGERPRINT_CHARS

struct lane_file_profile {
    uint32_t schema;
    char made[LANE_FILE_TEXT_CHARS];
    struct fingerprint machine;
};

struct lane_file {
    struct model_lane lanes[MODEL_LANES_MAX];
    uint32_t lane_count;
    char group_names[LANE_FILE_GROUPS_MAX][48];
    struct model_group groups[LANE_FILE_GROUPS_MAX]; /* of these names */
    uint32_t group_count;
    struct model_surroundings around; /* bias, copies, header, limits */
    uint32_t most_eager_lanes, most_rndv_lanes;
    bool has_cluster; /* there is a section [cluster], which only the tools read */
    bool has_profile;
    struct lane_file_profile profile;
};

/* Reads one key of the section [cluster]. False: *why says what is wrong with it. */
typedef bool (*lane_file_cluster_key)(void *cluster, const char *key, const char *value,
                                      struct error_text *why);

/* A file without a lane, with the model's defaults. */
void lane_file_init(struct lane_file *file);

/* The lane of that name; null: there is none. */
const struct model_lane *lane_file_find(const struct lane_file *file, const char *name);

/* The group of that number; it may be one more than there are, of that name. */
struct model_group *lane_file_group(struct lane_file *file, uint32_t number, const char *name);

/* A file above this is not one that people write. */
#define LANE_FILE_BYTES_MAX (1u << 20)

/* lane_parse.c: reads the text of a file. `name` stands in front of every complaint. `text` need
 * not end in 0 and is not changed. The keys of the section [cluster] go to `cluster_key` with
 * `cluster`; null: they are passed over. */
bool lane_file_parse(const char *name, const char *text, size_t length, struct lane_file *file,
                     lane_file_cluster_key cluster_key, void *cluster, struct error_text *error);

#endif
