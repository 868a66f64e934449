/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections: taking a door at a peer to send to it, and mapping the rings of those who took ours.
 */
#include "btl/shm/shm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/compat/modex.h"
#include "opal/util/proc.h"

/* How long a peer may take to make the file that it is to be reached by, and a shortage of
 * descriptors may last. */
#define FILE_WAIT_S 60

/* Whether our segment of that kind is complete; the release is in door_segment_ready. */
static bool segment_is_live(int kind)
{
    return atomic_load_explicit(&shm.segment_live[kind], memory_order_acquire);
}

static const char *const kind_names[SEGMENT_KINDS] = {"anonymous memory", "a file in /dev/shm"};

bool door_segment_ready(enum segment_kind kind)
{
    struct segment *segment = &shm.segments[kind];
    const char *failed;
    int error;

    if (segment->fd >= 0)
        return true;
    error =
        segment_create(segment, kind, kind == SEGMENT_FILE ? &shm.record.file : &shm.record.memfd,
                       shm.door_count, shm.lane_count, shm.lane_lines, &failed);
    if (error == 0 && kind == SEGMENT_FILE)
        (void) modex_remove_at_exit(segment->path);
    if (error == 0) {
        shm.door_peers[kind] = calloc(shm.door_count, sizeof(shm.door_peers[kind][0]));
        if (shm.door_peers[kind]) {
            atomic_store_explicit(&shm.segment_live[kind], true, memory_order_release);
            return true;
        }
        segment_destroy(segment);
        failed = "note who uses it";
        error = ENOMEM;
    }
    SHM_SAY(
        "the memory to share with other processes (%s): cannot %s: %s. Other lanes are used, if "
        "there are any.",
        kind_names[kind], failed, strerror(error));
    return false;
}

/* --- the way out: a door at the peer --- */

static bool host_open(shm_peer_t *peer)
{
    bool file = peer->kind == SEGMENT_FILE;

    if (peer->host)
        return true;
    peer->host_fd = segment_open(peer->record.pid, file ? -1 : peer->record.fd,
                                 file ? &peer->record.file : &peer->record.memfd);
    if (peer->host_fd < 0)
        return false;
    peer->host = segment_map_header(peer->host_fd, &peer->host_bytes, &peer->host_doors);
    if (peer->host)
        return true;
    close(peer->host_fd);
    peer->host_fd = -1;
    return false;
}

static struct door *door_claim(shm_peer_t *peer)
{
    uint32_t count = peer->host_doors;
    struct door *doors = segment_doors(peer->host);
    uint32_t first = (uint32_t) opal_process_info.my_local_rank;

    for (uint32_t n = 0; n < count; n++) {
        struct door *door = &doors[(first + n) % count];
        uint32_t expected = DOOR_FREE;

        /* Acquire: the owner has done with the visitor before (door_close_in). */
        if (atomic_compare_exchange_strong_explicit(&door->state, &expected, DOOR_CLAIMED,
                                                    memory_order_acquire, memory_order_relaxed)) {
            uint32_t index = (first + n) % count % (SEGMENT_BELLS * 64);

            peer->out_bell = &peer->host->bells[index / 64];
            peer->out_bit = index % 64;
            return door;
        }
    }
    return NULL;
}

void door_bell_ring(shm_peer_t *peer)
{
    /* Release: what was written before, door or message, is seen by who takes the bell down. */
    atomic_fetch_or_explicit(peer->out_bell, UINT64_C(1) << peer->out_bit, memory_order_release);
}

static void door_write(shm_peer_t *peer, struct door *door)
{
    struct segment *segment = peer->out_segment;
    const opal_process_name_t *own = &opal_proc_local_get()->proc_name;

    door->jobid = own->jobid;
    door->vpid = own->vpid;
    door->pid = shm.record.pid;
    door->fd = segment->kind == SEGMENT_FILE ? -1 : segment->fd;
    door->lines = segment->lane_lines;
    door->lane = segment_lane_offset(segment, peer->out_lane);
    door->nonce = segment->nonce;
    /* Release: pairs with the owner's acquire in door_look. */
    atomic_store_explicit(&door->state, DOOR_OPEN, memory_order_release);
}

/* Whether the peer said, as the last thing, that it sends no more: it may have been heard or not.
 */
static bool visitor_has_left(const shm_peer_t *peer)
{
    const struct door *door = atomic_load_explicit(&peer->in_door, memory_order_acquire);

    return (door && atomic_load_explicit(&door->state, memory_order_acquire) == DOOR_CLOSED) ||
           atomic_load_explicit(&peer->in_left, memory_order_relaxed);
}

/* What may be there again in a moment: descriptors, memory for tables. */
static bool is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM;
}

static void shortage_say(const shm_peer_t *peer, int error)
{
    static _Atomic bool said;

    if (!atomic_exchange_explicit(&said, true, memory_order_relaxed))
        SHM_SAY("the memory of process %s cannot be opened now: %s. It is tried again; a higher "
                "limit (ulimit -n) helps.",
                OPAL_NAME_PRINT(peer->name), strerror(error));
}

static uint64_t now_s(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    return (uint64_t) time.tv_sec;
}

/* The peer's segment does not open: its file may be there later, its descriptor is not, unless
 * something is short here. One that was here and has left has ended. */
static void host_missing(shm_peer_t *peer, int error)
{
    bool in_vain;

    peer->out_state = OUT_WAITING;
    if (is_shortage(error))
        shortage_say(peer, error);
    if (peer->waiting_since_s == 0)
        peer->waiting_since_s = now_s();
    in_vain = (peer->kind == SEGMENT_MEMFD && !is_shortage(error)) ||
              now_s() - peer->waiting_since_s > FILE_WAIT_S;
    if (in_vain && visitor_has_left(peer)) {
        peer->gone = true;
        peer->out_state = OUT_DEAD;
    } else if (in_vain) {
        SHM_SAY("the memory of process %s (%s) cannot be opened: %s.", OPAL_NAME_PRINT(peer->name),
                kind_names[peer->kind], strerror(error));
        peer->out_unusable = true;
    }
}

static bool lane_create(shm_peer_t *peer)
{
    if (peer->out_lane)
        return true;
    opal_mutex_lock(&shm.lane_lock);
    if (door_segment_ready(peer->kind)) {
        peer->out_segment = &shm.segments[peer->kind];
        peer->out_lane = segment_lane_get(peer->out_segment, peer->record.node);
    }
    opal_mutex_unlock(&shm.lane_lock);
    if (!peer->out_lane) {
        SHM_SAY("no memory for a ring of %zu bytes to process %s: %s. A smaller btl_shm_ring_bytes "
                "or a larger btl_shm_memory_max may help.",
                lane_bytes(shm.lane_lines), OPAL_NAME_PRINT(peer->name), strerror(errno));
        peer->out_unusable = true;
        return false;
    }
    return true;
}

void door_open_out(shm_peer_t *peer)
{
    if (peer->out_state >= OUT_OPEN || peer->out_unusable || !peer->known)
        return;
    peer->out_state = OUT_WAITING;
    if (!host_open(peer)) {
        host_missing(peer, errno);
        return;
    }
    peer->waiting_since_s = 0;
    if (!peer->stale)
        peer->stale = calloc(ring_stale_words(shm.lane_lines), sizeof(*peer->stale));
    if (peer->left_door) {
        /* We were here before, and the peer has not read all of it yet. */
        peer_retire(peer);
        if (peer->left_door)
            return;
    }
    if (!peer->stale || !lane_create(peer))
        return;
    peer->out_door = door_claim(peer);
    if (!peer->out_door)
        return;
    memset(peer->stale, 0, ring_stale_words(shm.lane_lines) * sizeof(*peer->stale));
    ring_sender_init(&peer->out, peer->out_lane->lines, shm.lane_lines, &peer->out_lane->feedback,
                     peer->stale);
    peer->length_max = ring_length_max(shm.lane_lines);
    peer->controls_taken = 0;
    door_write(peer, peer->out_door);
    peer->out_state = OUT_OPEN;
    peer->out_direct = opal_list_is_empty(&peer->pending);
    door_bell_ring(peer);
}

/* What waits gets some time to find room; at the very end as long as somebody may want it. A peer
 * that is in its finalize too does not. */
static void pending_drain(shm_peer_t *peer)
{
    for (int tries = 0; (shm.finalized ? peer_reads(peer) : tries < 1000) &&
                        (peer->out_state == OUT_OPEN || peer->out_state == OUT_WAITING) &&
                        !peer->out_unusable && !opal_list_is_empty(&peer->pending);
         tries++) {
        if (send_pending() == 0)
            usleep(100);
    }
}

/* Under peer->lock. The lane stays as it is until the peer has read the last message. */
void door_leave(shm_peer_t *peer)
{
    uint32_t expected = DOOR_OPEN;

    peer->out_direct = false;
    if (!peer->out_door)
        return;
    /* Release: the last message is in the ring. A door that was refused stays so. */
    if (atomic_compare_exchange_strong_explicit(&peer->out_door->state, &expected, DOOR_CLOSED,
                                                memory_order_release, memory_order_relaxed))
        door_bell_ring(peer);
    peer->left_door = peer->out_door;
    peer->left_lane = peer->out_lane;
    peer->out_door = NULL;
    peer->out_lane = NULL;
}

void door_close_out(shm_peer_t *peer)
{
    pending_drain(peer);
    OPAL_THREAD_LOCK(&peer->lock);
    /* Else it goes on: the sweep closes it, or the end does. */
    if (shm.finalized || opal_list_is_empty(&peer->pending)) {
        door_leave(peer);
        if (peer->out_state == OUT_OPEN || peer->out_state == OUT_WAITING)
            peer->out_state = OUT_NONE;
    }
    OPAL_THREAD_UNLOCK(&peer->lock);
}

/* --- the way in: a visitor at our door --- */

void door_close_in(shm_peer_t *peer)
{
    struct door *door = atomic_load_explicit(&peer->in_door, memory_order_relaxed);

    receive_forget(peer);
    if (peer->in_lane)
        segment_unmap(peer->in_lane, peer->in_bytes);
    peer->in_lane = NULL;
    atomic_store_explicit(&peer->in_open, false, memory_order_release);
    atomic_store_explicit(&peer->in_left, peer->in_closing, memory_order_relaxed);
    atomic_store_explicit(&peer->in_door, NULL, memory_order_release);
    peer->in_closing = false;
    if (door) {
        *peer->in_door_peer = NULL;
        /* Release: nothing of the door is read after this (door_claim). */
        atomic_store_explicit(&door->state, DOOR_FREE, memory_order_release);
    }
}

/* Why the visitor cannot be let in, or NULL. *error is 0, or the system's reason. */
static const char *visitor_map(shm_peer_t *peer, const struct door *door, int *error)
{
    int descriptor;

    *error = 0;

    if (in_is_open(peer))
        return "it has a ring already";
    if (!ring_lines_valid(door->lines) || door->lane % SEGMENT_ALIGN != 0 || door->pid <= 0)
        return "what it says of its ring cannot be";
    descriptor = segment_open(door->pid, door->fd, &door->nonce);
    if (descriptor >= 0) {
        peer->in_bytes = lane_bytes(door->lines);
        peer->in_lane = segment_map(descriptor, door->lane, peer->in_bytes);
        *error = !peer->in_lane ? errno : 0;
        close(descriptor);
    } else {
        *error = errno;
    }
    return *error == 0 ? NULL : strerror(*error);
}

static void visitor_refuse(struct door *door, const opal_process_name_t *name, const char *why)
{
    SHM_SAY("process %s cannot be let in by process %s: %s", OPAL_NAME_PRINT(*name),
            OPAL_NAME_PRINT(OPAL_PROC_MY_NAME), why);
    atomic_store_explicit(&door->state, DOOR_REFUSED, memory_order_release);
}

/* Our own bell, to look at that door again in the next round. */
static void bell_ring_again(struct segment *segment, uint32_t index)
{
    index %= SEGMENT_BELLS * 64;
    atomic_fetch_or_explicit(&segment->header->bells[index / 64], UINT64_C(1) << index % 64,
                             memory_order_relaxed);
}

static void visitor_accept(struct segment *segment, uint32_t index)
{
    /* A copy: the visitor could write on while we check. */
    struct door *door = &segment->doors[index];
    struct door seen = {.jobid = door->jobid,
                        .vpid = door->vpid,
                        .pid = door->pid,
                        .fd = door->fd,
                        .lines = door->lines,
                        .lane = door->lane,
                        .nonce = door->nonce};
    opal_process_name_t name = {.jobid = seen.jobid, .vpid = seen.vpid};
    shm_peer_t *peer = peer_find(&name);
    const char *why;
    int error = 0;

    if (!peer)
        peer = peer_create(&name);
    why = !peer ? "out of memory" : visitor_map(peer, &seen, &error);
    if (is_shortage(error)) {
        shortage_say(peer, error);
        bell_ring_again(segment, index);
        return;
    }
    if (why) {
        visitor_refuse(door, &name, why);
        return;
    }
    /* Relaxed: the mapping is the kernel's, and nothing else hangs on the word (peer_awaits). */
    atomic_store_explicit(&peer->in_lane->is_mapped, 1, memory_order_relaxed);
    ring_receiver_init(&peer->in, peer->in_lane->lines, seen.lines, &peer->in_lane->feedback);
    atomic_store_explicit(&peer->in_door, door, memory_order_release);
    peer->in_door_peer = &shm.door_peers[segment->kind][index];
    *peer->in_door_peer = peer;
    peer->in_kind = segment->kind;
    atomic_store_explicit(&peer->in_left, false, memory_order_relaxed);
    atomic_store_explicit(&peer->in_open, true, memory_order_release);
    receive_attend(peer);
}

/* The peer at this door, if it may have sent something. */
static shm_peer_t *door_look(struct segment *segment, uint32_t index)
{
    /* Acquire: what the visitor wrote before it opened or closed (door_write, door_close_out). */
    uint32_t state = atomic_load_explicit(&segment->doors[index].state, memory_order_acquire);
    shm_peer_t *peer = shm.door_peers[segment->kind][index];

    if (!peer && (state == DOOR_OPEN || state == DOOR_CLOSED)) {
        visitor_accept(segment, index);
        peer = shm.door_peers[segment->kind][index];
    }
    if (peer) {
        if (state == DOOR_CLOSED)
            peer->in_closing = true;
        receive_attend(peer);
    }
    return peer;
}

void door_bell_ring_own(shm_peer_t *peer)
{
    struct segment *segment = &shm.segments[peer->in_kind];
    struct door *door = atomic_load_explicit(&peer->in_door, memory_order_relaxed);

    if (!door)
        return; /* it has left meanwhile */
    bell_ring_again(segment, (uint32_t) (door - segment->doors));
}

bool door_rang(void)
{
    for (int kind = 0; kind < SEGMENT_KINDS; kind++) {
        uint64_t any = 0;

        if (!segment_is_live(kind))
            continue;
        for (unsigned i = 0; i < shm.segments[kind].bell_words; i++)
            any |= atomic_load_explicit(&shm.segments[kind].header->bells[i], memory_order_relaxed);
        if (any != 0)
            return true;
    }
    return false;
}

#define ANSWER_BATCH 32u

/* Visitors found behind bells, to be heard when no lock is held. */
struct visitors {
    shm_peer_t *peers[ANSWER_BATCH];
    uint32_t count;
};

static void bell_answer(struct segment *segment, unsigned word, struct visitors *visitors)
{
    /* Acquire: the partner is door_bell_ring. */
    uint64_t bits =
        atomic_exchange_explicit(&segment->header->bells[word], 0, memory_order_acquire);
    uint64_t later = 0;

    for (; bits != 0; bits &= bits - 1) {
        unsigned bit = (unsigned) __builtin_ctzll(bits);
        uint32_t index = word * 64 + bit;

        for (; index < segment->door_count; index += SEGMENT_BELLS * 64) {
            if (visitors->count < ANSWER_BATCH) {
                shm_peer_t *peer = door_look(segment, index);

                if (peer)
                    visitors->peers[visitors->count++] = peer;
            } else {
                later |= UINT64_C(1) << bit;
            }
        }
    }
    if (later != 0)
        atomic_fetch_or_explicit(&segment->header->bells[word], later, memory_order_relaxed);
}

int door_answer(void)
{
    struct visitors visitors = {.count = 0};
    int events = 0;

    OPAL_THREAD_LOCK(&shm.lock);
    for (int kind = 0; kind < SEGMENT_KINDS; kind++)
        for (unsigned word = 0; segment_is_live(kind) && word < shm.segments[kind].bell_words;
             word++)
            if (atomic_load_explicit(&shm.segments[kind].header->bells[word],
                                     memory_order_relaxed) != 0)
                bell_answer(&shm.segments[kind], word, &visitors);
    OPAL_THREAD_UNLOCK(&shm.lock);
    for (uint32_t i = 0; i < visitors.count; i++)
        events += receive_told(visitors.peers[i]);
    return events;
}
