/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts receives. */
#ifndef MULTILANE_POSTING_H
#define MULTILANE_POSTING_H

#include "request/recv_request.h"

/* Takes a message that has come, or posts the receive. */
void receive_start(struct recv_request *request);
/* Makes and starts a receive, by a short path where possible. Null: no memory. */
struct recv_request *receive_post(void *buffer, size_t count, ompi_datatype_t *datatype, int source,
                                  int tag, ompi_communicator_t *comm);

#endif
