/* SPDX-License-Identifier: BSD-3-Clause */
/* A lane: one BTL module toward one peer, and the basic operations on it; what leaves by it, and
 * what it reports to the layers above. */
#ifndef MULTILANE_LANE_H
#define MULTILANE_LANE_H

#include <stdatomic.h>

#include "common/compat/pml.h"
#include "base/counter.h"
#include "multilane/extension.h"
#include "base/pending.h"
#include "wire/wire.h"

struct lane;
struct peer;

/* Reports of failed lanes to the layers above, which set this table once, before there are lanes.
 * Any thread may call these, also in a callback of a BTL. They only mark the failure; progress acts
 * on it.
 */
struct lane_events {
    /* A lane to a known peer failed while doing `what`, with Open MPI's error `rc`; or a BTL toward
     * an unknown process. */
    void (*failed)(struct lane *lane, const char *what, int rc);
    void (*btl_failed)(mca_btl_base_module_t *btl, const char *what, int rc);
    /* Something is to go by a lane that has not been proven to lead to its peer. */
    void (*unproven)(struct lane *lane);
    /* So many bytes that came by a lane, or by several (null), have a wrong sum; they come again.
     */
    void (*wrong)(struct lane *lane, size_t bytes);
    /* A lane that broke gives a message back, see return_to in multilane/extension.h. */
    multilane_returned returned;
};

extern __attribute__((visibility("hidden"))) struct lane_events lane_events;

/* Tells the owner, once, that the bytes have left, or, with an error, that they never will. It
 * may send and complete requests; the caller holds no lock of the PML. */
typedef void (*lane_left)(void *owner, int status);

/* The measured speed of a lane for striped data. stripe.c and control.c read and write it, all
 * relaxed: each member is a number of its own, written by threads that send or read on the lane. An
 * old value makes a piece take the second best lane. */
struct lane_speed {
    _Atomic uint64_t bytes_s;     /* moving average */
    _Atomic uint64_t measured_ns; /* over this much time in which the lane was busy */
    _Atomic uint64_t sent;        /* bytes sent on the lane, */
    _Atomic uint64_t confirmed;   /* and reported by the peer: of lanes that no BTL measures */
    _Atomic uint64_t written_off; /* under way when the lane was lost: they may never be reported */
    _Atomic uint64_t since_ns;    /* last measurement, or first byte after the lane was idle, */
    _Atomic uint64_t since_bytes; /* and `confirmed` at that time */
    _Atomic uint64_t received;    /* bytes received on the lane, */
    _Atomic uint64_t reported;    /* and reported to the peer, */
    _Atomic uint64_t reported_ns; /* time of the last report */
    double latency_s;
};

enum lane_state {
    LANE_UP,
    LANE_SILENT,   /* does not answer: not used until it does */
    LANE_UNPROVEN, /* its BTL tries whether it leads to the peer: nothing is given to it */
    LANE_BROKEN    /* it failed, or did not answer: not used again, unless made anew */
};

/* Whether a lane answers. The lock of the peer's liveness guards all but the state. */
struct lane_health {
    _Atomic uint8_t state; /* enum lane_state; written by liveness.c and watch.c */
    bool has_changed;      /* progress must act on the change */
    uint32_t asked;        /* number of the first WIRE_ASK since its last answer; 0: none is open */
    uint64_t asked_ns;
    uint64_t contrast_ns; /* since then another lane has answered and this one has not; 0: not so */
    uint64_t pause_ns;    /* pause between questions to a silent lane */
    uint64_t
        fence_sent_ns; /* when the last fence message went to the other end of the broken lane */
    uint32_t said;     /* changes printed so far; for the thread in watch.c */
    char why[128];
};

/* Why a lane carries nothing that another one can carry. */
enum lane_cause {
    LANE_OUT_DOWN = 1,    /* its state, above: not even where no other is left */
    LANE_OUT_WORSE = 2,   /* it would delay what the others carry: liveness/worse.c */
    LANE_OUT_DRAINED = 4, /* the user asked for it: liveness/drain.c */
    LANE_OUT_WRONG = 8,   /* it brings wrong bytes: liveness/wrong.c */
    LANE_OUT_ANY = LANE_OUT_DOWN | LANE_OUT_WORSE | LANE_OUT_DRAINED | LANE_OUT_WRONG,
    LANE_OUT_REFUSED = 16 /* all but the first: what is left makes no plan */
};

#define WRONGS_OUT 3 /* within a minute: then the lane is left out */

/* Messages with wrong sums that a lane has brought; beside its peer, as few have any. For
 * liveness/wrong.c, under its lock. */
struct lane_wrongs {
    struct pending pending; /* leaves the lane out, from progress */
    struct lane *lane;
    const char *why; /* null: it is not pending */
    uint32_t count;
    uint64_t at_ns[WRONGS_OUT - 1]; /* of the last before this one */
};

/* A number that grows where a lane gets worse, and what is usual of it: a slow average, and how far
 * it is off that on average. */
struct lane_past {
    double mean, spread;
    uint32_t samples;
    uint32_t beyond;   /* so many samples in a row were beyond what is usual, */
    uint64_t since_ns; /* from then on */
    uint64_t looked_ns;
};

/* How a lane did until now; beside its peer, so that a lane stays short. For the thread in watch.c,
 * but for `why`. */
struct lane_history {
    struct lane_past slowness; /* log2 of how often the fastest other lane is faster */
    struct lane_past loss;     /* the part of what it sends that it sends again */
    uint64_t carried[2];       /* bytes of messages, and by gets and puts, at the last look */
    uint64_t sent, repeated;   /* as its kernel or device counts, likewise */
    uint64_t again_ns;         /* when it leaves the reserve to be tried; 0: it is in none */
    uint64_t pause_ns;         /* how long it was there */
    uint32_t usual;            /* so many samples in a row were usual, of a lane that is worse */
    uint32_t said;             /* changes printed so far */
    char why[128];             /* of a lane that is worse; under the lock of the liveness */
};

struct lane {
    mca_btl_base_module_t *btl;
    struct mca_btl_base_endpoint_t *endpoint;
    struct peer *peer;
    const struct multilane_extension *extension; /* null for a BTL of Open MPI */
    /* The BTL's send-immediate. Null where there is none, or where it may keep bytes in this
     * process (stock_btl_sendi_leaves). */
    mca_btl_base_module_sendi_fn_t sendi;
    /* The extension's reserve, or null. */
    void *(*reserve)(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                     size_t header, size_t payload);
    /* Copies a payload in one piece to there: memcpy, or that of lane/summed.c. */
    void *(*copy)(void *to, const void *from, size_t size);
    uint32_t flags; /* the BTL's flags as BML r2 corrected them, less what this PML does not use */
    uint8_t index;  /* in the peer's array */
    bool returns;   /* may break, gives back what is not there for other lanes, and is made anew */
    bool sums;      /* its messages have sums: lane/summed.h */
    bool in_place;  /* sends from the user's memory: extension->prepare_in_place */
    bool keeps_order;   /* what is sent behind a put arrives behind its bytes */
    bool takes_device;  /* it gets and puts device memory in place */
    float round_trip_s; /* to another node, as the kernel measured it; 0: not known */
    size_t largest;     /* the largest message, headers included, of one send */
    /* The BTL's functions, or those of lane/summed.c. Short messages do without. */
    mca_btl_base_module_alloc_fn_t alloc;
    mca_btl_base_module_prepare_fn_t prepare;
    mca_btl_base_module_send_fn_t send;
    struct lane_speed speed;      /* for messages, */
    struct lane_speed copy_speed; /* and for gets and puts */
    struct lane_health health;
    _Atomic uint32_t remote_index; /* the peer's index of this lane, plus 1; 0: not known yet */
    _Atomic bool introduced;       /* the peer was sent our index of this lane, see rma.c */
    _Atomic bool lost;             /* send nothing on it; see lane_leave_out */
    _Atomic uint8_t out;           /* enum lane_cause; see lane_leave_out */
    _Atomic bool is_worse;         /* than it was; relaxed, for reports: liveness/worse.c */
    mca_btl_base_module_t
        *listed; /* that the BML knows: this one, or it is a further one of that */
};

/* Memory registered with one lane, for a get or put of the other end. */
struct registration {
    struct lane *lane; /* null: nothing is registered */
    mca_btl_base_registration_handle_t *handle;
};

/* Results of a send. Any other code is an error of Open MPI, and nothing was sent. Bytes have
 * left when they are out of this process: in the receiver's memory, or in a queue of the kernel
 * or the device. Until then they need progress of this process, so a request or a waiting call
 * stands for them. */
#define LANE_LEFT      OMPI_SUCCESS
#define LANE_UNDER_WAY 1                        /* the callback says, or has said, when they left */
#define LANE_AGAIN     OMPI_ERR_OUT_OF_RESOURCE /* refused: try again from progress */
#define LANE_FULL      OMPI_ERR_RESOURCE_BUSY   /* refused, and a fragment would not go either */

/* Sends `length` bytes by the BTL's send-immediate: LANE_LEFT, LANE_FULL or LANE_AGAIN. */
int lane_send_immediately(struct lane *lane, const void *bytes, size_t length);

/* The same for a message of `size` bytes that the convertor packs behind the header. */
int lane_send_packed(struct lane *lane, const void *header, size_t length,
                     opal_convertor_t *convertor, size_t size);

/* Memory of the lane for a message in place; null: the lane has none, or not now. Write the
 * payload first, by lane->copy if it lies in one piece, then the header, then call lane_commit,
 * with no other call in between. */
static inline void *lane_reserve(struct lane *lane, size_t header, size_t payload)
{
    return lane->reserve ? lane->reserve(lane->btl, lane->endpoint, header, payload) : NULL;
}

/* How much of large messages lane_reserve takes now, see `room` in multilane/extension.h. SIZE_MAX:
 * the lane is to be sent to by descriptors, which wait with the lane. */
static inline size_t lane_room(const struct lane *lane)
{
    return lane->reserve && lane->extension->room ? lane->extension->room(lane->btl, lane->endpoint)
                                                  : SIZE_MAX;
}

static inline void lane_commit(struct lane *lane, size_t header, size_t payload)
{
    lane->extension->commit(lane->btl, lane->endpoint, header, payload, WIRE_TAG);
}

/* Copies and sends `length` bytes; they are the caller's again on return. LANE_UNDER_WAY:
 * `left`, if not null, was or will be called. */
int lane_send_plain(struct lane *lane, const void *bytes, size_t length, lane_left left,
                    void *owner);

/* The same for a message of that tag, by a fragment in any case: LANE_LEFT does not come back. */
int lane_send_tagged(struct lane *lane, uint8_t tag, const void *bytes, size_t length,
                     lane_left left, void *owner);

/* The same for a piece of a message, whose payload the BTL may send from where it is: it must stay
 * until `left` is called. Sets *size to what the BTL took, which with `all` may not be less. */
int lane_send_piece(struct lane *lane, const void *header, size_t length, const char *payload,
                    size_t *size, bool all, lane_left left, void *owner);

/* The same on a lane with `in_place`, without a copy of the payload: payload and registration
 * must stay until `left` is called, also after an error or the loss of the peer. */
int lane_send_in_place(struct lane *lane, mca_btl_base_registration_handle_t *registration,
                       const void *bytes, size_t length, const void *payload, size_t payload_length,
                       lane_left left, void *owner);

/* A descriptor of the lane with room for `length` bytes, which it will send. LANE_AGAIN: none now.
 */
int lane_fragment(struct lane *lane, size_t length, mca_btl_base_descriptor_t **descriptor);

static inline unsigned char *lane_fragment_bytes(mca_btl_base_descriptor_t *descriptor)
{
    return descriptor->des_segments[0].seg_addr.pval;
}

/* Sends a descriptor of the lane that asks for its callback: LANE_UNDER_WAY. The lane owns it
 * from then on, also after an error. */
int lane_send_descriptor(struct lane *lane, mca_btl_base_descriptor_t *descriptor, lane_left left,
                         void *owner);

/* Polls the lane alone, without the rest of opal_progress. */
static inline int lane_poll(struct lane *lane)
{
    if (lane->extension && lane->extension->poll)
        return lane->extension->poll(lane->btl, lane->endpoint);
    if (lane->btl->btl_component->btl_progress)
        return lane->btl->btl_component->btl_progress();
    return 0;
}

static inline const char *lane_name_of(const mca_btl_base_module_t *btl)
{
    return btl->btl_component->btl_version.mca_component_name;
}

static inline const char *lane_name(const struct lane *lane)
{
    return lane_name_of(lane->btl);
}

static inline bool lane_sends(const struct lane *lane)
{
    return lane->flags & MCA_BTL_FLAGS_SEND;
}

/* Relaxed: a thread that reads an old state sends on a lane that is out of use, which gives the
 * message back. */
static inline enum lane_state lane_state(const struct lane *lane)
{
    return (enum lane_state) atomic_load_explicit(&lane->health.state, memory_order_relaxed);
}

/* May it break while the peer lives, as the lanes of ours to other nodes? */
static inline bool lane_may_break(const struct lane *lane)
{
    return lane->extension && lane->extension->return_to;
}

static inline bool lane_is_up(const struct lane *lane)
{
    return lane_state(lane) == LANE_UP;
}

/* Relaxed: a hint; written by lane_leave_out. */
static inline bool lane_is_lost(const struct lane *lane)
{
    return atomic_load_explicit(&lane->lost, memory_order_relaxed);
}

/* Relaxed: for reports, and for the thread that writes it under multilane.lock. */
static inline bool lane_is_out(const struct lane *lane, enum lane_cause cause)
{
    return atomic_load_explicit(&lane->out, memory_order_relaxed) & cause;
}

static inline bool lane_is_worse(const struct lane *lane)
{
    return atomic_load_explicit(&lane->is_worse, memory_order_relaxed);
}

/* The modules of this job, one after the other: the first one (null), or the one behind `at`. Null:
 * no more. */
mca_btl_base_module_t *btl_next(const mca_btl_base_module_t *at);

/* The module's number among those of this process; DRAIN_LANES: none, there are too many. */
uint32_t lane_number(const mca_btl_base_module_t *btl);

/* Is this process asked to empty it? */
bool lane_is_to_drain(const mca_btl_base_module_t *btl);

/* Of a lane with an extension. */
bool lane_can(const struct lane *lane, enum multilane_capability capability);

/* Does it take its part of a message now? One that was not needed before is tried from now on. */
static inline bool lane_carries(struct lane *lane)
{
    if (lane_is_lost(lane))
        return false;
    if (OPAL_LIKELY(lane_state(lane) != LANE_UNPROVEN))
        return true;
    lane_events.unproven(lane);
    return false;
}

/* Does its BTL find out by trying whether it leads to the peer? */
static inline bool lane_is_tried(const struct lane *lane)
{
    return lane->extension && lane->extension->is_proven;
}

/* Has its BTL found out that it leads to the peer? If not, `why` says what came instead. */
bool lane_is_proven(const struct lane *lane, char *why, size_t room);

/* Can the lane get (put) these bytes in place, with its alignment? */
bool lane_can_get(const struct lane *lane, uint64_t remote, const void *local, size_t size);
bool lane_can_put(const struct lane *lane);

/* For a lane that returns messages, and broke. OMPI_SUCCESS: what was sent on it writes no memory
 * any more. LANE_AGAIN: not yet. */
int lane_fence(struct lane *lane);

/* On a lane that may break and can return messages: it will from now on. */
void lane_return(struct lane *lane);
/* Not any more: the peer is lost. */
void lane_return_none(struct lane *lane);

/* Bytes that it was given and the other end does not have yet, and when they and `more` will be
 * there; 0: none, or its BTL does not say. */
size_t lane_under_way(const struct lane *lane, size_t more, double *seconds);
/* Does its BTL measure at which rate it delivers? */
static inline bool lane_measures(const struct lane *lane)
{
    return lane->extension && lane->extension->observed_bytes_s;
}
/* That rate, of late; 0: not yet. */
double lane_observed_bytes_s(const struct lane *lane);

/* For how long something is under way on a lane that does not notice by itself when it leads
 * nowhere; 0: nothing is, or it does. */
uint64_t lane_quiet_ms(const struct lane *lane);

/* Closes a lane that other lanes replace, if it keeps messages to be returned or sends from users'
 * memory, so that these end soon. No lock is held. */
void lane_close(struct lane *lane);

/* Registers memory, if the lane needs that; LANE_AGAIN: not now. The other end's key is
 * registration->handle, lane_key_length bytes long. `access` holds MULTILANE_REGISTER_DEVICE for
 * device memory. */
int lane_register(struct lane *lane, void *address, size_t size, uint32_t access,
                  struct registration *registration);
void lane_deregister(struct registration *registration);

/* Makes visible what the lane wrote to registered device memory: it is there when `done` is
 * called. Any result but OMPI_SUCCESS: `done` will not be called, and the bytes may not be
 * there. */
int lane_flush(const struct registration *registration, const void *address, size_t size,
               multilane_flush_done done, void *context);

static inline size_t lane_key_length(const struct lane *lane)
{
    return lane->btl->btl_register_mem ? lane->btl->btl_registration_handle_size : 0;
}

/* --- sent fragments -----------------------------------------------------------------------------
 * Bytes that a lane has accepted and that are still in this process. When they leave, the owner is
 * told, exactly once. The BTL's callback names a fragment by its handle, so a second callback
 * finds nothing: tcp may call back after it has returned an error, or after the peer is lost. */

void sent_fragments_init(void);
void sent_fragments_fini(void);

/* The peer is lost: tells the owners of all fragments to it, with an error; but not of those in
 * place, which lane_close ends. No lock is held. */
void sent_fragments_lost(const struct peer *peer);

/* --- what the BTLs of Multilane offer beyond Open MPI's interface ----------------------------- */

/* The extension of a BTL of ours; null for a stock BTL. */
const struct multilane_extension *lane_extension_of(const mca_btl_base_module_t *btl);
/* By the BTL's name, without a module: outside of jobs. Null also if the BTL is not loaded. */
const struct multilane_extension *lane_extension_named(const char *btl);

/* Do messages pass through connections of the kernel? Then what the start measures of one holds. */
bool btl_is_of_sockets(const mca_btl_base_module_t *btl);

#endif
