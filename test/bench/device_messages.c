/* SPDX-License-Identifier: BSD-3-Clause */
/* Times messages from and to device memory between two ranks, which may share a device, beside what
 * the driver's own copies take. Needs a real GPU; where there is none it says so and measures
 * nothing.
 *
 * device_messages [--largest BYTES] [--from device|host] [--check]: a line for each figure and
 * size, microseconds; --from: only of messages from there. With --check every message goes once and
 * its bytes are looked at; nothing is timed, so that a stand-in for the driver will do.
 * test/bench/device starts it. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory/copier.h"
#include "test/fake/cuda_calls.h"

enum { BATCHES = 7, TURNS_MOST = 2000 };
static const double batch_s = 5e-3;

enum place { DEVICE, PINNED, PAGEABLE, PLACES };

static int rank;
static bool is_check;
static const char *from_where = "";
static size_t largest = (size_t) 256 << 20;
static struct copier *copier;
static unsigned char *memory[PLACES][2]; /* two of each, of the largest message */
static long checked, wrong;

static void must(driver_result result, const char *what)
{
    char words[160];
    if (result == DRIVER_SUCCESS)
        return;
    fprintf(stderr, "device_messages: %s: %s\n", what, driver_words(result, words, sizeof(words)));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Both ranks are on one machine, and have or have not a driver alike. */
static void nothing(const char *why)
{
    if (rank == 0)
        printf("device_messages: nothing measured: %s\n", why);
    MPI_Finalize();
    exit(0);
}

static driver_ptr address(const unsigned char *bytes)
{
    return (driver_ptr) (uintptr_t) bytes;
}

/* --- memory -------------------------------------------------------------------------------------
 */

static void memory_begin(void)
{
    char words[160];
    driver_result result;
    int devices = 0;
    if (!driver_load())
        nothing(driver_why());
    driver_words(DRIVER_SUCCESS, words, sizeof(words));
    if (strstr(words, "stand-in") && !is_check)
        nothing("the driver is a stand-in, which has no speed of its own");
    must(driver.init(0), "cuInit");
    must(driver.device_count(&devices), "cuDeviceGetCount");
    if (devices == 0)
        nothing("the driver knows of no device");
    copier = copier_of_device(rank % devices, &result);
    must(result, "a context");
    copier_enter(copier); /* for good: a program's own context */
    for (int i = 0; i < 2; i++) {
        driver_ptr pointer;
        must(driver.mem_alloc(&pointer, largest), "cuMemAlloc");
        memory[DEVICE][i] = (unsigned char *) (uintptr_t) pointer;
        memory[PINNED][i] = copier_pin(copier, largest, &result);
        must(result, "cuMemHostAlloc");
        memory[PAGEABLE][i] = malloc(largest);
        if (!memory[PAGEABLE][i])
            must(DRIVER_OUT_OF_MEMORY, "malloc");
        memset(memory[PAGEABLE][i], 1, largest);
        memset(memory[PINNED][i], 1, largest);
        must(cuda_copy(pointer, address(memory[PINNED][i]), largest), "cuMemcpy");
    }
}

static unsigned char byte_of(size_t at, size_t size, int from)
{
    return (unsigned char) (at * 31 + (at >> 8) * 7 + size + (size_t) from);
}

static void fill(enum place place, size_t size)
{
    unsigned char *bytes = malloc(size);
    for (size_t i = 0; i < size; i++)
        bytes[i] = byte_of(i, size, rank);
    must(cuda_copy(address(memory[place][0]), address(bytes), size), "cuMemcpy");
    free(bytes);
}

static void look(enum place place, size_t size)
{
    unsigned char *bytes = malloc(size);
    must(cuda_copy(address(bytes), address(memory[place][1]), size), "cuMemcpy");
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != byte_of(i, size, 1 - rank)) {
            fprintf(stderr, "device_messages: rank %d: byte %zu of %zu is wrong\n", rank, i, size);
            wrong++;
            break;
        }
    checked++;
    free(bytes);
}

/* --- what is timed ------------------------------------------------------------------------------
 */

/* A message from rank 0's memory of one kind to rank 1's of another. There and back where both are
 * alike, else there, and an empty one back. */
struct way {
    const char *figure;
    enum place from, to;
};

static void trip(const struct way *way, size_t size)
{
    enum place own = rank == 0 ? way->from : way->to;
    int count = (int) size, back = way->from == way->to ? count : 0, peer = 1 - rank;
    if (rank == 0) {
        MPI_Send(memory[own][0], count, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
        MPI_Recv(memory[own][1], back, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(memory[own][1], count, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(memory[own][0], back, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
    }
}

/* The driver's copy of as many bytes, until it has ended. */
static void plain(const struct way *way, size_t size)
{
    enum copy_direction copy = way->from != DEVICE ? COPY_TO_DEVICE
                               : way->to != DEVICE ? COPY_TO_HOST
                                                   : COPY_BETWEEN;
    must(
        copier_copy(copier, copy, address(memory[way->to][1]), address(memory[way->from][0]), size),
        "a copy");
    must(copier_wait(copier, copy), "the end of a copy");
}

static int by_value(const void *one, const void *other)
{
    double a = *(const double *) one, b = *(const double *) other;
    return (a > b) - (a < b);
}

/* Seconds of one turn, the median of some batches. Rank 0 says how many turns a batch has. */
static double measure(void (*turn)(const struct way *way, size_t size), const struct way *way,
                      size_t size, bool is_together)
{
    double taken[BATCHES];
    int turns = 1;
    for (int batch = -2; batch < BATCHES; batch++) {
        if (is_together)
            MPI_Barrier(MPI_COMM_WORLD);
        double begun = MPI_Wtime();
        for (int i = 0; i < turns; i++)
            turn(way, size);
        double turn_s = (MPI_Wtime() - begun) / turns;
        if (batch >= 0)
            taken[batch] = turn_s;
        if (batch == -1) /* the one before it has warmed up */
            turns = turn_s * TURNS_MOST > batch_s ? 1 + (int) (batch_s / turn_s) : TURNS_MOST;
        if (is_together)
            MPI_Bcast(&turns, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    qsort(taken, BATCHES, sizeof(taken[0]), by_value);
    return taken[BATCHES / 2];
}

static void way_check(const struct way *way, size_t size)
{
    enum place own = rank == 0 ? way->from : way->to;
    fill(own, size);
    trip(way, size);
    if (rank == 1 || way->from == way->to)
        look(own, size);
}

static void way_measure(const struct way *way, size_t size)
{
    double message_s = measure(trip, way, size, true);
    if (way->from == way->to)
        message_s /= 2;
    if (rank == 0)
        printf("%s %zu %.3f\n", way->figure, size, message_s * 1e6);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("plain-%s %zu %.3f\n", way->figure, size, measure(plain, way, size, false) * 1e6);
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
}

static const struct way ways[] = {{"device-device", DEVICE, DEVICE},
                                  {"device-pinned", DEVICE, PINNED},
                                  {"pinned-device", PINNED, DEVICE},
                                  {"device-pageable", DEVICE, PAGEABLE},
                                  {"pageable-device", PAGEABLE, DEVICE}};

static bool is_wanted(const struct way *way)
{
    return !*from_where || (way->from == DEVICE) == (strcmp(from_where, "device") == 0);
}

static void arguments_read(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        char *end = "";
        if (strcmp(argv[i], "--check") == 0)
            is_check = true;
        else if (strcmp(argv[i], "--largest") == 0 && i + 1 < argc)
            largest = strtoull(argv[++i], &end, 10);
        else if (strcmp(argv[i], "--from") == 0 && i + 1 < argc &&
                 (strcmp(argv[i + 1], "host") == 0 || strcmp(argv[i + 1], "device") == 0))
            from_where = argv[++i];
        else
            end = argv[i];
        if (*end || largest < 8 || largest > (size_t) 1 << 30) {
            fprintf(stderr,
                    "device_messages: %s: it knows --check, --from device, --from host and "
                    "--largest BYTES, from 8 to 1073741824\n",
                    argv[i]);
            exit(2);
        }
    }
}

int main(int argc, char **argv)
{
    int ranks;
    arguments_read(argc, argv);
    dlopen("libcuda.so.1", RTLD_NOW); /* as programs that use a device have it */
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != 2) {
        fprintf(stderr, "device_messages: it measures between 2 ranks, not %d\n", ranks);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    memory_begin();
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        for (size_t size = 8; is_wanted(&ways[i]) && size <= largest; size *= 2)
            (is_check ? way_check : way_measure)(&ways[i], size);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (is_check && rank == 1)
        printf("device_messages: %ld messages looked at, %ld wrong\n", checked, wrong);
    MPI_Finalize();
    return wrong != 0;
}
