/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a lane's device sits in the machine: on which card, and whether near this process. */
#ifndef COMMON_LANE_LOCALITY_H
#define COMMON_LANE_LOCALITY_H

#include <stdbool.h>
#include <stdint.h>

/* Lists of processors are written as the kernel does: "0-15,32-47". Empty: not known. */
#define LOCALITY_CPUS_CHARS 1024

struct locality {
    uint32_t card; /* devices with one number are ports of one card; 0: not known */
    char cpus[LOCALITY_CPUS_CHARS]; /* that the device is near to */
};

/* Asks the kernel, whose tree of devices is at `sysfs` (null: where it always is), for a network or
 * RDMA device: "eth0", "mlx5_0", "mlx5_0:1" (a port of it). False: it sits nowhere, as virtual
 * devices do. */
bool locality_find(const char *sysfs, const char *device, struct locality *place);

/* What the bus of a device carries each way, less its packets' headers; 0: not known, or the device
 * sits on none. `sysfs` and `device` as above. */
double locality_bus(const char *sysfs, const char *device);

/* What a network device's link carries of data, by the speed that the kernel says it runs at. 0: it
 * says none, or the device is virtual and only pretends to have a speed. */
double locality_link(const char *sysfs, const char *device);

/* May this process run on one of these processors? True too where it cannot be told. */
bool locality_is_near(const char *cpus);

#endif
