/* SPDX-License-Identifier: BSD-3-Clause */
/* The PML module. */
#ifndef MULTILANE_MODULE_H
#define MULTILANE_MODULE_H

#include "common/compat/pml.h"

/* What Open MPI gets of us, once the lanes that it allows are known. */
mca_pml_base_module_t *module_of_job(void);
void module_fini(void);

#endif
