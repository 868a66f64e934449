/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports of this process: counters, the explain report. */
#ifndef MULTILANE_REPORT_H
#define MULTILANE_REPORT_H

#include "common/compat/pml.h"
#include "multilane/service.h"

/* shown.c: MPI_T variables named pml_multilane_*. */
/* Registers the variables that need no job: those of each protocol, of unexpected and early
 * messages. */
int counters_register(const mca_base_component_t *component);
/* Registers the variables of each BTL that the job has opened. */
int counters_register_lanes(const mca_base_component_t *component);

/* shown.c: the lanes to a rank, for Open MPI's ompi_display_comm (5.0 and later); the caller
 * frees both parts. Null: no lane, or no memory. */
mca_pml_transports_t *transports_of_rank(ompi_communicator_t *comm, int rank);

/* explain.c: how this process's collective operations went, as coll/node counts it. Empty, as a job
 * begins. */
struct multilane_calls *collectives_begin(void);

/* explain.c: writes the report of the plans and their use, if pml_multilane_explain asks for it.
 * Call before classes_fini. */
void explain_write(void);

#endif
