/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses at which there is no device memory, known without asking the driver. */
#ifndef COMMON_MEMORY_HOST_ONLY_H
#define COMMON_MEMORY_HOST_ONLY_H

#include <stdbool.h>

/* Finds out where the program's variables and its heap are. Before any thread asks. */
void host_only_find(void);

/* Is it a variable of the program, on the heap, or on this thread's stack? Nothing that becomes
 * untrue is kept, so nothing has to be forgotten when memory is freed, used again or mapped:
 * - The program itself is never unloaded, and its variables stay where they are.
 * - The heap (brk) ends where the system has its end now. Nothing else is mapped below that.
 * - The stack is in use from here to its beginning while this thread runs.
 * What the driver gives out or maps lies at addresses that were free. Memory that a program pins
 * may be here; it is the host's. Of all else the driver is asked: memory that malloc maps, which
 * another library may unmap and the driver may be given after that, is not known to stay. */
bool host_only_contains(const void *address);

#endif
