/* SPDX-License-Identifier: BSD-3-Clause */
/* Pieces of a message as fragments, which eager-zcopy and rndv-am share. */
#ifndef MULTILANE_PIECES_H
#define MULTILANE_PIECES_H

#include "request/send_request.h"

/* Sends `header` and up to *size bytes of the message from `offset` on, in place where the lane
 * can; sets *size to what it took. With `all`, an error if that would be less than *size: the
 * header says that nothing follows. The end of the piece is reported to the request's transfer. */
int piece_send(struct send_request *request, struct lane *lane, const void *header,
               size_t header_length, size_t offset, size_t *size, bool all);

/* A piece of what the receiver has asked for, on the lane where it arrives first: up to *size bytes
 * from `offset` on of what `convertor` describes, which begins at `start` of the message. */
int piece_send_data(struct send_request *request, struct transfer *transfer,
                    opal_convertor_t *convertor, size_t start, size_t offset, size_t *size);

#endif
