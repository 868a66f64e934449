/* SPDX-License-Identifier: BSD-3-Clause */
/* What test/mpi/costs.py counts, in two ranks: the system calls of the first contact, mappings of
 * shared memory, the instructions of 8-byte sends and receives that never wait, the bytes copied to
 * send a message of 1 MiB, the writes of round trips, the system calls of looks that find nothing,
 * page faults of the start and the end.
 * "costs FILE": FILE, which is not there, tells rank 1 that all small messages have been sent.
 * "costs barriers": changes of processes in barriers of more ranks than processors. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define SMALL_MESSAGES 100 /* fewer than a ring of shared memory has room for */
#define LOOKS          1000
#define LOOKS_BEFORE   16384 /* until sock asks the kernel seldom */
#define LARGE_MESSAGES 8
#define LARGE_BYTES    (1 << 20)
#define TRIPS          100
#define TRIP_BYTES     (16 << 10)
#define BARRIERS       1000

void small_messages_send(void);
void small_messages_receive(void);
void looks_in_vain(int times);

/* Not static and not inlined: callgrind counts inside them, by their names. */
__attribute__((noinline)) void small_messages_send(void)
{
    long value = 0;

    for (int i = 0; i < SMALL_MESSAGES; i++)
        MPI_Send(&value, sizeof(value), MPI_BYTE, 1, 1, MPI_COMM_WORLD);
}

__attribute__((noinline)) void small_messages_receive(void)
{
    long value;

    for (int i = 0; i < SMALL_MESSAGES; i++)
        MPI_Recv(&value, sizeof(value), MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static long page_faults(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

static int shared_mappings(void)
{
    char line[1024];
    int count = 0;
    FILE *file = fopen("/proc/self/maps", "r");

    if (!file)
        return -1;
    while (fgets(line, sizeof(line), file))
        count += strstr(line, "memfd:") != NULL;
    fclose(file);
    return count;
}

/* A system call that does nothing and that strace shows. */
static void mark(const char *text)
{
    if (write(-1, text, strlen(text)) != -1)
        abort();
}

/* 0 under another PML. */
static unsigned long long copied_bytes(void)
{
    static MPI_T_pvar_session session;
    static MPI_T_pvar_handle handle;
    static int is_open;
    unsigned long long value = 0;
    int index, values;

    if (!is_open &&
        MPI_T_pvar_get_index("pml_multilane_copied_bytes", MPI_T_PVAR_CLASS_COUNTER, &index) ==
            MPI_SUCCESS &&
        MPI_T_pvar_session_create(&session) == MPI_SUCCESS)
        is_open = MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &values) == MPI_SUCCESS;
    if (is_open)
        MPI_T_pvar_read(session, handle, &value);
    return value;
}

static void trips_mark(char *memory, int rank)
{
    mark("trips begin");
    for (int i = 0; i < 2 * TRIPS; i++)
        if (i % 2 == rank)
            MPI_Send(memory, TRIP_BYTES, MPI_BYTE, !rank, 0, MPI_COMM_WORLD);
        else
            MPI_Recv(memory, TRIP_BYTES, MPI_BYTE, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    mark("trips end");
}

__attribute__((noinline)) void looks_in_vain(int times)
{
    int found;

    for (int i = 0; i < times; i++)
        MPI_Iprobe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
}

static void looks_mark(void)
{
    looks_in_vain(LOOKS_BEFORE);
    mark("looks begin");
    looks_in_vain(LOOKS);
    mark("looks end");
}

static long changes(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw + usage.ru_nivcsw;
}

/* How often the processors changed from one rank to another, in ten barriers. */
static void barriers_count(void)
{
    long before, all;
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < BARRIERS; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    before = changes();
    for (int i = 0; i < BARRIERS; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    before = changes() - before;
    MPI_Reduce(&before, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("ten-barriers-changes %ld\n", all * 10 / BARRIERS);
}

int main(int argc, char **argv)
{
    int provided, rank, mappings, most;
    long faults;
    char *large = malloc(LARGE_BYTES);
    unsigned long long copied, all;
    long in = 0, out = 0;

    if (argc != 2 || !large)
        return 2;
    MPI_Init(&argc, &argv);
    faults = page_faults();
    if (strcmp(argv[1], "barriers") == 0) {
        barriers_count();
        return MPI_Finalize();
    }
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    memset(large, rank, LARGE_BYTES);
    mark("contact begins");
    for (int i = 0; i < 200; i++) {
        MPI_Sendrecv(&out, sizeof(out), MPI_BYTE, !rank, 0, &in, sizeof(in), MPI_BYTE, !rank, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (i == 0)
            mark("contact ends");
    }

    if (rank == 0) {
        small_messages_send();
        close(open(argv[1], O_CREAT | O_WRONLY, 0600));
    } else {
        while (access(argv[1], F_OK) != 0)
            usleep(1000);
        small_messages_receive();
    }

    copied = copied_bytes();
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < LARGE_MESSAGES; i++) {
        if (rank == 0)
            MPI_Send(large, LARGE_BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        else
            MPI_Recv(large, LARGE_BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    looks_mark();
    copied = (copied_bytes() - copied) / LARGE_MESSAGES;
    trips_mark(large, rank);
    MPI_Reduce(&copied, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    mappings = shared_mappings();
    MPI_Reduce(&mappings, &most, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("copied-bytes %llu\nshared-mappings %d\n", all, most);
    MPI_T_finalize();
    faults -= page_faults();
    MPI_Finalize();
    faults += page_faults();
    if (rank == 0)
        printf("page faults: %ld\n", faults);
    free(large);
    return 0;
}
