/* SPDX-License-Identifier: BSD-3-Clause */
/* What the user says of our own lanes by the five parameters btl_NAME_lane_*. */
#ifndef COMMON_LANE_GIVEN_H
#define COMMON_LANE_GIVEN_H

#include <stdint.h>

#include "common/model/error.h"
#include "multilane/extension.h"

enum given_attribute {
    GIVEN_LATENCY,
    GIVEN_BANDWIDTH,
    GIVEN_OVERHEAD,
    GIVEN_REG_COST,
    GIVEN_REG_GROWTH,
    GIVEN_ATTRIBUTES
};

struct given {
    const char *texts[GIVEN_ATTRIBUTES]; /* the parameters' values */
    double values[GIVEN_ATTRIBUTES];     /* set by given_read; below 0: auto */
};

#define GIVEN_INIT                                                                                 \
    {                                                                                              \
        .texts = { "auto", "auto", "auto", "auto", "auto" }                                        \
    }

/* Rows of a component's table of parameters (struct param of common/compat) for `given`. */
#define GIVEN_PARAM(given, attribute, name, help)                                                  \
    {                                                                                              \
        "lane_" name, PARAM_STRING, &(given).texts[attribute], help                                \
    }
#define GIVEN_PARAMS(given)                                                                        \
    GIVEN_PARAM(given, GIVEN_LATENCY, "latency", "latency of the lane in seconds, or auto"),       \
        GIVEN_PARAM(given, GIVEN_BANDWIDTH, "bandwidth",                                           \
                    "bandwidth of the lane in bytes a second, or auto"),                           \
        GIVEN_PARAM(given, GIVEN_OVERHEAD, "overhead",                                             \
                    "time of sender and receiver for one message in seconds, or auto"),            \
        GIVEN_PARAM(given, GIVEN_REG_COST, "reg_cost",                                             \
                    "time to register memory in seconds, or auto"),                                \
        GIVEN_PARAM(given, GIVEN_REG_GROWTH, "reg_growth",                                         \
                    "time to register one byte more in seconds, or auto")

/* Reads the texts. False: one of them is no number of at least 0, or none that the model takes, and
 * *error names it as a parameter of `btl`. */
bool given_read(struct given *given, const char *btl, struct model_error *error);

/* Puts what was given in place of what the ranges say, a bandwidth of 0 being an infinite one. */
void given_apply(const struct given *given, struct multilane_lane_range *ranges, uint32_t count);

#endif
