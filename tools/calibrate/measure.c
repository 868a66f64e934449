/* SPDX-License-Identifier: BSD-3-Clause */
/* What multilane-calibrate measures, by orders to the other rank. */
#include "measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- one lane, protocol by protocol ----------------------------------------------------------- */

#define SIZES_MAX 120

/* One stretch of trips is as long as this at least, so that the clock does not count. */
#define STRETCH_S   8e-6
#define STRETCHES   7
#define TRIPS_MOST  2000
#define LONG_TRIP_S 4e-3 /* of these two rounds must do */

struct visit {
    struct session *session;
    int peer;
    uint32_t lanes;
    double slot_s; /* for one protocol at one size in one round */
};

static bool carries(const struct visit *visit, int protocol, uint64_t bytes)
{
    struct multilane_route route;
    const struct multilane_measure *pml = visit->session->pml;
    return pml->force(visit->peer, protocol, visit->lanes) == 0 &&
           pml->route(visit->peer, bytes, &route) == 0 && route.protocol == protocol &&
           !(route.lanes & ~visit->lanes);
}

/* The largest message up to `most` that the protocol carries; 0: not even 1 byte. */
static uint64_t largest_carried(const struct visit *visit, int protocol, uint64_t most)
{
    uint64_t low = 1, high = most;
    if (!carries(visit, protocol, 1))
        return 0;
    while (low < high) {
        uint64_t middle = low + (high - low + 1) / 2;
        if (carries(visit, protocol, middle))
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* The median of some stretches of trips, the number of trips such that all take about the slot. */
static double trip_time(const struct visit *visit, int protocol, uint64_t bytes)
{
    struct order order = {.protocol = protocol, .lanes = visit->lanes, .count = 2, .bytes = bytes};
    double values[STRETCHES];
    int stretches = 0;
    double first_s = session_trips(visit->session, visit->peer, &order);
    double left_s = visit->slot_s - 4 * first_s;
    if (first_s < 0)
        return NAN;
    if (left_s < 2 * first_s)
        return first_s;
    double stretch_s = fmax(STRETCH_S, left_s / STRETCHES);
    double trips = fmin(TRIPS_MOST, stretch_s / (2 * first_s));
    order.count = 1 + (int) fmax(1, trips);
    double until = seconds_now() + left_s;
    do
        values[stretches++] = session_trips(visit->session, visit->peer, &order);
    while (stretches < STRETCHES && seconds_now() < until);
    return median_of(values, (uint32_t) stretches);
}

static int compare_sizes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;
    return (x > y) - (x < y);
}

/* Powers of two, what lies between them, and both sides of every limit. */
static uint32_t choose_sizes(const struct effort *effort, const uint64_t *limits,
                             uint64_t sizes[SIZES_MAX])
{
    uint32_t count = 0, kept = 0;
    for (uint64_t size = 1; size <= effort->largest_bytes; size *= 2) {
        sizes[count++] = size;
        if (size >= 2 && size + size / 2 <= effort->largest_bytes)
            sizes[count++] = size + size / 2;
    }
    for (int i = 0; i < MODEL_PROTOCOLS; i++)
        if (limits[i] > 1 && limits[i] < effort->largest_bytes) {
            sizes[count++] = limits[i];
            sizes[count++] = limits[i] + 1;
        }
    qsort(sizes, count, sizeof *sizes, compare_sizes);
    for (uint32_t i = 0; i < count; i++)
        if (!kept || sizes[i] != sizes[kept - 1])
            sizes[kept++] = sizes[i];
    return kept;
}

static void sample_add(struct lane_samples *out, int protocol, uint64_t bytes, double seconds)
{
    struct effective_curve *curve = &out->curves[protocol];
    if (isnan(seconds) || curve->count == SAMPLES_MAX)
        return;
    out->samples[protocol][curve->count++] = (struct sample){bytes, seconds};
}

static void measure_rounds(struct session *session, int peer, uint32_t index,
                           const struct effort *effort, double seconds, progress_function progress,
                           struct lane_samples *out)
{
    struct visit visit = {.session = session, .peer = peer, .lanes = UINT32_C(1) << index};
    uint64_t limits[MODEL_PROTOCOLS], sizes[SIZES_MAX];
    int protocols = 0;
    memset(out, 0, sizeof(*out));
    out->index = index;
    for (int i = 0; i < MODEL_PROTOCOLS; i++) {
        limits[i] = largest_carried(&visit, i, effort->largest_bytes);
        out->curves[i].samples = out->samples[i];
        protocols += limits[i] > 0;
    }
    uint32_t size_count = choose_sizes(effort, limits, sizes);
    double until = seconds_now() + 1.5 * seconds;
    visit.slot_s = seconds / (effort->rounds * (double) size_count * (protocols ? protocols : 1));
    for (int round = 0; round < effort->rounds; round++)
        for (uint32_t i = 0; i < size_count; i++) {
            double longest_s = 0;
            for (int j = 0; j < MODEL_PROTOCOLS; j++) {
                /* The order changes, so that none is always the one after another. */
                int protocol = (j + round) % MODEL_PROTOCOLS;
                if (sizes[i] > limits[protocol])
                    continue;
                double trip_s = trip_time(&visit, protocol, sizes[i]);
                sample_add(out, protocol, sizes[i], trip_s);
                longest_s = fmax(longest_s, trip_s);
            }
            progress((round + (i + 1.0) / size_count) / effort->rounds, NULL);
            if (round >= 1 && seconds_now() > until)
                return; /* the machine does something else too */
            if (longest_s > LONG_TRIP_S && round >= 1)
                size_count = i + 1; /* it and the larger ones have been seen often enough */
        }
}

/* How far apart the least and the largest time of one size are, as a part of the least: the median
 * of all sizes of all protocols that were visited twice or more. */
static double samples_unsteady(const struct lane_samples *of)
{
    static double apart[MODEL_PROTOCOLS * SIZES_MAX];
    static struct sample sizes[SAMPLES_MAX];
    uint32_t count = 0;
    for (int i = 0; i < MODEL_PROTOCOLS; i++) {
        uint32_t size_count = sample_medians(of->samples[i], of->curves[i].count, sizes);
        for (uint32_t j = 0; j < size_count && j < SIZES_MAX; j++) {
            double least = INFINITY, most = 0;
            int seen = 0;
            for (uint32_t k = 0; k < of->curves[i].count; k++)
                if (of->samples[i][k].bytes == sizes[j].bytes) {
                    least = fmin(least, of->samples[i][k].seconds);
                    most = fmax(most, of->samples[i][k].seconds);
                    seen++;
                }
            if (seen > 1)
                apart[count++] = most / least - 1;
        }
    }
    return count ? median_of(apart, count) : 0;
}

void measure_lane(struct session *session, int peer, uint32_t index, const struct effort *effort,
                  double seconds, progress_function progress, struct lane_samples *out)
{
    measure_rounds(session, peer, index, effort, seconds, progress, out);
    out->unsteady = samples_unsteady(out);
    for (int i = 0; i < MODEL_PROTOCOLS; i++) {
        uint32_t steady = samples_steady(out->samples[i], out->curves[i].count);
        out->taken += out->curves[i].count;
        out->disturbed += out->curves[i].count - steady;
        out->curves[i].count = steady;
    }
}

/* --- several lanes ---------------------------------------------------------------------------- */

#define WINDOW_MESSAGES 8

double measure_bandwidth(struct session *session, int peer, uint32_t lanes,
                         const struct effort *effort)
{
    uint64_t bytes =
        effort->largest_bytes < (UINT64_C(4) << 20) ? effort->largest_bytes : UINT64_C(4) << 20;
    struct order order = {.protocol = MULTILANE_MEASURE_PLANNED,
                          .lanes = lanes,
                          .count = WINDOW_MESSAGES,
                          .bytes = bytes};
    double values[STRETCHES];
    int count = 0;
    for (; count < effort->rounds && count < STRETCHES; count++) {
        double taken_s = session_stream(session, peer, &order);
        if (taken_s <= 0)
            return 0;
        values[count] = WINDOW_MESSAGES * (double) bytes / taken_s;
    }
    return median_of(values, (uint32_t) count);
}

/* --- the cluster model ------------------------------------------------------------------------ */

#define COPY_REGION ((size_t) 64 << 20)
#define COPY_SIZES  4

/* A copy of each size; a side that is not in the cache walks through memory larger than any. */
static void copy_line(unsigned char *region, bool from_memory, bool to_memory,
                      struct cost_line *line)
{
    static const size_t sizes[COPY_SIZES] = {1024, 4096, 8192, 16384};
    struct sample samples[COPY_SIZES * 5];
    uint32_t count = 0;
    size_t at = 0;
    for (int round = 0; round < 5; round++)
        for (int i = 0; i < COPY_SIZES; i++) {
            double values[32];
            for (int j = 0; j < 32; j++) {
                unsigned char *from = region + (from_memory ? at : 0);
                unsigned char *to = region + COPY_REGION + (to_memory ? at : 0);
                double start = seconds_now();
                memcpy(to, from, sizes[i]);
                __asm__ volatile("" : : "r"(to) : "memory");
                values[j] = seconds_now() - start;
                at = (at + 65536 + 4096) % (COPY_REGION - 65536);
            }
            double middle_s = median_of(values, 32);
            if (middle_s > 0)
                samples[count++] = (struct sample){sizes[i], middle_s};
        }
    if (!line_fit(samples, count, 0.5, line, NULL))
        *line = (struct cost_line){0, 0};
}

static void measure_copies(struct cluster_model *model)
{
    unsigned char *region = malloc(2 * COPY_REGION);
    if (!region)
        return;
    memset(region, 1, 2 * COPY_REGION);
    copy_line(region, false, false, &model->copy[CLUSTER_CACHE_TO_CACHE]);
    copy_line(region, false, true, &model->copy[CLUSTER_CACHE_TO_MEMORY]);
    copy_line(region, true, true, &model->copy[CLUSTER_MEMORY_TO_MEMORY]);
    free(region);
}

#define OVERHEAD_REPEATS 40
#define STREAM_COUNT     256
#define STREAM_IN_COUNT  512
#define LEAST            3   /* repeats, however long they take */
#define CLUSTER_MOST_S   3.0 /* for all repeats together */

#define BROADCASTS_MOST_S 2.0

struct point_samples {
    struct sample send[9], gap[9], receive_gap[9], receive[9], user[9], trip[9];
    uint32_t count;
};

/* One packet size: all parameters. */
static bool measure_point(struct session *session, int peer, struct order *order, double clock_s,
                          double until, struct point_samples *out)
{
    double send[OVERHEAD_REPEATS], arrive[OVERHEAD_REPEATS], receive[OVERHEAD_REPEATS];
    double gap[STRETCHES], gap_in[STRETCHES], trip[STRETCHES];
    int seen = 0, sent = 0;
    uint32_t i = out->count;
    order->count = 4;
    double trip_s = session_trips(session, peer, order);
    /* Microseconds until what was asked for has surely arrived. */
    int arrived_us = 200 + (int) (2e6 * fmin(0.1, fmax(0, trip_s)));
    for (int k = 0; k < OVERHEAD_REPEATS && (k < LEAST || seconds_now() < until); k++) {
        struct session_overheads one;
        order->count = arrived_us;
        bool is_good = session_overheads(session, peer, order, &one);
        send[sent++] = one.send_s;
        if (!is_good)
            continue;
        arrive[seen] = one.arrive_s;
        receive[seen++] = one.receive_s;
    }
    int k = 0;
    for (; k < STRETCHES && (k < 1 || seconds_now() < until); k++) {
        order->count = STREAM_COUNT;
        order_walk(session, order);
        gap[k] = session_stream(session, peer, order) / STREAM_COUNT;
        order->count = STREAM_IN_COUNT;
        order_walk(session, order);
        gap_in[k] = session_gap_in(session, peer, order);
        order->count = STREAM_COUNT;
        order_walk(session, order);
        trip[k] = session_trips(session, peer, order);
    }
    if (!seen)
        return false;
    double gap_s = fmax(median_of(gap, (uint32_t) k), 1e-9),
           gap_in_s = fmax(median_of(gap_in, (uint32_t) k), 1e-9);
    /* A process that sends or receives one after another takes no longer for each than the gap: a
     * single one, after a pause, is slowed by what has left the caches meanwhile. */
    double send_s = fmin(gap_s, fmax(median_of(send, (uint32_t) sent) - clock_s, 1e-9));
    double user_s = fmin(gap_in_s / 2, fmax(median_of(receive, (uint32_t) seen) - clock_s, 1e-9));
    double receive_s =
        fmin(gap_in_s - user_s, fmax(median_of(arrive, (uint32_t) seen) - clock_s, 1e-9));
    out->send[i] = (struct sample){order->bytes, send_s};
    out->receive[i] = (struct sample){order->bytes, receive_s};
    out->user[i] = (struct sample){order->bytes, user_s};
    out->trip[i] = (struct sample){order->bytes, fmax(median_of(trip, (uint32_t) k), 1e-9)};
    out->gap[i] = (struct sample){order->bytes, gap_s};
    out->receive_gap[i] = (struct sample){order->bytes, gap_in_s};
    out->count++;
    return true;
}

/* What two readings of the clock take. */
static double clock_time(void)
{
    double values[64];
    for (int i = 0; i < 64; i++) {
        double start = seconds_now();
        values[i] = seconds_now() - start;
    }
    return median_of(values, 64);
}

/* L: what the processors' parts leave of a message's time. It is taken between the lines: one by
 * one, where processors do nearly all, as over shared memory, what is left is noise that no line
 * fits. */
static struct cost_line latency_of(const struct cost_line *trip, const struct cluster_model *model)
{
    struct cost_line left = *trip;
    const struct cost_line *parts[] = {&model->send_overhead, &model->receive_overhead,
                                       &model->user_overhead};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        left.fixed_s = fmax(0, left.fixed_s - parts[i]->fixed_s);
        left.growth_s_byte = fmax(0, left.growth_s_byte - parts[i]->growth_s_byte);
    }
    return left;
}

static bool fit_lines(const struct point_samples *points, struct cluster_model *model,
                      struct model_error *error)
{
    struct cost_line trip;
    const struct {
        const char *name;
        const struct sample *samples;
        struct cost_line *line;
        double most_residual;
    } rows[] = {{"O_s", points->send, &model->send_overhead, 0.5},
                {"g_s", points->gap, &model->send_gap, 0.5},
                {"g_r", points->receive_gap, &model->receive_gap, 0.5},
                {"O_r", points->receive, &model->receive_overhead, 0.5},
                /* A few ticks of the clock, whose number tells little. */
                {"U_r", points->user, &model->user_overhead, INFINITY},
                {"one way", points->trip, &trip, 0.5}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct model_error why;
        if (!line_fit(rows[i].samples, points->count, rows[i].most_residual, rows[i].line, &why))
            return model_fail(error, "%s: %.280s", rows[i].name, why.text);
    }
    model->latency[0].line = latency_of(&trip, model);
    model->latency[0].processes = 2;
    model->latency_count = 1;
    return true;
}

#define CLUSTER_ROUNDS 3

/* Some of each size; the largest only where a round has the time. */
static void broadcasts_take(struct session *session, uint64_t packet_bytes,
                            struct measure_broadcasts *out)
{
    double until = seconds_now() + BROADCASTS_MOST_S / CLUSTER_ROUNDS;
    for (int i = 0; i < MEASURE_BROADCAST_SIZES && seconds_now() < until; i++) {
        int packets = measure_broadcast_packets(i);
        if (packet_bytes * (uint64_t) packets > session->buffer_bytes)
            return;
        for (int k = 0; k < MEASURE_BROADCAST_TURNS / CLUSTER_ROUNDS; k++)
            out->taken_s[i][out->turns[i]++] = session_broadcast(session, packet_bytes, packets);
    }
}

bool measure_cluster(struct session *session, int peer, uint32_t lanes, uint64_t packet_bytes,
                     struct cluster_model *model, struct measure_broadcasts *broadcasts,
                     struct model_error *error)
{
    struct point_samples points = {.count = 0};
    struct order order = {.protocol = MULTILANE_MEASURE_PLANNED, .lanes = lanes};
    double clock_s = clock_time();
    memset(model, 0, sizeof(*model));
    model->packet_bytes = packet_bytes;
    /* Broadcasts between the rounds: they shall meet the machine that the model was taken from. */
    for (int round = 0; round < CLUSTER_ROUNDS; round++) {
        double until = seconds_now() + CLUSTER_MOST_S / CLUSTER_ROUNDS;
        for (uint64_t part = 1; part <= 3; part++) {
            order.bytes = packet_bytes * part / 3;
            measure_point(session, peer, &order, clock_s, until, &points);
        }
        if (broadcasts)
            broadcasts_take(session, packet_bytes, broadcasts);
    }
    if (!fit_lines(&points, model, error))
        return false;
    order.bytes = packet_bytes;
    model->buffer_bytes = session_in_flight(session, peer, &order, CALIBRATE_IN_FLIGHT_MOST);
    measure_copies(model);
    return cluster_model_check(model, error);
}

uint32_t measure_broadcast_pairs(const struct cluster_model *model, uint32_t processes,
                                 struct measure_broadcasts *broadcasts, struct measure_pair *pairs)
{
    struct cluster_point point, answer; /* rank 0 is told by an empty message */
    uint32_t count = 0;
    cluster_at(model, model->packet_bytes, processes, &point);
    cluster_at(model, 0, processes, &answer);
    for (int i = 0; i < MEASURE_BROADCAST_SIZES && broadcasts->turns[i]; i++) {
        uint64_t packets = (uint64_t) measure_broadcast_packets(i);
        struct cluster_broadcast broadcast;
        if (!cluster_broadcast(&point, processes, packets, &broadcast, NULL))
            break;
        pairs[count++] = (struct measure_pair){
            .bytes = model->packet_bytes * packets,
            .measured_s = median_of(broadcasts->taken_s[i], (uint32_t) broadcasts->turns[i]),
            .predicted_s = broadcast.simulated_s + cluster_one_way(&answer, 1)};
    }
    return count;
}

/* --- registration ----------------------------------------------------------------------------- */

#define REGISTRATION_SIZES 4
#define REGISTRATION_TURNS 8

static const size_t registration_sizes[REGISTRATION_SIZES] = {4096, 65536, 1 << 20, 4 << 20};

static void set_registration(struct model_lane *lane, const struct cost_line *line)
{
    for (int way = 0; way < MODEL_WAYS; way++)
        for (uint32_t i = 0; i < lane->cost[way].range_count; i++) {
            if (way == MODEL_BY_SEND && lane->copy_growth_s_byte == 0)
                continue; /* its sends register nothing */
            lane->cost[way].ranges[i].reg_cost_s = line->fixed_s;
            lane->cost[way].ranges[i].reg_growth_s_byte = line->growth_s_byte;
        }
}

/* A message that was just written, into a fragment that was long not used. */
static void time_copy(struct model_lane *lane)
{
    unsigned char *region = malloc(2 * COPY_REGION);
    struct cost_line line;
    if (!region)
        return;
    memset(region, 1, 2 * COPY_REGION);
    copy_line(region, false, true, &line);
    if (line.growth_s_byte > 0)
        lane->copy_growth_s_byte = line.growth_s_byte;
    free(region);
}

/* Each piece of `memory`, which no cache knows, once anew and once more. */
static void time_registrations(struct session *session, int peer, uint32_t index, char *memory,
                               struct model_lane *lane)
{
    struct sample samples[REGISTRATION_SIZES * REGISTRATION_TURNS];
    double again[REGISTRATION_SIZES * REGISTRATION_TURNS];
    struct cost_line line;
    struct model_surroundings around = {.registration_cached = false};
    uint32_t count = 0;
    for (int turn = 0; turn < REGISTRATION_TURNS; turn++)
        for (int i = 0; i < REGISTRATION_SIZES; i++) {
            size_t bytes = registration_sizes[i];
            double start = seconds_now();
            int first = session->pml->registration(peer, index, memory, bytes);
            double middle = seconds_now();
            int second = session->pml->registration(peer, index, memory, bytes);
            again[count] = seconds_now() - middle;
            if (first != 0 || second != 0)
                return;
            samples[count++] = (struct sample){bytes, middle - start};
            memory += bytes;
        }
    if (!line_fit(samples, count, 0.5, &line, NULL))
        return;
    set_registration(lane, &line);
    session->pml->surroundings(&around);
    if (around.registration_cached)
        lane->reg_cached_s = median_of(again, count);
}

void measure_registration(struct session *session, int peer, uint32_t index,
                          struct model_lane *lane)
{
    size_t bytes = 0;
    for (int i = 0; i < REGISTRATION_SIZES; i++)
        bytes += REGISTRATION_TURNS * registration_sizes[i];
    /* All of it until the end: what goes back in between is taken out of the cache by the next
     * registration, in whose time it would be. */
    char *memory = memory_new(bytes);
    if (!memory)
        return;
    time_registrations(session, peer, index, memory, lane);
    memory_free(memory, bytes);
    if (lane->copy_growth_s_byte > 0)
        time_copy(lane);
}

/* --- what the cluster model says of samples that it was not fitted to ------------------------- */

#define BLOCK_TURNS  15
#define BLOCK_MOST_S 2.0

void measure_blocks(struct session *session, int peer, uint32_t lanes,
                    const struct cluster_model *model, struct measure_blocks *out)
{
    struct order order = {.protocol = MULTILANE_MEASURE_PLANNED, .lanes = lanes};
    double until = seconds_now() + BLOCK_MOST_S;
    /* measure_cluster takes thirds of a packet. */
    order.bytes = out->packet_bytes = (model->packet_bytes * 5 + 5) / 6;
    cluster_at(model, out->packet_bytes, 2, &out->point);
    for (int i = 0; i < MEASURE_BLOCK_COUNTS; i++) {
        struct measure_block *block = &out->blocks[i];
        double one_way[BLOCK_TURNS], exchange[BLOCK_TURNS];
        uint32_t turns = 0;
        block->packets = UINT32_C(2) << i;
        order.count = (int) block->packets;
        for (; turns < BLOCK_TURNS && (turns < LEAST || seconds_now() < until); turns++) {
            order_walk(session, &order);
            one_way[turns] = session_block(session, peer, &order);
            order_walk(session, &order);
            exchange[turns] = session_exchange(session, peer, &order);
        }
        block->one_way_s = median_of(one_way, turns);
        block->exchange_s = median_of(exchange, turns);
        block->one_way_predicted_s = cluster_one_way(&out->point, block->packets);
        block->exchange_predicted_s = cluster_exchange(&out->point, block->packets);
    }
}
