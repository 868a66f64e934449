/* SPDX-License-Identifier: BSD-3-Clause */
/* Who reaches a port of btl/sock and does not know the job's secret gets nothing: strangers.
 * Rank 0 is its own stranger: it finds the ports that this process listens on and calls them, while
 * messages go to and from rank 1. Some say nothing, some half a greeting, some nonsense, one what
 * looks like a greeting, and all of them a thousand times. */
#include <mpi.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    PORTS_MOST = 16,
    KINDS = 4,
    CALLS = 1000,
    FILES = 1024,
    TAG = 3,
    BYTES = 20000,
    EXCHANGES = 200
};

static int rank, failures;

static void expect(int holds, const char *what, long value)
{
    if (holds)
        return;
    failures++;
    fprintf(stderr, "strangers: rank %d: %s (%ld)\n", rank, what, value);
}

static int ports_find(struct sockaddr_in ports[PORTS_MOST])
{
    int count = 0;

    for (int fd = 3; fd < FILES && count < PORTS_MOST; fd++) {
        struct sockaddr_in at;
        socklen_t length = sizeof(at);
        int listens = 0;
        socklen_t size = sizeof(listens);
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens &&
            getsockname(fd, (struct sockaddr *) &at, &length) == 0 && at.sin_family == AF_INET)
            ports[count++] = at;
    }
    return count;
}

static int call(const struct sockaddr_in *port, int kind)
{
    unsigned char bytes[256];
    const uint64_t magic = UINT64_C(0x0a6b636f734c4d89);
    const uint32_t version = 1, hello = 2;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (const struct sockaddr *) port, sizeof(*port)) != 0) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char) rand();
    if (kind >= 2) { /* as a caller says it */
        memcpy(bytes, &magic, 8);
        memcpy(bytes + 8, &version, 4);
        memcpy(bytes + 12, &hello, 4);
    }
    if (kind > 0)
        (void) send(fd, bytes, kind == 2 ? 40 : sizeof(bytes), MSG_NOSIGNAL);
    return fd;
}

/* The two ranks say something to each other, and look for messages meanwhile. */
static void exchange_once(void)
{
    static unsigned char out[BYTES], in[BYTES];

    memset(out, 1 + rank, sizeof(out));
    MPI_Sendrecv(out, BYTES, MPI_BYTE, 1 - rank, TAG, in, BYTES, MPI_BYTE, 1 - rank, TAG,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < BYTES; i++)
        if (in[i] != 2 - rank) {
            expect(0, "a wrong byte", i);
            return;
        }
}

/* So often that all who have called are looked at. */
static void exchange(void)
{
    for (int i = 0; i < EXCHANGES; i++)
        exchange_once();
}

/* Does the other end close it without having said more than its challenge? */
static int is_closed(int fd)
{
    unsigned char bytes[1024];
    size_t came = 0;

    for (;;) {
        ssize_t count = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (count == 0)
            return came <= 128;
        if (count < 0)
            return -1; /* not yet, or reset: what was said was not read */
        came += (size_t) count;
    }
}

static void strangers_call(const struct sockaddr_in *ports, int count)
{
    static int open[FILES / 2];
    int opened = 0;

    for (int i = 0; i < CALLS; i++) {
        int fd = call(&ports[i % count], i % KINDS);
        if (fd >= 0)
            open[opened++] = fd;
        if (opened < 100 && i + 1 < CALLS)
            continue;
        exchange();
        /* A stranger that is never silent for long enough gets nothing all the same. */
        while (opened > 0) {
            expect(is_closed(open[--opened]) != 0, "a stranger was told more", i);
            close(open[opened]);
        }
    }
}

/* MPI_T's counters count from when they are opened. */
static MPI_T_pvar_session session;
static MPI_T_pvar_handle counter;

static void counter_open(void)
{
    int index, values, provided;

    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    if (MPI_T_pvar_get_index("btl_sock_strangers", MPI_T_PVAR_CLASS_COUNTER, &index) ==
            MPI_SUCCESS &&
        MPI_T_pvar_handle_alloc(session, index, NULL, &counter, &values) == MPI_SUCCESS)
        return;
    fprintf(stderr, "strangers: there is no counter btl_sock_strangers\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static unsigned long long counter_close(void)
{
    unsigned long long value = 0;

    MPI_T_pvar_read(session, counter, &value);
    MPI_T_pvar_handle_free(session, &counter);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    return value;
}

int main(int argc, char **argv)
{
    struct sockaddr_in ports[PORTS_MOST];

    MPI_Init(&argc, &argv);
    counter_open();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    exchange();
    int count = ports_find(ports);
    expect(count > 0, "it listens nowhere", count);
    srand(1);
    if (rank == 0 && count > 0) {
        strangers_call(ports, count);
    } else {
        for (int i = 0; i < CALLS / 100; i++)
            exchange();
    }
    exchange();
    unsigned long long strangers = counter_close();
    if (rank == 0) {
        expect(strangers >= CALLS / KINDS, "so many strangers were counted", (long) strangers);
        printf("strangers: %llu were closed\n", strangers);
    }
    MPI_Finalize();
    return failures != 0;
}
