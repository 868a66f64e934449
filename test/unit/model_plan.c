/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans on fake lanes with fixed numbers, against switch points computed by hand, to the byte. */
#include <string.h>

#include "model_lanes.h"

/* What an entry should be: "protocol over lanes, from first_bytes". */
struct expected {
    uint64_t first_bytes;
    enum model_protocol_index protocol;
    const char *lanes; /* digits: the order matters; and a c where they copy by choice */
};

static void expect_plan(const char *name, const struct plan_input *input,
                        const struct expected *expected, uint32_t count)
{
    struct error_text error = {""};
    struct plan *plan = plan_build(input, &error);
    CHECK(plan, "%s: %s", name, error.text);
    if (!plan)
        return;
    CHECK(plan->entry_count == count, "%s: %u entries, not %u", name, (unsigned) plan->entry_count,
          (unsigned) count);
    for (uint32_t i = 0; i < plan->entry_count && i < count; i++) {
        const struct plan_entry *entry = &plan->entries[i];
        char lanes[MODEL_LANES_MAX + 2] = "";
        for (uint32_t j = 0; j < entry->lane_count; j++)
            lanes[j] = (char) ('0' + entry->lanes[j]);
        if (entry->copies)
            lanes[entry->lane_count] = 'c';
        CHECK(entry->first_bytes == expected[i].first_bytes &&
                  entry->protocol_index == (uint32_t) expected[i].protocol &&
                  !strcmp(lanes, expected[i].lanes),
              "%s, entry %u: %s over %s from %llu, not %s over %s from %llu", name, (unsigned) i,
              entry->protocol->name, lanes, (unsigned long long) entry->first_bytes,
              model_protocols[expected[i].protocol]->name, expected[i].lanes,
              (unsigned long long) expected[i].first_bytes);
    }
    plan_free(plan);
}

#define EXPECT(name, input, ...)                                                                   \
    do {                                                                                           \
        const struct expected expected_entries[] = {__VA_ARGS__};                                  \
        expect_plan(name, input, expected_entries,                                                 \
                    sizeof expected_entries / sizeof expected_entries[0]);                         \
    } while (0)

static void use_lanes(struct plan_input *input, const struct model_lane *lanes, uint32_t count)
{
    plan_input_init(input);
    input->lanes = lanes;
    input->lane_count = count;
}

/* 0.1 us overhead, 10 GB/s, 1.00007 us latency, 1.0001 us registration; copies 20 ns + 0.1 ns/B. */
static void first_lane(struct model_lane *lane)
{
    fake_lane(lane, "first", MODEL_USE_BOTH, 1.00007e-6, 10e9, 0.1e-6, 1.0001e-6, 0);
    lane->short_max_bytes = 128;
    lane->copied_max_bytes = 8192;
}

/* copy 140 ns + 0.3 ns/B, zcopy 1100.1 + 0.1: they meet at 4800.5. rndv-am 0.99 * (1000.1 + 4000.28
 * + 300) = 5247.3762 + 0.099: 4147.2762 / 0.001 = 4147276.2. get and put register twice and never
 * catch up. */
static void four_protocols_of_one_lane(void)
{
    struct model_lane lane;
    struct plan_input input;
    first_lane(&lane);
    use_lanes(&input, &lane, 1);
    input.around.copy[0] = (struct cost_line){20e-9, 0.1e-9};
    EXPECT("one lane", &input, {0, MODEL_EAGER_SHORT, "0"}, {129, MODEL_EAGER_COPY, "0"},
           {4801, MODEL_EAGER_ZCOPY, "0"}, {4147277, MODEL_RNDV_AM, "0"});

    input.around.header_bytes = 28;
    EXPECT("headers", &input, {0, MODEL_EAGER_SHORT, "0"}, {101, MODEL_EAGER_COPY, "0"},
           {4801, MODEL_EAGER_ZCOPY, "0"}, {4147277, MODEL_RNDV_AM, "0"});
    input.around.header_bytes = 0;

    /* An eager bound of 3000: rendezvous above, whatever it costs. */
    input.around.eager_max_bytes = 3000;
    EXPECT("eager bound", &input, {0, MODEL_EAGER_SHORT, "0"}, {129, MODEL_EAGER_COPY, "0"},
           {3001, MODEL_RNDV_AM, "0"});
    input.around.eager_max_bytes = 0;

    /* A registration from the cache costs 50 ns: zcopy 150 ns + 0.1, which the copies' 140 ns +
     * 0.3 exceed from 50 on; rndv-get and -put then cost 0.99 * (100 + 4300.28), -am 50 less:
     * 0.99 * 4350.28 - 150 = 4156.7772 / 0.001 = 4156777.2. */
    lane.reg_cached_s = 50e-9;
    input.around.registration_cached = true;
    input.around.copy[0].fixed_s = 20.05e-9; /* 140.1: 49.5 */
    EXPECT("registered", &input, {0, MODEL_EAGER_SHORT, "0"}, {50, MODEL_EAGER_ZCOPY, "0"},
           {4156778, MODEL_RNDV_AM, "0"});

    /* Sends that register nothing find nothing in the cache either: zcopy 100 ns + 0.1,
     * rndv-am 0.99 * 4300.28 = 4257.2772: 4157.2772 / 0.001 = 4157277.2. */
    lane.cost[MODEL_BY_SEND].ranges[0].reg_cost_s = 0;
    EXPECT("nothing to find", &input, {0, MODEL_EAGER_ZCOPY, "0"}, {4157278, MODEL_RNDV_AM, "0"});
}

/* What needs the sender's calls counts 1.5-fold: copy 210 + 0.45, zcopy 1650.15 + 0.15, which meet
 * where they did; get 0.99 * (2 * 1000.1 + 4 * 1000.07 + 300) = 6237.4752 + 0.099: 4587.3252 /
 * 0.051 = 89947.55. put and rndv-am, 1.5-fold as well, stay behind it. */
static void a_sender_that_leaves_is_asked_for_a_get(void)
{
    struct model_lane lane;
    struct plan_input input;
    first_lane(&lane);
    use_lanes(&input, &lane, 1);
    input.around.copy[0] = (struct cost_line){20e-9, 0.1e-9};
    input.around.sender_leaves = true;
    EXPECT("a sender that leaves", &input, {0, MODEL_EAGER_SHORT, "0"},
           {129, MODEL_EAGER_COPY, "0"}, {4801, MODEL_EAGER_ZCOPY, "0"},
           {89948, MODEL_RNDV_GET, "0"});
}

/* The sender's copy takes 0.2 ns/B: eager-copy 100 ns + 0.3, zcopy in place 1100.1 + 0.1, from
 * 5000.5 on. Where a registration takes 20 us and the copy 0.05 ns/B, every size is copied: above
 * one fragment its copy, 409.6 ns, and then the wire: 509.6 + 0.1, and rndv-am
 * 0.99 * (4300.28 + 409.6) = 4662.7812 + 0.099: 4153.1812 / 0.001 = 4153181.2. */
static void a_registration_against_a_copy(void)
{
    struct model_lane lane;
    struct plan_input input;
    struct plan_entry entry = {.protocol_index = MODEL_EAGER_ZCOPY, .lane_count = 1};
    struct cost cost;
    first_lane(&lane);
    lane.copy_growth_s_byte = 0.2e-9;
    use_lanes(&input, &lane, 1);
    EXPECT("a cheap registration", &input, {0, MODEL_EAGER_SHORT, "0"},
           {129, MODEL_EAGER_COPY, "0"}, {5001, MODEL_EAGER_ZCOPY, "0"},
           {4147277, MODEL_RNDV_AM, "0"});
    CHECK(plan_predict(&input, &entry, 8000, &cost) &&
              fabs(cost_of(&cost, COST_OF_MESSAGE, 8000) / 1900.1e-9 - 1) < 1e-12,
          "in place: %g", cost_of(&cost, COST_OF_MESSAGE, 8000));
    entry.copies = true;
    CHECK(plan_predict(&input, &entry, 8000, &cost) &&
              fabs(cost_of(&cost, COST_OF_MESSAGE, 8000) / 2500e-9 - 1) < 1e-12,
          "copied: %g", cost_of(&cost, COST_OF_MESSAGE, 8000));

    /* As if found in the cache for 50 ns: 150 + 0.1 against 100 + 0.3, from 250 on. */
    lane.reg_cached_s = 50.05e-9;
    input.around.registration_cached = true;
    EXPECT("a registration from the cache", &input, {0, MODEL_EAGER_SHORT, "0"},
           {129, MODEL_EAGER_COPY, "0"}, {251, MODEL_EAGER_ZCOPY, "0"},
           {4156777, MODEL_RNDV_AM, "0"});

    input.around.registration_cached = false;
    lane.copy_growth_s_byte = 0.05e-9;
    for (int way = 0; way < MODEL_BY_BOTH; way++)
        lane.cost[way].ranges[0].reg_cost_s = 20e-6;
    EXPECT("a dear registration", &input, {0, MODEL_EAGER_SHORT, "0"}, {129, MODEL_EAGER_COPY, "0"},
           {8193, MODEL_EAGER_ZCOPY, "0c"}, {4153182, MODEL_RNDV_AM, "0c"});
    input.around.buffer.pieces = 0; /* nothing can be in place, and nothing is chosen */
    EXPECT("several pieces", &input, {0, MODEL_EAGER_SHORT, "0"}, {129, MODEL_EAGER_COPY, "0"},
           {8193, MODEL_EAGER_ZCOPY, "0"}, {4153182, MODEL_RNDV_AM, "0"});

    lane.copy_growth_s_byte = -1;
    CHECK(!plan_build(&input, NULL), "a copy that takes less than no time");
}

/* What eager-zcopy copies into one fragment is eager-copy's message, and a tie goes to that,
 * however the numbers round. At 3000 the copy of 0.1 ns/B takes as long as the registration. */
static void one_copied_fragment_is_no_pipeline(void)
{
    struct model_lane lane;
    struct plan_input input;
    const double bandwidth = 1 / (1 / (10e9 / 8 * 0.95) + 1e-10);
    fake_lane(&lane, "soft", MODEL_USE_EAGER, 20e-6, bandwidth, 10e-6, 0.3e-6, 0);
    lane.short_max_bytes = 400;
    lane.copied_max_bytes = 16384;
    lane.copy_growth_s_byte = 1e-10;
    use_lanes(&input, &lane, 1);
    EXPECT("a tie", &input, {0, MODEL_EAGER_SHORT, "0"}, {401, MODEL_EAGER_COPY, "0"},
           {3001, MODEL_EAGER_ZCOPY, "0"});
    input.around.buffer.pieces = 0;
    EXPECT("a tie in several pieces", &input, {0, MODEL_EAGER_SHORT, "0"},
           {401, MODEL_EAGER_COPY, "0"}, {16385, MODEL_EAGER_ZCOPY, "0"});
}

/* 0 is 1100.103 ns + 0.1 ns/B, 1 is 2500 + 1/30, both are 3600.103 + 1/40: 20998.455, 132012.36.
 * rndv-am over both, its handshake over 1: 0.99 * (3000.103 + 8000.04 + 2 * 500 + 600) =
 * 12474.14157
 * + 0.02475: 35496154.28. */
static void two_lanes(struct model_lane *lanes)
{
    fake_lane(&lanes[0], "quick", MODEL_USE_BOTH, 1e-6, 10e9, 0.1e-6, 1.000103e-6, 0);
    fake_lane(&lanes[1], "broad", MODEL_USE_BOTH, 2.00001e-6, 30e9, 0.5e-6, 2e-6, 0);
}

static void more_lanes_for_larger_messages(void)
{
    struct model_lane lanes[2];
    struct plan_input input;
    two_lanes(lanes);
    use_lanes(&input, lanes, 2);
    EXPECT("as many as pay", &input, {0, MODEL_EAGER_ZCOPY, "0"}, {20999, MODEL_EAGER_ZCOPY, "1"},
           {132013, MODEL_EAGER_ZCOPY, "10"}, {35496155, MODEL_RNDV_AM, "10"});
    input.every_lane = true;
    EXPECT("every lane", &input, {0, MODEL_EAGER_ZCOPY, "10"}, {35496155, MODEL_RNDV_AM, "10"});
    input.every_lane = false;

    /* One at most: 2500 + 1/30 against 0.99 * (2000 + 8000.04 + 1500) = 11385.0396 + 0.033:
     * 8885.0396 * 3000 = 26655118.8 */
    input.most_eager_lanes = input.most_rndv_lanes = 1;
    EXPECT("one at most", &input, {0, MODEL_EAGER_ZCOPY, "0"}, {20999, MODEL_EAGER_ZCOPY, "1"},
           {26655119, MODEL_RNDV_AM, "1"});
}

/* Driven by one core that carries 30 GB/s: the slower lane adds nothing to the faster. */
static void a_group_does_not_add_up(void)
{
    struct model_lane lanes[2];
    struct plan_input input;
    const struct model_group group = {3, 30e9};
    two_lanes(lanes);
    lanes[0].group = lanes[1].group = 3;
    use_lanes(&input, lanes, 2);
    EXPECT("unmeasured group", &input, {0, MODEL_EAGER_ZCOPY, "0"}, {20999, MODEL_EAGER_ZCOPY, "1"},
           {26655119, MODEL_RNDV_AM, "1"});
    input.around.groups = (struct model_groups){&group, 1};
    EXPECT("measured group", &input, {0, MODEL_EAGER_ZCOPY, "0"}, {20999, MODEL_EAGER_ZCOPY, "1"},
           {26655119, MODEL_RNDV_AM, "1"});
}

/* It carries 35 GB/s: both are 3600.103 ns + 1/35 ns a byte, and meet the faster lane's 2500 + 1/30
 * at 1100.103 * 210 = 231021.63; rndv-am over both is 12474.14157 + 0.99/35: 31059134.995. */
static void a_group_adds_up_to_its_capacity(void)
{
    struct model_lane lanes[2];
    struct plan_input input;
    const struct model_group group = {3, 35e9};
    two_lanes(lanes);
    lanes[0].group = lanes[1].group = 3;
    use_lanes(&input, lanes, 2);
    input.around.groups = (struct model_groups){&group, 1};
    EXPECT("35 of 40 GB/s", &input, {0, MODEL_EAGER_ZCOPY, "0"}, {20999, MODEL_EAGER_ZCOPY, "1"},
           {231022, MODEL_EAGER_ZCOPY, "10"}, {31059135, MODEL_RNDV_AM, "10"});
}

/* d = 1/2, 1 byte a second, 2 s of latency: s = 1/2 * (8 + s) at 8, exactly. rndv-get and rndv-put
 * tie with rndv-am, and two equal lanes with each other. */
static void ties_go_to_rendezvous_then_to_the_table(void)
{
    struct model_lane lanes[2];
    struct plan_input input;
    fake_lane(&lanes[0], "one", MODEL_USE_BOTH, 2, 1, 0, 0, 0);
    fake_lane(&lanes[1], "other", MODEL_USE_BOTH, 2, 1, 0, 0, 0);
    use_lanes(&input, lanes, 2);
    input.around.bias = 0.5;
    input.most_eager_lanes = input.most_rndv_lanes = 1;
    EXPECT("a tie", &input, {0, MODEL_EAGER_ZCOPY, "0"}, {8, MODEL_RNDV_AM, "0"});
    input.without = 1u << MODEL_RNDV_AM;
    EXPECT("a tie of get and put", &input, {0, MODEL_EAGER_ZCOPY, "0"}, {8, MODEL_RNDV_GET, "0"});
    lanes[0].distance = 1;
    EXPECT("the nearer lane", &input, {0, MODEL_EAGER_ZCOPY, "1"}, {8, MODEL_RNDV_GET, "1"});
}

/* rndv-both has the bandwidth of both ends: 0.99 * (4000.28 + 300 + 0.05 s) against zcopy's 100 +
 * 0.1 s on a lane that registers nothing: 4157.2772 / 0.0505 = 82322.3 */
static void both_ends_at_once(void)
{
    struct model_lane lane;
    struct plan_input input;
    fake_lane(&lane, "shm", MODEL_USE_BOTH, 1.00007e-6, 10e9, 0.1e-6, 0, 0);
    lane.can |= MODEL_CAN_CONTROL | MODEL_CAN_COPY;
    use_lanes(&input, &lane, 1);
    EXPECT("both", &input, {0, MODEL_EAGER_ZCOPY, "0"}, {82323, MODEL_RNDV_BOTH, "0"});

    /* Where get and put have the same line the table's order decides; -am registers less often, but
     * here nothing is registered, so it comes first. Without it get wins over put. */
    input.without = 1u << MODEL_RNDV_BOTH;
    EXPECT("am ties get and put", &input, {0, MODEL_EAGER_ZCOPY, "0"},
           {4157278, MODEL_RNDV_AM, "0"});
    input.without |= 1u << MODEL_RNDV_AM;
    EXPECT("get ties put", &input, {0, MODEL_EAGER_ZCOPY, "0"}, {4157278, MODEL_RNDV_GET, "0"});
}

/* In a stream the busiest stage counts, and an eighth of the others. From 10501 bytes on zcopy's is
 * its wire, 0.1 s, beside 1000.1 + 50 of the sender and 50 of the receiver: 137.5125 + 0.1 s.
 * rndv-am's is 0.099 s, beside 0.99 * (1150.1 + 150 + 4000.28) of both ends and latencies:
 * 655.922025
 * + 0.099 s. They meet at 518.409525 / 0.001. */
static void a_stream_counts_its_busiest_stage(void)
{
    struct model_lane lane;
    struct plan_input input;
    first_lane(&lane);
    use_lanes(&input, &lane, 1);
    input.view = COST_OF_STREAM;
    input.without = 1u << MODEL_EAGER_SHORT | 1u << MODEL_EAGER_COPY | 1u << MODEL_RNDV_GET |
                    1u << MODEL_RNDV_PUT;
    EXPECT("stream", &input, {0, MODEL_EAGER_ZCOPY, "0"}, {518410, MODEL_RNDV_AM, "0"});
}

/* A second range of sizes with other attributes: 10 GB/s up to 64 KiB, above them 10 GB/s, but
 * registration free, so that rndv-get is 0.99 * (4000.28 + 300) = 4257.2772: not before 4.2 MB. */
static void ranges_have_their_own_lines(void)
{
    struct model_lane lane;
    struct plan_input input;
    first_lane(&lane);
    for (int way = 0; way < MODEL_BY_BOTH; way++) {
        struct model_lane_cost *cost = &lane.cost[way];
        cost->range_count = 2;
        cost->ranges[1] = cost->ranges[0];
        cost->ranges[0].largest_bytes = 65536;
        cost->ranges[1].reg_cost_s = 0;
        cost->ranges[1].bandwidth_bytes_s = way == MODEL_BY_GET ? 20e9 : 10e9;
    }
    use_lanes(&input, &lane, 1);
    /* get: 4257.2772 + 0.0495 against 100 + 0.1: 4157.2772 / 0.0505 = 82322.3 */
    EXPECT("ranges", &input, {0, MODEL_EAGER_SHORT, "0"}, {129, MODEL_EAGER_COPY, "0"},
           {8193, MODEL_EAGER_ZCOPY, "0"}, {82323, MODEL_RNDV_GET, "0"});
}

/* Fragments of 1000 bytes that are copied, 50 ns + 0.4 ns/B at either end, over a wire of 10 GB/s:
 * up to 1000 bytes one after the other, 200 + 0.9 s; above, the copies are slowest: the sender's
 * stage is (50 + 50 + 400) / 1000 = 0.5 a byte, the wire adds 100 once, the receiver 500 once. */
static void fragments_overlap(void)
{
    struct model_lane lane;
    struct plan_input input;
    struct cost cost;
    struct plan_entry entry;
    fake_lane(&lane, "copies", MODEL_USE_BOTH, 1e-6, 10e9, 0.1e-6, 0, 0);
    lane.zcopied_max_bytes = 0;
    lane.copied_max_bytes = 1000;
    use_lanes(&input, &lane, 1);
    input.around.copy[0] = (struct cost_line){50e-9, 0.4e-9};
    const struct {
        uint64_t bytes;
        double expected_ns;
    } cases[] = {{1, 200.9}, {1000, 1100}, {1001, 1100.5}, {5000, 3100}, {100000, 50600}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool carries =
            plan_best_of_protocol(&input, MODEL_EAGER_ZCOPY, cases[i].bytes, &entry, &cost);
        double time_ns = carries ? 1e9 * cost_of(&cost, COST_OF_MESSAGE, cases[i].bytes) : -1;
        CHECK(fabs(time_ns - cases[i].expected_ns) < 1e-6, "%llu bytes: %.9g ns, not %.9g",
              (unsigned long long) cases[i].bytes, time_ns, cases[i].expected_ns);
    }
}

/* Slots of 1000 bytes: device copies 1000 ns + 0.5 ns/B at either end with 50 ns of overhead, wire
 * 0.1 ns/B; 0.99 * (4000 + 200 + ...): in one slot 2100 + 1.1 s; above, the sender 1.55 s, the wire
 * 100, the receiver 1550. */
static void staging_costs_its_slowest_stage(void)
{
    struct model_lane lane;
    struct plan_input input;
    struct cost cost;
    struct plan_entry entry;
    fake_lane(&lane, "host", MODEL_USE_BOTH, 1e-6, 10e9, 0.1e-6, 0, 0);
    lane.copied_max_bytes = 4096;
    use_lanes(&input, &lane, 1);
    input.around.buffer.memory = MODEL_MEMORY_CUDA;
    input.around.copy[1] = (struct cost_line){1000e-9, 0.5e-9};
    input.around.stage_bytes = 1000;
    const struct {
        uint64_t bytes;
        double expected_ns;
    } cases[] = {{1000, 0.99 * (4200 + 2100 + 1100)}, {10000, 0.99 * (4200 + 15500 + 100 + 1550)}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool carries =
            plan_best_of_protocol(&input, MODEL_RNDV_STAGED, cases[i].bytes, &entry, &cost);
        double time_ns = carries ? 1e9 * cost_of(&cost, COST_OF_MESSAGE, cases[i].bytes) : -1;
        CHECK(fabs(time_ns - cases[i].expected_ns) < 1e-6, "%llu bytes: %.9g ns, not %.9g",
              (unsigned long long) cases[i].bytes, time_ns, cases[i].expected_ns);
    }
}

/* --- overrides -------------------------------------------------------------------------------- */

static void force(struct plan_input *input, const char *text, struct plan_override *overrides)
{
    struct error_text error = {""};
    input->overrides = overrides;
    CHECK(plan_overrides_parse(text, overrides, &input->override_count, &error), "%s: %s", text,
          error.text);
}

static void forced_protocols_are_used_where_they_can(void)
{
    struct plan_override overrides[PLAN_OVERRIDES_MAX];
    struct model_lane lane;
    struct plan_input input;
    first_lane(&lane);
    use_lanes(&input, &lane, 1);
    input.around.copy[0] = (struct cost_line){20e-9, 0.1e-9};
    force(&input, "auto", overrides);
    EXPECT("auto", &input, {0, MODEL_EAGER_SHORT, "0"}, {129, MODEL_EAGER_COPY, "0"},
           {4801, MODEL_EAGER_ZCOPY, "0"}, {4147277, MODEL_RNDV_AM, "0"});
    force(&input, "rndv-get", overrides);
    EXPECT("rndv-get", &input, {0, MODEL_EAGER_SHORT, "0"}, {1, MODEL_RNDV_GET, "0"});
    force(&input, "rndv-put:1k-2k,4m-inf", overrides);
    EXPECT("ranges", &input, {0, MODEL_EAGER_SHORT, "0"}, {129, MODEL_EAGER_COPY, "0"},
           {1024, MODEL_RNDV_PUT, "0"}, {2049, MODEL_EAGER_COPY, "0"},
           {4801, MODEL_EAGER_ZCOPY, "0"}, {4147277, MODEL_RNDV_AM, "0"},
           {4194304, MODEL_RNDV_PUT, "0"});
    force(&input, "rndv-put,eager-zcopy:0-9", overrides);
    EXPECT("later wins", &input, {0, MODEL_EAGER_ZCOPY, "0"}, {10, MODEL_RNDV_PUT, "0"});
    force(&input, "eager-copy", overrides); /* the rest is chosen freely, and said */
    EXPECT("limited", &input, {0, MODEL_EAGER_COPY, "0"}, {8193, MODEL_EAGER_ZCOPY, "0"},
           {4147277, MODEL_RNDV_AM, "0"});
    struct plan *plan = plan_build(&input, NULL);
    CHECK(plan && strstr(plan->note, "eager-copy is forced but cannot carry 8193 bytes"), "%s",
          plan ? plan->note : "no plan");
    plan_free(plan);
}

static void nonsense_in_overrides_is_refused(void)
{
    static const char *const bad[] = {
        "",           "rndv",           "rndv-get:",      "rndv-get:4k-1k",
        "4k-8k",      "rndv-get:1-2,",  "rndv-get:1-2,x", "auto,rndv-get",
        "rndv-get:a", "rndv-get:1-2-3", "RNDV-GET",       ":1-2"};
    struct plan_override overrides[PLAN_OVERRIDES_MAX];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct error_text error = {""};
        uint32_t count = 9;
        CHECK(!plan_overrides_parse(bad[i], overrides, &count, &error) && error.text[0], "\"%s\"",
              bad[i]);
        CHECK(count == 0, "\"%s\" left %u", bad[i], (unsigned) count);
    }
    struct error_text error = {""};
    uint32_t count;
    plan_overrides_parse("rendezvous", overrides, &count, &error);
    for (int i = 0; i < MODEL_PROTOCOLS; i++)
        CHECK(strstr(error.text, model_protocols[i]->name), "%s", error.text);
}

/* --- what cannot be planned ---------------------------------------------------------------------
 */

static void expect_error(const char *name, const struct plan_input *input, const char *first,
                         const char *second)
{
    struct error_text error = {""};
    struct plan *plan = plan_build(input, &error);
    CHECK(!plan && strstr(error.text, first) && strstr(error.text, second), "%s: %s", name,
          error.text);
    plan_free(plan);
}

static void what_is_missing_is_named(void)
{
    struct model_lane lane;
    struct plan_input input;
    fake_lane(&lane, "mute", MODEL_USE_BOTH, 1e-6, 1e9, 0, 0, 0);
    use_lanes(&input, &lane, 0);
    expect_error("no lane", &input, "1 to 16 lanes", "0");
    use_lanes(&input, &lane, 1);
    lane.can = MODEL_CAN_GET;
    expect_error("cannot send", &input, "a send of 0 bytes of contiguous host memory", "\"send\"");
    lane.can = MODEL_CAN_SEND;
    lane.use = MODEL_USE_EAGER;
    EXPECT("eager alone", &input, {0, MODEL_EAGER_ZCOPY, "0"});
    input.around.eager_max_bytes = 999;
    expect_error("no rendezvous", &input, "1000 bytes", "mute");
    lane.use = MODEL_USE_RNDV;
    expect_error("no eager", &input, "0 bytes", "mute");
    lane.use = MODEL_USE_BOTH;
    input.around.buffer.memory = MODEL_MEMORY_CUDA;
    input.around.operation = MODEL_OPERATION_SEND_SYNC;
    expect_error("no cuda", &input, "synchronous send of 0 bytes of contiguous cuda memory",
                 "cannot be copied");
    input.around.buffer = (struct model_buffer){MODEL_MEMORY_HOST, 7};
    expect_error("scattered", &input, "scattered host memory", "copied fragments");
    lane.copied_max_bytes = 1024;
    input.around.eager_max_bytes = 2000;
    EXPECT("scattered and copied", &input, {0, MODEL_EAGER_COPY, "0"},
           {1025, MODEL_EAGER_ZCOPY, "0"}, {2001, MODEL_RNDV_AM, "0"});
}

/* The sizes at which each size is looked up, and the weights of shares. */
static void lookups_find_the_entry(void)
{
    struct model_lane lanes[2];
    struct plan_input input;
    two_lanes(lanes);
    use_lanes(&input, lanes, 2);
    struct plan *plan = plan_build(&input, NULL);
    CHECK(plan && plan->entry_count == 4, "four entries");
    if (!plan)
        return;
    const uint64_t bytes[] = {0, 20998, 20999, 132012, 132013, 35496154, 35496155, UINT64_MAX};
    for (uint32_t i = 0; i < 8; i++)
        CHECK(plan_lookup(plan, bytes[i]) == &plan->entries[i / 2], "%llu",
              (unsigned long long) bytes[i]);
    CHECK(plan->entries[3].weights[0] == 49152 && plan->entries[3].weights[1] == 16384,
          "3 : 1, not %u : %u", (unsigned) plan->entries[3].weights[0],
          (unsigned) plan->entries[3].weights[1]);
    plan_free(plan);
}

/* Of a message whose ends' memory differs: 10,000 B over a lane of host memory (latency 1 us, 0.1
 * us, 10 GB/s) or by a driver's copies (1 us, 1 us, 100 GB/s), where a copy into and out of slots
 * takes 10 us + 1 ns/B.
 *
 * Put or got, by the end whose memory is the host's: 0.99 * (4 + 3 us and 0.01 ns for each byte) =
 * 7.029 us. Sent to a device, which copies slots of 1000 B: RTS and RTR 4.2 us,
 * the sender's 0.05 us and a slot's 0.1 us on the wire, ten slots of 10.05 + 1 us: 0.99 * 114.85
 * us. From a device the sender copies so, and the receiver not at all: likewise. */
static void ends_in_different_memory(void)
{
    struct model_lane lanes[2];
    struct plan_input input;
    struct plan_entry entry;
    struct cost cost;
    fake_lane(&lanes[0], "host", MODEL_USE_BOTH, 1e-6, 10e9, 0.1e-6, 0, 0);
    fake_lane(&lanes[1], "driver", MODEL_USE_BOTH, 1e-6, 100e9, 1e-6, 0, 0);
    lanes[0].copied_max_bytes = 4096;
    lanes[1].can = MODEL_CAN_GET | MODEL_CAN_PUT;
    lanes[1].reach = MODEL_MEMORY_CUDA;
    use_lanes(&input, lanes, 2);
    input.around.copy[1] = (struct cost_line){10e-6, 1e-9};
    input.around.stage_bytes = 1000;
    input.is_announced = true;
    for (uint32_t i = 0; i < MODEL_PROTOCOLS; i++)
        input.without |= model_protocols[i]->kind == MODEL_EAGER ? 1u << i : 0;
    for (int to_device = 0; to_device < 2; to_device++) {
        const uint32_t can = to_device ? MODEL_RNDV_PUT : MODEL_RNDV_GET;
        const uint32_t cannot = to_device ? MODEL_RNDV_GET : MODEL_RNDV_PUT;
        const uint32_t sends = to_device ? MODEL_RNDV_AM : MODEL_RNDV_STAGED;
        input.around.buffer.memory = to_device ? MODEL_MEMORY_HOST : MODEL_MEMORY_CUDA;
        input.around.receiver = to_device ? MODEL_MEMORY_CUDA : MODEL_MEMORY_HOST;
        CHECK(!plan_best_of_protocol(&input, cannot, 10000, &entry, &cost),
              "the end on the device works");
        CHECK(plan_best_of_protocol(&input, can, 10000, &entry, &cost) && entry.lane_count == 1 &&
                  entry.lanes[0] == 1,
              "not over the driver's lane");
        double time_us = 1e6 * cost_of(&cost, COST_OF_MESSAGE, 10000);
        CHECK(fabs(time_us - 7.029) < 1e-9, "by the driver %.12g us", time_us);
        CHECK(plan_best_of_protocol(&input, sends, 10000, &entry, &cost), "not by messages");
        time_us = 1e6 * cost_of(&cost, COST_OF_MESSAGE, 10000);
        CHECK(fabs(time_us - 0.99 * 114.85) < 1e-9, "by messages %.12g us", time_us);
        struct plan *plan = plan_build(&input, NULL);
        CHECK(plan && plan_lookup(plan, 0)->protocol->kind == MODEL_RNDV &&
                  plan_lookup(plan, 10000)->protocol_index == can,
              "what is announced is received by a rendezvous, whatever its size");
        plan_free(plan);
    }
}

int main(void)
{
    ends_in_different_memory();
    four_protocols_of_one_lane();
    a_sender_that_leaves_is_asked_for_a_get();
    a_registration_against_a_copy();
    one_copied_fragment_is_no_pipeline();
    more_lanes_for_larger_messages();
    a_group_does_not_add_up();
    a_group_adds_up_to_its_capacity();
    ties_go_to_rendezvous_then_to_the_table();
    both_ends_at_once();
    a_stream_counts_its_busiest_stage();
    ranges_have_their_own_lines();
    fragments_overlap();
    staging_costs_its_slowest_stage();
    forced_protocols_are_used_where_they_can();
    nonsense_in_overrides_is_refused();
    what_is_missing_is_named();
    lookups_find_the_entry();
    return check_end();
}
