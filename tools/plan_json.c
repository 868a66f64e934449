/* SPDX-License-Identifier: BSD-3-Clause */
/* multilane-plan's output for programs. A size without bound is null. */
#include "plan_report.h"

#include <inttypes.h>
#include <math.h>

#include "common/model/number.h"

/* Names come from a file of any content. */
static void json_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        unsigned char c = (unsigned char) *text;
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 0x20 || c >= 0x7f) /* bytes that are no ASCII are taken as Latin-1 */
            fprintf(out, "\\u%04x", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

static void json_size(FILE *out, const char *key, uint64_t bytes)
{
    if (bytes == UINT64_MAX)
        fprintf(out, "\"%s\": null", key);
    else
        fprintf(out, "\"%s\": %" PRIu64, key, bytes);
}

static void json_real(FILE *out, const char *key, double value)
{
    char text[NUMBER_REAL_CHARS];
    /* JSON knows no infinity. */
    fprintf(out, "\"%s\": %s", key, isfinite(value) ? number_print_real(value, text) : "null");
}

static void json_terms(FILE *out, const struct equation_terms *terms)
{
    fputs("\"terms\": {", out);
    for (int i = 0; i < EQUATION_TERMS; i++) {
        const struct equation_term *row = &equation_term_rows[i];
        fputs(i ? ", " : "", out);
        json_real(out, row->key, equation_term_of(terms, row));
    }
    fputc('}', out);
}

static void json_equation(FILE *out, const struct equation_range *range, int variant)
{
    static const char *const kinds[] = {[EQUATION_AT] = "at",
                                        [EQUATION_ALWAYS] = "always",
                                        [EQUATION_NEVER] = "never",
                                        [EQUATION_BELOW] = "below"};
    const struct equation_result *result = &range->result[variant];
    fprintf(out, "{\"protocol\": \"%s\", \"kind\": \"%s\", ",
            equation_variant_name((enum equation_variant) variant), kinds[result->kind]);
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
        json_string(out, report->input->lanes[entry->lanes[i]].name);
        fputs(", ", out);
        json_real(out, "share", (double) entry->weights[i] / PLAN_WEIGHT_ONE);
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
    json_real(out, "d", input->around.bias);
    fputs(",\n \"note\": ", out);
    json_string(out, report->plan->note);
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

static void json_prediction(FILE *out, const struct plan_report *report, bool chosen,
                            const struct plan_entry *entry, const struct cost *cost, uint64_t bytes)
{
    fprintf(out,
            "{\"bytes\": %" PRIu64 ", \"protocol\": \"%s\", \"chosen\": %s, \"takes_s\": %.17g",
            bytes, entry->protocol->name, chosen ? "true" : "false",
            cost_of(cost, report->input->view, bytes));
    for (int stage = 0; stage < COST_STAGES; stage++)
        fprintf(out, ", \"%s_s\": %.17g", cost_stage_name((enum cost_stage) stage),
                cost_of_stage(cost, (enum cost_stage) stage, bytes));
    fputs(", ", out);
    json_lanes(out, report, entry);
    fputc('}', out);
}

static void json_predictions(FILE *out, const struct plan_report *report)
{
    bool first = true;
    fputs(",\n \"predictions\": [", out);
    for (uint32_t i = 0; i < report->size_count; i++) {
        uint64_t bytes = report->sizes[i];
        const struct plan_entry *plan_entry = plan_lookup(report->plan, bytes);
        for (uint32_t j = 0; j < MODEL_PROTOCOLS; j++) {
            struct plan_entry entry = *plan_entry;
            struct cost cost;
            bool chosen = j == plan_entry->protocol_index;
            bool carries = chosen ? plan_predict(report->input, &entry, bytes, &cost)
                                  : plan_best_of_protocol(report->input, j, bytes, &entry, &cost);
            if (!carries)
                continue;
            fputs(first ? "\n  " : ",\n  ", out);
            first = false;
            json_prediction(out, report, chosen, &entry, &cost, bytes);
        }
    }
    fputs("]", out);
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
            json_predictions(out, report);
    }
    fputs("}\n", out);
}
