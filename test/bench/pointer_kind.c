/* SPDX-License-Identifier: BSD-3-Clause */
/* What it costs a message to find out whose memory its buffer is, on this machine: on the heap,
 * mapped by malloc, and, where there is a driver and a device, pinned and of the device; and what
 * the driver alone takes for its answer, of one attribute and of the eight that are asked for. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/memory/copier.h"
#include "common/memory/memory.h"

enum { BUFFERS = 256 };

static char *buffers[BUFFERS];

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

static unsigned ask_nothing(char *buffer)
{
    return buffer == NULL;
}

static unsigned ask_whole(char *buffer)
{
    struct memory memory;
    memory_look(buffer, &memory);
    return memory.kind != MEMORY_HOST;
}

static unsigned ask_driver(char *buffer, unsigned count)
{
    static const int attributes[] = {DRIVER_POINTER_MEMORY_TYPE, DRIVER_POINTER_IS_MANAGED,
                                     DRIVER_POINTER_CONTEXT,     DRIVER_POINTER_BUFFER_ID,
                                     DRIVER_POINTER_DEVICE,      DRIVER_POINTER_IPC_CAPABLE,
                                     DRIVER_POINTER_RANGE_START, DRIVER_POINTER_RANGE_SIZE};
    uint64_t answers[8] = {0};
    void *values[8];
    for (int i = 0; i < 8; i++)
        values[i] = &answers[i];
    return driver.pointer_attributes(count, attributes, values, (driver_ptr) (uintptr_t) buffer) ==
           DRIVER_SUCCESS;
}

static unsigned ask_one(char *buffer)
{
    return ask_driver(buffer, 1);
}

static unsigned ask_eight(char *buffer)
{
    return ask_driver(buffer, 8);
}

/* Nanoseconds a turn of the same loop. */
static double measure(long turns, unsigned (*ask)(char *buffer))
{
    unsigned sum = 0;
    double begun = now_s();
    for (long i = 0; i < turns; i++) {
        char *buffer = buffers[(unsigned long) i % BUFFERS];
        __asm__ volatile("" : "+r"(buffer));
        sum += ask(buffer);
        __asm__ volatile("" : "+r"(sum));
    }
    return (now_s() - begun) * 1e9 / (double) turns;
}

static void row(const char *what, long turns)
{
    measure(turns / 10, ask_whole);
    double without = measure(turns, ask_nothing);
    printf("%-16s %8.2f ns a message", what, measure(turns, ask_whole) - without);
    if (driver_is_loaded)
        printf("; the driver: one attribute %.2f ns, eight %.2f ns",
               measure(turns, ask_one) - without, measure(turns, ask_eight) - without);
    printf("\n");
}

/* Places in one block, as messages have them. */
static void places(char *block)
{
    for (int i = 0; block && i < BUFFERS; i++)
        buffers[i] = block + 4096 * i;
}

static void of_device(long turns)
{
    driver_result result = driver.init(0);
    struct copier *copier = result == DRIVER_SUCCESS ? copier_of_device(0, &result) : NULL;
    driver_ptr memory;
    if (!copier || copier_enter(copier) != DRIVER_SUCCESS)
        return;
    places(copier_pin(copier, 4096 * BUFFERS, &result));
    if (result == DRIVER_SUCCESS)
        row("pinned", turns);
    if (driver.mem_alloc(&memory, 4096 * BUFFERS) != DRIVER_SUCCESS)
        return;
    places((char *) (uintptr_t) memory);
    row("of a device", turns);
}

int main(int argc, char **argv)
{
    dlopen("libcuda.so.1", RTLD_NOW); /* as programs that use a device have it */
    bool has_driver = driver_load();
    long turns = argc > 1 ? atol(argv[1]) : has_driver ? 200000 : 200000000;
    printf("whose memory a buffer is: %s\n", has_driver ? "with a driver" : driver_why());
    for (int i = 0; i < BUFFERS; i++)
        buffers[i] = malloc(1000);
    row("on the heap", turns);
    places(malloc(4096 * BUFFERS)); /* large enough to be mapped */
    row("mapped by malloc", turns);
    if (has_driver)
        of_device(turns);
    return 0;
}
