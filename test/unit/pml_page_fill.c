/* SPDX-License-Identifier: BSD-3-Clause */
/* What the page says of peers and lanes that are none: messages, credit, lanes that are down, and
 * what several lanes carried together. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "base/own_page.h"
#include "lanes_standin.h"
#include "plan/peer_class.h"
#include "contact/peer_lanes.h"
#include "report/page_fill.h"
#include "report/wait_rows.h"
#include "request/wait_story.h"

static mca_btl_base_module_t *rails[2];
static struct peer *peers[2];

static void surround(void)
{
    const char *why;
    standin_begin();
    multilane.local_peer_count = 8;
    multilane.local_peers = calloc(8, sizeof(*multilane.local_peers));
    CHECK(own_page_open(&why) && multilane.local_peers, "no memory");
    wait_stories_init(wait_rows_fill);
    rails[0] = standin_btl("tcp", 8000);
    rails[1] = standin_btl("tcp", 8000);
    for (int i = 0; i < 2; i++) {
        peers[i] = standin_peer();
        standin_reach(peers[i], rails[0]);
        standin_reach(peers[i], rails[1]);
        CHECK(peer_take_lanes(peers[i]), "peer %d", i);
        peers[i]->reachable = true;
        peer_list(peers[i]);
    }
}

static const struct page_peer *fill(int peer)
{
    struct page_process name = {peers[peer]->name.jobid, peers[peer]->name.vpid};
    own_page_change();
    page_fill(1000);
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
    peer_next_sequence_set(peers[0], 5);
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
    peers[1]->lanes[1].history.is_worse = true;
    fill(1);
    CHECK(own_page->trouble_count == 1 && own_page->troubles[0].kind == PAGE_WORSE &&
              own_page->lanes[1].worse == 1 && own_page->lanes[1].down == 0,
          "%u troubles", own_page->trouble_count);
    CHECK(lane_leave_out(&peers[1]->lanes[1], LANE_OUT_WORSE, true), "no lane is left");
    fill(1);
    CHECK(own_page->troubles[0].kind == PAGE_RESERVE && own_page->lanes[1].down == 0, "kind %u",
          own_page->troubles[0].kind);
    lane_leave_out(&peers[1]->lanes[1], LANE_OUT_WORSE, false);
    peers[1]->lanes[1].history.is_worse = false;
}

int main(void)
{
    surround();
    test_peers();
    test_lanes();
    test_troubles();
    own_page_close();
    wait_stories_fini();
    free(multilane.local_peers);
    return check_end();
}
