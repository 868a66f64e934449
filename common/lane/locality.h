/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a lane's device sits in the machine: on which card, and how far from this process. */
#ifndef COMMON_LANE_LOCALITY_H
#define COMMON_LANE_LOCALITY_H

#include <stdbool.h>
#include <stdint.h>

struct hwloc_topology;

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

/* The processors that this process is bound to. False: it cannot be told. */
bool locality_of_process(struct hwloc_topology *topology, char cpus[LOCALITY_CPUS_CHARS]);

/* How many levels of the machine one has to go up from the device to meet a processor of `here`: 0
 * if it is near, or nothing is known. */
uint32_t locality_distance(struct hwloc_topology *topology, const char *here,
                           const char *device_cpus);

#endif
