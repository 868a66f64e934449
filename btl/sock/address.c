/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses of this node's interfaces, and their pairs with those of another process. */
#include "btl/sock/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/lane/kernel_text.h"
#include "common/lane/subnet.h"

/* --- what the user wants --- */

#define ITEM_BYTES 96u

/* Copies the next item of a list with commas and returns what follows it; NULL: there is none. */
static const char *item_next(const char *list, char item[ITEM_BYTES])
{
    size_t length = strcspn(list, ",");

    if (*list == '\0')
        return NULL;
    snprintf(item, ITEM_BYTES, "%.*s", (int) length, list);
    return list + length + (list[length] == ',');
}

static size_t address_bytes(uint8_t family)
{
    return family == 4 ? 4 : 16;
}

/* "10.1.0.0/16": an address and its prefix. */
static bool subnet_read(const char *item, struct sock_address *subnet)
{
    char text[ITEM_BYTES], *slash, *end;

    snprintf(text, sizeof(text), "%s", item);
    slash = strchr(text, '/');
    if (!slash)
        return false;
    *slash = '\0';
    subnet->family = strchr(text, ':') ? 6 : 4;
    unsigned long prefix = strtoul(slash + 1, &end, 10);
    if (slash[1] < '0' || slash[1] > '9' || *end || prefix > 8 * address_bytes(subnet->family))
        return false;
    subnet->prefix = (uint8_t) prefix;
    return inet_pton(subnet->family == 4 ? AF_INET : AF_INET6, text, subnet->bytes) == 1;
}

static bool item_names(const char *item, const struct sock_address *address)
{
    struct sock_address subnet = {0};

    if (!strchr(item, '/'))
        return strcmp(item, address->name) == 0;
    return subnet_read(item, &subnet) && subnet.family == address->family &&
           bits_equal(subnet.bytes, address->bytes, subnet.prefix);
}

static bool is_auto(const char *wanted)
{
    return strcmp(wanted, "auto") == 0;
}

/* 169.254.0.0/16: a host gives it to itself, as to a USB link to its own controller. That two hosts
 * have such addresses does not say that a network joins them. */
static bool is_of_link(const struct sock_address *address)
{
    return address->family == 4 && address->bytes[0] == 169 && address->bytes[1] == 254;
}

static bool is_wanted(const char *wanted, const struct sock_address *address)
{
    bool excludes = *wanted == '^', is_named = false;
    char item[ITEM_BYTES];

    if (is_auto(wanted))
        return !is_of_link(address);
    for (const char *next = wanted + excludes; (next = item_next(next, item));)
        is_named |= item_names(item, address);
    return excludes ? !is_named && !is_of_link(address) : is_named;
}

bool sock_addresses_check(const char *wanted, struct error_text *why)
{
    const char *next = wanted + (*wanted == '^');
    struct sock_address subnet;
    char item[ITEM_BYTES];

    if (is_auto(wanted))
        return true;
    if (*next == '\0')
        return fail_with(why, "it names no interface");
    while ((next = item_next(next, item))) {
        bool is_subnet = strchr(item, '/');
        if (is_subnet && !subnet_read(item, &subnet))
            return fail_with(why, "\"%s\" is no subnet such as 10.1.0.0/16", item);
        if (!is_subnet && (item[0] == '\0' || strlen(item) >= ADDRESS_NAME_BYTES))
            return fail_with(why, "\"%s\" is no name of an interface", item);
    }
    return true;
}

/* --- interfaces --- */

/* 0: it does not say. */
static uint32_t megabits_of(const char *name)
{
    char text[32];
    long megabits;

    (void) kernel_line(text, sizeof(text), "/sys/class/net/%.15s/speed", name);
    bool is_told = sscanf(text, "%ld", &megabits) == 1 && megabits > 0 && megabits <= INT32_MAX;
    return is_told ? (uint32_t) megabits : 0;
}

/* False: no address that another process can be reached by. */
static bool address_read(const struct ifaddrs *from, struct sock_address *address)
{
    size_t count;
    const uint8_t *bytes = ip_bytes(from->ifa_addr, &count);

    memset(address, 0, sizeof(*address));
    if (!bytes || !from->ifa_netmask || !(from->ifa_flags & IFF_UP) ||
        !(from->ifa_flags & IFF_RUNNING) || strlen(from->ifa_name) >= ADDRESS_NAME_BYTES)
        return false;
    /* One of the link would need the other end's name of the interface. */
    if (count == 16 && IN6_IS_ADDR_LINKLOCAL((const struct in6_addr *) (const void *) bytes))
        return false;
    address->family = count == 4 ? 4 : 6;
    memcpy(address->bytes, bytes, count);
    address->prefix = netmask_bits(from->ifa_netmask);
    memcpy(address->name, from->ifa_name, strlen(from->ifa_name));
    address->is_loopback = (from->ifa_flags & IFF_LOOPBACK) != 0;
    address->megabits = megabits_of(address->name);
    return true;
}

/* IPv4 before IPv6 of the same interface; else the first address of each stays. */
static int address_add(struct sock_address *list, int count, const struct sock_address *address)
{
    for (int i = 0; i < count; i++)
        if (strcmp(list[i].name, address->name) == 0) {
            if (address->family < list[i].family || is_of_link(&list[i]))
                list[i] = *address;
            return count;
        }
    if (count == (int) ADDRESSES_MAX)
        return count;
    list[count] = *address;
    return count + 1;
}

int sock_addresses_list(const char *wanted, struct sock_address list[ADDRESSES_MAX],
                        struct error_text *why)
{
    struct ifaddrs *all;
    int count = 0;

    if (getifaddrs(&all) != 0) {
        fail_with(why, "the system does not list its network interfaces");
        return -1;
    }
    for (const struct ifaddrs *at = all; at; at = at->ifa_next) {
        struct sock_address address;
        if (address_read(at, &address) && is_wanted(wanted, &address))
            count = address_add(list, count, &address);
    }
    freeifaddrs(all);
    return count;
}

/* --- pairs --- */

enum fit { FIT_NONE, FIT_ROUTED, FIT_SUBNET };

static enum fit addresses_fit(const struct sock_address *a, const struct sock_address *b,
                              bool same_host)
{
    if (a->family == 0 || a->family != b->family || a->is_loopback != b->is_loopback ||
        (a->is_loopback && !same_host))
        return FIT_NONE;
    size_t bytes = address_bytes(a->family);
    bool is_same = memcmp(a->bytes, b->bytes, bytes) == 0;
    if (is_same != same_host)
        return FIT_NONE;
    uint32_t prefix = a->prefix > b->prefix ? a->prefix : b->prefix;
    if (prefix > 8 * bytes)
        return FIT_NONE;
    return bits_equal(a->bytes, b->bytes, prefix) ? FIT_SUBNET : FIT_ROUTED;
}

static bool is_taken(const int *pairs, uint32_t count, uint32_t index)
{
    for (uint32_t i = 0; i < count; i++)
        if (pairs[i] == (int) index)
            return true;
    return false;
}

/* The first pair of that fit that is free, by the order of `first` and then of `second`. */
static bool pair_find(const struct sock_address *first, uint32_t first_count,
                      const struct sock_address *second, uint32_t second_count, bool same_host,
                      enum fit fit, int *pairs)
{
    for (uint32_t i = 0; i < first_count; i++)
        for (uint32_t j = 0; j < second_count && pairs[i] < 0; j++)
            if (!is_taken(pairs, first_count, j) &&
                addresses_fit(&first[i], &second[j], same_host) == fit) {
                pairs[i] = (int) j;
                return true;
            }
    return false;
}

void sock_addresses_pair(const struct sock_address *ours, uint32_t our_count,
                         const struct sock_address *theirs, uint32_t their_count, bool same_host,
                         bool ours_first, int pairs[ADDRESSES_MAX])
{
    const struct sock_address *first = ours_first ? ours : theirs;
    const struct sock_address *second = ours_first ? theirs : ours;
    uint32_t first_count = ours_first ? our_count : their_count;
    uint32_t second_count = ours_first ? their_count : our_count;
    int found[ADDRESSES_MAX];
    /* Inside a node one lane is enough: all would pass through the same kernel. */
    const uint32_t most = same_host ? 1 : ADDRESSES_MAX;
    uint32_t count = 0;

    for (uint32_t i = 0; i < ADDRESSES_MAX; i++)
        found[i] = pairs[i] = -1;
    while (count < most &&
           pair_find(first, first_count, second, second_count, same_host, FIT_SUBNET, found))
        count++;
    if (count == 0)
        (void) pair_find(first, first_count, second, second_count, same_host, FIT_ROUTED, found);
    for (uint32_t i = 0; i < first_count; i++)
        if (found[i] >= 0 && ours_first)
            pairs[i] = found[i];
        else if (found[i] >= 0)
            pairs[found[i]] = (int) i;
}

/* --- for the system --- */

socklen_t sock_address_fill(const struct sock_address *address, bool with_port,
                            struct sockaddr_storage *out)
{
    memset(out, 0, sizeof(*out));
    if (address->family == 4) {
        struct sockaddr_in *in = (struct sockaddr_in *) out;
        in->sin_family = AF_INET;
        in->sin_port = with_port ? address->port : 0;
        memcpy(&in->sin_addr, address->bytes, 4);
        return sizeof(*in);
    }
    struct sockaddr_in6 *in = (struct sockaddr_in6 *) out;
    in->sin6_family = AF_INET6;
    in->sin6_port = with_port ? address->port : 0;
    memcpy(&in->sin6_addr, address->bytes, 16);
    return sizeof(*in);
}

const char *sock_address_text(const struct sock_address *address, char text[ADDRESS_TEXT_BYTES])
{
    char numbers[INET6_ADDRSTRLEN] = "?";

    (void) inet_ntop(address->family == 4 ? AF_INET : AF_INET6, address->bytes, numbers,
                     sizeof(numbers));
    snprintf(text, ADDRESS_TEXT_BYTES, "%.15s %s", address->name, numbers);
    return text;
}
