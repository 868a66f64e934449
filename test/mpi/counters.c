/* SPDX-License-Identifier: BSD-3-Clause */
/* That the PML's variables of MPI_T exist and count what was sent and received, by protocol and by
 * lane. Two ranks; every lane is named by an argument. With the argument "backlog": that a receiver
 * which finds many messages waiting takes one after the other, each when its receive is posted.
 * With "tool", one process: that a tool which opens and closes MPI_T again and again does not grow.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST  64
#define SMALL 8
#define LARGE 300000
#define EACH  10

/* More than a cache line's worth each, eager, and together less than what a lane holds. */
#define BACKLOG_BYTES 8000
#define BACKLOG       12

static int rank, failures;

struct variable {
    char name[128];
    MPI_T_pvar_handle handle;
};

static MPI_T_pvar_session session;
static struct variable variables[MOST];
static int variable_count;

/* Opens every variable of ours: MPI_T's counters count from then on. */
static void variables_open(void)
{
    int count;
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_get_num(&count);
    for (int i = 0; i < count && variable_count < MOST; i++) {
        struct variable *variable = &variables[variable_count];
        int length = sizeof(variable->name), verbosity, class, binding, readonly, continuous;
        int atomic, values;
        MPI_Datatype type;
        MPI_T_enum enumeration;
        if (MPI_T_pvar_get_info(i, variable->name, &length, &verbosity, &class, &type, &enumeration,
                                NULL, NULL, &binding, &readonly, &continuous,
                                &atomic) != MPI_SUCCESS ||
            strncmp(variable->name, "pml_multilane_", 14) != 0)
            continue;
        if (MPI_T_pvar_handle_alloc(session, i, NULL, &variable->handle, &values) == MPI_SUCCESS)
            variable_count++;
    }
}

static unsigned long long value_of(const struct variable *variable)
{
    unsigned long long value = 0;
    MPI_T_pvar_read(session, variable->handle, &value);
    return value;
}

static void expect(const char *what, unsigned long long is, unsigned long long wanted)
{
    if (is == wanted)
        return;
    fprintf(stderr, "rank %d: %s: %llu, not %llu\n", rank, what, is, wanted);
    failures++;
}

static unsigned long long value_named(const char *name)
{
    for (int i = 0; i < variable_count; i++)
        if (strcmp(variables[i].name, name) == 0)
            return value_of(&variables[i]);
    fprintf(stderr, "rank %d: there is no variable %s\n", rank, name);
    failures++;
    return 0;
}

static int is_protocol(const char *name)
{
    return strstr(name, "_eager_") || strstr(name, "_rndv_");
}

static int is_lane(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        size_t at = strlen(name) - strlen(argv[i]);
        if (at < strlen(name) && strcmp(name + at, argv[i]) == 0)
            return 1;
    }
    return 0;
}

static unsigned long long sum_of(const char *prefix, int by_lane, int argc, char **argv)
{
    unsigned long long sum = 0;
    for (int i = 0; i < variable_count; i++) {
        const char *name = variables[i].name;
        if (strncmp(name, prefix, strlen(prefix)) == 0 &&
            (by_lane ? is_lane(name, argc, argv) : is_protocol(name)))
            sum += value_of(&variables[i]);
    }
    return sum;
}

/* The messages that this process sends are those counted: nothing else is sent meanwhile. */
static void sender(int argc, char **argv)
{
    char *buffer = calloc(1, LARGE);
    variables_open();
    for (int i = 0; i < EACH; i++) {
        MPI_Send(buffer, SMALL, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        MPI_Send(buffer, LARGE, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
    }
    expect("messages by protocol", sum_of("pml_multilane_messages_", 0, argc, argv), 2 * EACH);
    expect("bytes by protocol", sum_of("pml_multilane_bytes_", 0, argc, argv),
           (unsigned long long) EACH * (SMALL + LARGE));
    expect("messages by lane", sum_of("pml_multilane_messages_", 1, argc, argv), 2 * EACH);
    expect("bytes by lane", sum_of("pml_multilane_bytes_", 1, argc, argv),
           (unsigned long long) EACH * (SMALL + LARGE));
    expect("bad headers", value_named("pml_multilane_bad_headers"), 0);
    MPI_Request request; /* by rendezvous it ends when it is received, after the other one */
    MPI_Isend(buffer, SMALL, MPI_BYTE, 1, 3, MPI_COMM_WORLD, &request);
    MPI_Send(buffer, SMALL, MPI_BYTE, 1, 4, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(buffer);
}

static void receiver(void)
{
    char *buffer = calloc(1, LARGE);
    for (int i = 0; i < EACH; i++) {
        MPI_Recv(buffer, SMALL, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(buffer, LARGE, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    variables_open();
    /* The one with tag 3 comes first, before it has a receive; if it was here already, then its
     * count began before ours. */
    MPI_Recv(buffer, SMALL, MPI_BYTE, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    unsigned long long unexpected = value_named("pml_multilane_unexpected_messages");
    if (unexpected > 2)
        expect("unexpected messages", unexpected, 1);
    MPI_Recv(buffer, SMALL, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect("early messages", value_named("pml_multilane_early_messages"), 0);
    expect("bad headers", value_named("pml_multilane_bad_headers"), 0);
    expect("messages of a process that sends none", sum_of("pml_multilane_messages_", 0, 0, NULL),
           0);
    free(buffer);
}

static void backlog_send(void)
{
    char *buffer = calloc(1, BACKLOG_BYTES);
    for (int i = 0; i < BACKLOG; i++)
        MPI_Send(buffer, BACKLOG_BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    free(buffer);
}

static void backlog_receive(void)
{
    char *buffer = calloc(1, BACKLOG_BYTES);
    variables_open();
    usleep(200000);
    for (int i = 0; i < BACKLOG; i++)
        MPI_Recv(buffer, BACKLOG_BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    /* The first may have come before the counters were opened, or with what came before it. */
    unsigned long long unexpected = value_named("pml_multilane_unexpected_messages");
    if (unexpected > 1)
        expect("unexpected messages of a backlog", unexpected, 0);
    free(buffer);
}

static long resident_kib(void)
{
    char line[256];
    long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof(line), file))
        (void) sscanf(line, "VmRSS: %ld", &kib);
    if (file)
        fclose(file);
    return kib;
}

/* Open MPI itself takes about 1 KiB a time. */
static int tool(void)
{
    const int times = 8, most_kib = 50;
    long before = 0;
    for (int i = 0, provided; i < 2 * times; i++) {
        if (i == times)
            before = resident_kib();
        MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
        MPI_T_finalize();
    }
    long grown_kib = (resident_kib() - before) / times;
    printf("counters: %ld KiB a time\n", grown_kib);
    return before == 0 || grown_kib > most_kib;
}

int main(int argc, char **argv)
{
    int provided, all;
    if (argc > 1 && strcmp(argv[1], "tool") == 0)
        return tool();
    int is_backlog = argc > 1 && strcmp(argv[1], "backlog") == 0;
    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        is_backlog ? backlog_send() : sender(argc, argv);
    else if (rank == 1)
        is_backlog ? backlog_receive() : receiver();
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && all == 0)
        printf("counters: all as sent\n");
    MPI_T_finalize();
    MPI_Finalize();
    return all != 0;
}
