/* SPDX-License-Identifier: BSD-3-Clause */
/* The lanes of a peer: taken over from the BML, lost, found again, made anew. */
#ifndef MULTILANE_PEER_LANES_H
#define MULTILANE_PEER_LANES_H

#include "common/memory/memory.h"
#include "peer/peer.h"

/* Leaves a note at each lane that can (note_leave), and reads what a process left so; 0: nothing.
 */
void lanes_note_leave(const void *note, size_t length);
size_t lanes_note_read(ompi_proc_t *proc, void *note, size_t room);

/* Does the job have a stock BTL that may lose messages, so that a lost process goes unnoticed? */
bool lanes_may_lose(void);

/* Adds the lanes that the BML has toward the peer and that are new, and plans. False: no lane
 * reaches the peer. With the component's lock held. */
bool peer_take_lanes(struct peer *peer);

/* A message to the peer comes from a device. Its plan then follows what is known of devices. No
 * lock is held. */
void peer_meet_device(struct peer *peer, const struct memory *memory);

/* The same for a message over a BTL that is not among the peer's lanes: the lane may be new.
 * Null: the BML does not know it. No lock is held. */
struct lane *peer_late_lane(struct peer *peer, const mca_btl_base_module_t *btl);

/* Plans without the lane, or with it again, for later messages. False: no lane to this peer is
 * left. No lock is held. */
bool lane_set_lost(struct lane *lane, bool is_lost);

/* Removes all lanes; the peer must be met again. */
void peer_forget_lanes(struct peer *peer);

/* Makes a broken renewable lane anew; false: not now. */
bool lane_renew(struct lane *lane);

#endif
