/* SPDX-License-Identifier: BSD-3-Clause */
/* The one place where sockets are looked at: those with traffic lately are read at once, the others
 * when the kernel says that something has come. */
#include "btl/sock/sock.h"

#include <sched.h>
#include <sys/epoll.h>

#include "common/lock/clock.h"

#define EVENTS_MOST 32
/* The kernel is asked about those that are not read anyhow at each tick of the system's clock, and
 * in every so many rounds. It is asked in fewer where it had nothing to tell so many times, rounds
 * are fast (so many in a tick of 1 to 10 ms) and no socket is read anyhow: then the rounds between
 * do nothing at all, but for a look at the clock in some. As long as no connection was begun, only
 * a first one can come: then they are fewer still. */
#define ASK_ROUNDS         8u
#define ASK_ROUNDS_QUIET   128u
#define ASK_ROUNDS_FIRST   1024u
#define QUIET_ASKS         32u
#define FAST_ROUNDS        2048u
#define CLOCK_ROUNDS       8u
#define CLOCK_ROUNDS_FIRST 32u
/* A peer that brought nothing in so many looks is hot no more. */
#define COOL_LOOKS 4096u
#define TICK_MS    5u
/* A longer pause between two looks counts as this much. */
#define ATTENDED_MS 50u
/* Reads of one socket in one round. */
#define READS_MOST 4

static void hot_cool(sock_peer_t **place)
{
    (*place)->is_hot = false;
    *place = NULL;
}

static void peer_heat(sock_peer_t *peer)
{
    sock_expect();
    peer->empty_looks = 0;
    if (peer->is_hot)
        return;
    sock_peer_t **place = &sock.hot[sock.hot_next++ % HOT_PEERS];
    if (*place)
        hot_cool(place);
    *place = peer;
    peer->is_hot = true;
}

static int peer_read(sock_peer_t *peer)
{
    const char *broken = NULL;
    int events = 0;

    if (OPAL_UNLIKELY(peer->owed_bytes >= OWED_BYTES))
        sock_intake_tell(peer);
    for (int i = 0; i < READS_MOST && peer->link && !broken; i++) {
        int read = sock_intake_read(peer, &broken);
        events += read;
        if (read == 0 || peer->intake.is_drained)
            break;
    }
    if (broken && peer->link)
        sock_link_broke(peer, broken);
    else if (events > 0)
        peer_heat(peer);
    sock_owners_tell(peer);
    return events;
}

static bool hot_any(void)
{
    for (uint32_t i = 0; i < HOT_PEERS; i++)
        if (sock.hot[i])
            return true;
    return false;
}

static int hot_read(void)
{
    int events = 0;

    for (uint32_t i = 0; i < HOT_PEERS; i++) {
        if (!sock.hot[i])
            continue;
        events += peer_read(sock.hot[i]);
        if (sock.hot[i] && ++sock.hot[i]->empty_looks >= COOL_LOOKS) /* its connection is there */
            hot_cool(&sock.hot[i]);
    }
    return events;
}

static int link_event(struct sock_socket *socket, uint32_t events)
{
    sock_peer_t *peer = socket->peer;

    if (events & EPOLLOUT) {
        OPAL_THREAD_LOCK(&peer->lock);
        peer->can_write = true;
        sock_socket_watch(socket, false);
        sock_queue_write(peer);
        OPAL_THREAD_UNLOCK(&peer->lock);
        sock_owners_tell(peer);
    }
    return events & (EPOLLIN | EPOLLHUP | EPOLLERR) ? peer_read(peer) : 0;
}

static int socket_event(struct sock_socket *socket, uint32_t events)
{
    switch (socket->role) {
    case ROLE_LINK:
        return link_event(socket, events);
    case ROLE_CALLER:
        sock_caller_event(socket);
        return 1;
    case ROLE_GUEST:
        sock_guest_event(socket);
        return 1;
    case ROLE_LISTENER:
        sock_listener_event(socket);
        return 1;
    default: /* an event before this one has closed it */
        return 0;
    }
}

static int kernel_ask(void)
{
    struct epoll_event events[EVENTS_MOST];
    int count = epoll_wait(sock.poll_fd, events, EVENTS_MOST, 0), handled = 0;

    if (count == 0) /* as one step: sock_expect may come between */
        atomic_fetch_add_explicit(&sock.empty_asks, 1, memory_order_relaxed);
    else
        sock_expect();
    for (int i = 0; i < count; i++)
        handled += socket_event(events[i].data.ptr, events[i].events);
    sock_sockets_free();
    return handled;
}

/* --- the clock --- */

/* Has it moved on? */
static bool clock_advance(uint64_t system_ms)
{
    /* Acquire: pairs with sock_link_give_up. */
    bool is_asked = atomic_load_explicit(&sock.attention, memory_order_relaxed) &&
                    atomic_exchange_explicit(&sock.attention, false, memory_order_acquire);
    uint64_t passed_ms = system_ms - sock.looked_ms;
    if (passed_ms < TICK_MS && !is_asked)
        return false;
    sock.looked_ms = system_ms;
    uint64_t now_ms = sock_now_ms() + (passed_ms < ATTENDED_MS ? passed_ms : ATTENDED_MS);
    atomic_store_explicit(&sock.clock_ms, now_ms, memory_order_relaxed);
    return true;
}

static void tick(void)
{
    const uint64_t now_ms = sock_now_ms();
    sock_peer_t *next;

    sock_guests_tick(now_ms);
    for (sock_peer_t *peer = sock_peers_watched(); peer; peer = next) {
        next = peer->next_watched;
        sock_link_tick(peer, now_ms);
        sock_growth_tick(peer);
    }
}

static bool has_called(void)
{
    return atomic_load_explicit(&sock.has_called, memory_order_relaxed);
}

static void skips_begin(uint64_t system_ms)
{
    if (hot_any() || atomic_load_explicit(&sock.empty_asks, memory_order_relaxed) < QUIET_ASKS)
        return;
    const uint32_t skips = (has_called() ? ASK_ROUNDS_QUIET : ASK_ROUNDS_FIRST) - 1;

    sock.round += skips; /* the next look asks */
    atomic_store_explicit(&sock.skips_ms, system_ms, memory_order_relaxed);
    atomic_store_explicit(&sock.skips, skips, memory_order_relaxed);
}

static bool is_time_to_ask(uint64_t system_ms)
{
    if (OPAL_UNLIKELY(system_ms != sock.asked_ms ||
                      atomic_load_explicit(&sock.slept, memory_order_relaxed))) {
        if (sock.round < FAST_ROUNDS)
            sock_expect();
        sock.asked_ms = system_ms;
        sock.round = 0;
        atomic_store_explicit(&sock.slept, false, memory_order_relaxed);
        return true;
    }
    if (++sock.round % ASK_ROUNDS != 0)
        return false;
    skips_begin(system_ms);
    return true;
}

/* By any thread. One that takes away the other's count makes a round too early or late. After some
 * fast rounds slow ones may follow: few of them are skipped. */
static inline bool is_skipped(void)
{
    const uint32_t left = atomic_load_explicit(&sock.skips, memory_order_relaxed);
    bool is_one = left % CLOCK_ROUNDS != 0 &&
                  !atomic_load_explicit(&sock.slept, memory_order_relaxed) &&
                  !atomic_load_explicit(&sock.attention, memory_order_relaxed);

    if (OPAL_LIKELY(is_one))
        atomic_store_explicit(&sock.skips, left - 1, memory_order_relaxed);
    return is_one;
}

/* The same for a round that looks whether the clock has moved. */
static bool is_skipped_by_clock(void)
{
    const uint32_t left = atomic_load_explicit(&sock.skips, memory_order_relaxed);
    bool is_one = left != 0 && !atomic_load_explicit(&sock.slept, memory_order_relaxed) &&
                  !atomic_load_explicit(&sock.attention, memory_order_relaxed) &&
                  ((left % CLOCK_ROUNDS_FIRST != 0 && !has_called()) ||
                   clock_coarse_ms() == atomic_load_explicit(&sock.skips_ms, memory_order_relaxed));

    atomic_store_explicit(&sock.skips, is_one ? left - 1 : 0, memory_order_relaxed);
    return is_one;
}

/* --- progress --- */

static bool polling_begin(void)
{
    if (atomic_load_explicit(&sock.polling, memory_order_relaxed))
        return false;
    if (OPAL_LIKELY(!opal_using_threads())) {
        atomic_store_explicit(&sock.polling, true, memory_order_relaxed);
        return true;
    }
    /* Acquire and release: the next thread sees what this one wrote. */
    return !atomic_exchange_explicit(&sock.polling, true, memory_order_acquire);
}

static void polling_end(void)
{
    atomic_store_explicit(&sock.polling, false, memory_order_release);
}

static __attribute__((noinline)) int look(void)
{
    if (is_skipped_by_clock() || !polling_begin())
        return 0;
    /* Inside: of two threads the later one never brings the older time. */
    const uint64_t system_ms = clock_coarse_ms();
    bool has_advanced = clock_advance(system_ms);
    int events = hot_read();
    if (is_time_to_ask(system_ms))
        events += kernel_ask();
    if (has_advanced)
        tick();
    polling_end();
    return events;
}

int sock_progress_all(void)
{
    return is_skipped() ? 0 : look();
}

int sock_progress_peer(mca_btl_base_module_t *btl, sock_peer_t *peer)
{
    if (!polling_begin())
        return 0;
    int events = peer->link ? peer_read(peer) : 0; /* the general loop connects */
    polling_end();
    return events;
}

void sock_progress_drain(sock_peer_t *peer, uint64_t limit_ms)
{
    uint64_t end_ms = sock_now_ms() + limit_ms;
    bool is_over = false;

    while (!is_over && sock_now_ms() < end_ms) {
        (void) sock_progress_all();
        OPAL_THREAD_LOCK(&peer->lock);
        is_over = sock_peer_state(peer) != PEER_UP || sock_queue_is_empty(peer);
        OPAL_THREAD_UNLOCK(&peer->lock);
        if (!is_over)
            sched_yield();
    }
}
