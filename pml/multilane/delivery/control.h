/* SPDX-License-Identifier: BSD-3-Clause */
/* Control messages that have to arrive: what a lane refuses is kept and tried again, and what it
 * may lose travels in an envelope. */
#ifndef MULTILANE_CONTROL_H
#define MULTILANE_CONTROL_H

#include "peer/control_message.h"

/* Sends a message of this type with this body in any case. */
void control_send(struct lane *lane, uint8_t type, const void *body, size_t length);
/* The same for one that is written. */
void control_send_message(struct lane *lane, const struct control_message *message);

/* The same, and `left` is called once when it has left; after `patience_ns` (0: never) also if it
 * has not, so that the owner does not wait for a peer that takes nothing. */
void control_send_owned(struct lane *lane, uint8_t type, const void *body, size_t length,
                        uint64_t patience_ns, lane_left left, void *owner);

/* The same for what the peer waits for, having called lane_expect there for all its lanes. */
void control_send_expected(struct lane *lane, const struct control_message *message);

/* Once: OMPI_SUCCESS, or LANE_AGAIN and nothing is done, or an error. */
int control_try(struct lane *lane, const struct control_message *message);

#endif
