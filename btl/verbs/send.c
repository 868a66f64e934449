/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages before they are posted: descriptors in registered memory, and how bytes get into them.
 */
#include "btl/verbs/verbs.h"

#include <string.h>

#include "opal/datatype/opal_convertor.h"

#define FRAG_ALIGNMENT 64u

int verbs_lists_open(struct verbs_module *module)
{
    int status;

    OBJ_CONSTRUCT(&module->frags_small, opal_free_list_t);
    OBJ_CONSTRUCT(&module->frags_large, opal_free_list_t);
    OBJ_CONSTRUCT(&module->operations, opal_free_list_t);
    module->lists_ready = true;
    status = opal_free_list_init(&module->operations, sizeof(struct verbs_work), FRAG_ALIGNMENT,
                                 OBJ_CLASS(struct_verbs_work), 0, FRAG_ALIGNMENT, 0, -1, 64, NULL,
                                 0, NULL, NULL, NULL);
    if (status == OPAL_SUCCESS)
        status =
            opal_free_list_init(&module->frags_small, sizeof(struct verbs_work), FRAG_ALIGNMENT,
                                OBJ_CLASS(struct_verbs_work), VERBS_FRAG_SMALL, FRAG_ALIGNMENT, 32,
                                -1, 64, NULL, 0, module->rcache, NULL, NULL);
    if (status == OPAL_SUCCESS)
        status =
            opal_free_list_init(&module->frags_large, sizeof(struct verbs_work), FRAG_ALIGNMENT,
                                OBJ_CLASS(struct_verbs_work), module->super.btl_max_send_size,
                                FRAG_ALIGNMENT, 0, -1, 16, NULL, 0, module->rcache, NULL, NULL);
    return status;
}

void verbs_lists_close(struct verbs_module *module)
{
    if (!module->lists_ready)
        return;
    module->lists_ready = false;
    OBJ_DESTRUCT(&module->operations);
    OBJ_DESTRUCT(&module->frags_large);
    OBJ_DESTRUCT(&module->frags_small);
}

mca_btl_base_descriptor_t *verbs_send_alloc(mca_btl_base_module_t *btl, verbs_peer_t *peer,
                                            uint8_t order, size_t size, uint32_t flags)
{
    struct verbs_module *module = module_of(btl);
    opal_free_list_t *list = size <= VERBS_FRAG_SMALL ? &module->frags_small : &module->frags_large;
    struct verbs_work *work;

    if (OPAL_UNLIKELY(size > btl->btl_max_send_size))
        return NULL;
    work = (struct verbs_work *) opal_free_list_get(list);
    if (OPAL_UNLIKELY(!work))
        return NULL;
    work->list = list;
    work->peer = peer;
    work->kind = WORK_SEND;
    work->base.order = order;
    work->base.des_flags = flags;
    work->base.des_cbfunc = NULL;
    work->base.des_segment_count = 1;
    work->segment.seg_addr.pval = work->base.super.ptr;
    work->segment.seg_len = size;
    return &work->base;
}

int verbs_send_free(mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *descriptor)
{
    struct verbs_work *work = (struct verbs_work *) descriptor;

    (void) btl;
    opal_free_list_return(work->list, &work->base.super);
    return OPAL_SUCCESS;
}

mca_btl_base_descriptor_t *verbs_send_prepare(mca_btl_base_module_t *btl, verbs_peer_t *peer,
                                              opal_convertor_t *convertor, uint8_t order,
                                              size_t reserve, size_t *size, uint32_t flags)
{
    size_t max = btl->btl_max_send_size - reserve;
    struct iovec part = {.iov_len = *size < max ? *size : max};
    uint32_t parts = 1;
    size_t packed = part.iov_len;
    mca_btl_base_descriptor_t *descriptor =
        verbs_send_alloc(btl, peer, order, reserve + part.iov_len, flags);

    if (OPAL_UNLIKELY(!descriptor))
        return NULL;
    part.iov_base = (unsigned char *) descriptor->des_segments[0].seg_addr.pval + reserve;
    if (OPAL_UNLIKELY(opal_convertor_pack(convertor, &part, &parts, &packed) < 0)) {
        verbs_send_free(btl, descriptor);
        return NULL;
    }
    *size = packed;
    descriptor->des_segments[0].seg_len = reserve + packed;
    return descriptor;
}

int verbs_send_start(mca_btl_base_module_t *btl, verbs_peer_t *peer,
                     mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag)
{
    struct verbs_work *work = (struct verbs_work *) descriptor;

    (void) btl;
    work->tag = tag;
    return verbs_work_submit(peer, work);
}

/* The payload as one piece: packed into `room` where the convertor has it in several. False: it
 * gives less than was said. */
static bool payload_pack(opal_convertor_t *convertor, void *room, size_t size)
{
    struct iovec part = {.iov_base = room, .iov_len = size};
    uint32_t parts = 1;
    size_t packed = size;

    (void) opal_convertor_pack(convertor, &part, &parts, &packed);
    return packed == size;
}

static int immediate_inline(verbs_peer_t *peer, opal_convertor_t *convertor, const void *header,
                            size_t header_size, size_t payload_size, mca_btl_base_tag_t tag)
{
    unsigned char payload[payload_size + 1];
    struct ibv_sge parts[2] = {
        {.addr = (uint64_t) (uintptr_t) header, .length = (uint32_t) header_size},
        {.addr = (uint64_t) (uintptr_t) payload, .length = (uint32_t) payload_size}};

    if (payload_size != 0 && !payload_pack(convertor, payload, payload_size))
        return OPAL_ERR_OUT_OF_RESOURCE;
    return verbs_work_post_inline(peer, parts, payload_size == 0 ? 1 : 2, tag);
}

/* What is too long to be inline goes through a descriptor of our own, if it can go at once. */
static int immediate_copied(mca_btl_base_module_t *btl, verbs_peer_t *peer,
                            opal_convertor_t *convertor, const void *header, size_t header_size,
                            size_t payload_size, mca_btl_base_tag_t tag)
{
    mca_btl_base_descriptor_t *descriptor;
    struct verbs_work *work;
    unsigned char *room;
    int status = OPAL_ERR_OUT_OF_RESOURCE;

    /* Read without the lock: where they have just changed, the message waits like any other. */
    if (peer->state != PEER_READY)
        return OPAL_ERR_OUT_OF_RESOURCE;
    if (peer->send_room == 0 && opal_list_is_empty(&peer->pending))
        return OPAL_ERR_RESOURCE_BUSY; /* before it is packed in vain */
    descriptor = verbs_send_alloc(btl, peer, MCA_BTL_NO_ORDER, header_size + payload_size,
                                  MCA_BTL_DES_FLAGS_BTL_OWNERSHIP);
    if (!descriptor)
        return OPAL_ERR_OUT_OF_RESOURCE;
    work = (struct verbs_work *) descriptor;
    work->tag = tag;
    room = descriptor->des_segments[0].seg_addr.pval;
    memcpy(room, header, header_size);
    if (payload_size == 0 || payload_pack(convertor, room + header_size, payload_size))
        status = verbs_work_submit_now(peer, work);
    if (status != OPAL_SUCCESS)
        verbs_send_free(btl, descriptor);
    return status;
}

int verbs_send_immediate(mca_btl_base_module_t *btl, verbs_peer_t *peer,
                         opal_convertor_t *convertor, void *header, size_t header_size,
                         size_t payload_size, uint8_t order, uint32_t flags, mca_btl_base_tag_t tag,
                         mca_btl_base_descriptor_t **descriptor)
{
    size_t size = header_size + payload_size;
    int status =
        size <= module_of(btl)->inline_max
            ? immediate_inline(peer, convertor, header, header_size, payload_size, tag)
            : immediate_copied(btl, peer, convertor, header, header_size, payload_size, tag);

    if (OPAL_LIKELY(status == OPAL_SUCCESS))
        return OPAL_SUCCESS;
    if (descriptor)
        *descriptor = verbs_send_alloc(btl, peer, order, size, flags);
    return peer->state == PEER_FAILED ? OPAL_ERR_UNREACH : status;
}
