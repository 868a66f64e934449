/* SPDX-License-Identifier: BSD-3-Clause */
/* A lane: one BTL module toward one peer, and the few things that are done with it. */
#ifndef MULTILANE_LANE_H
#define MULTILANE_LANE_H

#include <stdatomic.h>

#include "common/compat/pml.h"

#include "multilane/extension.h"

#include "lane/departure.h"
#include "wire/wire.h"

struct peer;

/* How fast a lane moves striped data; see stripe.c, which alone reads and writes it. */
struct lane_speed {
    _Atomic uint64_t bytes_s;     /* moving average */
    _Atomic uint64_t measured_ns; /* over so much time in which the lane was busy */
    _Atomic uint64_t sent;        /* bytes given to the lane, */
    _Atomic uint64_t seen;        /* and of them reported by the peer */
    _Atomic uint64_t written_off; /* under way when the lane was lost: they may never be reported */
    _Atomic uint64_t since_ns;    /* last measurement, or first byte after the lane was idle, */
    _Atomic uint64_t since_bytes; /* and what had been seen then */
    _Atomic uint64_t received;    /* bytes that came on the lane, */
    _Atomic uint64_t reported;    /* and of them told to the peer, */
    _Atomic uint64_t reported_ns; /* when last */
    double latency_s;
};

enum lane_state {
    LANE_UP,
    LANE_SILENT, /* does not answer: left out until it does */
    LANE_BROKEN  /* its BTL said so: not used again, unless it is made anew */
};

/* Whether a lane answers; guarded by the peer's delivery but for the state. See health.c. */
struct lane_health {
    _Atomic uint8_t state; /* enum lane_state; written by health.c and watch.c */
    bool has_changed;      /* progress has yet to act on it */
    uint32_t asked;        /* the first question since its last answer; 0: none is open */
    uint64_t asked_ns;
    uint64_t contrast_ns; /* since then another lane has answered, and this one has not; 0: none */
    uint64_t pause_ns;    /* between questions to a silent one */
    uint32_t said;        /* changes, of the thread that is in watch.c */
    char why[128];
};

struct lane {
    mca_btl_base_module_t *btl;
    struct mca_btl_base_endpoint_t *endpoint;
    struct peer *peer;
    const struct multilane_extension *extension; /* null for a BTL that is not ours */
    /* The BTL's send-immediate; null where it has none, where what it took may still lie in this
     * process (stock_btl_sendi_leaves), or where messages have to be kept. */
    mca_btl_base_module_sendi_fn_t sendi;
    mca_btl_base_module_sendi_fn_t plain_sendi; /* also where messages have to be kept */
    /* The extension's reserve; null as for sendi. */
    void *(*reserve)(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                     size_t header, size_t payload);
    uint32_t flags;    /* the BTL's, as BML r2 corrected them, less what is not to be used */
    uint8_t index;     /* in the peer's array */
    bool framed;       /* it may lose what it has accepted, and another lane could carry it: see
                        * delivery.h */
    bool in_place;     /* it sends messages from the user's memory: extension->prepare_in_place; one
                        * that is framed says by their end that the peer has them */
    bool takes_device; /* it gets and puts device memory in place */
    bool renewable;    /* and it reports errors in time, can be fenced, and be made anew */
    size_t largest;    /* message with its headers that one send of this lane carries */
    struct lane_speed speed;      /* of messages, */
    struct lane_speed copy_speed; /* and of gets and puts */
    struct lane_health health;
    _Atomic bool introduced;       /* the peer was told our number of it, see rma.c */
    _Atomic uint32_t remote_index; /* the peer's number of it plus 1, once it was told; else 0 */
    _Atomic bool lost;             /* nothing is to be sent on it; see lane_set_lost */
};

/* Where a message's bytes lie for the other side's get or put, registered with one lane. */
struct registration {
    struct lane *lane; /* null: nothing is registered */
    mca_btl_base_registration_handle_t *handle;
};

/* What a lane says of bytes that it is given. Anything else is an error of Open MPI's, and nothing
 * was sent. Bytes have left when they are out of this process's hands: in the receiver's memory, in
 * the kernel's or the device's queue. Until then they need a call of this process that makes
 * progress, so a request stands for them, or a call waits for them. */
#define LANE_LEFT      OMPI_SUCCESS
#define LANE_UNDER_WAY 1                        /* the callback says when they left, or said it */
#define LANE_AGAIN     OMPI_ERR_OUT_OF_RESOURCE /* refused: try again from progress */
#define LANE_FULL      OMPI_ERR_RESOURCE_BUSY   /* and a fragment would only wait as well */

/* Sends `length` bytes by the BTL's send-immediate: LANE_LEFT, LANE_FULL or LANE_AGAIN. */
int lane_send_immediately(struct lane *lane, const void *bytes, size_t length);

/* The same for a message of `size` bytes that the convertor packs behind the header. */
int lane_send_packed(struct lane *lane, const void *header, size_t length,
                     opal_convertor_t *convertor, size_t size);

/* Tells the lane that the peer is expected to write to one of its slots, or not any more. */
void lane_expect(struct lane *lane, bool expects);

/* By a slot in the peer's memory, not in an envelope; LANE_AGAIN: send it as a message. */
int lane_send_slot(struct lane *lane, const void *bytes, size_t length);

/* Room for a message where the lane sends it from, if it offers that and has room now, else null.
 * It is written, payload first, and lane_commit sends it; nothing else is called in between. */
static inline void *lane_reserve(struct lane *lane, size_t header, size_t payload)
{
    return lane->reserve ? lane->reserve(lane->btl, lane->endpoint, header, payload) : NULL;
}

static inline void lane_commit(struct lane *lane, size_t header, size_t payload)
{
    lane->extension->commit(lane->btl, lane->endpoint, header, payload, WIRE_TAG);
}

/* Copies and sends `length` bytes, which belong to the caller again when it returns.
 * LANE_UNDER_WAY: `left`, if it is not null, was or will be called. */
int lane_send_plain(struct lane *lane, const void *bytes, size_t length, lane_left left,
                    void *owner);

/* The same of a message in two places, joined by a copy; never LANE_LEFT. */
int lane_send_joined(struct lane *lane, const void *bytes, size_t length, const void *payload,
                     size_t payload_length, lane_left left, void *owner);

/* The same, of a lane with `in_place`, but that the payload is not copied: it and its registration
 * with the lane stay until `left` was called, after an error too, and if the peer is lost. */
int lane_send_in_place(struct lane *lane, mca_btl_base_registration_handle_t *registration,
                       const void *bytes, size_t length, const void *payload, size_t payload_length,
                       lane_left left, void *owner);

/* Sends a descriptor that the lane gave, which asks for its callback: LANE_UNDER_WAY. It is the
 * lane's from now on, also where it fails. */
int lane_send_descriptor(struct lane *lane, mca_btl_base_descriptor_t *descriptor, lane_left left,
                         void *owner);

/* One look at what the lane brings, without the rest of Open MPI's progress. */
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

static inline size_t lane_largest_send(const struct lane *lane)
{
    return lane->largest;
}

static inline bool lane_sends(const struct lane *lane)
{
    return lane->flags & MCA_BTL_FLAGS_SEND;
}

/* Relaxed: a thread that sees a stale one gives a message to a lane that is not to be used any
 * more, and delivery.c takes it back. */
static inline enum lane_state lane_state(const struct lane *lane)
{
    return (enum lane_state) atomic_load_explicit(&lane->health.state, memory_order_relaxed);
}

static inline bool lane_is_up(const struct lane *lane)
{
    return lane_state(lane) == LANE_UP;
}

/* Relaxed: a hint for what is under way; lane_set_lost. */
static inline bool lane_is_lost(const struct lane *lane)
{
    return atomic_load_explicit(&lane->lost, memory_order_relaxed);
}

/* Can the lane get (put) these bytes in place, its alignment considered? */
bool lane_can_get(const struct lane *lane, uint64_t remote, const void *local, size_t size);
bool lane_can_put(const struct lane *lane);

/* Of a renewable lane that broke. After OMPI_SUCCESS what was given to it writes no memory any
 * more; LANE_AGAIN: not yet. */
int lane_fence(struct lane *lane);

/* What the lane sends from the memory of users ends soon, there or not: it is closed if there is
 * any. No lock is held. */
void lane_stop_in_place(struct lane *lane);

/* Registers memory where the lane wants it; LANE_AGAIN if it cannot now. The key that the other
 * side needs is registration->handle, of lane_key_length bytes. Device memory is told by
 * MULTILANE_REGISTER_DEVICE in `access`. */
int lane_register(struct lane *lane, void *address, size_t size, uint32_t access,
                  struct registration *registration);
void lane_deregister(struct registration *registration);

/* What the lane wrote to registered device memory is there once `done` was called; any code but
 * OMPI_SUCCESS: it will not be called, and whether they are there is not known. */
int lane_flush(const struct registration *registration, const void *address, size_t size,
               multilane_flush_done done, void *context);

static inline size_t lane_key_length(const struct lane *lane)
{
    return lane->btl->btl_register_mem ? lane->btl->btl_registration_handle_size : 0;
}

#endif
