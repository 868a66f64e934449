/* SPDX-License-Identifier: BSD-3-Clause */
/* What a connection brings. Whole messages are handed out where they were read; the bytes of a put
 * are read where they belong, once its header has come. A frame that has not come wholly is kept
 * apart. Nothing is believed: what breaks the rules ends the connection, and the frame comes again
 * over the next one. */
#include "btl/sock/sock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

static const size_t head_bytes[] = {[FRAME_MESSAGE] = sizeof(struct frame_header),
                                    [FRAME_PUT] =
                                        sizeof(struct frame_header) + sizeof(struct frame_target),
                                    [FRAME_ACK] = sizeof(struct frame_header),
                                    [FRAME_BYE] = sizeof(struct frame_header)};

/* What one read has brought. */
struct taking {
    sock_peer_t *peer;
    opal_list_t done; /* works that the other end has */
    const char *broken;
    int events;
};

static bool header_is_good(const sock_peer_t *peer, const struct frame_header *header)
{
    const mca_btl_base_module_t *btl = &peer->module->super;

    if (header->flags & FRAME_CHECKED && header->check != sock_frame_check(header))
        return false;
    switch (header->kind) {
    case FRAME_MESSAGE:
        return header->length <= btl->btl_max_send_size && header->number == peer->have + 1;
    case FRAME_PUT:
        return header->length >= sizeof(struct frame_target) &&
               header->length - sizeof(struct frame_target) <= btl->btl_put_limit &&
               header->number == peer->have + 1;
    default:
        return (header->kind == FRAME_ACK || header->kind == FRAME_BYE) && header->length == 0;
    }
}

/* All of the frame, with its padding, that is kept in one piece. */
static size_t whole_bytes(const struct frame_header *header)
{
    return header->kind == FRAME_PUT
               ? head_bytes[FRAME_PUT]
               : sizeof(*header) + header->length + FRAME_PADDING(header->length);
}

/* A message or put has come wholly. */
static void frame_count(struct taking *taking, bool wants_ack)
{
    sock_peer_t *peer = taking->peer;

    OPAL_THREAD_LOCK(&peer->lock);
    if (peer->have++ == peer->told)
        peer->owed_since_ms = sock_now_ms();
    sock_peer_watch(peer);
    peer->wrongs = 0;
    peer->owes |= wants_ack;
    OPAL_THREAD_UNLOCK(&peer->lock);
    taking->events++;
}

static void word_heard(struct taking *taking, const struct frame_header *header)
{
    sock_peer_t *peer = taking->peer;

    OPAL_THREAD_LOCK(&peer->lock);
    bool is_true = sock_queue_received(peer, header->have, &taking->done);
    if (header->kind == FRAME_BYE && sock_peer_state(peer) == PEER_UP)
        atomic_store_explicit(&peer->state, PEER_ENDED, memory_order_relaxed);
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (!is_true)
        taking->broken = "it says that it has what was never sent";
}

static void message_take(struct taking *taking, const struct frame_header *header,
                         unsigned char *bytes)
{
    frame_count(taking, header->flags & FRAME_WANTS_ACK);
    if (!sock.is_ending)
        fragment_deliver(&taking->peer->module->super, taking->peer, header->tag, bytes,
                         header->length);
}

/* So many bytes have come to the put's place, or are its padding. */
static size_t put_advance(struct taking *taking, size_t count)
{
    struct sock_intake *intake = &taking->peer->intake;
    size_t target = count < intake->target_left ? count : intake->target_left;
    size_t padding = count - target < intake->padding_left ? count - target : intake->padding_left;

    intake->target += target;
    intake->target_left -= target;
    intake->padding_left -= padding;
    if (intake->target_left == 0 && intake->padding_left == 0) {
        intake->is_put = false;
        frame_count(taking, intake->wants_ack);
    }
    return target + padding;
}

/* Its bytes follow. */
static void put_begin(struct taking *taking, const struct frame_header *header,
                      const struct frame_target *target)
{
    struct sock_intake *intake = &taking->peer->intake;
    size_t length = header->length - sizeof(*target);

    intake->named = (mca_btl_base_registration_handle_t){.key = target->key, .slot = target->slot};
    if (!registered_allows(&intake->named, target->address, length,
                           MCA_BTL_REG_FLAG_REMOTE_WRITE)) {
        taking->broken = "it writes to memory that is not registered";
        return;
    }
    intake->target = (unsigned char *) (uintptr_t) target->address;
    intake->target_left = length;
    intake->padding_left = FRAME_PADDING(length);
    intake->wants_ack = header->flags & FRAME_WANTS_ACK;
    intake->is_put = true;
    if (length == 0)
        (void) put_advance(taking, 0);
}

/* The same for bytes that were read elsewhere. */
static size_t put_copy(struct taking *taking, const unsigned char *bytes, size_t count)
{
    struct sock_intake *intake = &taking->peer->intake;

    memcpy(intake->target, bytes, count < intake->target_left ? count : intake->target_left);
    return put_advance(taking, count);
}

/* --- frames that have not come wholly --- */

static bool intake_room(struct sock_intake *intake, size_t bytes)
{
    if (bytes <= intake->room)
        return true;
    unsigned char *larger = realloc(intake->bytes, bytes);
    if (!larger)
        return false;
    intake->bytes = larger;
    intake->room = bytes;
    return true;
}

/* Keeps the beginning of a frame of which `want` bytes are awaited. */
static void intake_keep(struct taking *taking, const unsigned char *bytes, size_t count,
                        size_t want)
{
    struct sock_intake *intake = &taking->peer->intake;

    if (!intake_room(intake, want)) {
        taking->broken = "no memory for a message";
        return;
    }
    memcpy(intake->bytes, bytes, count);
    intake->have = count;
    intake->want = want;
}

/* --- frames --- */

/* A frame whose first whole_bytes are here. */
static void frame_take(struct taking *taking, unsigned char *bytes)
{
    const struct frame_header *header = (const struct frame_header *) (void *) bytes;

    if (OPAL_UNLIKELY(sock.is_right != NULL) && !sock.is_ending && header->kind == FRAME_MESSAGE &&
        !sock.is_right(&taking->peer->module->super, taking->peer, header->tag,
                       bytes + sizeof(*header), header->length)) {
        taking->broken = "it brings a message whose sum is wrong";
        return;
    }
    word_heard(taking, header);
    if (header->kind == FRAME_MESSAGE)
        message_take(taking, header, bytes + sizeof(*header));
    else if (header->kind == FRAME_PUT)
        put_begin(taking, header, (const struct frame_target *) (void *) (bytes + sizeof(*header)));
}

/* How many bytes of the frame that begins with these are wanted in one piece; 0: it is none. */
static size_t frame_wants(struct taking *taking, const unsigned char *bytes, size_t count)
{
    const struct frame_header *header = (const struct frame_header *) (const void *) bytes;

    if (count < sizeof(*header))
        return sizeof(*header);
    if (header_is_good(taking->peer, header))
        return whole_bytes(header);
    taking->broken = "it sends what is no message";
    if (sock.is_right && !sock.is_ending)
        (void) sock.is_right(&taking->peer->module->super, taking->peer, 0, NULL, 0);
    return 0;
}

static void bytes_take(struct taking *taking, unsigned char *bytes, size_t count)
{
    while (count > 0 && !taking->broken) {
        if (taking->peer->intake.is_put) {
            size_t taken = put_copy(taking, bytes, count);
            bytes += taken;
            count -= taken;
            continue;
        }
        size_t want = frame_wants(taking, bytes, count);
        if (want == 0)
            return;
        if (count < want) {
            intake_keep(taking, bytes, count, want);
            return;
        }
        frame_take(taking, bytes);
        bytes += want;
        count -= want;
    }
}

/* The kept frame has grown by what was read behind it; takes it if it is whole. Returns how many
 * of the bytes read elsewhere belong to it as well. */
static size_t kept_grow(struct taking *taking, const unsigned char *bytes, size_t count)
{
    struct sock_intake *intake = &taking->peer->intake;
    size_t want = frame_wants(taking, intake->bytes, intake->have), used = 0;

    if (want > intake->have) { /* it was only the header */
        if (!intake_room(intake, want)) {
            taking->broken = "no memory for a message";
            return 0;
        }
        used = count < want - intake->have ? count : want - intake->have;
        memcpy(intake->bytes + intake->have, bytes, used);
        intake->have += used;
        intake->want = want;
        if (intake->have < want)
            return used;
    }
    intake->have = intake->want = 0;
    if (want != 0)
        frame_take(taking, intake->bytes);
    return used;
}

/* --- one read --- */

static ssize_t read_once(sock_peer_t *peer, size_t *first)
{
    struct sock_intake *intake = &peer->intake;
    unsigned char padding[FRAME_ALIGNMENT];
    struct iovec parts[3];
    int count = 0;

    *first = 0;
    if (OPAL_LIKELY(!intake->is_put && intake->want == 0)) /* cheaper for the kernel */
        return recv(peer->link->fd, sock.buffer, INTAKE_BYTES, MSG_DONTWAIT);
    if (intake->is_put) {
        parts[count++] = (struct iovec){intake->target, intake->target_left};
        parts[count++] = (struct iovec){padding, intake->padding_left};
        *first = intake->target_left + intake->padding_left;
    } else {
        parts[count++] = (struct iovec){intake->bytes + intake->have, intake->want - intake->have};
        *first = intake->want - intake->have;
    }
    parts[count++] = (struct iovec){sock.buffer, INTAKE_BYTES};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t) count};
    return recvmsg(peer->link->fd, &message, MSG_DONTWAIT);
}

static void taken(struct taking *taking, size_t count, size_t first)
{
    struct sock_intake *intake = &taking->peer->intake;
    size_t part = count < first ? count : first, rest = count - part, used = 0;

    if (intake->is_put) {
        (void) put_advance(taking, part);
    } else if (intake->want > 0) {
        intake->have += part;
        if (intake->have == intake->want)
            used = kept_grow(taking, sock.buffer, rest);
    }
    if (rest > used)
        bytes_take(taking, sock.buffer + used, rest - used);
}

/* Tells the sender what has come, if it waits for that. */
static void word_give(sock_peer_t *peer, size_t count)
{
    OPAL_THREAD_LOCK(&peer->lock);
    if (peer->owed_told != peer->told)
        peer->owed_bytes = 0;
    peer->owed_told = peer->told;
    peer->owed_bytes = peer->have == peer->told ? 0 : peer->owed_bytes + count;
    if (peer->owes)
        sock_queue_write(peer);
    OPAL_THREAD_UNLOCK(&peer->lock);
}

void sock_intake_tell(sock_peer_t *peer)
{
    OPAL_THREAD_LOCK(&peer->lock);
    peer->owed_bytes = 0;
    if (peer->owed_told == peer->told) {
        peer->owes = true;
        sock_queue_write(peer);
    }
    OPAL_THREAD_UNLOCK(&peer->lock);
}

/* Of memory whose receive has ended before the put, as when its sender counts as lost, nothing is
 * left of the registration. */
static bool put_goes_on(const struct sock_intake *intake)
{
    return intake->target_left == 0 ||
           registered_allows(&intake->named, (uint64_t) (uintptr_t) intake->target,
                             intake->target_left, MCA_BTL_REG_FLAG_REMOTE_WRITE);
}

int sock_intake_read(sock_peer_t *peer, const char **broken)
{
    struct taking taking = {.peer = peer};
    size_t first;

    *broken = NULL;
    if (peer->intake.is_put && !put_goes_on(&peer->intake)) {
        *broken = "it writes to memory that is not registered any more";
        return 0;
    }
    ssize_t count = read_once(peer, &first);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (count <= 0) {
        *broken = count == 0 ? "the other end closed it" : strerror(errno);
        return 0;
    }
    OBJ_CONSTRUCT(&taking.done, opal_list_t);
    peer->intake.is_drained = (size_t) count < first + INTAKE_BYTES;
    taken(&taking, (size_t) count, first);
    if (!taking.broken)
        word_give(peer, (size_t) count);
    sock_works_complete(&taking.done, OPAL_SUCCESS);
    *broken = taking.broken;
    if (taking.broken)
        peer->wrongs++;
    return taking.events + 1;
}

void sock_intake_empty(sock_peer_t *peer)
{
    const char *broken = NULL;

    while (peer->link && !broken && sock_intake_read(peer, &broken) > 0)
        ;
}

void sock_intake_reset(sock_peer_t *peer)
{
    struct sock_intake *intake = &peer->intake;

    free(intake->bytes); /* peers stay until MPI ends */
    intake->bytes = NULL;
    intake->room = intake->have = intake->want = 0;
    intake->target_left = intake->padding_left = 0;
    intake->is_put = false;
}
