/* SPDX-License-Identifier: BSD-3-Clause */
/* What multilane-calibrate says of its measurements: tables, and a drawing. */
#include "report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/number.h"
#include "common/report/table.h"

/* --- tables
 * --------------------------------------------------------------------------------------- */

static void quality_table(FILE *out, const struct lane_result *result)
{
    static const char *const header[] = {"protocol", "sizes", "off, median", "off, worst", "at"};
    struct table table;
    table_init(&table, 5, header);
    for (int i = 0; i < MODEL_PROTOCOLS; i++) {
        const struct effective_quality *quality = &result->quality[i];
        char size[NUMBER_SIZE_CHARS];
        if (!quality->sizes)
            continue;
        table_row(&table);
        table_cell(&table, 0, "%s", model_protocols[i]->name);
        table_cell(&table, 1, "%u", (unsigned) quality->sizes);
        table_cell(&table, 2, "%.1f %%", 100 * quality->median);
        table_cell(&table, 3, "%.1f %%", 100 * quality->worst);
        table_cell(&table, 4, "%s", number_print_size(quality->worst_bytes, size));
    }
    table_print(&table, out, "  ");
    table_fini(&table);
}

static struct plan *plan_of(const struct lane_result *result,
                            const struct model_surroundings *around)
{
    struct plan_input input;
    struct model_error why;
    plan_input_init(&input);
    input.lanes = &result->lane;
    input.lane_count = 1;
    input.around = *around;
    return plan_build(&input, &why);
}

/* A switch point lies where the two protocols differ by less than twice what they are off by. */
static void switch_table(FILE *out, const struct lane_result *result,
                         const struct model_surroundings *around, const struct plan *plan)
{
    static const char *const header[] = {"from", "protocol", "may lie from", "to", "takes"};
    struct table table;
    table_init(&table, 5, header);
    for (uint32_t i = 0; i < plan->entry_count; i++) {
        const struct plan_entry *entry = &plan->entries[i];
        char size[NUMBER_SIZE_CHARS], time[NUMBER_TIME_CHARS];
        table_row(&table);
        table_cell(&table, 0, "%s", number_print_size(entry->first_bytes, size));
        table_cell(&table, 1, "%s", entry->protocol->name);
        table_cell(&table, 4, "%s",
                   number_print_time(effective_predict(&result->lane, around, entry->protocol_index,
                                                       entry->first_bytes),
                                     time));
        if (!i)
            continue;
        uint32_t below = plan->entries[i - 1].protocol_index, above = entry->protocol_index;
        uint64_t least, most;
        effective_confidence(&result->lane, around, below, above, entry->first_bytes,
                             result->quality[below].median + result->quality[above].median, &least,
                             &most);
        table_cell(&table, 2, "%s", number_print_size(least, size));
        table_cell(&table, 3, "%s", number_print_size(most, size));
    }
    table_print(&table, out, "  ");
    table_fini(&table);
}

/* --- regret: the plan's choice beside the fastest, as measured
 * ------------------------------------- */

struct regret {
    uint64_t bytes;
    double chosen_s, best_s;
};

static const struct sample *sample_of(const struct sample *medians, uint32_t count, uint64_t bytes)
{
    for (uint32_t i = 0; i < count; i++)
        if (medians[i].bytes == bytes)
            return &medians[i];
    return NULL;
}

/* For every size at which what the plan chooses was measured; the caller frees it. */
static struct regret *regrets_of(const struct lane_result *result, const struct plan *plan,
                                 uint32_t *count)
{
    struct sample *medians[MODEL_PROTOCOLS];
    uint32_t counts[MODEL_PROTOCOLS];
    struct regret *regrets = calloc(SAMPLES_MAX * MODEL_PROTOCOLS, sizeof(*regrets));
    *count = 0;
    for (int i = 0; i < MODEL_PROTOCOLS; i++) {
        const struct effective_curve *curve = &result->samples.curves[i];
        medians[i] = malloc((curve->count + 1) * sizeof(*medians[i]));
        counts[i] =
            medians[i] ? sample_medians(result->samples.samples[i], curve->count, medians[i]) : 0;
    }
    for (int i = 0; regrets && i < MODEL_PROTOCOLS; i++)
        for (uint32_t j = 0; j < counts[i]; j++) {
            uint64_t bytes = medians[i][j].bytes;
            if (plan_lookup(plan, bytes)->protocol_index != (uint32_t) i)
                continue;
            struct regret *regret = &regrets[(*count)++];
            *regret = (struct regret){bytes, medians[i][j].seconds, medians[i][j].seconds};
            for (int k = 0; k < MODEL_PROTOCOLS; k++) {
                const struct sample *other = sample_of(medians[k], counts[k], bytes);
                if (other)
                    regret->best_s = fmin(regret->best_s, other->seconds);
            }
        }
    for (int i = 0; i < MODEL_PROTOCOLS; i++)
        free(medians[i]);
    return regrets;
}

static void regret_line(FILE *out, const struct lane_result *result, const struct plan *plan)
{
    uint32_t count;
    double logs = 0, worst = 1;
    uint64_t worst_bytes = 0;
    char size[NUMBER_SIZE_CHARS];
    struct regret *regrets = regrets_of(result, plan, &count);
    for (uint32_t i = 0; i < count; i++) {
        double ratio = regrets[i].chosen_s / regrets[i].best_s;
        logs += log(ratio);
        if (ratio > worst) {
            worst = ratio;
            worst_bytes = regrets[i].bytes;
        }
    }
    if (count)
        fprintf(out,
                "  against the fastest protocol of each of %u sizes: %.1f %% slower in geometric "
                "mean, %.1f %% at worst (%s bytes)\n",
                (unsigned) count, 100 * (exp(logs / count) - 1), 100 * (worst - 1),
                number_print_size(worst_bytes, size));
    free(regrets);
}

void report_lane(FILE *out, const struct lane_result *result,
                 const struct model_surroundings *around)
{
    fprintf(out, "\n%s\n", result->lane.name);
    if (result->samples.disturbed)
        fprintf(out, "  %u of %u samples left out: something disturbed them\n",
                (unsigned) result->samples.disturbed, (unsigned) result->samples.taken);
    if (!result->fitted) {
        fprintf(out, "  not fitted: %s\n", result->why.text);
        return;
    }
    quality_table(out, result);
    struct plan *plan = plan_of(result, around);
    if (!plan)
        return;
    switch_table(out, result, around, plan);
    regret_line(out, result, plan);
    plan_free(plan);
}

static int compare_reals(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

void report_pairs(FILE *out, const char *what, const struct measure_pair *pairs, uint32_t count)
{
    static const char *const header[] = {"bytes", "measured", "predicted", "off"};
    struct table table;
    double *off = calloc(count + 1, sizeof(*off));
    if (!off)
        return;
    fprintf(out, "\n%s\n", what);
    table_init(&table, 4, header);
    for (uint32_t i = 0; i < count; i++) {
        char size[NUMBER_SIZE_CHARS], time[NUMBER_TIME_CHARS];
        off[i] = fabs(pairs[i].predicted_s / pairs[i].measured_s - 1);
        table_row(&table);
        table_cell(&table, 0, "%s", number_print_size(pairs[i].bytes, size));
        table_cell(&table, 1, "%s", number_print_time(pairs[i].measured_s, time));
        table_cell(&table, 2, "%s", number_print_time(pairs[i].predicted_s, time));
        table_cell(&table, 3, "%.1f %%", 100 * off[i]);
    }
    table_print(&table, out, "  ");
    table_fini(&table);
    qsort(off, count, sizeof(*off), compare_reals);
    if (count)
        fprintf(out, "  off in the median: %.1f %%\n",
                100 * (off[(count - 1) / 2] + off[count / 2]) / 2);
    free(off);
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
    fprintf(out, "  %-34s %10s%s\n", "B_L  taken while nobody receives",
            number_print_size(model->buffer_bytes, size),
            model->buffer_bytes >= CALIBRATE_IN_FLIGHT_MOST ? " or more" : "");
}

/* --- the drawing
 * ------------------------------------------------------------------------------------ */

#define WIDTH  960
#define TALL   420 /* times */
#define LOW    110 /* regret, below them */
#define LEFT   70
#define RIGHT  150
#define TOP    34
#define BOTTOM 44

static const char *const colours[MODEL_PROTOCOLS] = {"#56b4e9", "#0072b2", "#009e73",
                                                     "#f0a500", "#d55e00", "#cc79a7",
                                                     "#000000", "#8c6d31", "#7f7f7f"};

struct frame {
    double top;
    double x_max;        /* log2 of the largest size */
    double y_min, y_max; /* log10 of seconds */
};

static double x_of(const struct frame *frame, uint64_t bytes)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * log2((double) bytes) / frame->x_max;
}

static double y_of(const struct frame *frame, double seconds)
{
    return frame->top + TOP +
           TALL * (frame->y_max - log10(seconds)) / (frame->y_max - frame->y_min);
}

static void frame_find(const struct lane_result *result, struct frame *frame)
{
    double least = INFINITY, most = 0, largest = 2;
    for (int i = 0; i < MODEL_PROTOCOLS; i++)
        for (uint32_t j = 0; j < result->samples.curves[i].count; j++) {
            const struct sample *sample = &result->samples.samples[i][j];
            least = fmin(least, sample->seconds);
            most = fmax(most, sample->seconds);
            largest = fmax(largest, (double) sample->bytes);
        }
    if (!(most > 0))
        least = most = 1e-6;
    frame->x_max = ceil(log2(largest));
    frame->y_min = floor(log10(least));
    frame->y_max = fmax(ceil(log10(most)), frame->y_min + 1);
}

static void draw_axes(FILE *out, const struct frame *frame)
{
    char text[NUMBER_SIZE_CHARS];
    double foot = frame->top + TOP + TALL + 24 + LOW;
    for (int e = 0; e <= (int) frame->x_max; e += 2) {
        double x = x_of(frame, UINT64_C(1) << e);
        fprintf(out,
                "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>"
                "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n",
                x, frame->top + TOP, x, foot, x, foot + 16,
                number_print_size(UINT64_C(1) << e, text));
    }
    for (int e = (int) frame->y_min; e <= (int) frame->y_max; e++)
        fprintf(out,
                "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#ddd\"/>"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">1e%d s</text>\n",
                LEFT, y_of(frame, pow(10, e)), WIDTH - RIGHT, y_of(frame, pow(10, e)), LEFT - 6,
                y_of(frame, pow(10, e)) + 4, e);
}

static void draw_protocol(FILE *out, const struct lane_result *result,
                          const struct model_surroundings *around, const struct frame *frame, int i)
{
    const struct effective_curve *curve = &result->samples.curves[i];
    for (uint32_t j = 0; j < curve->count; j++)
        fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"1.8\" fill=\"%s\"/>\n",
                x_of(frame, curve->samples[j].bytes), y_of(frame, curve->samples[j].seconds),
                colours[i]);
    fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" points=\"", colours[i]);
    for (int step = 0; result->fitted && curve->count && step <= 240; step++) {
        uint64_t bytes = (uint64_t) exp2(frame->x_max * step / 240);
        double seconds = effective_predict(&result->lane, around, (uint32_t) i, bytes);
        if (seconds > 0)
            fprintf(out, "%.1f,%.1f ", x_of(frame, bytes), y_of(frame, seconds));
    }
    fprintf(out, "\"/>\n");
}

/* The envelope: a broad line behind what the plan chooses, and where it switches. */
static void draw_plan(FILE *out, const struct lane_result *result,
                      const struct model_surroundings *around, const struct frame *frame,
                      const struct plan *plan)
{
    char text[NUMBER_SIZE_CHARS];
    fprintf(out, "<polyline fill=\"none\" stroke=\"#bbb\" stroke-width=\"6\" points=\"");
    for (int step = 0; step <= 240; step++) {
        uint64_t bytes = (uint64_t) exp2(frame->x_max * step / 240);
        double seconds = effective_predict(&result->lane, around,
                                           plan_lookup(plan, bytes)->protocol_index, bytes);
        if (seconds > 0)
            fprintf(out, "%.1f,%.1f ", x_of(frame, bytes), y_of(frame, seconds));
    }
    fprintf(out, "\"/>\n");
    for (uint32_t i = 1; i < plan->entry_count; i++) {
        uint64_t bytes = plan->entries[i].first_bytes;
        if (log2((double) bytes) > frame->x_max)
            break;
        fprintf(out,
                "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#444\" "
                "stroke-dasharray=\"4 3\"/><text x=\"%.1f\" y=\"%.1f\">%s %s</text>\n",
                x_of(frame, bytes), frame->top + TOP, x_of(frame, bytes),
                frame->top + TOP + TALL + 24 + LOW, x_of(frame, bytes) + 3,
                frame->top + TOP + 12 + 13 * (i % 10), plan->entries[i].protocol->name,
                number_print_size(bytes, text));
    }
}

#define REGRET_SHOWN 0.3 /* what fills the height */

static void draw_regret(FILE *out, const struct lane_result *result, const struct frame *frame,
                        const struct plan *plan)
{
    uint32_t count;
    double foot = frame->top + TOP + TALL + 24 + LOW;
    struct regret *regrets = regrets_of(result, plan, &count);
    fprintf(out,
            "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">30 %%</text>"
            "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">slower</text>\n",
            LEFT - 6, foot - LOW + 4, LEFT - 6, foot);
    for (uint32_t i = 0; i < count; i++) {
        double part = fmin((regrets[i].chosen_s / regrets[i].best_s - 1) / REGRET_SHOWN, 1);
        fprintf(out,
                "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#d55e00\" "
                "stroke-width=\"5\"/>\n",
                x_of(frame, regrets[i].bytes), foot, x_of(frame, regrets[i].bytes),
                foot - LOW * part);
    }
    free(regrets);
}

static void draw_lane(FILE *out, const struct lane_result *result,
                      const struct model_surroundings *around, double top)
{
    struct frame frame = {.top = top};
    frame_find(result, &frame);
    fprintf(out,
            "<text x=\"%d\" y=\"%.1f\" font-size=\"15\">%s: one-way time over size; below, how "
            "much slower than the fastest protocol the plan's choice was</text>\n",
            LEFT, top + 20, result->lane.name);
    draw_axes(out, &frame);
    struct plan *plan = result->fitted ? plan_of(result, around) : NULL;
    if (plan) {
        draw_plan(out, result, around, &frame, plan);
        draw_regret(out, result, &frame, plan);
    }
    plan_free(plan);
    for (int i = 0, row = 0; i < MODEL_PROTOCOLS; i++) {
        if (!result->samples.curves[i].count)
            continue;
        draw_protocol(out, result, around, &frame, i);
        fprintf(out, "<text x=\"%d\" y=\"%.1f\" fill=\"%s\">%s</text>\n", WIDTH - RIGHT + 10,
                top + TOP + 14 + 16 * row++, colours[i], model_protocols[i]->name);
    }
}

bool report_plot(const char *name, const struct lane_result *results, uint32_t count,
                 const struct model_surroundings *around, struct model_error *error)
{
    const double height = TOP + TALL + 24 + LOW + BOTTOM;
    FILE *out = fopen(name, "we");
    if (!out)
        return model_fail(error, "%.120s: cannot be written: %s", name, strerror(errno));
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
            "font-family=\"sans-serif\" font-size=\"11\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            WIDTH, height * count + 1);
    for (uint32_t i = 0; i < count; i++)
        draw_lane(out, &results[i], around, height * i);
    fprintf(out, "</svg>\n");
    bool written = !ferror(out);
    written = fclose(out) == 0 && written;
    return written || model_fail(error, "%.120s: cannot be written", name);
}
