/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes of peers that are none: plans are shared by peers with equal lanes, lanes may appear late,
 * be lost and return, and what cannot be is named once. */
#include "check.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "lanes_standin.h"
#include "base/parameters.h"
#include "plan/costs.h"
#include "plan/peer_class.h"
#include "contact/peer_lanes.h"

static mca_btl_base_module_t *rails[3];

static unsigned classes_count(void)
{
    unsigned count = 0;
    for (const struct peer_class *class = multilane.peer_classes; class; class = class->next)
        count++;
    return count;
}

static struct peer *peer_over(unsigned rail_bits)
{
    struct peer *peer = standin_peer();
    for (int i = 0; i < 3; i++)
        if (rail_bits >> i & 1)
            standin_reach(peer, rails[i]);
    CHECK(peer_take_lanes(peer), "rails %x", rail_bits);
    peer->reachable = true;
    return peer;
}

static const struct route *large_route(const struct peer *peer)
{
    return class_route_at(peer_class_now(peer), CLASS_CONTIGUOUS, 64 << 20);
}

static void peers_with_equal_lanes_share_plans(void)
{
    static const unsigned kinds[] = {1, 3, 7};
    struct peer *peers[64];
    for (unsigned i = 0; i < 64; i++)
        peers[i] = peer_over(kinds[i % 3]);
    CHECK(classes_count() == 3, "%u plans for three kinds of lane sets", classes_count());
    for (unsigned i = 0; i < 64; i++) {
        CHECK(peers[i]->class == peers[i % 3]->class, "peer %u", i);
        CHECK(peers[i]->lane_count == (uint8_t) (i % 3 + 1), "peer %u: %d lanes", i,
              peers[i]->lane_count);
        CHECK(large_route(peers[i])->lane_count == peers[i]->lane_count,
              "peer %u: a large message takes %d lanes", i, large_route(peers[i])->lane_count);
    }
    CHECK(peers[0]->class->peers == 22 && peers[1]->class->peers == 21 &&
              peers[2]->class->peers == 21,
          "%u, %u and %u peers", peers[0]->class->peers, peers[1]->class->peers,
          peers[2]->class->peers);
    /* Local peers over the same BTL are another kind: their lanes do not add up. */
    struct peer *local = standin_peer();
    local->proc->super.proc_flags = OPAL_PROC_ON_NODE;
    standin_reach(local, rails[0]);
    standin_reach(local, rails[1]);
    CHECK(peer_take_lanes(local), "a local peer");
    CHECK(classes_count() == 4 && large_route(local)->lane_count == 1, "a local peer: %d lanes",
          large_route(local)->lane_count);
}

static void the_most_lanes_are_what_the_user_says(void)
{
    parameters.rndv_lanes = 2;
    parameters.eager_lanes = 1;
    unsigned before = classes_count();
    multilane.peer_classes = NULL; /* the old ones were made under other parameters */
    struct peer *peer = peer_over(7);
    const struct peer_class *class = peer_class_now(peer);
    for (uint32_t i = 0; i < class_planned(class, CLASS_CONTIGUOUS)->plan->entry_count; i++) {
        const struct plan_entry *entry = &class_planned(class, CLASS_CONTIGUOUS)->plan->entries[i];
        uint32_t most = entry->protocol->kind == MODEL_EAGER ? 1 : 2;
        CHECK(entry->lane_count <= most, "%s over %u lanes", entry->protocol->name,
              entry->lane_count);
    }
    CHECK(large_route(peer)->lane_count == 2, "%d lanes", large_route(peer)->lane_count);
    CHECK(before > 1 && classes_count() == 1, "%u classes", classes_count());
    parameters.rndv_lanes = parameters.eager_lanes = 0;
    multilane.peer_classes = NULL;
}

static void a_late_lane_is_used_from_then_on(void)
{
    struct peer *peer = peer_over(1);
    const struct route *route = large_route(peer);
    const struct lane *first = &peer->lanes[0];
    CHECK(!peer_lane_of(peer, rails[1]), "a lane before its time");
    CHECK(!peer_late_lane(peer, rails[1]), "a lane that was never added");
    CHECK(peer->lane_count == 1 && large_route(peer) == route, "the plan changes for nothing");
    standin_reach(peer, rails[1]);
    struct lane *late = peer_late_lane(peer, rails[1]);
    CHECK(late && late->index == 1 && late->btl == rails[1] && late->speed.bytes_s > 0, "no lane");
    CHECK(&peer->lanes[0] == first, "a lane has moved");
    CHECK(route->lane_count == 1 && route_lane(route, peer, 0) == first,
          "what is under way has another route");
    CHECK(large_route(peer)->lane_count == 2, "%d lanes", large_route(peer)->lane_count);
    CHECK(peer->class == peer_over(3)->class, "a plan of its own for equal lanes");
}

/* It could not take what the first one returns, and when it is the last one left all would wait for
 * it. */
static void a_late_lane_that_is_too_short_carries_nothing(void)
{
    const uint32_t moves = MCA_BTL_FLAGS_SEND | MCA_BTL_FLAGS_GET | MCA_BTL_FLAGS_PUT;
    struct peer *peer = peer_over(1);
    mca_btl_base_module_t *shorter = standin_btl("tcp", 10000);
    peer->lanes[0].returns = true;
    shorter->btl_max_send_size = rails[0]->btl_max_send_size / 2;
    shorter->btl_flags |= moves;
    standin_reach(peer, shorter);
    struct lane *late = peer_late_lane(peer, shorter);
    CHECK(late && !(late->flags & moves), "it carries by %x", late ? late->flags & moves : 0);
    CHECK(large_route(peer)->lane_count == 1, "%d lanes", large_route(peer)->lane_count);
    peer->lanes[0].returns = false;
}

static void a_lost_lane_is_not_planned_with_until_it_returns(void)
{
    struct peer *peer = peer_over(7), *other = peer_over(7);
    struct peer_class *whole = peer->class;
    const struct route *route = large_route(peer);
    unsigned sharing = whole->peers;
    CHECK(route->lane_count == 3, "%d lanes", route->lane_count);
    CHECK(lane_leave_out(&peer->lanes[1], LANE_OUT_DOWN, true), "no lane is left");
    CHECK(whole->peers == sharing - 1 && other->class == whole, "%u peers", whole->peers);
    const struct peer_class *class = peer_class_now(peer);
    for (int buffer = 0; buffer < CLASS_DEVICE; buffer++) { /* there is no device */
        const struct planned *planned = class_planned(class, (enum class_buffer) buffer);
        for (uint32_t i = 0; planned && i < planned->plan->entry_count; i++)
            for (int j = 0; j < planned->routes[i].lane_count; j++)
                CHECK(planned->routes[i].lanes[j] != 1, "the lost lane, range %u", i);
    }
    CHECK(large_route(peer)->lane_count == 2, "%d lanes", large_route(peer)->lane_count);
    CHECK(route->lane_count == 3, "what is under way has another route");
    CHECK(lane_leave_out(&other->lanes[1], LANE_OUT_DOWN, true) && other->class == peer->class,
          "peers that lost the same lane do not share");
    CHECK(lane_leave_out(&peer->lanes[0], LANE_OUT_DOWN, true), "no lane is left");
    CHECK(peer->control == 2, "control messages over a lost lane");
    struct peer_class *last = peer->class;
    CHECK(!lane_leave_out(&peer->lanes[2], LANE_OUT_DOWN, true),
          "nothing is left and it is not reported");
    CHECK(peer->class == last, "a plan for no lane");
    CHECK(lane_leave_out(&peer->lanes[2], LANE_OUT_DOWN, false) &&
              lane_leave_out(&peer->lanes[0], LANE_OUT_DOWN, false) &&
              lane_leave_out(&peer->lanes[1], LANE_OUT_DOWN, false),
          "lanes that return");
    CHECK(peer->class == whole && whole->peers == sharing - 1, "another plan for the same lanes");
}

/* It is needed while what else is left carries no message alone. */
static void a_drained_lane_is_used_no_longer_than_it_must(void)
{
    parameters.lane_attr = "sock:use=rndv";
    struct peer *peer = peer_over(3);
    standin_reach(peer, standin_btl("sock", 10000));
    CHECK(peer_take_lanes(peer) && peer_lane_count(peer) == 3, "a third lane");
    (void) lane_leave_out(&peer->lanes[1], LANE_OUT_DOWN, true);
    CHECK(!lane_leave_out(&peer->lanes[0], LANE_OUT_DRAINED, true) &&
              !lane_is_lost(&peer->lanes[0]),
          "sock alone carries");
    CHECK(lane_leave_out(&peer->lanes[1], LANE_OUT_DOWN, false) && lane_is_lost(&peer->lanes[0]),
          "another lane is back, and the drained one carries on");
    CHECK(lane_leave_out(&peer->lanes[0], LANE_OUT_DRAINED, false), "it is used again");
    parameters.lane_attr = NULL;
}

static void a_lane_that_is_back_is_used_beside_one_that_must_stay(void)
{
    parameters.lane_attr = "sock:use=rndv";
    struct peer *peer = peer_over(1);
    standin_reach(peer, standin_btl("sock", 10000));
    CHECK(peer_take_lanes(peer) && peer_lane_count(peer) == 2, "a second lane");
    CHECK(large_route(peer)->lane_count == 2, "%d lanes", large_route(peer)->lane_count);
    (void) lane_leave_out(&peer->lanes[0], LANE_OUT_DRAINED, true);
    (void) lane_leave_out(&peer->lanes[1], LANE_OUT_DOWN, true);
    CHECK(lane_leave_out(&peer->lanes[1], LANE_OUT_DOWN, false) && !lane_is_lost(&peer->lanes[0]),
          "both carry");
    CHECK(large_route(peer)->lane_count == 2, "%d lanes", large_route(peer)->lane_count);
    parameters.lane_attr = NULL;
}

static void the_worse_of_both_ends_counts(void)
{
    attributes_publish(&multilane.ends);
    struct peer *alike = peer_over(1), *other = standin_peer();
    other->ends = malloc(sizeof(*other->ends));
    *other->ends = multilane.ends;
    CHECK(other->ends->lane_count == 1 && strcmp(other->ends->lanes[0].name, "tcp") == 0,
          "%u lanes are told of", other->ends->lane_count);
    struct record_lane *end = &other->ends->lanes[0];
    end->overhead_s += 7e-6;     /* a slower processor, */
    end->reg_cost_s = 5e-6;      /* that registers, */
    end->bandwidth_bytes_s /= 4; /* on a slower link */
    standin_reach(other, rails[0]);
    CHECK(peer_take_lanes(other), "no lane");
    const struct model_lane *here = &peer_class_now(alike)->lanes[0];
    const struct model_lane *there = &peer_class_now(other)->lanes[0];
    const struct model_lane_range *one = here->cost[MODEL_BY_SEND].ranges;
    const struct model_lane_range *two = there->cost[MODEL_BY_SEND].ranges;
    double more_s = two->overhead_receive_s - one->overhead_receive_s;
    CHECK(fabs(more_s - 7e-6) < 1e-12 && two->overhead_send_s == one->overhead_send_s, "%g s",
          more_s);
    CHECK(two->reg_cost_s == 5e-6 && two->bandwidth_bytes_s == one->bandwidth_bytes_s / 4,
          "%g s, %g", two->reg_cost_s, two->bandwidth_bytes_s);
    /* An end that is better changes nothing. */
    struct peer *better = standin_peer();
    better->ends = malloc(sizeof(*better->ends));
    *better->ends = multilane.ends;
    better->ends->lanes[0].overhead_s = 0;
    better->ends->lanes[0].bandwidth_bytes_s *= 4;
    standin_reach(better, rails[0]);
    CHECK(peer_take_lanes(better) && peer_class_now(better) == peer_class_now(alike),
          "a better end has plans of its own");
    memset(&multilane.ends, 0, sizeof(multilane.ends));
}

static uint64_t first_rndv(const struct plan *plan)
{
    uint32_t i = 0;
    while (plan->entries[i].protocol->kind == MODEL_EAGER)
        i++;
    return plan->entries[i].first_bytes;
}

/* An eager one waits for an answer as well, which a rendezvous has in any case. */
static void synchronous_sends_have_plans_of_their_own(void)
{
    const struct peer_class *class = peer_class_now(peer_over(1));
    uint64_t plain = first_rndv(class_planned(class, CLASS_CONTIGUOUS)->plan);
    uint64_t synchronous = first_rndv(class_planned(class, CLASS_SYNC)->plan);
    CHECK(synchronous < plain, "%llu and %llu", (unsigned long long) synchronous,
          (unsigned long long) plain);
}

/* What the standard error gets while `act` runs, as a count of lines that hold `word`. */
static unsigned lines_said(void (*act)(void), const char *word)
{
    FILE *file = tmpfile();
    char line[1000];
    unsigned count = 0;
    int kept = dup(STDERR_FILENO);
    fflush(stderr);
    dup2(fileno(file), STDERR_FILENO);
    act();
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    rewind(file);
    while (fgets(line, sizeof(line), file))
        count += strstr(line, word) != NULL;
    fclose(file);
    return count;
}

static mca_btl_base_module_t *broken;

static void meet_over_broken(void)
{
    for (int i = 0; i < 20; i++) {
        struct peer *peer = standin_peer();
        if (i % 2)
            standin_reach(peer, rails[0]);
        standin_reach(peer, broken);
        peer->proc->super.proc_flags = i % 3 ? OPAL_PROC_ON_NODE : 0;
        CHECK(peer_take_lanes(peer), "peer %d", i);
        CHECK(peer->lanes[peer->lane_count - 1].speed.bytes_s == 1000000000,
              "peer %d: another default", i);
    }
}

static void what_cannot_be_is_named_once(void)
{
    broken = standin_btl("tcp", 0);
    unsigned count = lines_said(meet_over_broken, "BTL tcp says that its bandwidth is 0");
    CHECK(count == 1, "no bandwidth was named %u times", count);
    broken = standin_btl("openib", 1000);
    broken->btl_bandwidth = 8000;
    broken->btl_latency = UINT32_MAX;
    count = lines_said(meet_over_broken, "BTL openib says that its latency is 4294967295");
    CHECK(count == 1, "an absurd latency was named %u times", count);
}

int main(void)
{
    standin_begin();
    for (int i = 0; i < 3; i++)
        rails[i] = standin_btl("tcp", 1000);
    peers_with_equal_lanes_share_plans();
    the_most_lanes_are_what_the_user_says();
    a_late_lane_is_used_from_then_on();
    a_lost_lane_is_not_planned_with_until_it_returns();
    the_worse_of_both_ends_counts();
    synchronous_sends_have_plans_of_their_own();
    what_cannot_be_is_named_once();
    /* These add lanes that the others do not expect. */
    a_late_lane_that_is_too_short_carries_nothing();
    a_drained_lane_is_used_no_longer_than_it_must();
    a_lane_that_is_back_is_used_beside_one_that_must_stay();
    return check_end();
}
