/* SPDX-License-Identifier: BSD-3-Clause */
/* Would a message from device to device end sooner if a part of it went by way of the host? Times
 * the driver's copies to the other device (to the same one, where there is one), by way of pinned
 * host memory, and both at once, each with the part that it would carry. Needs a real GPU; where
 * there is none it says so and measures nothing. With --check everything is copied once and nothing
 * timed, so that a stand-in for the driver will do.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/memory/copier.h"
#include "test/bench/median.h"

enum { RUNS = 9, BYTES = 64 << 20 };

static struct copier *from, *to;
static driver_ptr source, target;
static unsigned char *host_down, *host_up;

static void nothing(const char *why)
{
    printf("device_links: nothing measured: %s\n", why);
    exit(0);
}

static void must(driver_result result, const char *what)
{
    char words[160];
    if (result == DRIVER_SUCCESS)
        return;
    fprintf(stderr, "device_links: %s: %s\n", what, driver_words(result, words, sizeof(words)));
    exit(1);
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

/* As memory that is opened by IPC is reached. */
static void peer_enable(void)
{
    driver_result (*enable)(driver_context, unsigned);
    void *library = dlopen("libcuda.so.1", RTLD_NOW),
         *function = library ? dlsym(library, "cuCtxEnablePeerAccess") : NULL;
    if (!function)
        return;
    memcpy(&enable, &function, sizeof(enable));
    must(copier_enter(from), "a context");
    must(enable(to->context, 0), "cuCtxEnablePeerAccess");
    context_leave();
}

static void memory_begin(struct copier *copier, driver_ptr *device, unsigned char **host)
{
    driver_result result;
    must(copier_enter(copier), "a context");
    must(driver.mem_alloc(device, BYTES), "cuMemAlloc");
    context_leave();
    *host = copier_pin(copier, BYTES, &result);
    must(result, "cuMemHostAlloc");
    memset(*host, 1, BYTES);
}

static void devices_begin(bool is_check)
{
    char words[160];
    driver_result result;
    int count = 0, can = 0;
    dlopen("libcuda.so.1", RTLD_NOW); /* as programs that use a device have it */
    if (!driver_load())
        nothing(driver_why());
    if (strstr(driver_words(DRIVER_SUCCESS, words, sizeof(words)), "stand-in") && !is_check)
        nothing("the driver is a stand-in, which has no speed of its own");
    must(driver.init(0), "cuInit");
    must(driver.device_count(&count), "cuDeviceGetCount");
    if (count == 0)
        nothing("the driver knows of no device");
    from = copier_of_device(0, &result);
    must(result, "a context");
    to = copier_of_device(count > 1, &result);
    must(result, "a context");
    if (count > 1)
        must(driver.device_can_access(&can, 0, 1), "cuDeviceCanAccessPeer");
    if (can)
        peer_enable();
    printf("device_links: %s\n", count == 1 ? "one device: what is copied within it uses no link"
                                 : can      ? "two devices that reach each other's memory"
                                            : "two devices that do not reach each other's memory");
    memory_begin(from, &source, &host_down);
    memory_begin(to, &target, &host_up);
}

/* Seconds until so many bytes have gone to the other device, and so many to the host and from there
 * at once. */
static double copies_s(size_t direct, size_t by_host)
{
    double begun = now_s();
    if (direct)
        must(copier_copy(from, COPY_BETWEEN, target, source, direct), "a copy");
    if (by_host) {
        must(copier_copy(from, COPY_TO_HOST, (driver_ptr) (uintptr_t) host_down, source + direct,
                         by_host),
             "a copy");
        must(copier_copy(to, COPY_TO_DEVICE, target + direct, (driver_ptr) (uintptr_t) host_up,
                         by_host),
             "a copy");
    }
    must(copier_wait(from, COPY_BETWEEN), "a copy");
    must(copier_wait(from, COPY_TO_HOST), "a copy");
    must(copier_wait(to, COPY_TO_DEVICE), "a copy");
    return now_s() - begun;
}

static double median_s(size_t direct, size_t by_host)
{
    double taken[RUNS];
    copies_s(direct, by_host);
    for (int i = 0; i < RUNS; i++)
        taken[i] = copies_s(direct, by_host);
    return median(taken, RUNS);
}

int main(int argc, char **argv)
{
    bool is_check = argc > 1 && strcmp(argv[1], "--check") == 0;
    devices_begin(is_check);
    if (is_check) {
        copies_s(BYTES / 2, BYTES / 2);
        printf("device_links: all was copied, nothing timed\n");
        return 0;
    }
    double direct_s = median_s(BYTES, 0), by_host_s = median_s(0, BYTES);
    size_t part = (size_t) (BYTES * by_host_s / (direct_s + by_host_s)) & ~(size_t) 4095;
    double both_s = median_s(part, BYTES - part);
    printf("64 MiB: to the device %.2f GB/s, by way of the host %.2f GB/s, both at once %.2f GB/s "
           "(%.2f if neither\n"
           "slowed the other): both take %.2f times as long as the copy to the device alone\n",
           1e-9 * BYTES / direct_s, 1e-9 * BYTES / by_host_s, 1e-9 * BYTES / both_s,
           1e-9 * BYTES / direct_s + 1e-9 * BYTES / by_host_s, both_s / direct_s);
    return 0;
}
