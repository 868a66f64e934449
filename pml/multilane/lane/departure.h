/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes that a lane has accepted and not handed over yet, and who is told when it has. A BTL knows
 * a departure by a number: so a callback that comes twice, after its error was returned, or when
 * the peer is lost, as some of tcp's do, finds nothing, and an owner is told once. */
#ifndef MULTILANE_DEPARTURE_H
#define MULTILANE_DEPARTURE_H

#include "common/compat/pml.h"

#include "base/handle.h"

struct lane;
struct peer;

/* Who is told, once, that bytes have left, or, with an error, that they never will. It may send and
 * complete requests; no lock of ours is held. */
typedef void (*lane_left)(void *owner, int status);

void departures_init(void);
void departures_fini(void);

/* Sets the descriptor's callback. `left`, which may be null, will be called once, unless
 * departure_revoke forgets it first. `is_in_place`: the lane reads the owner's memory until then.
 * False: there is no memory. */
bool departure_begin(struct lane *lane, struct peer *peer, mca_btl_base_descriptor_t *descriptor,
                     bool is_in_place, lane_left left, void *owner, struct wire_handle *departure);
/* False: its callback has come. */
bool departure_revoke(struct wire_handle departure);

/* Is anything under way from its owner's memory? */
bool departures_in_place(const struct lane *lane);

/* The peer is lost: the owners of all departures to it are told, in an error, but of those in
 * place: lane_stop_in_place. No lock is held. */
void departures_lost(const struct peer *peer);

#endif
