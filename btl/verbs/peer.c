/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of peers, and the state of each. */
#include "btl/verbs/verbs.h"

#include <stdlib.h>
#include <string.h>

#include "common/compat/component.h"

verbs_peer_t *verbs_peer_at(struct verbs_module *module, uint32_t index)
{
    /* Acquire: pairs with the release in verbs_peer_create; a thread that sees the count sees the
     * peer. */
    if (index >= atomic_load_explicit(&module->peer_count, memory_order_acquire))
        return NULL;
    verbs_peer_t **chunk =
        atomic_load_explicit(&module->chunks[index / PEERS_CHUNK], memory_order_relaxed);
    return chunk[index % PEERS_CHUNK];
}

verbs_peer_t *verbs_peer_find(struct verbs_module *module, const opal_process_name_t *name)
{
    uint32_t count = atomic_load_explicit(&module->peer_count, memory_order_relaxed);

    for (uint32_t i = 0; i < count; i++) {
        verbs_peer_t *peer = verbs_peer_at(module, i);

        if (component_names_equal(&peer->name, name))
            return peer;
    }
    return NULL;
}

/* Makes room for one more peer in the lists of waiting and expecting peers. */
static bool waiting_grow(struct verbs_module *module, uint32_t count)
{
    uint32_t room = module->waiting_room ? 2 * module->waiting_room : 64;

    if (count < module->waiting_room)
        return true;
    opal_mutex_lock(&module->waiting_lock);
    verbs_peer_t **waiting = realloc(module->waiting, room * sizeof(*waiting));
    if (waiting)
        module->waiting = waiting;
    verbs_peer_t **expecting = realloc(module->expecting, room * sizeof(*expecting));
    if (expecting)
        module->expecting = expecting;
    if (waiting && expecting)
        module->waiting_room = room;
    opal_mutex_unlock(&module->waiting_lock);
    return waiting && expecting;
}

verbs_peer_t *verbs_peer_create(struct verbs_module *module, const opal_process_name_t *name)
{
    uint32_t index = atomic_load_explicit(&module->peer_count, memory_order_relaxed);

    if (index >= PEERS_CHUNK * PEERS_CHUNKS || !waiting_grow(module, index))
        return NULL;
    verbs_peer_t **chunk =
        atomic_load_explicit(&module->chunks[index / PEERS_CHUNK], memory_order_relaxed);
    if (!chunk) {
        chunk = calloc(PEERS_CHUNK, sizeof(*chunk));
        if (!chunk)
            return NULL;
        atomic_store_explicit(&module->chunks[index / PEERS_CHUNK], chunk, memory_order_relaxed);
    }
    verbs_peer_t *peer = aligned_alloc(PEER_ALIGNMENT, (sizeof(*peer) + PEER_ALIGNMENT - 1) /
                                                           PEER_ALIGNMENT * PEER_ALIGNMENT);
    if (!peer)
        return NULL;
    memset(peer, 0, sizeof(*peer));
    OBJ_CONSTRUCT(&peer->lock, opal_mutex_t);
    OBJ_CONSTRUCT(&peer->pending, opal_list_t);
    OBJ_CONSTRUCT(&peer->posted, opal_list_t);
    peer->module = module;
    peer->name = *name;
    peer->index = index;
    chunk[index % PEERS_CHUNK] = peer;
    /* Release: see verbs_peer_at. */
    atomic_store_explicit(&module->peer_count, index + 1, memory_order_release);
    return peer;
}

void verbs_peer_state_set(verbs_peer_t *peer, enum peer_state state)
{
    bool was = peer->state == PEER_GREETING || peer->state == PEER_ANSWERED;
    bool is = state == PEER_GREETING || state == PEER_ANSWERED;

    if (is != was)
        atomic_fetch_add_explicit(&peer->module->greeting_count, is ? 1u : UINT32_MAX,
                                  memory_order_relaxed);
    peer->state = (uint8_t) state;
}
