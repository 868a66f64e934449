/* SPDX-License-Identifier: BSD-3-Clause */
/* What multilane-calibrate measures: one lane, several, and the cluster model. */
#ifndef TOOLS_CALIBRATE_MEASURE_H
#define TOOLS_CALIBRATE_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "session.h"
#include "tools/model/broadcast.h"
#include "tools/model/effective.h"

/* How much is measured. */
struct effort {
    double seconds;         /* for the whole, about */
    int rounds;             /* how often every size is visited */
    uint64_t largest_bytes; /* of a message */
};

#define SAMPLES_MAX 1024

/* More than this is not sent to a peer that does not receive. */
#define CALIBRATE_IN_FLIGHT_MOST (UINT64_C(16) << 20)

struct lane_samples {
    uint32_t index; /* in the peer's lanes */
    struct sample samples[MODEL_PROTOCOLS][SAMPLES_MAX];
    struct effective_curve curves[MODEL_PROTOCOLS];
    uint32_t taken, disturbed; /* of those taken, left out: see samples_steady */
    double unsteady; /* how far apart the times of one size were, in the median: 0.5 is 50 % */
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

/* What one registration of memory with a lane costs, anew and out of its cache; and, of one that
 * chooses, the copy into its fragments. */
void measure_registration(struct session *session, int peer, uint32_t index,
                          struct model_lane *lane);

/* Predictions beside measurements of broadcasts. */
struct measure_pair {
    uint64_t bytes;
    double measured_s, predicted_s;
};

/* Messages of several packets, of a size and in numbers that no line was fitted to, beside (2.6) of
 * one way and (2.7) of both ways at once. */
#define MEASURE_BLOCK_COUNTS 6
struct measure_block {
    uint32_t packets;
    double one_way_s, one_way_predicted_s;
    double exchange_s, exchange_predicted_s; /* predicted only where (2.7) may be used */
};
struct measure_blocks {
    uint64_t packet_bytes;
    struct cluster_point point; /* the parameters for such packets */
    struct measure_block blocks[MEASURE_BLOCK_COUNTS];
};
void measure_blocks(struct session *session, int peer, uint32_t lanes,
                    const struct cluster_model *model, struct measure_blocks *out);

/* Both until rank 0 knows that it is over. Room for MEASURE_BROADCAST_SIZES; returns how many. The
 * times are sorted. */
uint32_t measure_broadcast_pairs(const struct cluster_model *model, uint32_t processes,
                                 struct measure_broadcasts *broadcasts, struct measure_pair *pairs);

#endif
