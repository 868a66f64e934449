/* SPDX-License-Identifier: BSD-3-Clause */
/* Times small messages between two GPUs through a ring of chunks: each end waiting for a counter in
 * its own memory (local-poll), and both at one state word a chunk in the receiver's memory
 * (single-state). Needs a real GPU, better two; where there is none it says so and measures
 * nothing. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/memory/chunks.h"
#include "test/bench/device_ring.h"

extern const unsigned char device_ring_image[];
extern const size_t device_ring_image_bytes;

enum { ENDS = 2, RUNS = 7, TURNS = 2000, THREADS = 256 };

/* Of a kernel that waits for one that does not come: it ends after some seconds. */
#define LOOKS_MAX 20000000u

static struct {
    struct copier *copier;
    driver_module module;
    driver_function functions[2];
    driver_ptr memory; /* for all below */
    driver_ptr ring, emptied, words, user;
    driver_ptr gave_up;
} ends[ENDS];

static const char *const names[2] = {"turns_local", "turns_single"};

static void nothing(const char *why)
{
    printf("device_ring: nothing measured: %s\n", why);
    exit(0);
}

static void must(driver_result result, const char *what)
{
    char words[160];
    if (result == DRIVER_SUCCESS)
        return;
    fprintf(stderr, "device_ring: %s: %s\n", what, driver_words(result, words, sizeof(words)));
    exit(1);
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

/* All memory of an end, cleared; in the order of the fields. */
static void end_memory(int i)
{
    size_t words = (size_t) CHUNK_LINE_BYTES * RING_CHUNKS;
    size_t size = RING_BYTES + CHUNK_LINE_BYTES + words + CHUNK_LINE_BYTES + CHUNK_BYTES;
    void *zeros = calloc(1, size);
    must(driver.mem_alloc(&ends[i].memory, size), "cuMemAlloc");
    must(driver.copy(ends[i].memory, (driver_ptr) (uintptr_t) zeros, size), "cuMemcpy");
    ends[i].ring = ends[i].memory;
    ends[i].emptied = ends[i].ring + RING_BYTES;
    ends[i].words = ends[i].emptied + CHUNK_LINE_BYTES;
    ends[i].gave_up = ends[i].words + words;
    ends[i].user = ends[i].gave_up + CHUNK_LINE_BYTES;
    free(zeros);
}

static void end_make(int i, int device)
{
    driver_result result;
    ends[i].copier = copier_of_device(device, &result);
    must(result, "a context");
    copier_enter(ends[i].copier);
    result = driver.module_load(&ends[i].module, device_ring_image);
    for (int which = 0; which < 2 && result == DRIVER_SUCCESS; which++)
        result = driver.module_function(&ends[i].functions[which], ends[i].module, names[which]);
    if (result != DRIVER_SUCCESS) {
        char words[160];
        driver_words(result, words, sizeof(words));
        nothing(words); /* the stand-in, or a device that is too old */
    }
    end_memory(i);
    context_leave();
}

/* Two devices have to see each other's memory. */
static void ends_connect(void)
{
    driver_result (*enable)(driver_context, unsigned);
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *function = library ? dlsym(library, "cuCtxEnablePeerAccess") : NULL;
    int can = 0;
    must(driver.device_can_access(&can, ends[0].copier->device, ends[1].copier->device),
         "cuDeviceCanAccessPeer");
    if (!can || !function)
        nothing("the first two devices have no access to each other's memory");
    memcpy(&enable, &function, sizeof(enable));
    for (int i = 0; i < ENDS; i++) {
        copier_enter(ends[i].copier);
        must(enable(ends[!i].copier->context, 0), "cuCtxEnablePeerAccess");
        context_leave();
    }
}

/* The ring that end `to` receives by. */
static struct chunk_job job_of(int from, int to, bool is_sender, size_t bytes, uint64_t first)
{
    driver_ptr filled = ends[to].ring + (driver_ptr) CHUNK_BYTES * RING_CHUNKS;
    driver_ptr emptied = ends[from].emptied;
    return (struct chunk_job){.user = ends[is_sender ? from : to].user,
                              .bytes = bytes,
                              .chunks = ends[to].ring,
                              .waits = is_sender ? emptied : filled,
                              .tells = is_sender ? filled : emptied,
                              .first = first,
                              .moved = ends[is_sender ? from : to].gave_up + 64,
                              .chunk_bytes = CHUNK_BYTES,
                              .ring_chunks = RING_CHUNKS,
                              .looks = LOOKS_MAX,
                              .is_sender = is_sender};
}

static void turns_start(int i, int which, size_t bytes, uint64_t first)
{
    struct turns turns = {.out = job_of(i, !i, true, bytes, first),
                          .in = job_of(!i, i, false, bytes, first),
                          .out_words = ends[!i].words,
                          .in_words = ends[i].words,
                          .gave_up = ends[i].gave_up,
                          .count = TURNS,
                          .begins = i == 0};
    void *arguments[] = {&turns};
    copier_enter(ends[i].copier);
    must(driver.launch(ends[i].functions[which], 1, 1, 1, THREADS, 1, 1, 0,
                       ends[i].copier->streams[i ? COPY_TO_DEVICE : COPY_TO_HOST], arguments, NULL),
         "cuLaunchKernel");
    context_leave();
}

/* Seconds one way. The two ends' kernels run at the same time. */
static double run(int which, size_t bytes, uint64_t first)
{
    double begun = now_s();
    for (int i = ENDS - 1; i >= 0; i--)
        turns_start(i, which, bytes, first);
    for (int i = 0; i < ENDS; i++)
        must(copier_wait(ends[i].copier, i ? COPY_TO_DEVICE : COPY_TO_HOST), "the kernels");
    double taken = now_s() - begun;
    for (int i = 0; i < ENDS; i++) {
        uint64_t gave_up = 0;
        copier_enter(ends[i].copier);
        must(driver.copy((driver_ptr) (uintptr_t) &gave_up, ends[i].gave_up, sizeof(gave_up)),
             "cuMemcpy");
        context_leave();
        if (gave_up)
            nothing("two kernels do not run at the same time here");
    }
    return taken / (2.0 * TURNS);
}

static int by_value(const void *one, const void *other)
{
    double a = *(const double *) one, b = *(const double *) other;
    return (a > b) - (a < b);
}

int main(void)
{
    static uint64_t first; /* the counters of the ring go on; so do those of its words */
    int count = 0;
    if (device_ring_image_bytes == 0)
        nothing("this Multilane was built without nvcc");
    if (!driver_load())
        nothing(driver_why());
    must(driver.init(0), "cuInit");
    must(driver.device_count(&count), "cuDeviceGetCount");
    end_make(0, 0);
    end_make(1, count > 1 ? 1 : 0);
    if (count > 1)
        ends_connect();
    else
        printf("device_ring: one device, so no memory is far: what is left of the difference is "
               "small\n");
    printf("%8s  %12s  %12s  %s\n", "bytes", "local-poll", "single-state", "one way, median of 7");
    for (size_t bytes = 8; bytes <= CHUNK_BYTES; bytes *= 4) {
        double median[2];
        for (int which = 0; which < 2; which++) {
            double taken[RUNS];
            run(which, bytes, first), first += which ? 0 : TURNS;
            for (int i = 0; i < RUNS; i++) {
                taken[i] = run(which, bytes, first);
                first += which ? 0 : TURNS;
            }
            qsort(taken, RUNS, sizeof(taken[0]), by_value);
            median[which] = taken[RUNS / 2];
        }
        printf("%8zu  %9.2f us  %9.2f us\n", bytes, median[0] * 1e6, median[1] * 1e6);
    }
    return 0;
}
