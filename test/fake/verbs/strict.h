/* SPDX-License-Identifier: BSD-3-Clause */
/* A stand-in for RDMA devices that are strict: it refuses and limits what real adapters refuse and
 * limit, by a profile, and counts what is asked of it. For tests; no figure of time comes from it.
 *
 * It is a libibverbs of its own, to be preloaded or linked. The devices are made up: what they
 * know (queues, keys, ports) lies in one file that all processes of a job map (the fabric), and the
 * process that posts a request carries it out at once, by copying between the two processes. So
 * there is no kernel, no thread and no second path: what is posted in one order ends in one order.
 *
 *   MULTILANE_STRICT_VERBS   PROFILE[,key=value...]; `help` names both
 *   MULTILANE_STRICT_FABRIC  the fabric's file; without it the process is alone
 *   MULTILANE_STRICT_COUNTS  not empty: each process prints its counts at its end
 *
 * profile.c reads the first; fabric.c is what all processes share; device.c, queue.c and request.c
 * are the calls; strict_do.c is a program that asks for events. */
#ifndef MULTILANE_FAKE_STRICT_H
#define MULTILANE_FAKE_STRICT_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define API __attribute__((visibility("default")))

/* --- profiles --- */

/* What a driver refuses beyond what all do. */
enum rule {
    RULE_READ_DEPTHS = 1,        /* a queue pair's reads beyond the device's limits */
    RULE_READ_DEPTHS_MIXED = 2,  /* the same, each compared with the other's limit */
    RULE_PATH_MTU = 4,           /* a path MTU above the port's active one */
    RULE_PURGE = 8,              /* destroying a pair takes its completions off the queues */
    RULE_ROCE_SL = 16,           /* a service level of more than 3 bits on RoCE */
    RULE_RELAXED_NO_ATOMICS = 32 /* atomics in relaxed regions */
};

struct at_event {
    long posts;
    char what[24];
    int device, port;
};

struct profile {
    const char *name;
    long vendor, rules;
    long max_qp, max_qp_wr, max_sge, max_cqe, max_srq, max_srq_wr;
    long reads_in, reads_out; /* max_qp_rd_atom, max_qp_init_rd_atom */
    long max_inline, atomics, request_bytes;
    long inline_given; /* at most, of what a pair asks for */
    /* of the node and its ports */
    long transport; /* enum ibv_transport_type */
    long hosts, devices, ports, roce, speed, slow_port, width, mtu, gids, foreign, routed;
    long pkeys, pkey, pkey_at;
    long sl, traffic_class; /* of each connection; 0: any */
    /* of time and memory */
    long memlock, retry_ms, delay_ms;
    long datagrams; /* those that a port cannot send as it is down break their pair */
    struct at_event at[8];
    int at_count;
};

/* The profile of this process. Ends it with a sentence where the words are wrong. */
const struct profile *profile_get(void);
/* False, and says why in `why`. */
bool profile_read(const char *words, struct profile *profile, char *why, size_t room);

/* --- the fabric --- */

#define DEVICES      64
#define PORTS        2
#define PAIRS        65536u
#define QUEUES       512u
#define QUEUE_PLACES 16384u
#define REGIONS      65536u
#define CONTEXTS     512u
#define HELD         1024u

/* Exact counts of one process's context. */
struct strict_counts {
    uint64_t posts, doorbells, signaled, inlined, receives, receive_doorbells;
    uint64_t polls, empty_polls, completions, pairs, pairs_now, regions, pinned, pinned_most;
    uint64_t waits_for_receiver, datagrams_lost, refused;
};

struct wire_port {
    uint32_t down, lid_epoch, gid_epoch, pkey_epoch;
    uint32_t address_added, mtu_lowered;
};

struct wire_device {
    uint32_t dead, pairs;
    struct wire_port ports[PORTS + 1]; /* from 1 */
};

struct wire_context {
    pid_t pid; /* 0: free */
    uint32_t device;
    struct strict_counts counts;
};

struct wire_completion {
    struct ibv_wc wc;
    uint32_t position; /* of the request in its send queue */
};

struct wire_cq {
    uint32_t used, size, first, count, dead, context;
    struct wire_completion places[QUEUE_PLACES];
};

struct wire_buffer {
    uint64_t id, address;
    uint32_t length;
};

/* A queue of receive buffers: shared, or of one pair. */
struct wire_receives {
    uint32_t used, size, first, count, limit, context;
    struct wire_buffer places[QUEUE_PLACES];
};

struct wire_pair {
    uint32_t number; /* 0: free */
    uint32_t generation, context, device, port, pd;
    uint32_t type, state, access, qkey, pkey_index, reads_out, reads_in;
    uint32_t receives, send_cq, receive_cq;
    uint32_t is_shared; /* its receive queue */
    uint32_t peer;
    struct ibv_ah_attr path;
};

struct wire_region {
    uint32_t key; /* 0: free */
    uint32_t generation, context, pd, access;
    uint64_t address, start, length; /* `start`: as remote addresses name it */
};

/* A write that its sender counts as done, and that is not in memory yet. */
struct wire_held {
    uint32_t used, to_pair, from_pair, length;
    pid_t from, to;
    uint64_t source, target, since_ms;
};

struct fabric {
    uint32_t ready;
    uint64_t name; /* of the sockets that events come by */
    pthread_mutex_t lock;
    uint32_t next_pair, next_region, held_count;
    struct wire_device devices[DEVICES];
    struct wire_context contexts[CONTEXTS];
    struct wire_held held[HELD];
    struct wire_pair pairs[PAIRS];
    struct wire_region regions[REGIONS];
    struct wire_cq cqs[QUEUES];
    struct wire_receives receives[QUEUES];
};

struct wire_event {
    uint32_t type; /* enum ibv_event_type */
    uint32_t port, pair, queue;
};

struct fabric *fabric_get(void);
struct fabric *fabric_map(const char *file);
void fabric_lock(void);
void fabric_unlock(void);
uint64_t now_ms(void);
/* Under the lock, as all below. NULL: there is none (any more). */
struct wire_pair *fabric_pair(uint32_t number);
struct wire_region *fabric_region(uint32_t key);
/* Between any two processes; false: one is gone, or the memory is. */
bool fabric_copy(pid_t from, uint64_t source, pid_t to, uint64_t target, size_t length);
bool fabric_alive(uint32_t context);
/* Where a context's events come by; its descriptor is what ibv_get_async_event reads. */
int event_socket(uint32_t context);
void event_send(struct fabric *fabric, uint32_t context, struct wire_event event);
/* By name, to all contexts of the device; false: no such event. */
bool event_make(struct fabric *fabric, const char *what, uint32_t device, uint32_t port);
extern const char event_names[];
/* Writes that are held become visible: those of `from_pair` or toward `to_pair`, or all that were
 * held long enough (both 0). */
void held_release(uint32_t from_pair, uint32_t to_pair);
void held_add(const struct wire_pair *from, const struct wire_pair *to, const void *bytes,
              uint64_t target, uint32_t length);
void completion_push(uint32_t cq, const struct ibv_wc *wc, uint32_t position);

/* --- addresses --- */

uint16_t port_lid(uint32_t device, uint32_t port);
uint32_t port_mtu(uint32_t device, uint32_t port);
uint16_t port_pkey(uint32_t device, uint32_t port, uint32_t index);
/* False: the table has no such entry. */
bool port_gid(uint32_t device, uint32_t port, uint32_t index, struct ibv_gid_entry *entry);
bool port_is_at(uint32_t device, uint32_t port, const struct ibv_ah_attr *path);
uint32_t port_gid_count(void);

/* --- objects of this process --- */

struct strict_context {
    struct verbs_context verbs; /* ends in the struct ibv_context that the caller has */
    uint32_t index, device;
};

struct strict_ah {
    struct ibv_ah ah;
    struct ibv_ah_attr path;
};

struct strict_cq {
    struct ibv_cq cq;
    uint32_t index;
};

struct strict_srq {
    struct ibv_srq srq;
    uint32_t index;
};

/* A request that is posted and not carried out yet. */
struct request {
    struct request *next;
    struct ibv_send_wr wr;
    struct ibv_sge parts[4];
    struct ibv_ah_attr path;
    uint32_t position, bytes;
    uint64_t since_ms; /* it waits for a path or a buffer; 0: it does not */
    unsigned char inlined[];
};

struct strict_pair {
    struct ibv_qp qp;
    uint32_t index; /* in the fabric */
    struct ibv_qp_cap cap;
    uint32_t posted, freed;
    struct request *first, **last;
    struct strict_pair *next_busy; /* pairs with waiting requests */
    bool is_busy;
    uint64_t pinned;
    int unacknowledged; /* events */
};

struct strict_context *context_of(struct ibv_context *context);
struct strict_counts *counts_of(struct ibv_context *context);
bool context_is_dead(struct ibv_context *context);
/* Accounts for locked memory; false: beyond the limit, and errno is ENOMEM. */
bool pin(struct ibv_context *context, int64_t bytes);
/* The pair of this process with that number, or NULL. */
struct strict_pair *pair_local(uint32_t number);
int refuse(struct ibv_context *context, int error, const char *what, ...)
    __attribute__((format(printf, 3, 4)));

/* request.c */
int request_post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int receive_post(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int receive_post_shared(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int completions_poll(struct ibv_cq *cq, int room, struct ibv_wc *wc);
/* Under the lock: carries out what can be; ends all with an error where the pair is broken. */
void requests_run(struct strict_pair *pair);
void requests_drop(struct strict_pair *pair);

/* For tests: the counts of all contexts of this process together. */
API void strict_verbs_counts(struct strict_counts *counts);
/* An event, as strict_do asks for it. */
API bool strict_verbs_event(const char *what, uint32_t device, uint32_t port);

#endif
