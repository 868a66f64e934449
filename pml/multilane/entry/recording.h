/* SPDX-License-Identifier: BSD-3-Clause */
/* All messages of this process in a file (pml_multilane_record), for multilane-plan --replay. Only
 * jobs that are recorded call any of this, through the functions of entry/blackbox.c and its own.
 */
#ifndef MULTILANE_RECORDING_H
#define MULTILANE_RECORDING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/compat/pml.h"

#include "multilane/record.h"

/* While there is a page, with the module whose functions Open MPI calls. */
void recording_begin(mca_pml_base_module_t *module);
void recording_end(mca_pml_base_module_t *module);

bool recording_is_on(void);

/* A call begins a message or a receive; returns the number of this event. */
uint32_t recording_call(bool sends, const ompi_communicator_t *comm, int rank, int tag,
                        uint64_t bytes);
/* The call returns; the request, if not null, is done later: when the function is called that frees
 * it, or, of a persistent one, when a call finds it inactive; */
void recording_goes_on(uint32_t number, ompi_request_t *request);
void recording_request_done(ompi_request_t *request);
/* or all is done. `status`: of a receive. */
void recording_done(uint32_t number, const ompi_communicator_t *comm,
                    const ompi_status_public_t *status);

#endif
