/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules of btl/verbs; see choice.h. */
#include "btl/verbs/choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/lane/subnet.h"
#include "common/model/number.h"

#define IPV4_BITS_UNKNOWN 24u
#define IPV6_SUBNET_BITS  64u
#define IPV4_AT_BITS      96u /* ::ffff:a.b.c.d */

const char *verbs_choice_link_name(uint8_t link)
{
    static const char *const names[] = {[CHOICE_INFINIBAND] = "InfiniBand",
                                        [CHOICE_ROCE_V1] = "RoCE v1",
                                        [CHOICE_ROCE_V2] = "RoCE v2"};

    return link < sizeof(names) / sizeof(names[0]) ? names[link] : "unknown";
}

/* More of them than that get smaller connections. */
#define FAR_MANY 256u

void verbs_choice_depth(uint32_t far, uint32_t set, struct choice_depth *depth)
{
    bool many = far > FAR_MANY;

    depth->requests = set != 0 ? set : many ? 32 : 128;
    depth->inline_bytes = many ? 64 : 256;
}

bool verbs_choice_is_listed(const char *list, const char *device, uint32_t port)
{
    char whole[CHOICE_NAME_BYTES + 16];

    if (!list || strcmp(list, "auto") == 0)
        return true;
    bool all_but = list[0] == '^';
    snprintf(whole, sizeof(whole), "%s:%u", device, port);
    return (text_list_has(list + all_but, device) || text_list_has(list + all_but, whole)) !=
           all_but;
}

bool verbs_choice_gid_is_ipv4(const uint8_t *gid)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    return memcmp(gid, mapped, sizeof(mapped)) == 0;
}

static bool gid_is_empty(const uint8_t *gid)
{
    static const uint8_t zero[CHOICE_GID_BYTES];

    return memcmp(gid, zero, sizeof(zero)) == 0;
}

static bool gid_is_link_local(const uint8_t *gid)
{
    return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

static int gid_rank(const struct choice_gid *gid)
{
    int rank = verbs_choice_gid_is_ipv4(gid->raw) ? 2 : gid_is_link_local(gid->raw) ? 0 : 1;

    return gid->link == CHOICE_ROCE_V2 ? rank + 3 : rank;
}

static bool is_same_address(const struct choice_gid *gid, const struct choice_gid *other)
{
    return gid->link == other->link && memcmp(gid->raw, other->raw, sizeof(gid->raw)) == 0;
}

int verbs_choice_gid(const struct choice_gid *gids, size_t count, int64_t wanted,
                     const struct choice_gid *first)
{
    int best = -1, again = -1;

    for (size_t i = 0; i < count; i++) {
        if (gid_is_empty(gids[i].raw))
            continue;
        if (wanted >= 0) {
            if ((int64_t) gids[i].index == wanted)
                return (int) i;
            continue;
        }
        if (first && is_same_address(&gids[i], first) &&
            (again < 0 || gids[i].index == first->index))
            again = (int) i;
        if (best < 0 ||
            (gids[i].link != CHOICE_INFINIBAND && gid_rank(&gids[i]) > gid_rank(&gids[best])))
            best = (int) i;
    }
    return again >= 0 ? again : best;
}

uint32_t verbs_choice_megabits(uint32_t speed, uint32_t width, bool is_ethernet)
{
    /* Mbit/s of one lane of the cable, less its encoding: 8 of 10 bits, from FDR on 64 of 66. */
    static const struct {
        uint32_t code, megabits;
    } speeds[] = {{1, 2000},   {2, 4000},   {4, 8000},     {8, 10000},   {16, 13636},
                  {32, 25000}, {64, 50000}, {128, 100000}, {256, 200000}};
    static const struct {
        uint32_t code, lanes;
    } widths[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};

    for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++)
        for (size_t j = 0; j < sizeof(widths) / sizeof(widths[0]); j++)
            if (speeds[i].code == speed && widths[j].code == width)
                return (is_ethernet && speed <= 4 ? speeds[i].megabits / 4 * 5
                                                  : speeds[i].megabits) *
                       widths[j].lanes;
    return 0;
}

uint32_t verbs_choice_megabits_shown(const char *rate)
{
    char *end;
    double gigabits = strtod(rate, &end);

    return end == rate || strncmp(end, " Gb/sec", 7) != 0 || !(gigabits > 0 && gigabits < 1e5)
               ? 0
               : (uint32_t) (gigabits * 1000);
}

#define PKEY_FULL   0x8000u
#define PKEY_NUMBER 0x7fffu

int verbs_choice_pkey(const uint16_t *keys, size_t count, uint16_t wanted)
{
    int best = -1;

    for (size_t i = 0; i < count; i++) {
        bool fits = (keys[i] & PKEY_NUMBER) != 0 &&
                    (wanted == 0 || ((keys[i] ^ wanted) & PKEY_NUMBER) == 0);

        if (fits && (best < 0 || (!(keys[best] & PKEY_FULL) && (keys[i] & PKEY_FULL))))
            best = (int) i;
    }
    return best;
}

uint8_t verbs_choice_subnet_bits(enum choice_link link, const uint8_t *gid, uint32_t netmask_bits)
{
    if (link == CHOICE_INFINIBAND)
        return IPV6_SUBNET_BITS; /* the subnet prefix */
    if (verbs_choice_gid_is_ipv4(gid))
        return (uint8_t) (IPV4_AT_BITS + (netmask_bits > 0 && netmask_bits <= 32
                                              ? netmask_bits
                                              : IPV4_BITS_UNKNOWN));
    return (uint8_t) (netmask_bits > 0 && netmask_bits <= 128 ? netmask_bits : IPV6_SUBNET_BITS);
}

static bool is_same_subnet(const struct choice_address *mine, const struct choice_address *theirs)
{
    /* If the two ends see subnets of different sizes, the larger one counts. */
    unsigned bits =
        mine->subnet_bits < theirs->subnet_bits ? mine->subnet_bits : theirs->subnet_bits;

    return bits <= 8 * CHOICE_GID_BYTES && bits_equal(mine->gid, theirs->gid, bits);
}

const char *verbs_choice_refuses(const struct choice_address *mine,
                                 const struct choice_address *theirs,
                                 const struct choice_rule *rule)
{
    if (mine->link != theirs->link)
        return "the two ports are of different kinds";
    if (((mine->pkey ^ theirs->pkey) & PKEY_NUMBER) != 0)
        return "the two ports are in different partitions (btl_verbs_pkey)";
    if (((mine->pkey | theirs->pkey) & PKEY_FULL) == 0)
        return "both ports are limited members of their partition (btl_verbs_pkey)";
    if (is_same_subnet(mine, theirs))
        return NULL;
    if (mine->link == CHOICE_INFINIBAND || rule->pairing == PAIR_SUBNET)
        return "the two ports are in different subnets (btl_verbs_pairing)";
    if (rule->pairing == PAIR_ANY)
        return NULL;
    return mine->link == CHOICE_ROCE_V2 && rule->routes && rule->routes(mine, theirs)
               ? NULL
               : "no route of this node leads by that port to the other subnet (ip route; "
                 "btl_verbs_pairing)";
}

bool verbs_choice_is_routed(const struct choice_address *mine, const struct choice_address *theirs)
{
    /* Within a subnet of InfiniBand the LID is enough, except for ports that share a LID, as
     * virtual functions may: those differ by the GID. */
    return mine->link != CHOICE_INFINIBAND || mine->needs_route != 0 || theirs->needs_route != 0;
}

/* Below 0: `a` comes before `b`, near ports before far ones and fast before slow; 0: they are
 * equal.
 */
static int port_compare(const struct choice_address *a, const struct choice_address *b)
{
    if (a->is_far != b->is_far)
        return a->is_far < b->is_far ? -1 : 1;
    return a->megabits == b->megabits ? 0 : a->megabits > b->megabits ? -1 : 1;
}

static void indices_rotate(size_t *indices, size_t count, size_t by)
{
    size_t before[CHOICE_PORTS_MAX];

    memcpy(before, indices, count * sizeof(before[0]));
    for (size_t i = 0; i < count; i++)
        indices[i] = before[(i + by) % count];
}

/* The indices of `ports` as they are taken. Equal ones are in their order, or where there are more
 * than `most`, which are used, begin at the one that `turn` says. */
static void ports_order(const struct choice_address *ports, size_t count, size_t most,
                        uint32_t turn, size_t *order)
{
    size_t end;

    for (size_t i = 0; i < count; i++) {
        size_t at = i;

        for (; at > 0 && port_compare(&ports[order[at - 1]], &ports[i]) > 0; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    for (size_t first = 0; first < count; first = end) {
        end = first + 1;
        while (end < count && port_compare(&ports[order[first]], &ports[order[end]]) == 0)
            end++;
        if (end - first > most)
            indices_rotate(&order[first], end - first, turn % (end - first));
    }
}

static bool is_behind(const char *path, const char *other)
{
    return other && (!path || strcmp(path, other) > 0);
}

void verbs_choice_order(struct choice_device *devices, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct choice_device device = devices[i];
        size_t at = i;

        for (; at > 0 && is_behind(devices[at - 1].path, device.path); at--)
            devices[at] = devices[at - 1];
        devices[at] = device;
    }
}

/* A possible pair, and what decides between it and another; the same seen from either end. */
struct candidate {
    size_t mine, theirs;
    uint32_t far, megabits;
    size_t worse, better; /* of the two places in the orders */
    const uint8_t *gids[2];
};

static void candidate_fill(struct candidate *it, const struct choice_address *mine,
                           const struct choice_address *theirs, size_t my_place, size_t their_place)
{
    bool swapped = memcmp(mine->gid, theirs->gid, CHOICE_GID_BYTES) > 0;

    it->far = (uint32_t) mine->is_far + theirs->is_far;
    it->megabits = mine->megabits < theirs->megabits ? mine->megabits : theirs->megabits;
    it->worse = my_place > their_place ? my_place : their_place;
    it->better = my_place > their_place ? their_place : my_place;
    it->gids[0] = swapped ? theirs->gid : mine->gid;
    it->gids[1] = swapped ? mine->gid : theirs->gid;
}

/* Below 0: `a` is better. */
static int candidate_compare(const void *first, const void *second)
{
    const struct candidate *a = first, *b = second;
    int order;

    if (a->far != b->far)
        return a->far < b->far ? -1 : 1;
    if (a->megabits != b->megabits)
        return a->megabits > b->megabits ? -1 : 1;
    if (a->worse != b->worse)
        return a->worse < b->worse ? -1 : 1;
    if (a->better != b->better)
        return a->better < b->better ? -1 : 1;
    order = memcmp(a->gids[0], b->gids[0], CHOICE_GID_BYTES);
    return order != 0 ? order : memcmp(a->gids[1], b->gids[1], CHOICE_GID_BYTES);
}

/* A pair with less than this part of the fastest one's speed is left out. */
#define SLOW_PART 4

static size_t rails_of(const struct choice_address *ports)
{
    return ports[0].rails == 0 ? CHOICE_PORTS_MAX : ports[0].rails;
}

void verbs_choice_pair(const struct choice_address *mine, size_t mine_count,
                       const struct choice_address *theirs, size_t theirs_count,
                       const struct choice_rule *rule, uint32_t turn, int *pairs)
{
    struct candidate candidates[CHOICE_PORTS_MAX * CHOICE_PORTS_MAX];
    size_t my_order[CHOICE_PORTS_MAX], their_order[CHOICE_PORTS_MAX], made = 0, count = 0;
    bool taken[CHOICE_PORTS_MAX] = {false};
    uint32_t fastest = 0;

    size_t most = rails_of(mine), other = rails_of(theirs);
    if (other < most)
        most = other;
    ports_order(mine, mine_count, most, turn, my_order);
    ports_order(theirs, theirs_count, most, turn, their_order);
    for (size_t i = 0; i < mine_count; i++) {
        pairs[my_order[i]] = LEFT_ALONE;
        for (size_t j = 0; j < theirs_count; j++) {
            struct candidate *it = &candidates[count];

            *it = (struct candidate){.mine = my_order[i], .theirs = their_order[j]};
            if (verbs_choice_refuses(&mine[it->mine], &theirs[it->theirs], rule))
                continue;
            candidate_fill(it, &mine[it->mine], &theirs[it->theirs], i, j);
            fastest = it->megabits > fastest ? it->megabits : fastest;
            count++;
        }
    }
    qsort(candidates, count, sizeof(candidates[0]), candidate_compare);
    for (const struct candidate *it = candidates; it < candidates + count; it++) {
        bool is_slow = (uint64_t) it->megabits * SLOW_PART < fastest;

        if (pairs[it->mine] != LEFT_ALONE || taken[it->theirs])
            continue;
        taken[it->theirs] = true;
        pairs[it->mine] = is_slow ? LEFT_SLOW : made == most ? LEFT_ENOUGH : (int) it->theirs;
        made += pairs[it->mine] >= 0;
    }
}
