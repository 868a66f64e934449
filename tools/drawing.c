/* SPDX-License-Identifier: BSD-3-Clause */
/* Draws plans. */
#include "tools/drawing.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/model/number.h"

#define WIDTH  960
#define TALL   440 /* times */
#define LEFT   80
#define RIGHT  (WIDTH - 170)
#define TOP    34 /* the title above the times */
#define BOTTOM 56 /* the sizes below them */
#define HEIGHT (TOP + TALL + BOTTOM)
#define POINTS 240

/* Chosen so that people who see fewer colours tell them apart (Okabe and Ito's palette). */
static const char *const colours[MODEL_PROTOCOLS] = {"#56b4e9", "#0072b2", "#009e73", "#f0a500",
                                                     "#d55e00", "#cc79a7", "#000000", "#8c6d31"};

/* A panel on the page. */
struct drawing {
    FILE *out;
    const struct drawing_panel *panel;
    double top;          /* of the times */
    double x_max;        /* log2 of the largest size; the smallest is 1 */
    double y_min, y_max; /* log10 of seconds */
};

/* --- times and scales ------------------------------------------------------------------------- */

static bool was_measured(const struct lane_times *times, int protocol)
{
    bool was = false;
    for (int i = 0; i < LEARNED_BUCKETS; i++)
        was = was || times->at[protocol][i].messages;
    return was;
}

/* The plan's time (`protocol` below 0), or that of one protocol; below 0: there is none. */
static double time_at(const struct drawing_panel *panel, int protocol, uint64_t bytes)
{
    struct plan_entry entry;
    struct cost cost;
    if (!panel->plan || (protocol >= 0 && panel->times && !was_measured(panel->times, protocol)))
        return -1;
    bool carries =
        protocol < 0
            ? plan_predict(panel->input, plan_lookup(panel->plan, bytes), bytes, &cost)
            : plan_best_of_protocol(panel->input, (uint32_t) protocol, bytes, &entry, &cost);
    return carries ? cost_of(&cost, panel->input->view, bytes) : -1;
}

static uint64_t size_at(const struct drawing *drawing, int point)
{
    return (uint64_t) floor(exp2(drawing->x_max * point / POINTS));
}

/* From 1 byte to the largest that was measured, or to well beyond the last switch. */
static double largest_exponent(const struct drawing_panel *panel)
{
    double largest = 2;
    for (int i = 0; panel->times && i < MODEL_PROTOCOLS; i++)
        for (int j = 1; j < LEARNED_BUCKETS; j++)
            largest = panel->times->at[i][j].messages ? fmax(largest, exp2(j)) : largest;
    if (panel->times)
        return log2(largest);
    if (panel->plan->entry_count > 1)
        largest = (double) panel->plan->entries[panel->plan->entry_count - 1].first_bytes;
    return fmin(fmax(24, ceil(log2(largest) + 4)), 60);
}

/* From the decade below the least time to that above the most: all that was measured, or that the
 * plan takes. */
static void scale(struct drawing *drawing)
{
    const struct drawing_panel *panel = drawing->panel;
    double least_s = INFINITY, most_s = 0;
    drawing->x_max = largest_exponent(panel);
    for (int i = 0; panel->times && i < MODEL_PROTOCOLS; i++)
        for (int j = 0; j < LEARNED_BUCKETS; j++)
            if (panel->times->at[i][j].messages) {
                least_s = fmin(least_s, panel->times->at[i][j].seconds);
                most_s = fmax(most_s, panel->times->at[i][j].seconds);
            }
    for (int point = 0; !panel->times && point <= POINTS; point++) {
        double seconds = time_at(panel, -1, size_at(drawing, point));
        least_s = seconds > 0 ? fmin(least_s, seconds) : least_s;
        most_s = fmax(most_s, seconds);
    }
    if (!(most_s > 0)) /* lanes that cost nothing, or nothing was measured */
        least_s = most_s = 1e-9;
    drawing->y_min = floor(log10(least_s));
    drawing->y_max = fmax(ceil(log10(most_s)), drawing->y_min + 1);
}

static double x_of(const struct drawing *drawing, uint64_t bytes)
{
    return LEFT + (RIGHT - LEFT) * log2((double) bytes) / drawing->x_max;
}

static double y_of(const struct drawing *drawing, double seconds)
{
    double part = (drawing->y_max - log10(seconds)) / (drawing->y_max - drawing->y_min);
    return drawing->top + TALL * part;
}

/* --- what is drawn ---------------------------------------------------------------------------- */

static void draw_line(const struct drawing *drawing, double x1, double y1, double x2, double y2,
                      const char *style)
{
    fprintf(drawing->out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1,
            x2, y2, style);
}

/* `anchor` is start, middle or end: what of the text lies at x. */
static void draw_text(const struct drawing *drawing, double x, double y, const char *anchor,
                      const char *text)
{
    fprintf(drawing->out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y,
            anchor, text);
}

static void draw_axes(const struct drawing *drawing)
{
    static const char grid[] = "stroke=\"#ddd\"";
    char text[NUMBER_SIZE_CHARS];
    for (int exponent = 0; exponent <= (int) drawing->x_max; exponent += 4) {
        double x = x_of(drawing, UINT64_C(1) << exponent);
        draw_line(drawing, x, drawing->top, x, drawing->top + TALL, grid);
        draw_text(drawing, x, drawing->top + TALL + 16, "middle",
                  number_print_size(UINT64_C(1) << exponent, text));
    }
    for (int decade = (int) drawing->y_min; decade <= (int) drawing->y_max; decade++) {
        double y = y_of(drawing, pow(10, decade));
        draw_line(drawing, LEFT, y, RIGHT, y, grid);
        snprintf(text, sizeof text, "1e%d s", decade);
        draw_text(drawing, LEFT - 6, y + 4, "end", text);
    }
    draw_text(drawing, (LEFT + RIGHT) / 2, drawing->top + TALL + 36, "middle",
              "message size, bytes");
}

static void draw_switches(const struct drawing *drawing)
{
    const struct plan *plan = drawing->panel->plan;
    for (uint32_t i = 1; plan && i < plan->entry_count; i++) {
        uint64_t bytes = plan->entries[i].first_bytes;
        char text[80], size[NUMBER_SIZE_CHARS];
        if (log2((double) bytes) > drawing->x_max)
            return;
        double x = x_of(drawing, bytes);
        draw_line(drawing, x, drawing->top, x, drawing->top + TALL,
                  "stroke=\"#444\" stroke-dasharray=\"4 3\"");
        snprintf(text, sizeof text, "%s %s", plan->entries[i].protocol->name,
                 number_print_size(bytes, size));
        draw_text(drawing, x + 3, drawing->top + 12 + 13 * ((i - 1) % 12), "start", text);
    }
}

/* A gap where there is no time. False: all of it is a gap. */
static bool draw_curve(const struct drawing *drawing, int protocol, const char *style)
{
    bool is_open = false, is_drawn = false;
    for (int point = 0; point <= POINTS; point++) {
        uint64_t bytes = size_at(drawing, point);
        double seconds = time_at(drawing->panel, protocol, bytes);
        bool is_inside = seconds > 0 && log10(seconds) >= drawing->y_min - 0.01 &&
                         log10(seconds) <= drawing->y_max + 0.01;
        if (is_inside && !is_open)
            fprintf(drawing->out, "<polyline fill=\"none\" %s points=\"", style);
        if (!is_inside && is_open)
            fprintf(drawing->out, "\"/>\n");
        if (is_inside)
            fprintf(drawing->out, "%.1f,%.1f ", x_of(drawing, bytes), y_of(drawing, seconds));
        is_open = is_inside;
        is_drawn = is_drawn || is_inside;
    }
    if (is_open)
        fprintf(drawing->out, "\"/>\n");
    return is_drawn;
}

/* A broad curve of what the plan chooses, behind one of each protocol, with what they are beside
 * them. */
static void draw_curves(const struct drawing *drawing)
{
    char style[80] = "stroke=\"#bbb\" stroke-width=\"8\" stroke-opacity=\"0.6\"";
    double y = drawing->top + 10;
    for (int i = -1; i < MODEL_PROTOCOLS; i++) {
        if (i >= 0)
            snprintf(style, sizeof style, "stroke=\"%s\" stroke-width=\"2\"", colours[i]);
        if (!draw_curve(drawing, i, style))
            continue;
        draw_line(drawing, RIGHT + 15, y, RIGHT + 45, y, style);
        draw_text(drawing, RIGHT + 52, y + 4, "start",
                  i < 0 ? "the plan" : model_protocols[i]->name);
        y += 18;
    }
}

static void draw_samples(const struct drawing *drawing)
{
    const struct lane_times *times = drawing->panel->times;
    for (int i = 0; times && i < MODEL_PROTOCOLS; i++)
        for (int j = 0; j < LEARNED_BUCKETS; j++)
            if (times->at[i][j].messages)
                fprintf(drawing->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n",
                        x_of(drawing, UINT64_C(1) << j), y_of(drawing, times->at[i][j].seconds),
                        colours[i]);
}

static void draw_panel(FILE *out, const struct drawing_panel *panel, double top)
{
    struct drawing drawing = {.out = out, .panel = panel, .top = top + TOP};
    scale(&drawing);
    fprintf(out, "<text x=\"%d\" y=\"%.1f\" font-size=\"15\">%s</text>\n", LEFT, top + 20,
            panel->title);
    draw_axes(&drawing);
    draw_switches(&drawing);
    draw_curves(&drawing);
    draw_samples(&drawing);
}

bool drawing_write(const char *name, const struct drawing_panel *panels, uint32_t count,
                   struct model_error *error)
{
    FILE *out = fopen(name, "we");
    if (!out)
        return model_fail(error, "%.120s: cannot be written: %s", name, strerror(errno));
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" "
            "viewBox=\"0 0 %d %u\" font-family=\"sans-serif\" font-size=\"11\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            WIDTH, HEIGHT * count + 1, WIDTH, HEIGHT * count + 1);
    for (uint32_t i = 0; i < count; i++)
        draw_panel(out, &panels[i], HEIGHT * i);
    fprintf(out, "</svg>\n");
    bool is_written = !ferror(out);
    is_written = fclose(out) == 0 && is_written;
    return is_written || model_fail(error, "%.120s: cannot be written", name);
}
