/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes the time of some messages, for the explain report: of each route the second, the fourth,
 * ... the 128th, and from there on one in 128.
 *
 * A rendezvous is timed from its start to the end of the send, when the receiver has told of it or
 * the last bytes have left. An eager send ends before its message arrives, so the message asks for
 * an answer, as a synchronous one does, and is timed until that comes; the send does not wait. */
#ifndef MULTILANE_SAMPLE_H
#define MULTILANE_SAMPLE_H

#include "peer/peer.h"
#include "request/send_request.h"

/* Times messages in this job, where it writes a report. */
void samples_begin(void);
void samples_end(void);

/* The request is about to start its protocol; it is complete. */
void sample_request_begin(struct send_request *request);
void sample_request_end(struct send_request *request);

/* The peer has answered a message. True: one that was timed. */
bool sample_answered(const struct peer *peer, struct wire_handle handle, bool is_taken);

#endif
