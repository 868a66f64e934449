/* SPDX-License-Identifier: BSD-3-Clause */
/* The cluster model: its formulas, and the tree that judges them. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "tools/model/cluster.h"

static bool close_to(double a, double b)
{
    return fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b) + 1e-9);
}

/* The set of the seed's figure 2.3: p = 16, L = 4, g = 2, O_s = 1, O_r = 1.5, U_r = 0.5. */
static struct cluster_point figure_2_3(void)
{
    return (struct cluster_point){.send_overhead_s = 1,
                                  .gap_s = 2,
                                  .latency_s = 4,
                                  .receive_overhead_s = 1.5,
                                  .user_overhead_s = 0.5};
}

/* --- (2.8) corrected: the first packet through the tree that exists, and every other one later by
 * what the slowest process takes for one. cluster.c says why. ------------------------------- */

#define CHILDREN_MAX 32

static uint32_t tree_children(uint32_t rank, uint32_t processes, uint32_t children[CHILDREN_MAX])
{
    uint32_t count = 0, lowest = 1;
    while (rank ? !(rank & lowest) : lowest < processes)
        lowest *= 2;
    for (uint32_t step = lowest / 2; step; step /= 2)
        if (rank + step < processes)
            children[count++] = rank + step;
    return count;
}

static double processor_s(const struct cluster_point *point)
{
    return point->send_overhead_s + point->receive_overhead_s + point->user_overhead_s;
}

/* Two sends of one process follow each other at this distance. */
static double step_s(const struct cluster_point *point)
{
    return fmax(point->gap_s, point->send_overhead_s);
}

/* What one packet costs a process with so many children that is not the root, at least. */
static double packet_s(const struct cluster_point *point, uint32_t children)
{
    double receive = point->receive_overhead_s + point->user_overhead_s;
    if (!children)
        return receive;
    double busy = receive + children * point->send_overhead_s;
    double paced = point->user_overhead_s + point->send_overhead_s + (children - 1) * step_s(point);
    return fmax(fmax(busy, paced), children * step_s(point));
}

struct tree_reach {
    double first_s;   /* from a process having the first packet to all below having it */
    double slowest_s; /* of those below, a packet */
};

static struct tree_reach tree_first(const struct cluster_point *point, uint32_t rank,
                                    uint32_t processes)
{
    uint32_t children[CHILDREN_MAX];
    uint32_t count = tree_children(rank, processes, children);
    struct tree_reach reach = {0, rank ? packet_s(point, count) : count * step_s(point)};
    for (uint32_t i = 0; i < count; i++) {
        struct tree_reach below = tree_first(point, children[i], processes);
        double hop = i * step_s(point) + point->latency_s + processor_s(point);
        reach.first_s = fmax(reach.first_s, hop + below.first_s);
        reach.slowest_s = fmax(reach.slowest_s, below.slowest_s);
    }
    return reach;
}

static double corrected(const struct cluster_point *point, uint32_t processes, uint64_t packets)
{
    struct tree_reach reach = tree_first(point, 0, processes);
    return processes > 1 ? reach.first_s + (double) (packets - 1) * reach.slowest_s : 0;
}

struct result {
    bool undisturbed;
    double printed_s, corrected_s, simulated_s;
};

static struct result broadcast(struct cluster_point point, uint32_t processes, uint64_t packets)
{
    struct cluster_broadcast result = {false, -1, -1};
    struct error_text error = {""};
    CHECK(cluster_broadcast(&point, processes, packets, &result, &error), "%s", error.text);
    return (struct result){result.undisturbed, result.printed_s,
                           corrected(&point, processes, packets), result.simulated_s};
}

/* (2.6): O_s + (k-1) g + L + O_r + U_r */
static void one_way_and_exchange(void)
{
    struct cluster_point point = figure_2_3();
    CHECK(cluster_one_way(&point, 1) == 7, "%g", cluster_one_way(&point, 1));
    CHECK(cluster_one_way(&point, 10) == 25, "%g", cluster_one_way(&point, 10));
    CHECK(!cluster_full_duplex(&point), "3 < 2 does not hold");
    point.gap_s = 3.5;
    CHECK(cluster_full_duplex(&point), "3 < 3.5 < 4 holds");
    point.latency_s = 3.5;
    CHECK(!cluster_full_duplex(&point), "3.5 < 3.5 does not hold");
}

static void figures_of_the_seed(void)
{
    struct cluster_point point = figure_2_3();
    /* 3 < 2 * 2: (2.8): 4 * (4 + 3) = 28, and 4 * 2 more for each further packet */
    for (uint64_t k = 1; k < 40; k++) {
        struct result result = broadcast(point, 16, k);
        double expected = 28 + 8.0 * (double) (k - 1);
        CHECK(result.undisturbed, "figure 2.3");
        CHECK(close_to(result.printed_s, expected) && close_to(result.corrected_s, expected) &&
                  close_to(result.simulated_s, expected),
              "k = %u: %g printed, %g corrected, %g simulated, not %g", (unsigned) k,
              result.printed_s, result.corrected_s, result.simulated_s, expected);
    }
    /* Figure 2.4, g = 1: 3 < 2 * 1 does not hold: (2.9): 3 + 2 * 1 more a packet */
    point.gap_s = 1;
    for (uint64_t k = 1; k < 40; k++) {
        struct result result = broadcast(point, 16, k);
        double expected = 28 + 5.0 * (double) (k - 1);
        CHECK(!result.undisturbed, "figure 2.4");
        CHECK(close_to(result.printed_s, expected) && close_to(result.corrected_s, expected),
              "k = %u: %g printed, %g corrected, not %g", (unsigned) k, result.printed_s,
              result.corrected_s, expected);
        CHECK(result.simulated_s >= expected && result.simulated_s <= expected * 1.1,
              "k = %u: %g simulated", (unsigned) k, result.simulated_s);
    }
}

/* Where (2.8) as printed is wrong: g below O_s, p = 2, p that is no power of two. */
static void printed_and_corrected(void)
{
    struct cluster_point point = figure_2_3();
    point.gap_s = 0.5;
    point.send_overhead_s = 3; /* 5 < 2 * 3; each send takes 3, not 0.5 */
    struct result result = broadcast(point, 8, 11);
    CHECK(close_to(result.printed_s, 3 * (10 * 0.5 + 9)), "%g", result.printed_s);
    CHECK(close_to(result.corrected_s, 3 * (10 * 3 + 9.0)), "%g", result.corrected_s);
    CHECK(close_to(result.simulated_s, result.corrected_s), "%g", result.simulated_s);

    point = figure_2_3(); /* p = 2: the receiver needs 2.9 a packet, more than g */
    point.receive_overhead_s = 2.4;
    result = broadcast(point, 2, 11);
    CHECK(result.undisturbed && close_to(result.printed_s, 10 * 2 + 7.9), "%g", result.printed_s);
    CHECK(close_to(result.corrected_s, 10 * 2.9 + 7.9), "%g", result.corrected_s);
    CHECK(close_to(result.simulated_s, result.corrected_s), "%g", result.simulated_s);

    /* p = 5: the root has 3 children; the deepest of the five is 2 steps away (4 and then none;
     * 2, then 3), and 3 is behind the root's second send: 2 + 7 + 7. */
    result = broadcast(figure_2_3(), 5, 3);
    CHECK(close_to(result.corrected_s, 16 + 2 * 3 * 2), "%g", result.corrected_s);
    CHECK(close_to(result.simulated_s, result.corrected_s), "%g", result.simulated_s);

    result = broadcast(figure_2_3(), 1, 9);
    CHECK(result.simulated_s == 0 && result.corrected_s == 0, "no process to send to");
}

static double chance_time(uint64_t *chance)
{
    static const double round[] = {0, 0.5, 1, 1.5, 2, 3};
    return chance_below(chance, 2) ? round[chance_below(chance, 6)] : 4 * chance_real(chance);
}

static struct cluster_point chance_point(uint64_t *chance)
{
    struct cluster_point point; /* one draw a statement: every compiler in the same order */
    point.send_overhead_s = chance_time(chance);
    point.gap_s = chance_time(chance);
    point.latency_s = 4 * chance_time(chance);
    point.receive_overhead_s = chance_time(chance);
    point.user_overhead_s = chance_time(chance);
    return point;
}

/* Undisturbed, the corrected formula is what the tree gives, for any p, k and gap; disturbed, it is
 * never above. (2.8) as printed holds for powers of two above 2 where g >= O_s and L + O_r + U_r >=
 * g. */
static void corrected_is_simulated(void)
{
    uint64_t chance = 31;
    unsigned undisturbed = 0, disturbed = 0, printed = 0;
    for (int i = 0; i < 20000; i++) {
        struct cluster_point point = chance_point(&chance);
        uint32_t p = 2 + (uint32_t) chance_below(&chance, 70);
        uint64_t k = 1 + chance_below(&chance, 40);
        struct result result = broadcast(point, p, k);
        if (result.undisturbed || p == 2 || k == 1) {
            undisturbed++;
            CHECK(
                close_to(result.corrected_s, result.simulated_s),
                "p = %u, k = %u, O_s %g g %g L %g O_r %g U_r %g: %.12g corrected, %.12g simulated",
                (unsigned) p, (unsigned) k, point.send_overhead_s, point.gap_s, point.latency_s,
                point.receive_overhead_s, point.user_overhead_s, result.corrected_s,
                result.simulated_s);
        } else {
            disturbed++;
            CHECK(result.corrected_s <= result.simulated_s * (1 + 1e-12),
                  "p = %u, k = %u: %.12g corrected, %.12g simulated", (unsigned) p, (unsigned) k,
                  result.corrected_s, result.simulated_s);
        }
        double reaction = point.latency_s + point.receive_overhead_s + point.user_overhead_s;
        if (result.undisturbed && p > 2 && !(p & (p - 1)) && point.gap_s >= point.send_overhead_s &&
            reaction + point.send_overhead_s >= point.gap_s) {
            printed++;
            CHECK(close_to(result.printed_s, result.simulated_s), "p = %u, k = %u: %g printed, %g",
                  (unsigned) p, (unsigned) k, result.printed_s, result.simulated_s);
        }
    }
    CHECK(undisturbed > 1000 && disturbed > 1000 && printed > 50, "%u, %u, %u cases", undisturbed,
          disturbed, printed);
}

static void impossible_broadcasts_are_refused(void)
{
    struct cluster_point point = figure_2_3();
    struct cluster_broadcast result;
    struct error_text error = {""};
    CHECK(!cluster_broadcast(&point, 0, 1, &result, &error) && error.text[0], "no process");
    CHECK(!cluster_broadcast(&point, 1, 0, &result, &error), "no packet");
    CHECK(!cluster_broadcast(&point, 1 << 20, 1 << 20, &result, &error), "%s", error.text);
}

static void parameters_are_lines(void)
{
    struct cluster_model model = {.send_overhead = {1, 0.5},
                                  .send_gap = {2, 0.25},
                                  .receive_gap = {3, 0},
                                  .receive_overhead = {4, 1},
                                  .user_overhead = {5, 0},
                                  .latency = {{4, {10, 1}}, {8, {30, 1}}},
                                  .latency_count = 2,
                                  .packet_bytes = 100};
    struct cluster_point point;
    cluster_at(&model, 2, 5, &point);
    CHECK(point.send_overhead_s == 2 && point.gap_s == 3 && point.receive_overhead_s == 6 &&
              point.user_overhead_s == 5,
          "at 2 bytes");
    CHECK(point.latency_s == 17, "a quarter of the way from 12 to 32, not %g", point.latency_s);
    cluster_at(&model, 100, 99, &point);
    CHECK(point.gap_s == 27 && point.latency_s == 130, "outside as at the nearest");
    CHECK(cluster_packets(&model, 0) == 1 && cluster_packets(&model, 100) == 1 &&
              cluster_packets(&model, 101) == 2,
          "packets");
}

int main(void)
{
    one_way_and_exchange();
    figures_of_the_seed();
    printed_and_corrected();
    corrected_is_simulated();
    impossible_broadcasts_are_refused();
    parameters_are_lines();
    return check_end();
}
