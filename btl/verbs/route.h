/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's routes between ports of RoCE v2. */
#ifndef MULTILANE_VERBS_ROUTE_H
#define MULTILANE_VERBS_ROUTE_H

#include "btl/verbs/choice.h"

/* Whether packets from this port's address to that one leave by this port's interface. */
bool verbs_route_leaves_by(const struct choice_address *mine, const struct choice_address *theirs);

#endif
