/* SPDX-License-Identifier: BSD-3-Clause */
/* What the ranks of multilane-calibrate do together: rank 0 sends orders and measures, every other
 * rank does what rank 0 orders. */
#ifndef TOOLS_CALIBRATE_SESSION_H
#define TOOLS_CALIBRATE_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "multilane/measure.h"

enum order_kind {
    ORDER_END,
    ORDER_TRIPS,     /* there and back */
    ORDER_STREAM,    /* many from rank 0, one answer */
    ORDER_STREAM_IN, /* many to rank 0 */
    ORDER_BLOCKS,    /* so many packets there, and as many back */
    ORDER_EXCHANGE,  /* so many packets both ways at once */
    ORDER_DEAF,      /* sleep, and only then receive as many as rank 0 has sent meanwhile */
    ORDER_BROADCAST, /* by packets along a binomial tree of all ranks */
    ORDER_PAIR       /* there and back between two other ranks, to keep the network busy */
};

struct order {
    int kind;
    int protocol;   /* to force, or MULTILANE_MEASURE_PLANNED */
    uint32_t lanes; /* likewise, 0 for all */
    int count;
    bool walks; /* the messages lie one after another, as the packets of one do, from `at` on */
    uint64_t bytes, at;
    int partner; /* ORDER_PAIR */
};

/* Two ranks other than 0. */
struct session_pair {
    int one, other;
};

struct session {
    const struct multilane_measure *pml; /* null: another PML, nothing is forced */
    int rank, ranks;
    int *nodes;           /* at rank 0: of each rank, the first rank on its node */
    char *send, *receive; /* of buffer_bytes each */
    uint64_t buffer_bytes;
    uint64_t walked; /* where in both the next order that walks begins: in no cache any more */
};

bool session_begin(struct session *session, uint64_t buffer_bytes, struct model_error *error);
void session_end(struct session *session);

/* Ranks other than 0: until rank 0 orders the end. */
void session_obey(struct session *session);

/* Rank 0 orders the end, and takes plans back to what they were. */
void session_dismiss(struct session *session);

/* The messages of this order lie behind those of the last one that walked. */
void order_walk(struct session *session, struct order *order);

/* Rank 0's part of an order to `peer`; seconds. Below 0: it could not be forced. */
double session_trips(struct session *session, int peer, const struct order *order);
double session_stream(struct session *session, int peer, const struct order *order);

/* session_trips while other pairs exchange messages of the same size. */
double session_trips_beside(struct session *session, int peer, const struct order *order,
                            const struct session_pair *pairs, int count);

/* Between two messages that arrive, in the last quarter of a stream: a network lets the first ones
 * through faster than it can go on, by what its buffers and shapers hold. 8 messages or more. */
double session_gap_in(struct session *session, int peer, const struct order *order);

/* A message of order->count packets one way, and one each way at once; at most
 * SESSION_BLOCK_MOST. */
#define SESSION_BLOCK_MOST 64
double session_block(struct session *session, int peer, const struct order *order);
double session_exchange(struct session *session, int peer, const struct order *order);

/* Seconds that a packetised broadcast from rank 0 takes until the last rank has it all. */
double session_broadcast(struct session *session, uint64_t packet_bytes, int packets);

/* The processors' parts of one message to and from the peer, and what the lane takes while the peer
 * is deaf. */
struct session_overheads {
    double send_s, arrive_s, receive_s;
};
bool session_overheads(struct session *session, int peer, const struct order *order,
                       struct session_overheads *out);
uint64_t session_in_flight(struct session *session, int peer, const struct order *order,
                           uint64_t most_bytes);

double seconds_now(void);

/* Memory of its own from the system, with its pages: no cache of registrations knows it, and what
 * btl/verbs does not cache, the heap of some systems, it is not. Null: there is none. */
char *memory_new(size_t bytes);
void memory_free(char *memory, size_t bytes);

#endif
