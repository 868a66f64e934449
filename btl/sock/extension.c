/* SPDX-License-Identifier: BSD-3-Clause */
/* The extension: what Multilane's PML uses beside btl.h. */
#include "btl/sock/sock.h"

#include <string.h>

#include "common/sum/crc32c.h"

/* Estimates until the start, a profile or the job's own traffic gives better values. */
#define LATENCY_S        20e-6
#define OVERHEAD_S       5e-6
#define SHARE_OF_WIRE    0.94 /* the rest are headers */
#define MEGABITS_UNKNOWN 1000u
#define COPY_BYTES_S     10e9

/* Under the peer's lock: of one of the connections that share it. */
static double wire_bytes_s(const sock_peer_t *peer)
{
    const uint32_t megabits = sock_peer_megabits(peer);

    return (megabits == 0 ? MEGABITS_UNKNOWN : megabits) * 1e6 / 8 * SHARE_OF_WIRE /
           atomic_load_explicit(&peer->share, memory_order_relaxed);
}

static void cost_fill(double bandwidth, double latency_s, struct multilane_lane_attributes *out)
{
    const struct model_lane_range range = {.largest_bytes = UINT64_MAX,
                                           .latency_s = latency_s,
                                           .bandwidth_bytes_s = bandwidth,
                                           .overhead_send_s = OVERHEAD_S,
                                           .overhead_receive_s = OVERHEAD_S};
    static const enum model_way ways[] = {MODEL_BY_SEND, MODEL_BY_PUT};

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        out->cost[ways[i]].range_count = 1;
        out->cost[ways[i]].ranges[0] = range;
    }
    /* Messages are copied into the lane's memory and out of it. */
    out->cost[MODEL_BY_SEND].ranges[0].bandwidth_bytes_s = 1 / (1 / bandwidth + 2 / COPY_BYTES_S);
}

static double round_trip_s(mca_btl_base_module_t *btl, sock_peer_t *peer)
{
    OPAL_THREAD_LOCK(&peer->lock);
    double seconds = peer->link ? sock_socket_round_trip_s(peer->link) : 0;
    OPAL_THREAD_UNLOCK(&peer->lock);
    return seconds;
}

static bool repeats(mca_btl_base_module_t *btl, sock_peer_t *peer, uint64_t *sent,
                    uint64_t *repeated)
{
    OPAL_THREAD_LOCK(&peer->lock);
    bool is_there = peer->link && sock_socket_repeats(peer->link, sent, repeated);
    OPAL_THREAD_UNLOCK(&peer->lock);
    return is_there;
}

static size_t under_way(mca_btl_base_module_t *btl, sock_peer_t *peer, size_t more, double *seconds)
{
    OPAL_THREAD_LOCK(&peer->lock);
    size_t bytes = peer->kept_bytes;
    if (more > 0)
        *seconds = sock_rate_arrival_s(peer, more, wire_bytes_s(peer));
    OPAL_THREAD_UNLOCK(&peer->lock);
    return bytes;
}

static double observed_bytes_s(mca_btl_base_module_t *btl, sock_peer_t *peer)
{
    OPAL_THREAD_LOCK(&peer->lock);
    double bytes_s = sock_rate_observed(peer);
    OPAL_THREAD_UNLOCK(&peer->lock);
    return bytes_s;
}

static int attributes(mca_btl_base_module_t *btl, sock_peer_t *peer,
                      struct multilane_lane_attributes *out)
{
    if (!btl)
        return OPAL_ERR_NOT_AVAILABLE;
    memset(out, 0, sizeof(*out));
    out->capabilities = MULTILANE_CAN_FENCE | MULTILANE_CAN_BREAK | MULTILANE_CAN_ORDER;
    out->memory = MODEL_MEMORY_HOST;
    out->short_max_bytes = btl->btl_eager_limit;
    out->copied_max_bytes = btl->btl_max_send_size;
    out->zcopied_max_bytes = btl->btl_put_limit;
    OPAL_THREAD_LOCK(&peer->lock);
    /* The other end gave this rail up, and waits for us to connect it again. */
    out->capabilities |= peer->is_outlived ? MULTILANE_CAN_RENEW : 0;
    cost_fill(wire_bytes_s(peer), LATENCY_S, out);
    OPAL_THREAD_UNLOCK(&peer->lock);
    memcpy(out->device, module_of(btl)->device, ADDRESS_NAME_BYTES);
    return OPAL_SUCCESS;
}

static void check_by(bool (*is_right)(mca_btl_base_module_t *btl, sock_peer_t *peer, uint8_t tag,
                                      const void *bytes, size_t length))
{
    crc32c_begin();
    sock.is_right = is_right;
}

MULTILANE_EXTENSION_DEFINE(sock) = {
    MULTILANE_EXTENSION_HEAD,
    .attributes = attributes,
    .poll = sock_progress_peer,
    .fence = sock_fence,
    .fence_ask = sock_fence_message,
    .fence_hear = sock_fence_message_heard,
    .rouse_by = sock_wake_by,
    .will_sleep = sock_wake_arm,
    .round_trip_s = round_trip_s,
    .is_proven = sock_link_is_proven,
    .repeats = repeats,
    .under_way = under_way,
    .return_to = sock_link_return_to,
    .quiet_ms = sock_link_quiet_ms,
    .check_by = check_by,
    .links_most = sock_links_most,
    .links_next = sock_links_next,
    .link_changes = &sock.link_changes,
    .observed_bytes_s = observed_bytes_s,
};
