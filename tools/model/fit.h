/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines through measured times. */
#ifndef TOOLS_MODEL_FIT_H
#define TOOLS_MODEL_FIT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/cost.h"
#include "common/model/error.h"

/* One measured time for one size. */
struct sample {
    uint64_t bytes;
    double seconds;
};

/* Sorts the values. Of none it is not a number. */
double median_of(double *values, uint32_t count);

/* The sums of the normal equations of min sum weight ((t - c - m s) / t)^2. */
struct line_sums {
    double w, ws, wss, wt, wst, wtt;
};
void line_sums_add(struct line_sums *sums, const struct sample *sample, double weight);

/* The best line with neither part below 0: one that would be is 0, and the other the best alone. */
struct cost_line line_of_sums(const struct line_sums *sums);

/* Takes out the samples that took more than SAMPLES_STEADY times the fastest of their size, and
 * returns how many are left. What disturbs a measurement only ever adds time: another process, a
 * processor that is moved. Where it lasts, half the samples can be of one kind and half of the
 * other, and no line is near both. */
#define SAMPLES_STEADY 1.5
uint32_t samples_steady(struct sample *samples, uint32_t count);

/* Fits fixed + bytes * growth to the samples by least squares in which a sample counts less the
 * farther it lies off, relative to its time. Neither part may be negative; one that would be
 * becomes 0. Refused, with a sentence: fewer than 2 sizes, a time that is not positive, a median
 * residual, relative to the measured times, above `most_residual` (0.1 is a good bound). */
bool line_fit(const struct sample *samples, uint32_t count, double most_residual,
              struct cost_line *line, struct model_error *error);

/* The median of the samples of each size, sizes growing; returns how many sizes. `out` has room for
 * all samples. */
uint32_t sample_medians(const struct sample *samples, uint32_t count, struct sample *out);

#endif
