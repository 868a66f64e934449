// SPDX-License-Identifier: BSD-3-Clause
// Conformance, chapter Process Creation and Management: processes that were not there at the start,
// by spawn, by connect and accept, and by a socket.
#define _GNU_SOURCE
#include "suite.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const size_t sizes[] = {0, 8, 300, 5000, 40000, 700000};
static char program[4096];

// Each process of one side exchanges with each of the other, in all sizes, unexpected and posted.
static void exchange_over(MPI_Comm inter, const char *what)
{
    int rank, remote;
    OK(MPI_Comm_rank(inter, &rank));
    OK(MPI_Comm_remote_size(inter, &remote));
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        size_t bytes = sizes[s], stride = bytes + 1;
        unsigned char *out = suite_alloc(bytes), *in = suite_alloc(stride * (size_t) remote);
        MPI_Request *requests = suite_alloc(2 * (size_t) remote * sizeof *requests);
        pattern_fill(out, bytes, (uint64_t) rank);
        for (int i = 0; i < remote; i++)
            OK(MPI_Isend(out, (int) bytes, MPI_BYTE, i, (int) s, inter, &requests[i]));
        for (int i = 0; i < remote; i++)
            OK(MPI_Irecv(in + (size_t) i * stride, (int) bytes, MPI_BYTE, i, (int) s, inter,
                         &requests[remote + i]));
        OK(MPI_Waitall(2 * remote, requests, MPI_STATUSES_IGNORE));
        for (int i = 0; i < remote; i++)
            CHECK_PATTERN(in + (size_t) i * stride, bytes, (uint64_t) i, "%s, %zu bytes from %d",
                          what, bytes, i);
        free(requests);
        free(out);
        free(in);
    }
}

static void ring_over(MPI_Comm comm, const char *what)
{
    int rank, size, in = -1;
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    OK(MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &in, 1, MPI_INT,
                    (rank + size - 1) % size, 0, comm, MPI_STATUS_IGNORE));
    CHECK(in == (rank + size - 1) % size, "%s: received %d", what, in);
    int sum = 0;
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == size * (size - 1) / 2, "%s: sum %d", what, sum);
}

// What a child and its parents do together. Both call this.
static void family_talk(MPI_Comm inter, bool child)
{
    MPI_Comm merged;
    exchange_over(inter, child ? "with the parents" : "with the children");
    OK(MPI_Intercomm_merge(inter, child, &merged));
    ring_over(merged, "parents and children");
    OK(MPI_Comm_free(&merged));
    int mine = child ? suite_failures() : 0, all = 0;
    OK(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, inter));
    CHECK(child || all == 0, "the children found %d faults", all);
    OK(MPI_Comm_disconnect(&inter));
}

static int child_main(void)
{
    MPI_Comm parent;
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &suite.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &suite.size);
    MPI_Comm_get_parent(&parent);
    ring_over(MPI_COMM_WORLD, "among the children");
    if (parent != MPI_COMM_NULL)
        family_talk(parent, true);
    MPI_Finalize();
    return suite_failures() ? 1 : 0;
}

enum { LEAVING_MESSAGES = 50, LEAVING_BYTES = 8000, LEAVING_TAG = 3 };

static unsigned char leaving[LEAVING_MESSAGES][LEAVING_BYTES];

// Sends and ends, with a tool still open, and waits for no parent.
static int leaving_main(void)
{
    MPI_Comm parent;
    int provided;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Init(NULL, NULL);
    MPI_Comm_get_parent(&parent);
    for (int i = 0; i < LEAVING_MESSAGES; i++) {
        memset(leaving[i], i + 1, LEAVING_BYTES);
        MPI_Send(leaving[i], LEAVING_BYTES, MPI_BYTE, 0, LEAVING_TAG, parent);
    }
    MPI_Finalize();
    return 0;
}

static void spawn_children(int count)
{
    MPI_Comm inter = MPI_COMM_NULL;
    char *child_arguments[] = {(char[]){"--child"}, NULL};
    int codes[8] = {0};
    OK(MPI_Comm_spawn(program, child_arguments, count, MPI_INFO_NULL, 0, suite.comm, &inter,
                      codes));
    if (inter == MPI_COMM_NULL)
        return;
    for (int i = 0; i < count; i++)
        CHECK(codes[i] == MPI_SUCCESS, "child %d: code %d", i, codes[i]);
    family_talk(inter, false);
}

static void spawned_processes_talk_to_their_parents(void)
{
    spawn_children(1);
    spawn_children(2);
}

static void spawn_again_after_disconnect(void)
{
    for (int i = 0; i < 3; i++)
        spawn_children(1);
}

// Children that have disconnected may end; their parents go on, and miss none. Thorough: for as
// long as it takes to find a silent process lost.
static void parents_outlive_their_children(void)
{
    const double most_s = suite.thorough ? 5 : 0.1;
    int found = 0;
    spawn_children(1);
    double begin = MPI_Wtime();
    while (MPI_Wtime() - begin < most_s)
        OK(MPI_Iprobe(MPI_ANY_SOURCE, 1, suite.comm, &found, MPI_STATUS_IGNORE));
    CHECK(!found, "a message came that was not sent");
    ring_over(suite.comm, "the parents");
}

// Children may end without MPI_Comm_disconnect, while their parents compute. What they have sent
// arrives, and the parents go on, for as long as it takes to find that a process is gone.
static void children_leave_without_disconnect(void)
{
    const double most_s = 4;
    char *child_arguments[] = {(char[]){"--leaving"}, NULL};
    MPI_Comm inter = MPI_COMM_NULL;
    int found = 0;
    if (!suite.thorough) {
        suite_skip("only with --thorough, over lanes that wait until what they sent is there");
        return;
    }
    OK(MPI_Comm_spawn(program, child_arguments, 1, MPI_INFO_NULL, 0, suite.comm, &inter,
                      MPI_ERRCODES_IGNORE));
    usleep(1000000);
    for (int i = 0; suite.rank == 0 && inter != MPI_COMM_NULL && i < LEAVING_MESSAGES; i++) {
        OK(MPI_Recv(leaving[i], LEAVING_BYTES, MPI_BYTE, 0, LEAVING_TAG, inter, MPI_STATUS_IGNORE));
        CHECK(leaving[i][0] == i + 1 && leaving[i][LEAVING_BYTES - 1] == i + 1, "message %d", i);
    }
    double begin = MPI_Wtime();
    while (MPI_Wtime() - begin < most_s)
        OK(MPI_Iprobe(MPI_ANY_SOURCE, 1, suite.comm, &found, MPI_STATUS_IGNORE));
    ring_over(suite.comm, "the parents of one that left");
    if (inter != MPI_COMM_NULL)
        OK(MPI_Comm_free(&inter));
}

static void spawn_from_one_process(void)
{
    MPI_Comm inter = MPI_COMM_NULL;
    char *child_arguments[] = {(char[]){"--child"}, NULL};
    if (suite.rank == 0) {
        OK(MPI_Comm_spawn(program, child_arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter,
                          MPI_ERRCODES_IGNORE));
        if (inter != MPI_COMM_NULL)
            family_talk(inter, false);
    }
    ring_over(suite.comm, "the parents beside it");
}

static void spawn_multiple_makes_one_world(void)
{
    MPI_Comm inter = MPI_COMM_NULL;
    char *commands[] = {program, program};
    if (suite_library_is(5, 0, 0)) {
        suite_skip("5.0's prterun crashes when a program calls MPI_Comm_spawn_multiple");
        return;
    }
    char *one[] = {(char[]){"--child"}, NULL}, **child_arguments[] = {one, one};
    OK(MPI_Comm_spawn_multiple(2, commands, child_arguments, (int[]){1, 1},
                               (MPI_Info[]){MPI_INFO_NULL, MPI_INFO_NULL}, 0, suite.comm, &inter,
                               MPI_ERRCODES_IGNORE));
    if (inter == MPI_COMM_NULL)
        return;
    int remote = 0;
    OK(MPI_Comm_remote_size(inter, &remote));
    CHECK(remote == 2, "%d children", remote);
    family_talk(inter, false);
}

static void connect_and_accept_join_two_halves(void)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm half, inter;
    int side = suite.rank % 2;
    OK(MPI_Comm_split(suite.comm, side, suite.rank, &half));
    OK(MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN));
    for (int round = 0; round < 2; round++) {
        if (suite.rank == 0) {
            OK(MPI_Open_port(MPI_INFO_NULL, port));
            OK(MPI_Send(port, sizeof port, MPI_CHAR, 1, 0, suite.comm));
        } else if (suite.rank == 1) {
            OK(MPI_Recv(port, sizeof port, MPI_CHAR, 0, 0, suite.comm, MPI_STATUS_IGNORE));
        }
        if (side == 0)
            OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter));
        else
            OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter));
        exchange_over(inter, "over accept and connect");
        OK(MPI_Comm_disconnect(&inter));
        if (suite.rank == 0)
            OK(MPI_Close_port(port));
    }
    OK(MPI_Comm_free(&half));
}

// A connected pair of sockets between ranks 0 and 1, or -1.
static int socket_between_two(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), port = 0;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (suite.rank == 0) {
        CHECK(bind(fd, (struct sockaddr *) &address, length) == 0 && listen(fd, 1) == 0,
              "no socket to listen on");
        getsockname(fd, (struct sockaddr *) &address, &length);
        port = address.sin_port;
        OK(MPI_Send(&port, 1, MPI_INT, 1, 0, suite.comm));
        int listening = fd;
        fd = accept(listening, NULL, NULL);
        close(listening);
    } else {
        OK(MPI_Recv(&port, 1, MPI_INT, 0, 0, suite.comm, MPI_STATUS_IGNORE));
        address.sin_port = (in_port_t) port;
        CHECK(connect(fd, (struct sockaddr *) &address, length) == 0, "cannot connect");
    }
    return fd;
}

static void a_socket_joins_two_processes(void)
{
    MPI_Comm inter = MPI_COMM_NULL;
    if (suite.rank < 2) {
        int fd = socket_between_two();
        OK(MPI_Comm_join(fd, &inter));
        if (inter != MPI_COMM_NULL) {
            exchange_over(inter, "over a joined socket");
            OK(MPI_Comm_disconnect(&inter));
        }
        close(fd);
    }
    ring_over(suite.comm, "the others beside it");
}

#define SPAWN     "Process Creation and Management, Process Manager Interface"
#define ESTABLISH "Process Creation and Management, Establishing Communication"

static const struct suite_case cases[] = {
    {"spawned_processes_talk_to_their_parents", SPAWN, spawned_processes_talk_to_their_parents, 1},
    {"spawn_from_one_process", SPAWN, spawn_from_one_process, 1},
    {"spawn_again_after_disconnect", SPAWN, spawn_again_after_disconnect, 1},
    {"parents_outlive_their_children", SPAWN, parents_outlive_their_children, 1},
    {"children_leave_without_disconnect", SPAWN, children_leave_without_disconnect, 1},
    {"spawn_multiple_makes_one_world", SPAWN, spawn_multiple_makes_one_world, 1},
    {"connect_and_accept_join_two_halves", ESTABLISH, connect_and_accept_join_two_halves, 2},
    {"a_socket_joins_two_processes",
     "Process Creation and Management, Another Way to Establish Communication",
     a_socket_joins_two_processes, 2},
};

int main(int argc, char **argv)
{
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0)
        return 2;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--child") == 0)
            return child_main();
        else if (strcmp(argv[i], "--leaving") == 0)
            return leaving_main();
    return suite_main(argc, argv, "dynamic", cases, COUNT_OF(cases), MPI_THREAD_SINGLE);
}
