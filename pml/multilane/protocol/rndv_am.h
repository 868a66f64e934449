/* SPDX-License-Identifier: BSD-3-Clause */
/* The data phase of rndv-am, which other rendezvous fall back to. */
#ifndef MULTILANE_RNDV_AM_H
#define MULTILANE_RNDV_AM_H

#include "request/send_request.h"

/* Sends the bytes [from, end) as active messages to the request's receiver. */
void rndv_am_move(struct send_request *request, size_t from, size_t end);

#endif
