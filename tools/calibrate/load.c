/* SPDX-License-Identifier: BSD-3-Clause */
/* Who talks to whom, and how much longer it takes. */
#include "load.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/model/fit.h"

#define PAIRS_MOST 128
#define TURNS      9
#define TRIPS      200

/* Pairs beside rank 0 and its peer, as that pair lies: both on one node, or each on one of the two.
 */
static int pairs_find(const struct session *session, int peer, enum profile_placement placement,
                      struct session_pair pairs[PAIRS_MOST])
{
    int here[PAIRS_MOST], there[PAIRS_MOST], heres = 0, theres = 0, count = 0;
    for (int rank = 1; rank < session->ranks; rank++) {
        if (rank == peer)
            continue;
        if (session->nodes[rank] == session->nodes[0] && heres < PAIRS_MOST)
            here[heres++] = rank;
        else if (session->nodes[rank] == session->nodes[peer] && theres < PAIRS_MOST)
            there[theres++] = rank;
    }
    if (placement == PROFILE_HOST)
        for (; count < heres && count < theres; count++)
            pairs[count] = (struct session_pair){here[count], there[count]};
    else
        for (; 2 * count + 1 < heres; count++)
            pairs[count] = (struct session_pair){here[2 * count], here[2 * count + 1]};
    return count;
}

/* How much longer a message takes beside so many other pairs: the median of turns with and without.
 */
static double delay_of(struct session *session, int peer, uint64_t bytes,
                       const struct session_pair *pairs, int count)
{
    double with_s[TURNS], without_s[TURNS];
    const struct order order = {
        .protocol = MULTILANE_MEASURE_PLANNED, .count = TRIPS, .bytes = bytes};
    for (int turn = 0; turn < TURNS; turn++) {
        without_s[turn] = session_trips(session, peer, &order);
        with_s[turn] = session_trips_beside(session, peer, &order, pairs, count);
    }
    return median_of(with_s, TURNS) - median_of(without_s, TURNS);
}

void load_measure(struct session *session, int peer, enum profile_placement placement,
                  struct cluster_model *model)
{
    struct session_pair pairs[PAIRS_MOST];
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int count = pairs_find(session, peer, placement, pairs);
    int a_pair = placement == PROFILE_HOST ? 1 : 2; /* its processes on a node */
    for (int all = 2; all <= count + 1 && all * a_pair <= processors; all *= 2) {
        double empty_s = delay_of(session, peer, 0, pairs, all - 1);
        double packet_s = delay_of(session, peer, model->packet_bytes, pairs, all - 1);
        cluster_load_add(model, 2 * (uint32_t) all, empty_s, packet_s);
    }
}
