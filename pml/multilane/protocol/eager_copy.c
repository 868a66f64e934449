/* SPDX-License-Identifier: BSD-3-Clause */
/* eager-copy: the message is copied into the lane, or into one fragment of it. */
#include "protocol/common.h"

#include "plan/stripe.h"

static int eager_copy_post(const struct outgoing *out, const struct route *route)
{
    struct lane *lane = stripe_whole(route, out->peer, out->size);
    if (OPAL_UNLIKELY(!lane))
        return LANE_AGAIN;
    return OPAL_LIKELY(eager_in_place(out, lane)) ? LANE_LEFT : eager_post_packed(out, lane);
}

const struct protocol eager_copy = {
    .name = "eager-copy",
    .post = eager_copy_post,
    .start = eager_start,
};
