/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection of a peer: made by either end, made again when it breaks, and given up.
 *
 * Both ends may call at once. Then the call of the end whose name is smaller counts, unless it has
 * been at it for long. Before either end says how far it has received, it reads what came over the
 * old connection and closes that: so what it says is final, and nothing can write the user's memory
 * from the old connection. */
#include "btl/sock/sock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* A call that the network has not answered is made anew after so long. One that the other end's
 * process has not answered stays, as that may compute. */
#define CALL_MS 250u
/* Where none has been answered yet, the network may be slow: each waits twice as long, up to this.
 */
#define CALL_MOST_MS 2000u
/* Of two calls that meet, ours counts for so long once the kernel of the other end has taken it. */
#define MEET_MS 3000u
/* The pause after a failed call, at first and at most. */
#define PAUSE_FIRST_MS 10u
#define PAUSE_MOST_MS  200u
/* The same for a rail that has never led anywhere, while another one works. */
#define PAUSE_SPARE_MS 3000u
/* How often the kernel is asked about a connection by which something is under way. */
#define PROBE_MS 50u
/* A process whose port refuses calls for so long is gone. */
#define REFUSED_MS 1000u
/* Without a working connection for so long, another rail takes over, if one works. */
#define PATIENCE_MS 200u
/* If none does, the user is told after so long what is waited for. */
#define SAY_MS 2000u
/* A further connection that is only tried is called for so long. */
#define VAIN_MS 10000u
/* After so many connections in a row that were greeted, and cut with nothing received of what was
 * sent, short packets alone get through. */
#define CUTS_MOST 3u
/* So many connections in a row that bring nothing right are the other end's fault. */
#define WRONGS_MOST 3u
/* What was received is told after so long, if nothing else tells it. */
#define OWED_MS 5u

/* --- the hot peers: those that are read without asking the kernel which can be --- */

static void cool(sock_peer_t *peer)
{
    for (uint32_t i = 0; i < HOT_PEERS; i++)
        if (sock.hot[i] == peer)
            sock.hot[i] = NULL;
    peer->is_hot = false;
}

/* --- calls --- */

/* Under its lock: a call came to nothing; `error` is the system's number, or 0. */
static void call_ended(sock_peer_t *peer, int error)
{
    peer->call_error = error;
    if (error != ECONNREFUSED)
        peer->refused_since_ms = 0;
    else if (peer->refused_since_ms == 0)
        peer->refused_since_ms = sock_now_ms();
}

/* Under its lock. */
static void outage_end(sock_peer_t *peer)
{
    peer->down_since_ms = peer->refused_since_ms = 0;
}

void sock_link_call(sock_peer_t *peer)
{
    if (peer->caller || !peer->has_address || sock_peer_state(peer) != PEER_UP ||
        sock_now_ms() < peer->call_next_ms)
        return;
    sock_peer_watch(peer);
    if (peer->down_since_ms == 0 && !peer->link)
        peer->down_since_ms = sock_now_ms();
    peer->caller = sock_socket_call(peer);
    if (peer->caller)
        return;
    call_ended(peer, errno);
    (void) sock_is_exhausted(peer->call_error);
    peer->call_pause_ms = PAUSE_MOST_MS;
    peer->call_next_ms = sock_now_ms() + peer->call_pause_ms;
}

/* Under its lock: since when nothing gets through; 0: it does. */
static uint64_t outage_since_ms(const sock_peer_t *peer)
{
    return peer->cuts >= CUTS_MOST ? peer->cut_since_ms : peer->down_since_ms;
}

/* Under its lock: for so long it has been an outage. A call that its kernel has taken waits for a
 * process that may compute. */
static uint64_t outage_ms(const sock_peer_t *peer, uint64_t now_ms)
{
    const uint64_t since_ms = outage_since_ms(peer);

    return since_ms == 0 || (peer->caller && peer->caller->is_connected) ? 0 : now_ms - since_ms;
}

static void time_move_on(uint64_t *since_ms, uint64_t by_ms, uint64_t now_ms)
{
    if (*since_ms != 0)
        *since_ms = *since_ms + by_ms < now_ms ? *since_ms + by_ms : now_ms;
}

/* Under its lock: the other end has answered our call. Its process may have computed since its
 * kernel took that, which was no outage. */
static void outage_shorten(sock_peer_t *peer)
{
    const uint64_t now_ms = sock_now_ms();

    if (!peer->caller->is_connected)
        return;
    time_move_on(&peer->down_since_ms, now_ms - peer->caller->since_ms, now_ms);
    time_move_on(&peer->cut_since_ms, now_ms - peer->caller->since_ms, now_ms);
}

/* Under its lock. */
static void caller_drop(sock_peer_t *peer, int error)
{
    if (!peer->caller)
        return;
    bool leads_nowhere = peer->is_spare && !peer->was_linked && !peer->caller->is_connected;
    if (peer->caller->is_connected && error == ETIMEDOUT) /* until lately its kernel has answered */
        peer->down_since_ms = sock_now_ms();
    const uint32_t most = leads_nowhere ? PAUSE_SPARE_MS : PAUSE_MOST_MS;
    sock_socket_close(peer->caller);
    peer->caller = NULL;
    call_ended(peer, error);
    peer->call_pause_ms = peer->call_pause_ms == 0 ? PAUSE_FIRST_MS : 2 * peer->call_pause_ms;
    if (peer->call_pause_ms > most)
        peer->call_pause_ms = most;
    peer->call_next_ms = sock_now_ms() + peer->call_pause_ms;
}

static void caller_failed(sock_peer_t *peer, int error)
{
    OPAL_THREAD_LOCK(&peer->lock);
    caller_drop(peer, error);
    OPAL_THREAD_UNLOCK(&peer->lock);
}

/* --- a connection ends, and another one begins --- */

/* Reads what came over the old connection, and closes it. */
static void link_close(sock_peer_t *peer, bool reads)
{
    if (peer->link && reads)
        sock_intake_empty(peer);
    OPAL_THREAD_LOCK(&peer->lock);
    if (peer->link)
        sock_socket_close(peer->link);
    peer->link = NULL;
    peer->can_write = peer->is_word_new = false;
    sock_rate_stop(peer); /* while there is no connection it is not busy */
    OPAL_THREAD_UNLOCK(&peer->lock);
    sock_intake_reset(peer);
    cool(peer);
}

/* Has one of the two ends said goodbye? */
static bool is_parting(const sock_peer_t *peer)
{
    return sock_peer_state(peer) == PEER_ENDED || peer->bye_state != 0;
}

/* It is waited for no more. */
static void outage_forget(sock_peer_t *peer)
{
    if (peer->module->unreached == peer)
        peer->module->unreached = NULL;
}

/* Under its lock, without a connection: it was the session's last one. Should the two processes
 * meet again, both count from the beginning. */
static void session_end(sock_peer_t *peer, opal_list_t *works)
{
    outage_forget(peer);
    sock_queue_drop(peer, works);
    sock_peer_begin(peer, peer->session + 1);
    atomic_store_explicit(&peer->state, PEER_ENDED, memory_order_relaxed); /* sock_peer_state */
}

/* No other lane needs to take the message. */
static bool message_dropped(void *context, uint8_t tag, const void *bytes, size_t length,
                            const void *payload, size_t payload_length)
{
    return true;
}

void sock_link_broke(sock_peer_t *peer, const char *why)
{
    opal_list_t works;

    OBJ_CONSTRUCT(&works, opal_list_t);
    link_close(peer, false);
    OPAL_THREAD_LOCK(&peer->lock);
    if (is_parting(peer)) {
        session_end(peer, &works);
    } else if (sock_peer_state(peer) == PEER_UP) {
        atomic_fetch_add_explicit(&sock.breaks, 1, memory_order_relaxed);
        SOCK_VERBOSE("%s: the connection with process %s broke: %s", peer->module->device,
                     OPAL_NAME_PRINT(peer->name), why);
        if (peer->wrongs >= WRONGS_MOST)
            sock_link_give_up(peer, why);
        else
            sock_link_call(peer);
    }
    OPAL_THREAD_UNLOCK(&peer->lock);
    sock_works_return(&works, message_dropped, NULL); /* see sock_send_start */
}

/* The greeting is over: the other end has so many of our frames. */
static void link_begin(sock_peer_t *peer, struct sock_socket *socket, uint32_t have)
{
    opal_list_t done;

    OBJ_CONSTRUCT(&done, opal_list_t);
    OPAL_THREAD_LOCK(&peer->lock);
    socket->role = ROLE_LINK;
    socket->peer = peer;
    sock_socket_watch(socket, false);
    peer->link = socket;
    peer->can_write = true;
    outage_end(peer);
    peer->call_pause_ms = 0;
    peer->bye_state = 0;
    peer->probed_ms = sock_now_ms();
    peer->owed_bytes = 0;
    bool is_new = !peer->was_linked;
    peer->was_linked = true;
    bool is_true = sock_queue_received(peer, have, &done);
    sock_queue_rewind(peer);
    if (is_true)
        sock_queue_write(peer);
    else
        sock_link_give_up(peer, "the other end says that it has what was never sent");
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (is_new && peer->module->nth > 0)
        sock_links_begun(peer);
    sock_owners_tell(peer);
    sock_works_complete(&done, OPAL_SUCCESS);
}

/* --- giving up --- */

void sock_link_give_up(sock_peer_t *peer, const char *why)
{
    if (!peer->failure)
        peer->failure = why;
    sock_peer_watch(peer);
    /* Release: pairs with the exchange in progress. */
    atomic_store_explicit(&sock.attention, true, memory_order_release);
}

/* Does what `failure` asks for. */
static void attend(sock_peer_t *peer)
{
    struct sock_module *module = peer->module;
    char text[160];
    opal_list_t works;

    OPAL_THREAD_LOCK(&peer->lock);
    const char *why = peer->failure;
    peer->failure = NULL;
    bool is_first = why && sock_peer_state(peer) != PEER_FAILED;
    if (is_first)
        atomic_store_explicit(&peer->state, PEER_FAILED, memory_order_relaxed);
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (!is_first)
        return;
    outage_forget(peer);
    OBJ_CONSTRUCT(&works, opal_list_t);
    link_close(peer, true);
    OPAL_THREAD_LOCK(&peer->lock);
    caller_drop(peer, 0);
    if (!peer->returned)
        sock_queue_drop(peer, &works);
    bool tells = peer->known && !sock.is_ending;
    opal_proc_t *proc = peer->proc;
    OPAL_THREAD_UNLOCK(&peer->lock);
    snprintf(text, sizeof(text), "%s: %s", module->device, why);
    sock_works_complete(&works, OPAL_ERR_UNREACH);
    if (tells)
        lane_lost(&module->super, proc, text);
}

/* Once both ends have closed a session that was given up, and each knows what the other one has. */
static void settle(sock_peer_t *peer)
{
    opal_list_t done, works;
    bool is_true = true;

    OBJ_CONSTRUCT(&done, opal_list_t);
    OBJ_CONSTRUCT(&works, opal_list_t);
    OPAL_THREAD_LOCK(&peer->lock);
    multilane_returned returned = peer->returned;
    void *context = peer->returned_context;
    if (returned && sock_peer_state(peer) == PEER_FAILED && !peer->link &&
        !sock_peer_is_unfenced(peer)) {
        is_true = sock_queue_received(peer, peer->their_have, &done);
        sock_queue_take(peer, &works);
    }
    OPAL_THREAD_UNLOCK(&peer->lock);
    sock_works_complete(&done, OPAL_SUCCESS);
    if (is_true) {
        sock_works_return(&works, returned, context);
    } else {
        SOCK_SAY("process %s says that it has received by %s what was never sent; what was on its "
                 "way there is lost.",
                 OPAL_NAME_PRINT(peer->name), peer->module->device);
        sock_works_complete(&works, OPAL_ERR_UNREACH);
    }
}

void sock_link_return_to(mca_btl_base_module_t *btl, sock_peer_t *peer, multilane_returned returned,
                         void *context)
{
    opal_list_t works;

    OBJ_CONSTRUCT(&works, opal_list_t);
    OPAL_THREAD_LOCK(&peer->lock);
    peer->returned = returned;
    peer->returned_context = context;
    if (!returned && sock_peer_state(peer) == PEER_FAILED)
        sock_queue_drop(peer, &works);
    OPAL_THREAD_UNLOCK(&peer->lock);
    sock_works_complete(&works, OPAL_ERR_UNREACH);
}

/* --- greetings --- */

static void greeting_fill(const sock_peer_t *peer, enum greeting_kind kind,
                          const struct sock_socket *socket, uint32_t their_rail, uint32_t call,
                          struct greeting *greeting)
{
    *greeting = (struct greeting){.kind = (uint32_t) kind,
                                  .from = opal_proc_local_get()->proc_name,
                                  .to = peer->name,
                                  .from_rail = sock_rail(peer->module->address, peer->module->nth),
                                  .to_rail = their_rail,
                                  .session = peer->session,
                                  .call = call,
                                  .have = peer->have,
                                  .heard = peer->their_calls,
                                  .past_session = peer->past_session,
                                  .past_have = peer->past_have,
                                  .nonce = socket->nonce};
}

/* The listener has spoken: the old connection is over, and we say how far we are. */
static void hello_say(sock_peer_t *peer, struct sock_socket *socket)
{
    struct greeting hello;

    if (!host_random(&socket->nonce, sizeof(socket->nonce))) {
        caller_failed(peer, 0);
        return;
    }
    link_close(peer, true);
    if (peer->caller != socket) /* what was read made an end of it */
        return;
    OPAL_THREAD_LOCK(&peer->lock);
    if (peer->down_since_ms == 0)
        peer->down_since_ms = sock_now_ms();
    greeting_fill(peer, GREETING_HELLO, socket, peer->their_rail, ++peer->calls, &hello);
    greeting_seal(&hello, &peer->their_secret, &socket->heard.nonce);
    if (!sock_socket_say(socket, &hello))
        caller_drop(peer, 0);
    OPAL_THREAD_UNLOCK(&peer->lock);
}

/* The other end may count a later session. Where nothing was ever connected in ours, its number is
 * as good; else it has given ours up. */
static void session_heard(sock_peer_t *peer, const struct greeting *heard)
{
    if ((int32_t) (heard->session - peer->session) <= 0)
        return;
    if (!peer->was_linked) {
        peer->session = heard->session;
        peer->fenced = false;
        return;
    }
    peer->is_outlived = true;
    sock_peer_fenced(peer, heard->past_session == peer->session ? heard->past_have : 0);
    sock_link_give_up(peer, "the other end has given it up");
}

/* The greeting is over, in plain text; what follows is not, if the user wants that. */
static bool encryption_begin(const struct sock_socket *socket, const struct seal *secret,
                             bool is_caller)
{
    const struct seal *ours = &socket->nonce, *theirs = &socket->heard.nonce;

    return sock.tls == 0 || encrypt_begin(socket->fd, secret, is_caller ? ours : theirs,
                                          is_caller ? theirs : ours, is_caller);
}

static void welcome_heard(sock_peer_t *peer, struct sock_socket *socket)
{
    const struct greeting *heard = &socket->heard;

    if (greeting_is(heard, GREETING_LATER, &peer->their_secret, &socket->nonce)) {
        OPAL_THREAD_LOCK(&peer->lock);
        session_heard(peer, heard);
        outage_shorten(peer);
        caller_drop(peer, 0);
        OPAL_THREAD_UNLOCK(&peer->lock);
        return;
    }
    if (!greeting_is(heard, GREETING_WELCOME, &peer->their_secret, &socket->nonce) ||
        heard->session != peer->session) {
        caller_failed(peer, 0);
        return;
    }
    if (!encryption_begin(socket, &peer->their_secret, true)) {
        caller_failed(peer, errno);
        return;
    }
    OPAL_THREAD_LOCK(&peer->lock);
    outage_shorten(peer);
    peer->caller = NULL;
    peer->linked_call = peer->calls;
    OPAL_THREAD_UNLOCK(&peer->lock);
    sock_socket_greeted(socket);
    link_begin(peer, socket, heard->have);
}

static int error_of(int fd)
{
    int error = 0;
    socklen_t length = sizeof(error);

    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

void sock_caller_event(struct sock_socket *socket)
{
    sock_peer_t *peer = socket->peer;

    OPAL_THREAD_LOCK(&peer->lock); /* until the thread that made it has put it there */
    bool is_ours = peer->caller == socket;
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (!is_ours)
        return;
    if (!socket->is_connected) {
        int error = error_of(socket->fd);
        if (error != 0) {
            caller_failed(peer, error);
            return;
        }
        socket->is_connected = true;
        socket->since_ms = sock_now_ms();
        sock_socket_watch(socket, false);
        return;
    }
    bool waits_for_welcome = socket->nonce.words[0] || socket->nonce.words[1];
    int heard = sock_socket_hear(socket);
    if (heard < 0)
        caller_failed(peer, 0);
    else if (heard > 0 && waits_for_welcome)
        welcome_heard(peer, socket);
    else if (heard > 0 && socket->heard.magic == GREETING_MAGIC &&
             socket->heard.version == GREETING_VERSION && socket->heard.kind == GREETING_CHALLENGE)
        hello_say(peer, socket);
    else if (heard > 0) /* another program listens there */
        caller_failed(peer, 0);
}

/* Is our own call to go on, and theirs to be refused? */
static bool ours_counts(const sock_peer_t *peer)
{
    bool is_smaller = sock_name_is_before(&opal_proc_local_get()->proc_name, &peer->name);

    return peer->caller && is_smaller &&
           sock_now_ms() - peer->caller->since_ms <
               (peer->caller->is_connected ? MEET_MS : CALL_MS);
}

/* It said that before it took the call by which we are connected now, or were last. */
static bool is_outdated(const sock_peer_t *peer, const struct greeting *hello)
{
    return (int32_t) (hello->heard - peer->linked_call) < 0;
}

/* Under the peer's lock. */
static bool hello_is_good(sock_peer_t *peer, const struct greeting *hello)
{
    session_heard(peer, hello);
    if (sock_peer_state(peer) == PEER_ENDED && !peer->link)
        atomic_store_explicit(&peer->state, PEER_UP, memory_order_relaxed);
    if (hello->session != peer->session || (int32_t) (hello->call - peer->their_calls) <= 0 ||
        is_outdated(peer, hello))
        return false;
    /* Its end is closed, and ours, which was given up, takes no call in this session. */
    if (sock_peer_state(peer) == PEER_FAILED && !peer->link)
        sock_peer_fenced(peer, hello->have);
    return sock_peer_state(peer) == PEER_UP && !peer->failure && !ours_counts(peer);
}

bool sock_link_accept(sock_peer_t *peer, struct sock_socket *socket, const struct greeting *hello)
{
    struct greeting answer;

    OPAL_THREAD_LOCK(&peer->lock);
    bool is_later = (int32_t) (hello->session - peer->session) > 0 && is_parting(peer);
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (is_later) /* the other end knows already that the last session is over */
        sock_link_broke(peer, "the other end has begun anew");
    OPAL_THREAD_LOCK(&peer->lock);
    bool is_good = hello_is_good(peer, hello);
    if (is_good) {
        peer->their_calls = hello->call;
        peer->linked_call = 0;
        caller_drop(peer, 0);
    }
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (is_good)
        link_close(peer, true);
    OPAL_THREAD_LOCK(&peer->lock);
    greeting_fill(peer, is_good ? GREETING_WELCOME : GREETING_LATER, socket, hello->from_rail,
                  hello->call, &answer);
    greeting_seal(&answer, &sock.record.secret, &hello->nonce);
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (!sock_socket_say(socket, &answer) || !is_good ||
        !encryption_begin(socket, &sock.record.secret, false))
        return false;
    link_begin(peer, socket, hello->have);
    return true;
}

uint64_t sock_link_quiet_ms(mca_btl_base_module_t *btl, sock_peer_t *peer)
{
    OPAL_THREAD_LOCK(&peer->lock);
    const uint64_t since_ms = outage_since_ms(peer);
    bool is_down = sock_peer_state(peer) == PEER_UP && since_ms != 0;
    uint64_t ms = is_down && !sock_queue_is_empty(peer) ? sock_now_ms() - since_ms : 0;
    OPAL_THREAD_UNLOCK(&peer->lock);
    return ms;
}

/* --- the clock --- */

/* Under the peer's lock: its connection does not get through, as the kernel says. */
static bool link_is_cut(sock_peer_t *peer, uint64_t now_ms)
{
    bool all_there;

    if (sock_queue_is_empty(peer) && !peer->is_word_new)
        return false;
    if (now_ms - peer->probed_ms < PROBE_MS)
        return peer->down_since_ms != 0;
    peer->probed_ms = now_ms;
    bool is_cut = sock_socket_is_cut(peer->link, &all_there);
    peer->is_word_new &= !all_there;
    if (all_there) /* the other end may compute */
        peer->cuts = 0;
    return is_cut;
}

static void cut_count(sock_peer_t *peer, uint64_t now_ms)
{
    peer->down_since_ms = now_ms;
    if (!sock_queue_is_empty(peer) && peer->cuts++ == 0)
        peer->cut_since_ms = now_ms;
}

static void link_tick(sock_peer_t *peer, uint64_t now_ms)
{
    if (link_is_cut(peer, now_ms)) {
        if (peer->down_since_ms == 0)
            cut_count(peer, now_ms);
        sock_link_call(peer);
    } else {
        if (peer->down_since_ms != 0) /* it came back by itself */
            peer->cuts = 0;
        caller_drop(peer, 0);
        outage_end(peer);
    }
    if (sock.tls != 0 && peer->link->keyed_bytes >= (uint64_t) sock.tls_mib << 20) {
        sock_socket_end(peer->link);
        peer->can_write = false;
    }
    if (peer->have != peer->told && now_ms - peer->owed_since_ms >= OWED_MS) {
        peer->owes = true;
        sock_queue_write(peer);
    }
}

static const char only_short[] = "it connects, but messages do not get through; is the MTU of its "
                                 "network too large?";

/* Under its lock: what came in place of a connection. */
static const char *obstacle(const sock_peer_t *peer)
{
    if (peer->caller && peer->caller->is_connected)
        return "it is connected, but not greeted";
    if (peer->cuts >= CUTS_MOST)
        return only_short;
    return peer->call_error != 0 ? strerror(peer->call_error) : "no answer";
}

bool sock_link_is_proven(mca_btl_base_module_t *btl, sock_peer_t *peer, char *why, size_t room)
{
    char from[ADDRESS_TEXT_BYTES], to[ADDRESS_TEXT_BYTES];

    OPAL_THREAD_LOCK(&peer->lock);
    bool is = peer->was_linked;
    peer->is_tried = true;
    if (!is)
        sock_link_call(peer);
    if (!is && room > 0)
        snprintf(why, room, "has no connection from %s to %s: %s",
                 sock_address_text(sock_module_address(module_of(btl)), from),
                 strchr(sock_address_text(&peer->theirs, to), ' ') + 1, obstacle(peer));
    OPAL_THREAD_UNLOCK(&peer->lock);
    return is;
}

/* Is the process connected by another rail? Another connection of the same one breaks with it. With
 * no lock held. */
static bool another_works(const sock_peer_t *peer)
{
    for (uint32_t i = 0; i < sock.module_count; i++) {
        sock_peer_t *other = peer_table_find(&sock.modules[i]->peers, &peer->name);
        if (!other || sock.modules[i]->address == peer->module->address)
            continue;
        OPAL_THREAD_LOCK(&other->lock);
        bool works =
            sock_peer_state(other) == PEER_UP && other->link && outage_since_ms(other) == 0;
        OPAL_THREAD_UNLOCK(&other->lock);
        if (works)
            return true;
    }
    return false;
}

/* Under its lock. Says that the only rail does not work, and that it does again; of those that this
 * is so with at the same time the first is named. */
static void outage_say(sock_peer_t *peer, uint64_t down_ms)
{
    struct sock_module *module = peer->module;

    if (module->nth > 0) /* the first one says it */
        return;
    if (down_ms >= SAY_MS && !module->unreached && peer->known) {
        module->unreached = peer;
        SOCK_SAY("process %s is out of reach by %s: %s. What is sent to it, and to others there "
                 "that are out of reach, waits, for at most %d s (btl_sock_lost_s).",
                 OPAL_NAME_PRINT(peer->name), module->device, obstacle(peer), sock.lost_s);
    } else if (outage_since_ms(peer) == 0 && module->unreached == peer) {
        module->unreached = NULL;
        SOCK_SAY("process %s is in reach again by %s.", OPAL_NAME_PRINT(peer->name),
                 module->device);
    }
}

/* Under the peer's lock: a further connection that was never made, and that nothing waits for. */
static bool calls_in_vain(const sock_peer_t *peer, uint64_t now_ms)
{
    return peer->module->nth > 0 && sock.links == 0 && !peer->was_linked &&
           sock_queue_is_empty(peer) && peer->down_since_ms != 0 &&
           now_ms - peer->down_since_ms >= VAIN_MS;
}

/* Under the peer's lock: why it is to be given up, or NULL. */
static const char *gives_up(sock_peer_t *peer, uint64_t now_ms)
{
    if (peer->is_spare && peer->is_tried && !peer->was_linked && !sock_queue_has_others(peer))
        return NULL; /* nothing waits for it */
    if (peer->refused_since_ms != 0 && now_ms - peer->refused_since_ms >= REFUSED_MS)
        return "it refuses connections; its process has probably ended";
    const uint64_t down_ms = outage_ms(peer, now_ms);
    if (peer->is_spare && down_ms < PATIENCE_MS)
        return NULL;
    if (peer->is_spare)
        return peer->cuts >= CUTS_MOST ? only_short : "nothing gets through";
    outage_say(peer, down_ms);
    return down_ms >= (uint64_t) sock.lost_s * 1000 ? "nothing gets through (btl_sock_lost_s)"
                                                    : NULL;
}

/* Under its lock. What a network needed before its first connection holds for later ones. */
static uint32_t call_patience_ms(const sock_peer_t *peer)
{
    return peer->is_spare || peer->call_ms == 0 ? CALL_MS : peer->call_ms;
}

static void call_unanswered(sock_peer_t *peer)
{
    const uint32_t next_ms = 2 * call_patience_ms(peer);

    if (!peer->was_linked)
        peer->call_ms = next_ms < CALL_MOST_MS ? next_ms : CALL_MOST_MS;
    caller_drop(peer, 0);
}

/* Under its lock: to others nothing happens but by a call or an event. */
static bool clock_matters(const sock_peer_t *peer)
{
    return peer->failure || (sock_peer_state(peer) == PEER_FAILED && !sock_queue_is_empty(peer)) ||
           (sock_peer_state(peer) == PEER_UP &&
            (peer->caller || peer->down_since_ms != 0 || peer->have != peer->told ||
             peer->is_word_new || !sock_queue_is_empty(peer)));
}

void sock_link_tick(sock_peer_t *peer, uint64_t now_ms)
{
    OPAL_THREAD_LOCK(&peer->lock);
    bool is_down = outage_since_ms(peer) != 0;
    OPAL_THREAD_UNLOCK(&peer->lock);
    bool another = is_down && another_works(peer);
    OPAL_THREAD_LOCK(&peer->lock);
    peer->is_spare = another;
    if (sock_peer_state(peer) == PEER_UP) {
        if (peer->caller && !peer->caller->is_connected &&
            now_ms - peer->caller->since_ms >= call_patience_ms(peer))
            call_unanswered(peer);
        if (calls_in_vain(peer, now_ms)) {
            caller_drop(peer, 0);
            outage_end(peer);
        }
        if (peer->link)
            link_tick(peer, now_ms);
        else if (!sock_queue_is_empty(peer) || peer->down_since_ms != 0)
            sock_link_call(peer);
        const char *why = gives_up(peer, now_ms);
        if (why)
            sock_link_give_up(peer, why);
    }
    OPAL_THREAD_UNLOCK(&peer->lock);
    sock_owners_tell(peer);
    attend(peer);
    settle(peer);
    OPAL_THREAD_LOCK(&peer->lock);
    peer->is_watched = false;
    if (clock_matters(peer))
        sock_peer_watch(peer);
    OPAL_THREAD_UNLOCK(&peer->lock);
}
