/* SPDX-License-Identifier: BSD-3-Clause */
/* From timed messages to what the report shows. */
#include "report/measured.h"

#include "plan/learning.h"

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
    struct plan_input alone = *input;
    alone.learned = NULL;
    use.measured_s = learning_factor(class, (enum class_buffer) route->buffer,
                                     plan_entry_key(route->entry), learned_bucket(most->bytes)) *
                     plan_time(&alone, route->entry, most->bytes);
    use.ratio = use.measured_s / plan_time(input, route->entry, most->bytes);
    return use;
}
