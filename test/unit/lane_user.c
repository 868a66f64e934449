/* SPDX-License-Identifier: BSD-3-Clause */
/* What the user says of a lane replaces what the lane says of itself, in every range, and what is
 * no number, or none that can be, is refused by its parameter's name. */
#include "check.h"

#include <string.h>

#include "common/lane/user_attributes.h"

static const struct multilane_lane_range said = {4096, 1e-6, 5e9, 2e-7, 3e-7, 4e-6, 5e-11};

static void auto_changes_nothing(void)
{
    struct user_attributes user = {.texts = {NULL}};
    struct multilane_lane_range range = said;
    user.texts[MODEL_LATENCY] = "auto";
    CHECK(user_attributes_read(&user, "shm", NULL), "auto");
    user_attributes_apply(&user, &range, 1);
    CHECK(memcmp(&range, &said, sizeof range) == 0, "auto changed something");
}

static void numbers_are_taken_in_every_range(void)
{
    struct user_attributes user = {.texts = {[MODEL_LATENCY] = "1e-3",
                                             [MODEL_BANDWIDTH] = "0",
                                             [MODEL_OVERHEAD_SEND] = "4e-6",
                                             [MODEL_REG_COST] = "0.5",
                                             [MODEL_REG_GROWTH] = "2e-9"}};
    struct multilane_lane_range ranges[] = {said, said};
    CHECK(user_attributes_read(&user, "shm", NULL), "numbers");
    user_attributes_apply(&user, ranges, 2);
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
    struct user_attributes user = {.texts = {NULL}};
    struct multilane_lane_range range = said;
    user.texts[MODEL_BANDWIDTH] = "7";
    CHECK(user_attributes_read(&user, "shm", NULL), "one");
    user_attributes_apply(&user, &range, 1);
    CHECK(range.bandwidth_bytes_s == 7, "%g", range.bandwidth_bytes_s);
    range.bandwidth_bytes_s = said.bandwidth_bytes_s;
    CHECK(memcmp(&range, &said, sizeof range) == 0, "another changed as well");
}

static void nonsense_is_refused_by_name(void)
{
    static const char *const names[] = {"latency",  "bandwidth", "overhead",
                                        "overhead", "reg_cost",  "reg_growth"};
    static const char *const nonsense[] = {"abc", "-1", "1x", "", "inf", "nan", "1e999"};
    for (int i = 0; i < MODEL_ATTRIBUTES; i++)
        for (size_t j = 0; j < sizeof nonsense / sizeof nonsense[0]; j++) {
            struct user_attributes user = {.texts = {NULL}};
            struct model_error error;
            char expected[64];
            user.texts[i] = nonsense[j];
            snprintf(expected, sizeof expected, "btl_verbs_lane_%s is \"%s\", ", names[i],
                     nonsense[j]);
            CHECK(!user_attributes_read(&user, "verbs", &error), "%s taken", nonsense[j]);
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
        {MODEL_LATENCY, "1e12", "btl_shm_lane_latency is \"1e12\": latency = 1e+12 is not a time"},
        {MODEL_OVERHEAD_SEND, "1e12", "btl_shm_lane_overhead is \"1e12\": "},
        {MODEL_REG_COST, "1e12", "btl_shm_lane_reg_cost is \"1e12\": "},
        {MODEL_REG_GROWTH, "1e12", "btl_shm_lane_reg_growth is \"1e12\": "},
        {MODEL_BANDWIDTH, "1e-9", "btl_shm_lane_bandwidth is \"1e-9\": "},
        {MODEL_BANDWIDTH, "1e40", "btl_shm_lane_bandwidth is \"1e40\": "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct user_attributes user = {.texts = {NULL}};
        struct model_error error = {""};
        user.texts[cases[i].attribute] = cases[i].text;
        CHECK(!user_attributes_read(&user, "shm", &error), "%s taken", cases[i].text);
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
