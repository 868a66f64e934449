/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds interfaces, and asks the kernel by which one packets to another address leave. */
#include "btl/verbs/route.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/lane/subnet.h"

struct question {
    struct nlmsghdr head;
    struct rtmsg route;
    unsigned char attributes[2 * RTA_SPACE(CHOICE_GID_BYTES)];
};

static void address_add(struct question *question, unsigned short type, const uint8_t *gid)
{
    bool is_ipv4 = verbs_choice_gid_is_ipv4(gid);
    size_t bytes = is_ipv4 ? 4 : CHOICE_GID_BYTES;
    struct rtattr *at =
        (struct rtattr *) (void *) ((char *) question + NLMSG_ALIGN(question->head.nlmsg_len));

    at->rta_type = type;
    at->rta_len = (unsigned short) RTA_LENGTH(bytes);
    memcpy(RTA_DATA(at), is_ipv4 ? gid + 12 : gid, bytes);
    question->head.nlmsg_len = NLMSG_ALIGN(question->head.nlmsg_len) + RTA_SPACE(bytes);
}

/* The interface that an answer names; 0: none. */
static uint32_t interface_read(const unsigned char *answer, size_t bytes)
{
    const struct nlmsghdr *head = (const void *) answer;

    if (bytes < NLMSG_LENGTH(sizeof(struct rtmsg)) || head->nlmsg_len > bytes ||
        head->nlmsg_type != RTM_NEWROUTE)
        return 0;
    const struct rtmsg *route = NLMSG_DATA(head);
    int left = (int) RTM_PAYLOAD(head);
    if (route->rtm_type != RTN_UNICAST && route->rtm_type != RTN_LOCAL)
        return 0;
    for (const struct rtattr *at = RTM_RTA(route); RTA_OK(at, left); at = RTA_NEXT(at, left))
        if (at->rta_type == RTA_OIF && RTA_PAYLOAD(at) == sizeof(uint32_t)) {
            uint32_t index;

            memcpy(&index, RTA_DATA(at), sizeof(index));
            return index;
        }
    return 0;
}

static uint32_t interface_toward(const uint8_t *from, const uint8_t *to)
{
    struct question question = {
        .head = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
                 .nlmsg_type = RTM_GETROUTE,
                 .nlmsg_flags = NLM_F_REQUEST},
        .route = {.rtm_family = verbs_choice_gid_is_ipv4(to) ? AF_INET : AF_INET6,
                  .rtm_dst_len = verbs_choice_gid_is_ipv4(to) ? 32 : 128},
    };
    _Alignas(8) unsigned char answer[4096];
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    ssize_t bytes = -1;

    if (fd < 0)
        return 0;
    address_add(&question, RTA_DST, to);
    address_add(&question, RTA_SRC, from);
    question.route.rtm_src_len = question.route.rtm_dst_len;
    if (send(fd, &question, question.head.nlmsg_len, 0) >= 0)
        bytes = recv(fd, answer, sizeof(answer), 0);
    close(fd);
    return bytes <= 0 ? 0 : interface_read(answer, (size_t) bytes);
}

/* An interface with an address. */
struct found {
    uint32_t index, bits; /* of its netmask */
};

static bool entry_has(const struct ifaddrs *entry, const uint8_t *gid)
{
    size_t bytes;
    const uint8_t *address = ip_bytes(entry->ifa_addr, &bytes);

    return address && (bytes == CHOICE_GID_BYTES || verbs_choice_gid_is_ipv4(gid)) &&
           memcmp(gid + CHOICE_GID_BYTES - bytes, address, bytes) == 0;
}

/* All zero: no interface of this node has that address. */
static struct found interface_find(const uint8_t *gid)
{
    struct ifaddrs *all = NULL;
    struct found found = {0};

    if (getifaddrs(&all) != 0)
        return found;
    for (const struct ifaddrs *entry = all; entry && found.index == 0; entry = entry->ifa_next)
        if (entry_has(entry, gid))
            found = (struct found){.index = if_nametoindex(entry->ifa_name),
                                   .bits = netmask_bits(entry->ifa_netmask)};
    freeifaddrs(all);
    return found.index != 0 ? found : (struct found){0};
}

uint32_t verbs_route_netmask_bits(const uint8_t *gid)
{
    return interface_find(gid).bits;
}

/* One that is made again, as VLANs and bonds are, has another number. */
static bool is_gone(uint32_t interface)
{
    char name[IF_NAMESIZE];
    return !if_indextoname(interface, name) && errno == ENXIO;
}

/* Of the port that was asked about last: many ports of many peers follow. */
static uint32_t interface_of(const uint8_t *gid)
{
    static uint8_t last_gid[CHOICE_GID_BYTES];
    static uint32_t last;

    if (last == 0 || is_gone(last) || memcmp(last_gid, gid, CHOICE_GID_BYTES) != 0) {
        last = interface_find(gid).index;
        memcpy(last_gid, gid, CHOICE_GID_BYTES);
    }
    return last;
}

bool verbs_route_leaves_by(const struct choice_address *mine, const struct choice_address *theirs)
{
    uint32_t interface = interface_toward(mine->gid, theirs->gid);

    return interface != 0 && interface == interface_of(mine->gid);
}
