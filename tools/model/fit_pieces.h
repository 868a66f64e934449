/* SPDX-License-Identifier: BSD-3-Clause */
/* Several lines through measured times that bend. */
#ifndef TOOLS_MODEL_FIT_PIECES_H
#define TOOLS_MODEL_FIT_PIECES_H

#include "tools/model/fit.h"

/* Times that bend: a line for each of a few neighbouring ranges of sizes. */
#define LINE_PIECES_MAX 8

struct line_piece {
    uint64_t first_bytes;   /* the smallest and */
    uint64_t largest_bytes; /* the largest size that was measured and that the line is for */
    struct cost_line line;
};

/* Divides the samples where that explains them best, into as few ranges as describe them well and
 * at most `most`, and fits each. Returns how many, or 0 with the sentence of the range that cannot
 * be fitted. */
uint32_t line_fit_pieces(const struct sample *samples, uint32_t count, uint32_t most,
                         double most_residual, struct line_piece pieces[LINE_PIECES_MAX],
                         struct model_error *error);

#endif
