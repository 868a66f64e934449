/* SPDX-License-Identifier: BSD-3-Clause */
/* The lane over shared memory: its one module, its peers, and what its files offer each other, from
 * the lowest layer (test/layers) to the highest. */
#ifndef MULTILANE_SHM_H
#define MULTILANE_SHM_H

#include "common/compat/fragment.h"
#include "common/compat/param.h"
#include "common/compat/peer_list.h"
#include "common/compat/registered.h"
#include "common/compat/threads.h"
#include "common/lane/last_cache.h"
#include "common/ring/ring.h"
#include "btl/shm/segment.h"
#include "common/lane/attr.h"
#include "common/lane/host.h"
#include "multilane/extension.h"

#include "opal/class/opal_free_list.h"
#include "opal/class/opal_list.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/btl/btl.h"

/* Kinds of ring messages. */
enum shm_kind {
    SHM_KIND_ACTIVE = RING_KIND_FIRST, /* for the callback registered for its tag */
    SHM_KIND_REMOTE,                   /* put, get or atomic by message (remote.c) */
    /* A part of such a message that is too long for the ring (pieces.c). */
    SHM_KIND_ACTIVE_PIECE,
    SHM_KIND_REMOTE_PIECE
};

/* Before the bytes of a piece. */
struct shm_piece {
    uint32_t whole;  /* length of the message */
    uint32_t offset; /* of these bytes in it */
};

enum shm_single_copy { SHM_COPY_AUTO, SHM_COPY_CMA, SHM_COPY_NONE };

/* What a process publishes for its peers (modex). */
struct shm_record {
    uint32_t version;
    int32_t pid;
    int32_t fd;        /* of its anonymous memory; below 0: other processes cannot open it */
    int32_t job_fd;    /* of the job's memory on this node, which it made; below 0: it did not */
    uint32_t job_part; /* which part of such memory it takes */
    uint32_t uid;
    uint64_t pid_namespace;
    uint64_t user_namespace;
    uint64_t time_namespace;
    uint64_t started;    /* see shm_segment_process_started */
    uint64_t shm_device; /* of /dev/shm; 0 where a file cannot be made there */
    struct segment_nonce memfd;
    struct segment_nonce file;
    uint64_t proof_address; /* proof_value is found there by process_vm_readv */
    uint64_t proof_value;
    char boot[HOST_BOOT_BYTES];
    uint64_t host;  /* a hash of its name */
    int32_t node;   /* NUMA node that the process ran on */
    int32_t copies; /* enum shm_single_copy of the process */
};

#define SHM_RECORD_VERSION 4u

enum peer_out {
    OUT_NONE,    /* nothing was sent yet */
    OUT_WAITING, /* no connection yet: the peer's segment is missing, or all its entries are taken
                  */
    OUT_OPEN,    /* the ring can be used */
    OUT_DEAD     /* the peer has ended or broke the rules */
};

/* Do process_vm_readv and writev reach this very process? */
enum peer_copy { COPY_UNTRIED, COPY_PROVEN, COPY_REFUSED };

/* One process that this one may exchange messages with. */
struct mca_btl_base_endpoint_t {
    /* Sending. `lock` guards all of it. */
    struct ring_sender out;
    uint32_t length_max; /* of a message in the ring */
    bool out_direct;     /* the ring is open and no message waits */
    uint8_t out_state;   /* enum peer_out */
    /* enum peer_copy. Relaxed, all: it tells of nothing else in memory. Read without the lock; what
     * a copy finds out is stored without it. */
    _Atomic uint8_t copy;
    uint32_t doorbell_bit; /* of our connection */
    _Atomic uint64_t *doorbell;
    uint64_t *stale; /* of the ring in use: small_stale, or allocated */
    uint64_t small_stale;
    opal_list_t pending;             /* struct shm_frag that found no room */
    struct peer_place pending_place; /* in shm.pending */
    opal_mutex_t lock;

    struct segment_header *segment; /* the peer's, which holds our connection; NULL: not mapped */
    size_t segment_bytes;           /* 0: it is a part of the job's memory */
    uint32_t segment_connections;
    int segment_fd; /* of a file; of anonymous memory no descriptor is kept: -1 */
    struct segment_identity segment_identity;
    struct connection *out_connection;
    /* Closed by us and not yet freed by the peer: our channels are still in use. */
    struct connection *left_connection;
    /* Our channel that the ring in use is in; NULL: the small ring of the connection. */
    struct channel *out_channel;
    struct channel *old_channel; /* used before, until the peer reads the ring in use */
    uint32_t out_lines;          /* of the ring in use */
    uint32_t old_lines;
    uint32_t out_ring;       /* rings announced in this connection (common/ring/move.h) */
    uint64_t out_head_full;  /* when the ring was full last, */
    uint32_t out_full_times; /* and how often in a row */
    uint64_t out_head_seen;  /* by the sweep, */
    uint32_t out_seen_ms;    /* when it first saw it */
    /* The peer has finalized and ended. What the PML still sends to it, such as credit, is dropped
     * as if it had been sent. */
    bool gone;
    uint64_t controls_taken;   /* one bit a control line, see control_line */
    uint32_t out_refused_ms;   /* when the peer refused a ring last; 0: not lately */
    uint32_t waiting_since_ms; /* when the peer's segment first failed to open */
    bool out_unusable;         /* it never will: the next round of progress reports it */
    bool out_reserved;         /* memory for the entry that is tried first */

    /* Receiving. Only the thread that set `receiving` reads the ring. */
    _Alignas(RING_LINE_BYTES) struct ring_receiver in;
    _Atomic bool receiving;
    /* The ring may be read. Written under shm.lock, or by the thread that set `receiving`; read by
     * every thread that waits for the peer. Release: the ring is initialised (in_is_open). */
    _Atomic bool in_open;
    _Atomic bool in_attended; /* in shm.attended; written under shm.lock */
    bool in_lingers;          /* still there, though its sender rings (attended.c) */
    uint32_t in_lingers_from; /* round of progress */
    /* The peer's that the ring is in; NULL: in our segment. Release: it is mapped; acquire:
     * control_find, which any thread calls. */
    struct channel *_Atomic in_channel;
    size_t in_bytes;
    uint32_t in_ring;         /* which ring of the connection `in` is */
    _Atomic bool in_moving;   /* the peer writes into the next one: it follows when `in` is empty */
    uint64_t in_tail_seen;    /* of the ring, when it was last asked to make room */
    unsigned char *in_whole;  /* a message that comes in pieces, */
    uint32_t in_whole_bytes;  /* its length, */
    uint32_t in_whole_filled; /* and how much of it has come */
    enum segment_kind in_kind; /* of our segment that holds the connection */
    bool in_closing;           /* the sender has closed it: it ends when its ring is empty */
    _Atomic bool in_left;      /* that has happened. Relaxed: a hint for segment_missing */
    /* Ours, that the peer took. Written as in_open is; read also by a sender that cannot open the
     * peer's segment (peer_has_left). Release: in_left is set before. */
    struct connection *_Atomic in_connection;
    struct mca_btl_base_endpoint_t **in_connection_peer; /* its entry in shm.connection_peers */

    /* Operations by message that this process began and the peer has not answered (remote.c). */
    opal_list_t remote_operations;

    opal_proc_t *proc; /* NULL: it sent before Open MPI added it */
    opal_process_name_t name;
    struct peer_entry entry; /* in shm.names */
    struct shm_record record;
    enum segment_kind kind; /* how its segments are opened */
    bool known;             /* by btl_add_procs */
};

/* Acquire: pairs with the release of the thread that opened it (accept.c). */
static inline bool in_is_open(const struct mca_btl_base_endpoint_t *peer)
{
    return atomic_load_explicit(&peer->in_open, memory_order_acquire);
}

/* Relaxed: what others read without the lock is made up for by the sweep of receive.c. */
static inline bool in_is_attended(const struct mca_btl_base_endpoint_t *peer)
{
    return atomic_load_explicit(&peer->in_attended, memory_order_relaxed);
}

/* Only one thread at a time reads a ring. The others do not wait, and neither does a callback that
 * makes progress: it must not read the ring whose message it handles. */
static inline bool shm_receiving_take(struct mca_btl_base_endpoint_t *peer)
{
    if (atomic_load_explicit(&peer->receiving, memory_order_relaxed))
        return false;
    if (OPAL_UNLIKELY(opal_using_threads()))
        /* Acquire: pairs with the release in shm_receiving_leave of the thread before. */
        return !atomic_exchange_explicit(&peer->receiving, true, memory_order_acquire);
    atomic_store_explicit(&peer->receiving, true, memory_order_relaxed);
    return true;
}

static inline void shm_receiving_leave(struct mca_btl_base_endpoint_t *peer)
{
    atomic_store_explicit(&peer->receiving, false, memory_order_release);
}

typedef struct mca_btl_base_endpoint_t shm_peer_t;

/* A descriptor: holds a message until it is in the ring. */
struct shm_frag {
    mca_btl_base_descriptor_t base;
    mca_btl_base_segment_t segments[2];
    opal_free_list_t *list;
    mca_btl_base_tag_t tag;
    uint8_t kind;
    struct shm_piece piece; /* of a longer message, if that is not 0 bytes long */
    uint32_t written;       /* bytes that went in pieces */
    _Alignas(16) unsigned char data[];
};

/* Connections beyond those of the job's own processes on this node: of spawned and connected jobs.
 */
#define OTHER_JOBS_CONNECTIONS 1024u

#define SHM_ATTENDED_MAX 32u

/* How messages are found. Back to the first only with one thread, when a doorbell rings. */
enum shm_bells {
    BELLS_AND_RINGS, /* attended rings are looked at, the others ring */
    BELLS_LINGER,    /* all senders were told to ring; the rings that were attended are looked at */
    BELLS_ONLY       /* every message rings */
};

/* The state of the component. */
struct shm_state {
    /* parameters */
    struct param_word single_copy; /* enum shm_single_copy */
    const char *ring_bytes_text;
    const char *memory_max_text;
    struct attr_parameters lane; /* attributes by parameters */

    struct shm_record record;
    uint32_t connection_count;
    uint32_t peers_expected;   /* of the job on this node */
    size_t fragment_bytes;     /* the longest message that has one */
    uint32_t ring_lines_usual; /* of the first ring behind that of a connection */
    uint32_t ring_lines_max;
    uint64_t fair_bytes; /* of the channel that each of them may have */
    /* Of channels. `channel_lock` guards these three. */
    uint64_t memory_max;
    uint64_t memory_used;
    uint32_t channel_count;
    /* A ring could not grow: silent ones shrink sooner. Relaxed: a hint. */
    _Atomic bool memory_wanted;
    bool crowded;         /* common/lane/crowd.h */
    bool memory_is_short; /* the control group's limit holds too little for all small rings */
    bool part_tried;      /* shm_own_part_take */
    /* The proof of copy.c has succeeded with a peer. Relaxed: a hint. */
    _Atomic bool copies_work;
    bool readers_allowed; /* readers.h */
    uint64_t proof;       /* what peers read to prove that they reach this process */

    /* Guards the tables of peers and connections and what makes or ends a connection. Never taken
     * while a peer's lock is held. */
    opal_mutex_t lock;
    opal_mutex_t channel_lock; /* guards the channels of `segments`; taken inside a peer's lock */
    struct segment segments[SEGMENT_KINDS];
    /* How many words of each segment's doorbells every round reads. 0: the segment is not complete,
     * or no peer rings there. */
    _Atomic uint32_t doorbell_words[SEGMENT_KINDS];
    struct peer_table names;
    shm_peer_t **peers;
    uint32_t peer_count;
    uint32_t peer_room;
    shm_peer_t **connection_peers[SEGMENT_KINDS]; /* by connection: the peer that took it */

    /* enum shm_bells. Written under `lock`, read by any thread: sleep.c. */
    _Atomic uint32_t bells;
    uint64_t bells_since_ns;
    /* Rings that every round reads; the others are read when their doorbell rings, and one of them
     * in every few rounds, in case its doorbell was missed. Changed under `lock`; read without: an
     * entry is a peer or NULL, and peers live until the module ends. */
    shm_peer_t *_Atomic attended[SHM_ATTENDED_MAX];
    _Atomic uint32_t attended_end; /* behind the last entry in use */
    uint32_t attended_next;
    _Atomic uint32_t round;
    /* The PML's threads that wait; NULL: not told. Relaxed, both: a hint. */
    const _Atomic uint32_t *_Atomic waits;
    _Atomic uint64_t share_ended_ns;
    uint32_t sweep_next;
    uint32_t life_next;
    _Atomic uint64_t life_checked_ms;

    struct peer_list pending; /* peers with messages that wait */

    opal_free_list_t frags_small;
    opal_free_list_t frags_large;

    bool finalized;
};

#define SHM_FRAG_SMALL 512u

/* Limits of a ring, in any job. */
#define RING_BYTES_MIN (16u << 10)

/* shm.c. Open MPI knows the component as mca_btl_shm_component (component.c). */
extern struct shm_state shm;
extern mca_btl_base_module_t shm_module;

#define SHM_SAY(...) opal_output(0, "btl/shm: " __VA_ARGS__)
#define SHM_VERBOSE(...)                                                                           \
    opal_output_verbose(10, opal_btl_base_framework.framework_output, "btl/shm: " __VA_ARGS__)

/* --- this process ---------------------------------------------------------------------------- */

/* identity.c: this process, and which peers it can reach. */
int shm_identity_fill(struct shm_record *record);
/* Whether the system lets other processes of this user open our descriptors. It does not if, for
 * example, the program's file may be executed and not read: then all of /proc/PID belongs to root;
 * or if there is no /proc. */
bool shm_identity_is_open(void);
/* NULL if the peer that published `record` can be reached, and then *kind says how; else why not.
 */
const char *shm_identity_refuses(const struct shm_record *record, bool same_job,
                                 enum segment_kind *kind);

/* own_segments.c */
/* In words, for sentences. */
const char *shm_segment_kind_name(enum segment_kind kind);
/* Makes our segment of that kind if it is not there; false, and says why, if that fails. Under
 * shm.lock or channel_lock. */
bool shm_own_segment_ready(enum segment_kind kind);
/* Whether our segment of that kind is complete, and peers ring there. Acquire: pairs with the
 * release in segment_live_set. */
static inline bool shm_own_segment_is_live(int kind)
{
    return atomic_load_explicit(&shm.doorbell_words[kind], memory_order_acquire) != 0;
}
/* The memory that the job's processes on this node share: its first process makes it, the others
 * take their part when they see that one's record. Without it, peers open one another's segments.
 */
void shm_own_part_make(void);
/* Under shm.lock. */
void shm_own_part_take(const struct shm_record *first);
/* What this process shares with the job's others on the node beside messages. */
bool shm_own_commons(struct multilane_commons *out);
/* A process with a part looks at the doorbells of its other segment only if someone came there:
 * this looks, in one of many rounds, or knows. Under shm.lock. */
void shm_own_others_look(bool will_come);
/* The segment in which this process sleeps. */
static inline struct segment *shm_own_segment_awaited(void)
{
    return &shm.segments[shm_own_segment_is_live(SEGMENT_JOB) ? SEGMENT_JOB : SEGMENT_MEMFD];
}
/* The extension's publish: for those who open the segments that there are. */
void shm_own_publish(mca_btl_base_module_t *btl, const void *record, size_t length);
/* Tells peers that this process ends in order (SEGMENT_FINALIZED), or goes on. */
void shm_own_segments_are(enum segment_state state);
void shm_own_segments_destroy(void);
/* A channel for a peer on NUMA node `node`, of at most *lines lines and more than `lines_min`; sets
 * *lines. NULL: there is no memory for one. */
struct channel *shm_own_channel_get(enum segment_kind kind, int node, uint32_t lines_min,
                                    uint32_t *lines);
void shm_own_channel_put(enum segment_kind kind, struct channel *channel, uint32_t lines);

/* doorbell.c */
void shm_doorbell_ring(shm_peer_t *peer);
void shm_doorbell_ring_own_of(shm_peer_t *peer);
/* Before a sleep. True: no doorbell of that segment has rung, and a peer that rings one wakes the
 * sleeper.
 */
bool shm_doorbell_arm(struct segment *segment);
void shm_doorbell_disarm(struct segment *segment);
/* Sleeps until a doorbell rings or the time is over; after shm_doorbell_arm. */
void shm_doorbell_sleep(struct segment *segment, uint32_t microseconds);
/* Wakes the threads of this process that sleep there. */
void shm_doorbell_wake(struct segment_header *header);

/* --- peers and connections to them ----------------------------------------------------------- */

/* peer.c */
/* Under shm.lock. */
shm_peer_t *shm_peer_create(const opal_process_name_t *name);
/* Whether it has marked that it ends in order. */
bool shm_peer_finalized(const shm_peer_t *peer);
/* Whether it may still read what is sent to it. */
bool shm_peer_reads(const shm_peer_t *peer);
/* Whether the owner of the peer's segment, which was opened, lives. */
bool shm_peer_owner_lives(const shm_peer_t *peer);
/* Whether /proc shows the process, or cannot (another PID namespace). */
bool shm_peer_process_lives(const shm_peer_t *peer);

/* outbound.c. Under peer->lock. */
/* Brings out_state from OUT_NONE or OUT_WAITING on. */
void shm_outbound_open(shm_peer_t *peer);
/* The extension's published_read, without the lock: the record in the peer's segment, which is
 * opened for that. */
size_t shm_outbound_published(mca_btl_base_module_t *btl, shm_peer_t *peer, void *record,
                              size_t room);
/* Closes the connection, with nothing pending. */
void shm_outbound_leave(shm_peer_t *peer);
/* A message of so many bytes found no room, or a ring that has been filled once: goes on in a
 * larger ring, if there is memory. True: it is worth trying again. */
bool shm_outbound_grow(shm_peer_t *peer, size_t length);
/* For the sweep: goes back to the small ring if the peer was sent nothing for long. */
void shm_outbound_shrink(shm_peer_t *peer);
/* Takes back what a closed connection held, once the peer has read it. */
void shm_outbound_retire(shm_peer_t *peer);
void shm_peer_segment_close(shm_peer_t *peer);
/* Whether the peer reads the ring in use, which it can refuse before. */
bool shm_outbound_is_read(const shm_peer_t *peer);
/* And nothing waits for room: what was sent needs this process no more. */
bool shm_outbound_is_settled(shm_peer_t *peer);
/* The peer refuses the ring in use, whose messages were taken out: goes back to the small one. */
void shm_outbound_return(shm_peer_t *peer);

/* --- sending --------------------------------------------------------------------------------- */

/* send.c */
BTL_FUNCTION(alloc, shm_send_alloc);
BTL_FUNCTION(free, shm_send_free);
BTL_FUNCTION(prepare, shm_send_prepare);
BTL_FUNCTION(send, shm_send_start);
BTL_FUNCTION(sendi, shm_send_immediate);
/* The extension's reserve and commit. In between the peer's lock is held, if there are threads. */
size_t shm_send_room(mca_btl_base_module_t *btl, shm_peer_t *peer);
void *shm_send_reserve(mca_btl_base_module_t *btl, shm_peer_t *peer, size_t header_size,
                       size_t payload_size);
void shm_send_commit(mca_btl_base_module_t *btl, shm_peer_t *peer, size_t header_size,
                     size_t payload_size, uint8_t tag);
/* A message of this BTL's own; `data` follows `header`. 0, or an error if memory is out. */
int shm_send_remote(shm_peer_t *peer, const void *header, size_t header_size, const void *data,
                    size_t size);
/* Sends the peer's pending messages as far as there is room, and ends them; returns how many. */
int shm_send_pending_of(shm_peer_t *peer);
/* Where the peer refuses the ring in use, what is in it waits to be sent again. False: there is no
 * memory for that. */
bool shm_send_refused(shm_peer_t *peer);
/* Ends them with an error. */
void shm_send_fail_pending(shm_peer_t *peer);

/* copy.c: process_vm_readv and writev. */
bool shm_copy_possible(shm_peer_t *peer);
/* The same before the first copy, and then without a system call for each peer: where one could be
 * proven, the next will be. Where it cannot, its copies go by message. */
bool shm_copy_expected(shm_peer_t *peer);
int shm_copy_from(mca_btl_base_module_t *btl, shm_peer_t *peer, void *local,
                  uint64_t remote_address, size_t length);
int shm_copy_to(mca_btl_base_module_t *btl, shm_peer_t *peer, const void *local,
                uint64_t remote_address, size_t length);

/* remote.c: put, get and atomics. */
int shm_remote_init(void);
void shm_remote_finish(void);
BTL_FUNCTION(put, shm_remote_put);
BTL_FUNCTION(get, shm_remote_get);
BTL_FUNCTION(atomic_op64, shm_remote_atomic);
BTL_FUNCTION(atomic_fop64, shm_remote_fetch_atomic);
BTL_FUNCTION(atomic_cswap64, shm_remote_compare_swap);
/* Ends with an error the operations that the peer has not answered. */
void shm_remote_fail(shm_peer_t *peer);

/* --- the end of a peer ----------------------------------------------------------------------- */

/* liveness.c */
/* The peer is lost: its pending messages and operations end with an error, and Open MPI is told
 * once. */
void shm_peer_fail(shm_peer_t *peer, const char *why);
/* Looks whether some of the peers live, if the last look is a while ago. */
void shm_liveness_check(void);

/* Sends pending messages of all peers as far as there is room; returns events. */
int shm_pending_progress(void);
/* Waits a while until the peer's pending messages have found room; at the end of the module as long
 * as the peer reads, which it does not in its own finalize, and until it has mapped their ring. */
void shm_pending_drain(shm_peer_t *peer);

/* --- receiving ------------------------------------------------------------------------------- */

/* serve.c: a message of kind SHM_KIND_REMOTE. False: it breaks the rules. */
bool shm_serve(shm_peer_t *peer, const void *message, size_t length);

/* pieces.c: adds a piece to what has come of its message. False: it breaks the rules, or the peer
 * is lost for want of memory. When the message is complete, *whole is it, and the caller frees its
 * payload; else that is NULL. */
bool shm_piece_add(shm_peer_t *peer, const struct ring_message *piece, struct ring_message *whole);

/* attended.c. Under shm.lock. */
/* Every round of progress reads this ring from now on, if there is room among the attended. */
void shm_attended_add(shm_peer_t *peer);
void shm_attended_remove(shm_peer_t *peer);
/* Its sender is told to ring; the ring is still read for a while. */
void shm_attended_linger(shm_peer_t *peer);
/* The ring has lingered: from now on it is read when its doorbell rings. */
void shm_attended_leave(shm_peer_t *peer);
/* Whether it is marked for its sender that its ring is attended. */
bool shm_attended_is_marked(const shm_peer_t *peer);

/* accept.c. Under shm.lock. */
#define SHM_ACCEPT_BATCH 32u

/* Peers whose doorbells rang, to be read when no lock is held. */
struct shm_rung {
    shm_peer_t *peers[SHM_ACCEPT_BATCH];
    uint32_t count;
};

/* Finds the peers that rang a doorbell of our segments, and maps the rings of new connections. */
void shm_accept(struct shm_rung *rung);
/* Unmaps the peer's ring and frees its connection. */
void shm_accept_end(shm_peer_t *peer);
/* By the thread that set `receiving`, when the ring is empty: goes on in the peer's next ring, if
 * it has announced one. False: it has not. */
bool shm_accept_next(shm_peer_t *peer);

/* receive.c */
int shm_receive_progress(void);
/* For a thread that waits for this peer: handles the next message only, which may be the awaited
 * one. The others stay in the ring until they are asked for. */
int shm_receive_one(mca_btl_base_module_t *btl, shm_peer_t *peer);
/* See waits_at in multilane/extension.h. */
void shm_receive_waits_at(const _Atomic uint32_t *waits);
/* The next round does what one in many does: looks for messages without a doorbell and for peers
 * that have ended. After a sleep, which stands for many rounds. */
void shm_receive_skip_rounds(void);
/* Whether a doorbell has rung that no round has answered. */
static inline bool shm_doorbell_rang(void)
{
    uint64_t any = 0;

    for (int kind = 0; kind < SEGMENT_KINDS; kind++) {
        /* Acquire: as in shm_own_segment_is_live. */
        uint32_t words = atomic_load_explicit(&shm.doorbell_words[kind], memory_order_acquire);

        while (words-- > 0)
            any |= atomic_load_explicit(&shm.segments[kind].header->doorbells[words],
                                        memory_order_relaxed);
    }
    return any != 0;
}

/* sleep.c: multilane/extension.h has what they do. */
bool shm_sleep(uint32_t microseconds, const struct multilane_seen *words, size_t count);
void shm_wake(void);

/* --- entry ----------------------------------------------------------------------------------- */

/* procs.c */
BTL_FUNCTION(add_procs, shm_add_procs);
BTL_FUNCTION(del_procs, shm_del_procs);
/* At the end of the module. */
void shm_peers_close(void);

#endif
