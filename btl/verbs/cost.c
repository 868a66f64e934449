/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost of a lane, by estimates for its kind of device. */
#include "btl/verbs/verbs.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/lane/kernel_text.h"
#include "opal/runtime/opal_params.h"

/* Estimates until a profile or the user gives better values: common figures of such devices, not
 * measurements of this one. The bandwidth is the port's, less headers. */
struct estimate {
    double latency_s;
    double overhead_s; /* at each end */
    double read_s;     /* one more latency: a get's request */
};

static const struct estimate estimate_infiniband = {1.0e-6, 0.2e-6, 0.8e-6};

static const struct estimate estimate_roce = {1.5e-6, 0.2e-6, 1.2e-6};

static const struct estimate estimate_soft = {20e-6, 5e-6, 20e-6};

#define SHARE_OF_WIRE 0.95
#define COPY_BYTES_S  10e9

/* One registration: found in the cache, or made by the system page by page. */
#define CACHED_S 0.3e-6

#define REGISTERED_S      20e-6
#define REGISTERED_S_BYTE (60e-9 / 4096)

static const struct estimate *estimate_of(const struct verbs_module *module, uint8_t link)
{
    if (module->soft)
        return &estimate_soft;
    return link == CHOICE_INFINIBAND ? &estimate_infiniband : &estimate_roce;
}

/* The lane has the bandwidth of the slower of its two ports. */
static double wire_bytes_s(const struct choice_address *mine, const struct choice_address *theirs)
{
    uint32_t megabits = mine->megabits;

    if (theirs->megabits != 0 && theirs->megabits < megabits)
        megabits = theirs->megabits;
    return megabits * 1e6 / 8 * SHARE_OF_WIRE;
}

/* A child of fork() lacks pages that hold registered memory, where the kernel does not copy them:
 * not more of them than the user's large buffers. */
static bool sends_in_place(void)
{
    return ibv_is_fork_initialized() != IBV_FORK_ENABLED;
}

static void cost_set(struct multilane_lane_attributes *out, const struct estimate *estimate,
                     double bandwidth)
{
    /* Without hooks into the memory allocator nothing is cached. */
    bool cached = opal_leave_pinned > 0;
    const struct model_lane_range zero_copy = {
        .largest_bytes = UINT64_MAX,
        .latency_s = estimate->latency_s,
        .bandwidth_bytes_s = bandwidth,
        .overhead_send_s = estimate->overhead_s,
        .reg_cost_s = cached ? CACHED_S : REGISTERED_S,
        .reg_growth_s_byte = cached ? 0 : REGISTERED_S_BYTE,
    };

    for (int way = 0; way < MULTILANE_WAYS; way++) {
        struct model_lane_range *range = &out->cost[way].ranges[0];

        out->cost[way].range_count = 1;
        *range = zero_copy;
        if (way == MODEL_BY_GET)
            range->latency_s += estimate->read_s;
        if (way == MODEL_BY_SEND) {
            range->overhead_receive_s = estimate->overhead_s;
            if (!sends_in_place())
                range->reg_cost_s = range->reg_growth_s_byte = 0;
            /* with the receiver's copy */
            range->bandwidth_bytes_s = 1 / (1 / bandwidth + 1 / COPY_BYTES_S);
        }
    }
    out->copy_s_byte = !sends_in_place() ? 0 : 1 / COPY_BYTES_S;
}

void verbs_cost_fill(const struct verbs_module *module, const struct choice_address *theirs,
                     struct multilane_lane_attributes *out)
{
    const struct choice_address *mine = &verbs.record.ports[module->port_index].address;

    cost_set(out, estimate_of(module, mine->link), wire_bytes_s(mine, theirs));
}

size_t verbs_cost_under_way(mca_btl_base_module_t *btl, verbs_peer_t *peer, size_t more,
                            double *seconds)
{
    const struct choice_address *mine = &verbs.record.ports[module_of(btl)->port_index].address;

    OPAL_THREAD_LOCK(&peer->lock);
    size_t bytes = peer->posted_bytes;
    OPAL_THREAD_UNLOCK(&peer->lock);
    *seconds = (double) (bytes + more) / wire_bytes_s(mine, &peer->port.address);
    return bytes;
}

/* 0: the port is not active. */
static uint32_t port_megabits(const char *port)
{
    char line[64];
    if (!kernel_line(line, sizeof(line), "%s/state", port) || !strstr(line, "ACTIVE"))
        return 0;
    return kernel_line(line, sizeof(line), "%s/rate", port) ? verbs_choice_megabits_shown(line) : 0;
}

static const struct estimate *port_estimate(const char *port)
{
    char line[64], device[160];
    const char *end = strstr(port, "/ports/");
    snprintf(device, sizeof(device), "%.*s/device", end ? (int) (end - port) : 0, port);
    if (access(device, F_OK) != 0) /* it sits on no bus */
        return &estimate_soft;
    return kernel_line(line, sizeof(line), "%s/link_layer", port) &&
                   strncmp(line, "InfiniBand", 10) == 0
               ? &estimate_infiniband
               : &estimate_roce;
}

/* The fastest active port, by what the kernel shows of it: no device is opened. */
bool verbs_cost_expect(struct multilane_lane_attributes *out)
{
    uint32_t most = 0;
    glob_t ports;
    memset(out, 0, sizeof(*out));
    if (glob("/sys/class/infiniband/*/ports/*", 0, NULL, &ports) != 0)
        return false;
    for (size_t i = 0; i < ports.gl_pathc; i++) {
        uint32_t megabits = port_megabits(ports.gl_pathv[i]);
        if (megabits <= most)
            continue;
        most = megabits;
        cost_set(out, port_estimate(ports.gl_pathv[i]), megabits * 1e6 / 8 * SHARE_OF_WIRE);
    }
    globfree(&ports);
    out->capabilities = MULTILANE_CAN_DELIVER | MULTILANE_CAN_FENCE | MULTILANE_CAN_BREAK;
    out->memory = MODEL_MEMORY_HOST;
    out->copied_max_bytes = 16 << 10;
    out->zcopied_max_bytes = 1 << 30;
    return most > 0;
}
