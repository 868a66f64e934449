/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends a message in pieces, one fragment each, and offers what no lane takes to its receiver; for
 * eager-zcopy and rndv-am; and what a receiver takes. */
#ifndef MULTILANE_PIECES_H
#define MULTILANE_PIECES_H

#include "request/recv_request.h"
#include "request/send_request.h"

/* The sender's end of a message whose rest the receiver may take (base/offer_word.h): a large
 * message moves as long as either end calls MPI. */

/* May a message of so many bytes find no room on the lane now? */
bool offer_is_worth(const struct lane *lane, size_t size);

/* Prepares an offer of the message, if a lane to the peer has such words and copies, and the
 * message lies in one piece. Once for each start; again without effect. */
void offer_make(struct send_request *request);

static inline bool offer_is_made(const struct send_request *request)
{
    return request->offer.control;
}

/* What the receiver is sent of it. */
void offer_describe(const struct send_request *request, struct wire_offer *to);

/* The bytes from `offset` on may be taken. After that only offer_resume says who moves them. */
void offer_leave(struct send_request *request, size_t offset);

/* Before the start of a piece of the request's transfer, see lane/transfer.h: true where nothing is
 * left to do, and *rc is the result. */
bool offer_resume(struct send_request *request, struct transfer *transfer, size_t offset,
                  size_t *size, int *rc);

/* The send has ended. */
void offer_end(struct send_request *request);

/* Sends `header` and up to *size bytes from `offset` of the message, in place where the lane
 * can; sets *size to what it took. With `all` less than *size is an error: the header says that
 * nothing follows. Calls transfer_piece_done of the request's transfer at the end. */
int piece_send(struct send_request *request, struct lane *lane, const void *header,
               size_t header_length, size_t offset, size_t *size, bool all);

/* Sends up to *size bytes from `offset` of the message, as WIRE_DATA, on the lane where they arrive
 * first. `copy`: where the bytes from `offset` on lie, if not in the user's memory, else null. */
int piece_send_data(struct send_request *request, struct transfer *transfer, const char *copy,
                    size_t offset, size_t *size);

/* --- taking.c --------------------------------------------------------------------------------- */

/* A receiver takes the rest of an offered message when nothing more comes: then its sender
 * computes. */

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
