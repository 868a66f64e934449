/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of this process that others may name, by message: what they name is looked up here,
 * and not believed. For BTLs without an adapter that does so. */
#ifndef MULTILANE_COMPAT_REGISTERED_H
#define MULTILANE_COMPAT_REGISTERED_H

#include <stdbool.h>
#include <stdint.h>

#include "common/compat/btl.h"

/* A registration as others know it. */
struct mca_btl_base_registration_handle_t {
    uint64_t key; /* of this registration alone: a slot is used again */
    uint32_t slot;
    uint32_t reserved;
};

void registered_init(void);
void registered_finish(void);

/* btl_register_mem and btl_deregister_mem. The key is at random, so that a process which was not
 * told cannot guess it; inside a node, where processes can write here in any case, it is a number,
 * which takes no system call. */
BTL_FUNCTION(register_mem, registered_add);
BTL_FUNCTION(register_mem, registered_add_inside);
BTL_FUNCTION(deregister_mem, registered_remove);

/* Whether others may have one of these kinds of access to all of these bytes by what they name. */
bool registered_allows(const mca_btl_base_registration_handle_t *named, uint64_t address,
                       uint64_t size, uint32_t access);

#endif
