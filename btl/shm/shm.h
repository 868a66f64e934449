/* SPDX-License-Identifier: BSD-3-Clause */
/* The lane over shared memory: its one module, its peers, and what its files offer each other. */
#ifndef MULTILANE_SHM_H
#define MULTILANE_SHM_H

#include "common/compat/btl.h"
#include "common/compat/threads.h"
#include "common/ring/ring.h"
#include "btl/shm/segment.h"
#include "common/lane/user_attributes.h"
#include "common/lane/host.h"
#include "multilane/extension.h"

#include "opal/class/opal_free_list.h"
#include "opal/class/opal_list.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/btl/btl.h"

/* Kinds of ring messages. */
enum shm_kind {
    SHM_KIND_ACTIVE = RING_KIND_FIRST, /* for the callback registered for its tag */
    SHM_KIND_REMOTE                    /* put, get or atomic by message (remote.c) */
};

enum shm_single_copy { SHM_COPY_AUTO, SHM_COPY_CMA, SHM_COPY_NONE };

/* What a process publishes for its peers. */
struct shm_record {
    uint32_t version;
    int32_t pid;
    int32_t fd; /* of its anonymous memory; below 0: nobody else can have it */
    uint32_t uid;
    uint64_t pid_namespace;
    uint64_t user_namespace;
    uint64_t shm_device; /* of /dev/shm; 0 where a file cannot be made there */
    struct segment_nonce memfd;
    struct segment_nonce file;
    uint64_t proof_address; /* proof_value is found there by process_vm_readv */
    uint64_t proof_value;
    char boot[HOST_BOOT_BYTES];
    char host[64];
    int32_t node;   /* NUMA node that the process ran on */
    int32_t copies; /* enum shm_single_copy of the process */
};

#define SHM_RECORD_VERSION 2u

enum peer_out {
    OUT_NONE,    /* nothing was sent yet */
    OUT_WAITING, /* the peer's segment is not there yet, or its doors are taken: tried again */
    OUT_OPEN,    /* the ring can be used */
    OUT_DEAD     /* the peer has ended or broke the rules */
};

/* One process that this one may exchange messages with. */
struct mca_btl_base_endpoint_t {
    /* Sending. `lock` guards all of it. */
    struct ring_sender out;
    uint32_t length_max; /* of a message in the ring */
    bool out_direct;     /* the ring is open and nothing waits before it */
    uint8_t out_state;   /* enum peer_out */
    bool pending_listed; /* in shm.pending_peers */
    bool copy_proven;    /* process_vm_readv and writev reach this very process */
    bool copy_tried;     /* the proof was tried */
    uint32_t out_bit;    /* the bell of our door */
    _Atomic uint64_t *out_bell;
    uint64_t *stale;     /* of the ring */
    opal_list_t pending; /* struct shm_frag that found no room */
    opal_mutex_t lock;

    struct segment *out_segment; /* ours, where the lane to the peer lies */
    struct lane *out_lane;
    struct segment_header *host; /* the peer's, where our door is */
    size_t host_bytes;
    uint32_t host_doors;
    int host_fd;
    struct door *out_door;
    struct door *left_door; /* we closed it and the peer has not freed it: the lane is in use */
    struct lane *left_lane;
    /* It has finalized and ended. What the PML still says to it, as that there is room again, is
     * dropped as if it had been sent. */
    bool gone;
    uint64_t controls_taken;  /* one bit a control line of out_lane */
    uint64_t waiting_since_s; /* the peer's segment did not open then */
    bool out_unusable;        /* and never will: reported at the next round of progress */

    /* Receiving. `receiving` is taken by who looks at the ring. */
    _Alignas(RING_LINE_BYTES) struct ring_receiver in;
    _Atomic bool receiving;
    /* Its ring may be looked at. Written under shm.lock, or by who has `receiving`; read by
     * everybody who waits for the peer. Release: the ring is as it must be (in_is_open). */
    _Atomic bool in_open;
    bool in_attended; /* in shm.attended */
    struct lane *in_lane;
    size_t in_bytes;
    uint64_t in_tail_seen;     /* of the ring, when it was last asked to make room */
    enum segment_kind in_kind; /* of our segment where the door is */
    bool in_closing;           /* the visitor has left; close when its ring is empty */
    _Atomic bool in_left;      /* that has happened. Relaxed: a hint for host_missing */
    /* Ours, that the peer took. Written as in_open is; read also by who cannot open the peer's
     * segment (visitor_has_left). Release: in_left is as it must be. */
    struct door *_Atomic in_door;
    struct mca_btl_base_endpoint_t **in_door_peer; /* its entry in shm.door_peers */

    /* Operations by message that this process began and the peer has not answered (remote.c). */
    opal_list_t remote_operations;

    opal_proc_t *proc; /* NULL: it sent before Open MPI told us of it */
    opal_process_name_t name;
    struct shm_record record;
    enum segment_kind kind; /* how its segments are opened */
    bool known;             /* by btl_add_procs */
    _Atomic bool promised;  /* a ring of ours, see shm_component */
};

/* Acquire: pairs with the release of who opened it. */
static inline bool in_is_open(const struct mca_btl_base_endpoint_t *peer)
{
    return atomic_load_explicit(&peer->in_open, memory_order_acquire);
}

typedef struct mca_btl_base_endpoint_t shm_peer_t;

/* A descriptor: for a message until it is in the ring. */
struct shm_frag {
    mca_btl_base_descriptor_t base;
    mca_btl_base_segment_t segments[2];
    opal_free_list_t *list;
    mca_btl_base_tag_t tag;
    uint8_t kind;
    _Alignas(16) unsigned char data[];
};
OBJ_CLASS_DECLARATION(struct_shm_frag);
typedef struct shm_frag struct_shm_frag;

#define SHM_ATTENDED_MAX 8u

struct shm_component {
    mca_btl_base_component_t super;

    /* parameters */
    const char *single_copy_text;
    const char *ring_bytes_text;
    const char *memory_max_text;
    struct user_attributes user; /* attributes by parameters */
    enum shm_single_copy single_copy;

    struct shm_record record;
    uint32_t door_count;
    uint32_t lane_count;
    uint32_t lane_lines;
    /* Peers that were told that a ring leads to them, by the kind of its segment: no more than
     * there are rings. Relaxed: it is raised under `lock`, and lowered when the ring is back. */
    _Atomic uint32_t promised[SEGMENT_KINDS];
    bool oversubscribed; /* more processes of the job on the node than processors */
    uint64_t proof;      /* what peers read to prove that they reach this process */

    /* Guards the tables of peers and doors and what makes or ends a connection. Never taken while a
     * peer's lock is held. */
    opal_mutex_t lock;
    opal_mutex_t lane_lock; /* guards the lanes of `segments`; taken inside a peer's lock */
    struct segment segments[SEGMENT_KINDS];
    _Atomic bool segment_live[SEGMENT_KINDS];
    shm_peer_t **peers;
    uint32_t peer_count;
    uint32_t peer_room;
    shm_peer_t **door_peers[SEGMENT_KINDS]; /* who took our doors */

    /* Rings that are looked at in every round; the others when their bell rings, and one of them in
     * every few rounds, in case its bell was missed. Changed under `lock`; read without: an entry
     * is a peer or NULL, and peers live until the module ends. */
    shm_peer_t *_Atomic attended[SHM_ATTENDED_MAX];
    _Atomic uint32_t attended_end; /* behind the last entry in use */
    uint32_t attended_next;
    _Atomic uint32_t round;
    uint32_t sweep_next;
    uint32_t life_next;
    _Atomic uint64_t life_checked_ms;

    opal_mutex_t pending_lock; /* guards pending_peers; taken inside a peer's lock */
    shm_peer_t **pending_peers;
    _Atomic uint32_t pending_count;

    opal_free_list_t frags_small;
    opal_free_list_t frags_large;

    mca_btl_base_module_error_cb_fn_t error_callback;
    _Atomic uint64_t broken_headers;
    bool finalized;
};

#define SHM_FRAG_SMALL 512u

/* What a ring may take, in any job. */
#define RING_BYTES_MIN (16u << 10)
#define RING_BYTES_MAX (4u << 20)

struct shm_module {
    mca_btl_base_module_t super;
};

/* Open MPI finds the component by this name; here it is called shm. */
extern struct shm_component mca_btl_shm_component;
#define shm mca_btl_shm_component
extern struct shm_module shm_module;

#define SHM_SAY(...) opal_output(0, "btl/shm: " __VA_ARGS__)
#define SHM_VERBOSE(...)                                                                           \
    opal_output_verbose(10, opal_btl_base_framework.framework_output, "btl/shm: " __VA_ARGS__)

/* identity.c: who this process is, and whether it can reach another. */
int identity_fill(struct shm_record *record);
/* Whether the system lets our siblings have our descriptors. It does not if the program's file may
 * be executed and not read, say: all of /proc/PID belongs to root then. */
bool identity_is_open(void);
/* NULL if the peer that published `record` can be reached, and then *kind says how; else why not.
 */
const char *identity_refuses(const struct shm_record *record, bool same_job,
                             enum segment_kind *kind);

/* peer.c */
int peer_add_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                   shm_peer_t **peers, opal_bitmap_t *reachable);
int peer_del_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                   shm_peer_t **peers);
/* Under shm.lock. The peer of that name; NULL if there is none. */
shm_peer_t *peer_find(const opal_process_name_t *name);
shm_peer_t *peer_create(const opal_process_name_t *name);
/* The peer is lost: what waits for it ends with an error, Open MPI is told once. */
void peer_fail(shm_peer_t *peer, const char *why);
void peer_check_lives(void);
/* Under peer->lock: takes back what a closed way out held, once the peer has read it. */
void peer_retire(shm_peer_t *peer);
/* Whether it may still read what is sent to it. */
bool peer_reads(const shm_peer_t *peer);
void peers_close(void);

/* door.c: connections. */
/* Makes our segment of that kind if it is not there; false, and said why, if it cannot be. Under
 * shm.lock or lane_lock. */
bool door_segment_ready(enum segment_kind kind);
/* Under peer->lock: brings out_state from OUT_NONE or OUT_WAITING on. */
void door_open_out(shm_peer_t *peer);
void door_close_out(shm_peer_t *peer);
/* Under peer->lock: what door_close_out does, with nothing waiting. */
void door_leave(shm_peer_t *peer);
void door_close_in(shm_peer_t *peer);
/* Looks at the doors of our segments whose bells rang; returns events. */
int door_answer(void);
bool door_rang(void);
void door_bell_ring(shm_peer_t *peer);
/* Rings our own bell for a peer's ring, to look there again later. */
void door_bell_ring_own(shm_peer_t *peer);

/* send.c */
mca_btl_base_descriptor_t *send_alloc(mca_btl_base_module_t *btl, shm_peer_t *peer, uint8_t order,
                                      size_t size, uint32_t flags);
int send_free(mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *descriptor);
mca_btl_base_descriptor_t *send_prepare(mca_btl_base_module_t *btl, shm_peer_t *peer,
                                        opal_convertor_t *convertor, uint8_t order, size_t reserve,
                                        size_t *size, uint32_t flags);
int send_start(mca_btl_base_module_t *btl, shm_peer_t *peer, mca_btl_base_descriptor_t *descriptor,
               mca_btl_base_tag_t tag);
int send_immediate(mca_btl_base_module_t *btl, shm_peer_t *peer, opal_convertor_t *convertor,
                   void *header, size_t header_size, size_t payload_size, uint8_t order,
                   uint32_t flags, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t **descriptor);
/* The extension's reserve and commit. In between the peer's lock is held, if there are threads. */
void *send_reserve(mca_btl_base_module_t *btl, shm_peer_t *peer, size_t header_size,
                   size_t payload_size);
void send_commit(mca_btl_base_module_t *btl, shm_peer_t *peer, size_t header_size,
                 size_t payload_size, uint8_t tag);
/* A message of this BTL's own; `data` follows `header`. 0, or an error if memory is out. */
int send_remote(shm_peer_t *peer, const void *header, size_t header_size, const void *data,
                size_t size);
/* Sends what waits, where there is room now; returns events. */
int send_pending(void);
void send_fail_pending(shm_peer_t *peer);

/* receive.c */
int receive_progress(void);
/* For who waits: no more than the next message, which may be the awaited one. What follows stays in
 * the ring until it is asked for, and need not be kept elsewhere meanwhile. */
int receive_one(shm_peer_t *peer);
/* For a ring whose bell rang, attended or not: what is left in it keeps the bell ringing. */
int receive_told(shm_peer_t *peer);
/* Under shm.lock: look at this ring in every round from now on. */
void receive_attend(shm_peer_t *peer);
void receive_forget(shm_peer_t *peer);

/* copy.c: process_vm_readv and writev. */
bool copy_possible(shm_peer_t *peer);
int copy_from(mca_btl_base_module_t *btl, shm_peer_t *peer, void *local, uint64_t remote_address,
              size_t length);
int copy_to(mca_btl_base_module_t *btl, shm_peer_t *peer, const void *local,
            uint64_t remote_address, size_t length);

/* registration.c */
/* What a registration is to the peer: it comes back in a request, and is held against the table. */
struct mca_btl_base_registration_handle_t {
    uint32_t index;
    uint32_t generation;
};

void registration_init(void);
void registration_finish(void);
mca_btl_base_registration_handle_t *registration_make(mca_btl_base_module_t *btl, shm_peer_t *peer,
                                                      void *base, size_t size, uint32_t flags);
int registration_end(mca_btl_base_module_t *btl, mca_btl_base_registration_handle_t *handle);
/* Whether who has that handle was given the right to `access` these bytes. */
bool registration_allows(const mca_btl_base_registration_handle_t *handle, uint64_t address,
                         uint64_t size, uint32_t access);

/* remote.c: put, get and atomics. */
int remote_init(void);
void remote_finish(void);
int remote_put(mca_btl_base_module_t *btl, shm_peer_t *peer, void *local_address,
               uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
               mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags, int order,
               mca_btl_base_rdma_completion_fn_t callback, void *context, void *data);
int remote_get(mca_btl_base_module_t *btl, shm_peer_t *peer, void *local_address,
               uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
               mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags, int order,
               mca_btl_base_rdma_completion_fn_t callback, void *context, void *data);
int remote_atomic(mca_btl_base_module_t *btl, shm_peer_t *peer, uint64_t remote_address,
                  mca_btl_base_registration_handle_t *remote_handle, mca_btl_base_atomic_op_t op,
                  uint64_t operand, int flags, int order,
                  mca_btl_base_rdma_completion_fn_t callback, void *context, void *data);
int remote_fetch_atomic(mca_btl_base_module_t *btl, shm_peer_t *peer, void *local_address,
                        uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
                        mca_btl_base_registration_handle_t *remote_handle,
                        mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
                        mca_btl_base_rdma_completion_fn_t callback, void *context, void *data);
int remote_compare_swap(mca_btl_base_module_t *btl, shm_peer_t *peer, void *local_address,
                        uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
                        mca_btl_base_registration_handle_t *remote_handle, uint64_t compare,
                        uint64_t value, int flags, int order,
                        mca_btl_base_rdma_completion_fn_t callback, void *context, void *data);
/* A message of kind SHM_KIND_REMOTE. False: it breaks the rules. */
bool remote_handle(shm_peer_t *peer, const void *message, size_t length);
void remote_fail(shm_peer_t *peer);

#endif
