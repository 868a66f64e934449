/* SPDX-License-Identifier: BSD-3-Clause */
/* Every size of message from 0 to 70,000 bytes arrives unchanged, between the ranks of pairs, or
 * round an odd number of them, in one piece and out of a strided datatype: shm_sizes [STEP
 * [refuse|hide|scarce|none-left|later HOW]]. With "refuse" the kernel begins to refuse
 * process_vm_readv and process_vm_writev when half of the sizes are done; from then on ranks in
 * fours exchange with another rank, of which no process has copied yet. With "hide" it closes the
 * process to all others from the start, as one whose file can only be executed. With "scarce" every
 * second process can have no descriptor for the first third of a second, with "none-left" never.
 * With "later" the kernel begins to refuse what refuse.h calls HOW when MPI_Init is over.
 */
#define _GNU_SOURCE
#include "test/mpi/refuse.h"

#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>

#define SIZE_MAX_BYTES 70000
#define GUARD          64

/* In a pair the other rank, in a ring the next one and the one before. */
static int receiver, sender;

static void partners_choose(int rank, int ranks, int bit)
{
    bool are_pairs = ranks % 2 == 0;

    receiver = are_pairs ? rank ^ bit : (rank + 1) % ranks;
    sender = are_pairs ? receiver : (rank + ranks - 1) % ranks;
}

static unsigned char pattern(int size, int at, int from)
{
    return (unsigned char) (size * 31 + at * 7 + (at >> 8) * 13 + from * 101 + 1);
}

/* The bytes of a message, whose first one is one of 256: made once, to be copied and compared
 * whole. */
static const unsigned char *message(int size, int from)
{
    static unsigned char *messages[256];
    unsigned char **found = &messages[pattern(size, 0, from)];

    if (!*found && (*found = malloc(SIZE_MAX_BYTES + 1)))
        for (int i = 0; i <= SIZE_MAX_BYTES; i++)
            (*found)[i] = pattern(size, i, from);
    if (!*found)
        MPI_Abort(MPI_COMM_WORLD, 2);
    return *found;
}

static long check(const unsigned char *data, int size, int from)
{
    bool same = memcmp(data, message(size, from), (size_t) size) == 0;

    for (int i = 0; !same && i < size; i++)
        if (data[i] != pattern(size, i, from)) {
            fprintf(stderr, "size %d: byte %d is %d, not %d\n", size, i, data[i],
                    pattern(size, i, from));
            return 1;
        }
    for (int i = size; i < size + GUARD; i++)
        if (data[i] != 0xee) {
            fprintf(stderr, "size %d: byte %d behind the message was written\n", size, i - size);
            return 1;
        }
    return 0;
}

static long exchange(int size, int rank, unsigned char *out, unsigned char *in)
{
    MPI_Status status;
    int count;

    memcpy(out, message(size, rank), (size_t) size);
    memset(in, 0xee, (size_t) size + GUARD);
    MPI_Sendrecv(out, size, MPI_BYTE, receiver, size, in, size + GUARD, MPI_BYTE, sender, size,
                 MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    if (count != size) {
        fprintf(stderr, "size %d: %d bytes received\n", size, count);
        return 1;
    }
    return check(in, size, sender);
}

/* Every second byte of the sender's buffer, to every third of the receiver's. */
static long exchange_strided(int size, int rank, unsigned char *out, unsigned char *in)
{
    MPI_Datatype sparse, sparser;
    long wrong = 0;

    MPI_Type_vector(size, 1, 2, MPI_BYTE, &sparse);
    MPI_Type_vector(size, 1, 3, MPI_BYTE, &sparser);
    MPI_Type_commit(&sparse);
    MPI_Type_commit(&sparser);
    for (int i = 0; i < size; i++) {
        out[2 * i] = pattern(size, i, rank);
        out[2 * i + 1] = 0x55;
    }
    memset(in, 0xee, 3 * (size_t) size + GUARD);
    MPI_Sendrecv(out, 1, sparse, receiver, 1, in, 1, sparser, sender, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (int i = 0; i < size && wrong == 0; i++)
        if (in[3 * i] != pattern(size, i, sender) ||
            (i + 1 < size && (in[3 * i + 1] != 0xee || in[3 * i + 2] != 0xee))) {
            fprintf(stderr, "strided, size %d: element %d is wrong\n", size, i);
            wrong = 1;
        }
    MPI_Type_free(&sparse);
    MPI_Type_free(&sparser);
    return wrong;
}

static struct rlimit descriptors;

static void descriptors_give(int signal_number)
{
    (void) signal_number;
    (void) setrlimit(RLIMIT_NOFILE, &descriptors);
}

/* For so long; 0: for ever. */
static int descriptors_take(int microseconds)
{
    struct itimerval later = {.it_value.tv_usec = microseconds};
    struct rlimit few;
    int next = dup(STDERR_FILENO);

    if (next < 0 || close(next) != 0 || getrlimit(RLIMIT_NOFILE, &descriptors) != 0 ||
        signal(SIGALRM, descriptors_give) == SIG_ERR || setitimer(ITIMER_REAL, &later, NULL) != 0)
        return -1;
    few = descriptors;
    few.rlim_cur = (rlim_t) next;
    return setrlimit(RLIMIT_NOFILE, &few);
}

int main(int argc, char **argv)
{
    unsigned char *out, *in;
    long wrong = 0, all = 0;
    int rank, ranks, step;
    bool refuses = argc > 2 && strcmp(argv[2], "refuse") == 0;

    if (argc > 2 && strcmp(argv[2], "hide") == 0 && process_hide() != 0) {
        perror("shm_sizes: cannot hide");
        return 1;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    partners_choose(rank, ranks, 1);
    step = argc > 1 ? atoi(argv[1]) : 1;
    out = malloc(3 * SIZE_MAX_BYTES + GUARD);
    in = malloc(3 * SIZE_MAX_BYTES + GUARD);
    if (!out || !in || ranks < 2 || step < 1) {
        fprintf(stderr, "shm_sizes: needs two ranks at least, a step of at least 1, memory\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (argc > 3 && strcmp(argv[2], "later") == 0 && refuse(argv[3]) != 0) {
        perror("shm_sizes: cannot refuse");
        MPI_Abort(MPI_COMM_WORLD, 77);
    }
    bool is_scarce = argc > 2 && strcmp(argv[2], "scarce") == 0;
    bool none_left = argc > 2 && strcmp(argv[2], "none-left") == 0;
    if ((is_scarce || none_left) && rank % 2 == 1 &&
        descriptors_take(is_scarce ? 333333 : 0) != 0) {
        perror("shm_sizes: descriptors");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int size = 0; size <= SIZE_MAX_BYTES && wrong == 0; size += step) {
        if (refuses && size / step == SIZE_MAX_BYTES / step / 2) {
            if (copy_refuse() != 0)
                MPI_Abort(MPI_COMM_WORLD, 77);
            partners_choose(rank, ranks, ranks % 4 == 0 ? 2 : 1);
        }
        wrong += exchange(size, rank, out, in);
    }
    for (int size = 1; size <= SIZE_MAX_BYTES && wrong == 0; size += size / 8 + 1)
        wrong += exchange_strided(size, rank, out, in);
    MPI_Allreduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s\n", all == 0 ? "all sizes arrived unchanged" : "messages were wrong");
    free(out);
    free(in);
    MPI_Finalize();
    return all != 0;
}
