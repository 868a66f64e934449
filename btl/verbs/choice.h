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
    uint8_t link;                 /* enum choice_link */
    uint8_t subnet_bits;          /* of the GID that ports of one subnet have in common */
    uint32_t megabits;            /* a second, each way */
    uint32_t needs_route;         /* InfiniBand: it takes only packets with a global route header */
    char name[CHOICE_NAME_BYTES]; /* device:port; ends in 0 */
};

const char *verbs_choice_link_name(uint8_t link);

/* Whether `list` ("mlx5_0,mlx5_1:2", or the same after ^ for all but these, or "auto") has port
 * `port` of `device`. */
bool verbs_choice_is_listed(const char *list, const char *device, uint32_t port);

/* The index in `gids` of the one to use; -1: none. `wanted` is an index of the port's table that
 * the user set, or -1, which prefers a RoCE v2 address to one of v1, IPv4 to IPv6, and takes a
 * link-local one last; the first of equals. */
int verbs_choice_gid(const struct choice_gid *gids, size_t count, int64_t wanted);

bool verbs_choice_gid_is_ipv4(const uint8_t *gid);

/* The speed of a port by the codes of the InfiniBand specification, in Mbit/s of data; 0: unknown
 * codes. */
uint32_t verbs_choice_megabits(uint32_t speed, uint32_t width);

/* How many bits of `gid` its subnet has; `netmask_bits` is the netmask of the interface's address,
 * 0 if it is unknown. */
uint8_t verbs_choice_subnet_bits(enum choice_link link, const uint8_t *gid, uint32_t netmask_bits);

/* NULL if a queue pair between the two can work, otherwise why not. */
const char *verbs_choice_refuses(const struct choice_address *mine,
                                 const struct choice_address *theirs, bool any_subnet);

/* Whether packets between the two carry a global route header. */
bool verbs_choice_is_routed(const struct choice_address *mine, const struct choice_address *theirs);

/* Which of the peer's ports each of ours leads to: pairs[i] is an index in `theirs`, or -1. Both
 * ends compute the same pairs: in every subnet the fastest port with the fastest, equal ones in
 * their order; the rest has no partner. */
void verbs_choice_pair(const struct choice_address *mine, size_t mine_count,
                       const struct choice_address *theirs, size_t theirs_count, bool any_subnet,
                       int *pairs);

/* The most ports of one process. */
#define CHOICE_PORTS_MAX 16

#endif
