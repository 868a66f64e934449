/* SPDX-License-Identifier: BSD-3-Clause */
/* The extension: what Multilane's PML uses beside btl.h. */
#include "btl/shm/shm.h"

#include <string.h>

/* Defaults until a profile or the user gives better values. They lie between measurements with the
 * two ranks on threads of one core and on two cores. Messages through the ring: 100 and 310 ns for
 * 8 bytes, 37 and 20 GB/s, because both ends copy at once and the data stays in caches. The
 * kernel's copying: 1.6 us to start, 14 GB/s, 9 GB/s from 1 MiB on. */
static const struct model_lane_range send_ranges[] = {
    {56, 60e-9, 0, 30e-9, 30e-9, 0, 0},
    {4096, 70e-9, 16e9, 35e-9, 35e-9, 0, 0},
    {UINT64_MAX, 80e-9, 27e9, 50e-9, 50e-9, 0, 0},
};
static const struct model_lane_range copy_ranges[] = {
    {262144, 60e-9, 14e9, 1500e-9, 0, 30e-9, 0},
    {UINT64_MAX, 60e-9, 11e9, 1500e-9, 0, 30e-9, 0},
};

static void cost_set(struct multilane_lane_cost *cost, const struct model_lane_range *ranges,
                     uint32_t count)
{
    cost->range_count = count;
    memcpy(cost->ranges, ranges, count * sizeof(*ranges));
}

static int extension_attributes(mca_btl_base_module_t *btl, shm_peer_t *peer,
                                struct multilane_lane_attributes *out)
{
    /* Without a peer: the kernel copies between processes of one user, unless it is told not to. */
    bool can_copy = peer ? shm_copy_expected(peer) : strcmp(shm.single_copy.text, "none") != 0;

    if (!btl)
        btl = &shm_module;
    memset(out, 0, sizeof(*out));
    out->capabilities = MULTILANE_CAN_DELIVER | MULTILANE_CAN_CONTROL | MULTILANE_CAN_RING;
    if (can_copy)
        out->capabilities |= MULTILANE_CAN_COPY;
    out->memory = MODEL_MEMORY_HOST;
    out->capacity_group = 1;
    out->short_max_bytes = btl->btl_max_send_size;
    out->copied_max_bytes = btl->btl_max_send_size;
    out->zcopied_max_bytes = can_copy ? SIZE_MAX : 0;
    cost_set(&out->cost[MODEL_BY_SEND], send_ranges, sizeof(send_ranges) / sizeof(send_ranges[0]));
    /* Without the kernel's copying, get and put go by message, for one-sided operations: there is
     * nothing that they would do better than messages. */
    for (int way = MODEL_BY_GET; can_copy && way <= MODEL_BY_PUT; way++)
        cost_set(&out->cost[way], copy_ranges, sizeof(copy_ranges) / sizeof(copy_ranges[0]));
    strcpy(out->device, "shm");
    return OPAL_SUCCESS;
}

/* --- control lines --- */

#define CONTROLS_MAX (CONNECTION_CONTROLS + CHANNEL_CONTROLS)

/* The first lie in the connection, the others in the channel, if the ring is in one. A sender does
 * not leave a channel while lines of it are taken. */
static struct multilane_control *control_line(struct connection *connection,
                                              struct channel *channel, uint64_t index)
{
    if (index < CONNECTION_CONTROLS)
        return !connection ? NULL : &connection->controls[index];
    index -= CONNECTION_CONTROLS;
    return !channel || index >= CHANNEL_CONTROLS ? NULL : &channel->controls[index];
}

/* A bit for each line that is free. Several at a time are worth a channel. */
static uint64_t controls_vacant(shm_peer_t *peer)
{
    const uint64_t few = (UINT64_C(1) << CONNECTION_CONTROLS) - 1;

    if (!peer->out_channel && (peer->controls_taken & few) == few)
        (void) shm_outbound_grow(peer, peer->length_max + 1);
    /* A ring that the peer does not read yet may be refused, and its lines with it. */
    bool has_channel = peer->out_channel && shm_outbound_is_read(peer);

    return ~peer->controls_taken & (has_channel ? (UINT64_C(1) << CONTROLS_MAX) - 1 : few);
}

static int control_obtain(mca_btl_base_module_t *btl, shm_peer_t *peer,
                          struct multilane_control **control, uint64_t *handle)
{
    int status = OPAL_ERR_OUT_OF_RESOURCE;

    biased_lock(&peer->lock);
    if (peer->out_state == OUT_NONE)
        shm_outbound_open(peer);
    if (peer->out_state == OUT_OPEN) {
        uint64_t vacant = controls_vacant(peer);

        if (vacant != 0) {
            unsigned index = (unsigned) __builtin_ctzll(vacant);

            peer->controls_taken |= UINT64_C(1) << index;
            *handle = index;
            *control = control_line(peer->out_connection, peer->out_channel, index);
            /* Relaxed: the message that carries the handle makes the clearing visible. */
            for (int i = 0; i < MULTILANE_CONTROL_WORDS; i++)
                atomic_store_explicit(&(*control)->words[i], 0, memory_order_relaxed);
            status = OPAL_SUCCESS;
        }
    }
    biased_unlock(&peer->lock);
    return status;
}

static struct multilane_control *control_find(mca_btl_base_module_t *btl, shm_peer_t *peer,
                                              uint64_t handle)
{
    /* Relaxed: the message that brought the handle came by this connection. */
    return handle >= CONTROLS_MAX
               ? NULL
               : control_line(atomic_load_explicit(&peer->in_connection, memory_order_relaxed),
                              atomic_load_explicit(&peer->in_channel, memory_order_acquire),
                              handle);
}

static void control_release(mca_btl_base_module_t *btl, shm_peer_t *peer, uint64_t handle)
{
    biased_lock(&peer->lock);
    if (handle < CONTROLS_MAX)
        peer->controls_taken &= ~(UINT64_C(1) << handle);
    biased_unlock(&peer->lock);
}

_Static_assert(CONTROLS_MAX < 64, "one bit a line");

MULTILANE_EXTENSION_DEFINE(shm) = {
    MULTILANE_EXTENSION_HEAD,     .attributes = extension_attributes,
    .poll = shm_receive_one,      .control_obtain = control_obtain,
    .control_find = control_find, .control_release = control_release,
    .copy_from = shm_copy_from,   .copy_to = shm_copy_to,
    .reserve = shm_send_reserve,  .commit = shm_send_commit,
    .publish = shm_own_publish,   .published_read = shm_outbound_published,
    .sleep = shm_sleep,           .wake = shm_wake,
    .room = shm_send_room,        .waits_at = shm_receive_waits_at,
    .commons = shm_own_commons,
};
