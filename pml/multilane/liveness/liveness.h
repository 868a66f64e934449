/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known of a peer with lanes that break and return their messages: when it answered last,
 * and what it was asked. Made when one of its lanes is to be looked at; watch.c does that. */
#ifndef MULTILANE_LIVENESS_H
#define MULTILANE_LIVENESS_H

#include "liveness/liveness_state.h"

/* The peer's, made if there is none. Null: no memory. */
struct liveness *liveness_of(struct peer *peer);
/* Frees those of all peers. */
void livenesses_fini(void);

/* With the lock held. True: progress will print the change, and make plans with the lane or
 * without it. */
bool lane_state_set(struct liveness *liveness, struct lane *lane, enum lane_state state,
                    const char *why);

/* WIRE_ASK: answers on this lane. */
void liveness_asked(struct lane *lane, const struct wire_ask *ask);
/* WIRE_HEARD: the peer answers. False: it was not asked that. */
bool liveness_heard(struct peer *peer, struct lane *lane, const struct wire_ask *answer);

/* The peer is lost: its lanes return nothing any more. */
void liveness_end(struct liveness *liveness);

/* Progress looks at the lane's peer until there is nothing to do: the lane is proven, or it is left
 * out. */
void lane_watch(struct lane *lane);

/* A BTL reports the lane as broken: marks it, and progress acts on it. False: no other lane takes
 * over, so what it carried may be lost. */
bool lane_break(struct lane *lane, const char *what, const char *why);

#endif
