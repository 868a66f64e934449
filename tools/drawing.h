/* SPDX-License-Identifier: BSD-3-Clause */
/* Drawings (SVG) of plans: time over message size, both logarithmic, every protocol's line and what
 * the plan chooses of them, and where it switches. */
#ifndef TOOLS_DRAWING_H
#define TOOLS_DRAWING_H

#include "common/model/plan.h"
#include "tools/model/effective.h"

/* One plan; below it another one. */
struct drawing_panel {
    char title[160];
    const struct plan *plan;        /* null: there is none, only what was measured */
    const struct plan_input *input; /* what times are predicted with */
    /* One a protocol, as dots; null: nothing was measured. */
    const struct effective_curve *curves;
};

/* False: the file `name` cannot be written, and *error says why. */
bool drawing_write(const char *name, const struct drawing_panel *panels, uint32_t count,
                   struct model_error *error);

#endif
