/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring to each peer: a block of device memory at each end, made for the first message and
 * opened by the other process. Kernels move messages through it, so that the user's memory is never
 * opened.
 *
 * A block serves both directions: it holds the chunks that this end receives, the line of their
 * counter, and the line of the counter for what it sends. The receiving end assigns chunks to each
 * message, and thereby its turn: the sender sends in that order. */
#include "btl/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory/chunks.h"
#include "common/memory/kernels.h"

/* The block: the ring, and behind its own line the one of `emptied`. */
#define EMPTIED_AT  RING_BYTES
#define BLOCK_BYTES (RING_BYTES + CHUNK_LINE_BYTES)
#define LINES_AT    (RING_BYTES - CHUNK_LINE_BYTES)

/* The contents of struct multilane_ring_key. */
struct ring_key {
    cuda_key_t block;
    uint64_t first; /* of the chunks that the message has; of an answer */
};

_Static_assert(sizeof(struct ring_key) <= sizeof(struct multilane_ring_key), "it fits");

/* A message of one end. */
struct ring_job {
    struct ring_job *next;
    driver_ptr user;
    size_t bytes;
    uint64_t first; /* chunk */
    multilane_ring_done done;
    void *context;
};

enum { RING_TAKES, RING_SENDS, RING_DIRECTIONS };

struct ring_direction {
    struct chunk_end end;
    struct ring_job *jobs; /* by their chunks */
    uint64_t assigned;     /* chunks that have a message, at the end that takes */
    bool is_running;       /* a kernel of the first job is */
    bool is_stopped;       /* nothing is started any more */
};

struct cuda_ring {
    struct cuda_ring *next;
    cuda_peer_t *peer;
    struct copier *copier; /* whose kernels run here: it reaches the memory of one context */
    driver_ptr block;      /* ours, and */
    cuda_key_t *key;       /* by which the peer opens it */
    driver_ptr theirs;     /* the peer's; 0: not open */
    cuda_key_t opened;     /* by this */
    struct ring_direction directions[RING_DIRECTIONS];
};

static struct {
    opal_mutex_t lock; /* guards all below, and the rings; never held while `done` is called */
    struct cuda_ring *first;
    int count;
    _Atomic uint32_t jobs; /* of all rings. Relaxed: progress looks at it without the lock */
    bool is_said;
} rings;

/* --- making ----------------------------------------------------------------------------------- */

bool cuda_ring_is_offered(const cuda_peer_t *peer)
{
    return peer->has_ring && cuda.rings_max > 0 && kernels_offered();
}

/* Under the lock. New messages to this peer do not use a ring any more. Said once, since the reason
 * mostly holds for all peers; an empty `why` says nothing. */
static void ring_refuse(cuda_peer_t *peer, const char *why)
{
    peer->ring_is_refused = true;
    if (rings.is_said || why[0] == '\0')
        return;
    CUDA_SAY("no ring in device memory with process %s: %s. Its small messages go another way.",
             OPAL_NAME_PRINT(peer->name), why);
    rings.is_said = true;
}

/* The counters begin at 0. On a stream of our own: the program's stream may be waiting for us. */
static driver_result block_clear(const struct cuda_ring *ring)
{
    static const unsigned char zeros[BLOCK_BYTES - LINES_AT];
    driver_result result = copier_copy(ring->copier, COPY_TO_DEVICE, ring->block + LINES_AT,
                                       (driver_ptr) (uintptr_t) zeros, sizeof(zeros));

    return result == DRIVER_SUCCESS ? copier_wait(ring->copier, COPY_TO_DEVICE) : result;
}

static driver_result block_make(struct cuda_ring *ring)
{
    driver_result result = kernels_ready(ring->copier);

    if (result == DRIVER_SUCCESS)
        result = copier_enter(ring->copier);
    if (result != DRIVER_SUCCESS)
        return result;
    result = driver.mem_alloc(&ring->block, BLOCK_BYTES);
    context_leave();
    return result == DRIVER_SUCCESS ? block_clear(ring) : result;
}

static void block_free(struct cuda_ring *ring)
{
    if (ring->block == 0 || copier_enter(ring->copier) != DRIVER_SUCCESS)
        return;
    driver.mem_free(ring->block);
    context_leave();
}

static void ring_free(struct cuda_ring *ring)
{
    if (ring->key)
        cuda_key_free(&cuda_module, ring->key);
    block_free(ring);
    free(ring);
}

/* Under the lock. */
static struct cuda_ring *ring_make(cuda_peer_t *peer, struct copier *copier)
{
    struct cuda_ring *ring = calloc(1, sizeof(*ring));
    char words[160] = "its memory cannot be shared";

    if (!ring)
        return NULL;
    ring->peer = peer;
    ring->copier = copier;
    driver_result result = block_make(ring);
    if (result == DRIVER_SUCCESS)
        ring->key =
            cuda_key_make(&cuda_module, peer, (void *) (uintptr_t) ring->block, BLOCK_BYTES, 0);
    else
        driver_words(result, words, sizeof(words));
    if (!ring->key || ring->key->start != ring->block) {
        ring_refuse(peer, words);
        ring_free(ring);
        return NULL;
    }
    ring->next = rings.first;
    rings.first = ring;
    rings.count++;
    return ring;
}

/* Under the lock. The peer's ring, if this memory can use it; NULL: it cannot. */
static struct cuda_ring *ring_for(cuda_peer_t *peer, const void *local)
{
    struct memory memory;
    driver_result result;

    if (!cuda_ring_is_offered(peer) || peer->ring_is_refused)
        return NULL;
    memory_ask(local, &memory);
    if (memory.kind != MEMORY_DEVICE && memory.kind != MEMORY_MANAGED)
        return NULL;
    struct copier *copier = copier_get(&memory, &result);
    if (!copier)
        return NULL;
    if (!peer->ring && rings.count < cuda.rings_max)
        peer->ring = ring_make(peer, copier);
    return peer->ring && peer->ring->copier == copier ? peer->ring : NULL;
}

/* Under the lock. Opens the peer's block in the context whose kernels will reach there. */
static bool block_open(struct cuda_ring *ring, const cuda_key_t *key, char *why, size_t why_size)
{
    if (key->kind != SHARE_IPC || key->size < BLOCK_BYTES) {
        strcpy(why, "it has named other memory than a ring");
        return false;
    }
    /* Each end's kernel waits for the other's, and a device runs one process at a time. */
    if (cuda_device_is(ring->copier, &key->device) && !cuda.rings_on_one_device) {
        CUDA_VERBOSE("no ring in device memory with process %s: both are on one device, which runs "
                     "their kernels in turns; if it does not (MPS), set "
                     "btl_cuda_rings_on_one_device to 1",
                     OPAL_NAME_PRINT(ring->peer->name));
        why[0] = '\0';
        return false;
    }
    return cuda_share_open(key, ring->copier, &ring->theirs, why, why_size) == DRIVER_SUCCESS;
}

static void block_shut(struct cuda_ring *ring)
{
    if (ring->theirs != 0)
        cuda_share_close(SHARE_IPC, ring->copier, ring->theirs, ring->opened.size);
    ring->theirs = 0;
}

static driver_result ends_init(struct cuda_ring *ring)
{
    driver_result result = chunk_end_init(&ring->directions[RING_TAKES].end, ring->copier, false,
                                          ring->block, ring->theirs + EMPTIED_AT);

    if (result == DRIVER_SUCCESS)
        result = chunk_end_init(&ring->directions[RING_SENDS].end, ring->copier, true, ring->theirs,
                                ring->block + EMPTIED_AT);
    return result;
}

/* Under the lock. False: the peer's block cannot be opened, or is another one than before. */
static bool ring_open(struct cuda_ring *ring, const cuda_key_t *key)
{
    char why[160];
    driver_result result;

    if (ring->theirs != 0)
        return memcmp(&ring->opened, key, sizeof(*key)) == 0;
    bool is_open = block_open(ring, key, why, sizeof(why));
    if (is_open) {
        ring->opened = *key;
        result = ends_init(ring);
        is_open = result == DRIVER_SUCCESS;
        driver_words(result, why, sizeof(why));
    }
    if (!is_open) {
        block_shut(ring);
        ring_refuse(ring->peer, why);
    }
    return is_open;
}

/* --- messages --------------------------------------------------------------------------------- */

/* Under the lock. Starts the first job, if it is its turn. */
static void job_start(struct cuda_ring *ring, struct ring_direction *direction)
{
    const struct ring_job *job = direction->jobs;
    char words[160];

    if (!job || direction->is_running || direction->is_stopped || job->first != direction->end.next)
        return;
    driver_result result = chunk_end_start(&direction->end, job->user, job->bytes);
    direction->is_running = result == DRIVER_SUCCESS;
    if (direction->is_running)
        return;
    direction->is_stopped = true;
    ring_refuse(ring->peer, driver_words(result, words, sizeof(words)));
}

/* Under the lock. Has the kernel of the first job ended? */
static bool job_has_run(struct cuda_ring *ring, struct ring_direction *direction, int *status)
{
    driver_result result = chunk_end_test(&direction->end, !direction->is_stopped);
    char words[160];

    if (result == DRIVER_NOT_READY)
        return false;
    direction->is_running = false;
    *status = result == DRIVER_SUCCESS ? OPAL_SUCCESS : OPAL_ERROR;
    if (result != DRIVER_SUCCESS && !direction->is_stopped)
        ring_refuse(ring->peer, driver_words(result, words, sizeof(words)));
    direction->is_stopped |= result != DRIVER_SUCCESS;
    return true;
}

/* Under the lock. A job that is over; null: none is. The next one runs. */
static struct ring_job *over_take(struct cuda_ring *ring, struct ring_direction *direction,
                                  int *status)
{
    struct ring_job *job = direction->jobs;

    *status = OPAL_ERROR;
    if (!job ||
        (direction->is_running ? !job_has_run(ring, direction, status) : !direction->is_stopped))
        return NULL;
    direction->jobs = job->next;
    atomic_fetch_sub_explicit(&rings.jobs, 1, memory_order_relaxed);
    job_start(ring, direction);
    return job;
}

static struct ring_job *any_over_take(int *status)
{
    struct ring_job *job = NULL;

    OPAL_THREAD_LOCK(&rings.lock);
    for (struct cuda_ring *ring = rings.first; ring && !job; ring = ring->next)
        for (int direction = 0; direction < RING_DIRECTIONS && !job; direction++)
            job = over_take(ring, &ring->directions[direction], status);
    OPAL_THREAD_UNLOCK(&rings.lock);
    return job;
}

int cuda_rings_progress(void)
{
    struct ring_job *job;
    int over = 0, status;

    while (atomic_load_explicit(&rings.jobs, memory_order_relaxed) != 0 &&
           (job = any_over_take(&status))) {
        job->done(job->context, status);
        free(job);
        over++;
    }
    return over;
}

static bool overlaps(const struct ring_job *one, const struct ring_job *other)
{
    return one->first < other->first + chunks_of(other->bytes) &&
           other->first < one->first + chunks_of(one->bytes);
}

/* Under the lock. False: no message of this end can have those chunks. */
static bool job_add(struct cuda_ring *ring, struct ring_direction *direction, struct ring_job *job)
{
    struct ring_job **at = &direction->jobs;

    while (*at && (*at)->first < job->first && !overlaps(*at, job))
        at = &(*at)->next;
    if (job->first < direction->end.next || (*at && overlaps(*at, job)))
        return false;
    job->next = *at;
    *at = job;
    atomic_fetch_add_explicit(&rings.jobs, 1, memory_order_relaxed);
    job_start(ring, direction);
    return true;
}

static struct ring_job *job_new(const void *local, size_t length, multilane_ring_done done,
                                void *context)
{
    struct ring_job *job = calloc(1, sizeof(*job));

    if (job) {
        job->user = (driver_ptr) (uintptr_t) local;
        job->bytes = length;
        job->done = done;
        job->context = context;
    }
    return job;
}

int cuda_ring_offer(mca_btl_base_module_t *btl, cuda_peer_t *peer, const void *local,
                    struct multilane_ring_key *offer)
{
    struct ring_key key = {.first = 0};

    (void) btl;
    OPAL_THREAD_LOCK(&rings.lock);
    struct cuda_ring *ring = ring_for(peer, local);
    bool can = ring && !ring->directions[RING_SENDS].is_stopped;
    if (can)
        key.block = *ring->key;
    OPAL_THREAD_UNLOCK(&rings.lock);
    memset(offer, 0, sizeof(*offer));
    memcpy(offer, &key, sizeof(key));
    return can ? OPAL_SUCCESS : OPAL_ERR_NOT_SUPPORTED;
}

/* Under the lock. */
static bool ring_can(struct cuda_ring *ring, int direction, const struct ring_key *key)
{
    return ring && !ring->peer->ring_is_refused && !ring->directions[direction].is_stopped &&
           ring_open(ring, &key->block);
}

int cuda_ring_take(mca_btl_base_module_t *btl, cuda_peer_t *peer, void *local, size_t length,
                   const struct multilane_ring_key *offer, struct multilane_ring_key *answer,
                   multilane_ring_done done, void *context)
{
    struct ring_job *job = job_new(local, length, done, context);
    struct ring_key key;
    bool is_taken = false;

    (void) btl;
    memcpy(&key, offer, sizeof(key));
    OPAL_THREAD_LOCK(&rings.lock);
    struct cuda_ring *ring = ring_for(peer, local);
    if (job && ring_can(ring, RING_TAKES, &key)) {
        struct ring_direction *direction = &ring->directions[RING_TAKES];

        key.block = *ring->key;
        key.first = job->first = direction->assigned;
        is_taken = job_add(ring, direction, job);
        direction->assigned += is_taken ? chunks_of(length) : 0;
    }
    OPAL_THREAD_UNLOCK(&rings.lock);
    if (!is_taken)
        free(job);
    memset(answer, 0, sizeof(*answer));
    memcpy(answer, &key, sizeof(key));
    return is_taken ? OPAL_SUCCESS : OPAL_ERR_NOT_SUPPORTED;
}

int cuda_ring_send(mca_btl_base_module_t *btl, cuda_peer_t *peer, const void *local, size_t length,
                   const struct multilane_ring_key *answer, multilane_ring_done done, void *context)
{
    struct ring_job *job = job_new(local, length, done, context);
    struct ring_key key;
    bool is_sent = false;

    (void) btl;
    memcpy(&key, answer, sizeof(key));
    OPAL_THREAD_LOCK(&rings.lock);
    if (job && ring_can(peer->ring, RING_SENDS, &key)) {
        job->first = key.first;
        is_sent = job_add(peer->ring, &peer->ring->directions[RING_SENDS], job);
    }
    OPAL_THREAD_UNLOCK(&rings.lock);
    if (!is_sent)
        free(job);
    return is_sent ? OPAL_SUCCESS : OPAL_ERR_NOT_SUPPORTED;
}

void cuda_ring_stop(mca_btl_base_module_t *btl, cuda_peer_t *peer, bool sends)
{
    (void) btl;
    OPAL_THREAD_LOCK(&rings.lock);
    if (peer->ring)
        peer->ring->directions[sends ? RING_SENDS : RING_TAKES].is_stopped = true;
    OPAL_THREAD_UNLOCK(&rings.lock);
}

/* --- beginning and end ------------------------------------------------------------------------ */

void cuda_rings_init(void)
{
    OBJ_CONSTRUCT(&rings.lock, opal_mutex_t);
}

/* Jobs that are under way are dropped; a kernel stops after a bounded number of polls. */
static void direction_close(struct ring_direction *direction)
{
    if (direction->is_running) {
        copier_wait(direction->end.copier, direction->end.direction);
        copier_event_return(direction->end.copier, direction->end.event);
    }
    while (direction->jobs) {
        struct ring_job *job = direction->jobs;

        direction->jobs = job->next;
        free(job);
    }
    chunk_end_fini(&direction->end);
}

static void ring_close(struct cuda_ring *ring)
{
    for (int direction = 0; direction < RING_DIRECTIONS; direction++)
        direction_close(&ring->directions[direction]);
    block_shut(ring);
    ring_free(ring);
}

void cuda_rings_close(void)
{
    while (rings.first) {
        struct cuda_ring *ring = rings.first;

        rings.first = ring->next;
        ring_close(ring);
    }
    rings.count = 0;
    atomic_store_explicit(&rings.jobs, 0, memory_order_relaxed);
    OBJ_DESTRUCT(&rings.lock);
}
