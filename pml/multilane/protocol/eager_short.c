/* SPDX-License-Identifier: BSD-3-Clause */
/* eager-short: header and data in one send-immediate. */
#include "protocol.h"

#include <string.h>

static int eager_short_post(const struct outgoing *out, const struct route *route)
{
    unsigned char bytes[WIRE_EAGER_HEADER_MAX + EAGER_SHORT_MAX];
    size_t length = comm_write_match(out->comm, out->peer, bytes, WIRE_EAGER, out->sequence,
                                     out->tag, out->synchronous);
    outgoing_copy(out, bytes + length);
    return lane_send_copy(route_lane(route, out->peer, 0), bytes, length + out->size);
}

const struct protocol eager_short = {
    .name = "eager-short",
    .post = eager_short_post,
    .start = eager_start,
};
