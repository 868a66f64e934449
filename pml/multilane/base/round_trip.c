/* SPDX-License-Identifier: BSD-3-Clause */
/* The round trip of a connection. In a file of its own: the C library's tcp_info is older than the
 * kernel's, and the two headers exclude each other. */
#include "base/sockets.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

#define ESTABLISHED 1 /* TCP_ESTABLISHED of the C library's header */

double socket_round_trip(int fd)
{
    struct tcp_info info = {.tcpi_state = 0};
    socklen_t length = sizeof(info);
    if (fd < 0 || getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 ||
        length < offsetof(struct tcp_info, tcpi_min_rtt) + sizeof(info.tcpi_min_rtt) ||
        info.tcpi_state != ESTABLISHED || info.tcpi_min_rtt == UINT32_MAX)
        return 0;
    return 1e-6 * info.tcpi_min_rtt;
}
