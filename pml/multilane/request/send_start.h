/* SPDX-License-Identifier: BSD-3-Clause */
/* What happens to a send: it starts, its receiver answers, it is cancelled. */
#ifndef MULTILANE_SEND_START_H
#define MULTILANE_SEND_START_H

#include "request/send_request.h"

/* Gives the message to its protocol; `is_numbered`: out.sequence was drawn already. An error leaves
 * the request unstarted. */
int send_request_start(struct send_request *request, bool is_numbered);

/* Control messages of the receiver. False: they do not fit any request of ours. */
bool send_request_ready(struct peer *peer, struct lane *lane, const struct wire_rtr *rtr,
                        const unsigned char *key);
bool send_request_acknowledged(struct peer *peer, struct wire_handle handle, bool taken);

/* MPI_Cancel. */
int send_request_cancel(ompi_request_t *ompi, int flag);

#endif
