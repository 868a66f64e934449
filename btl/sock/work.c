/* SPDX-License-Identifier: BSD-3-Clause */
/* Works: messages and puts, from their free lists to their ends. */
#include "btl/sock/sock.h"

#include "common/compat/tsan.h"

/* Shorter payloads are copied, so that their owner need not wait until the other end has them. */
#define IN_PLACE_BYTES (48u << 10)

int sock_works_open(size_t largest)
{
    const size_t beside = sizeof(struct sock_work) + sizeof(struct frame_header) + FRAME_ALIGNMENT;

    sock.lists_ready = true;
    return fragments_open(&sock.small, beside + WORK_SMALL_BYTES, 0, 0, 32, NULL) |
           fragments_open(&sock.large, beside + largest, 0, 0, 4, NULL);
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
    fragment_begin(&work->base, work->segments, work->memory + sizeof(struct frame_header), size,
                   order, flags);
    return &work->base;
}

int sock_work_free(mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *descriptor)
{
    struct sock_work *work = (struct sock_work *) descriptor;

    tsan_list_return(work->list, &work->base.super);
    return OPAL_SUCCESS;
}

mca_btl_base_descriptor_t *sock_work_prepare(mca_btl_base_module_t *btl, sock_peer_t *peer,
                                             opal_convertor_t *convertor, uint8_t order,
                                             size_t reserve, size_t *size, uint32_t flags)
{
    mca_btl_base_descriptor_t *descriptor =
        fragment_prepare(btl, peer, convertor, order, reserve, size, flags, IN_PLACE_BYTES);

    if (descriptor && descriptor->des_segment_count == 2) {
        struct sock_work *work = (struct sock_work *) descriptor;
        work->payload = work->segments[1].seg_addr.pval;
        work->payload_bytes = work->segments[1].seg_len;
    }
    return descriptor;
}

void sock_work_complete(struct sock_work *work, int status)
{
    sock_peer_t *peer = work->peer;
    mca_btl_base_module_t *btl = &peer->module->super;
    bool tell = !sock.is_ending;

    if (!work->is_put) {
        fragment_end(btl, peer, &work->base, tell, status);
        return;
    }
    if (tell)
        remote_request_end(btl, peer, &work->request, status);
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
    OBJ_DESTRUCT(works);
}

void sock_works_complete(opal_list_t *works, int status)
{
    struct sock_work *work;

    while ((work = (struct sock_work *) opal_list_remove_first(works)))
        sock_work_complete(work, status);
    OBJ_DESTRUCT(works);
}
