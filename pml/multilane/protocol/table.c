/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of protocols: by the list of the model, which knows what each needs and costs. A new
 * one is a file here and a line in that list; and below, if it brings a method of the wire. */
#include "base/protocol.h"

#define DECLARE(index, object) extern const struct protocol object;
MODEL_PROTOCOL_LIST(DECLARE)
extern const struct protocol rndv_device; /* in the place of others: over_device_lane */

#define ENTRY(index, object) [MODEL_##index] = &object,

struct protocols protocols = {.of_model = {MODEL_PROTOCOL_LIST(ENTRY)},
                              .of_method = {[WIRE_BY_SEND] = &rndv_am,
                                            [WIRE_BY_GET] = &rndv_get,
                                            [WIRE_BY_PUT] = &rndv_put,
                                            [WIRE_BY_BOTH] = &rndv_both,
                                            [WIRE_BY_DEVICE] = &rndv_device}};
