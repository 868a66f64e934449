/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices that the CUDA driver does not know: those of HIP and of Level Zero. */
#ifndef COMMON_MEMORY_OTHER_DEVICES_H
#define COMMON_MEMORY_OTHER_DEVICES_H

#include <stdbool.h>

/* Finds out whether this process may come to have memory of theirs. It may if it has HIP already,
 * or if the node has AMD's devices; and if it has Level Zero, where there is anything that renders:
 * hwloc loads that library into every process. Level Zero that is loaded later is not foreseen.
 * Before any thread asks. */
void other_devices_find(void);
extern __attribute__((visibility("hidden"))) bool other_devices_possible;

/* Names the library of theirs that this process has; null: none. */
const char *other_devices_library(void);

#endif
