/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks the kernel about TCP connections. A BTL does not tell which sockets are its own, let alone
 * toward whom: so all of this process count, and one in trouble is enough. */
#include "sockets.h"

#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

/* A connection sends again after 0.2 s, 0.4 s, ... so that so many times in a row, or so many
 * unanswered probes of a full receiver, are no accident. */
#define REPEATS_MIN 3
/* Or there was no route to send again over: nothing was acknowledged for so long. */
#define SILENCE_MS 3000u

static bool is_in_trouble(int fd)
{
    int type;
    struct tcp_info info;
    socklen_t length = sizeof(type);
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM)
        return false;
    length = sizeof(info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 ||
        info.tcpi_state != TCP_ESTABLISHED)
        return false;
    return info.tcpi_probes >= REPEATS_MIN || info.tcpi_retransmits >= REPEATS_MIN ||
           (info.tcpi_unacked > 0 && info.tcpi_last_ack_recv >= SILENCE_MS &&
            info.tcpi_last_data_sent >= SILENCE_MS);
}

bool sockets_in_trouble(void)
{
    DIR *folder = opendir("/proc/self/fd");
    bool found = false;
    struct dirent *entry;
    if (!folder)
        return true; /* nothing is known, and nobody should wait for ever */
    while (!found && (entry = readdir(folder))) {
        char *end;
        long fd = strtol(entry->d_name, &end, 10);
        found = end != entry->d_name && fd != dirfd(folder) && is_in_trouble((int) fd);
    }
    closedir(folder);
    return found;
}
