/* SPDX-License-Identifier: BSD-3-Clause */
/* Drawings (SVG) of times over message sizes, both logarithmic. */
#ifndef TOOLS_DRAWING_H
#define TOOLS_DRAWING_H

#include <stdio.h>

#include "common/model/plan.h"

/* One area for curves, with axes. */
struct drawing {
    FILE *out;
    double left, top, width, height; /* of the area of times */
    double foot;                     /* how far down lines at one size go */
    double x_max;                    /* log2 of the largest size; the smallest is 1 */
    double y_min, y_max;             /* log10 of seconds; see drawing_scale */
};

/* Chosen so that people who see fewer colours tell them apart (Okabe and Ito's palette). */
extern const char *const drawing_colours[MODEL_PROTOCOLS];

/* The whole file: what is drawn stands between the two. */
void drawing_begin(FILE *out, int width, double height);
void drawing_end(FILE *out);

/* From the decade below the least time to that above the most; most = 0: there is none. */
void drawing_scale(struct drawing *drawing, double least_s, double most_s);

double drawing_x(const struct drawing *drawing, uint64_t bytes);
double drawing_y(const struct drawing *drawing, double seconds);

void drawing_axes(const struct drawing *drawing);

/* So many points make a curve; the size of each. */
#define DRAWING_POINTS 240
uint64_t drawing_size(const struct drawing *drawing, int point);

/* A curve of what `time_at` says; a gap where that is not above 0. False: all of it is a gap. */
typedef double (*drawing_time)(const void *context, int protocol, uint64_t bytes);
bool drawing_curve(const struct drawing *drawing, drawing_time time_at, const void *context,
                   int protocol, const char *style);

/* A line with the curve's style beside the area, and what it is. */
void drawing_legend(const struct drawing *drawing, int row, const char *name, const char *style);

/* Where the plan goes over to another entry. */
void drawing_switches(const struct drawing *drawing, const struct plan *plan);

/* A broad curve of what the plan chooses (protocol below 0), behind one of each protocol. */
void drawing_curves(const struct drawing *drawing, drawing_time time_at, const void *context);

#endif
