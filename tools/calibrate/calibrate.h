/* SPDX-License-Identifier: BSD-3-Clause */
/* multilane-calibrate: what its parts share. Rank 0 decides and measures; every other rank does
 * what rank 0 orders. */
#ifndef TOOLS_CALIBRATE_H
#define TOOLS_CALIBRATE_H

#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>

#include "common/lane/profile.h"
#include "common/model/effective.h"
#include "multilane/measure.h"

/* How much is measured. */
struct effort {
    double seconds;         /* for the whole, about */
    int rounds;             /* how often every size is visited */
    uint64_t largest_bytes; /* of a message */
};

/* --- orders.c: what ranks do together ----------------------------------------------------------
 */

enum order_kind {
    ORDER_END,
    ORDER_TRIPS,     /* there and back */
    ORDER_STREAM,    /* many from rank 0, one answer */
    ORDER_STREAM_IN, /* many to rank 0 */
    ORDER_EXCHANGE,  /* both at once */
    ORDER_DEAF,      /* sleep, and only then receive as many as rank 0 has sent meanwhile */
    ORDER_BROADCAST  /* by packets along a binomial tree of all ranks */
};

struct order {
    int kind;
    int protocol;   /* to force, or MULTILANE_MEASURE_PLANNED */
    uint32_t lanes; /* likewise, 0 for all */
    int count;
    bool walks; /* the messages lie one after another, as the packets of one do, from `at` on */
    uint64_t bytes, at;
};

struct session {
    const struct multilane_measure *pml; /* null: another PML, nothing is forced */
    int rank, ranks;
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

/* Between two messages that arrive, in the last quarter of a stream: a network lets the first ones
 * through faster than it can go on, by what its buffers and shapers hold. 8 messages or more. */
double session_gap_in(struct session *session, int peer, const struct order *order);

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

/* --- measure.c: what is measured of one lane or all ---------------------------------------------
 */

#define SAMPLES_MAX 1024

/* More than this is not sent to a peer that does not receive. */
#define CALIBRATE_IN_FLIGHT_MOST (UINT64_C(16) << 20)

struct lane_samples {
    uint32_t index; /* in the peer's lanes */
    struct cluster_sample samples[MODEL_PROTOCOLS][SAMPLES_MAX];
    struct effective_curve curves[MODEL_PROTOCOLS];
    uint32_t taken, disturbed; /* of those taken, left out: see cluster_steady */
};

typedef void (*progress_function)(double part, const char *what);

/* Every protocol of one lane, sizes by turns. */
void measure_lane(struct session *session, int peer, uint32_t index, const struct effort *effort,
                  double seconds, progress_function progress, struct lane_samples *out);

/* Bandwidth of a window of large messages over these lanes, bytes a second. */
double measure_bandwidth(struct session *session, int peer, uint32_t lanes,
                         const struct effort *effort);

/* What broadcasts of some sizes took, each several times. */
#define MEASURE_BROADCAST_SIZES 7
#define MEASURE_BROADCAST_TURNS 9
struct measure_broadcasts {
    double taken_s[MEASURE_BROADCAST_SIZES][MEASURE_BROADCAST_TURNS];
    int turns[MEASURE_BROADCAST_SIZES];
};
static inline int measure_broadcast_packets(int size)
{
    return 8 << size;
}

/* The parameters of the cluster model over these lanes; the copies are those of this process.
 * `broadcasts`, if not null, takes place among all ranks at the same time. */
bool measure_cluster(struct session *session, int peer, uint32_t lanes, uint64_t packet_bytes,
                     struct cluster_model *model, struct measure_broadcasts *broadcasts,
                     struct model_error *error);

/* What one registration of memory with a lane costs, anew and out of its cache. */
void measure_registration(struct session *session, int peer, uint32_t index,
                          struct model_lane *lane);

/* Predictions beside measurements, of messages both ways at once and of broadcasts. */
struct measure_pair {
    uint64_t bytes;
    double measured_s, predicted_s;
};

uint32_t measure_exchange(struct session *session, int peer, const struct effort *effort,
                          struct cluster_sample *samples, uint32_t room);

/* Room for MEASURE_BROADCAST_SIZES; returns how many. The times are sorted. */
uint32_t measure_broadcast_pairs(const struct cluster_model *model, uint32_t processes,
                                 struct measure_broadcasts *broadcasts, struct measure_pair *pairs);

/* --- report.c: what people see ------------------------------------------------------------------
 */

/* One lane at one placement: what was measured and what was made of it. */
struct lane_result {
    struct model_lane lane;
    struct lane_samples samples;
    struct effective_quality quality[MODEL_PROTOCOLS];
    bool fitted;
    struct model_error why; /* not fitted: why not */
};

void report_lane(FILE *out, const struct lane_result *result,
                 const struct model_surroundings *around);
void report_pairs(FILE *out, const char *what, const struct measure_pair *pairs, uint32_t count);
void report_cluster(FILE *out, const char *lane, const struct cluster_model *model);

/* An SVG: points as measured, lines as fitted, the plan's envelope, its switch points, and below
 * how much slower than the fastest the plan's choice was measured at each size. */
bool report_plot(const char *name, const struct lane_result *results, uint32_t count,
                 const struct model_surroundings *around, struct model_error *error);

#endif
