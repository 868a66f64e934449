/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of peers, and the state of each. */
#include "btl/verbs/verbs.h"

#include <stdlib.h>
#include <string.h>

void verbs_peers_open(struct verbs_module *module)
{
    OBJ_CONSTRUCT(&module->lock, opal_mutex_t);
    peer_list_open(&module->waiting);
    peer_list_open(&module->greeting);
}

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

verbs_peer_t *verbs_peer_create(struct verbs_module *module, const opal_process_name_t *name)
{
    uint32_t index = atomic_load_explicit(&module->peer_count, memory_order_relaxed);

    if (index >= PEERS_CHUNK * PEERS_CHUNKS)
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
    OBJ_CONSTRUCT(&peer->returns.unreturned, opal_list_t);
    peer->module = module;
    peer->name = *name;
    peer->index = index;
    chunk[index % PEERS_CHUNK] = peer;
    /* Release: see verbs_peer_at. */
    atomic_store_explicit(&module->peer_count, index + 1, memory_order_release);
    peer_table_add(&module->names, &peer->entry, &peer->name, peer);
    return peer;
}

void verbs_peer_state_set(verbs_peer_t *peer, enum peer_state state)
{
    struct peer_list *greeting = &peer->module->greeting;

    atomic_store_explicit(&peer->state, (uint8_t) state,
                          memory_order_relaxed); /* verbs_peer_state */
    if (state == PEER_GREETING || state == PEER_ANSWERED)
        peer_list_add(greeting, &peer->greeting, peer);
    else
        peer_list_remove(greeting, &peer->greeting);
}
