/* SPDX-License-Identifier: BSD-3-Clause */
/* What device memory costs: measured at the first buffer on a device, once a node for each device
 * and pair of devices, and shared by the processes of the node. */
#ifndef MULTILANE_DEVICE_COSTS_H
#define MULTILANE_DEVICE_COSTS_H

#include "common/memory/memory.h"
#include "common/model/lane.h"
#include "common/model/number.h"
#include "common/model/protocol.h"
#include "common/compat/pml.h"

/* In the node's first process: the place where measurements are shared. Call it once, before
 * processes read what others have published. */
void device_costs_publish(void);

/* A buffer of this process lies on a device. The first time it measures, for 5 ms at most, or waits
 * for a process of the node that does. */
void device_costs_use(const struct memory *memory);

/* A device of another process's matters: from here on what the node has measured is known. */
void device_costs_look(void);

/* Progress calls it: measures again with another process of the device, when both are in MPI. */
int device_costs_progress(void);

/* A number that grows when more is known. Any thread may ask, without a lock. */
uint32_t device_costs_changes(void);

/* A copy between the host and a device, the slower direction and device. */
struct cost_line device_costs_copy(void);
/* Puts what was measured into the lane of device memory, to another process or this one. What was
 * not costs so much that nothing takes it by itself. */
void device_costs_apply(struct model_lane *lane, bool is_self);

/* The same lane between host and device: a copy there is what its gets and puts are, unless the
 * user says something else of it. */
void device_costs_mix(struct model_lane *lane);

/* For reports, one line. */
struct words device_costs_text(void);

void device_costs_fini(void);

#endif
