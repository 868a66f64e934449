/* SPDX-License-Identifier: BSD-3-Clause */
/* The cluster model's parameters and what they say of two processes. */
#include "tools/model/cluster.h"

#include <math.h>

static double line_at(const struct cost_line *line, double bytes)
{
    return line->fixed_s + bytes * line->growth_s_byte;
}

/* Between two measured numbers of processes linear, outside as at the nearest. */
static double latency_at(const struct cluster_model *model, double bytes, uint32_t processes)
{
    const struct cluster_latency *l = model->latency;
    uint32_t last = model->latency_count - 1, i = 0;
    if (processes <= l[0].processes)
        return line_at(&l[0].line, bytes);
    if (processes >= l[last].processes)
        return line_at(&l[last].line, bytes);
    while (processes > l[i + 1].processes)
        i++;
    double part =
        (double) (processes - l[i].processes) / (double) (l[i + 1].processes - l[i].processes);
    return (1 - part) * line_at(&l[i].line, bytes) + part * line_at(&l[i + 1].line, bytes);
}

void cluster_at(const struct cluster_model *model, uint64_t packet_bytes, uint32_t processes,
                struct cluster_point *point)
{
    double bytes = (double) packet_bytes;
    point->send_overhead_s = line_at(&model->send_overhead, bytes);
    point->gap_s = fmax(line_at(&model->send_gap, bytes), line_at(&model->receive_gap, bytes));
    point->latency_s = latency_at(model, bytes, processes);
    point->receive_overhead_s = line_at(&model->receive_overhead, bytes);
    point->user_overhead_s = line_at(&model->user_overhead, bytes);
}

uint64_t cluster_packets(const struct cluster_model *model, uint64_t bytes)
{
    return bytes ? (bytes - 1) / model->packet_bytes + 1 : 1;
}

double cluster_one_way(const struct cluster_point *point, uint64_t packets)
{
    return point->send_overhead_s + (double) (packets - 1) * point->gap_s + point->latency_s +
           point->receive_overhead_s + point->user_overhead_s;
}

double cluster_exchange(const struct cluster_point *point, uint64_t packets)
{
    return cluster_one_way(point, packets);
}

bool cluster_full_duplex(const struct cluster_point *point)
{
    double processor = point->send_overhead_s + point->receive_overhead_s + point->user_overhead_s;
    return processor < point->gap_s && point->gap_s < point->latency_s;
}
