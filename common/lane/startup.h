/* SPDX-License-Identifier: BSD-3-Clause */
/* What the first process of a node measures when a job starts, where no profile is: what a message
 * through memory that two cores share costs, and what the kernel's copying does. Machines differ so
 * much in each, by a factor of three, that no constant could choose between them. */
#ifndef COMMON_LANE_STARTUP_H
#define COMMON_LANE_STARTUP_H

#include <stdbool.h>

#include "common/model/lane.h"

/* The sizes that are measured. */
enum { STARTUP_4K, STARTUP_16K, STARTUP_64K, STARTUP_256K, STARTUP_1M, STARTUP_SIZES };
#define STARTUP_BYTES(size) ((size_t) 4096 << (2 * (size)))

/* A change from one process to another on a processor that they share: machines need 1 to 2 us,
 * among which no border moves far. */
#define STARTUP_CHANGE_S 1.5e-6

/* All zero but for change_s: not measured. The history of a node has them in this order. */
struct startup_costs {
    double empty_s;                 /* one way of an empty message through shared memory, */
    double change_s;                /* STARTUP_CHANGE_S where processes share processors; else 0 */
    double both_s;                  /* of STARTUP_1M, half of it by each core at once */
    double ring_s[STARTUP_SIZES];   /* as empty_s, of one that both ends copy, in 16 KiB each */
    double kernel_s[STARTUP_SIZES]; /* the kernel's copy from the other core */
};

/* Can costs that another process has published be true? */
bool startup_check(const struct startup_costs *costs);

/* Puts what was measured into a lane inside this node: into sends, if it is a ring of ours in
 * shared memory, and into gets and puts, if the kernel does them. Where processes share a
 * processor, what waiting for each other takes. */
void startup_apply(const struct startup_costs *costs, struct model_lane *lane);

#endif
