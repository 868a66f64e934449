/* SPDX-License-Identifier: BSD-3-Clause */
/* The communication model of a whole cluster: seven parameters, and what they predict of messages
 * between two processes. */
#ifndef TOOLS_MODEL_CLUSTER_H
#define TOOLS_MODEL_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/cost.h"
#include "common/model/error.h"

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
    struct cost_line copy;             /* M_ctm: from cache to memory */
    struct cluster_latency latency[CLUSTER_LATENCIES_MAX]; /* L, by processes, growing */
    uint32_t latency_count;                                /* at least 1 */
    uint64_t packet_bytes;                                 /* b: a longer message goes in packets */
    uint32_t processes;                                    /* that a broadcast is predicted for */
};

/* The parameters as numbers, for packets of one size among p processes. */
struct cluster_point {
    double send_overhead_s;    /* O_s */
    double gap_s;              /* g = max(g_s, g_r) */
    double latency_s;          /* L(m, p); between measured p it is interpolated */
    double receive_overhead_s; /* O_r */
    double user_overhead_s;    /* U_r */
};

void cluster_at(const struct cluster_model *model, uint64_t packet_bytes, uint32_t processes,
                struct cluster_point *point);

/* k: the packets of a message; one for an empty message. */
uint64_t cluster_packets(const struct cluster_model *model, uint64_t bytes);

/* (2.6), and (2.7), which is the same provided that O_s + O_r + U_r < g < L. */
double cluster_one_way(const struct cluster_point *point, uint64_t packets);
bool cluster_full_duplex(const struct cluster_point *point);

/* Binomial broadcast of `packets` packets to `processes` processes, without the copy at the root
 * (ctm of the message, which both formulas add first). */
struct cluster_broadcast {
    bool undisturbed;   /* (2.8) applies, not (2.9) */
    double printed_s;   /* the formula as printed, log2 p not rounded */
    double simulated_s; /* packet by packet through the tree: the truth */
};

/* The simulation walks every packet at every process; more than this would take minutes. */
#define CLUSTER_STEPS_MAX (UINT64_C(1) << 24)

/* False with a sentence: processes or packets are 0, both together are more than CLUSTER_STEPS_MAX,
 * or there is no memory. */
bool cluster_broadcast(const struct cluster_point *point, uint32_t processes, uint64_t packets,
                       struct cluster_broadcast *result, struct error_text *error);

#endif
