/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices of the strict stand-in: opened, asked for what they are, read for events. */
#include "strict.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The host that this process plays: by its rank where the profile has several. */
static uint32_t host(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");

    return (uint32_t) (rank ? atol(rank) % profile_get()->hosts : 0);
}

/* --- the list of devices --- */

API struct ibv_device **ibv_get_device_list(int *count)
{
    const struct profile *profile = profile_get();
    struct ibv_device **list = calloc((size_t) profile->devices + 1, sizeof(*list));
    static struct ibv_device devices[4]; /* as in libibverbs they live as long as the process */

    for (long i = 0; list && i < profile->devices; i++) {
        list[i] = &devices[i];
        list[i]->node_type = IBV_NODE_CA;
        list[i]->transport_type = (enum ibv_transport_type) profile_get()->transport;
        snprintf(list[i]->name, sizeof(list[i]->name), "%s_%ld", profile->name, i);
        snprintf(list[i]->dev_name, sizeof(list[i]->dev_name), "strict%ld", i);
    }
    if (count)
        *count = list ? (int) profile->devices : 0;
    return list;
}

API void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

API int ibv_fork_init(void)
{
    return 0;
}

API enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return IBV_FORK_UNNEEDED;
}

/* --- one device --- */

struct strict_context *context_of(struct ibv_context *context)
{
    return (struct strict_context *) (void *) ((char *) context -
                                               offsetof(struct strict_context, verbs.context));
}

struct strict_counts *counts_of(struct ibv_context *context)
{
    return &fabric_get()->contexts[context_of(context)->index].counts;
}

bool context_is_dead(struct ibv_context *context)
{
    return fabric_get()->devices[context_of(context)->device].dead != 0;
}

int refuse(struct ibv_context *context, int error, const char *what, ...)
{
    va_list values;

    __atomic_add_fetch(&counts_of(context)->refused, 1, __ATOMIC_RELAXED);
    if (getenv("MULTILANE_STRICT_SAYS")) {
        char text[256];

        va_start(values, what);
        vsnprintf(text, sizeof(text), what, values);
        va_end(values);
        fprintf(stderr, "strict %s refuses: %s\n", profile_get()->name, text);
    }
    errno = error;
    return error;
}

bool pin(struct ibv_context *context, int64_t bytes)
{
    struct strict_counts *counts = counts_of(context);
    const struct profile *profile = profile_get();

    if (bytes > 0 && profile->memlock &&
        counts->pinned + (uint64_t) bytes > (uint64_t) profile->memlock) {
        errno = ENOMEM;
        return false;
    }
    counts->pinned += (uint64_t) bytes;
    if (counts->pinned > counts->pinned_most)
        counts->pinned_most = counts->pinned;
    return true;
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attributes,
                      size_t length)
{
    const struct profile *profile = profile_get();
    uint32_t device = context_of(context)->device;
    struct ibv_port_attr all = {
        .state = IBV_PORT_ACTIVE,
        .max_mtu = IBV_MTU_4096,
        .gid_tbl_len = (int) profile->gids,
        .max_msg_sz = 1u << 30,
        .pkey_tbl_len = (uint16_t) (profile->roce ? 1 : profile->pkeys),
        .active_width = (uint8_t) profile->width,
        .phys_state = 5,
        .link_layer = profile->roce ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND,
    };
    long speed = port == PORTS && profile->slow_port ? profile->slow_port : profile->speed;

    if (port == 0 || port > profile->ports)
        return refuse(context, EINVAL, "port %u", port);
    if (context_is_dead(context))
        return EIO;
    fabric_lock();
    uint32_t mtu = port_mtu(device, port);
    all.active_mtu = mtu >= 4096   ? IBV_MTU_4096
                     : mtu >= 2048 ? IBV_MTU_2048
                     : mtu >= 1024 ? IBV_MTU_1024
                                   : IBV_MTU_256;
    all.lid = port_lid(device, port);
    if (fabric_get()->devices[device].ports[port].down)
        all.state = IBV_PORT_DOWN;
    fabric_unlock();
    all.active_speed = (uint8_t) speed; /* XDR does not fit it */
    memcpy(attributes, &all, length < sizeof(all) ? length : sizeof(all));
    return 0;
}

static void counts_print(void)
{
    struct strict_counts sum;

    if (!getenv("MULTILANE_STRICT_COUNTS"))
        return;
    strict_verbs_counts(&sum);
    fprintf(
        stderr,
        "strict verbs: %llu posts, %llu doorbells, %llu signaled, %llu inline, %llu receives, %llu "
        "receive doorbells, %llu polls, %llu of them empty, %llu completions, %llu pairs, %llu "
        "regions, %llu bytes pinned at most, %llu waits for a receiver, %llu datagrams lost, "
        "%llu refused\n",
        (unsigned long long) sum.posts, (unsigned long long) sum.doorbells,
        (unsigned long long) sum.signaled, (unsigned long long) sum.inlined,
        (unsigned long long) sum.receives, (unsigned long long) sum.receive_doorbells,
        (unsigned long long) sum.polls, (unsigned long long) sum.empty_polls,
        (unsigned long long) sum.completions, (unsigned long long) sum.pairs,
        (unsigned long long) sum.regions, (unsigned long long) sum.pinned_most,
        (unsigned long long) sum.waits_for_receiver, (unsigned long long) sum.datagrams_lost,
        (unsigned long long) sum.refused);
}

/* What all closed contexts of this process counted. */
static struct strict_counts closed;

static void counts_add(struct strict_counts *sum, const struct strict_counts *more)
{
    for (size_t i = 0; i < sizeof(*sum) / sizeof(uint64_t); i++)
        ((uint64_t *) (void *) sum)[i] += ((const uint64_t *) (const void *) more)[i];
}

API void strict_verbs_counts(struct strict_counts *sum)
{
    *sum = closed;
    for (uint32_t i = 0; i < CONTEXTS; i++)
        if (fabric_get()->contexts[i].pid == getpid())
            counts_add(sum, &fabric_get()->contexts[i].counts);
}

static uint32_t context_take(uint32_t device)
{
    struct fabric *fabric = fabric_get();
    static bool registered;
    uint32_t i = 0;

    if (!registered)
        atexit(counts_print);
    registered = true;
    fabric_lock();
    while (i < CONTEXTS && fabric->contexts[i].pid != 0)
        i++;
    if (i < CONTEXTS)
        fabric->contexts[i] = (struct wire_context){.pid = getpid(), .device = device};
    fabric_unlock();
    return i;
}

API struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct strict_context *made = calloc(1, sizeof(*made));
    struct ibv_context *context = &made->verbs.context;

    made->device = host() * (uint32_t) profile_get()->devices +
                   (uint32_t) atoi(device->dev_name + strlen("strict"));
    made->index = context_take(made->device);
    if (made->index == CONTEXTS) {
        free(made);
        errno = ENOMEM;
        return NULL;
    }
    made->verbs.sz = sizeof(made->verbs);
    made->verbs.query_port = query_port;
    context->abi_compat = __VERBS_ABI_IS_EXTENDED;
    context->device = device;
    context->cmd_fd = -1;
    context->async_fd = event_socket(made->index);
    context->num_comp_vectors = 1;
    context->ops.post_send = request_post;
    context->ops.post_recv = receive_post;
    context->ops.post_srq_recv = receive_post_shared;
    context->ops.poll_cq = completions_poll;
    return context;
}

API int ibv_close_device(struct ibv_context *context)
{
    struct strict_context *made = context_of(context);
    struct wire_context *wire = &fabric_get()->contexts[made->index];

    close(context->async_fd);
    fabric_lock();
    counts_add(&closed, &wire->counts);
    wire->pid = 0;
    fabric_unlock();
    free(made);
    return 0;
}

API int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attributes)
{
    const struct profile *profile = profile_get();

    *attributes = (struct ibv_device_attr){
        .vendor_id = (uint32_t) profile->vendor,
        .max_mr_size = UINT64_MAX,
        .max_qp = (int) profile->max_qp,
        .max_qp_wr = (int) profile->max_qp_wr,
        .max_sge = (int) profile->max_sge,
        .max_cq = (int) QUEUES,
        .max_cqe = (int) profile->max_cqe,
        .max_mr = (int) REGIONS,
        .max_pd = 1024,
        .max_qp_rd_atom = (int) profile->reads_in,
        .max_qp_init_rd_atom = (int) profile->reads_out,
        .atomic_cap = (enum ibv_atomic_cap) profile->atomics,
        .max_ah = 1 << 20,
        .max_srq = (int) profile->max_srq,
        .max_srq_wr = (int) profile->max_srq_wr,
        .max_srq_sge = (int) profile->max_sge,
        .max_pkeys = (uint16_t) profile->pkeys,
        .phys_port_cnt = (uint8_t) profile->ports,
    };
    snprintf(attributes->fw_ver, sizeof(attributes->fw_ver), "strict");
    return context_is_dead(context) ? EIO : 0;
}

API ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
                                 size_t room, uint32_t flags, size_t entry_size)
{
    const struct profile *profile = profile_get();
    uint32_t each = port_gid_count();
    size_t count = 0;

    if (flags != 0 || entry_size != sizeof(*entries) || room < each * (size_t) profile->ports)
        return -refuse(context, EINVAL, "a GID table of %zu entries", room);
    fabric_lock();
    for (uint32_t port = 1; port <= (uint32_t) profile->ports; port++)
        for (uint32_t i = 0; i < each; i++)
            (void) port_gid(context_of(context)->device, port, i, &entries[count++]);
    fabric_unlock();
    return (ssize_t) count;
}

API int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
    struct ibv_gid_entry entry;

    fabric_lock();
    bool good = port_gid(context_of(context)->device, port, (uint32_t) index, &entry);
    fabric_unlock();
    *gid = entry.gid;
    return good ? 0 : -1;
}

API int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *key)
{
    if (index < 0 || index >= (profile_get()->roce ? 1 : profile_get()->pkeys))
        return -1;
    fabric_lock();
    *key = __builtin_bswap16(port_pkey(context_of(context)->device, port, (uint32_t) index));
    fabric_unlock();
    return 0;
}

/* --- events --- */

static bool is_of_pair(uint32_t type)
{
    return type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR ||
           type == IBV_EVENT_QP_ACCESS_ERR || type == IBV_EVENT_COMM_EST ||
           type == IBV_EVENT_QP_LAST_WQE_REACHED;
}

API int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    struct wire_event wire;

    while (recv(context->async_fd, &wire, sizeof(wire), 0) == (ssize_t) sizeof(wire)) {
        struct strict_pair *pair;

        memset(event, 0, sizeof(*event));
        event->event_type = (enum ibv_event_type) wire.type;
        event->element.port_num = (int) wire.port;
        if (!is_of_pair(wire.type))
            return 0;
        fabric_lock();
        pair = pair_local(wire.pair);
        if (pair)
            pair->unacknowledged++;
        fabric_unlock();
        if (pair) {
            event->element.qp = &pair->qp;
            return 0;
        }
    }
    return -1;
}

API void ibv_ack_async_event(struct ibv_async_event *event)
{
    if (!is_of_pair(event->event_type))
        return;
    struct strict_pair *pair = (struct strict_pair *) (void *) event->element.qp;
    fabric_lock();
    pair->unacknowledged--;
    fabric_unlock();
}
