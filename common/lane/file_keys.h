/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of a lane file outside of its lanes. */
#ifndef COMMON_LANE_FILE_KEYS_H
#define COMMON_LANE_FILE_KEYS_H

#include "common/lane/lane_reader.h"

/* Keys of each section; the last one has no name. */
extern const struct key reader_top_keys[], reader_group_keys[], reader_copy_keys[],
    reader_profile_keys[], reader_no_keys[];

#endif
