/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of a lane file, section by section. */
#ifndef COMMON_LANE_LANE_KEYS_H
#define COMMON_LANE_LANE_KEYS_H

#include "common/lane/lane_reader.h"

/* Those of a lane alone, and of the other sections; the last one of each has no name. */
extern const struct key reader_lane_keys[];
extern const struct key reader_top_keys[], reader_group_keys[], reader_copy_keys[],
    reader_profile_keys[], reader_no_keys[];

/* Attributes of a lane or a range, of all ways or one: too many names for a table. */
bool reader_is_attribute(const char *name);
bool reader_read_attribute(struct reader *reader, const char *value, const struct key *key);

/* The group of this name, which is made if it is new. */
bool reader_find_group(struct reader *reader, const char *name, uint32_t *index);

#endif
