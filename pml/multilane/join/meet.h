/* SPDX-License-Identifier: BSD-3-Clause */
/* Gives a kept message to its receive. */
#ifndef MULTILANE_MEET_H
#define MULTILANE_MEET_H

#include "match/inbound.h"
#include "request/recv_request.h"

/* Gives the message to the matched receive. Frees the inbound, now or with its last part. True: it
 * had not come whole. No lock is held. */
bool inbound_take(struct inbound *inbound, struct recv_request *receiver);

/* The same for a message with missing parts: moves what has gathered; later parts follow. With
 * the peer's lock held. */
void inbound_attach(struct inbound *inbound, struct recv_request *receiver);

#endif
