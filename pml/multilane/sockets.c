/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks the kernel about TCP connections. A BTL does not tell which sockets are its own, let alone
 * toward whom: so all of this process count, and one in trouble is enough. */
#include "sockets.h"

#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

/* A connection sends again after 0.2 s, 0.4 s, ... so that so many times in a row, or so many
 * unanswered probes of a full receiver, are no accident. */
#define REPEATS_MIN 3
/* Or there was no route to send again over: nothing was acknowledged for so long. */
#define SILENCE_MS 3000u

/* How bad things are. */
enum trouble { TROUBLE_NONE, TROUBLE_PERHAPS, TROUBLE_SURE };

static enum trouble trouble_of(int fd)
{
    int type;
    struct tcp_info info;
    socklen_t length = sizeof(type);
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM)
        return TROUBLE_NONE;
    length = sizeof(info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
        return TROUBLE_NONE;
    /* The kernel has given a connection up, and the BTL makes another one, again and again. */
    if (info.tcpi_state == TCP_SYN_SENT && info.tcpi_retransmits > 0)
        return TROUBLE_SURE;
    if (info.tcpi_state != TCP_ESTABLISHED)
        return TROUBLE_NONE;
    bool is_sure = info.tcpi_probes >= REPEATS_MIN || info.tcpi_retransmits >= REPEATS_MIN ||
                   (info.tcpi_unacked > 0 && info.tcpi_last_ack_recv >= SILENCE_MS &&
                    info.tcpi_last_data_sent >= SILENCE_MS);
    if (is_sure)
        return TROUBLE_SURE;
    return info.tcpi_probes || info.tcpi_retransmits ? TROUBLE_PERHAPS : TROUBLE_NONE;
}

/* The worst of all connections; with `give_up`, those that are surely dead are shut down first. */
static enum trouble sockets_look(bool give_up)
{
    DIR *folder = opendir("/proc/self/fd");
    enum trouble worst = TROUBLE_NONE;
    struct dirent *entry;
    if (!folder)
        return TROUBLE_SURE; /* nothing is known, and nobody should wait for ever */
    while ((entry = readdir(folder))) {
        char *end;
        long fd = strtol(entry->d_name, &end, 10);
        if (end == entry->d_name || fd == dirfd(folder))
            continue;
        enum trouble trouble = trouble_of((int) fd);
        if (give_up && trouble == TROUBLE_SURE) {
            shutdown((int) fd, SHUT_RDWR);
            continue;
        }
        if (trouble > worst)
            worst = trouble;
    }
    closedir(folder);
    return worst;
}

bool sockets_in_trouble(void)
{
    return sockets_look(false) == TROUBLE_SURE;
}

/* What may be dead is, or is not, after so many looks. */
#define LOOKS_MAX     80
#define LOOK_PAUSE_NS 50000000l

static struct sigaction before;
static bool is_ignored;

void sockets_give_up(void)
{
    const struct timespec pause = {0, LOOK_PAUSE_NS};
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    if (!is_ignored && sigaction(SIGPIPE, &ignore, &before) == 0)
        is_ignored = true;
    for (int look = 0; look < LOOKS_MAX && sockets_look(true) != TROUBLE_NONE; look++)
        nanosleep(&pause, NULL);
}

void sockets_end(void)
{
    if (is_ignored)
        sigaction(SIGPIPE, &before, NULL);
    is_ignored = false;
}
