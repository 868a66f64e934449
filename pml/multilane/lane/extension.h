/* SPDX-License-Identifier: BSD-3-Clause */
/* What the BTLs of Multilane offer beyond Open MPI's interface. */
#ifndef MULTILANE_LANE_EXTENSION_H
#define MULTILANE_LANE_EXTENSION_H

#include "common/compat/btl.h"

#include "multilane/extension.h"

/* The extension of a BTL of ours; null for a stock BTL. */
const struct multilane_extension *lane_extension_of(const mca_btl_base_module_t *btl);
/* By the BTL's name, without a module: outside of jobs. Null also if the BTL is not loaded. */
const struct multilane_extension *lane_extension_named(const char *btl);

/* Do messages pass through connections of the kernel? Then what the start measures of one holds. */
bool btl_is_of_sockets(const mca_btl_base_module_t *btl);

#endif
