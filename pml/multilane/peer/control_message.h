/* SPDX-License-Identifier: BSD-3-Clause */
/* Control messages as they stand on the wire: the one place that writes them. */
#ifndef MULTILANE_CONTROL_MESSAGE_H
#define MULTILANE_CONTROL_MESSAGE_H

#include "peer/peer.h"

struct control_message {
    size_t length;
    unsigned char bytes[WIRE_CONTROL_MAX];
};

/* Writes the base of a header to this peer, and our name if it needs that; returns the end. */
static inline unsigned char *peer_write_base(const struct peer *peer, void *at, uint8_t type,
                                             uint8_t flags)
{
    struct wire_base *base = at;
    *base = (struct wire_base){
        .type = type, .flags = flags | (peer->foreign ? WIRE_NAMED : 0), .from = multilane.me.vpid};
    unsigned char *end = (unsigned char *) (base + 1);
    if (OPAL_UNLIKELY(peer->foreign)) {
        struct wire_name name = {.jobid = multilane.me.jobid, .vpid = multilane.me.vpid};
        __builtin_memcpy(end, &name, sizeof(name));
        end += sizeof(name);
    }
    return end;
}

/* Adds bytes behind what is written. */
static inline void control_append(struct control_message *message, const void *bytes, size_t length)
{
    if (length)
        __builtin_memcpy(message->bytes + message->length, bytes, length);
    message->length += length;
}

/* Writes a message of this type with this body, which may be empty. */
static inline void control_write(struct control_message *message, const struct peer *peer,
                                 uint8_t type, const void *body, size_t length)
{
    message->length = (size_t) (peer_write_base(peer, message->bytes, type, 0) - message->bytes);
    control_append(message, body, length);
}

/* Sends it as it is on just this lane: what the lane refuses or loses is lost. False: it refuses.
 */
bool control_send_bare(struct lane *lane, uint8_t type, const void *body, size_t length);

#endif
