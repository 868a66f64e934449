/* SPDX-License-Identifier: BSD-3-Clause */
/* What the user gives for a lane replaces what the lane says of itself, in every range, and what is
 * no number, or none that can be, is refused by its parameter's name. */
#include "check.h"

#include <string.h>

#include "common/lane/given.h"

static const struct multilane_lane_range said = {4096, 1e-6, 5e9, 2e-7, 3e-7, 4e-6, 5e-11};

static void auto_changes_nothing(void)
{
    struct given given = GIVEN_INIT;
    struct multilane_lane_range range = said;
    CHECK(given_read(&given, "shm", NULL), "auto");
    given_apply(&given, &range, 1);
    CHECK(memcmp(&range, &said, sizeof range) == 0, "auto changed something");
}

static void numbers_are_taken_in_every_range(void)
{
    struct given given = {.texts = {"1e-3", "0", "4e-6", "0.5", "2e-9"}};
    struct multilane_lane_range ranges[] = {said, said};
    CHECK(given_read(&given, "shm", NULL), "numbers");
    given_apply(&given, ranges, 2);
    for (int i = 0; i < 2; i++) {
        const struct multilane_lane_range *range = &ranges[i];
        CHECK(range->largest_bytes == 4096 && range->latency_s == 1e-3 &&
                  range->bandwidth_bytes_s == 0 && range->overhead_send_s == 2e-6 &&
                  range->overhead_receive_s == 2e-6 && range->registration_s == 0.5 &&
                  range->registration_s_byte == 2e-9,
              "range %d", i);
    }
}

static void one_alone_leaves_the_others(void)
{
    struct given given = GIVEN_INIT;
    struct multilane_lane_range range = said;
    given.texts[GIVEN_BANDWIDTH] = "7";
    CHECK(given_read(&given, "shm", NULL), "one");
    given_apply(&given, &range, 1);
    CHECK(range.bandwidth_bytes_s == 7, "%g", range.bandwidth_bytes_s);
    range.bandwidth_bytes_s = said.bandwidth_bytes_s;
    CHECK(memcmp(&range, &said, sizeof range) == 0, "another changed as well");
}

static void nonsense_is_refused_by_name(void)
{
    static const char *const names[] = {"latency", "bandwidth", "overhead", "reg_cost",
                                        "reg_growth"};
    static const char *const nonsense[] = {"abc", "-1", "1x", "", "inf", "nan", "1e999"};
    for (int i = 0; i < GIVEN_ATTRIBUTES; i++)
        for (size_t j = 0; j < sizeof nonsense / sizeof nonsense[0]; j++) {
            struct given given = GIVEN_INIT;
            struct model_error error;
            char expected[64];
            given.texts[i] = nonsense[j];
            snprintf(expected, sizeof expected, "btl_verbs_lane_%s is \"%s\", ", names[i],
                     nonsense[j]);
            CHECK(!given_read(&given, "verbs", &error), "%s taken", nonsense[j]);
            CHECK(strncmp(error.text, expected, strlen(expected)) == 0, "%s", error.text);
        }
}

/* Numbers, but none that a plan is made with. */
static void what_cannot_be_is_refused_by_name(void)
{
    static const struct {
        int attribute;
        const char *text, *because;
    } cases[] = {
        {GIVEN_LATENCY, "1e12", "btl_shm_lane_latency is \"1e12\": latency = 1e+12 is not a time"},
        {GIVEN_OVERHEAD, "1e12", "btl_shm_lane_overhead is \"1e12\": "},
        {GIVEN_REG_COST, "1e12", "btl_shm_lane_reg_cost is \"1e12\": "},
        {GIVEN_REG_GROWTH, "1e12", "btl_shm_lane_reg_growth is \"1e12\": "},
        {GIVEN_BANDWIDTH, "1e-9", "btl_shm_lane_bandwidth is \"1e-9\": "},
        {GIVEN_BANDWIDTH, "1e40", "btl_shm_lane_bandwidth is \"1e40\": "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct given given = GIVEN_INIT;
        struct model_error error = {""};
        given.texts[cases[i].attribute] = cases[i].text;
        CHECK(!given_read(&given, "shm", &error), "%s taken", cases[i].text);
        CHECK(strncmp(error.text, cases[i].because, strlen(cases[i].because)) == 0, "%s",
              error.text);
    }
}

int main(void)
{
    what_cannot_be_is_refused_by_name();
    auto_changes_nothing();
    numbers_are_taken_in_every_range();
    one_alone_leaves_the_others();
    nonsense_is_refused_by_name();
    return check_end();
}
