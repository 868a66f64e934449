/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages on their way into a ring: at once where there is room, by a queue where there is not. */
#include "btl/shm/shm.h"

#include <string.h>

#include "common/compat/tsan.h"
#include "opal/datatype/opal_convertor.h"

/* From this size on the payload begins on a line of its own: copying whole lines saves more than
 * the lost part of a line costs. */
#define ALIGN_PAYLOAD_MIN 256u

/* Where in its first line a message starts, so that its payload starts with a line. */
static inline unsigned start_of(size_t header_size, size_t payload_size)
{
    if (payload_size < ALIGN_PAYLOAD_MIN || header_size % 8 != 0)
        return RING_HEADER_BYTES;
    return RING_LINE_BYTES - (unsigned) (header_size % RING_LINE_BYTES);
}

/* Short copies without a call, as small messages need. */
static inline void bytes_copy(unsigned char *to, const unsigned char *from, size_t length)
{
    if (length > 64) {
        memcpy(to, from, length);
    } else if (length >= 32) {
        memcpy(to, from, 32);
        memcpy(to + length - 32, from + length - 32, 32);
    } else if (length >= 16) {
        memcpy(to, from, 16);
        memcpy(to + length - 16, from + length - 16, 16);
    } else if (length >= 8) {
        memcpy(to, from, 8);
        memcpy(to + length - 8, from + length - 8, 8);
    } else {
        for (size_t i = 0; i < length; i++)
            to[i] = from[i];
    }
}

static inline void doorbell_ring_if_unattended(shm_peer_t *peer)
{
    /* The compiler must not read it before it publishes; the processor may (attended.c). */
    atomic_signal_fence(memory_order_seq_cst);
    if (OPAL_UNLIKELY(!ring_is_attended(&peer->out)))
        shm_doorbell_ring(peer);
}

static inline void message_publish(shm_peer_t *peer, uint8_t tag, unsigned kind, unsigned start,
                                   size_t length)
{
    ring_publish(&peer->out, tag, kind, start, length);
    doorbell_ring_if_unattended(peer);
}

/* Writes header and payload into the ring: OPAL_SUCCESS; OPAL_ERR_RESOURCE_BUSY while it is full;
 * OPAL_ERR_OUT_OF_RESOURCE if the convertor packs fewer bytes than announced. */
static inline int message_write(shm_peer_t *peer, opal_convertor_t *convertor, const void *header,
                                size_t header_size, size_t payload_size, uint8_t tag)
{
    size_t length = header_size + payload_size;
    unsigned start = start_of(header_size, payload_size);
    unsigned char *room = ring_reserve(&peer->out, start, length);

    if (OPAL_UNLIKELY(!room))
        return OPAL_ERR_RESOURCE_BUSY;
    /* The payload first: the receiver polls the first line, which should move between caches only
     * once. */
    if (OPAL_UNLIKELY(!fragment_pack(convertor, room + header_size, payload_size)))
        return OPAL_ERR_OUT_OF_RESOURCE;
    bytes_copy(room, header, header_size);
    message_publish(peer, tag, SHM_KIND_ACTIVE, start, length);
    return OPAL_SUCCESS;
}

static mca_btl_base_descriptor_t *frag_get(uint8_t order, size_t size, uint32_t flags)
{
    opal_free_list_t *list = size <= SHM_FRAG_SMALL ? &shm.frags_small : &shm.frags_large;

    if (OPAL_UNLIKELY(size > shm.fragment_bytes))
        return NULL;
    struct shm_frag *frag = (struct shm_frag *) tsan_list_get(list);
    if (OPAL_UNLIKELY(!frag))
        return NULL;
    frag->list = list;
    frag->kind = SHM_KIND_ACTIVE;
    frag->written = 0;
    frag->piece = (struct shm_piece){0};
    fragment_begin(&frag->base, frag->segments, frag->data, size, order, flags);
    return &frag->base;
}

mca_btl_base_descriptor_t *shm_send_alloc(mca_btl_base_module_t *btl, shm_peer_t *peer,
                                          uint8_t order, size_t size, uint32_t flags)
{
    return frag_get(order, size, flags);
}

int shm_send_free(mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *descriptor)
{
    struct shm_frag *frag = (struct shm_frag *) descriptor;

    tsan_list_return(frag->list, &frag->base.super);
    return OPAL_SUCCESS;
}

mca_btl_base_descriptor_t *shm_send_prepare(mca_btl_base_module_t *btl, shm_peer_t *peer,
                                            opal_convertor_t *convertor, uint8_t order,
                                            size_t reserve, size_t *size, uint32_t flags)
{
    return fragment_prepare(btl, peer, convertor, order, reserve, size, flags, 0);
}

static size_t frag_length(const struct shm_frag *frag)
{
    return frag->segments[0].seg_len +
           (frag->base.des_segment_count == 2 ? frag->segments[1].seg_len : 0);
}

/* Under peer->lock. Room as ring_reserve gives it, in a larger ring if this one is used up or too
 * small and there is memory. */
static unsigned char *room_get(shm_peer_t *peer, unsigned start, size_t length)
{
    unsigned char *room = NULL;

    do {
        if (OPAL_LIKELY(length <= peer->length_max))
            room = ring_reserve(&peer->out, start, length);
    } while (OPAL_UNLIKELY(!room) && shm_outbound_grow(peer, length));
    return room;
}

/* Copies `size` bytes from `offset` on of what the fragment's two segments hold. */
static void frag_copy(const struct shm_frag *frag, size_t offset, unsigned char *to, size_t size)
{
    for (size_t i = 0; i < frag->base.des_segment_count && size > 0; i++) {
        size_t all = frag->segments[i].seg_len;
        size_t skipped = offset < all ? offset : all;
        size_t part = all - skipped < size ? all - skipped : size;

        if (part != 0)
            memcpy(to, (const unsigned char *) frag->segments[i].seg_addr.pval + skipped, part);
        offset -= skipped;
        to += part;
        size -= part;
    }
}

/* Under peer->lock. For a message that no ring of ours is large enough for. False: it goes on when
 * there is room. */
static bool frag_write_pieces(shm_peer_t *peer, struct shm_frag *frag)
{
    uint32_t length = (uint32_t) frag_length(frag);
    struct shm_piece piece = {.whole = frag->piece.whole != 0 ? frag->piece.whole : length};

    while (frag->written < length) {
        size_t left = length - frag->written, most = peer->length_max - sizeof(piece);
        size_t size = left < most ? left : most;
        unsigned char *room = ring_reserve(&peer->out, RING_HEADER_BYTES, sizeof(piece) + size);

        if (!room && shm_outbound_grow(peer, sizeof(piece) + size))
            continue;
        if (!room)
            return false;
        piece.offset = frag->piece.offset + frag->written;
        memcpy(room, &piece, sizeof(piece));
        frag_copy(frag, frag->written, room + sizeof(piece), size);
        message_publish(peer, frag->tag,
                        frag->kind == SHM_KIND_ACTIVE ? SHM_KIND_ACTIVE_PIECE
                                                      : SHM_KIND_REMOTE_PIECE,
                        RING_HEADER_BYTES, sizeof(piece) + size);
        frag->written += (uint32_t) size;
    }
    return true;
}

/* Under peer->lock. False: no room. */
static bool frag_write(shm_peer_t *peer, struct shm_frag *frag)
{
    size_t first = frag->segments[0].seg_len;
    size_t second = frag_length(frag) - first;
    unsigned start = start_of(first, second);
    bool in_pieces = frag->written != 0 || frag->piece.whole != 0;
    unsigned char *room = in_pieces ? NULL : room_get(peer, start, first + second);

    if (!room)
        return (in_pieces || first + second > peer->length_max) && frag_write_pieces(peer, frag);
    if (second != 0)
        memcpy(room + first, frag->segments[1].seg_addr.pval, second);
    bytes_copy(room, frag->segments[0].seg_addr.pval, first);
    message_publish(peer, frag->tag, frag->kind, start, first + second);
    return true;
}

/* Under peer->lock. */
static void frag_queue(shm_peer_t *peer, struct shm_frag *frag)
{
    peer->out_direct = false;
    opal_list_append(&peer->pending, (opal_list_item_t *) frag);
    peer_list_add(&shm.pending, &peer->pending_place, peer);
}

/* 1: in the ring, or the peer has ended in order. 0: queued. Below 0: the peer is lost. */
static int frag_submit(shm_peer_t *peer, struct shm_frag *frag)
{
    int status = OPAL_SUCCESS;

    biased_lock(&peer->lock);
    if (OPAL_UNLIKELY(peer->out_state == OUT_NONE))
        shm_outbound_open(peer);
    if (OPAL_UNLIKELY(peer->out_state == OUT_DEAD))
        status = peer->gone ? 1 : OPAL_ERR_UNREACH;
    else if (OPAL_LIKELY(peer->out_direct) && frag_write(peer, frag))
        status = 1;
    else
        frag_queue(peer, frag);
    biased_unlock(&peer->lock);
    return status;
}

int shm_send_start(mca_btl_base_module_t *btl, shm_peer_t *peer,
                   mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag)
{
    struct shm_frag *frag = (struct shm_frag *) descriptor;

    frag->tag = tag;
    int status = frag_submit(peer, frag);
    if (status != 1)
        return status;
    bool callback = (frag->base.des_flags & MCA_BTL_DES_SEND_ALWAYS_CALLBACK) != 0;
    fragment_end(btl, peer, descriptor, callback, OPAL_SUCCESS);
    return 1;
}

/* If the fast path cannot send: no ring yet, messages that wait, a full ring. Messages for a peer
 * that has ended in order are dropped as if they had been sent. */
static __attribute__((noinline)) int immediate_slow(shm_peer_t *peer, size_t header_size,
                                                    size_t payload_size, uint8_t order,
                                                    uint32_t flags, int status,
                                                    mca_btl_base_descriptor_t **descriptor)
{
    if (descriptor)
        *descriptor = frag_get(order, header_size + payload_size, flags);
    return peer->out_state == OUT_DEAD ? OPAL_ERR_UNREACH : status;
}

int shm_send_immediate(mca_btl_base_module_t *btl, shm_peer_t *peer, opal_convertor_t *convertor,
                       void *header, size_t header_size, size_t payload_size, uint8_t order,
                       uint32_t flags, mca_btl_base_tag_t tag,
                       mca_btl_base_descriptor_t **descriptor)
{
    int status = OPAL_ERR_OUT_OF_RESOURCE;

    biased_lock(&peer->lock);
    if (OPAL_UNLIKELY(peer->out_state == OUT_NONE))
        shm_outbound_open(peer);
    if (OPAL_LIKELY(peer->out_direct && header_size + payload_size <= peer->length_max))
        status = message_write(peer, convertor, header, header_size, payload_size, tag);
    if (OPAL_UNLIKELY(status != OPAL_SUCCESS && peer->out_direct) &&
        room_get(peer, start_of(header_size, payload_size), header_size + payload_size))
        status = message_write(peer, convertor, header, header_size, payload_size, tag);
    biased_unlock(&peer->lock);
    if (OPAL_LIKELY(status == OPAL_SUCCESS) || OPAL_UNLIKELY(peer->gone))
        return OPAL_SUCCESS;
    return immediate_slow(peer, header_size, payload_size, order, flags, status, descriptor);
}

/* Whether it is a message of one line in a process with one thread. */
static inline bool is_simple(size_t header_size, size_t payload_size)
{
    return !opal_using_threads() && header_size + payload_size <= RING_LINE_PAYLOAD;
}

/* A piece of a large message leaves this part of the ring to short ones: the next message behind it
 * can be announced, and the peer, who may be the only one in MPI, can get it by itself. */
#define BULK_BYTES      4096u
#define KEPT_BACK_SHARE 16u

static inline uint64_t kept_back_lines(const shm_peer_t *peer)
{
    return peer->out_lines / KEPT_BACK_SHARE;
}

/* Under peer->lock. */
static unsigned char *bulk_room_get(shm_peer_t *peer, unsigned start, size_t length)
{
    uint64_t wanted = ring_lines_of(start, length) + kept_back_lines(peer);

    if (OPAL_LIKELY(ring_free_lines(&peer->out) >= wanted) || shm_outbound_grow(peer, length))
        return room_get(peer, start, length);
    return NULL;
}

size_t shm_send_room(mca_btl_base_module_t *btl, shm_peer_t *peer)
{
    biased_lock(&peer->lock);
    /* It may have refused a line because it is to be asked about its growth. */
    if (peer->out_direct)
        (void) room_get(peer, RING_HEADER_BYTES, RING_LINE_PAYLOAD);
    uint64_t lines = peer->out_direct ? ring_free_lines(&peer->out) : 0;
    uint64_t kept_back = kept_back_lines(peer);
    /* A ring that stays small takes no piece whole. */
    bool takes_pieces =
        peer->out_state == OUT_OPEN && peer->length_max >= shm_module.btl_max_send_size;
    biased_unlock(&peer->lock);
    if (OPAL_UNLIKELY(!takes_pieces))
        return SIZE_MAX;
    return lines <= kept_back ? 0 : ring_bytes((uint32_t) (lines - kept_back));
}

static __attribute__((noinline)) void *reserve_any(shm_peer_t *peer, size_t header_size,
                                                   size_t payload_size)
{
    size_t length = header_size + payload_size;
    unsigned start = start_of(header_size, payload_size);
    void *room = NULL;

    biased_lock(&peer->lock);
    if (OPAL_LIKELY(peer->out_direct))
        room = payload_size < BULK_BYTES ? room_get(peer, start, length)
                                         : bulk_room_get(peer, start, length);
    if (OPAL_UNLIKELY(!room))
        biased_unlock(&peer->lock);
    return room;
}

void *shm_send_reserve(mca_btl_base_module_t *btl, shm_peer_t *peer, size_t header_size,
                       size_t payload_size)
{
    if (OPAL_UNLIKELY(!is_simple(header_size, payload_size)))
        return reserve_any(peer, header_size, payload_size);
    return OPAL_LIKELY(peer->out_direct) ? ring_reserve_line(&peer->out) : NULL;
}

static __attribute__((noinline)) void commit_any(shm_peer_t *peer, size_t header_size,
                                                 size_t payload_size, uint8_t tag, unsigned kind)
{
    message_publish(peer, tag, kind, start_of(header_size, payload_size),
                    header_size + payload_size);
    biased_unlock(&peer->lock);
}

void shm_send_commit(mca_btl_base_module_t *btl, shm_peer_t *peer, size_t header_size,
                     size_t payload_size, uint8_t tag)
{
    if (OPAL_UNLIKELY(!is_simple(header_size, payload_size))) {
        commit_any(peer, header_size, payload_size, tag, SHM_KIND_ACTIVE);
    } else {
        ring_publish_line(&peer->out, tag, SHM_KIND_ACTIVE, header_size + payload_size);
        doorbell_ring_if_unattended(peer);
    }
}

/* A message of kind SHM_KIND_REMOTE that has to wait: no ring yet, other messages before it, a full
 * ring. */
static int remote_queue(shm_peer_t *peer, const void *header, size_t header_size, const void *data,
                        size_t size)
{
    mca_btl_base_descriptor_t *descriptor =
        frag_get(MCA_BTL_NO_ORDER, header_size + size, MCA_BTL_DES_FLAGS_BTL_OWNERSHIP);
    struct shm_frag *frag = (struct shm_frag *) descriptor;

    if (!frag)
        return OPAL_ERR_OUT_OF_RESOURCE;
    frag->kind = SHM_KIND_REMOTE;
    frag->tag = 0;
    memcpy(frag->data, header, header_size);
    if (size != 0)
        memcpy(frag->data + header_size, data, size);
    int status = frag_submit(peer, frag);
    if (status == 1 || status < 0)
        shm_send_free(&shm_module, descriptor);
    return status == 1 ? OPAL_SUCCESS : status;
}

int shm_send_remote(shm_peer_t *peer, const void *header, size_t header_size, const void *data,
                    size_t size)
{
    unsigned char *room = reserve_any(peer, header_size, size);

    if (OPAL_UNLIKELY(!room))
        return remote_queue(peer, header, header_size, data, size);
    if (size != 0)
        memcpy(room + header_size, data, size);
    bytes_copy(room, header, header_size);
    commit_any(peer, header_size, size, 0, SHM_KIND_REMOTE);
    return OPAL_SUCCESS;
}

/* Takes the next waiting fragment off the queue if the ring took it. */
static struct shm_frag *pending_send_one(shm_peer_t *peer)
{
    struct shm_frag *frag = NULL;

    biased_lock(&peer->lock);
    if (peer->out_state == OUT_WAITING || peer->out_state == OUT_NONE)
        shm_outbound_open(peer);
    if ((peer->out_state == OUT_OPEN || peer->gone) && !opal_list_is_empty(&peer->pending)) {
        frag = (struct shm_frag *) opal_list_get_first(&peer->pending);
        if (peer->gone || frag_write(peer, frag)) {
            opal_list_remove_item(&peer->pending, (opal_list_item_t *) frag);
        } else {
            frag = NULL;
        }
    }
    if (peer->out_state == OUT_OPEN && opal_list_is_empty(&peer->pending))
        peer->out_direct = true;
    biased_unlock(&peer->lock);
    return frag;
}

/* A message, or a piece of one, that was written into a ring. */
static struct shm_frag *frag_of(const struct ring_message *message)
{
    bool is_piece = message->kind >= SHM_KIND_ACTIVE_PIECE;
    uint32_t skipped = is_piece ? sizeof(struct shm_piece) : 0;
    struct shm_frag *frag = (struct shm_frag *) frag_get(
        MCA_BTL_NO_ORDER, message->length - skipped, MCA_BTL_DES_FLAGS_BTL_OWNERSHIP);

    if (!frag)
        return NULL;
    frag->tag = message->tag;
    frag->kind = message->kind;
    if (is_piece) {
        frag->kind = message->kind == SHM_KIND_ACTIVE_PIECE ? SHM_KIND_ACTIVE : SHM_KIND_REMOTE;
        memcpy(&frag->piece, message->payload, sizeof(frag->piece));
    }
    memcpy(frag->data, (unsigned char *) message->payload + skipped, message->length - skipped);
    return frag;
}

/* Under peer->lock. All that was written into the ring in use, of which nothing was read, waits
 * before what waits already. */
static bool ring_take_back(shm_peer_t *peer)
{
    struct shm_frag *frag = NULL;
    struct ring_receiver reader;
    struct ring_message message;
    opal_list_t taken;

    OBJ_CONSTRUCT(&taken, opal_list_t);
    ring_receiver_init(&reader, peer->out_channel->lines, peer->out_lines,
                       &peer->out_channel->feedback);
    while (ring_peek(&reader, &message) == RING_MESSAGE && (frag = frag_of(&message))) {
        opal_list_append(&taken, (opal_list_item_t *) frag);
        ring_release(&reader, &message);
    }
    opal_list_join(&peer->pending, opal_list_get_first(&peer->pending), &taken);
    OBJ_DESTRUCT(&taken);
    return reader.tail == peer->out.head;
}

bool shm_send_refused(shm_peer_t *peer)
{
    if (!peer->out_connection || !peer->out_channel ||
        !ring_move_refused(&peer->out_connection->move, peer->out_ring))
        return true;
    bool all = ring_take_back(peer);
    shm_outbound_return(peer);
    peer->out_direct = false;
    peer_list_add(&shm.pending, &peer->pending_place, peer);
    return all;
}

int shm_send_pending_of(shm_peer_t *peer)
{
    struct shm_frag *frag;
    int events = 0;

    while ((frag = pending_send_one(peer))) {
        /* At the end of the module the callbacks are gone. */
        fragment_end(&shm_module, peer, &frag->base, !shm.finalized, OPAL_SUCCESS);
        events++;
    }
    return events;
}

void shm_send_fail_pending(shm_peer_t *peer)
{
    struct shm_frag *frag;

    do {
        biased_lock(&peer->lock);
        frag = (struct shm_frag *) opal_list_remove_first(&peer->pending);
        biased_unlock(&peer->lock);
        if (frag)
            fragment_end(&shm_module, peer, &frag->base, true, OPAL_ERR_UNREACH);
    } while (frag);
}
