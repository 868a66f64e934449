/* SPDX-License-Identifier: BSD-3-Clause */
/* multilane-plan's drawing: time over size, both logarithmic. */
#include "plan_report.h"

#include <math.h>

#include "common/model/number.h"

#define WIDTH   960
#define HEIGHT  600
#define LEFT    80
#define RIGHT   170
#define TOP     40
#define BOTTOM  60
#define SAMPLES 240

struct frame {
    double x_max;        /* log2 of the largest size; the smallest is 1 */
    double y_min, y_max; /* log10 of times */
};

/* Told apart also by those who see fewer colours (Okabe and Ito's palette). */
static const char *const colours[MODEL_PROTOCOLS] = {"#56b4e9", "#0072b2", "#009e73",
                                                     "#f0a500", "#d55e00", "#cc79a7",
                                                     "#000000", "#8c6d31", "#7f7f7f"};

static double x_of(const struct frame *frame, uint64_t bytes)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * log2((double) bytes) / frame->x_max;
}

static double y_of(const struct frame *frame, double seconds)
{
    double part = (log10(seconds) - frame->y_min) / (frame->y_max - frame->y_min);
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * part;
}

static uint64_t sample_bytes(const struct frame *frame, int sample)
{
    return (uint64_t) floor(exp2(frame->x_max * sample / SAMPLES));
}

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

/* The plan's time, or that of one protocol (`protocol` >= 0); below 0: it cannot carry that size.
 */
static double time_at(const struct plan_report *report, int protocol, uint64_t bytes)
{
    struct plan_entry entry;
    struct cost cost;
    bool carries =
        protocol < 0
            ? plan_predict(report->input, plan_lookup(report->plan, bytes), bytes, &cost)
            : plan_best_of_protocol(report->input, (uint32_t) protocol, bytes, &entry, &cost);
    double seconds = carries ? cost_of(&cost, report->input->view, bytes) : -1;
    return seconds > 0 ? seconds : -1; /* no logarithm of 0 */
}

static void find_frame(const struct plan_report *report, struct frame *frame)
{
    double least = INFINITY, most = 0;
    frame->x_max = largest_exponent(report->plan);
    for (int sample = 0; sample <= SAMPLES; sample++) {
        double seconds = time_at(report, -1, sample_bytes(frame, sample));
        if (seconds > 0) {
            least = fmin(least, seconds);
            most = fmax(most, seconds);
        }
    }
    if (!(most > 0)) /* lanes that cost nothing */
        least = most = 1e-9;
    frame->y_min = floor(log10(least));
    frame->y_max = fmax(ceil(log10(most)), frame->y_min + 1);
}

static void draw_axes(FILE *out, const struct frame *frame)
{
    char text[NUMBER_SIZE_CHARS];
    fprintf(out, "<g stroke=\"#ddd\" fill=\"#444\" font-size=\"12\">\n");
    for (int exponent = 0; exponent <= (int) frame->x_max; exponent += 4) {
        double x = x_of(frame, UINT64_C(1) << exponent);
        fprintf(out, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>", x, TOP, x,
                HEIGHT - BOTTOM);
        fprintf(out, "<text stroke=\"none\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                x, HEIGHT - BOTTOM + 18, number_print_size(UINT64_C(1) << exponent, text));
    }
    for (int decade = (int) frame->y_min; decade <= (int) frame->y_max; decade++) {
        double y = y_of(frame, pow(10, decade));
        fprintf(out, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>", LEFT, y, WIDTH - RIGHT,
                y);
        fprintf(out,
                "<text stroke=\"none\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">1e%d s</text>\n",
                LEFT - 6, y + 4, decade);
    }
    fprintf(out,
            "<text stroke=\"none\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">message size, bytes"
            "</text>\n</g>\n",
            (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 15);
}

/* One curve; a gap where the protocol carries nothing. */
static bool draw_curve(FILE *out, const struct plan_report *report, const struct frame *frame,
                       int protocol, const char *style)
{
    bool open = false, drawn = false;
    for (int sample = 0; sample <= SAMPLES; sample++) {
        uint64_t bytes = sample_bytes(frame, sample);
        double seconds = time_at(report, protocol, bytes);
        bool inside = seconds > 0 && log10(seconds) >= frame->y_min - 0.01 &&
                      log10(seconds) <= frame->y_max + 0.01;
        if (inside && !open)
            fprintf(out, "<polyline fill=\"none\" %s points=\"", style);
        if (!inside && open)
            fprintf(out, "\"/>\n");
        if (inside)
            fprintf(out, "%.1f,%.1f ", x_of(frame, bytes), y_of(frame, seconds));
        open = inside;
        drawn = drawn || inside;
    }
    if (open)
        fprintf(out, "\"/>\n");
    return drawn;
}

static void draw_legend(FILE *out, int row, const char *name, const char *style)
{
    int y = TOP + 10 + 20 * row;
    fprintf(out, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" %s/>", WIDTH - RIGHT + 15, y,
            WIDTH - RIGHT + 45, y, style);
    fprintf(out, "<text x=\"%d\" y=\"%d\" font-size=\"12\">%s</text>\n", WIDTH - RIGHT + 52, y + 4,
            name);
}

static void draw_curves(FILE *out, const struct plan_report *report, const struct frame *frame)
{
    static const char envelope[] = "stroke=\"#bbb\" stroke-width=\"9\" stroke-opacity=\"0.6\"";
    int row = 0;
    draw_curve(out, report, frame, -1, envelope);
    draw_legend(out, row++, "the plan", envelope);
    for (int i = 0; i < MODEL_PROTOCOLS; i++) {
        char style[80];
        snprintf(style, sizeof style, "stroke=\"%s\" stroke-width=\"2\"", colours[i]);
        if (draw_curve(out, report, frame, i, style))
            draw_legend(out, row++, model_protocols[i]->name, style);
    }
}

static void draw_switches(FILE *out, const struct plan *plan, const struct frame *frame)
{
    char text[NUMBER_SIZE_CHARS];
    int row = 0;
    for (uint32_t i = 1; i < plan->entry_count; i++) {
        uint64_t bytes = plan->entries[i].first_bytes;
        if (log2((double) bytes) > frame->x_max)
            break;
        double x = x_of(frame, bytes);
        fprintf(out,
                "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#444\" "
                "stroke-dasharray=\"4 3\"/>",
                x, TOP, x, HEIGHT - BOTTOM);
        fprintf(out, "<text x=\"%.1f\" y=\"%d\" font-size=\"11\">%s %s</text>\n", x + 3,
                TOP + 12 + 13 * (row++ % 12), plan->entries[i].protocol->name,
                number_print_size(bytes, text));
    }
}

void plan_plot(FILE *out, const struct plan_report *report)
{
    struct frame frame;
    find_frame(report, &frame);
    fprintf(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
        "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\">\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
        "<text x=\"%d\" y=\"22\" font-size=\"15\">Time of a %s of %s over its size, %s</text>\n",
        WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT, model_operation_name(report->input->around.operation),
        model_buffer_name(report->input->around.buffer),
        report->input->view == COST_OF_MESSAGE ? "one message" : "a message in a stream");
    draw_axes(out, &frame);
    draw_switches(out, report->plan, &frame);
    draw_curves(out, report, &frame);
    fprintf(out, "</svg>\n");
}
