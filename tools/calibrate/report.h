/* SPDX-License-Identifier: BSD-3-Clause */
/* What multilane-calibrate prints of its measurements. */
#ifndef TOOLS_CALIBRATE_REPORT_H
#define TOOLS_CALIBRATE_REPORT_H

#include <stdio.h>

#include "tools/lane/lane_of_times.h"

/* Of one lane. */
struct lane_result {
    struct model_lane lane; /* as measured, if `good`; else as it was before */
    bool good;
    struct model_error why; /* it is not */
    struct lane_times times;
};

void report_lane(FILE *out, const struct lane_result *result,
                 const struct model_surroundings *around);

#endif
