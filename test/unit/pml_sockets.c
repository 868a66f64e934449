/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel knows of TCP connections, real ones of this process with itself: which are
 * healthy, with no descriptor left too, and that only dead ones of peers are given up at the end.
 */
#include "check.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/compat/tcp.h"
#include "base/sockets.h"

/* A connection that is being made sends again after a second, */
#define SYN_REPEATED_MS 1500
/* and a full receiver is probed after 0.2 s, 0.4 s, ... */
#define PROBED_MS 1500

#define SILENCE_MS 1000

/* Peers are told apart by their addresses. */
static const char *const address_a = "127.0.0.2", *const address_b = "127.0.0.3";

static bool is_healthy(int fd)
{
    return socket_is_healthy(fd, SILENCE_MS);
}

static void pass(unsigned milliseconds)
{
    const struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000l};
    nanosleep(&time, NULL);
}

static struct sockaddr_in address_of(int fd)
{
    struct sockaddr_in address;
    socklen_t length = sizeof(address);
    getsockname(fd, (struct sockaddr *) &address, &length);
    return address;
}

static int listen_at(const char *host, int backlog)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    inet_pton(AF_INET, host, &address.sin_addr);
    CHECK(bind(fd, (struct sockaddr *) &address, sizeof(address)) == 0, "no port at %s", host);
    CHECK(listen(fd, backlog) == 0, "there is no listener at %s", host);
    return fd;
}

/* Waits for no answer. */
static int connect_to(int listener)
{
    struct sockaddr_in address = address_of(listener);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    (void) !connect(fd, (struct sockaddr *) &address, sizeof(address));
    return fd;
}

/* Both ends of a connection with that host. */
struct pair {
    int listener, ours, theirs;
};

static struct pair pair_make(const char *host)
{
    struct pair pair = {.listener = listen_at(host, 1)};
    pair.ours = connect_to(pair.listener);
    pair.theirs = accept(pair.listener, NULL, NULL);
    return pair;
}

static void pair_close(struct pair *pair)
{
    close(pair->ours);
    close(pair->theirs);
    close(pair->listener);
}

/* A host that takes no more connections, as one that does not exist: what is sent to it is sent
 * again and again. The last socket is the one in trouble. */
#define CROWD 4
struct deaf {
    int listener, ours[CROWD];
};

static struct deaf deaf_make(const char *host)
{
    struct deaf deaf = {.listener = listen_at(host, 0)};
    for (int i = 0; i < CROWD; i++)
        deaf.ours[i] = connect_to(deaf.listener);
    return deaf;
}

static int deaf_socket(const struct deaf *deaf)
{
    return deaf->ours[CROWD - 1];
}

static void deaf_close(struct deaf *deaf)
{
    for (int i = 0; i < CROWD; i++)
        close(deaf->ours[i]);
    close(deaf->listener);
}

static int state_of(int fd)
{
    struct tcp_info info = {.tcpi_state = 0};
    socklen_t length = sizeof(info);
    getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length);
    return info.tcpi_state;
}

static void test_what_is_no_connection(void)
{
    int pipes[2], datagrams = socket(AF_INET, SOCK_DGRAM, 0), listener = listen_at(address_a, 1);
    CHECK(pipe(pipes) == 0, "no pipe");
    CHECK(!is_healthy(-1), "no descriptor");
    CHECK(!is_healthy(pipes[0]), "a pipe");
    CHECK(!is_healthy(datagrams), "a socket for datagrams");
    CHECK(!is_healthy(listener), "a socket that listens");
    close(pipes[1]);
    CHECK(!is_healthy(pipes[1]), "a closed descriptor");
    close(pipes[0]);
    close(datagrams);
    close(listener);
}

static void test_closed_by_the_peer(void)
{
    struct pair pair = pair_make(address_a);
    CHECK(is_healthy(pair.ours) && is_healthy(pair.theirs), "both ends live");
    close(pair.theirs);
    pass(10);
    CHECK(!is_healthy(pair.ours), "the process at the other end is gone");
    pair_close(&pair);
}

/* It reads nothing, until the connection holds no more; its kernel says so to each probe. */
static void test_peer_that_computes(void)
{
    static const char bytes[1 << 16];
    struct pair pair = pair_make(address_a);
    while (send(pair.ours, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
        ;
    pass(PROBED_MS);
    CHECK(is_healthy(pair.ours), "its kernel answers");
    pair_close(&pair);
}

static void test_trouble_is_of_one_connection(void)
{
    struct pair pair = pair_make(address_a);
    struct deaf deaf = deaf_make(address_b);
    CHECK(!is_healthy(deaf_socket(&deaf)), "it is not connected");
    pass(SYN_REPEATED_MS);
    CHECK(state_of(deaf_socket(&deaf)) == TCP_SYN_SENT, "state %d", state_of(deaf_socket(&deaf)));
    CHECK(!is_healthy(deaf_socket(&deaf)), "no peer answers");
    CHECK(is_healthy(pair.ours), "another host");
    pair_close(&pair);
    deaf_close(&deaf);
}

/* That is this process's own trouble. */
static void test_without_descriptors(void)
{
    struct pair pair = pair_make(address_a);
    struct rlimit before, none;
    getrlimit(RLIMIT_NOFILE, &before);
    none = before;
    none.rlim_cur = 0;
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0, "no limit can be set");
    CHECK(open("/dev/null", O_RDONLY) < 0, "a descriptor is left");
    CHECK(is_healthy(pair.ours), "the peer is as it was");
    setrlimit(RLIMIT_NOFILE, &before);
    pair_close(&pair);
}

/* A process that Open MPI has one lane to, by that socket of this BTL. */
struct process {
    mca_btl_base_component_t component;
    mca_btl_base_module_t module;
    struct compat_tcp_endpoint endpoint;
    mca_bml_base_btl_t bml;
    mca_bml_base_endpoint_t lanes;
    ompi_proc_t proc;
};

static void process_make(struct process *process, const char *btl, int socket)
{
    memset(process, 0, sizeof(*process));
    strcpy(process->component.btl_version.mca_component_name, btl);
    process->module.btl_component = &process->component;
    process->endpoint.module = &process->module;
    process->endpoint.socket = socket;
    process->bml.btl = &process->module;
    process->bml.btl_endpoint = (struct mca_btl_base_endpoint_t *) (void *) &process->endpoint;
    process->lanes.btl_send.bml_btls = &process->bml;
    process->lanes.btl_send.arr_size = 1;
    process->proc.proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML] = &process->lanes;
}

static void test_only_the_dead_of_peers_are_given_up(void)
{
    static struct process living, dead, other_btl, unmet;
    ompi_proc_t *procs[] = {&living.proc, &dead.proc, &other_btl.proc, &unmet.proc};
    struct pair pair = pair_make(address_a);
    struct deaf deaf = deaf_make(address_b);
    int own = connect_to(deaf.listener), others = connect_to(deaf.listener);
    process_make(&living, "tcp", pair.ours);
    process_make(&dead, "tcp", deaf_socket(&deaf));
    process_make(&other_btl, "uct", others);
    unmet.proc.proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML] = NULL;
    pass(SYN_REPEATED_MS);
    sockets_give_up(procs, sizeof(procs) / sizeof(procs[0]));
    CHECK(state_of(deaf_socket(&deaf)) == TCP_CLOSE, "the dead one stays");
    CHECK(is_healthy(pair.ours), "the living one is shut down");
    CHECK(state_of(own) == TCP_SYN_SENT, "a connection of the program's own is shut down");
    CHECK(state_of(others) == TCP_SYN_SENT, "what another BTL has is no socket of tcp's");
    sockets_end();
    close(own);
    close(others);
    pair_close(&pair);
    deaf_close(&deaf);
}

/* The number of one that btl/tcp has closed may be the program's by then. */
static void test_only_connections_are_stopped(void)
{
    static struct process process;
    struct pair pair = pair_make(address_a);
    int own[2], listener = listen_at(address_b, 1);
    char byte = 0;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, own) == 0, "no sockets");
    const int numbers[] = {own[0], listener, pair.ours};
    for (int i = 0; i < 3; i++) {
        process_make(&process, "tcp", numbers[i]);
        socket_stop(&process.module, process.bml.btl_endpoint);
    }
    CHECK(send(own[1], "x", 1, MSG_NOSIGNAL) == 1 && recv(own[0], &byte, 1, MSG_DONTWAIT) == 1,
          "the program's own socket is shut down");
    CHECK(state_of(listener) == TCP_LISTEN, "its listener is");
    CHECK(!is_healthy(pair.ours), "the connection stays");
    sockets_end();
    close(own[0]);
    close(own[1]);
    close(listener);
    pair_close(&pair);
}

static void test_round_trip(void)
{
    int pipes[2], unconnected = socket(AF_INET, SOCK_STREAM, 0);
    struct pair pair = pair_make(address_a);
    CHECK(pipe(pipes) == 0, "no pipe");
    (void) !send(pair.ours, "x", 1, MSG_NOSIGNAL);
    pass(10);
    double seconds = socket_round_trip(pair.ours);
    CHECK(seconds > 0 && seconds < 0.1, "%g s over loopback", seconds);
    CHECK(socket_round_trip(-1) == 0 && socket_round_trip(pipes[0]) == 0 &&
              socket_round_trip(unconnected) == 0 && socket_round_trip(pair.listener) == 0,
          "what is no connection");
    close(pipes[0]);
    close(pipes[1]);
    close(unconnected);
    pair_close(&pair);
}

static void own_action(int number)
{
    (void) number;
}

static void (*sigpipe_action(void))(int)
{
    struct sigaction now;
    CHECK(sigaction(SIGPIPE, NULL, &now) == 0, "no action");
    return now.sa_handler;
}

/* The peer, taken for lost, writes when this process has its memory for something else. */
static void test_a_stopped_connection_brings_nothing(void)
{
    static struct process lost, other_btl;
    char bytes[16] = "late";
    struct pair pair = pair_make(address_a), others = pair_make(address_b);
    process_make(&lost, "tcp", pair.ours);
    process_make(&other_btl, "uct", others.ours);
    socket_stop(&lost.module, lost.bml.btl_endpoint);
    socket_stop(&other_btl.module, other_btl.bml.btl_endpoint);
    (void) !send(pair.theirs, bytes, sizeof(bytes), MSG_NOSIGNAL);
    CHECK(send(others.theirs, bytes, sizeof(bytes), MSG_NOSIGNAL) == sizeof(bytes), "no room");
    pass(10);
    CHECK(recv(pair.ours, bytes, sizeof(bytes), MSG_DONTWAIT) <= 0, "bytes of a lost peer came");
    CHECK(recv(others.ours, bytes, sizeof(bytes), MSG_DONTWAIT) == sizeof(bytes), "another BTL");
    CHECK(write(pair.ours, bytes, 1) < 0, "and the BTL's goodbye, an error, is no signal");
    sockets_end();
    CHECK(sigpipe_action() == SIG_DFL, "what the program had for the signal is there again");
    socket_stop(&lost.module, lost.bml.btl_endpoint);
    signal(SIGPIPE, own_action);
    sockets_end();
    CHECK(sigpipe_action() == own_action, "and what it has set since stays");
    signal(SIGPIPE, SIG_DFL);
    pair_close(&pair);
    pair_close(&others);
}

int main(void)
{
    test_what_is_no_connection();
    test_closed_by_the_peer();
    test_peer_that_computes();
    test_trouble_is_of_one_connection();
    test_without_descriptors();
    test_only_the_dead_of_peers_are_given_up();
    test_only_connections_are_stopped();
    test_round_trip();
    test_a_stopped_connection_brings_nothing();
    return check_end();
}
