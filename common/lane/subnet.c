/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads addresses of the system, and compares their bits. */
#include "common/lane/subnet.h"

#include <netinet/in.h>
#include <string.h>

const uint8_t *ip_bytes(const struct sockaddr *address, size_t *count)
{
    const void *at = address;

    if (address && address->sa_family == AF_INET) {
        *count = sizeof(struct in_addr);
        return (const uint8_t *) &((const struct sockaddr_in *) at)->sin_addr;
    }
    if (address && address->sa_family == AF_INET6) {
        *count = sizeof(struct in6_addr);
        return (const uint8_t *) &((const struct sockaddr_in6 *) at)->sin6_addr;
    }
    return NULL;
}

uint8_t netmask_bits(const struct sockaddr *netmask)
{
    size_t bytes = 0;
    const uint8_t *mask = ip_bytes(netmask, &bytes);
    uint8_t bits = 0;

    for (size_t i = 0; mask && i < bytes; i++)
        bits += (uint8_t) __builtin_popcount(mask[i]);
    return bits;
}

bool bits_equal(const uint8_t *a, const uint8_t *b, uint32_t bits)
{
    uint32_t bytes = bits / 8, rest = bits % 8;

    if (memcmp(a, b, bytes) != 0)
        return false;
    return rest == 0 || (a[bytes] ^ b[bytes]) >> (8 - rest) == 0;
}
