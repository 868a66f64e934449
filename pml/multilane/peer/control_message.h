/* SPDX-License-Identifier: BSD-3-Clause */
/* The one place that writes control messages. */
#ifndef MULTILANE_CONTROL_MESSAGE_H
#define MULTILANE_CONTROL_MESSAGE_H

#include "peer/peer.h"

struct control_message {
    size_t length;
    unsigned char bytes[WIRE_CONTROL_MAX];
};

/* Writes the base of a header to this peer, with this process's name if needed; returns the end. */
static inline unsigned char *peer_write_base(const struct peer *peer, void *at, uint8_t type,
                                             uint8_t flags)
{
    struct wire_base *base = at;
    *base = (struct wire_base){.type = type,
                               .flags = flags | (peer->is_of_other_job ? WIRE_NAMED : 0),
                               .from = multilane.me.vpid};
    unsigned char *end = (unsigned char *) (base + 1);
    if (OPAL_UNLIKELY(peer->is_of_other_job)) {
        struct wire_name name = {.jobid = multilane.me.jobid, .vpid = multilane.me.vpid};
        __builtin_memcpy(end, &name, sizeof(name));
        end += sizeof(name);
    }
    return end;
}

/* Appends bytes. */
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

/* Sends it on this lane only, once. False: the lane has refused it. */
bool control_send_bare(struct lane *lane, uint8_t type, const void *body, size_t length);

#endif
