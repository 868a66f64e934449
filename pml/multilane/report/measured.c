/* SPDX-License-Identifier: BSD-3-Clause */
/* From samples to what the report shows. */
#include "report/measured.h"

#include <stdlib.h>

/* A message that says something of its lane's bandwidth: others are mostly latency. */
#define LARGE_BYTES (UINT64_C(64) << 10)

static uint32_t sample_count(const struct samples *samples)
{
    return samples->taken < SAMPLES_KEPT ? samples->taken : SAMPLES_KEPT;
}

/* --- times ------------------------------------------------------------------------------------ */

struct judged {
    double ratio;
    const struct sample *sample;
};

static int by_ratio(const void *one, const void *other)
{
    double a = ((const struct judged *) one)->ratio, b = ((const struct judged *) other)->ratio;
    return (a > b) - (a < b);
}

struct plan_use measured_use(const struct plan_input *input, const struct plan *plan,
                             uint32_t index, const struct route *route)
{
    const struct plan_entry *entry = &plan->entries[index];
    struct plan_use use = {.messages = counter_read(&route->messages),
                           .bytes = counter_read(&route->bytes)};
    struct judged judged[SAMPLES_KEPT];
    double answer_s = plan_time(input, &plan->entries[0], 0);
    for (uint32_t i = 0; route->samples && i < sample_count(route->samples); i++) {
        const struct sample *sample = &route->samples->kept[i];
        /* The answer is a message as well: each takes its part of the time, as the model has it. */
        double expected_s =
            plan_time(input, entry, sample->bytes) + (sample->is_answered ? answer_s : 0);
        if (expected_s > 0)
            judged[use.samples++] =
                (struct judged){1e-9 * (double) sample->ns / expected_s, sample};
    }
    if (!use.samples)
        return use;
    qsort(judged, use.samples, sizeof(judged[0]), by_ratio);
    const struct judged *middle = &judged[(use.samples - 1) / 2];
    use.ratio = middle->ratio;
    use.measured_bytes = middle->sample->bytes;
    use.measured_s = middle->ratio * plan_time(input, entry, use.measured_bytes);
    return use;
}

/* --- speeds ----------------------------------------------------------------------------------- */

static int by_value(const void *one, const void *other)
{
    double a = *(const double *) one, b = *(const double *) other;
    return (a > b) - (a < b);
}

#define SPEEDS_MOST 256

/* Of messages that went over this lane alone. */
static uint32_t speeds_of_route(const struct route *route, uint64_t first, uint64_t last,
                                double *speeds, uint32_t room)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < sample_count(route->samples) && count < room; i++) {
        const struct sample *sample = &route->samples->kept[i];
        if (sample->bytes >= LARGE_BYTES && sample->bytes >= first && sample->bytes <= last &&
            sample->ns)
            speeds[count++] = 1e9 * (double) sample->bytes / (double) sample->ns;
    }
    return count;
}

double measured_speed(const struct peer_class *class, int lane, enum model_way way, uint32_t range)
{
    const struct model_lane_cost *cost = &class->lanes[lane].cost[way];
    uint64_t first = range ? cost->ranges[range - 1].largest_bytes + 1 : 1;
    double speeds[SPEEDS_MOST];
    uint32_t count = 0;
    for (int buffer = 0; buffer < CLASS_BUFFERS; buffer++)
        for (uint32_t i = 0; class->plans[buffer] && i < class->plans[buffer]->entry_count; i++) {
            const struct plan_entry *entry = &class->plans[buffer]->entries[i];
            if (class->routes[buffer][i].samples && entry->lane_count == 1 &&
                entry->lanes[0] == lane && entry->protocol->needs.way == way)
                count += speeds_of_route(&class->routes[buffer][i], first,
                                         cost->ranges[range].largest_bytes, speeds + count,
                                         SPEEDS_MOST - count);
        }
    qsort(speeds, count, sizeof(speeds[0]), by_value);
    if (count)
        return speeds[(count - 1) / 2];
    const struct lane_seen *seen = class->seen ? &class->seen[lane] : NULL;
    bool copies = way != MODEL_BY_SEND;
    return seen && range + 1 == cost->range_count && seen->peers[copies]
               ? seen->bytes_s[copies] / seen->peers[copies]
               : 0;
}
