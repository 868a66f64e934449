/* SPDX-License-Identifier: BSD-3-Clause */
/* A receiver takes the rest of an offered message when nothing more comes: then its sender
 * computes. */
#ifndef MULTILANE_TAKING_H
#define MULTILANE_TAKING_H

#include "request/recv_request.h"

/* The message has its receive: from now on progress looks at it. With the peer's lock held. */
void taking_begin(struct offered *offered);

/* The sender of this receive's RTS offers all of it. Nothing is taken before taking_asked: a thread
 * that takes may end the receive, and until the RTR is out another one works at it. Between the two
 * the receive may have ended otherwise; then there is no such offer any more. No lock is held. */
void taking_offered(struct recv_request *request, const struct wire_offer *offer);
void taking_asked(struct peer *peer, struct recv_request *request, const struct wire_offer *offer);

/* Brings the offered messages of this peer on, in a call that may be the last one for long: until
 * they are there, or nothing comes and nothing can be taken. No lock is held. */
void taking_drive(struct peer *peer);

#endif
