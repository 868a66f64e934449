/* SPDX-License-Identifier: BSD-3-Clause */
/* Works: messages, puts, gets and atomics, from their free lists to their ends. */
#include "btl/verbs/verbs.h"

#include <string.h>

#include "opal/datatype/opal_convertor.h"

static void work_construct(struct verbs_work *work)
{
    work->base.des_segments = work->segments;
    work->base.des_segment_count = 1;
    work->base.order = MCA_BTL_NO_ORDER;
}

OBJ_CLASS_INSTANCE(struct_verbs_work, mca_btl_base_descriptor_t, work_construct, NULL);

#define FRAG_ALIGNMENT 64u

int verbs_works_open(struct verbs_module *module)
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
    work->base.order = order;
    work->base.des_flags = flags;
    work->base.des_cbfunc = NULL;
    work->base.des_segment_count = 1;
    work->size = 0;
    work->segments[0].seg_addr.pval = work->base.super.ptr;
    work->segments[0].seg_len = size;
    return &work->base;
}

int verbs_work_free(mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *descriptor)
{
    struct verbs_work *work = (struct verbs_work *) descriptor;

    (void) btl;
    opal_free_list_return(work->list, &work->base.super);
    return OPAL_SUCCESS;
}

bool verbs_work_pack(opal_convertor_t *convertor, void *room, size_t *size)
{
    struct iovec part = {.iov_base = room, .iov_len = *size};
    uint32_t parts = 1;

    if (OPAL_UNLIKELY(opal_convertor_pack(convertor, &part, &parts, size) < 0))
        return false;
    atomic_fetch_add_explicit(&verbs.copied_bytes, *size, memory_order_relaxed);
    return true;
}

mca_btl_base_descriptor_t *verbs_work_prepare(mca_btl_base_module_t *btl, verbs_peer_t *peer,
                                              opal_convertor_t *convertor, uint8_t order,
                                              size_t reserve, size_t *size, uint32_t flags)
{
    size_t max = btl->btl_max_send_size - reserve, packed = *size < max ? *size : max;
    mca_btl_base_descriptor_t *descriptor =
        verbs_work_alloc(btl, peer, order, reserve + packed, flags);
    unsigned char *room;

    if (OPAL_UNLIKELY(!descriptor))
        return NULL;
    room = descriptor->des_segments[0].seg_addr.pval;
    if (OPAL_UNLIKELY(!verbs_work_pack(convertor, room + reserve, &packed))) {
        verbs_work_free(btl, descriptor);
        return NULL;
    }
    *size = packed;
    descriptor->des_segments[0].seg_len = reserve + packed;
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
    work->local = (void *) payload;
    work->size = payload_bytes;
    work->local_key = registration->local_key;
    work->segments[1] =
        (mca_btl_base_segment_t){.seg_addr.pval = work->local, .seg_len = payload_bytes};
    work->base.des_segment_count = 2;
    atomic_fetch_add_explicit(&verbs.in_place_bytes, payload_bytes, memory_order_relaxed);
    return descriptor;
}

struct verbs_work *verbs_work_get(struct verbs_module *module, enum work_kind kind, void *local,
                                  uint64_t remote, size_t size,
                                  mca_btl_base_registration_handle_t *local_handle,
                                  const mca_btl_base_registration_handle_t *remote_handle,
                                  mca_btl_base_rdma_completion_fn_t callback, void *context,
                                  void *data)
{
    struct verbs_work *work = (struct verbs_work *) opal_free_list_get(&module->operations);

    if (!work)
        return NULL;
    work->list = &module->operations;
    work->kind = (uint8_t) kind;
    work->base.des_flags = 0;
    work->local = local;
    work->remote = remote;
    work->size = size;
    work->local_key = !local_handle ? 0 : local_handle->local_key;
    work->remote_key = remote_handle->remote_key;
    work->local_handle = local_handle;
    work->callback = callback;
    work->context = context;
    work->data = data;
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
        bool ours = (work->base.des_flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP) != 0;

        if (tell && work->base.des_cbfunc)
            work->base.des_cbfunc(btl, peer, &work->base, status);
        if (ours)
            verbs_work_free(btl, &work->base);
        return;
    }
    if (tell && work->callback)
        work->callback(btl, peer, work->local, work->local_handle, work->context, work->data,
                       status);
    opal_free_list_return(work->list, &work->base.super);
}
