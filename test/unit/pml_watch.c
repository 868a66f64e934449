/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer over two lanes that are none, which break, are made anew and answer, or do not, in a time
 * that passes only here: a lane that can be made anew is, and a peer counts as lost if nothing
 * vouches for it, and else does not. */
#include "check.h"

#include <string.h>

#include "pml/multilane/awaited.h"
#include "pml/multilane/clock.h"
#include "pml/multilane/comm.h"
#include "pml/multilane/delivery.h"
#include "pml/multilane/errors.h"
#include "pml/multilane/lost.h"
#include "pml/multilane/multilane.h"
#include "pml/multilane/parameters.h"
#include "pml/multilane/sockets.h"
#include "pml/multilane/stripe.h"
#include "pml/multilane/watch.h"
#include "progress_standin.h"

#define LANES       2
#define MILLISECOND UINT64_C(1000000)
#define LOST_MS     3000
#define LONG_MS     (3 * LOST_MS)
#define RENEWED_MS  500

struct parameters parameters = {.failover = true, .suspect_ms = 40, .lost_s = LOST_MS / 1000};

static uint64_t now_ns = 1000 * MILLISECOND;
static mca_btl_base_component_t component;
static mca_btl_base_module_t btl;
static struct peer peer;
static struct peer *peers[1] = {&peer};
static struct lane lanes[LANES];
static unsigned asked[LANES]; /* the last question on each lane */
static unsigned renewed[LANES];
static bool answers[LANES], is_lost;

/* --- what lies around --------------------------------------------------------------------------
 */

uint64_t clock_now_ns(void)
{
    return now_ns;
}

int lane_send_plain(struct lane *lane, const void *bytes, size_t length,
                    mca_btl_base_completion_fn_t done, void *context)
{
    const struct wire_base *base = bytes;
    struct wire_ask ask;
    (void) length;
    (void) done;
    (void) context;
    if (base->type == WIRE_ASK) {
        memcpy(&ask, base + 1, sizeof(ask));
        asked[lane->index] = ask.number;
    }
    return LANE_LEFT;
}

void lane_plain_done(mca_btl_base_module_t *of, struct mca_btl_base_endpoint_t *endpoint,
                     mca_btl_base_descriptor_t *descriptor, int status)
{
    (void) of;
    (void) endpoint;
    (void) descriptor;
    (void) status;
    abort();
}

struct lane *peer_lane_of(struct peer *of, const mca_btl_base_module_t *module)
{
    (void) of;
    (void) module;
    abort();
}

int lane_send_slot(struct lane *lane, const void *bytes, size_t length)
{
    (void) lane;
    (void) bytes;
    (void) length;
    return LANE_AGAIN;
}

bool lane_renew(struct lane *lane)
{
    renewed[lane->index]++;
    return true;
}

bool lane_set_lost(struct lane *lane, bool is_lost_now)
{
    lane->lost = is_lost_now;
    return true;
}

void lane_say_changed(const struct lane *lane, bool is_up, const char *why, bool last)
{
    (void) lane;
    (void) is_up;
    (void) why;
    (void) last;
}

void lane_failed(struct lane *lane, const char *what, int rc)
{
    CHECK(false, "lane %d %s: %d", lane->index, what, rc);
}

void peer_lost(struct peer *lost, const char *why)
{
    CHECK(lost == &peer, "%s", why);
    is_lost = true;
}

void stripe_sent(struct lane *lane, size_t size)
{
    (void) lane;
    (void) size;
}

void stripe_lane_lost(struct lane *lane)
{
    (void) lane;
}

bool lost_would_be_returned(struct peer *asked_for)
{
    (void) asked_for;
    return false;
}

bool comms_have(const struct peer *asked_for)
{
    (void) asked_for;
    return true;
}

bool sockets_in_trouble(void)
{
    return true;
}

void awaited_meet(void)
{
}

/* --- the tests ---------------------------------------------------------------------------------
 */

static void begin(void)
{
    if (peer.delivery)
        delivery_free(peer.delivery);
    memset(&peer, 0, sizeof(peer));
    memset(asked, 0, sizeof(asked));
    memset(renewed, 0, sizeof(renewed));
    is_lost = false;
    multilane.local_peers = peers;
    multilane.local_peer_count = 1;
    peer.lanes = lanes;
    peer.lane_count = LANES;
    peer.reachable = true;
    strcpy(component.btl_version.mca_component_name, "verbs");
    btl.btl_component = &component;
    btl.btl_max_send_size = 64 << 10;
    for (int i = 0; i < LANES; i++) {
        answers[i] = true;
        lanes[i] = (struct lane){.btl = &btl,
                                 .peer = &peer,
                                 .flags = MCA_BTL_FLAGS_SEND,
                                 .index = (uint8_t) i,
                                 .framed = true,
                                 .renewable = true};
    }
    watch_init();
    watch_begin();
}

static void end(void)
{
    watch_fini();
}

static void answer_all(void)
{
    for (int i = 0; i < LANES; i++) {
        struct wire_heard heard = {.heard = 0, .ask = asked[i]};
        if (asked[i] && answers[i])
            delivery_heard(&peer, &lanes[i], &heard);
        asked[i] = 0;
    }
}

static void pass(unsigned milliseconds)
{
    for (unsigned i = 0; i < milliseconds; i++) {
        now_ns += MILLISECOND;
        progress_standin_run();
        answer_all();
    }
}

static void keep_one(void)
{
    CHECK(delivery_send(&lanes[0], "what the peer is slow to acknowledge", 37, false, NULL,
                        NULL) == LANE_UNDER_WAY,
          "there is room");
}

static void break_lane(int index)
{
    answers[index] = false;
    CHECK(watch_lane_broke(&lanes[index], "reported an error", "a cut wire"), "lane %d", index);
}

/* The first is made anew and never comes back; then the other one breaks. */
static void break_one_after_the_other(void)
{
    keep_one();
    pass(RENEWED_MS);
    break_lane(0);
    pass(RENEWED_MS);
    CHECK(renewed[0] > 0 && lane_state(&lanes[0]) == LANE_SILENT, "lane 0 is not made anew");
    break_lane(1);
    pass(RENEWED_MS);
    CHECK(renewed[1] > 0, "lane 1 is not made anew");
}

static void test_lost_when_no_lane_comes_back(void)
{
    begin();
    break_one_after_the_other();
    pass(LONG_MS);
    CHECK(is_lost, "the peer is waited for, though nothing vouches for it");
    end();
}

static void test_kept_when_the_last_lane_comes_back(void)
{
    begin();
    break_one_after_the_other();
    answers[1] = true;
    pass(LONG_MS);
    CHECK(!is_lost, "the peer answers");
    CHECK(lane_is_up(&lanes[1]), "lane 1 answers");
    end();
}

/* It calls MPI too rarely to answer; its devices acknowledge, so no error comes. */
static void test_kept_while_it_computes(void)
{
    begin();
    keep_one();
    answers[0] = answers[1] = false;
    pass(LONG_MS);
    CHECK(!is_lost, "the peer computes");
    CHECK(lane_is_up(&lanes[0]) && lane_is_up(&lanes[1]), "no lane answers, so none is suspect");
    end();
}

/* The same over the lane that is left. */
static void test_kept_while_it_computes_over_one_lane(void)
{
    begin();
    keep_one();
    pass(RENEWED_MS);
    break_lane(0);
    answers[1] = false;
    pass(LONG_MS);
    CHECK(!is_lost, "the peer computes");
    CHECK(lane_is_up(&lanes[1]), "lane 1 is not suspect");
    end();
}

/* Nothing was ever sent on it, so nothing is lost, and the other one takes what is to come. */
static void test_unused_lane_breaks(void)
{
    begin();
    break_lane(0);
    pass(1);
    CHECK(lanes[0].lost, "plans do without the lane");
    CHECK(!is_lost, "lane 1 is left");
    end();
}

int main(void)
{
    test_lost_when_no_lane_comes_back();
    test_kept_when_the_last_lane_comes_back();
    test_kept_while_it_computes();
    test_kept_while_it_computes_over_one_lane();
    test_unused_lane_breaks();
    if (peer.delivery)
        delivery_free(peer.delivery);
    return check_end();
}
