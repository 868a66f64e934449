/* SPDX-License-Identifier: BSD-3-Clause */
/* What multilane-calibrate shows: tables and a drawing. */
#ifndef TOOLS_CALIBRATE_REPORT_H
#define TOOLS_CALIBRATE_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "measure.h"

/* One lane at one placement: what was measured and what was made of it. */
struct lane_result {
    struct model_lane lane;
    struct lane_samples samples;
    struct effective_quality quality[MODEL_PROTOCOLS];
    bool fitted;
    struct model_error why; /* not fitted: why not */
};

void report_lane(FILE *out, const struct lane_result *result,
                 const struct model_surroundings *around);
void report_pairs(FILE *out, const char *what, const struct measure_pair *pairs, uint32_t count);
void report_blocks(FILE *out, const struct measure_blocks *blocks);
void report_cluster(FILE *out, const char *lane, const struct cluster_model *model);

/* Draws points as measured, lines as fitted, and the plan. At most MODEL_LANES_MAX results. */
bool report_plot(const char *name, const struct lane_result *results, uint32_t count,
                 const struct model_surroundings *around, struct model_error *error);

#endif
