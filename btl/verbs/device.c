/* SPDX-License-Identifier: BSD-3-Clause */
/* The devices of this node: which of their ports become lanes, and why others do not. */
#include "btl/verbs/greeting.h"
#include "btl/verbs/route.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/lane/kernel_text.h"
#include "common/lane/locality.h"
#include "common/model/number.h"

/* A path names a GID by 8 bits. */
#define GID_INDEX_MAX    255u
#define SEND_CQ_WANTED   8192
#define READ_DEPTH_MAX   16
#define MEGABITS_ASSUMED 10000u
#define SOFT_ROCE_VENDOR 0xffffffu

/* --- sentences --- */

/* Why a port is no lane. The last reason is printed if no port is a lane. */
static char refusal[512];

#define REFUSE(...)                                                                                \
    do {                                                                                           \
        snprintf(refusal, sizeof(refusal), __VA_ARGS__);                                           \
        VERBS_VERBOSE("%s", refusal);                                                              \
    } while (0)

static void refuse_memory(const char *device, const char *what, size_t bytes)
{
    struct rlimit limit = {0};
    int error = errno;

    if (error == ENOMEM && getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
        limit.rlim_cur != RLIM_INFINITY)
        REFUSE("%s: %zu bytes for %s cannot be registered: this process may lock %llu bytes "
               "(ulimit -l). Raise the limit (memlock in /etc/security/limits.conf, "
               "LimitMEMLOCK= of the service that starts jobs), or lower "
               "btl_verbs_receive_buffers",
               device, bytes, what, (unsigned long long) limit.rlim_cur);
    else
        REFUSE("%s: %zu bytes for %s cannot be registered: %s", device, bytes, what,
               strerror(error));
}

/* libibverbs tries several ways, and returns the error of the last one. */
static void refuse_open(struct ibv_device *device, int error)
{
    char file[64];

    snprintf(file, sizeof(file), "/dev/infiniband/%.40s", device->dev_name);
    if (access(file, R_OK | W_OK) == 0)
        REFUSE("%s: it cannot be opened: %s", ibv_get_device_name(device), strerror(error));
    else if (errno == ENOENT)
        REFUSE("%s: its file %s is not there; load the module ib_uverbs, or show the file to this "
               "container",
               ibv_get_device_name(device), file);
    else
        REFUSE("%s: this user may not open it (%s: %s); give it access to the files in "
               "/dev/infiniband, by their group or by a udev rule",
               ibv_get_device_name(device), file, strerror(errno));
}

/* Which other way of Open MPI's uses a device that is no lane of ours. */
static void refuse_transport(const struct ibv_device *device)
{
    const char *name = ibv_get_device_name((struct ibv_device *) device);

    if (device->transport_type == IBV_TRANSPORT_IWARP)
        REFUSE(
            "%s: it speaks iWARP, which has no datagrams to make connections by; sock uses its "
            "interface if that has an address (btl_sock_if), or set the adapter to RoCE if it can",
            name);
    else
        REFUSE("%s: it speaks neither InfiniBand nor RoCE, as Amazon's EFA does not; use libfabric "
               "instead of Multilane (--mca pml cm --mca mtl ofi)",
               name);
}

/* --- addresses --- */

static enum choice_link link_of(uint32_t gid_type)
{
    return gid_type == IBV_GID_TYPE_IB        ? CHOICE_INFINIBAND
           : gid_type == IBV_GID_TYPE_ROCE_V1 ? CHOICE_ROCE_V1
                                              : CHOICE_ROCE_V2;
}

/* Whether it belongs to another network namespace: the table shows those as well. */
static bool gid_is_foreign(const struct ibv_gid_entry *entry)
{
    char name[IF_NAMESIZE];

    return entry->gid_type != IBV_GID_TYPE_IB && entry->ndev_ifindex != 0 &&
           !if_indextoname(entry->ndev_ifindex, name);
}

/* Whether a path can begin at that GID. Where none can, the kernel may take a second to find that.
 */
static bool gid_works(struct verbs_module *module, const struct choice_gid *gid)
{
    struct ibv_ah_attr path = {.is_global = 1, .port_num = (uint8_t) module->port_number};

    if (gid->link == CHOICE_INFINIBAND)
        return true;
    memcpy(path.grh.dgid.raw, gid->raw, CHOICE_GID_BYTES);
    path.grh.sgid_index = (uint8_t) gid->index;
    path.grh.hop_limit = 1;
    struct ibv_ah *way = ibv_create_ah(module->pd, &path);
    if (way)
        ibv_destroy_ah(way);
    return way != NULL;
}

struct gid_table {
    struct choice_gid *gids;
    size_t count;
    size_t foreign; /* entries that are not of this network namespace */
};

/* Room for the tables of all ports of the device, which come together. */
static struct ibv_gid_entry *entries_read(struct ibv_context *context, ssize_t *found)
{
    struct ibv_device_attr device;
    struct ibv_port_attr port;
    size_t room = 0;

    *found = -1;
    if (ibv_query_device(context, &device) != 0)
        return NULL;
    for (uint32_t i = 1; i <= device.phys_port_cnt; i++)
        if (ibv_query_port(context, (uint8_t) i, &port) == 0 && port.gid_tbl_len > 0)
            room += (size_t) port.gid_tbl_len;
    struct ibv_gid_entry *entries = calloc(room + 1, sizeof(*entries));
    if (entries)
        *found = ibv_query_gid_table(context, entries, room, 0);
    return entries;
}

/* False: it cannot be read. The caller frees gids. */
static bool gids_read(struct verbs_module *module, struct gid_table *table)
{
    ssize_t found;
    struct ibv_gid_entry *entries = entries_read(module->context, &found);

    *table = (struct gid_table){.gids = NULL};
    if (entries && found >= 0)
        table->gids = calloc((size_t) found + 1, sizeof(*table->gids));
    for (ssize_t i = 0; table->gids && i < found; i++) {
        struct choice_gid *gid = &table->gids[table->count];

        if (entries[i].port_num != module->port_number || entries[i].gid_index > GID_INDEX_MAX)
            continue;
        gid->index = entries[i].gid_index;
        gid->link = link_of(entries[i].gid_type);
        memcpy(gid->raw, entries[i].gid.raw, CHOICE_GID_BYTES);
        if (verbs.gid_index < 0 && gid_is_foreign(&entries[i]))
            table->foreign++;
        else
            table->count++;
    }
    free(entries);
    if (!table->gids)
        REFUSE("%s: its table of GIDs cannot be read: %s", module->device, strerror(errno));
    return table->gids != NULL;
}

/* The index in the table of the best one that works; -1: none. One that the user names is tried by
 * its first connection. */
static int gid_find(struct verbs_module *module, struct gid_table *table,
                    const struct choice_gid *first)
{
    int at;

    while ((at = verbs_choice_gid(table->gids, table->count, verbs.gid_index, first)) >= 0) {
        if (verbs.gid_index >= 0 || gid_works(module, &table->gids[at]))
            break;
        memset(table->gids[at].raw, 0, CHOICE_GID_BYTES); /* it is not chosen again */
    }
    return at;
}

/* `chosen` is the first one with the index in use, and then the one to use. */
static bool gid_choose(struct verbs_module *module, struct gid_table *table,
                       struct choice_gid *chosen)
{
    int at = gid_find(module, table, chosen);

    if (at >= 0)
        *chosen = table->gids[at];
    else if (verbs.gid_index >= 0)
        REFUSE("%s: btl_verbs_gid_index is %d, where its table has no address; see "
               "/sys/class/infiniband/*/ports/*/gids, or leave it out",
               module->device, verbs.gid_index);
    else if (table->count > 0)
        REFUSE(
            "%s: no path can begin at its %zu GIDs (ibv_create_ah fails); set the port's network "
            "interfaces up, or use sock over them (btl_sock_if) if the device makes no paths",
            module->device, table->count);
    else if (table->foreign > 0)
        REFUSE("%s: all of its %zu GIDs belong to other network namespaces; give this container an "
               "interface of the port, or run in the host's network namespace",
               module->device, table->foreign);
    else
        REFUSE("%s: its table of GIDs is empty; give its network interface an address",
               module->device);
    return at >= 0;
}

/* By its value, which both ends have in common; its index is the port's own matter. */
static bool pkey_choose(struct verbs_module *module, int table_length,
                        struct choice_address *address)
{
    uint16_t keys[256];
    size_t count = 0;
    int at;

    for (int i = 0; i < table_length && i < (int) (sizeof(keys) / sizeof(keys[0])); i++) {
        __be16 key;

        keys[count++] = ibv_query_pkey(module->context, (uint8_t) module->port_number, i, &key) == 0
                            ? ntohs(key)
                            : 0;
    }
    at = verbs_choice_pkey(keys, count, (uint16_t) verbs.pkey);
    if (at < 0) {
        REFUSE("%s: it is no member of the partition 0x%04x (btl_verbs_pkey); see "
               "/sys/class/infiniband/*/ports/*/pkeys",
               module->device, (unsigned) verbs.pkey);
        return false;
    }
    module->pkey_index = (uint16_t) at;
    address->pkey = keys[at];
    return true;
}

/* As the kernel shows it, where the codes do not say it: XDR does not fit into theirs. */
static uint32_t megabits_of(struct verbs_module *module, const struct ibv_port_attr *attributes)
{
    bool is_ethernet = attributes->link_layer == IBV_LINK_LAYER_ETHERNET;
    uint32_t megabits =
        verbs_choice_megabits(attributes->active_speed, attributes->active_width, is_ethernet);
    char rate[64];

    if (megabits != 0)
        return megabits;
    if (kernel_line(rate, sizeof(rate), "/sys/class/infiniband/%s/ports/%u/rate",
                    ibv_get_device_name(module->context->device), module->port_number))
        megabits = verbs_choice_megabits_shown(rate);
    if (megabits == 0) {
        megabits = MEGABITS_ASSUMED;
        VERBS_SAY("%s: its speed is unknown (code %u, width %u); it counts as %u Mbit/s. Set "
                  "btl_verbs_lane_bandwidth.",
                  module->device, attributes->active_speed, attributes->active_width, megabits);
    }
    return megabits;
}

/* Whether the processors near the device are none of those that this process may use. */
static bool device_is_far(struct verbs_module *module)
{
    char cpus[LOCALITY_CPUS_CHARS];

    return kernel_line(cpus, sizeof(cpus), "/sys/class/infiniband/%s/device/local_cpulist",
                       ibv_get_device_name(module->context->device)) &&
           !locality_is_near(cpus);
}

#define RAILS_BY_RULE 2

/* Frees the table. Returns what the port has not, or NULL. */
static const char *address_fill(struct verbs_module *module, const struct ibv_port_attr *attributes,
                                struct gid_table *table, struct choice_address *address)
{
    struct choice_gid gid = module->first_gid;

    gid.index = module->gid_index;
    bool has_gid = gid_choose(module, table, &gid);
    free(table->gids);
    if (!has_gid)
        return "its port has lost its GID";
    if (!pkey_choose(module, attributes->pkey_tbl_len, address))
        return "its port is no member of its partition any more";
    module->gid_index = gid.index;
    memcpy(address->gid, gid.raw, CHOICE_GID_BYTES);
    address->lid = attributes->lid;
    address->link = (uint8_t) gid.link;
    address->subnet_bits = verbs_choice_subnet_bits(
        gid.link, gid.raw, gid.link == CHOICE_INFINIBAND ? 0 : verbs_route_netmask_bits(gid.raw));
    address->needs_route = (attributes->flags & IBV_QPF_GRH_REQUIRED) != 0;
    return NULL;
}

/* What stays as it was published, since both ends pair their ports by it. */
static void address_rank(struct verbs_module *module, const struct ibv_port_attr *attributes,
                         struct choice_address *address)
{
    address->megabits = megabits_of(module, attributes);
    address->is_far = device_is_far(module);
    address->rails = (uint8_t) (verbs.rails == 0 ? RAILS_BY_RULE : verbs.rails);
    memcpy(address->name, module->device, sizeof(address->name));
    module->first_gid.link = (enum choice_link) address->link;
    memcpy(module->first_gid.raw, address->gid, CHOICE_GID_BYTES);
}

/* --- one port --- */

static uint32_t smaller(uint64_t a, uint64_t b)
{
    return (uint32_t) (a < b ? a : b);
}

/* The most buffers that the port may ever hold; the device makes its queues for so many at once. */
static uint32_t receives_most(const struct ibv_device_attr *device)
{
    int wanted = verbs.receive_buffers > verbs.receive_buffers_most ? verbs.receive_buffers
                                                                    : verbs.receive_buffers_most;

    return smaller((uint32_t) wanted, smaller((uint32_t) device->max_srq_wr,
                                              (uint32_t) device->max_cqe - GREETINGS_IN));
}

static bool queues_open(struct verbs_module *module, const struct ibv_device_attr *device)
{
    struct ibv_srq_init_attr srq = {.attr = {.max_sge = 1}};

    if (device->max_srq <= 0 || device->max_srq_wr <= 0) {
        REFUSE(
            "%s: it has no shared receive queue, which a lane receives by (max_srq of ibv_devinfo "
            "-v; Intel's E810 has none); sock uses its interface if that has an address "
            "(btl_sock_if), or use UCX instead of Multilane (--mca pml ucx)",
            module->device);
        return false;
    }
    module->send_cq_size = device->max_cqe < SEND_CQ_WANTED ? device->max_cqe : SEND_CQ_WANTED;
    atomic_init(&module->send_cq_room, module->send_cq_size - (int) GREETINGS_OUT);
    module->send_cq = ibv_create_cq(module->context, module->send_cq_size, NULL, NULL, 0);
    if (module->send_cq)
        module->receive_cq = ibv_create_cq(
            module->context, (int) (receives_most(device) + GREETINGS_IN), NULL, NULL, 0);
    srq.attr.max_wr = receives_most(device);
    if (module->receive_cq)
        module->srq = ibv_create_srq(module->pd, &srq);
    if (!module->srq)
        refuse_memory(module->device, "its queues", 0);
    return module->srq != NULL;
}

static bool receives_open(struct verbs_module *module, const struct ibv_device_attr *device)
{
    uint32_t most = receives_most(device), count = smaller((uint32_t) verbs.receive_buffers, most);

    module->receive_bytes = module->super.btl_max_send_size;
    if (verbs_receives_open(module, count, most))
        return true;
    if (module->receives.count == 0)
        refuse_memory(module->device, "messages to come", count * module->receive_bytes);
    else
        REFUSE("%s: its receive queue takes no %u buffers; lower btl_verbs_receive_buffers",
               module->device, count);
    return false;
}

/* The longest message that a queue pair takes inside its request, found by a trial queue pair. */
static bool inline_probe(struct verbs_module *module)
{
    for (uint32_t wanted = verbs.depth.inline_bytes; true; wanted /= 2) {
        module->inline_max = wanted;
        struct ibv_qp *qp = verbs_pair_make(module, &module->inline_max);

        if (qp) {
            ibv_destroy_qp(qp);
            return true;
        }
        if (wanted == 0) {
            REFUSE("%s: it makes no reliable connection with %u entries in its send queue "
                   "(btl_verbs_queue_depth): %s",
                   module->device, verbs.depth.requests, strerror(errno));
            return false;
        }
    }
}

static void module_describe(struct verbs_module *module, const struct ibv_device_attr *device,
                            const struct ibv_port_attr *port, uint32_t megabits)
{
    mca_btl_base_module_t *btl = &module->super;

    btl->btl_registration_handle_size = HANDLE_BYTES;
    module->mtu = port->active_mtu;
    module->max_pairs = device->max_qp;
    module->soft = device->vendor_id == SOFT_ROCE_VENDOR;
    module->atomics = device->atomic_cap != IBV_ATOMIC_NONE;
    /* Some drivers compare each with the limit of the other. */
    module->read_depth = smaller((uint64_t) device->max_qp_init_rd_atom,
                                 smaller((uint64_t) device->max_qp_rd_atom, READ_DEPTH_MAX));
    if (module->read_depth == 0) { /* atomics are reads too */
        module->atomics = false;
        btl->btl_flags &= ~(uint32_t) MCA_BTL_FLAGS_GET;
        btl->btl_get = NULL;
    }
    if (port->max_msg_sz < btl->btl_put_limit)
        btl->btl_put_limit = port->max_msg_sz;
    if (port->max_msg_sz < btl->btl_get_limit)
        btl->btl_get_limit = port->max_msg_sz;
    if (btl->btl_bandwidth == 0)
        btl->btl_bandwidth = megabits;
    /* Of a device whose atomics hold with regard to the processor (IBV_ATOMIC_GLOB) that is not
     * said: osc/rdma of Open MPI 4.1 then takes the lane for one to the process itself. */
    if (!module->atomics) {
        btl->btl_flags &= ~(uint32_t) MCA_BTL_FLAGS_ATOMIC_FOPS;
        btl->btl_atomic_flags = 0;
        btl->btl_atomic_fop = NULL;
        btl->btl_atomic_cswap = NULL;
    }
}

void verbs_device_close(struct verbs_module *module)
{
    verbs_peers_close(module);
    verbs_flush_close(module);
    verbs_dmabuf_close(&module->dmabuf);
    verbs_greeter_close(module);
    verbs_works_close(module);
    if (module->rcache)
        mca_rcache_base_module_destroy(module->rcache);
    if (module->srq)
        ibv_destroy_srq(module->srq);
    verbs_receives_close(module);
    if (module->receive_cq)
        ibv_destroy_cq(module->receive_cq);
    if (module->send_cq)
        ibv_destroy_cq(module->send_cq);
    if (module->pd)
        ibv_dealloc_pd(module->pd);
    if (module->context)
        ibv_close_device(module->context);
    free(module);
}

static struct verbs_module *module_create(const mca_btl_base_module_t *model,
                                          struct ibv_device *device, uint32_t port)
{
    struct verbs_module *module = calloc(1, sizeof(*module));

    if (!module)
        return NULL;
    module->super = *model;
    module->port_number = port;
    snprintf(module->device, sizeof(module->device), "%s:%u", ibv_get_device_name(device), port);
    verbs_peers_open(module);
    module->context = ibv_open_device(device);
    if (!module->context)
        refuse_open(device, errno);
    return module;
}

/* Asynchronous events are read without blocking. */
static bool events_open(struct verbs_module *module)
{
    int flags = fcntl(module->context->async_fd, F_GETFL);

    return flags >= 0 && fcntl(module->context->async_fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

static void refuse_silent(const char *device, int error)
{
    REFUSE("%s: it cannot be asked what it is: %s", device, strerror(error));
}

static bool attributes_read(struct verbs_module *module, struct ibv_device_attr *device,
                            struct ibv_port_attr *port)
{
    int error = ibv_query_device(module->context, device);

    if (error == 0)
        error = ibv_query_port(module->context, (uint8_t) module->port_number, port);
    if (error != 0)
        refuse_silent(module->device, error);
    return error == 0;
}

static bool module_open(struct verbs_module *module, struct verbs_port *port)
{
    struct ibv_device_attr device;
    struct ibv_port_attr attributes;
    struct gid_table table;

    if (!module->context || !attributes_read(module, &device, &attributes))
        return false;
    if (attributes.state != IBV_PORT_ACTIVE) {
        REFUSE("%s: its state is \"%s\"; connect it, or set its interface up", module->device,
               ibv_port_state_str(attributes.state));
        return false;
    }
    module->pd = ibv_alloc_pd(module->context);
    if (!module->pd || !events_open(module)) {
        REFUSE("%s: it has no room for another process: %s", module->device, strerror(errno));
        return false;
    }
    if (!gids_read(module, &table) ||
        address_fill(module, &attributes, &table, &port->address) != NULL)
        return false;
    address_rank(module, &attributes, &port->address);
    module_describe(module, &device, &attributes, port->address.megabits);
    port->mtu = (uint32_t) module->mtu;
    if (!queues_open(module, &device) || !receives_open(module, &device) || !inline_probe(module))
        return false;
    module->super.btl_put_local_registration_threshold = module->inline_max;
    if (verbs_cache_open(module) != OPAL_SUCCESS || verbs_works_open(module) != OPAL_SUCCESS ||
        verbs_greeter_open(module, &port->greeting_qpn) != OPAL_SUCCESS) {
        refuse_memory(module->device, "messages", 0);
        return false;
    }
    return true;
}

/* Each end decides for itself whether device memory is registered: the other end sees a key, or
 * none. */
static void device_memory_open(struct verbs_module *module)
{
    struct error_text why = {"btl_verbs_dmabuf is none"};

    if (strcmp(verbs.dmabuf.text, "none") != 0 && verbs_dmabuf_is_supported(module->pd, &why))
        verbs_dmabuf_open(&module->dmabuf, module->pd);
    else
        VERBS_VERBOSE("%s: device memory passes through memory of the host: %s", module->device,
                      why.text);
}

/* --- a port that changes --- */

const char *verbs_device_refresh(struct verbs_module *module)
{
    struct choice_address *mine = &verbs.record.ports[module->port_index].address;
    struct choice_address now = *mine;
    struct ibv_port_attr attributes;
    const uint32_t gid_index = module->gid_index;
    const uint16_t pkey_index = module->pkey_index;
    struct gid_table table;

    if (ibv_query_port(module->context, (uint8_t) module->port_number, &attributes) != 0 ||
        attributes.state != IBV_PORT_ACTIVE)
        return NULL; /* it is down, and works under way will say so */
    module->look_due = !gids_read(module, &table);
    if (module->look_due)
        return NULL;
    const char *changed = address_fill(module, &attributes, &table, &now);
    if (changed)
        return changed;
    /* Pairs name the GID and the partition by their places in the port's tables. */
    if (now.lid != mine->lid)
        changed = "the LID of its port has changed";
    else if (memcmp(now.gid, mine->gid, sizeof(now.gid)) != 0 || module->gid_index != gid_index)
        changed = "the GID of its port has changed";
    else if (module->pkey_index != pkey_index)
        changed = "the partition of its port has changed";
    if (module->pkey_index != pkey_index) /* relaxed: for the next round */
        atomic_store_explicit(&module->greeter_broken, true, memory_order_relaxed);
    opal_mutex_lock(&verbs.record_lock);
    *mine = now;
    module->mtu = attributes.active_mtu; /* connections that are made from now on take it */
    verbs.record.ports[module->port_index].mtu = (uint32_t) module->mtu;
    verbs.paired_nonce = 0;
    opal_mutex_unlock(&verbs.record_lock);
    return changed;
}

/* --- all of them --- */

/* Lanes of one device share its bandwidth to memory. */
static void groups_set(void)
{
    for (uint32_t i = 0; i < verbs.module_count; i++)
        for (uint32_t j = 0; j < verbs.module_count; j++)
            if (i != j && verbs.modules[i]->context->device == verbs.modules[j]->context->device)
                verbs.modules[i]->device_group = 1u + (i < j ? i : j);
}

static void port_open(const mca_btl_base_module_t *model, struct ibv_device *device, uint32_t port)
{
    if (verbs.module_count == CHOICE_PORTS_MAX) {
        REFUSE("%s: %u ports are lanes already, which is the most", ibv_get_device_name(device),
               (unsigned) CHOICE_PORTS_MAX);
        return;
    }
    struct verbs_module *module = module_create(model, device, port);
    if (!module)
        return;
    if (!module_open(module, &verbs.record.ports[verbs.module_count])) {
        verbs_device_close(module);
        return;
    }
    device_memory_open(module);
    module->port_index = verbs.module_count;
    VERBS_VERBOSE("%s is a lane: %s, GID index %u, %u Mbit/s, messages of up to %u bytes inline",
                  module->device,
                  verbs_choice_link_name(verbs.record.ports[module->port_index].address.link),
                  module->gid_index, verbs.record.ports[module->port_index].address.megabits,
                  module->inline_max);
    verbs.modules[verbs.module_count++] = module;
}

/* The number of ports; 0 if the device does not open, and a sentence says why. */
static uint32_t ports_of(struct ibv_device *device)
{
    struct ibv_context *context = ibv_open_device(device);
    struct ibv_device_attr attributes = {0};

    if (!context) {
        refuse_open(device, errno);
        return 0;
    }
    int error = ibv_query_device(context, &attributes);
    if (error != 0)
        refuse_silent(ibv_get_device_name(device), error);
    ibv_close_device(context);
    return error == 0 ? attributes.phys_port_cnt : 0;
}

/* In the order that their ports are to have; without memory in the one given. */
static void devices_order(struct ibv_device **devices, int count)
{
    struct choice_device *found = calloc((size_t) count + 1, sizeof(*found));

    if (!found)
        return;
    for (int i = 0; i < count; i++) {
        char link[sizeof(devices[i]->ibdev_path) + sizeof("/device")];

        snprintf(link, sizeof(link), "%s/device", devices[i]->ibdev_path);
        found[i] = (struct choice_device){devices[i], realpath(link, NULL)};
    }
    verbs_choice_order(found, (size_t) count);
    for (int i = 0; i < count; i++) {
        devices[i] = found[i].device;
        free(found[i].path);
    }
    free(found);
}

void verbs_device_open_all(const mca_btl_base_module_t *model)
{
    int count = 0;
    struct ibv_device **devices = ibv_get_device_list(&count);
    char names[256] = "";
    bool listed = false;

    refusal[0] = '\0';
    if (devices)
        devices_order(devices, count);
    for (int i = 0; i < count; i++) {
        const char *name = ibv_get_device_name(devices[i]);

        text_more(names, sizeof(names), "%s%s", names[0] ? ", " : "", name);
        if (devices[i]->transport_type != IBV_TRANSPORT_IB) {
            refuse_transport(devices[i]);
            continue;
        }
        for (uint32_t port = 1, ports = ports_of(devices[i]); port <= ports; port++)
            if (verbs_choice_is_listed(verbs.devices, name, port)) {
                listed = true;
                port_open(model, devices[i], port);
            }
    }
    if (count == 0)
        VERBS_VERBOSE("no lane, since this node has no RDMA device for which libibverbs has a "
                      "driver's library");
    else if (verbs.module_count == 0 && !listed && refusal[0] == '\0')
        VERBS_SAY("btl_verbs_devices is \"%s\", which matches none of %s; other lanes are used, if "
                  "there are any.",
                  verbs.devices, names);
    else if (verbs.module_count == 0)
        VERBS_SAY("no lane: %s. Other lanes are used, if there are any.", refusal);
    groups_set();
    if (devices)
        ibv_free_device_list(devices);
}
