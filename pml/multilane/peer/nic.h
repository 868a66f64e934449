/* SPDX-License-Identifier: BSD-3-Clause */
/* The device behind a BTL module: its name, its card, how far it is. */
#ifndef MULTILANE_NIC_H
#define MULTILANE_NIC_H

#include "common/compat/pml.h"

struct nic {
    struct nic *next;
    const mca_btl_base_module_t *btl;
    char name[40]; /* empty: it has none, or does not tell */
    uint32_t card;
    uint32_t distance; /* from this process; 0 is near */
};

/* The module's device; `name` is what its BTL says itself, or empty. Looked up once a module. With
 * the component's lock held. */
const struct nic *nic_of(const mca_btl_base_module_t *btl, const char *name);

void nics_fini(void);

#endif
