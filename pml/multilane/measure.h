/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of what include/multilane/measure.h offers. */
#ifndef MULTILANE_PML_MEASURE_H
#define MULTILANE_PML_MEASURE_H

/* Before the classes of peers go. */
void measure_fini(void);

#endif
