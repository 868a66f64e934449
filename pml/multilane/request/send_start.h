/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts a send, and handles the receiver's answers and MPI_Cancel. */
#ifndef MULTILANE_SEND_START_H
#define MULTILANE_SEND_START_H

#include "request/send_request.h"

/* Starts the send; `is_numbered`: out.sequence is drawn already; `leaves`: the caller does not wait
 * for its end. An error leaves the request
 * unstarted. */
int send_request_start(struct send_request *request, bool is_numbered, bool leaves);

/* RTR; ACK or (not `taken`) NACK. False: they fit no request. */
bool send_request_ready(struct peer *peer, struct lane *lane, const struct wire_rtr *rtr,
                        const unsigned char *key);
bool send_request_acknowledged(struct peer *peer, struct wire_handle handle, bool taken);

int send_request_cancel(ompi_request_t *ompi, int flag);

#endif
