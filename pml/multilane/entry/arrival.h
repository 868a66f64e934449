/* SPDX-License-Identifier: BSD-3-Clause */
/* What arrives from the lanes. */
#ifndef MULTILANE_ARRIVAL_H
#define MULTILANE_ARRIVAL_H

/* Registers the receive callback with the BML. */
int arrivals_listen(void);

#endif
