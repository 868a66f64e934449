/* SPDX-License-Identifier: BSD-3-Clause */
/* Places of devices: the card from the kernel's tree of devices, the distance from hwloc. */
#include "common/lane/locality.h"

#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef MULTILANE_HAVE_HWLOC
#include <hwloc.h>
#endif

#define SYSFS "/sys"

/* A card's functions, which differ after the dot, are its ports. */
static uint32_t card_of_address(const char *address)
{
    unsigned domain, bus, slot, function;
    int length = 0;
    if (sscanf(address, "%x:%x:%x.%x%n", &domain, &bus, &slot, &function, &length) != 4 ||
        address[length])
        return 0;
    return 1 + ((domain & 0xffff) << 16 | (bus & 0xff) << 8 | (slot & 0xff));
}

/* The device that an interface belongs to, as a path without links. */
static bool device_path(const char *sysfs, const char *kind, const char *device, int length,
                        char path[PATH_MAX])
{
    char link[PATH_MAX];
    int written =
        snprintf(link, sizeof(link), "%s/class/%s/%.*s/device", sysfs, kind, length, device);
    return written < (int) sizeof(link) && realpath(link, path);
}

static void read_cpus(const char *path, char cpus[LOCALITY_CPUS_CHARS])
{
    char name[PATH_MAX + 32];
    snprintf(name, sizeof(name), "%s/local_cpulist", path);
    FILE *file = fopen(name, "re");
    if (!file)
        return;
    if (!fgets(cpus, LOCALITY_CPUS_CHARS, file))
        cpus[0] = '\0';
    cpus[strcspn(cpus, "\n")] = '\0';
    fclose(file);
}

bool locality_find(const char *sysfs, const char *device, struct locality *place)
{
    char path[PATH_MAX];
    int length = (int) strcspn(device, ":");
    *place = (struct locality){.card = 0};
    if (!length || memchr(device, '/', (size_t) length) || device[0] == '.')
        return false;
    if (!sysfs)
        sysfs = SYSFS;
    if (!device_path(sysfs, "net", device, length, path) &&
        !device_path(sysfs, "infiniband", device, length, path))
        return false;
    place->card = card_of_address(strrchr(path, '/') + 1);
    read_cpus(path, place->cpus);
    return place->card || place->cpus[0];
}

#ifdef MULTILANE_HAVE_HWLOC

/* A topology that another copy of hwloc made is looked at only if it is laid out as ours. */
static bool is_readable(struct hwloc_topology *topology)
{
    return topology && hwloc_topology_abi_check(topology) == 0;
}

bool locality_of_process(struct hwloc_topology *topology, char cpus[LOCALITY_CPUS_CHARS])
{
    hwloc_bitmap_t set = is_readable(topology) ? hwloc_bitmap_alloc() : NULL;
    int length = -1;
    if (set && hwloc_get_cpubind(topology, set, HWLOC_CPUBIND_PROCESS) == 0)
        length = hwloc_bitmap_list_snprintf(cpus, LOCALITY_CPUS_CHARS, set);
    hwloc_bitmap_free(set);
    return length > 0 && length < LOCALITY_CPUS_CHARS;
}

static hwloc_bitmap_t cpus_read(struct hwloc_topology *topology, const char *text)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    if (set && hwloc_bitmap_list_sscanf(set, text) != 0)
        hwloc_bitmap_zero(set);
    if (set)
        hwloc_bitmap_and(set, set, hwloc_topology_get_complete_cpuset(topology));
    return set;
}

static uint32_t levels_up(struct hwloc_topology *topology, hwloc_const_bitmap_t here,
                          hwloc_const_bitmap_t device)
{
    hwloc_obj_t object = hwloc_get_obj_covering_cpuset(topology, device);
    uint32_t levels = 0;
    while (object && !hwloc_bitmap_intersects(object->cpuset, here)) {
        hwloc_obj_t up = object->parent;
        /* A level that adds no processor is none. */
        levels += up && !hwloc_bitmap_isequal(up->cpuset, object->cpuset);
        object = up;
    }
    return object ? levels : 0;
}

uint32_t locality_distance(struct hwloc_topology *topology, const char *here,
                           const char *device_cpus)
{
    uint32_t levels = 0;
    if (!is_readable(topology) || !here[0] || !device_cpus[0])
        return 0;
    hwloc_bitmap_t own = cpus_read(topology, here), near = cpus_read(topology, device_cpus);
    if (own && near && !hwloc_bitmap_iszero(own) && !hwloc_bitmap_iszero(near))
        levels = levels_up(topology, own, near);
    hwloc_bitmap_free(own);
    hwloc_bitmap_free(near);
    return levels;
}

#else /* every device is as near as any other */

bool locality_of_process(struct hwloc_topology *topology, char cpus[LOCALITY_CPUS_CHARS])
{
    (void) topology;
    cpus[0] = '\0';
    return false;
}

uint32_t locality_distance(struct hwloc_topology *topology, const char *here,
                           const char *device_cpus)
{
    (void) topology;
    (void) here;
    (void) device_cpus;
    return 0;
}

#endif
