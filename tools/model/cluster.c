/* SPDX-License-Identifier: BSD-3-Clause */
/* The cluster model's parameters and what they say of two processes, and of a broadcast. */
#include "tools/model/cluster.h"

#include <math.h>
#include <stdlib.h>

/* Between two measured numbers of processes linear, outside as at the nearest. */
static double latency_at(const struct cluster_model *model, double bytes, uint32_t processes)
{
    const struct cluster_latency *l = model->latency;
    uint32_t last = model->latency_count - 1, i = 0;
    if (processes <= l[0].processes)
        return cost_line_at(&l[0].line, bytes);
    if (processes >= l[last].processes)
        return cost_line_at(&l[last].line, bytes);
    while (processes > l[i + 1].processes)
        i++;
    double part =
        (double) (processes - l[i].processes) / (double) (l[i + 1].processes - l[i].processes);
    return (1 - part) * cost_line_at(&l[i].line, bytes) +
           part * cost_line_at(&l[i + 1].line, bytes);
}

void cluster_at(const struct cluster_model *model, uint64_t packet_bytes, uint32_t processes,
                struct cluster_point *point)
{
    double bytes = (double) packet_bytes;
    point->send_overhead_s = cost_line_at(&model->send_overhead, bytes);
    point->gap_s =
        fmax(cost_line_at(&model->send_gap, bytes), cost_line_at(&model->receive_gap, bytes));
    point->latency_s = latency_at(model, bytes, processes);
    point->receive_overhead_s = cost_line_at(&model->receive_overhead, bytes);
    point->user_overhead_s = cost_line_at(&model->user_overhead, bytes);
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

bool cluster_full_duplex(const struct cluster_point *point)
{
    double processor = point->send_overhead_s + point->receive_overhead_s + point->user_overhead_s;
    return processor < point->gap_s && point->gap_s < point->latency_s;
}

/* --- broadcast over a binomial tree ----------------------------------------------------------- */

/* Broadcast over a binomial tree: the printed formulas, and the tree itself.
 *
 * The tree. Process 0 is the root; process r sends to r + 2^j for every 2^j below r's lowest set
 * bit (the root: below p), the largest first, as far as they exist. A message of k packets is k
 * broadcasts, one after the other. A process works through them in order: it waits for packet i,
 * takes it (U_r), sends it to each child (O_s each, two sends at least g apart), and goes on to
 * packet i + 1. O_r is not its own doing: it begins when a packet arrives and interrupts whatever
 * runs.
 *
 * What the printed formulas leave out:
 *  - (2.8) counts g between the root's sends; the root cannot be quicker than its processor, so
 *    max(g, O_s) stands for g.
 *  - With p = 2 the receiver has no child to send to and may be the slowest: max(g, O_s, O_r +
 * U_r).
 *  - p that is no power of two: the root has ceil(log2 p) children, and the depth of the tree is
 * that of the p processes that exist, not log2 p.
 *  - The first packet reaches the root's last child after all of the root's sends, which is later
 *    than the end of the deepest branch where g exceeds L + O_r + U_r.
 *  - (2.9) counts O_s between the sends of the process that is in trouble; where g > O_s they are g
 *    apart, and O_r of the next packet may fall into the gaps.
 * So the correction is: the first packet through the tree that exists, and every other one later by
 * the time that the slowest process takes for one. No process is disturbed where (2.8) applies, and
 * it is then what the tree gives (test/unit/model_cluster.c). Elsewhere it is a bound from below:
 * interrupts of many packets that arrive early hold up the sends of the first ones, and the subtree
 * starves for longer. */

/* A time below all others. */
#define LONG_AGO_S (-1e300)

#define CHILDREN_MAX 32

/* The children of `rank`, in the order it sends to them. */
static uint32_t tree_children(uint32_t rank, uint32_t processes, uint32_t children[CHILDREN_MAX])
{
    uint64_t lowest = rank & -rank;
    uint32_t count = 0;
    if (!rank)
        for (lowest = 1; lowest < processes; lowest *= 2)
            ;
    for (uint64_t step = lowest / 2; step; step /= 2)
        if (rank + step < processes)
            children[count++] = (uint32_t) (rank + step);
    return count;
}

/* --- the simulation --------------------------------------------------------------------------- */

/* One process while it is simulated. */
struct tree_process {
    const struct cluster_point *point;
    const double *arrivals_s; /* null: the root, which has everything at 0 */
    uint64_t packets;
    uint64_t interrupts;    /* packets whose O_r has been done */
    double interrupt_end_s; /* of the last of them */
    double now_s;
    double last_send_s;
};

/* The next packet arrives: its O_r begins then, or after the one before. */
static void process_interrupt(struct tree_process *process)
{
    process->interrupt_end_s =
        fmax(process->interrupt_end_s, process->arrivals_s[process->interrupts++]) +
        process->point->receive_overhead_s;
}

static bool interrupted_by(const struct tree_process *process, double time_s)
{
    return process->arrivals_s && process->interrupts < process->packets &&
           process->arrivals_s[process->interrupts] <= time_s;
}

/* Nothing to do until then, but for interrupts, which may take longer. */
static void process_wait(struct tree_process *process, double until_s)
{
    double now = fmax(process->now_s, until_s);
    while (interrupted_by(process, now)) {
        process_interrupt(process);
        now = fmax(now, process->interrupt_end_s);
    }
    process->now_s = now;
}

/* Works for a while, and longer by every interrupt that falls into it. */
static void process_work(struct tree_process *process, double seconds)
{
    process_wait(process, process->now_s);
    while (process->arrivals_s && process->interrupts < process->packets &&
           process->arrivals_s[process->interrupts] < process->now_s + seconds) {
        seconds -= fmax(0, process->arrivals_s[process->interrupts] - process->now_s);
        process_interrupt(process);
        process->now_s = process->interrupt_end_s;
    }
    process->now_s += seconds;
}

static void process_take(struct tree_process *process, uint64_t packet)
{
    if (!process->arrivals_s)
        return;
    while (process->interrupts <= packet)
        process_interrupt(process);
    process->now_s = fmax(process->now_s, process->interrupt_end_s);
    process_work(process, process->point->user_overhead_s);
}

/* Returns when the packet arrives. */
static double process_send(struct tree_process *process)
{
    process_wait(process, process->last_send_s + process->point->gap_s);
    process->last_send_s = process->now_s;
    process_work(process, process->point->send_overhead_s);
    return process->now_s + process->point->latency_s;
}

/* Runs one process to its end; writes when each packet reaches each child. Returns when it has
 * taken the last packet itself. */
static double process_run(struct tree_process *process, uint32_t child_count, double *out_s)
{
    double taken_s = 0;
    for (uint64_t packet = 0; packet < process->packets; packet++) {
        process_take(process, packet);
        taken_s = process->now_s;
        for (uint32_t child = 0; child < child_count; child++)
            out_s[child * process->packets + packet] = process_send(process);
    }
    return process->arrivals_s ? taken_s : 0;
}

/* The subtree of `rank`: when its last process has the last packet. Below 0: no memory. */
static double tree_simulate(const struct cluster_point *point, uint32_t rank, uint32_t processes,
                            uint64_t packets, const double *arrivals_s)
{
    uint32_t children[CHILDREN_MAX];
    uint32_t count = tree_children(rank, processes, children);
    struct tree_process process = {.point = point,
                                   .arrivals_s = arrivals_s,
                                   .packets = packets,
                                   .interrupt_end_s = LONG_AGO_S,
                                   .last_send_s = LONG_AGO_S};
    double *out_s = malloc((count ? count : 1) * packets * sizeof *out_s);
    if (!out_s)
        return -1;
    double end_s = process_run(&process, count, out_s);
    for (uint32_t i = 0; i < count && end_s >= 0; i++) {
        double child_s = tree_simulate(point, children[i], processes, packets, out_s + i * packets);
        end_s = child_s < 0 ? child_s : fmax(end_s, child_s);
    }
    free(out_s);
    return end_s;
}

/* --- the formulas ----------------------------------------------------------------------------- */

static double processor_s(const struct cluster_point *point) /* T_0 */
{
    return point->send_overhead_s + point->receive_overhead_s + point->user_overhead_s;
}

/* The condition that chooses between (2.8), true, and (2.9): O_r + U_r + O_s < 2 max(g, O_s). */
static bool undisturbed(const struct cluster_point *point)
{
    return processor_s(point) < 2 * fmax(point->gap_s, point->send_overhead_s);
}

/* (2.8) or (2.9), to the letter but for the first term */
static double printed(const struct cluster_point *point, uint32_t processes, uint64_t packets)
{
    double log_p = log2(processes), more = (double) (packets - 1), t_0 = processor_s(point);
    if (undisturbed(point))
        return log_p * (more * point->gap_s + point->latency_s + t_0);
    return more * (t_0 + (log_p - 2) * point->send_overhead_s) + log_p * (point->latency_s + t_0);
}

bool cluster_broadcast(const struct cluster_point *point, uint32_t processes, uint64_t packets,
                       struct cluster_broadcast *result, struct error_text *error)
{
    if (!processes || !packets)
        return fail_with(error, "a broadcast of %llu packets among %u processes is none",
                         (unsigned long long) packets, (unsigned) processes);
    if (packets > CLUSTER_STEPS_MAX / processes)
        return fail_with(error, "%llu packets among %u processes are too many to simulate",
                         (unsigned long long) packets, (unsigned) processes);
    result->undisturbed = undisturbed(point);
    result->printed_s = printed(point, processes, packets);
    result->simulated_s = tree_simulate(point, 0, processes, packets, NULL);
    if (result->simulated_s < 0)
        return fail_with(error, "no memory to simulate %llu packets", (unsigned long long) packets);
    return true;
}
