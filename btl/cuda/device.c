/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices by the name that all processes know them by. */
#include "btl/cuda/cuda.h"

#include <string.h>

int cuda_device_find(const struct driver_uuid *wanted)
{
    struct driver_uuid uuid;
    int count = 0;

    if (driver.device_count(&count) != DRIVER_SUCCESS)
        return -1;
    for (int device = 0; device < count; device++)
        if (driver.device_uuid(&uuid, device) == DRIVER_SUCCESS &&
            memcmp(&uuid, wanted, sizeof(uuid)) == 0)
            return device;
    return -1;
}

bool cuda_device_may_reach(const struct copier *copier, const struct driver_uuid *other)
{
    int device = cuda_device_find(other), can = 1;

    return device < 0 || device == copier->device ||
           (driver.device_can_access(&can, copier->device, device) == DRIVER_SUCCESS && can);
}
