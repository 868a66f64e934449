/* SPDX-License-Identifier: BSD-3-Clause */
/* From timed messages to what the report shows. */
#include "report/measured.h"

#include "plan/learning.h"

/* A message that says something of its lane's bandwidth: others are mostly latency. */
#define LARGE_BYTES (UINT64_C(64) << 10)

/* The median time of messages of the range of sizes. */
static double median_s(const struct plan_input *input, const struct peer_class *class,
                       const struct route *route, const struct learning_range *range)
{
    struct plan_input alone = *input;
    alone.learned = NULL;
    return learning_factor(class, (enum class_buffer) route->buffer, plan_entry_key(route->entry),
                           learned_bucket(range->bytes)) *
           plan_time(&alone, route->entry, range->bytes);
}

/* The range of sizes within the entry of which most messages were timed; null: of none. */
static const struct learning_range *timed_most(const struct peer_class *class,
                                               const struct route *route)
{
    const struct plan_entry *entry = route->entry;
    const struct learning_range *most = NULL;
    uint32_t last = learned_bucket(entry->largest_bytes);
    for (uint32_t i = learned_bucket(entry->first_bytes); i <= last; i++) {
        const struct learning_range *range =
            learning_range_of(class, (enum class_buffer) route->buffer, plan_entry_key(entry), i);
        if (range && learning_median(range) > 0 && range->taken > range->recalled &&
            range->bytes >= entry->first_bytes && range->bytes <= entry->largest_bytes &&
            (!most || range->taken > most->taken))
            most = range;
    }
    return most;
}

struct plan_use measured_use(const struct plan_input *input, const struct peer_class *class,
                             const struct route *route)
{
    struct plan_use use = {.messages = counter_read(&route->messages),
                           .bytes = counter_read(&route->bytes)};
    const struct learning_range *most = timed_most(class, route);
    if (!most)
        return use;
    use.samples = most->taken - most->recalled;
    use.measured_bytes = most->bytes;
    use.measured_s = median_s(input, class, route, most);
    use.ratio = use.measured_s / plan_time(input, route->entry, most->bytes);
    return use;
}

/* Of the messages that went over this lane alone the range of sizes that was timed most. */
static double speed_of(const struct plan_input *input, const struct peer_class *class,
                       const struct route *route, uint64_t first, uint64_t last, uint32_t *taken)
{
    double speed = 0;
    for (uint32_t i = learned_bucket(first); i <= learned_bucket(last); i++) {
        const struct learning_range *range = learning_range_of(
            class, (enum class_buffer) route->buffer, plan_entry_key(route->entry), i);
        if (!range || !(learning_median(range) > 0) || range->taken == range->recalled ||
            range->bytes < LARGE_BYTES || range->bytes < first || range->bytes > last ||
            range->taken <= *taken)
            continue;
        *taken = range->taken;
        speed = (double) range->bytes / median_s(input, class, route, range);
    }
    return speed;
}

double measured_speed(const struct peer_class *class, int lane, enum model_way way, uint32_t range)
{
    const struct model_lane_cost *cost = &class->lanes[lane].cost[way];
    uint64_t first = range ? cost->ranges[range - 1].largest_bytes + 1 : 1;
    uint32_t taken = 0;
    double speed = 0;
    for (int i = 0; i < CLASS_BUFFERS; i++) {
        enum class_buffer buffer = (enum class_buffer) i;
        const struct planned *planned = class_planned(class, buffer);
        struct plan_input input;
        class_plan_input(class, buffer, &input);
        for (uint32_t j = 0; planned && j < planned->plan->entry_count; j++) {
            const struct plan_entry *entry = &planned->plan->entries[j];
            if (entry->lane_count != 1 || entry->lanes[0] != lane ||
                entry->protocol->needs.way != way)
                continue;
            double more = speed_of(&input, class, &planned->routes[j], first,
                                   cost->ranges[range].largest_bytes, &taken);
            speed = more > 0 ? more : speed;
        }
    }
    if (speed > 0)
        return speed;
    const struct lane_seen *seen = class->seen ? &class->seen[lane] : NULL;
    bool copies = way != MODEL_BY_SEND;
    return seen && range + 1 == cost->range_count && seen->peers[copies]
               ? seen->bytes_s[copies] / seen->peers[copies]
               : 0;
}
