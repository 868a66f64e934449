/* SPDX-License-Identifier: BSD-3-Clause */
/* Fences: the two ends of a lane agree by greetings that both of their queue pairs are broken. */
#include "btl/verbs/greeting.h"

#include <string.h>

bool verbs_peer_is_unfenced(verbs_peer_t *peer)
{
    bool is_counted = peer->returns.arrived != COUNT_UNKNOWN ||
                      atomic_load_explicit(&peer->returned, memory_order_relaxed) == NULL ||
                      (peer->outstanding == 0 && opal_list_is_empty(&peer->returns.unreturned));

    return verbs_peer_state(peer) == PEER_FAILED && peer->was_ready &&
           (!peer->fence_confirmed || !is_counted);
}

/* Under peer->lock: the messages that have come by the connection with that queue pair of ours. No
 * other is taken in once this is known. */
static uint64_t messages_come(verbs_peer_t *peer, uint32_t qpn)
{
    bool is_open = verbs_peer_state(peer) == PEER_ANSWERED || verbs_peer_state(peer) == PEER_READY;

    if (qpn != peer->returns.qpn || is_open || !verbs_peer_is_drained(peer))
        return COUNT_UNKNOWN;
    peer->returns.told = true;
    return atomic_load_explicit(&peer->received, memory_order_relaxed);
}

/* Under peer->lock. */
static void question_fill(verbs_peer_t *peer, struct greeting *greeting)
{
    verbs_greeting_fill(peer, greeting);
    greeting->kind = GREETING_FENCE;
    greeting->received = messages_come(peer, greeting->end.qpn);
}

/* Under peer->lock: the other end of a failed connection says that it is broken there too. One that
 * answers without a count has forgotten it: it has connected anew. */
static void other_end_broke(verbs_peer_t *peer, const struct greeting *heard)
{
    bool is_forgotten = heard->kind == GREETING_FENCED && heard->received == COUNT_UNKNOWN;

    peer->fence_confirmed = true;
    verbs_returns_learn(peer, is_forgotten ? COUNT_FALSE : heard->received);
}

/* By every port that knows the process: the port of this lane may be cut off. */
static void greeting_send_anyhow(const opal_process_name_t *to, uint64_t nonce,
                                 struct greeting *greeting)
{
    greeting->to_nonce = nonce;
    for (uint32_t i = 0; i < verbs.module_count; i++) {
        struct verbs_module *module = verbs.modules[i];

        verbs_peer_t *peer = peer_table_find(&module->names, to);
        if (!peer)
            continue;
        OPAL_THREAD_LOCK(&peer->lock);
        if (nonce == peer->nonce)
            (void) verbs_greeting_send(peer, greeting); /* a lost one is sent again by either end */
        OPAL_THREAD_UNLOCK(&peer->lock);
    }
}

void verbs_fence_ask(verbs_peer_t *peer)
{
    struct greeting greeting;

    OPAL_THREAD_LOCK(&peer->lock);
    question_fill(peer, &greeting);
    uint64_t nonce = peer->nonce;
    bool is_broken = verbs_peer_state(peer) == PEER_FAILED; /* another thread may have begun anew */
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (is_broken)
        greeting_send_anyhow(&peer->name, nonce, &greeting);
}

/* The peer that a greeting about a fence names; NULL: there is none. */
static verbs_peer_t *fence_peer(const struct greeting *heard)
{
    struct verbs_module *module = verbs_module_of_port(heard->to_port);
    verbs_peer_t *peer = module ? peer_table_find(&module->names, &heard->from) : NULL;

    if (!peer)
        return NULL;
    OPAL_THREAD_LOCK(&peer->lock);
    bool is_it = heard->from_nonce == peer->nonce;
    OPAL_THREAD_UNLOCK(&peer->lock);
    return is_it ? peer : NULL;
}

/* The other end's queue pair is broken: ours is after this. NULL: it names no peer, or what came
 * from there is still being counted, and it asks again. */
static verbs_peer_t *fence_answer(const struct greeting *heard, struct greeting *answer)
{
    verbs_peer_t *peer = fence_peer(heard);
    bool connected = false;

    if (!peer)
        return NULL;
    OPAL_THREAD_LOCK(&peer->lock);
    connected = verbs_peer_state(peer) >= PEER_ANSWERED && heard->end.qpn == peer->their_qpn;
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (connected)
        verbs_peer_fail(peer, "the other end has closed it");
    OPAL_THREAD_LOCK(&peer->lock);
    if (verbs_peer_state(peer) == PEER_FAILED && heard->end.qpn == peer->their_qpn &&
        heard->heard_qpn == atomic_load_explicit(&peer->qpn, memory_order_relaxed))
        other_end_broke(peer, heard);
    uint64_t received = messages_come(peer, heard->heard_qpn);
    bool early = received == COUNT_UNKNOWN && heard->heard_qpn == peer->returns.qpn;
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (early)
        return NULL;
    *answer = *heard;
    answer->received = received;
    answer->kind = GREETING_FENCED;
    answer->from = opal_proc_local_get()->proc_name;
    answer->from_nonce = verbs.record.nonce;
    answer->to_nonce = heard->from_nonce;
    answer->from_port = heard->to_port;
    answer->to_port = heard->from_port;
    answer->heard_qpn = heard->end.qpn;
    return peer;
}

void verbs_fence_heard(const struct greeting *heard)
{
    struct greeting answer;
    verbs_peer_t *peer = fence_answer(heard, &answer);

    if (peer)
        greeting_send_anyhow(&peer->name, heard->from_nonce, &answer);
}

void verbs_fenced_heard(const struct greeting *heard)
{
    verbs_peer_t *peer = fence_peer(heard);

    if (!peer)
        return;
    OPAL_THREAD_LOCK(&peer->lock);
    if (verbs_peer_state(peer) == PEER_FAILED &&
        heard->heard_qpn == atomic_load_explicit(&peer->qpn, memory_order_relaxed))
        other_end_broke(peer, heard);
    OPAL_THREAD_UNLOCK(&peer->lock);
}

#define FENCE_PAUSE_MS 50u

/* Our queue pair is in error: it sends nothing, and receives nothing that it asked for. But what it
 * had sent may still be in the network, or be sent again by a device that has not noticed. Only
 * when the queue pair at the other end is broken too can nothing more be written there. */
int verbs_fence(mca_btl_base_module_t *btl, verbs_peer_t *peer)
{
    uint64_t now = verbs_now_ms();
    bool over, ask = false;

    verbs_peer_fail(peer, "it was closed");
    OPAL_THREAD_LOCK(&peer->lock);
    over = verbs_peer_state(peer) == PEER_IDLE ||
           (peer->outstanding == 0 && !verbs_peer_is_unfenced(peer) && !verbs_returns_wait(peer));
    if (verbs_peer_is_unfenced(peer) && now >= peer->fence_next_ms) {
        peer->fence_next_ms = now + FENCE_PAUSE_MS;
        ask = true;
    }
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (ask)
        verbs_fence_ask(peer);
    return over ? OPAL_SUCCESS : OPAL_ERR_RESOURCE_BUSY;
}

/* --- by another lane --- */

size_t verbs_fence_message(mca_btl_base_module_t *btl, verbs_peer_t *peer, void *note)
{
    struct greeting greeting;

    OPAL_THREAD_LOCK(&peer->lock);
    bool asks = verbs_peer_is_unfenced(peer);
    if (asks) {
        question_fill(peer, &greeting);
        memcpy(note, &greeting, GREETING_FENCE_BYTES);
    }
    OPAL_THREAD_UNLOCK(&peer->lock);
    return asks ? GREETING_FENCE_BYTES : 0;
}

size_t verbs_fence_message_heard(const void *note, size_t length, void *answer)
{
    struct greeting heard = {.kind = 0}, reply;

    if (length != GREETING_FENCE_BYTES)
        return 0;
    memcpy(&heard, note, length);
    if (heard.version != GREETING_VERSION || heard.to_nonce != verbs.record.nonce ||
        heard.from_nonce == verbs.record.nonce)
        return 0;
    if (heard.kind == GREETING_FENCED)
        verbs_fenced_heard(&heard);
    if (heard.kind != GREETING_FENCE || !fence_answer(&heard, &reply))
        return 0;
    memcpy(answer, &reply, length);
    return length;
}
