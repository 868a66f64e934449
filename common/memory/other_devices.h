/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices that the CUDA driver does not know: those of HIP and of Level Zero. */
#ifndef COMMON_MEMORY_OTHER_DEVICES_H
#define COMMON_MEMORY_OTHER_DEVICES_H

#include <stdbool.h>

/* Finds out whether this process may come to have memory of theirs: it has one of their libraries
 * already, or the node has AMD's devices. Level Zero that is loaded later is not foreseen, as its
 * devices cannot be told from those that draw the screen. Before any thread asks. */
void other_devices_find(void);
extern __attribute__((visibility("hidden"))) bool other_devices_possible;

/* Which library of theirs this process has; null: none. */
const char *other_devices_library(void);

#endif
