/* SPDX-License-Identifier: BSD-3-Clause */
/* The threshold equation on numbers that were computed by hand, to the byte. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "tools/model/equation.h"
#include "model_lanes.h"

/* Most cases: d = 1/2, eager and rendezvous of 1 byte a second, so den = 1/2 s/B. */
struct side {
    double latency, bandwidth, overhead, cost, growth;
};

static bool solve_lanes(const struct model_lane *lanes, uint32_t count,
                        const struct model_group *group, double bias, enum equation_variant variant,
                        struct equation_result *result, struct error_text *error)
{
    struct plan_input input;
    plan_input_init(&input);
    input.lanes = lanes;
    input.lane_count = count;
    input.around.groups = (struct model_groups){group, group != NULL};
    input.around.bias = bias;
    return equation_solve(&input, variant, 1, result, error);
}

static struct equation_result solve(double bias, struct side eager, struct side rndv,
                                    enum equation_variant variant)
{
    struct model_lane lanes[2];
    struct equation_result result = {.kind = EQUATION_NEVER};
    struct error_text error = {""};
    fake_lane(&lanes[0], "e", MODEL_USE_EAGER, eager.latency, eager.bandwidth, eager.overhead,
              eager.cost, eager.growth);
    fake_lane(&lanes[1], "r", MODEL_USE_RNDV, rndv.latency, rndv.bandwidth, rndv.overhead,
              rndv.cost, rndv.growth);
    CHECK(solve_lanes(lanes, 2, NULL, bias, variant, &result, &error), "%s", error.text);
    return result;
}

static void expect(const char *name, double bias, struct side eager, struct side rndv,
                   enum equation_variant variant, const char *expected)
{
    struct equation_result result = solve(bias, eager, rndv, variant);
    const struct words text = equation_print(&result);
    CHECK(!strcmp(text.text, expected), "%s: %s, not %s", name, text.text, expected);
}

static void the_example_of_the_manual(void)
{
    struct side fast = {1.3e-6, 12.5e9, 0.2e-6, 1e-6, 0.06e-9};
    expect("the example", 0.99, fast, fast, EQUATION_RNDV_AM, "at 3951429");
    expect("the example", 0.99, fast, fast, EQUATION_RNDV_GET, "never");
}

static void every_case_of_signs(void)
{
    const struct side plain = {0, 1, 0, 0, 0};
    const struct side late = {2, 1, 0, 0, 0};       /* num = 1/2 * 4 * 2 = 4 */
    const struct side half = {2, 0.5, 0, 0, 0};     /* 1/2 * 1/rbw = 1: den = 0 */
    const struct side quarter = {2, 0.25, 0, 0, 0}; /* den = -1 */
    const struct side at_half = {0, 0.5, 0, 0, 0};
    const struct side at_quarter = {0, 0.25, 0, 0, 0};
    expect("num > 0, den > 0, a tie", 0.5, plain, late, EQUATION_RNDV_AM, "at 8");
    expect("num = 0, den > 0", 0.5, plain, plain, EQUATION_RNDV_AM, "always");
    expect("num = 0, den = 0", 0.5, plain, at_half, EQUATION_RNDV_AM, "always");
    expect("num > 0, den = 0", 0.5, plain, half, EQUATION_RNDV_AM, "never");
    expect("num > 0, den < 0", 0.5, plain, quarter, EQUATION_RNDV_AM, "never");
    expect("num = 0, den < 0", 0.5, plain, at_quarter, EQUATION_RNDV_AM, "never");
    expect("num < 0, den > 0", 0.5, (struct side){0, 1, 10, 0, 0}, plain, EQUATION_RNDV_AM,
           "always");
    expect("num < 0, den = 0", 0.5, (struct side){0, 1, 10, 0, 0}, at_half, EQUATION_RNDV_AM,
           "always");
    expect("num < 0, den < 0, a tie", 0.5, (struct side){0, 1, 10, 0, 0}, at_quarter,
           EQUATION_RNDV_AM, "below 10");
    expect("num < 0, den < 0", 0.5, (struct side){0, 1, 10.5, 0, 0}, at_quarter, EQUATION_RNDV_AM,
           "below 10");
    expect("num < 0, den < 0, no whole byte", 0.5, (struct side){0, 1, 0.5, 0, 0}, at_quarter,
           EQUATION_RNDV_AM, "never");
    expect("one byte is enough", 0.5, plain, (struct side){0.125, 1, 0, 0, 0}, EQUATION_RNDV_AM,
           "at 1");
}

/* The smallest change of one double moves a tie to the next byte, and no further. */
static void one_bit_moves_a_tie(void)
{
    const struct side plain = {0, 1, 0, 0, 0};
    expect("a bit later", 0.5, plain, (struct side){nextafter(2, 3), 1, 0, 0, 0}, EQUATION_RNDV_AM,
           "at 9");
    expect("a bit earlier", 0.5, plain, (struct side){nextafter(2, 1), 1, 0, 0, 0},
           EQUATION_RNDV_AM, "at 8");
    expect("a bit faster", 0.5, plain, (struct side){2, nextafter(1, 2), 0, 0, 0}, EQUATION_RNDV_AM,
           "at 8");
    expect("a bit slower", 0.5, plain, (struct side){2, nextafter(1, 0), 0, 0, 0}, EQUATION_RNDV_AM,
           "at 9");
    expect("a tiny addend", 0.5, plain, (struct side){2, 1, DBL_TRUE_MIN, 0, 0}, EQUATION_RNDV_AM,
           "at 9");
    expect("the same of the eager side", 0.5, (struct side){0, 1, DBL_TRUE_MIN, 0, 0},
           (struct side){nextafter(2, 1), 1, 0, 0, 0}, EQUATION_RNDV_AM, "at 8");
}

/* ebw = rbw = 2^30, d = 1/2: den = 2^-31, so num = 2^21 meets at 2^52. */
static void beyond_2_to_52(void)
{
    const struct side eager = {0, 0x1p30, 0, 0, 0};
    const struct side rndv = {0x1p20, 0x1p30, 0, 0, 0};
    const struct side slow = {0, 0x1p28, 0, 0, 0}; /* den = 2^-30 - 2^-29 = -2^-30 */
    expect("2^52", 0.5, eager, rndv, EQUATION_RNDV_AM, "at 4503599627370496");
    expect("above 2^52", 0.5, eager, (struct side){nextafter(0x1p20, 1e9), 0x1p30, 0, 0, 0},
           EQUATION_RNDV_AM, "never (the times meet only above 2^52 bytes)");
    expect("below 2^52", 0.5, (struct side){0, 0x1p30, 0x1p22, 0, 0}, slow, EQUATION_RNDV_AM,
           "below 4503599627370496");
    expect("below more", 0.5, (struct side){0, 0x1p30, 0x1p23, 0, 0}, slow, EQUATION_RNDV_AM,
           "below 4503599627370496 (the times meet only above 2^52 bytes)");
}

static void rrc_counts_the_receiver(void)
{
    const struct side eager = {0, 1, 0, 0, 0};
    const struct side costly = {0, 1, 0, 4, 0};     /* am: num = 2; get: 4 */
    const struct side growing = {2, 1, 0, 0, 0.25}; /* am: den = 1 - .5*1.25 = 3/8; get: 1/4 */
    const struct side overhead = {0, 1, 8, 0, 0};   /* num = 1/2 * 3 * 8 = 12 */
    expect("cost", 0.5, eager, costly, EQUATION_RNDV_AM, "at 4");
    expect("cost", 0.5, eager, costly, EQUATION_RNDV_GET, "at 8");
    expect("growth", 0.5, eager, growing, EQUATION_RNDV_AM, "at 11"); /* 4 / (3/8) = 10.67 */
    expect("growth", 0.5, eager, growing, EQUATION_RNDV_GET, "at 16");
    expect("overhead", 0.5, eager, overhead, EQUATION_RNDV_GET, "at 24");
    expect("eager growth", 0.5, (struct side){0, 1, 0, 0, 0.5}, overhead, EQUATION_RNDV_GET,
           "at 12");
    expect("eager latency is in no eager line", 0.5, (struct side){1e6, 1, 0, 0, 0}, overhead,
           EQUATION_RNDV_GET, "at 24");
}

/* ebw = 1 + 1, rbw = 1 + 3, rlat = max(1, 2), rover = 1 + 1, ecost = 0.5 + 0.25:
 * num = (4*2 + 3*2)/2 - 0.75 = 6.25; den = 1/2 - 1/8 = 3/8; 16.67 */
static void sums_over_lanes(void)
{
    struct model_lane lanes[4];
    struct equation_result result;
    struct error_text error = {""};
    fake_lane(&lanes[0], "r1", MODEL_USE_RNDV, 1, 1, 1, 0, 0);
    fake_lane(&lanes[1], "e1", MODEL_USE_EAGER, 0, 1, 0, 0.5, 0);
    fake_lane(&lanes[2], "r2", MODEL_USE_RNDV, 2, 3, 1, 0, 0);
    fake_lane(&lanes[3], "e2", MODEL_USE_EAGER, 0, 1, 0, 0.25, 0);
    CHECK(solve_lanes(lanes, 4, NULL, 0.5, EQUATION_RNDV_AM, &result, &error), "%s", error.text);
    CHECK(!strcmp(equation_print(&result).text, "at 17"), "%s", equation_print(&result).text);

    /* The rendezvous lanes share what carries 2: den = 1/2 - 1/4; 25 */
    const struct model_group group = {7, 2};
    lanes[0].group = lanes[2].group = 7;
    CHECK(solve_lanes(lanes, 4, &group, 0.5, EQUATION_RNDV_AM, &result, &error), "%s", error.text);
    CHECK(!strcmp(equation_print(&result).text, "at 25"), "%s", equation_print(&result).text);
    /* Not measured: as much as the faster, 3: den = 1/2 - 1/6; 18.75 */
    CHECK(solve_lanes(lanes, 4, NULL, 0.5, EQUATION_RNDV_AM, &result, &error), "%s", error.text);
    CHECK(!strcmp(equation_print(&result).text, "at 19"), "%s", equation_print(&result).text);

    lanes[0].can = lanes[2].can = MODEL_CAN_SEND;
    CHECK(solve_lanes(lanes, 4, NULL, 0.5, EQUATION_RNDV_GET, &result, &error), "%s", error.text);
    CHECK(!strcmp(equation_print(&result).text, "never (no lane can do it)"), "%s",
          equation_print(&result).text);
}

static void infinite_bandwidth_means_free_bytes(void)
{
    const struct side eager = {0, 1, 0, 0, 0};
    expect("rndv", 0.5, eager, (struct side){2, INFINITY, 0, 0, 0}, EQUATION_RNDV_AM, "at 4");
    expect("eager", 0.5, (struct side){0, INFINITY, 0, 0, 0}, (struct side){2, 1, 0, 0, 0},
           EQUATION_RNDV_AM, "never");
    expect("both", 0.5, (struct side){0, INFINITY, 0, 0, 0.5}, (struct side){2, INFINITY, 0, 0, 0},
           EQUATION_RNDV_AM, "at 8");
}

static void nonsense_is_refused(void)
{
    static const double bad[] = {-1, NAN, -INFINITY, 1e300};
    struct equation_result result;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        for (int attribute = 0; attribute < MODEL_ATTRIBUTES; attribute++) {
            struct model_lane lane;
            struct error_text error = {""};
            fake_lane(&lane, "odd", MODEL_USE_BOTH, 1, 1, 1, 1, 1);
            double *values[] = {
                &lane.cost[0].ranges[0].latency_s,       &lane.cost[0].ranges[0].bandwidth_bytes_s,
                &lane.cost[0].ranges[0].overhead_send_s, &lane.cost[0].ranges[0].overhead_receive_s,
                &lane.cost[0].ranges[0].reg_cost_s,      &lane.cost[0].ranges[0].reg_growth_s_byte};
            *values[attribute] = bad[i];
            CHECK(!solve_lanes(&lane, 1, NULL, 0.99, EQUATION_RNDV_AM, &result, &error), "%s = %g",
                  model_attribute_name((enum model_attribute) attribute), bad[i]);
            CHECK(strstr(error.text, "odd") &&
                      strstr(error.text, model_attribute_name((enum model_attribute) attribute)),
                  "%s", error.text);
        }
    struct model_lane lane;
    struct error_text error = {""};
    fake_lane(&lane, "odd", MODEL_USE_BOTH, 1, 0, 1, 1, 1);
    CHECK(!solve_lanes(&lane, 1, NULL, 0.99, EQUATION_RNDV_AM, &result, &error), "bw 0");
    lane.cost[0].ranges[0].bandwidth_bytes_s = lane.cost[1].ranges[0].bandwidth_bytes_s = 1;
    lane.cost[2].ranges[0].bandwidth_bytes_s = 1;
    CHECK(!solve_lanes(&lane, 1, NULL, 0, EQUATION_RNDV_AM, &result, &error), "d = 0");
    CHECK(!solve_lanes(&lane, 1, NULL, NAN, EQUATION_RNDV_AM, &result, &error), "d = NaN");
    lane.use = MODEL_USE_EAGER;
    CHECK(!solve_lanes(&lane, 1, NULL, 0.5, EQUATION_RNDV_AM, &result, &error), "no rndv");
}

int main(void)
{
    the_example_of_the_manual();
    every_case_of_signs();
    one_bit_moves_a_tie();
    beyond_2_to_52();
    rrc_counts_the_receiver();
    sums_over_lanes();
    infinite_bandwidth_means_free_bytes();
    nonsense_is_refused();
    return check_end();
}
