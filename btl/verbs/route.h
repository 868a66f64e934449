/* SPDX-License-Identifier: BSD-3-Clause */
/* The interfaces of RoCE ports, and the kernel's routes between them. */
#ifndef MULTILANE_VERBS_ROUTE_H
#define MULTILANE_VERBS_ROUTE_H

#include "btl/verbs/choice.h"

/* The netmask bits of the interface's address with that GID; 0: no interface has it. */
uint32_t verbs_route_netmask_bits(const uint8_t *gid);

/* Whether packets from this port's address to that one leave by this port's interface. */
bool verbs_route_leaves_by(const struct choice_address *mine, const struct choice_address *theirs);

#endif
