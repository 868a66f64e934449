/* SPDX-License-Identifier: BSD-3-Clause */
/* What the drawings of both tools share. */
#include "tools/drawing.h"

#include <math.h>

#include "common/model/number.h"

const char *const drawing_colours[MODEL_PROTOCOLS] = {"#56b4e9", "#0072b2", "#009e73", "#f0a500",
                                                      "#d55e00", "#cc79a7", "#000000", "#8c6d31"};

void drawing_begin(FILE *out, int width, double height)
{
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
            "viewBox=\"0 0 %d %.0f\" font-family=\"sans-serif\" font-size=\"11\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            width, height, width, height);
}

void drawing_end(FILE *out)
{
    fprintf(out, "</svg>\n");
}

void drawing_scale(struct drawing *drawing, double least_s, double most_s)
{
    if (!(most_s > 0)) /* lanes that cost nothing, or nothing was measured */
        least_s = most_s = 1e-9;
    drawing->y_min = floor(log10(least_s));
    drawing->y_max = fmax(ceil(log10(most_s)), drawing->y_min + 1);
}

double drawing_x(const struct drawing *drawing, uint64_t bytes)
{
    return drawing->left + drawing->width * log2((double) bytes) / drawing->x_max;
}

double drawing_y(const struct drawing *drawing, double seconds)
{
    double part = (drawing->y_max - log10(seconds)) / (drawing->y_max - drawing->y_min);
    return drawing->top + drawing->height * part;
}

uint64_t drawing_size(const struct drawing *drawing, int point)
{
    return (uint64_t) floor(exp2(drawing->x_max * point / DRAWING_POINTS));
}

void drawing_axes(const struct drawing *drawing)
{
    char text[NUMBER_SIZE_CHARS];
    double right = drawing->left + drawing->width;
    fprintf(drawing->out, "<g stroke=\"#ddd\" fill=\"#444\">\n");
    for (int exponent = 0; exponent <= (int) drawing->x_max; exponent += 4) {
        double x = drawing_x(drawing, UINT64_C(1) << exponent);
        fprintf(drawing->out,
                "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>"
                "<text stroke=\"none\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n",
                x, drawing->top, x, drawing->foot, x, drawing->foot + 16,
                number_print_size(UINT64_C(1) << exponent, text));
    }
    for (int decade = (int) drawing->y_min; decade <= (int) drawing->y_max; decade++) {
        double y = drawing_y(drawing, pow(10, decade));
        fprintf(drawing->out,
                "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>"
                "<text stroke=\"none\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">1e%d s</text>\n",
                drawing->left, y, right, y, drawing->left - 6, y + 4, decade);
    }
    fprintf(drawing->out,
            "<text stroke=\"none\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">message size, bytes"
            "</text>\n</g>\n",
            (drawing->left + right) / 2, drawing->foot + 36);
}

bool drawing_curve(const struct drawing *drawing, drawing_time time_at, const void *context,
                   int protocol, const char *style)
{
    bool open = false, drawn = false;
    for (int point = 0; point <= DRAWING_POINTS; point++) {
        uint64_t bytes = drawing_size(drawing, point);
        double seconds = time_at(context, protocol, bytes);
        bool inside = seconds > 0 && log10(seconds) >= drawing->y_min - 0.01 &&
                      log10(seconds) <= drawing->y_max + 0.01;
        if (inside && !open)
            fprintf(drawing->out, "<polyline fill=\"none\" %s points=\"", style);
        if (!inside && open)
            fprintf(drawing->out, "\"/>\n");
        if (inside)
            fprintf(drawing->out, "%.1f,%.1f ", drawing_x(drawing, bytes),
                    drawing_y(drawing, seconds));
        open = inside;
        drawn = drawn || inside;
    }
    if (open)
        fprintf(drawing->out, "\"/>\n");
    return drawn;
}

void drawing_legend(const struct drawing *drawing, int row, const char *name, const char *style)
{
    double x = drawing->left + drawing->width + 15, y = drawing->top + 10 + 18 * row;
    fprintf(drawing->out,
            "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>"
            "<text x=\"%.1f\" y=\"%.1f\">%s</text>\n",
            x, y, x + 30, y, style, x + 37, y + 4, name);
}

void drawing_switches(const struct drawing *drawing, const struct plan *plan)
{
    char text[NUMBER_SIZE_CHARS];
    for (uint32_t i = 1; i < plan->entry_count; i++) {
        uint64_t bytes = plan->entries[i].first_bytes;
        if (log2((double) bytes) > drawing->x_max)
            break;
        double x = drawing_x(drawing, bytes);
        fprintf(drawing->out,
                "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#444\" "
                "stroke-dasharray=\"4 3\"/><text x=\"%.1f\" y=\"%.1f\">%s %s</text>\n",
                x, drawing->top, x, drawing->foot, x + 3, drawing->top + 12 + 13 * ((i - 1) % 12),
                plan->entries[i].protocol->name, number_print_size(bytes, text));
    }
}

void drawing_curves(const struct drawing *drawing, drawing_time time_at, const void *context)
{
    static const char envelope[] = "stroke=\"#bbb\" stroke-width=\"8\" stroke-opacity=\"0.6\"";
    int row = 0;
    if (drawing_curve(drawing, time_at, context, -1, envelope))
        drawing_legend(drawing, row++, "the plan", envelope);
    for (int i = 0; i < MODEL_PROTOCOLS; i++) {
        char style[80];
        snprintf(style, sizeof style, "stroke=\"%s\" stroke-width=\"2\"", drawing_colours[i]);
        if (drawing_curve(drawing, time_at, context, i, style))
            drawing_legend(drawing, row++, model_protocols[i]->name, style);
    }
}
