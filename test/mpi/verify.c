/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of many sizes between two processes, with each byte checked, until so many bits were
 * wrong on their way (test/fake/btl_flaky.c counts those that it makes wrong) or the time is over:
 *     verify FLIPS SECONDS LARGEST
 * Each rank prints what it found. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 8 };

static int rank;
static unsigned char *sent[WINDOW], *received[WINDOW];

static unsigned flips(void)
{
    static unsigned (*count)(void);
    if (!count)
        *(void **) &count = dlsym(RTLD_DEFAULT, "mca_btl_flaky_flips");
    return count ? count() : 0;
}

/* Counts from its first call on. */
static unsigned long long found(void)
{
    static MPI_T_pvar_session session;
    static MPI_T_pvar_handle handle;
    static bool is_open;
    unsigned long long value = 0;
    int index, count;
    if (!is_open && (MPI_T_pvar_get_index("pml_multilane_wrong_messages", MPI_T_PVAR_CLASS_COUNTER,
                                          &index) != MPI_SUCCESS ||
                     MPI_T_pvar_session_create(&session) != MPI_SUCCESS ||
                     MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count) != MPI_SUCCESS))
        MPI_Abort(MPI_COMM_WORLD, 2);
    is_open = true;
    MPI_T_pvar_read(session, handle, &value);
    return value;
}

/* The same numbers at both ends. */
static size_t size_of(uint64_t round, int slot, size_t largest)
{
    uint64_t word = (round * WINDOW + (uint64_t) slot + 1) * UINT64_C(0x9e3779b97f4a7c15);
    size_t bits = 1 + word % 63, limit = bits < 40 ? (size_t) 1 << (bits / 2) : largest;
    return (word >> 8) % (limit < largest ? limit + 1 : largest + 1);
}

static void fill(unsigned char *bytes, size_t size, uint64_t seed)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char) ((seed + i) * 131 + (seed + i) / 257);
}

static size_t wrong_in(const unsigned char *bytes, size_t size, uint64_t seed)
{
    size_t wrong = 0;
    for (size_t i = 0; i < size; i++)
        wrong += bytes[i] != (unsigned char) ((seed + i) * 131 + (seed + i) / 257);
    return wrong;
}

static uint64_t seed_of(uint64_t round, int slot, int from)
{
    return (round * WINDOW + (uint64_t) slot) * 2 + (uint64_t) from;
}

static size_t round_run(uint64_t round, size_t largest)
{
    MPI_Request requests[2 * WINDOW];
    size_t wrong = 0;
    for (int i = 0; i < WINDOW; i++) {
        size_t size = size_of(round, i, largest);
        fill(sent[i], size, seed_of(round, i, rank));
        MPI_Irecv(received[i], (int) size, MPI_BYTE, 1 - rank, i, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 0; i < WINDOW; i++)
        MPI_Isend(sent[i], (int) size_of(round, i, largest), MPI_BYTE, 1 - rank, i, MPI_COMM_WORLD,
                  &requests[WINDOW + i]);
    MPI_Waitall(2 * WINDOW, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < WINDOW; i++)
        wrong += wrong_in(received[i], size_of(round, i, largest), seed_of(round, i, 1 - rank));
    return wrong;
}

int main(int argc, char **argv)
{
    int provided;
    if (argc != 4)
        return 2;
    unsigned wanted = (unsigned) atoi(argv[1]), all = 0;
    double limit = atof(argv[2]), now = 0;
    size_t largest = (size_t) atol(argv[3]), wrong = 0;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    const unsigned before = flips();
    (void) found();
    for (int i = 0; i < WINDOW; i++) {
        sent[i] = malloc(largest + 1);
        received[i] = malloc(largest + 1);
    }
    double begin = MPI_Wtime();
    for (uint64_t round = 0; all < wanted && now < limit; round++) {
        wrong += round_run(round, largest);
        unsigned mine = flips() - before;
        double passed = MPI_Wtime() - begin;
        MPI_Allreduce(&mine, &all, 1, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD);
        MPI_Allreduce(&passed, &now, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d: %u bits were wrong, %llu found, %zu wrong bytes received, %.1f s\n", rank,
           flips() - before, found(), wrong, now);
    MPI_T_finalize();
    MPI_Finalize();
    return wrong != 0;
}
