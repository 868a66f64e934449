/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages: how their bytes get into works. */
#include "btl/verbs/verbs.h"

int verbs_send_start(mca_btl_base_module_t *btl, verbs_peer_t *peer,
                     mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag)
{
    struct verbs_work *work = (struct verbs_work *) descriptor;

    work->tag = tag;
    work->number = 0; /* it may have been sent before */
    return verbs_submit(peer, work);
}

static int immediate_inline(verbs_peer_t *peer, opal_convertor_t *convertor, const void *header,
                            size_t header_size, size_t payload_size, mca_btl_base_tag_t tag)
{
    unsigned char payload[payload_size + 1];
    struct ibv_sge parts[2] = {
        {.addr = (uint64_t) (uintptr_t) header, .length = (uint32_t) header_size},
        {.addr = (uint64_t) (uintptr_t) payload, .length = (uint32_t) payload_size}};

    if (!fragment_pack(convertor, payload, payload_size))
        return OPAL_ERR_OUT_OF_RESOURCE;
    verbs_work_copied(payload_size);
    return verbs_submit_inline(peer, parts, payload_size == 0 ? 1 : 2, tag);
}

/* A message too long to be inline, or kept, goes through a descriptor of our own, if it can be
 * posted now. */
static int immediate_copied(mca_btl_base_module_t *btl, verbs_peer_t *peer,
                            opal_convertor_t *convertor, const void *header, size_t header_size,
                            size_t payload_size, mca_btl_base_tag_t tag)
{
    if (verbs_peer_state(peer) != PEER_READY)
        return OPAL_ERR_OUT_OF_RESOURCE;
    OPAL_THREAD_LOCK(&peer->lock);
    bool is_full = peer->send_room == 0 && opal_list_is_empty(&peer->pending);
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (is_full) /* before packing it for nothing */
        return OPAL_ERR_RESOURCE_BUSY;
    struct verbs_work *work = (struct verbs_work *) fragment_copy(btl, peer, convertor, header,
                                                                  header_size, payload_size);
    if (!work)
        return OPAL_ERR_OUT_OF_RESOURCE;
    verbs_work_copied(payload_size);
    work->tag = tag;
    int status = verbs_submit_now(peer, work);
    if (status != OPAL_SUCCESS)
        verbs_work_free(btl, &work->base);
    return status;
}

int verbs_send_immediate(mca_btl_base_module_t *btl, verbs_peer_t *peer,
                         opal_convertor_t *convertor, void *header, size_t header_size,
                         size_t payload_size, uint8_t order, uint32_t flags, mca_btl_base_tag_t tag,
                         mca_btl_base_descriptor_t **descriptor)
{
    size_t size = header_size + payload_size;
    /* What has no work cannot be kept. */
    int status =
        size <= module_of(btl)->inline_max && !verbs_peer_keeps(peer)
            ? immediate_inline(peer, convertor, header, header_size, payload_size, tag)
            : immediate_copied(btl, peer, convertor, header, header_size, payload_size, tag);

    if (OPAL_LIKELY(status == OPAL_SUCCESS))
        return OPAL_SUCCESS;
    if (descriptor)
        *descriptor = verbs_work_alloc(btl, peer, order, size, flags);
    return verbs_peer_state(peer) == PEER_FAILED ? OPAL_ERR_UNREACH : status;
}
