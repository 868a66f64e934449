/* SPDX-License-Identifier: BSD-3-Clause */
/* Put, get and atomics, and the registrations they need: of memory of the host (cache.c) or of a
 * CUDA device (dmabuf.c). */
#include "btl/verbs/verbs.h"

#include <stdlib.h>

/* Why device memory is not registered, said once: its messages go through memory of the host. */
static void device_refused(struct verbs_module *module, const char *why)
{
    SAY_ONCE(VERBS_SAY,
             "%s: some device memory is not registered: %s. Its messages pass through memory "
             "of the host; with btl_verbs_dmabuf none all do.",
             module->device, why);
}

static mca_btl_base_registration_handle_t *device_register(struct verbs_module *module, void *base,
                                                           size_t size)
{
    mca_btl_base_registration_handle_t *handle = malloc(sizeof(*handle));
    struct dmabuf_region *region = NULL;
    struct error_text why;

    fail_with(&why, "out of memory");
    if (handle && module->dmabuf.pd) {
        if (!verbs_flush_is_ready(module))
            fail_with(&why, "no connection of the port with itself can be made");
        else
            region = verbs_dmabuf_register(&module->dmabuf, base, size, &why);
    }
    if (!region) {
        device_refused(module, why.text);
        free(handle);
        return NULL;
    }
    handle->remote_key = region->mr->rkey;
    handle->local_key = region->mr->lkey;
    handle->device = region;
    return handle;
}

mca_btl_base_registration_handle_t *verbs_remote_register(mca_btl_base_module_t *btl,
                                                          verbs_peer_t *peer, void *base,
                                                          size_t size, uint32_t flags)
{
    if (OPAL_UNLIKELY(flags & MULTILANE_REGISTER_DEVICE))
        return device_register(module_of(btl), base, size);
    return verbs_cache_register(module_of(btl), base, size,
                                (int32_t) (flags & MCA_BTL_REG_FLAG_ACCESS_ANY),
                                (flags & MULTILANE_REGISTER_CACHED) != 0);
}

int verbs_remote_deregister(mca_btl_base_module_t *btl, mca_btl_base_registration_handle_t *handle)
{
    if (OPAL_LIKELY(!handle->device))
        return verbs_cache_deregister(module_of(btl), handle);
    verbs_dmabuf_release(&module_of(btl)->dmabuf, handle->device);
    free(handle);
    return OPAL_SUCCESS;
}

/* --- operations --- */

int verbs_remote_put(REMOTE_FROM(verbs_peer_t), size_t size, REMOTE_ENDING)
{
    if (OPAL_UNLIKELY(size > btl->btl_put_limit ||
                      (!local_handle && size > btl->btl_put_local_registration_threshold)))
        return OPAL_ERR_NOT_AVAILABLE;
    return verbs_submit_operation(peer, verbs_work_get(module_of(btl), WORK_PUT, remote_address,
                                                       size, remote_handle, REMOTE_REQUEST));
}

int verbs_remote_get(REMOTE_FROM(verbs_peer_t), size_t size, REMOTE_ENDING)
{
    if (OPAL_UNLIKELY(size > btl->btl_get_limit || (!local_handle && size != 0)))
        return OPAL_ERR_NOT_AVAILABLE;
    return verbs_submit_operation(peer, verbs_work_get(module_of(btl), WORK_GET, remote_address,
                                                       size, remote_handle, REMOTE_REQUEST));
}

static int atomic_submit(mca_btl_base_module_t *btl, verbs_peer_t *peer, enum work_kind kind,
                         uint64_t remote_address, mca_btl_base_registration_handle_t *remote_handle,
                         uint64_t first, uint64_t second, int flags, struct remote_request request)
{
    if ((flags & MCA_BTL_ATOMIC_FLAG_32BIT) || remote_address % 8 != 0 || !request.local_handle)
        return OPAL_ERR_NOT_SUPPORTED;
    struct verbs_work *work =
        verbs_work_get(module_of(btl), kind, remote_address, 8, remote_handle, request);
    if (work) {
        work->operands[0] = first;
        work->operands[1] = second;
    }
    return verbs_submit_operation(peer, work);
}

int verbs_remote_fetch_atomic(REMOTE_FROM(verbs_peer_t), mca_btl_base_atomic_op_t op,
                              uint64_t operand, REMOTE_ENDING)
{
    if (op != MCA_BTL_ATOMIC_ADD)
        return OPAL_ERR_NOT_SUPPORTED;
    return atomic_submit(btl, peer, WORK_FETCH_ADD, remote_address, remote_handle, operand, 0,
                         flags, REMOTE_REQUEST);
}

int verbs_remote_compare_swap(REMOTE_FROM(verbs_peer_t), uint64_t compare, uint64_t value,
                              REMOTE_ENDING)
{
    return atomic_submit(btl, peer, WORK_SWAP_IF, remote_address, remote_handle, compare, value,
                         flags, REMOTE_REQUEST);
}
