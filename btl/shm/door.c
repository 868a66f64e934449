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

/* Whether our segment of that kind is complete; the release is in shm_segment_ready. */
static bool segment_is_live(int kind)
{
    return atomic_load_explicit(&shm.segment_live[kind], memory_order_acquire);
}

static const char *const kind_names[SEGMENT_KINDS] = {"anonymous memory", "a file in /dev/shm"};

bool shm_segment_ready(enum segment_kind kind)
{
    struct segment *segment = &shm.segments[kind];
    const char *failed;
    int error;

    if (segment->fd >= 0)
        return true;
    error = shm_segment_create(segment, kind,
                               kind == SEGMENT_FILE ? &shm.record.file : &shm.record.memfd,
                               shm.connection_count, shm.channel_count, shm.channel_lines, &failed);
    if (error == 0 && kind == SEGMENT_FILE)
        (void) modex_remove_at_exit(segment->path);
    if (error == 0) {
        shm.connection_peers[kind] =
            calloc(shm.connection_count, sizeof(shm.connection_peers[kind][0]));
        if (shm.connection_peers[kind]) {
            atomic_store_explicit(&shm.segment_live[kind], true, memory_order_release);
            return true;
        }
        shm_segment_destroy(segment);
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

static bool peer_segment_open(shm_peer_t *peer)
{
    bool file = peer->kind == SEGMENT_FILE;

    if (peer->segment)
        return true;
    peer->segment_fd = shm_segment_open(peer->record.pid, file ? -1 : peer->record.fd,
                                        file ? &peer->record.file : &peer->record.memfd);
    if (peer->segment_fd < 0)
        return false;
    peer->segment =
        shm_segment_map_header(peer->segment_fd, &peer->segment_bytes, &peer->segment_connections);
    if (peer->segment)
        return true;
    close(peer->segment_fd);
    peer->segment_fd = -1;
    return false;
}

static struct connection *connection_claim(shm_peer_t *peer)
{
    uint32_t count = peer->segment_connections;
    struct connection *connections = shm_segment_connections(peer->segment);
    uint32_t first = (uint32_t) opal_process_info.my_local_rank;

    for (uint32_t n = 0; n < count; n++) {
        struct connection *connection = &connections[(first + n) % count];
        uint32_t expected = CONNECTION_FREE;

        /* Acquire: the owner has done with the visitor before (shm_accept_end). */
        if (atomic_compare_exchange_strong_explicit(&connection->state, &expected,
                                                    CONNECTION_CLAIMED, memory_order_acquire,
                                                    memory_order_relaxed)) {
            uint32_t index = (first + n) % count % (SEGMENT_DOORBELLS * 64);

            peer->doorbell = &peer->segment->doorbells[index / 64];
            peer->doorbell_bit = index % 64;
            return connection;
        }
    }
    return NULL;
}

void shm_doorbell_ring(shm_peer_t *peer)
{
    /* Release: what was written before, door or message, is seen by who takes the bell down. */
    atomic_fetch_or_explicit(peer->doorbell, UINT64_C(1) << peer->doorbell_bit,
                             memory_order_release);
}

static void connection_write(shm_peer_t *peer, struct connection *connection)
{
    struct segment *segment = peer->out_segment;
    const opal_process_name_t *own = &opal_proc_local_get()->proc_name;

    connection->jobid = own->jobid;
    connection->vpid = own->vpid;
    connection->pid = shm.record.pid;
    connection->fd = segment->kind == SEGMENT_FILE ? -1 : segment->fd;
    connection->lines = segment->channel_lines;
    connection->channel = shm_segment_channel_offset(segment, peer->out_channel);
    connection->nonce = segment->nonce;
    /* Release: pairs with the owner's acquire in connection_look. */
    atomic_store_explicit(&connection->state, CONNECTION_OPEN, memory_order_release);
}

/* Whether the peer said, as the last thing, that it sends no more: it may have been heard or not.
 */
static bool sender_has_left(const shm_peer_t *peer)
{
    const struct connection *connection =
        atomic_load_explicit(&peer->in_connection, memory_order_acquire);

    return (connection &&
            atomic_load_explicit(&connection->state, memory_order_acquire) == CONNECTION_CLOSED) ||
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
static void segment_missing(shm_peer_t *peer, int error)
{
    bool in_vain;

    peer->out_state = OUT_WAITING;
    if (is_shortage(error))
        shortage_say(peer, error);
    if (peer->waiting_since_s == 0)
        peer->waiting_since_s = now_s();
    in_vain = (peer->kind == SEGMENT_MEMFD && !is_shortage(error)) ||
              now_s() - peer->waiting_since_s > FILE_WAIT_S;
    if (in_vain && sender_has_left(peer)) {
        peer->gone = true;
        peer->out_state = OUT_DEAD;
    } else if (in_vain) {
        SHM_SAY("the memory of process %s (%s) cannot be opened: %s.", OPAL_NAME_PRINT(peer->name),
                kind_names[peer->kind], strerror(error));
        peer->out_unusable = true;
    }
}

static bool channel_create(shm_peer_t *peer)
{
    if (peer->out_channel)
        return true;
    opal_mutex_lock(&shm.channel_lock);
    if (shm_segment_ready(peer->kind)) {
        peer->out_segment = &shm.segments[peer->kind];
        peer->out_channel = shm_segment_channel_get(peer->out_segment, peer->record.node);
    }
    opal_mutex_unlock(&shm.channel_lock);
    if (!peer->out_channel) {
        SHM_SAY("no memory for a ring of %zu bytes to process %s: %s. A smaller btl_shm_ring_bytes "
                "or a larger btl_shm_memory_max may help.",
                channel_bytes(shm.channel_lines), OPAL_NAME_PRINT(peer->name), strerror(errno));
        peer->out_unusable = true;
        return false;
    }
    return true;
}

void shm_outbound_open(shm_peer_t *peer)
{
    if (peer->out_state >= OUT_OPEN || peer->out_unusable || !peer->known)
        return;
    peer->out_state = OUT_WAITING;
    if (!peer_segment_open(peer)) {
        segment_missing(peer, errno);
        return;
    }
    peer->waiting_since_s = 0;
    if (!peer->stale)
        peer->stale = calloc(ring_stale_words(shm.channel_lines), sizeof(*peer->stale));
    if (peer->left_connection) {
        /* We were here before, and the peer has not read all of it yet. */
        shm_outbound_retire(peer);
        if (peer->left_connection)
            return;
    }
    if (!peer->stale || !channel_create(peer))
        return;
    peer->out_connection = connection_claim(peer);
    if (!peer->out_connection)
        return;
    memset(peer->stale, 0, ring_stale_words(shm.channel_lines) * sizeof(*peer->stale));
    ring_sender_init(&peer->out, peer->out_channel->lines, shm.channel_lines,
                     &peer->out_channel->feedback, peer->stale);
    peer->length_max = ring_length_max(shm.channel_lines);
    peer->controls_taken = 0;
    connection_write(peer, peer->out_connection);
    peer->out_state = OUT_OPEN;
    peer->out_direct = opal_list_is_empty(&peer->pending);
    shm_doorbell_ring(peer);
}

/* What waits gets some time to find room; at the very end as long as somebody may want it. A peer
 * that is in its finalize too does not. */
static void pending_drain(shm_peer_t *peer)
{
    for (int tries = 0; (shm.finalized ? shm_peer_reads(peer) : tries < 1000) &&
                        (peer->out_state == OUT_OPEN || peer->out_state == OUT_WAITING) &&
                        !peer->out_unusable && !opal_list_is_empty(&peer->pending);
         tries++) {
        if (shm_send_pending() == 0)
            usleep(100);
    }
}

/* Under peer->lock. The lane stays as it is until the peer has read the last message. */
void shm_outbound_leave(shm_peer_t *peer)
{
    uint32_t expected = CONNECTION_OPEN;

    peer->out_direct = false;
    if (!peer->out_connection)
        return;
    /* Release: the last message is in the ring. A door that was refused stays so. */
    if (atomic_compare_exchange_strong_explicit(&peer->out_connection->state, &expected,
                                                CONNECTION_CLOSED, memory_order_release,
                                                memory_order_relaxed))
        shm_doorbell_ring(peer);
    peer->left_connection = peer->out_connection;
    peer->left_channel = peer->out_channel;
    peer->out_connection = NULL;
    peer->out_channel = NULL;
}

void shm_outbound_close(shm_peer_t *peer)
{
    pending_drain(peer);
    OPAL_THREAD_LOCK(&peer->lock);
    /* Else it goes on: the sweep closes it, or the end does. */
    if (shm.finalized || opal_list_is_empty(&peer->pending)) {
        shm_outbound_leave(peer);
        if (peer->out_state == OUT_OPEN || peer->out_state == OUT_WAITING)
            peer->out_state = OUT_NONE;
    }
    OPAL_THREAD_UNLOCK(&peer->lock);
}

/* --- the way in: a visitor at our door --- */

void shm_accept_end(shm_peer_t *peer)
{
    struct connection *connection =
        atomic_load_explicit(&peer->in_connection, memory_order_relaxed);

    shm_receive_forget(peer);
    if (peer->in_channel)
        shm_segment_unmap(peer->in_channel, peer->in_bytes);
    peer->in_channel = NULL;
    atomic_store_explicit(&peer->in_open, false, memory_order_release);
    atomic_store_explicit(&peer->in_left, peer->in_closing, memory_order_relaxed);
    atomic_store_explicit(&peer->in_connection, NULL, memory_order_release);
    peer->in_closing = false;
    if (connection) {
        *peer->in_connection_peer = NULL;
        /* Release: nothing of the door is read after this (connection_claim). */
        atomic_store_explicit(&connection->state, CONNECTION_FREE, memory_order_release);
    }
}

/* Why the visitor cannot be let in, or NULL. *error is 0, or the system's reason. */
static const char *sender_map(shm_peer_t *peer, const struct connection *connection, int *error)
{
    int descriptor;

    *error = 0;

    if (in_is_open(peer))
        return "it has a ring already";
    if (!ring_lines_valid(connection->lines) || connection->channel % SEGMENT_ALIGN != 0 ||
        connection->pid <= 0)
        return "what it says of its ring cannot be";
    descriptor = shm_segment_open(connection->pid, connection->fd, &connection->nonce);
    if (descriptor >= 0) {
        peer->in_bytes = channel_bytes(connection->lines);
        peer->in_channel = shm_segment_map(descriptor, connection->channel, peer->in_bytes);
        *error = !peer->in_channel ? errno : 0;
        close(descriptor);
    } else {
        *error = errno;
    }
    return *error == 0 ? NULL : strerror(*error);
}

static void sender_refuse(struct connection *connection, const opal_process_name_t *name,
                          const char *why)
{
    SHM_SAY("process %s cannot be let in by process %s: %s", OPAL_NAME_PRINT(*name),
            OPAL_NAME_PRINT(OPAL_PROC_MY_NAME), why);
    atomic_store_explicit(&connection->state, CONNECTION_REFUSED, memory_order_release);
}

/* Our own bell, to look at that door again in the next round. */
static void doorbell_ring_again(struct segment *segment, uint32_t index)
{
    index %= SEGMENT_DOORBELLS * 64;
    atomic_fetch_or_explicit(&segment->header->doorbells[index / 64], UINT64_C(1) << index % 64,
                             memory_order_relaxed);
}

static void sender_accept(struct segment *segment, uint32_t index)
{
    /* A copy: the visitor could write on while we check. */
    struct connection *connection = &segment->connections[index];
    struct connection seen = {.jobid = connection->jobid,
                              .vpid = connection->vpid,
                              .pid = connection->pid,
                              .fd = connection->fd,
                              .lines = connection->lines,
                              .channel = connection->channel,
                              .nonce = connection->nonce};
    opal_process_name_t name = {.jobid = seen.jobid, .vpid = seen.vpid};
    shm_peer_t *peer = shm_peer_find(&name);
    const char *why;
    int error = 0;

    if (!peer)
        peer = shm_peer_create(&name);
    why = !peer ? "out of memory" : sender_map(peer, &seen, &error);
    if (is_shortage(error)) {
        shortage_say(peer, error);
        doorbell_ring_again(segment, index);
        return;
    }
    if (why) {
        sender_refuse(connection, &name, why);
        return;
    }
    /* Relaxed: the mapping is the kernel's, and nothing else hangs on the word (peer_awaits). */
    atomic_store_explicit(&peer->in_channel->is_mapped, 1, memory_order_relaxed);
    ring_receiver_init(&peer->in, peer->in_channel->lines, seen.lines, &peer->in_channel->feedback);
    atomic_store_explicit(&peer->in_connection, connection, memory_order_release);
    peer->in_connection_peer = &shm.connection_peers[segment->kind][index];
    *peer->in_connection_peer = peer;
    peer->in_kind = segment->kind;
    atomic_store_explicit(&peer->in_left, false, memory_order_relaxed);
    atomic_store_explicit(&peer->in_open, true, memory_order_release);
    shm_receive_attend(peer);
}

/* The peer at this connection, if it may have sent something. */
static shm_peer_t *connection_look(struct segment *segment, uint32_t index)
{
    /* Acquire: what the visitor wrote before it opened or closed (connection_write,
     * shm_outbound_close). */
    uint32_t state = atomic_load_explicit(&segment->connections[index].state, memory_order_acquire);
    shm_peer_t *peer = shm.connection_peers[segment->kind][index];

    if (!peer && (state == CONNECTION_OPEN || state == CONNECTION_CLOSED)) {
        sender_accept(segment, index);
        peer = shm.connection_peers[segment->kind][index];
    }
    if (peer) {
        if (state == CONNECTION_CLOSED)
            peer->in_closing = true;
        shm_receive_attend(peer);
    }
    return peer;
}

void shm_doorbell_ring_own(shm_peer_t *peer)
{
    struct segment *segment = &shm.segments[peer->in_kind];
    struct connection *connection =
        atomic_load_explicit(&peer->in_connection, memory_order_relaxed);

    if (!connection)
        return; /* it has left meanwhile */
    doorbell_ring_again(segment, (uint32_t) (connection - segment->connections));
}

bool shm_doorbell_rang(void)
{
    for (int kind = 0; kind < SEGMENT_KINDS; kind++) {
        uint64_t any = 0;

        if (!segment_is_live(kind))
            continue;
        for (unsigned i = 0; i < shm.segments[kind].doorbell_words; i++)
            any |= atomic_load_explicit(&shm.segments[kind].header->doorbells[i],
                                        memory_order_relaxed);
        if (any != 0)
            return true;
    }
    return false;
}

#define ANSWER_BATCH 32u

/* Visitors found behind doorbells, to be heard when no lock is held. */
struct senders {
    shm_peer_t *peers[ANSWER_BATCH];
    uint32_t count;
};

static void doorbell_answer(struct segment *segment, unsigned word, struct senders *senders)
{
    /* Acquire: the partner is shm_doorbell_ring. */
    uint64_t bits =
        atomic_exchange_explicit(&segment->header->doorbells[word], 0, memory_order_acquire);
    uint64_t later = 0;

    for (; bits != 0; bits &= bits - 1) {
        unsigned bit = (unsigned) __builtin_ctzll(bits);
        uint32_t index = word * 64 + bit;

        for (; index < segment->connection_count; index += SEGMENT_DOORBELLS * 64) {
            if (senders->count < ANSWER_BATCH) {
                shm_peer_t *peer = connection_look(segment, index);

                if (peer)
                    senders->peers[senders->count++] = peer;
            } else {
                later |= UINT64_C(1) << bit;
            }
        }
    }
    if (later != 0)
        atomic_fetch_or_explicit(&segment->header->doorbells[word], later, memory_order_relaxed);
}

int shm_doorbell_answer(void)
{
    struct senders senders = {.count = 0};
    int events = 0;

    OPAL_THREAD_LOCK(&shm.lock);
    for (int kind = 0; kind < SEGMENT_KINDS; kind++)
        for (unsigned word = 0; segment_is_live(kind) && word < shm.segments[kind].doorbell_words;
             word++)
            if (atomic_load_explicit(&shm.segments[kind].header->doorbells[word],
                                     memory_order_relaxed) != 0)
                doorbell_answer(&shm.segments[kind], word, &senders);
    OPAL_THREAD_UNLOCK(&shm.lock);
    for (uint32_t i = 0; i < senders.count; i++)
        events += shm_receive_told(senders.peers[i]);
    return events;
}
