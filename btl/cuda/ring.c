/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring toward each peer: a block of device memory at either end, made at the first message and
 * opened by the other process, through which kernels move messages whose own memory nobody opens.
 *
 * A block serves both directions: it holds the chunks of what this end takes, the line of its
 * counter, and that of what it sends. The end that takes gives each message its chunks, and with
 * them its turn: the other one sends in that order, whatever order it is asked in. */
#include "btl/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory/chunks.h"
#include "common/memory/kernels.h"

/* The block: the ring, and behind its own line the one of `emptied`. */
#define EMPTIED_AT  RING_BYTES
#define BLOCK_BYTES (RING_BYTES + CHUNK_LINE_BYTES)
#define LINES_AT    (RING_BYTES - CHUNK_LINE_BYTES)

/* What travels. */
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

enum { RING_TAKES, RING_SENDS, RING_WAYS };

struct ring_way {
    struct chunk_end end;
    struct ring_job *jobs; /* by their chunks */
    uint64_t given;        /* chunks that have a message, at the end that takes */
    bool is_running;       /* a kernel of the first job is */
    bool is_stopped;       /* nothing is started any more */
};

struct cuda_ring {
    struct cuda_ring *next;
    cuda_peer_t *peer;
    struct copier *copier; /* whose kernels run here: it reaches the memory of one context */
    driver_ptr block;      /* ours, and */
    cuda_key_t *key;       /* what the peer opens it by */
    driver_ptr theirs;     /* the peer's; 0: not open */
    cuda_key_t opened;     /* by this */
    struct ring_way ways[RING_WAYS];
};

static struct {
    opal_mutex_t lock; /* guards all below, and the rings; never held while a job's end is told */
    struct cuda_ring *first;
    int count;
    uint32_t jobs; /* of all rings; atomic, for a look without the lock */
    bool is_said;
} rings;

/* --- making -------------------------------------------------------------------------------------
 */

bool ring_is_offered(const cuda_peer_t *peer)
{
    return peer->has_ring && cuda.rings_max > 0 && kernels_offered();
}

/* Under the lock. The peer gets no new messages by a ring any more: they go another way. Said once,
 * as it mostly concerns all peers; `why` is empty where nothing is amiss. */
static void ring_refuse(cuda_peer_t *peer, const char *why)
{
    peer->ring_is_refused = true;
    if (rings.is_said || '\0' == why[0])
        return;
    CUDA_SAY("no ring in device memory with process %s: %s. Its small messages go another way.",
             OPAL_NAME_PRINT(peer->name), why);
    rings.is_said = true;
}

/* The counters begin at 0. By a stream of our own: the program's may be waiting for us. */
static driver_result block_clear(const struct cuda_ring *ring)
{
    static const unsigned char zeros[BLOCK_BYTES - LINES_AT];
    driver_result result = copier_copy(ring->copier, COPY_TO_DEVICE, ring->block + LINES_AT,
                                       (driver_ptr) (uintptr_t) zeros, sizeof(zeros));

    return DRIVER_SUCCESS == result ? copier_wait(ring->copier, COPY_TO_DEVICE) : result;
}

static driver_result block_make(struct cuda_ring *ring)
{
    driver_result result = kernels_ready(ring->copier);

    if (DRIVER_SUCCESS == result)
        result = copier_enter(ring->copier);
    if (DRIVER_SUCCESS != result)
        return result;
    result = driver.mem_alloc(&ring->block, BLOCK_BYTES);
    context_leave();
    return DRIVER_SUCCESS == result ? block_clear(ring) : result;
}

static void block_free(struct cuda_ring *ring)
{
    if (0 == ring->block || DRIVER_SUCCESS != copier_enter(ring->copier))
        return;
    driver.mem_free(ring->block);
    context_leave();
}

static void ring_free(struct cuda_ring *ring)
{
    if (NULL != ring->key)
        key_free(&cuda_module, ring->key);
    block_free(ring);
    free(ring);
}

/* Under the lock. */
static struct cuda_ring *ring_make(cuda_peer_t *peer, struct copier *copier)
{
    struct cuda_ring *ring = calloc(1, sizeof(*ring));
    driver_result result;
    char words[160] = "its memory cannot be shared";

    if (NULL == ring)
        return NULL;
    ring->peer = peer;
    ring->copier = copier;
    result = block_make(ring);
    if (DRIVER_SUCCESS == result)
        ring->key = key_make(&cuda_module, peer, (void *) (uintptr_t) ring->block, BLOCK_BYTES, 0);
    else
        driver_words(result, words, sizeof(words));
    if (NULL == ring->key || ring->key->start != ring->block) {
        ring_refuse(peer, words);
        ring_free(ring);
        return NULL;
    }
    ring->next = rings.first;
    rings.first = ring;
    rings.count++;
    return ring;
}

/* Under the lock. The peer's ring, if this memory can go by it; null: it cannot, now or ever. */
static struct cuda_ring *ring_for(cuda_peer_t *peer, const void *local)
{
    struct memory memory;
    struct copier *copier;
    driver_result result;

    if (!ring_is_offered(peer) || peer->ring_is_refused)
        return NULL;
    memory_ask(local, &memory);
    if (MEMORY_DEVICE != memory.kind && MEMORY_MANAGED != memory.kind)
        return NULL;
    copier = copier_get(&memory, &result);
    if (NULL == copier)
        return NULL;
    if (NULL == peer->ring && rings.count < cuda.rings_max)
        peer->ring = ring_make(peer, copier);
    return NULL != peer->ring && peer->ring->copier == copier ? peer->ring : NULL;
}

/* Under the lock. Opens the peer's block in the context whose kernels will reach there. */
static bool block_open(struct cuda_ring *ring, const cuda_key_t *key, char *why, size_t why_size)
{
    if (SHARE_IPC != key->kind || BLOCK_BYTES > key->size) {
        strcpy(why, "it has named other memory than a ring");
        return false;
    }
    /* Each end's kernel waits for the other's, and the device runs one process at a time. */
    if (device_is(ring->copier, &key->device) && !cuda.rings_on_one_device) {
        CUDA_VERBOSE("no ring in device memory with process %s: both are on one device, which runs "
                     "their kernels in turns; if it does not (MPS), set "
                     "btl_cuda_rings_on_one_device to 1",
                     OPAL_NAME_PRINT(ring->peer->name));
        why[0] = '\0';
        return false;
    }
    return DRIVER_SUCCESS == share_open(key, ring->copier, &ring->theirs, why, why_size);
}

static void block_shut(struct cuda_ring *ring)
{
    if (0 != ring->theirs)
        share_close(SHARE_IPC, ring->copier, ring->theirs, ring->opened.size);
    ring->theirs = 0;
}

static driver_result ends_init(struct cuda_ring *ring)
{
    driver_result result = chunk_end_init(&ring->ways[RING_TAKES].end, ring->copier, false,
                                          ring->block, ring->theirs + EMPTIED_AT);

    if (DRIVER_SUCCESS == result)
        result = chunk_end_init(&ring->ways[RING_SENDS].end, ring->copier, true, ring->theirs,
                                ring->block + EMPTIED_AT);
    return result;
}

/* Under the lock. False: what the key is for cannot be reached, or is not what it was. */
static bool ring_open(struct cuda_ring *ring, const cuda_key_t *key)
{
    char why[160];
    bool is_open;
    driver_result result;

    if (0 != ring->theirs)
        return 0 == memcmp(&ring->opened, key, sizeof(*key));
    is_open = block_open(ring, key, why, sizeof(why));
    if (is_open) {
        ring->opened = *key;
        result = ends_init(ring);
        is_open = DRIVER_SUCCESS == result;
        driver_words(result, why, sizeof(why));
    }
    if (!is_open) {
        block_shut(ring);
        ring_refuse(ring->peer, why);
    }
    return is_open;
}

/* --- messages -----------------------------------------------------------------------------------
 */

/* Under the lock. The first job runs, if it is its turn. */
static void job_start(struct cuda_ring *ring, struct ring_way *way)
{
    const struct ring_job *job = way->jobs;
    driver_result result;
    char words[160];

    if (NULL == job || way->is_running || way->is_stopped || job->first != way->end.next)
        return;
    result = chunk_end_start(&way->end, job->user, job->bytes);
    way->is_running = DRIVER_SUCCESS == result;
    if (way->is_running)
        return;
    way->is_stopped = true;
    ring_refuse(ring->peer, driver_words(result, words, sizeof(words)));
}

/* Under the lock. Has the kernel of the first job ended? */
static bool job_has_run(struct cuda_ring *ring, struct ring_way *way, int *status)
{
    driver_result result = chunk_end_test(&way->end, !way->is_stopped);
    char words[160];

    if (DRIVER_NOT_READY == result)
        return false;
    way->is_running = false;
    *status = DRIVER_SUCCESS == result ? OPAL_SUCCESS : OPAL_ERROR;
    if (DRIVER_SUCCESS != result && !way->is_stopped)
        ring_refuse(ring->peer, driver_words(result, words, sizeof(words)));
    way->is_stopped |= DRIVER_SUCCESS != result;
    return true;
}

/* Under the lock. A job that is over; null: none is. The next one runs. */
static struct ring_job *over_take(struct cuda_ring *ring, struct ring_way *way, int *status)
{
    struct ring_job *job = way->jobs;

    *status = OPAL_ERROR;
    if (NULL == job || (way->is_running ? !job_has_run(ring, way, status) : !way->is_stopped))
        return NULL;
    way->jobs = job->next;
    __atomic_sub_fetch(&rings.jobs, 1, __ATOMIC_RELAXED);
    job_start(ring, way);
    return job;
}

static struct ring_job *any_over_take(int *status)
{
    struct ring_job *job = NULL;

    OPAL_THREAD_LOCK(&rings.lock);
    for (struct cuda_ring *ring = rings.first; NULL != ring && NULL == job; ring = ring->next)
        for (int way = 0; way < RING_WAYS && NULL == job; way++)
            job = over_take(ring, &ring->ways[way], status);
    OPAL_THREAD_UNLOCK(&rings.lock);
    return job;
}

int rings_progress(void)
{
    struct ring_job *job;
    int over = 0, status;

    while (0 != __atomic_load_n(&rings.jobs, __ATOMIC_RELAXED) &&
           NULL != (job = any_over_take(&status))) {
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
static bool job_add(struct cuda_ring *ring, struct ring_way *way, struct ring_job *job)
{
    struct ring_job **at = &way->jobs;

    while (NULL != *at && (*at)->first < job->first && !overlaps(*at, job))
        at = &(*at)->next;
    if (job->first < way->end.next || (NULL != *at && overlaps(*at, job)))
        return false;
    job->next = *at;
    *at = job;
    __atomic_add_fetch(&rings.jobs, 1, __ATOMIC_RELAXED);
    job_start(ring, way);
    return true;
}

static struct ring_job *job_new(const void *local, size_t length, multilane_ring_done done,
                                void *context)
{
    struct ring_job *job = calloc(1, sizeof(*job));

    if (NULL != job) {
        job->user = (driver_ptr) (uintptr_t) local;
        job->bytes = length;
        job->done = done;
        job->context = context;
    }
    return job;
}

int ring_offer(mca_btl_base_module_t *btl, cuda_peer_t *peer, const void *local,
               struct multilane_ring_key *offer)
{
    struct ring_key key = {.first = 0};
    struct cuda_ring *ring;
    bool can;

    (void) btl;
    OPAL_THREAD_LOCK(&rings.lock);
    ring = ring_for(peer, local);
    can = NULL != ring && !ring->ways[RING_SENDS].is_stopped;
    if (can)
        key.block = *ring->key;
    OPAL_THREAD_UNLOCK(&rings.lock);
    memset(offer, 0, sizeof(*offer));
    memcpy(offer, &key, sizeof(key));
    return can ? OPAL_SUCCESS : OPAL_ERR_NOT_SUPPORTED;
}

/* Under the lock. */
static bool ring_can(struct cuda_ring *ring, int way, const struct ring_key *key)
{
    return NULL != ring && !ring->peer->ring_is_refused && !ring->ways[way].is_stopped &&
           ring_open(ring, &key->block);
}

int ring_take(mca_btl_base_module_t *btl, cuda_peer_t *peer, void *local, size_t length,
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
    if (NULL != job && ring_can(ring, RING_TAKES, &key)) {
        struct ring_way *way = &ring->ways[RING_TAKES];

        key.block = *ring->key;
        key.first = job->first = way->given;
        is_taken = job_add(ring, way, job);
        way->given += is_taken ? chunks_of(length) : 0;
    }
    OPAL_THREAD_UNLOCK(&rings.lock);
    if (!is_taken)
        free(job);
    memset(answer, 0, sizeof(*answer));
    memcpy(answer, &key, sizeof(key));
    return is_taken ? OPAL_SUCCESS : OPAL_ERR_NOT_SUPPORTED;
}

int ring_send(mca_btl_base_module_t *btl, cuda_peer_t *peer, const void *local, size_t length,
              const struct multilane_ring_key *answer, multilane_ring_done done, void *context)
{
    struct ring_job *job = job_new(local, length, done, context);
    struct ring_key key;
    bool is_sent = false;

    (void) btl;
    memcpy(&key, answer, sizeof(key));
    OPAL_THREAD_LOCK(&rings.lock);
    if (NULL != job && ring_can(peer->ring, RING_SENDS, &key)) {
        job->first = key.first;
        is_sent = job_add(peer->ring, &peer->ring->ways[RING_SENDS], job);
    }
    OPAL_THREAD_UNLOCK(&rings.lock);
    if (!is_sent)
        free(job);
    return is_sent ? OPAL_SUCCESS : OPAL_ERR_NOT_SUPPORTED;
}

void ring_stop(mca_btl_base_module_t *btl, cuda_peer_t *peer, bool sends)
{
    (void) btl;
    OPAL_THREAD_LOCK(&rings.lock);
    if (NULL != peer->ring)
        peer->ring->ways[sends ? RING_SENDS : RING_TAKES].is_stopped = true;
    OPAL_THREAD_UNLOCK(&rings.lock);
}

/* --- beginning and end --------------------------------------------------------------------------
 */

void rings_init(void)
{
    OBJ_CONSTRUCT(&rings.lock, opal_mutex_t);
}

/* Nobody waits for what is still under way; no kernel waits longer than some looks. */
static void way_close(struct ring_way *way)
{
    if (way->is_running) {
        copier_wait(way->end.copier, way->end.direction);
        copier_event_return(way->end.copier, way->end.event);
    }
    while (NULL != way->jobs) {
        struct ring_job *job = way->jobs;

        way->jobs = job->next;
        free(job);
    }
    chunk_end_fini(&way->end);
}

static void ring_close(struct cuda_ring *ring)
{
    for (int way = 0; way < RING_WAYS; way++)
        way_close(&ring->ways[way]);
    block_shut(ring);
    ring_free(ring);
}

void rings_close(void)
{
    while (NULL != rings.first) {
        struct cuda_ring *ring = rings.first;

        rings.first = ring->next;
        ring_close(ring);
    }
    rings.count = 0;
    rings.jobs = 0;
    OBJ_DESTRUCT(&rings.lock);
}
