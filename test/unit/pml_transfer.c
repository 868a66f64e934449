/* SPDX-License-Identifier: BSD-3-Clause */
/* Transfers over a simulated lane whose pieces end inside their own start, later, in other threads,
 * find no room or fail: every byte is started once and in order, and the end is told once. */
#include "check.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "lane/lane.h"
#include "lane/transfer.h"
#include "progress_standin.h"

/* How the simulated lane behaves, in parts of 256. */
struct manner {
    const char *name;
    unsigned at_once;  /* the piece ends inside its own start */
    unsigned no_room;  /* LANE_AGAIN */
    unsigned fails;    /* the start fails */
    unsigned ends_bad; /* a started piece ends with an error */
};

static const struct manner manners[] = {
    {"all at once", 256, 0, 0, 0},        {"all later", 0, 0, 0, 0},
    {"half at once", 128, 0, 0, 0},       {"little room", 64, 128, 0, 0},
    {"hardly any room", 128, 250, 0, 0},  {"starts fail", 100, 40, 3, 0},
    {"pieces end badly", 100, 40, 0, 12}, {"all of it", 80, 80, 2, 4},
};

#define DEPTH_MAX 8

/* A lane and the one transfer over it. */
struct trial {
    struct transfer transfer; /* first: the callbacks are given it */
    const struct manner *manner;
    struct transfer_steps way;
    uint32_t depth;
    uint64_t chance; /* of the one thread that starts pieces */
    size_t end, started;
    size_t piece_max;
    bool has_failed; /* atomic: a start or a piece did */

    unsigned inside; /* atomic: threads inside start; never more than one */
    unsigned out;    /* atomic: pieces started and not ended */
    unsigned starts;
    unsigned finished; /* atomic */
    int status;
    const char *wrong; /* the first thing that was not as it must be */

    pthread_mutex_t lock; /* guards waiting: pieces that end later */
    unsigned waiting;
    unsigned waiting_bad;
};

static void wrong(struct trial *trial, const char *what)
{
    if (!trial->wrong)
        trial->wrong = what;
}

static bool one_in_256(struct trial *trial, unsigned parts)
{
    return chance_below(&trial->chance, 256) < parts;
}

static int piece_start(struct transfer *transfer, size_t offset, size_t *size)
{
    struct trial *trial = (struct trial *) transfer;
    int rc = OMPI_SUCCESS;

    if (__atomic_fetch_add(&trial->inside, 1, __ATOMIC_ACQ_REL) != 0)
        wrong(trial, "two threads start pieces at once");
    if (__atomic_load_n(&trial->finished, __ATOMIC_ACQUIRE))
        wrong(trial, "a piece starts after the end");
    size_t left = trial->end - offset;
    if (offset != trial->started || *size == 0 ||
        *size != (left < TRANSFER_TURN_BYTES ? left : TRANSFER_TURN_BYTES))
        wrong(trial, "a piece is not the next one");
    if (one_in_256(trial, trial->manner->no_room)) {
        rc = LANE_AGAIN;
    } else if (one_in_256(trial, trial->manner->fails)) {
        __atomic_store_n(&trial->has_failed, true, __ATOMIC_RELEASE);
        rc = OMPI_ERR_UNREACH;
    }
    if (rc == OMPI_SUCCESS) {
        size_t most = 1 + chance_below(&trial->chance, trial->piece_max);
        *size = *size < most ? *size : most;
        trial->started += *size;
        trial->starts++;
        if (__atomic_add_fetch(&trial->out, 1, __ATOMIC_ACQ_REL) > trial->depth)
            wrong(trial, "more pieces under way than the depth");
        bool is_bad = one_in_256(trial, trial->manner->ends_bad);
        if (is_bad)
            __atomic_store_n(&trial->has_failed, true, __ATOMIC_RELEASE);
        if (one_in_256(trial, trial->manner->at_once)) {
            __atomic_sub_fetch(&trial->out, 1, __ATOMIC_ACQ_REL);
            transfer_piece_done(transfer, is_bad ? OMPI_ERR_UNREACH : OMPI_SUCCESS);
        } else {
            pthread_mutex_lock(&trial->lock);
            trial->waiting++;
            trial->waiting_bad += is_bad;
            pthread_mutex_unlock(&trial->lock);
        }
    }
    __atomic_sub_fetch(&trial->inside, 1, __ATOMIC_ACQ_REL);
    return rc;
}

static void trial_finish(struct transfer *transfer, int status)
{
    struct trial *trial = (struct trial *) transfer;
    trial->status = status;
    if (__atomic_load_n(&trial->out, __ATOMIC_ACQUIRE) != 0)
        wrong(trial, "the end is told while pieces are under way");
    if (__atomic_fetch_add(&trial->finished, 1, __ATOMIC_ACQ_REL) != 0)
        wrong(trial, "the end is told twice");
}

/* Ends one of the pieces that wait. False: none did. */
static bool piece_end(struct trial *trial)
{
    pthread_mutex_lock(&trial->lock);
    bool found = trial->waiting > 0, is_bad = false;
    if (found) {
        is_bad = trial->waiting_bad > 0 && trial->waiting_bad == trial->waiting;
        trial->waiting--;
        trial->waiting_bad -= is_bad;
    }
    pthread_mutex_unlock(&trial->lock);
    if (!found)
        return false;
    __atomic_sub_fetch(&trial->out, 1, __ATOMIC_ACQ_REL);
    transfer_piece_done(&trial->transfer, is_bad ? OMPI_ERR_UNREACH : OMPI_SUCCESS);
    return true;
}

static void trial_init(struct trial *trial, uint64_t *chance, const struct manner *manner)
{
    memset(trial, 0, sizeof(*trial));
    trial->manner = manner;
    trial->way = (struct transfer_steps){.start = piece_start, .finish = trial_finish};
    trial->depth = 1 + (uint32_t) chance_below(chance, DEPTH_MAX);
    trial->chance = chance_next(chance) | 1;
    trial->started = 0;
    trial->end = chance_below(chance, 20000);
    trial->piece_max = 100 + chance_below(chance, 2000);
    pthread_mutex_init(&trial->lock, NULL);
}

static void trial_check(struct trial *trial, uint64_t seed)
{
    const char *name = trial->manner->name;
    unsigned long long number = seed;
    CHECK(!trial->wrong, "%s, seed %llu: %s", name, number, trial->wrong);
    CHECK(trial->finished == 1, "%s, seed %llu: the end was told %u times", name, number,
          trial->finished);
    CHECK((trial->status != OMPI_SUCCESS) == trial->has_failed,
          "%s, seed %llu: status %d where a piece %s", name, number, trial->status,
          trial->has_failed ? "failed" : "did not fail");
    CHECK(trial->has_failed || trial->started == trial->end,
          "%s, seed %llu: %zu of %zu were started", name, number, trial->started, trial->end);
    pthread_mutex_destroy(&trial->lock);
}

/* --- one thread ---------------------------------------------------------------------------------
 */

static void every_transfer_ends_once(const struct manner *manner, uint64_t seed)
{
    struct trial trial;
    uint64_t chance = seed;
    trial_init(&trial, &chance, manner);
    transfer_begin(&trial.transfer, &trial.way, trial.end, trial.depth);
    for (int turn = 0; turn < 1000000 && !trial.finished; turn++) {
        if (chance_below(&chance, 2))
            progress_standin_run();
        else
            piece_end(&trial);
    }
    trial_check(&trial, seed);
    CHECK(!pending_queue.first, "%s: something is left to be tried again", manner->name);
}

/* The owner may use the transfer again inside finish: rndv-put does when its puts fail. */
static unsigned again_count;

static void finish_and_begin_anew(struct transfer *transfer, int status)
{
    struct trial *trial = (struct trial *) transfer;
    if (status != OMPI_SUCCESS)
        wrong(trial, "a transfer without failures fails");
    if (again_count++ == 0) {
        trial->started = 0;
        transfer_begin(transfer, &trial->way, trial->end, trial->depth);
        return;
    }
    trial->finished++;
}

static void transfer_can_begin_anew_when_it_ends(uint64_t seed)
{
    struct trial trial;
    uint64_t chance = seed;
    again_count = 0;
    trial_init(&trial, &chance, &manners[3]);
    trial.way.finish = finish_and_begin_anew;
    transfer_begin(&trial.transfer, &trial.way, trial.end, trial.depth);
    for (int turn = 0; turn < 1000000 && !trial.finished; turn++) {
        progress_standin_run();
        piece_end(&trial);
    }
    CHECK(again_count == 2, "the end was told %u times, of 2", again_count);
    trial_check(&trial, seed);
}

/* Else a process that waits would never give its processor away. */
static void a_transfer_without_room_is_nothing_done(void)
{
    static const struct manner no_room_at_all = {"no room at all", 0, 256, 0, 0};
    static const struct manner all_at_once = {"all at once", 256, 0, 0, 0};
    struct trial trial;
    uint64_t chance = 1;
    trial_init(&trial, &chance, &no_room_at_all);
    transfer_begin(&trial.transfer, &trial.way, trial.end, trial.depth);
    for (int round = 0; round < 10; round++)
        CHECK(progress_standin_run() == 0, "round %d says that something was done", round);
    trial.manner = &all_at_once;
    CHECK(progress_standin_run() == 1 && trial.finished == 1, "it ends when there is room");
}

/* A copy of 1 GiB in one go would keep all else waiting. */
static void copies_end_their_turns(void)
{
    static const struct manner all_at_once = {"all at once", 256, 0, 0, 0};
    const size_t whole = 5 * TRANSFER_TURN_BYTES + 1;
    struct trial trial;
    uint64_t chance = 1;
    trial_init(&trial, &chance, &all_at_once);
    trial.piece_max = 2 * whole;
    trial.end = whole;
    size_t before = trial.started;
    transfer_begin(&trial.transfer, &trial.way, trial.end, trial.depth);
    unsigned turns = 1;
    while (!trial.finished && turns < 100) {
        CHECK(trial.started - before < 2 * TRANSFER_TURN_BYTES, "turn %u moves %zu bytes", turns,
              trial.started - before);
        before = trial.started;
        CHECK(progress_standin_run() == 1, "turn %u counts as nothing done", turns);
        turns++;
    }
    CHECK(turns > 2, "%zu bytes in %u turns", whole, turns);
    trial_check(&trial, 1);
    CHECK(!pending_queue.first, "something is left to be tried again");
}

/* --- threads ------------------------------------------------------------------------------------
 */

#define ENDERS 3

static struct trial shared_trial;

static void *end_pieces(void *seed)
{
    uint64_t chance = (uintptr_t) seed;
    while (!__atomic_load_n(&shared_trial.finished, __ATOMIC_ACQUIRE)) {
        bool done = chance_below(&chance, 3) ? piece_end(&shared_trial) : progress_standin_run();
        if (!done)
            sched_yield();
    }
    return NULL;
}

static void every_transfer_ends_once_among_threads(const struct manner *manner, uint64_t seed)
{
    pthread_t threads[ENDERS];
    uint64_t chance = seed;
    trial_init(&shared_trial, &chance, manner);
    for (uintptr_t i = 0; i < ENDERS; i++)
        pthread_create(&threads[i], NULL, end_pieces, (void *) (uintptr_t) (seed + i + 1));
    transfer_begin(&shared_trial.transfer, &shared_trial.way, shared_trial.end, shared_trial.depth);
    for (int i = 0; i < ENDERS; i++)
        pthread_join(threads[i], NULL);
    trial_check(&shared_trial, seed);
    while (pending_queue.first) /* a retry that lost the race finds nothing to do */
        progress_standin_run();
}

/* --- the queue of what is tried again -----------------------------------------------------------
 */

struct retried {
    struct pending pending;
    unsigned refusals; /* how often it will say that there is no room */
    unsigned done_at;
};

static unsigned retried_clock;

static int retried_try(struct pending *pending)
{
    struct retried *retried = (struct retried *) pending;
    if (retried->refusals) {
        retried->refusals--;
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    retried->done_at = ++retried_clock;
    return OMPI_SUCCESS;
}

static void what_has_no_room_is_tried_again_in_order(uint64_t seed)
{
    enum { COUNT = 200 };
    static struct retried items[COUNT];
    uint64_t chance = seed;
    unsigned added = 0;
    unsigned refusals = (unsigned) chance_below(&chance, 4); /* the same: order must be kept */

    retried_clock = 0;
    while (added < COUNT || pending_queue.first) {
        if (added < COUNT && chance_below(&chance, 2)) {
            items[added] = (struct retried){.pending.retry = retried_try, .refusals = refusals};
            pending_add(&items[added++].pending);
        } else {
            progress_standin_run();
        }
    }
    for (unsigned i = 0; i < COUNT; i++)
        CHECK(items[i].done_at == i + 1, "item %u was done as number %u", i, items[i].done_at);
}

int main(void)
{
    unsigned seeds = check_is_long() ? 20000 : 1500, shared_seeds = seeds / 15;
    for (size_t i = 0; i < sizeof(manners) / sizeof(manners[0]); i++)
        for (unsigned seed = 1; seed <= seeds; seed++)
            every_transfer_ends_once(&manners[i], seed * UINT64_C(0x9e3779b97f4a7c15));
    for (unsigned seed = 1; seed <= seeds; seed++) {
        transfer_can_begin_anew_when_it_ends(seed * UINT64_C(0x9e3779b97f4a7c15));
        what_has_no_room_is_tried_again_in_order(seed * UINT64_C(0x9e3779b97f4a7c15));
    }
    a_transfer_without_room_is_nothing_done();
    copies_end_their_turns();
    opal_set_using_threads(true);
    for (size_t i = 0; i < sizeof(manners) / sizeof(manners[0]); i++)
        for (unsigned seed = 1; seed <= shared_seeds; seed++)
            every_transfer_ends_once_among_threads(&manners[i],
                                                   seed * UINT64_C(0xd1342543de82ef95));
    pending_close();
    return check_end();
}
