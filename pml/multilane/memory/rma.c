/* SPDX-License-Identifier: BSD-3-Clause */
/* Gets and puts over several lanes. Which lane here leads to which lane of the peer? Each end
 * sends the index of a lane on that lane, once. Until it has arrived, a message does not use the
 * keys for that lane. */
#include "memory/rma.h"

#include <string.h>

#include "delivery/control.h"
#include "plan/stripe.h"

/* The largest piece for any BTL. */
#define PIECE_MAX ((size_t) 1 << 30)

/* --- the end that offers its memory ----------------------------------------------------------- */

static size_t keys_length(const struct rma *rma)
{
    size_t length = 0;
    for (uint32_t i = 0; i < rma->count; i++)
        length += (i ? sizeof(struct wire_lane_key) : 0) + lane_key_length(rma->lanes[i].lane);
    return length;
}

static bool rma_register(const struct rma *rma, struct rma_lane *used, void *address, size_t size,
                         uint32_t access)
{
    if (OPAL_UNLIKELY(rma->is_device)) {
        if (!used->lane->takes_device)
            return false;
        access |= MULTILANE_REGISTER_DEVICE;
    }
    return lane_register(used->lane, address, size, access, &used->local) == OMPI_SUCCESS;
}

bool rma_offer_lane(struct rma *rma, struct lane *lane, void *address, size_t size, uint32_t access)
{
    struct rma_lane *offered = &rma->lanes[rma->count];
    if (rma->count == RMA_LANES_MAX ||
        keys_length(rma) + sizeof(struct wire_lane_key) + lane_key_length(lane) > WIRE_KEY_MAX)
        return false;
    *offered = (struct rma_lane){.lane = lane};
    if (!rma_register(rma, offered, address, size, access))
        return false;
    rma->remote = (uintptr_t) address;
    rma->count++;
    return true;
}

bool rma_offer(struct rma *rma, const struct route *route, struct peer *peer, void *address,
               size_t size, uint32_t access)
{
    for (int i = 0; i < route->lane_count; i++)
        if (lane_carries(route_lane(route, peer, i)))
            rma_offer_lane(rma, route_lane(route, peer, i), address, size, access);
    return rma->count > 0;
}

mca_btl_base_registration_handle_t *rma_in_place(struct rma *rma, struct lane *lane, void *address,
                                                 size_t size)
{
    for (uint32_t i = 0; i < rma->count; i++)
        if (rma->lanes[i].lane == lane)
            return rma->lanes[i].local.handle;
    if (rma->count == RMA_LANES_MAX)
        return NULL;
    struct rma_lane *used = &rma->lanes[rma->count++];
    /* Where plans count on the cache, a new registration each time costs more than the copy. */
    *used = (struct rma_lane){.lane = lane};
    (void) lane_register(lane, address, size,
                         MCA_BTL_REG_FLAG_REMOTE_READ | MULTILANE_REGISTER_CACHED, &used->local);
    return used->local.handle; /* null if it was refused: it is not asked again */
}

static void lane_introduce(struct lane *lane)
{
    struct wire_lane body = {.index = lane->index};
    if (!atomic_exchange_explicit(&lane->introduced, true,
                                  memory_order_relaxed)) /* once is enough */
        control_send(lane, WIRE_LANE, &body, sizeof(body));
}

void rma_write_keys(const struct rma *rma, struct wire_key *key, unsigned char bytes[WIRE_KEY_MAX])
{
    unsigned char *at = bytes;
    *key = (struct wire_key){.address = rma->remote};
    for (uint32_t i = 0; i < rma->count; i++) {
        const struct rma_lane *offered = &rma->lanes[i];
        struct wire_lane_key header = {.lane = offered->lane->index,
                                       .length = (uint16_t) lane_key_length(offered->lane)};
        if (i) {
            lane_introduce(offered->lane);
            memcpy(at, &header, sizeof(header));
            at += sizeof(header);
        }
        if (header.length)
            memcpy(at, offered->local.handle, header.length);
        at += header.length;
        if (i == 0)
            key->length = header.length;
    }
    key->more = (uint32_t) (at - bytes) - key->length;
}

/* --- the end that works ----------------------------------------------------------------------- */

static void rma_add(struct rma *rma, struct lane *lane, const unsigned char *key, size_t length)
{
    size_t at = 0;
    if (!lane || length != lane_key_length(lane) || rma->count == RMA_LANES_MAX)
        return;
    for (uint32_t i = 0; i < rma->count; i++) {
        if (rma->lanes[i].lane == lane)
            return;
        at = (rma->lanes[i].key_at + rma->lanes[i].key_length + 7) & ~(size_t) 7;
    }
    rma->lanes[rma->count++] =
        (struct rma_lane){.lane = lane, .key_at = (uint32_t) at, .key_length = (uint32_t) length};
    memcpy(rma->keys + at, key, length);
}

static struct lane *lane_of_remote(struct peer *peer, uint32_t index)
{
    for (int i = 0; i < peer_lane_count(peer); i++)
        if (atomic_load_explicit(&peer->lanes[i].remote_index, memory_order_relaxed) == index + 1)
            return &peer->lanes[i];
    return NULL;
}

void rma_read_keys(struct rma *rma, struct peer *peer, struct lane *lane,
                   const struct wire_key *key, const unsigned char *bytes)
{
    const unsigned char *at = bytes + key->length, *end = at + key->more;
    struct wire_lane_key header;
    rma->count = 0;
    rma->remote = key->address;
    rma_add(rma, lane, bytes, key->length);
    while ((size_t) (end - at) >= sizeof(header)) {
        memcpy(&header, at, sizeof(header));
        at += sizeof(header);
        if (header.length > (size_t) (end - at))
            return;
        rma_add(rma, lane_of_remote(peer, header.lane), at, header.length);
        at += header.length;
    }
}

static void rma_drop(struct rma *rma, uint32_t index)
{
    rma->count--;
    memmove(&rma->lanes[index], &rma->lanes[index + 1],
            (rma->count - index) * sizeof(rma->lanes[0]));
}

/* Up to the threshold the CPU copies, where it can. */
static bool registers(const struct rma *rma, struct rma_lane *used, void *local, size_t size,
                      size_t threshold, uint32_t access)
{
    return (size <= threshold && !rma->is_device) || rma_register(rma, used, local, size, access);
}

bool rma_can_get(struct rma *rma, void *local, size_t size)
{
    for (uint32_t i = rma->count; i-- > 0;) {
        struct rma_lane *used = &rma->lanes[i];
        if (!lane_carries(used->lane) || !lane_can_get(used->lane, rma->remote, local, size) ||
            !registers(rma, used, local, size,
                       used->lane->btl->btl_get_local_registration_threshold,
                       MCA_BTL_REG_FLAG_LOCAL_WRITE))
            rma_drop(rma, i);
    }
    return rma->count > 0;
}

bool rma_can_put(struct rma *rma, void *local, size_t size)
{
    for (uint32_t i = rma->count; i-- > 0;) {
        struct rma_lane *used = &rma->lanes[i];
        if (!lane_carries(used->lane) || !lane_can_put(used->lane) ||
            !registers(rma, used, local, size,
                       used->lane->btl->btl_put_local_registration_threshold, 0))
            rma_drop(rma, i);
    }
    return rma->count > 0;
}

/* Its bytes may still be under way: before they are sent again the lane has to count as broken, or
 * rma_fence takes it for one that was made anew. Its BTL may say so only after this. */
static void piece_failed(struct rma_lane *used, size_t size, int status)
{
    stripe_copy_failed(used->lane, size);
    /* Relaxed: the end of the transfer orders it. */
    atomic_store_explicit(&used->failed, true, memory_order_relaxed);
    if (used->lane->returns)
        lane_events.failed(used->lane, "could not get or put", status);
}

static void piece_copied(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                         void *local_address, mca_btl_base_registration_handle_t *local_handle,
                         void *context, void *data, int status)
{
    struct rma *rma = context;
    for (uint32_t i = 0; i < rma->count; i++)
        if (rma->lanes[i].lane->btl == btl) {
            if (OPAL_LIKELY(status == OPAL_SUCCESS))
                stripe_copied(rma->lanes[i].lane, (uintptr_t) data);
            else
                piece_failed(&rma->lanes[i], (uintptr_t) data, status);
        }
    transfer_piece_done(rma->transfer, status);
}

/* Translates the result of a BTL's get or put. "Busy" has two codes. */
static int piece_started(struct rma_lane *used, size_t size, int rc)
{
    if (rc >= 0) {
        used->bytes += size;
        return OMPI_SUCCESS;
    }
    stripe_not_copying(used->lane, size);
    return rc == OPAL_ERR_TEMP_OUT_OF_RESOURCE || rc == OPAL_ERR_RESOURCE_BUSY ? LANE_AGAIN : rc;
}

/* The lane and the size of the next piece; null: all lanes are busy. */
static struct rma_lane *rma_choose(struct rma *rma, size_t total, size_t *size)
{
    struct lane *lanes[RMA_LANES_MAX];
    for (uint32_t i = 0; i < rma->count; i++)
        lanes[i] = rma->lanes[i].lane;
    int best = stripe_choose_copy(lanes, (int) rma->count, total, size);
    return best < 0 ? NULL : &rma->lanes[best];
}

static mca_btl_base_registration_handle_t *key_of(struct rma *rma, const struct rma_lane *used)
{
    return used->key_length ? (mca_btl_base_registration_handle_t *) (rma->keys + used->key_at)
                            : NULL;
}

static size_t smallest(size_t one, size_t other)
{
    return one < other ? one : other;
}

static int rma_copy(struct rma *rma, bool gets, void *local, size_t offset, size_t total,
                    size_t *size)
{
    struct rma_lane *used = rma_choose(rma, total, size);
    if (!used)
        return LANE_AGAIN;
    mca_btl_base_module_t *btl = used->lane->btl;
    size_t most = smallest(PIECE_MAX, gets ? btl->btl_get_limit : btl->btl_put_limit);
    mca_btl_base_module_get_fn_t copy = gets ? btl->btl_get : btl->btl_put;
    *size = smallest(*size, most);
    stripe_copying(used->lane, *size);
    int rc = copy(btl, used->lane->endpoint, local, rma->remote + offset, used->local.handle,
                  key_of(rma, used), *size, 0, MCA_BTL_NO_ORDER, piece_copied, rma,
                  (void *) (uintptr_t) *size);
    return piece_started(used, *size, rc);
}

int rma_get(struct rma *rma, char *local, size_t offset, size_t total, size_t *size)
{
    return rma_copy(rma, true, local + offset, offset, total, size);
}

int rma_put(struct rma *rma, const char *local, size_t offset, size_t total, size_t *size)
{
    return rma_copy(rma, false, (void *) (local + offset), offset, total, size);
}

int rma_fence(struct rma *rma)
{
    for (uint32_t i = 0; i < rma->count; i++) {
        struct rma_lane *used = &rma->lanes[i];
        if (!atomic_load_explicit(&used->failed, memory_order_relaxed) || !used->lane->returns)
            continue;
        int rc = lane_fence(used->lane);
        if (rc != OMPI_SUCCESS)
            return rc;
    }
    return OMPI_SUCCESS;
}

void rma_release(struct rma *rma)
{
    for (uint32_t i = 0; i < rma->count; i++)
        lane_deregister(&rma->lanes[i].local);
    rma->count = 0;
}
