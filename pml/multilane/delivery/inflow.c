/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts the senders of large messages on each BTL module, and bounds each one. */
#include "delivery/inflow.h"

#include <string.h>

#include "base/clock.h"
#include "base/parameters.h"
#include "delivery/seen.h"

/* A sender counts in the period in which something came from it, and in the next one: longer than
 * the 0.2 s that tcp pauses after a loss. */
#define PERIOD_NS 250000000u

/* What a port brings is averaged over some of these. */
#define SAMPLE_NS 50000000u

/* All senders together may have under way what the module brings in this time: longer than a
 * report takes to come and take effect, shorter than what a small message may wait. */
#define HOLD_S 8e-3

/* Each sender may have this much: two of the shortest pieces, so that one is always on its way. */
#define LEAST_BYTES (UINT64_C(32) << 10)

#define MODULES_MAX 32

/* What one module brings; under `lock`. */
struct inflow {
    const mca_btl_base_module_t *btl; /* null: free */
    uint64_t since_ns;                /* begin of the period, */
    uint32_t period;                  /* its number, from 1 on, */
    uint32_t senders;                 /* seen in it, */
    uint32_t senders_before;          /* and in the one before */
    uint64_t sample_ns;               /* since then, `sample` bytes have arrived, */
    uint64_t sample;
    double bytes_s; /* and this is the moving average while several sent; 0: not measured */
};

static struct {
    opal_mutex_t lock;
    struct inflow flows[MODULES_MAX];
} state = {.lock = OPAL_MUTEX_STATIC_INIT};

/* Null: there are more modules than places, and this one is not bounded. */
static struct inflow *flow_of(const struct lane *lane, uint64_t now_ns)
{
    for (int i = 0; i < MODULES_MAX; i++) {
        struct inflow *flow = &state.flows[i];
        if (!flow->btl)
            *flow = (struct inflow){
                .btl = lane->btl, .since_ns = now_ns, .sample_ns = now_ns, .period = 1};
        if (flow->btl == lane->btl)
            return flow;
    }
    return NULL;
}

/* Counts senders anew; after a pause those of before do not count. */
static void period_turn(struct inflow *flow, uint64_t now_ns)
{
    if (now_ns - flow->since_ns < PERIOD_NS)
        return;
    flow->senders_before = now_ns - flow->since_ns < 2 * PERIOD_NS ? flow->senders : 0;
    flow->senders = 0;
    flow->since_ns = now_ns;
    flow->period++;
}

static uint32_t senders_of(const struct inflow *flow)
{
    return flow->senders > flow->senders_before ? flow->senders : flow->senders_before;
}

/* A sender alone may not use all of the port. */
static void speed_measure(struct inflow *flow, uint64_t now_ns)
{
    uint64_t took_ns = now_ns - flow->sample_ns;
    if (took_ns < SAMPLE_NS)
        return;
    double bytes_s = (double) flow->sample * 1e9 / (double) took_ns;
    if (senders_of(flow) > 1 && took_ns < PERIOD_NS) /* else there was a pause */
        flow->bytes_s = flow->bytes_s > 0 ? (flow->bytes_s + bytes_s) / 2 : bytes_s;
    flow->sample = 0;
    flow->sample_ns = now_ns;
}

/* What each sender may have under way now; 0: no bound. */
static uint64_t bound_of(const struct inflow *flow)
{
    uint32_t senders = senders_of(flow);
    uint64_t all = parameters.incast_max_bytes;
    if (senders < 2 || all == UINT64_MAX)
        return 0;
    if (all == 0)
        all = (uint64_t) (flow->bytes_s * HOLD_S);
    return all / senders > LEAST_BYTES ? all / senders : LEAST_BYTES;
}

/* A small change is not worth a message. */
static bool is_news(uint64_t bound, uint64_t told)
{
    return bound == 0 || told == 0 ? bound != told : bound > told / 4 * 5 || bound < told / 4 * 3;
}

void inflow_arrived(struct lane *lane, size_t size)
{
    /* Our lanes say that a piece has ended when the peer has it, so that only the pieces of a
     * transfer are under way. Those of Open MPI say it when the kernel has taken the piece. */
    if (!lane || lane->extension)
        return;
    OPAL_THREAD_LOCK(&state.lock);
    uint64_t bound = 0, now_ns = clock_now_ns();
    struct inflow *flow = flow_of(lane, now_ns);
    if (flow) {
        speed_measure(flow, now_ns);
        period_turn(flow, now_ns);
        flow->sample += size;
        if (lane->speed.period != flow->period)
            flow->senders++;
        lane->speed.period = flow->period;
        bound = bound_of(flow);
    }
    OPAL_THREAD_UNLOCK(&state.lock);
    /* Relaxed: a number of its own, of which another thread may tell an older value first. */
    if (OPAL_UNLIKELY(
            is_news(bound, atomic_load_explicit(&lane->speed.told, memory_order_relaxed))))
        seen_tell_bound(lane, bound);
}

/* So it is told its bound before it sends. */
void inflow_asked(struct peer *peer)
{
    for (int i = 0; i < peer_lane_count(peer); i++)
        inflow_arrived(&peer->lanes[i], 0);
}

void inflow_forget(void)
{
    memset(state.flows, 0, sizeof(state.flows));
}
