/* SPDX-License-Identifier: BSD-3-Clause */
/* What the CUDA driver refuses is said. */
#ifndef MULTILANE_COMPLAINT_H
#define MULTILANE_COMPLAINT_H

#include "common/memory/driver.h"

/* Says what failed, in the driver's own words; after a few times it is known. */
void driver_complain(const char *what, driver_result result);

#endif
