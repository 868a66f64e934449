/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes between ports: the kernel's own, of this machine's loopback. */
#include "check.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "btl/verbs/route.h"

static unsigned lists;
static unsigned lo_is; /* the loopback's number, where it had another one; 0: as now */

/* This node has one interface, the loopback. */
int getifaddrs(struct ifaddrs **all)
{
    static struct sockaddr_in address = {.sin_family = AF_INET};
    static struct ifaddrs loopback = {.ifa_name = (char *) "lo",
                                      .ifa_addr = (struct sockaddr *) &address};

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *all = &loopback;
    lists++;
    return 0;
}

unsigned if_nametoindex(const char *name)
{
    struct ifreq request;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
    CHECK(ioctl(fd, SIOCGIFINDEX, &request) == 0, "%s has no number", name);
    close(fd);
    return lo_is ? lo_is : (unsigned) request.ifr_ifindex;
}

void freeifaddrs(struct ifaddrs *all)
{
    (void) all;
}

static struct choice_address port_at(uint32_t ipv4)
{
    struct choice_address port = {.link = CHOICE_ROCE_V2};

    ipv4 = htonl(ipv4);
    port.gid[10] = port.gid[11] = 0xff;
    memcpy(port.gid + 12, &ipv4, sizeof(ipv4));
    return port;
}

int main(void)
{
    struct choice_address mine = port_at(INADDR_LOOPBACK), none = port_at(0xc6336401);

    /* An interface that is taken away and made again has another number. */
    lo_is = 1000;
    CHECK(!verbs_route_leaves_by(&mine, &mine), "by an interface that is away");
    lo_is = lists = 0;
    CHECK(verbs_route_leaves_by(&mine, &mine), "by the one that was made again");
    /* The list of all interfaces and addresses is long where there are many: once for many peers.
     */
    for (uint32_t i = 1; i <= 129; i++) {
        struct choice_address theirs = port_at(INADDR_LOOPBACK + i);

        CHECK(verbs_route_leaves_by(&mine, &theirs), "no route to 127.0.0.%u", 1 + i);
    }
    CHECK(lists == 1, "the interfaces were listed %u times for 129 peers", lists);
    CHECK(!verbs_route_leaves_by(&none, &mine), "from an address that this node has not");
    CHECK(verbs_route_leaves_by(&mine, &mine), "to itself");
    return check_end();
}
