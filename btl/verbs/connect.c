/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes connections. The two ends of a lane greet each other by datagrams. A greeting carries all
 * that the other end needs to make its queue pair ready. It is repeated until the peer is known to
 * be ready. Either end may begin, or both. */
#include "btl/verbs/greeting.h"

#include <string.h>

#define PAUSE_FIRST_MS   50u
#define PAUSE_LONGEST_MS 1000u

/* After so long without an answer a sentence says which peer is waited for. */
#define UNANSWERED_MS 10000u

/* Where the port is down: as long as a replugged cable may take. */
#define DOWN_LONGEST_MS 8000u

/* --- greeting --- */

/* Under peer->lock. Without a free buffer it is due as soon as there is one. */
static enum sending greet(verbs_peer_t *peer)
{
    struct greeting greeting;

    verbs_greeting_fill(peer, &greeting);
    enum sending sending = verbs_greeting_send(peer, &greeting);
    if (sending == SENDING_LATER)
        peer->greet_next_ms = 0;
    return sending;
}

/* A part differs from peer to peer: peers that greeted one process at the same time must not do so
 * again, since it has few buffers. */
static void greet_after_pause(verbs_peer_t *peer, uint64_t now)
{
    peer->greet_next_ms = now + peer->greet_pause_ms + peer->my_psn % (peer->greet_pause_ms / 2);
}

static void greet_soon(verbs_peer_t *peer)
{
    peer->greet_pause_ms = PAUSE_FIRST_MS;
    peer->greet_begun_ms = verbs_now_ms();
    greet_after_pause(peer, peer->greet_begun_ms);
}

bool verbs_connect_begin(verbs_peer_t *peer)
{
    if (!verbs_pair_create(peer))
        return false;
    verbs_peer_state_set(peer, PEER_GREETING);
    greet_soon(peer);
    (void) greet(peer);
    return true;
}

void verbs_connect_confirmed(verbs_peer_t *peer)
{
    OPAL_THREAD_LOCK(&peer->lock);
    if (verbs_peer_state(peer) == PEER_ANSWERED) {
        verbs_peer_state_set(peer, PEER_READY);
        verbs_queue_wake(peer);
    }
    OPAL_THREAD_UNLOCK(&peer->lock);
}

/* Under peer->lock. Once a port, as it may be a whole job that does not answer. */
static void unanswered_say(const verbs_peer_t *peer, uint64_t now)
{
    struct verbs_module *module = peer->module;

    if (verbs_peer_state(peer) != PEER_GREETING || now - peer->greet_begun_ms < UNANSWERED_MS ||
        atomic_exchange_explicit(&module->unanswered_said, true, memory_order_relaxed))
        return;
    VERBS_SAY("process %s by %s has not answered %s of process %s for %u s: it makes no MPI calls, "
              "or nothing gets through between the two ports. Messages to it wait.",
              OPAL_NAME_PRINT(peer->name), peer->port.address.name, module->device,
              OPAL_NAME_PRINT(OPAL_PROC_MY_NAME), UNANSWERED_MS / 1000);
}

static bool is_greeted(const verbs_peer_t *peer)
{
    return verbs_peer_state(peer) == PEER_GREETING || verbs_peer_state(peer) == PEER_ANSWERED;
}

/* Under peer->lock. Greets again if it is due; false: there was no buffer. */
static bool greet_again(verbs_peer_t *peer, uint64_t now)
{
    if (!is_greeted(peer) || now < peer->greet_next_ms)
        return true;
    enum sending sending = greet(peer);
    if (sending == SENDING_LATER)
        return false;
    now = verbs_now_ms(); /* making a path may have taken long */
    unanswered_say(peer, now);
    greet_after_pause(peer, now);
    if (sending == SENDING_DONE && peer->greet_pause_ms < PAUSE_LONGEST_MS)
        peer->greet_pause_ms *= 2;
    return true;
}

/* The same; gives up a peer that cannot be reached any more. */
static bool greet_or_give_up(verbs_peer_t *peer, uint64_t now)
{
    const struct verbs_module *module = peer->module;
    bool useless;

    OPAL_THREAD_LOCK(&peer->lock);
    bool sent = greet_again(peer, now);
    useless =
        is_greeted(peer) && module->port_down && now - module->port_down_since_ms > DOWN_LONGEST_MS;
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (useless)
        verbs_peer_fail(peer, "its port is down, and the peer has not answered");
    return sent;
}

/* Begins with the peer that found no buffer last time; otherwise the first peers would take all
 * buffers each time. */
void verbs_greetings_repeat(struct verbs_module *module)
{
    uint64_t now = verbs_now_ms();

    for (uint32_t count = peer_list_count(&module->greeting); count > 0; count--) {
        verbs_peer_t *peer = peer_list_first(&module->greeting);

        if (!peer || (!greet_or_give_up(peer, now) &&
                      (verbs_completions_poll(module) == 0 || !greet_or_give_up(peer, now))))
            return;
        if (peer == peer_list_first(&module->greeting)) /* it is greeted still */
            (void) peer_list_turn(&module->greeting);
    }
}

/* --- hearing --- */

/* The peer that greets, made known if it was not; NULL: the greeting is not for us. */
static verbs_peer_t *greeting_peer(struct verbs_module *module, const struct greeting *heard)
{
    OPAL_THREAD_LOCK(&module->lock);
    verbs_peer_t *peer = peer_table_find(&module->names, &heard->from);
    if (!peer)
        peer = verbs_peer_create(module, &heard->from);
    OPAL_THREAD_UNLOCK(&module->lock);
    return peer;
}

static bool greeting_is_valid(const struct verbs_module *module, const struct greeting *heard)
{
    return heard->version == GREETING_VERSION && heard->bytes == sizeof(*heard) &&
           verbs.record.nonce == heard->to_nonce && verbs.record.nonce != heard->from_nonce &&
           heard->from_port < CHOICE_PORTS_MAX &&
           (heard->kind != GREETING_HELLO ||
            (heard->to_port == module->port_index &&
             heard->end.port.address.link == verbs.record.ports[module->port_index].address.link &&
             heard->end.port.mtu >= IBV_MTU_256 && heard->end.port.mtu <= IBV_MTU_4096 &&
             heard->end.qpn != 0 && heard->end.index < PEERS_CHUNK * PEERS_CHUNKS));
}

/* Under peer->lock: copies what the greeting says about the other end. */
static void peer_learn(verbs_peer_t *peer, const struct greeting *heard)
{
    if (peer->greeting_path && memcmp(&peer->port, &heard->end.port, sizeof(peer->port)) != 0) {
        ibv_destroy_ah(peer->greeting_path);
        peer->greeting_path = NULL;
    }
    verbs_path_works(peer); /* a path that leads here mostly leads back */
    peer->port = heard->end.port;
    peer->nonce = heard->from_nonce;
    peer->their_port = heard->from_port;
}

/* Under peer->lock. Who greeted would wait, and may have another lane. */
static void refuse(verbs_peer_t *peer, const struct greeting *heard)
{
    struct greeting greeting;

    verbs_greeting_fill(peer, &greeting);
    greeting.kind = GREETING_REFUSED;
    greeting.heard_qpn = heard->end.qpn;
    (void) verbs_greeting_send(peer, &greeting); /* a lost one is sent again at the next hello */
}

/* Under peer->lock. Returns why the connection that there was is over, or NULL. */
static const char *peer_hear(verbs_peer_t *peer, const struct greeting *heard)
{
    if (verbs_peer_state(peer) == PEER_FAILED && !verbs_peer_renew(peer))
        return NULL; /* it greets again */
    if (verbs_peer_state(peer) >= PEER_ANSWERED && verbs_peer_state(peer) != PEER_FAILED &&
        heard->end.qpn != peer->their_qpn)
        return "the other end has begun a new connection";
    peer_learn(peer, heard);
    if (verbs_peer_state(peer) == PEER_IDLE) {
        if (!verbs_pair_create(peer)) {
            refuse(peer, heard);
            return NULL;
        }
        verbs_peer_state_set(peer, PEER_GREETING);
        greet_soon(peer);
    }
    uint32_t mine = atomic_load_explicit(&peer->qpn, memory_order_relaxed);
    if (heard->heard_qpn != 0 && mine != heard->heard_qpn) {
        /* It names an earlier queue pair of ours. Our greeting makes it begin anew. */
        (void) greet(peer);
        return NULL;
    }
    if (verbs_peer_state(peer) == PEER_GREETING) {
        peer->their_qpn = heard->end.qpn;
        peer->their_index = heard->end.index;
        if (!verbs_pair_connect(peer, &heard->end))
            return "its queue pair does not take the values of the greeting";
        verbs_peer_state_set(peer, PEER_ANSWERED);
    }
    if (verbs_peer_state(peer) == PEER_ANSWERED && mine == heard->heard_qpn) {
        verbs_peer_state_set(peer, PEER_READY);
        verbs_queue_wake(peer);
    }
    if (!heard->is_sure)
        (void) greet(peer);
    return NULL;
}

/* Under peer->lock. Does it speak of the connection that has failed here, and that the other end,
 * where it may not have failed, still has? Nothing begins anew before that one is over too. */
static bool is_of_failed(verbs_peer_t *peer, const struct greeting *heard)
{
    return verbs_peer_is_unfenced(peer) && heard->from_nonce == peer->nonce &&
           heard->end.qpn == peer->their_qpn;
}

static void hello_heard(struct verbs_module *module, const struct greeting *heard)
{
    verbs_peer_t *peer = greeting_peer(module, heard);
    const char *over = NULL;

    if (!peer)
        return;
    OPAL_THREAD_LOCK(&peer->lock);
    bool late = is_of_failed(peer, heard);
    if (!late)
        over = peer_hear(peer, heard);
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (late)
        verbs_fence_ask(peer);
    if (over)
        verbs_peer_fail(peer, over);
}

static void refused_heard(struct verbs_module *module, const struct greeting *heard)
{
    verbs_peer_t *peer = peer_table_find(&module->names, &heard->from);

    if (!peer || heard->to_port != module->port_index || heard->heard_qpn == 0)
        return;
    OPAL_THREAD_LOCK(&peer->lock);
    peer->said |= atomic_exchange_explicit(&module->refused_said, true, memory_order_relaxed);
    OPAL_THREAD_UNLOCK(&peer->lock);
    verbs_peer_fail_pair(peer, heard->heard_qpn,
                         "the other end's device makes no queue pair for it");
}

void verbs_greeting_received(struct verbs_module *module, uint32_t index, const struct ibv_wc *wc)
{
    struct greeting heard;

    if (!verbs_greeting_take(module, index, wc, &heard))
        return;
    if (!greeting_is_valid(module, &heard) || module->finalized)
        return;
    if (heard.kind == GREETING_HELLO)
        hello_heard(module, &heard);
    else if (heard.kind == GREETING_FENCE)
        verbs_fence_heard(&heard);
    else if (heard.kind == GREETING_REFUSED)
        refused_heard(module, &heard);
    else if (heard.kind == GREETING_FENCED)
        verbs_fenced_heard(&heard);
}
