/* SPDX-License-Identifier: BSD-3-Clause */
/* The communication model of a whole cluster: eight parameters, what they predict, how they are
 * fitted to samples. */
#ifndef COMMON_MODEL_CLUSTER_H
#define COMMON_MODEL_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/cost.h"
#include "common/model/error.h"

enum cluster_copy {
    CLUSTER_CACHE_TO_CACHE,
    CLUSTER_CACHE_TO_MEMORY,
    CLUSTER_MEMORY_TO_MEMORY,
    CLUSTER_COPIES
};

#define CLUSTER_LATENCIES_MAX 16

/* The latency among a number of processes; it depends on how many share the network. */
struct cluster_latency {
    uint32_t processes;
    struct cost_line line;
};

/* Every parameter is linear in the bytes of one packet. */
struct cluster_model {
    struct cost_line send_overhead;    /* O_s: the sender's processor */
    struct cost_line send_gap;         /* g_s: between two packets that leave */
    struct cost_line receive_gap;      /* g_r: between two packets that arrive */
    struct cost_line receive_overhead; /* O_r: the receiver's processor, as it arrives */
    struct cost_line user_overhead;    /* U_r: the receiver itself */
    struct cost_line copy[CLUSTER_COPIES];
    struct cluster_latency latency[CLUSTER_LATENCIES_MAX]; /* L, by processes, growing */
    uint32_t latency_count;                                /* at least 1 */
    uint64_t packet_bytes;                                 /* b: a longer message goes in packets */
    uint64_t buffer_bytes;                                 /* B_L; 0: not known */
};

/* The parameters as numbers, for packets of one size among p processes. */
struct cluster_point {
    double send_overhead_s;    /* O_s */
    double gap_s;              /* g = max(g_s, g_r) */
    double latency_s;          /* L(m, p); between measured p it is interpolated */
    double receive_overhead_s; /* O_r */
    double user_overhead_s;    /* U_r */
};

bool cluster_model_check(const struct cluster_model *model, struct model_error *error);

void cluster_at(const struct cluster_model *model, uint64_t packet_bytes, uint32_t processes,
                struct cluster_point *point);

/* k: the packets of a message; one for an empty message. */
uint64_t cluster_packets(const struct cluster_model *model, uint64_t bytes);

/* (2.6), and (2.7), which is the same provided that O_s + O_r + U_r < g < L. */
double cluster_one_way(const struct cluster_point *point, uint64_t packets);
double cluster_exchange(const struct cluster_point *point, uint64_t packets);
bool cluster_full_duplex(const struct cluster_point *point);

/* The condition that chooses between (2.8), true, and (2.9): O_r + U_r + O_s < 2 max(g, O_s). */
bool cluster_broadcast_undisturbed(const struct cluster_point *point);

/* Binomial broadcast of `packets` packets to `processes` processes, without the copy at the root
 * (ctm of the message, which both formulas add first). */
struct cluster_broadcast {
    bool undisturbed;   /* (2.8) applies, not (2.9) */
    double printed_s;   /* the formula as printed, log2 p not rounded */
    double corrected_s; /* for any p and any gap: the simulated time where undisturbed, else a bound
                         * from below; broadcast.c explains each change */
    double simulated_s; /* packet by packet through the tree: the truth */
};

/* The simulation walks every packet at every process; more than this would take minutes. */
#define CLUSTER_STEPS_MAX (UINT64_C(1) << 24)

/* False with a sentence: processes or packets are 0, both together are more than CLUSTER_STEPS_MAX,
 * or there is no memory. */
bool cluster_broadcast(const struct cluster_point *point, uint32_t processes, uint64_t packets,
                       struct cluster_broadcast *result, struct model_error *error);

/* One measured time for one size. */
struct cluster_sample {
    uint64_t bytes;
    double seconds;
};

struct cluster_fit {
    struct cost_line line;
    double residual_median; /* median of |measured - line| / measured */
    double residual_worst;
    uint32_t outliers;    /* samples that hardly count */
    uint64_t break_bytes; /* the first size after which another line holds; 0: none seen */
};

/* Takes out the samples that took more than CLUSTER_STEADY times the fastest of their size, and
 * returns how many are left. What disturbs a measurement only ever adds time: another process, a
 * processor that is moved. Where it lasts, half the samples can be of one kind and half of the
 * other, and no line is near both. */
#define CLUSTER_STEADY 1.5
uint32_t cluster_steady(struct cluster_sample *samples, uint32_t count);

/* Fits fixed + bytes * growth to the samples by least squares in which a sample counts less the
 * farther it lies off, relative to its time. Neither part may be negative; one that would be
 * becomes 0. Refused, with a sentence: fewer than 2 sizes, a time that is not
 * positive, a median residual above `most_residual` (0.1 is a good bound). A change of protocol
 * inside the samples is reported in break_bytes and is a reason to fit both parts, not an error by
 * itself. */
bool cluster_fit(const struct cluster_sample *samples, uint32_t count, double most_residual,
                 struct cluster_fit *fit, struct model_error *error);

/* Times that bend: a line for each of a few neighbouring ranges of sizes. */
#define CLUSTER_PIECES_MAX 8

struct cluster_piece {
    uint64_t first_bytes;   /* the smallest and */
    uint64_t largest_bytes; /* the largest size that was measured and that the line is for */
    struct cluster_fit fit;
};

/* Divides the samples where that explains them best, into as few ranges as describe them well and
 * at most `most`, and fits each. Returns how many, or 0 with the sentence of the range that cannot
 * be fitted. */
uint32_t cluster_fit_pieces(const struct cluster_sample *samples, uint32_t count, uint32_t most,
                            double most_residual, struct cluster_piece pieces[CLUSTER_PIECES_MAX],
                            struct model_error *error);

/* The median of the samples of each size, sizes growing; returns how many sizes. `out` has room for
 * all samples. */
uint32_t cluster_medians(const struct cluster_sample *samples, uint32_t count,
                         struct cluster_sample *out);

#endif
