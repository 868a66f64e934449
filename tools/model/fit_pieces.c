/* SPDX-License-Identifier: BSD-3-Clause */
/* Fitting several lines to times that bend.
 *
 * Where to bend is decided on one median a size: of all ways to cut the sizes into so many ranges
 * the one that leaves the smallest sum of squared relative deviations, found by the usual recursion
 * over the last range. One range more is only taken if it explains much of what is left. */
#include "tools/model/fit_pieces.h"

#include <math.h>
#include <stdlib.h>

#define SIZES_MAX 256

/* Good enough: the root mean square of the deviations. */
#define DEVIATION_GOOD 0.03
/* One range more has to leave less than this part of the squares. */
#define GAIN_LEAST 0.75
/* Of one size no line can be told. Two are enough, for each stands for the median of its samples,
 * and where a cache ends times bend at every size. */
#define SIZES_LEAST 2

struct cutting {
    struct sample sizes[SIZES_MAX];
    uint32_t count;
    /* [k][i]: of the first i sizes in k + 1 ranges, and where the last of these begins. */
    double squares[LINE_PIECES_MAX][SIZES_MAX + 1];
    uint32_t begin[LINE_PIECES_MAX][SIZES_MAX + 1];
};

/* What the best line leaves of the squares. */
static double squares_left(const struct line_sums *a)
{
    struct cost_line line = line_of_sums(a);
    double fixed = line.fixed_s, growth = line.growth_s_byte;
    double left = a->wtt + fixed * fixed * a->w + growth * growth * a->wss - 2 * fixed * a->wt -
                  2 * growth * a->wst + 2 * fixed * growth * a->ws;
    return left > 0 ? left : 0;
}

/* Fills row k for every number of sizes, from row k - 1. */
static void cutting_row(struct cutting *cutting, uint32_t k)
{
    for (uint32_t end = 0; end <= cutting->count; end++) {
        struct line_sums sums = {0};
        cutting->squares[k][end] = INFINITY;
        cutting->begin[k][end] = 0;
        for (uint32_t begin = end; begin-- > 0;) {
            line_sums_add(&sums, &cutting->sizes[begin], 1);
            if (end - begin < SIZES_LEAST && (begin > 0 || end < cutting->count))
                continue;
            double before = k ? cutting->squares[k - 1][begin] : begin ? INFINITY : 0;
            double all = before + squares_left(&sums);
            if (all < cutting->squares[k][end]) {
                cutting->squares[k][end] = all;
                cutting->begin[k][end] = begin;
            }
        }
    }
}

/* How many ranges are worth having. */
static uint32_t cutting_choose(struct cutting *cutting, uint32_t most)
{
    uint32_t chosen = 0;
    cutting_row(cutting, 0);
    for (uint32_t k = 1; k < most; k++) {
        double now = cutting->squares[chosen][cutting->count];
        if (sqrt(now / cutting->count) <= DEVIATION_GOOD)
            break;
        cutting_row(cutting, k);
        if (cutting->squares[k][cutting->count] < GAIN_LEAST * now)
            chosen = k;
    }
    return chosen + 1;
}

/* The samples from one size to another, in front of `out`. */
static uint32_t samples_between(const struct sample *samples, uint32_t count, uint64_t first,
                                uint64_t last, struct sample *out)
{
    uint32_t taken = 0;
    for (uint32_t i = 0; i < count; i++)
        if (samples[i].bytes >= first && samples[i].bytes <= last)
            out[taken++] = samples[i];
    return taken;
}

static bool piece_fit(const struct sample *samples, uint32_t count, double most_residual,
                      struct line_piece *piece, struct model_error *error)
{
    struct model_error why;
    if (line_fit(samples, count, most_residual, &piece->line, &why))
        return true;
    return model_fail(error, "from %llu to %llu bytes: %.220s",
                      (unsigned long long) piece->first_bytes,
                      (unsigned long long) piece->largest_bytes, why.text);
}

static bool pieces_fit(const struct cutting *cutting, const struct sample *samples, uint32_t count,
                       uint32_t piece_count, double most_residual, struct sample *room,
                       struct line_piece *pieces, struct model_error *error)
{
    uint32_t end = cutting->count;
    for (uint32_t k = piece_count; k-- > 0;) {
        uint32_t begin = cutting->begin[k][end];
        pieces[k].first_bytes = cutting->sizes[begin].bytes;
        pieces[k].largest_bytes = cutting->sizes[end - 1].bytes;
        uint32_t taken =
            samples_between(samples, count, pieces[k].first_bytes, pieces[k].largest_bytes, room);
        if (!piece_fit(room, taken, most_residual, &pieces[k], error))
            return false;
        end = begin;
    }
    return true;
}

uint32_t line_fit_pieces(const struct sample *samples, uint32_t count, uint32_t most,
                         double most_residual, struct line_piece pieces[LINE_PIECES_MAX],
                         struct model_error *error)
{
    struct cutting *cutting = malloc(sizeof *cutting);
    struct sample *room = malloc((count ? count : 1) * sizeof *room);
    uint32_t piece_count = 0;
    if (most > LINE_PIECES_MAX)
        most = LINE_PIECES_MAX;
    if (!cutting || !room) {
        model_fail(error, "no memory for a fit");
    } else {
        uint32_t sizes = sample_medians(samples, count, room);
        for (uint32_t i = 0; i < sizes && i < SIZES_MAX; i++)
            cutting->sizes[i] = room[i];
        cutting->count = sizes;
        if (!sizes || sizes > SIZES_MAX || !most) {
            model_fail(error, "a line needs samples of 2 sizes at least, and at most %d sizes",
                       SIZES_MAX);
        } else {
            piece_count = cutting_choose(cutting, most);
            if (!pieces_fit(cutting, samples, count, piece_count, most_residual, room, pieces,
                            error))
                piece_count = 0;
        }
    }
    free(cutting);
    free(room);
    return piece_count;
}
