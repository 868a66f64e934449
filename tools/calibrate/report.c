/* SPDX-License-Identifier: BSD-3-Clause */
/* What multilane-calibrate says of its measurements: tables, and a drawing. */
#include "report.h"

#include <math.h>
#include <stdlib.h>

#include "common/model/number.h"
#include "common/report/table.h"
#include "tools/drawing.h"

/* --- tables ----------------------------------------------------------------------------------- */

static void quality_table(FILE *out, const struct lane_result *result)
{
    struct table table;
    table_init(&table, "protocol\tsizes\toff, median\toff, worst\tat");
    for (int i = 0; i < MODEL_PROTOCOLS; i++) {
        const struct effective_quality *quality = &result->quality[i];
        char size[NUMBER_SIZE_CHARS];
        if (quality->sizes)
            table_row(&table, "%s\t%u\t%.1f %%\t%.1f %%\t%s", model_protocols[i]->name,
                      (unsigned) quality->sizes, 100 * quality->median, 100 * quality->worst,
                      number_print_size(quality->worst_bytes, size));
    }
    table_print(&table, out, "  ");
}

static void input_of(const struct lane_result *result, const struct model_surroundings *around,
                     struct plan_input *input)
{
    plan_input_init(input);
    input->lanes = &result->lane;
    input->lane_count = 1;
    input->around = *around;
}

/* A switch point lies where the two protocols differ by less than twice what they are off by. */
static void switch_table(FILE *out, const struct lane_result *result,
                         const struct model_surroundings *around, const struct plan *plan)
{
    struct table table;
    table_init(&table, "from\tprotocol\tmay lie from\tto\ttakes");
    for (uint32_t i = 0; i < plan->entry_count; i++) {
        const struct plan_entry *entry = &plan->entries[i];
        char from[NUMBER_SIZE_CHARS], time[NUMBER_TIME_CHARS];
        char least_text[NUMBER_SIZE_CHARS] = "", most_text[NUMBER_SIZE_CHARS] = "";
        if (i) {
            uint32_t below = entry[-1].protocol_index, above = entry->protocol_index;
            uint64_t least, most;
            effective_confidence(&result->lane, around, below, above, entry->first_bytes,
                                 result->quality[below].median + result->quality[above].median,
                                 &least, &most);
            number_print_size(least, least_text);
            number_print_size(most, most_text);
        }
        double takes_s =
            effective_predict(&result->lane, around, entry->protocol_index, entry->first_bytes);
        table_row(&table, "%s\t%s\t%s\t%s\t%s", number_print_size(entry->first_bytes, from),
                  entry->protocol->name, least_text, most_text, number_print_time(takes_s, time));
    }
    table_print(&table, out, "  ");
}

/* --- regret: the plan's choice beside the fastest, as measured -------------------------------- */

static const struct sample *sample_of(const struct sample *medians, uint32_t count, uint64_t bytes)
{
    for (uint32_t i = 0; i < count; i++)
        if (medians[i].bytes == bytes)
            return &medians[i];
    return NULL;
}

/* The plan's choice at every size at which it was measured. */
static void regret_line(FILE *out, const struct lane_result *result, const struct plan *plan)
{
    struct sample *medians[MODEL_PROTOCOLS];
    uint32_t counts[MODEL_PROTOCOLS], count = 0;
    double logs = 0, worst = 1;
    uint64_t worst_bytes = 0;
    char size[NUMBER_SIZE_CHARS];
    for (int i = 0; i < MODEL_PROTOCOLS; i++) {
        const struct effective_curve *curve = &result->samples.curves[i];
        medians[i] = malloc((curve->count + 1) * sizeof(*medians[i]));
        counts[i] = medians[i] ? sample_medians(curve->samples, curve->count, medians[i]) : 0;
    }
    for (uint32_t i = 0; i < MODEL_PROTOCOLS; i++)
        for (uint32_t j = 0; j < counts[i]; j++) {
            const struct sample *chosen = &medians[i][j];
            double best_s = chosen->seconds;
            if (plan_lookup(plan, chosen->bytes)->protocol_index != i)
                continue;
            for (int k = 0; k < MODEL_PROTOCOLS; k++) {
                const struct sample *other = sample_of(medians[k], counts[k], chosen->bytes);
                best_s = other ? fmin(best_s, other->seconds) : best_s;
            }
            logs += log(chosen->seconds / best_s);
            count++;
            if (chosen->seconds / best_s > worst) {
                worst = chosen->seconds / best_s;
                worst_bytes = chosen->bytes;
            }
        }
    if (count)
        fprintf(out,
                "  against the fastest protocol of each of %u sizes: %.1f %% slower in geometric "
                "mean, %.1f %% at worst (%s bytes)\n",
                (unsigned) count, 100 * (exp(logs / count) - 1), 100 * (worst - 1),
                number_print_size(worst_bytes, size));
    for (int i = 0; i < MODEL_PROTOCOLS; i++)
        free(medians[i]);
}

void report_lane(FILE *out, const struct lane_result *result,
                 const struct model_surroundings *around)
{
    struct plan_input input;
    fprintf(out, "\n%s\n", result->lane.name);
    if (result->samples.disturbed)
        fprintf(out, "  %u of %u samples left out: something disturbed them\n",
                (unsigned) result->samples.disturbed, (unsigned) result->samples.taken);
    if (!result->fitted) {
        fprintf(out, "  not fitted: %s\n", result->why.text);
        return;
    }
    quality_table(out, result);
    input_of(result, around, &input);
    struct plan *plan = plan_build(&input, NULL);
    if (!plan)
        return;
    switch_table(out, result, around, plan);
    regret_line(out, result, plan);
    plan_free(plan);
}

void report_pairs(FILE *out, const char *what, const struct measure_pair *pairs, uint32_t count)
{
    struct table table;
    double *off = calloc(count + 1, sizeof(*off));
    if (!off)
        return;
    fprintf(out, "\n%s\n", what);
    table_init(&table, "bytes\tmeasured\tpredicted\toff");
    for (uint32_t i = 0; i < count; i++) {
        char size[NUMBER_SIZE_CHARS], measured[NUMBER_TIME_CHARS], predicted[NUMBER_TIME_CHARS];
        off[i] = fabs(pairs[i].predicted_s / pairs[i].measured_s - 1);
        table_row(&table, "%s\t%s\t%s\t%.1f %%", number_print_size(pairs[i].bytes, size),
                  number_print_time(pairs[i].measured_s, measured),
                  number_print_time(pairs[i].predicted_s, predicted), 100 * off[i]);
    }
    table_print(&table, out, "  ");
    if (count)
        fprintf(out, "  off in the median: %.1f %%\n", 100 * median_of(off, count));
    free(off);
}

/* "-" where the formula does not apply. */
static void predicted_cell(char *out, size_t room, bool applies, double predicted_s,
                           double measured_s)
{
    char time[NUMBER_TIME_CHARS];
    if (applies)
        snprintf(out, room, "%s\t%.1f %%", number_print_time(predicted_s, time),
                 100 * fabs(predicted_s / measured_s - 1));
    else
        snprintf(out, room, "-\t-");
}

void report_blocks(FILE *out, const struct measure_blocks *blocks)
{
    const struct cluster_point *point = &blocks->point;
    bool holds = cluster_full_duplex(point);
    char size[NUMBER_SIZE_CHARS], times[3][NUMBER_TIME_CHARS];
    double off[MEASURE_BLOCK_COUNTS], off_both[MEASURE_BLOCK_COUNTS];
    struct table table;
    fprintf(out,
            "\nmessages in packets of %s, to which nothing above was fitted, one way and both ways "
            "at once\n",
            number_print_size(blocks->packet_bytes, size));
    table_init(&table, "packets\tone way\t(2.6)\toff\tboth ways\t(2.7)\toff");
    for (int i = 0; i < MEASURE_BLOCK_COUNTS; i++) {
        const struct measure_block *block = &blocks->blocks[i];
        char cells[2][2 * NUMBER_TIME_CHARS];
        predicted_cell(cells[0], sizeof(cells[0]), true, block->one_way_predicted_s,
                       block->one_way_s);
        predicted_cell(cells[1], sizeof(cells[1]), holds, block->exchange_predicted_s,
                       block->exchange_s);
        table_row(&table, "%u\t%s\t%s\t%s\t%s", (unsigned) block->packets,
                  number_print_time(block->one_way_s, times[0]), cells[0],
                  number_print_time(block->exchange_s, times[1]), cells[1]);
        off[i] = fabs(block->one_way_predicted_s / block->one_way_s - 1);
        off_both[i] = fabs(block->exchange_predicted_s / block->exchange_s - 1);
    }
    table_print(&table, out, "  ");
    fprintf(out, "  off in the median: (2.6) %.1f %%", 100 * median_of(off, MEASURE_BLOCK_COUNTS));
    if (holds)
        fprintf(out, ", (2.7) %.1f %%\n", 100 * median_of(off_both, MEASURE_BLOCK_COUNTS));
    else
        fprintf(out,
                "\n  (2.7) needs O_s + O_r + U_r < g < L and is not used: they are %s, %s and "
                "%s\n",
                number_print_time(point->send_overhead_s + point->receive_overhead_s +
                                      point->user_overhead_s,
                                  times[0]),
                number_print_time(point->gap_s, times[1]),
                number_print_time(point->latency_s, times[2]));
}

void report_cluster(FILE *out, const char *lane, const struct cluster_model *model)
{
    const struct {
        const char *name;
        const struct cost_line *line;
    } rows[] = {{"O_s  sender's processor", &model->send_overhead},
                {"g_s  between packets that leave", &model->send_gap},
                {"g_r  between packets that arrive", &model->receive_gap},
                {"O_r  receiver, as it arrives", &model->receive_overhead},
                {"U_r  receiver, to be told", &model->user_overhead},
                {"L    latency", &model->latency[0].line},
                {"copy cache to cache", &model->copy[CLUSTER_CACHE_TO_CACHE]},
                {"copy cache to memory", &model->copy[CLUSTER_CACHE_TO_MEMORY]},
                {"copy memory to memory", &model->copy[CLUSTER_MEMORY_TO_MEMORY]}};
    char size[NUMBER_SIZE_CHARS], fixed[NUMBER_TIME_CHARS];
    fprintf(out, "\n%s: the cluster model, packets of %s\n", lane,
            number_print_size(model->packet_bytes, size));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        fprintf(out, "  %-34s %10s and %.4g ns a KiB\n", rows[i].name,
                number_print_time(rows[i].line->fixed_s, fixed),
                rows[i].line->growth_s_byte * 1024e9);
    for (uint32_t i = 1; i < model->latency_count; i++) {
        char name[40];
        snprintf(name, sizeof(name), "L    latency among %u processes",
                 model->latency[i].processes);
        fprintf(out, "  %-34s %10s and %.4g ns a KiB\n", name,
                number_print_time(model->latency[i].line.fixed_s, fixed),
                model->latency[i].line.growth_s_byte * 1024e9);
    }
    if (model->latency_count == 1)
        fprintf(out, "  %-34s %10s (needs two pairs, each process on a processor of its own)\n",
                "L    among more processes", "-");
    fprintf(out, "  %-34s %10s%s\n", "B_L  taken before one is received",
            number_print_size(model->buffer_bytes, size),
            model->buffer_bytes >= CALIBRATE_IN_FLIGHT_MOST ? " or more" : "");
}

/* --- the drawing ------------------------------------------------------------------------------ */

bool report_plot(const char *name, const struct lane_result *results, uint32_t count,
                 const struct model_surroundings *around, struct model_error *error)
{
    struct plan_input inputs[MODEL_LANES_MAX];
    struct drawing_panel panels[MODEL_LANES_MAX] = {{.plan = NULL}};
    struct plan *plans[MODEL_LANES_MAX];
    for (uint32_t i = 0; i < count; i++) {
        input_of(&results[i], around, &inputs[i]);
        plans[i] = results[i].fitted ? plan_build(&inputs[i], NULL) : NULL;
        inputs[i].around.bias = 1; /* what was measured knows none */
        panels[i] = (struct drawing_panel){
            .plan = plans[i], .input = &inputs[i], .curves = results[i].samples.curves};
        snprintf(panels[i].title, sizeof(panels[i].title), "%s: one-way time over size",
                 results[i].lane.name);
    }
    bool is_good = drawing_write(name, panels, count, error);
    for (uint32_t i = 0; i < count; i++)
        plan_free(plans[i]);
    return is_good;
}
