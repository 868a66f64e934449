/* SPDX-License-Identifier: BSD-3-Clause */
/* What the messages of this job took, beside what the model expects. */
#ifndef MULTILANE_MEASURED_H
#define MULTILANE_MEASURED_H

#include "common/report/plan_table.h"
#include "plan/peer_class.h"

/* How the route was used, and what messages took of the size of which most were timed. */
struct plan_use measured_use(const struct plan_input *input, const struct peer_class *class,
                             const struct route *route);

#endif
