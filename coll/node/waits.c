/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for the other processes of a turn. */
#include "coll/node/node.h"

#include <dlfcn.h>

#define SHM_EXTENSION "mca_btl_shm_multilane_v5"

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

struct multilane_calls *node_calls(void)
{
    const struct multilane_service *service = multilane_service_find();
    return service ? service->calls() : NULL;
}

bool node_services_find(struct multilane_commons *commons)
{
    const struct multilane_extension *lane = dlsym(RTLD_DEFAULT, SHM_EXTENSION);
    const struct multilane_service *service = multilane_service_find();
    if (!lane || lane->version != MULTILANE_EXTENSION_VERSION ||
        lane->struct_bytes < sizeof(*lane) || !service || !lane->commons(commons))
        return false;
    found_set(service, commons);
    return true;
}

bool node_records(void)
{
    const struct multilane_service *service = multilane_service_find();
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

/* What looks have found of the others. */
struct findings {
    _Atomic uint32_t looks_beyond; /* so many times beyond a turn whose result is not there */
    _Atomic bool differ;           /* they call other operations */
};

struct awaited {
    const node_module_t *node;
    uint32_t turn;  /* at which the others have to have arrived */
    bool is_result; /* of the turn under way */
    struct findings *findings;
};

/* The first that has not arrived at the turn that is waited for. Another thread may ask. */
static int missing(const void *with)
{
    const struct awaited *awaited = with;
    const node_module_t *node = awaited->node;
    for (uint32_t rank = 0; rank < node->turns.ranks; rank++)
        if (rank != node->me && !turn_has_come(&node->turns, rank, awaited->turn))
            return (int) rank;
    return -1;
}

/* What does not concern this process alone the others are told as it is. */
static uint32_t told_as(int status)
{
    bool concerns_all = status == COMPAT_ERR_PROC_FAILED || status == COMPAT_ERR_REVOKED;
    return (uint32_t) (concerns_all ? status : MPI_ERR_OTHER);
}

int node_failure(const node_module_t *node)
{
    return (int) atomic_load_explicit(&node->turns.area->failed, memory_order_relaxed);
}

int node_fail(node_module_t *node, int status)
{
    uint32_t none = OMPI_SUCCESS;
    (void) atomic_compare_exchange_strong_explicit(&node->turns.area->failed, &none,
                                                   told_as(status), memory_order_relaxed,
                                                   memory_order_relaxed);
    for (uint32_t rank = 0; rank < node->turns.ranks; rank++)
        found.commons.wake(node->parts[rank]);
    return status;
}

/* Others leave a turn that has a result when it is there. Seen twice, as it may come a little later
 * than their next arrival. */
static bool others_have_passed(const struct awaited *awaited)
{
    const struct turns *turns = &awaited->node->turns;
    for (uint32_t rank = 0; awaited->is_result && rank < turns->ranks; rank++)
        if (rank != awaited->node->me && turn_has_come(turns, rank, turns->turn + 1))
            return atomic_fetch_add_explicit(&awaited->findings->looks_beyond, 1,
                                             memory_order_relaxed) > 0;
    return false;
}

static bool others_differ(const struct awaited *awaited)
{
    const struct turns *turns = &awaited->node->turns;
    uint32_t call;
    bool differ = turn_stranger(turns, &call) < turns->ranks || others_have_passed(awaited);
    if (OPAL_UNLIKELY(differ))
        atomic_store_explicit(&awaited->findings->differ, true, memory_order_relaxed);
    return differ;
}

static int look(const void *with)
{
    const struct awaited *awaited = with;
    const node_module_t *node = awaited->node;
    int status = node_failure(node);
    if (status != OMPI_SUCCESS)
        return status;
    if (others_differ(awaited))
        return MPI_ERR_OTHER;
    for (uint32_t rank = 0; rank < node->turns.ranks; rank++)
        if (rank != node->me && !turn_is_there(&node->turns, rank) &&
            !found.commons.lives(node->parts[rank]))
            return COMPAT_ERR_PROC_FAILED;
    return OMPI_SUCCESS;
}

static inline bool is_over(struct turns *turns, const struct awaited *awaited,
                           struct multilane_wait *wait)
{
    return awaited->is_result ? turn_has_result(turns, &wait->word, &wait->seen)
                              : turn_all_arrived(turns, awaited->turn, &wait->word, &wait->seen);
}

static int wait_until(node_module_t *node, bool is_result, uint32_t turn, int tag)
{
    struct turns *turns = &node->turns;
    struct findings findings = {0, false};
    const struct awaited awaited = {node, turn, is_result, &findings};
    struct multilane_wait wait = {
        .comm = node->entry.comm, .tag = tag, .look = look, .missing = missing, .with = &awaited};
    int status = OMPI_SUCCESS;
    for (int left = turns->looks ? LOOKS : 1; left > 0; left--)
        if (OPAL_LIKELY(is_over(turns, &awaited, &wait)))
            return OMPI_SUCCESS;
    atomic_fetch_add_explicit(&turns->area->sleepers, 1, memory_order_seq_cst);
    while (status == OMPI_SUCCESS && !is_over(turns, &awaited, &wait))
        status = found.service->wait(&wait);
    atomic_fetch_sub_explicit(&turns->area->sleepers, 1, memory_order_relaxed);
    if (OPAL_LIKELY(status == OMPI_SUCCESS))
        return OMPI_SUCCESS;
    if (atomic_load_explicit(&findings.differ, memory_order_relaxed))
        (void) node_calls_differ(node);
    return node_fail(node, status);
}

int node_wait_others(node_module_t *node, uint32_t turn, int tag)
{
    return wait_until(node, false, turn, tag);
}

int node_wait_result(node_module_t *node, int tag)
{
    int status = wait_until(node, true, node->turns.turn, tag);
    if (OPAL_UNLIKELY(status != OMPI_SUCCESS))
        return status;
    status = node_teller_calls_this(node);
    return OPAL_LIKELY(status == OMPI_SUCCESS) ? OMPI_SUCCESS : node_fail(node, status);
}
