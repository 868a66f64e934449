/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that others may write by puts: what they name is looked up, and not believed. */
#include "btl/sock/sock.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS_FIRST 64u
#define SLOTS_MOST  (1u << 24)

/* Under the lock. */
static bool slots_grow(void)
{
    uint32_t room = sock.slot_room == 0 ? SLOTS_FIRST : 2 * sock.slot_room;
    mca_btl_base_registration_handle_t **slots =
        room > SLOTS_MOST ? NULL : realloc(sock.slots, room * sizeof(*slots));

    if (!slots)
        return false;
    memset(slots + sock.slot_room, 0, (room - sock.slot_room) * sizeof(*slots));
    sock.slots = slots;
    sock.slot_free = sock.slot_room;
    sock.slot_room = room;
    return true;
}

/* Under the lock: the first free slot from `slot_free` on. */
static bool slot_take(mca_btl_base_registration_handle_t *handle)
{
    for (uint32_t tried = 0; tried < sock.slot_room; tried++) {
        uint32_t slot = (sock.slot_free + tried) % sock.slot_room;
        if (sock.slots[slot])
            continue;
        sock.slots[slot] = handle;
        sock.slot_free = slot + 1;
        handle->slot = slot;
        return true;
    }
    return slots_grow() && slot_take(handle);
}

mca_btl_base_registration_handle_t *sock_register_memory(mca_btl_base_module_t *btl,
                                                         sock_peer_t *peer, void *base, size_t size,
                                                         uint32_t flags)
{
    mca_btl_base_registration_handle_t *handle = calloc(1, sizeof(*handle));

    (void) btl;
    (void) peer;
    (void) flags;
    if (!handle || !sock_random(&handle->key, sizeof(handle->key))) {
        free(handle);
        return NULL;
    }
    handle->base = (uint64_t) (uintptr_t) base;
    handle->length = size;
    opal_mutex_lock(&sock.slots_lock);
    bool is_taken = slot_take(handle);
    opal_mutex_unlock(&sock.slots_lock);
    if (is_taken)
        return handle;
    free(handle);
    return NULL;
}

int sock_deregister_memory(mca_btl_base_module_t *btl, mca_btl_base_registration_handle_t *handle)
{
    (void) btl;
    opal_mutex_lock(&sock.slots_lock);
    sock.slots[handle->slot] = NULL;
    opal_mutex_unlock(&sock.slots_lock);
    free(handle);
    return OPAL_SUCCESS;
}

bool sock_memory_is_registered(const struct frame_target *target, size_t length)
{
    opal_mutex_lock(&sock.slots_lock);
    const mca_btl_base_registration_handle_t *handle =
        target->slot < sock.slot_room ? sock.slots[target->slot] : NULL;
    bool is_inside = handle && handle->key == target->key && target->address >= handle->base &&
                     length <= handle->length &&
                     target->address - handle->base <= handle->length - length;
    opal_mutex_unlock(&sock.slots_lock);
    return is_inside;
}

void sock_registrations_close(void)
{
    for (uint32_t i = 0; i < sock.slot_room; i++)
        free(sock.slots[i]);
    free(sock.slots);
    sock.slots = NULL;
    sock.slot_room = sock.slot_free = 0;
}
