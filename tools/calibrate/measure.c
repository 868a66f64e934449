/* SPDX-License-Identifier: BSD-3-Clause */
/* What multilane-calibrate measures. */
#include "measure.h"

#include <math.h>
#include <string.h>

#include "common/lock/clock.h"
#include "common/model/number.h"

/* As many as the PML keeps, behind one that may find something cold. */
#define MESSAGES 16
/* Of long ones: as few as say something, and no more of them than this part of the time allows. */
#define MESSAGES_LONG 8
#define LONG_PART     0.03

/* --- several lanes ---------------------------------------------------------------------------- */

#define TOGETHER_BYTES (UINT64_C(2) << 20)

double measure_bandwidth(struct traffic *traffic, int peer, uint32_t lanes)
{
    struct multilane_times times;
    return traffic_force(traffic, peer, MULTILANE_MEASURE_PLANNED, lanes) &&
                   traffic_send(traffic, peer, TOGETHER_BYTES, MESSAGES_LONG, &times)
               ? (double) TOGETHER_BYTES / times.seconds
               : 0;
}

/* --- one lane, protocol by protocol ----------------------------------------------------------- */

struct visits {
    struct traffic *traffic;
    int peer, protocol;
    uint32_t lanes;
    double slot_s;                                   /* for one visit */
    double most_s[MODEL_PROTOCOLS][LEARNED_BUCKETS]; /* of the slowest round */
    struct lane_times *times;
};

/* Nothing is learned from every size of so few bytes, and of rendezvous still less. */
static bool is_visited(const struct visits *visits, uint32_t bucket)
{
    bool is_eager = model_protocols[visits->protocol]->kind == MODEL_EAGER;
    return bucket == 0 || (bucket == 3 && is_eager) || bucket >= 6;
}

/* Of two rounds the quicker one counts: what disturbs one only ever adds time. */
static void round_add(struct visits *visits, uint32_t bucket, const struct multilane_times *times)
{
    struct multilane_times *time = &visits->times->at[visits->protocol][bucket];
    double *most_s = &visits->most_s[visits->protocol][bucket];
    uint32_t messages = time->messages + times->messages;
    if (!time->messages || times->seconds < time->seconds)
        *time = *times;
    time->messages = messages;
    *most_s = fmax(*most_s, times->seconds);
}

/* False: so large ones take too long. */
static bool visit(struct visits *visits, uint32_t bucket)
{
    const struct multilane_measure *pml = visits->traffic->pml;
    const struct multilane_times *at = visits->times->at[visits->protocol];
    struct multilane_times times;
    double half_s = bucket && at[bucket - 1].messages ? at[bucket - 1].seconds : 0;
    double expected_s = fmax(half_s, 2 * half_s - at[0].seconds);
    int messages = MESSAGES * expected_s > visits->slot_s ? MESSAGES_LONG : MESSAGES;
    uint64_t bytes = UINT64_C(1) << bucket;
    if (messages * expected_s > visits->slot_s)
        return false;
    if (is_visited(visits, bucket) && pml->protocol(visits->peer, bytes) == visits->protocol &&
        traffic_send(visits->traffic, visits->peer, bytes, messages, &times))
        round_add(visits, bucket, &times);
    return true;
}

/* The lines of eager protocols are one: the first that carries a size stands for it. */
static bool is_known(const struct visits *visits, uint32_t bucket)
{
    bool is_known = false;
    for (int i = 0; i < visits->protocol; i++)
        is_known = is_known || (model_protocols[visits->protocol]->kind == MODEL_EAGER &&
                                visits->times->at[i][bucket].messages);
    return is_known;
}

static void visits_round(struct visits *visits, uint64_t largest_bytes)
{
    uint32_t end = learned_bucket(largest_bytes) + 1;
    for (visits->protocol = 0; visits->protocol < MODEL_PROTOCOLS; visits->protocol++)
        if (traffic_force(visits->traffic, visits->peer, visits->protocol, visits->lanes))
            for (uint32_t i = 0; i < end && (is_known(visits, i) || visit(visits, i)); i++)
                ;
}

void measure_lane(struct traffic *traffic, int peer, uint32_t index, const struct effort *effort,
                  double seconds, struct lane_times *times)
{
    struct visits visits = {.traffic = traffic,
                            .peer = peer,
                            .lanes = UINT32_C(1) << index,
                            .slot_s = LONG_PART * seconds,
                            .times = times};
    memset(times, 0, sizeof(*times));
    /* With its first messages a lane connects, and tells its round trip. */
    (void) measure_bandwidth(traffic, peer, visits.lanes);
    double until = clock_exact_s() + seconds;
    for (int round = 0; round < effort->rounds && (!round || clock_exact_s() < until); round++)
        visits_round(&visits, effort->largest_bytes);
    for (int i = 0; i < MODEL_PROTOCOLS; i++)
        for (int j = 0; j < LEARNED_BUCKETS; j++)
            times->at[i][j].spread_s =
                fmax(times->at[i][j].spread_s, visits.most_s[i][j] - times->at[i][j].seconds);
}

double measure_unsteady(const struct lane_times *times)
{
    double apart[MODEL_PROTOCOLS * LEARNED_BUCKETS];
    uint32_t count = 0;
    for (int i = 0; i < MODEL_PROTOCOLS; i++)
        for (int j = 0; j < LEARNED_BUCKETS; j++)
            if (times->at[i][j].seconds > 0)
                apart[count++] = times->at[i][j].spread_s / times->at[i][j].seconds;
    return count ? number_median(apart, count) : INFINITY;
}

/* --- registration ----------------------------------------------------------------------------- */

enum { SMALL, LARGE, SIZES };
static const size_t sizes[SIZES] = {4096, 4 << 20};
#define TURNS      8
#define COPY_BYTES ((size_t) 16384)
#define COPIES     256

static void registration_set(struct model_lane *lane, double small_s, double large_s)
{
    double growth = fmax(0, (large_s - small_s) / (double) (sizes[LARGE] - sizes[SMALL]));
    for (int way = 0; way < MODEL_WAYS; way++)
        for (uint32_t i = 0; i < lane->cost[way].range_count; i++) {
            if (way == MODEL_BY_SEND && lane->copy_growth_s_byte == 0)
                continue; /* its sends register nothing */
            lane->cost[way].ranges[i].reg_cost_s =
                fmax(0, small_s - growth * (double) sizes[SMALL]);
            lane->cost[way].ranges[i].reg_growth_s_byte = growth;
        }
}

/* A message that was just written, into a fragment that was long not used. */
static void copy_measure(struct model_lane *lane)
{
    double values[COPIES];
    char *message = memory_new((COPIES + 1) * COPY_BYTES), *fragment = message;
    if (!message)
        return;
    for (int i = 0; i < COPIES; i++) {
        double start = clock_exact_s();
        memcpy(fragment += COPY_BYTES, message, COPY_BYTES);
        __asm__ volatile("" : : "r"(fragment) : "memory");
        values[i] = clock_exact_s() - start;
    }
    lane->copy_growth_s_byte = fmax(1e-12, number_median(values, COPIES) / (double) COPY_BYTES);
    memory_free(message, (COPIES + 1) * COPY_BYTES);
}

/* Each piece of `memory`, which no cache knows, once anew and once more. */
static void registrations_measure(const struct multilane_measure *pml, int peer, uint32_t index,
                                  char *memory, struct model_lane *lane)
{
    double fresh[SIZES][TURNS], again[SIZES * TURNS];
    struct model_surroundings around = {.registration_cached = false};
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < SIZES; i++) {
            double start = clock_exact_s();
            int first = pml->registration(peer, index, memory, sizes[i]);
            double middle = clock_exact_s();
            int second = pml->registration(peer, index, memory, sizes[i]);
            if (first != 0 || second != 0)
                return;
            fresh[i][turn] = middle - start;
            again[turn * SIZES + i] = clock_exact_s() - middle;
            memory += sizes[i];
        }
    registration_set(lane, number_median(fresh[SMALL], TURNS), number_median(fresh[LARGE], TURNS));
    pml->surroundings(&around);
    if (around.registration_cached)
        lane->reg_cached_s = number_median(again, SIZES * TURNS);
}

void measure_registration(const struct multilane_measure *pml, int peer, uint32_t index,
                          struct model_lane *lane)
{
    size_t bytes = TURNS * (sizes[SMALL] + sizes[LARGE]);
    /* All of it until the end: what goes back in between is taken out of the cache by the next
     * registration, in whose time it would be. */
    char *memory = memory_new(bytes);
    if (!memory)
        return;
    registrations_measure(pml, peer, index, memory, lane);
    memory_free(memory, bytes);
    if (lane->copy_growth_s_byte > 0)
        copy_measure(lane);
}
