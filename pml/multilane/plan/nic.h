/* SPDX-License-Identifier: BSD-3-Clause */
/* The network device behind a BTL module: name, card, distance. */
#ifndef MULTILANE_NIC_H
#define MULTILANE_NIC_H

#include "common/compat/pml.h"

struct nic {
    struct nic *next;
    const mca_btl_base_module_t *btl;
    char name[40]; /* empty: none, or unknown */
    uint32_t card;
    uint32_t distance;   /* from this process: 0 is near, 1 far */
    bool is_on_bus;      /* a device of its own, not a virtual one */
    double bus_bytes_s;  /* what its bus carries; 0: not known */
    double link_bytes_s; /* and the link of a network device, by the kernel */
};

/* The module's device, looked up once per module. `name`: what the BTL itself calls it, or
 * empty. With the component's lock held. */
const struct nic *nic_of(const mca_btl_base_module_t *btl, const char *name);

void nics_fini(void);

#endif
