/* SPDX-License-Identifier: BSD-3-Clause */
/* Flow control: how much unmatched data a sender may leave with a receiver. Arithmetic only, so
 * that test/unit/flow_model.c can try all orders of events; credit.c and send_queue.c put it
 * between processes.
 *
 * Both ends count in units, by the same rule, what a message takes of the receiver until a receive
 * is found for it: flow_cost. The sender adds it up as it numbers its messages, in one word with
 * the number, so that both are drawn in one order; the sum after a message is its mark. The
 * receiver tells up to which mark messages may come: what was matched, plus a window. So a message
 * may go if its mark is not beyond the limit: nothing else is to be looked at, and no message can
 * overtake an older one that waits, because its mark is larger.
 *
 * Beyond the limit an eager message goes as a RTS, which takes a little, as long as there is room
 * for RTS (a limit of its own, further on); what it saved is added to the limits here, since the
 * receiver will never count it. Small ones go as they are, in the same room. Beyond that all wait.
 *
 * Why no process waits for ever. Whatever went is matched when its receive is posted, in order, as
 * nothing older is missing; that moves the limit on. The only wait left is that of a receive for a
 * message that may not come because the room is taken by messages that no receive asks for yet. MPI
 * demands that it comes: so, where such a receive (or probe) waits and the sender has used up its
 * limits, the receiver lets a few more RTS come, again and again. The bound on memory is exceeded
 * in that case alone, by headers, and slowly: a receive may wait all the time for what comes last.
 *
 * Half of the memory is divided among all peers, so that each may begin; the other half is a pool
 * for those that send. Whenever a sender is told its limits, its window becomes what is left in the
 * pool and what it has of it, divided by two: among k that send each comes to have 1/(k+1) of the
 * pool, which is always left with something for the next one (known from switches as a dynamic
 * threshold). Limits only move on, so a window that has to shrink waits until messages are matched;
 * what a sender was promised and does not use stays its own. That no process waits for ever does
 * not depend on how large a window is. */
#ifndef MULTILANE_FLOW_H
#define MULTILANE_FLOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FLOW_UNIT_BYTES 64u

/* What keeping any message takes, its data aside: more than struct inbound. */
#define FLOW_MESSAGE_UNITS 12u

/* So much data lies inside of that; more takes the next power of two, with a header, of Open MPI's
 * bucket allocator. */
#define FLOW_INSIDE_BYTES 128u
#define FLOW_BUCKET_BYTES 16u

/* A message up to here takes hardly more than its RTS would, and no answer: it goes like one. */
#define FLOW_SMALL_UNITS (2 * FLOW_MESSAGE_UNITS)

/* What is let come at a time where a receive waits: RTS. */
#define FLOW_EXTENSION_UNITS (64 * FLOW_MESSAGE_UNITS)

/* Marks and limits wrap: no two that are compared are further apart than half of what they count.
 */
static inline uint32_t flow_cost(size_t eager_bytes)
{
    if (eager_bytes <= FLOW_INSIDE_BYTES)
        return FLOW_MESSAGE_UNITS;
    uint64_t last = eager_bytes + FLOW_BUCKET_BYTES - 1;
    return FLOW_MESSAGE_UNITS +
           (uint32_t) ((UINT64_C(2) << (63 - __builtin_clzll(last))) / FLOW_UNIT_BYTES);
}

static inline bool flow_is_within(uint32_t mark, uint32_t limit)
{
    return (int32_t) (limit - mark) >= 0;
}

/* What a process promises every peer from the first moment: `units` of eager data, RTS beyond it.
 */
static inline uint32_t flow_headers(uint32_t window)
{
    return window / 8 + 64 * FLOW_MESSAGE_UNITS;
}

/* What all peers share: units that no window has. */
struct flow_pool {
    _Atomic uint32_t left;
};

/* The window that each of `peers` has in any case, and the pool, so that `bytes` are not exceeded.
 */
uint32_t flow_divide(uint64_t bytes, uint32_t peers, struct flow_pool *pool);

/* --- the sender's end --- */

struct flow_out {
    _Atomic uint32_t limit; /* marks up to here may go as they are; send.c reads it */
    uint32_t headers;       /* up to here as RTS */
    uint32_t refunded; /* what RTS in place of eager messages have saved: the receiver's limits do
                        * not know of it */
};

enum flow_verdict { FLOW_GO, FLOW_GO_AS_RTS, FLOW_WAIT };

/* How may a message of this mark and cost go? FLOW_GO_AS_RTS: it must, and was accounted for. */
enum flow_verdict flow_try(struct flow_out *out, uint32_t mark, uint32_t cost);

/* Can a receiver have told these limits, after what was drawn up to the mark `drawn`? */
bool flow_is_possible(const struct flow_out *out, uint32_t drawn, uint32_t limit, uint32_t headers);

/* The receiver's limits have moved. False: these are older than those that we know. */
bool flow_moved(struct flow_out *out, uint32_t drawn, uint32_t limit, uint32_t headers);

/* --- the receiver's end --- */

struct flow_in {
    uint32_t matched;      /* units of messages that have met their receives */
    uint32_t held;         /* and of those that are here and have not */
    uint32_t told;         /* `matched` when the sender was last told */
    uint32_t step;         /* it is told after so much */
    uint32_t least;        /* of the window */
    uint32_t window;       /* of eager data; what is more than the least was taken from the pool */
    uint32_t headers;      /* and of RTS beyond it */
    uint32_t extra;        /* and beyond that, where a receive waited */
    bool extends;          /* one waits: there is to be more of that */
    uint32_t told_limit;   /* the limits that the sender knows: for eager data, */
    uint32_t told_headers; /* and for RTS */
};

void flow_in_init(struct flow_in *in, uint32_t window, uint32_t headers);

/* A message that met its receive at once. True: the sender is to be told. */
static inline bool flow_matched(struct flow_in *in, uint32_t cost)
{
    in->matched += cost;
    return in->matched - in->told >= in->step;
}

/* One that is kept, and then meets it, or is thrown away. True: the sender is to be told. */
bool flow_hold(struct flow_in *in, struct flow_pool *pool, uint32_t cost);

static inline bool flow_release(struct flow_in *in, uint32_t cost)
{
    in->held -= cost;
    return flow_matched(in, cost);
}

/* What to tell. */
void flow_tell(struct flow_in *in, struct flow_pool *pool, uint32_t *limit, uint32_t *headers);
/* This sender has nothing to send any more, or for a while: what it has of the pool goes back. The
 * limits that it knows stay: if it comes again, and what it was promised is others' by then, the
 * bound on memory is exceeded by what it has not used. */
void flow_end(struct flow_in *in, struct flow_pool *pool);

/* Has the sender used up all that it knows of? To be asked after each message: one that met its
 * receive at once takes of the same room, and moves limits on only with others like it. */
bool flow_is_exhausted(const struct flow_in *in);
/* The next limits let some more RTS come. */
static inline void flow_extend(struct flow_in *in)
{
    in->extends = true;
}

#endif
