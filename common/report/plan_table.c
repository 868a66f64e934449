/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans as tables. */
#include "common/report/plan_table.h"

#include <inttypes.h>
#include <math.h>

#include "common/model/number.h"
#include "common/report/table.h"

uint64_t plan_last_shown(const struct plan_entry *entry)
{
    uint64_t most = UINT64_C(64) << 20;
    if (most < entry->first_bytes)
        most = entry->first_bytes;
    return entry->largest_bytes < most ? entry->largest_bytes : most;
}

double plan_time(const struct plan_input *input, const struct plan_entry *entry, uint64_t bytes)
{
    struct cost cost;
    return plan_predict(input, entry, bytes, &cost) ? cost_of(&cost, input->view, bytes) : NAN;
}

const char *plan_lanes_text(const struct plan_input *input, const struct plan_entry *entry,
                            char text[PLAN_LANES_CHARS])
{
    text[0] = '\0';
    for (uint32_t i = 0; i < entry->lane_count; i++) {
        text_more(text, PLAN_LANES_CHARS, "%s%s", i ? " + " : "",
                  input->lanes[entry->lanes[i]].name);
        if (entry->lane_count > 1)
            text_more(text, PLAN_LANES_CHARS, " %.0f%%",
                      100.0 * entry->weights[i] / PLAN_WEIGHT_ONE);
    }
    text_more(text, PLAN_LANES_CHARS, "%s", plan_entry_manner(entry));
    return text;
}

/* "\t1.2us at 8\t1.10\t100\t800" */
static void use_text(const struct plan_use *use, char text[160])
{
    char time[NUMBER_TIME_CHARS], size[NUMBER_SIZE_CHARS], measured[80] = "\t\t";
    if (use->samples)
        snprintf(measured, sizeof measured, "\t%s at %s\t%.2f",
                 number_print_time(use->measured_s, time),
                 number_print_size(use->measured_bytes, size), use->ratio);
    snprintf(text, 160, "%s\t%" PRIu64 "\t%" PRIu64, measured, use->messages, use->bytes);
}

void plan_table_print(FILE *out, const struct plan_input *input, const struct plan *plan,
                      const struct plan_use *uses, const char *indent)
{
    struct table table;
    table_init(&table,
               uses ? "from\tto\tprotocol\tdecided by\tlane\tpredicted\tmeasured\tratio\tmessages"
                      "\tbytes"
                    : "from\tto\tprotocol\tdecided by\tlane\tpredicted");
    for (uint32_t i = 0; i < plan->entry_count; i++) {
        const struct plan_entry *entry = &plan->entries[i];
        char from[NUMBER_SIZE_CHARS], to[NUMBER_SIZE_CHARS], lanes[PLAN_LANES_CHARS], use[160] = "";
        char low[NUMBER_TIME_CHARS], high[NUMBER_TIME_CHARS];
        if (uses)
            use_text(&uses[i], use);
        table_row(
            &table, "%s\t%s\t%s\t%s\t%s\t%s to %s%s", number_print_size(entry->first_bytes, from),
            number_print_size(entry->largest_bytes, to), entry->protocol->name,
            i ? plan_decider_name(entry->decided_by) : "", plan_lanes_text(input, entry, lanes),
            number_print_time(plan_time(input, entry, entry->first_bytes), low),
            number_print_time(plan_time(input, entry, plan_last_shown(entry)), high), use);
    }
    table_print(&table, out, indent);
}

/* --- the terms of a switch -------------------------------------------------------------------- */

static bool line_of(const struct plan_input *input, const struct plan_entry *entry, uint64_t bytes,
                    struct cost *cost, struct cost_line *line)
{
    if (!plan_predict(input, entry, bytes, cost))
        return false;
    *line = cost_sum_line(cost);
    return true;
}

double plan_meeting_bytes(const struct plan_input *input, const struct plan_entry *before,
                          const struct plan_entry *after)
{
    struct cost cost;
    struct cost_line early, late;
    if (!line_of(input, before, before->largest_bytes, &cost, &early) ||
        !line_of(input, after, after->first_bytes, &cost, &late))
        return NAN;
    return (late.fixed_s - early.fixed_s) / (early.growth_s_byte - late.growth_s_byte);
}

/* One protocol's line: d times what it consists of. Where copies overlap with the wire the slowest
 * stage stands for both, and its copies are in the bandwidth. */
static void terms_row(struct table *table, const struct plan_input *input,
                      const struct plan_entry *entry, uint64_t bytes)
{
    struct cost cost;
    struct cost_line line;
    char latency[NUMBER_TIME_CHARS], overhead[NUMBER_TIME_CHARS], fixed[NUMBER_TIME_CHARS];
    char total[NUMBER_TIME_CHARS];
    if (!line_of(input, entry, bytes, &cost, &line))
        return;
    const struct cost_line *registration = &cost.registration;
    double latency_s = cost.stage[COST_LATENCY].fixed_s / cost.scale;
    double moved_s_byte = line.growth_s_byte / cost.scale - registration->growth_s_byte;
    double wire_s_byte = cost.bandwidth_bytes_s > 0 ? 1 / cost.bandwidth_bytes_s : moved_s_byte;
    table_row(
        table, "%s%s\t%.4g\t%s\t%s\t%s + %.4g ns/KiB\t%.4g GB/s\t%.4g ns/KiB\t%s",
        entry->protocol->name, plan_entry_manner(entry), cost.scale,
        number_print_time(latency_s, latency),
        number_print_time(line.fixed_s / cost.scale - latency_s - registration->fixed_s, overhead),
        number_print_time(registration->fixed_s, fixed), registration->growth_s_byte * 1024e9,
        1e-9 / wire_s_byte, fmax(moved_s_byte - wire_s_byte, 0) * 1024e9,
        number_print_time(plan_time(input, entry, bytes), total));
}

/* Where the lines meet, and why the switch lies elsewhere if it does. */
static void decider_text(const struct plan_input *input, const struct plan_entry *before,
                         const struct plan_entry *after, char text[160])
{
    double bytes = plan_meeting_bytes(input, before, after);
    if (after->decided_by == PLAN_BY_EQUATION)
        snprintf(text, 160, "equation%s",
                 fabs(bytes - (double) after->first_bytes) <= 2
                     ? ": the lines meet here"
                     : ", with other terms from here on");
    else if (bytes > (double) after->first_bytes)
        snprintf(text, 160, "%s; by the equation it would lie at %.0f",
                 plan_decider_name(after->decided_by), bytes);
    else
        snprintf(text, 160, "%s", plan_decider_name(after->decided_by));
}

void plan_switches_print(FILE *out, const struct plan_input *input, const struct plan *plan,
                         const char *indent)
{
    char inner[32];
    snprintf(inner, sizeof inner, "%.28s  ", indent);
    for (uint32_t i = 1; i < plan->entry_count; i++) {
        const struct plan_entry *before = &plan->entries[i - 1], *after = &plan->entries[i];
        char size[NUMBER_SIZE_CHARS], decider[160];
        struct table table;
        decider_text(input, before, after, decider);
        fprintf(out, "%sat %s: %s\n", indent, number_print_size(after->first_bytes, size), decider);
        table_init(&table,
                   "protocol\td\tlatencies\toverheads\tregistration\tbandwidth\tcopies\ttime");
        terms_row(&table, input, before, before->largest_bytes);
        terms_row(&table, input, after, after->first_bytes);
        table_print(&table, out, inner);
    }
}
