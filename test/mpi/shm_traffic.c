/* SPDX-License-Identifier: BSD-3-Clause */
/* All ranks send messages of random sizes to all others at once, for a given number of seconds;
 * each is checked, in order. Any number of ranks, also more than processors. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGES 8 /* to each rank in a round */

static uint32_t random_next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Both ends compute it: most are small, some are as long as a rendezvous needs. */
static int size_of(unsigned round, int from, int to, int index, int longest)
{
    uint32_t state = round * 2654435761u + (uint32_t) from * 97u + (uint32_t) to * 7919u +
                     (uint32_t) index * 131071u;
    int bits;

    random_next(&state);
    bits = (int) (random_next(&state) % 21);
    return (int) (random_next(&state) % (1u << bits)) % (longest + 1);
}

static unsigned char byte_of(unsigned round, int from, int to, int index, int at)
{
    return (unsigned char) (round * 3 +
                            (unsigned) (from * 5 + to * 11 + index * 17 + at * 7 + (at >> 9)));
}

static long round_check(unsigned round, int rank, int ranks, int longest, unsigned char *in,
                        const MPI_Status *statuses)
{
    long wrong = 0;

    for (int n = 0; n < ranks * MESSAGES; n++) {
        int from = n / MESSAGES, index = n % MESSAGES, count;
        int size = size_of(round, from, rank, index, longest);
        unsigned char *data = in + (size_t) n * (size_t) longest;

        MPI_Get_count(&statuses[n], MPI_BYTE, &count);
        wrong += count != size;
        for (int at = 0; at < size; at++)
            if (data[at] != byte_of(round, from, rank, index, at)) {
                fprintf(stderr, "round %u, from %d to %d, message %d of %d bytes: byte %d\n", round,
                        from, rank, index, size, at);
                wrong++;
                break;
            }
        if (count != size)
            fprintf(stderr, "round %u, from %d to %d, message %d: %d bytes, not %d\n", round, from,
                    rank, index, count, size);
    }
    return wrong;
}

static long round_run(unsigned round, int rank, int ranks, int longest, unsigned char *out,
                      unsigned char *in, MPI_Request *requests, MPI_Status *statuses)
{
    int n = 0;

    for (int from = 0; from < ranks; from++)
        for (int index = 0; index < MESSAGES; index++, n++)
            MPI_Irecv(in + (size_t) n * (size_t) longest, longest, MPI_BYTE, from, 1,
                      MPI_COMM_WORLD, &requests[n]);
    for (int to = 0; to < ranks; to++)
        for (int index = 0; index < MESSAGES; index++, n++) {
            int size = size_of(round, rank, to, index, longest);
            unsigned char *data = out + (size_t) (n - ranks * MESSAGES) * (size_t) longest;

            for (int at = 0; at < size; at++)
                data[at] = byte_of(round, rank, to, index, at);
            MPI_Isend(data, size, MPI_BYTE, to, 1, MPI_COMM_WORLD, &requests[n]);
        }
    MPI_Waitall(n, requests, statuses);
    return round_check(round, rank, ranks, longest, in, statuses);
}

int main(int argc, char **argv)
{
    int rank, ranks, longest, go_on = 1;
    double seconds, start;
    long wrong = 0, all = 0;
    unsigned round = 0;
    size_t bytes;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    seconds = argc > 1 ? atof(argv[1]) : 5;
    longest = ranks <= 4 ? 1 << 20 : ranks <= 16 ? 1 << 16 : 1 << 14;
    bytes = (size_t) ranks * MESSAGES * (size_t) longest;
    unsigned char *out = malloc(bytes), *in = malloc(bytes);
    MPI_Request *requests = malloc(2 * (size_t) ranks * MESSAGES * sizeof(*requests));
    MPI_Status *statuses = malloc(2 * (size_t) ranks * MESSAGES * sizeof(*statuses));
    if (!out || !in || !requests || !statuses)
        MPI_Abort(MPI_COMM_WORLD, 2);
    start = MPI_Wtime();
    while (go_on) {
        wrong += round_run(round++, rank, ranks, longest, out, in, requests, statuses);
        go_on = MPI_Wtime() - start < seconds;
        MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    MPI_Allreduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%u rounds of %d ranks: %ld messages wrong\n", round, ranks, all);
    free(out);
    free(in);
    free(requests);
    free(statuses);
    MPI_Finalize();
    return all != 0;
}
