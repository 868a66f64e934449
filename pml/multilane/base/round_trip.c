/* SPDX-License-Identifier: BSD-3-Clause */
/* The round trip and the repeats of a connection. In a file of its own: the C library's tcp_info is
 * older than the kernel's, and the two headers exclude each other. */
#include "base/sockets.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

#define ESTABLISHED 1 /* TCP_ESTABLISHED of the C library's header */

/* False: there is no connection, or the kernel says less than up to `end`. */
static bool info_of(int fd, struct tcp_info *info, size_t end)
{
    socklen_t length = sizeof(*info);
    return fd >= 0 && getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &length) == 0 && length >= end &&
           info->tcpi_state == ESTABLISHED;
}

double socket_round_trip(int fd)
{
    struct tcp_info info = {.tcpi_state = 0};
    size_t end = offsetof(struct tcp_info, tcpi_min_rtt) + sizeof(info.tcpi_min_rtt);
    return info_of(fd, &info, end) && info.tcpi_min_rtt != UINT32_MAX ? 1e-6 * info.tcpi_min_rtt
                                                                      : 0;
}

bool socket_repeats(int fd, uint64_t *sent, uint64_t *repeated)
{
    struct tcp_info info = {.tcpi_state = 0};
    size_t end = offsetof(struct tcp_info, tcpi_dsack_dups) + sizeof(info.tcpi_dsack_dups);
    if (!info_of(fd, &info, end))
        return false;
    *sent = info.tcpi_data_segs_out;
    *repeated = info.tcpi_total_retrans > info.tcpi_dsack_dups
                    ? info.tcpi_total_retrans - info.tcpi_dsack_dups
                    : 0;
    return true;
}
