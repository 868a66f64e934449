/* SPDX-License-Identifier: BSD-3-Clause */
/* What multilane-plan prints: tables for people, JSON for programs. */
#include "plan_report.h"

#include <inttypes.h>
#include <string.h>

#include "common/model/number.h"
#include "common/report/plan_table.h"
#include "common/report/table.h"
#include "common/report/json.h"

/* --- the equation ----------------------------------------------------------------------------- */

/* The smallest end, from `bytes` on, of a range of any lane, by the ways of the equation. */
static uint64_t next_bend(const struct lane_file *file, uint64_t bytes)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < file->lane_count; i++) {
        uint64_t end = model_lane_next_end(&file->lanes[i], MODEL_BY_GET + 1, bytes);
        least = end < least ? end : least;
    }
    return least;
}

bool plan_report_equations(struct plan_report *report, struct error_text *error)
{
    uint64_t bytes = 1;
    for (;;) {
        struct equation_range *range = &report->ranges[report->range_count++];
        range->first_bytes = bytes;
        range->last_bytes = next_bend(report->file, bytes);
        for (int i = 0; i < EQUATION_VARIANTS; i++)
            if (!equation_solve(report->input, (enum equation_variant) i, bytes, &range->result[i],
                                error))
                return false;
        if (range->last_bytes == UINT64_MAX || report->range_count == EQUATION_RANGES_MAX)
            return true;
        bytes = range->last_bytes + 1;
    }
}

static void print_term(FILE *out, const char *name, double value, const char *unit)
{
    fprintf(out, "  %-5s %s%s\n", name, number_real(value).text, unit);
}

static void print_times(FILE *out, const struct equation_result *result)
{
    if (result->kind != EQUATION_AT && result->kind != EQUATION_BELOW)
        return;
    print_term(out, "num/den =", result->terms.num_s / result->terms.den_s_byte, "");
    print_term(out, words_of("etime(%" PRIu64 ") =", result->bytes).text,
               equation_eager_time(&result->terms, result->bytes), " s");
    print_term(out, words_of("rtime(%" PRIu64 ") =", result->bytes).text,
               equation_rndv_time(&result->terms, result->bytes), " s");
}

static void print_terms(FILE *out, const struct equation_result *result)
{
    for (int i = 0; i < EQUATION_TERMS; i++) {
        const struct equation_term *row = &equation_term_rows[i];
        print_term(out, row->name, equation_term_of(&result->terms, row), row->unit);
    }
    print_times(out, result);
}

/* Where a plan of these two protocols switches over several lanes: a job sends its handshake over
 * one of them. */
static void print_job(FILE *out, const struct plan_report *report, int variant)
{
    struct plan_input input = *report->input;
    int protocol = variant == EQUATION_RNDV_AM ? MODEL_RNDV_AM : MODEL_RNDV_GET;
    input.every_lane = true;
    input.without = ~(1u << MODEL_EAGER_ZCOPY | 1u << protocol);
    struct plan *plan = plan_build(&input, NULL);
    for (uint32_t i = 1; plan && i < plan->entry_count; i++)
        if (plan->entries[i].protocol->kind == MODEL_RNDV && plan->entries[i].lane_count > 1) {
            fprintf(out, "%s in a job, whose handshake goes by one lane: at %" PRIu64 "\n",
                    equation_variant_name((enum equation_variant) variant),
                    plan->entries[i].first_bytes);
            break;
        }
    plan_free(plan);
}

void plan_text_equations(FILE *out, const struct plan_report *report)
{
    const struct equation_range *ranges = report->ranges;
    for (int variant = 0; variant < EQUATION_VARIANTS; variant++) {
        for (uint32_t i = 0; i < report->range_count; i++) {
            const struct equation_result *result = &ranges[i].result[variant];
            fprintf(out, "%s %s", equation_variant_name((enum equation_variant) variant),
                    equation_print(result).text);
            if (report->range_count > 1)
                fprintf(out, " (attributes of sizes %s to %s)",
                        number_size(ranges[i].first_bytes).text,
                        number_size(ranges[i].last_bytes).text);
            fputc('\n', out);
            if (report->verbose && !result->no_lane)
                print_terms(out, result);
        }
        print_job(out, report, variant);
    }
}

/* --- the plan --------------------------------------------------------------------------------- */

void plan_text_plan(FILE *out, const struct plan_report *report)
{
    const struct plan_input *input = report->input;
    fprintf(out, "%s of %s, %s, d = %g\n", model_operation_name(input->around.operation),
            model_buffer_name(input->around.buffer),
            input->view == COST_OF_MESSAGE ? "one message" : "a stream of messages",
            input->around.bias);
    plan_table_print(out, input, report->plan, NULL, "");
    if (report->verbose)
        plan_switches_print(out, input, report->plan, "  ");
    if (report->plan->note[0])
        fprintf(out, "note: %s\n", report->plan->note);
    if (report->verbose)
        plan_lanes_print(out, input, NULL, NULL, "  ");
}

/* --- predictions ------------------------------------------------------------------------------ */

/* Those of all protocols that carry `bytes`; returns how many. */
static uint32_t predict(const struct plan_report *report, uint64_t bytes,
                        struct plan_prediction out[MODEL_PROTOCOLS])
{
    const struct plan_entry *chosen = plan_lookup(report->plan, bytes);
    uint32_t count = 0;
    for (uint32_t i = 0; i < MODEL_PROTOCOLS; i++) {
        struct plan_prediction *of = &out[count];
        *of = (struct plan_prediction){.is_chosen = i == chosen->protocol_index, .entry = *chosen};
        count += of->is_chosen
                     ? plan_predict(report->input, chosen, bytes, &of->cost)
                     : plan_best_of_protocol(report->input, i, bytes, &of->entry, &of->cost);
    }
    return count;
}

static void print_size(FILE *out, const struct plan_report *report, uint64_t bytes)
{
    struct plan_prediction predictions[MODEL_PROTOCOLS];
    uint32_t count = predict(report, bytes, predictions);
    struct table table;
    fprintf(out, "%s bytes\n", number_size(bytes).text);
    table_init(&table, "\tprotocol\ttakes\tsender\twire\treceiver\tlatency\tlanes");
    for (uint32_t i = 0; i < count; i++) {
        const struct plan_prediction *of = &predictions[i];
        table_row(&table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", of->is_chosen ? "*" : "",
                  of->entry.protocol->name,
                  number_time(cost_of(&of->cost, report->input->view, bytes)).text,
                  number_time(cost_of_stage(&of->cost, COST_SENDER, bytes)).text,
                  number_time(cost_of_stage(&of->cost, COST_WIRE, bytes)).text,
                  number_time(cost_of_stage(&of->cost, COST_RECEIVER, bytes)).text,
                  number_time(cost_of_stage(&of->cost, COST_LATENCY, bytes)).text,
                  plan_lanes_text(report->input, &of->entry).text);
    }
    table_print(&table, out, "");
}

/* What the whole cluster's model says of the same size. */
static void print_cluster(FILE *out, const struct cluster_model *model, uint64_t bytes)
{
    uint64_t packets = cluster_packets(model, bytes);
    uint64_t packet_bytes = packets > 1 ? model->packet_bytes : bytes;
    struct cluster_point point;
    struct cluster_broadcast broadcast;
    struct error_text error;
    cluster_at(model, packet_bytes, model->processes, &point);
    fprintf(out, "  cluster of %u, %" PRIu64 " packets\n", (unsigned) model->processes, packets);
    fprintf(out, "    one-way (2.6)    %s\n", number_time(cluster_one_way(&point, packets)).text);
    fprintf(out, "    exchange (2.7)   %s%s\n", number_time(cluster_one_way(&point, packets)).text,
            cluster_full_duplex(&point)
                ? ""
                : "  (does not hold: O_s + O_r + U_r < g < L is not so here)");
    if (!cluster_broadcast(&point, model->processes, packets, &broadcast, &error)) {
        fprintf(out, "    broadcast        %s\n", error.text);
        return;
    }
    double copy_s = cost_line_at(&model->copy, (double) bytes);
    fprintf(out, "    broadcast (%s)  %s as printed", broadcast.undisturbed ? "2.8" : "2.9",
            number_time(copy_s + broadcast.printed_s).text);
    fprintf(out, ", %s simulated\n", number_time(copy_s + broadcast.simulated_s).text);
}

void plan_text_predictions(FILE *out, const struct plan_report *report)
{
    for (uint32_t i = 0; i < report->size_count; i++) {
        if (i)
            fputc('\n', out);
        print_size(out, report, report->sizes[i]);
        if (report->file->has_cluster)
            print_cluster(out, report->cluster, report->sizes[i]);
    }
}

/* --- for programs ----------------------------------------------------------------------------- */

static struct words json_size(uint64_t bytes)
{
    return bytes == UINT64_MAX ? words_of("null") : words_of("%" PRIu64, bytes);
}

static void equation_json(struct json *json, const struct equation_range *range, int variant)
{
    const struct equation_result *result = &range->result[variant];
    json_put(json, "{\"protocol\": \"%s\", \"kind\": \"%s\"",
             equation_variant_name((enum equation_variant) variant),
             equation_kind_name(result->kind));
    if (result->kind == EQUATION_AT || result->kind == EQUATION_BELOW)
        json_put(json, "\"bytes\": %" PRIu64, result->bytes);
    json_put(json, "\"beyond\": %s, \"first_bytes\": %" PRIu64 ", \"last_bytes\": %s, \"terms\": {",
             json_bool(result->beyond), range->first_bytes, json_size(range->last_bytes).text);
    for (int i = 0; i < EQUATION_TERMS; i++) {
        const struct equation_term *row = &equation_term_rows[i];
        json_put(json, "\"%s\": %s", row->key,
                 json_real(equation_term_of(&result->terms, row)).text);
    }
    json_put(json, "}}");
}

static void lanes_json(struct json *json, const struct plan_report *report,
                       const struct plan_entry *entry)
{
    json_put(json, "\"lanes\": [");
    for (uint32_t i = 0; i < entry->lane_count; i++)
        json_put(json, "{\"name\": %s, \"share\": %s}",
                 json_text(report->input->lanes[entry->lanes[i]].name).text,
                 json_real((double) entry->weights[i] / PLAN_WEIGHT_ONE).text);
    json_put(json, "]");
    if (entry->chooses)
        json_put(json, "\"copied\": %s", json_bool(entry->copies));
}

static void entries_json(struct json *json, const struct plan_report *report)
{
    const struct plan_input *input = report->input;
    json_put(json,
             "\"operation\": \"%s\", \"buffer\": \"%s\", \"view\": \"%s\", \"d\": %s, "
             "\"note\": %s, \"plan\": [",
             model_operation_name(input->around.operation), model_buffer_name(input->around.buffer),
             input->view == COST_OF_MESSAGE ? "message" : "stream",
             json_real(input->around.bias).text, json_text(report->plan->note).text);
    for (uint32_t i = 0; i < report->plan->entry_count; i++) {
        const struct plan_entry *entry = &report->plan->entries[i];
        json_put(json, "{\"first_bytes\": %" PRIu64 ", \"last_bytes\": %s, \"protocol\": \"%s\"",
                 entry->first_bytes, json_size(entry->largest_bytes).text, entry->protocol->name);
        if (i)
            json_put(json, "\"decided_by\": \"%s\"", plan_decider_name(entry->decided_by));
        lanes_json(json, report, entry);
        json_put(json, "}");
    }
    json_put(json, "]");
}

static void predictions_json(struct json *json, const struct plan_report *report, uint64_t bytes)
{
    struct plan_prediction predictions[MODEL_PROTOCOLS];
    uint32_t count = predict(report, bytes, predictions);
    for (uint32_t i = 0; i < count; i++) {
        const struct plan_prediction *of = &predictions[i];
        json_put(json,
                 "{\"bytes\": %" PRIu64
                 ", \"protocol\": \"%s\", \"chosen\": %s, \"takes_s\": %.17g",
                 bytes, of->entry.protocol->name, json_bool(of->is_chosen),
                 cost_of(&of->cost, report->input->view, bytes));
        for (int stage = 0; stage < COST_STAGES; stage++)
            json_put(json, "\"%s_s\": %.17g", cost_stage_name((enum cost_stage) stage),
                     cost_of_stage(&of->cost, (enum cost_stage) stage, bytes));
        lanes_json(json, report, &of->entry);
        json_put(json, "}");
    }
}

void plan_json(FILE *out, const struct plan_report *report)
{
    struct json json = {.file = out};
    json_put(&json, "{\"version\": 1");
    if (report->range_count) {
        json_put(&json, "\"equation\": [");
        for (int variant = 0; variant < EQUATION_VARIANTS; variant++)
            for (uint32_t i = 0; i < report->range_count; i++)
                equation_json(&json, &report->ranges[i], variant);
        json_put(&json, "]");
    }
    if (report->plan)
        entries_json(&json, report);
    if (report->plan && report->size_count) {
        json_put(&json, "\"predictions\": [");
        for (uint32_t i = 0; i < report->size_count; i++)
            predictions_json(&json, report, report->sizes[i]);
        json_put(&json, "]");
    }
    json_put(&json, "}\n");
}
