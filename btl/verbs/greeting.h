/* SPDX-License-Identifier: BSD-3-Clause */
/* The datagrams that make connections and end them, and the queue pair that carries them. */
#ifndef MULTILANE_VERBS_GREETING_H
#define MULTILANE_VERBS_GREETING_H

#include "btl/verbs/verbs.h"

#define GREETING_VERSION 6u
/* Buffers for datagrams, which share the port's completion queues. One to come that finds none is
 * lost, and sent again after a pause: a job's first exchange brings one of each process. */
#define GREETINGS_IN  512u
#define GREETINGS_OUT 16u

enum greeting_kind {
    GREETING_HELLO,  /* from one end of a lane to the other */
    GREETING_FENCE,  /* the sender's queue pair is broken: break the one connected with it, */
    GREETING_FENCED, /* the answer: it is broken. Both kinds come by any port. */
    GREETING_REFUSED /* to a hello (heard_qpn): the sender's device makes no queue pair for it */
};

struct greeting {
    uint16_t version;
    uint16_t kind; /* enum greeting_kind */
    uint32_t bytes;
    uint64_t to_nonce;   /* of the process it is for */
    uint64_t from_nonce; /* of the sender */
    opal_process_name_t from;
    uint64_t received;  /* of a fence: messages of the connection that it is about that have come to
                           the sender, and no others will; or COUNT_UNKNOWN */
    uint32_t from_port; /* the lane is that of this port of the sender (index in its record) */
    uint32_t to_port;   /* and of this port of the receiver */
    uint32_t heard_qpn; /* the receiver's queue pair; 0: nothing was heard of it yet */
    uint32_t is_sure;   /* the sender knows that the receiver's queue pair is ready */
    struct verbs_end end;
};

/* What one about a fence says: all up to the sender's queue pair. Multilane's PML carries it too.
 */
#define GREETING_FENCE_BYTES (offsetof(struct greeting, end.qpn) + sizeof(uint32_t))

_Static_assert(GREETING_FENCE_BYTES <= MULTILANE_FENCE_BYTES, "it fits a note");

enum sending {
    SENDING_DONE,
    SENDING_LATER,  /* all buffers are in use */
    SENDING_NOWHERE /* no path leads there now, or the device does not take it */
};

/* Under peer->lock: a GREETING_HELLO to this peer. */
void verbs_greeting_fill(const verbs_peer_t *peer, struct greeting *greeting);
/* Under peer->lock. Sends it by the port that `peer` belongs to; it may be about another lane. */
enum sending verbs_greeting_send(verbs_peer_t *peer, const struct greeting *greeting);
/* Under peer->lock: no pause before the next attempt to make the path. */
void verbs_path_works(verbs_peer_t *peer);
/* Copies the datagram in buffer `index`, and posts the buffer again. False: it is no greeting. */
bool verbs_greeting_take(struct verbs_module *module, uint32_t index, const struct ibv_wc *wc,
                         struct greeting *heard);

/* fence.c: a GREETING_FENCE or GREETING_FENCED has come. */
void verbs_fence_heard(const struct greeting *heard);
void verbs_fenced_heard(const struct greeting *heard);

#endif
