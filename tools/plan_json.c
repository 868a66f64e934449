/* SPDX-License-Identifier: BSD-3-Clause */
/* multilane-plan's output for programs. A size without bound is null. */
#include "plan_report.h"

#include <inttypes.h>

#include "common/report/json.h"

static void json_size(FILE *out, const char *key, uint64_t bytes)
{
    if (bytes == UINT64_MAX)
        fprintf(out, "\"%s\": null", key);
    else
        fprintf(out, "\"%s\": %" PRIu64, key, bytes);
}

static void json_value(FILE *out, const char *key, double value)
{
    fprintf(out, "\"%s\": ", key);
    json_real(out, value);
}

static void json_terms(FILE *out, const struct equation_terms *terms)
{
    fputs("\"terms\": {", out);
    for (int i = 0; i < EQUATION_TERMS; i++) {
        const struct equation_term *row = &equation_term_rows[i];
        fputs(i ? ", " : "", out);
        json_value(out, row->key, equation_term_of(terms, row));
    }
    fputc('}', out);
}

static void json_equation(FILE *out, const struct equation_range *range, int variant)
{
    const struct equation_result *result = &range->result[variant];
    fprintf(out, "{\"protocol\": \"%s\", \"kind\": \"%s\", ",
            equation_variant_name((enum equation_variant) variant),
            equation_kind_name(result->kind));
    if (result->kind == EQUATION_AT || result->kind == EQUATION_BELOW)
        fprintf(out, "\"bytes\": %" PRIu64 ", ", result->bytes);
    fprintf(out, "\"beyond\": %s, \"first_bytes\": %" PRIu64 ", ",
            result->beyond ? "true" : "false", range->first_bytes);
    json_size(out, "last_bytes", range->last_bytes);
    fputs(", ", out);
    json_terms(out, &result->terms);
    fputc('}', out);
}

static void json_lanes(FILE *out, const struct plan_report *report, const struct plan_entry *entry)
{
    fputs("\"lanes\": [", out);
    for (uint32_t i = 0; i < entry->lane_count; i++) {
        fputs(i ? ", {\"name\": " : "{\"name\": ", out);
        json_text(out, report->input->lanes[entry->lanes[i]].name);
        fputs(", ", out);
        json_value(out, "share", (double) entry->weights[i] / PLAN_WEIGHT_ONE);
        fputc('}', out);
    }
    fputc(']', out);
    if (entry->chooses)
        fprintf(out, ", \"copied\": %s", entry->copies ? "true" : "false");
}

static void json_plan(FILE *out, const struct plan_report *report)
{
    const struct plan_input *input = report->input;
    fprintf(out, ",\n \"operation\": \"%s\", \"buffer\": \"%s\", \"view\": \"%s\", ",
            model_operation_name(input->around.operation), model_buffer_name(input->around.buffer),
            input->view == COST_OF_MESSAGE ? "message" : "stream");
    json_value(out, "d", input->around.bias);
    fputs(",\n \"note\": ", out);
    json_text(out, report->plan->note);
    fputs(",\n \"plan\": [", out);
    for (uint32_t i = 0; i < report->plan->entry_count; i++) {
        const struct plan_entry *entry = &report->plan->entries[i];
        fprintf(out, "%s\n  {\"first_bytes\": %" PRIu64 ", ", i ? "," : "", entry->first_bytes);
        json_size(out, "last_bytes", entry->largest_bytes);
        fprintf(out, ", \"protocol\": \"%s\", ", entry->protocol->name);
        if (i)
            fprintf(out, "\"decided_by\": \"%s\", ", plan_decider_name(entry->decided_by));
        json_lanes(out, report, entry);
        fputc('}', out);
    }
    fputs("]", out);
}

static void json_predictions(FILE *out, const struct plan_report *report, uint64_t bytes)
{
    struct plan_prediction predictions[MODEL_PROTOCOLS];
    uint32_t count = plan_report_predict(report, bytes, predictions);
    for (uint32_t i = 0; i < count; i++) {
        const struct plan_prediction *of = &predictions[i];
        fprintf(out,
                "%s\n  {\"bytes\": %" PRIu64
                ", \"protocol\": \"%s\", \"chosen\": %s, \"takes_s\": %.17g",
                i ? "," : "", bytes, of->entry.protocol->name, of->is_chosen ? "true" : "false",
                cost_of(&of->cost, report->input->view, bytes));
        for (int stage = 0; stage < COST_STAGES; stage++)
            fprintf(out, ", \"%s_s\": %.17g", cost_stage_name((enum cost_stage) stage),
                    cost_of_stage(&of->cost, (enum cost_stage) stage, bytes));
        fputs(", ", out);
        json_lanes(out, report, &of->entry);
        fputc('}', out);
    }
}

void plan_json(FILE *out, const struct plan_report *report, const struct equation_range *ranges,
               uint32_t equation_count)
{
    fputs("{\"version\": 1", out);
    if (equation_count) {
        fputs(",\n \"equation\": [", out);
        for (int variant = 0; variant < EQUATION_VARIANTS; variant++)
            for (uint32_t i = 0; i < equation_count; i++) {
                fputs(variant || i ? ",\n  " : "\n  ", out);
                json_equation(out, &ranges[i], variant);
            }
        fputs("]", out);
    }
    if (report->plan) {
        json_plan(out, report);
        if (report->size_count)
            fputs(",\n \"predictions\": [", out);
        for (uint32_t i = 0; i < report->size_count; i++) {
            fputs(i ? "," : "", out);
            json_predictions(out, report, report->sizes[i]);
        }
        fputs(report->size_count ? "]" : "", out);
    }
    fputs("}\n", out);
}
