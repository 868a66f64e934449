/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes the time of some messages, so that plans learn from it and reports can show it: one in 8 of
 * a route's first, later one in 256.
 *
 * The message carries the number of a timer; the receiver answers with its clock as soon as the
 * message is complete, if its receive was posted and had been looked for before (WIRE_TIME). On a
 * node both have one clock: the time is that of one way, whatever the answer takes. From another
 * host it is the time until the answer less that of a short message. In a stream it is that of nine
 * messages that follow each other, or of a whole window of two to nine, from the start of the first
 * to the end of the last, divided among them and those that were under way before. */
#ifndef MULTILANE_TIMER_H
#define MULTILANE_TIMER_H

#include "request/send_request.h"

void timers_begin(void);
void timers_end(void);

/* The route of a message that is not too short to be timed. It may be one that is tried. */
struct route *timer_route(struct outgoing *out, enum class_buffer buffer);

/* Counts the message and finds its route. */
static inline __opal_attribute_always_inline__ struct route *
outgoing_route(struct outgoing *out, enum class_buffer buffer)
{
    struct route *route = class_planned_for(peer_class_now(out->peer), buffer)->routes;
    if (OPAL_UNLIKELY(out->size >= route->untimed))
        return timer_route(out, buffer);
    (void) route_count(route, out->size);
    return route;
}

/* WIRE_TIME: a timed message is complete. One that is no longer known is ignored. */
void timer_answered(const struct peer *peer, const struct wire_time *time);

#endif
