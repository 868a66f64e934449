/* SPDX-License-Identifier: BSD-3-Clause */
/* rndv-sample: a protocol that does nothing of its own. It shows what a new one takes;
 * test/sample/add says where it is named. It announces a message, and its data follow as those of
 * rndv-am. */
#include "protocol/common.h"

static int rndv_sample_start(struct send_request *request)
{
    return rndv_announce(request, route_lane(request->route, request->out.peer, 0), NULL, NULL);
}

const struct protocol rndv_sample = {
    .name = "rndv-sample",
    .method = WIRE_BY_SEND,
    .host_only = true,
    .post = post_by_request,
    .start = rndv_sample_start,
};
