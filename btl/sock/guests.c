/* SPDX-License-Identifier: BSD-3-Clause */
/* Guests: connections to our ports that have not proven yet who they are. They are few, get little
 * time, and not a byte of theirs is believed. */
#include "btl/sock/sock.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define GUESTS_MOST 64u
#define GUEST_MS    5000u
/* One that has been silent for so long goes where another one waits. */
#define GUEST_PATIENCE_MS 100u

static void guest_dismiss(struct sock_socket *guest)
{
    opal_list_remove_item(&sock.guests, &guest->super);
    sock_socket_close(guest);
}

/* `is_wrong`: it said what no process of the job says; one that is silent may be of a process that
 * computes, which calls again. */
static void stranger_count(bool is_wrong)
{
    atomic_fetch_add_explicit(&sock.strangers, 1, memory_order_relaxed);
    if (is_wrong)
        SAY_ONCE(SOCK_SAY,
                 "a connection came from outside this job, and was closed; more of them are only "
                 "counted (btl_sock_strangers).");
}

/* Is there room for one more? The one that has been silent for longest may have to go. */
static bool guests_have_room(void)
{
    if (opal_list_get_size(&sock.guests) < GUESTS_MOST)
        return true;
    struct sock_socket *oldest = (struct sock_socket *) opal_list_get_first(&sock.guests);
    if (sock_now_ms() - oldest->since_ms < GUEST_PATIENCE_MS)
        return false;
    guest_dismiss(oldest);
    stranger_count(false);
    return true;
}

static void guest_welcome(struct sock_module *module, int fd)
{
    struct greeting challenge = {.kind = GREETING_CHALLENGE};
    const struct seal none = {{0, 0}};

    struct sock_socket *guest = sock_socket_new(fd, ROLE_GUEST, module, NULL);
    if (!guest) {
        close(fd);
        return;
    }
    opal_list_append(&sock.guests, &guest->super);
    if (!host_random(&guest->nonce, sizeof(guest->nonce))) {
        guest_dismiss(guest);
        return;
    }
    challenge.nonce = guest->nonce;
    greeting_seal(&challenge, &none, &none);
    if (!sock_socket_say(guest, &challenge))
        guest_dismiss(guest);
}

/* The process has opened all descriptors that it may have. With the one that is kept for this the
 * caller is taken and dismissed: it learns that nothing gets through, and calls again. */
static void caller_turn_away(int listener)
{
    close(sock.spare_fd);
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        close(fd);
    sock.spare_fd = sock_spare_open();
}

void sock_listener_event(struct sock_socket *socket)
{
    int fd = 0;

    /* The others wait in the kernel. An accepted one has the listener's options. */
    while (fd >= 0 && guests_have_room()) {
        fd = accept4(socket->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0)
            guest_welcome(socket->module, fd);
    }
    if (fd < 0 && sock_is_exhausted(errno))
        caller_turn_away(socket->fd);
}

/* The peer that a greeting names as its sender; NULL: it is not for this module, or no memory. */
static sock_peer_t *peer_of(const struct sock_socket *guest)
{
    const struct greeting *heard = &guest->heard;
    const uint32_t nth = heard->to_rail / ADDRESSES_MAX;

    if (!peer_names_equal(&heard->to, &opal_proc_local_get()->proc_name) ||
        heard->to_rail != sock_rail(guest->module->address, nth))
        return NULL;
    sock_peer_t *first = sock_peer_get(guest->module, &heard->from);
    return first && nth > 0 ? sock_links_get(first, nth) : first;
}

void sock_guest_event(struct sock_socket *guest)
{
    int heard = sock_socket_hear(guest);

    if (heard == 0)
        return;
    if (heard < 0) {
        guest_dismiss(guest); /* a call that was given up, or a scanner */
        return;
    }
    bool is_known = greeting_is(&guest->heard, GREETING_HELLO, &sock.record.secret, &guest->nonce);
    sock_peer_t *peer = is_known ? peer_of(guest) : NULL;
    if (!is_known)
        stranger_count(true);
    opal_list_remove_item(&sock.guests, &guest->super);
    if (!peer || !sock_link_accept(peer, guest, &guest->heard))
        sock_socket_close(guest);
}

void sock_guests_tick(uint64_t now_ms)
{
    struct sock_socket *at, *next;

    OPAL_LIST_FOREACH_SAFE(at, next, &sock.guests, struct sock_socket)
    {
        if (now_ms - at->since_ms >= GUEST_MS) {
            guest_dismiss(at);
            stranger_count(false);
        }
    }
}

void sock_guests_close(const struct sock_module *module)
{
    struct sock_socket *at, *next;

    OPAL_LIST_FOREACH_SAFE(at, next, &sock.guests, struct sock_socket)
    {
        if (at->module == module)
            guest_dismiss(at);
    }
}
