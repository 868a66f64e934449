/* SPDX-License-Identifier: BSD-3-Clause */
/* The data phase of rndv-staged. */
#ifndef MULTILANE_RNDV_STAGED_H
#define MULTILANE_RNDV_STAGED_H

#include "request/send_request.h"

/* As rndv_am_move, for device memory, which goes through slots of host memory. */
void rndv_staged_move(struct send_request *request, size_t from, size_t end);

#endif
