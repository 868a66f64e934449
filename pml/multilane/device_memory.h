/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages whose buffer is device memory: what a send and a receive do about it. */
#ifndef MULTILANE_DEVICE_MEMORY_H
#define MULTILANE_DEVICE_MEMORY_H

#include "recv_request.h"
#include "send_request.h"
#include "staging.h"

/* Looks at the buffer of a send that is about to start, and brings into host memory what the
 * message's protocol takes from there: all of an eager or buffered one. An MPI error class where
 * that is not possible; the message has no number yet, so nobody waits for it. */
int device_send_begin(struct send_request *request);
void device_send_end(struct send_request *request);

/* A receive has met its message: `wanted` bytes go to device memory. True: `request->view` is set,
 * and all of it goes there by device_receive_write. False: it is the host's. */
bool device_receive_begin(struct recv_request *request);

/* Puts a piece of the message on its way to the device. */
void device_receive_write(struct recv_request *request, size_t offset, const char *bytes,
                          size_t length);

/* No piece will come any more. False: all are there, the receive is complete; true: copies are
 * under way, and the last one calls recv_request_complete again. */
bool device_receive_end(struct recv_request *request);

#endif
