/* SPDX-License-Identifier: BSD-3-Clause */
/* Names lanes that bring wrong bytes; three messages in a minute take a lane out, at both ends. It
 * carries where no other one is up: what is wrong comes again. */
#include "liveness/liveness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/multilane.h"
#include "contact/peer_lanes.h"
#include "delivery/control.h"

#define MINUTE_NS UINT64_C(60000000000)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards lane_wrongs; a leaf */

/* Null: no memory. Later lanes have room as well. */
static struct lane_wrongs *wrongs_of(struct lane *lane)
{
    struct peer *peer = lane->peer;
    uint8_t count = peer_lane_count(peer), room = peer->lane_room > count ? peer->lane_room : count;
    pthread_mutex_lock(&lock);
    if (!peer->wrongs)
        peer->wrongs = calloc(room, sizeof(*peer->wrongs));
    struct lane_wrongs *wrongs = peer->wrongs ? &peer->wrongs[lane->index] : NULL;
    if (wrongs)
        wrongs->lane = lane;
    pthread_mutex_unlock(&lock);
    return wrongs;
}

/* Returns how many there were. *is_one_too_many: the last ones came within a minute. */
static uint32_t wrong_count(struct lane *lane, bool *is_one_too_many)
{
    const uint64_t now = clock_now_ns();
    struct lane_wrongs *wrongs = wrongs_of(lane);
    *is_one_too_many = false;
    if (!wrongs)
        return 0;
    pthread_mutex_lock(&lock);
    uint32_t count = ++wrongs->count;
    *is_one_too_many = count >= WRONGS_OUT && now - wrongs->at_ns[0] <= MINUTE_NS;
    for (int i = 0; i + 1 < WRONGS_OUT - 1; i++)
        wrongs->at_ns[i] = wrongs->at_ns[i + 1];
    wrongs->at_ns[WRONGS_OUT - 2] = now;
    pthread_mutex_unlock(&lock);
    return count;
}

static const char brought[] = "brought 3 wrong messages in a minute";
static const char reported[] = "brought 3 wrong messages in a minute to the other end";

/* From progress: the BTL's call may be inside of anything. */
static int lane_out(struct pending *pending)
{
    struct lane_wrongs *wrongs =
        (struct lane_wrongs *) ((char *) pending - offsetof(struct lane_wrongs, pending));
    struct lane *lane = wrongs->lane;
    pthread_mutex_lock(&lock);
    const char *why = wrongs->why;
    wrongs->why = NULL;
    pthread_mutex_unlock(&lock);
    if (!lane_is_out(lane, LANE_OUT_WRONG)) {
        lane_leave_out(lane, LANE_OUT_WRONG, true);
        lane_say(lane,
                 lane_is_lost(lane) ? "is left out while another lane is up"
                                    : "goes on being used, as no other lane is up",
                 why, true);
    }
    if (why == brought)
        control_send(lane, WIRE_WRONG, NULL, 0); /* each time: one may be lost with the lane */
    return OMPI_SUCCESS;
}

static void lane_out_soon(struct lane *lane, const char *why)
{
    struct lane_wrongs *wrongs = wrongs_of(lane);
    if (!wrongs)
        return;
    pthread_mutex_lock(&lock);
    bool is_first = !wrongs->why;
    wrongs->why = why;
    pthread_mutex_unlock(&lock);
    if (!is_first)
        return;
    wrongs->pending = (struct pending){.retry = lane_out};
    pending_add(&wrongs->pending);
}

static void wrong_came(struct lane *lane, size_t bytes)
{
    char why[96];
    bool is_one_too_many;
    counter_add(&multilane.wrong_messages, 1);
    if (!lane) {
        static _Atomic unsigned said; /* relaxed: once too often does no harm */
        if (atomic_fetch_add_explicit(&said, 1, memory_order_relaxed) < WRONGS_OUT)
            opal_output(0,
                        "multilane: %zu bytes that gets or puts brought over several lanes have a "
                        "wrong sum; they come again.",
                        bytes);
        return;
    }
    if (wrong_count(lane, &is_one_too_many) < WRONGS_OUT) {
        if (bytes)
            snprintf(why, sizeof(why), "brought %zu bytes whose sum is wrong", bytes);
        else
            snprintf(why, sizeof(why), "brought a wrong header of its own");
        lane_say(lane, "brings wrong bytes, which come again", why, false);
    }
    if (is_one_too_many)
        lane_out_soon(lane, brought);
}

void wrong_begin(void)
{
    lane_events.wrong = wrong_came;
}

void wrong_reported(struct lane *lane)
{
    lane_out_soon(lane, reported);
}

void wrong_is_lost(struct peer *peer, mca_btl_base_module_t *btl, size_t bytes)
{
    char what[256], why[400];
    counter_add(&multilane.wrong_messages, 1);
    snprintf(what, sizeof(what),
             "brought a message of %zu bytes whose sum is wrong, and cannot bring it again, as "
             "sock can (leave %s out of --mca btl, or find what changes its bytes)",
             bytes, lane_name_of(btl));
    snprintf(why, sizeof(why), "lane %s %s", lane_name_of(btl), what);
    if (peer)
        peer_lost(peer, why);
    else
        lane_events.btl_failed(btl, what, OMPI_ERR_UNREACH);
}
