/* SPDX-License-Identifier: BSD-3-Clause */
/* Places of devices, from the kernel's tree of devices. */
#include "common/lane/locality.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/lane/kernel_text.h"
#include "common/lane/processor_list.h"

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

/* The length of the device's own name, without a port; 0: it cannot be one. */
static int device_length(const char *device)
{
    int length = (int) strcspn(device, ":");
    return memchr(device, '/', (size_t) length) || device[0] == '.' ? 0 : length;
}

static bool place_path(const char *sysfs, const char *device, char path[PATH_MAX])
{
    int length = device_length(device);
    if (!sysfs)
        sysfs = SYSFS;
    return length && (device_path(sysfs, "net", device, length, path) ||
                      device_path(sysfs, "infiniband", device, length, path));
}

bool locality_find(const char *sysfs, const char *device, struct locality *place)
{
    char path[PATH_MAX];
    *place = (struct locality){.card = 0};
    if (!place_path(sysfs, device, path))
        return false;
    place->card = card_of_address(strrchr(path, '/') + 1);
    (void) kernel_line(place->cpus, sizeof(place->cpus), "%s/local_cpulist", path);
    return place->card || place->cpus[0];
}

/* --- speeds ----------------------------------------------------------------------------------- */

/* Packets of 256 bytes of data and 26 of headers, in 128 of 130 bits; in 8 of 10 at the two slowest
 * speeds. */
#define BUS_PACKETS (256.0 / (256 + 26))

double locality_bus(const char *sysfs, const char *device)
{
    char path[PATH_MAX], speed[64], width[64];
    double transfers;
    unsigned lanes;
    if (!place_path(sysfs, device, path))
        return 0;
    (void) kernel_line(speed, sizeof(speed), "%s/current_link_speed", path); /* "16.0 GT/s PCIe" */
    (void) kernel_line(width, sizeof(width), "%s/current_link_width", path);
    if (sscanf(speed, "%lf GT/s", &transfers) != 1 || sscanf(width, "%u", &lanes) != 1 ||
        !(transfers >= 1 && transfers <= 1024) || lanes < 1 || lanes > 64)
        return 0;
    double coding = transfers <= 5 ? 0.8 : 128.0 / 130;
    return transfers * 1e9 / 8 * lanes * coding * BUS_PACKETS;
}

/* One that other devices carry, as a bond and a VLAN are: its speed is theirs. */
static bool is_over_others(const char *folder)
{
    bool is_over = false;
    DIR *entries = opendir(folder);
    for (struct dirent *entry; !is_over && entries && (entry = readdir(entries));)
        is_over = strncmp(entry->d_name, "lower_", strlen("lower_")) == 0;
    if (entries)
        closedir(entries);
    return is_over;
}

/* Of 1538 bytes on the wire of Ethernet TCP carries 1448. */
#define LINK_PACKETS (1448.0 / 1538)

double locality_link(const char *sysfs, const char *device)
{
    char folder[PATH_MAX], path[PATH_MAX], speed[64];
    int length = device_length(device);
    double megabits;
    if (!length)
        return 0;
    sysfs = sysfs ? sysfs : SYSFS;
    int written = snprintf(folder, sizeof(folder), "%s/class/net/%.*s", sysfs, length, device);
    if (written >= (int) sizeof(folder) ||
        (!device_path(sysfs, "net", device, length, path) && !is_over_others(folder)))
        return 0;
    (void) kernel_line(speed, sizeof(speed), "%s/speed", folder); /* Mbit/s; -1: not known */
    if (sscanf(speed, "%lf", &megabits) != 1 || !(megabits >= 1 && megabits <= 1e7))
        return 0;
    return megabits * 1e6 / 8 * LINK_PACKETS;
}

bool locality_is_near(const char *cpus)
{
    cpu_set_t mine;
    return !cpus[0] || sched_getaffinity(0, sizeof(mine), &mine) != 0 ||
           processor_list_overlaps(cpus, &mine);
}
