/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of what messages took. */
#include "report.h"

#include "common/model/number.h"
#include "common/report/table.h"

/* The protocol that took least of messages of that size beside `but`; below 0: there is none. */
static int quickest(const struct lane_times *times, uint32_t bucket, int but)
{
    int best = -1;
    for (int i = 0; i < MODEL_PROTOCOLS; i++)
        if (i != but && times->at[i][bucket].messages &&
            (best < 0 || times->at[i][bucket].seconds < times->at[best][bucket].seconds))
            best = i;
    return best;
}

/* One row for each size from `first` to `last` that is a power of two: how it goes by the plan,
 * what that took, and the best of the others. */
static void size_row(struct table *table, const struct lane_result *result, const struct plan *plan,
                     uint32_t bucket)
{
    uint64_t bytes = UINT64_C(1) << bucket;
    int chosen = (int) plan_lookup(plan, bytes)->protocol_index;
    const struct lane_time *time = &result->times.at[chosen][bucket];
    int other = quickest(&result->times, bucket, chosen);
    if (!time->messages)
        return;
    table_row(table, "%s\t%s\t%s\t%.0f %%\t%u\t%s\t%s", number_size(bytes).text,
              model_protocols[chosen]->name, number_time(time->seconds).text,
              100 * time->spread_s / time->seconds, (unsigned) time->messages,
              other < 0 ? "" : model_protocols[other]->name,
              other < 0 ? "" : number_time(result->times.at[other][bucket].seconds).text);
}

void report_lane(FILE *out, const struct lane_result *result,
                 const struct model_surroundings *around)
{
    struct plan_input input;
    struct table table;
    plan_input_init(&input);
    input.lanes = &result->lane;
    input.lane_count = 1;
    input.around = *around;
    fprintf(out, "\n%s\n", result->lane.name);
    struct plan *plan = result->good ? plan_build(&input, NULL) : NULL;
    if (!plan) {
        fprintf(out, "  left out of the profile: %s\n", result->why.text);
        return;
    }
    table_init(&table, "bytes\tplanned\ttook\tspread\tmessages\tnext best\ttook");
    for (uint32_t bucket = 0; bucket < LEARNED_BUCKETS; bucket++)
        size_row(&table, result, plan, bucket);
    table_print(&table, out, "  ");
    for (uint32_t i = 1; i < plan->entry_count; i++) {
        fprintf(out, "%s%s from %s", i == 1 ? "  switches: " : ", ",
                plan->entries[i].protocol->name, number_size(plan->entries[i].first_bytes).text);
    }
    fputs(plan->entry_count > 1 ? "\n" : "", out);
    plan_free(plan);
}
