/* SPDX-License-Identifier: BSD-3-Clause */
/* What it costs a message to find out whose memory its buffer is, on this machine. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/memory/memory.h"

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

/* Nanoseconds a turn of the same loop, with and without asking. */
static double measure(char **buffers, unsigned count, long turns, int asks)
{
    unsigned device = 0;
    double begun = now_s();
    for (long i = 0; i < turns; i++) {
        char *buffer = buffers[(unsigned long) i % count];
        __asm__ volatile("" : "+r"(buffer));
        if (asks) {
            struct memory memory;
            memory_look(buffer, &memory);
            device += memory.kind != MEMORY_HOST;
        }
        __asm__ volatile("" : "+r"(device));
    }
    return (now_s() - begun) * 1e9 / (double) turns;
}

int main(int argc, char **argv)
{
    enum { BUFFERS = 256 };
    char *buffers[BUFFERS];
    bool has_driver = driver_load();
    long turns = argc > 1 ? atol(argv[1]) : has_driver ? 2000000 : 200000000;
    for (int i = 0; i < BUFFERS; i++)
        buffers[i] = malloc(1000);
    measure(buffers, BUFFERS, turns / 10, 1);
    double without = measure(buffers, BUFFERS, turns, 0),
           with = measure(buffers, BUFFERS, turns, 1);
    printf("whose memory a buffer is: %.2f ns a call (a loop without it: %.2f ns); %s\n",
           with - without, without, has_driver ? "with a driver" : driver_why());
    for (int i = 0; i < BUFFERS; i++)
        free(buffers[i]);
    return 0;
}
