/* SPDX-License-Identifier: BSD-3-Clause */
/* The user's attributes of lanes: what is well formed is applied to the lanes it names and to no
 * other, what is not is refused with a sentence, and no text whatever does harm. */
#include "check.h"

#include <math.h>
#include <string.h>

#include "common/lane/attr.h"

static struct model_lane lane_with_costs(void)
{
    struct model_lane lane;
    const struct model_lane_range range = {.largest_bytes = UINT64_MAX,
                                           .latency_s = 1e-6,
                                           .bandwidth_bytes_s = 1e9,
                                           .overhead_send_s = 1e-7,
                                           .overhead_receive_s = 1e-7};
    model_lane_init(&lane, "tcp");
    model_lane_set_cost(&lane, MODEL_WAYS, &range);
    return lane;
}

static void good_texts_are_applied(void)
{
    struct error_text error;
    const char *text = "tcp:latency=2e-6,bandwidth=12.5e9;tcp:eth0:overhead=3e-6;"
                       "verbs:mlx5_0:1:reg_cost=1e-5,reg_growth=6e-11";
    CHECK(attr_check(text, &error), "%s", error.text);

    struct model_lane lane = lane_with_costs();
    attr_apply(text, "tcp", NULL, &lane);
    for (int way = 0; way < MODEL_BY_BOTH; way++) {
        const struct model_lane_range *range = &lane.cost[way].ranges[0];
        CHECK(range->latency_s == 2e-6 && range->bandwidth_bytes_s == 12.5e9, "way %d", way);
        CHECK(range->overhead_send_s == 1e-7, "another device's overhead");
        CHECK(range->reg_cost_s == 0, "another BTL's registration");
    }
    CHECK(lane.source[MODEL_BY_SEND][0][MODEL_LATENCY] == MODEL_SOURCE_USER &&
              lane.source[MODEL_BY_SEND][0][MODEL_BANDWIDTH] == MODEL_SOURCE_USER,
          "the user gave them");
    CHECK(lane.source[MODEL_BY_SEND][0][MODEL_OVERHEAD_SEND] != MODEL_SOURCE_USER &&
              lane.source[MODEL_BY_SEND][0][MODEL_REG_COST] != MODEL_SOURCE_USER,
          "the user did not give these");

    lane = lane_with_costs();
    attr_apply(text, "tcp", "eth0", &lane);
    CHECK(lane.cost[0].ranges[0].overhead_send_s + lane.cost[0].ranges[0].overhead_receive_s ==
              3e-6,
          "both halves together are the overhead");
    CHECK(lane.source[MODEL_BY_SEND][0][MODEL_OVERHEAD_SEND] == MODEL_SOURCE_USER &&
              lane.source[MODEL_BY_SEND][0][MODEL_OVERHEAD_RECEIVE] == MODEL_SOURCE_USER,
          "of the user");
    lane = lane_with_costs();
    attr_apply(text, "verbs", "mlx5_0:1", &lane);
    CHECK(lane.cost[0].ranges[0].reg_cost_s == 1e-5 &&
              lane.cost[0].ranges[0].reg_growth_s_byte == 6e-11,
          "a device with a colon in its name");
    CHECK(lane.cost[0].ranges[0].latency_s == 1e-6, "another BTL's latency");
}

/* What the user says of registration counts whether the lane has a cache or not. */
static void registration_is_what_the_user_says(void)
{
    static const char *const texts[] = {"tcp:reg_cost=1e-5", "tcp:reg_growth=6e-11"};
    for (int i = 0; i < 2; i++) {
        struct model_lane lane = lane_with_costs();
        lane.reg_cached_s = 1e-7;
        attr_apply("tcp:latency=1e-6", "tcp", NULL, &lane);
        CHECK(lane.reg_cached_s == 1e-7, "latency is another matter");
        attr_apply(texts[i], "tcp", NULL, &lane);
        CHECK(lane.reg_cached_s < 0, "%s: %g", texts[i], lane.reg_cached_s);
    }
}

static void one_way_is_set_alone(void)
{
    struct model_lane lane = lane_with_costs();
    struct error_text error;
    const char *text = "tcp:get_latency=7e-6,overhead_send=3e-7";
    CHECK(attr_check(text, &error), "%s", error.text);
    attr_apply(text, "tcp", NULL, &lane);
    CHECK(lane.cost[MODEL_BY_GET].ranges[0].latency_s == 7e-6 &&
              lane.cost[MODEL_BY_SEND].ranges[0].latency_s == 1e-6,
          "of gets alone");
    CHECK(lane.cost[MODEL_BY_SEND].ranges[0].overhead_send_s == 3e-7 &&
              lane.cost[MODEL_BY_SEND].ranges[0].overhead_receive_s == 1e-7,
          "of the sender alone");
    CHECK(lane.source[MODEL_BY_SEND][0][MODEL_LATENCY] != MODEL_SOURCE_USER &&
              lane.source[MODEL_BY_GET][0][MODEL_LATENCY] == MODEL_SOURCE_USER,
          "whose latency it is");
}

static void what_stands_later_counts(void)
{
    struct model_lane lane = lane_with_costs();
    attr_apply("tcp:latency=1e-6;tcp:latency=5e-6", "tcp", NULL, &lane);
    CHECK(lane.cost[0].ranges[0].latency_s == 5e-6, "%g", lane.cost[0].ranges[0].latency_s);
}

static void lanes_are_grouped(void)
{
    struct model_lane one = lane_with_costs(), other = lane_with_costs();
    const char *text = "tcp:rail0:group=7;tcp:rail1:group=7,latency=1e-6;vader:group=0";
    struct error_text error;
    CHECK(attr_check(text, &error), "%s", error.text);
    attr_apply(text, "tcp", "rail0", &one);
    attr_apply(text, "tcp", "rail1", &other);
    CHECK(one.group == 7 && other.group == 7, "%u and %u", one.group, other.group);
    attr_apply(text, "vader", NULL, &one);
    CHECK(one.group == 0, "%u", one.group);
}

static void lanes_are_kept_to_a_use(void)
{
    struct model_lane one = lane_with_costs(), other = lane_with_costs();
    const char *text = "tcp:rail0:use=eager;tcp:rail1:latency=1e-6,use=rndv;vader:use=both";
    struct error_text error;
    CHECK(attr_check(text, &error), "%s", error.text);
    attr_apply(text, "tcp", "rail0", &one);
    attr_apply(text, "tcp", "rail1", &other);
    CHECK(one.use == MODEL_USE_EAGER && other.use == MODEL_USE_RNDV, "%u and %u", one.use,
          other.use);
    CHECK(other.cost[0].ranges[0].latency_s == 1e-6, "%g", other.cost[0].ranges[0].latency_s);
    attr_apply(text, "vader", NULL, &one);
    CHECK(one.use == MODEL_USE_BOTH, "%u", one.use);
}

static void nothing_is_nothing(void)
{
    struct error_text error;
    struct model_lane lane = lane_with_costs(), before = lane_with_costs();
    CHECK(attr_check("", &error), "%s", error.text);
    CHECK(attr_check(NULL, &error), "%s", error.text);
    attr_apply(NULL, "tcp", NULL, &lane);
    attr_apply("", "tcp", NULL, &lane);
    CHECK(lane.cost[0].ranges[0].latency_s == before.cost[0].ranges[0].latency_s, "latency");
}

static void bad_texts_are_refused_by_what_is_wrong(void)
{
    static const struct {
        const char *text, *because;
    } cases[] = {
        {"nonsense", "nonsense"},
        {"tcp", "tcp"},
        {"tcp:", "tcp:"},
        {"=", "="},
        {":latency=1", ":latency=1"},
        {"latency=1", "latency=1"},
        {"tcp:latency", "tcp:latency"},
        {"tcp:latency=", "latency="},
        {"tcp:=1", "=1"},
        {"tcp:latency=abc", "abc"},
        {"tcp:latency=-1", "-1"},
        {"tcp:latency=1x", "1x"},
        {"tcp:latency=nan", "nan"},
        {"tcp:latency=inf", "inf"},
        {"tcp:latency=0x10", "0x10"},
        {"tcp:latency=1e999", "1e999"},
        {"tcp:latency= 1", " 1"},
        {"tcp:speed=1", "speed"},
        {"tcp:back_latency=1", "back_latency"},
        {"tcp:get_bandwidth=0", "above 0"},
        {"tcp:bandwidth=0", "above 0"},
        {"tcp:latency=1,,overhead=1", "key=value"},
        {"tcp:latency=1;;tcp:latency=1", "BTL"},
        {"tcp:latency=1;nonsense", "nonsense"},
        {"tcp:latency=1,bandwidth=1e9;tcp:overhead=q", "q"},
        {"tcp:eth0:latency=1=2", "1=2"},
        {"tcp:latency=1e12", "latency=1e12"},
        {"tcp:bandwidth=1e-9", "bandwidth=1e-9"},
        {"tcp:group=-1", "-1"},
        {"tcp:group=1.5", "group=1.5"},
        {"tcp:group=65536", "group=65536"},
        {"tcp:use=rendezvous", "eager, rndv or both"},
        {"tcp:use=1", "eager, rndv or both"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct error_text error = {""};
        CHECK(!attr_check(cases[i].text, &error), "\"%s\" is accepted", cases[i].text);
        CHECK(strstr(error.text, cases[i].because), "\"%s\": \"%s\" says nothing of %s",
              cases[i].text, error.text, cases[i].because);
    }
}

static void overlong_items_are_refused(void)
{
    static char text[5000];
    struct error_text error;
    static const char *const formats[] = {"%s:latency=1", "tcp:%s:latency=1", "tcp:%s=1",
                                          "tcp:latency=%s"};
    char word[4097];
    memset(word, '1', sizeof(word) - 1);
    word[sizeof(word) - 1] = '\0';
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(text, sizeof(text), formats[i], word);
#pragma GCC diagnostic pop
        CHECK(!attr_check(text, &error) && error.text[0], "%s", formats[i]);
    }
}

/* Pieces of good texts put together at random, and bytes changed: what passes the check leaves a
 * lane that the model can compute with. */
static void any_text_is_harmless(uint64_t seed)
{
    static const char *const pieces[] = {"tcp",       ":",          "eth0",     "latency", "=",
                                         "1e-6",      ",",          "overhead", "2",       ";",
                                         "bandwidth", "1e9",        "-",        "inf",     "vader",
                                         "reg_cost",  "reg_growth", "0",        ".",       "e"};
    uint64_t chance = seed;
    char text[256] = "";
    size_t length = 0;
    unsigned count = (unsigned) chance_below(&chance, 30);
    for (unsigned i = 0; i < count; i++) {
        const char *piece = pieces[chance_below(&chance, sizeof(pieces) / sizeof(pieces[0]))];
        if (length + strlen(piece) + 1 >= sizeof(text))
            break;
        memcpy(text + length, piece, strlen(piece) + 1);
        length += strlen(piece);
    }
    if (length && chance_below(&chance, 3) == 0)
        text[chance_below(&chance, length)] = (char) (1 + chance_below(&chance, 255));

    /* On a block of its own, so that a checker sees a byte read behind it. */
    char *copy = malloc(length + 1);
    memcpy(copy, text, length + 1);
    struct error_text error = {""};
    bool is_good = attr_check(copy, &error);
    CHECK(is_good || error.text[0], "\"%s\" is refused without a sentence", copy);
    if (is_good) {
        struct model_lane lane = lane_with_costs();
        attr_apply(copy, "tcp", chance_below(&chance, 2) ? "eth0" : NULL, &lane);
        CHECK(model_lane_check(&lane, &error), "\"%s\": %s", copy, error.text);
    }
    free(copy);
}

int main(void)
{
    good_texts_are_applied();
    registration_is_what_the_user_says();
    one_way_is_set_alone();
    what_stands_later_counts();
    nothing_is_nothing();
    lanes_are_grouped();
    lanes_are_kept_to_a_use();
    bad_texts_are_refused_by_what_is_wrong();
    overlong_items_are_refused();
    unsigned seeds = check_is_long() ? 20000000 : 300000;
    for (unsigned seed = 1; seed <= seeds; seed++)
        any_text_is_harmless(seed * UINT64_C(0x9e3779b97f4a7c15));
    return check_end();
}
