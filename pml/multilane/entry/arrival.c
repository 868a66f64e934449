/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads and checks the headers that arrive, and calls the code for each type. */
#include "entry/calls.h"

#include <string.h>

#include "delivery/control.h"
#include "join/posting.h"
#include "liveness/liveness.h"
#include "match/inbound.h"
#include "contact/contact.h"
#include "contact/peer_lanes.h"
#include "plan/stripe.h"
#include "request/send_request.h"
#include "request/timer.h"
#include "lane/lane.h"
#include "lane/summed.h"
#include "common/sum/crc32c.h"
#include "base/parameters.h"
#include "base/multilane.h"
#include "report/report.h"
#include "request/recv_request.h"

/* The header lies in the first segment. Nothing of it is used before it is checked. */

struct reader {
    const unsigned char *at;
    size_t left;
};

static bool read_bytes(struct reader *reader, void *to, size_t size)
{
    if (OPAL_UNLIKELY(reader->left < size))
        return false;
    memcpy(to, reader->at, size);
    reader->at += size;
    reader->left -= size;
    return true;
}

/* What follows the header: the rest of the first segment, and the other segments. */
static bool read_payload(struct reader *reader, struct arrival *arrival, struct iovec *payload,
                         const mca_btl_base_segment_t *segments, size_t segment_count)
{
    int count = 0;
    size_t length = reader->left;
    if (reader->left)
        payload[count++] = (struct iovec){.iov_base = (void *) reader->at, .iov_len = reader->left};
    for (size_t i = 1; i < segment_count; i++) {
        if (i >= MCA_BTL_DES_MAX_SEGMENTS)
            return false;
        payload[count++] =
            (struct iovec){.iov_base = segments[i].seg_addr.pval, .iov_len = segments[i].seg_len};
        length += segments[i].seg_len;
    }
    arrival->payload = payload;
    arrival->payload_count = count;
    arrival->length = length;
    return true;
}

static bool read_part(struct reader *reader, struct arrival *arrival)
{
    struct wire_part part;
    if (!read_bytes(reader, (char *) &part + sizeof(part.match), sizeof(part) - sizeof(part.match)))
        return false;
    arrival->size = part.size;
    arrival->offset = part.offset;
    arrival->offer = NULL;
    return true;
}

/* Behind a part that has one. */
static bool read_offer(struct reader *reader, struct arrival *arrival, uint16_t traits,
                       struct wire_offer *offer)
{
    if (OPAL_LIKELY(!(traits & WIRE_OFFERED)))
        return true;
    arrival->offer = offer;
    return read_bytes(reader, offer, sizeof(*offer));
}

static bool keys_fit(const struct wire_key *key, const struct reader *reader)
{
    return wire_keys_length(key) <= WIRE_KEY_MAX && wire_keys_length(key) <= reader->left;
}

static bool read_rts(struct reader *reader, struct arrival *arrival)
{
    struct wire_rts rts;
    if (!read_bytes(reader, (char *) &rts + sizeof(rts.match), sizeof(rts) - sizeof(rts.match)))
        return false;
    arrival->size = rts.size;
    arrival->sender = rts.sender;
    arrival->method = rts.method;
    arrival->memory = rts.memory;
    arrival->sum = rts.sum;
    arrival->key = rts.key;
    arrival->key_bytes = reader->at;
    const struct protocol *protocol = protocol_of_method(rts.method);
    if (!protocol || !protocol->receive || !keys_fit(&rts.key, reader))
        return false;
    reader->left = 0;
    return true;
}

/* Reads an eager message, a part of one, or an RTS, behind base and name. */
static bool read_message(struct reader *reader, struct arrival *arrival)
{
    arrival->sender = arrival->timer = (struct wire_handle){0};
    if (OPAL_UNLIKELY(arrival->flags)) {
        if (arrival->flags & WIRE_CID && !read_bytes(reader, &arrival->cid, sizeof(arrival->cid)))
            return false;
        if (arrival->flags & WIRE_SYNCHRONOUS &&
            !read_bytes(reader, &arrival->sender, sizeof(arrival->sender)))
            return false;
        if (arrival->flags & WIRE_TIMED &&
            !read_bytes(reader, &arrival->timer, sizeof(arrival->timer)))
            return false;
    }
    if (!read_bytes(reader, &arrival->match, sizeof(arrival->match)) || arrival->match.source < 0 ||
        arrival->match.tag == MATCH_ANY ||
        (arrival->match.context > COMPAT_MAX_CONTEXT && !(arrival->flags & WIRE_CID)))
        return false;
    if (arrival->type == WIRE_PART)
        return read_part(reader, arrival);
    if (arrival->type == WIRE_RTS)
        return read_rts(reader, arrival);
    arrival->offset = 0;
    return true;
}

/* Bytes that were put, or that will not come. */
static bool fin_arrived(struct peer *peer, uint8_t type, const struct wire_fin *fin)
{
    return type == WIRE_FIN      ? recv_request_put(peer, fin)
           : type == WIRE_SO_FAR ? recv_request_so_far(peer, fin)
                                 : recv_request_cancelled(peer, fin);
}

static void control_arrived(struct peer *peer, struct lane *lane, const struct arrival *arrival,
                            struct reader *reader)
{
    union {
        struct wire_rtr rtr;
        struct wire_fin fin;
        struct wire_fin_summed summed;
        struct wire_ack ack;
        struct wire_received received;
        struct wire_lane lane;
        struct wire_ask ask;
        struct wire_credit credit;
        struct wire_fence fence;
        struct wire_time time;
        struct wire_page_ask page_ask;
        struct wire_page page;
    } body;
    bool good = true;

    switch (arrival->type) {
    case WIRE_RTR:
        good = read_bytes(reader, &body.rtr, sizeof(body.rtr)) && keys_fit(&body.rtr.key, reader) &&
               send_request_ready(peer, lane, &body.rtr, reader->at);
        break;
    case WIRE_RECEIVED:
        good = read_bytes(reader, &body.received, sizeof(body.received));
        if (good && lane)
            stripe_received(lane, &body.received);
        break;
    case WIRE_LANE:
        good = read_bytes(reader, &body.lane, sizeof(body.lane)) && body.lane.index < UINT8_MAX;
        if (good && lane) /* relaxed, read by lane_of_remote: a number of its own */
            atomic_store_explicit(&lane->remote_index, body.lane.index + 1, memory_order_relaxed);
        break;
    case WIRE_ALIVE:
        good = read_bytes(reader, &body.ask, sizeof(body.ask)) &&
               liveness_answered(peer, lane, &body.ask);
        break;
    case WIRE_CREDIT:
        good = read_bytes(reader, &body.credit, sizeof(body.credit)) &&
               send_queue_credit(peer, &body.credit);
        break;
    case WIRE_ASK:
        good = read_bytes(reader, &body.ask, sizeof(body.ask));
        if (good)
            liveness_asked(lane, &body.ask);
        break;
    case WIRE_FENCE:
        good = read_bytes(reader, &body.fence, sizeof(body.fence)) &&
               fence_heard(peer, lane, &body.fence);
        break;
    case WIRE_GONE:
        errors_peer_gave_up(peer);
        break;
    case WIRE_END:
        atomic_store_explicit(&peer->has_ended, true, memory_order_relaxed); /* peer_has_parted */
        break;
    case WIRE_FIN:
    case WIRE_SO_FAR:
    case WIRE_CANCEL:
        good = read_bytes(reader, &body.fin, sizeof(body.fin)) &&
               fin_arrived(peer, arrival->type, &body.fin);
        break;
    case WIRE_FIN_SUMMED:
        good = read_bytes(reader, &body.summed, sizeof(body.summed)) &&
               recv_request_put_summed(peer, &body.summed);
        break;
    case WIRE_ACK:
    case WIRE_NACK:
        good = read_bytes(reader, &body.ack, sizeof(body.ack)) &&
               send_request_acknowledged(peer, body.ack.sender, arrival->type == WIRE_ACK);
        break;
    case WIRE_TIME:
        good = read_bytes(reader, &body.time, sizeof(body.time));
        if (good)
            timer_answered(peer, &body.time);
        break;
    case WIRE_WRONG:
        if (lane)
            wrong_reported(lane);
        break;
    case WIRE_PAGE_ASK:
        good = read_bytes(reader, &body.page_ask, sizeof(body.page_ask));
        if (good)
            job_pages_asked(peer, &body.page_ask);
        break;
    case WIRE_PAGE:
        good =
            read_bytes(reader, &body.page, sizeof(body.page)) && job_pages_came(peer, &body.page);
        break;
    default:
        good = false;
    }
    /* A dead process may have sent this before, for requests that have ended. */
    if (!good && !peer_is_gone(peer))
        inbound_reject(arrival->btl, "a control message that fits no request", arrival->type);
}

/* The short path: a whole eager message from a process of this job, in its turn. False: nothing
 * was done, and message_read takes it. */
static inline __opal_attribute_always_inline__ bool
eager_taken_by(const mca_btl_base_segment_t *segments, size_t segment_count, bool threads)
{
    struct wire_plain header;
    if (segment_count != 1 || segments->seg_len < sizeof(header))
        return false;
    memcpy(&header, segments->seg_addr.pval, sizeof(header));
    if (header.base.type != WIRE_EAGER || header.base.flags != 0 ||
        header.base.from >= multilane.local_peer_count || header.match.tag == MATCH_ANY)
        return false;
    struct peer *peer = atomic_load_explicit(&multilane.local_peers[header.base.from],
                                             memory_order_acquire); /* peer_list */
    struct mca_pml_comm_t *comm = comm_of_index(header.match.context);
    if (!peer || !peer_is_reachable(peer) || peer->is_self || !comm ||
        (uint32_t) header.match.source >= comm->size)
        return false;

    const unsigned char *data = (unsigned char *) segments->seg_addr.pval + sizeof(header);
    size_t size = segments->seg_len - sizeof(header);
    if (OPAL_UNLIKELY(!threads && direct_is_short_for(size)))
        return false;
    struct recv_request *request = NULL;
    bool is_kept = false, is_direct = false, is_taken = false;
    if (threads)
        biased_lock(&peer->lock);
    if (OPAL_LIKELY(header.match.sequence == peer_next_sequence(peer) && !peer->early)) {
        if (threads)
            biased_lock(&comm->lock);
        if (OPAL_LIKELY(!compat_comm_refuses(comm->ompi, header.match.tag))) {
            request = recv_request_take_posted(comm, &header.match);
            is_direct = !request && !threads && direct_take(comm, &header.match, data, size);
            is_kept =
                !request && !is_direct && inbound_keep_plain(peer, comm, &header.match, data, size);
        }
        if (threads)
            biased_unlock(&comm->lock);
        if (request || is_direct)
            credit_matched(peer, flow_cost(size));
        is_taken = request || is_direct || is_kept;
        if (is_taken)
            peer_sequence_came(peer);
    }
    if (threads)
        biased_unlock(&peer->lock);
    if (is_taken)
        credit_send_if_due(peer);
    if (request)
        recv_request_take_whole(request, peer, &header.match, data, size);
    return is_taken;
}

static __attribute__((noinline)) bool
eager_taken_among_threads(const mca_btl_base_segment_t *segments, size_t segment_count)
{
    return eager_taken_by(segments, segment_count, true);
}

/* Two copies, so that the check for threads is made once. */
static inline __opal_attribute_always_inline__ bool
eager_taken(const mca_btl_base_segment_t *segments, size_t segment_count)
{
    if (OPAL_UNLIKELY(opal_using_threads()))
        return eager_taken_among_threads(segments, segment_count);
    return eager_taken_by(segments, segment_count, false);
}

static void message_read(mca_btl_base_module_t *btl, const mca_btl_base_segment_t *segments,
                         size_t segment_count)
{
    struct iovec payload[MCA_BTL_DES_MAX_SEGMENTS + 1];
    struct reader reader = {.at = segments[0].seg_addr.pval, .left = segments[0].seg_len};
    struct wire_base base;
    struct wire_name name;
    struct arrival arrival;

    if (OPAL_UNLIKELY(!read_bytes(&reader, &base, sizeof(base)) || base.flags & ~WIRE_FLAGS ||
                      (base.flags & WIRE_NAMED && !read_bytes(&reader, &name, sizeof(name))))) {
        inbound_reject(btl, "a message without a whole header", segments[0].seg_len);
        return;
    }
    struct peer *peer = peer_of_sender(&base, &name);
    if (OPAL_UNLIKELY(!peer)) {
        inbound_reject(btl, "a sender that is no process of ours, rank", base.from);
        return;
    }
    arrival.peer = peer;
    arrival.btl = btl;
    arrival.lane = peer_lane_of(peer, btl);
    if (OPAL_UNLIKELY(peer_is_lost(peer))) { /* all that waited for the peer has ended */
        if (arrival.lane && base.type != WIRE_GONE)
            gone_send(arrival.lane);
        return;
    }
    if (OPAL_UNLIKELY(!arrival.lane)) {
        arrival.lane = peer_late_lane(peer, btl);
        if (arrival.lane)
            watch_peer(peer);
    }
    if (OPAL_UNLIKELY(peer->is_self && !arrival.lane)) {
        inbound_reject(btl, "a message from another process in our name, rank", base.from);
        return;
    }
    arrival.type = base.type;
    arrival.flags = base.flags & (uint8_t) ~WIRE_NAMED;
    if (OPAL_UNLIKELY(base.traits & WIRE_MOVED))
        arrival.lane = NULL;

    switch (base.type) {
    case WIRE_EAGER:
        if (!read_message(&reader, &arrival) ||
            !read_payload(&reader, &arrival, payload, segments, segment_count))
            break;
        arrival.size = arrival.length;
        message_arrived(&arrival);
        return;
    case WIRE_RTS:
        if (!read_message(&reader, &arrival))
            break;
        arrival.length = 0;
        arrival.payload_count = 0;
        message_arrived(&arrival);
        return;
    case WIRE_PART: {
        struct wire_offer offer;
        if (!read_message(&reader, &arrival) ||
            !read_offer(&reader, &arrival, base.traits, &offer) ||
            !read_payload(&reader, &arrival, payload, segments, segment_count) ||
            arrival.length == 0 || arrival.offset > arrival.size ||
            arrival.length > arrival.size - arrival.offset)
            break;
        if (base.traits & WIRE_STRIPED)
            received_on_lane(arrival.lane, arrival.length);
        part_arrived(&arrival);
        return;
    }
    case WIRE_DATA: {
        struct wire_data data;
        if (!read_bytes(&reader, &data, sizeof(data)) ||
            !read_payload(&reader, &arrival, payload, segments, segment_count))
            break;
        if (base.traits & WIRE_STRIPED)
            received_on_lane(arrival.lane, arrival.length);
        if (!recv_request_data(peer, &data, &arrival) && !peer_is_gone(peer)) /* as above */
            break;
        return;
    }
    default:
        control_arrived(peer, arrival.lane, &arrival, &reader);
        return;
    }
    inbound_reject(btl, "a message whose header makes no sense, type", base.type);
}

COMPAT_RECEIVE_CALLBACK(message_received)
{
    if (OPAL_UNLIKELY(!eager_taken(segments, segment_count)))
        message_read(btl, segments, segment_count);
}

/* --- messages with sums ----------------------------------------------------------------------- */

/* What follows the sum, which is right. Apart, so that message_received stays as it is. */
static __attribute__((noinline)) void
summed_take(mca_btl_base_module_t *btl, const mca_btl_base_segment_t *segments, size_t count)
{
    mca_btl_base_segment_t bare[MCA_BTL_DES_MAX_SEGMENTS];
    if (count == 0 || count > MCA_BTL_DES_MAX_SEGMENTS ||
        segments->seg_len < sizeof(struct wire_sum)) {
        inbound_reject(btl, "a message without a sum, of segments", count);
        return;
    }
    memcpy(bare, segments, count * sizeof(*bare));
    bare->seg_addr.pval = (unsigned char *) bare->seg_addr.pval + sizeof(struct wire_sum);
    bare->seg_len -= sizeof(struct wire_sum);
    if (!eager_taken(bare, count))
        message_read(btl, bare, count);
}

/* The lane has asked message_is_right. */
COMPAT_RECEIVE_CALLBACK(kept_received)
{
    summed_take(btl, segments, segment_count);
}

/* The sender as a header says that may be wrong; `sums` bytes stand before it. */
static void message_is_wrong(mca_btl_base_module_t *btl, const mca_btl_base_segment_t *segments,
                             size_t count, size_t sums)
{
    struct reader reader = {.at = segments->seg_addr.pval, .left = segments->seg_len};
    struct wire_apart before;
    struct wire_base base;
    struct wire_name name;
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += segments[i].seg_len;
    bool has_base = read_bytes(&reader, &before, sums) &&
                    read_bytes(&reader, &base, sizeof(base)) &&
                    (!(base.flags & WIRE_NAMED) || read_bytes(&reader, &name, sizeof(name)));
    wrong_is_lost(has_base ? peer_of_sender(&base, &name) : NULL, btl, bytes);
}

COMPAT_RECEIVE_CALLBACK(summed_received)
{
    if (OPAL_LIKELY(sum_is_right(segments, segment_count)))
        summed_take(btl, segments, segment_count);
    else
        message_is_wrong(btl, segments, segment_count, sizeof(struct wire_sum));
}

/* Is all that is done with its payload a copy to a receive, by recv_request_write? With threads
 * that is not known: one may take the receive away, and one may see that it is complete before this
 * one has said that it is wrong. */
static bool is_copied_at_once(const unsigned char *headers, size_t length)
{
    struct wire_plain header;
    if (length < sizeof(header) || opal_using_threads())
        return false;
    memcpy(&header, headers, sizeof(header));
    if (header.base.type == WIRE_DATA)
        return true;
    if (header.base.type != WIRE_PART || header.base.flags)
        return false;
    struct peer *peer = peer_of_sender(&header.base, NULL);
    return peer && part_is_awaited(peer, header.match.sequence);
}

/* Hands it up. Its payload is checked as it is copied, or else before. */
static void apart_take(mca_btl_base_module_t *btl, const mca_btl_base_segment_t *bare,
                       size_t headers, struct payload *payload)
{
    struct payload *outer = payload_handed_up; /* this may be inside of what that one completed */
    payload_handed_up = payload;
    if (is_copied_at_once(bare->seg_addr.pval, headers) || payload_is_right(payload->bytes))
        message_read(btl, bare, 1);
    payload_handed_up = outer;
}

COMPAT_RECEIVE_CALLBACK(apart_received)
{
    const size_t before = sizeof(struct wire_apart);
    size_t headers;
    struct payload payload = {.is_wrong = true};
    if (segment_count == 1 && apart_read(segments, &headers, &payload)) {
        mca_btl_base_segment_t bare = {.seg_len = segments->seg_len - before};
        bare.seg_addr.pval = (unsigned char *) segments->seg_addr.pval + before;
        apart_take(btl, &bare, headers, &payload);
    }
    if (OPAL_UNLIKELY(payload.is_wrong))
        message_is_wrong(btl, segments, segment_count, before);
}

/* Where each message has to have a sum. */
COMPAT_RECEIVE_CALLBACK(bare_received)
{
    message_is_wrong(btl, segments, segment_count, sizeof(struct wire_sum));
}

/* Null: this process has had no contact with its sender. */
static struct lane *lane_of_endpoint(const mca_btl_base_module_t *btl,
                                     const struct mca_btl_base_endpoint_t *endpoint)
{
    for (struct peer *peer = peer_next(NULL); peer; peer = peer_next(peer)) {
        struct lane *lane = peer_lane_of(peer, btl);
        if (lane && lane->endpoint == endpoint)
            return lane;
    }
    return NULL;
}

/* See check_by in multilane/extension.h. */
static bool message_is_right(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                             uint8_t tag, const void *bytes, size_t length)
{
    const mca_btl_base_segment_t segment = {.seg_addr.pval = (void *) bytes, .seg_len = length};
    const bool has_to = parameters.sums == SUMS_OF_ALL && multilane_tag_is_of_pml(tag);
    if (tag == WIRE_TAG_KEPT ? sum_is_right(&segment, 1) : bytes && !has_to)
        return true;
    struct lane *lane = lane_of_endpoint(btl, endpoint);
    if (lane)
        lane_events.wrong(lane, length);
    else
        counter_add(&multilane.wrong_messages, 1);
    return false;
}

static int sums_listen(void)
{
    crc32c_begin(); /* a message may come before this process has contacted a peer */
    for (mca_btl_base_module_t *btl = btl_next(NULL); btl; btl = btl_next(btl)) {
        const struct multilane_extension *extension = lane_extension_of(btl);
        if (extension && extension->check_by)
            extension->check_by(message_is_right);
    }
    recv_requests_check();
    int rc = mca_bml.bml_register(WIRE_TAG_SUMMED, summed_received, NULL);
    if (rc == OMPI_SUCCESS)
        rc = mca_bml.bml_register(WIRE_TAG_APART, apart_received, NULL);
    return rc == OMPI_SUCCESS ? mca_bml.bml_register(WIRE_TAG_KEPT, kept_received, NULL) : rc;
}

int arrivals_listen(void)
{
    bool is_bare = parameters.sums != SUMS_OF_ALL;
    int rc = parameters.sums == SUMS_OF_NONE ? OMPI_SUCCESS : sums_listen();
    return rc == OMPI_SUCCESS
               ? mca_bml.bml_register(WIRE_TAG, is_bare ? message_received : bare_received, NULL)
               : rc;
}
