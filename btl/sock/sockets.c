/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets: made, listened to, watched and closed. */
#include "btl/sock/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Connections without traffic: firewalls forget them, and hosts die without a word. They are asked
 * at the latest after so long, and sooner where btl_sock_lost_s is shorter. */
#define KEEPALIVE_IDLE_S 30
#define KEEPALIVE_PROBES 3
#define KEEPALIVE_PART   3 /* the pause between probes is that part of it */
/* Until it is greeted nothing else tells of a connection whether the other end is in reach: its
 * process may compute, but its kernel answers. */
#define CALL_IDLE_S    1
#define CALL_ANSWER_MS 3000 /* some probes: one may get lost */

/* From linux/in.h, which cannot be included beside netinet/in.h. */
#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

/* So often in a row one packet is repeated in vain though others get through: 3 s or more. */
#define REPEATS_MOST 4

/* What was sent longer ago says nothing of what comes next. */
#define DELAY_FRESH_MS 5

static int watch(struct sock_socket *socket, int operation, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = socket};

    return epoll_ctl(sock.poll_fd, operation, socket->fd, &event);
}

struct sock_socket *sock_socket_new(int fd, enum socket_role role, struct sock_module *module,
                                    sock_peer_t *peer)
{
    struct sock_socket *made = calloc(1, sizeof(*made));

    if (!made)
        return NULL;
    OBJ_CONSTRUCT(&made->super, opal_list_item_t);
    made->fd = fd;
    made->role = (uint8_t) role;
    made->module = module;
    made->peer = peer;
    made->since_ms = sock_now_ms();
    if (watch(made, EPOLL_CTL_ADD, role == ROLE_CALLER ? EPOLLOUT : EPOLLIN) != 0) {
        free(made);
        return NULL;
    }
    if (role != ROLE_LISTENER)
        atomic_store_explicit(&sock.has_called, true, memory_order_relaxed);
    sock_expect();
    return made;
}

void sock_socket_watch(struct sock_socket *socket, bool writes)
{
    if (writes)
        sock_expect();
    /* It cannot fail for a socket that is watched already. */
    (void) watch(socket, EPOLL_CTL_MOD, EPOLLIN | (writes ? EPOLLOUT : 0u));
}

void sock_socket_close(struct sock_socket *socket)
{
    /* Where a child of fork has the descriptor too, closing it ends no events. */
    (void) epoll_ctl(sock.poll_fd, EPOLL_CTL_DEL, socket->fd, NULL);
    close(socket->fd);
    socket->fd = -1;
    socket->role = ROLE_CLOSED;
    socket->peer = NULL;
    opal_list_append(&sock.closed, &socket->super);
}

void sock_socket_end(struct sock_socket *socket)
{
    shutdown(socket->fd, SHUT_WR);
    sock_socket_watch(socket, false); /* it can always be written now, and fails */
    socket->keyed_bytes = 0;
}

void sock_sockets_free(void)
{
    opal_list_item_t *socket;

    while ((socket = opal_list_remove_first(&sock.closed)))
        free(socket);
}

static int idle_s(void)
{
    return sock.lost_s < 2 * KEEPALIVE_IDLE_S ? (sock.lost_s + 1) / 2 : KEEPALIVE_IDLE_S;
}

/* Options without which a connection works all the same. */
static void options_set(int fd, bool is_call)
{
    const int idle = is_call ? CALL_IDLE_S : idle_s();
    const struct {
        int level, name, value;
    } options[] = {{IPPROTO_TCP, TCP_NODELAY, 1},
                   {SOL_SOCKET, SO_KEEPALIVE, 1},
                   {IPPROTO_TCP, TCP_USER_TIMEOUT, is_call ? CALL_ANSWER_MS : 0},
                   {IPPROTO_TCP, TCP_KEEPIDLE, idle},
                   {IPPROTO_TCP, TCP_KEEPINTVL, (idle + 2) / KEEPALIVE_PART},
                   {IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES}};

    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        (void) setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                          sizeof(options[i].value));
}

bool sock_is_exhausted(int error)
{
    if (error != EMFILE && error != ENFILE && error != ENOMEM && error != ENOBUFS)
        return false;
    SAY_ONCE(SOCK_SAY,
             "no connection can be made or accepted now: %s. They are tried again and again, "
             "and messages take other lanes or wait%s.",
             strerror(error), error == EMFILE ? " (ulimit -n)" : "");
    return true;
}

int sock_spare_open(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int socket_open(const struct sock_address *address, bool is_call)
{
    int fd = socket(address->family == 4 ? AF_INET : AF_INET6,
                    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd >= 0)
        options_set(fd, is_call);
    return fd;
}

void sock_socket_greeted(const struct sock_socket *socket)
{
    options_set(socket->fd, false);
}

/* Leaves errno as it was. */
static void close_quietly(int fd)
{
    int why = errno;

    if (fd >= 0)
        close(fd);
    errno = why;
}

bool sock_listen(struct sock_module *module, struct sock_address *address, struct error_text *why)
{
    struct sockaddr_storage at;
    socklen_t length = sock_address_fill(address, false, &at);
    int fd = socket_open(address, false);

    if (fd < 0 || bind(fd, (struct sockaddr *) &at, length) != 0 || listen(fd, SOMAXCONN) != 0 ||
        getsockname(fd, (struct sockaddr *) &at, &length) != 0 ||
        !(module->listener = sock_socket_new(fd, ROLE_LISTENER, module, NULL))) {
        fail_with(why, "%s", strerror(errno));
        close_quietly(fd);
        return false;
    }
    address->port = address->family == 4 ? ((struct sockaddr_in *) &at)->sin_port
                                         : ((struct sockaddr_in6 *) &at)->sin6_port;
    return true;
}

struct sock_socket *sock_socket_call(sock_peer_t *peer)
{
    const struct sock_address *ours = sock_module_address(peer->module);
    struct sockaddr_storage from, to;
    socklen_t from_length = sock_address_fill(ours, false, &from);
    socklen_t to_length = sock_address_fill(&peer->theirs, true, &to);
    struct sock_socket *made = NULL;
    int fd = socket_open(ours, true), on = 1;

    if (fd >= 0) /* of IPv6 too */
        (void) setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
    if (fd >= 0 && bind(fd, (struct sockaddr *) &from, from_length) == 0 &&
        (connect(fd, (struct sockaddr *) &to, to_length) == 0 || errno == EINPROGRESS))
        made = sock_socket_new(fd, ROLE_CALLER, peer->module, peer);
    if (!made)
        close_quietly(fd);
    return made;
}

/* --- greetings --- */

int sock_socket_hear(struct sock_socket *socket)
{
    ssize_t count = recv(socket->fd, (unsigned char *) &socket->heard + socket->heard_bytes,
                         sizeof(socket->heard) - socket->heard_bytes, MSG_DONTWAIT);

    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (count <= 0)
        return -1;
    socket->heard_bytes += (size_t) count;
    if (socket->heard_bytes < sizeof(socket->heard))
        return 0;
    socket->heard_bytes = 0;
    return 1;
}

bool sock_socket_say(struct sock_socket *socket, const struct greeting *greeting)
{
    /* The first bytes of a connection find room. */
    return send(socket->fd, greeting, sizeof(*greeting), MSG_DONTWAIT | MSG_NOSIGNAL) ==
           (ssize_t) sizeof(*greeting);
}

/* --- what the kernel knows --- */

static bool info_of(const struct sock_socket *socket, struct tcp_info *info)
{
    socklen_t length = sizeof(*info);

    memset(info, 0, sizeof(*info));
    return getsockopt(socket->fd, IPPROTO_TCP, TCP_INFO, info, &length) == 0;
}

/* A receiver that computes acknowledges all the same: its kernel does. One that has no room left
 * does so as well, and answers the probes (tcpi_probes counts those that it did not). */
bool sock_socket_is_cut(const struct sock_socket *socket, bool *all_there)
{
    struct tcp_info info;
    bool known = info_of(socket, &info);

    *all_there = !known || info.tcpi_unacked == 0;
    bool is_silent = info.tcpi_last_ack_recv > 200;
    return known && (info.tcpi_retransmits >= (is_silent ? 2 : REPEATS_MOST) ||
                     (info.tcpi_probes >= 2 && is_silent));
}

double sock_socket_round_trip_s(const struct sock_socket *socket)
{
    struct tcp_info info;

    if (!info_of(socket, &info) || info.tcpi_min_rtt == 0 || info.tcpi_min_rtt == UINT32_MAX)
        return 0;
    return info.tcpi_min_rtt * 1e-6;
}

double sock_socket_delay_s(const struct sock_socket *socket)
{
    struct tcp_info info;

    if (!info_of(socket, &info) || info.tcpi_min_rtt == UINT32_MAX)
        return 0;
    return 0.5e-6 * (info.tcpi_last_data_sent < DELAY_FRESH_MS ? info.tcpi_rtt : info.tcpi_min_rtt);
}

void sock_socket_count(const struct sock_socket *socket, struct sock_counts *counts)
{
    struct tcp_info info;

    if (!info_of(socket, &info))
        return;
    counts->arrived += info.tcpi_bytes_acked;
    counts->busy_us += info.tcpi_busy_time;
    counts->halted_us += info.tcpi_rwnd_limited;
}

/* Less those that the other end had already: a busy processor answers late. */
bool sock_socket_repeats(const struct sock_socket *socket, uint64_t *sent, uint64_t *repeated)
{
    struct tcp_info info;

    if (!info_of(socket, &info))
        return false;
    *sent = info.tcpi_data_segs_out;
    *repeated = info.tcpi_total_retrans > info.tcpi_dsack_dups
                    ? info.tcpi_total_retrans - info.tcpi_dsack_dups
                    : 0;
    return true;
}
