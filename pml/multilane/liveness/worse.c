/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds lanes that work and have become worse: a link that came up slower, a cable that loses one
 * packet in a hundred.
 *
 * Two numbers are watched of each of several lanes to a peer: how much slower it is than the
 * fastest other one, by what stripe.c measures while both carry parts of messages; and which part
 * of what it sends its kernel has to send again, beyond that of the others. Both are compared with
 * other lanes to the same peer, because busy processes and a busy receiver slow all of them. A lane
 * is worse when a number is beyond what was usual of it, by three times its spread, for
 * BEYOND_NS. It is named then. stripe.c weighs its speed anyhow; one so slow that the last pieces
 * of messages would wait for it goes to the reserve, which carries what no other lane can, and is
 * tried again later. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/own_page.h"
#include "contact/peer_lanes.h"
#include "liveness/liveness.h"
#include "plan/peer_class.h"
#include "plan/stripe.h"

#define SECOND UINT64_C(1000000000)

/* For how long, and how many samples, a number is beyond what is usual before it counts. */
#define BEYOND_NS      (5 * SECOND)
#define BEYOND_SAMPLES 2
/* So many samples make a history; the average is over the last ones, as many as that. */
#define SAMPLES_MIN 5
#define SAMPLES_MAX 32
/* A number may always be so far above its average: half the speed, 3 losses in 1000. */
#define SLOWNESS_LEAST 1.0
#define LOSS_LEAST     0.003
/* Less in a look says nothing of the speed; so few segments say nothing of the loss. */
#define SAMPLE_BYTES    (256u << 10)
#define SAMPLE_SEGMENTS 1000
/* A lane with less than a quarter of the fastest one's speed is waited for. */
#define SLOWNESS_WAITED 2.0
/* How long the reserve lasts before the lane is tried, at first and at most. */
#define RESERVE_NS     (60 * SECOND)
#define RESERVE_NS_MAX (16 * RESERVE_NS)

/* How many changes of one lane are printed. */
#define SAID_MAX 3

/* What the lanes did since the last look. */
struct sample {
    double bytes_s; /* 0: it carried too little */
    double loss;    /* below 0: likewise */
};

/* For the thread that has made them: worse_look. */
static struct lane_history *history_of(const struct lane *lane)
{
    return &atomic_load_explicit(&lane->peer->histories, memory_order_relaxed)[lane->index];
}

/* False: no memory. Later lanes have room as well. */
static bool histories_make(struct peer *peer)
{
    uint8_t count = peer_lane_count(peer), room = peer->lane_room > count ? peer->lane_room : count;
    if (!atomic_load_explicit(&peer->histories, memory_order_relaxed))
        atomic_store_explicit(&peer->histories, calloc(room, sizeof(struct lane_history)),
                              memory_order_release);
    return atomic_load_explicit(&peer->histories, memory_order_relaxed) != NULL;
}

/* --- samples ---------------------------------------------------------------------------------- */

/* Bytes that the lane has carried since the last look. */
static uint64_t carried(struct lane *lane, bool copies)
{
    uint64_t now = stripe_carried(lane, copies);
    uint64_t bytes = now - history_of(lane)->carried[copies];
    history_of(lane)->carried[copies] = now;
    return bytes;
}

/* Speeds are compared of messages, or of gets and puts: of what the peer has more. */
static void speeds_sample(struct peer *peer, struct sample *samples)
{
    uint64_t bytes[2][MODEL_LANES_MAX], all[2] = {0, 0};
    for (int i = 0; i < peer_lane_count(peer); i++)
        for (int copies = 0; copies < 2; copies++)
            all[copies] += bytes[copies][i] = carried(&peer->lanes[i], copies);
    bool copies = all[true] > all[false];
    for (int i = 0; i < peer_lane_count(peer); i++)
        samples[i].bytes_s = bytes[copies][i] >= SAMPLE_BYTES && !lane_is_lost(&peer->lanes[i])
                                 ? stripe_observed_speed(&peer->lanes[i], copies)
                                 : 0;
}

static bool repeats(const struct lane *lane, uint64_t *sent, uint64_t *repeated)
{
    return lane->extension && lane->extension->repeats &&
           lane->extension->repeats(lane->btl, lane->endpoint, sent, repeated);
}

/* Below 0: not enough was sent since the last one. */
static double loss_sample(struct lane *lane)
{
    struct lane_history *history = history_of(lane);
    uint64_t sent, repeated;
    if (!repeats(lane, &sent, &repeated))
        return -1;
    double loss = -1, segments = (double) (sent - history->sent);
    bool is_other = sent < history->sent; /* a new connection */
    if (!is_other && segments < SAMPLE_SEGMENTS)
        return -1;
    if (!is_other)
        loss = fmax(0, ((double) repeated - (double) history->repeated) / segments);
    history->sent = sent;
    history->repeated = repeated;
    return loss;
}

static double fastest_other(const struct peer *peer, const struct sample *samples, int index)
{
    double best = 0;
    for (int i = 0; i < peer_lane_count(peer); i++)
        if (i != index && samples[i].bytes_s > best)
            best = samples[i].bytes_s;
    return best;
}

/* Of the others; 0: nothing is known of them. */
static double least_loss(const struct peer *peer, const struct sample *samples, int index)
{
    double least = INFINITY;
    for (int i = 0; i < peer_lane_count(peer); i++)
        if (i != index && samples[i].loss >= 0 && samples[i].loss < least)
            least = samples[i].loss;
    return isinf(least) ? 0 : least;
}

/* --- one number ------------------------------------------------------------------------------- */

/* What is usual reaches so far to both sides of the average. */
static double past_reach(const struct lane_past *past, double least)
{
    return fmax(3 * past->spread, least);
}

/* Learns a number, but not more of it than is usual. */
static void past_feed(struct lane_past *past, double value, double least)
{
    double reach = past->samples < SAMPLES_MIN ? INFINITY : past_reach(past, least);
    double off = past->samples ? fmax(-reach, fmin(reach, value - past->mean)) : 0;
    if (past->samples == 0)
        past->mean = value;
    past->samples += past->samples < SAMPLES_MAX;
    past->mean += off / past->samples;
    past->spread += (fabs(off) - past->spread) / past->samples;
}

/* True: the number is beyond what is usual, and was for long. Less long counts as usual, once it is
 * over; nothing is learned of a lane that is worse. */
static bool is_beyond(struct lane_past *past, double value, double least, bool is_worse,
                      uint64_t now)
{
    bool is_beyond = past->samples >= SAMPLES_MIN && value > past->mean + past_reach(past, least);
    uint64_t before_ns = past->looked_ns;
    past->looked_ns = now;
    if (is_beyond) {
        if (past->beyond++ == 0)
            past->since_ns = before_ns;
        return past->beyond >= BEYOND_SAMPLES && now - past->since_ns >= BEYOND_NS;
    }
    for (; past->beyond > 0; past->beyond--)
        if (!is_worse)
            past_feed(past, INFINITY, least);
    if (!is_worse)
        past_feed(past, value, least);
    return false;
}

/* --- what follows ----------------------------------------------------------------------------- */

static void why_set(struct lane *lane, const char *why)
{
    struct liveness *liveness = liveness_find(lane->peer);
    if (liveness)
        OPAL_THREAD_LOCK(&liveness->lock);
    snprintf(history_of(lane)->why, sizeof(history_of(lane)->why), "%s", why);
    if (liveness)
        OPAL_THREAD_UNLOCK(&liveness->lock);
}

static void reserve_begin(struct lane *lane, uint64_t now)
{
    struct lane_history *history = history_of(lane);
    history->pause_ns = history->pause_ns == 0               ? RESERVE_NS
                        : history->pause_ns < RESERVE_NS_MAX ? 2 * history->pause_ns
                                                             : RESERVE_NS_MAX;
    history->again_ns = now + history->pause_ns;
    lane_leave_out(lane, LANE_OUT_WORSE, true);
}

/* Names it once; of several connections of a rail only the first. */
static void become_worse(struct lane *lane, const char *why)
{
    struct lane_history *history = history_of(lane);
    if (lane_is_worse(lane))
        return;
    why_set(lane, why);
    atomic_store_explicit(&lane->is_worse, true, memory_order_relaxed); /* lane_is_worse */
    if (lane->listed == lane->btl && history->said < SAID_MAX)
        lane_say(lane,
                 lane_is_lost(lane) ? "has become worse, and is kept in reserve"
                                    : "has become worse, and is used by its new speed",
                 why, ++history->said == SAID_MAX);
    tool_event_raise(TOOL_LANE_WORSE, &lane->peer->name, lane->index);
}

/* --- one lane --------------------------------------------------------------------------------- */

static void look_slowness(struct lane *lane, double bytes_s, double best_bytes_s, uint64_t now)
{
    struct lane_past *past = &history_of(lane)->slowness;
    char why[sizeof(history_of(lane)->why)];
    double slowness = log2(best_bytes_s / bytes_s);
    if (!is_beyond(past, slowness, SLOWNESS_LEAST, lane_is_worse(lane), now))
        return;
    snprintf(why, sizeof(why), "carries %.3g MB/s, and %.3g were usual beside the other lanes",
             bytes_s / 1e6, best_bytes_s / exp2(past->mean) / 1e6);
    if (slowness > SLOWNESS_WAITED && history_of(lane)->again_ns == 0)
        reserve_begin(lane, now);
    become_worse(lane, why);
}

static void look_loss(struct lane *lane, double loss, uint64_t now)
{
    struct lane_past *past = &history_of(lane)->loss;
    char why[sizeof(history_of(lane)->why)];
    if (!is_beyond(past, loss, LOSS_LEAST, lane_is_worse(lane), now))
        return;
    snprintf(why, sizeof(why), "sends %.2f %% of its segments again, and %.2f %% were usual",
             100 * loss, 100 * past->mean);
    become_worse(lane, why);
}

/* It leaves the reserve to be tried, and is good again after some samples that are usual. */
static void look_worse(struct lane *lane, bool is_sampled, uint64_t now)
{
    struct lane_history *history = history_of(lane);
    if (history->again_ns && now >= history->again_ns) {
        history->again_ns = 0;
        history->slowness.beyond = history->loss.beyond = 0;
        lane_leave_out(lane, LANE_OUT_WORSE, false);
    }
    if (history->slowness.beyond || history->loss.beyond || history->again_ns)
        history->usual = 0;
    else if (is_sampled && ++history->usual == SAMPLES_MIN) {
        atomic_store_explicit(&lane->is_worse, false, memory_order_relaxed); /* lane_is_worse */
        history->pause_ns = 0;
    }
}

void worse_look(struct peer *peer, uint64_t now)
{
    struct sample samples[MODEL_LANES_MAX];
    if (peer_lane_count(peer) < 2 || !histories_make(peer))
        return;
    speeds_sample(peer, samples);
    for (int i = 0; i < peer_lane_count(peer); i++)
        samples[i].loss = loss_sample(&peer->lanes[i]);
    for (int i = 0; i < peer_lane_count(peer); i++) {
        struct lane *lane = &peer->lanes[i];
        double best_bytes_s = fastest_other(peer, samples, i);
        bool has_speed = samples[i].bytes_s > 0 && best_bytes_s > 0;
        if (has_speed)
            look_slowness(lane, samples[i].bytes_s, best_bytes_s, now);
        if (samples[i].loss >= 0)
            look_loss(lane, fmax(0, samples[i].loss - least_loss(peer, samples, i)), now);
        if (lane_is_worse(lane))
            look_worse(lane, has_speed || samples[i].loss >= 0, now);
    }
}
