/* SPDX-License-Identifier: BSD-3-Clause */
/* The last calls of this process, to be read when it has died (pml_multilane_blackbox); and all its
 * messages in a file (pml_multilane_record), for multilane-plan --replay. */
#ifndef MULTILANE_BLACKBOX_H
#define MULTILANE_BLACKBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "common/compat/pml.h"
#include "multilane/service.h"

bool recording_is_on(void);

/* After the page begins and before it ends, with the module whose functions Open MPI calls. */
void blackbox_begin(mca_pml_base_module_t *module);
void blackbox_end(mca_pml_base_module_t *module);

/* `note` of struct multilane_calls. */
void blackbox_call(ompi_communicator_t *comm, enum multilane_call call, int root, uint64_t bytes,
                   uint32_t turn);

#endif
