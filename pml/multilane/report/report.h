/* SPDX-License-Identifier: BSD-3-Clause */
/* What people and programs see of this process: counts, the explain report, what calibration asks.
 */
#ifndef MULTILANE_REPORT_H
#define MULTILANE_REPORT_H

#include "common/compat/pml.h"

/* counters.c: MPI_T variables named pml_multilane_*, and the sums that they show. */
/* Registers what is known without a job: counts of each protocol, of unexpected and early messages.
 */
int counters_register(const mca_base_component_t *component);
/* Registers counts of each BTL that the job opened. */
int counters_register_lanes(const mca_base_component_t *component);

/* explain.c: pml_multilane_explain, the plans of this process and how they were used. Writes the
 * report where the parameters ask for one. Called while the classes are still there. */
void explain_write(void);

/* calibrate_hook.c: the end of what include/multilane/measure.h offers, before the classes of peers
 * go. */
void calibrate_hook_fini(void);

#endif
