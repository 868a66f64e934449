/* SPDX-License-Identifier: BSD-3-Clause */
/* What our own BTLs declare, as lanes of the model: units kept, unknown values harmless, and no
 * ability that the declaration does not carry. */
#include "check.h"

#include <math.h>
#include <string.h>

#include "common/lane/declared.h"

#define ABLE (MODEL_CAN_SEND | MODEL_CAN_SHORT | MODEL_CAN_GET | MODEL_CAN_PUT | MODEL_CAN_ATOMICS)

static struct error_text complaint; /* of the last declaration */

static struct multilane_lane_attributes good_attributes(void)
{
    struct multilane_lane_attributes attributes = {.memory = MODEL_MEMORY_HOST,
                                                   .capabilities = MULTILANE_CAN_DELIVER,
                                                   .capacity_group = 3,
                                                   .short_max_bytes = 100,
                                                   .copied_max_bytes = 4096,
                                                   .zcopied_max_bytes = 1 << 20,
                                                   .device = "ring"};
    for (int way = 0; way < MULTILANE_WAYS; way++) {
        attributes.cost[way].range_count = 2;
        attributes.cost[way].ranges[0] =
            (struct model_lane_range){4096, 1e-7 * (way + 1), 5e9, 2e-7, 3e-7, 4e-6, 5e-11};
        attributes.cost[way].ranges[1] =
            (struct model_lane_range){UINT64_MAX, 2e-7, 0, -1, -1, -1, -1};
    }
    return attributes;
}

static void values_are_taken_over(void)
{
    struct multilane_lane_attributes attributes = good_attributes();
    struct model_lane lane;
    struct error_text why;
    declared_attributes("shm", ABLE, &attributes, &lane, &complaint);
    CHECK(model_lane_check(&lane, &why), "%s", why.text);
    CHECK(strcmp(lane.name, "shm:ring") == 0, "%s", lane.name);
    CHECK(!complaint.text[0], "%s", complaint.text);
    CHECK(lane.group == 3 && lane.short_max_bytes == 100 && lane.copied_max_bytes == 4096 &&
              lane.zcopied_max_bytes == 1 << 20,
          "sizes");
    CHECK(lane.reach == MODEL_MEMORY_HOST, "%u", lane.reach);
    CHECK(lane.can == (MODEL_CAN_SEND | MODEL_CAN_SHORT | MODEL_CAN_GET | MODEL_CAN_PUT |
                       MODEL_CAN_ATOMICS | MODEL_CAN_DELIVER),
          "%x", lane.can);
    for (int way = 0; way < MULTILANE_WAYS; way++) {
        const struct model_lane_range *range = lane.cost[way].ranges;
        CHECK(lane.cost[way].range_count == 2, "way %d", way);
        CHECK(range[0].largest_bytes == 4096 && range[0].latency_s == 1e-7 * (way + 1) &&
                  range[0].bandwidth_bytes_s == 5e9 && range[0].overhead_send_s == 2e-7 &&
                  range[0].overhead_receive_s == 3e-7 && range[0].reg_cost_s == 4e-6 &&
                  range[0].reg_growth_s_byte == 5e-11,
              "way %d", way);
        CHECK(isinf(range[1].bandwidth_bytes_s), "no bandwidth is an infinite one");
        CHECK(range[1].overhead_send_s == 0 && range[1].reg_cost_s == 0, "unknown is nothing");
    }
    for (int i = 0; i < MODEL_ATTRIBUTES; i++)
        CHECK(lane.source[MODEL_BY_SEND][0][i] == MODEL_SOURCE_DECLARED, "attribute %d", i);
}

static void no_ability_without_its_ground(void)
{
    struct multilane_lane_attributes attributes = good_attributes();
    struct model_lane lane;
    attributes.cost[MODEL_BY_GET].range_count = 0;
    declared_attributes("shm", ABLE, &attributes, &lane, &complaint);
    CHECK(!(lane.can & MODEL_CAN_GET) && lane.can & MODEL_CAN_PUT, "a get without a cost");
    declared_attributes("shm", MODEL_CAN_GET, &attributes, &lane, &complaint);
    CHECK(!(lane.can & (MODEL_CAN_PUT | MODEL_CAN_SEND | MODEL_CAN_SHORT)), "%x", lane.can);
    static const struct {
        uint64_t capability;
        uint32_t ability;
    } pairs[] = {{MULTILANE_CAN_CONTROL, MODEL_CAN_CONTROL},
                 {MULTILANE_CAN_COPY, MODEL_CAN_COPY},
                 {MULTILANE_CAN_DELIVER, MODEL_CAN_DELIVER},
                 {MULTILANE_CAN_FENCE, MODEL_CAN_FENCE},
                 {MULTILANE_CAN_RING, MODEL_CAN_RING}};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        attributes = good_attributes();
        attributes.capabilities = pairs[i].capability;
        declared_attributes("shm", ABLE, &attributes, &lane, &complaint);
        for (size_t j = 0; j < sizeof(pairs) / sizeof(pairs[0]); j++)
            CHECK(!(lane.can & pairs[j].ability) == (i != j), "capability %zu, ability %zu", i, j);
    }
}

/* A BTL of another build may fill it wrongly. */
static void a_broken_declaration_does_no_harm(void)
{
    uint64_t chance = 5;
    for (int i = 0; i < 20000; i++) {
        struct multilane_lane_attributes attributes;
        struct model_lane lane;
        unsigned char *bytes = (unsigned char *) &attributes;
        for (size_t at = 0; at < sizeof(attributes); at++)
            bytes[at] = (unsigned char) chance_next(&chance);
        for (int way = 0; way < MULTILANE_WAYS; way++)
            if (chance_below(&chance, 2))
                attributes.cost[way].range_count = (uint32_t) chance_below(&chance, 12);
        declared_attributes("shm", ABLE, &attributes, &lane, &complaint);
        CHECK(memchr(lane.name, '\0', sizeof(lane.name)), "the name has no end");
        for (int way = 0; way < MODEL_WAYS; way++)
            CHECK(lane.cost[way].range_count <= MODEL_LANE_RANGES_MAX, "way %d: %u ranges", way,
                  lane.cost[way].range_count);
    }
    struct multilane_lane_attributes attributes = good_attributes();
    struct model_lane lane;
    memset(attributes.device, 'x', sizeof(attributes.device));
    declared_attributes("shm", ABLE, &attributes, &lane, &complaint);
    CHECK(strcmp(lane.name, "shm") == 0, "%s", lane.name);
}

/* What cannot be is named with the BTL, and the lane can be computed with all the same. */
static void what_cannot_be_is_replaced_and_named(void)
{
    static const struct {
        const char *what;
        double latency_s, bandwidth_bytes_s, overhead_s, registration_s_byte;
    } cases[] = {
        {"latency", 1e12, 1e9, 1e-6, 0},   {"latency", INFINITY, 1e9, 1e-6, 0},
        {"latency", NAN, 1e9, 1e-6, 0},    {"bandwidth", 1e-6, 1e-9, 1e-6, 0},
        {"bandwidth", 1e-6, NAN, 1e-6, 0}, {"bandwidth", 1e-6, 1e300, 1e-6, 0},
        {"overhead", 1e-6, 1e9, 1e30, 0},  {"overhead", 1e-6, 1e9, NAN, 0},
        {"reg_growth", 1e-6, 1e9, 0, NAN}, {"reg_growth", 1e-6, 1e9, 0, 1e200},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct multilane_lane_attributes attributes = good_attributes();
        struct model_lane lane;
        struct error_text why;
        attributes.cost[MODEL_BY_SEND].ranges[0] = (struct model_lane_range){
            4096, cases[i].latency_s,          cases[i].bandwidth_bytes_s, cases[i].overhead_s, 0,
            0,    cases[i].registration_s_byte};
        declared_attributes("shm", ABLE, &attributes, &lane, &complaint);
        CHECK(strstr(complaint.text, cases[i].what) && strstr(complaint.text, "BTL shm"),
              "case %zu: %s", i, complaint.text);
        CHECK(model_lane_check(&lane, &why), "case %zu: %s", i, why.text);
    }
}

/* What the user gives for a lane comes by the declaration, and is used however odd it is. */
static void odd_values_are_used_without_a_word(void)
{
    struct multilane_lane_attributes attributes = good_attributes();
    struct model_lane lane;
    attributes.cost[MODEL_BY_SEND].ranges[0] =
        (struct model_lane_range){4096, 60, 1, 30, 30, 20, 11};
    declared_attributes("shm", ABLE, &attributes, &lane, &complaint);
    const struct model_lane_range *range = &lane.cost[MODEL_BY_SEND].ranges[0];
    CHECK(!complaint.text[0], "%s", complaint.text);
    CHECK(range->latency_s == 60 && range->bandwidth_bytes_s == 1 && range->overhead_send_s == 30 &&
              range->reg_cost_s == 20 && range->reg_growth_s_byte == 11,
          "latency %g", range->latency_s);
}

int main(void)
{
    odd_values_are_used_without_a_word();
    what_cannot_be_is_replaced_and_named();
    values_are_taken_over();
    no_ability_without_its_ground();
    a_broken_declaration_does_no_harm();
    return check_end();
}
