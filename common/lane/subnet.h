/* SPDX-License-Identifier: BSD-3-Clause */
/* IP addresses as bytes, and the bits of them that one subnet has in common. */
#ifndef COMMON_LANE_SUBNET_H
#define COMMON_LANE_SUBNET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* The bytes of an address, 4 or 16 of them; null: it is no IP address, or there is none. */
const uint8_t *ip_bytes(const struct sockaddr *address, size_t *count);

/* How many bits of an interface's address its subnet has; 0: without a netmask. */
uint8_t netmask_bits(const struct sockaddr *netmask);

bool bits_equal(const uint8_t *a, const uint8_t *b, uint32_t bits);

#endif
