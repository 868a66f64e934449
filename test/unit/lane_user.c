/* SPDX-License-Identifier: BSD-3-Clause */
/* What the user says of a lane replaces what the lane says of itself, and what is
 * no number, or none that can be, is refused by its parameter's name. */
#include "check.h"

#include <math.h>
#include <string.h>

#include "common/lane/attr.h"

static const struct model_lane_range said = {UINT64_MAX, 1e-6, 5e9, 2e-7, 3e-7, 4e-6, 5e-11};

static struct model_lane lane_said(void)
{
    struct model_lane lane;
    model_lane_init(&lane, "shm");
    model_lane_set_cost(&lane, MODEL_BY_SEND, &said);
    return lane;
}

static void auto_changes_nothing(void)
{
    struct attr_parameters parameters = {.texts = {[MODEL_LATENCY] = "auto"}};
    struct model_lane lane = lane_said();
    CHECK(attr_parameters_check(&parameters, "shm", NULL), "auto");
    attr_parameter_apply(MODEL_LATENCY, "auto", &lane);
    CHECK(memcmp(&lane.cost[MODEL_BY_SEND].ranges[0], &said, sizeof said) == 0,
          "auto changed something");
}

static void numbers_are_taken(void)
{
    const struct attr_parameters parameters = {.texts = {[MODEL_LATENCY] = "1e-3",
                                                         [MODEL_BANDWIDTH] = "0",
                                                         [MODEL_OVERHEAD_SEND] = "4e-6",
                                                         [MODEL_REG_COST] = "0.5",
                                                         [MODEL_REG_GROWTH] = "2e-9"}};
    const struct model_lane_range wanted = {UINT64_MAX, 1e-3, INFINITY, 2e-6, 2e-6, 0.5, 2e-9};
    struct model_lane lane = lane_said();
    CHECK(attr_parameters_check(&parameters, "shm", NULL), "numbers");
    for (int i = 0; i < MODEL_ATTRIBUTES; i++)
        if (parameters.texts[i])
            attr_parameter_apply(i, parameters.texts[i], &lane);
    CHECK(memcmp(&lane.cost[MODEL_BY_SEND].ranges[0], &wanted, sizeof wanted) == 0, "the range");
    CHECK(lane.source[MODEL_BY_SEND][0][MODEL_LATENCY] == MODEL_SOURCE_USER, "its source");
}

static void nonsense_is_refused_by_name(void)
{
    static const char *const names[] = {"latency",  "bandwidth", "overhead",
                                        "overhead", "reg_cost",  "reg_growth"};
    static const char *const nonsense[] = {"abc", "-1", "1x", "", "inf", "nan", "1e999"};
    for (int i = 0; i < MODEL_ATTRIBUTES; i++)
        for (size_t j = 0; j < sizeof nonsense / sizeof nonsense[0]; j++) {
            struct attr_parameters user = {.texts = {NULL}};
            struct error_text error;
            char expected[64];
            user.texts[i] = nonsense[j];
            snprintf(expected, sizeof expected, "btl_verbs_lane_%s is \"%s\": ", names[i],
                     nonsense[j]);
            CHECK(!attr_parameters_check(&user, "verbs", &error), "%s taken", nonsense[j]);
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
        struct attr_parameters user = {.texts = {NULL}};
        struct error_text error = {""};
        user.texts[cases[i].attribute] = cases[i].text;
        CHECK(!attr_parameters_check(&user, "shm", &error), "%s taken", cases[i].text);
        CHECK(strncmp(error.text, cases[i].because, strlen(cases[i].because)) == 0, "%s",
              error.text);
    }
}

int main(void)
{
    what_cannot_be_is_refused_by_name();
    auto_changes_nothing();
    numbers_are_taken();
    nonsense_is_refused_by_name();
    return check_end();
}
