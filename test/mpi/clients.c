/* SPDX-License-Identifier: BSD-3-Clause */
/* A server and its clients, one job after another: each floods the server, disconnects and ends.
 * What one was promised of the server's memory is there for the next one: the last one's messages
 * wait for room hardly more often than the first one's. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "suite.h"

enum { CLIENTS = 4, ROUNDS = 3, MESSAGES = 340, BYTES = 2000, TAG = 7, TOLD = 8 };

static void flood(MPI_Comm server)
{
    static unsigned char bytes[MESSAGES][BYTES];
    MPI_Request requests[MESSAGES];
    for (int i = 0; i < MESSAGES; i++) {
        memset(bytes[i], i, BYTES);
        MPI_Isend(bytes[i], BYTES, MPI_BYTE, 0, TAG, server, &requests[i]);
    }
    MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
}

static MPI_T_pvar_session session;
static MPI_T_pvar_handle handle;

/* It counts from now on. */
static int counter_open(void)
{
    int index, values;
    return MPI_T_pvar_get_index("pml_multilane_waited_messages", MPI_T_PVAR_CLASS_COUNTER,
                                &index) == MPI_SUCCESS &&
           MPI_T_pvar_session_create(&session) == MPI_SUCCESS &&
           MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &values) == MPI_SUCCESS;
}

/* Messages of this process that waited for room. */
static unsigned long long waited(void)
{
    unsigned long long count = 0;
    MPI_T_pvar_read(session, handle, &count);
    return count;
}

static void client(MPI_Comm server)
{
    unsigned long long count = 0;
    if (!counter_open()) {
        fprintf(stderr, "clients: there is no variable pml_multilane_waited_messages\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int round = 0; round < ROUNDS; round++) {
        unsigned long long before = waited();
        flood(server);
        MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, server, MPI_STATUS_IGNORE);
        count = waited() - before;
    }
    MPI_Send(&count, 1, MPI_UNSIGNED_LONG_LONG, 0, TOLD, server);
}

static int is_as_sent(const unsigned char *bytes, int number)
{
    unsigned char wanted[BYTES];
    memset(wanted, number, BYTES);
    return memcmp(bytes, wanted, BYTES) == 0;
}

static unsigned long long serve(MPI_Comm client)
{
    unsigned long long count;
    unsigned char bytes[BYTES];
    for (int round = 0; round < ROUNDS; round++) {
        usleep(100000); /* the flood is let come */
        for (int i = 0; i < MESSAGES; i++) {
            MPI_Recv(bytes, BYTES, MPI_BYTE, 0, TAG, client, MPI_STATUS_IGNORE);
            if (!is_as_sent(bytes, i)) {
                fprintf(stderr, "clients: message %d came with other contents\n", i);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
        }
        MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, client);
    }
    MPI_Recv(&count, 1, MPI_UNSIGNED_LONG_LONG, 0, TOLD, client, MPI_STATUS_IGNORE);
    return count;
}

static char program[4096];

static void room_promised_to_a_client_is_there_for_the_next(void)
{
    unsigned long long first = 0, last = 0;
    MPI_Comm other = MPI_COMM_NULL;
    char *child_arguments[] = {(char[]){"--child"}, NULL};
    for (int i = 0; i < CLIENTS; i++) {
        OK(MPI_Comm_spawn(program, child_arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other,
                          MPI_ERRCODES_IGNORE));
        last = serve(other);
        if (i == 0)
            first = last;
        fprintf(stderr, "clients: %llu of %d messages of client %d waited for room\n", last,
                MESSAGES, i);
        OK(MPI_Comm_disconnect(&other));
    }
    /* Some wait where the flood comes faster than the server tells its limits; where nothing comes
     * back of what was promised, nearly all. */
    CHECK(last <= first + MESSAGES / 4,
          "%llu messages of the last client waited, %llu of the first", last, first);
}

static int child_main(void)
{
    int provided;
    MPI_Comm server;
    MPI_Init(NULL, NULL);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Comm_get_parent(&server);
    if (server == MPI_COMM_NULL)
        MPI_Abort(MPI_COMM_WORLD, 2);
    client(server);
    MPI_Comm_disconnect(&server);
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}

static const struct suite_case cases[] = {
    {"room_promised_to_a_client_is_there_for_the_next",
     "Process Creation and Management, Releasing Connections",
     room_promised_to_a_client_is_there_for_the_next, 1},
};

int main(int argc, char **argv)
{
    if (readlink("/proc/self/exe", program, sizeof program - 1) <= 0)
        return 2;
    if (argc > 1 && strcmp(argv[1], "--child") == 0)
        return child_main();
    return suite_main(argc, argv, "clients", cases, COUNT_OF(cases), MPI_THREAD_SINGLE);
}
