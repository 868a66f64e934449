/* SPDX-License-Identifier: BSD-3-Clause */
/* What the PML offers other components of Multilane, and how they find it. */
#ifndef MULTILANE_SERVICE_H
#define MULTILANE_SERVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ompi_communicator_t;

/* The PML exports one constant of this type; dlsym(RTLD_DEFAULT, symbol) finds it, as with the
 * extensions of BTLs (multilane/extension.h). */
#define MULTILANE_SERVICE_VERSION 1
#define MULTILANE_SERVICE_NAME    mca_pml_multilane_service_v1
#define MULTILANE_SERVICE_SYMBOL  "mca_pml_multilane_service_v1"

/* A wait for a word of shared memory, in a collective operation. */
struct multilane_wait {
    const _Atomic uint32_t *word;
    uint32_t seen; /* over when the word differs */
    struct ompi_communicator_t *comm;
    int tag; /* Open MPI's for the operation */
    /* Called now and then in a long wait. OMPI_SUCCESS: it goes on. */
    int (*look)(const void *with);
    /* The rank that has not come yet; -1: it is not known. By the thread that waits. */
    int (*missing)(const void *with);
    const void *with;
};

struct multilane_service {
    uint32_t version;
    uint32_t struct_bytes;
    /* Does this process share its processor with others of the job? */
    bool (*shares)(void);
    /* Waits, and makes progress meanwhile. Who changes the word wakes this process (struct
     * multilane_commons). OMPI_SUCCESS: it has changed; else what the operation ends with. */
    int (*wait)(const struct multilane_wait *wait);
};

#endif
