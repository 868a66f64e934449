/* SPDX-License-Identifier: BSD-3-Clause */
/* What a peer is sent: numbered, written in order, and kept until the other end has it. */
#include "btl/sock/sock.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* Parts of one write, and bytes after which no more are added. */
#define PARTS_MOST   32
#define GATHER_BYTES (256u << 10)

static const unsigned char zeros[FRAME_ALIGNMENT];

static struct frame_header *header_of(struct sock_work *work)
{
    return (struct frame_header *) (void *) work->memory;
}

static size_t padding_of(const struct sock_work *work)
{
    return work->payload ? FRAME_PADDING(work->own_bytes + work->payload_bytes) : 0;
}

static size_t bytes_of(const struct sock_work *work)
{
    return work->own_bytes + work->payload_bytes + padding_of(work);
}

bool sock_queue_is_empty(const sock_peer_t *peer)
{
    return opal_list_is_empty((opal_list_t *) &peer->pending) &&
           opal_list_is_empty((opal_list_t *) &peer->sent);
}

bool sock_queue_has_others(const sock_peer_t *peer)
{
    struct sock_work *work;

    OPAL_LIST_FOREACH(work, &peer->pending, struct sock_work)
    {
        if (!work->is_put && !multilane_tag_is_of_pml(header_of(work)->tag))
            return true;
    }
    return false;
}

void sock_queue_add(sock_peer_t *peer, struct sock_work *work)
{
    header_of(work)->number = peer->next_number++;
    peer->kept_bytes += bytes_of(work);
    if (sock_rate_asks(peer, header_of(work)->number, bytes_of(work)))
        header_of(work)->flags |= FRAME_WANTS_ACK;
    opal_list_append(&peer->pending, &work->base.super.super);
    sock_peer_watch(peer);
    sock_queue_write(peer);
}

/* --- one write --- */

struct gathering {
    struct iovec parts[PARTS_MOST];
    int count;
    size_t bytes;
};

/* Adds what is left of a part when the first *skip bytes of the work were written before. */
static void part_add(struct gathering *all, const void *bytes, size_t length, size_t *skip)
{
    if (*skip >= length) {
        *skip -= length;
        return;
    }
    all->parts[all->count++] =
        (struct iovec){.iov_base = (unsigned char *) bytes + *skip, .iov_len = length - *skip};
    all->bytes += length - *skip;
    *skip = 0;
}

static void work_gather(struct gathering *all, struct sock_work *work, size_t skip)
{
    part_add(all, work->memory, work->own_bytes, &skip);
    if (work->payload) {
        part_add(all, work->payload, work->payload_bytes, &skip);
        part_add(all, zeros, padding_of(work), &skip);
    }
}

/* Just before it is written. */
static void header_finish(struct frame_header *header, uint32_t have)
{
    header->have = have;
    if (OPAL_LIKELY(!sock.is_right))
        return;
    header->flags |= FRAME_CHECKED;
    header->check = sock_frame_check(header);
}

static void gather(sock_peer_t *peer, struct gathering *all)
{
    size_t skip = peer->written;
    struct sock_work *work;

    all->count = 0;
    all->bytes = 0;
    if (peer->ack_left > 0) {
        size_t written = sizeof(peer->ack) - peer->ack_left;
        part_add(all, &peer->ack, sizeof(peer->ack), &written);
    }
    OPAL_LIST_FOREACH(work, &peer->pending, struct sock_work)
    {
        if (all->count + 3 > PARTS_MOST || all->bytes >= GATHER_BYTES)
            return;
        if (skip == 0)
            header_finish(header_of(work), peer->have);
        work_gather(all, work, skip);
        skip = 0;
    }
}

static void told(sock_peer_t *peer, uint32_t have)
{
    peer->told = have;
    peer->owes = peer->owes && have != peer->have;
}

/* See sock_send_left. */
static void left_add(sock_peer_t *peer, struct sock_work *work)
{
    work->is_held = true;
    work->next_left = atomic_load_explicit(&peer->left, memory_order_relaxed);
    atomic_store_explicit(&peer->left, work, memory_order_relaxed);
}

/* So many bytes were written. */
static void advance(sock_peer_t *peer, size_t bytes)
{
    if (peer->ack_left > 0) {
        size_t part = bytes < peer->ack_left ? bytes : peer->ack_left;
        peer->ack_left = (uint8_t) (peer->ack_left - part);
        bytes -= part;
        if (peer->ack_left == 0) {
            told(peer, peer->ack.have);
            peer->is_word_new = true;
            sock_peer_watch(peer);
        }
    }
    while (bytes > 0) {
        struct sock_work *work = (struct sock_work *) opal_list_get_first(&peer->pending);
        size_t left = bytes_of(work) - peer->written;
        if (bytes < left) {
            peer->written += bytes;
            return;
        }
        bytes -= left;
        peer->written = 0;
        told(peer, header_of(work)->have);
        if ((int32_t) (header_of(work)->number - peer->most_number) > 0)
            peer->most_number = header_of(work)->number;
        opal_list_remove_item(&peer->pending, &work->base.super.super);
        opal_list_append(&peer->sent, &work->base.super.super);
        if (work->base.des_cbfunc && !work->is_held && sock_work_is_ours(work))
            left_add(peer, work);
    }
}

/* With nothing pending that would tell it: what was received is told by itself, and last of all
 * goodbye. False: there is nothing to tell. */
static bool ack_begin(sock_peer_t *peer)
{
    bool says_bye = peer->bye_state == 1;

    if (!peer->owes && !says_bye)
        return false;
    peer->ack = (struct frame_header){.kind = says_bye ? FRAME_BYE : FRAME_ACK};
    header_finish(&peer->ack, peer->have);
    peer->ack_left = sizeof(peer->ack);
    if (says_bye)
        peer->bye_state = 2;
    return true;
}

/* One part is cheaper for the kernel than a list of one. */
static ssize_t write_once(int fd, struct gathering *all)
{
    struct msghdr message = {.msg_iov = all->parts, .msg_iovlen = (size_t) all->count};

    return all->count == 1
               ? send(fd, all->parts[0].iov_base, all->bytes, MSG_DONTWAIT | MSG_NOSIGNAL)
               : sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void sock_queue_write(sock_peer_t *peer)
{
    struct gathering all;

    while (peer->link && peer->can_write) {
        if (peer->ack_left == 0 && opal_list_is_empty(&peer->pending) && !ack_begin(peer))
            return;
        gather(peer, &all);
        ssize_t written = write_once(peer->link->fd, &all);
        if (written > 0) {
            peer->link->keyed_bytes += (uint64_t) written;
            advance(peer, (size_t) written);
        }
        if (written == (ssize_t) all.bytes || (written < 0 && errno == EINTR))
            continue;
        /* Full, or broken: then the thread that polls finds out when it reads. */
        peer->can_write = false;
        sock_socket_watch(peer->link, true);
    }
}

/* --- what the other end has --- */

/* The oldest that is kept: it was written, or it was before a connection broke. */
static struct sock_work *oldest_take(sock_peer_t *peer)
{
    opal_list_t *list = opal_list_is_empty(&peer->sent) ? &peer->pending : &peer->sent;

    return (struct sock_work *) opal_list_remove_first(list);
}

/* --- what was received ------------------------------------------------------------------------ */

bool sock_queue_received(sock_peer_t *peer, uint32_t have, opal_list_t *done)
{
    size_t received = 0;

    if ((int32_t) (have - peer->most_number) > 0)
        return false;
    while ((int32_t) (have - peer->first_number) >= 0) {
        struct sock_work *work = oldest_take(peer);
        if (!work) /* a number beyond half of all */
            return false;
        peer->first_number++;
        peer->kept_bytes -= bytes_of(work);
        received += bytes_of(work);
        work->is_received = true;
        if (!work->is_held)
            opal_list_append(done, &work->base.super.super);
    }
    if (received > 0)
        peer->cuts = 0;
    sock_rate_learn(peer, have, received);
    return true;
}

void sock_queue_rewind(sock_peer_t *peer)
{
    /* Before those that were not written. */
    opal_list_join(&peer->pending, opal_list_get_first(&peer->pending), &peer->sent);
    peer->written = 0;
    peer->ack_left = 0;
}

void sock_queue_take(sock_peer_t *peer, opal_list_t *works)
{
    struct sock_work *work, *next;

    sock_queue_rewind(peer);
    OPAL_LIST_FOREACH_SAFE(work, next, &peer->pending, struct sock_work)
    {
        if (work->is_held)
            continue;
        peer->kept_bytes -= bytes_of(work);
        opal_list_remove_item(&peer->pending, &work->base.super.super);
        opal_list_append(works, &work->base.super.super);
    }
    sock_rate_stop(peer);
}

void sock_queue_drop(sock_peer_t *peer, opal_list_t *works)
{
    struct sock_work *held;

    sock_queue_take(peer, works);
    while ((held = (struct sock_work *) opal_list_remove_first(&peer->pending)))
        held->is_received = true;
    peer->kept_bytes = 0;
}
