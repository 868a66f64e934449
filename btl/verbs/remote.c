/* SPDX-License-Identifier: BSD-3-Clause */
/* Registration, through Open MPI's cache of registrations or, of device memory, ours; put, get and
 * atomics. */
#include "btl/verbs/verbs.h"

#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What the cache keeps of one. */
struct cached {
    mca_rcache_base_registration_t base;
    struct ibv_mr *region;
    struct mca_btl_base_registration_handle_t handle;
};

/* --- registration --- */

/* No more than was asked for: memory that only the peer reads may be memory that nobody can write.
 */
static int access_of(const struct verbs_module *module, int32_t flags)
{
    int access = 0;

    if (flags & MCA_RCACHE_ACCESS_REMOTE_READ)
        access |= IBV_ACCESS_REMOTE_READ;
    if (flags & MCA_RCACHE_ACCESS_REMOTE_WRITE)
        access |= IBV_ACCESS_REMOTE_WRITE;
    if ((flags & MCA_RCACHE_ACCESS_REMOTE_ATOMIC) && module->atomics)
        access |= IBV_ACCESS_REMOTE_ATOMIC;
    if ((flags & MCA_RCACHE_ACCESS_LOCAL_WRITE) ||
        (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)))
        access |= IBV_ACCESS_LOCAL_WRITE;
    return access;
}

static int cached_register(void *context, void *base, size_t size,
                           mca_rcache_base_registration_t *registration)
{
    struct verbs_module *module = context;
    struct cached *cached = (struct cached *) registration;

    cached->region =
        ibv_reg_mr(module->pd, base, size, access_of(module, registration->access_flags));
    if (!cached->region)
        return OPAL_ERR_OUT_OF_RESOURCE;
    cached->handle.remote_key = cached->region->rkey;
    cached->handle.local_key = cached->region->lkey;
    cached->handle.device = NULL;
    return OPAL_SUCCESS;
}

static int cached_deregister(void *context, mca_rcache_base_registration_t *registration)
{
    struct cached *cached = (struct cached *) registration;

    (void) context;
    if (cached->region && ibv_dereg_mr(cached->region) != 0)
        return OPAL_ERROR;
    cached->region = NULL;
    return OPAL_SUCCESS;
}

int verbs_cache_open(struct verbs_module *module)
{
    char name[CHOICE_NAME_BYTES + 16];
    mca_rcache_base_resources_t resources = {
        .cache_name = name,
        .reg_data = module,
        .sizeof_reg = sizeof(struct cached),
        .register_mem = cached_register,
        .deregister_mem = cached_deregister,
    };

    snprintf(name, sizeof(name), "verbs.%s", module->device);
    module->rcache = mca_rcache_base_module_create("grdma", module, &resources);
    return !module->rcache ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;
}

uint32_t verbs_cache_key(const mca_rcache_base_registration_t *registration)
{
    return ((const struct cached *) registration)->handle.local_key;
}

/* Open MPI hears of memory that goes by patching the C library's functions, brk() for the heap.
 * glibc 2.36 shrinks the heap by that function; 2.41 and 2.42 were seen to do it past the patch, so
 * that a registration of pages which are gone stays in the cache, and what is written by it is
 * lost. Versions between them were not tried, and count as the later ones. */
static bool heap_is_watched(void)
{
    static _Atomic int watched = -1; /* relaxed: whoever comes first finds the same */
    int found = atomic_load_explicit(&watched, memory_order_relaxed);

    if (OPAL_UNLIKELY(found < 0)) {
        const char *version = gnu_get_libc_version();
        const char *dot = strchr(version, '.');

        found = dot && atoi(version) == 2 && atoi(dot + 1) <= 36;
        atomic_store_explicit(&watched, found, memory_order_relaxed);
    }
    return found;
}

/* Below the heap's end: in the heap, or what the program came with. */
static bool is_cacheable(const void *base)
{
    return heap_is_watched() || (uintptr_t) base >= (uintptr_t) sbrk(0);
}

/* Why device memory is not reached directly is said once: its messages go through the host's. */
static void device_refused(struct verbs_module *module, const char *why)
{
    static _Atomic bool was_said; /* relaxed: it orders nothing */

    if (!atomic_exchange_explicit(&was_said, true, memory_order_relaxed))
        VERBS_SAY("%s: some device memory is not registered: %s. Its messages pass through memory "
                  "of the host; with btl_verbs_dmabuf none all do.",
                  module->device, why);
}

static mca_btl_base_registration_handle_t *device_register(struct verbs_module *module, void *base,
                                                           size_t size)
{
    mca_btl_base_registration_handle_t *handle = malloc(sizeof(*handle));
    struct dmabuf_region *region = NULL;
    char why[256] = "no memory is left";

    if (handle && module->dmabuf.pd) {
        if (!verbs_flush_is_ready(module))
            snprintf(why, sizeof(why), "no connection of the port with itself can be made");
        else
            region = verbs_dmabuf_register(&module->dmabuf, base, size, why, sizeof(why));
    }
    if (!region) {
        device_refused(module, why);
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
    mca_rcache_base_registration_t *registration = NULL;
    mca_rcache_base_module_t *rcache = module_of(btl)->rcache;
    int32_t access = (int32_t) (flags & MCA_BTL_REG_FLAG_ACCESS_ANY);

    (void) peer;
    if (OPAL_UNLIKELY(flags & MULTILANE_REGISTER_DEVICE))
        return device_register(module_of(btl), base, size);
    if (rcache->rcache_register(rcache, base, size,
                                is_cacheable(base) ? 0 : MCA_RCACHE_FLAGS_CACHE_BYPASS, access,
                                &registration) != OPAL_SUCCESS)
        return NULL;
    return &((struct cached *) registration)->handle;
}

int verbs_remote_deregister(mca_btl_base_module_t *btl, mca_btl_base_registration_handle_t *handle)
{
    mca_rcache_base_module_t *rcache = module_of(btl)->rcache;
    struct cached *cached =
        (struct cached *) ((unsigned char *) handle - offsetof(struct cached, handle));

    if (OPAL_UNLIKELY(handle->device != NULL)) {
        verbs_dmabuf_release(&module_of(btl)->dmabuf, handle->device);
        free(handle);
        return OPAL_SUCCESS;
    }
    return rcache->rcache_deregister(rcache, &cached->base);
}

/* --- operations --- */

struct verbs_work *verbs_operation_get(struct verbs_module *module, enum work_kind kind,
                                       void *local, uint64_t remote, size_t size,
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

int verbs_operation_submit(verbs_peer_t *peer, struct verbs_work *work)
{
    int status;

    if (!work)
        return OPAL_ERR_TEMP_OUT_OF_RESOURCE;
    status = verbs_work_submit(peer, work);
    if (status != OPAL_SUCCESS)
        opal_free_list_return(work->list, &work->base.super);
    return status;
}

int verbs_remote_put(mca_btl_base_module_t *btl, verbs_peer_t *peer, void *local_address,
                     uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
                     mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
                     int order, mca_btl_base_rdma_completion_fn_t callback, void *context,
                     void *data)
{
    (void) flags;
    (void) order;
    if (OPAL_UNLIKELY(size > btl->btl_put_limit ||
                      (!local_handle && size > btl->btl_put_local_registration_threshold)))
        return OPAL_ERR_NOT_AVAILABLE;
    return verbs_operation_submit(
        peer, verbs_operation_get(module_of(btl), WORK_PUT, local_address, remote_address, size,
                                  local_handle, remote_handle, callback, context, data));
}

int verbs_remote_get(mca_btl_base_module_t *btl, verbs_peer_t *peer, void *local_address,
                     uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
                     mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
                     int order, mca_btl_base_rdma_completion_fn_t callback, void *context,
                     void *data)
{
    (void) flags;
    (void) order;
    if (OPAL_UNLIKELY(size > btl->btl_get_limit || (!local_handle && size != 0)))
        return OPAL_ERR_NOT_AVAILABLE;
    return verbs_operation_submit(
        peer, verbs_operation_get(module_of(btl), WORK_GET, local_address, remote_address, size,
                                  local_handle, remote_handle, callback, context, data));
}

static int atomic_submit(mca_btl_base_module_t *btl, verbs_peer_t *peer, enum work_kind kind,
                         void *local_address, uint64_t remote_address,
                         mca_btl_base_registration_handle_t *local_handle,
                         mca_btl_base_registration_handle_t *remote_handle, uint64_t first,
                         uint64_t second, int flags, mca_btl_base_rdma_completion_fn_t callback,
                         void *context, void *data)
{
    struct verbs_work *work;

    if ((flags & MCA_BTL_ATOMIC_FLAG_32BIT) || remote_address % 8 != 0 || !local_handle)
        return OPAL_ERR_NOT_SUPPORTED;
    work = verbs_operation_get(module_of(btl), kind, local_address, remote_address, 8, local_handle,
                               remote_handle, callback, context, data);
    if (work) {
        work->operands[0] = first;
        work->operands[1] = second;
    }
    return verbs_operation_submit(peer, work);
}

int verbs_remote_fetch_atomic(mca_btl_base_module_t *btl, verbs_peer_t *peer, void *local_address,
                              uint64_t remote_address,
                              mca_btl_base_registration_handle_t *local_handle,
                              mca_btl_base_registration_handle_t *remote_handle,
                              mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
                              mca_btl_base_rdma_completion_fn_t callback, void *context, void *data)
{
    (void) order;
    if (op != MCA_BTL_ATOMIC_ADD)
        return OPAL_ERR_NOT_SUPPORTED;
    return atomic_submit(btl, peer, WORK_FETCH_ADD, local_address, remote_address, local_handle,
                         remote_handle, operand, 0, flags, callback, context, data);
}

int verbs_remote_compare_swap(mca_btl_base_module_t *btl, verbs_peer_t *peer, void *local_address,
                              uint64_t remote_address,
                              mca_btl_base_registration_handle_t *local_handle,
                              mca_btl_base_registration_handle_t *remote_handle, uint64_t compare,
                              uint64_t value, int flags, int order,
                              mca_btl_base_rdma_completion_fn_t callback, void *context, void *data)
{
    (void) order;
    return atomic_submit(btl, peer, WORK_SWAP_IF, local_address, remote_address, local_handle,
                         remote_handle, compare, value, flags, callback, context, data);
}
