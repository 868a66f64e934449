/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints what a plan costs: nanoseconds to look a size up, microseconds to build. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/model/number.h"
#include "common/model/plan.h"
#include "test/bench/median.h"

#define LOOKUPS 20000000u
#define REPEATS 7
#define SIZES   4096 /* a power of two */

/* Of this process's processor: what is measured never waits, and other programs do not count. */
static double now_s(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double) time.tv_sec + 1e-9 * (double) time.tv_nsec;
}

/* Lanes that differ enough for several to be worth using. */
static void make_lane(struct model_lane *lane, uint32_t i)
{
    char name[16];
    struct model_lane_range range = {.latency_s = 1e-6 * (1 + 0.1 * i),
                                     .bandwidth_bytes_s = 12e9 / (1 + 0.3 * i),
                                     .overhead_send_s = 0.1e-6,
                                     .overhead_receive_s = 0.1e-6 * (1 + 0.2 * i),
                                     .reg_cost_s = 0.5e-6,
                                     .reg_growth_s_byte = 2e-12};
    snprintf(name, sizeof name, "lane%u", (unsigned) i);
    model_lane_init(lane, name);
    lane->can = (1u << MODEL_ABILITIES) - 1;
    lane->short_max_bytes = 200;
    lane->copied_max_bytes = 8192;
    lane->zcopied_max_bytes = UINT64_MAX;
    model_lane_set_cost(lane, MODEL_WAYS, &range);
}

/* The sum of the indices goes to a volatile, so that no lookup is left out. */
static double lookup_ns(const struct plan *plan, const uint64_t *sizes)
{
    static volatile uint64_t sink;
    uint64_t sum = 0;
    double begin = now_s();
    for (uint32_t i = 0; i < LOOKUPS; i++)
        sum += plan_lookup(plan, sizes[i & (SIZES - 1)])->protocol_index;
    double end = now_s();
    sink = sum;
    (void) sink;
    return 1e9 * (end - begin) / LOOKUPS;
}

static void print_lookups(const struct plan *plan, const char *name, uint64_t size, int spread)
{
    static uint64_t sizes[SIZES];
    double times[REPEATS];
    uint64_t state = 1;
    for (int i = 0; i < SIZES; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        sizes[i] = spread ? (state >> 20) >> ((state >> 13) % 44) : size;
    }
    for (int i = 0; i < REPEATS; i++)
        times[i] = lookup_ns(plan, sizes);
    printf("lookup, %-28s %8.2f ns\n", name, median(times, REPEATS));
}

static double build_us(const struct plan_input *input, uint32_t *entries)
{
    double times[REPEATS];
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        uint32_t built = 0;
        double begin = now_s(), end = begin;
        for (; end - begin < 0.02; built++, end = now_s()) {
            struct plan *plan = plan_build(input, NULL);
            if (!plan)
                exit(1);
            *entries = plan->entry_count;
            plan_free(plan);
        }
        times[repeat] = 1e6 * (end - begin) / built;
    }
    return median(times, REPEATS);
}

int main(void)
{
    struct model_lane lanes[MODEL_LANES_MAX];
    struct plan_input input;
    struct error_text error = {""};
    static const uint32_t lane_counts[] = {1, 2, 4, 8, 16};
    plan_input_init(&input);
    input.lanes = lanes;
    input.around.copy[0] = (struct cost_line){20e-9, 0.05e-9};
    for (uint32_t i = 0; i < MODEL_LANES_MAX; i++)
        make_lane(&lanes[i], i);
    for (size_t i = 0; i < sizeof lane_counts / sizeof lane_counts[0]; i++) {
        uint32_t entries = 0;
        input.lane_count = lane_counts[i];
        double time_us = build_us(&input, &entries);
        printf("build, %2u lanes, %2u entries %8.1f us\n", (unsigned) input.lane_count,
               (unsigned) entries, time_us);
    }

    input.lane_count = 3;
    struct plan *plan = plan_build(&input, &error);
    if (!plan) {
        fprintf(stderr, "no plan: %s\n", error.text);
        return 1;
    }
    for (uint32_t i = 0; i < plan->entry_count; i++) {
        char name[64];
        snprintf(name, sizeof name, "entry %u of %u (%.20s)", (unsigned) i + 1,
                 (unsigned) plan->entry_count, number_size(plan->entries[i].first_bytes).text);
        print_lookups(plan, name, plan->entries[i].first_bytes, 0);
    }
    print_lookups(plan, "sizes at random", 0, 1);
    plan_free(plan);
    return 0;
}
