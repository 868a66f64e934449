/* SPDX-License-Identifier: BSD-3-Clause */
/* What is made on a device of the strict stand-in: domains, regions, address handles, queues and
 * pairs of queues; each with what drivers refuse. */
#include "strict.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE 4096u

static uint64_t pages(uint64_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* --- domains --- */

API struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    static uint32_t next; /* atomic */
    struct ibv_pd *pd = calloc(1, sizeof(*pd));

    pd->context = context;
    pd->handle = __atomic_add_fetch(&next, 1, __ATOMIC_RELAXED);
    return pd;
}

API int ibv_dealloc_pd(struct ibv_pd *pd)
{
    free(pd);
    return 0;
}

/* --- regions --- */

static uint32_t region_take(void)
{
    struct fabric *fabric = fabric_get();

    for (uint32_t i = 0; i < REGIONS; i++) {
        uint32_t at = (fabric->next_region + i) % REGIONS;

        if (fabric->regions[at].key == 0) {
            fabric->next_region = at + 1;
            return at;
        }
    }
    return REGIONS;
}

static struct ibv_mr *region_make(struct ibv_pd *pd, void *address, size_t length, uint64_t start,
                                  unsigned access)
{
    struct ibv_mr *mr = calloc(1, sizeof(*mr));
    struct wire_region *region;
    uint32_t at;

    if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
        !(access & IBV_ACCESS_LOCAL_WRITE)) {
        refuse(pd->context, EINVAL, "a region that only others may write");
        free(mr);
        return NULL;
    }
    fabric_lock();
    at = region_take();
    if (at == REGIONS || !pin(pd->context, (int64_t) pages(length))) {
        fabric_unlock();
        free(mr);
        errno = ENOMEM;
        return NULL;
    }
    region = &fabric_get()->regions[at];
    region->generation = region->generation % 255 + 1;
    region->key = at * 256 + region->generation;
    region->context = context_of(pd->context)->index;
    region->pd = pd->handle;
    region->access = access;
    region->address = (uint64_t) (uintptr_t) address;
    region->start = start;
    region->length = length;
    counts_of(pd->context)->regions++;
    fabric_unlock();
    *mr = (struct ibv_mr){.context = pd->context,
                          .pd = pd,
                          .addr = address,
                          .length = length,
                          .lkey = region->key,
                          .rkey = region->key};
    return mr;
}

#undef ibv_reg_mr
#undef ibv_reg_mr_iova
API struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access)
{
    return region_make(pd, address, length, (uint64_t) (uintptr_t) address, (unsigned) access);
}

API struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *address, size_t length, uint64_t start,
                                   int access)
{
    return region_make(pd, address, length, start, (unsigned) access);
}

API struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *address, size_t length, uint64_t start,
                                    unsigned access)
{
    return region_make(pd, address, length, start, access);
}

API int ibv_dereg_mr(struct ibv_mr *mr)
{
    fabric_lock();
    struct wire_region *region = fabric_region(mr->lkey);
    if (region)
        region->key = 0;
    (void) pin(mr->context, -(int64_t) pages(mr->length));
    fabric_unlock();
    free(mr);
    return 0;
}

/* --- address handles --- */

/* Whether a path can begin here: the GID exists and belongs to this process's namespace. */
static bool path_is_good(struct ibv_context *context, const struct ibv_ah_attr *path)
{
    struct ibv_gid_entry entry;
    const struct profile *profile = profile_get();

    if (profile->roce && !path->is_global)
        return !refuse(context, EINVAL, "a path on RoCE without a global route");
    if (profile->roce && (profile->rules & RULE_ROCE_SL) && path->sl > 7)
        return !refuse(context, EINVAL, "service level %u on RoCE", path->sl);
    if (!path->is_global)
        return true;
    if (!port_gid(context_of(context)->device, path->port_num, path->grh.sgid_index, &entry))
        return !refuse(context, EINVAL, "GID index %u", path->grh.sgid_index);
    if (path->grh.sgid_index < profile->foreign)
        return !refuse(context, ENODEV, "GID index %u of another network namespace",
                       path->grh.sgid_index);
    return true;
}

/* A connection has the quality of service that the profile asks for. */
static bool path_is_served(struct ibv_context *context, const struct ibv_ah_attr *path)
{
    const struct profile *profile = profile_get();

    if (profile->sl && path->sl != profile->sl)
        return !refuse(context, EINVAL, "service level %u", path->sl);
    if (profile->traffic_class && path->grh.traffic_class != profile->traffic_class)
        return !refuse(context, EINVAL, "traffic class %u", path->grh.traffic_class);
    return true;
}

API struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *path)
{
    struct strict_ah *made = calloc(1, sizeof(*made));

    fabric_lock();
    bool good = !context_is_dead(pd->context) && path_is_good(pd->context, path);
    fabric_unlock();
    if (!good) {
        free(made);
        return NULL;
    }
    made->ah.context = pd->context;
    made->ah.pd = pd;
    made->path = *path;
    return &made->ah;
}

API int ibv_destroy_ah(struct ibv_ah *ah)
{
    free(ah);
    return 0;
}

/* --- completion queues --- */

API struct ibv_cq *ibv_create_cq(struct ibv_context *context, int entries, void *of_user,
                                 struct ibv_comp_channel *channel, int vector)
{
    struct strict_cq *made = calloc(1, sizeof(*made));
    struct fabric *fabric = fabric_get();
    uint32_t i = 0;

    (void) vector;
    if (entries < 1 || entries > profile_get()->max_cqe || entries > (int) QUEUE_PLACES) {
        refuse(context, EINVAL, "a completion queue of %d", entries);
        free(made);
        return NULL;
    }
    fabric_lock();
    while (i < QUEUES && fabric->cqs[i].used)
        i++;
    if (i == QUEUES || !pin(context, (int64_t) pages((uint64_t) entries * 64))) {
        fabric_unlock();
        free(made);
        errno = ENOMEM;
        return NULL;
    }
    fabric->cqs[i].used = 1;
    fabric->cqs[i].size = (uint32_t) entries;
    fabric->cqs[i].first = fabric->cqs[i].count = fabric->cqs[i].dead = 0;
    fabric->cqs[i].context = context_of(context)->index;
    fabric_unlock();
    made->index = i;
    made->cq.context = context;
    made->cq.channel = channel;
    made->cq.cq_context = of_user;
    made->cq.cqe = entries;
    return &made->cq;
}

API int ibv_destroy_cq(struct ibv_cq *cq)
{
    struct strict_cq *made = (struct strict_cq *) (void *) cq;

    fabric_lock();
    fabric_get()->cqs[made->index].used = 0;
    (void) pin(cq->context, -(int64_t) pages((uint64_t) cq->cqe * 64));
    fabric_unlock();
    free(made);
    return 0;
}

/* --- receive queues --- */

/* Under the lock. QUEUES: there is none. */
static uint32_t receives_take(struct ibv_context *context, uint32_t size)
{
    struct fabric *fabric = fabric_get();

    for (uint32_t i = 0; i < QUEUES; i++) {
        struct wire_receives *queue = &fabric->receives[i];

        if (queue->used)
            continue;
        queue->used = 1;
        queue->size = size < QUEUE_PLACES ? size : QUEUE_PLACES;
        queue->first = queue->count = queue->limit = 0;
        queue->context = context_of(context)->index;
        return i;
    }
    return QUEUES;
}

API struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attributes)
{
    struct strict_srq *made = calloc(1, sizeof(*made));
    const struct profile *profile = profile_get();
    uint32_t size = attributes->attr.max_wr;

    if (profile->max_srq == 0 || size == 0 || size > (uint32_t) profile->max_srq_wr ||
        attributes->attr.max_sge > (uint32_t) profile->max_sge) {
        refuse(pd->context, profile->max_srq == 0 ? EOPNOTSUPP : EINVAL,
               "a shared receive queue of %u", size);
        free(made);
        return NULL;
    }
    fabric_lock();
    made->index =
        pin(pd->context, (int64_t) pages(size * 32)) ? receives_take(pd->context, size) : QUEUES;
    fabric_unlock();
    if (made->index == QUEUES) {
        free(made);
        errno = ENOMEM;
        return NULL;
    }
    made->srq.context = pd->context;
    made->srq.pd = pd;
    return &made->srq;
}

API int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attributes, int mask)
{
    struct strict_srq *made = (struct strict_srq *) (void *) srq;
    struct wire_receives *queue = &fabric_get()->receives[made->index];

    if (mask != IBV_SRQ_LIMIT || attributes->srq_limit >= queue->size)
        return refuse(srq->context, EINVAL, "a limit of %u in a shared receive queue of %u",
                      attributes->srq_limit, queue->size);
    fabric_lock();
    queue->limit = attributes->srq_limit;
    fabric_unlock();
    return 0;
}

API int ibv_destroy_srq(struct ibv_srq *srq)
{
    struct strict_srq *made = (struct strict_srq *) (void *) srq;

    fabric_lock();
    fabric_get()->receives[made->index].used = 0;
    (void) pin(srq->context, -(int64_t) pages(fabric_get()->receives[made->index].size * 32));
    fabric_unlock();
    free(made);
    return 0;
}

/* --- pairs --- */

static struct strict_pair *locals[PAIRS]; /* under the lock */

struct strict_pair *pair_local(uint32_t number)
{
    struct strict_pair *pair = locals[number % PAIRS];

    return pair && pair->qp.qp_num == number ? pair : NULL;
}

/* The memory of its queues, which mlx5's library locks: requests of whole powers of two. */
static uint64_t queue_bytes(const struct ibv_qp_cap *cap)
{
    uint64_t request = (uint64_t) profile_get()->request_bytes + cap->max_inline_data, size = 64;

    if (profile_get()->request_bytes == 192) /* mlx5: what follows the 192 bytes is at most 64 */
        request = cap->max_inline_data <= 64 ? 256 : 192 + cap->max_inline_data;
    while (size < request)
        size *= 2;
    return pages(size * cap->max_send_wr) + pages((uint64_t) cap->max_recv_wr * 32);
}

static bool pair_is_allowed(struct ibv_context *context, const struct ibv_qp_init_attr *init)
{
    const struct profile *profile = profile_get();
    const struct ibv_qp_cap *cap = &init->cap;

    if (init->qp_type != IBV_QPT_RC && init->qp_type != IBV_QPT_UD)
        return !refuse(context, EOPNOTSUPP, "a pair of type %d", (int) init->qp_type);
    if (cap->max_send_wr > (uint32_t) profile->max_qp_wr ||
        cap->max_recv_wr > (uint32_t) profile->max_qp_wr)
        return !refuse(context, EINVAL, "a send queue of %u and a receive queue of %u",
                       cap->max_send_wr, cap->max_recv_wr);
    if (cap->max_send_sge > (uint32_t) profile->max_sge || cap->max_send_sge > 4)
        return !refuse(context, EINVAL, "%u parts a request", cap->max_send_sge);
    if (cap->max_inline_data > (uint32_t) profile->max_inline)
        return !refuse(context, EINVAL, "%u bytes inline", cap->max_inline_data);
    return true;
}

/* Under the lock. PAIRS: there is none. */
static uint32_t pair_take(struct ibv_context *context)
{
    struct fabric *fabric = fabric_get();
    struct wire_device *device = &fabric->devices[context_of(context)->device];

    if (device->pairs >= (uint32_t) profile_get()->max_qp)
        return PAIRS;
    for (uint32_t i = 0; i < PAIRS; i++) {
        uint32_t at = (fabric->next_pair + i) % PAIRS;

        if (fabric->pairs[at].number == 0 && at != 0) {
            fabric->next_pair = at + 1;
            device->pairs++;
            return at;
        }
    }
    return PAIRS;
}

static void pair_fill(struct wire_pair *wire, struct ibv_pd *pd,
                      const struct ibv_qp_init_attr *init, uint32_t at)
{
    uint32_t generation = wire->generation % 200 + 1;

    *wire = (struct wire_pair){
        .number = at + generation * PAIRS,
        .generation = generation,
        .context = context_of(pd->context)->index,
        .device = context_of(pd->context)->device,
        .pd = pd->handle,
        .type = init->qp_type,
        .state = IBV_QPS_RESET,
        .send_cq = ((struct strict_cq *) (void *) init->send_cq)->index,
        .receive_cq = ((struct strict_cq *) (void *) init->recv_cq)->index,
        .is_shared = init->srq != NULL,
        .receives = init->srq ? ((struct strict_srq *) (void *) init->srq)->index
                              : receives_take(pd->context, init->cap.max_recv_wr),
    };
}

API struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    struct strict_pair *made = calloc(1, sizeof(*made));
    uint64_t bytes = queue_bytes(&init->cap);
    uint32_t at = PAIRS;

    if (context_is_dead(pd->context) || !pair_is_allowed(pd->context, init)) {
        free(made);
        return NULL;
    }
    if (init->cap.max_inline_data > (uint32_t) profile_get()->inline_given)
        init->cap.max_inline_data = (uint32_t) profile_get()->inline_given;
    fabric_lock();
    if (pin(pd->context, (int64_t) bytes)) {
        at = pair_take(pd->context);
        if (at == PAIRS)
            (void) pin(pd->context, -(int64_t) bytes);
    }
    if (at == PAIRS) {
        fabric_unlock();
        free(made);
        errno = ENOMEM;
        return NULL;
    }
    struct wire_pair *wire = &fabric_get()->pairs[at];
    pair_fill(wire, pd, init, at);
    *made = (struct strict_pair){.index = at, .cap = init->cap, .pinned = bytes};
    made->last = &made->first;
    made->qp.context = pd->context;
    made->qp.pd = pd;
    made->qp.send_cq = init->send_cq;
    made->qp.recv_cq = init->recv_cq;
    made->qp.srq = init->srq;
    made->qp.qp_num = wire->number;
    made->qp.qp_type = init->qp_type;
    locals[at] = made;
    counts_of(pd->context)->pairs++;
    counts_of(pd->context)->pairs_now++;
    fabric_unlock();
    return &made->qp;
}

/* Takes the completions of a pair off a queue: those of a receive are lost with their buffers. */
static void cq_purge(uint32_t index, uint32_t number)
{
    struct wire_cq *cq = &fabric_get()->cqs[index];
    uint32_t kept = 0;

    for (uint32_t i = 0; i < cq->count; i++) {
        struct wire_completion *place = &cq->places[(cq->first + i) % QUEUE_PLACES];

        if (place->wc.qp_num != number)
            cq->places[(cq->first + kept++) % QUEUE_PLACES] = *place;
    }
    cq->count = kept;
}

/* All that it had is gone, as if it were new. */
static void pair_reset(struct strict_pair *pair, struct wire_pair *wire)
{
    held_release(wire->number, wire->number);
    requests_drop(pair);
    pair->last = &pair->first;
    pair->freed = pair->posted;
    if (profile_get()->rules & RULE_PURGE) {
        cq_purge(wire->send_cq, wire->number);
        cq_purge(wire->receive_cq, wire->number);
    }
    if (!wire->is_shared)
        fabric_get()->receives[wire->receives].count = 0;
    wire->state = IBV_QPS_RESET;
}

/* As in libibverbs it waits for events that were read to be acknowledged. */
static void acknowledged_wait(struct strict_pair *pair)
{
    for (int i = 0; i < 1000; i++) {
        fabric_lock();
        bool over = pair->unacknowledged == 0;
        fabric_unlock();
        if (over)
            return;
        usleep(10000);
    }
    fprintf(stderr, "test/fake/verbs: a pair is destroyed whose event is never acknowledged\n");
    abort();
}

API int ibv_destroy_qp(struct ibv_qp *qp)
{
    struct strict_pair *pair = (struct strict_pair *) (void *) qp;
    struct fabric *fabric = fabric_get();
    struct wire_pair *wire = &fabric->pairs[pair->index];

    acknowledged_wait(pair);
    fabric_lock();
    pair_reset(pair, wire);
    if (!wire->is_shared)
        fabric->receives[wire->receives].used = 0;
    fabric->devices[wire->device].pairs--;
    counts_of(qp->context)->pairs_now--;
    (void) pin(qp->context, -(int64_t) pair->pinned);
    wire->number = 0;
    locals[pair->index] = NULL;
    fabric_unlock();
    free(pair);
    return 0;
}

/* --- states of pairs --- */

static const struct transition {
    enum ibv_qp_type type;
    enum ibv_qp_state from, to;
    int needs, takes;
} transitions[] = {
    {IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
     0},
    {IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR,
     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
         IBV_QP_MIN_RNR_TIMER,
     IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH},
    {IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS,
     IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
     IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_ALT_PATH},
    {IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},
    {IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_QKEY},
};

static bool transition_is_good(struct ibv_context *context, const struct wire_pair *wire, int to,
                               int mask)
{
    for (size_t i = 0; i < sizeof(transitions) / sizeof(transitions[0]); i++) {
        const struct transition *at = &transitions[i];

        if (at->type == wire->type && at->from == wire->state && (int) at->to == to)
            return (mask & at->needs) == at->needs &&
                           (mask & ~(at->needs | at->takes | IBV_QP_STATE)) == 0
                       ? true
                       : !refuse(context, EINVAL, "attributes %#x on the way from state %u to %d",
                                 (unsigned) mask, wire->state, to);
    }
    return !refuse(context, EINVAL, "the way from state %u to %d", wire->state, to);
}

static bool depths_are_good(struct ibv_context *context, const struct ibv_qp_attr *values, int mask)
{
    const struct profile *profile = profile_get();
    bool mixed = profile->rules & RULE_READ_DEPTHS_MIXED;
    long out = mixed ? profile->reads_in : profile->reads_out;
    long in = mixed ? profile->reads_out : profile->reads_in;

    if (!(profile->rules & (RULE_READ_DEPTHS | RULE_READ_DEPTHS_MIXED)))
        return true;
    if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) && values->max_rd_atomic > out)
        return !refuse(context, EINVAL, "max_rd_atomic %u above %ld", values->max_rd_atomic, out);
    if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) && values->max_dest_rd_atomic > in)
        return !refuse(context, EINVAL, "max_dest_rd_atomic %u above %ld",
                       values->max_dest_rd_atomic, in);
    return true;
}

static bool values_are_good(struct ibv_context *context, const struct ibv_qp_attr *values, int mask)
{
    const struct profile *profile = profile_get();
    uint32_t device = context_of(context)->device;

    if ((mask & IBV_QP_PORT) && (values->port_num < 1 || values->port_num > profile->ports))
        return !refuse(context, EINVAL, "port %u", values->port_num);
    if ((mask & IBV_QP_PKEY_INDEX) && values->pkey_index >= (profile->roce ? 1 : profile->pkeys))
        return !refuse(context, EINVAL, "P_Key index %u", values->pkey_index);
    if ((mask & IBV_QP_PATH_MTU) && (profile->rules & RULE_PATH_MTU) &&
        128u << values->path_mtu > port_mtu(device, values->ah_attr.port_num))
        return !refuse(context, EINVAL, "path MTU %d", 128 << values->path_mtu);
    if ((mask & IBV_QP_TIMEOUT) && values->timeout > 31)
        return !refuse(context, EINVAL, "timeout %u", values->timeout);
    if (((mask & IBV_QP_RETRY_CNT) && values->retry_cnt > 7) ||
        ((mask & IBV_QP_RNR_RETRY) && values->rnr_retry > 7) ||
        ((mask & IBV_QP_MIN_RNR_TIMER) && values->min_rnr_timer > 31))
        return !refuse(context, EINVAL, "more retries than 3 bits say");
    if ((mask & IBV_QP_AV) &&
        (!path_is_good(context, &values->ah_attr) || !path_is_served(context, &values->ah_attr)))
        return false;
    return depths_are_good(context, values, mask);
}

static void values_take(struct wire_pair *wire, const struct ibv_qp_attr *values, int mask)
{
    if (mask & IBV_QP_PORT)
        wire->port = values->port_num;
    if (mask & IBV_QP_PKEY_INDEX)
        wire->pkey_index = values->pkey_index;
    if (mask & IBV_QP_ACCESS_FLAGS)
        wire->access = values->qp_access_flags;
    if (mask & IBV_QP_QKEY)
        wire->qkey = values->qkey;
    if (mask & IBV_QP_AV)
        wire->path = values->ah_attr;
    if (mask & IBV_QP_DEST_QPN)
        wire->peer = values->dest_qp_num;
    if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
        wire->reads_out = values->max_rd_atomic;
    if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
        wire->reads_in = values->max_dest_rd_atomic;
}

/* Nothing is received any more: with a shared queue an event says when the last buffer is used. */
static void pair_break(struct strict_pair *pair, struct wire_pair *wire)
{
    bool was = wire->state != IBV_QPS_ERR;

    wire->state = IBV_QPS_ERR;
    held_release(0, wire->number);
    requests_run(pair);
    if (was && wire->is_shared)
        event_send(fabric_get(), wire->context,
                   (struct wire_event){IBV_EVENT_QP_LAST_WQE_REACHED, 0, wire->number, 0});
}

API int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *values, int mask)
{
    struct strict_pair *pair = (struct strict_pair *) (void *) qp;
    struct wire_pair *wire = &fabric_get()->pairs[pair->index];
    int error = 0;

    if (context_is_dead(qp->context)) {
        errno = EIO;
        return EIO;
    }
    fabric_lock();
    if (!(mask & IBV_QP_STATE)) {
        error = refuse(qp->context, EINVAL, "attributes %#x without a state", (unsigned) mask);
    } else if (values->qp_state == IBV_QPS_ERR) {
        pair_break(pair, wire);
    } else if (values->qp_state == IBV_QPS_RESET) {
        pair_reset(pair, wire);
    } else if (!transition_is_good(qp->context, wire, values->qp_state, mask) ||
               !values_are_good(qp->context, values, mask)) {
        error = errno;
    } else {
        values_take(wire, values, mask);
        wire->state = values->qp_state;
        qp->state = values->qp_state;
    }
    fabric_unlock();
    return error;
}
