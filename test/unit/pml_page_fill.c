/* SPDX-License-Identifier: BSD-3-Clause */
/* What the page says of peers and lanes that are none: messages, credit, lanes that are down, and
 * what several lanes carried together. */
#include "check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own_page.h"
#include "common/report/page_text.h"
#include "lanes_standin.h"
#include "plan/peer_class.h"
#include "contact/peer_lanes.h"
#include "liveness/liveness.h"
#include "report/report.h"
#include "request/request.h"

static mca_btl_base_module_t *rails[2];
static struct peer *peers[2];

static void surround(void)
{
    const char *why;
    standin_begin();
    multilane.local_peer_count = 8;
    multilane.local_peers = calloc(8, sizeof(*multilane.local_peers));
    CHECK(own_page_open("", (struct page_process){1, 2}, &why) && multilane.local_peers,
          "no memory");
    wait_stories_init(wait_rows_fill);
    rails[0] = standin_btl("verbs", 8000);
    rails[1] = standin_btl("verbs", 8000);
    for (int i = 0; i < 2; i++) {
        peers[i] = standin_peer();
        standin_reach(peers[i], rails[0]);
        standin_reach(peers[i], rails[1]);
        CHECK(peer_take_lanes(peers[i]), "peer %d", i);
        peers[i]->reachable = true;
        peer_list(peers[i]);
    }
}

static unsigned walks; /* over all peers */

struct peer *__real_peer_next(const struct peer *at);
struct peer *__wrap_peer_next(const struct peer *at);
struct peer *__wrap_peer_next(const struct peer *at)
{
    walks += at == NULL;
    return __real_peer_next(at);
}

static const struct page_peer *fill(int peer)
{
    struct page_process name = {peers[peer]->name.jobid, peers[peer]->name.vpid};
    own_page_change();
    walks = 0;
    page_fill(1000);
    CHECK(walks == 1, "%u walks", walks);
    own_page_changed();
    for (uint32_t i = 0; i < own_page->peer_count; i++)
        if (own_page->peers[i].name.rank == name.rank && own_page->peers[i].name.job == name.job)
            return &own_page->peers[i];
    return NULL;
}

static void test_peers(void)
{
    CHECK(!fill(0) && own_page->peer_count == 0, "%u peers without traffic", own_page->peer_count);
    uint32_t sequence, mark;
    peers[0]->out.limit = 100;
    for (int i = 0; i < 3; i++)
        peer_draw(peers[0], 40, &sequence, &mark);
    peers[0]->next_receive_sequence = 5;
    peers[0]->in.held = 12;
    const struct page_peer *row = fill(0);
    CHECK(row && row->sent == 3 && row->received == 5 && row->kept == 12 && row->credit == -20 &&
              row->lanes == 2 && row->lanes_down == 0,
          "sent %u, credit %d", row ? row->sent : 0, row ? row->credit : 0);
    CHECK(own_page->peer_count == 1, "%u peers", own_page->peer_count);
}

static void test_lanes(void)
{
    struct peer_class *class = peer_class_now(peers[0]);
    size_t large = 64 << 20;
    struct route *route = class_route_at(class, CLASS_CONTIGUOUS, large);
    route_count(route, large);
    CHECK(route->lane_count == 2, "%d lanes", route->lane_count);
    peers[0]->lanes[0].speed.sent = 3000; /* of the stripes */
    peers[0]->lanes[1].speed.sent = 1000;
    fill(0);
    CHECK(own_page->lane_count == 2 && own_page->lanes[0].bytes == large / 4 * 3 &&
              own_page->lanes[1].bytes == large / 4,
          "%u lanes, %llu bytes", own_page->lane_count,
          (unsigned long long) own_page->lanes[0].bytes);
    CHECK(own_page->lanes[0].peers == 2 && own_page->lanes[0].down == 0, "%u peers",
          own_page->lanes[0].peers);
    CHECK(own_page->sent_messages == 1 && own_page->sent_bytes == large, "%llu messages",
          (unsigned long long) own_page->sent_messages);
}

static void test_troubles(void)
{
    peers[1]->lanes[1].health.state = LANE_SILENT;
    fill(1);
    CHECK(own_page->trouble_count == 1 && own_page->troubles[0].peer.rank == peers[1]->name.vpid &&
              own_page->troubles[0].kind == PAGE_SILENT && own_page->lanes[1].down == 1,
          "%u troubles", own_page->trouble_count);
    peers[1]->lanes[1].health.state = LANE_BROKEN;
    fill(1);
    CHECK(own_page->troubles[0].kind == PAGE_BROKEN, "it is broken");
    peers[1]->lanes[1].health.state = LANE_UP;
    fill(1);
    CHECK(own_page->trouble_count == 0 && own_page->lanes[1].down == 0, "it is back");
    peers[1]->lanes[1].is_worse = true;
    fill(1);
    CHECK(own_page->trouble_count == 1 && own_page->troubles[0].kind == PAGE_WORSE &&
              own_page->lanes[1].worse == 1 && own_page->lanes[1].down == 0,
          "%u troubles", own_page->trouble_count);
    CHECK(lane_leave_out(&peers[1]->lanes[1], LANE_OUT_WORSE, true), "no lane is left");
    fill(1);
    CHECK(own_page->troubles[0].kind == PAGE_RESERVE && own_page->lanes[1].down == 0, "kind %u",
          own_page->troubles[0].kind);
    lane_leave_out(&peers[1]->lanes[1], LANE_OUT_WORSE, false);
    peers[1]->lanes[1].is_worse = false;
}

static bool is_planned(const struct peer *peer, uint8_t lane)
{
    const struct route *route = class_route_at(peer_class_now(peer), CLASS_CONTIGUOUS, 64 << 20);
    bool is_used = false;
    for (int i = 0; i < route->lane_count; i++)
        is_used |= route->lanes[i] == lane;
    return is_used;
}

/* As multilane-top does. */
static void word_write(uint64_t word)
{
    char path[64], target[64];
    for (int fd = 0; fd < 64; fd++) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        ssize_t length = readlink(path, target, sizeof(target) - 1);
        if (length > 0 && (target[length] = '\0', strstr(target, DRAIN_FILE_NAME)))
            CHECK(pwrite(fd, &word, sizeof(word), 0) == (ssize_t) sizeof(word), "no word");
    }
}

static void look_for_a_second(void)
{
    for (int i = 0; i < 10; i++)
        drain_look();
}

/* A lane is drained where another one leads, toward peers that are met later too. */
static void test_drain(void)
{
    struct peer *late = standin_peer(), *single = standin_peer();
    uint64_t bit = UINT64_C(1) << lane_number(rails[1]);
    look_for_a_second();
    CHECK(is_planned(peers[0], 1), "nothing is asked");
    word_write(bit);
    standin_reach(single, rails[1]);
    CHECK(peer_take_lanes(single), "a peer");
    peer_list(single);
    CHECK(drain_done() == 0, "it has not looked");
    unsigned said = standin_said;
    look_for_a_second();
    CHECK(drain_done() == bit && !is_planned(peers[0], 1) && !is_planned(peers[1], 1) &&
              lane_is_up(&peers[0]->lanes[1]),
          "it carries nothing");
    CHECK(is_planned(single, 0) && standin_said == said + 1 &&
              strstr(standin_sentence, "no other lane leads there"),
          "%u sentences: %s", standin_said - said, standin_sentence);
    standin_reach(late, rails[0]);
    standin_reach(late, rails[1]);
    CHECK(peer_take_lanes(late) && !is_planned(late, 1), "a peer that is met now");
    peers[0]->lanes[1].copy_speed.sent += 100;
    fill(0);
    const struct page_lane *row = &own_page->lanes[1];
    CHECK(own_page->drained == bit && row->number == lane_number(rails[1]) && row->drained == 2 &&
              row->kept == 1 && row->busy == 1 && row->down == 0 && own_page->trouble_count == 0,
          "%u drained, %u kept, %u busy", row->drained, row->kept, row->busy);
    peers[0]->lanes[1].copy_speed.sent -= 100;
    /* It is better than none. */
    CHECK(lane_leave_out(&peers[0]->lanes[0], LANE_OUT_DOWN, true) && is_planned(peers[0], 1),
          "no lane is left");
    CHECK(lane_leave_out(&peers[0]->lanes[0], LANE_OUT_DOWN, false) && !is_planned(peers[0], 1),
          "the other one is back");
    word_write(0);
    look_for_a_second();
    CHECK(drain_done() == 0 && is_planned(peers[0], 1) && is_planned(peers[1], 1), "all are back");
}

static uint64_t waited_all(void)
{
    uint64_t sum = 0;
    fill(0);
    for (uint32_t i = 0; i < own_page->waited_count; i++)
        sum += page_waited_ns(&own_page->waited[i]);
    return sum;
}

/* Each kind of wait counts for the one that it is for; where there are more than there are rows, no
 * time is lost, and who is waited for most keeps its row. */
static void test_waited(void)
{
    struct page_wait wait = {.row_count = 1};
    struct page_request *row = &wait.rows[0];
    waited_forget();
    row->peer = (struct page_process){.job = 1, .rank = 5};
    row->kind = PAGE_RECEIVE, row->stage = PAGE_UNMATCHED;
    waited_add(&wait, 1000000);
    row->stage = PAGE_MOVING;
    waited_add(&wait, 200);
    row->kind = PAGE_SENDING, row->stage = PAGE_ANNOUNCED;
    waited_add(&wait, 30);
    row->collective = PAGE_BARRIER;
    waited_add(&wait, 4);
    wait.row_count = 0;
    waited_add(&wait, 5000);
    CHECK(waited_all() == 1000234 && own_page->waited_count == 2, "%u rows",
          own_page->waited_count);
    const uint64_t *ns = own_page->waited[1].ns;
    CHECK(own_page->waited[1].peer.rank == 5 && ns[PAGE_FOR_SENDER] == 1000000 &&
              ns[PAGE_FOR_BYTES] == 200 && ns[PAGE_FOR_RECEIVER] == 30 &&
              ns[PAGE_IN_COLLECTIVE] == 4,
          "kinds");
    wait.row_count = 1;
    for (uint32_t rank = 100; rank < 100 + 3 * PAGE_WAITED; rank++) {
        row->peer.rank = rank;
        waited_add(&wait, 10);
    }
    row->peer.rank = PAGE_ANY_RANK;
    waited_add(&wait, 1);
    CHECK(waited_all() == 1000235 + 30 * PAGE_WAITED && own_page->waited_count == PAGE_WAITED &&
              own_page->waited[1].peer.rank == 5 && own_page->waited[0].peer.rank == PAGE_ANY_RANK,
          "%u rows", own_page->waited_count);
    waited_forget();
}

int main(void)
{
    surround();
    test_peers();
    test_lanes();
    test_troubles();
    test_drain();
    test_waited();
    own_page_close();
    wait_stories_fini();
    free(multilane.local_peers);
    return check_end();
}
