/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers over two lanes that are none, which break, are made anew and answer, or do not, in a time
 * that passes only here: a lane that can be made anew is, and a peer counts as lost if none of its
 * own lanes shows life, and else does not. */
#include "check.h"

#include <string.h>

#include "common/compat/tcp.h"
#include "liveness/awaited.h"
#include "base/clock.h"
#include "match/comm.h"
#include "delivery/delivery.h"
#include "liveness/errors.h"
#include "liveness/lost.h"
#include "base/multilane.h"
#include "base/parameters.h"
#include "base/sockets.h"
#include "peer/stripe.h"
#include "liveness/watch.h"
#include "progress_standin.h"

#define PEERS       2
#define LANES       2
#define MILLISECOND UINT64_C(1000000)
#define LOST_MS     3000
#define LONG_MS     (3 * LOST_MS)
#define RENEWED_MS  500

struct parameters parameters = {.failover = true, .suspect_ms = 40, .lost_s = LOST_MS / 1000};

static uint64_t now_ns = 1000 * MILLISECOND;
static mca_btl_base_component_t component, tcp_component;
static mca_btl_base_module_t btl, tcp;
static struct peer all_peers[PEERS];
static struct peer *const peer = &all_peers[0], *const other = &all_peers[1];
static struct peer *peers[PEERS] = {&all_peers[0], &all_peers[1]};
static struct lane all_lanes[PEERS][LANES];
static struct lane *const lanes = all_lanes[0];
static struct compat_tcp_endpoint endpoints[PEERS][LANES];
static bool healthy[PEERS * LANES];  /* by socket */
static unsigned looks;               /* at a socket */
static unsigned asked[PEERS][LANES]; /* the last question on each lane */
static unsigned renewed[LANES];
static bool answers[LANES], is_lost, other_is_lost;

/* --- what lies around --------------------------------------------------------------------------
 */

uint64_t clock_now_ns(void)
{
    return now_ns;
}

int lane_send_plain(struct lane *lane, const void *bytes, size_t length, lane_left left,
                    void *owner)
{
    const struct wire_base *base = bytes;
    struct wire_ask ask;
    (void) length;
    (void) left;
    (void) owner;
    if (base->type == WIRE_ASK) {
        memcpy(&ask, base + 1, sizeof(ask));
        asked[lane->peer - all_peers][lane->index] = ask.number;
    }
    return LANE_LEFT;
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
    CHECK(lost == peer || lost == other, "%s", why);
    *(lost == peer ? &is_lost : &other_is_lost) = true;
}

void stripe_sent(struct lane *lane, size_t size)
{
    (void) lane;
    (void) size;
}

void stripe_not_sent(struct lane *lane, size_t size)
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

bool socket_is_healthy(int fd, uint32_t silence_ms)
{
    looks++;
    CHECK(silence_ms > 0 && silence_ms < LOST_MS, "%u ms", silence_ms);
    return fd >= 0 && fd < PEERS * LANES && healthy[fd];
}

void awaited_meet(void)
{
}

/* --- the tests ---------------------------------------------------------------------------------
 */

static void peer_begin(struct peer *this)
{
    int number = (int) (this - all_peers);
    if (this->delivery)
        delivery_free(this->delivery);
    memset(this, 0, sizeof(*this));
    this->lanes = all_lanes[number];
    this->lane_count = LANES;
    this->reachable = true;
    for (int i = 0; i < LANES; i++)
        this->lanes[i] = (struct lane){.btl = &btl,
                                       .peer = this,
                                       .flags = MCA_BTL_FLAGS_SEND,
                                       .index = (uint8_t) i,
                                       .framed = true,
                                       .renewable = true};
}

static void begin(void)
{
    memset(asked, 0, sizeof(asked));
    memset(renewed, 0, sizeof(renewed));
    memset(healthy, 0, sizeof(healthy));
    is_lost = other_is_lost = false;
    looks = 0;
    multilane.local_peers = peers;
    multilane.local_peer_count = PEERS;
    strcpy(component.btl_version.mca_component_name, "verbs");
    strcpy(tcp_component.btl_version.mca_component_name, "tcp");
    btl.btl_component = &component;
    tcp.btl_component = &tcp_component;
    btl.btl_max_send_size = tcp.btl_max_send_size = 64 << 10;
    for (int i = 0; i < LANES; i++)
        answers[i] = true;
    for (int i = 0; i < PEERS; i++)
        peer_begin(&all_peers[i]);
    watch_init();
    watch_begin();
}

/* One of Open MPI's tcp from now on, with a socket. */
static void lane_make_tcp(struct lane *lane, bool is_healthy)
{
    int number = (int) (lane->peer - all_peers), socket = number * LANES + lane->index;
    struct compat_tcp_endpoint *endpoint = &endpoints[number][lane->index];
    endpoint->module = &tcp;
    endpoint->socket = socket;
    lane->btl = &tcp;
    lane->renewable = false;
    lane->endpoint = (struct mca_btl_base_endpoint_t *) (void *) endpoint;
    healthy[socket] = is_healthy;
}

static void end(void)
{
    watch_fini();
}

static void answer_all(void)
{
    for (int i = 0; i < LANES; i++) {
        struct wire_heard heard = {.heard = 0, .ask = asked[0][i]};
        if (asked[0][i] && answers[i])
            delivery_heard(peer, &lanes[i], &heard);
        asked[0][i] = 0;
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

static void keep_one_for(struct peer *this)
{
    CHECK(delivery_send(&this->lanes[0], "what the peer is slow to acknowledge", 37, false, NULL,
                        NULL) == LANE_UNDER_WAY,
          "there is room");
}

static void keep_one(void)
{
    keep_one_for(peer);
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

/* --- what the kernel knows of tcp ---------------------------------------------------------------
 */

/* Two tcp lanes; the peer answers on none, and both, one or no socket is healthy. */
static bool lost_over_tcp(bool first, bool second)
{
    begin();
    lane_make_tcp(&lanes[0], first);
    lane_make_tcp(&lanes[1], second);
    answers[0] = answers[1] = false;
    keep_one();
    pass(LONG_MS);
    end();
    return is_lost;
}

static void test_one_healthy_socket_is_life(void)
{
    CHECK(!lost_over_tcp(true, true), "it computes");
    CHECK(!lost_over_tcp(true, false), "it computes, and lane 1 is cut");
    CHECK(!lost_over_tcp(false, true), "it computes, and lane 0 is cut");
    CHECK(lost_over_tcp(false, false), "it is cut off");
}

/* A host dies: those that compute on another one are not lost with it. */
static void test_trouble_is_of_one_peer(void)
{
    begin();
    for (int i = 0; i < LANES; i++) {
        lane_make_tcp(&lanes[i], false);
        lane_make_tcp(&other->lanes[i], true);
    }
    answers[0] = answers[1] = false;
    keep_one();
    keep_one_for(other);
    pass(LONG_MS);
    CHECK(is_lost, "none of its sockets is healthy");
    CHECK(!other_is_lost, "its own sockets are healthy");
    end();
}

/* A peer with lanes of both kinds lives if any of them shows life. */
static bool lost_over_both(bool socket_lives, bool verbs_lives)
{
    begin();
    lane_make_tcp(&lanes[0], socket_lives);
    answers[0] = answers[1] = false;
    keep_one();
    pass(1);
    if (!verbs_lives)
        break_lane(1);
    pass(LONG_MS);
    end();
    return is_lost;
}

static void test_any_kind_of_lane_shows_life(void)
{
    CHECK(!lost_over_both(false, true), "the device acknowledges");
    CHECK(!lost_over_both(true, false), "the kernel acknowledges");
    CHECK(lost_over_both(false, false), "nothing shows life");
}

/* Nothing is kept for messages by the other lane, shared memory: it reports itself that the peer is
 * gone. */
static void test_lane_that_delivers_shows_life(void)
{
    begin();
    lane_make_tcp(&lanes[0], false);
    lanes[1].framed = lanes[1].renewable = false;
    answers[0] = answers[1] = false;
    keep_one();
    pass(LONG_MS);
    CHECK(!is_lost, "the peer computes");
    end();
}

/* What cannot be an endpoint of btl/tcp, as it names another module, is none. */
static void test_unknown_endpoint_shows_nothing(void)
{
    begin();
    for (int i = 0; i < LANES; i++) {
        lane_make_tcp(&lanes[i], true);
        endpoints[0][i].module = &btl;
    }
    answers[0] = answers[1] = false;
    keep_one();
    pass(LONG_MS);
    CHECK(is_lost, "nothing is known of it");
    end();
}

/* Each of a peer's own sockets at most once a second, whatever the number of looks. */
static void test_sockets_are_asked_once_a_second(void)
{
    begin();
    for (int i = 0; i < LANES; i++) {
        lane_make_tcp(&lanes[i], i == LANES - 1);
        lane_make_tcp(&other->lanes[i], i == LANES - 1);
    }
    answers[0] = answers[1] = false;
    keep_one();
    keep_one_for(other);
    pass(LONG_MS);
    CHECK(!is_lost && !other_is_lost, "one socket of each is healthy");
    CHECK(looks > 0 && looks <= PEERS * LANES * (LONG_MS - LOST_MS + 1000) / 1000, "%u looks",
          looks);
    end();
}

int main(void)
{
    test_lost_when_no_lane_comes_back();
    test_kept_when_the_last_lane_comes_back();
    test_kept_while_it_computes();
    test_kept_while_it_computes_over_one_lane();
    test_unused_lane_breaks();
    test_one_healthy_socket_is_life();
    test_trouble_is_of_one_peer();
    test_any_kind_of_lane_shows_life();
    test_lane_that_delivers_shows_life();
    test_unknown_endpoint_shows_nothing();
    test_sockets_are_asked_once_a_second();
    for (int i = 0; i < PEERS; i++)
        if (all_peers[i].delivery)
            delivery_free(all_peers[i].delivery);
    return check_end();
}
