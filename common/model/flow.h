/* SPDX-License-Identifier: BSD-3-Clause */
/* Flow control: how much unmatched data a sender may leave with a receiver. Arithmetic only, so
 * that test/unit/flow_model.c can try all orders of events; credit.c and send_queue.c connect it to
 * the messages between processes.
 *
 * Both ends count in units, and by the same rule (flow_cost), what a message takes at the receiver
 * until a receive matches it. The sender adds up the units of its messages in the same word as
 * their sequence number, so that both have one order; the sum after a message is the message's
 * mark. The receiver tells the sender a limit: what it has matched plus a window. A message may go
 * if its mark is not beyond the limit. This one comparison is enough, and no message overtakes an
 * older one that waits, because its mark is larger.
 *
 * Beyond the limit an eager message goes as an RTS, which takes few units, while there is room for
 * RTS (a second, higher limit). The units that this saves are added to the limits at the sender,
 * because the receiver will never count them. Small messages go unchanged, within the same second
 * limit. Beyond the second limit all messages wait.
 *
 * Why no process waits for ever. Every message that was sent is matched when its receive is posted,
 * because all older ones have arrived; that raises the limit. One case is left: a receive waits for
 * a message that may not be sent, because messages that no receive has asked for take all the room.
 * MPI demands that it arrives. So, where such a receive (or probe) waits and the sender has used up
 * its limits, the receiver allows a few more RTS, again and again. Only this case exceeds the bound
 * on memory, by headers only, and slowly: the awaited message may be the last one.
 *
 * Half of the memory is divided among all peers, so that each may begin; the other half is a
 * pool for the peers that send. Whenever the receiver tells a sender its limits, the sender's
 * window becomes half of (what is left in the pool plus what the sender already has of it): of k
 * senders each gets 1/(k+1) of the pool, and something is always left for the next one (switches
 * call this a dynamic threshold). Limits only grow, so a window shrinks only as messages are
 * matched; what a sender was promised and does not use stays its own. The size of the windows
 * does not matter for the proof above. */
#ifndef COMMON_MODEL_FLOW_H
#define COMMON_MODEL_FLOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FLOW_UNIT_BYTES 64u

/* Units of any kept message without its data: more than struct inbound. */
#define FLOW_MESSAGE_UNITS 12u

/* Up to this size the data lies inside struct inbound. Larger data is allocated: a power of two,
 * a header included, from Open MPI's bucket allocator. */
#define FLOW_INSIDE_BYTES 128u
#define FLOW_BUCKET_BYTES 16u

/* A message of at most this cost takes hardly more than its RTS would, and needs no answer, so
 * it counts like an RTS. */
#define FLOW_SMALL_UNITS (2 * FLOW_MESSAGE_UNITS)

/* How many units of RTS the receiver allows at a time while a receive waits. */
#define FLOW_EXTENSION_UNITS (64 * FLOW_MESSAGE_UNITS)

/* Marks and limits wrap around: two that are compared are always less than half of the range
 * apart. */
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

/* The units for RTS beyond the window that a process promises every peer from the start. */
static inline uint32_t flow_headers(uint32_t window)
{
    return window / 8 + 64 * FLOW_MESSAGE_UNITS;
}

/* The units that all peers share and that are in no peer's window. */
struct flow_pool {
    _Atomic uint32_t left;
};

/* Divides `bytes`: returns the window that each of `peers` always has, and fills the pool. */
uint32_t flow_divide(uint64_t bytes, uint32_t peers, struct flow_pool *pool);

/* The bound of eager messages: the largest message that a sender always has room for while none
 * of its messages is kept, if receivers keep at most `bytes`. */
uint64_t flow_eager_max(uint64_t bytes);

/* --- the sender's end --- */

struct flow_out {
    _Atomic uint32_t limit; /* messages up to this mark go unchanged */
    uint32_t headers;       /* and up to here as RTS */
    uint32_t refunded;      /* units saved by RTS; the receiver does not count them */
};

enum flow_verdict { FLOW_GO, FLOW_GO_AS_RTS, FLOW_WAIT };

/* May a message of this mark and cost go, and how? FLOW_GO_AS_RTS: only as RTS; the saved units
 * are already added to the limits. */
enum flow_verdict flow_try(struct flow_out *out, uint32_t mark, uint32_t cost);

/* Can a receiver have sent these limits, after messages up to the mark `drawn`? */
bool flow_is_possible(const struct flow_out *out, uint32_t drawn, uint32_t limit, uint32_t headers);

/* Takes over new limits of the receiver. False: both are older than the known ones. */
bool flow_moved(struct flow_out *out, uint32_t drawn, uint32_t limit, uint32_t headers);

/* --- the receiver's end --- */

struct flow_in {
    uint32_t matched;         /* units of messages that a receive has matched */
    uint32_t held;            /* and of those that arrived and wait for a receive */
    uint32_t granted;         /* `matched` at the last message to the sender */
    uint32_t step;            /* tell the sender after so many more */
    uint32_t least;           /* the smallest window */
    uint32_t window;          /* for eager data; what exceeds `least` came from the pool */
    uint32_t headers;         /* and for RTS beyond it */
    uint32_t extra;           /* and beyond that, because a receive waited */
    bool extends;             /* a receive waits: raise `extra` with the next limits */
    uint32_t granted_limit;   /* the limits that the sender knows: for eager data, */
    uint32_t granted_headers; /* and for RTS */
    uint32_t most;            /* the most units that the sender ever had room for */
};

void flow_in_init(struct flow_in *in, uint32_t window, uint32_t headers);

/* A receive has matched a message at its arrival. True: tell the sender its limits. */
static inline bool flow_matched(struct flow_in *in, uint32_t cost)
{
    in->matched += cost;
    return in->matched - in->granted >= in->step;
}

/* May a sender that respects its limits send an eager message of this size? */
bool flow_may_come(const struct flow_in *in, uint64_t eager_bytes);

/* flow_hold: a message is kept. flow_release: a receive matches it, or it is thrown away. True:
 * tell the sender its limits. */
bool flow_hold(struct flow_in *in, struct flow_pool *pool, uint32_t cost);

static inline bool flow_release(struct flow_in *in, uint32_t cost)
{
    in->held -= cost;
    return flow_matched(in, cost);
}

/* Computes the limits to tell the sender. */
void flow_grant(struct flow_in *in, struct flow_pool *pool, uint32_t *limit, uint32_t *headers);
/* The sender has nothing to send for now: its part of the pool goes back. The limits that it
 * knows stay: if it uses them after other senders got the units, the bound on memory is exceeded
 * by that much. */
void flow_end(struct flow_in *in, struct flow_pool *pool);

/* Has the sender used up all limits that it knows? Ask after each message, also after one that
 * was matched at arrival: it took room, and the limits move only after several. */
bool flow_is_exhausted(const struct flow_in *in);
/* The next limits allow some more RTS. */
static inline void flow_extend(struct flow_in *in)
{
    in->extends = true;
}

#endif
