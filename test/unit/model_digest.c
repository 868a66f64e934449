/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints one number over every decision of the model for many lanes by chance. model_alone.sh
 * builds it with several compilers and flags, and the numbers must be equal. */
#include <string.h>

#include "tools/model/cluster.h"
#include "tools/model/equation.h"
#include "model_lanes.h"

static uint64_t digest = UINT64_C(0xcbf29ce484222325);

static void add(uint64_t value)
{
    for (int i = 0; i < 8; i++, value >>= 8)
        digest = (digest ^ (value & 255)) * UINT64_C(0x100000001b3);
}

static void add_real(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    add(bits);
}

static void add_equation(const struct plan_input *input, enum equation_variant variant)
{
    struct equation_result result;
    if (!equation_solve(input, variant, 1, &result, NULL))
        return;
    add((uint64_t) result.kind);
    add(result.bytes);
    add_real(result.terms.num_s);
    add_real(result.terms.den_s_byte);
}

static void add_plan(const struct plan_input *input)
{
    struct plan *plan = plan_build(input, NULL);
    for (uint32_t i = 0; plan && i < plan->entry_count; i++) {
        const struct plan_entry *entry = &plan->entries[i];
        struct cost cost;
        add(entry->largest_bytes);
        add(entry->protocol_index);
        for (uint32_t j = 0; j < entry->lane_count; j++)
            add(entry->lanes[j] + (uint64_t) entry->weights[j] * 256);
        if (plan_predict(input, entry, entry->first_bytes, &cost))
            add_real(cost_of(&cost, input->view, entry->first_bytes));
    }
    plan_free(plan);
}

static void add_lanes(uint64_t *chance)
{
    struct model_lane lanes[6];
    struct plan_input input;
    plan_input_init(&input);
    input.lanes = lanes;
    input.lane_count = 1 + (uint32_t) chance_below(chance, 6);
    input.view = (enum cost_view) chance_below(chance, 2);
    for (uint32_t i = 0; i < input.lane_count; i++) {
        chance_lane(chance, &lanes[i], MODEL_USE_BOTH);
        lanes[i].copied_max_bytes = chance_below(chance, 65536);
        lanes[i].group = (uint32_t) chance_below(chance, 3);
    }
    add_equation(&input, EQUATION_RNDV_AM);
    add_equation(&input, EQUATION_RNDV_GET);
    add_plan(&input);
}

static void add_cluster(uint64_t *chance)
{
    struct cluster_point point;
    struct cluster_broadcast broadcast;
    point.send_overhead_s = chance_value(chance, 1e-6);
    point.gap_s = chance_value(chance, 1e-6);
    point.latency_s = chance_value(chance, 1e-6);
    point.receive_overhead_s = chance_value(chance, 1e-6);
    point.user_overhead_s = chance_value(chance, 1e-6);
    if (cluster_broadcast(&point, 13, 20, &broadcast, NULL)) {
        add_real(broadcast.simulated_s);
    }
}

int main(void)
{
    uint64_t chance = 51;
    for (int i = 0; i < 4000; i++) {
        add_lanes(&chance);
        add_cluster(&chance);
    }
    printf("%016llx\n", (unsigned long long) digest);
    return 0;
}
