/* SPDX-License-Identifier: BSD-3-Clause */
/* A wait that ends before it sleeps: the ring that rings next is attended again, so that its sender
 * need not ring for each message. */
#include "check.h"

#include "btl/shm/shm.h"

struct shm_state shm;

/* What neither a wait that does not sleep nor its end calls. */
bool shm_doorbell_arm(struct segment *segment)
{
    return !segment;
}

void shm_doorbell_disarm(struct segment *segment)
{
    CHECK(!segment, "disarmed");
}

void shm_doorbell_sleep(struct segment *segment, uint32_t microseconds)
{
    CHECK(!segment, "slept for %u us", microseconds);
}

void shm_doorbell_wake(struct segment_header *header)
{
    CHECK(!header, "woken");
}

void shm_receive_skip_rounds(void)
{
    CHECK(false, "rounds skipped");
}

void shm_doorbell_ring_own_of(shm_peer_t *peer)
{
    CHECK(!peer, "rung");
}

int main(void)
{
    static struct ring_feedback feedback;
    static shm_peer_t peer;
    _Atomic uint32_t changes = 0;
    const struct multilane_seen unchanged = {&changes, 0};

    OBJ_CONSTRUCT(&shm.lock, opal_mutex_t);
    peer.in.feedback = &feedback;
    peer.in_open = true;
    shm_attended_add(&peer);
    CHECK(shm_attended_is_marked(&peer) && feedback.attended, "at first");
    CHECK(!shm_sleep(1000, &unchanged, 1), "the first call only tells the senders");
    CHECK(!shm_attended_is_marked(&peer) && !feedback.attended, "its sender rings");
    CHECK(shm.attended[0] == &peer, "it is still looked at");
    shm_attended_add(&peer); /* it has rung */
    CHECK(shm_attended_is_marked(&peer) && feedback.attended, "its sender need not ring any more");
    CHECK(shm.attended[0] == &peer && !shm.attended[1], "it has one place");
    return check_end();
}
