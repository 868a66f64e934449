/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes that become worse, over rails that are none and in a time that passes only here: which are
 * named, when, and with which number; which go to the reserve and come back; and what every lane
 * may do without being named. */
#include "check.h"

#include <math.h>
#include <string.h>

#include "contact/peer_lanes.h"
#include "lanes_standin.h"
#include "liveness/liveness.h"
#include "plan/peer_class.h"

#define SECOND UINT64_C(1000000000)
#define RAILS  2

static mca_btl_base_module_t *rails[RAILS];
static struct peer *peer;
static uint64_t now;
static uint64_t sent[RAILS], repeated[RAILS];

/* The end of a job, which none of this is. */
__attribute__((visibility("default"))) void
ompi_mpi_errors_are_fatal_comm_handler(struct ompi_communicator_t **comm, int *error_code, ...);

void ompi_mpi_errors_are_fatal_comm_handler(struct ompi_communicator_t **comm, int *error_code, ...)
{
    (void) comm, (void) error_code;
    abort();
}

static bool repeats(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                    uint64_t *all, uint64_t *again)
{
    int rail = btl == rails[1];
    (void) endpoint;
    *all = sent[rail];
    *again = repeated[rail];
    return true;
}

static const struct multilane_extension counting = {.repeats = repeats};

static void begin(void)
{
    peer = standin_peer();
    for (int i = 0; i < RAILS; i++)
        standin_reach(peer, rails[i]);
    CHECK(peer_take_lanes(peer) && peer_lane_count(peer) == RAILS, "a peer");
    peer->reachable = true;
    memset(sent, 0, sizeof(sent));
    memset(repeated, 0, sizeof(repeated));
}

/* Seconds in which both lanes carry so many MB. */
static void carry(unsigned seconds, double first_mb_s, double second_mb_s)
{
    const double speeds[RAILS] = {first_mb_s, second_mb_s};
    for (unsigned s = 0; s < seconds; s++) {
        for (int i = 0; i < RAILS; i++) {
            struct lane_speed *speed = &peer->lanes[i].speed;
            if (lane_is_lost(&peer->lanes[i]))
                continue;
            counter_set(&speed->bytes_s, (uint64_t) (speeds[i] * 1e6));
            counter_set(&speed->confirmed,
                        counter_read(&speed->confirmed) + (uint64_t) (speeds[i] * 1e6));
            counter_set(&speed->measured_ns, 1);
        }
        now += SECOND;
        worse_look(peer, now);
    }
}

/* Seconds in which each lane sends 10,000 segments, and so many of them again. */
static void lose(unsigned seconds, unsigned first, unsigned second)
{
    for (unsigned s = 0; s < seconds; s++) {
        for (int i = 0; i < RAILS; i++) {
            peer->lanes[i].extension = &counting;
            sent[i] += 10000;
            repeated[i] += i ? second : first;
        }
        now += SECOND;
        worse_look(peer, now);
    }
}

static bool is_planned(int lane)
{
    const struct route *route = class_route_at(peer_class_now(peer), CLASS_CONTIGUOUS, 64 << 20);
    bool is_used = false;
    for (int i = 0; i < route->lane_count; i++)
        is_used |= route->lanes[i] == lane;
    return is_used;
}

static void test_a_tenth_of_its_speed(void)
{
    begin();
    carry(30, 100, 100);
    unsigned said = standin_said;
    carry(4, 100, 10);
    CHECK(standin_said == said && is_planned(1), "it may be over");
    carry(3, 100, 10);
    CHECK(standin_said == said + 1 && strstr(standin_sentence, "reserve") &&
              strstr(standin_sentence, "(2 of 2) to rank") &&
              strstr(standin_sentence, "carries 10 MB/s, and 100 were usual"),
          "%s", standin_sentence);
    CHECK(lane_is_worse(&peer->lanes[1]) && lane_is_lost(&peer->lanes[1]) && !is_planned(1) &&
              lane_is_up(&peer->lanes[1]) && !lane_is_worse(&peer->lanes[0]),
          "it is kept in reserve");
    carry(300, 100, 10);
    CHECK(standin_said == said + 1, "%u sentences of one lane", standin_said - said);
}

static void test_it_is_tried_and_is_good_again(void)
{
    uint64_t taken = now;
    while (lane_is_lost(&peer->lanes[1]) && now - taken < 2000 * SECOND)
        carry(1, 100, 100);
    CHECK(!lane_is_lost(&peer->lanes[1]) && is_planned(1), "it is tried");
    carry(8, 100, 100);
    CHECK(!lane_is_worse(&peer->lanes[1]), "it is good");
}

static void test_the_reserve_carries_what_no_other_can(void)
{
    begin();
    carry(30, 100, 100);
    carry(8, 100, 10);
    CHECK(lane_is_lost(&peer->lanes[1]), "it is kept in reserve");
    CHECK(lane_leave_out(&peer->lanes[0], LANE_OUT_DOWN, true), "no lane is left");
    CHECK(!lane_is_lost(&peer->lanes[1]) && is_planned(1), "it is the last one");
    CHECK(lane_leave_out(&peer->lanes[0], LANE_OUT_DOWN, false), "no lane is left");
    CHECK(lane_is_lost(&peer->lanes[1]) && is_planned(0), "another one is back");
}

static void test_a_third_of_its_speed_is_weighed(void)
{
    begin();
    carry(30, 100, 100);
    unsigned said = standin_said;
    carry(8, 100, 33);
    CHECK(standin_said == said + 1 && strstr(standin_sentence, "by its new speed"), "%s",
          standin_sentence);
    CHECK(!lane_is_lost(&peer->lanes[1]) && is_planned(1), "it is used");
}

static void test_one_packet_in_a_hundred(void)
{
    begin();
    lose(30, 3, 3);
    unsigned said = standin_said;
    lose(4, 3, 100);
    CHECK(standin_said == said, "it may be over");
    lose(3, 3, 100);
    CHECK(standin_said == said + 1 && strstr(standin_sentence, "(2 of 2)") &&
              strstr(standin_sentence, "sends 0.97 % of its segments again, and 0.00 % were usual"),
          "%s", standin_sentence);
    CHECK(!lane_is_lost(&peer->lanes[1]), "nothing waits for it");
    repeated[1] = sent[1] = 0; /* it has connected anew */
    lose(8, 3, 3);
    CHECK(!lane_is_worse(&peer->lanes[1]), "it is good");
}

/* What slows all lanes is not the lane, nor what a lane has always done. */
static void test_nothing_is_said(void)
{
    begin();
    unsigned said = standin_said;
    carry(30, 100, 10);
    carry(30, 10, 1);
    carry(30, 400, 40);
    for (int i = 0; i < 300; i++)
        carry(1, 100 + 60 * sin(i * 1.7), 10 + 6 * cos(i * 2.3));
    CHECK(standin_said == said, "%s", standin_sentence);
    begin();
    lose(30, 0, 200);
    lose(30, 500, 700);
    for (unsigned i = 0; i < 60; i++) { /* and not for longer than some seconds */
        lose(3, 0, 1000);
        lose(2, 0, 200);
    }
    CHECK(standin_said == said, "%s", standin_sentence);
}

/* A lane without a history, and one beside which nothing is measured. */
static void test_nothing_is_known(void)
{
    begin();
    unsigned said = standin_said;
    carry(2, 100, 100);
    carry(60, 100, 10);
    carry(30, 0, 100);
    carry(30, 0, 1);
    CHECK(standin_said == said, "%s", standin_sentence);
}

int main(void)
{
    standin_begin();
    errors_begin();
    for (int i = 0; i < RAILS; i++)
        rails[i] = standin_btl("tcp", 8000);
    test_a_tenth_of_its_speed();
    test_it_is_tried_and_is_good_again();
    test_the_reserve_carries_what_no_other_can();
    test_a_third_of_its_speed_is_weighed();
    test_one_packet_in_a_hundred();
    test_nothing_is_said();
    test_nothing_is_known();
    return check_end();
}
