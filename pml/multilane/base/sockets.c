/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks the kernel about the sockets of btl/tcp. It opens none: a process that is out of
 * descriptors must not take its peers for dead. */
#include "base/sockets.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>

#include "common/compat/tcp.h"

/* TCP sends again after 0.2 s, 0.4 s and so on. So many repeats in a row, or so many unanswered
 * probes of a full receiver, are no accident. */
#define REPEATS_MIN 3
/* Fewer are enough where nothing at all was heard for `silence_ms`: the pauses grow with the
 * round trip time of the connection. */
#define REPEATS_FEW 2
/* Where there is no route there are no repeats: then nothing acknowledged for so long is enough. */
#define SILENCE_MS 3000u

enum trouble {
    TROUBLE_NONE,
    TROUBLE_PERHAPS,
    TROUBLE_SURE,
    TROUBLE_UNCONNECTED /* no connection, or no TCP socket */
};

static enum trouble trouble_of(int fd, uint32_t silence_ms)
{
    struct tcp_info info;
    socklen_t length = sizeof(info);
    if (fd < 0 || getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
        return TROUBLE_UNCONNECTED;
    /* The kernel gave up a connection, and the BTL tries to connect again and again. */
    if (info.tcpi_state == TCP_SYN_SENT && info.tcpi_retransmits > 0)
        return TROUBLE_SURE;
    if (info.tcpi_state != TCP_ESTABLISHED)
        return TROUBLE_UNCONNECTED;
    bool is_sure =
        info.tcpi_probes >= REPEATS_MIN || info.tcpi_retransmits >= REPEATS_MIN ||
        (info.tcpi_retransmits >= REPEATS_FEW && info.tcpi_last_ack_recv >= silence_ms) ||
        (info.tcpi_unacked > 0 && info.tcpi_last_ack_recv >= SILENCE_MS &&
         info.tcpi_last_data_sent >= SILENCE_MS);
    if (is_sure)
        return TROUBLE_SURE;
    return info.tcpi_probes || info.tcpi_retransmits ? TROUBLE_PERHAPS : TROUBLE_NONE;
}

bool socket_is_healthy(int fd, uint32_t silence_ms)
{
    enum trouble trouble = trouble_of(fd, silence_ms);
    return trouble == TROUBLE_NONE || trouble == TROUBLE_PERHAPS;
}

/* True: it may be dead; look again soon. */
static bool socket_give_up(int fd)
{
    enum trouble trouble = trouble_of(fd, UINT32_MAX); /* judge without the length of the silence */
    if (trouble == TROUBLE_SURE)
        shutdown(fd, SHUT_RDWR);
    return trouble == TROUBLE_PERHAPS;
}

/* On every tcp endpoint of the process, also those that the PML does not use. */
static bool process_give_up(const ompi_proc_t *proc)
{
    mca_bml_base_endpoint_t *endpoint = proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML];
    bool again = false;
    size_t count = endpoint ? mca_bml_base_btl_array_get_size(&endpoint->btl_send) : 0;
    for (size_t i = 0; i < count; i++) {
        const mca_bml_base_btl_t *bml = mca_bml_base_btl_array_get_index(&endpoint->btl_send, i);
        if (compat_is_tcp(bml->btl))
            again |= socket_give_up(compat_tcp_socket(bml->btl, bml->btl_endpoint));
    }
    return again;
}

/* After so many looks a suspect connection has shown what it is. */
#define LOOKS_MAX     80
#define LOOK_PAUSE_NS 50000000l

static struct sigaction before;
static bool is_ignored;

void sockets_ignore_sigpipe(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    if (!is_ignored && sigaction(SIGPIPE, &ignore, &before) == 0)
        is_ignored = true;
}

static bool is_connection(int fd)
{
    struct tcp_info info;
    socklen_t length = sizeof(info);
    return fd >= 0 && getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 &&
           info.tcpi_state != TCP_LISTEN && info.tcpi_state != TCP_CLOSE;
}

void socket_stop(const mca_btl_base_module_t *btl, const struct mca_btl_base_endpoint_t *endpoint)
{
    int fd = compat_is_tcp(btl) ? compat_tcp_socket(btl, endpoint) : -1;
    /* Where another thread of btl/tcp has closed it, the number may be the program's by now. */
    if (!is_connection(fd) || fd != compat_tcp_socket(btl, endpoint))
        return;
    sockets_ignore_sigpipe();
    shutdown(fd, SHUT_RDWR);
}

void sockets_give_up(ompi_proc_t **procs, size_t count)
{
    const struct timespec pause = {0, LOOK_PAUSE_NS};
    bool again = true;
    for (int look = 0; look < LOOKS_MAX && again; look++) {
        if (look > 0)
            nanosleep(&pause, NULL);
        again = false;
        for (size_t i = 0; i < count; i++)
            again |= process_give_up(procs[i]);
    }
}

void sockets_end(void)
{
    struct sigaction now;
    /* The program may have set another one since. */
    if (is_ignored && sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler == SIG_IGN)
        sigaction(SIGPIPE, &before, NULL);
    is_ignored = false;
}
