/* SPDX-License-Identifier: BSD-3-Clause */
/* The flush. The processor may learn that data was written to device memory while the bytes are
 * still on the bus. A read by the same device from the same address cannot pass them: when it ends,
 * they are there. The read goes over a connection of the port with itself, kept as one more peer
 * and made when device memory is first registered. */
#include "btl/verbs/verbs.h"

/* The bytes that the flush reads; their value is not used. */
#define FLUSH_BYTES 4u

/* Under loop->lock. */
static bool loop_connect(verbs_peer_t *loop)
{
    if (verbs_peer_state(loop) == PEER_FAILED && !verbs_peer_renew(loop))
        return false;
    return verbs_peer_state(loop) != PEER_IDLE || verbs_pair_to_itself(loop);
}

/* Under module->lock. */
static bool loop_make(struct verbs_module *module)
{
    if (!module->flush_region)
        module->flush_region = ibv_reg_mr(module->pd, &module->flush_bytes,
                                          sizeof(module->flush_bytes), IBV_ACCESS_LOCAL_WRITE);
    if (module->flush_region && !module->loop)
        module->loop = verbs_peer_create(module, &opal_proc_local_get()->proc_name);
    return module->loop != NULL;
}

bool verbs_flush_is_ready(struct verbs_module *module)
{
    OPAL_THREAD_LOCK(&module->lock);
    bool ready = loop_make(module);
    OPAL_THREAD_UNLOCK(&module->lock);
    if (!ready)
        return false;
    OPAL_THREAD_LOCK(&module->loop->lock);
    ready = loop_connect(module->loop);
    OPAL_THREAD_UNLOCK(&module->loop->lock);
    return ready;
}

void verbs_flush_close(struct verbs_module *module)
{
    if (module->flush_region)
        ibv_dereg_mr(module->flush_region);
    module->flush_region = NULL;
}

static void flush_ended(mca_btl_base_module_t *btl, verbs_peer_t *loop, void *local,
                        mca_btl_base_registration_handle_t *handle, void *context, void *data,
                        int status)
{
    const struct verbs_work *work = data;

    atomic_fetch_add_explicit(&module_of(btl)->flushes, 1, memory_order_relaxed);
    work->flushed(context, status);
}

int verbs_flush_start(mca_btl_base_module_t *btl, verbs_peer_t *peer,
                      mca_btl_base_registration_handle_t *registration, const void *address,
                      size_t length, multilane_flush_done done, void *context)
{
    struct verbs_module *module = module_of(btl);
    mca_btl_base_registration_handle_t scratch = {.remote_key = 0};

    if (!registration->device || length == 0 || !verbs_flush_is_ready(module))
        return OPAL_ERR_NOT_AVAILABLE;
    scratch.local_key = module->flush_region->lkey;
    struct verbs_work *work = verbs_work_get(
        module, WORK_GET, (uint64_t) (uintptr_t) address,
        length < FLUSH_BYTES ? length : FLUSH_BYTES, registration,
        (struct remote_request){&module->flush_bytes, &scratch, flush_ended, context, NULL});
    if (work) {
        work->request.local_handle = NULL; /* it does not outlive this */
        work->request.data = work;
        work->flushed = done;
    }
    return verbs_submit_operation(module->loop, work);
}
