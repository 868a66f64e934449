/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules of btl/verbs: which ports are lanes, under which address, and which port of a peer each
 * of them leads to. Pure: they work on what was read from devices, or forged by a test. */
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

/* How a port is reached; part of what a process publishes. */
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

/* The place in `gids` of the one to use; -1: none will do. `wanted` is an index of the port's table
 * that the user gave, or -1: a RoCE v2 address before one of v1, of IPv4 before one of IPv6, of the
 * link alone last; the first of equals. */
int verbs_choice_gid(const struct choice_gid *gids, size_t count, int64_t wanted);

bool verbs_choice_gid_is_ipv4(const uint8_t *gid);

/* The speed of a port by the codes of the InfiniBand specification, in Mbit/s of data; 0: unknown
 * codes. */
uint32_t verbs_choice_megabits(uint32_t speed, uint32_t width);

/* How many bits of `gid` its subnet has; `netmask_bits` is what the system says of the interface's
 * address, 0 where it says nothing. */
uint8_t verbs_choice_subnet_bits(enum choice_link link, const uint8_t *gid, uint32_t netmask_bits);

/* NULL where a queue pair between the two can work, else why not. */
const char *verbs_choice_refuses(const struct choice_address *mine,
                                 const struct choice_address *theirs, bool any_subnet);

/* Whether packets between the two carry a global route header. */
bool verbs_choice_is_routed(const struct choice_address *mine, const struct choice_address *theirs);

/* Which of the peer's ports each of ours leads to: pairs[i] is a place in `theirs`, or -1. Both
 * sides, each from its own end, come to the same pairs: in every subnet the fastest port with the
 * fastest, equal ones in their order; what is left over stays without. */
void verbs_choice_pair(const struct choice_address *mine, size_t mine_count,
                       const struct choice_address *theirs, size_t theirs_count, bool any_subnet,
                       int *pairs);

/* The most ports of one process. */
#define CHOICE_PORTS_MAX 16

#endif
