/* SPDX-License-Identifier: BSD-3-Clause */
/* Reliable control messages: kept and tried again where the lane refuses them. Messages that
 * broken lanes return; and reports of striped bytes. */
#ifndef MULTILANE_CONTROL_H
#define MULTILANE_CONTROL_H

#include "peer/peer.h"

/* Sends a message of this type and body, now or from progress. */
void control_send(struct lane *lane, uint8_t type, const void *body, size_t length);
/* The same for a message that control_write has made. */
void control_send_message(struct lane *lane, const struct control_message *message);

/* The same, and calls `left` once when it has left; after `patience_ns` (0: never) also if it
 * has not, so that the owner does not wait for a peer that reads nothing. */
void control_send_owned(struct lane *lane, uint8_t type, const void *body, size_t length,
                        uint64_t patience_ns, lane_left left, void *owner);

/* A lane has broken, and the peer does not have this message: another lane carries a copy. */
bool control_returned(void *lane, uint8_t tag, const void *bytes, size_t length,
                      const void *payload, size_t payload_length);

/* Tries once: OMPI_SUCCESS; LANE_AGAIN: nothing was done; or an error. */
int control_try(struct lane *lane, const struct control_message *message);

/* --- striped bytes ---------------------------------------------------------------------------- */

/* Reports the striped bytes received on each lane; the peer computes the speed of its lanes from
 * them (stripe.h). */

/* A counted piece arrived on a lane (null: on no lane of the peer). Reports now and then, on the
 * same lane. */
void received_on_lane(struct lane *lane, size_t size);

/* A message is complete: reports the rest. */
void received_flush(struct peer *peer);

#endif
