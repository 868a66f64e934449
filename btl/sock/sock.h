/* SPDX-License-Identifier: BSD-3-Clause */
/* The lane over sockets: one module for each address of this node, its peers, and what its files
 * offer each other, from the lowest layer (test/layers) to the highest.
 *
 * A peer is one rail to one process: an address here and one there. What is sent to it are frames,
 * numbered from 1, over one connection at a time. Each end knows how many it has received, and
 * tells the other in every header it sends. A frame is kept until the other end has it. So when a
 * connection breaks, both ends say in the greeting of the next one how far they are, and go on
 * there: nothing is lost, comes twice or out of order, and completed means delivered.
 *
 * One thread at a time reads, connects and closes: it holds `sock.polling`. What it alone touches
 * is marked P. Sending threads write under the peer's lock. */
#ifndef MULTILANE_SOCK_H
#define MULTILANE_SOCK_H

#include <stdatomic.h>

#include "btl/sock/address.h"
#include "btl/sock/encrypt.h"
#include "btl/sock/greeting.h"
#include "btl/sock/seal.h"
#include "common/compat/fragment.h"
#include "common/compat/peer_list.h"
#include "common/compat/registered.h"
#include "common/compat/threads.h"
#include "common/lane/attr.h"
#include "common/lane/host.h"
#include "multilane/extension.h"

#include "opal/class/opal_free_list.h"
#include "opal/class/opal_list.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/btl/btl.h"

/* --- what a process publishes for its peers --- */

struct sock_record {
    uint32_t version;
    uint32_t count;
    uint32_t links;         /* connections that a rail may have */
    struct seal secret;     /* who calls this process proves that it has read it */
    uint64_t message_bytes; /* the longest message and put that it takes */
    uint64_t put_bytes;
    uint64_t is_encrypted; /* whether its connections are, by btl_sock_tls */
    uint64_t host;         /* kernel and network namespace: equal where loopback leads to it */
    struct sock_address addresses[ADDRESSES_MAX];
};

#define SOCK_RECORD_VERSION 3u
/* Only the used addresses travel. */
#define SOCK_RECORD_BYTES(count)                                                                   \
    (offsetof(struct sock_record, addresses) + (count) * sizeof(struct sock_address))

/* --- rails: what each end calls the connections to the other --- */

/* Connections of one pair of addresses. The first makes a lane that Open MPI knows; further ones
 * are lanes that the PML is told of (sock_links_next). */
#define SOCK_LINKS_MAX 8u
/* At most so many where the user fixes no number: the PML keeps room for each, for each peer. */
#define SOCK_LINKS_FOUND 4u

/* A rail's number: of its address in the record, and of its connection. */
static inline uint32_t sock_rail(uint32_t address, uint32_t link)
{
    return link * ADDRESSES_MAX + address;
}

/* --- frames: what a connection carries --- */

enum frame_kind {
    FRAME_MESSAGE = 1, /* an active message: its bytes */
    FRAME_PUT,         /* a struct frame_target, and the bytes that belong there */
    FRAME_ACK,         /* nothing but its header; it is not numbered */
    FRAME_BYE          /* nothing follows, and no connection is wanted any more; nor is this */
};

#define FRAME_WANTS_ACK 1u /* the sender waits for the word of what was received */
#define FRAME_CHECKED   2u /* `check` is that of the header */

struct frame_header {
    uint32_t length; /* of what follows, less the padding */
    uint8_t kind;    /* enum frame_kind */
    uint8_t tag;
    uint8_t flags;
    uint8_t check;
    uint32_t number; /* of messages and puts, from 1 */
    uint32_t have;   /* frames that the sender of this one has received */
};

/* Where a put belongs, in memory that the receiver has registered. */
struct frame_target {
    uint64_t address;
    uint64_t key;
    uint32_t slot;
    uint32_t reserved;
};

/* Frames begin at multiples of this, so that their bytes lie aligned in the receiver's buffer. */
#define FRAME_ALIGNMENT       8u
#define FRAME_PADDING(length) (-(size_t) (length) & (FRAME_ALIGNMENT - 1))

/* sock.c */
uint8_t sock_frame_check(const struct frame_header *header);

/* --- works: messages and puts, from their allocation until the other end has them --- */

struct sock_work {
    mca_btl_base_descriptor_t base;
    mca_btl_base_segment_t segments[2]; /* its own memory, and the payload where that stays */
    struct mca_btl_base_endpoint_t *peer;
    opal_free_list_t *list;
    bool is_held;     /* under the peer's lock: its owner is being told that it has left, */
    bool is_received; /* and meanwhile the other end has got it */
    struct sock_work *next_left; /* its owner is to be told */
    size_t own_bytes; /* of `memory`: header and what follows it, with the padding of a message */
    bool is_put;
    /* Of puts, and of messages whose payload stays where it is; else null. */
    const unsigned char *payload;
    size_t payload_bytes;
    struct remote_request request;       /* of puts */
    _Alignas(16) unsigned char memory[]; /* the header, and behind it the message or the target */
};

/* A message that was copied, and that the lane frees: its owner need not wait until the other end
 * has it. */
static inline bool sock_work_is_ours(const struct sock_work *work)
{
    return (work->base.des_flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP) && !work->payload;
}

/* --- sockets --- */

enum socket_role {
    ROLE_LISTENER,
    ROLE_GUEST,  /* has called us and not said HELLO yet */
    ROLE_CALLER, /* we call a peer */
    ROLE_LINK,   /* a peer's connection */
    ROLE_CLOSED
};

/* P, but that a sending thread makes callers, and writes to links, under the peer's lock. */
struct sock_socket {
    opal_list_item_t super; /* guests, and closed ones until no event can name them */
    int fd;
    uint8_t role;      /* enum socket_role */
    bool is_connected; /* of callers: the kernel says so */
    struct sock_module *module;
    struct mca_btl_base_endpoint_t *peer; /* of callers and links */
    struct greeting heard;                /* `heard_bytes` of it have come */
    size_t heard_bytes;
    struct seal nonce;    /* ours */
    uint64_t keyed_bytes; /* written with its keys, where it is encrypted; under the peer's lock */
    uint64_t since_ms;
};

/* What came of a frame that is not whole yet. P. */
struct sock_intake {
    unsigned char *bytes;    /* a frame's, from its header on */
    size_t room, have, want; /* `want` 0: no frame is begun */
    unsigned char *target;   /* of a put whose target is known: where its next bytes belong, */
    size_t target_left;      /* how many they are, */
    size_t padding_left;     /* and what follows them */
    mca_btl_base_registration_handle_t named; /* by it */
    bool is_put;
    bool wants_ack;
    bool is_drained; /* the last read found less than it had room for */
};

/* What the kernel has counted of connections. */
struct sock_counts {
    uint64_t arrived;   /* bytes that the other end's kernel has */
    uint64_t busy_us;   /* time in which there was something to send, */
    uint64_t halted_us; /* and in which the other end had no room for it */
};

/* Whether a rail gets further connections: see growth.c. */
#define GROWTH_WINDOWS 3u /* whose mean each decision takes */
/* After so many means in which it brought nothing a connection is the last one. In some of them
 * others may use the processors, or the PML divide as before it. */
#define GROWTH_VAIN_MEANS 4u
struct sock_growth {
    uint64_t from_ns;       /* what follows was counted then; 0: nothing was */
    struct sock_counts all; /* of the connections that carry, */
    uint64_t last_arrived;  /* and of the last of them */
    uint32_t links;         /* so many they are */
    uint32_t tried;         /* the last that was tried, the first is 1; 0: none was */
    bool has_ended;         /* no other is tried */
    double before_bytes_s;  /* what the others carried before it was tried */
    uint32_t windows;       /* that were counted for the next decision, */
    double bytes_s;         /* and what they add to the mean */
    uint32_t vain_means;    /* in which the last that was tried brought nothing */
};

enum peer_state {
    PEER_UP,     /* may be connected or not: what is sent waits for a connection */
    PEER_FAILED, /* given up; it may be renewed once both ends have */
    PEER_ENDED   /* the other end said goodbye */
};

/* How fast a rail delivers: rate.c. */
struct sock_rate {
    double link_bytes_s;    /* as the link says; 0: nothing is measured */
    uint64_t busy_ns;       /* it was busy for so long, */
    uint64_t bytes;         /* and so much arrived meanwhile, */
    uint32_t samples;       /* in so many samples of late */
    uint64_t looked_ms;     /* when the last sample or doubt was */
    uint8_t doubts;         /* the rate is doubled so often */
    size_t asked_bytes;     /* sent since the word was asked for; 0: it was not */
    uint32_t asked_number;  /* of the last frame of these */
    uint64_t asked_ns;      /* when the first one was added */
    uint64_t from_ns;       /* when the last word came, while something is under way; else 0 */
    size_t had;             /* kept at that time */
    uint64_t between_ns;    /* the time between words so far, */
    uint64_t between_bytes; /* and what arrived */
};

struct mca_btl_base_endpoint_t {
    /* Guards all down to `kept_bytes`. Taken inside the module's lock, never around it. */
    opal_mutex_t lock;
    _Atomic uint8_t state; /* enum peer_state; written under the lock */
    bool known;            /* by btl_add_procs */
    bool has_address;      /* what follows is filled in */
    bool is_tried;         /* while another rail works, nothing is sent here before it connects */
    bool is_spare;         /* another rail works, as the clock saw it last */
    int call_error;        /* what the last failed call met: the system's number; 0: no answer */
    struct sock_address theirs;
    struct seal their_secret;
    uint32_t their_rail;
    /* So many connections to it divide what the link carries. Relaxed: for plans. */
    _Atomic uint32_t share;
    uint32_t their_links; /* as their record says */
    bool is_added;        /* since growth.c looked */
    opal_proc_t *proc;    /* NULL: it called before Open MPI added it */

    struct sock_socket *link;   /* NULL: not connected */
    struct sock_socket *caller; /* NULL: we do not call */
    uint32_t session;
    uint32_t calls;        /* our attempts so far, and */
    uint32_t their_calls;  /* the last of theirs that was taken; */
    uint32_t linked_call;  /* ours that made the connection; 0: one of theirs did */
    uint64_t call_next_ms; /* not before this */
    uint32_t call_pause_ms;
    uint32_t call_ms;          /* a call waits so long for the kernel; 0: as any at first */
    uint64_t down_since_ms;    /* without a working connection since then; 0: it has one */
    uint32_t cuts;             /* in a row, while nothing of what is kept has arrived, */
    uint64_t cut_since_ms;     /* the first of them */
    uint64_t refused_since_ms; /* the other end refuses to be called; 0: it does not */
    bool fenced;               /* the other end has closed this session as well, */
    uint32_t their_have;       /* and had received so many frames of ours */
    uint32_t past_session;     /* the last one before this in which it was linked, */
    uint32_t past_have;        /* and frames received in it */
    bool was_linked;           /* in this session, */
    bool is_outlived;          /* and the other end has begun a later one, and waits in it */

    bool can_write;        /* the last write was not refused */
    uint32_t next_number;  /* of the next work */
    uint32_t first_number; /* of the oldest that is kept */
    uint32_t most_number;  /* of the last that was ever written */
    size_t written;        /* bytes of the first pending work */
    opal_list_t pending;   /* works to be written, in order */
    opal_list_t sent;      /* those that were, in order, and may not have been received */
    size_t kept_bytes;     /* of both */
    /* Of `sent`: the kernel has all of them, their owners are to be told. Added under the lock,
     * looked at without. */
    struct sock_work *_Atomic left;
    struct sock_rate rate;
    double delay_s;              /* the way to the other end's kernel, as ours measured it, */
    uint64_t delayed_ms;         /* and when ours was last asked for that */
    multilane_returned returned; /* takes the messages of a session that was given up; NULL: they
                                  * end with an error */
    void *returned_context;

    uint32_t wrongs;   /* P: connections in a row that brought what breaks the rules */
    uint32_t have;     /* P, written under the lock: frames received */
    uint32_t told;     /* under the lock: as the other end was told */
    bool owes;         /* under the lock: the other end waits to be told */
    uint8_t ack_left;  /* bytes of `ack` still to be written, before anything else; */
    uint8_t bye_state; /* 1: goodbye is to be said, 2: it was said */
    struct frame_header ack;
    size_t owed_bytes;  /* P: received since it was told, */
    uint32_t owed_told; /* and as what */
    uint64_t owed_since_ms;
    bool is_hot;          /* P: it is read without asking the kernel first, and found */
    uint32_t empty_looks; /* nothing so many times in a row */
    uint64_t probed_ms;   /* P: when the kernel was last asked how the connection is */
    bool
        is_word_new; /* P: the other end's kernel may not have our last word of what was received */
    struct sock_intake intake;
    const char *failure; /* why it is to be given up, by a thread that does not poll; else NULL */

    struct sock_growth growth; /* P; of a first connection */

    struct sock_module *module;
    opal_process_name_t name;
    struct peer_entry entry; /* in the module's table */

    bool is_watched; /* under the lock: in the list of those that the clock matters to */
    struct mca_btl_base_endpoint_t *next_watched;
};

typedef struct mca_btl_base_endpoint_t sock_peer_t;

/* --- modules --- */

struct sock_module {
    mca_btl_base_module_t super;
    uint32_t address;          /* of its rail, in our record, */
    uint32_t nth;              /* and its connection, 0 for the first */
    struct sock_module *first; /* of its rail */
    /* Of the first: those of the further ones, made at need under the lock. Release and acquire. */
    struct sock_module *_Atomic further[SOCK_LINKS_MAX];
    char device[ADDRESS_NAME_BYTES];
    struct sock_socket *listener;
    sock_peer_t *unreached; /* P: it was said that this one is out of reach; NULL: of none */
    /* Guards the table of peers, which only grows while the module lives. */
    opal_mutex_t lock;
    struct peer_table peers;
};

#define module_of(btl) ((struct sock_module *) (btl))

#define HOT_PEERS 4u

/* The state of the component. */
struct sock_state {
    /* parameters */
    const char *interfaces;
    struct attr_parameters lane;
    int links, lost_s, tls, tls_mib;

    struct sock_record record;
    struct sock_module *modules[ADDRESSES_MAX];
    uint32_t module_count;
    opal_free_list_t small, large;
    bool lists_ready;
    /* The extension's check_by; NULL: nothing is checked. Written before there are connections. */
    bool (*is_right)(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *peer, uint8_t tag,
                     const void *bytes, size_t length);
    uint64_t others_until_ms; /* processes of other jobs are waited for, at the end; 0: not yet */
    bool is_ending;           /* who was told of messages and ends may be gone */

    int poll_fd;
    _Atomic bool polling;
    _Atomic bool attention; /* a peer is to be given up */
    _Atomic bool slept;     /* a thread sleeps, or did: the kernel is asked in the next round */
    sock_peer_t *_Atomic watched;  /* the peers that the clock matters to */
    _Atomic uint64_t clock_ms;     /* sock_now_ms; from 1 */
    _Atomic uint32_t link_changes; /* how often what sock_links_next says has changed */
    _Atomic bool links_are_taken;  /* the PML asks for it, ob1 does not; relaxed */
    _Atomic uint32_t empty_asks;   /* since the kernel had something to tell, or sock_expect */
    _Atomic uint32_t skips;        /* rounds to come in which nothing is looked at, */
    _Atomic uint64_t skips_ms;     /* while the system's clock says this */
    _Atomic bool has_called;       /* a connection was begun, by any end; relaxed: a hint */
    /* P from here on. */
    unsigned char *buffer;      /* what is read goes here first, unless its place is known */
    opal_list_t guests, closed; /* struct sock_socket, in the order in which they came */
    int spare_fd;               /* what is left where the process has opened all others */
    sock_peer_t *hot[HOT_PEERS];
    uint32_t hot_next;
    uint32_t round;
    uint64_t looked_ms, asked_ms; /* by the system's clock */

    /* Counters that people read. */
    _Atomic uint64_t breaks, strangers;
};

extern struct sock_state sock;

#define SOCK_SAY(...) opal_output(0, "btl/sock: " __VA_ARGS__)
#define SOCK_VERBOSE(...)                                                                          \
    opal_output_verbose(10, opal_btl_base_framework.framework_output, "btl/sock: " __VA_ARGS__)

/* sock.c */
/* Time in which this process looked at its sockets: all waits go by it, as one that computes learns
 * nothing meanwhile. Relaxed: one thread writes it, and an old value makes a wait longer. */
static inline uint64_t sock_now_ms(void)
{
    return atomic_load_explicit(&sock.clock_ms, memory_order_relaxed);
}

/* By any thread: something may come soon, the kernel is asked often. */
static inline void sock_expect(void)
{
    atomic_store_explicit(&sock.empty_asks, 0, memory_order_relaxed);
    atomic_store_explicit(&sock.skips, 0, memory_order_relaxed);
}

struct sock_module *sock_module_of_rail(uint32_t rail);
/* Of the rail of `first` that of the nth connection; NULL: it was not made. */
struct sock_module *sock_module_nth(struct sock_module *first, uint32_t nth);
struct sock_address *sock_module_address(const struct sock_module *module);

/* --- peers --- */

/* peer.c */
/* Relaxed: the lock orders it; without it this is a hint. */
static inline enum peer_state sock_peer_state(const sock_peer_t *peer)
{
    return (enum peer_state) atomic_load_explicit(&peer->state, memory_order_relaxed);
}

static inline bool sock_peer_is_of_this_job(const sock_peer_t *peer)
{
    return peer->name.jobid == opal_proc_local_get()->proc_name.jobid;
}

/* Which of two processes comes first, where both ends have to agree. */
static inline bool sock_name_is_before(const opal_process_name_t *a, const opal_process_name_t *b)
{
    return a->jobid != b->jobid ? a->jobid < b->jobid : a->vpid < b->vpid;
}

/* The one of that name, made where there is none. NULL: no memory. */
sock_peer_t *sock_peer_get(struct sock_module *module, const opal_process_name_t *name);
void sock_peers_free(struct sock_module *module);
/* Under its lock: Open MPI has added the process, which is there. */
void sock_peer_know(sock_peer_t *peer, opal_proc_t *proc, const struct sock_address *theirs,
                    const struct seal *secret, uint32_t their_rail, uint32_t their_links);
/* Under its lock: what the links of both ends say that they carry; 0: neither says it. */
uint32_t sock_peer_megabits(const sock_peer_t *peer);
/* Under its lock: the clock matters to it, until sock_link_tick finds that it does not. */
void sock_peer_watch(sock_peer_t *peer);
/* P: takes the list of those to which the clock matters: all at once, so that none can come back
 * while another thread adds one. */
sock_peer_t *sock_peers_watched(void);
/* Under its lock: the other end has closed this session, with so many frames received. */
void sock_peer_fenced(sock_peer_t *peer, uint32_t have);
/* Under its lock: it was given up here, and the other end may still send. */
bool sock_peer_is_unfenced(const sock_peer_t *peer);
/* Under its lock: begins a new session, with nothing sent or received. */
void sock_peer_begin(sock_peer_t *peer, uint32_t session);

/* --- works --- */

/* work.c */
#define WORK_SMALL_BYTES 1024u

int sock_works_open(size_t largest);
void sock_works_close(void);
BTL_FUNCTION(alloc, sock_work_alloc);
BTL_FUNCTION(free, sock_work_free);
BTL_FUNCTION(prepare, sock_work_prepare);
/* With no lock held: it has ended. */
void sock_work_complete(struct sock_work *work, int status);
/* The same of all in the list, which is destructed. */
void sock_works_complete(opal_list_t *works, int status);
/* The same where the other end will not get them: messages of the PML go to `returned`, and all
 * else ends with an error. */
void sock_works_return(opal_list_t *works, multilane_returned returned, void *context);

/* --- sending --- */

/* queue.c. Under the peer's lock. */
/* Gives the work its number and writes what the socket takes. */
void sock_queue_add(sock_peer_t *peer, struct sock_work *work);
/* Writes what the socket takes now. */
void sock_queue_write(sock_peer_t *peer);
/* The other end has received so many frames of ours; those works go to `done`. False: it cannot
 * have. */
bool sock_queue_received(sock_peer_t *peer, uint32_t have, opal_list_t *done);
/* A new connection: the next write begins with the oldest work that is kept. */
void sock_queue_rewind(sock_peer_t *peer);
/* Takes all works off, but those that a thread holds. */
void sock_queue_take(sock_peer_t *peer, opal_list_t *works);
/* Those as well: the thread that holds one ends it. */
void sock_queue_drop(sock_peer_t *peer, opal_list_t *works);
/* Does a message wait that is not the PML's? */
bool sock_queue_has_others(const sock_peer_t *peer);
/* Is nothing kept? */
bool sock_queue_is_empty(const sock_peer_t *peer);

/* rate.c. Under the peer's lock. */
/* A frame was added. True: the other end is to be asked for its word of it. */
bool sock_rate_asks(sock_peer_t *peer, uint32_t number, size_t bytes);
/* The other end has received so many frames, `received` bytes more than before. */
void sock_rate_learn(sock_peer_t *peer, uint32_t have, size_t received);
/* What is under way says nothing. */
void sock_rate_stop(sock_peer_t *peer);
/* When the other end will have what is kept and `more`, in seconds from now: by the rate at which
 * it has received of late, which is measured from the first call on; before that, by what the link
 * carries. */
double sock_rate_arrival_s(sock_peer_t *peer, size_t more, double link_bytes_s);
/* That rate; 0: it was not measured. */
double sock_rate_observed(const sock_peer_t *peer);

/* --- connections --- */

/* sockets.c */
struct sock_socket *sock_socket_new(int fd, enum socket_role role, struct sock_module *module,
                                    sock_peer_t *peer);
/* P: closes it; the structure stays until no event can name it. */
void sock_socket_close(struct sock_socket *socket);
/* Sends nothing more over it: the other end reads what is on its way, closes it, and connects anew.
 */
void sock_socket_end(struct sock_socket *socket);
/* P: frees those that were closed before the last events were taken. */
void sock_sockets_free(void);
bool sock_listen(struct sock_module *module, struct sock_address *address, struct error_text *why);
/* The socket begins to connect to the peer's address; NULL: errno says why not. */
struct sock_socket *sock_socket_call(sock_peer_t *peer);
/* It was a caller: the kernel waits for the other end's as long as for that of any connection. */
void sock_socket_greeted(const struct sock_socket *socket);
/* Has the process, or the node, no room for one more connection? That is said once. */
bool sock_is_exhausted(int error);
/* A descriptor for sock.spare_fd. */
int sock_spare_open(void);
/* What the kernel is to tell of it: that it can be read, and maybe that it can be written. */
void sock_socket_watch(struct sock_socket *socket, bool writes);
/* Reads on in the greeting that comes. 1: it is whole; 0: not yet; -1: the connection is over. */
int sock_socket_hear(struct sock_socket *socket);
/* False: it cannot take a whole greeting now, or ever. */
bool sock_socket_say(struct sock_socket *socket, const struct greeting *greeting);
/* Does the kernel wait in vain for the other end to acknowledge? *all_there: it has acknowledged
 * all. */
bool sock_socket_is_cut(const struct sock_socket *socket, bool *all_there);
/* As the kernel measured it; 0: not yet. */
double sock_socket_round_trip_s(const struct sock_socket *socket);
/* How long what was sent of late took to the other end's kernel. */
double sock_socket_delay_s(const struct sock_socket *socket);
bool sock_socket_repeats(const struct sock_socket *socket, uint64_t *sent, uint64_t *repeated);
/* Adds what the kernel has counted of it. */
void sock_socket_count(const struct sock_socket *socket, struct sock_counts *counts);

/* link.c. P, unless it says otherwise. */
/* Under the peer's lock, by any thread: calls the peer, unless it does so already or must wait. */
void sock_link_call(sock_peer_t *peer);
/* The extension's is_proven. */
bool sock_link_is_proven(mca_btl_base_module_t *btl, sock_peer_t *peer, char *why, size_t room);
/* Under its lock, by any thread: the thread that polls is to give it up. */
void sock_link_give_up(sock_peer_t *peer, const char *why);
/* The peer's connection has ended. */
void sock_link_broke(sock_peer_t *peer, const char *why);
/* The other end is called by `socket`, a guest that has proven who it is. False: not now. */
bool sock_link_accept(sock_peer_t *peer, struct sock_socket *socket, const struct greeting *hello);
/* The extension's return_to. */
void sock_link_return_to(mca_btl_base_module_t *btl, sock_peer_t *peer, multilane_returned returned,
                         void *context);
/* The extension's quiet_ms. */
uint64_t sock_link_quiet_ms(mca_btl_base_module_t *btl, sock_peer_t *peer);
/* An event of a caller. */
void sock_caller_event(struct sock_socket *socket);
/* Looks at the clock for a peer that was taken from the list, and gives it up if `failure` asks for
 * that. It goes back if the clock still matters to it. */
void sock_link_tick(sock_peer_t *peer, uint64_t now_ms);

/* links.c: further connections of a rail, each a peer of a module of its own. */
/* The nth of the rail that `first` is the first one of; NULL: the ends do not have that, or no
 * memory. With no lock held. */
sock_peer_t *sock_links_get(sock_peer_t *first, uint32_t nth);
/* The same, if it was made. */
sock_peer_t *sock_links_find(sock_peer_t *first, uint32_t nth);
/* The extension's links_most and links_next. */
uint32_t sock_links_most(mca_btl_base_module_t *btl, sock_peer_t *first);
bool sock_links_next(mca_btl_base_module_t *btl, sock_peer_t *first, uint32_t nth,
                     mca_btl_base_module_t **next, sock_peer_t **peer);
/* P: one of them is connected, for the first time. */
void sock_links_begun(sock_peer_t *peer);

/* growth.c. P, with no lock held. */
/* What a rail carried in a window, all of it and the last connection, is known. True: one more is
 * to be tried. */
bool sock_growth_judge(struct sock_growth *growth, uint32_t megabits, double bytes_s,
                       double last_bytes_s);
void sock_growth_tick(sock_peer_t *first);

/* guests.c. P. */
void sock_listener_event(struct sock_socket *socket);
void sock_guest_event(struct sock_socket *socket);
void sock_guests_tick(uint64_t now_ms);
/* Of a module that ends. */
void sock_guests_close(const struct sock_module *module);

/* fence.c: the extension's fence, fence_ask and fence_hear. */
int sock_fence(mca_btl_base_module_t *btl, sock_peer_t *peer);
size_t sock_fence_message(mca_btl_base_module_t *btl, sock_peer_t *peer, void *message);
size_t sock_fence_message_heard(const void *message, size_t length, void *answer);

/* --- receiving --- */

/* intake.c. P. */
#define INTAKE_BYTES (256u << 10)
/* After so many received bytes the sender is told, so that it need not keep more. */
#define OWED_BYTES (24u << 10)

/* Before the reads of a round: the sender is told, unless what it was sent since the last round has
 * done so. */
void sock_intake_tell(sock_peer_t *peer);
/* Reads once and handles what came. Returns events; *broken: why the connection is over, or NULL.
 */
int sock_intake_read(sock_peer_t *peer, const char **broken);
/* Reads what has come over a connection that is to be closed. */
void sock_intake_empty(sock_peer_t *peer);
/* Throws away the frame that is not whole. */
void sock_intake_reset(sock_peer_t *peer);

/* --- entry --- */

/* send.c */
BTL_FUNCTION(send, sock_send_start);
BTL_FUNCTION(sendi, sock_send_immediate);
BTL_FUNCTION(put, sock_send_put);
/* P, with no lock held: the owners of what the kernel has taken late are told. */
void sock_send_left(sock_peer_t *peer);
static inline void sock_owners_tell(sock_peer_t *peer)
{
    if (OPAL_UNLIKELY(atomic_load_explicit(&peer->left, memory_order_relaxed) != NULL))
        sock_send_left(peer);
}

/* progress.c */
int sock_progress_all(void);
/* The extension's poll. */
int sock_progress_peer(mca_btl_base_module_t *btl, sock_peer_t *peer);
/* Until nothing is kept for the peer, or `limit_ms` are over. */
void sock_progress_drain(sock_peer_t *peer, uint64_t limit_ms);

/* wake.c: the extension's rouse_by and will_sleep. */
bool sock_wake_by(void (*rouse)(void));
void sock_wake_arm(void);

/* procs.c */
BTL_FUNCTION(add_procs, sock_add_procs);
BTL_FUNCTION(del_procs, sock_del_procs);

#endif
