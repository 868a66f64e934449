/* SPDX-License-Identifier: BSD-3-Clause */
/* Times irregular blocks of device memory on their way to and from pinned host memory: by the
 * packing kernel and a copy, by a copy for each block, and, as the bound, one copy of as many bytes
 * that lie together. Needs a real GPU; where there is none it says so and measures nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/memory/kernels.h"
#include "common/memory/packer.h"

enum { RUNS = 9, TOTAL = 512 << 10 }; /* a slot of the staging ring */

static struct copier *copier;
static driver_ptr device;
static unsigned char *host;
static struct layout layout;

static void nothing(const char *why)
{
    printf("device_pack: nothing measured: %s\n", why);
    exit(0);
}

static void must(driver_result result, const char *what)
{
    char words[160];
    if (result == DRIVER_SUCCESS)
        return;
    fprintf(stderr, "device_pack: %s: %s\n", what, driver_words(result, words, sizeof(words)));
    exit(1);
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

static void device_begin(void)
{
    char words[160];
    driver_result result;
    if (!driver_load())
        nothing(driver_why());
    driver_words(DRIVER_SUCCESS, words, sizeof(words));
    if (strstr(words, "stand-in"))
        nothing("the driver is a stand-in, which has no speed of its own");
    must(driver.init(0), "cuInit");
    copier = copier_of_device(0, &result);
    must(result, "a context");
    kernels_choose("auto", NULL);
    for (int way = COPY_TO_HOST; way <= COPY_TO_DEVICE; way++) {
        result = packer_ready(copier, (enum copy_direction) way);
        if (result == DRIVER_NOT_SUPPORTED)
            nothing(kernels_expected("auto")[0] ? kernels_expected("auto")
                                                : "the driver is too old for kernels");
        must(result, "the kernels");
    }
    copier_enter(copier);
    must(driver.mem_alloc(&device, 2 * (size_t) TOTAL), "cuMemAlloc");
    context_leave();
    host = copier_pin(copier, TOTAL, &result);
    must(result, "cuMemHostAlloc");
}

/* Blocks of equal length at distances that are not equal: no copy of the driver's takes several. */
static void layout_make(uint32_t block_bytes)
{
    uint32_t count = TOTAL / block_bytes;
    int64_t at = 0;
    layout =
        (struct layout){.base = (char *) (uintptr_t) device,
                        .element_bytes = TOTAL,
                        .block_count = count,
                        .blocks = realloc(layout.blocks, (count + 1) * sizeof(*layout.blocks))};
    for (uint32_t i = 0; i < count; i++) {
        layout.blocks[i] = (struct pack_block){.offset = (uint64_t) i * block_bytes, at};
        at += block_bytes + (i % 3 == 1 ? block_bytes : 0);
    }
    layout.blocks[count] = (struct pack_block){.offset = TOTAL};
    layout_end(&layout);
}

static void by_kernel(enum copy_direction way)
{
    must(packer_copy(copier, way, &layout, 0, TOTAL, host), "the kernel");
}

static void by_blocks(enum copy_direction way)
{
    for (uint32_t i = 0; i < layout.block_count; i++) {
        driver_ptr there = device + (driver_ptr) layout.blocks[i].displacement;
        driver_ptr here = (driver_ptr) (uintptr_t) (host + layout.blocks[i].offset);
        must(copier_copy(copier, way, way == COPY_TO_HOST ? here : there,
                         way == COPY_TO_HOST ? there : here, layout_block_bytes(&layout, i)),
             "a copy");
    }
}

static void by_one_copy(enum copy_direction way)
{
    driver_ptr here = (driver_ptr) (uintptr_t) host;
    must(copier_copy(copier, way, way == COPY_TO_HOST ? here : device,
                     way == COPY_TO_HOST ? device : here, TOTAL),
         "a copy");
}

static int by_value(const void *one, const void *other)
{
    double a = *(const double *) one, b = *(const double *) other;
    return (a > b) - (a < b);
}

/* Microseconds, the median. */
static double measure(void (*move)(enum copy_direction way), enum copy_direction way)
{
    double taken[RUNS];
    for (int i = -1; i < RUNS; i++) {
        double begun = now_s();
        move(way);
        must(copier_wait(copier, way), "the end of it");
        if (i >= 0)
            taken[i] = (now_s() - begun) * 1e6;
    }
    qsort(taken, RUNS, sizeof(taken[0]), by_value);
    return taken[RUNS / 2];
}

int main(void)
{
    device_begin();
    printf("%d bytes, microseconds, median of %d\n", TOTAL, RUNS);
    printf("%8s  %9s  %10s  %10s  %10s\n", "block", "way", "kernel", "copies", "one copy");
    for (uint32_t block = 8; block <= TOTAL; block *= 4) {
        layout_make(block);
        for (int i = COPY_TO_HOST; i <= COPY_TO_DEVICE; i++) {
            enum copy_direction way = (enum copy_direction) i;
            printf("%8u  %9s  %10.1f  %10.1f  %10.1f\n", block,
                   way == COPY_TO_HOST ? "to host" : "to device", measure(by_kernel, way),
                   measure(by_blocks, way), measure(by_one_copy, way));
        }
    }
    return 0;
}
