/* SPDX-License-Identifier: BSD-3-Clause */
/* Device memory for multilane-calibrate --device: the PML measures it, as at a first buffer. */
#ifndef TOOLS_CALIBRATE_DEVICE_H
#define TOOLS_CALIBRATE_DEVICE_H

#include "multilane/measure.h"

struct device_result {
    struct multilane_device device; /* name "": nothing was measured, and `why` says it */
    char why[200];
};

/* Before MPI_Init: loads the driver, wherever it is, so that the PML finds it. */
void device_prepare(void);

/* All ranks call it. Each takes a device, by turns within its node. */
void device_calibrate(const struct multilane_measure *pml, struct device_result *result);

/* Prints it, and puts it into the profile. */
void device_report(const struct device_result *result, struct lane_file *profile);

#endif
