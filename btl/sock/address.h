/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses of this node's interfaces that can carry messages, and which of them lead to which
 * addresses of another process. */
#ifndef MULTILANE_SOCK_ADDRESS_H
#define MULTILANE_SOCK_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "common/model/error.h"

#define ADDRESSES_MAX      16u
#define ADDRESS_NAME_BYTES 16u

/* One address of an interface. Travels in the record of a process. */
struct sock_address {
    unsigned char bytes[16];       /* IPv4: the first four */
    char name[ADDRESS_NAME_BYTES]; /* of the interface; ends in 0 */
    uint32_t megabits;             /* of the interface; 0: it does not say */
    uint16_t port;                 /* where the process listens on it; network order */
    uint8_t family;                /* 4 or 6; 0: it leads nowhere */
    uint8_t prefix;                /* bits of its subnet */
    uint8_t is_loopback;
    uint8_t reserved[7];
};

/* Lists the addresses that are up: of each interface its first IPv4 address, or else its first
 * global IPv6 address. `wanted`: interfaces and subnets that count, "eth0,10.0.0.0/8", after ^ all
 * but these, or "auto". Returns how many were put into `list`. -1: `why` is a sentence. */
int sock_addresses_list(const char *wanted, struct sock_address list[ADDRESSES_MAX],
                        struct error_text *why);

/* Is the text well formed? False: `why` is a sentence about the item that is not. */
bool sock_addresses_check(const char *wanted, struct error_text *why);

/* Which address of theirs each of ours leads to, or -1. Both ends get the same pairs: `ours_first`
 * says that this end is the one of the two that is listed first. Addresses of one subnet are
 * paired in their order; only where there are no such pairs, one pair of two subnets is tried,
 * which a router may join. Loopback leads to processes of the same network namespace alone, and is
 * the one lane there; an address that both ends have leads to oneself. */
void sock_addresses_pair(const struct sock_address *ours, uint32_t our_count,
                         const struct sock_address *theirs, uint32_t their_count, bool same_host,
                         bool ours_first, int pairs[ADDRESSES_MAX]);

/* For bind and connect; the port is the address's where `with_port`, else any. */
socklen_t sock_address_fill(const struct sock_address *address, bool with_port,
                            struct sockaddr_storage *out);

#define ADDRESS_TEXT_BYTES 80u

/* "eth0 10.0.0.1" */
const char *sock_address_text(const struct sock_address *address, char text[ADDRESS_TEXT_BYTES]);

#endif
