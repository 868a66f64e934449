/* SPDX-License-Identifier: BSD-3-Clause */
/* The middle of some figures, which are sorted for it. */
#ifndef BENCH_MEDIAN_H
#define BENCH_MEDIAN_H

#include <stdlib.h>

static inline int double_compare(const void *left, const void *right)
{
    double a = *(const double *) left, b = *(const double *) right;

    return (a > b) - (a < b);
}

static inline double median(double *values, int count)
{
    qsort(values, (size_t) count, sizeof *values, double_compare);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

#endif
