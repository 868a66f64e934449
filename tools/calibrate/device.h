/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures device memory for multilane-calibrate --device. */
#ifndef TOOLS_CALIBRATE_DEVICE_H
#define TOOLS_CALIBRATE_DEVICE_H

#include <stdbool.h>

#include "common/lane/lane_file.h"
#include "common/memory/device_measure.h"

/* What rank 0 found; the slowest of its pairs counts. */
struct device_result {
    char
        name[LANE_FILE_TEXT_CHARS]; /* of its device; "": nothing was measured, and `why` says it */
    char why[200];
    struct device_costs costs;
    struct device_pair pair; /* get.s_byte 0: with no other process */
    /* The same copies while the other process uses its device between them, as processes do that
     * exchange messages. Never faster. */
    struct model_copy in_turns;
};

/* All ranks call it. Each takes a device, by turns within its node; rank 0 measures its own, and
 * memory of each other rank of its node. */
void device_calibrate(struct device_result *result);

/* Prints it, and puts it into the profile. */
void device_report(const struct device_result *result, struct lane_file *profile);

#endif
