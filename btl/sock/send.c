/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages and puts: how they get into works, and those into the peer's queue. */
#include "btl/sock/sock.h"

#include <string.h>

#include "opal/datatype/opal_convertor.h"

/* Unacknowledged bytes beyond which short sends are refused. */
#define KEPT_MOST (8u << 20)

/* OPAL_SUCCESS: the peer's queue has it, and its end will come. */
static int submit(sock_peer_t *peer, struct sock_work *work, size_t kept_most)
{
    int status = OPAL_ERR_UNREACH;

    OPAL_THREAD_LOCK(&peer->lock);
    if (sock_peer_state(peer) == PEER_UP) {
        status = peer->kept_bytes > kept_most ? OPAL_ERR_RESOURCE_BUSY : OPAL_SUCCESS;
        if (status == OPAL_SUCCESS)
            sock_queue_add(peer, work);
        if (!peer->link)
            sock_link_call(peer);
    }
    OPAL_THREAD_UNLOCK(&peer->lock);
    return status;
}

static int message_submit(sock_peer_t *peer, struct sock_work *work, mca_btl_base_tag_t tag,
                          uint8_t flags, size_t kept_most)
{
    size_t length = work->segment.seg_len, padding = FRAME_PADDING(length);
    const struct frame_header header = {
        .length = (uint32_t) length, .kind = FRAME_MESSAGE, .tag = tag, .flags = flags};

    memcpy(work->memory, &header, sizeof(header));
    memset(work->memory + sizeof(header) + length, 0, padding);
    work->own_bytes = sizeof(header) + length + padding;
    return submit(peer, work, kept_most);
}

int sock_send_start(mca_btl_base_module_t *btl, sock_peer_t *peer,
                    mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag)
{
    (void) btl;
    return message_submit(peer, (struct sock_work *) descriptor, tag,
                          descriptor->des_cbfunc ? FRAME_WANTS_ACK : 0, SIZE_MAX);
}

/* Packs a message into a work of ours. */
static struct sock_work *work_of(mca_btl_base_module_t *btl, sock_peer_t *peer,
                                 opal_convertor_t *convertor, const void *header,
                                 size_t header_size, size_t payload_size)
{
    mca_btl_base_descriptor_t *descriptor =
        sock_work_alloc(btl, peer, MCA_BTL_NO_ORDER, header_size + payload_size,
                        MCA_BTL_DES_FLAGS_BTL_OWNERSHIP);
    size_t packed = payload_size;

    if (!descriptor)
        return NULL;
    unsigned char *room = descriptor->des_segments[0].seg_addr.pval;
    memcpy(room, header, header_size);
    struct iovec part = {.iov_base = room + header_size, .iov_len = payload_size};
    uint32_t parts = 1;
    if (payload_size != 0 && (opal_convertor_pack(convertor, &part, &parts, &packed) < 0 ||
                              packed != payload_size)) {
        sock_work_free(btl, descriptor);
        return NULL;
    }
    return (struct sock_work *) descriptor;
}

int sock_send_immediate(mca_btl_base_module_t *btl, sock_peer_t *peer, opal_convertor_t *convertor,
                        void *header, size_t header_size, size_t payload_size, uint8_t order,
                        uint32_t flags, mca_btl_base_tag_t tag,
                        mca_btl_base_descriptor_t **descriptor)
{
    /* Before packing it for nothing. Relaxed by nature: submit looks again. */
    OPAL_THREAD_LOCK(&peer->lock);
    int status = peer->kept_bytes > KEPT_MOST ? OPAL_ERR_RESOURCE_BUSY : OPAL_SUCCESS;
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (status == OPAL_SUCCESS) {
        struct sock_work *work =
            work_of(btl, peer, convertor, header, header_size, payload_size);
        status = work ? message_submit(peer, work, tag, 0, KEPT_MOST) : OPAL_ERR_OUT_OF_RESOURCE;
        if (work && status != OPAL_SUCCESS)
            sock_work_free(btl, &work->base);
    }
    if (OPAL_LIKELY(status == OPAL_SUCCESS))
        return OPAL_SUCCESS;
    if (descriptor)
        *descriptor = sock_work_alloc(btl, peer, order, header_size + payload_size, flags);
    return status;
}

int sock_send_put(mca_btl_base_module_t *btl, sock_peer_t *peer, void *local_address,
                  uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
                  mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
                  int order, mca_btl_base_rdma_completion_fn_t callback, void *context, void *data)
{
    (void) flags;
    (void) order;
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
    work->payload = local_address;
    work->payload_bytes = size;
    work->local = local_address;
    work->local_handle = local_handle;
    work->callback = callback;
    work->context = context;
    work->data = data;
    int status = submit(peer, work, SIZE_MAX);
    if (status != OPAL_SUCCESS)
        sock_work_free(btl, &work->base);
    return status;
}
