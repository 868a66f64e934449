/* SPDX-License-Identifier: BSD-3-Clause */
/* A receive looks for its message, or waits for it. */
#ifndef MULTILANE_POSTING_H
#define MULTILANE_POSTING_H

#include "request/recv_request.h"

/* Looks for a message that has come already; else posts the receive. */
void receive_start(struct recv_request *request);
/* A new receive, started, with less to do for most. Null: no memory. */
struct recv_request *receive_post(void *buffer, size_t count, ompi_datatype_t *datatype, int source,
                                  int tag, ompi_communicator_t *comm);

#endif
