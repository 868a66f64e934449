/* SPDX-License-Identifier: BSD-3-Clause */
/* What the user says of our own lanes by the parameters btl_NAME_lane_*, one for each user's key in
 * the table of attributes. */
#ifndef COMMON_LANE_USER_ATTRIBUTES_H
#define COMMON_LANE_USER_ATTRIBUTES_H

#include "common/model/attribute.h"
#include "multilane/extension.h"

struct user_attributes {
    const char *texts[MODEL_ATTRIBUTES]; /* the parameters' values; null: auto */
    double values[MODEL_ATTRIBUTES];     /* set by user_attributes_read; below 0: auto */
};

/* Reads the texts. False: one of them is no number of at least 0, or none that the model takes, and
 * *error names it as a parameter of `btl`. */
bool user_attributes_read(struct user_attributes *user, const char *btl, struct model_error *error);

/* Puts what the user said in place of what the ranges say, a bandwidth of 0 being an infinite one.
 */
void user_attributes_apply(const struct user_attributes *user, struct multilane_lane_range *ranges,
                           uint32_t count);

#endif
