/* SPDX-License-Identifier: BSD-3-Clause */
/* Departures: bytes that a lane has accepted and that are still in this process. When they
 * leave, the owner is told, exactly once. The BTL's callback names a departure by its handle, so
 * a second callback finds nothing: tcp may call back after it has returned an error, or after
 * the peer is lost. */
#ifndef MULTILANE_DEPARTURE_H
#define MULTILANE_DEPARTURE_H

#include "common/compat/pml.h"

#include "base/handle.h"

struct lane;
struct peer;

/* Tells the owner, once, that the bytes have left, or, with an error, that they never will. It
 * may send and complete requests; the caller holds no lock of the PML. */
typedef void (*lane_left)(void *owner, int status);

void departures_init(void);
void departures_fini(void);

/* Sets the descriptor's callback. It calls `left`, if not null, once, unless departure_revoke
 * comes first. `is_in_place`: the lane reads the owner's memory until then. False: no memory. */
bool departure_begin(struct lane *lane, struct peer *peer, mca_btl_base_descriptor_t *descriptor,
                     bool is_in_place, lane_left left, void *owner, struct wire_handle *departure);
/* Removes the departure without a call of `left`. False: the callback was first. */
bool departure_revoke(struct wire_handle departure);

/* Is a departure under way whose lane reads its owner's memory? */
bool departures_in_place(const struct lane *lane);

/* The peer is lost: tells the owners of all departures to it, with an error; but not of those in
 * place, which lane_close ends. No lock is held. */
void departures_lost(const struct peer *peer);

#endif
