/* SPDX-License-Identifier: BSD-3-Clause */
/* The arithmetic of flow control. */
#include "common/model/flow.h"

/* A comparison covers half of the range of marks. So no limit is further than half of that ahead
 * of the drawn mark, and a window is a small part of it. */
#define AHEAD_MAX  (INT32_C(1) << 30)
#define WINDOW_MAX (UINT32_C(1) << 28)

/* The pool that such a bound on memory makes. */
static uint32_t pool_units(uint64_t bytes)
{
    uint64_t half = bytes / FLOW_UNIT_BYTES / 2;
    return half < WINDOW_MAX ? (uint32_t) half : WINDOW_MAX;
}

uint32_t flow_divide(uint64_t bytes, uint32_t peers, struct flow_pool *pool)
{
    uint64_t half = bytes / FLOW_UNIT_BYTES / 2, share = half / (peers ? peers : 1);
    /* share = window + flow_headers(window) */
    uint64_t window =
        share > 64 * FLOW_MESSAGE_UNITS ? (share - 64 * FLOW_MESSAGE_UNITS) / 9 * 8 : 0;
    atomic_init(&pool->left, pool_units(bytes));
    return window < WINDOW_MAX ? (uint32_t) window : WINDOW_MAX;
}

/* A sender that is alone gets half of the pool. The receiver tells it after each matched quarter
 * of its room, so three quarters are there whenever nothing of it waits for a receive. */
uint64_t flow_eager_max(uint64_t bytes)
{
    uint32_t units = pool_units(bytes) / 2 / 4 * 3;
    if (units < FLOW_SMALL_UNITS)
        units = FLOW_SMALL_UNITS; /* those always may */
    uint64_t data = (units - FLOW_MESSAGE_UNITS) * (uint64_t) FLOW_UNIT_BYTES;
    return (UINT64_C(1) << (63 - __builtin_clzll(data))) - FLOW_BUCKET_BYTES;
}

/* Relaxed, both: a sender that reads an old limit takes the slow path, which holds a lock. */
static uint32_t limit_of(const struct flow_out *out)
{
    return atomic_load_explicit(&out->limit, memory_order_relaxed);
}

static void limit_set(struct flow_out *out, uint32_t limit)
{
    atomic_store_explicit(&out->limit, limit, memory_order_relaxed);
}

enum flow_verdict flow_try(struct flow_out *out, uint32_t mark, uint32_t cost)
{
    uint32_t saved = cost - FLOW_MESSAGE_UNITS;
    if (flow_is_within(mark, limit_of(out)))
        return FLOW_GO;
    if (cost <= FLOW_SMALL_UNITS)
        return flow_is_within(mark, out->headers) ? FLOW_GO : FLOW_WAIT;
    if (!flow_is_within(mark - saved, out->headers))
        return FLOW_WAIT;
    out->headers += saved;
    out->refunded += saved;
    limit_set(out, limit_of(out) + saved);
    return FLOW_GO_AS_RTS;
}

bool flow_is_possible(const struct flow_out *out, uint32_t drawn, uint32_t limit, uint32_t headers)
{
    return (int32_t) (limit + out->refunded - drawn) <= AHEAD_MAX &&
           (int32_t) (headers + out->refunded - drawn) <= AHEAD_MAX;
}

/* Compares relative to `drawn`, so that impossible limits cannot make an old one look further. */
static bool is_further(uint32_t limit, uint32_t than, uint32_t drawn)
{
    return (int32_t) (limit - drawn) > (int32_t) (than - drawn);
}

bool flow_moved(struct flow_out *out, uint32_t drawn, uint32_t limit, uint32_t headers)
{
    bool has_moved = false;
    limit += out->refunded;
    headers += out->refunded;
    if (is_further(limit, limit_of(out), drawn)) {
        limit_set(out, limit);
        has_moved = true;
    }
    if (is_further(headers, out->headers, drawn)) {
        out->headers = headers;
        has_moved = true;
    }
    return has_moved;
}

void flow_in_init(struct flow_in *in, uint32_t window, uint32_t headers)
{
    *in = (struct flow_in){.least = window,
                           .window = window,
                           .headers = headers,
                           .step = (window + headers) / 4,
                           .granted_limit = window,
                           .granted_headers = window + headers,
                           .most = window + headers};
}

bool flow_may_come(const struct flow_in *in, uint64_t eager_bytes)
{
    return eager_bytes / FLOW_UNIT_BYTES <= in->most && flow_cost(eager_bytes) <= in->most;
}

/* Relaxed, both: the count orders no other memory. */
static uint32_t pool_take(struct flow_pool *pool, uint32_t wanted)
{
    uint32_t left = atomic_load_explicit(&pool->left, memory_order_relaxed), taken;
    do
        taken = wanted < left ? wanted : left;
    while (!atomic_compare_exchange_weak_explicit(&pool->left, &left, left - taken,
                                                  memory_order_relaxed, memory_order_relaxed));
    return taken;
}

static void pool_give(struct flow_pool *pool, uint32_t units)
{
    atomic_fetch_add_explicit(&pool->left, units, memory_order_relaxed);
}

/* The window that the pool allows now. */
static uint32_t window_wanted(const struct flow_in *in, const struct flow_pool *pool)
{
    uint32_t left = atomic_load_explicit(&pool->left, memory_order_relaxed); /* pool_take */
    return in->least + (left + (in->window - in->least)) / 2;
}

/* Units that the sender may still send within the limit that it knows. */
static uint32_t unused(const struct flow_in *in, uint32_t used)
{
    return flow_is_within(used, in->granted_limit) ? in->granted_limit - used : 0;
}

bool flow_hold(struct flow_in *in, struct flow_pool *pool, uint32_t cost)
{
    in->held += cost;
    return unused(in, in->matched + in->held) <= in->window / 4 &&
           window_wanted(in, pool) > in->window + in->window / 8;
}

static void window_change(struct flow_in *in, struct flow_pool *pool)
{
    uint32_t window = window_wanted(in, pool), promised = unused(in, in->matched);
    if (window < promised)
        window = promised; /* a promise stays */
    if (window > in->window) {
        in->window += pool_take(pool, window - in->window);
    } else {
        pool_give(pool, in->window - window);
        in->window = window;
    }
    in->step = (in->window + in->headers) / 4;
}

void flow_grant(struct flow_in *in, struct flow_pool *pool, uint32_t *limit, uint32_t *headers)
{
    window_change(in, pool);
    uint32_t promised = in->granted_headers - in->matched;
    uint32_t wider = promised + FLOW_EXTENSION_UNITS, usual = in->window + in->headers;
    if (in->extends) /* a promise stays; matches may have used part of it */
        in->extra = wider > usual ? wider - usual : 0;
    else if (in->held <= in->window)
        in->extra = 0;
    in->extends = false;
    uint32_t wanted = in->matched + in->window + in->headers + in->extra;
    in->granted = in->matched;
    /* A promise stays, also one from before flow_end. */
    if (!flow_is_within(in->matched + in->window, in->granted_limit))
        in->granted_limit = in->matched + in->window;
    if (!flow_is_within(wanted, in->granted_headers))
        in->granted_headers = wanted;
    if (in->granted_headers - in->matched > in->most)
        in->most = in->granted_headers - in->matched;
    *limit = in->granted_limit;
    *headers = in->granted_headers;
}

void flow_end(struct flow_in *in, struct flow_pool *pool)
{
    pool_give(pool, in->window - in->least);
    in->window = in->least;
}

bool flow_is_exhausted(const struct flow_in *in)
{
    return !flow_is_within(in->matched + in->held + FLOW_SMALL_UNITS, in->granted_headers);
}
