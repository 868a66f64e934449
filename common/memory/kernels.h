/* SPDX-License-Identifier: BSD-3-Clause */
/* The packing kernel: which device code is used, and starting it. */
#ifndef COMMON_MEMORY_KERNELS_H
#define COMMON_MEMORY_KERNELS_H

#include "common/memory/copier.h"
#include "common/memory/pack.h"
#include "common/model/error.h"

/* Why no kernel runs here with that setting, as far as it can be told without a driver; "" if they
 * may. */
const char *kernels_expected(const char *setting);

/* Takes the setting: "auto" for the device code that was built into this component, "none", or the
 * name of a file with such code. Before the first use of the kernel. False: the file cannot be
 * read, and `error` says it as the end of a sentence. */
bool kernels_choose(const char *setting, struct error_text *error);

/* Makes the kernel ready in the copier's context, once; that may wait for the device.
 * DRIVER_SUCCESS: it is; DRIVER_NOT_SUPPORTED: none is wanted, or the driver is too old for it;
 * else what the driver said when it saw the device code. */
driver_result kernels_ready(struct copier *copier);

/* Starts the kernel, which is ready, behind what was started that way before. */
driver_result kernels_start(struct copier *copier, enum copy_direction direction,
                            const struct pack *pack);

/* Unloads all. Nothing is under way any more, and the copiers are still there. */
void kernels_close(void);

#endif
