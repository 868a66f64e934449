/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts for people: MPI_T variables named pml_multilane_*, and the sums that they show. */
#ifndef MULTILANE_COUNTERS_H
#define MULTILANE_COUNTERS_H

#include "common/compat/pml.h"

/* Registers what is known without a job: counts of each protocol, of unexpected and early messages.
 */
int counters_register(const mca_base_component_t *component);

/* Registers counts of each BTL that the job opened. */
int counters_register_lanes(const mca_base_component_t *component);

#endif
