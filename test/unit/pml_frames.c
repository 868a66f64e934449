/* SPDX-License-Identifier: BSD-3-Clause */
/* Short messages over a lane that may lose them, posted without a request: each is kept, a refused
 * one leaves no trace, what a broken lane carried goes by another one, and the memory of frames is
 * used again. */
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
static int answer = OPAL_SUCCESS;       /* of the lane's send-immediate */
static unsigned char seen[64];          /* what a lane has taken last, */
static size_t seen_length;
static unsigned seen_count;
static const mca_btl_base_module_t *seen_by;

static bool look(const mca_btl_base_module_t *btl, const struct mca_btl_base_endpoint_t *endpoint,
                 const unsigned char *bytes, size_t length)
{
    (void) endpoint;
    memcpy(seen, bytes, length < sizeof(seen) ? length : sizeof(seen));
    seen_length = length;
    seen_by = btl;
    seen_count++;
    return true;
}

static int sendi(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                 struct opal_convertor_t *convertor, void *header, size_t header_size,
                 size_t payload_size, uint8_t order, uint32_t flags, mca_btl_base_tag_t tag,
                 mca_btl_base_descriptor_t **descriptor)
{
    (void) convertor, (void) payload_size, (void) order, (void) flags, (void) tag;
    (void) descriptor;
    if (answer == OPAL_SUCCESS)
        look(btl, endpoint, header, header_size);
    return answer;
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

static int post(const char *text, struct frame **frame)
{
    size_t length = strlen(text);
    *frame = frame_post_begin(lane, length);
    if (!*frame)
        return LANE_AGAIN;
    memcpy(frame_message(*frame), text, length);
    return frame_post(*frame);
}

static void acknowledge(uint32_t number)
{
    struct wire_heard heard = {.heard = number};
    CHECK(delivery_heard(peer, lane, &heard), "number %u", number);
}

static void begin(void)
{
    static const struct multilane_extension extension; /* it tells a full queue from a refusal */
    deliveries_fini();
    for (int i = 0; i < peer_lane_count(peer); i++)
        memset(&peer->lanes[i].health, 0, sizeof(peer->lanes[i].health));
    CHECK(lane->framed && other->framed, "both may lose messages");
    lane->plain_sendi = sendi;
    lane->extension = &extension;
    answer = OPAL_SUCCESS;
    seen_count = 0;
}

/* Its number is drawn only when the lane has taken it: a gap would make the peer wait. */
static void a_refused_message_leaves_no_trace(void)
{
    struct frame *frame;
    begin();
    CHECK(post("a", &frame) == LANE_LEFT && seen_number() == 0, "number %u", seen_number());
    answer = OPAL_ERR_RESOURCE_BUSY;
    CHECK(post("b", &frame) == LANE_FULL, "its queue is full");
    answer = OPAL_ERR_OUT_OF_RESOURCE;
    CHECK(post("c", &frame) == LANE_AGAIN, "it refuses");
    answer = OPAL_SUCCESS;
    CHECK(post("d", &frame) == LANE_LEFT && seen_number() == 1, "number %u", seen_number());
    struct delivery *delivery = delivery_of(peer);
    CHECK(delivery->begun == 0 && delivery->unsent == 0 && delivery->next == 2, "%u begun",
          delivery->begun);
    acknowledge(2);
    CHECK(!delivery->first && delivery->kept_bytes == 0, "%zu bytes are kept",
          delivery->kept_bytes);
}

static void a_broken_lane_loses_none(void)
{
    struct frame *frame;
    begin();
    CHECK(post("one", &frame) == LANE_LEFT && post("two", &frame) == LANE_LEFT, "taken");
    acknowledge(1);
    CHECK(seen_by == lane->btl && delivery_lane_broke(lane, "reported an error", "a cut wire"),
          "it breaks");
    CHECK(!frame_post_begin(lane, 3), "it takes no more");
    seen_count = 0;
    delivery_resend(delivery_of(peer));
    CHECK(seen_count == 1 && seen_by == other->btl && seen_number() == 1, "%u sent again",
          seen_count);
    CHECK(seen_length > 3 && memcmp(seen + seen_length - 3, "two", 3) == 0, "other bytes");
    CHECK(((struct wire_base *) (void *) seen)->traits & WIRE_MOVED, "by another lane");
}

static void memory_is_used_again(void)
{
    struct frame *first, *next;
    begin();
    CHECK(post("one", &first) == LANE_LEFT, "taken");
    acknowledge(1);
    CHECK(post("two", &next) == LANE_LEFT && next == first, "another piece of memory");
    acknowledge(2);
    answer = OPAL_ERR_RESOURCE_BUSY;
    CHECK(post("three", &next) == LANE_FULL && next == first, "also after a refusal");
}

/* Longer ones too, which do not fit where a short one was. */
static void memory_of_each_length_is_used_again(void)
{
    static const size_t lengths[] = {3, 1024, 8192, 16384};
    struct frame *first[4], *next;
    begin();
    for (int i = 0; i < 4; i++) {
        first[i] = frame_post_begin(lane, lengths[i]);
        CHECK(first[i] && first[i]->room == lengths[i], "%zu bytes", lengths[i]);
        memset(frame_message(first[i]), i, lengths[i]);
        CHECK(frame_post(first[i]) == LANE_LEFT, "taken");
    }
    acknowledge(4);
    for (int i = 0; i < 4; i++) {
        next = frame_post_begin(lane, lengths[i]);
        CHECK(next == first[i], "%zu bytes: another piece", lengths[i]);
        memset(frame_message(next), i, lengths[i]);
        CHECK(frame_post(next) == LANE_LEFT, "taken");
    }
    acknowledge(8);
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

/* Two threads would draw numbers; one of them cannot be given back. */
static void threads_do_not_post(void)
{
    begin();
    opal_set_using_threads(true);
    struct frame *frame = frame_post_begin(lane, 1);
    opal_set_using_threads(false);
    CHECK(!frame, "with threads");
    lane->plain_sendi = NULL;
    CHECK(!frame_post_begin(lane, 1), "without a send-immediate");
}

/* A lane that is left and does not take what is kept would let it wait for ever. */
static void a_late_lane_takes_each_frame_or_sends_none(void)
{
    begin();
    struct frame *frame = frame_post_begin(lane, 16384);
    memset(frame_message(frame), 1, 16384);
    CHECK(frame_post(frame) == LANE_LEFT, "taken");
    lane->extension = NULL; /* it has no attributes to ask for */
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
    CHECK(delivery_send(lane, bytes, sizeof(bytes), false, NULL, NULL) == LANE_UNDER_WAY, "taken");
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
    a_refused_message_leaves_no_trace();
    a_broken_lane_loses_none();
    memory_is_used_again();
    memory_of_each_length_is_used_again();
    each_arrives_once_in_any_order();
    threads_do_not_post();
    what_fits_no_lane_waits();
    a_late_lane_is_found_when_it_is_whole();
    a_late_lane_takes_each_frame_or_sends_none();
    deliveries_fini();
    return check_end();
}
