/* SPDX-License-Identifier: BSD-3-Clause */
/* Several senders and one receiver, in simulated time: all that they have under way lies in one
 * queue before the receiver's port. */
#include "check.h"

#include <string.h>

#include "delivery/inflow.h"
#include "delivery/seen.h"
#include "lanes_standin.h"
#include "plan/peer_class.h"
#include "contact/peer_lanes.h"
#include "plan/stripe.h"

#define SENDERS_MAX   8
#define MESSAGE       ((size_t) 8 << 20)
#define PIECE_MOST    ((size_t) 128 << 10)
#define SOCKET_MOST   ((size_t) 4 << 20) /* bytes that a sender's kernel takes */
#define STEP_NS       20000u
#define BACK_NS       200000u
#define PIECES_QUEUED 65536u

struct piece {
    int sender;
    size_t size;
    bool is_counted;
};

static struct {
    int senders;
    double bytes_s, left; /* of the port; of the first piece in its queue */
    struct piece queue[PIECES_QUEUED];
    unsigned first, last;
    size_t queued, longest; /* bytes; the most since longest was cleared */
    struct {
        struct peer *here, *there; /* the receiver as the sender sees it; and the other way round */
        size_t size, queued, delivered;
        struct wire_seen told; /* a report on its way; 0: none */
        uint64_t arrives_ns;
    } of[SENDERS_MAX];
} sim;

static void sim_begin(int senders, double bytes_s)
{
    memset(&sim, 0, sizeof(sim));
    inflow_forget();
    parameters.incast_max_bytes = 0;
    sim.senders = senders;
    sim.bytes_s = bytes_s;
    mca_btl_base_module_t *port = standin_btl("tcp", 1000);
    for (int i = 0; i < senders; i++) {
        sim.of[i].here = standin_peer();
        sim.of[i].there = standin_peer();
        standin_reach(sim.of[i].here, standin_btl("tcp", 1000));
        standin_reach(sim.of[i].there, port);
        CHECK(peer_take_lanes(sim.of[i].here) && peer_take_lanes(sim.of[i].there), "no lanes");
    }
}

/* The receiver asks all at once, as a rendezvous does. */
static void all_are_asked(void)
{
    for (int i = 0; i < sim.senders; i++)
        inflow_asked(sim.of[i].there);
}

/* A sender gives its lane all that the lane takes. */
static void sender_step(int i)
{
    struct peer *peer = sim.of[i].here;
    const struct route *route = class_route_at(peer_class_now(peer), CLASS_CONTIGUOUS, MESSAGE);
    while (sim.of[i].size && sim.of[i].queued < SOCKET_MOST) {
        struct wire_base header = {.type = WIRE_DATA};
        size_t size = sim.of[i].size;
        struct lane *lane = stripe_choose(route, peer, MESSAGE, &size, STRIPE_FOR_LANE);
        if (!lane)
            return;
        size = size < PIECE_MOST ? size : PIECE_MOST;
        stripe_set_counted(route, lane, &header);
        if (header.traits)
            stripe_sent(lane, size);
        if (sim.first == sim.last)
            sim.left = (double) size;
        sim.queue[sim.last++ % PIECES_QUEUED] =
            (struct piece){.sender = i, .size = size, .is_counted = header.traits};
        sim.queued += size;
        sim.of[i].queued += size;
        sim.of[i].size -= size;
    }
}

static void port_step(void)
{
    double bytes = sim.bytes_s * STEP_NS * 1e-9;
    while (sim.first != sim.last && bytes >= sim.left) {
        const struct piece *piece = &sim.queue[sim.first++ % PIECES_QUEUED];
        struct lane *lane = &sim.of[piece->sender].there->lanes[0];
        bytes -= sim.left;
        sim.queued -= piece->size;
        sim.of[piece->sender].queued -= piece->size;
        sim.of[piece->sender].delivered += piece->size;
        if (piece->is_counted)
            seen_on_lane(lane, piece->size);
        inflow_arrived(lane, piece->size);
        sim.left = (double) sim.queue[sim.first % PIECES_QUEUED].size;
    }
    if (sim.first != sim.last)
        sim.left -= bytes;
}

/* What the receiver says arrives a little later. */
static void report_step(int i)
{
    const struct lane *lane = &sim.of[i].there->lanes[0];
    const struct wire_seen said = {standin_reported(lane), standin_bound(lane)};
    if (sim.of[i].arrives_ns && standin_now_ns >= sim.of[i].arrives_ns) {
        stripe_seen(&sim.of[i].here->lanes[0], &sim.of[i].told);
        sim.of[i].arrives_ns = 0;
    }
    if (!sim.of[i].arrives_ns &&
        (said.bytes != sim.of[i].told.bytes || said.bound != sim.of[i].told.bound)) {
        sim.of[i].told = said;
        sim.of[i].arrives_ns = standin_now_ns + BACK_NS;
    }
}

static void sim_run(double seconds)
{
    uint64_t until = standin_now_ns + (uint64_t) (seconds * 1e9);
    while (standin_now_ns < until) {
        standin_now_ns += STEP_NS;
        for (int i = 0; i < sim.senders; i++)
            sender_step(i);
        sim.longest = sim.queued > sim.longest ? sim.queued : sim.longest;
        port_step();
        for (int i = 0; i < sim.senders; i++)
            report_step(i);
    }
}

static void all_send(size_t size)
{
    all_are_asked();
    sim_run(2e-3); /* what the receiver says arrives */
    for (int i = 0; i < sim.senders; i++)
        sim.of[i].size = size;
}

static size_t delivered(void)
{
    size_t sum = 0;
    for (int i = 0; i < sim.senders; i++)
        sum += sim.of[i].delivered;
    return sum;
}

/* Seven senders: the queue holds what the port brings in 8 ms, or two short pieces of each, and the
 * port is never idle. */
static void several_senders_share_what_the_port_brings(void)
{
    static const double speeds[] = {12.5e6, 125e6, 1.25e9};
    for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++) {
        sim_begin(7, speeds[i]);
        all_send(SIZE_MAX / 2);
        sim_run(1);
        size_t before = delivered(), least = 7 * ((size_t) 32 << 10);
        size_t held = (size_t) (speeds[i] * 8e-3);
        sim.longest = 0;
        sim_run(1);
        double part = (double) (delivered() - before) / speeds[i];
        held = held > least ? held : least;
        CHECK(part > 0.97, "%.0f MB/s: %.3f of it", speeds[i] / 1e6, part);
        CHECK(sim.longest <= held / 2 * 3 && sim.longest >= held / 4,
              "%.0f MB/s: %zu bytes are queued, %zu wanted", speeds[i] / 1e6, sim.longest, held);
        for (int j = 0; j < 7; j++)
            CHECK(sim.of[j].delivered > delivered() / 7 / 2, "sender %d gets %zu of %zu", j,
                  sim.of[j].delivered, delivered());
    }
}

/* The user's number, and no bound at all. */
static void the_user_decides(void)
{
    sim_begin(4, 125e6);
    parameters.incast_max_bytes = 512 << 10;
    all_send(SIZE_MAX / 2);
    sim_run(0.5);
    sim.longest = 0;
    sim_run(0.5);
    CHECK(sim.longest <= (512u << 10) / 2 * 3, "%zu bytes are queued", sim.longest);
    sim_begin(4, 125e6);
    parameters.incast_max_bytes = UINT64_MAX;
    all_send(MESSAGE);
    sim_run(0.2);
    CHECK(sim.longest > 3 * SOCKET_MOST, "%zu bytes are queued", sim.longest);
}

/* A sender alone is not bounded, and is not any more when the others have ended. */
static void a_sender_that_is_alone_is_free(void)
{
    sim_begin(1, 125e6);
    all_send(MESSAGE);
    sim_run(0.01);
    CHECK(sim.longest > SOCKET_MOST / 2, "alone, %zu bytes are queued", sim.longest);
    sim_begin(3, 125e6);
    all_send(MESSAGE);
    sim_run(1);
    CHECK(delivered() == 3 * MESSAGE, "%zu bytes came", delivered());
    sim.of[0].size = 4 * MESSAGE;
    sim_run(2);
    CHECK(!stripe_bound(&sim.of[0].here->lanes[0]), "a bound of %llu stays",
          (unsigned long long) stripe_bound(&sim.of[0].here->lanes[0]));
    CHECK(sim.of[0].delivered == 5 * MESSAGE, "%zu bytes came", sim.of[0].delivered);
}

/* Whatever a peer says, pieces go on. */
static void a_bound_of_nonsense_stops_nothing(void)
{
    static const uint64_t bounds[] = {1, 4095, UINT64_MAX};
    sim_begin(1, 125e6);
    struct peer *peer = sim.of[0].here;
    struct lane *lane = &peer->lanes[0];
    const struct route *route = class_route_at(peer_class_now(peer), CLASS_CONTIGUOUS, MESSAGE);
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
        size_t size = MESSAGE;
        stripe_seen(lane, &(struct wire_seen){.bound = bounds[i]});
        CHECK(stripe_choose(route, peer, MESSAGE, &size, STRIPE_FOR_PEER) == lane && size > 0,
              "a bound of %llu: nothing goes", (unsigned long long) bounds[i]);
    }
    stripe_seen(lane, &(struct wire_seen){.bound = 0});
}

/* Later messages would wait for its first part; and nothing waits for a peer that is not there. */
static void a_message_begins_whatever_the_bound(void)
{
    sim_begin(1, 125e6);
    struct peer *peer = sim.of[0].here;
    struct lane *lane = &peer->lanes[0];
    const struct route *route = class_route_at(peer_class_now(peer), CLASS_CONTIGUOUS, MESSAGE);
    size_t size = MESSAGE;
    stripe_seen(lane, &(struct wire_seen){.bound = 64 << 10});
    stripe_sent(lane, 64 << 10);
    CHECK(!stripe_choose(route, peer, MESSAGE, &size, STRIPE_FOR_PEER), "a full lane is chosen");
    CHECK(stripe_choose(route, peer, MESSAGE, &size, STRIPE_FOR_NOTHING) == lane && size == 4096,
          "%zu bytes begin", size);
    standin_now_ns += UINT64_C(2000000000);
    size = MESSAGE;
    CHECK(stripe_choose(route, peer, MESSAGE, &size, STRIPE_FOR_PEER) == lane,
          "a peer that computes stops its senders");
    /* It reports again, but not what was lost. */
    size = MESSAGE;
    stripe_seen(lane, &(struct wire_seen){.bound = 64 << 10});
    CHECK(stripe_choose(route, peer, MESSAGE, &size, STRIPE_FOR_PEER) == lane,
          "lost bytes fill the lane for ever");
}

int main(void)
{
    standin_begin();
    several_senders_share_what_the_port_brings();
    the_user_decides();
    a_sender_that_is_alone_is_free();
    a_bound_of_nonsense_stops_nothing();
    a_message_begins_whatever_the_bound();
    return check_end();
}
