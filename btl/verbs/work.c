/* SPDX-License-Identifier: BSD-3-Clause */
/* Works: messages, puts, gets and atomics, from their free lists to their ends. */
#include "btl/verbs/verbs.h"

#include "opal/datatype/opal_convertor.h"

int verbs_works_open(struct verbs_module *module)
{
    const size_t bytes = sizeof(struct verbs_work), most = module->super.btl_max_send_size;

    module->lists_ready = true;
    return fragments_open(&module->operations, bytes, 0, 0, 64, NULL) |
           fragments_open(&module->frags_small, bytes, VERBS_FRAG_SMALL, 32, 64, module->rcache) |
           fragments_open(&module->frags_large, bytes, most, 0, 16, module->rcache);
}

void verbs_works_close(struct verbs_module *module)
{
    if (!module->lists_ready)
        return;
    module->lists_ready = false;
    OBJ_DESTRUCT(&module->operations);
    OBJ_DESTRUCT(&module->frags_large);
    OBJ_DESTRUCT(&module->frags_small);
}

mca_btl_base_descriptor_t *verbs_work_alloc(mca_btl_base_module_t *btl, verbs_peer_t *peer,
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
    work->size = 0;
    fragment_begin(&work->base, work->segments, work->base.super.ptr, size, order, flags);
    return &work->base;
}

int verbs_work_free(mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *descriptor)
{
    struct verbs_work *work = (struct verbs_work *) descriptor;

    opal_free_list_return(work->list, &work->base.super);
    return OPAL_SUCCESS;
}

mca_btl_base_descriptor_t *verbs_work_prepare(mca_btl_base_module_t *btl, verbs_peer_t *peer,
                                              opal_convertor_t *convertor, uint8_t order,
                                              size_t reserve, size_t *size, uint32_t flags)
{
    mca_btl_base_descriptor_t *descriptor =
        fragment_prepare(btl, peer, convertor, order, reserve, size, flags, SIZE_MAX);

    if (OPAL_LIKELY(descriptor))
        verbs_work_copied(*size);
    return descriptor;
}

mca_btl_base_descriptor_t *verbs_work_in_place(mca_btl_base_module_t *btl, verbs_peer_t *peer,
                                               mca_btl_base_registration_handle_t *registration,
                                               size_t header_bytes, const void *payload,
                                               size_t payload_bytes, uint32_t flags)
{
    mca_btl_base_descriptor_t *descriptor =
        header_bytes + payload_bytes > btl->btl_max_send_size
            ? NULL
            : verbs_work_alloc(btl, peer, MCA_BTL_NO_ORDER, header_bytes, flags);
    struct verbs_work *work = (struct verbs_work *) descriptor;

    if (OPAL_UNLIKELY(!work))
        return NULL;
    work->request.local = (void *) payload;
    work->size = payload_bytes;
    work->local_key = registration->local_key;
    work->segments[1] =
        (mca_btl_base_segment_t){.seg_addr.pval = work->request.local, .seg_len = payload_bytes};
    work->base.des_segment_count = 2;
    atomic_fetch_add_explicit(&verbs.in_place_bytes, payload_bytes, memory_order_relaxed);
    return descriptor;
}

struct verbs_work *verbs_work_get(struct verbs_module *module, enum work_kind kind, uint64_t remote,
                                  size_t size,
                                  const mca_btl_base_registration_handle_t *remote_handle,
                                  struct remote_request request)
{
    struct verbs_work *work = (struct verbs_work *) opal_free_list_get(&module->operations);

    if (!work)
        return NULL;
    work->list = &module->operations;
    work->kind = (uint8_t) kind;
    work->base.des_flags = 0;
    work->request = request;
    work->remote = remote;
    work->size = size;
    work->local_key = !request.local_handle ? 0 : request.local_handle->local_key;
    work->remote_key = remote_handle->remote_key;
    return work;
}

/* With no lock held. */
void verbs_work_complete(struct verbs_work *work, int status)
{
    verbs_peer_t *peer = work->peer;
    mca_btl_base_module_t *btl = &peer->module->super;
    /* At the end of the module the callbacks may be gone. */
    bool tell = !peer->module->finalized;

    if (work->kind == WORK_SEND) {
        fragment_end(btl, peer, &work->base, tell, status);
        return;
    }
    if (tell)
        remote_request_end(btl, peer, &work->request, status);
    opal_free_list_return(work->list, &work->base.super);
}
