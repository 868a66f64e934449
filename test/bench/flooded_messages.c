/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank flooded by all others: flooded_messages BYTES COUNT. Each rank sends COUNT messages to
 * rank 0 and then waits for all of them; rank 0 receives them in windows, and checks each. What is
 * asked is whether the job ends: test/bench/flooded starts it many times. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG = 1, WINDOW = 64, KEY_BYTES = 16 };

static int rank, ranks, bytes, count;

static void *buffer(size_t size)
{
    void *memory = malloc(size);

    if (NULL == memory) {
        fprintf(stderr, "flooded_messages: no memory for %zu bytes\n", size);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return memory;
}

static void key_of(unsigned char *key, int from, int number)
{
    uint64_t words[2] = {(uint64_t) from, (uint64_t) number};

    memcpy(key, words, KEY_BYTES);
}

static void fill(unsigned char *message, int number)
{
    memset(message, number & 255, (size_t) bytes);
    key_of(message, rank, number);
    key_of(message + bytes - KEY_BYTES, rank, number);
}

static int is_right(const unsigned char *message, int from, int number)
{
    unsigned char key[KEY_BYTES];

    key_of(key, from, number);
    return 0 == memcmp(message, key, KEY_BYTES) &&
           0 == memcmp(message + bytes - KEY_BYTES, key, KEY_BYTES);
}

static void all_send(void)
{
    MPI_Request *requests = buffer((size_t) count * sizeof(*requests));
    unsigned char *messages = buffer((size_t) count * (size_t) bytes);

    for (int i = 0; i < count; i++) {
        fill(messages + (size_t) i * (size_t) bytes, i);
        MPI_Isend(messages + (size_t) i * (size_t) bytes, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD,
                  &requests[i]);
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    free(messages);
    free(requests);
}

/* The messages of every rank in turn; how many of these are wrong. */
static int window_receive(unsigned char *messages, int first, int last)
{
    MPI_Request requests[WINDOW];
    int wrong = 0;

    for (int i = first; i < last; i++)
        MPI_Irecv(messages + (size_t) (i - first) * (size_t) bytes, bytes, MPI_BYTE,
                  1 + i % (ranks - 1), TAG, MPI_COMM_WORLD, &requests[i - first]);
    MPI_Waitall(last - first, requests, MPI_STATUSES_IGNORE);
    for (int i = first; i < last; i++)
        wrong += !is_right(messages + (size_t) (i - first) * (size_t) bytes, 1 + i % (ranks - 1),
                           i / (ranks - 1));
    return wrong;
}

static int all_receive(void)
{
    unsigned char *messages = buffer((size_t) WINDOW * (size_t) bytes);
    int all = count * (ranks - 1), wrong = 0;

    for (int first = 0; first < all; first += WINDOW)
        wrong += window_receive(messages, first, first + WINDOW < all ? first + WINDOW : all);
    printf("flooded: %d messages of %d bytes, %d wrong\n", all, bytes, wrong);
    fflush(stdout);
    free(messages);
    return wrong;
}

int main(int argc, char **argv)
{
    int wrong = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    bytes = argc == 3 ? atoi(argv[1]) : 0;
    count = argc == 3 ? atoi(argv[2]) : 0;
    if (ranks < 2 || bytes < 2 * KEY_BYTES || count < 1) {
        fprintf(stderr, "flooded_messages: it needs 2 ranks, and BYTES (32 or more) COUNT\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (0 == rank)
        wrong = all_receive();
    else
        all_send();
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0 != wrong;
}
