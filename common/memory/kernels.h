/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels: which device code is used, and starting it. */
#ifndef COMMON_MEMORY_KERNELS_H
#define COMMON_MEMORY_KERNELS_H

#include "common/memory/copier.h"

enum kernel { KERNEL_PACK, KERNEL_CHUNKS, KERNELS };

/* Why no kernel runs here with that setting, as far as it can be told without a driver; "" if they
 * may. */
const char *kernels_expected(const char *setting);

/* Takes the setting: "auto" for the device code that was built into this component, "none", or the
 * name of a file with such code. Before the first use of any kernel. False: the file cannot be
 * read, and `why` says it as the end of a sentence. */
bool kernels_choose(const char *setting, char *why, size_t why_size);

/* Is there device code to be used, and a driver that runs kernels? Once the driver is loaded. */
bool kernels_offered(void);

/* Makes the kernels ready in the copier's context, once; that may wait for the device.
 * DRIVER_SUCCESS: they are; DRIVER_NOT_SUPPORTED: none are wanted, or the driver is too old for
 * them; else what the driver said when it saw the device code. */
driver_result kernels_ready(struct copier *copier);

/* Starts a kernel that is ready, behind what was started that way before. Each of `threads` does
 * a part of the work; the kernel deals with fewer. */
driver_result kernels_start(struct copier *copier, enum copy_direction direction,
                            enum kernel kernel, const void *argument, uint64_t threads);

/* Unloads all. Nothing is under way any more, and the copiers are still there. */
void kernels_close(void);

#endif
