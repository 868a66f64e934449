/* SPDX-License-Identifier: BSD-3-Clause */
/* The lanes of a peer: taken over from the BML, lost, found again, made anew. */
#ifndef MULTILANE_PEER_LANES_H
#define MULTILANE_PEER_LANES_H

#include "common/memory/memory.h"
#include "peer/peer.h"
#include "plan/costs.h"

/* Publishes a record at each lane that can (publish of the extension), and reads that of a process;
 * 0: nothing.
 */
void lanes_publish(const void *record, size_t length);
size_t lanes_published_read(ompi_proc_t *proc, void *record, size_t room);

/* Does the job have a BTL of ours whose lanes may break, so that a process that is never met may be
 * lost unnoticed? */
bool lanes_may_break(void);

/* Does what the user says of the lanes to the process leave one for each use of a lane? False: not,
 * which is said with what to do. True of a process that no lane is known to. */
bool lanes_have_all_uses(ompi_proc_t *proc);

/* Where btl/shm carries all messages of a node, Open MPI's shared memory is looked at once in eight
 * calls of progress: only one-sided operations may go by it. */
void lanes_replaced_rest(ompi_proc_t **procs, size_t count);

/* Adds the lanes that the BML has toward the peer and that are new, and plans. False: no lane
 * reaches the peer. With the component's lock held. */
bool peer_take_lanes(struct peer *peer);

/* A message to or from the peer lies on a device, at either end: its plan follows what is known of
 * devices. No lock is held. */
void peer_follow_devices(struct peer *peer);

/* The same for one from memory of this process, which may be the first of its device. */
static inline void peer_use_device(struct peer *peer, const struct memory *memory)
{
    device_costs_use(memory);
    peer_follow_devices(peer);
}

/* A message of `size` bytes goes to the peer. The first large ones ask the kernel for the round
 * trips of connections over tcp, which are made by the first message on each, and the plan follows.
 * No lock is held. */
#define NETWORK_ASK_BYTES ((size_t) 16 << 10)
#define NETWORK_ASKS_MOST 8

void peer_ask_network(struct peer *peer);

/* A large message goes to the peer or comes from it: its lanes and plan follow what their BTL says
 * of further connections. No lock is held. */
void peer_follow_links(struct peer *peer);

static inline void peer_check_links(struct peer *peer)
{
    const _Atomic uint32_t *changes =
        atomic_load_explicit(&peer->link_changes, memory_order_relaxed);
    if (changes && OPAL_UNLIKELY(atomic_load_explicit(changes, memory_order_relaxed) !=
                                 atomic_load_explicit(&peer->links_followed, memory_order_relaxed)))
        peer_follow_links(peer);
}

static inline void peer_check_network(struct peer *peer, size_t size)
{
    if (OPAL_LIKELY(size < NETWORK_ASK_BYTES))
        return;
    peer_check_links(peer);
    if (OPAL_UNLIKELY(atomic_load_explicit(&peer->network_asks, memory_order_relaxed) <
                      NETWORK_ASKS_MOST))
        peer_ask_network(peer);
}

/* The same as peer_take_lanes for a message over a BTL that is not among the peer's lanes: the lane
 * may be new. Null: the BML does not know it. No lock is held. */
struct lane *peer_late_lane(struct peer *peer, const mca_btl_base_module_t *btl);

/* Plans without the lane for that cause, or with it again, for later messages. One that is not down
 * goes on where no other lane is left, or the others make no plan. False: no other lane carries. No
 * lock is held. */
bool lane_leave_out(struct lane *lane, enum lane_cause cause, bool is_out);

/* Removes all lanes; the peer must be contacted again. */
void peer_forget_lanes(struct peer *peer);

/* Makes a broken lane that returns messages anew; false: not now. */
bool lane_renew(struct lane *lane);

#endif
