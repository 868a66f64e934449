/* SPDX-License-Identifier: BSD-3-Clause */
/* rndv-both: both ends copy at once. The receiver pulls and the sender pushes chunks that they
 * claim from one counter, in a line of memory that both have mapped; so an idle end helps, and a
 * busy end costs nothing.
 *
 *   sender                                   receiver
 *   obtains the line, RTS  ------------->    finds the line
 *                          <-------------    RTR with its buffer, and starts to claim and pull
 *   claims and pushes, if it gets the        ...
 *   RTR while there is something left
 *   the last chunk: FIN    ------------->    (or it has done the last one itself)
 *   releases the line      <-------------    ACK: it does not touch the line any more
 *
 * Words of the line. Both ends change them with acquire and release: the end that counts the last
 * chunk sees all copies, and an end that sees a failure counts its chunks as failed, too: */
enum { WORD_CLAIMED, WORD_DONE, WORD_FAILED };
/* A copy that the system refuses half way (a debugger, a policy) is counted as done and marked as
 * failed, as are all chunks after it: the count still ends, and then the receiver asks for the
 * whole message as rndv-am. */

#include "protocol/common.h"

#include <stdatomic.h>
#include <string.h>

extern const struct protocol rndv_both;

/* A sender's own part: the line, its own until the lane takes it back; */
struct obtained {
    struct multilane_control *control;
    uint64_t handle;
    struct lane *lane;
};
/* a receiver's, while chunks are copied. */
struct found {
    struct multilane_control *control;
    struct lane *lane;
    unsigned ends; /* END_*, guarded by the receive's lock */
};

enum {
    END_OURS = 1 /* has copied its last chunk */,
    END_LAST = 2 /* one end has copied the last */
};

_Static_assert(sizeof(struct obtained) <= SEND_OWN_BYTES && sizeof(struct found) <= RECV_OWN_BYTES,
               "they fit the requests");

/* Chunks: small enough that the ends finish close together, large enough for their system call. */
#define CHUNK_MIN        ((size_t) 16 << 10)
#define CHUNK_MAX        ((size_t) 512 << 10)
#define CHUNKS_A_MESSAGE 16

static size_t chunk_size(size_t size)
{
    size_t chunk = (size / CHUNKS_A_MESSAGE + 4095) & ~(size_t) 4095;
    if (chunk < CHUNK_MIN)
        return CHUNK_MIN;
    return chunk < CHUNK_MAX ? chunk : CHUNK_MAX;
}

/* Claims and copies until nothing is left. True: this end did the last chunk. */
static bool chunks_copy(struct lane *lane, struct multilane_control *control, bool pulls,
                        char *local, uint64_t remote, size_t size)
{
    const struct multilane_extension *by = lane->extension;
    size_t chunk = chunk_size(size), count = (size + chunk - 1) / chunk;
    bool is_last = false;
    for (;;) {
        /* Acquire and release on all three, see above. */
        uint64_t index =
            atomic_fetch_add_explicit(&control->words[WORD_CLAIMED], 1, memory_order_acq_rel);
        if (index >= count)
            return is_last;
        size_t offset = index * chunk;
        size_t length = size - offset < chunk ? size - offset : chunk;
        if (atomic_load_explicit(&control->words[WORD_FAILED], memory_order_acquire) ||
            (pulls
                 ? by->copy_from(lane->btl, lane->endpoint, local + offset, remote + offset, length)
                 : by->copy_to(lane->btl, lane->endpoint, local + offset, remote + offset,
                               length)) != OPAL_SUCCESS)
            atomic_store_explicit(&control->words[WORD_FAILED], 1, memory_order_release);
        is_last =
            atomic_fetch_add_explicit(&control->words[WORD_DONE], 1, memory_order_acq_rel) + 1 ==
            count;
    }
}

/* --- sender ----------------------------------------------------------------------------------- */

static int rndv_both_start(struct send_request *request)
{
    struct lane *lane = route_lane(request->route, request->out.peer, 0);
    struct obtained *own = (void *) request->own;
    if (!own->control && lane->extension->control_obtain(lane->btl, lane->endpoint, &own->control,
                                                         &own->handle) != OPAL_SUCCESS) {
        /* All lines of this peer are in use. */
        request->protocol = protocols.of_model[MODEL_RNDV_GET];
        return request->protocol->start(request);
    }
    own->lane = lane;
    struct wire_key key = {.address = (uintptr_t) request->out.data, .length = sizeof(own->handle)};
    return rndv_announce(request, lane, &key, &own->handle);
}

static void rndv_both_end(struct send_request *request)
{
    struct obtained *own = (void *) request->own;
    if (own->control)
        own->lane->extension->control_release(own->lane->btl, own->lane->endpoint, own->handle);
    *own = (struct obtained){.control = NULL};
}

static void rndv_both_ready(struct send_request *request, struct lane *lane,
                            const struct wire_rtr *rtr, const unsigned char *key)
{
    struct obtained *own = request->protocol == &rndv_both ? (void *) request->own : NULL;
    if (!own || !own->control || lane != own->lane) {
        rndv_am_move(request, rtr->size);
        return;
    }
    /* One step more than the answer, which another thread may get: until this one is through with
     * the line, it is not given back. Relaxed: the steps order. */
    atomic_fetch_add_explicit(&request->unfinished, 1, memory_order_relaxed);
    send_state_set(request, SEND_ANNOUNCED); /* the receiver has yet to say whether all is well */
    if (OPAL_UNLIKELY(peer_is_lost(request->out.peer))) /* lost_end may have found SEND_MOVING */
        send_request_lost(request, request->handle);
    if (chunks_copy(lane, own->control, false, (char *) request->out.data, rtr->key.address,
                    rtr->size))
        bytes_report(lane, WIRE_FIN, rtr->receiver, rtr->size, NULL); /* until the ACK */
    send_request_step(request);
}

/* --- receiver --------------------------------------------------------------------------------- */

static void rndv_both_finish(struct recv_request *request)
{
    struct found *own = (void *) request->own;
    bool has_failed =
        atomic_load_explicit(&own->control->words[WORD_FAILED], memory_order_acquire) ||
        !recv_request_is_right(request, own->lane);
    own->control = NULL;
    request->is_shared = false;
    if (!has_failed)
        /* Behind the RTR: on a faster lane it would arrive before it at a sender that was away. */
        recv_request_acknowledge(request, own->lane);
    else
        recv_request_ask_again(request, own->lane);
}

/* Two things must have happened, in either order and in any threads: this end is through with the
 * line, and the last chunk is copied. While this end copies or finishes it holds the receive. With
 * the receive's lock held; true: the caller finishes. */
static bool rndv_both_ends(struct recv_request *request, unsigned ends)
{
    struct found *own = (void *) request->own;
    own->ends |= ends;
    bool is_over = own->ends == (END_OURS | END_LAST);
    if (own->ends & END_OURS)
        request->promised = is_over ? request->wanted : 0;
    return is_over;
}

/* This end is through. */
static void rndv_both_through(struct recv_request *request, bool is_last)
{
    bool is_over = false;
    OPAL_THREAD_LOCK(&request->lock);
    bool goes_on = handle_is_set(request->handle); /* recv_request_lost */
    if (goes_on)
        is_over = rndv_both_ends(request, END_OURS | (is_last ? END_LAST : 0));
    OPAL_THREAD_UNLOCK(&request->lock);
    if (is_over)
        rndv_both_finish(request);
    else if (!goes_on)
        recv_request_fail(request, COMPAT_ERR_PROC_FAILED);
}

/* The sender has copied the last chunk. False: that was said already, or it is another receive. */
static bool rndv_both_fin(struct recv_request *request, const struct wire_fin *fin)
{
    struct found *own = (void *) request->own;
    bool is_over = false;
    OPAL_THREAD_LOCK(&request->lock);
    bool good = recv_request_is(request, fin->receiver) && own->control && !(own->ends & END_LAST);
    if (good)
        is_over = rndv_both_ends(request, END_LAST);
    OPAL_THREAD_UNLOCK(&request->lock);
    if (is_over)
        rndv_both_finish(request);
    return good;
}

static struct multilane_control *rndv_both_control(const struct arrival *arrival)
{
    const struct lane *lane = arrival->lane;
    uint64_t handle;
    if (!lane || !lane->extension || !lane->extension->control_find ||
        !lane->extension->copy_from || arrival->key.length != sizeof(handle))
        return NULL;
    memcpy(&handle, arrival->key_bytes, sizeof(handle));
    return lane->extension->control_find(lane->btl, lane->endpoint, handle);
}

static bool rndv_both_receive(struct recv_request *request, const struct arrival *arrival)
{
    struct lane *lane = arrival->lane;
    struct multilane_control *control = rndv_both_control(arrival);
    struct found *own = (void *) request->own;
    own->control = NULL;
    if (!control)
        return false;
    if (OPAL_UNLIKELY(!recv_request_can_answer(request) ||
                      !recv_request_hold(request, request->wanted))) /* a lost peer has ended it */
        return true;
    struct wire_key key = {.address = (uintptr_t) request->data};
    *own = (struct found){.control = control, .lane = lane};
    request->is_shared = true;
    uint64_t remote = arrival->key.address; /* the RTR may end the arrival's life */
    recv_request_send_rtr(request, lane, WIRE_BY_BOTH, &key, NULL);
    bool is_last = chunks_copy(lane, control, true, request->data, remote, request->wanted);
    rndv_both_through(request, is_last);
    return true;
}

const struct protocol rndv_both = {
    .name = "rndv-both",
    .method = WIRE_BY_BOTH,
    .post = post_by_request,
    .start = rndv_both_start,
    .ready = rndv_both_ready,
    .send_end = rndv_both_end,
    .receive = rndv_both_receive,
    .fin = rndv_both_fin,
    .host_only = true,
};
