/* SPDX-License-Identifier: BSD-3-Clause */
/* Meets peers: checks a process and finds the lanes to it. */
#ifndef MULTILANE_CONTACT_H
#define MULTILANE_CONTACT_H

#include "peer/peer.h"

/* Called when a peer is met, before any message to it, so that upper layers set up their part;
 * with the component's lock held. `window`: what the peer promises (flow.h). Set once at start. */
struct contact_events {
    void (*met)(struct peer *peer, uint32_t window);
};

extern __attribute__((visibility("hidden"))) struct contact_events contact_events;

/* The peer of that name, met now if it was not. Null: no such process, or no way to talk to it,
 * which is reported. `proc` may be null. */
struct peer *peer_contact(opal_process_name_t name, ompi_proc_t *proc);

/* The sender of a message, from its base and, with WIRE_NAMED, its name. */
struct peer *peer_of_sender(const struct wire_base *base, const struct wire_name *name);

#endif
