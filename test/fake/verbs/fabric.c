/* SPDX-License-Identifier: BSD-3-Clause */
/* The fabric of the strict stand-in: what all processes of a job map, and what happens between
 * them: addresses, copies, held writes, completions, events. */
#define _GNU_SOURCE
#include "strict.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static struct fabric *fabric;

static void stop(const char *what)
{
    fprintf(stderr, "test/fake/verbs: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void fabric_begin(struct fabric *made)
{
    pthread_mutexattr_t how;

    pthread_mutexattr_init(&how);
    pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&made->lock, &how);
    if (getrandom(&made->name, sizeof(made->name), 0) != sizeof(made->name))
        stop("no random numbers");
    made->ready = 1;
}

/* A sparse file, or for one process alone memory of its own. */
struct fabric *fabric_map(const char *file)
{
    int fd = file && *file ? open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600)
                           : memfd_create("strict", MFD_CLOEXEC);
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    if (fd < 0 || (file && *file && fcntl(fd, F_SETLKW, &whole) != 0) ||
        ftruncate(fd, sizeof(struct fabric)) != 0)
        stop(file && *file ? file : "memfd_create");
    struct fabric *made =
        mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (made == MAP_FAILED)
        stop("mmap");
    if (!made->ready)
        fabric_begin(made);
    close(fd); /* and with it the lock */
    return made;
}

struct fabric *fabric_get(void)
{
    if (!fabric) {
        fabric = fabric_map(getenv("MULTILANE_STRICT_FABRIC"));
        (void) prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* its peers copy from here */
    }
    return fabric;
}

void fabric_lock(void)
{
    if (pthread_mutex_lock(&fabric_get()->lock) == EOWNERDEAD)
        (void) pthread_mutex_consistent(&fabric->lock);
}

void fabric_unlock(void)
{
    pthread_mutex_unlock(&fabric->lock);
}

uint64_t now_ms(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t) time.tv_sec * 1000 + (uint64_t) time.tv_nsec / 1000000;
}

struct wire_pair *fabric_pair(uint32_t number)
{
    struct wire_pair *pair = &fabric->pairs[number % PAIRS];

    return number != 0 && pair->number == number ? pair : NULL;
}

struct wire_region *fabric_region(uint32_t key)
{
    struct wire_region *region = &fabric->regions[key / 256 % REGIONS];

    return key != 0 && region->key == key ? region : NULL;
}

/* --- addresses --- */

static uint32_t host_of(uint32_t device)
{
    return device / (uint32_t) profile_get()->devices;
}

/* Ports of two hosts with one rail are on one wire. */
static uint32_t rail_of(uint32_t device, uint32_t port)
{
    return device % (uint32_t) profile_get()->devices * PORTS + port - 1;
}

uint16_t port_lid(uint32_t device, uint32_t port)
{
    if (profile_get()->roce)
        return 0;
    return (uint16_t) (1 + device * PORTS + port +
                       1000 * fabric->devices[device].ports[port].lid_epoch);
}

#define MTU_LOWERED 1024u

uint32_t port_mtu(uint32_t device, uint32_t port)
{
    return fabric->devices[device].ports[port].mtu_lowered ? MTU_LOWERED
                                                           : (uint32_t) profile_get()->mtu;
}

/* The key given lies elsewhere on every host; before it are those of other partitions. */
uint16_t port_pkey(uint32_t device, uint32_t port, uint32_t index)
{
    const struct profile *profile = profile_get();
    uint32_t at = (uint32_t) profile->pkey_at + (profile->pkey_at ? host_of(device) : 0) +
                  fabric->devices[device].ports[port].pkey_epoch;

    if (profile->roce || profile->pkeys == 1)
        return index == 0 ? (uint16_t) profile->pkey : 0;
    if (index == at % (uint32_t) profile->pkeys)
        return (uint16_t) profile->pkey;
    return index == 0 ? 0x7fff : 0;
}

#define SUBNET_LOST 99 /* of an address that an event adds: nothing sent there arrives */

static void gid_address(uint32_t device, uint32_t port, bool is_foreign, uint32_t index,
                        struct ibv_gid_entry *entry)
{
    const struct profile *profile = profile_get();
    uint32_t epoch = fabric->devices[device].ports[port].gid_epoch;
    uint8_t *raw = entry->gid.raw;

    raw[10] = raw[11] = 0xff;
    raw[12] = 10;
    raw[13] = (uint8_t) (profile->routed ? 100 + host_of(device) : 77);
    raw[14] = (uint8_t) (is_foreign ? 200 + index / 250 : rail_of(device, port));
    raw[15] = (uint8_t) (is_foreign ? 1 + index % 250 : 1 + host_of(device) + 50 * epoch);
}

/* InfiniBand has one. On RoCE those of other network namespaces come first, then ours: link-local
 * and IPv4, each as v1 and v2. */
bool port_gid(uint32_t device, uint32_t port, uint32_t index, struct ibv_gid_entry *entry)
{
    const struct profile *profile = profile_get();
    uint32_t mine = index - (uint32_t) profile->foreign;
    bool is_foreign = index < (uint32_t) profile->foreign;

    memset(entry, 0, sizeof(*entry));
    entry->gid_index = index;
    entry->port_num = port;
    if (!profile->roce) {
        entry->gid_type = IBV_GID_TYPE_IB;
        entry->gid.raw[0] = 0xfe;
        entry->gid.raw[1] = 0x80;
        entry->gid.raw[7] = (uint8_t) rail_of(device, port);
        entry->gid.raw[8] = 2;
        entry->gid.raw[14] = (uint8_t) fabric->devices[device].ports[port].gid_epoch;
        entry->gid.raw[15] = (uint8_t) (device * PORTS + port);
        return index == 0;
    }
    entry->ndev_ifindex = is_foreign ? 4242 : if_nametoindex("lo");
    entry->gid_type = is_foreign || mine % 2 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1;
    if (is_foreign || mine / 2 == 1) {
        gid_address(device, port, is_foreign, index, entry);
    } else if (fabric->devices[device].ports[port].address_added) {
        gid_address(device, port, false, index, entry);
        entry->gid.raw[13] = SUBNET_LOST;
    } else {
        entry->gid.raw[0] = 0xfe;
        entry->gid.raw[1] = 0x80;
        entry->gid.raw[14] = (uint8_t) (device * PORTS + port);
        entry->gid.raw[15] = (uint8_t) fabric->devices[device].ports[port].gid_epoch;
    }
    return is_foreign || mine < 4;
}

uint32_t port_gid_count(void)
{
    return profile_get()->roce ? (uint32_t) profile_get()->foreign + 4 : 1;
}

/* Whether what is sent along `path` comes to this port. */
bool port_is_at(uint32_t device, uint32_t port, const struct ibv_ah_attr *path)
{
    struct ibv_gid_entry entry;

    if (!path->is_global)
        return !profile_get()->roce && path->dlid == port_lid(device, port);
    for (uint32_t i = (uint32_t) profile_get()->foreign; port_gid(device, port, i, &entry); i++)
        if (memcmp(entry.gid.raw, path->grh.dgid.raw, sizeof(entry.gid.raw)) == 0)
            return entry.gid.raw[13] != SUBNET_LOST;
    return false;
}

/* --- memory of other processes --- */

bool fabric_alive(uint32_t context)
{
    pid_t pid = fabric->contexts[context].pid;

    return pid != 0 && (pid == getpid() || kill(pid, 0) == 0 || errno != ESRCH);
}

static bool copy_step(pid_t from, uint64_t source, pid_t to, uint64_t target, size_t length)
{
    struct iovec there, here;

    if (from == to && to == getpid()) {
        memmove((void *) (uintptr_t) target, (const void *) (uintptr_t) source, length);
        return true;
    }
    here.iov_len = there.iov_len = length;
    if (from == getpid()) {
        here.iov_base = (void *) (uintptr_t) source;
        there.iov_base = (void *) (uintptr_t) target;
        return process_vm_writev(to, &here, 1, &there, 1, 0) == (ssize_t) length;
    }
    here.iov_base = (void *) (uintptr_t) target;
    there.iov_base = (void *) (uintptr_t) source;
    return process_vm_readv(from, &here, 1, &there, 1, 0) == (ssize_t) length;
}

bool fabric_copy(pid_t from, uint64_t source, pid_t to, uint64_t target, size_t length)
{
    unsigned char between[4096];

    if (length == 0)
        return true;
    if (from == getpid() || to == getpid())
        return copy_step(from, source, to, target, length);
    for (size_t done = 0, part; done < length; done += part) {
        part = length - done < sizeof(between) ? length - done : sizeof(between);
        if (!copy_step(from, source + done, getpid(), (uint64_t) (uintptr_t) between, part) ||
            !copy_step(getpid(), (uint64_t) (uintptr_t) between, to, target + done, part))
            return false;
    }
    return true;
}

/* --- writes that are not visible yet --- */

static void held_apply(struct wire_held *held)
{
    (void) fabric_copy(held->from, held->source, held->to, held->target, held->length);
    if (held->from == getpid())
        free((void *) (uintptr_t) held->source); /* another process's copy is lost: a test ends */
    held->used = 0;
    fabric->held_count--;
}

void held_release(uint32_t from_pair, uint32_t to_pair)
{
    uint64_t now = now_ms(), delay = (uint64_t) profile_get()->delay_ms;

    for (uint32_t i = 0; fabric->held_count > 0 && i < HELD; i++) {
        struct wire_held *held = &fabric->held[i];

        if (held->used && (from_pair == 0 && to_pair == 0
                               ? now - held->since_ms >= delay
                               : held->from_pair == from_pair || held->to_pair == to_pair))
            held_apply(held);
    }
}

void held_add(const struct wire_pair *from, const struct wire_pair *to, const void *bytes,
              uint64_t target, uint32_t length)
{
    for (uint32_t i = 0; i < HELD; i++) {
        struct wire_held *held = &fabric->held[i];
        void *copy;

        if (held->used)
            continue;
        copy = malloc(length);
        if (!copy)
            abort();
        memcpy(copy, bytes, length);
        *held = (struct wire_held){.used = 1,
                                   .from_pair = from->number,
                                   .to_pair = to->number,
                                   .length = length,
                                   .from = getpid(),
                                   .to = fabric->contexts[to->context].pid,
                                   .source = (uint64_t) (uintptr_t) copy,
                                   .target = target,
                                   .since_ms = now_ms()};
        fabric->held_count++;
        return;
    }
    (void) fabric_copy(getpid(), (uint64_t) (uintptr_t) bytes, fabric->contexts[to->context].pid,
                       target, length);
}

/* --- completions --- */

void completion_push(uint32_t index, const struct ibv_wc *wc, uint32_t position)
{
    struct wire_cq *cq = &fabric->cqs[index];

    if (cq->dead)
        return;
    if (cq->count == cq->size) { /* it overruns, and is of no use from then on */
        cq->dead = 1;
        event_send(fabric, cq->context, (struct wire_event){IBV_EVENT_CQ_ERR, 0, 0, index});
        return;
    }
    cq->places[(cq->first + cq->count) % QUEUE_PLACES] =
        (struct wire_completion){.wc = *wc, .position = position};
    /* Relaxed: the poller without the lock only looks whether it is worth taking. */
    __atomic_store_n(&cq->count, cq->count + 1, __ATOMIC_RELAXED);
}

/* --- events --- */

const char event_names[] =
    "port_down, port_up, lid, gid, pkey, sm, reregister, address, mtu, fatal";

static void socket_name(const struct fabric *of, uint32_t context, struct sockaddr_un *name,
                        socklen_t *length)
{
    memset(name, 0, sizeof(*name));
    name->sun_family = AF_UNIX;
    *length = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 +
                           (size_t) snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1,
                                             "strict-verbs-%llx-%u", (unsigned long long) of->name,
                                             context));
}

int event_socket(uint32_t context)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un name;
    socklen_t length;

    socket_name(fabric, context, &name, &length);
    if (fd < 0 || bind(fd, (const struct sockaddr *) &name, length) != 0)
        stop("the socket for events");
    return fd;
}

void event_send(struct fabric *of, uint32_t context, struct wire_event event)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un name;
    socklen_t length;

    socket_name(of, context, &name, &length);
    (void) sendto(fd, &event, sizeof(event), 0, (const struct sockaddr *) &name, length);
    close(fd);
}

static void event_send_all(struct fabric *of, uint32_t device, struct wire_event event)
{
    for (uint32_t i = 0; i < CONTEXTS; i++)
        if (of->contexts[i].pid != 0 && of->contexts[i].device == device)
            event_send(of, i, event);
}

bool event_make(struct fabric *of, const char *what, uint32_t device, uint32_t port)
{
    struct wire_event event = {.port = port};
    struct wire_port *at = &of->devices[device].ports[port];

    if (strcmp(what, "port_down") == 0) {
        at->down = 1;
        event.type = IBV_EVENT_PORT_ERR;
    } else if (strcmp(what, "port_up") == 0) {
        at->down = 0;
        event.type = IBV_EVENT_PORT_ACTIVE;
    } else if (strcmp(what, "lid") == 0) {
        at->lid_epoch++;
        event.type = IBV_EVENT_LID_CHANGE;
    } else if (strcmp(what, "gid") == 0) {
        at->gid_epoch++;
        event.type = IBV_EVENT_GID_CHANGE;
    } else if (strcmp(what, "pkey") == 0) {
        at->pkey_epoch++;
        event.type = IBV_EVENT_PKEY_CHANGE;
    } else if (strcmp(what, "sm") == 0) {
        event.type = IBV_EVENT_SM_CHANGE;
    } else if (strcmp(what, "reregister") == 0) {
        event.type = IBV_EVENT_CLIENT_REREGISTER;
    } else if (strcmp(what, "address") == 0) { /* of another subnet, before all others */
        at->address_added = 1;
        event.type = IBV_EVENT_GID_CHANGE;
    } else if (strcmp(what, "mtu") == 0) {
        at->mtu_lowered = 1;
        event.type = IBV_EVENT_PORT_ACTIVE;
    } else if (strcmp(what, "fatal") == 0) {
        of->devices[device].dead = 1;
        event.type = IBV_EVENT_DEVICE_FATAL;
    } else {
        return false;
    }
    event_send_all(of, device, event);
    return true;
}

API bool strict_verbs_event(const char *what, uint32_t device, uint32_t port)
{
    fabric_lock();
    bool good = event_make(fabric, what, device, port);
    fabric_unlock();
    return good;
}
