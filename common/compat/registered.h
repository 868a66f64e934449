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

/* `access`: MCA_BTL_REG_FLAG_*. Null: no memory. */
mca_btl_base_registration_handle_t *registered_add(void *base, size_t size, uint32_t access,
                                                   uint64_t key);
/* As btl_deregister_mem. */
int registered_remove(mca_btl_base_module_t *btl, mca_btl_base_registration_handle_t *handle);

/* Whether others may have one of these kinds of access to all of these bytes by what they name. */
bool registered_allows(const mca_btl_base_registration_handle_t *named, uint64_t address,
                       uint64_t size, uint32_t access);

#endif
