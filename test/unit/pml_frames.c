/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages over lanes of Open MPI that may lose them: each is kept, a refused one goes later, what
 * a broken lane carried goes by another one, and each arrives once. */
#include "check.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "base/multilane.h"
#include "base/parameters.h"
#include "delivery/delivery.h"
#include "delivery/schedule.h"
#include "lanes_standin.h"
#include "contact/peer_lanes.h"

static struct peer *peer;
static struct peer *_Atomic by_rank[2]; /* as of standin_peer: from rank 1 on */
static struct lane *lane, *other;       /* verbs, and tcp beside it */
static mca_btl_base_module_t *small;    /* not a lane at first */
static bool refuses;                    /* the lanes have no room */
static unsigned char seen[64];          /* what a lane has taken last, */
static size_t seen_length;
static unsigned seen_count;
static const mca_btl_base_module_t *seen_by;

static bool look(const mca_btl_base_module_t *btl, const struct mca_btl_base_endpoint_t *endpoint,
                 const unsigned char *bytes, size_t length)
{
    (void) endpoint;
    if (refuses)
        return false;
    memcpy(seen, bytes, length < sizeof(seen) ? length : sizeof(seen));
    seen_length = length;
    seen_by = btl;
    seen_count++;
    return true;
}

static int nothing(void)
{
    return 0;
}

static uint32_t seen_number(void)
{
    struct wire_frame wire;
    memcpy(&wire, seen + sizeof(struct wire_base), sizeof(wire));
    return wire.number;
}

static int post(const char *text)
{
    return delivery_send(lane, text, strlen(text), NULL, NULL);
}

static void acknowledge(uint32_t number)
{
    struct wire_heard heard = {.heard = number};
    CHECK(delivery_heard(peer, lane, &heard), "number %u", number);
}

static void begin(void)
{
    deliveries_fini();
    for (int i = 0; i < peer_lane_count(peer); i++)
        memset(&peer->lanes[i].health, 0, sizeof(peer->lanes[i].health));
    CHECK(lane->framed && other->framed, "both may lose messages");
    refuses = false;
    seen_count = 0;
}

static void a_refused_message_goes_later(void)
{
    begin();
    CHECK(post("a") == LANE_UNDER_WAY && seen_number() == 0, "number %u", seen_number());
    refuses = true;
    CHECK(post("b") == LANE_UNDER_WAY && seen_number() == 0, "number %u", seen_number());
    struct delivery *delivery = delivery_of(peer);
    CHECK(delivery->begun == 0 && delivery->unsent == 1 && delivery->next == 2, "%u begun",
          delivery->begun);
    CHECK(post("c") == LANE_AGAIN, "one waits already");
    refuses = false;
    delivery_resend(delivery);
    CHECK(seen_number() == 1 && delivery->unsent == 0, "number %u", seen_number());
    acknowledge(2);
    CHECK(!delivery->first && delivery->kept_bytes == 0, "%zu bytes are kept",
          delivery->kept_bytes);
}

static void a_broken_lane_loses_none(void)
{
    begin();
    CHECK(post("one") == LANE_UNDER_WAY && post("two") == LANE_UNDER_WAY, "taken");
    acknowledge(1);
    CHECK(seen_by == lane->btl && delivery_lane_broke(lane, "reported an error", "a cut wire"),
          "it breaks");
    seen_count = 0;
    delivery_resend(delivery_of(peer));
    CHECK(seen_count == 1 && seen_by == other->btl && seen_number() == 1, "%u sent again",
          seen_count);
    CHECK(seen_length > 3 && memcmp(seen + seen_length - 3, "two", 3) == 0, "other bytes");
    CHECK(((struct wire_base *) (void *) seen)->traits & WIRE_MOVED, "by another lane");
}

/* In its turn, too early, and twice, also where a number is the last of a word of the window. */
static void each_arrives_once_in_any_order(void)
{
    static const uint32_t order[] = {0, 1, 3, 2, 2, 4, 62, 5, 0, 63, 64, 61, 6};
    bool come[65] = {false}, good;
    begin();
    struct delivery *delivery = delivery_of(peer);
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        struct wire_frame wire = {.number = order[i]};
        bool is_new = delivery_arrived(delivery, &wire, 8, &good);
        CHECK(good && is_new == !come[order[i]], "number %u, arrival %zu", order[i], i);
        come[order[i]] = true;
        uint32_t heard = 0;
        while (heard < 65 && come[heard])
            heard++;
        CHECK(delivery->heard == heard, "%u, and not %u have come", delivery->heard, heard);
    }
    for (uint32_t number = 7; number < 61; number++) {
        struct wire_frame wire = {.number = number};
        CHECK(delivery_arrived(delivery, &wire, 8, &good) && good, "number %u", number);
    }
    CHECK(delivery->heard == 65, "%u", delivery->heard);
}

/* A lane that is left and does not take what is kept would let it wait for ever. */
static void a_late_lane_takes_each_frame_or_sends_none(void)
{
    static const unsigned char bytes[16384];
    begin();
    CHECK(delivery_send(lane, bytes, sizeof(bytes), NULL, NULL) == LANE_UNDER_WAY, "taken");
    standin_reach(peer, small);
    const struct lane *late = peer_late_lane(peer, small);
    CHECK(late && !lane_sends(late), "it sends messages of up to %zu bytes", late->largest);
    CHECK(peer_late_lane(peer, small) == late && !lane_sends(late), "found again, it sends");
    delivery_lane_broke(lane, "reported an error", "a cut wire");
    delivery_lane_broke(other, "reported an error", "a cut wire");
    CHECK(!peer_lane_for(peer, 0), "a lane is left that does not take what is kept");
}

/* As where a process was forgotten and met again, with other lanes. */
static void what_fits_no_lane_waits(void)
{
    static const unsigned char bytes[16384];
    mca_btl_base_module_t *const btls[] = {lane->btl, other->btl};
    begin();
    struct delivery *delivery = delivery_of(peer);
    CHECK(delivery_send(lane, bytes, sizeof(bytes), NULL, NULL) == LANE_UNDER_WAY, "taken");
    delivery_park(delivery);
    for (int i = 0; i < 2; i++)
        btls[i]->btl_max_send_size = 4096;
    seen_count = 0;
    delivery_resend(delivery);
    CHECK(seen_count == 0 && delivery->unsent == 1, "%u are sent", seen_count);
    for (int i = 0; i < 2; i++)
        btls[i]->btl_max_send_size = 128 << 10;
    delivery_resend(delivery);
    CHECK(seen_count == 1 && delivery->unsent == 0, "%u are sent", seen_count);
    acknowledge(1);
}

/* A thread that finds a lane as soon as it is there, as that of a message that arrives over it. */
static struct peer *_Atomic looked_at;
static _Atomic unsigned unframed;

static void *look_for_late_lane(void *unused)
{
    for (const struct peer *before = NULL, *at; (at = looked_at) != peer; before = at) {
        const struct lane *late = NULL;
        while (at && at != before && !late)
            late = peer_lane_of((struct peer *) at, other->btl);
        if (late &&
            (!late->framed || late->sendi || late->largest == other->btl->btl_max_send_size))
            unframed++;
        if (late)
            looked_at = NULL;
    }
    return unused;
}

static void a_late_lane_is_found_when_it_is_whole(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, look_for_late_lane, NULL);
    for (int i = 0; i < 3000; i++) {
        struct peer *met = standin_peer();
        standin_reach(met, lane->btl);
        CHECK(peer_take_lanes(met), "one lane");
        met->reachable = true;
        standin_reach(met, other->btl);
        looked_at = met;
        CHECK(peer_late_lane(met, other->btl)->framed, "and another one");
        while (looked_at)
            sched_yield();
    }
    looked_at = peer;
    pthread_join(thread, NULL);
    CHECK(unframed == 0, "%u of 3000 were not", unframed);
}

int main(void)
{
    standin_begin();
    parameters.failover = true;
    standin_takes = look;
    schedule_init(nothing);
    peer = standin_peer();
    standin_reach(peer, standin_btl("verbs", 100000));
    standin_reach(peer, standin_btl("tcp", 1000));
    small = standin_btl("usnic", 1000);
    small->btl_eager_limit = small->btl_max_send_size = 4096;
    CHECK(peer_take_lanes(peer) && peer_lane_count(peer) == 2, "two lanes");
    peer->reachable = true;
    by_rank[1] = peer; /* deliveries_fini visits it */
    multilane.local_peers = by_rank;
    multilane.local_peer_count = 2;
    lane = &peer->lanes[0];
    other = &peer->lanes[1];
    a_refused_message_goes_later();
    a_broken_lane_loses_none();
    each_arrives_once_in_any_order();
    what_fits_no_lane_waits();
    a_late_lane_is_found_when_it_is_whole();
    a_late_lane_takes_each_frame_or_sends_none();
    deliveries_fini();
    return check_end();
}
