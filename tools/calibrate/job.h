/* SPDX-License-Identifier: BSD-3-Clause */
/* The lanes of a whole job, for multilane-doctor --job. */
#ifndef TOOLS_CALIBRATE_JOB_H
#define TOOLS_CALIBRATE_JOB_H

#include "traffic.h"

/* Before MPI_Init. */
void job_lanes_prepare(void);

/* All ranks call it. False: a lane that both ends have leads nowhere or is far slower than others,
 * as rank 0 has printed; at the other ranks always true. */
bool job_lanes_test(const struct traffic *traffic);

#endif
