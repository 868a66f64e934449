/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends a message in pieces, one fragment each; for eager-zcopy and rndv-am. */
#ifndef MULTILANE_PIECES_H
#define MULTILANE_PIECES_H

#include "request/send_request.h"

/* Sends `header` and up to *size bytes from `offset` of the message, in place where the lane
 * can; sets *size to what it took. With `all` less than *size is an error: the header says that
 * nothing follows. Calls transfer_piece_done of the request's transfer at the end. */
int piece_send(struct send_request *request, struct lane *lane, const void *header,
               size_t header_length, size_t offset, size_t *size, bool all);

/* Sends up to *size bytes from `offset` of the message, as WIRE_DATA, on the lane where they arrive
 * first. `copy`: where the bytes from `offset` on lie, if not in the user's memory, else null. */
int piece_send_data(struct send_request *request, struct transfer *transfer, const char *copy,
                    size_t offset, size_t *size);

#endif
