/* SPDX-License-Identifier: BSD-3-Clause */
/* Meeting peers: whether a process can be talked to, and over what. */
#ifndef MULTILANE_CONTACT_H
#define MULTILANE_CONTACT_H

#include "peer/peer.h"

/* What the storeys above keep for a peer is set up when it is met, before any message can be sent
 * to it: called with the component's lock held, and what the peer lets us leave with it unmatched
 * (see flow.h). Handed down once, before a peer is met. */
struct contact_events {
    void (*met)(struct peer *peer, uint32_t window);
};

extern __attribute__((visibility("hidden"))) struct contact_events contact_events;

/* The peer of that name, with its lanes; made at first contact. Null if there is no such process,
 * or it cannot be talked to, which was said. `proc` may be null. */
struct peer *peer_contact(opal_process_name_t name, ompi_proc_t *proc);

/* The sender of a message: from the base and, if it is of another job, its name. */
struct peer *peer_of_sender(const struct wire_base *base, const struct wire_name *name);

#endif
