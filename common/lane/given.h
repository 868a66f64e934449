/* SPDX-License-Identifier: BSD-3-Clause */
/* The former names of user_attributes.h, for one commit. */
#ifndef COMMON_LANE_GIVEN_H
#define COMMON_LANE_GIVEN_H

#include "common/lane/user_attributes.h"

#define given       user_attributes
#define given_read  user_attributes_read
#define given_apply user_attributes_apply
#define GIVEN_INIT                                                                                 \
    {                                                                                              \
        .texts = { NULL }                                                                          \
    }
#define GIVEN_PARAMS(given)                                                                        \
    {                                                                                              \
        "lane", PARAM_LANE, &(given), NULL                                                         \
    }

#endif
