/* SPDX-License-Identifier: BSD-3-Clause */
/* Registrations of memory of the host, through Open MPI's cache of registrations. */
#include "btl/verbs/verbs.h"

#include <errno.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opal/runtime/opal_params.h"

/* An entry of the cache. */
struct cached {
    mca_rcache_base_registration_t base;
    struct ibv_mr *region;
    struct mca_btl_base_registration_handle_t handle;
};

/* No more than was asked for: memory that the peer only reads may be read-only memory. */
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

/* Upon a lack of room the cache gives up what is not in use, piece by piece. */
static int refusal_of(int error)
{
    return error == EFAULT || error == EINVAL || error == EOPNOTSUPP ? OPAL_ERROR
                                                                     : OPAL_ERR_OUT_OF_RESOURCE;
}

static int cached_register(void *context, void *base, size_t size,
                           mca_rcache_base_registration_t *registration)
{
    struct verbs_module *module = context;
    struct cached *cached = (struct cached *) registration;

    cached->region =
        ibv_reg_mr(module->pd, base, size, access_of(module, registration->access_flags));
    if (!cached->region)
        return refusal_of(errno);
    cached->handle.remote_key = cached->region->rkey;
    cached->handle.local_key = cached->region->lkey;
    cached->handle.device = NULL;
    return OPAL_SUCCESS;
}

static int cached_deregister(void *context, mca_rcache_base_registration_t *registration)
{
    struct cached *cached = (struct cached *) registration;

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

/* Open MPI learns that memory is unmapped by patching functions of the C library, brk() for the
 * heap. glibc 2.36 shrinks the heap by that function. 2.41 and 2.42 were seen to do it without the
 * patched function: a registration of unmapped pages stays in the cache, and what is written by it
 * is lost. Versions between them were not tried, and are treated like 2.41. */
static bool heap_is_watched(void)
{
    static _Atomic int watched = -1; /* relaxed: every thread finds the same */
    int found = atomic_load_explicit(&watched, memory_order_relaxed);

    if (OPAL_UNLIKELY(found < 0)) {
        const char *version = gnu_get_libc_version();
        const char *dot = strchr(version, '.');

        found = dot && atoi(version) == 2 && atoi(dot + 1) <= 36;
        atomic_store_explicit(&watched, found, memory_order_relaxed);
    }
    return found;
}

/* Below the heap's end: in the heap, or part of the program's image. */
static bool is_cacheable(const void *base)
{
    return heap_is_watched() || (uintptr_t) base >= (uintptr_t) sbrk(0);
}

mca_btl_base_registration_handle_t *verbs_cache_register(struct verbs_module *module, void *base,
                                                         size_t size, int32_t access,
                                                         bool only_cached)
{
    mca_rcache_base_registration_t *registration = NULL;
    int32_t flags = is_cacheable(base) ? 0 : MCA_RCACHE_FLAGS_CACHE_BYPASS;

    if (only_cached && flags != 0 && opal_leave_pinned > 0)
        return NULL;
    if (module->rcache->rcache_register(module->rcache, base, size, flags, access, &registration) !=
        OPAL_SUCCESS)
        return NULL;
    return &((struct cached *) registration)->handle;
}

int verbs_cache_deregister(struct verbs_module *module, mca_btl_base_registration_handle_t *handle)
{
    struct cached *cached =
        (struct cached *) ((unsigned char *) handle - offsetof(struct cached, handle));

    return module->rcache->rcache_deregister(module->rcache, &cached->base);
}
