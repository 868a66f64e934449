/* SPDX-License-Identifier: BSD-3-Clause */
/* Names lanes that bring wrong bytes; three messages in a minute take a lane out, at both ends. It
 * carries where no other one is up: what is wrong comes again. */
#include "liveness/wrong.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/multilane.h"
#include "contact/peer_lanes.h"
#include "delivery/control.h"
#include "lane/lane_events.h"
#include "liveness/errors.h"

#define MINUTE_NS UINT64_C(60000000000)

/* Returns how many there were. *is_one_too_many: the last ones came within a minute. */
static uint32_t wrong_count(struct lane_wrongs *wrongs, bool *is_one_too_many)
{
    const uint64_t now = clock_now_ns();
    multilane_lock();
    uint32_t count = ++wrongs->count;
    *is_one_too_many = count >= WRONGS_OUT && now - wrongs->at_ns[0] <= MINUTE_NS;
    for (int i = 0; i + 1 < WRONGS_OUT - 1; i++)
        wrongs->at_ns[i] = wrongs->at_ns[i + 1];
    wrongs->at_ns[WRONGS_OUT - 2] = now;
    multilane_unlock();
    return count;
}

static void lane_out(struct lane *lane, const char *why)
{
    if (lane_is_out(lane, LANE_OUT_WRONG))
        return;
    lane_leave_out(lane, LANE_OUT_WRONG, true);
    lane_say(lane,
             lane_is_lost(lane) ? "is left out while another lane is up"
                                : "goes on being used, as no other lane is up",
             why, true);
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
    if (wrong_count(&lane->wrongs, &is_one_too_many) < WRONGS_OUT) {
        if (bytes)
            snprintf(why, sizeof(why), "brought %zu bytes whose sum is wrong", bytes);
        else
            snprintf(why, sizeof(why), "brought a wrong header of its own");
        lane_say(lane, "brings wrong bytes, which come again", why, false);
    }
    if (!is_one_too_many)
        return;
    lane_out(lane, "brought 3 wrong messages in a minute");
    control_send(lane, WIRE_WRONG, NULL, 0); /* each time: one may be lost with the lane */
}

void wrong_begin(void)
{
    lane_events.wrong = wrong_came;
}

void wrong_told(struct lane *lane)
{
    lane_out(lane, "brought 3 wrong messages in a minute to the other end");
}

void wrong_is_lost(struct peer *peer, mca_btl_base_module_t *btl, size_t bytes)
{
    char why[320];
    counter_add(&multilane.wrong_messages, 1);
    snprintf(why, sizeof(why),
             "lane %s brought a message of %zu bytes whose sum is wrong, and cannot bring it "
             "again, as sock can; leave %s out of --mca btl, or find what changes its bytes",
             lane_name_of(btl), bytes, lane_name_of(btl));
    if (peer)
        peer_lost(peer, why);
    else
        btl_failed(btl, why, OMPI_ERR_UNREACH);
}
