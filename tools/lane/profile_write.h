/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes profiles. */
#ifndef TOOLS_LANE_PROFILE_WRITE_H
#define TOOLS_LANE_PROFILE_WRITE_H

#include "common/lane/profile.h"

/* Writes it as a whole or not at all, making the folders that are not there. A section [cluster] is
 * not written: people write it. */
bool profile_write(const char *path, const struct lane_file *file, struct error_text *error);

/* Could it be written there? Makes the folders; what takes long asks this first. */
bool profile_can_write(const char *path, struct error_text *error);

#endif
