/* SPDX-License-Identifier: BSD-3-Clause */
/* Works: messages and puts, from their free lists to their ends. */
#include "btl/sock/sock.h"

#include <string.h>

#include "common/compat/tsan.h"
#include "opal/datatype/opal_convertor.h"

/* Shorter payloads are copied, so that their owner need not wait until the other end has them. */
#define IN_PLACE_BYTES (48u << 10)

static void work_construct(struct sock_work *work)
{
    work->base.des_segments = work->segments;
    work->base.des_segment_count = 1;
    work->base.order = MCA_BTL_NO_ORDER;
    tsan_release(work); /* tsan_list_get */
}

OBJ_CLASS_INSTANCE(struct_sock_work, mca_btl_base_descriptor_t, work_construct, NULL);

static int list_open(opal_free_list_t *list, size_t bytes, int at_once)
{
    size_t memory = sizeof(struct frame_header) + bytes + FRAME_ALIGNMENT;

    OBJ_CONSTRUCT(list, opal_free_list_t);
    return opal_free_list_init(list, sizeof(struct sock_work) + memory, 64,
                               OBJ_CLASS(struct_sock_work), 0, 64, 0, -1, at_once, NULL, 0, NULL,
                               NULL, NULL);
}

int sock_works_open(size_t largest)
{
    int status = list_open(&sock.small, WORK_SMALL_BYTES, 32);

    if (status == OPAL_SUCCESS)
        status = list_open(&sock.large, largest, 4);
    sock.lists_ready = status == OPAL_SUCCESS;
    return status;
}

void sock_works_close(void)
{
    if (!sock.lists_ready)
        return;
    sock.lists_ready = false;
    OBJ_DESTRUCT(&sock.large);
    OBJ_DESTRUCT(&sock.small);
}

mca_btl_base_descriptor_t *sock_work_alloc(mca_btl_base_module_t *btl, sock_peer_t *peer,
                                           uint8_t order, size_t size, uint32_t flags)
{
    opal_free_list_t *list = size <= WORK_SMALL_BYTES ? &sock.small : &sock.large;
    struct sock_work *work;

    if (OPAL_UNLIKELY(size > btl->btl_max_send_size))
        return NULL;
    work = (struct sock_work *) tsan_list_get(list);
    if (OPAL_UNLIKELY(!work))
        return NULL;
    work->list = list;
    work->peer = peer;
    work->payload = NULL;
    work->payload_bytes = 0;
    work->is_put = false;
    work->is_held = work->is_received = false;
    work->base.order = order;
    work->base.des_flags = flags;
    work->base.des_cbfunc = NULL;
    work->base.des_segment_count = 1;
    work->segments[0].seg_addr.pval = work->memory + sizeof(struct frame_header);
    work->segments[0].seg_len = size;
    return &work->base;
}

int sock_work_free(mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *descriptor)
{
    struct sock_work *work = (struct sock_work *) descriptor;

    (void) btl;
    tsan_list_return(work->list, &work->base.super);
    return OPAL_SUCCESS;
}

mca_btl_base_descriptor_t *sock_work_prepare(mca_btl_base_module_t *btl, sock_peer_t *peer,
                                             opal_convertor_t *convertor, uint8_t order,
                                             size_t reserve, size_t *size, uint32_t flags)
{
    size_t most = btl->btl_max_send_size - reserve, packed = *size < most ? *size : most;
    mca_btl_base_descriptor_t *descriptor =
        sock_work_alloc(btl, peer, order, reserve + packed, flags);

    if (OPAL_UNLIKELY(!descriptor))
        return NULL;
    unsigned char *room = (unsigned char *) descriptor->des_segments[0].seg_addr.pval + reserve;
    /* A convertor that need not pack says where the bytes are. */
    bool stays = packed >= IN_PLACE_BYTES && !opal_convertor_need_buffers(convertor);
    struct iovec part = {.iov_base = stays ? NULL : (void *) room, .iov_len = packed};
    uint32_t parts = 1;
    if (OPAL_UNLIKELY(opal_convertor_pack(convertor, &part, &parts, &packed) < 0)) {
        sock_work_free(btl, descriptor);
        return NULL;
    }
    *size = packed;
    descriptor->des_segments[0].seg_len = reserve + (stays ? 0 : packed);
    if (stays) {
        struct sock_work *work = (struct sock_work *) descriptor;
        work->payload = part.iov_base;
        work->payload_bytes = packed;
        work->segments[1] =
            (mca_btl_base_segment_t){.seg_addr.pval = part.iov_base, .seg_len = packed};
        work->base.des_segment_count = 2;
    }
    return descriptor;
}

void sock_work_complete(struct sock_work *work, int status)
{
    sock_peer_t *peer = work->peer;
    mca_btl_base_module_t *btl = &peer->module->super;
    bool tell = !sock.is_ending;

    if (!work->is_put) {
        bool ours = (work->base.des_flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP) != 0;

        if (tell && work->base.des_cbfunc)
            work->base.des_cbfunc(btl, peer, &work->base, status);
        if (ours)
            sock_work_free(btl, &work->base);
        return;
    }
    if (tell && work->callback)
        work->callback(btl, peer, work->local, work->local_handle, work->context, work->data,
                       status);
    sock_work_free(btl, &work->base);
}

/* Its header and what lies behind that; the payload stays the owner's. */
static int work_return(struct sock_work *work, multilane_returned returned, void *context)
{
    const struct frame_header *header = (const struct frame_header *) (void *) work->memory;
    bool is_taken = !work->is_put && !sock.is_ending &&
                    returned(context, header->tag, work->segments[0].seg_addr.pval,
                             work->segments[0].seg_len, work->payload, work->payload_bytes);

    return is_taken ? OPAL_SUCCESS : OPAL_ERR_UNREACH;
}

void sock_works_return(opal_list_t *works, multilane_returned returned, void *context)
{
    struct sock_work *work;

    while ((work = (struct sock_work *) opal_list_remove_first(works)))
        sock_work_complete(work, work_return(work, returned, context));
}

void sock_works_complete(opal_list_t *works, int status)
{
    struct sock_work *work;

    while ((work = (struct sock_work *) opal_list_remove_first(works)))
        sock_work_complete(work, status);
}
