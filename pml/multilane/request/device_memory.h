/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages whose buffer is device memory: what a send and a receive do about it. */
#ifndef MULTILANE_DEVICE_MEMORY_H
#define MULTILANE_DEVICE_MEMORY_H

#include "request/recv_request.h"
#include "request/send_request.h"
#include "device/staging.h"
#include "device/view.h"

/* Where the whole message lies in one piece, in memory of the host's or, `*is_device`, of a
 * device's; null: in several. */
static inline char *device_send_place(const struct send_request *request, bool *is_device)
{
    *is_device = !request->out.data && request->view;
    return OPAL_UNLIKELY(*is_device) ? view_contiguous(request->view) : (char *) request->out.data;
}

static inline char *device_receive_place(const struct recv_request *request, bool *is_device)
{
    *is_device = request->view != NULL;
    return OPAL_UNLIKELY(*is_device) ? view_contiguous(request->view) : request->data;
}

/* A send from memory that is not the host's is about to start: brings into host memory what the
 * message's protocol takes from there, all of an eager or buffered one. An MPI error class where
 * that is not possible; the message has no number yet, so nobody waits for it. */
int device_send_begin(struct send_request *request);
void device_send_end(struct send_request *request);

/* A receive has met its message: `wanted` bytes go to device memory. True: `request->view` is set,
 * and all of it goes there by device_receive_write. False: it is the host's. */
bool device_receive_begin(struct recv_request *request);

/* Puts a piece of the message on its way to the device. */
void device_receive_write(struct recv_request *request, size_t offset, const char *bytes,
                          size_t length);

/* No piece will come any more. False: all are there, the receive is complete; true: copies, or
 * flushes of what lanes wrote to the device, are under way, and the last one calls
 * recv_request_complete again. */
bool device_receive_end(struct recv_request *request);

#endif
