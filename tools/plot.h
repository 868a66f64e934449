/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans as numbers to plot: a row a size, with what the plan and each protocol take, in columns
 * between tabs, as gnuplot and spreadsheets read them. */
#ifndef TOOLS_PLOT_H
#define TOOLS_PLOT_H

#include "common/model/plan.h"
#include "tools/lane/lane_of_times.h"

/* One plan; behind it, after two empty lines, another one. */
struct plot {
    char title[160];
    const struct plan *plan;        /* null: there is none, only what was measured */
    const struct plan_input *input; /* what times are predicted with */
    const struct lane_times *times; /* null: nothing was measured */
};

/* False: the file `name` cannot be written, and *error says why. */
bool plot_write(const char *name, const struct plot *plots, uint32_t count,
                struct model_error *error);

#endif
