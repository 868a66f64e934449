/* SPDX-License-Identifier: BSD-3-Clause */
/* Pieces of a transfer: as fragments, which eager-zcopy and rndv-am share, and by get and put. */
#ifndef MULTILANE_PIECES_H
#define MULTILANE_PIECES_H

#include "send_request.h"

/* Sends `header` and up to *size bytes of the message from `offset` on, in place where the lane
 * can; sets *size to what it took. With `all`, an error if that would be less than *size: the
 * header says that nothing follows. The end of the piece is reported to the request's transfer. */
int piece_send(struct send_request *request, struct lane *lane, const void *header,
               size_t header_length, size_t offset, size_t *size, bool all);

/* The callback of a piece that is got or put; its context is the transfer. */
void piece_copied(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                  void *local_address, mca_btl_base_registration_handle_t *local_handle,
                  void *context, void *data, int status);

/* What a BTL's get or put returned, in the words of a transfer: it may be busy in two ways. */
int piece_copy_started(int rc);

#endif
