/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes of lanes as the user writes them: BTL[:device]:key=value,... with ; between lanes. The
 * keys are those of lane files for attributes: latency, bandwidth, overhead, reg_cost, reg_growth
 * in seconds and bytes a second, or get_latency for one way alone; use; group: lanes with one
 * number other than 0 share what carries them, and shared: what the lane's device carries for all
 * processes of a node. A lane whose bandwidth the user gives is shared only where the user says so
 * too. */
#ifndef COMMON_LANE_ATTR_H
#define COMMON_LANE_ATTR_H

#include <stdbool.h>

#include "common/model/lane.h"

/* Is the text well formed? If not, *error names the item, the key or the value that is wrong. */
bool attr_check(const char *text, struct error_text *error);

/* Applies what `text`, which was checked, says of the lane `btl` with this device name (null:
 * none). A value holds for every size. */
void attr_apply(const char *text, const char *btl, const char *device, struct model_lane *lane);

/* The parameters btl_NAME_lane_* of our own lanes, one for each user's key in the table of
 * attributes. */
struct attr_parameters {
    const char *texts[MODEL_ATTRIBUTES]; /* null: auto */
};

/* Is each auto or a value that the model takes? If not, *error names it as a parameter of `btl`. */
bool attr_parameters_check(const struct attr_parameters *parameters, const char *btl,
                           struct error_text *error);

/* Applies what one of them says. */
void attr_parameter_apply(int attribute, const char *text, struct model_lane *lane);

#endif
