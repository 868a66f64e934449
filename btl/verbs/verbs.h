/* SPDX-License-Identifier: BSD-3-Clause */
/* The lane over InfiniBand, RoCE and soft RoCE: one module a port, its peers, and what its files
 * offer each other, from the lowest layer (test/layers) to the highest. */
#ifndef MULTILANE_VERBS_H
#define MULTILANE_VERBS_H

#include <infiniband/verbs.h>
#include <stdatomic.h>

#include "btl/verbs/choice.h"
#include "btl/verbs/dmabuf.h"
#include "common/compat/fragment.h"
#include "common/compat/param.h"
#include "common/compat/peer_list.h"
#include "common/compat/threads.h"
#include "common/lane/attr.h"
#include "multilane/extension.h"

#include "opal/class/opal_free_list.h"
#include "opal/class/opal_list.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/btl/btl.h"
#include "opal/mca/rcache/base/base.h"
#include "opal/mca/rcache/rcache.h"

/* --- what a process publishes for its peers --- */

struct verbs_port {
    struct choice_address address;
    uint32_t greeting_qpn; /* the datagram queue pair that greetings go to */
    uint32_t mtu;          /* enum ibv_mtu */
};

struct verbs_record {
    uint32_t version;
    uint32_t port_count;
    uint64_t nonce;         /* names this very process: greetings carry it */
    uint64_t message_bytes; /* the longest that it takes */
    uint32_t turn;          /* of the process, in the choice among equal ports: its number */
    uint32_t reserved;
    struct verbs_port ports[CHOICE_PORTS_MAX];
};

#define VERBS_RECORD_VERSION 6u
/* Only the used entries of `ports` travel. */
#define VERBS_RECORD_BYTES(count)                                                                  \
    (offsetof(struct verbs_record, ports) + (count) * sizeof(struct verbs_port))

/* --- registrations --- */

/* The keys are for the peer; the pointer is for this process. */
struct mca_btl_base_registration_handle_t {
    uint32_t remote_key;
    uint32_t local_key;
    struct dmabuf_region *device; /* NULL: memory of the host's, by Open MPI's cache */
};
#define HANDLE_BYTES offsetof(struct mca_btl_base_registration_handle_t, device)

/* Memory of the lane's own, in whole pages: registered ones may be missing in a child of fork(). */
struct verbs_memory {
    unsigned char *bytes; /* NULL: there is none */
    struct ibv_mr *region;
};

/* --- works: what queue pairs carry --- */

enum work_kind { WORK_SEND, WORK_PUT, WORK_GET, WORK_FETCH_ADD, WORK_SWAP_IF };

/* A descriptor of a message, or one put, get or atomic. It belongs to the peer from its submission
 * until its completion. */
struct verbs_work {
    mca_btl_base_descriptor_t base;
    mca_btl_base_segment_t segments[2]; /* its own memory, and the payload where that stays */
    struct mca_btl_base_endpoint_t *peer;
    opal_free_list_t *list;
    uint8_t kind;  /* enum work_kind */
    uint8_t frees; /* entries of the send queue that its completion frees */
    mca_btl_base_tag_t tag;
    uint64_t number; /* of a message in its connection, from 1; 0: it was not posted */

    /* of put, get and atomics; the first three also of a message in place, where request.local is
     * its payload, and a size of 0 of any other */
    struct remote_request request;
    uint64_t size;
    uint32_t local_key;
    uint64_t remote;
    uint32_t remote_key;
    uint64_t operands[2];
    multilane_flush_done flushed; /* of a flush, which is a get */
};

/* --- what a broken connection returns --- */

/* Both ends count the messages of a connection, so that it is known which have come. */
#define COUNT_UNKNOWN UINT64_MAX
#define COUNT_FALSE   (UINT64_MAX - 1) /* more than were sent */

/* Of one connection; under the peer's lock. */
struct verbs_returns {
    void *context;
    opal_list_t unreturned; /* messages that were posted and ended without success, in order */
    bool busy;              /* the thread that polls is ending one */
    bool told;              /* the other end knows `received`: no other message is taken in */
    uint32_t qpn;           /* ours, of the connection that is counted */
    uint64_t reported;      /* the last message whose success the device has reported */
    uint64_t arrived;       /* messages of ours, as the other end says */
    uint64_t lost;          /* of those reported, so many never came; until the PML is told */
};

/* --- connections --- */

/* One end: what the other end needs to connect its queue pair with this one. Part of a greeting. */
struct verbs_end {
    uint32_t qpn;
    uint32_t psn;
    uint32_t index; /* what the other end puts into its messages, so that they are found here */
    uint32_t read_depth; /* gets under way that this end answers */
    struct verbs_port port;
};

/* --- peers --- */

enum peer_state {
    PEER_IDLE,     /* nothing was sent yet */
    PEER_GREETING, /* our queue pair waits to hear of the peer's */
    PEER_ANSWERED, /* ours is ready; whether the peer's is, is not known yet */
    PEER_READY,    /* both are */
    PEER_FAILED    /* nothing can be sent until the peer is added or greets anew */
};

/* A device takes what a queue pair has received, and was not polled yet, away with the queue pair,
 * and with it buffers of the queue that all peers share. */
enum pair_drain {
    DRAIN_NONE,    /* nothing can be lost */
    DRAIN_WAITING, /* it may still use a buffer */
    DRAIN_POLLING  /* it has used its last one; what it has received is being polled */
};

/* A pause after a failed attempt; each is longer than the last. */
struct verbs_pause {
    uint64_t until_ms;
    uint32_t length_ms;
};

/* One port of one process, reached from one of our ports. Lives until its module ends. Aligned, so
 * that the low bits of its address can carry more (INLINE_ID). */
struct mca_btl_base_endpoint_t {
    /* Guards all down to `pending`. Taken inside the module's lock, never around it. */
    opal_mutex_t lock;
    _Atomic uint8_t state; /* enum peer_state; see verbs_peer_state */
    uint8_t unsignaled;    /* messages posted since the last one that will be reported */
    uint32_t reports_due;  /* messages and works that will be reported */
    uint32_t send_room;    /* free entries of the send queue */
    uint64_t moved_ms;     /* when a work last completed, or the first one was given to it */
    uint32_t outstanding;  /* works posted and not completed, */
    size_t posted_bytes;   /* their bytes, */
    opal_list_t posted;    /* and the works themselves, in order: a dead device reports none */
    struct ibv_qp *qp;     /* NULL while IDLE */
    uint32_t my_psn;
    opal_list_t pending;  /* struct verbs_work that wait for the connection or for room */
    _Atomic uint32_t qpn; /* of `qp`; read without the lock where completions are handled */

    /* Who takes messages back; NULL: none is kept. Written under `lock`. */
    _Atomic(multilane_returned) returned;
    uint64_t sent;             /* messages of the connection; under `lock` */
    _Atomic uint64_t received; /* by the thread that polls, under `lock` once it is broken */
    struct verbs_returns returns;

    /* The other end, from its record or its greeting; under `lock`. */
    struct verbs_port port;
    uint64_t nonce;
    uint32_t their_qpn;
    uint32_t their_index; /* our index at the other end, for our messages */
    struct ibv_ah *greeting_path;
    struct verbs_pause path_pause; /* until the next attempt to make the path */
    uint64_t greet_begun_ms;
    uint64_t greet_next_ms;
    uint32_t greet_pause_ms;
    uint32_t their_port; /* index in its record */

    struct verbs_module *module;
    uint32_t index;          /* in the module's table, */
    struct peer_entry entry; /* and the one by names */
    opal_process_name_t name;
    opal_proc_t *proc; /* NULL: it greeted before Open MPI added it */
    bool known;        /* by btl_add_procs */

    struct peer_place waiting, greeting; /* in the module's lists */

    /* Of the connection that failed; under `lock`. */
    bool was_ready;       /* it carried something */
    bool said;            /* its loss was reported; a connection that never came up is not */
    bool fence_confirmed; /* the other end has confirmed that its queue pair is broken too */
    uint8_t drain;        /* enum pair_drain: what it received before, and its last buffer */
    uint64_t broken_ms;
    uint32_t drain_round;   /* module->empty_rounds when its last buffer was used */
    uint64_t fence_next_ms; /* when the other end is asked again */
};

typedef struct mca_btl_base_endpoint_t verbs_peer_t;

#define PEER_ALIGNMENT 64u
#define PEERS_CHUNK    256u
#define PEERS_CHUNKS   1024u

/* --- modules --- */

struct verbs_greeter; /* greeter.c */

/* Registrations of receive buffers: those that a port begins with, and those that come later. */
#define RECEIVE_PIECES 13u /* 16 buffers, and twelve times as many again */

/* The buffers of the shared receive queue. After the beginning for the thread that polls. */
struct verbs_receives {
    struct verbs_receive {
        unsigned char *memory;
        uint32_t key;
    } * buffers;        /* `count` of them */
    uint32_t *unposted; /* those that were read, to be posted again together; room for all */
    uint32_t unposted_count;
    uint32_t batch; /* so many are posted at once */
    uint32_t count;
    uint32_t most; /* more than `count`: it grows when the device says that few are left */
    uint32_t piece_count;
    struct verbs_memory pieces[RECEIVE_PIECES];
};

struct verbs_module {
    mca_btl_base_module_t super;
    uint32_t port_index; /* in the record */
    char device[CHOICE_NAME_BYTES];

    struct ibv_context *context;
    struct ibv_pd *pd;
    uint32_t port_number;
    uint32_t gid_index;
    struct choice_gid first_gid; /* the address that it began with */
    uint16_t pkey_index;
    enum ibv_mtu mtu;
    uint32_t read_depth; /* gets and atomics under way that the device allows us, and toward us */
    uint32_t inline_max;
    uint32_t device_group; /* other than 0 where the device has more ports of ours */
    bool soft;             /* soft RoCE: the processor does it all */
    bool atomics;

    struct ibv_cq *send_cq;
    struct ibv_cq *receive_cq;
    struct ibv_srq *srq;
    struct verbs_receives receives;
    size_t receive_bytes; /* of each buffer */
    int32_t send_cq_size;
    _Atomic int32_t send_cq_room;
    _Atomic uint32_t reports_due; /* works and greetings that the device will report */
    struct verbs_greeter *greeter;
    _Atomic bool greeter_broken; /* it sends no more datagrams */

    mca_rcache_base_module_t *rcache;
    struct dmabuf_cache dmabuf; /* without a pd: device memory is not reached directly */
    verbs_peer_t *loop;         /* see flush.c; NULL: it was not wanted yet */
    struct ibv_mr *flush_region;
    uint64_t flush_bytes; /* target of the flushes' reads */
    _Atomic uint64_t flushes;
    opal_free_list_t frags_small;
    opal_free_list_t frags_large;
    opal_free_list_t operations;
    bool lists_ready;

    /* Guards the table of peers. Never taken while a peer's lock is held. */
    opal_mutex_t lock;
    verbs_peer_t **_Atomic chunks[PEERS_CHUNKS];
    _Atomic uint32_t peer_count;
    struct peer_table names;

    struct peer_list waiting;  /* peers with something pending and a connection, */
    struct peer_list greeting; /* and that are greeted again until they answer */

    _Atomic bool polling; /* set by the one thread that polls the completion queues */
    uint32_t round;
    bool port_down;
    bool look_due;     /* something of the port has changed, and its GIDs could not be read */
    _Atomic bool dead; /* the device reports nothing any more */
    _Atomic uint32_t empty_rounds; /* how often the receive completions were polled empty */
    _Atomic uint32_t draining;     /* peers in DRAIN_WAITING */
    _Atomic bool returns_due;      /* a peer may have messages to return */
    uint64_t port_down_since_ms;
    bool finalized;
    const char *said_missing; /* why it was last said to be no lane to a process; under `lock` */
    _Atomic bool broken_said;
    _Atomic bool unanswered_said;
    _Atomic bool refused_said; /* that the device makes no more queue pairs */
    _Atomic uint32_t pair_count;
    int max_pairs; /* of the device, for all processes */
};

#define module_of(btl) ((struct verbs_module *) (btl))

/* The state of the component. */
struct verbs_state {
    /* parameters */
    const char *devices;
    struct param_word pairing; /* enum choice_pairing */
    struct param_word dmabuf;
    struct attr_parameters lane; /* attributes by parameters */
    int gid_index;
    int pkey;
    int rails; /* 0: by rule */
    struct param_word same_node;
    int service_level;
    int traffic_class;
    int timeout;
    int retry_count;
    int queue_depth; /* 0: verbs_choice_depth */
    int receive_buffers;
    int receive_buffers_most;
    struct choice_rule pair_rule;
    struct choice_depth depth;
    bool leaves_node; /* to the lanes of shared memory */

    /* Counters that people read: payload that was packed into fragments of ours, and that was sent
     * from where it lies. */
    _Atomic uint64_t copied_bytes;
    _Atomic uint64_t in_place_bytes;

    struct verbs_record record;
    /* Guards the addresses of its ports once peers are known, and what follows; a leaf. */
    opal_mutex_t record_lock;
    uint64_t paired_nonce; /* the process that ports were paired with last; 0: none */
    int pairs[CHOICE_PORTS_MAX];
    struct verbs_module *modules[CHOICE_PORTS_MAX];
    uint32_t module_count;
};

/* verbs.c. Open MPI knows the component as mca_btl_verbs_component (component.c). */
extern struct verbs_state verbs;
/* The module of that port of our record; NULL: none, or none any more. */
struct verbs_module *verbs_module_of_port(uint32_t port_index);
/* A message breaks the rules: said once. */
void verbs_message_broken(struct verbs_module *module, const char *what);

/* False: errno says why not. */
bool verbs_memory_make(struct verbs_memory *memory, struct ibv_pd *pd, size_t bytes, int access);
void verbs_memory_free(struct verbs_memory *memory);

/* clock.c */
uint64_t verbs_now_ms(void);

#define VERBS_SAY(...) opal_output(0, "btl/verbs: " __VA_ARGS__)
#define VERBS_VERBOSE(...)                                                                         \
    opal_output_verbose(10, opal_btl_base_framework.framework_output, "btl/verbs: " __VA_ARGS__)

#define VERBS_FRAG_SMALL 2048u

/* wr_id of a message without a descriptor: the peer, and the entries of the send queue that its
 * completion frees. */
#define INLINE_ID_MARK         1u
#define INLINE_ID(peer, frees) ((uint64_t) (uintptr_t) (peer) | (uint64_t) (frees) << 1 | 1u)
#define INLINE_ID_PEER(id)     ((verbs_peer_t *) (uintptr_t) ((id) & ~(uint64_t) (PEER_ALIGNMENT - 1)))
#define INLINE_ID_FREES(id)    ((uint32_t) ((id) & (PEER_ALIGNMENT - 1)) >> 1)
/* Unsignaled messages in a row, at most: as many as INLINE_ID can count, or fewer. */
#define INLINE_UNSIGNALED_MAX 15u
/* wr_id of greetings. */
#define GREETING_ID(index)    ((uint64_t) (index) << 8 | 2u)
#define GREETING_ID_MARK      2u
#define GREETING_ID_INDEX(id) ((uint32_t) ((id) >> 8))

/* The immediate word of a message: the sender's index in the receiver's table, and the tag. */
#define MESSAGE_WORD(index, tag) ((index) << 8 | (uint32_t) (tag))
#define MESSAGE_WORD_INDEX(word) ((word) >> 8)
#define MESSAGE_WORD_TAG(word)   ((mca_btl_base_tag_t) ((word) &0xff))

/* --- peers and their send queues ------------------------------------------------------------- */

/* peer.c */
/* The table and the lists of peers of a new module. */
void verbs_peers_open(struct verbs_module *module);
verbs_peer_t *verbs_peer_at(struct verbs_module *module, uint32_t index);
/* Under module->lock. */
verbs_peer_t *verbs_peer_create(struct verbs_module *module, const opal_process_name_t *name);
/* Under peer->lock. */
/* Relaxed: the lock orders it; who looks without the lock gets a hint, and looks again with it. */
static inline enum peer_state verbs_peer_state(const verbs_peer_t *peer)
{
    return (enum peer_state) atomic_load_explicit(&peer->state, memory_order_relaxed);
}

void verbs_peer_state_set(verbs_peer_t *peer, enum peer_state state);

/* cache.c: registrations of memory of the host. */
int verbs_cache_open(struct verbs_module *module);
/* The key of memory that a free list registered. */
uint32_t verbs_cache_key(const mca_rcache_base_registration_t *registration);
/* `only_cached`: NULL where others are kept for the next time, and this would not be. */
mca_btl_base_registration_handle_t *verbs_cache_register(struct verbs_module *module, void *base,
                                                         size_t size, int32_t access,
                                                         bool only_cached);
int verbs_cache_deregister(struct verbs_module *module, mca_btl_base_registration_handle_t *handle);

/* work.c */
int verbs_works_open(struct verbs_module *module);
void verbs_works_close(struct verbs_module *module);
/* Descriptors of messages: btl_alloc, btl_free, btl_prepare_src. */
BTL_FUNCTION(alloc, verbs_work_alloc);
BTL_FUNCTION(free, verbs_work_free);
BTL_FUNCTION(prepare, verbs_work_prepare);
/* The extension's prepare_in_place. */
mca_btl_base_descriptor_t *verbs_work_in_place(mca_btl_base_module_t *btl, verbs_peer_t *peer,
                                               mca_btl_base_registration_handle_t *registration,
                                               size_t header_bytes, const void *payload,
                                               size_t payload_bytes, uint32_t flags);
/* Counts payload that was packed into a fragment. */
static inline void verbs_work_copied(size_t bytes)
{
    if (bytes != 0)
        atomic_fetch_add_explicit(&verbs.copied_bytes, bytes, memory_order_relaxed);
}
/* A put, get or atomic; NULL: no memory. */
struct verbs_work *verbs_work_get(struct verbs_module *module, enum work_kind kind, uint64_t remote,
                                  size_t size,
                                  const mca_btl_base_registration_handle_t *remote_handle,
                                  struct remote_request request);
/* With no lock held: it has ended. */
void verbs_work_complete(struct verbs_work *work, int status);

/* returns.c */
static inline bool verbs_peer_keeps(const verbs_peer_t *peer)
{
    /* Relaxed: a message that another thread sends meanwhile may be kept or not. */
    return atomic_load_explicit(&peer->returned, memory_order_relaxed) != NULL;
}

static inline bool verbs_work_is_kept(const struct verbs_work *work)
{
    return work->kind == WORK_SEND && verbs_peer_keeps(work->peer);
}

/* The extension's return_to. */
void verbs_return_to(mca_btl_base_module_t *btl, verbs_peer_t *peer, multilane_returned returned,
                     void *context);
/* The extension's quiet_ms. */
uint64_t verbs_quiet_ms(mca_btl_base_module_t *btl, verbs_peer_t *peer);
/* All that was given to it has ended, or it failed. */
bool verbs_peer_is_quiet(verbs_peer_t *peer);
/* Under the peer's lock: a work is given to it. */
void verbs_returns_given(verbs_peer_t *peer);
/* Under peer->lock, as all but the last two. A connection begins. */
void verbs_returns_begin(verbs_peer_t *peer);
/* A work has ended without success. False: it is not kept. */
bool verbs_returns_keep(verbs_peer_t *peer, struct verbs_work *work);
/* The other end's count, or COUNT_UNKNOWN. */
void verbs_returns_learn(verbs_peer_t *peer, uint64_t count);
/* What the peer keeps may have become ready to be returned. */
void verbs_returns_look(verbs_peer_t *peer);
/* It cannot begin anew: it has messages to return. */
bool verbs_returns_wait(verbs_peer_t *peer);
/* By the thread that polls, with no lock held: returns what is ready; returns events. */
int verbs_returns_make(verbs_peer_t *peer);
int verbs_returns_make_all(struct verbs_module *module);

/* queue.c. Under peer->lock, but for the last two functions. */
/* POST_FULL: a completion gives room. POST_LATER: there is no connection, or other works wait. */
enum verbs_posting { POSTED, POST_FULL, POST_LATER, POST_FAILED };

/* In state READY. */
enum verbs_posting verbs_queue_post(verbs_peer_t *peer, struct verbs_work *work);
/* The same for a message of at most module->inline_max bytes. */
enum verbs_posting verbs_queue_post_inline(verbs_peer_t *peer, struct ibv_send_wr *request);
void verbs_queue_room_give(verbs_peer_t *peer, uint32_t entries);
/* Under the peer's lock: a posted work has ended. */
void verbs_queue_ended(verbs_peer_t *peer, const struct verbs_work *work);
/* So many of those to be reported have been, or will not be any more. */
void verbs_queue_reported(verbs_peer_t *peer, uint32_t count);
/* The next round of progress posts the peer's pending works. */
void verbs_queue_wake(verbs_peer_t *peer);
/* Ends the peer's pending works with an error, but those to be returned. */
void verbs_queue_fail_pending(verbs_peer_t *peer);

/* failure.c */
/* The lane to the peer is lost: its works end with an error, and Open MPI is told once. */
void verbs_peer_fail(verbs_peer_t *peer, const char *why);
/* The same, if that queue pair is still the peer's: events of it may come late. */
#define ANY_PAIR 0u
void verbs_peer_fail_pair(verbs_peer_t *peer, uint32_t qpn, const char *why);
/* The broken queue pair, if it is the peer's, has used its last receive buffer. */
void verbs_peer_last_buffer(verbs_peer_t *peer, uint32_t qpn);
/* Under peer->lock: nothing that its broken queue pair received is lost with it. */
bool verbs_peer_is_drained(verbs_peer_t *peer);
/* By the thread that polls: the device is gone. All that its peers have under way ends. */
void verbs_module_die(struct verbs_module *module, const char *why);

/* receives.c */
/* False: errno says why the first buffers cannot be had or, if there are some, be posted. */
bool verbs_receives_open(struct verbs_module *module, uint32_t count, uint32_t most);
void verbs_receives_close(struct verbs_module *module);
/* The buffer was read. */
void verbs_receive_again(struct verbs_module *module, uint32_t index);
/* Posts all that were read. */
void verbs_receives_post(struct verbs_module *module);
/* The device says that few are left. */
void verbs_receives_grow(struct verbs_module *module);

/* --- connections ----------------------------------------------------------------------------- */

/* pair.c. Under peer->lock. */
void verbs_path_fill(struct verbs_module *module, const struct choice_address *address,
                     struct ibv_ah_attr *path);
/* Makes a queue pair for this peer; false, and says why, if that fails. */
bool verbs_pair_create(verbs_peer_t *peer);
/* A queue pair of the module; NULL: errno says why not. So many bytes of a message are asked to go
 * inside its requests, and so many do: some drivers take any number and give none. */
struct ibv_qp *verbs_pair_make(struct verbs_module *module, uint32_t *inline_bytes);
void verbs_pair_end(const verbs_peer_t *peer, struct verbs_end *end);
/* Makes our queue pair ready for the one at the other end. */
bool verbs_pair_connect(verbs_peer_t *peer, const struct verbs_end *other);
/* An IDLE peer gets a queue pair that leads to itself, and is READY. */
bool verbs_pair_to_itself(verbs_peer_t *peer);
/* One that failed becomes IDLE, if the last connection is wholly over. */
bool verbs_peer_renew(verbs_peer_t *peer);
/* Frees all peers and what verbs_peers_open has made, with no lock held. */
void verbs_peers_close(struct verbs_module *module);

/* greeter.c; more in greeting.h. */
int verbs_greeter_open(struct verbs_module *module, uint32_t *qpn);
void verbs_greeter_close(struct verbs_module *module);
void verbs_greeting_sent(struct verbs_module *module, uint32_t index, bool good);
/* By the thread that polls, with nothing received: resets a broken queue pair, if all that it sent
 * was reported. */
void verbs_greeter_restart(struct verbs_module *module);

/* completion.c */
/* A completion of the send queue. */
void verbs_work_completed(struct verbs_module *module, const struct ibv_wc *wc);
/* By the thread that polls, with no lock held: handles some completions of the send queues. */
int verbs_completions_poll(struct verbs_module *module);

/* fence.c */
/* Under peer->lock: it failed, and the other end may still take in what was sent before, or has not
 * said how much came of it. */
bool verbs_peer_is_unfenced(verbs_peer_t *peer);
/* Asks the other end, over every port that leads to its process, to break its queue pair too. */
void verbs_fence_ask(verbs_peer_t *peer);
/* The extension's fence, fence_ask and fence_hear. */
int verbs_fence(mca_btl_base_module_t *btl, verbs_peer_t *peer);
size_t verbs_fence_message(mca_btl_base_module_t *btl, verbs_peer_t *peer, void *note);
size_t verbs_fence_message_heard(const void *note, size_t length, void *answer);

/* connect.c */
/* Under peer->lock: an IDLE peer gets a queue pair and is greeted. False: no queue pair can be
 * made. */
bool verbs_connect_begin(verbs_peer_t *peer);
/* A message came from a peer whose readiness was not known. */
void verbs_connect_confirmed(verbs_peer_t *peer);
/* A datagram came into buffer `index`. */
void verbs_greeting_received(struct verbs_module *module, uint32_t index, const struct ibv_wc *wc);
/* By the thread that polls: greets those again that have not answered. */
void verbs_greetings_repeat(struct verbs_module *module);

/* --- sending --------------------------------------------------------------------------------- */

/* submit.c */
/* OPAL_SUCCESS: posted, or waiting for the connection or for room; its end comes in any case. */
int verbs_submit(verbs_peer_t *peer, struct verbs_work *work);
/* Posts it now, or returns why not: OPAL_ERR_RESOURCE_BUSY if a completion will give room, another
 * code if more is missing. Then it stays the caller's. */
int verbs_submit_now(verbs_peer_t *peer, struct verbs_work *work);
/* The same for a message of at most module->inline_max bytes. */
int verbs_submit_inline(verbs_peer_t *peer, struct ibv_sge *parts, int part_count,
                        mca_btl_base_tag_t tag);
/* A put, get or atomic; of NULL: OPAL_ERR_TEMP_OUT_OF_RESOURCE. */
int verbs_submit_operation(verbs_peer_t *peer, struct verbs_work *work);
/* Posts pending works of all peers as far as there is room; returns events. */
int verbs_submit_waiting(struct verbs_module *module);

/* send.c */
BTL_FUNCTION(send, verbs_send_start);
BTL_FUNCTION(sendi, verbs_send_immediate);

/* flush.c */
/* Makes the port's connection with itself, if there is none; false: that failed. */
bool verbs_flush_is_ready(struct verbs_module *module);
/* The extension's flush. */
int verbs_flush_start(mca_btl_base_module_t *btl, verbs_peer_t *peer,
                      mca_btl_base_registration_handle_t *registration, const void *address,
                      size_t length, multilane_flush_done done, void *context);
void verbs_flush_close(struct verbs_module *module);

/* remote.c: registration, put, get and atomics. */
BTL_FUNCTION(register_mem, verbs_remote_register);
BTL_FUNCTION(deregister_mem, verbs_remote_deregister);
BTL_FUNCTION(put, verbs_remote_put);
BTL_FUNCTION(get, verbs_remote_get);
BTL_FUNCTION(atomic_fop64, verbs_remote_fetch_atomic);
BTL_FUNCTION(atomic_cswap64, verbs_remote_compare_swap);

/* --- devices --------------------------------------------------------------------------------- */

/* cost.c */
/* For the extension without a module; false: no port is active. */
bool verbs_cost_expect(struct multilane_lane_attributes *out);
/* The cost of the lane to that port, each way. */
void verbs_cost_fill(const struct verbs_module *module, const struct choice_address *theirs,
                     struct multilane_lane_attributes *out);
/* The extension's under_way. */
size_t verbs_cost_under_way(mca_btl_base_module_t *btl, verbs_peer_t *peer, size_t more,
                            double *seconds);

/* device.c */
/* One module, a copy of `model`, for each port that can be a lane, into verbs.modules and
 * verbs.record. */
void verbs_device_open_all(const mca_btl_base_module_t *model);
void verbs_device_close(struct verbs_module *module);
/* Asks the port for its addresses again. Returns what has changed so that no queue pair that is
 * connected works any more, or NULL. */
const char *verbs_device_refresh(struct verbs_module *module);

/* --- entry ----------------------------------------------------------------------------------- */

/* progress.c */
int verbs_progress_all(void);
/* Handles what the completion queues of one module hold; returns events. */
int verbs_progress_module(struct verbs_module *module);
/* Waits until all works have ended, for at most `limit_ms`; true: they have. */
bool verbs_progress_drain(struct verbs_module *module, uint64_t limit_ms);

/* procs.c */
BTL_FUNCTION(add_procs, verbs_add_procs);
BTL_FUNCTION(del_procs, verbs_del_procs);

#endif
