/* SPDX-License-Identifier: BSD-3-Clause */
/* Time as a function of size, kept apart by stage. */
#ifndef COMMON_MODEL_COST_H
#define COMMON_MODEL_COST_H

#include <stdint.h>

/* What is busy. A single message takes the sum of the stages; in a stream of messages the stages of
 * different messages overlap: each costs the largest of the first three (no processor is busy with
 * latency), and the first one the others as well, its part of them as of COST_STREAM_MESSAGES. */
enum cost_stage { COST_SENDER, COST_WIRE, COST_RECEIVER, COST_LATENCY, COST_STAGES };

const char *cost_stage_name(enum cost_stage stage);

/* What a plan is made for. */
enum cost_view {
    COST_OF_MESSAGE, /* the sum of the stages */
    COST_OF_STREAM   /* the largest stage, and a part of the others */
};

#define COST_STREAM_MESSAGES 8

struct cost_line {
    double fixed_s;
    double growth_s_byte;
};

static inline double cost_line_at(const struct cost_line *line, double bytes)
{
    return line->fixed_s + bytes * line->growth_s_byte;
}

/* The cost of one protocol over one set of lanes for messages of first_bytes to last_bytes, both
 * included. The lines hold everything, the bias d too. */
struct cost {
    uint64_t first_bytes;
    uint64_t last_bytes;
    struct cost_line stage[COST_STAGES];
    struct cost_line registration; /* what of it registering takes, before the bias */

    /* Used while the terms are added. */
    double scale;
    double bandwidth_bytes_s;
};

double cost_of_stage(const struct cost *cost, enum cost_stage stage, uint64_t bytes);
double cost_of(const struct cost *cost, enum cost_view view, uint64_t bytes);

/* The line of the sum of the stages. */
struct cost_line cost_sum_line(const struct cost *cost);

/* --- how a protocol writes down what it costs, term by term ----------------------------------- */

/* Empties the cost; what is added is multiplied by `scale` in the end. */
void cost_begin(struct cost *cost, double scale);

/* Adds a line to one stage; the bandwidth of the wire is added to the cost itself. */
static inline void cost_add(struct cost *cost, enum cost_stage stage, struct cost_line line)
{
    cost->stage[stage].fixed_s += line.fixed_s;
    cost->stage[stage].growth_s_byte += line.growth_s_byte;
}

/* Adds weight * seconds. Weights are small whole numbers. */
static inline void cost_add_fixed(struct cost *cost, enum cost_stage stage, int weight,
                                  double seconds)
{
    cost->stage[stage].fixed_s += weight * seconds;
}

/* The lines do not hold above `last_bytes`. */
static inline void cost_bound(struct cost *cost, uint64_t last_bytes)
{
    if (last_bytes < cost->last_bytes)
        cost->last_bytes = last_bytes;
}

/* Turns the terms into the lines of the stages. */
void cost_end(struct cost *cost);

#endif
