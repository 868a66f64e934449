/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends control messages that may be lost. */
#include "peer/control_message.h"

bool control_send_bare(struct lane *lane, uint8_t type, const void *body, size_t length)
{
    struct control_message message;
    control_write(&message, lane->peer, type, body, length);
    int rc = lane_send_plain(lane, message.bytes, message.length, NULL, NULL);
    return rc == LANE_LEFT || rc == LANE_UNDER_WAY;
}
