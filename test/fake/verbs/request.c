/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of the strict stand-in: posted, carried out, completed. */
#include "strict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a request comes to: a completion's status, or that it has to wait. */
enum { WAITS_FOR_PATH = -1, WAITS_FOR_RECEIVER = -2 };

#define ROUTE_BYTES 40u

static struct strict_pair *busy; /* pairs whose requests wait; under the lock */

/* --- receive buffers --- */

static int receives_add(struct ibv_context *context, uint32_t index, struct ibv_recv_wr *wr,
                        struct ibv_recv_wr **bad)
{
    struct wire_receives *queue = &fabric_get()->receives[index];
    struct strict_counts *counts = counts_of(context);
    int error = 0;

    fabric_lock();
    counts->receive_doorbells++;
    for (; wr && !error; wr = wr->next) {
        if (queue->count == queue->size || wr->num_sge != 1) {
            *bad = wr;
            error = queue->count == queue->size ? ENOMEM : EINVAL;
            break;
        }
        struct wire_region *region = fabric_region(wr->sg_list->lkey);
        if (!region || !(region->access & IBV_ACCESS_LOCAL_WRITE)) {
            *bad = wr;
            error = refuse(context, EINVAL, "a receive buffer that is not registered for writing");
            break;
        }
        queue->places[(queue->first + queue->count++) % QUEUE_PLACES] = (struct wire_buffer){
            .id = wr->wr_id, .address = wr->sg_list->addr, .length = wr->sg_list->length};
        counts->receives++;
    }
    fabric_unlock();
    return error;
}

int receive_post(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct wire_pair *wire = &fabric_get()->pairs[((struct strict_pair *) (void *) qp)->index];

    return receives_add(qp->context, wire->receives, wr, bad);
}

int receive_post_shared(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    return receives_add(srq->context, ((struct strict_srq *) (void *) srq)->index, wr, bad);
}

static bool buffer_take(const struct wire_pair *pair, struct wire_buffer *buffer)
{
    struct wire_receives *queue = &fabric_get()->receives[pair->receives];

    if (queue->count == 0)
        return false;
    *buffer = queue->places[queue->first];
    queue->first = (queue->first + 1) % QUEUE_PLACES;
    queue->count--;
    if (queue->limit != 0 && queue->count < queue->limit) {
        queue->limit = 0;
        event_send(fabric_get(), queue->context,
                   (struct wire_event){IBV_EVENT_SRQ_LIMIT_REACHED, 0, 0, pair->receives});
    }
    return true;
}

/* --- who receives --- */

static bool pkeys_meet(const struct wire_pair *from, const struct wire_pair *to)
{
    uint16_t mine = port_pkey(from->device, from->port, from->pkey_index);
    uint16_t other = port_pkey(to->device, to->port, to->pkey_index);

    return (mine & 0x7fff) != 0 && (mine & 0x7fff) == (other & 0x7fff) &&
           ((mine | other) & 0x8000) != 0;
}

static bool port_is_usable(const struct wire_pair *pair)
{
    const struct wire_device *device = &fabric_get()->devices[pair->device];

    return !device->dead && !device->ports[pair->port].down && fabric_alive(pair->context);
}

/* The pair that `number` at the end of `path` is, if anything gets there. */
static struct wire_pair *receiver_of(const struct wire_pair *from, const struct ibv_ah_attr *path,
                                     uint32_t number)
{
    struct wire_pair *to = fabric_pair(number);

    if (!to || to->type != from->type || (to->state != IBV_QPS_RTR && to->state != IBV_QPS_RTS) ||
        !port_is_usable(from) || !port_is_usable(to) || !port_is_at(to->device, to->port, path) ||
        !pkeys_meet(from, to))
        return NULL;
    return to;
}

/* --- the local end --- */

/* Gathers what the request names into one piece; NULL: a key does not allow it. The caller frees
 * it. */
static unsigned char *gather(const struct wire_pair *pair, const struct request *request)
{
    unsigned char *bytes = malloc(request->bytes + 1);
    uint32_t at = 0;

    if (request->wr.send_flags & IBV_SEND_INLINE) {
        memcpy(bytes, request->inlined, request->bytes);
        return bytes;
    }
    for (int i = 0; i < request->wr.num_sge; i++) {
        const struct ibv_sge *part = &request->parts[i];
        const struct wire_region *region = fabric_region(part->lkey);

        if (!region || region->pd != pair->pd || region->context != pair->context ||
            part->addr < region->start || part->addr - region->start > region->length ||
            part->length > region->length - (part->addr - region->start)) {
            free(bytes);
            return NULL;
        }
        memcpy(bytes + at,
               (const void *) (uintptr_t) (region->address + (part->addr - region->start)),
               part->length);
        at += part->length;
    }
    return bytes;
}

/* Where a read or an atomic puts what it brings; 0: a key does not allow it. */
static uint64_t local_target(const struct wire_pair *pair, const struct request *request)
{
    const struct ibv_sge *part = &request->parts[0];
    const struct wire_region *region = request->wr.num_sge == 1 ? fabric_region(part->lkey) : NULL;

    if (!region || region->pd != pair->pd || region->context != pair->context ||
        !(region->access & IBV_ACCESS_LOCAL_WRITE) || part->addr < region->start ||
        part->addr - region->start > region->length ||
        part->length > region->length - (part->addr - region->start))
        return 0;
    return region->address + (part->addr - region->start);
}

/* --- the remote end --- */

/* Where remote memory is in its process; 0: the key or the pair does not allow it. */
static uint64_t remote_target(const struct wire_pair *to, uint32_t key, uint64_t address,
                              uint32_t length, uint32_t access)
{
    const struct wire_region *region = fabric_region(key);

    if (!region || region->context != to->context || region->pd != to->pd ||
        !(region->access & access) || !(to->access & access) || address < region->start ||
        address - region->start > region->length ||
        length > region->length - (address - region->start))
        return 0;
    if (access == IBV_ACCESS_REMOTE_ATOMIC &&
        ((region->access & IBV_ACCESS_RELAXED_ORDERING) || address % 8 != 0) &&
        (profile_get()->rules & RULE_RELAXED_NO_ATOMICS))
        return 0;
    return region->address + (address - region->start);
}

static int access_refused(struct wire_pair *to)
{
    to->state = IBV_QPS_ERR;
    event_send(fabric_get(), to->context,
               (struct wire_event){IBV_EVENT_QP_ACCESS_ERR, 0, to->number, 0});
    return IBV_WC_REM_ACCESS_ERR;
}

static pid_t process_of(const struct wire_pair *pair)
{
    return fabric_get()->contexts[pair->context].pid;
}

static int write_do(struct wire_pair *from, struct wire_pair *to, const struct request *request,
                    const unsigned char *bytes)
{
    uint64_t target = remote_target(to, request->wr.wr.rdma.rkey, request->wr.wr.rdma.remote_addr,
                                    request->bytes, IBV_ACCESS_REMOTE_WRITE);

    if (request->bytes == 0)
        return IBV_WC_SUCCESS;
    if (!target)
        return access_refused(to);
    if (profile_get()->delay_ms) {
        held_add(from, to, bytes, target, request->bytes);
        return IBV_WC_SUCCESS;
    }
    return fabric_copy(getpid(), (uint64_t) (uintptr_t) bytes, process_of(to), target,
                       request->bytes)
               ? IBV_WC_SUCCESS
               : WAITS_FOR_PATH;
}

static int read_do(const struct wire_pair *from, struct wire_pair *to,
                   const struct request *request)
{
    uint64_t target = local_target(from, request), source;

    if (from->reads_out == 0 || to->reads_in == 0)
        return IBV_WC_REM_INV_REQ_ERR;
    if (request->bytes == 0)
        return IBV_WC_SUCCESS;
    if (!target)
        return IBV_WC_LOC_PROT_ERR;
    source = remote_target(to, request->wr.wr.rdma.rkey, request->wr.wr.rdma.remote_addr,
                           request->bytes, IBV_ACCESS_REMOTE_READ);
    if (!source)
        return access_refused(to);
    held_release(from->number, 0);
    return fabric_copy(process_of(to), source, getpid(), target, request->bytes) ? IBV_WC_SUCCESS
                                                                                 : WAITS_FOR_PATH;
}

static int atomic_do(const struct wire_pair *from, struct wire_pair *to,
                     const struct request *request)
{
    uint64_t target = local_target(from, request), there, before, after;

    if (!target || request->bytes != 8)
        return IBV_WC_LOC_PROT_ERR;
    there = remote_target(to, request->wr.wr.atomic.rkey, request->wr.wr.atomic.remote_addr, 8,
                          IBV_ACCESS_REMOTE_ATOMIC);
    if (from->reads_out == 0 || to->reads_in == 0 || profile_get()->atomics == 0)
        return IBV_WC_REM_INV_REQ_ERR;
    if (!there)
        return access_refused(to);
    held_release(from->number, 0);
    if (!fabric_copy(process_of(to), there, getpid(), (uint64_t) (uintptr_t) &before, 8))
        return WAITS_FOR_PATH;
    if (request->wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
        after = before + request->wr.wr.atomic.compare_add;
    else
        after = before == request->wr.wr.atomic.compare_add ? request->wr.wr.atomic.swap : before;
    memcpy((void *) (uintptr_t) target, &before, 8);
    return fabric_copy(getpid(), (uint64_t) (uintptr_t) &after, process_of(to), there, 8)
               ? IBV_WC_SUCCESS
               : WAITS_FOR_PATH;
}

static int send_do(const struct wire_pair *from, struct wire_pair *to,
                   const struct request *request, const unsigned char *bytes)
{
    bool is_datagram = from->type == IBV_QPT_UD,
         has_word = request->wr.opcode == IBV_WR_SEND_WITH_IMM;
    uint32_t route = is_datagram ? ROUTE_BYTES : 0;
    struct ibv_wc wc = {.opcode = IBV_WC_RECV,
                        .byte_len = request->bytes + route,
                        .imm_data = request->wr.imm_data,
                        .qp_num = to->number,
                        .src_qp = from->number,
                        .wc_flags = has_word ? IBV_WC_WITH_IMM : 0};
    struct wire_buffer buffer;

    if (!buffer_take(to, &buffer))
        return WAITS_FOR_RECEIVER;
    wc.wr_id = buffer.id;
    held_release(from->number, 0);
    if (wc.byte_len > buffer.length) {
        wc.status = IBV_WC_LOC_LEN_ERR;
        completion_push(to->receive_cq, &wc, 0);
        to->state = IBV_QPS_ERR;
        return IBV_WC_REM_INV_REQ_ERR;
    }
    if (!fabric_copy(getpid(), (uint64_t) (uintptr_t) bytes, process_of(to), buffer.address + route,
                     request->bytes))
        return WAITS_FOR_PATH;
    completion_push(to->receive_cq, &wc, 0);
    return IBV_WC_SUCCESS;
}

/* --- one request --- */

static int datagram_do(const struct wire_pair *from, const struct request *request,
                       const unsigned char *bytes)
{
    struct wire_pair *to = receiver_of(from, &request->path, request->wr.wr.ud.remote_qpn);

    if (profile_get()->datagrams && fabric_get()->devices[from->device].ports[from->port].down)
        return IBV_WC_LOC_QP_OP_ERR;
    if (!to || to->qkey != request->wr.wr.ud.remote_qkey ||
        send_do(from, to, request, bytes) != IBV_WC_SUCCESS)
        fabric_get()->contexts[from->context].counts.datagrams_lost++;
    return IBV_WC_SUCCESS;
}

static int request_do(struct wire_pair *from, const struct request *request)
{
    bool reads = request->wr.opcode == IBV_WR_RDMA_READ ||
                 request->wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
                 request->wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
    unsigned char *bytes = reads ? NULL : gather(from, request);
    struct wire_pair *to;
    int status;

    if (!reads && !bytes)
        return IBV_WC_LOC_PROT_ERR;
    to = receiver_of(from, &from->path, from->peer);
    if (from->type == IBV_QPT_UD)
        status = datagram_do(from, request, bytes);
    else if (!to)
        status = WAITS_FOR_PATH;
    else if (request->wr.opcode == IBV_WR_RDMA_WRITE)
        status = write_do(from, to, request, bytes);
    else if (request->wr.opcode == IBV_WR_RDMA_READ)
        status = read_do(from, to, request);
    else if (reads)
        status = atomic_do(from, to, request);
    else
        status = send_do(from, to, request, bytes);
    free(bytes);
    return status;
}

static void request_end(struct strict_pair *pair, struct wire_pair *wire, struct request *request,
                        int status)
{
    static const enum ibv_wc_opcode opcodes[] = {
        [IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
        [IBV_WR_SEND] = IBV_WC_SEND,
        [IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
        [IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
        [IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_WC_COMP_SWAP,
        [IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_WC_FETCH_ADD,
    };
    struct ibv_wc wc = {.wr_id = request->wr.wr_id,
                        .status = (enum ibv_wc_status) status,
                        .opcode = opcodes[request->wr.opcode],
                        .byte_len = request->bytes,
                        .qp_num = wire->number};

    /* After an error all are reported. */
    if ((request->wr.send_flags & IBV_SEND_SIGNALED) || status != IBV_WC_SUCCESS)
        completion_push(wire->send_cq, &wc, request->position);
    pair->first = request->next;
    if (!pair->first)
        pair->last = &pair->first;
    free(request);
}

/* Whether it still waits, or how that ends. A receiver without buffers is waited for for ever. */
static int wait_on(struct strict_pair *pair, struct request *request, int why)
{
    uint64_t now = now_ms();

    if (request->since_ms == 0 && why == WAITS_FOR_RECEIVER)
        counts_of(pair->qp.context)->waits_for_receiver++;
    if (request->since_ms == 0 || why == WAITS_FOR_RECEIVER)
        request->since_ms = now;
    return now - request->since_ms > (uint64_t) profile_get()->retry_ms ? IBV_WC_RETRY_EXC_ERR
                                                                        : why;
}

static void busy_set(struct strict_pair *pair)
{
    if (pair->is_busy)
        return;
    pair->is_busy = true;
    pair->next_busy = busy;
    busy = pair;
}

static void busy_clear(struct strict_pair *pair)
{
    struct strict_pair **at = &busy;

    if (!pair->is_busy)
        return;
    while (*at != pair)
        at = &(*at)->next_busy;
    *at = pair->next_busy;
    pair->is_busy = false;
}

void requests_run(struct strict_pair *pair)
{
    struct wire_pair *wire = &fabric_get()->pairs[pair->index];

    while (pair->first && !context_is_dead(pair->qp.context)) {
        struct request *request = pair->first;
        int status = wire->state == IBV_QPS_ERR ? IBV_WC_WR_FLUSH_ERR : request_do(wire, request);

        if (status < 0)
            status = wait_on(pair, request, status);
        if (status < 0) {
            busy_set(pair);
            return;
        }
        request_end(pair, wire, request, status);
        if (status != IBV_WC_SUCCESS && wire->state != IBV_QPS_ERR) {
            wire->state = IBV_QPS_ERR;
            if (wire->is_shared)
                event_send(fabric_get(), wire->context,
                           (struct wire_event){IBV_EVENT_QP_LAST_WQE_REACHED, 0, wire->number, 0});
        }
    }
    busy_clear(pair);
}

void requests_drop(struct strict_pair *pair)
{
    busy_clear(pair);
    while (pair->first) {
        struct request *request = pair->first;

        pair->first = request->next;
        free(request);
    }
}

/* --- posting --- */

static uint32_t bytes_of(const struct ibv_send_wr *wr)
{
    uint32_t bytes = 0;

    for (int i = 0; i < wr->num_sge; i++)
        bytes += wr->sg_list[i].length;
    return bytes;
}

static int wr_check(struct strict_pair *pair, const struct wire_pair *wire,
                    const struct ibv_send_wr *wr)
{
    struct ibv_context *context = pair->qp.context;

    if (wire->state != IBV_QPS_RTS && wire->state != IBV_QPS_ERR)
        return refuse(context, EINVAL, "a request in state %u", wire->state);
    if (pair->posted - pair->freed >= pair->cap.max_send_wr)
        return ENOMEM;
    if (wr->num_sge < 0 || (uint32_t) wr->num_sge > pair->cap.max_send_sge)
        return refuse(context, EINVAL, "%d parts", wr->num_sge);
    if ((wr->send_flags & IBV_SEND_INLINE) &&
        (bytes_of(wr) > pair->cap.max_inline_data || wr->opcode == IBV_WR_RDMA_READ))
        return refuse(context, EINVAL, "%u bytes inline", bytes_of(wr));
    return 0;
}

static void request_add(struct strict_pair *pair, const struct ibv_send_wr *wr)
{
    bool is_inline = wr->send_flags & IBV_SEND_INLINE;
    uint32_t bytes = bytes_of(wr), at = 0;
    struct request *request = calloc(1, sizeof(*request) + (is_inline ? bytes : 0));

    request->wr = *wr;
    request->bytes = bytes;
    request->position = pair->posted++;
    for (int i = 0; i < wr->num_sge; i++) {
        request->parts[i] = wr->sg_list[i];
        if (is_inline) {
            memcpy(request->inlined + at, (const void *) (uintptr_t) wr->sg_list[i].addr,
                   wr->sg_list[i].length);
            at += wr->sg_list[i].length;
        }
    }
    if (pair->qp.qp_type == IBV_QPT_UD)
        request->path = ((const struct strict_ah *) (const void *) wr->wr.ud.ah)->path;
    *pair->last = request;
    pair->last = &request->next;
}

/* Events that the profile wants after so many requests of the first host. */
static void at_look(struct ibv_context *context, uint64_t posts)
{
    const struct profile *profile = profile_get();

    for (int i = 0; i < profile->at_count; i++)
        if (posts == (uint64_t) profile->at[i].posts &&
            context_of(context)->device < (uint32_t) profile->devices)
            (void) event_make(fabric_get(), profile->at[i].what, (uint32_t) profile->at[i].device,
                              (uint32_t) profile->at[i].port);
}

int request_post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct strict_pair *pair = (struct strict_pair *) (void *) qp;
    struct wire_pair *wire = &fabric_get()->pairs[pair->index];
    struct strict_counts *counts = counts_of(qp->context);
    int error = 0;

    fabric_lock();
    counts->doorbells++;
    for (; wr && !error; wr = wr->next) {
        error = wr_check(pair, wire, wr);
        if (error) {
            *bad = wr;
            break;
        }
        counts->posts++;
        counts->signaled += (wr->send_flags & IBV_SEND_SIGNALED) != 0;
        counts->inlined += (wr->send_flags & IBV_SEND_INLINE) != 0;
        request_add(pair, wr);
        at_look(qp->context, counts->posts);
    }
    requests_run(pair);
    fabric_unlock();
    return error;
}

/* --- polling --- */

static void waiting_run(void)
{
    struct strict_pair *next;

    held_release(0, 0);
    for (struct strict_pair *pair = busy; pair; pair = next) {
        next = pair->next_busy;
        requests_run(pair);
    }
}

int completions_poll(struct ibv_cq *cq, int room, struct ibv_wc *wc)
{
    struct wire_cq *wire = &fabric_get()->cqs[((struct strict_cq *) (void *) cq)->index];
    struct strict_counts *counts = counts_of(cq->context);
    int count = 0;

    counts->polls++;
    /* Without the lock: the next round sees what comes now. */
    if (__atomic_load_n(&wire->count, __ATOMIC_RELAXED) == 0 && !busy &&
        fabric_get()->held_count == 0) {
        counts->empty_polls++;
        return 0;
    }
    fabric_lock();
    waiting_run();
    while (count < room && wire->count > 0) { /* of a dead device: what had ended before */
        const struct wire_completion *place = &wire->places[wire->first];
        struct strict_pair *pair = pair_local(place->wc.qp_num);

        wc[count++] = place->wc;
        if (pair && place->wc.opcode != IBV_WC_RECV)
            pair->freed = place->position + 1;
        wire->first = (wire->first + 1) % QUEUE_PLACES;
        wire->count--;
    }
    counts->completions += (uint64_t) count;
    counts->empty_polls += count == 0;
    fabric_unlock();
    return count;
}
