/* SPDX-License-Identifier: BSD-3-Clause */
/* The right of other processes of this user to read our memory and to take our file descriptors,
 * which a Linux with Yama leaves to named debuggers. */
#ifndef COMMON_LANE_READERS_H
#define COMMON_LANE_READERS_H

#include <stdbool.h>

/* A component that needs the right asks for it once, and gives it back once if the answer was true.
 * Each component has code of its own, and the process has one right: it lasts until the last
 * component has given it back. In MPI_Init and MPI_Finalize alone: the count is in the environment,
 * where all components of the process find it. */
bool readers_allow(void);
void readers_forbid(void);

#endif
