/* SPDX-License-Identifier: BSD-3-Clause */
/* Further connections of a rail. Each is a peer of a module of its own, which only the PML is told
 * of: the BML knows the first one's. They are called by the first one's address and port, and come
 * and go with it. */
#include "btl/sock/sock.h"

#include <stdlib.h>
#include <string.h>

static struct sock_module *module_new(const struct sock_module *first, uint32_t nth)
{
    struct sock_module *module = calloc(1, sizeof(*module));

    if (!module)
        return NULL;
    module->super = first->super;
    module->address = first->address;
    module->nth = nth;
    module->first = first->first;
    memcpy(module->device, first->device, sizeof(module->device));
    OBJ_CONSTRUCT(&module->lock, opal_mutex_t);
    return module;
}

static struct sock_module *module_get(struct sock_module *first, uint32_t nth)
{
    opal_mutex_lock(&first->lock);
    struct sock_module *module = sock_module_nth(first, nth);
    if (!module) {
        module = module_new(first, nth);
        /* Release: see sock_module_nth. */
        atomic_store_explicit(&first->further[nth], module, memory_order_release);
    }
    opal_mutex_unlock(&first->lock);
    return module;
}

/* The process is where the first one says. Another thread may have said so before. */
static void peer_follow(sock_peer_t *peer, sock_peer_t *first)
{
    OPAL_THREAD_LOCK(&first->lock);
    opal_proc_t *proc = first->proc;
    const struct sock_address theirs = first->theirs;
    const struct seal secret = first->their_secret;
    const uint32_t rail = first->their_rail, links = first->their_links;
    OPAL_THREAD_UNLOCK(&first->lock);
    OPAL_THREAD_LOCK(&peer->lock);
    sock_peer_know(peer, proc, &theirs, &secret, sock_rail(rail, peer->module->nth), links);
    if (sock_peer_state(peer) == PEER_ENDED)
        atomic_store_explicit(&peer->state, PEER_UP, memory_order_relaxed); /* sock_peer_state */
    OPAL_THREAD_UNLOCK(&peer->lock);
}

sock_peer_t *sock_links_get(sock_peer_t *first, uint32_t nth)
{
    bool may = nth <= sock_links_most(&first->module->super, first);
    struct sock_module *module = may ? module_get(first->module, nth) : NULL;
    sock_peer_t *peer = module ? sock_peer_get(module, &first->name) : NULL;

    if (peer)
        peer_follow(peer, first);
    return peer;
}

sock_peer_t *sock_links_find(sock_peer_t *first, uint32_t nth)
{
    struct sock_module *module = sock_module_nth(first->module, nth);

    return module ? peer_table_find(&module->peers, &first->name) : NULL;
}

/* Of a rail that both ends have, and another node. */
uint32_t sock_links_most(mca_btl_base_module_t *btl, sock_peer_t *first)
{
    OPAL_THREAD_LOCK(&first->lock);
    bool may = first->known && !first->theirs.is_loopback && module_of(btl)->nth == 0;
    uint32_t theirs = first->their_links;
    OPAL_THREAD_UNLOCK(&first->lock);
    uint32_t links = sock.record.links < theirs ? sock.record.links : theirs;
    return may && links > 0 ? links - 1 : 0;
}

/* Those that the user wants are there from the start, and tried as any rail. Others are told of
 * once they are connected, by either end. */
bool sock_links_next(mca_btl_base_module_t *btl, sock_peer_t *first, uint32_t nth,
                     mca_btl_base_module_t **next, sock_peer_t **peer)
{
    const bool is_wanted = nth < (uint32_t) sock.links;

    atomic_store_explicit(&sock.links_are_taken, true, memory_order_relaxed);
    if (nth > sock_links_most(btl, first))
        return false;
    *peer = is_wanted ? sock_links_get(first, nth) : sock_links_find(first, nth);
    if (!*peer)
        return false;
    *next = &(*peer)->module->super;
    OPAL_THREAD_LOCK(&(*peer)->lock);
    bool is_there = is_wanted || ((*peer)->was_linked && (*peer)->known);
    OPAL_THREAD_UNLOCK(&(*peer)->lock);
    return is_there;
}

/* The link divides among those that carry. */
void sock_links_begun(sock_peer_t *peer)
{
    sock_peer_t *first = peer_table_find(&peer->module->first->peers, &peer->name);
    uint32_t links = 1;

    if (sock.links > 0)
        return;
    for (uint32_t nth = 1; nth <= peer->module->nth; nth++)
        links += sock_links_find(first, nth) != NULL;
    for (uint32_t nth = 0; nth <= peer->module->nth; nth++) {
        sock_peer_t *one = sock_links_find(first, nth);
        if (one)
            atomic_store_explicit(&one->share, links, memory_order_relaxed);
    }
    /* Release: pairs with the PML's acquire. */
    atomic_fetch_add_explicit(&sock.link_changes, 1, memory_order_release);
}
