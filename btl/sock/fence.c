/* SPDX-License-Identifier: BSD-3-Clause */
/* Fences: both ends of a lane that was given up have closed their sockets, so that nothing of that
 * session can be received any more. The PML carries the messages that say so, and how much each end
 * has received, by another lane. */
#include "btl/sock/sock.h"

#include <string.h>

#define FENCE_VERSION 2u

enum fence_kind { FENCE_ASK = 1, FENCE_DONE };

struct fence_message {
    uint16_t version, kind; /* enum fence_kind */
    uint32_t session;
    uint32_t have; /* frames that the sender of this message has received in that session */
    uint32_t to_rail, from_rail;
    opal_process_name_t from;
};

_Static_assert(sizeof(struct fence_message) <= MULTILANE_FENCE_BYTES, "it fits");

int sock_fence(mca_btl_base_module_t *btl, sock_peer_t *peer)
{
    OPAL_THREAD_LOCK(&peer->lock);
    bool is_over = sock_peer_state(peer) == PEER_FAILED && !peer->link &&
                   sock_queue_is_empty(peer) && !sock_peer_is_unfenced(peer);
    if (sock_peer_state(peer) != PEER_FAILED)
        sock_link_give_up(peer, "it was closed");
    OPAL_THREAD_UNLOCK(&peer->lock);
    return is_over ? OPAL_SUCCESS : OPAL_ERR_RESOURCE_BUSY;
}

static size_t message_write(const sock_peer_t *peer, enum fence_kind kind, uint32_t session,
                            uint32_t have, uint32_t to_rail, void *message)
{
    const struct fence_message out = {.version = FENCE_VERSION,
                                      .kind = (uint16_t) kind,
                                      .session = session,
                                      .have = have,
                                      .to_rail = to_rail,
                                      .from_rail =
                                          sock_rail(peer->module->address, peer->module->nth),
                                      .from = opal_proc_local_get()->proc_name};

    memcpy(message, &out, sizeof(out));
    return sizeof(out);
}

size_t sock_fence_message(mca_btl_base_module_t *btl, sock_peer_t *peer, void *message)
{
    size_t length = 0;

    OPAL_THREAD_LOCK(&peer->lock);
    if (sock_peer_is_unfenced(peer) && !peer->link && peer->has_address)
        length =
            message_write(peer, FENCE_ASK, peer->session, peer->have, peer->their_rail, message);
    OPAL_THREAD_UNLOCK(&peer->lock);
    return length;
}

/* Under the peer's lock: is our end of that session closed? If not, it will be, and the other end
 * asks again. */
static bool session_is_over(sock_peer_t *peer, const struct fence_message *ask, uint32_t *have)
{
    bool is_past = (int32_t) (peer->session - ask->session) > 0;

    *have = !is_past ? peer->have : peer->past_session == ask->session ? peer->past_have : 0;
    if (is_past || peer->session != ask->session)
        return is_past;
    sock_peer_fenced(peer, ask->have);
    if (sock_peer_state(peer) != PEER_FAILED)
        sock_link_give_up(peer, "the other end has given it up");
    return sock_peer_state(peer) == PEER_FAILED && !peer->link;
}

size_t sock_fence_message_heard(const void *message, size_t length, void *answer)
{
    struct fence_message in;
    size_t answered = 0;
    uint32_t have;

    memcpy(&in, message, length < sizeof(in) ? length : sizeof(in));
    if (length != sizeof(in) || in.version != FENCE_VERSION)
        return 0;
    struct sock_module *module = sock_module_of_rail(in.to_rail);
    sock_peer_t *peer = module ? peer_table_find(&module->peers, &in.from) : NULL;
    if (!peer)
        return 0;
    OPAL_THREAD_LOCK(&peer->lock);
    if (in.kind == FENCE_DONE && in.session == peer->session &&
        sock_peer_state(peer) == PEER_FAILED)
        sock_peer_fenced(peer, in.have);
    if (in.kind == FENCE_ASK && session_is_over(peer, &in, &have))
        answered = message_write(peer, FENCE_DONE, in.session, have, in.from_rail, answer);
    OPAL_THREAD_UNLOCK(&peer->lock);
    return answered;
}
