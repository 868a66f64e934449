/* SPDX-License-Identifier: BSD-3-Clause */
/* A BTL's functions, with a sum before each message. What a caller writes begins behind the sum,
 * which is filled in when the message is sent. */
#include "lane/summed.h"

#include <string.h>

#include "common/sum/crc32c.h"

#define SUM_BYTES sizeof(struct wire_sum)
/* Longer ones go by a descriptor: they would be copied once more. */
#define IMMEDIATE_BYTES ((size_t) 2048)

/* Of each BTL with such lanes. Written under multilane.lock, before a lane of the BTL is seen by
 * others, and not changed; what such a lane finds lies before what is added meanwhile. */
static struct summed {
    const mca_btl_base_component_t *component;
    const struct multilane_extension *real; /* null: a BTL of Open MPI */
    struct multilane_extension shown;       /* to users of the lane */
    uint8_t tag;
} summed[MODEL_LANES_MAX];

static const struct summed *summed_of(const mca_btl_base_module_t *btl)
{
    const struct summed *at = summed;
    while (at->component != btl->btl_component)
        at++;
    return at;
}

static struct wire_sum sum_of(const mca_btl_base_segment_t *segments, size_t count, size_t skip)
{
    struct wire_sum sum = {.sum = 0};
    for (size_t i = 0; i < count; i++) {
        size_t length = segments[i].seg_len - skip;
        sum.sum = crc32c(sum.sum, (const unsigned char *) segments[i].seg_addr.pval + skip, length);
        sum.length += (uint32_t) length;
        skip = 0;
    }
    return sum;
}

bool sum_is_right(const mca_btl_base_segment_t *segments, size_t count)
{
    if (count == 0 || segments->seg_len < SUM_BYTES)
        return false;
    const struct wire_sum sum = sum_of(segments, count, SUM_BYTES);
    return memcmp(&sum, segments->seg_addr.pval, SUM_BYTES) == 0;
}

/* --- in the lane's own memory ----------------------------------------------------------------- */

/* To sum while copying takes no longer than to copy, as the bytes go from one processor's cache to
 * another's; to sum before or after takes half as long again. Shorter payloads stay short: they are
 * taken on the short path. */
#define APART_MIN   ((size_t) 4096)
#define APART_BYTES sizeof(struct wire_apart)
#define APART_REST  (APART_BYTES - offsetof(struct wire_apart, headers))

/* From reserve to commit, which follows at once. */
static _Thread_local struct {
    unsigned char *at;
    const void *copied; /* the payload, by summed_copy, with this sum; or null */
    uint32_t sum;
} reserved;

static bool is_apart(const struct summed *own, size_t payload)
{
    return payload >= APART_MIN && own->tag == WIRE_TAG_SUMMED;
}

static void *summed_reserve(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                            size_t header, size_t payload)
{
    const struct summed *own = summed_of(btl);
    const size_t before = is_apart(own, payload) ? APART_BYTES : SUM_BYTES;
    reserved.at = own->real->reserve(btl, endpoint, before + header, payload);
    reserved.copied = NULL;
    return reserved.at ? reserved.at + before : NULL;
}

static void *summed_copy(void *to, const void *from, size_t size)
{
    if (size < APART_MIN)
        return memcpy(to, from, size);
    reserved.sum = crc32c_copy(0, to, from, size);
    reserved.copied = to;
    return to;
}

static void commit_apart(size_t header, size_t payload)
{
    const unsigned char *bytes = reserved.at + APART_BYTES + header;
    struct wire_apart apart = {.headers = (uint32_t) header, .payload = (uint32_t) payload};
    apart.payload_sum = reserved.copied == bytes ? reserved.sum : crc32c(0, bytes, payload);
    apart.sum = crc32c(crc32c(0, &apart.headers, APART_REST), reserved.at + APART_BYTES, header);
    memcpy(reserved.at, &apart, APART_BYTES);
}

static void summed_commit(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                          size_t header, size_t payload, uint8_t tag)
{
    const struct summed *own = summed_of(btl);
    const size_t length = header + payload;
    if (is_apart(own, payload)) {
        commit_apart(header, payload);
        own->real->commit(btl, endpoint, APART_BYTES + header, payload, WIRE_TAG_APART);
        return;
    }
    const struct wire_sum sum = {crc32c(0, reserved.at + SUM_BYTES, length), (uint32_t) length};
    memcpy(reserved.at, &sum, SUM_BYTES);
    own->real->commit(btl, endpoint, SUM_BYTES + header, payload, own->tag);
}

bool apart_read(const mca_btl_base_segment_t *segment, size_t *headers, struct payload *payload)
{
    const unsigned char *bytes = segment->seg_addr.pval;
    struct wire_apart apart;
    if (segment->seg_len < APART_BYTES)
        return false;
    memcpy(&apart, bytes, APART_BYTES);
    if (APART_BYTES + (uint64_t) apart.headers + apart.payload != segment->seg_len ||
        crc32c(0, bytes + offsetof(struct wire_apart, headers), APART_REST + apart.headers) !=
            apart.sum)
        return false;
    *headers = apart.headers;
    *payload = (struct payload){.bytes = bytes + APART_BYTES + apart.headers,
                                .length = apart.payload,
                                .sum = apart.payload_sum};
    return true;
}

_Thread_local struct payload *payload_handed_up;

static bool payload_found(struct payload *payload, uint32_t sum)
{
    payload->is_checked = true;
    payload->is_wrong = sum != payload->sum;
    return !payload->is_wrong;
}

bool payload_is_right(const void *bytes)
{
    struct payload *payload = payload_handed_up;
    if (!payload || payload->bytes != bytes)
        return true;
    if (payload->is_checked)
        return !payload->is_wrong;
    return payload_found(payload, crc32c(0, bytes, payload->length));
}

bool payload_copy(void *to, const void *bytes, size_t length)
{
    struct payload *payload = payload_handed_up;
    if (payload && payload->bytes == bytes && payload->length == length && !payload->is_checked)
        return payload_found(payload, crc32c_copy(0, to, bytes, length));
    if (!payload_is_right(bytes))
        return false;
    memcpy(to, bytes, length);
    return true;
}

/* --- at once ---------------------------------------------------------------------------------- */

static int summed_sendi(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                        opal_convertor_t *convertor, void *header, size_t header_size,
                        size_t payload_size, uint8_t order, uint32_t flags, mca_btl_base_tag_t tag,
                        mca_btl_base_descriptor_t **descriptor)
{
    unsigned char bytes[SUM_BYTES + IMMEDIATE_BYTES];
    void *payload = NULL;
    if (header_size > IMMEDIATE_BYTES || (payload_size && opal_convertor_need_buffers(convertor)))
        return OPAL_ERR_OUT_OF_RESOURCE;
    if (payload_size)
        opal_convertor_get_current_pointer(convertor, &payload);
    uint32_t sum = crc32c(crc32c(0, header, header_size), payload, payload_size);
    const struct wire_sum before = {sum, (uint32_t) (header_size + payload_size)};
    memcpy(bytes, &before, SUM_BYTES);
    memcpy(bytes + SUM_BYTES, header, header_size);
    return btl->btl_sendi(btl, endpoint, convertor, bytes, SUM_BYTES + header_size, payload_size,
                          order, flags, summed_of(btl)->tag, descriptor);
}

/* --- by descriptors --------------------------------------------------------------------------- */

/* The caller's part begins so many bytes later, or earlier, than it did. */
static mca_btl_base_descriptor_t *moved(mca_btl_base_descriptor_t *descriptor, ptrdiff_t bytes)
{
    if (OPAL_UNLIKELY(!descriptor))
        return NULL;
    mca_btl_base_segment_t *first = descriptor->des_segments;
    first->seg_addr.pval = (unsigned char *) first->seg_addr.pval + bytes;
    first->seg_len -= (uint64_t) bytes;
    return descriptor;
}

static mca_btl_base_descriptor_t *summed_alloc(mca_btl_base_module_t *btl,
                                               struct mca_btl_base_endpoint_t *endpoint,
                                               uint8_t order, size_t size, uint32_t flags)
{
    return moved(btl->btl_alloc(btl, endpoint, order, SUM_BYTES + size, flags), SUM_BYTES);
}

static mca_btl_base_descriptor_t *summed_prepare(mca_btl_base_module_t *btl,
                                                 struct mca_btl_base_endpoint_t *endpoint,
                                                 opal_convertor_t *convertor, uint8_t order,
                                                 size_t reserve, size_t *size, uint32_t flags)
{
    return moved(
        btl->btl_prepare_src(btl, endpoint, convertor, order, SUM_BYTES + reserve, size, flags),
        SUM_BYTES);
}

static mca_btl_base_descriptor_t *summed_in_place(mca_btl_base_module_t *btl,
                                                  struct mca_btl_base_endpoint_t *endpoint,
                                                  mca_btl_base_registration_handle_t *registration,
                                                  size_t header, const void *payload,
                                                  size_t payload_size, uint32_t flags)
{
    return moved(summed_of(btl)->real->prepare_in_place(
                     btl, endpoint, registration, SUM_BYTES + header, payload, payload_size, flags),
                 SUM_BYTES);
}

static int summed_send(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                       mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag)
{
    const mca_btl_base_segment_t *first = moved(descriptor, -(ptrdiff_t) SUM_BYTES)->des_segments;
    const struct wire_sum sum = sum_of(first, descriptor->des_segment_count, SUM_BYTES);
    memcpy(first->seg_addr.pval, &sum, SUM_BYTES);
    return btl->btl_send(btl, endpoint, descriptor, summed_of(btl)->tag);
}

/* --- the lane --------------------------------------------------------------------------------- */

static struct summed *summed_new(struct summed *at, const struct lane *lane)
{
    const struct multilane_extension *real = lane->extension;
    at->component = lane->btl->btl_component;
    at->real = real;
    at->tag = real && real->check_by ? WIRE_TAG_KEPT : WIRE_TAG_SUMMED;
    if (!real)
        return at;
    at->shown = *real;
    at->shown.commit = summed_commit;
    if (real->prepare_in_place)
        at->shown.prepare_in_place = summed_in_place;
    return at;
}

void lane_sum(struct lane *lane)
{
    struct summed *at = summed;
    while (at->component && at->component != lane->btl->btl_component)
        if (++at == summed + MODEL_LANES_MAX)
            return; /* the other end says that sums are missing */
    if (!at->component)
        at = summed_new(at, lane);
    if (lane->extension)
        lane->extension = &at->shown;
    if (lane->reserve) {
        lane->reserve = summed_reserve;
        lane->copy = summed_copy;
    }
    if (lane->sendi)
        lane->sendi = summed_sendi;
    lane->alloc = summed_alloc;
    lane->prepare = summed_prepare;
    lane->send = summed_send;
    lane->largest -= APART_BYTES; /* which is more than SUM_BYTES */
    lane->sums = true;
}
