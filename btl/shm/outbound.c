/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection that this process sends by: it takes an entry in the segment of the peer and
 * writes there where its ring is. */
#include "btl/shm/shm.h"
#include "common/lock/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "opal/util/proc.h"

/* So long a peer may take to make its file. */
#define FILE_WAIT_MS 60000u
/* So long a shortage of descriptors may last. */
#define SHORTAGE_WAIT_MS 10000u

/* The first entry to try. Processes of one job do not meet there. */
static uint32_t connection_first(const shm_peer_t *peer)
{
    uint32_t count = peer->segment_connections;
    uint32_t home = count > OTHER_JOBS_CONNECTIONS ? count - OTHER_JOBS_CONNECTIONS : 0;
    bool same_job = peer->name.jobid == opal_proc_local_get()->proc_name.jobid;

    return ((same_job ? 0 : home) + (uint32_t) opal_process_info.my_local_rank) % count;
}

/* Opens the peer's segment, and maps it if that was not done before: a descriptor, or -1 and errno.
 */
static int peer_segment_open(shm_peer_t *peer)
{
    bool file = peer->kind == SEGMENT_FILE;
    int descriptor = peer->segment_fd;

    if (descriptor < 0)
        descriptor = shm_segment_open(peer->record.pid, file ? -1 : peer->record.fd,
                                      file ? &peer->record.file : &peer->record.memfd);
    if (descriptor < 0 || peer->segment)
        return descriptor;
    peer->segment =
        shm_segment_map_header(descriptor, &peer->segment_bytes, &peer->segment_connections);
    if (!peer->segment) {
        int error = errno;
        close(descriptor);
        errno = error;
        return -1;
    }
    /* While the descriptor is there. A failure shows again in connection_claim. */
    peer->out_reserved = shm_segment_reserve(descriptor, connection_first(peer), 1) == 0;
    if (file)
        peer->segment_fd = descriptor;
    else
        shm_segment_identify(descriptor, &peer->segment_identity);
    return descriptor;
}

/* The peer has a part of the job's memory: it is mapped, and all its entries have memory. */
static bool peer_part_find(shm_peer_t *peer)
{
    if (!peer->segment && peer->kind == SEGMENT_MEMFD) {
        peer->segment = shm_segment_part(&shm.segments[SEGMENT_JOB], peer->record.job_part,
                                         &peer->record.memfd);
        peer->segment_bytes = 0;
        peer->segment_connections = shm.segments[SEGMENT_JOB].connection_count;
        peer->out_reserved = peer->segment != NULL;
    }
    return peer->segment && peer->segment_bytes == 0;
}

void shm_peer_segment_close(shm_peer_t *peer)
{
    if (peer->segment && peer->segment_bytes > 0)
        munmap(peer->segment, peer->segment_bytes);
    if (peer->segment_fd >= 0)
        close(peer->segment_fd);
    peer->segment = NULL;
    peer->segment_fd = -1;
    peer->out_reserved = false;
}

/* The owner looks no further than this. */
static void connection_end_raise(struct segment_header *header, uint32_t end)
{
    uint32_t seen = atomic_load_explicit(&header->connection_end, memory_order_relaxed);

    /* Relaxed: the doorbell that follows makes it visible. */
    while (seen < end &&
           !atomic_compare_exchange_weak_explicit(&header->connection_end, &seen, end,
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
}

static bool connection_take(shm_peer_t *peer, uint32_t index)
{
    struct connection *connection = &shm_segment_connections(peer->segment)[index];
    uint32_t expected = CONNECTION_FREE;

    /* Acquire: the owner has finished with the sender before (shm_accept_end). */
    if (!atomic_compare_exchange_strong_explicit(&connection->state, &expected, CONNECTION_CLAIMED,
                                                 memory_order_acquire, memory_order_relaxed))
        return false;
    peer->out_connection = connection;
    connection_end_raise(peer->segment, index + 1);
    index %= SEGMENT_DOORBELLS * 64;
    peer->doorbell = &peer->segment->doorbells[index / 64];
    peer->doorbell_bit = index % 64;
    return true;
}

#define RESERVE_AHEAD 16u

/* Takes a free entry, whose memory is reserved first, where there is a descriptor: 0, EAGAIN if
 * there is none, or an errno. */
static int connection_claim(shm_peer_t *peer, int descriptor)
{
    uint32_t count = peer->segment_connections, index = connection_first(peer), ready = 0;

    for (uint32_t n = 0; n < count; n++, ready--) {
        if (ready == 0) {
            ready = n == 0 ? 1 : count - index < RESERVE_AHEAD ? count - index : RESERVE_AHEAD;
            int error = descriptor < 0 ? 0 : shm_segment_reserve(descriptor, index, ready);
            if (error != 0)
                return error;
        }
        if (connection_take(peer, index))
            return 0;
        index = (index + 1) % count;
    }
    return EAGAIN;
}

/* The small ring is in use from here on. It is cleared. */
static void ring_begin_small(shm_peer_t *peer)
{
    struct connection *connection = peer->out_connection;

    peer->out_channel = NULL;
    peer->out_lines = CONNECTION_LINES;
    peer->small_stale = 0;
    peer->stale = &peer->small_stale;
    ring_sender_init(&peer->out, connection->lines, CONNECTION_LINES, &connection->feedback,
                     peer->stale);
}

static void ring_begin_channel(shm_peer_t *peer, struct channel *channel, uint32_t lines,
                               uint64_t *stale)
{
    peer->out_channel = channel;
    peer->out_lines = lines;
    peer->stale = stale;
    ring_sender_init(&peer->out, channel->lines, lines, &channel->feedback, stale);
}

/* A ring that no message finds full is not worth a larger one before it was used so many times
 * over. Each has four times as much as the one before: 1 MiB takes both ends 0.7 ms together, and
 * saves up to 70 us for each MiB; 4 MiB take 2.7 ms, and save a fifth of what messages of 1 MiB
 * both ways at once take. The first, of 256 KiB, is for peers that are sent more than a few
 * messages. */
#define USED_LAPS       64u
#define SMALL_USED_LAPS 256u

static uint64_t used_laps(const shm_peer_t *peer)
{
    return peer->out_lines < shm.ring_lines_usual ? SMALL_USED_LAPS : USED_LAPS;
}

/* One that is full so often, each time within so many laps, holds its sender up. Where processes
 * share processors, a ring is full as well when its reader has had no turn, and larger rings for
 * all peers cost more than some messages gain. */
#define FULL_AGAIN_LAPS 2u
#define FULL_OFTEN      32u

static void ring_limit(shm_peer_t *peer)
{
    peer->length_max = ring_length_max(peer->out_lines);
    peer->out_head_seen = 0;
    peer->out_seen_ms = 0;
    peer->out_head_full = 0;
    peer->out_full_times = 0;
    if (peer->out_lines < shm.ring_lines_max)
        peer->out.limit = used_laps(peer) * peer->out_lines;
}

static void connection_write(shm_peer_t *peer)
{
    struct connection *connection = peer->out_connection;
    const struct segment *segment = &shm.segments[peer->kind];
    const opal_process_name_t *own = &opal_proc_local_get()->proc_name;

    connection->jobid = own->jobid;
    connection->vpid = own->vpid;
    connection->pid = shm.record.pid;
    connection->fd = segment->kind == SEGMENT_FILE ? -1 : segment->fd;
    connection->nonce = segment->nonce;
    peer->out_ring = 0;
    peer->controls_taken = 0;
    atomic_store_explicit(&connection->move.announced, 0, memory_order_relaxed);
    atomic_store_explicit(&connection->move.taken, 0, memory_order_relaxed);
    atomic_store_explicit(&connection->move.refused, 0, memory_order_relaxed);
    /* Release: pairs with the owner's acquire in connection_look. */
    atomic_store_explicit(&connection->state, CONNECTION_OPEN, memory_order_release);
}

static size_t published_find(shm_peer_t *peer, void *record, size_t room)
{
    if (!peer->known || peer->out_state == OUT_DEAD || peer->out_unusable)
        return 0;
    if (!peer_part_find(peer) && !peer->segment) {
        int descriptor = peer_segment_open(peer);

        if (descriptor < 0)
            return 0;
        if (descriptor != peer->segment_fd)
            close(descriptor);
    }
    /* Acquire: pairs with shm_own_publish. */
    uint32_t length = atomic_load_explicit(&peer->segment->published_bytes, memory_order_acquire);
    if (length == 0 || length > MULTILANE_PUBLISHED_BYTES || length > room)
        return 0;
    memcpy(record, peer->segment->published, length);
    return length;
}

size_t shm_outbound_published(mca_btl_base_module_t *btl, shm_peer_t *peer, void *record,
                              size_t room)
{
    biased_lock(&peer->lock);
    size_t length = published_find(peer, record, room);
    biased_unlock(&peer->lock);
    return length;
}

/* Whether the last that the peer did was to close its own connection to us, accepted here or not.
 */
static bool peer_has_left(const shm_peer_t *peer)
{
    const struct connection *connection =
        atomic_load_explicit(&peer->in_connection, memory_order_acquire);

    return (connection &&
            atomic_load_explicit(&connection->state, memory_order_acquire) == CONNECTION_CLOSED) ||
           atomic_load_explicit(&peer->in_left, memory_order_relaxed);
}

static bool is_shortage(const shm_peer_t *peer, int error)
{
    if (!shm_segment_error_passes(error))
        return false;
    SAY_ONCE(SHM_SAY,
             "the memory of process %s cannot be opened now: %s. It is tried again; a higher "
             "limit (ulimit -n) helps.",
             OPAL_NAME_PRINT(peer->name), strerror(error));
    return true;
}

/* Since the system started; goes round after 49 days, as differences may. Never 0. */
static uint32_t now_ms(void)
{
    uint32_t ms = (uint32_t) clock_coarse_ms();

    return ms != 0 ? ms : 1;
}

/* The peer's segment does not open. A file may appear later; a descriptor does not, except after a
 * shortage here. A peer that has left us before has ended. */
static void segment_missing(shm_peer_t *peer, int error)
{
    bool is_short = is_shortage(peer, error), in_vain;

    peer->out_state = OUT_WAITING;
    if (peer->waiting_since_ms == 0)
        peer->waiting_since_ms = now_ms();
    /* A file that is there and closed to this user, as one of a container with other user numbers,
     * will not open later. */
    in_vain = (peer->kind == SEGMENT_MEMFD && !is_short) || error == EACCES || error == EPERM ||
              now_ms() - peer->waiting_since_ms > (is_short ? SHORTAGE_WAIT_MS : FILE_WAIT_MS);
    if (in_vain && peer_has_left(peer)) {
        peer->gone = true;
        peer->out_state = OUT_DEAD;
    } else if (in_vain) {
        SHM_SAY("the memory of process %s (%s) cannot be opened: %s.", OPAL_NAME_PRINT(peer->name),
                shm_segment_kind_name(peer->kind), shm_segment_open_error(error));
        peer->out_unusable = true;
    }
}

/* Gives back the channel that was used before, if the peer does not read it any more. */
static void old_channel_put(shm_peer_t *peer)
{
    if (!peer->old_channel || !ring_move_done(&peer->out_connection->move, peer->out_ring))
        return;
    shm_own_channel_put(peer->kind, peer->old_channel, peer->old_lines);
    peer->old_channel = NULL;
}

static void channels_put(shm_peer_t *peer)
{
    if (peer->old_channel)
        shm_own_channel_put(peer->kind, peer->old_channel, peer->old_lines);
    if (peer->out_channel)
        shm_own_channel_put(peer->kind, peer->out_channel, peer->out_lines);
    peer->old_channel = peer->out_channel = NULL;
    if (peer->stale != &peer->small_stale)
        free(peer->stale);
    peer->stale = &peer->small_stale;
}

bool shm_outbound_is_read(const shm_peer_t *peer)
{
    return !peer->out_connection || ring_move_done(&peer->out_connection->move, peer->out_ring);
}

bool shm_outbound_is_settled(shm_peer_t *peer)
{
    return opal_list_is_empty(&peer->pending) && shm_outbound_is_read(peer);
}

void shm_outbound_retire(shm_peer_t *peer)
{
    if (peer->left_connection) {
        bool read = atomic_load_explicit(&peer->left_connection->state, memory_order_acquire) !=
                    CONNECTION_CLOSED;

        if (!read && !shm_peer_finalized(peer) && shm_peer_owner_lives(peer))
            return;
        channels_put(peer);
        peer->left_connection = NULL;
    }
    if ((peer->known && !peer->gone) || peer->out_connection)
        return;
    if (!in_is_open(peer))
        shm_peer_segment_close(peer);
}

void shm_outbound_open(shm_peer_t *peer)
{
    /* The end of the module waits for messages to processes that were taken back before. */
    if (peer->out_state >= OUT_OPEN || peer->out_unusable || (!peer->known && !shm.finalized))
        return;
    peer->out_state = OUT_WAITING;
    if (peer->left_connection)
        /* An earlier connection, which the peer may not have read to its end. */
        shm_outbound_retire(peer);
    if (peer->left_connection)
        return;
    int error = 0;
    bool is_part = peer_part_find(peer);
    if (!peer->out_reserved || !connection_take(peer, connection_first(peer))) {
        int descriptor = is_part ? -1 : peer_segment_open(peer);
        if (descriptor < 0 && !is_part) {
            segment_missing(peer, errno);
            return;
        }
        error = connection_claim(peer, descriptor);
        if (descriptor >= 0 && descriptor != peer->segment_fd)
            close(descriptor);
    }
    peer->waiting_since_ms = 0;
    if (error != 0 && error != EAGAIN) {
        SHM_SAY("no memory (%s) for messages to process %s: %s.%s",
                shm_segment_kind_name(peer->kind), OPAL_NAME_PRINT(peer->name), strerror(error),
                peer->kind == SEGMENT_FILE ? " A larger /dev/shm helps." : "");
        peer->out_unusable = true;
    }
    if (error != 0)
        return;
    shm_connection_clear(peer->out_connection);
    ring_begin_small(peer);
    ring_limit(peer);
    connection_write(peer);
    peer->out_state = OUT_OPEN;
    peer->out_direct = opal_list_is_empty(&peer->pending);
    shm_doorbell_ring(peer);
}

/* The channels stay as they are until the peer has read the last message. */
void shm_outbound_leave(shm_peer_t *peer)
{
    uint32_t expected = CONNECTION_OPEN;

    peer->out_direct = false;
    if (!peer->out_connection)
        return;
    /* Release: the last message is in the ring. A refused connection stays refused. */
    if (atomic_compare_exchange_strong_explicit(&peer->out_connection->state, &expected,
                                                CONNECTION_CLOSED, memory_order_release,
                                                memory_order_relaxed))
        shm_doorbell_ring(peer);
    peer->left_connection = peer->out_connection;
    peer->out_connection = NULL;
}

/* --- larger and smaller rings ------------------------------------------------------------------
 */

/* Whether the peer is at the ring in use, and nothing but messages is in it: then there may be
 * another one. */
static bool ring_may_change(shm_peer_t *peer)
{
    if (!peer->out_connection || peer->controls_taken >> CONNECTION_CONTROLS != 0 ||
        !ring_move_done(&peer->out_connection->move, peer->out_ring))
        return false;
    old_channel_put(peer);
    return true;
}

/* After the ring in use was begun anew: tells the peer, who reads the one before to its end. */
static void ring_announce(shm_peer_t *peer)
{
    uint64_t place = !peer->out_channel
                         ? 0
                         : shm_segment_channel_offset(&shm.segments[peer->kind], peer->out_channel);

    SHM_VERBOSE("the ring to process %s has %u lines now", OPAL_NAME_PRINT(peer->name),
                peer->out_lines);
    ring_limit(peer);
    ring_move_announce(&peer->out_connection->move, ++peer->out_ring,
                       !peer->out_channel ? 0 : peer->out_lines, place);
    shm_doorbell_ring(peer);
}

static void ring_put_aside(shm_peer_t *peer)
{
    peer->old_channel = peer->out_channel;
    peer->old_lines = peer->out_lines;
    if (peer->stale != &peer->small_stale)
        free(peer->stale);
}

/* Where a ring is larger than what a processor keeps of it, its lines lie in the cache that both
 * ends share when they are written again, and do not come from the other end's own cache: 1 MiB
 * takes 114 us through 256 KiB, 70 through 512 KiB, 40 through 1 MiB. Shorter messages gain
 * nothing. */
#define LARGE_RING_LENGTH 8192u
#define LARGER            4u

static bool ring_is_full_often(shm_peer_t *peer)
{
    uint64_t freed = atomic_load_explicit(&peer->out.feedback->freed, memory_order_relaxed);
    uint64_t since = peer->out.head - peer->out_head_full;

    if (peer->out.head - freed <= peer->out_lines / 2) /* merely used for long */
        return false;
    if (since == 0) /* still full: a message that waits is tried again in each round of progress */
        return false;
    peer->out_head_full = peer->out.head;
    peer->out_full_times =
        since < FULL_AGAIN_LAPS * (uint64_t) peer->out_lines ? peer->out_full_times + 1 : 0;
    return peer->out_full_times >= FULL_OFTEN;
}

/* Is the usual ring too small for what is sent? */
static bool larger_pays(shm_peer_t *peer, size_t length)
{
    if (shm.crowded)
        return ring_is_full_often(peer);
    /* Asked by the limit, it is a message short of so many laps. */
    return length >= LARGE_RING_LENGTH && peer->out.head / peer->out_lines + 1 >= used_laps(peer);
}

/* A small ring that was full or used for long is followed by the usual one, that by larger ones. */
static uint32_t ring_lines_wanted(shm_peer_t *peer, size_t length)
{
    uint32_t lines = peer->out_lines;

    if (lines < shm.ring_lines_usual)
        lines = shm.ring_lines_usual;
    else if (larger_pays(peer, length))
        lines = lines * LARGER < shm.ring_lines_max ? lines * LARGER : shm.ring_lines_max;
    return length > ring_length_max(lines) ? shm.ring_lines_max : lines;
}

/* The ring in use becomes one of at most so many lines; false: there is no memory for it. */
static bool ring_enlarge(shm_peer_t *peer, uint32_t lines)
{
    struct channel *channel =
        shm_own_channel_get(peer->kind, peer->record.node, peer->out_lines, &lines);
    uint64_t *stale = !channel ? NULL : calloc(ring_stale_words(lines), sizeof(*stale));

    if (!channel)
        return false;
    if (!stale) {
        shm_own_channel_put(peer->kind, channel, lines);
        return false;
    }
    ring_put_aside(peer);
    ring_begin_channel(peer, channel, lines, stale);
    ring_announce(peer);
    return true;
}

/* So long after a refusal the peer is offered no other ring. */
#define REFUSED_MS 10000u

static bool was_refused(shm_peer_t *peer)
{
    if (peer->out_refused_ms != 0 && now_ms() - peer->out_refused_ms > REFUSED_MS)
        peer->out_refused_ms = 0;
    return peer->out_refused_ms != 0;
}

void shm_outbound_return(shm_peer_t *peer)
{
    channels_put(peer);
    peer->small_stale = 0;
    ring_begin_small(peer);
    ring_limit(peer);
    peer->out_refused_ms = now_ms();
    ring_move_return(&peer->out_connection->move, peer->out_ring);
}

bool shm_outbound_grow(shm_peer_t *peer, size_t length)
{
    uint64_t end = peer->out.head + ring_lines_of(RING_LINE_BYTES, length);
    bool limited = peer->out.limit < end;

    peer->out.limit = RING_NO_LIMIT;
    if (peer->out_state != OUT_OPEN || peer->out_lines >= shm.ring_lines_max || was_refused(peer))
        return limited;
    uint32_t lines = ring_lines_wanted(peer, length);
    if (lines > peer->out_lines && ring_may_change(peer) && ring_enlarge(peer, lines))
        return true;
    /* Asked again later, or when the ring is full. */
    peer->out.limit = end + used_laps(peer) * peer->out_lines;
    return limited;
}

#define SILENT_MS        5000u
#define SILENT_WANTED_MS 100u

void shm_outbound_shrink(shm_peer_t *peer)
{
    bool wanted = atomic_load_explicit(&shm.memory_wanted, memory_order_relaxed);
    uint32_t now = now_ms();

    if (peer->out_state != OUT_OPEN || !ring_may_change(peer) || !peer->out_channel)
        return;
    if (peer->out.head != peer->out_head_seen || peer->out_seen_ms == 0) {
        peer->out_head_seen = peer->out.head;
        peer->out_seen_ms = now;
    }
    if (!opal_list_is_empty(&peer->pending) ||
        now - peer->out_seen_ms < (wanted ? SILENT_WANTED_MS : SILENT_MS))
        return;
    atomic_store_explicit(&shm.memory_wanted, false, memory_order_relaxed);
    ring_put_aside(peer);
    shm_connection_clear(peer->out_connection);
    ring_begin_small(peer);
    ring_announce(peer);
}
