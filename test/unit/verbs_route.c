/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes between ports: the kernel's own, of this machine's loopback. */
#include "check.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <string.h>
#include <sys/socket.h>

#include "btl/verbs/route.h"

static unsigned lists;

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
