/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that a broken lane gives back: each goes once by another lane, which is told that it was
 * not written for it, as soon as one takes it; what concerned the broken lane alone goes nowhere.
 * What is sent from its owner's memory stays the owner's until the lane says so. */
#include "check.h"

#include <string.h>

#include "contact/peer_lanes.h"
#include "delivery/control.h"
#include "lane/lane.h"
#include "lanes_standin.h"
#include "liveness/liveness.h"
#include "memory/rma.h"
#include "progress_standin.h"

#define LANES 2
#define BYTES 1000

static struct peer *peer;
static char payload[BYTES];
static unsigned fences;
static int fence_says;
static unsigned char seen[2 * BYTES]; /* what a lane has taken last */
static size_t seen_length;
static unsigned seen_count;
static const mca_btl_base_module_t *seen_by;
static multilane_returned returned; /* as the lanes were told */
static mca_btl_base_registration_handle_t *const key = (void *) &fences;

static bool look(const mca_btl_base_module_t *btl, const struct mca_btl_base_endpoint_t *endpoint,
                 const unsigned char *bytes, size_t length)
{
    (void) endpoint;
    memcpy(seen, bytes, length);
    seen_length = length;
    seen_by = btl;
    seen_count++;
    return true;
}

static int lane_is_fenced(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint)
{
    (void) btl, (void) endpoint;
    fences++;
    return fence_says;
}

static void lane_return_to(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                           multilane_returned to, void *context)
{
    (void) btl, (void) endpoint, (void) context;
    returned = to;
}

static const struct multilane_extension extension = {.fence = lane_is_fenced,
                                                     .return_to = lane_return_to};

static void state_set(int index, enum lane_state state)
{
    struct liveness *liveness = liveness_of(peer);
    OPAL_THREAD_LOCK(&liveness->lock);
    peer->lanes[index].health.state = (uint8_t) LANE_UP;
    if (state != LANE_UP)
        (void) lane_state_set(liveness, &peer->lanes[index], state, "the test says so");
    OPAL_THREAD_UNLOCK(&liveness->lock);
}

static void begin(void)
{
    peer = standin_peer();
    for (int i = 0; i < LANES; i++)
        standin_reach(peer, standin_btl("verbs", 1000));
    CHECK(peer_take_lanes(peer), "no lanes");
    peer->reachable = true;
    for (int i = 0; i < LANES; i++) {
        peer->lanes[i].extension = &extension;
        lane_return(&peer->lanes[i]);
    }
    seen_count = fences = 0;
    fence_says = OPAL_SUCCESS;
    standin_takes = look;
    state_set(0, LANE_BROKEN);
}

/* A message of that type, as the lane gives it back. */
static bool message_returns(uint8_t type, size_t payload_length)
{
    const struct wire_base base = {.type = type, .traits = WIRE_STRIPED};
    return returned(&peer->lanes[0], WIRE_TAG, &base, sizeof(base), payload, payload_length);
}

static const struct wire_base *seen_base(void)
{
    return (const void *) seen;
}

static void it_goes_by_another_lane(void)
{
    begin();
    CHECK(returned == lane_events.returned, "the lane returns nothing");
    CHECK(message_returns(WIRE_DATA, BYTES) && seen_count == 0, "inside of the lane's call");
    progress_standin_run();
    progress_standin_run();
    CHECK(seen_count == 1 && seen_by == peer->lanes[1].btl, "%u times", seen_count);
    CHECK(seen_length == sizeof(struct wire_base) + BYTES &&
              memcmp(seen + sizeof(struct wire_base), payload, BYTES) == 0,
          "other bytes");
    CHECK(seen_base()->type == WIRE_DATA && seen_base()->traits == WIRE_MOVED, "traits %x",
          seen_base()->traits);
}

static void what_is_the_lanes_goes_nowhere(void)
{
    static const uint8_t types[] = {WIRE_LANE, WIRE_RECEIVED, WIRE_ALIVE, WIRE_ASK, WIRE_FENCE};
    begin();
    for (size_t i = 0; i < sizeof(types); i++)
        CHECK(message_returns(types[i], 8), "type %u", types[i]);
    CHECK(returned(&peer->lanes[0], WIRE_TAG, "", 1, NULL, 0), "a short one");
    progress_standin_run();
    CHECK(seen_count == 0, "%u are sent", seen_count);
}

/* Of osc/rdma: nothing is known of its bytes, not even whether they are a header of ours. */
static void a_message_of_others_keeps_its_tag_and_bytes(void)
{
    const struct wire_base base = {.type = WIRE_ASK, .traits = WIRE_STRIPED};
    begin();
    CHECK(returned(&peer->lanes[0], 0x61, &base, sizeof(base), payload, 8), "it is not taken");
    progress_standin_run();
    CHECK(seen_count == 1 && seen_by == peer->lanes[1].btl && standin_tag == 0x61,
          "%u times, tag %x", seen_count, standin_tag);
    CHECK(seen_length == sizeof(base) + 8 && memcmp(seen, &base, sizeof(base)) == 0, "other bytes");
}

static void it_waits_for_a_lane(void)
{
    begin();
    state_set(1, LANE_BROKEN);
    CHECK(message_returns(WIRE_EAGER, 8), "it is not taken");
    progress_standin_run();
    CHECK(seen_count == 0, "by a broken lane");
    state_set(0, LANE_UP); /* made anew */
    progress_standin_run();
    CHECK(seen_count == 1 && seen_by == peer->lanes[0].btl, "%u times", seen_count);
}

/* Word of a put goes by another lane once nothing can write there any more. */
static void word_of_a_put_waits_for_the_fence(void)
{
    const struct wire_fin fin = {.size = 1};
    begin();
    fence_says = OPAL_ERR_RESOURCE_BUSY;
    control_send(&peer->lanes[0], WIRE_FIN, &fin, sizeof(fin));
    control_send(&peer->lanes[0], WIRE_CANCEL, &fin, sizeof(fin));
    CHECK(seen_count == 1 && seen_base()->type == WIRE_CANCEL, "%u are sent", seen_count);
    progress_standin_run();
    CHECK(seen_count == 1, "%u are sent", seen_count);
    fence_says = OPAL_SUCCESS;
    progress_standin_run();
    CHECK(seen_count == 2 && seen_base()->type == WIRE_FIN && seen_base()->traits == WIRE_MOVED,
          "%u are sent", seen_count);
}

static void a_lost_peer_gets_none(void)
{
    begin();
    state_set(1, LANE_BROKEN);
    CHECK(message_returns(WIRE_EAGER, 8), "it is not taken");
    liveness_end(liveness_of(peer));
    CHECK(returned == NULL, "the lanes go on keeping messages");
    peer->lost = true;
    state_set(1, LANE_UP);
    progress_standin_run();
    CHECK(seen_count == 0, "%u are sent", seen_count);
}

/* --- puts --- */

static struct rma putting = {.count = 1};
static struct transfer transfer;
static mca_btl_base_rdma_completion_fn_t put_ended;
static void *put_context, *put_data;
static int fenced;

static int lane_puts(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                     void *local, uint64_t remote, mca_btl_base_registration_handle_t *local_key,
                     mca_btl_base_registration_handle_t *remote_key, size_t size, int flags,
                     int order, mca_btl_base_rdma_completion_fn_t ended, void *context, void *data)
{
    (void) btl, (void) endpoint, (void) local, (void) remote, (void) local_key, (void) remote_key;
    (void) size, (void) flags, (void) order;
    put_ended = ended;
    put_context = context;
    put_data = data;
    return OPAL_SUCCESS;
}

static int put_piece(struct transfer *of, size_t offset, size_t *size)
{
    (void) of;
    return rma_put(&putting, payload, offset, BYTES, size);
}

static void put_finish(struct transfer *of, int status)
{
    (void) of;
    CHECK(status == OPAL_ERR_UNREACH, "it ends with %d", status);
    fenced = rma_fence(&putting);
}

static void lane_failed(struct lane *lane, const char *what, int rc)
{
    (void) rc;
    CHECK(lane_break(lane, what, "the test says so"), "another one takes over");
}

/* It ends before the lane that broke has said so: its bytes may still be on their way. */
static void a_failed_put_waits_for_the_fence(void)
{
    static const struct transfer_steps way = {put_piece, put_finish};
    begin();
    state_set(0, LANE_UP);
    fence_says = OPAL_ERR_RESOURCE_BUSY;
    putting.lanes[0] = (struct rma_lane){.lane = &peer->lanes[0]};
    putting.transfer = &transfer;
    peer->lanes[0].btl->btl_put = lane_puts;
    peer->lanes[0].btl->btl_put_limit = BYTES;
    transfer_begin(&transfer, &way, BYTES, 1);
    put_ended(peer->lanes[0].btl, NULL, payload, NULL, put_context, put_data, OPAL_ERR_UNREACH);
    CHECK(fenced == LANE_AGAIN && fences == 1, "%d after %u questions", fenced, fences);
    fence_says = OPAL_SUCCESS;
    CHECK(rma_fence(&putting) == OMPI_SUCCESS, "it is fenced");
}

/* --- registrations --- */

static unsigned registrations, deregistrations;
static bool refuses;

static mca_btl_base_registration_handle_t *lane_registers(mca_btl_base_module_t *btl,
                                                          struct mca_btl_base_endpoint_t *endpoint,
                                                          void *base, size_t size, uint32_t flags)
{
    (void) btl, (void) endpoint;
    CHECK(base == payload && size == BYTES, "%zu bytes", size);
    CHECK(flags & MCA_BTL_REG_FLAG_REMOTE_READ, "flags %x", flags);
    registrations++;
    return refuses ? NULL : key;
}

static int lane_deregisters(mca_btl_base_module_t *btl, mca_btl_base_registration_handle_t *handle)
{
    (void) btl;
    CHECK(handle == key, "another registration");
    deregistrations++;
    return OPAL_SUCCESS;
}

/* Once a message and lane, also where it is refused. */
static void a_message_is_registered_once(void)
{
    struct rma rma = {.count = 0};
    begin();
    for (int i = 0; i < LANES; i++) {
        peer->lanes[i].btl->btl_register_mem = lane_registers;
        peer->lanes[i].btl->btl_deregister_mem = lane_deregisters;
    }
    for (int i = 0; i < 2; i++) {
        refuses = i;
        registrations = deregistrations = 0;
        for (int turn = 0; turn < 6; turn++)
            CHECK(rma_in_place(&rma, &peer->lanes[turn % LANES], payload, BYTES) ==
                      (refuses ? NULL : key),
                  "refuses %d", refuses);
        CHECK(registrations == LANES, "%u", registrations);
        rma_release(&rma);
        CHECK(deregistrations == (refuses ? 0 : LANES), "%u", deregistrations);
    }
}

int main(void)
{
    standin_begin();
    lane_events.returned = control_returned;
    lane_events.failed = lane_failed;
    for (int i = 0; i < BYTES; i++)
        payload[i] = (char) i;
    it_goes_by_another_lane();
    what_is_the_lanes_goes_nowhere();
    a_message_of_others_keeps_its_tag_and_bytes();
    it_waits_for_a_lane();
    word_of_a_put_waits_for_the_fence();
    a_lost_peer_gets_none();
    a_failed_put_waits_for_the_fence();
    a_message_is_registered_once();
    return check_end();
}
