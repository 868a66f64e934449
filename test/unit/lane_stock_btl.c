/* SPDX-License-Identifier: BSD-3-Clause */
/* What Open MPI's BTLs say of themselves, in their own units, as lanes of the model. */
#include "check.h"

#include <string.h>

#include "common/lane/declared.h"

/* --- units --------------------------------------------------------------------------------------
 */

#define MEGABIT  125000.0
#define MEBIBYTE 1048576.0

static void expect_unit(const char *name, double unit)
{
    CHECK(stock_btl_bandwidth(name, 1) == unit, "%s: one is %g bytes/s, not %g", name,
          stock_btl_bandwidth(name, 1), unit);
    CHECK(stock_btl_bandwidth(name, 10000) == 10000 * unit, "%s: 10000", name);
    CHECK(stock_btl_bandwidth(name, 0) == 0, "%s: 0", name);
    CHECK(stock_btl_bandwidth(name, UINT32_MAX) == (double) UINT32_MAX * unit, "%s: the most",
          name);
}

/* Of each BTL: btl_bandwidth as its sources set it. */
static void units_are_those_of_the_sources(void)
{
    static const char *const megabits[] = {"self",   "vader", "sm",  "smcuda",   "tcp",
                                           "openib", "usnic", "ofi", "portals4", "somebodys"};
    static const char *const mebibytes[] = {"uct", "ugni"};
    for (size_t i = 0; i < sizeof(megabits) / sizeof(megabits[0]); i++)
        expect_unit(megabits[i], MEGABIT);
    for (size_t i = 0; i < sizeof(mebibytes) / sizeof(mebibytes[0]); i++)
        expect_unit(mebibytes[i], MEBIBYTE);
}

/* --- lanes --------------------------------------------------------------------------------------
 */

static struct stock_btl able(const char *name, uint32_t bandwidth)
{
    return (struct stock_btl){.name = name,
                              .bandwidth = bandwidth,
                              .latency = 1,
                              .can =
                                  MODEL_CAN_SEND | MODEL_CAN_SHORT | MODEL_CAN_GET | MODEL_CAN_PUT,
                              .registers = true,
                              .eager_limit = 4096,
                              .max_send_size = 32768};
}

static double bandwidth_of(const struct stock_btl *btl, struct model_lane *lane,
                           struct error_text *complaint)
{
    stock_btl_attributes(btl, lane, complaint);
    const struct model_lane_range *range = model_lane_range_at(lane, MODEL_BY_SEND, UINT64_MAX);
    return range ? range->bandwidth_bytes_s : -1;
}

static void a_link_has_the_bandwidth_it_says(void)
{
    static const struct {
        const char *name;
        uint32_t said;
        double bytes_s;
    } cases[] = {
        {"tcp", 1000, 125e6},
        {"tcp", 100000, 12.5e9},
        {"openib", 100000, 12.5e9},
        {"usnic", 10000, 1.25e9},
        {"uct", 11000, 11000 * MEBIBYTE},
        {"ugni", 8000, 8000 * MEBIBYTE},
        {"somebodys", 40000, 5e9},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stock_btl btl = able(cases[i].name, cases[i].said);
        struct model_lane lane;
        struct error_text complaint;
        double bytes_s = bandwidth_of(&btl, &lane, &complaint);
        CHECK(bytes_s == cases[i].bytes_s && !complaint.text[0], "%s: %g, \"%s\"", cases[i].name,
              bytes_s, complaint.text);
        CHECK(cases[i].name[0] == 's' ||
                  lane.source[MODEL_BY_SEND][0][MODEL_BANDWIDTH] == MODEL_SOURCE_STOCK_BTL,
              "%s: source %d", cases[i].name, lane.source[MODEL_BY_SEND][0][MODEL_BANDWIDTH]);
    }
}

/* In shared memory the number only ranks BTLs, so no value of it matters. */
static void a_ranking_is_not_taken_for_a_bandwidth(void)
{
    static const char *const names[] = {"self", "vader", "sm", "smcuda"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct stock_btl one = able(names[i], 1), more = able(names[i], 4000000);
        struct model_lane lane;
        struct error_text complaint;
        double first = bandwidth_of(&one, &lane, &complaint);
        CHECK(first == bandwidth_of(&more, &lane, &complaint) && first > 1e9, "%s: %g", names[i],
              first);
        CHECK(!complaint.text[0] &&
                  lane.source[MODEL_BY_SEND][0][MODEL_BANDWIDTH] == MODEL_SOURCE_DEFAULT,
              "%s", complaint.text);
    }
}

static void an_absurd_bandwidth_is_complained_of_and_not_used(void)
{
    static const struct {
        const char *name;
        uint32_t said;
    } cases[] = {{"tcp", 0}, {"uct", 0}, {"uct", UINT32_MAX}, {"tcp", UINT32_MAX}, {"openib", 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stock_btl btl = able(cases[i].name, cases[i].said);
        struct model_lane lane;
        struct error_text complaint, why;
        char number[16];
        double bytes_s = bandwidth_of(&btl, &lane, &complaint);
        snprintf(number, sizeof(number), "%u", cases[i].said);
        CHECK(bytes_s >= 1e8 && bytes_s <= 1e11, "%s %u: %g", cases[i].name, cases[i].said,
              bytes_s);
        CHECK(strstr(complaint.text, cases[i].name) && strstr(complaint.text, number) &&
                  strstr(complaint.text, "pml_multilane_lane_attr"),
              "\"%s\"", complaint.text);
        CHECK(lane.source[MODEL_BY_SEND][0][MODEL_BANDWIDTH] == MODEL_SOURCE_DEFAULT, "%s",
              cases[i].name);
        CHECK(model_lane_check(&lane, &why), "%s", why.text);
    }
}

/* Whatever a BTL says, the model can compute with it. */
static void every_lane_can_be_computed_with(void)
{
    static const char *const names[] = {"self",   "vader", "sm",  "smcuda", "tcp",
                                        "openib", "usnic", "uct", "ofi",    "portals4",
                                        "ugni",   "x",     ""};
    uint64_t chance = 11;
    for (int i = 0; i < 20000; i++) {
        struct stock_btl btl = {
            .name = names[chance_below(&chance, sizeof(names) / sizeof(names[0]))],
            .bandwidth = (uint32_t) (chance_next(&chance) >> (32 + chance_below(&chance, 32))),
            .latency = (uint32_t) chance_next(&chance),
            .can = (uint32_t) chance_below(&chance, 32), /* send to atomics */
            .registers = chance_below(&chance, 2),
            .eager_limit = chance_next(&chance) >> chance_below(&chance, 64),
            .max_send_size = chance_next(&chance) >> chance_below(&chance, 64)};
        struct model_lane lane;
        struct error_text complaint, why;
        if (!(btl.can & MODEL_CAN_SEND))
            btl.can &= ~(uint32_t) MODEL_CAN_SHORT;
        stock_btl_attributes(&btl, &lane, &complaint);
        CHECK(model_lane_check(&lane, &why), "%s: %s", btl.name, why.text);
        for (int way = 0; way < MODEL_WAYS; way++) {
            const struct model_lane_cost *cost = &lane.cost[way];
            CHECK(!cost->range_count ||
                      cost->ranges[cost->range_count - 1].largest_bytes == UINT64_MAX,
                  "%s: way %d ends at a size", btl.name, way);
        }
        CHECK(!((lane.can ^ btl.can) & (MODEL_CAN_SEND | MODEL_CAN_SHORT)), "%s: %x", btl.name,
              lane.can);
    }
}

/* usnic's get and put are messages in disguise, and tcp's get is, over which nothing is gained;
 * what tcp puts is read where it belongs. */
static void emulated_get_and_put_are_none(void)
{
    static const struct {
        const char *name;
        uint32_t can;
    } cases[] = {{"usnic", 0}, {"tcp", MODEL_CAN_PUT}, {"vader", MODEL_CAN_GET | MODEL_CAN_PUT}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stock_btl btl = able(cases[i].name, 1000);
        struct model_lane lane;
        struct error_text complaint;
        stock_btl_attributes(&btl, &lane, &complaint);
        CHECK((lane.can & (MODEL_CAN_GET | MODEL_CAN_PUT)) == cases[i].can, "%s", cases[i].name);
    }
}

static struct model_lane tcp_over(double link_bytes_s)
{
    const struct stock_btl tcp = {.name = "tcp",
                                  .bandwidth = 100,
                                  .can = MODEL_CAN_SEND,
                                  .eager_limit = 65536,
                                  .max_send_size = 131072};
    struct model_lane lane;
    struct error_text complaint;
    stock_btl_attributes(&tcp, &lane, &complaint);
    CHECK(stock_btl_knows_no_network(tcp.name, tcp.bandwidth), "tcp's own default");
    stock_btl_network(link_bytes_s, &lane);
    return lane;
}

/* Its btl_bandwidth is 100 Mbit/s whatever the network is, unless the user sets it. */
static void tcp_has_the_speed_of_its_network(void)
{
    struct model_lane lane = tcp_over(2.9e9);
    const struct model_lane_range *sends = lane.cost[MODEL_BY_SEND].ranges;
    const uint8_t *source = lane.source[MODEL_BY_SEND][0];
    CHECK(sends->bandwidth_bytes_s == 2.9e9 && source[MODEL_BANDWIDTH] == MODEL_SOURCE_LINK &&
              source[MODEL_LATENCY] == MODEL_SOURCE_DEFAULT && lane.shared_bytes_s == 2.9e9,
          "%g by %d", sends->bandwidth_bytes_s, source[MODEL_BANDWIDTH]);
    lane = tcp_over(0); /* nothing is known */
    CHECK(sends->bandwidth_bytes_s == 1.25e9 && source[MODEL_BANDWIDTH] == MODEL_SOURCE_DEFAULT,
          "%g", sends->bandwidth_bytes_s);
    CHECK(!stock_btl_knows_no_network("tcp", 10000) && !stock_btl_knows_no_network("usnic", 100),
          "what says its own");
}

int main(void)
{
    units_are_those_of_the_sources();
    a_link_has_the_bandwidth_it_says();
    a_ranking_is_not_taken_for_a_bandwidth();
    an_absurd_bandwidth_is_complained_of_and_not_used();
    every_lane_can_be_computed_with();
    emulated_get_and_put_are_none();
    tcp_has_the_speed_of_its_network();
    return check_end();
}
