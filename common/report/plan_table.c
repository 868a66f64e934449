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

struct words plan_lanes_text(const struct plan_input *input, const struct plan_entry *entry)
{
    struct words words = {""};
    for (uint32_t i = 0; i < entry->lane_count; i++) {
        words_more(&words, "%s%s", i ? " + " : "", input->lanes[entry->lanes[i]].name);
        if (entry->lane_count > 1)
            words_more(&words, " %.0f%%", 100.0 * entry->weights[i] / PLAN_WEIGHT_ONE);
    }
    words_more(&words, "%s", plan_entry_manner(entry));
    return words;
}

/* "\t1.2us at 8\t1.10\t100\t800" */
static struct words use_text(const struct plan_use *use)
{
    struct words words = {"\t\t"};
    if (use->samples)
        words = words_of("\t%s at %s\t%.2f", number_time(use->measured_s).text,
                         number_size(use->measured_bytes).text, use->ratio);
    words_more(&words, "\t%" PRIu64 "\t%" PRIu64, use->messages, use->bytes);
    return words;
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
        table_row(&table, "%s\t%s\t%s\t%s\t%s\t%s to %s%s", number_size(entry->first_bytes).text,
                  number_size(entry->largest_bytes).text, entry->protocol->name,
                  i ? plan_decider_name(entry->decided_by) : "", plan_lanes_text(input, entry).text,
                  number_time(plan_time(input, entry, entry->first_bytes)).text,
                  number_time(plan_time(input, entry, plan_last_shown(entry))).text,
                  uses ? use_text(&uses[i]).text : "");
    }
    table_print(&table, out, indent);
}

/* --- lanes ------------------------------------------------------------------------------------ */

/* The source of most numbers of one range, and the numbers from other sources. */
static struct words sources_text(const uint8_t source[MODEL_ATTRIBUTES])
{
    int counts[MODEL_SOURCES] = {0}, most = 0;
    for (int i = 0; i < MODEL_ATTRIBUTES; i++)
        counts[source[i]]++;
    for (int i = 0; i < MODEL_SOURCES; i++)
        if (counts[i] > counts[most])
            most = i;
    struct words words = words_of("%s", model_source_name((enum model_source) most));
    for (int i = 0; i < MODEL_ATTRIBUTES; i++)
        if (source[i] != most)
            words_more(&words, ", %s %s", model_attribute_name((enum model_attribute) i),
                       model_source_name(source[i]));
    return words;
}

static void range_row(struct table *table, const struct plan_input *input,
                      const struct model_lane *lane, int way, uint32_t number, const char *seen)
{
    const struct model_lane_range *range = &lane->cost[way].ranges[number];
    double overhead_s = range->overhead_send_s + range->overhead_receive_s;
    struct cost_line registers = model_registration(lane, range, &input->around);
    struct words growth = {""};
    if (registers.growth_s_byte > 0)
        growth = words_of(" + %.4g ns/KiB", registers.growth_s_byte * 1024e9);
    table_row(table, "%s\t%s\t%s\t%s\t%s\t%.4g GB/s%s\t%s%s\t%s", lane->name,
              model_way_name((enum model_way) way), number_size(range->largest_bytes).text,
              number_time(range->latency_s).text, number_time(overhead_s).text,
              range->bandwidth_bytes_s / 1e9, seen, number_time(registers.fixed_s).text,
              growth.text, sources_text(lane->source[way][number]).text);
}

void plan_lanes_print(FILE *out, const struct plan_input *input, plan_lane_observed observed_at,
                      const void *context, const char *indent)
{
    struct table table;
    table_init(&table, observed_at ? "lane\tway\tup to\tlatency\toverhead\tbandwidth\tseen"
                                     "\tregistration\tgiven by"
                                   : "lane\tway\tup to\tlatency\toverhead\tbandwidth\tregistration"
                                     "\tgiven by");
    for (uint32_t i = 0; i < input->lane_count; i++)
        for (int way = 0; way < MODEL_WAYS; way++)
            for (uint32_t r = 0; r < input->lanes[i].cost[way].range_count; r++) {
                double observed_bytes_s =
                    observed_at ? observed_at(context, (int) i, (enum model_way) way, r) : 0;
                struct words seen = words_of("%s", observed_at ? "\t" : "");
                if (observed_bytes_s > 0)
                    words_more(&seen, "%.3g GB/s", observed_bytes_s / 1e9);
                range_row(&table, input, &input->lanes[i], way, r, seen.text);
            }
    table_print(&table, out, indent);
    for (uint32_t i = 0; i < input->lane_count; i++)
        if (input->lanes[i].shared_bytes_s > 0)
            fprintf(out, "%s%s: the device carries %.4g GB/s for all processes of a node\n", indent,
                    input->lanes[i].name, input->lanes[i].shared_bytes_s / 1e9);
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

/* The size from which on the later of two neighbours is the quicker one; not a number or negative
 * where their lines meet nowhere. */
static double meeting_bytes(const struct plan_input *input, const struct plan_entry *before,
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
    if (!line_of(input, entry, bytes, &cost, &line))
        return;
    const struct cost_line *registration = &cost.registration;
    double latency_s = cost.stage[COST_LATENCY].fixed_s / cost.scale;
    double moved_s_byte = line.growth_s_byte / cost.scale - registration->growth_s_byte;
    double wire_s_byte = cost.bandwidth_bytes_s > 0 ? 1 / cost.bandwidth_bytes_s : moved_s_byte;
    table_row(table, "%s%s\t%.4g\t%s\t%s\t%s + %.4g ns/KiB\t%.4g GB/s\t%.4g ns/KiB\t%s",
              entry->protocol->name, plan_entry_manner(entry), cost.scale,
              number_time(latency_s).text,
              number_time(line.fixed_s / cost.scale - latency_s - registration->fixed_s).text,
              number_time(registration->fixed_s).text, registration->growth_s_byte * 1024e9,
              1e-9 / wire_s_byte, fmax(moved_s_byte - wire_s_byte, 0) * 1024e9,
              number_time(plan_time(input, entry, bytes)).text);
}

/* Where the lines meet, and why the switch lies elsewhere if it does. */
static struct words decider_text(const struct plan_input *input, const struct plan_entry *before,
                                 const struct plan_entry *after)
{
    double bytes = meeting_bytes(input, before, after);
    if (after->decided_by == PLAN_BY_EQUATION)
        return words_of("equation: the lines meet here");
    if (after->decided_by == PLAN_BY_RANGE)
        return words_of("range: the lines have other terms from here on");
    struct words words = words_of("%s", plan_decider_name(after->decided_by));
    if (bytes > (double) after->first_bytes)
        words_more(&words, "; by the equation it would lie at %.0f", bytes);
    return words;
}

void plan_switches_print(FILE *out, const struct plan_input *input, const struct plan *plan,
                         const char *indent)
{
    const struct words inner = words_of("%s  ", indent);
    for (uint32_t i = 1; i < plan->entry_count; i++) {
        const struct plan_entry *before = &plan->entries[i - 1], *after = &plan->entries[i];
        struct table table;
        fprintf(out, "%sat %s: %s\n", indent, number_size(after->first_bytes).text,
                decider_text(input, before, after).text);
        table_init(&table,
                   "protocol\td\tlatencies\toverheads\tregistration\tbandwidth\tcopies\ttime");
        terms_row(&table, input, before, before->largest_bytes);
        terms_row(&table, input, after, after->first_bytes);
        table_print(&table, out, inner.text);
    }
}
