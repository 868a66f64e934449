/* SPDX-License-Identifier: BSD-3-Clause */
/* The receive buffers that the peers of a port share: few at first, more when the device says that
 * few are left, and posted again several at a time. */
#include "btl/verbs/verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_MOST 16u

/* Posts up to BATCH_MOST of those that were read, the last first, with one call. */
static bool batch_post(struct verbs_module *module)
{
    struct verbs_receives *receives = &module->receives;
    struct ibv_recv_wr requests[BATCH_MOST], *bad = NULL;
    struct ibv_sge parts[BATCH_MOST];
    uint32_t count = receives->unposted_count < BATCH_MOST ? receives->unposted_count : BATCH_MOST;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = receives->unposted[receives->unposted_count - 1 - i];

        parts[i] = (struct ibv_sge){
            .addr = (uint64_t) (uintptr_t) receives->buffers[index].memory,
            .length = (uint32_t) module->receive_bytes,
            .lkey = receives->buffers[index].key,
        };
        requests[i] = (struct ibv_recv_wr){.next = i + 1 < count ? &requests[i + 1] : NULL,
                                           .wr_id = (uint64_t) index << 8,
                                           .sg_list = &parts[i],
                                           .num_sge = 1};
    }
    if (count == 0)
        return false;
    int error = ibv_post_srq_recv(module->srq, requests, &bad);
    /* What the queue does not take now it is asked to take later. */
    receives->unposted_count -= error == 0 ? count : (uint32_t) (bad - requests);
    return error == 0;
}

void verbs_receives_post(struct verbs_module *module)
{
    while (batch_post(module))
        ;
}

void verbs_receive_again(struct verbs_module *module, uint32_t index)
{
    struct verbs_receives *receives = &module->receives;

    receives->unposted[receives->unposted_count++] = index;
    if (receives->unposted_count >= receives->batch)
        (void) batch_post(module);
}

/* The tables, for more buffers than there are. */
static bool tables_grow(struct verbs_receives *receives, uint32_t count)
{
    struct verbs_receive *buffers = realloc(receives->buffers, count * sizeof(*buffers));

    if (buffers)
        receives->buffers = buffers;
    uint32_t *unposted = realloc(receives->unposted, count * sizeof(*unposted));
    if (unposted)
        receives->unposted = unposted;
    return buffers && unposted;
}

/* Registers buffers up to `count`, to be posted. False: errno says why, and nothing has changed. */
static bool buffers_add(struct verbs_module *module, uint32_t count)
{
    struct verbs_receives *receives = &module->receives;
    struct verbs_memory *piece = &receives->pieces[receives->piece_count];
    size_t bytes = (count - receives->count) * module->receive_bytes;

    errno = ENOMEM;
    if (receives->piece_count == RECEIVE_PIECES || !tables_grow(receives, count) ||
        !verbs_memory_make(piece, module->pd, bytes, IBV_ACCESS_LOCAL_WRITE))
        return false;
    receives->piece_count++;
    for (uint32_t i = 0; receives->count < count; i++) {
        receives->buffers[receives->count] =
            (struct verbs_receive){piece->bytes + i * module->receive_bytes, piece->region->lkey};
        receives->unposted[receives->unposted_count++] = receives->count++;
    }
    return true;
}

/* The device tells once when fewer than a quarter are left. */
static void limit_set(struct verbs_module *module)
{
    struct verbs_receives *receives = &module->receives;
    struct ibv_srq_attr limit = {.srq_limit = receives->count / 4};

    receives->batch = receives->count / 4 < BATCH_MOST ? receives->count / 4 : BATCH_MOST;
    if (receives->count < receives->most &&
        ibv_modify_srq(module->srq, &limit, IBV_SRQ_LIMIT) != 0) {
        VERBS_VERBOSE("%s: it does not tell when few receive buffers are left; it keeps %u",
                      module->device, receives->count);
        receives->most = receives->count;
    }
}

bool verbs_receives_open(struct verbs_module *module, uint32_t count, uint32_t most)
{
    module->receives.most = most;
    if (!buffers_add(module, count))
        return false;
    verbs_receives_post(module);
    if (module->receives.unposted_count != 0)
        return false;
    limit_set(module);
    return true;
}

void verbs_receives_grow(struct verbs_module *module)
{
    struct verbs_receives *receives = &module->receives;
    uint32_t count = 2 * receives->count < receives->most ? 2 * receives->count : receives->most;

    if (receives->count >= receives->most)
        return;
    if (!buffers_add(module, count)) {
        VERBS_VERBOSE("%s: no more than %u receive buffers: %s", module->device, receives->count,
                      strerror(errno));
        receives->most = receives->count;
        return;
    }
    VERBS_VERBOSE("%s: %u receive buffers, as few were left", module->device, receives->count);
    verbs_receives_post(module);
    limit_set(module);
}

void verbs_receives_close(struct verbs_module *module)
{
    struct verbs_receives *receives = &module->receives;

    for (uint32_t i = 0; i < receives->piece_count; i++)
        verbs_memory_free(&receives->pieces[i]);
    free(receives->buffers);
    free(receives->unposted);
    *receives = (struct verbs_receives){.count = 0};
}
