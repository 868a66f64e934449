/* SPDX-License-Identifier: BSD-3-Clause */
/* From the words of BTLs, ours and Open MPI's, to the model's. */
#include "common/lane/declared.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

_Static_assert(MULTILANE_LANE_RANGES_MAX <= MODEL_LANE_RANGES_MAX, "what a BTL declares fits");

/* In the extension's words a value below 0 is not known, and a bandwidth of 0 has no bound. */
static double convert(const char *btl, enum model_attribute attribute, double value,
                      struct error_text *complaint)
{
    struct error_text why;
    double assumed = model_attributes[attribute].assumed;
    if (attribute == MODEL_BANDWIDTH ? value <= 0 : value < 0)
        return attribute == MODEL_BANDWIDTH ? INFINITY : 0;
    if (model_attribute_check(attribute, value, &why))
        return value;
    if (!complaint->text[0])
        fail_with(complaint, "BTL %s declares what cannot be: %.200s; %g is assumed", btl, why.text,
                  assumed);
    return assumed;
}

static void convert_cost(const char *btl, const struct multilane_lane_cost *from,
                         struct model_lane_cost *to, struct error_text *complaint)
{
    to->range_count = from->range_count <= MULTILANE_LANE_RANGES_MAX ? from->range_count : 0;
    for (uint32_t i = 0; i < to->range_count; i++) {
        to->ranges[i].largest_bytes = from->ranges[i].largest_bytes;
        for (int j = 0; j < MODEL_ATTRIBUTES; j++)
            *model_attribute_in(&to->ranges[i], j) = convert(
                btl, (enum model_attribute) j, model_attribute_of(&from->ranges[i], j), complaint);
    }
}

static uint32_t abilities(uint64_t capabilities)
{
    return (capabilities & MULTILANE_CAN_CONTROL ? MODEL_CAN_CONTROL : 0) |
           (capabilities & MULTILANE_CAN_COPY ? MODEL_CAN_COPY : 0) |
           (capabilities & MULTILANE_CAN_DELIVER ? MODEL_CAN_DELIVER : 0) |
           (capabilities & MULTILANE_CAN_FENCE ? MODEL_CAN_FENCE : 0) |
           (capabilities & MULTILANE_CAN_RING ? MODEL_CAN_RING : 0);
}

void declared_attributes(const char *btl, uint32_t can,
                         const struct multilane_lane_attributes *attributes,
                         struct model_lane *lane, struct error_text *complaint)
{
    complaint->text[0] = '\0';
    model_lane_init(lane, btl);
    if (attributes->device[0] && attributes->device[sizeof(attributes->device) - 1] == '\0')
        snprintf(lane->name, sizeof(lane->name), "%s:%.40s", btl, attributes->device);
    lane->can = can | abilities(attributes->capabilities);
    lane->reach = (attributes->memory & MODEL_MEMORY_HOST ? MODEL_MEMORY_HOST : 0) |
                  (attributes->memory & MODEL_MEMORY_CUDA ? MODEL_MEMORY_CUDA : 0);
    lane->use = MODEL_USE_BOTH;
    lane->group = attributes->capacity_group;
    lane->short_max_bytes = attributes->short_max_bytes;
    lane->copied_max_bytes = attributes->copied_max_bytes;
    lane->zcopied_max_bytes = attributes->zcopied_max_bytes;
    if (attributes->copy_s_byte > 0 && attributes->copy_s_byte <= MODEL_TIME_S_MAX)
        lane->copy_growth_s_byte = attributes->copy_s_byte;
    for (int way = 0; way < MULTILANE_WAYS; way++)
        convert_cost(btl, &attributes->cost[way], &lane->cost[way], complaint);
    if (lane->cost[MODEL_BY_GET].range_count == 0)
        lane->can &= ~(uint32_t) MODEL_CAN_GET;
    if (lane->cost[MODEL_BY_PUT].range_count == 0)
        lane->can &= ~(uint32_t) MODEL_CAN_PUT;
    model_lane_set_source(lane, MODEL_WAYS, MODEL_ATTRIBUTES, MODEL_SOURCE_DECLARED);
}

/* --- Open MPI's BTLs -------------------------------------------------------------------------- */

/* Units in which BTLs give btl_bandwidth. */
#define MEGABIT_S  (1e6 / 8)
#define MEBIBYTE_S 1048576.0

/* What a BTL costs where it was not measured. Times are effective, as the equation wants them: what
 * its lines leave out is in the overheads. vader, sm and self: measured on two cores of one socket
 * by ping-pongs of the protocols; the others: their own defaults and public figures. */
struct stock_btl_default {
    const char *name;
    double unit;        /* bytes a second of one unit of btl_bandwidth */
    unsigned is;        /* of these: */
#define A_LINK       1  /* btl_bandwidth is that of the link, not just a rank */
#define EMULATES_GET 2  /* it is a message in disguise; */
#define EMULATES_PUT 16 /* so is this. tcp's put is read where it belongs, without a copy */
#define EXACT        4  /* see stock_btl_sendi_leaves */
    double latency_s;
    /* Sends: overhead of both ends and bandwidth (0: the link's), of messages up to `small_bytes`
     * and of larger ones. */
    uint64_t small_bytes;
    double small_s, small_bytes_s;
    double large_s, large_bytes_s;
    /* Gets and puts, and the registration that they need. */
    double rma_s, rma_bytes_s;
    double reg_cost_s, reg_growth_s_byte;
};

#define ANY_SIZE UINT64_MAX

static const struct stock_btl_default defaults[] = {
    {"self", MEGABIT_S, EXACT, 10e-9, 65536, 60e-9, 70e9, 60e-9, 70e9, 40e-9, 110e9, 0, 0},
    {"vader", MEGABIT_S, EXACT, 80e-9, 984, 0.1e-6, 18e9, 0.2e-6, 25e9, 0.45e-6, 14e9, 0, 0},
    {"sm", MEGABIT_S, EXACT, 80e-9, 984, 0.1e-6, 18e9, 0.2e-6, 25e9, 0.45e-6, 14e9, 0, 0},
    {"smcuda", MEGABIT_S, 0, 0.2e-6, 4096, 0.6e-6, 5e9, 1.5e-6, 5e9, 1e-6, 8e9, 0, 0},
    {"tcp", MEGABIT_S, A_LINK | EMULATES_GET, 20e-6, ANY_SIZE, 0, 0, 10e-6, 0, 10e-6, 0, 0, 0},
    {"usnic", MEGABIT_S, A_LINK | EMULATES_GET | EMULATES_PUT, 3e-6, ANY_SIZE, 0, 0, 1e-6, 0, 0, 0,
     0, 0},
    {"openib", MEGABIT_S, A_LINK, 1.2e-6, ANY_SIZE, 0, 0, 0.6e-6, 0, 0.5e-6, 0, 16e-6, 0.06e-9},
    {"uct", MEBIBYTE_S, A_LINK, 1e-6, ANY_SIZE, 0, 0, 0.4e-6, 0, 0.4e-6, 0, 16e-6, 0.06e-9},
    {"ugni", MEBIBYTE_S, A_LINK, 1.5e-6, ANY_SIZE, 0, 0, 0.5e-6, 0, 0.5e-6, 0, 10e-6, 0.06e-9},
    {"ofi", MEGABIT_S, 0, 1.5e-6, ANY_SIZE, 0, 0, 0.6e-6, 10e9, 0.6e-6, 10e9, 16e-6, 0.06e-9},
    {"portals4", MEGABIT_S, 0, 1.5e-6, ANY_SIZE, 0, 0, 0.6e-6, 10e9, 0.6e-6, 10e9, 0, 0},
};

/* For a BTL that is not in the table. */
static const struct stock_btl_default unknown = {"", MEGABIT_S, A_LINK, 10e-6, ANY_SIZE, 0, 0, 2e-6,
                                                 0,  2e-6,      0,      16e-6, 0.06e-9};

/* Where a link's bandwidth is to be believed and is not given. */
#define FALLBACK_BYTES_S 1e9
/* No link is faster, nor slower; a value outside is a slip. */
#define FASTEST_BYTES_S    1e13
#define SLOWEST_BYTES_S    1e3
#define HIGHEST_LATENCY_US 10000000

static const struct stock_btl_default *default_of(const char *name)
{
    for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++)
        if (strcmp(defaults[i].name, name) == 0)
            return &defaults[i];
    return &unknown;
}

double stock_btl_bandwidth(const char *name, uint32_t bandwidth)
{
    return bandwidth * default_of(name)->unit;
}

bool stock_btl_sendi_leaves(const char *name)
{
    return default_of(name)->is & EXACT;
}

/* The link's bandwidth: as said by the BTL if that can be true. */
static double link_bandwidth(const struct stock_btl *btl, const struct stock_btl_default *known,
                             struct error_text *complaint)
{
    if (!(known->is & A_LINK))
        return FALLBACK_BYTES_S;
    double said = stock_btl_bandwidth(btl->name, btl->bandwidth);
    if (said >= SLOWEST_BYTES_S && said <= FASTEST_BYTES_S)
        return said;
    fail_with(
        complaint,
        "BTL %s says that its bandwidth is %u, which cannot be; %g bytes a second are assumed "
        "(pml_multilane_lane_attr sets it)",
        btl->name, btl->bandwidth, FALLBACK_BYTES_S);
    return FALLBACK_BYTES_S;
}

/* A BTL's latency only ranks it, so the default counts anyhow; but a slip is worth a word. */
static void check_latency(const struct stock_btl *btl, struct error_text *complaint)
{
    if (btl->latency > HIGHEST_LATENCY_US && !complaint->text[0])
        fail_with(complaint,
                  "BTL %s says that its latency is %u, which cannot be; %g s are assumed "
                  "(pml_multilane_lane_attr sets it)",
                  btl->name, btl->latency, default_of(btl->name)->latency_s);
}

static void set_range(struct model_lane_range *range, uint64_t largest, double latency_s,
                      double overhead_s, double bytes_s)
{
    *range = (struct model_lane_range){
        .largest_bytes = largest, .latency_s = latency_s, .bandwidth_bytes_s = bytes_s};
    model_overhead_divide(overhead_s, &range->overhead_send_s, &range->overhead_receive_s);
}

static void set_sends(struct model_lane *lane, const struct stock_btl_default *known, double link)
{
    struct model_lane_cost *cost = &lane->cost[MODEL_BY_SEND];
    uint32_t count = 0;
    if (known->small_bytes != ANY_SIZE)
        set_range(&cost->ranges[count++], known->small_bytes, known->latency_s, known->small_s,
                  known->small_bytes_s > 0 ? known->small_bytes_s : link);
    set_range(&cost->ranges[count++], UINT64_MAX, known->latency_s, known->large_s,
              known->large_bytes_s > 0 ? known->large_bytes_s : link);
    cost->range_count = count;
}

static void set_rma(struct model_lane *lane, enum model_way way,
                    const struct stock_btl_default *known, double link, bool registers)
{
    struct model_lane_cost *cost = &lane->cost[way];
    set_range(&cost->ranges[0], UINT64_MAX, known->latency_s, known->rma_s,
              known->rma_bytes_s > 0 ? known->rma_bytes_s : link);
    if (registers) {
        cost->ranges[0].reg_cost_s = known->reg_cost_s;
        cost->ranges[0].reg_growth_s_byte = known->reg_growth_s_byte;
    }
    cost->range_count = 1;
}

static void set_sources(struct model_lane *lane, const struct stock_btl_default *known)
{
    model_lane_set_source(lane, MODEL_WAYS, MODEL_ATTRIBUTES, MODEL_SOURCE_DEFAULT);
    if (known->is & A_LINK)
        model_lane_set_source(lane, MODEL_WAYS, MODEL_BANDWIDTH, MODEL_SOURCE_STOCK_BTL);
}

void stock_btl_attributes(const struct stock_btl *btl, struct model_lane *lane,
                          struct error_text *complaint)
{
    const struct stock_btl_default *known = default_of(btl->name);
    complaint->text[0] = '\0';
    model_lane_init(lane, btl->name);
    lane->use = MODEL_USE_BOTH;
    lane->reach = MODEL_MEMORY_HOST;
    set_sources(lane, known);
    double link = link_bandwidth(btl, known, complaint);
    if (complaint->text[0])
        model_lane_set_source(lane, MODEL_WAYS, MODEL_BANDWIDTH, MODEL_SOURCE_DEFAULT);
    check_latency(btl, complaint);

    lane->can = btl->can;
    if (lane->can & MODEL_CAN_SEND) {
        set_sends(lane, known, link);
        lane->copied_max_bytes = btl->eager_limit;
        lane->zcopied_max_bytes = btl->max_send_size;
    }
    if (known->is & EMULATES_GET)
        lane->can &= ~(uint32_t) MODEL_CAN_GET;
    if (known->is & EMULATES_PUT)
        lane->can &= ~(uint32_t) MODEL_CAN_PUT;
    if (lane->can & MODEL_CAN_SHORT)
        lane->short_max_bytes = btl->eager_limit;
    if (lane->can & MODEL_CAN_GET)
        set_rma(lane, MODEL_BY_GET, known, link, btl->registers);
    if (lane->can & MODEL_CAN_PUT)
        set_rma(lane, MODEL_BY_PUT, known, link, btl->registers);
    lane->reg_cached_s = btl->registers ? 0.1e-6 : -1;
}

/* --- networks of tcp -------------------------------------------------------------------------- */

/* btl_tcp_bandwidth, unless the user sets it: 100 Mbit/s, whatever the network. */
#define TCP_BANDWIDTH_DEFAULT 100

/* A network of which the kernel says nothing, loopback and virtual ones among them: 10 Gbit/s. */
#define NETWORK_BYTES_S 1.25e9

bool stock_btl_knows_no_network(const char *name, uint32_t bandwidth)
{
    return strcmp(name, "tcp") == 0 && bandwidth == TCP_BANDWIDTH_DEFAULT;
}

void stock_btl_network(double link_bytes_s, struct model_lane *lane)
{
    bool is_known = link_bytes_s > 0;
    for (int way = 0; way < MODEL_WAYS; way++)
        for (uint32_t i = 0; i < lane->cost[way].range_count; i++)
            lane->cost[way].ranges[i].bandwidth_bytes_s = is_known ? link_bytes_s : NETWORK_BYTES_S;
    model_lane_set_source(lane, MODEL_WAYS, MODEL_BANDWIDTH,
                          is_known ? MODEL_SOURCE_LINK : MODEL_SOURCE_DEFAULT);
    lane->shared_bytes_s = is_known ? link_bytes_s : 0;
}

/* --- connections inside a node ---------------------------------------------------------------- */

/* Lanes of tcp inside a node share its processors. */
#define SOCKET_GROUP 99

/* One way over a connection, 64 bytes, and what 256 KiB take more that the receiver reads where
 * they belong: between what virtual machines and servers show. What the border between messages
 * and puts lies at is their ratio, which differs less than they do. */
#define SOCKET_SMALL_S 4.5e-6
#define SOCKET_BYTE_S  (30e-6 / (256 << 10))

/* A message of btl/tcp takes this more than the bare connection: epoll, and Open MPI's event loop.
 */
#define EVENT_LOOP 1.5

/* Nothing is on its way here: one end's processor hands the data to the other's. So all that a
 * small message takes are overheads. */
static void socket_set(double overhead_s, double copies, enum model_way way,
                       struct model_lane *lane)
{
    for (uint32_t i = 0; i < lane->cost[way].range_count; i++) {
        struct model_lane_range *range = &lane->cost[way].ranges[i];
        range->latency_s = 0;
        range->overhead_send_s = range->overhead_receive_s = overhead_s;
        range->bandwidth_bytes_s = 1 / (copies * SOCKET_BYTE_S);
    }
}

void declared_inside_node(bool has_event_loop, struct model_lane *lane)
{
    double overhead_s = (has_event_loop ? EVENT_LOOP : 1) * SOCKET_SMALL_S / 2;
    /* A put is read where it belongs; a message into a fragment, and copied from there. */
    socket_set(overhead_s, 2, MODEL_BY_SEND, lane);
    socket_set(overhead_s, 1, MODEL_BY_PUT, lane);
    for (int attribute = 0; attribute <= MODEL_OVERHEAD_RECEIVE; attribute++)
        model_lane_set_source(lane, MODEL_WAYS, (enum model_attribute) attribute,
                              MODEL_SOURCE_DEFAULT);
    lane->shared_bytes_s = 0; /* of the interface, which carries none of it */
    lane->group = SOCKET_GROUP;
}
