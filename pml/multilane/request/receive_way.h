/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives a matched message. One that its sender has announced it proposes to move in a way that
 * it has chosen without knowing the memory that it goes to, and says what its own is; the receiver
 * knows both, and chooses. */
#ifndef MULTILANE_RECEIVE_WAY_H
#define MULTILANE_RECEIVE_WAY_H

#include "request/recv_request.h"

/* No lock is held; the request may be complete and freed on return. */
void recv_request_take(struct recv_request *request, const struct arrival *arrival);

#endif
