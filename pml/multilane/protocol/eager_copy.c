/* SPDX-License-Identifier: BSD-3-Clause */
/* eager-copy: the message is copied into the lane, or into one fragment of it. */
#include "protocol/common.h"

static int eager_copy_post(const struct outgoing *out, const struct route *route)
{
    return eager_post(out, route, eager_post_packed);
}

const struct protocol eager_copy = {
    .name = "eager-copy",
    .post = eager_copy_post,
    .start = eager_start,
};
