/* SPDX-License-Identifier: BSD-3-Clause */
/* eager-short: header and data in one send-immediate. */
#include "protocol/common.h"

/* Up to this size a copy on the stack costs less than what a lane does to copy a message itself.
 * With its headers it fits the fast path of vader, a quarter of a 4 KiB box. */
#define STACK_BYTES 936

/* Apart, so that only those that need the room on the stack take it. */
static __attribute__((noinline)) int eager_short_copy(const struct outgoing *out, struct lane *lane)
{
    unsigned char bytes[WIRE_EAGER_HEADER_MAX + STACK_BYTES];
    if (!lane->sendi || out->size > STACK_BYTES)
        return eager_post_packed(out, lane);
    size_t length = comm_write_match(out->comm, out->peer, bytes, WIRE_EAGER, out->sequence,
                                     out->tag, out->answer);
    outgoing_copy(out, bytes + length);
    return lane_send_immediately(lane, bytes, length + out->size);
}

static int eager_short_post(const struct outgoing *out, const struct route *route)
{
    return eager_post(out, route, eager_short_copy);
}

const struct protocol eager_short = {
    .name = "eager-short",
    .post = eager_short_post,
    .start = eager_start,
};
