/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages sent from their owner's memory by a lane that may die: the owner is told when the peer
 * has them and no lane reads that memory any more, and not before; what a lane loses goes again, as
 * a copy; what a lane said that the peer has goes only once. */
#include "check.h"

#include "delivery/delivery.h"
#include "delivery/health.h"
#include "lanes_standin.h"
#include "memory/rma.h"
#include "contact/peer_lanes.h"
#include "progress_standin.h"

#define LANES  2
#define HEADER 24
#define BYTES  1000

static struct peer *peer;
static char payload[BYTES];
static const char header[HEADER] = "a header of the message";
static unsigned told, copies, fences;
static int told_status;

/* --- a BTL that sends in place, and ends that when the test says so --- */

struct held {
    mca_btl_base_descriptor_t super;
    mca_btl_base_segment_t segment;
    bool is_in_place;
    const void *payload;
    size_t payload_length;
    unsigned char bytes[4 * BYTES];
};

static struct held *held; /* what is under way in place */
static mca_btl_base_registration_handle_t *const key = (void *) &fences;

static mca_btl_base_descriptor_t *held_new(size_t length)
{
    struct held *this = calloc(1, sizeof(*this));
    CHECK(length <= sizeof(this->bytes), "%zu bytes", length);
    this->segment = (mca_btl_base_segment_t){.seg_addr.pval = this->bytes, .seg_len = length};
    this->super.des_segments = &this->segment;
    this->super.des_segment_count = 1;
    return &this->super;
}

static mca_btl_base_descriptor_t *
lane_prepare_in_place(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                      mca_btl_base_registration_handle_t *registration, size_t header_bytes,
                      const void *from, size_t bytes, uint32_t flags)
{
    struct held *this = (struct held *) held_new(header_bytes);
    (void) btl, (void) endpoint, (void) flags;
    CHECK(registration == key, "another registration");
    this->is_in_place = true;
    this->payload = from;
    this->payload_length = bytes;
    return &this->super;
}

static mca_btl_base_descriptor_t *lane_alloc(mca_btl_base_module_t *btl,
                                             struct mca_btl_base_endpoint_t *endpoint,
                                             uint8_t order, size_t size, uint32_t flags)
{
    (void) btl, (void) endpoint, (void) order, (void) flags;
    return held_new(size);
}

static int lane_free(mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *descriptor)
{
    (void) btl;
    free(descriptor);
    return OPAL_SUCCESS;
}

static void held_end(mca_btl_base_module_t *btl, struct held *this, int status)
{
    this->super.des_cbfunc(btl, NULL, &this->super, status);
    free(this);
    progress_standin_run();
}

static int lane_take(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                     mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag)
{
    struct held *this = (struct held *) descriptor;
    const unsigned char *end = this->bytes + this->segment.seg_len;
    (void) endpoint, (void) tag;
    if (this->is_in_place) {
        CHECK(!held, "one is under way already");
        CHECK(this->payload == payload && this->payload_length == BYTES, "%zu bytes of another",
              this->payload_length);
        CHECK(memcmp(end - HEADER, header, HEADER) == 0, "another header");
        held = this;
        return 0;
    }
    copies++;
    CHECK(memcmp(end - BYTES - HEADER, header, HEADER) == 0 &&
              memcmp(end - BYTES, payload, BYTES) == 0,
          "the copy is another message");
    held_end(btl, this, OPAL_SUCCESS); /* it has left: that the peer has it is not known */
    return 1;
}

static int lane_is_fenced(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint)
{
    (void) btl, (void) endpoint;
    fences++;
    return OPAL_ERR_RESOURCE_BUSY;
}

static const struct multilane_extension extension = {.prepare_in_place = lane_prepare_in_place,
                                                     .fence = lane_is_fenced};

/* --- what cases need --- */

static void owner_told(void *owner, int status)
{
    CHECK(owner == payload, "another owner");
    told++;
    told_status = status;
}

static void begin(void)
{
    peer = standin_peer();
    for (int i = 0; i < LANES; i++) {
        mca_btl_base_module_t *btl = standin_btl("verbs", 1000);
        btl->btl_alloc = lane_alloc;
        btl->btl_free = lane_free;
        btl->btl_send = lane_take;
        standin_reach(peer, btl);
    }
    CHECK(peer_take_lanes(peer), "no lanes");
    for (int i = 0; i < LANES; i++) {
        peer->lanes[i].extension = &extension;
        peer->lanes[i].framed = peer->lanes[i].in_place = peer->lanes[i].renewable = true;
    }
    held = NULL;
    told = copies = fences = 0;
    told_status = 1;
    for (int i = 0; i < BYTES; i++)
        payload[i] = (char) i;
}

static void message_send(void)
{
    int rc;
    struct frame *frame = frame_begin(&peer->lanes[0], HEADER, &rc);
    CHECK(frame, "%d", rc);
    memcpy(frame_message(frame), header, HEADER);
    frame_refer(frame, payload, BYTES, key);
    frame_send(frame, HEADER, false, owner_told, payload);
    CHECK(held && !told, "told %u times", told);
}

static void lane_ends(int status)
{
    struct held *ended = held;
    held = NULL;
    held_end(peer->lanes[0].btl, ended, status);
}

static void lane_breaks(void)
{
    struct delivery *delivery = delivery_of(peer);
    OPAL_THREAD_LOCK(&delivery->lock);
    health_set(delivery, &peer->lanes[0], LANE_BROKEN, "cut");
    delivery_take_back(delivery, &peer->lanes[0]);
    OPAL_THREAD_UNLOCK(&delivery->lock);
    delivery_resend(delivery);
}

static void peer_has(uint32_t number)
{
    struct wire_heard heard = {.heard = number};
    CHECK(delivery_heard(peer, &peer->lanes[1], &heard), "it cannot have %u", number);
}

/* --- cases --- */

static void the_lane_says_that_it_is_there(void)
{
    begin();
    message_send();
    lane_ends(OPAL_SUCCESS);
    CHECK(told == 1 && told_status == OMPI_SUCCESS, "told %u times, %d", told, told_status);
    memset(payload, 0, BYTES); /* it is the owner's again */
    lane_breaks();
    CHECK(copies == 0, "it goes again");
    peer_has(1);
    CHECK(told == 1, "told %u times", told);
}

static void the_lane_loses_it(void)
{
    begin();
    message_send();
    lane_breaks();
    CHECK(copies == 1 && told == 0, "%u copies, told %u times", copies, told);
    lane_ends(OPAL_ERR_UNREACH);
    CHECK(told == 0, "the peer may not have it");
    peer_has(1);
    CHECK(told == 1 && told_status == OMPI_SUCCESS, "told %u times, %d", told, told_status);
}

/* The first lane is slower to end than the peer to have the copy. */
static void the_lane_reads_on(void)
{
    begin();
    message_send();
    lane_breaks();
    peer_has(1);
    CHECK(told == 0, "the lane may read it still");
    lane_ends(OPAL_ERR_UNREACH);
    CHECK(told == 1 && told_status == OMPI_SUCCESS, "told %u times, %d", told, told_status);
}

static void the_peer_tells_before_the_lane(void)
{
    begin();
    message_send();
    peer_has(1);
    CHECK(told == 0, "the lane may read it still");
    lane_ends(OPAL_SUCCESS);
    CHECK(told == 1 && told_status == OMPI_SUCCESS, "told %u times, %d", told, told_status);
}

static void the_peer_is_lost(void)
{
    begin();
    message_send();
    delivery_abandon(delivery_of(peer));
    departures_lost(peer);
    for (int i = 0; i < LANES; i++)
        lane_close(&peer->lanes[i]);
    CHECK(fences == 1, "%u lanes are closed", fences);
    CHECK(told == 0, "the lane may read it still");
    lane_ends(OPAL_ERR_UNREACH);
    CHECK(told == 1 && told_status == OMPI_ERR_UNREACH, "told %u times, %d", told, told_status);
    lane_close(&peer->lanes[0]);
    CHECK(fences == 1, "a lane is closed that has nothing to end");
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
    standin_expects_failures = true; /* departures that end with an error are told */
    the_lane_says_that_it_is_there();
    the_lane_loses_it();
    the_lane_reads_on();
    the_peer_tells_before_the_lane();
    the_peer_is_lost();
    a_message_is_registered_once();
    return check_end();
}
