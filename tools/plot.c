/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the rows. */
#include "tools/plot.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/report/plan_table.h"

#define LARGEST_BYTES (UINT64_C(1) << 30)

/* The next power of two, or the size before at which the plan changes over. */
static uint64_t next_size(const struct plan *plan, uint64_t bytes)
{
    uint64_t next = 1;
    while (next <= bytes)
        next *= 2;
    uint64_t last = plan ? plan_lookup(plan, bytes)->largest_bytes : UINT64_MAX;
    return last < next - 1 ? last + 1 : next;
}

static double time_of_protocol(const struct plot *plot, uint32_t protocol, uint64_t bytes)
{
    struct plan_entry entry;
    struct cost cost;
    return plan_best_of_protocol(plot->input, protocol, bytes, &entry, &cost)
               ? cost_of(&cost, plot->input->view, bytes)
               : NAN;
}

static double time_measured(const struct lane_times *times, uint32_t protocol, uint64_t bytes)
{
    uint32_t bucket = learned_bucket(bytes);
    const struct lane_time *time = &times->at[protocol][bucket];
    return time->messages && bytes == UINT64_C(1) << bucket ? time->seconds : NAN;
}

static void names_print(FILE *out, const char *before)
{
    for (uint32_t i = 0; i < MODEL_PROTOCOLS; i++)
        fprintf(out, "\t%s%s", before, model_protocols[i]->name);
}

static void row_print(FILE *out, const struct plot *plot, uint64_t bytes)
{
    fprintf(out, "%" PRIu64, bytes);
    if (plot->plan)
        fprintf(out, "\t%s\t%.6g", plan_lookup(plot->plan, bytes)->protocol->name,
                plan_time(plot->input, plan_lookup(plot->plan, bytes), bytes));
    for (uint32_t i = 0; plot->plan && i < MODEL_PROTOCOLS; i++)
        fprintf(out, "\t%.6g", time_of_protocol(plot, i, bytes));
    for (uint32_t i = 0; plot->times && i < MODEL_PROTOCOLS; i++)
        fprintf(out, "\t%.6g", time_measured(plot->times, i, bytes));
    fputc('\n', out);
}

static void plot_print(FILE *out, const struct plot *plot)
{
    fprintf(out, "# %s; seconds\nbytes", plot->title);
    if (plot->plan) {
        fputs("\tplanned\ttakes", out);
        names_print(out, "");
    }
    if (plot->times)
        names_print(out, "measured ");
    fputc('\n', out);
    for (uint64_t bytes = 1; bytes <= LARGEST_BYTES; bytes = next_size(plot->plan, bytes))
        row_print(out, plot, bytes);
}

bool plot_write(const char *name, const struct plot *plots, uint32_t count,
                struct model_error *error)
{
    FILE *out = fopen(name, "we");
    if (!out)
        return model_fail(error, "%.120s: cannot be written: %s", name, strerror(errno));
    for (uint32_t i = 0; i < count; i++) {
        fputs(i ? "\n\n" : "", out);
        plot_print(out, &plots[i]);
    }
    bool is_written = !ferror(out);
    is_written = fclose(out) == 0 && is_written;
    return is_written || model_fail(error, "%.120s: cannot be written", name);
}
