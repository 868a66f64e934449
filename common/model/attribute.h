/* SPDX-License-Identifier: BSD-3-Clause */
/* The attributes of a lane: one table, from which all code takes their names, places and checks. */
#ifndef COMMON_MODEL_ATTRIBUTE_H
#define COMMON_MODEL_ATTRIBUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/model/error.h"

enum model_attribute {
    MODEL_LATENCY,
    MODEL_BANDWIDTH,
    MODEL_OVERHEAD_SEND,
    MODEL_OVERHEAD_RECEIVE,
    MODEL_REG_COST,
    MODEL_REG_GROWTH,
    MODEL_ATTRIBUTES
};

/* Linear in the size of the message, from one byte above the range before up to `largest_bytes`. */
struct model_lane_range {
    uint64_t largest_bytes;
    double latency_s;
    double bandwidth_bytes_s; /* above 0; INFINITY: bytes cost nothing */
    double overhead_send_s;   /* of the sender's processor, each message */
    double overhead_receive_s;
    double reg_cost_s; /* of registering memory, once a message and end */
    double reg_growth_s_byte;
};

struct model_attribute_row {
    const char *key;      /* in lane files, profiles and reports */
    const char *user_key; /* in parameters: "overhead" sets both ends' parts, half each */
    size_t offset;        /* in struct model_lane_range */
    double assumed;       /* where a BTL declares what cannot be */
    const char *meaning;  /* of what the user's key sets */
};

extern const struct model_attribute_row model_attributes[MODEL_ATTRIBUTES];

static inline double *model_attribute_in(struct model_lane_range *range, int attribute)
{
    return (double *) (void *) ((char *) range + model_attributes[attribute].offset);
}

static inline double model_attribute_of(const struct model_lane_range *range, int attribute)
{
    return *(const double *) (const void *) ((const char *) range +
                                             model_attributes[attribute].offset);
}

const char *model_attribute_name(enum model_attribute attribute);

/* Has its row the user's key of a row before it? Walks over the user's keys leave it out. */
bool model_attribute_shares_key(int attribute);

/* Half an overhead of which only the whole is known; the halves add up to it exactly. */
void model_overhead_divide(double overhead_s, double *send_s, double *receive_s);

#define MODEL_TIME_S_MAX 1e9

/* Is this a value that the model can compute with? Times are from 0 to 1e9 seconds (a byte),
 * bandwidths from 1e-6 to 1e30 bytes a second or infinite. */
bool model_attribute_check(enum model_attribute attribute, double value, struct error_text *error);

#endif
