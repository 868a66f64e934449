/* SPDX-License-Identifier: BSD-3-Clause */
/* What multilane-calibrate times as new registrations are new: a stand-in for a lane's cache of
 * registrations, which knows memory by its address, is asked for none that it has. */
#include "common/lock/clock.h"
#include "check.h"

#include "tools/calibrate/measure.h"

#define NEW_S 20e-6

static struct {
    const char *begin, *end;
} known[256];

static int known_count, found_count;
static bool is_cached;

static void spin(double seconds)
{
    double until = clock_exact_s() + seconds;
    while (clock_exact_s() < until)
        ;
}

static int standin_registration(int rank, uint32_t lane, void *address, size_t bytes)
{
    const char *begin = address;
    (void) rank;
    (void) lane;
    for (int i = 0; i < known_count; i++)
        if (known[i].begin < begin + bytes && begin < known[i].end) {
            found_count++;
            spin(is_cached ? 0 : NEW_S);
            return 0;
        }
    known[known_count].begin = begin;
    known[known_count++].end = begin + bytes;
    spin(NEW_S);
    return 0;
}

static void standin_surroundings(struct model_surroundings *around)
{
    around->registration_cached = is_cached;
}

static void what_is_timed_as_new_is_new(bool chooses)
{
    const struct multilane_measure pml = {.surroundings = standin_surroundings,
                                          .registration = standin_registration};
    const struct model_lane_range range = {.largest_bytes = UINT64_MAX, .bandwidth_bytes_s = 1e9};
    struct model_lane lane;
    model_lane_init(&lane, "stand-in");
    model_lane_set_cost(&lane, MODEL_WAYS, &range);
    lane.copy_growth_s_byte = chooses ? 1 : 0;
    known_count = found_count = 0;
    measure_registration(&pml, 1, 0, &lane);
    CHECK(known_count > 1 && found_count == known_count,
          "%d registrations were new, %d were known; each is asked for twice", known_count,
          found_count);
    CHECK(lane.cost[MODEL_BY_GET].ranges[0].reg_cost_s > NEW_S / 2, "%g",
          lane.cost[MODEL_BY_GET].ranges[0].reg_cost_s);
    CHECK((lane.cost[MODEL_BY_SEND].ranges[0].reg_cost_s > NEW_S / 2) == chooses,
          "sends register where the lane can choose that, alone: %g",
          lane.cost[MODEL_BY_SEND].ranges[0].reg_cost_s);
    CHECK(chooses ? lane.copy_growth_s_byte > 0 && lane.copy_growth_s_byte < 1e-6
                  : lane.copy_growth_s_byte == 0,
          "a copy of 1e6 to any number of bytes a second: %g s a byte", lane.copy_growth_s_byte);
    if (is_cached)
        CHECK(lane.reg_cached_s >= 0 && lane.reg_cached_s < NEW_S, "%g", lane.reg_cached_s);
    else
        CHECK(lane.reg_cached_s < 0, "there is no cache: %g", lane.reg_cached_s);
}

int main(void)
{
    for (int i = 0; i < 4; i++) {
        is_cached = i / 2;
        what_is_timed_as_new_is_new(i % 2);
    }
    return check_end();
}
