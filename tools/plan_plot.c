/* SPDX-License-Identifier: BSD-3-Clause */
/* multilane-plan's drawing. */
#include "plan_report.h"

#include <math.h>

#include "tools/drawing.h"

#define WIDTH  960
#define HEIGHT 600

/* From 1 byte to well beyond the last switch. */
static double largest_exponent(const struct plan *plan)
{
    double exponent = 24;
    if (plan->entry_count > 1) {
        double last = log2((double) plan->largest[plan->entry_count - 2] + 1) + 4;
        exponent = last > exponent ? ceil(last) : exponent;
    }
    return exponent < 60 ? exponent : 60;
}

/* The plan's time, or that of one protocol; below 0: it cannot carry that size. */
static double time_at(const void *context, int protocol, uint64_t bytes)
{
    const struct plan_report *report = context;
    struct plan_entry entry;
    struct cost cost;
    bool carries =
        protocol < 0
            ? plan_predict(report->input, plan_lookup(report->plan, bytes), bytes, &cost)
            : plan_best_of_protocol(report->input, (uint32_t) protocol, bytes, &entry, &cost);
    return carries ? cost_of(&cost, report->input->view, bytes) : -1;
}

/* All that the plan takes. */
static void scale(const struct plan_report *report, struct drawing *drawing)
{
    double least = INFINITY, most = 0;
    for (int point = 0; point <= DRAWING_POINTS; point++) {
        double seconds = time_at(report, -1, drawing_size(drawing, point));
        if (seconds > 0) {
            least = fmin(least, seconds);
            most = fmax(most, seconds);
        }
    }
    drawing_scale(drawing, least, most);
}

void plan_plot(FILE *out, const struct plan_report *report)
{
    struct drawing drawing = {.out = out,
                              .left = 80,
                              .top = 40,
                              .width = WIDTH - 250,
                              .height = HEIGHT - 100,
                              .foot = HEIGHT - 60,
                              .x_max = largest_exponent(report->plan)};
    scale(report, &drawing);
    drawing_begin(out, WIDTH, HEIGHT);
    fprintf(
        out,
        "<text x=\"80\" y=\"22\" font-size=\"15\">Time of a %s of %s over its size, %s</text>\n",
        model_operation_name(report->input->around.operation),
        model_buffer_name(report->input->around.buffer),
        report->input->view == COST_OF_MESSAGE ? "one message" : "a message in a stream");
    drawing_axes(&drawing);
    drawing_switches(&drawing, report->plan);
    drawing_curves(&drawing, time_at, report);
    drawing_end(out);
}
