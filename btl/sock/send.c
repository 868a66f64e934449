/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages and puts: how they get into works, and those into the peer's queue. */
#include "btl/sock/sock.h"

#include <string.h>

/* Linux gives a new connection a buffer of 85 KiB, or more where segments are larger. */
#define AT_ONCE_BYTES (64u << 10)

/* Does the socket take a message of so many bytes now, and wholly? Under the peer's lock. */
static bool takes_at_once(const sock_peer_t *peer, size_t size)
{
    return sock_peer_state(peer) == PEER_UP && peer->link && peer->can_write &&
           peer->ack_left == 0 && opal_list_is_empty((opal_list_t *) &peer->pending) &&
           peer->kept_bytes + size <= AT_ONCE_BYTES;
}

/* Under the peer's lock. Who sent it knows no other lane, but the PML does, which it returns to. */
static bool will_return(const sock_peer_t *peer, const struct sock_work *work)
{
    const struct frame_header *header = (const struct frame_header *) (const void *) work->memory;

    return sock_peer_state(peer) == PEER_FAILED && peer->returned && !work->is_put &&
           !multilane_tag_is_of_pml(header->tag);
}

/* Under the peer's lock. The other end has said goodbye, and closed the connection. */
static bool has_gone(const sock_peer_t *peer)
{
    return sock_peer_state(peer) == PEER_ENDED && !peer->link;
}

/* Under the peer's lock. OPAL_SUCCESS: the peer's queue has it, and its end will come. */
static int submit(sock_peer_t *peer, struct sock_work *work)
{
    if (has_gone(peer) || (sock_peer_state(peer) == PEER_FAILED && !will_return(peer, work)))
        return OPAL_ERR_UNREACH;
    sock_queue_add(peer, work);
    if (!peer->link && sock_peer_state(peer) == PEER_UP)
        sock_link_call(peer);
    return OPAL_SUCCESS;
}

static void message_header(struct sock_work *work, mca_btl_base_tag_t tag)
{
    size_t length = work->segments[0].seg_len, padding = work->payload ? 0 : FRAME_PADDING(length);
    const struct frame_header header = {.length = (uint32_t) (length + work->payload_bytes),
                                        .kind = FRAME_MESSAGE,
                                        .tag = tag,
                                        .flags = sock_work_is_ours(work) ? 0 : FRAME_WANTS_ACK};

    memcpy(work->memory, &header, sizeof(header));
    memset(work->memory + sizeof(header) + length, 0, padding);
    work->own_bytes = sizeof(header) + length + padding;
}

/* The kernel has all of it: its bytes have left this process, and its owner need not wait for the
 * other end, which may compute. The lane keeps it until that has it. */
static void message_left(sock_peer_t *peer, struct sock_work *work)
{
    mca_btl_base_completion_fn_t callback = work->base.des_cbfunc;

    if (callback && !sock.is_ending)
        callback(&peer->module->super, peer, &work->base, OPAL_SUCCESS);
    OPAL_THREAD_LOCK(&peer->lock);
    work->base.des_cbfunc = NULL;
    work->is_held = false;
    bool is_over = work->is_received;
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (is_over)
        sock_work_complete(work, OPAL_SUCCESS);
}

void sock_send_left(sock_peer_t *peer)
{
    struct sock_work *next;

    OPAL_THREAD_LOCK(&peer->lock);
    struct sock_work *work = atomic_load_explicit(&peer->left, memory_order_relaxed);
    atomic_store_explicit(&peer->left, NULL, memory_order_relaxed);
    OPAL_THREAD_UNLOCK(&peer->lock);
    for (; work; work = next) {
        next = work->next_left;
        message_left(peer, work);
    }
}

int sock_send_start(mca_btl_base_module_t *btl, sock_peer_t *peer,
                    mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag)
{
    struct sock_work *work = (struct sock_work *) descriptor;
    bool is_ours = sock_work_is_ours(work);

    message_header(work, tag);
    OPAL_THREAD_LOCK(&peer->lock);
    work->is_held = is_ours;
    /* A message to a process that has ended, as that there is room again, counts as sent. */
    bool is_dropped = has_gone(peer);
    int status = is_dropped ? OPAL_SUCCESS : submit(peer, work);
    /* Written wholly, as nothing is pending? */
    bool has_left =
        status == OPAL_SUCCESS && is_ours && opal_list_is_empty(&peer->pending) && peer->link;
    work->is_held = has_left;
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (has_left)
        message_left(peer, work);
    if (is_dropped)
        sock_work_complete(work, OPAL_SUCCESS);
    return status;
}

int sock_send_immediate(mca_btl_base_module_t *btl, sock_peer_t *peer, opal_convertor_t *convertor,
                        void *header, size_t header_size, size_t payload_size, uint8_t order,
                        uint32_t flags, mca_btl_base_tag_t tag,
                        mca_btl_base_descriptor_t **descriptor)
{
    OPAL_THREAD_LOCK(&peer->lock);
    bool takes =
        takes_at_once(peer, header_size + payload_size); /* before packing it for nothing */
    OPAL_THREAD_UNLOCK(&peer->lock);
    struct sock_work *work = NULL;
    if (takes)
        work = (struct sock_work *) fragment_copy(btl, peer, convertor, header, header_size,
                                                  payload_size);
    int status = OPAL_ERR_OUT_OF_RESOURCE;
    if (work) {
        message_header(work, tag);
        OPAL_THREAD_LOCK(&peer->lock);
        if (takes_at_once(peer, header_size + payload_size))
            status = submit(peer, work);
        OPAL_THREAD_UNLOCK(&peer->lock);
        if (status != OPAL_SUCCESS)
            sock_work_free(btl, &work->base);
    }
    if (OPAL_LIKELY(status == OPAL_SUCCESS))
        return OPAL_SUCCESS;
    if (descriptor)
        *descriptor = sock_work_alloc(btl, peer, order, header_size + payload_size, flags);
    return status;
}

int sock_send_put(REMOTE_FROM(sock_peer_t), size_t size, REMOTE_ENDING)
{
    if (OPAL_UNLIKELY(size > btl->btl_put_limit))
        return OPAL_ERR_NOT_AVAILABLE;
    struct sock_work *work = (struct sock_work *) sock_work_alloc(btl, peer, MCA_BTL_NO_ORDER,
                                                                  sizeof(struct frame_target), 0);
    if (!work)
        return OPAL_ERR_TEMP_OUT_OF_RESOURCE;
    const struct frame_header header = {.length = (uint32_t) (sizeof(struct frame_target) + size),
                                        .kind = FRAME_PUT,
                                        .flags = FRAME_WANTS_ACK};
    const struct frame_target target = {
        .address = remote_address, .key = remote_handle->key, .slot = remote_handle->slot};
    memcpy(work->memory, &header, sizeof(header));
    memcpy(work->memory + sizeof(header), &target, sizeof(target));
    work->own_bytes = sizeof(header) + sizeof(target);
    work->is_put = true;
    work->payload = local_address;
    work->payload_bytes = size;
    work->request = REMOTE_REQUEST;
    OPAL_THREAD_LOCK(&peer->lock);
    int status = submit(peer, work);
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (status != OPAL_SUCCESS)
        sock_work_free(btl, &work->base);
    return status;
}
