/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules of btl/verbs: which ports are lanes, which address each has, and which port of a peer
 * it leads to. Pure functions on what was read from devices, or made up by a test. */
#ifndef MULTILANE_VERBS_CHOICE_H
#define MULTILANE_VERBS_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum choice_link { CHOICE_INFINIBAND, CHOICE_ROCE_V1, CHOICE_ROCE_V2 };

#define CHOICE_GID_BYTES  16
#define CHOICE_NAME_BYTES 48

/* One entry of a port's table of GIDs. */
struct choice_gid {
    uint32_t index;
    enum choice_link link;
    uint8_t raw[CHOICE_GID_BYTES];
};

/* The address of a port; part of what a process publishes. */
struct choice_address {
    uint8_t gid[CHOICE_GID_BYTES];
    uint16_t lid;
    uint8_t link;         /* enum choice_link */
    uint8_t subnet_bits;  /* of the GID that ports of one subnet have in common */
    uint32_t megabits;    /* a second, each way */
    uint16_t needs_route; /* InfiniBand: it takes only packets with a global route header */
    uint16_t pkey;        /* partition; its first bit: a full member */
    uint8_t is_far;       /* other processors than this process's are nearer to it */
    uint8_t rails;        /* the most ports that its process uses toward one peer; 0: all */
    uint16_t reserved;
    char name[CHOICE_NAME_BYTES]; /* device:port; ends in 0 */
};

const char *verbs_choice_link_name(uint8_t link);

/* What a connection takes: requests under way, and bytes of a message that one of them holds. An
 * mlx5 pins 64 KiB for 128 requests of 256 bytes, and 8 KiB for 32 of 64. */
struct choice_depth {
    uint32_t requests, inline_bytes;
};

/* For a process with so many others on other nodes. `set`: the user's number of requests; 0: by
 * rule. */
void verbs_choice_depth(uint32_t far, uint32_t set, struct choice_depth *depth);

/* Whether `list` ("mlx5_0,mlx5_1:2", or the same after ^ for all but these, or "auto") has port
 * `port` of `device`. */
bool verbs_choice_is_listed(const char *list, const char *device, uint32_t port);

/* The index in `gids` of the one to use; -1: none. `wanted` is an index of the port's table that
 * the user set, or -1, which prefers a RoCE v2 address to one of v1, IPv4 to IPv6, and takes a
 * link-local one last; the first of equals. But while the table has the address in `first` (NULL,
 * or empty: there is none), with which the port began, that is taken, at the same index if it is
 * there: others know the port by it, and connections name the index. */
int verbs_choice_gid(const struct choice_gid *gids, size_t count, int64_t wanted,
                     const struct choice_gid *first);

bool verbs_choice_gid_is_ipv4(const uint8_t *gid);

/* The speed of a port by the codes of the InfiniBand specification, in Mbit/s of data; 0: unknown
 * codes. Adapters of Ethernet use the same codes, but no encoding of 8 in 10 bits takes a part. */
uint32_t verbs_choice_megabits(uint32_t speed, uint32_t width, bool is_ethernet);
/* The same of what the kernel shows as text, "800 Gb/sec (4X XDR)"; 0: it is no such text. */
uint32_t verbs_choice_megabits_shown(const char *rate);

/* The index in a table of partition keys of the one to use, `wanted` (0: the first that is of a
 * full member, or else the first); -1: none. */
int verbs_choice_pkey(const uint16_t *keys, size_t count, uint16_t wanted);

/* How many bits of `gid` its subnet has; `netmask_bits` is the netmask of the interface's address,
 * 0 if it is unknown. */
uint8_t verbs_choice_subnet_bits(enum choice_link link, const uint8_t *gid, uint32_t netmask_bits);

/* Which ports of RoCE in different subnets are worth a try. */
enum choice_pairing { PAIR_SUBNET, PAIR_ROUTE, PAIR_ANY };
/* For PAIR_ROUTE: whether packets from this port to that one leave by it. */
typedef bool (*choice_routes)(const struct choice_address *mine,
                              const struct choice_address *theirs);
struct choice_rule {
    enum choice_pairing pairing;
    choice_routes routes;
};

/* NULL if a queue pair between the two can work, otherwise why not. */
const char *verbs_choice_refuses(const struct choice_address *mine,
                                 const struct choice_address *theirs,
                                 const struct choice_rule *rule);

/* Whether packets between the two carry a global route header. */
bool verbs_choice_is_routed(const struct choice_address *mine, const struct choice_address *theirs);

/* Why a port has no partner. */
enum choice_left { LEFT_ALONE = -1, LEFT_SLOW = -2, LEFT_ENOUGH = -3 };

/* Which of the peer's ports each of ours leads to: pairs[i] is an index in `theirs`, or one of
 * enum choice_left. Both ends compute the same pairs: near ports before far ones, the fastest port
 * with the fastest, equal ones in their order, at most as many as the end with the smaller number
 * of rails wants, and none with less than a quarter of the speed of the fastest pair. Where a node
 * has more equal ports than are wanted, `turn` tells with which to begin: the same at both ends,
 * and another one for other processes, so that all ports are used. Of either end at least
 * one, and at most CHOICE_PORTS_MAX. */
void verbs_choice_pair(const struct choice_address *mine, size_t mine_count,
                       const struct choice_address *theirs, size_t theirs_count,
                       const struct choice_rule *rule, uint32_t turn, int *pairs);

/* The most ports of one process. */
#define CHOICE_PORTS_MAX 16

/* A device, and where sysfs has it. */
struct choice_device {
    void *device;
    char *path;
};

/* Orders devices by their paths, so that a node's first port is that of the next node too: PCI
 * addresses are of one length, and libibverbs' order follows names. Those without a path (null;
 * soft RoCE) come behind, in the order given. */
void verbs_choice_order(struct choice_device *devices, size_t count);

#endif
