/* SPDX-License-Identifier: BSD-3-Clause */
/* Striping over simulated rails, in simulated time: what several rails carry together, whatever was
 * thought of them before, also while one of them slows down. */
#include "check.h"

#include <string.h>

#include "lanes_standin.h"
#include "delivery/control.h"
#include "plan/peer_class.h"
#include "contact/peer_lanes.h"
#include "plan/stripe.h"

#define M             ((size_t) 1 << 20)
#define RAILS_MAX     4
#define PIECE_MOST    ((size_t) 128 << 10)
#define STEP_NS       20000
#define PIECES_QUEUED 65536

/* A rail delivers its pieces in order at its own rate; reports come back after `back_ns`. */
struct rail {
    double bytes_s, left; /* of the first piece in the queue */
    size_t queue[PIECES_QUEUED];
    unsigned first, last;
    uint64_t delivered;
    uint64_t told, arrives_ns; /* a report on its way */
};

static struct {
    int count;
    uint64_t back_ns;
    struct peer *sender, *receiver; /* each as the other end sees it */
    struct rail rails[RAILS_MAX];
    uint64_t bytes_received;
} sim;

static void sim_begin(int count, const double *mbit, uint64_t back_ns)
{
    memset(&sim, 0, sizeof(sim));
    sim.count = count;
    sim.back_ns = back_ns;
    sim.sender = standin_peer();
    sim.receiver = standin_peer();
    for (int i = 0; i < count; i++) {
        mca_btl_base_module_t *btl = standin_btl("tcp", 10000); /* what all of them say */
        standin_reach(sim.sender, btl);
        standin_reach(sim.receiver, btl);
        sim.rails[i].bytes_s = mbit[i] * 125000;
    }
    CHECK(peer_take_lanes(sim.sender) && peer_take_lanes(sim.receiver), "no lanes");
}

static void rail_send(int index, size_t size)
{
    struct rail *rail = &sim.rails[index];
    if (rail->first == rail->last)
        rail->left = (double) size;
    rail->queue[rail->last++ % PIECES_QUEUED] = size;
}

static void rail_step(int index)
{
    struct rail *rail = &sim.rails[index];
    struct lane *here = &sim.receiver->lanes[index], *there = &sim.sender->lanes[index];
    double bytes = rail->bytes_s * STEP_NS * 1e-9;
    while (rail->first != rail->last && bytes >= rail->left) {
        size_t size = rail->queue[rail->first++ % PIECES_QUEUED];
        bytes -= rail->left;
        rail->delivered += size;
        sim.bytes_received += size;
        received_on_lane(here, size);
        rail->left =
            rail->first != rail->last ? (double) rail->queue[rail->first % PIECES_QUEUED] : 0;
    }
    if (rail->first != rail->last)
        rail->left -= bytes;
    if (rail->arrives_ns && standin_now_ns >= rail->arrives_ns) {
        const struct wire_received seen = {.bytes = rail->told};
        stripe_received(there, &seen);
        rail->arrives_ns = 0;
    }
    if (!rail->arrives_ns && standin_reported(here) > rail->told) {
        rail->told = standin_reported(here);
        rail->arrives_ns = standin_now_ns + sim.back_ns;
    }
}

static void sim_step(void)
{
    standin_now_ns += STEP_NS;
    for (int i = 0; i < sim.count; i++)
        rail_step(i);
}

/* Sends `count` messages of `size` one after the other, as many under way as the lanes take, and
 * waits until they have arrived. Returns the seconds that it took. */
static double window_s(size_t size, unsigned count)
{
    uint64_t began_ns = standin_now_ns, wanted = sim.bytes_received + size * count;
    const struct route *route = class_route_at(peer_class_now(sim.sender), CLASS_CONTIGUOUS, size);
    CHECK(route->lane_count == sim.count, "%d lanes of %d", route->lane_count, sim.count);
    size_t left = size;
    while (sim.bytes_received < wanted && standin_now_ns - began_ns < UINT64_C(100000000000)) {
        while (count) {
            size_t piece = left;
            struct lane *lane = stripe_choose(route, sim.sender, size, &piece, true);
            if (!lane)
                break;
            if (piece > PIECE_MOST)
                piece = PIECE_MOST;
            CHECK(piece > 0 && piece <= left, "a piece of %zu, %zu are left", piece, left);
            stripe_sent(lane, piece);
            rail_send(lane->index, piece);
            left -= piece;
            if (!left) {
                left = size;
                count--;
            }
        }
        sim_step();
    }
    CHECK(sim.bytes_received == wanted, "%llu of %llu bytes", (unsigned long long) wanted,
          (unsigned long long) sim.bytes_received);
    double took_s = (double) (standin_now_ns - began_ns) * 1e-9;
    received_flush(sim.receiver);
    for (int i = 0; i < 100; i++) /* what was reported last arrives */
        sim_step();
    return took_s;
}

static double sum_bytes_s(void)
{
    double sum = 0;
    for (int i = 0; i < sim.count; i++)
        sum += sim.rails[i].bytes_s;
    return sum;
}

/* What part of the rails' sum windows reach; the first ones tell how fast the rails are. */
static double part_of_sum(size_t size, unsigned count, int windows)
{
    double took_s = 0;
    window_s(size, count);
    for (int i = 0; i < windows; i++)
        took_s += window_s(size, count);
    return (double) size * count * windows / took_s / sum_bytes_s();
}

static const struct {
    const char *name;
    int count;
    double mbit[RAILS_MAX];
    double window, single; /* parts of the sum that are to be reached */
} sets[] = {
    {"equal", 2, {800, 800}, 0.97, 0.9},
    {"1:3", 2, {400, 1200}, 0.97, 0.9},
    {"1:10", 2, {120, 1200}, 0.97, 0.9},
    {"1:2:4", 3, {200, 400, 800}, 0.97, 0.9},
    {"four", 4, {100, 100, 1000, 10000}, 0.97, 0.9},
    {"fast", 2, {100000, 200000}, 0.9, 0.8},
};

static void rails_carry_their_sum(void)
{
    static const uint64_t backs_ns[] = {50000, 500000, 5000000};
    for (size_t s = 0; s < sizeof(sets) / sizeof(sets[0]); s++) {
        for (size_t b = 0; b < sizeof(backs_ns) / sizeof(backs_ns[0]); b++) {
            sim_begin(sets[s].count, sets[s].mbit, backs_ns[b]);
            if (sum_bytes_s() * 1e-9 * (double) backs_ns[b] > 2e6)
                continue; /* so much is under way only in the widest networks */
            double part = part_of_sum(M, 64, 4);
            CHECK(part >= sets[s].window, "%s, 1 MiB, reports after %llu ns: %.3f of the sum",
                  sets[s].name, (unsigned long long) backs_ns[b], part);
            part = part_of_sum(4 * M, 16, 4);
            CHECK(part >= sets[s].window, "%s, 4 MiB, reports after %llu ns: %.3f of the sum",
                  sets[s].name, (unsigned long long) backs_ns[b], part);
            part = part_of_sum(16 * M, 1, 5);
            CHECK(part >= sets[s].single, "%s, 16 MiB, reports after %llu ns: %.3f of the sum",
                  sets[s].name, (unsigned long long) backs_ns[b], part);
        }
    }
}

/* From one message to the next, over anything: nothing is known before. */
static void single_messages_learn_the_rails(void)
{
    for (size_t s = 0; s < sizeof(sets) / sizeof(sets[0]) - 1; s++) {
        sim_begin(sets[s].count, sets[s].mbit, 100000);
        double first = (double) (16 * M) / window_s(16 * M, 1) / sum_bytes_s();
        double second = (double) (16 * M) / window_s(16 * M, 1) / sum_bytes_s();
        CHECK(first >= 0.25 && second >= 0.85, "%s: %.3f, then %.3f of the sum", sets[s].name,
              first, second);
    }
}

/* A rail at a tenth of its speed gets a tenth within a second, and its share again afterwards. */
static void a_rail_that_slows_gets_less_and_more_again(void)
{
    static const double mbit[] = {800, 800};
    sim_begin(2, mbit, 300000);
    double part = part_of_sum(M, 64, 3);
    sim.rails[1].bytes_s /= 10;
    for (double passed_s = 0; passed_s < 1;)
        passed_s += window_s(M, 64);
    uint64_t before = sim.rails[1].delivered, all = sim.bytes_received;
    double slow_part = part_of_sum(M, 64, 3);
    double share = (double) (sim.rails[1].delivered - before) / (double) (sim.bytes_received - all);
    CHECK(share > 0.07 && share < 0.11, "%.3f of the bytes over a rail of 1/11", share);
    CHECK(slow_part >= 0.95, "%.3f of the sum while a rail is slow", slow_part);
    sim.rails[1].bytes_s *= 10;
    for (double passed_s = 0; passed_s < 1;)
        passed_s += window_s(M, 64);
    double again = part_of_sum(M, 64, 3);
    CHECK(part >= 0.97 && again >= 0.97, "%.3f before, %.3f after", part, again);
}

/* Nothing waits where it must not, nor for a lane that is lost. */
static void eager_messages_never_wait_and_lost_lanes_get_nothing(void)
{
    static const double mbit[] = {10, 10, 10};
    sim_begin(3, mbit, 100000);
    const struct route *route =
        class_route_at(peer_class_now(sim.sender), CLASS_CONTIGUOUS, 16 * M);
    for (int i = 0; i < 2000; i++) {
        size_t size = 100000;
        struct lane *lane = stripe_choose(route, sim.sender, 100000, &size, false);
        CHECK(lane && size > 0 && size <= 100000, "piece %d: %zu bytes", i, size);
        stripe_sent(lane, size);
    }
    size_t size = M;
    CHECK(!stripe_choose(route, sim.sender, M, &size, true), "a lane with %u MB before it is free",
          60);
    sim_begin(3, mbit, 100000);
    route = class_route_at(peer_class_now(sim.sender), CLASS_CONTIGUOUS, 16 * M);
    lane_leave_out(&sim.sender->lanes[1], LANE_OUT_DOWN, true);
    for (int i = 0; i < 100; i++) {
        size = 100000;
        struct lane *lane = stripe_choose(route, sim.sender, 100000, &size, false);
        CHECK(lane && lane->index != 1, "a route from before takes the lost lane");
        stripe_sent(lane, size);
    }
}

/* A message that began on one lane alone goes on by another when that one is left out. */
static void the_only_lane_of_a_route_may_be_drained(void)
{
    static const double mbit[] = {800, 800};
    sim_begin(2, mbit, 100000);
    const struct route *route = class_route_at(peer_class_now(sim.sender), CLASS_CONTIGUOUS, 100);
    struct lane *only = route_lane(route, sim.sender, 0);
    size_t size = 100000;
    CHECK(route->lane_count == 1 && stripe_choose(route, sim.sender, M, &size, true) == only,
          "its lane");
    CHECK(lane_leave_out(only, LANE_OUT_DRAINED, true), "no lane is left");
    struct lane *other = stripe_choose(route, sim.sender, M, &size, true);
    CHECK(other && other != only, "a later piece goes over the drained lane");
    CHECK(lane_leave_out(&sim.sender->lanes[!only->index], LANE_OUT_DOWN, true), "no lane is left");
    CHECK(stripe_choose(route, sim.sender, M, &size, true) == only, "the last one");
}

/* Impossible reports change nothing. */
static void nonsense_is_passed_over(void)
{
    static const double mbit[] = {800, 800};
    static const uint64_t wrong[] = {UINT64_MAX, 0, UINT64_C(1) << 63};
    sim_begin(2, mbit, 100000);
    part_of_sum(M, 16, 1);
    struct lane_speed before = sim.sender->lanes[0].speed;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        stripe_received(&sim.sender->lanes[0], &(struct wire_received){.bytes = wrong[i]});
    CHECK(memcmp(&before, &sim.sender->lanes[0].speed, sizeof(before)) == 0,
          "a report of nonsense counts");
}

/* Attributes that change while messages flow: the plan is another, the bytes all arrive. */
static void lanes_that_change_under_traffic_lose_nothing(void)
{
    static const double mbit[] = {300, 600, 900};
    uint64_t chance = 77;
    sim_begin(3, mbit, 200000);
    for (int i = 0; i < 60; i++) {
        int index = (int) chance_below(&chance, 3);
        sim.rails[index].bytes_s = 1e6 * (1 + (double) chance_below(&chance, 200));
        window_s(M / 2 + chance_below(&chance, 8 * M), 1 + (unsigned) chance_below(&chance, 8));
    }
    for (int i = 0; i < 3; i++)
        CHECK(sim.sender->lanes[i].speed.sent == sim.rails[i].delivered, "rail %d", i);
}

/* A message is cut into as few fragments as the lane allows, none much shorter than the others. */
static void fragments_are_of_a_size(void)
{
    static const size_t limits[] = {100, 4000, 16384, 16456, 65536};
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
        for (size_t size = 1; size < 5 * limits[i]; size += size < 300 ? 1 : 97) {
            size_t fragments = 0, shortest = size, longest = 0, left = size;
            while (left > 0) {
                size_t fragment = stripe_fragment(left, limits[i]);
                CHECK(fragment > 0 && fragment <= left && fragment <= limits[i],
                      "%zu bytes of %zu, at most %zu", fragment, left, limits[i]);
                shortest = fragment < shortest ? fragment : shortest;
                longest = fragment > longest ? fragment : longest;
                left -= fragment;
                fragments++;
            }
            CHECK(fragments == (size + limits[i] - 1) / limits[i], "%zu bytes, at most %zu: %zu",
                  size, limits[i], fragments);
            CHECK(longest - shortest < 64 * fragments, "%zu bytes, at most %zu: %zu to %zu", size,
                  limits[i], shortest, longest);
        }
}

/* What was under way when a rail was lost is never reported, and must not count for ever. */
static void a_rail_that_was_lost_gets_its_share_again(void)
{
    const double mbit[] = {800, 800};
    sim_begin(2, mbit, 100000);
    part_of_sum(M, 64, 1);
    for (int i = 0; i < 64; i++) {
        stripe_sent(&sim.sender->lanes[0], PIECE_MOST);
        rail_send(0, PIECE_MOST);
    }
    sim_step();
    sim.rails[0].first = sim.rails[0].last; /* the wire is cut */
    stripe_lane_lost(&sim.sender->lanes[0]);
    uint64_t before = sim.rails[0].delivered, all_before = sim.bytes_received;
    double part = part_of_sum(M, 64, 3);
    double share =
        (double) (sim.rails[0].delivered - before) / (double) (sim.bytes_received - all_before);
    CHECK(part > 0.9 && share > 0.4, "%.2f of the sum, %.2f by the rail that was lost", part,
          share);
}

/* A lane beside another one, whose speed some copies have shown. */
static struct lane *lane_with_copies(void)
{
    const double mbit[] = {800, 800};
    sim_begin(2, mbit, 100000);
    struct lane *lane = &sim.sender->lanes[0];
    for (int i = 0; i < 8; i++) {
        stripe_copying(lane, M);
        standin_now_ns += 10000000;
        stripe_copied(lane, M);
    }
    return lane;
}

/* How long a get took that failed is no speed. */
static void a_failed_copy_does_not_slow_its_lane(void)
{
    struct lane *lane = lane_with_copies();
    uint64_t before = lane->copy_speed.bytes_s;
    stripe_copying(lane, M);
    standin_now_ns += UINT64_C(7000000000); /* until the device gives up */
    stripe_copy_failed(lane, M);
    stripe_copying(lane, M);
    standin_now_ns += 10000000;
    stripe_copied(lane, M);
    CHECK(lane->copy_speed.bytes_s > before / 2, "%llu bytes/s, %llu before",
          (unsigned long long) lane->copy_speed.bytes_s, (unsigned long long) before);
}

/* A process that is stopped in the middle of a message has not become slow. */
static void a_pause_does_not_slow_a_lane(void)
{
    struct lane *lane = lane_with_copies();
    uint64_t before = lane->copy_speed.bytes_s;
    stripe_copying(lane, M);
    stripe_copying(lane, M);
    standin_now_ns += UINT64_C(60000000000);
    stripe_copied(lane, M);
    CHECK(lane->copy_speed.bytes_s > before / 5, "%llu bytes/s, %llu before",
          (unsigned long long) lane->copy_speed.bytes_s, (unsigned long long) before);
    stripe_copied(lane, M);
}

/* Two threads end copies at once: the one that counted first may look at the clock last. */
static void copies_that_end_at_once_are_no_endless_speed(void)
{
    const double mbit[] = {800, 800};
    sim_begin(2, mbit, 100000);
    struct lane *lane = &sim.sender->lanes[0];
    stripe_copying(lane, M);
    stripe_copying(lane, M);
    standin_now_ns += 10000000;
    uint64_t before = lane->copy_speed.bytes_s;
    lane->copy_speed.since_bytes = 2 * M; /* as the other thread leaves it */
    stripe_copied(lane, M);
    CHECK(lane->copy_speed.bytes_s == before, "%llu bytes/s, %llu before",
          (unsigned long long) lane->copy_speed.bytes_s, (unsigned long long) before);
}

/* What began when the peer had one lane was not counted; it ends when there are two. */
static void copies_of_an_only_lane_end_beside_another(void)
{
    const double mbit[] = {800, 800};
    size_t size;
    sim_begin(1, mbit, 100000);
    struct peer *peer = sim.sender;
    for (int i = 0; i < 8; i++)
        stripe_copying(&peer->lanes[0], M);
    standin_reach(peer, standin_btl("tcp", 10000));
    CHECK(peer_take_lanes(peer) && peer_lane_count(peer) == 2, "a second lane");
    struct lane *lanes[] = {&peer->lanes[0], &peer->lanes[1]};
    stripe_copy_failed(lanes[0], M);
    stripe_not_copying(lanes[0], M);
    for (int i = 0; i < 6; i++)
        stripe_copied(lanes[0], M);
    stripe_copying(lanes[1], M);
    CHECK(stripe_choose_copy(lanes, 2, M, &size) == 0, "the first is idle, the second is not");
    CHECK(stripe_observed_speed(lanes[0], true) == 0, "nothing says how fast it is");
}

#define LOAD ((size_t) 64 << 10)
static size_t bytes_on_rail[RAILS_MAX];
static double rail_bytes_s = 1e5;

/* Of lanes that know: rail N is N + 1 times as fast as rail 0. */
static size_t under_way(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                        size_t more, double *seconds)
{
    int index = 0;
    (void) endpoint;
    while (sim.sender->lanes[index].btl != btl)
        index++;
    *seconds = (double) (bytes_on_rail[index] + more) / (rail_bytes_s * (index + 1));
    return bytes_on_rail[index];
}

static int rail_of_whole(void)
{
    const struct lane *lane = stripe_instead(&sim.sender->lanes[0], 4096);
    return lane ? lane->index : -1;
}

static void whole_messages_leave_a_busy_lane(void)
{
    static const struct multilane_extension telling = {.under_way = under_way}, silent;
    const double alike[] = {100, 100, 100};
    sim_begin(3, alike, 0);
    for (int i = 0; i < 3; i++)
        sim.sender->lanes[i].extension = &telling;
    memset(bytes_on_rail, 0, sizeof(bytes_on_rail));
    CHECK(rail_of_whole() == 2, "rail %d, and rail 2 is the fastest", rail_of_whole());
    bytes_on_rail[2] = 4 * LOAD;
    CHECK(rail_of_whole() == 1, "rail %d, and rail 1 is idle", rail_of_whole());
    bytes_on_rail[1] = 2 * LOAD;
    CHECK(rail_of_whole() == 0, "rail %d, and rail 0 is idle", rail_of_whole());
    bytes_on_rail[0] = 2 * LOAD;
    CHECK(rail_of_whole() == 1, "rail %d, and rail 1 is the first to have it", rail_of_whole());
    bytes_on_rail[0] = bytes_on_rail[1] = bytes_on_rail[2] = 0;
    rail_bytes_s = 1e12;
    CHECK(rail_of_whole() == 0, "rail %d, and others gain nothing to speak of", rail_of_whole());
    rail_bytes_s = 1e5;
    struct peer_class *class = peer_class_now(sim.sender);
    class->lanes[2].use = MODEL_USE_RNDV;
    CHECK(rail_of_whole() == 1, "rail %d, and rail 2 is for large messages", rail_of_whole());
    class->lanes[2].use = MODEL_USE_BOTH;
    bytes_on_rail[1] = bytes_on_rail[2] = 0;
    atomic_store_explicit(&sim.sender->lanes[2].lost, true, memory_order_relaxed);
    CHECK(rail_of_whole() == 1, "rail %d, and rail 2 is lost", rail_of_whole());
    sim.sender->lanes[1].extension = &silent;
    CHECK(rail_of_whole() == 0, "rail %d, and rail 1 is of another kind", rail_of_whole());
}

static double observed_bytes_s(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint)
{
    double idle_s, busy_s;
    (void) under_way(btl, endpoint, 0, &idle_s);
    (void) under_way(btl, endpoint, LOAD, &busy_s);
    return (double) LOAD / (busy_s - idle_s);
}

/* The plan takes the first two, as it knows no difference. */
static void pieces_take_the_lane_that_is_seen_to_be_fast(void)
{
    static const struct multilane_extension measuring = {.under_way = under_way,
                                                         .observed_bytes_s = observed_bytes_s};
    const double alike[] = {100, 100, 100};
    size_t size = LOAD;
    sim_begin(3, alike, 0);
    memset(bytes_on_rail, 0, sizeof(bytes_on_rail));
    struct route route = *class_route_at(peer_class_now(sim.sender), CLASS_CONTIGUOUS, SIZE_MAX);
    CHECK(route.lane_count == 3, "%d lanes", route.lane_count);
    route.lane_count = 2;
    for (int i = 0; i < 3; i++)
        sim.sender->lanes[i].extension = &measuring;
    CHECK(stripe_choose(&route, sim.sender, LOAD, &size, false)->index == 1, "the faster of two");
    for (int i = 0; i < 3; i++)
        sim.sender->lanes[i].returns = true;
    size = LOAD;
    CHECK(stripe_choose(&route, sim.sender, LOAD, &size, false)->index == 2, "the fastest of all");
    CHECK(stripe_observed_speed(&sim.sender->lanes[2], false) > 2e5, "it is the speed in reports");
    bytes_on_rail[2] = 4 * LOAD;
    size = LOAD;
    CHECK(stripe_choose(&route, sim.sender, LOAD, &size, false)->index == 1, "that one is busy");
    bytes_on_rail[1] = bytes_on_rail[2] = 40 * LOAD;
    size = LOAD;
    CHECK(stripe_choose(&route, sim.sender, LOAD, &size, false)->index != 0,
          "two lanes, as planned");
    bytes_on_rail[1] = 0;
    struct peer_class *class = peer_class_now(sim.sender);
    bytes_on_rail[2] = 0;
    class->lanes[2].use = MODEL_USE_RNDV;
    size = LOAD;
    CHECK(stripe_choose(&route, sim.sender, LOAD, &size, false)->index == 1,
          "not all may take any message");
    class->lanes[2].use = MODEL_USE_BOTH;
}

/* One that is not up is given nothing. */
static void messages_leave_a_lane_that_broke(void)
{
    const double alike[] = {100, 100};
    sim_begin(2, alike, 0);
    atomic_store_explicit(&sim.sender->lanes[0].health.state, LANE_BROKEN, memory_order_relaxed);
    CHECK(rail_of_whole() == 1, "rail %d, and rail 0 is broken", rail_of_whole());
    atomic_store_explicit(&sim.sender->lanes[1].health.state, LANE_UNPROVEN, memory_order_relaxed);
    CHECK(rail_of_whole() == -1, "rail %d, and none is up", rail_of_whole());
}

int main(void)
{
    standin_begin();
    fragments_are_of_a_size();
    rails_carry_their_sum();
    single_messages_learn_the_rails();
    a_rail_that_slows_gets_less_and_more_again();
    eager_messages_never_wait_and_lost_lanes_get_nothing();
    the_only_lane_of_a_route_may_be_drained();
    whole_messages_leave_a_busy_lane();
    pieces_take_the_lane_that_is_seen_to_be_fast();
    messages_leave_a_lane_that_broke();
    nonsense_is_passed_over();
    lanes_that_change_under_traffic_lose_nothing();
    a_rail_that_was_lost_gets_its_share_again();
    a_failed_copy_does_not_slow_its_lane();
    a_pause_does_not_slow_a_lane();
    copies_that_end_at_once_are_no_endless_speed();
    copies_of_an_only_lane_end_beside_another();
    return check_end();
}
