/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for the other processes of a turn. */
#include "coll/node/node.h"

#include <dlfcn.h>

#define SHM_EXTENSION "mca_btl_shm_multilane_v4"

/* At the slots of others that run, before this process makes progress on its messages. */
#define LOOKS 256

/* Written while no area is there, as before and after MPI; else only compared. */
static struct {
    opal_mutex_t lock;
    const struct multilane_service *service;
    struct multilane_commons commons;
} found = {.lock = OPAL_MUTEX_STATIC_INIT};

static void found_set(const struct multilane_service *service,
                      const struct multilane_commons *commons)
{
    OPAL_THREAD_LOCK(&found.lock);
    if (found.service != service || found.commons.memory != commons->memory) {
        found.service = service;
        found.commons = *commons;
    }
    OPAL_THREAD_UNLOCK(&found.lock);
}

static const struct multilane_service *service_find(void)
{
    const struct multilane_service *service = dlsym(RTLD_DEFAULT, MULTILANE_SERVICE_SYMBOL);
    return service && service->version == MULTILANE_SERVICE_VERSION &&
                   service->struct_bytes >= sizeof(*service)
               ? service
               : NULL;
}

struct multilane_calls *node_calls(void)
{
    const struct multilane_service *service = service_find();
    return service ? service->calls() : NULL;
}

bool node_services_find(struct multilane_commons *commons)
{
    const struct multilane_extension *lane = dlsym(RTLD_DEFAULT, SHM_EXTENSION);
    const struct multilane_service *service = service_find();
    if (!lane || lane->version != MULTILANE_EXTENSION_VERSION ||
        lane->struct_bytes < sizeof(*lane) || !service || !lane->commons(commons))
        return false;
    found_set(service, commons);
    return true;
}

bool node_records(void)
{
    const struct multilane_service *service = service_find();
    return service && service->records();
}

bool node_shares(void)
{
    return found.service->shares();
}

void node_wake(const node_module_t *node)
{
    const struct turns *turns = &node->turns;
    if (!turn_has_sleepers(turns))
        return;
    for (uint32_t rank = 0; rank < turns->ranks; rank++)
        if (node->parts[rank] != found.commons.part)
            found.commons.wake(node->parts[rank]);
}

/* The first that has not arrived at the turn under way. Another thread may ask. */
static int missing(const void *with)
{
    const node_module_t *node = with;
    for (uint32_t rank = 0; rank < node->turns.ranks; rank++)
        if (rank != node->me && !turn_is_there(&node->turns, rank))
            return (int) rank;
    return -1;
}

int node_fail(node_module_t *node, int status)
{
    atomic_store_explicit(&node->turns.area->failed, 1, memory_order_seq_cst);
    for (uint32_t rank = 0; rank < node->turns.ranks; rank++)
        found.commons.wake(node->parts[rank]);
    return status;
}

static int look(const void *with)
{
    const node_module_t *node = with;
    if (atomic_load_explicit(&node->turns.area->failed, memory_order_relaxed))
        return COMPAT_ERR_PROC_FAILED;
    for (uint32_t rank = 0; rank < node->turns.ranks; rank++)
        if (rank != node->me && !turn_is_there(&node->turns, rank) &&
            !found.commons.lives(node->parts[rank]))
            return COMPAT_ERR_PROC_FAILED;
    return OMPI_SUCCESS;
}

typedef bool (*is_over_fn)(struct turns *turns, const _Atomic uint32_t **word, uint32_t *seen);

static int wait_until(node_module_t *node, is_over_fn is_over, int tag)
{
    struct turns *turns = &node->turns;
    struct multilane_wait wait = {
        .comm = node->entry.comm, .tag = tag, .look = look, .missing = missing, .with = node};
    int status = OMPI_SUCCESS;
    for (int left = turns->looks ? LOOKS : 1; left > 0; left--)
        if (OPAL_LIKELY(is_over(turns, &wait.word, &wait.seen)))
            return OMPI_SUCCESS;
    atomic_fetch_add_explicit(&turns->area->sleepers, 1, memory_order_seq_cst);
    while (status == OMPI_SUCCESS && !is_over(turns, &wait.word, &wait.seen))
        status = found.service->wait(&wait);
    atomic_fetch_sub_explicit(&turns->area->sleepers, 1, memory_order_relaxed);
    return status == OMPI_SUCCESS ? OMPI_SUCCESS : node_fail(node, status);
}

int node_wait_to_give(node_module_t *node, int tag)
{
    return wait_until(node, turn_may_give, tag);
}

int node_wait_to_tell(node_module_t *node, int tag)
{
    return wait_until(node, turn_may_tell, tag);
}

int node_wait_others(node_module_t *node, int tag)
{
    return wait_until(node, turn_is_full, tag);
}

int node_wait_result(node_module_t *node, int tag)
{
    return wait_until(node, turn_has_result, tag);
}
