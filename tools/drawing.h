/* SPDX-License-Identifier: BSD-3-Clause */
/* Drawings (SVG) of plans: time over message size, both logarithmic, every protocol's line and what
 * the plan chooses of them, and where it switches. */
#ifndef TOOLS_DRAWING_H
#define TOOLS_DRAWING_H

#include "common/model/plan.h"
#include "tools/lane/lane_of_times.h"

/* One plan; below it another one. */
struct drawing_panel {
    char title[160];
    const struct plan *plan;        /* null: there is none, only what was measured */
    const struct plan_input *input; /* what times are predicted with */
    const struct lane_times *times; /* as dots; null: nothing was measured */
};

/* False: the file `name` cannot be written, and *error says why. */
bool drawing_write(const char *name, const struct drawing_panel *panels, uint32_t count,
                   struct model_error *error);

#endif
