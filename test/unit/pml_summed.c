/* SPDX-License-Identifier: BSD-3-Clause */
/* A lane with sums: whatever way a message is sent, it begins with a sum, and each wrong bit in it
 * is found; what the lane gives back has none. Three wrong messages in a minute take the lane out,
 * and the other end is told. */
#include "check.h"

#include <string.h>

#include "base/parameters.h"
#include "common/sum/crc32c.h"
#include "contact/peer_lanes.h"
#include "lane/lane.h"
#include "lane/summed.h"
#include "lanes_standin.h"
#include "liveness/liveness.h"
#include "progress_standin.h"

#define BYTES  1000
#define MINUTE UINT64_C(60000000000)

static struct peer *peer;
static unsigned char message[BYTES];
static unsigned char large[4096];
static unsigned char seen[5000]; /* what a lane has taken last */
static size_t seen_length;
static unsigned seen_count, seen_tag, returned_count;
static unsigned char room[5000];
static multilane_returned returned;

static bool look(const mca_btl_base_module_t *btl, const struct mca_btl_base_endpoint_t *endpoint,
                 const unsigned char *bytes, size_t length)
{
    (void) btl, (void) endpoint;
    memcpy(seen, bytes, length);
    seen_length = length;
    seen_count++;
    return true;
}

static void *reserve(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                     size_t header, size_t payload)
{
    (void) btl, (void) endpoint, (void) header, (void) payload;
    return room;
}

static void commit(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                   size_t header, size_t payload, uint8_t tag)
{
    seen_tag = tag;
    (void) look(btl, endpoint, room, header + payload);
}

static int sendi(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                 opal_convertor_t *convertor, void *header, size_t header_size, size_t payload_size,
                 uint8_t order, uint32_t flags, mca_btl_base_tag_t tag,
                 mca_btl_base_descriptor_t **descriptor)
{
    (void) convertor, (void) payload_size, (void) order, (void) flags, (void) descriptor;
    seen_tag = tag;
    (void) look(btl, endpoint, header, header_size);
    return OPAL_SUCCESS;
}

static void check_by(bool (*is_right)(mca_btl_base_module_t *btl,
                                      struct mca_btl_base_endpoint_t *endpoint, uint8_t tag,
                                      const void *bytes, size_t length))
{
    (void) is_right;
}

static void lane_return_to(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                           multilane_returned to, void *context)
{
    (void) btl, (void) endpoint, (void) context;
    returned = to;
}

static const struct multilane_extension extension = {
    .reserve = reserve, .commit = commit, .check_by = check_by, .return_to = lane_return_to};
/* That of a lane which does not keep its messages. */
static const struct multilane_extension apart_extension = {.reserve = reserve, .commit = commit};

static void begin(void)
{
    peer = standin_peer();
    for (int i = 0; i < 2; i++)
        standin_reach(peer, standin_btl("stand", 1000));
    CHECK(peer_take_lanes(peer), "no lanes");
    peer->reachable = true;
    for (size_t i = 0; i < BYTES; i++)
        message[i] = (unsigned char) (i * 7);
    for (size_t i = 0; i < sizeof(large); i++)
        large[i] = (unsigned char) (i * 31 + i / 256);
    peer->lanes[0].extension = &extension;
    peer->lanes[0].reserve = reserve;
    peer->lanes[0].sendi = peer->lanes[0].btl->btl_sendi = sendi;
    for (int i = 0; i < 2; i++)
        lane_sum(&peer->lanes[i]);
    standin_takes = look;
}

/* It was sent with a right sum, and no other bits have it. */
static void check_sent(const char *way, size_t length)
{
    const mca_btl_base_segment_t segment = {.seg_addr.pval = seen, .seg_len = seen_length};
    CHECK(seen_length == sizeof(struct wire_sum) + length &&
              memcmp(seen + sizeof(struct wire_sum), message, length) == 0,
          "%s: %zu bytes", way, seen_length);
    CHECK(sum_is_right(&segment, 1), "%s", way);
    for (size_t bit = 0; bit < 8 * seen_length; bit++) {
        seen[bit / 8] ^= (unsigned char) (1u << bit % 8);
        CHECK(!sum_is_right(&segment, 1), "%s, bit %zu", way, bit);
        seen[bit / 8] ^= (unsigned char) (1u << bit % 8);
    }
    for (size_t less = 0; less < seen_length; less++) {
        const mca_btl_base_segment_t cut = {.seg_addr.pval = seen, .seg_len = less};
        CHECK(!sum_is_right(&cut, 1), "%s, %zu bytes of it", way, less);
    }
}

static void each_way_has_its_sum(void)
{
    struct lane *ours = &peer->lanes[0], *other = &peer->lanes[1];
    memcpy(lane_reserve(ours, 24, 100), message, 124);
    lane_commit(ours, 24, 100);
    check_sent("in place", 124);
    CHECK(seen_tag == WIRE_TAG_KEPT, "tag %x", seen_tag);
    CHECK(lane_send_plain(ours, message, 60, NULL, NULL) == LANE_LEFT, "at once");
    check_sent("at once", 60);
    CHECK(lane_send_plain(other, message, BYTES, NULL, NULL) == LANE_UNDER_WAY, "a fragment");
    check_sent("a fragment", BYTES);
}

#define HEADER 40u
#define LARGE  4096u

static bool apart_is_right(size_t length)
{
    static unsigned char copy[LARGE];
    const mca_btl_base_segment_t segment = {.seg_addr.pval = room, .seg_len = length};
    struct payload payload;
    size_t headers;
    if (!apart_read(&segment, &headers, &payload))
        return false;
    CHECK(headers == HEADER && payload.length == LARGE, "%zu and %zu bytes", headers,
          payload.length);
    payload_handed_up = &payload;
    bool is_right = payload_copy(copy, payload.bytes, payload.length);
    CHECK(is_right == payload_is_right(payload.bytes), "it is checked twice");
    CHECK(memcmp(copy, payload.bytes, LARGE) == 0, "other bytes");
    payload_handed_up = NULL;
    return is_right;
}

/* Copied by the lane, or packed. */
static void large_payloads_have_their_own_sum(void)
{
    const size_t length = sizeof(struct wire_apart) + HEADER + LARGE;
    struct lane lane = {.btl = standin_btl("apart", 1000),
                        .extension = &apart_extension,
                        .reserve = reserve,
                        .largest = sizeof(room)};
    lane_sum(&lane);
    void *(*const copies[])(void *to, const void *from, size_t size) = {lane.copy, memcpy};
    for (int i = 0; i < 2; i++) {
        unsigned char *at = lane_reserve(&lane, HEADER, LARGE);
        CHECK(at == room + sizeof(struct wire_apart), "another place");
        copies[i](at + HEADER, large, LARGE);
        memcpy(at, message, HEADER);
        lane_commit(&lane, HEADER, LARGE);
        CHECK(seen_tag == WIRE_TAG_APART && seen_length == length && apart_is_right(length),
              "tag %x, %zu bytes", seen_tag, seen_length);
        for (size_t bit = 0; bit < 8 * length; bit += bit < 800 ? 1 : 37) {
            room[bit / 8] ^= (unsigned char) (1u << bit % 8);
            CHECK(!apart_is_right(length), "bit %zu", bit);
            room[bit / 8] ^= (unsigned char) (1u << bit % 8);
        }
        for (size_t less = 0; less < length; less += less < 100 ? 1 : 37)
            CHECK(!apart_is_right(less), "%zu bytes of it", less);
    }
}

#define OTHERS_TAG 0x80 /* of osc/rdma, say, whose messages have no sum */

static bool given_back(void *lane, uint8_t tag, const void *bytes, size_t length,
                       const void *payload, size_t payload_length)
{
    size_t sum = tag == WIRE_TAG ? sizeof(struct wire_sum) : 0;
    (void) payload, (void) payload_length;
    returned_count += lane == &peer->lanes[0] && bytes == message + sum && length == BYTES - sum;
    return true;
}

static void what_returns_has_none(void)
{
    lane_events.returned = given_back;
    lane_return(&peer->lanes[0]);
    CHECK(returned(&peer->lanes[0], WIRE_TAG_SUMMED, message, BYTES, NULL, 0) &&
              returned_count == 1,
          "other bytes");
    CHECK(returned(&peer->lanes[0], WIRE_TAG_SUMMED, message, 7, NULL, 0) && returned_count == 1,
          "a short one");
    CHECK(returned(&peer->lanes[0], OTHERS_TAG, message, BYTES, NULL, 0) && returned_count == 2,
          "not the PML's");
}

static void what_others_send_has_none(void)
{
    CHECK(lane_send_tagged(&peer->lanes[0], OTHERS_TAG, message, BYTES, NULL, NULL) ==
                  LANE_UNDER_WAY &&
              seen_length == BYTES && memcmp(seen, message, BYTES) == 0,
          "%zu bytes", seen_length);
}

static void wrong(struct lane *lane, uint64_t after_ns)
{
    standin_now_ns += after_ns;
    lane_events.wrong(lane, 100);
}

static void three_in_a_minute_take_it_out(void)
{
    struct lane *lane = &peer->lanes[1];
    peer->lanes[0].extension = NULL; /* it has no attributes */
    for (int i = 0; i < 9; i++)
        wrong(lane, MINUTE / 2 + 1);
    CHECK(!lane_is_out(lane, LANE_OUT_WRONG) && multilane.wrong_messages == 9, "seldom");
    CHECK(strstr(standin_sentence, "brought 100 bytes whose sum is wrong") && standin_said == 2,
          "%u times: %s", standin_said, standin_sentence);
    seen_count = 0;
    wrong(lane, 0);
    progress_standin_run();
    CHECK(lane_is_out(lane, LANE_OUT_WRONG) && lane_is_lost(lane), "often");
    CHECK(strstr(standin_sentence, "is left out while another lane is up"), "%s", standin_sentence);
    CHECK(seen_count == 1 && seen[sizeof(struct wire_sum)] == WIRE_WRONG, "the other end");
    wrong_reported(&peer->lanes[0]);
    progress_standin_run();
    CHECK(lane_is_out(&peer->lanes[0], LANE_OUT_WRONG) && !lane_is_lost(&peer->lanes[0]) &&
              !lane_is_lost(lane),
          "no other lane is up");
    CHECK(strstr(standin_sentence, "goes on being used"), "%s", standin_sentence);
}

int main(void)
{
    standin_begin();
    crc32c_begin();
    wrong_begin();
    begin();
    each_way_has_its_sum();
    large_payloads_have_their_own_sum();
    what_returns_has_none();
    what_others_send_has_none();
    three_in_a_minute_take_it_out();
    return check_end();
}
