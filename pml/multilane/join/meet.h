/* SPDX-License-Identifier: BSD-3-Clause */
/* A kept message meets its receive. */
#ifndef MULTILANE_MEET_H
#define MULTILANE_MEET_H

#include "match/inbound.h"
#include "request/recv_request.h"

/* The message goes to this receive, which it was matched with and which holds nothing else. Frees
 * the inbound, now or when its last part is there. No lock is held. */
void inbound_take(struct inbound *inbound, struct recv_request *receiver);

/* The same for one of which parts are missing: what has gathered goes to the receive, and later
 * parts will. With the peer's lock held. */
void inbound_attach(struct inbound *inbound, struct recv_request *receiver);

#endif
