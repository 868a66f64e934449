/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of peers of each module. */
#include "btl/sock/sock.h"

#include <stdlib.h>

void sock_peer_begin(sock_peer_t *peer, uint32_t session)
{
    if (peer->was_linked) {
        peer->past_session = peer->session;
        peer->past_have = peer->have;
    }
    peer->session = session;
    peer->their_have = 0;
    peer->next_number = peer->first_number = 1;
    peer->have = peer->told = peer->wrongs = peer->most_number = peer->cuts = 0;
    peer->owes = peer->fenced = peer->was_linked = peer->is_outlived = false;
    peer->ack_left = peer->bye_state = 0;
    peer->down_since_ms = peer->refused_since_ms = 0;
    peer->call_next_ms = peer->call_pause_ms = 0;
    peer->failure = NULL;
    atomic_store_explicit(&peer->state, PEER_UP, memory_order_relaxed); /* sock_peer_state */
}

void sock_peer_fenced(sock_peer_t *peer, uint32_t have)
{
    if (!peer->fenced)
        peer->their_have = have;
    peer->fenced = true;
    sock_peer_watch(peer);
}

bool sock_peer_is_unfenced(const sock_peer_t *peer)
{
    return sock_peer_state(peer) == PEER_FAILED && peer->was_linked && !peer->fenced;
}

static sock_peer_t *peer_new(struct sock_module *module, const opal_process_name_t *name)
{
    sock_peer_t *peer = calloc(1, sizeof(*peer));

    if (!peer)
        return NULL;
    OBJ_CONSTRUCT(&peer->lock, opal_mutex_t);
    OBJ_CONSTRUCT(&peer->pending, opal_list_t);
    OBJ_CONSTRUCT(&peer->sent, opal_list_t);
    peer->module = module;
    peer->name = *name;
    atomic_init(&peer->share, 1);
    sock_peer_begin(peer, 1);
    return peer;
}

sock_peer_t *sock_peer_get(struct sock_module *module, const opal_process_name_t *name)
{
    opal_mutex_lock(&module->lock);
    sock_peer_t *peer = peer_table_find(&module->peers, name);
    if (!peer && (peer = peer_new(module, name)))
        peer_table_add(&module->peers, &peer->entry, &peer->name, peer);
    opal_mutex_unlock(&module->lock);
    return peer;
}

void sock_peer_know(sock_peer_t *peer, opal_proc_t *proc, const struct sock_address *theirs,
                    const struct seal *secret, uint32_t their_rail, uint32_t their_links)
{
    if (peer->has_address && !seals_equal(&peer->their_secret, secret))
        peer->their_calls = peer->linked_call = 0; /* it has begun MPI anew */
    peer->theirs = *theirs;
    peer->their_secret = *secret;
    peer->their_rail = their_rail;
    peer->their_links = their_links;
    peer->proc = proc;
    if (!peer->known)
        atomic_store_explicit(&peer->share,
                              sock.links > 0 && !theirs->is_loopback ? (uint32_t) sock.links : 1,
                              memory_order_relaxed);
    peer->is_added = peer->is_added || !peer->known;
    peer->has_address = peer->known = true;
}

uint32_t sock_peer_megabits(const sock_peer_t *peer)
{
    uint32_t ours = sock_module_address(peer->module)->megabits, theirs = peer->theirs.megabits;

    return theirs != 0 && (ours == 0 || theirs < ours) ? theirs : ours;
}

/* --- those that the clock matters to --- */

static void watched_push(sock_peer_t *peer)
{
    peer->next_watched = atomic_load_explicit(&sock.watched, memory_order_relaxed);
    /* Release: pairs with the exchange in sock_peers_watched. */
    while (!atomic_compare_exchange_weak_explicit(&sock.watched, &peer->next_watched, peer,
                                                  memory_order_release, memory_order_relaxed))
        ;
}

void sock_peer_watch(sock_peer_t *peer)
{
    if (!peer->is_watched)
        watched_push(peer);
    peer->is_watched = true;
}

sock_peer_t *sock_peers_watched(void)
{
    return atomic_exchange_explicit(&sock.watched, NULL, memory_order_acquire);
}

/* Those of a module that ends are watched no more. */
static void watched_forget(const struct sock_module *module)
{
    sock_peer_t *next;

    for (sock_peer_t *peer = sock_peers_watched(); peer; peer = next) {
        next = peer->next_watched;
        if (peer->module != module)
            watched_push(peer);
    }
}

static bool peer_free(sock_peer_t *peer, void *context)
{
    free(peer->intake.bytes);
    OBJ_DESTRUCT(&peer->sent);
    OBJ_DESTRUCT(&peer->pending);
    OBJ_DESTRUCT(&peer->lock);
    free(peer);
    return true;
}

void sock_peers_free(struct sock_module *module)
{
    watched_forget(module);
    peer_table_visit(&module->peers, peer_free, NULL);
}
