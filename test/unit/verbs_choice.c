/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules of btl/verbs on forged devices: lists of ports, choice of a GID, subnets, speeds, and
 * pairs of ports that both ends agree on. */
#include "btl/verbs/choice.h"

#include <string.h>

#include "test/unit/check.h"

static const struct choice_rule subnet = {.pairing = PAIR_SUBNET}, any = {.pairing = PAIR_ANY};

#define HOLDS(condition) CHECK(condition, "%s", __func__)

/* --- lists --- */

static void lists_name_devices_and_ports(void)
{
    HOLDS(verbs_choice_is_listed("auto", "mlx5_0", 1));
    HOLDS(verbs_choice_is_listed(NULL, "mlx5_0", 1));
    HOLDS(verbs_choice_is_listed("mlx5_0", "mlx5_0", 2));
    HOLDS(verbs_choice_is_listed("mlx4_0,mlx5_0:2", "mlx5_0", 2));
    HOLDS(!verbs_choice_is_listed("mlx4_0,mlx5_0:2", "mlx5_0", 1));
    HOLDS(!verbs_choice_is_listed("mlx5_1", "mlx5_10", 1));
    HOLDS(!verbs_choice_is_listed("mlx5_10", "mlx5_1", 1));
    HOLDS(!verbs_choice_is_listed("", "mlx5_0", 1));
    HOLDS(!verbs_choice_is_listed(",", "mlx5_0", 1));
}

static void lists_exclude_after_a_caret(void)
{
    HOLDS(!verbs_choice_is_listed("^mlx5_0", "mlx5_0", 1));
    HOLDS(verbs_choice_is_listed("^mlx5_0", "mlx5_1", 1));
    HOLDS(!verbs_choice_is_listed("^mlx5_1,mlx5_0:1", "mlx5_0", 1));
    HOLDS(verbs_choice_is_listed("^mlx5_1,mlx5_0:1", "mlx5_0", 2));
    HOLDS(verbs_choice_is_listed("^", "mlx5_0", 1));
}

/* --- GIDs --- */

static struct choice_gid gid(uint32_t index, enum choice_link link, const char *bytes)
{
    struct choice_gid made = {.index = index, .link = link};

    for (int i = 0; i < CHOICE_GID_BYTES; i++) {
        static const char digits[] = "0123456789abcdef";

        made.raw[i] = (uint8_t) (16 * (strchr(digits, bytes[2 * i]) - digits) +
                                 (strchr(digits, bytes[2 * i + 1]) - digits));
    }
    return made;
}

#define LINK_LOCAL "fe8000000000000050540afffe770001"
#define GLOBAL_V6  "20010db8000000010000000000000007"
#define IPV4       "00000000000000000000ffff0a4d0001" /* 10.77.0.1 */
#define EMPTY      "00000000000000000000000000000000"

static void gid_of_infiniband_is_the_first(void)
{
    const struct choice_gid gids[] = {gid(0, CHOICE_INFINIBAND, LINK_LOCAL),
                                      gid(1, CHOICE_INFINIBAND, GLOBAL_V6)};

    HOLDS(verbs_choice_gid(gids, 2, -1, NULL) == 0);
    HOLDS(verbs_choice_gid(gids, 2, 1, NULL) == 1);
    HOLDS(verbs_choice_gid(gids, 2, 2, NULL) == -1);
}

/* As a two-port RoCE card shows its tables: each address once for v1 and once for v2. */
static void gid_of_roce_is_v2_and_ipv4_if_there_is_one(void)
{
    const struct choice_gid gids[] = {
        gid(0, CHOICE_ROCE_V1, LINK_LOCAL), gid(1, CHOICE_ROCE_V2, LINK_LOCAL),
        gid(2, CHOICE_ROCE_V1, IPV4),       gid(3, CHOICE_ROCE_V2, IPV4),
        gid(4, CHOICE_ROCE_V1, GLOBAL_V6),  gid(5, CHOICE_ROCE_V2, GLOBAL_V6)};

    HOLDS(verbs_choice_gid(gids, 6, -1, NULL) == 3);
    HOLDS(verbs_choice_gid(gids, 2, -1, NULL) == 1);
    HOLDS(verbs_choice_gid(gids, 6, 2, NULL) == 2);
    HOLDS(verbs_choice_gid(gids, 3, -1, NULL) == 1); /* a v2 of the link before a v1 of IPv4 */
    HOLDS(verbs_choice_gid(gids, 1, -1, NULL) == 0);
}

static void gid_of_ipv6_of_the_world_before_that_of_the_link(void)
{
    const struct choice_gid gids[] = {gid(0, CHOICE_ROCE_V2, LINK_LOCAL),
                                      gid(3, CHOICE_ROCE_V2, GLOBAL_V6)};

    HOLDS(verbs_choice_gid(gids, 2, -1, NULL) == 1);
}

static void gid_that_is_empty_is_none(void)
{
    const struct choice_gid gids[] = {gid(0, CHOICE_ROCE_V2, EMPTY),
                                      gid(1, CHOICE_ROCE_V1, LINK_LOCAL)};

    HOLDS(verbs_choice_gid(gids, 0, -1, NULL) == -1);
    HOLDS(verbs_choice_gid(gids, 1, -1, NULL) == -1);
    HOLDS(verbs_choice_gid(gids, 2, 0, NULL) == -1);
    HOLDS(verbs_choice_gid(gids, 2, -1, NULL) == 1);
}

/* An interface that comes by an address must not break the connections of another. One that is made
 * again may get another index. */
static void first_gid_is_taken_while_it_is_there(void)
{
    const struct choice_gid gids[] = {
        gid(0, CHOICE_ROCE_V2, IPV4), gid(1, CHOICE_ROCE_V2, GLOBAL_V6),
        gid(2, CHOICE_ROCE_V2, EMPTY), gid(3, CHOICE_ROCE_V2, GLOBAL_V6)};
    const struct choice_gid moved = gid(7, CHOICE_ROCE_V2, GLOBAL_V6);
    const struct choice_gid gone = gid(1, CHOICE_ROCE_V2, LINK_LOCAL);

    HOLDS(verbs_choice_gid(gids, 4, -1, &gids[1]) == 1);
    HOLDS(verbs_choice_gid(gids, 4, -1, &gids[3]) == 3);
    HOLDS(verbs_choice_gid(gids, 4, -1, &moved) == 1);
    HOLDS(verbs_choice_gid(gids, 4, -1, &gids[2]) == 0);
    HOLDS(verbs_choice_gid(gids, 4, -1, &gone) == 0);
    HOLDS(verbs_choice_gid(gids, 4, 0, &gids[1]) == 0);
}

/* --- subnets --- */

static struct choice_address port(enum choice_link link, const char *bytes, uint32_t mask,
                                  uint32_t megabits)
{
    struct choice_gid made = gid(0, link, bytes);
    struct choice_address address = {.link = (uint8_t) link, .megabits = megabits, .pkey = 0xffff};

    memcpy(address.gid, made.raw, CHOICE_GID_BYTES);
    address.subnet_bits = verbs_choice_subnet_bits(link, made.raw, mask);
    return address;
}

static void subnets_are_distinguished_by_the_mask(void)
{
    struct choice_address a = port(CHOICE_ROCE_V2, "00000000000000000000ffff0a4d0001", 24, 0);
    struct choice_address near = port(CHOICE_ROCE_V2, "00000000000000000000ffff0a4d00fe", 24, 0);
    struct choice_address far = port(CHOICE_ROCE_V2, "00000000000000000000ffff0a4d0102", 24, 0);
    struct choice_address wide = port(CHOICE_ROCE_V2, "00000000000000000000ffff0a4d0102", 16, 0);
    struct choice_address odd = port(CHOICE_ROCE_V2, "00000000000000000000ffff0a4d0006", 30, 0);
    struct choice_address odd_near =
        port(CHOICE_ROCE_V2, "00000000000000000000ffff0a4d0005", 30, 0);
    struct choice_address odd_far = port(CHOICE_ROCE_V2, "00000000000000000000ffff0a4d0009", 30, 0);

    HOLDS(!verbs_choice_refuses(&a, &near, &subnet));
    HOLDS(verbs_choice_refuses(&a, &far, &subnet) != NULL);
    HOLDS(!verbs_choice_refuses(&a, &far, &any));
    HOLDS(!verbs_choice_refuses(&a, &wide, &subnet) && !verbs_choice_refuses(&wide, &a, &subnet));
    HOLDS(!verbs_choice_refuses(&odd, &odd_near, &subnet));
    HOLDS(verbs_choice_refuses(&odd, &odd_far, &subnet) != NULL);
}

static void subnets_of_infiniband_are_prefixes_whatever_the_pairing(void)
{
    struct choice_address a = port(CHOICE_INFINIBAND, "fe80000000000000b8cef60300a1b2c3", 0, 0);
    struct choice_address b = port(CHOICE_INFINIBAND, "fe80000000000000b8cef60300ffffff", 0, 0);
    struct choice_address other = port(CHOICE_INFINIBAND, "fe80000000000001b8cef60300ffffff", 0, 0);

    HOLDS(!verbs_choice_refuses(&a, &b, &subnet));
    HOLDS(verbs_choice_refuses(&a, &other, &subnet) != NULL);
    HOLDS(verbs_choice_refuses(&a, &other, &any) != NULL); /* no LID leads there */
}

static void links_of_different_kinds_never_pair(void)
{
    struct choice_address v1 = port(CHOICE_ROCE_V1, IPV4, 24, 0);
    struct choice_address v2 = port(CHOICE_ROCE_V2, IPV4, 24, 0);
    struct choice_address ib = port(CHOICE_INFINIBAND, IPV4, 24, 0);

    HOLDS(verbs_choice_refuses(&v1, &v2, &any) != NULL);
    HOLDS(verbs_choice_refuses(&v2, &ib, &any) != NULL);
}

static void infiniband_is_routed_where_either_end_needs_it(void)
{
    struct choice_address a = port(CHOICE_INFINIBAND, "fe80000000000000b8cef60300a1b2c3", 0, 0);
    struct choice_address b = port(CHOICE_INFINIBAND, "fe80000000000000b8cef60300ffffff", 0, 0);
    struct choice_address virtual = b;

    virtual.needs_route = 1;
    HOLDS(!verbs_choice_is_routed(&a, &b));
    HOLDS(verbs_choice_is_routed(&a, &virtual) && verbs_choice_is_routed(&virtual, &a));
    HOLDS(verbs_choice_is_routed(&virtual, &virtual));
}

static void roce_is_always_routed(void)
{
    struct choice_address v1 = port(CHOICE_ROCE_V1, IPV4, 24, 0);
    struct choice_address v2 = port(CHOICE_ROCE_V2, IPV4, 24, 0);

    HOLDS(verbs_choice_is_routed(&v1, &v1) && verbs_choice_is_routed(&v2, &v2));
}

static void a_forged_size_of_a_subnet_reads_nothing_beyond_the_gid(void)
{
    struct choice_address a = port(CHOICE_ROCE_V2, IPV4, 24, 0), b = a;

    a.subnet_bits = b.subnet_bits = 255;
    HOLDS(verbs_choice_refuses(&a, &b, &subnet) != NULL);
}

/* --- pairs --- */

static bool pairs_agree(const struct choice_address *a, size_t a_count,
                        const struct choice_address *b, size_t b_count,
                        const struct choice_rule *rule, uint32_t turn)
{
    int from_a[CHOICE_PORTS_MAX], from_b[CHOICE_PORTS_MAX];

    verbs_choice_pair(a, a_count, b, b_count, rule, turn, from_a);
    verbs_choice_pair(b, b_count, a, a_count, rule, turn, from_b);
    for (size_t i = 0; i < a_count; i++)
        if (from_a[i] >= 0 && from_b[from_a[i]] != (int) i)
            return false;
    for (size_t i = 0; i < b_count; i++)
        if (from_b[i] >= 0 && from_a[from_b[i]] != (int) i)
            return false;
    return true;
}

static void rails_pair_within_their_subnet(void)
{
    const struct choice_address a[] = {
        port(CHOICE_ROCE_V2, "00000000000000000000ffff0a4d0001", 24, 100),
        port(CHOICE_ROCE_V2, "00000000000000000000ffff0a4d0101", 24, 100)};
    /* The other node names its devices the other way round. */
    const struct choice_address b[] = {
        port(CHOICE_ROCE_V2, "00000000000000000000ffff0a4d0102", 24, 100),
        port(CHOICE_ROCE_V2, "00000000000000000000ffff0a4d0002", 24, 100)};
    int pairs[2];

    verbs_choice_pair(a, 2, b, 2, &subnet, 0, pairs);
    HOLDS(pairs[0] == 1 && pairs[1] == 0);
    verbs_choice_pair(a, 2, b, 2, &any, 0, pairs);
    HOLDS(pairs[0] == 0 && pairs[1] == 1);
}

static void ports_of_one_fabric_pair_by_speed_then_order(void)
{
    const struct choice_address a[] = {
        port(CHOICE_INFINIBAND, "fe80000000000000b8cef60300000001", 0, 100000),
        port(CHOICE_INFINIBAND, "fe80000000000000b8cef60300000002", 0, 200000),
        port(CHOICE_INFINIBAND, "fe80000000000000b8cef60300000003", 0, 200000)};
    const struct choice_address b[] = {
        port(CHOICE_INFINIBAND, "fe80000000000000b8cef60300000011", 0, 200000),
        port(CHOICE_INFINIBAND, "fe80000000000000b8cef60300000012", 0, 100000)};
    int pairs[3];

    verbs_choice_pair(a, 3, b, 2, &subnet, 0, pairs);
    HOLDS(pairs[0] == -1 && pairs[1] == 0 && pairs[2] == 1);
    HOLDS(pairs_agree(a, 3, b, 2, &subnet, 0));
}

/* Whatever ports two nodes have, both ends come to the same pairs. */
static void pairs_are_the_same_from_both_ends(void)
{
    static const char *const gids[] = {
        "fe80000000000000b8cef60300000001", "fe80000000000001b8cef60300000001",
        "00000000000000000000ffff0a4d0001", "00000000000000000000ffff0a4d0101",
        "20010db8000000010000000000000007"};
    uint32_t state = 12345;

    for (int round = 0; round < 20000; round++) {
        struct choice_address sides[2][6];
        size_t counts[2];

        for (int side = 0; side < 2; side++) {
            state = state * 1664525u + 1013904223u;
            counts[side] = (state >> 16) % 7;
            for (size_t i = 0; i < counts[side]; i++) {
                unsigned which, speed;

                state = state * 1664525u + 1013904223u;
                which = (state >> 16) % 5;
                speed = (state >> 24) % 7;
                sides[side][i] = port(which < 2 ? CHOICE_INFINIBAND : CHOICE_ROCE_V2, gids[which],
                                      24, 100 * speed);
                sides[side][i].gid[15] = (uint8_t) (1 + i + 16 * (unsigned) side);
                sides[side][i].is_far = (state >> 20) % 2;
                sides[side][i].rails = (uint8_t) (round % 3);
            }
        }
        HOLDS(pairs_agree(sides[0], counts[0], sides[1], counts[1], round % 2 == 0 ? &any : &subnet,
                          (uint32_t) round / 7));
    }
}

static bool depth_is(uint32_t far, uint32_t set, uint32_t requests, uint32_t inline_bytes)
{
    struct choice_depth depth;

    verbs_choice_depth(far, set, &depth);
    return depth.requests == requests && depth.inline_bytes == inline_bytes;
}

static void connections_are_smaller_where_they_are_many(void)
{
    HOLDS(depth_is(0, 0, 128, 256) && depth_is(256, 0, 128, 256));
    HOLDS(depth_is(257, 0, 32, 64) && depth_is(1000000, 0, 32, 64));
    HOLDS(depth_is(257, 512, 512, 64)); /* what the user sets counts */
    HOLDS(depth_is(3, 16, 16, 256));
}

static void speeds_are_those_of_the_specification(void)
{
    HOLDS(verbs_choice_megabits(1, 2, false) == 8000);     /* SDR 4X */
    HOLDS(verbs_choice_megabits(32, 2, false) == 100000);  /* EDR 4X */
    HOLDS(verbs_choice_megabits(64, 2, false) == 200000);  /* HDR 4X */
    HOLDS(verbs_choice_megabits(128, 2, false) == 400000); /* NDR 4X */
    HOLDS(verbs_choice_megabits(3, 2, false) == 0 && verbs_choice_megabits(1, 3, false) == 0);
}

static void speeds_of_ethernet_and_of_new_links_are_known(void)
{
    HOLDS(verbs_choice_megabits(4, 1, true) == 10000); /* 10 GbE */
    HOLDS(verbs_choice_megabits(4, 2, true) == 40000);
    HOLDS(verbs_choice_megabits(32, 1, true) == 25000);
    HOLDS(verbs_choice_megabits(4, 2, false) == 32000);    /* QDR */
    HOLDS(verbs_choice_megabits(256, 2, false) == 800000); /* XDR */
    HOLDS(verbs_choice_megabits_shown("800 Gb/sec (4X XDR)") == 800000);
    HOLDS(verbs_choice_megabits_shown("2.5 Gb/sec (1X SDR)") == 2500);
    HOLDS(verbs_choice_megabits_shown("fast") == 0 &&
          verbs_choice_megabits_shown("-1 Gb/sec") == 0);
}

static void partitions_are_found_by_their_key(void)
{
    const uint16_t keys[] = {0x7fff, 0, 0x8005, 0xffff, 0x0009};

    HOLDS(verbs_choice_pkey(keys, 5, 0) == 2); /* the first full one */
    HOLDS(verbs_choice_pkey(keys, 5, 0x7fff) == 3 && verbs_choice_pkey(keys, 5, 0xffff) == 3);
    HOLDS(verbs_choice_pkey(keys, 5, 9) == 4 && verbs_choice_pkey(keys, 5, 0x8005) == 2);
    HOLDS(verbs_choice_pkey(keys, 5, 7) == -1 && verbs_choice_pkey(keys, 0, 0) == -1);
    HOLDS(verbs_choice_pkey(keys, 1, 0) == 0);
}

static void ports_of_different_partitions_never_pair(void)
{
    struct choice_address a = port(CHOICE_ROCE_V2, IPV4, 24, 0), b = a;

    b.pkey = 0x8001;
    HOLDS(verbs_choice_refuses(&a, &b, &any) != NULL);
    b.pkey = 0x7fff;
    HOLDS(!verbs_choice_refuses(&a, &b, &any));
    a.pkey = 0x7fff; /* two limited members */
    HOLDS(verbs_choice_refuses(&a, &b, &any) != NULL);
}

static bool never(const struct choice_address *mine, const struct choice_address *theirs)
{
    (void) mine, (void) theirs;
    return false;
}

static bool always(const struct choice_address *mine, const struct choice_address *theirs)
{
    (void) mine, (void) theirs;
    return true;
}

static void subnets_are_joined_by_routes_of_v2(void)
{
    struct choice_address a = port(CHOICE_ROCE_V2, "00000000000000000000ffff0a4d0001", 24, 0);
    struct choice_address far = port(CHOICE_ROCE_V2, "00000000000000000000ffff0a4d0102", 24, 0);
    struct choice_rule rule = {.pairing = PAIR_ROUTE, .routes = always};

    HOLDS(!verbs_choice_refuses(&a, &far, &rule));
    rule.routes = never;
    HOLDS(verbs_choice_refuses(&a, &far, &rule) != NULL);
    HOLDS(!verbs_choice_refuses(&a, &a, &rule)); /* one subnet needs no route */
    rule.routes = always;
    a.link = far.link = CHOICE_ROCE_V1;
    HOLDS(verbs_choice_refuses(&a, &far, &rule) != NULL);
}

#define RAIL(last, megabits)                                                                       \
    port(CHOICE_INFINIBAND, "fe80000000000000b8cef603000000" last, 0, megabits)

static void a_slow_port_beside_a_fast_one_is_left_out(void)
{
    const struct choice_address a[] = {RAIL("01", 200000), RAIL("02", 10000)};
    const struct choice_address b[] = {RAIL("11", 10000), RAIL("12", 200000)};
    int pairs[2];

    verbs_choice_pair(a, 2, b, 2, &subnet, 0, pairs);
    HOLDS(pairs[0] == 1 && pairs[1] == LEFT_SLOW);
    verbs_choice_pair(&a[1], 1, b, 2, &subnet, 0, pairs); /* but not where it is the only one */
    HOLDS(pairs[0] == 1);
}

static void near_ports_come_first_and_so_many_as_wanted(void)
{
    struct choice_address a[] = {RAIL("01", 400), RAIL("02", 400), RAIL("03", 400),
                                 RAIL("04", 400)};
    struct choice_address b[] = {RAIL("11", 400), RAIL("12", 400), RAIL("13", 400),
                                 RAIL("14", 400)};
    int pairs[4];

    for (int i = 0; i < 4; i++) {
        a[i].rails = 2;
        b[i].rails = 3;
        a[i].is_far = i < 2; /* near are the last two, at the other end the first two */
        b[i].is_far = i >= 2;
    }
    verbs_choice_pair(a, 4, b, 4, &subnet, 0, pairs);
    HOLDS(pairs[0] == LEFT_ENOUGH && pairs[1] == LEFT_ENOUGH);
    HOLDS(pairs[2] + pairs[3] == 1 && pairs[2] >= 0 && pairs[3] >= 0);
    HOLDS(pairs_agree(a, 4, b, 4, &subnet, 0));
}

/* Of more equal ports than are wanted each pair of processes begins at another, the same port at
 * both ends, so that all are used alike. */
static void equal_ports_are_used_in_turn(void)
{
    struct choice_address a[6] = {RAIL("01", 400), RAIL("02", 400), RAIL("03", 400),
                                  RAIL("04", 400), RAIL("05", 400), RAIL("06", 100)};
    struct choice_address b[6] = {RAIL("11", 400), RAIL("12", 400), RAIL("13", 400),
                                  RAIL("14", 400), RAIL("15", 400), RAIL("16", 100)};
    int pairs[6], uses[6] = {0};

    for (int i = 0; i < 6; i++)
        a[i].rails = b[i].rails = 2;
    a[4].is_far = b[4].is_far = 1; /* four equal ones are left */
    for (uint32_t turn = 0; turn < 8; turn++) {
        verbs_choice_pair(a, 6, b, 6, &subnet, turn, pairs);
        for (int i = 0; i < 6; i++) {
            HOLDS(pairs[i] == i || pairs[i] < 0);
            uses[i] += pairs[i] >= 0;
        }
        HOLDS(pairs[turn % 4] >= 0 && pairs[(turn + 1) % 4] >= 0);
        HOLDS(pairs_agree(a, 6, b, 6, &subnet, turn));
    }
    HOLDS(uses[0] == 4 && uses[1] == 4 && uses[2] == 4 && uses[3] == 4);
    HOLDS(uses[4] == 0 && uses[5] == 0);
    a[0].rails = b[0].rails = 4; /* all are used: in their order, whose turn it is */
    verbs_choice_pair(a, 4, b, 4, &subnet, 3, pairs);
    HOLDS(pairs[0] == 0 && pairs[1] == 1 && pairs[2] == 2 && pairs[3] == 3);
    a[0].rails = b[0].rails = 2; /* four ports here, two there: both of those are used */
    for (uint32_t turn = 0; turn < 8; turn++) {
        int used = 0;
        verbs_choice_pair(a, 4, b, 2, &subnet, turn, pairs);
        for (int i = 0; i < 4; i++)
            used += pairs[i] >= 0;
        HOLDS(used == 2);
        HOLDS(pairs_agree(a, 4, b, 2, &subnet, turn));
    }
}

/* Names follow the order in which drivers found the adapters; their places stay. */
static void devices_are_ordered_by_their_places(void)
{
    struct choice_device devices[] = {
        {"fourth", NULL},
        {"third", (char[]){"/sys/devices/pci0000:80/0000:80:02.0/0000:82:00.0"}},
        {"second", (char[]){"/sys/devices/pci0000:00/0000:00:02.0/0000:03:00.1"}},
        {"first", (char[]){"/sys/devices/pci0000:00/0000:00:02.0/0000:03:00.0"}},
        {"fifth", NULL}};
    static const char *const wanted[] = {"first", "second", "third", "fourth", "fifth"};

    verbs_choice_order(devices, 5);
    for (size_t i = 0; i < 5; i++)
        HOLDS(strcmp(devices[i].device, wanted[i]) == 0);
    verbs_choice_order(devices, 0);
}

int main(void)
{
    devices_are_ordered_by_their_places();
    equal_ports_are_used_in_turn();
    lists_name_devices_and_ports();
    lists_exclude_after_a_caret();
    gid_of_infiniband_is_the_first();
    gid_of_roce_is_v2_and_ipv4_if_there_is_one();
    gid_of_ipv6_of_the_world_before_that_of_the_link();
    gid_that_is_empty_is_none();
    first_gid_is_taken_while_it_is_there();
    subnets_are_distinguished_by_the_mask();
    subnets_of_infiniband_are_prefixes_whatever_the_pairing();
    links_of_different_kinds_never_pair();
    infiniband_is_routed_where_either_end_needs_it();
    roce_is_always_routed();
    a_forged_size_of_a_subnet_reads_nothing_beyond_the_gid();
    rails_pair_within_their_subnet();
    ports_of_one_fabric_pair_by_speed_then_order();
    pairs_are_the_same_from_both_ends();
    connections_are_smaller_where_they_are_many();
    speeds_are_those_of_the_specification();
    speeds_of_ethernet_and_of_new_links_are_known();
    partitions_are_found_by_their_key();
    ports_of_different_partitions_never_pair();
    subnets_are_joined_by_routes_of_v2();
    a_slow_port_beside_a_fast_one_is_left_out();
    near_ports_come_first_and_so_many_as_wanted();
    return check_end();
}
