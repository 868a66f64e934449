/* SPDX-License-Identifier: BSD-3-Clause */
/* The page of measurements, and what plans take from it. */

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/multilane.h"
#include "base/parameters.h"
#include "common/lane/host.h"
#include "common/lock/clock.h"
#include "common/memory/device_measure.h"
#include "plan/costs.h"

#define DEVICES_MAX 32

/* Bounds, which decide only where nothing was measured: copies to and from the host take at least
 * so long and carry at least 1 GB/s, and a lane that takes a second is not taken. */
static const struct cost_line unmeasured_copy = {.fixed_s = 5e-6, .growth_s_byte = 1e-9};
#define UNMEASURED_S       1.0
#define UNMEASURED_BYTES_S 1e6

/* Others measure for some milliseconds each. */
#define LOCK_MOST_NS UINT64_C(1000000000)
#define TURN_MOST_NS UINT64_C(500000)
#define TURNS_MOST_S 20e-3
/* Many: on a busy node the other process is often not on a processor. */
#define TURNS_TRIES 40
#define ROUNDS      3

/* A device, and the process that has measured it: its block is open to the others until it ends. */
struct device_entry {
    struct driver_uuid uuid;
    struct device_costs costs;
    struct driver_ipc_handle block;
    _Atomic int32_t owner; /* its pid; 0: there is no block. Relaxed: each looks for itself only */
    _Atomic int32_t asker; /* who copies from there in turns; 0: none yet, below 0: it is done */
    uint32_t processes;    /* that use the device */
    /* How often the owner was asked to use the device, by the asker, and has. Both write with
     * release, after what they did to the device, and read with acquire. */
    _Atomic uint32_t asked, answered;
    uint32_t unused;
};

/* In memory of the node's first process, which all others map. Guarded by a lock of the file; but
 * for `changes`, which is looked at without it. Relaxed: what has changed is read under the lock.
 */
struct device_page {
    _Atomic uint32_t changes;
    uint32_t count;
    struct device_entry devices[DEVICES_MAX];
    struct device_pair pairs[DEVICES_MAX][DEVICES_MAX]; /* by who copies, from whom */
};

/* What is known, by what. */
struct known {
    struct cost_line copy, within;
    struct device_pair pair;
    bool has_copy, has_pair;
};

static struct {
    pthread_mutex_t lock; /* guards all below; taken before that of the page */
    int fd;               /* of the page; below 0: not open */
    struct device_page *page;
    /* Bits: devices of this process, by the driver's number, set under the lock. Relaxed: who does
     * not see one yet looks again under it. */
    _Atomic uint64_t used;
    _Atomic uint32_t mine; /* the same by their entry; relaxed, as device_costs_progress
                            * looks without the lock */
    /* What ours are measured with, by entry; given back at the end. No copier: it was not used. */
    struct device_measure measures[DEVICES_MAX];
    int32_t me;                   /* getpid, which is a call of the system; set with `page` */
    int turns_tried[DEVICES_MAX]; /* by entry, as the asker */
    struct known known;           /* when the page was read last */
    /* How often it could not be read, as another process had it: as a change that is to be looked
     * for. Relaxed: read again once too often does no harm. */
    _Atomic uint32_t missed;
    /* For who asks without the lock: the page. Release, when it is set, and acquire. */
    struct device_page *_Atomic open_page;
} costs = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

/* --- the page --------------------------------------------------------------------------------- */

struct page_record {
    int32_t pid, fd;
};

static void page_map(int fd)
{
    void *page =
        fd < 0 ? MAP_FAILED
               : mmap(NULL, sizeof(struct device_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page != MAP_FAILED) {
        costs.page = page;
        costs.fd = fd;
        costs.me = (int32_t) getpid();
        atomic_store_explicit(&costs.open_page, page, memory_order_release);
    } else if (fd >= 0) {
        close(fd);
    }
}

static void page_make(void)
{
    int fd = host_memory("multilane-devices");
    if (fd >= 0 && (!host_allows_file(sizeof(struct device_page)) ||
                    ftruncate(fd, sizeof(struct device_page)) != 0)) {
        close(fd);
        fd = -1;
    }
    if (fd >= 0) /* its memory cannot shrink under the others */
        (void) fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    page_map(fd);
}

void device_costs_publish(void)
{
    if (!driver_is_loaded || ompi_process_info.my_local_rank != 0)
        return;
    page_make();
    const struct page_record record = {(int32_t) getpid(), (int32_t) costs.fd};
    if (costs.page && ompi_process_info.num_local_peers > 0)
        (void) node_record_send("device", &record, sizeof(record));
}

/* Under the lock. Where the first process has no page for us this process has its own, and knows
 * nothing of others' devices. */
static void page_open(void)
{
    struct page_record record;
    if (node_record_read("device", &record, sizeof(record))) {
        const struct words path = words_of("/proc/%d/fd/%d", (int) record.pid, (int) record.fd);
        int fd = open(path.text, O_RDWR | O_CLOEXEC);
        off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
        if (fd >= 0 && size != (off_t) sizeof(struct device_page)) {
            close(fd);
            fd = -1;
        }
        page_map(fd);
    }
    if (!costs.page)
        page_make();
}

/* --- in turns: the owner ------------------------------------------------------------------------
 * Kernels of one device run for one process at a time, and copies within it are kernels. So what a
 * copy from another process's memory takes depends on whether that one uses the device too, and it
 * is measured again with both using it, when both are in MPI: the asker, which is the second
 * process at the device, asks the owner of the block, and the progress of that one answers. */

static bool is_mine(uint32_t entry)
{
    return atomic_load_explicit(&costs.mine, memory_order_relaxed) >> entry & 1;
}

static bool is_me(const _Atomic int32_t *pid)
{
    return atomic_load_explicit(pid, memory_order_relaxed) == costs.me;
}

static bool turn_is_asked(const struct device_entry *entry)
{
    return atomic_load_explicit(&entry->asked, memory_order_acquire) !=
           atomic_load_explicit(&entry->answered, memory_order_acquire);
}

/* Under the lock. */
static void turns_answer(void)
{
    for (uint32_t i = 0; i < DEVICES_MAX; i++) {
        struct device_entry *entry = &costs.page->devices[i];
        struct device_measure *measure = &costs.measures[i];
        if (!is_mine(i) || !measure->block || !is_me(&entry->owner) || !turn_is_asked(entry))
            continue;
        uint32_t asked = atomic_load_explicit(&entry->asked, memory_order_relaxed);
        /* Who has reset the device, or has it busy, is not asked again. */
        if (!copier_is_alive(measure->copier) || !device_take_turn(measure))
            atomic_store_explicit(&entry->owner, 0, memory_order_relaxed);
        atomic_store_explicit(&entry->answered, asked, memory_order_release);
    }
}

/* Under the lock. False: there is no page, or another process has it. */
static bool page_try_lock(void)
{
    if (!costs.page || flock(costs.fd, LOCK_EX | LOCK_NB) != 0)
        return false;
    if (costs.page->count > DEVICES_MAX)
        costs.page->count = DEVICES_MAX;
    return true;
}

/* The same. False: who has it is stopped, and nothing is known. */
static bool page_lock(void)
{
    const struct timespec pause = {.tv_nsec = 100000};
    uint64_t start_ns = clock_now_ns();
    while (!page_try_lock()) {
        if (!costs.page || (errno != EINTR && errno != EWOULDBLOCK) ||
            clock_now_ns() - start_ns > LOCK_MOST_NS)
            return false;
        turns_answer(); /* who has it may be waiting for that */
        nanosleep(&pause, NULL);
    }
    return true;
}

static void page_unlock(void)
{
    (void) flock(costs.fd, LOCK_UN);
}

/* --- measuring, under both locks -------------------------------------------------------------- */

/* False: there is no memory, and nothing is kept. */
static bool blocks_make(struct device_measure *measure)
{
    driver_result result;
    measure->pinned = copier_pin(measure->copier, DEVICE_PINNED_BYTES, &result);
    if (!measure->pinned)
        return false;
    result = IN_CONTEXT(measure->copier, driver.mem_alloc(&measure->block, DEVICE_BLOCK_BYTES));
    if (result != DRIVER_SUCCESS)
        copier_unpin(measure->copier, measure->pinned);
    return result == DRIVER_SUCCESS;
}

static void blocks_free(const struct device_measure *measure)
{
    copier_unpin(measure->copier, measure->pinned);
    (void) IN_CONTEXT(measure->copier, driver.mem_free(measure->block));
}

static uint32_t entry_find(const struct driver_uuid *uuid)
{
    uint32_t i = 0;
    while (i < costs.page->count && memcmp(&costs.page->devices[i].uuid, uuid, sizeof(*uuid)) != 0)
        i++;
    return i;
}

/* Measures, and leaves the block to the others, if the driver can share it. */
static void entry_make(struct device_measure *measure, const struct driver_uuid *uuid)
{
    struct device_entry *entry = &costs.page->devices[costs.page->count++];
    *entry = (struct device_entry){.uuid = *uuid};
    (void) device_measure(measure, &entry->costs);
    if (IN_CONTEXT(measure->copier, driver.ipc_export(&entry->block, measure->block)) ==
        DRIVER_SUCCESS)
        atomic_store_explicit(&entry->owner, (int32_t) getpid(), memory_order_relaxed);
}

/* Pairs with all that have a block and were not measured yet. What one end has measured holds for
 * the other, until it measures itself. */
static void pairs_measure(struct device_measure *measure, uint32_t mine, double until_s)
{
    for (uint32_t i = 0; i < costs.page->count && !measure->is_late; i++) {
        const struct device_entry *other = &costs.page->devices[i];
        struct device_pair *pair = &costs.page->pairs[mine][i];
        measure->seconds = until_s - clock_exact_s();
        if (!atomic_load_explicit(&other->owner, memory_order_relaxed) || is_me(&other->owner) ||
            device_pair_check(pair) || !(measure->seconds > 0))
            continue;
        if (device_measure_pair(measure, &other->block, pair) &&
            !device_pair_check(&costs.page->pairs[i][mine]))
            costs.page->pairs[i][mine] = *pair;
    }
}

/* --- in turns: the asker ---------------------------------------------------------------------- */

static void turn_want(struct device_entry *entry)
{
    uint32_t answered = atomic_load_explicit(&entry->answered, memory_order_relaxed);
    atomic_store_explicit(&entry->asked, answered + 1, memory_order_release);
}

static bool turn_ask(void *context)
{
    struct device_entry *entry = context;
    uint64_t start_ns = clock_now_ns();
    if (turn_is_asked(entry))
        return false; /* it did not answer the last time */
    turn_want(entry);
    while (turn_is_asked(entry) && clock_now_ns() - start_ns < TURN_MOST_NS)
        sched_yield();
    return !turn_is_asked(entry);
}

/* Under both locks. The owner has just answered, so it is in MPI. */
static void turns_measure(uint32_t index)
{
    struct device_entry *entry = &costs.page->devices[index];
    struct device_measure measure = costs.measures[index];
    struct device_pair pair;
    measure.seconds = TURNS_MOST_S;
    measure.turn = turn_ask;
    measure.context = entry;
    if (!copier_is_alive(measure.copier)) { /* the program has reset the device */
        atomic_store_explicit(&entry->asker, -1, memory_order_relaxed);
    } else if (device_measure_pair(&measure, &entry->block, &pair) && pair.turns == 2 * ROUNDS) {
        costs.page->pairs[index][index] = pair;
        atomic_store_explicit(&entry->asker, -1, memory_order_relaxed);
        atomic_fetch_add_explicit(&costs.page->changes, 1, memory_order_relaxed);
    } else if (measure.is_late || ++costs.turns_tried[index] >= TURNS_TRIES) {
        atomic_store_explicit(&entry->asker, -1, memory_order_relaxed);
    } else if (!turn_is_asked(entry)) {
        turn_want(entry);
    }
}

int device_costs_progress(void)
{
    struct device_page *page = atomic_load_explicit(&costs.open_page, memory_order_acquire);
    uint32_t left = page ? atomic_load_explicit(&costs.mine, memory_order_relaxed) : 0;
    for (uint32_t i = 0; left; left >>= 1, i++) {
        struct device_entry *entry = &page->devices[i];
        bool answers = is_me(&entry->owner) && turn_is_asked(entry);
        bool asks = is_me(&entry->asker) && !turn_is_asked(entry);
        if (!(left & 1) || !(answers || asks) || pthread_mutex_trylock(&costs.lock) != 0)
            continue;
        if (answers) {
            turns_answer();
        } else if (flock(costs.fd, LOCK_EX | LOCK_NB) == 0) {
            turns_measure(i);
            page_unlock();
        }
        pthread_mutex_unlock(&costs.lock);
        return 1;
    }
    return 0;
}

/* Under both locks. */
static void turns_begin(struct device_entry *entry)
{
    if (!atomic_load_explicit(&entry->owner, memory_order_relaxed) || is_me(&entry->owner) ||
        atomic_load_explicit(&entry->asker, memory_order_relaxed) != 0)
        return;
    turn_want(entry);
    atomic_store_explicit(&entry->asker, (int32_t) getpid(), memory_order_relaxed);
}

/* --- measuring, the first time ------------------------------------------------------------------
 */

static void entry_use(const struct driver_uuid *uuid, struct copier *copier)
{
    double start_s = clock_exact_s(), most_s = 1e-3 * parameters.device_measure_ms;
    struct device_measure measure = {.copier = copier, .seconds = most_s, .rounds = ROUNDS};
    uint32_t index = entry_find(uuid);
    if (index == DEVICES_MAX || costs.measures[index].copier || !blocks_make(&measure))
        return;
    costs.measures[index] = measure;
    bool is_new = index == costs.page->count;
    if (is_new)
        entry_make(&measure, uuid);
    else if (!device_costs_check(&costs.page->devices[index].costs)) /* who tried had no luck */
        (void) device_measure(&measure, &costs.page->devices[index].costs);
    pairs_measure(&measure, index, start_s + most_s);
    if (!measure.is_late)
        turns_begin(&costs.page->devices[index]);
    costs.page->devices[index].processes++;
    atomic_fetch_or_explicit(&costs.mine, UINT32_C(1) << index, memory_order_relaxed);
    atomic_fetch_add_explicit(&costs.page->changes, 1, memory_order_relaxed);
    opal_output_verbose(10, ompi_pml_base_framework.framework_output,
                        "multilane: device %u: %s in %.1f ms", index,
                        is_new ? "measured" : "measured by another process, looked at",
                        (clock_exact_s() - start_s) * 1e3);
}

/* --- first uses --------------------------------------------------------------------------------
 */

static bool is_wanted(void)
{
    return parameters.device_measure_ms > 0 &&
           (!parameters.profile || strcmp(parameters.profile, "none") != 0);
}

/* Under the lock. */
static void device_use(const struct memory *memory)
{
    struct driver_uuid uuid;
    driver_result result;
    struct copier *copier = copier_get(memory, &result);
    if (!is_wanted() || !copier || driver.device_uuid(&uuid, copier->device) != DRIVER_SUCCESS)
        return;
    if (!costs.page)
        page_open();
    if (!page_lock())
        return;
    entry_use(&uuid, copier);
    page_unlock();
}

void device_costs_use(const struct memory *memory)
{
    uint64_t bit = UINT64_C(1) << (memory->device & 63);
    if (memory->kind != MEMORY_DEVICE || memory->device < 0 ||
        (atomic_load_explicit(&costs.used, memory_order_relaxed) & bit))
        return;
    pthread_mutex_lock(&costs.lock);
    if (!(atomic_load_explicit(&costs.used, memory_order_relaxed) & bit))
        device_use(memory);
    atomic_fetch_or_explicit(&costs.used, bit, memory_order_relaxed);
    pthread_mutex_unlock(&costs.lock);
}

void device_costs_look(void)
{
    if (OPAL_LIKELY(atomic_load_explicit(&costs.open_page, memory_order_acquire)) || !is_wanted())
        return;
    pthread_mutex_lock(&costs.lock);
    if (!costs.page)
        page_open();
    pthread_mutex_unlock(&costs.lock);
}

uint32_t device_costs_changes(void)
{
    const struct device_page *page = atomic_load_explicit(&costs.open_page, memory_order_acquire);
    return (page ? atomic_load_explicit(&page->changes, memory_order_relaxed) : 0) +
           atomic_load_explicit(&costs.missed, memory_order_relaxed);
}

/* --- what plans take -------------------------------------------------------------------------- */

static void line_slower(struct cost_line *line, const struct cost_line *other)
{
    line->fixed_s = fmax(line->fixed_s, other->fixed_s);
    line->growth_s_byte = fmax(line->growth_s_byte, other->growth_s_byte);
}

/* A process without a device exchanges messages with any of the node's. */
static bool is_used_here(uint32_t entry)
{
    return is_mine(entry) || !atomic_load_explicit(&costs.mine, memory_order_relaxed);
}

/* Of all devices that this process exchanges messages with. False: of one at least it was not
 * measured. */
static bool own_read(struct cost_line *copy, struct cost_line *within)
{
    bool is_known = costs.page->count > 0;
    for (uint32_t i = 0; i < costs.page->count; i++) {
        const struct device_costs *measured = &costs.page->devices[i].costs;
        if (!is_used_here(i))
            continue;
        is_known = is_known && device_costs_check(measured);
        line_slower(copy, &measured->to_host);
        line_slower(copy, &measured->to_device);
        line_slower(within, &measured->within);
    }
    return is_known;
}

/* Of these devices with all that were measured. */
static bool pair_read(struct device_pair *pair)
{
    bool is_known = false;
    *pair = (struct device_pair){.open_s = 0};
    for (uint32_t i = 0; i < costs.page->count; i++)
        for (uint32_t j = 0; j < costs.page->count && is_used_here(i); j++) {
            const struct device_pair *measured = &costs.page->pairs[i][j];
            if (!device_pair_check(measured))
                continue;
            is_known = true;
            pair->open_s = fmax(pair->open_s, measured->open_s);
            pair->turns += measured->turns;
            line_slower(&pair->get, &measured->get);
        }
    return is_known;
}

/* Relaxed: a copy just before it is told goes the slower way. */
static void sharing_read(void)
{
    for (uint32_t i = 0; i < costs.page->count; i++)
        if (is_mine(i))
            atomic_store_explicit(&costs.measures[i].copier->is_shared,
                                  costs.page->devices[i].processes > 1, memory_order_relaxed);
}

static struct known known_read(void)
{
    pthread_mutex_lock(&costs.lock);
    if (page_try_lock()) {
        costs.known = (struct known){.has_copy = false};
        sharing_read();
        costs.known.has_copy = own_read(&costs.known.copy, &costs.known.within);
        costs.known.has_pair = pair_read(&costs.known.pair);
        page_unlock();
    } else if (costs.page) {
        atomic_fetch_add_explicit(&costs.missed, 1, memory_order_relaxed);
    }
    struct known known = costs.known;
    pthread_mutex_unlock(&costs.lock);
    return known;
}

struct cost_line device_costs_copy(void)
{
    const struct known known = known_read();
    return known.has_copy ? known.copy : unmeasured_copy;
}

/* In the model three overheads stand for a rendezvous: the copy is what it takes for any size. */
static void way_set(struct model_lane *lane, enum model_way way, const struct cost_line *line)
{
    struct model_lane_cost *cost = &lane->cost[way];
    bool is_known = line->growth_s_byte > 0;
    if (!cost->range_count)
        return;
    cost->ranges[0].overhead_send_s = is_known ? line->fixed_s / 3 : UNMEASURED_S;
    cost->ranges[0].bandwidth_bytes_s = is_known ? 1 / line->growth_s_byte : UNMEASURED_BYTES_S;
    for (int i = MODEL_LATENCY; i <= MODEL_OVERHEAD_RECEIVE; i++)
        model_lane_set_source(lane, way, (enum model_attribute) i,
                              is_known ? MODEL_SOURCE_MEASURED : MODEL_SOURCE_UNMEASURED);
}

void device_costs_apply(struct model_lane *lane, bool is_self)
{
    const struct known known = known_read();
    const struct cost_line *get = is_self ? &known.within : &known.pair.get;
    way_set(lane, MODEL_BY_GET, get);
    way_set(lane, MODEL_BY_PUT, get);
}

void device_costs_mix(struct model_lane *lane)
{
    const struct known known = known_read();
    const struct cost_line copy = known.has_copy ? known.copy : (struct cost_line){0, 0};
    if (model_lane_has_source(lane, MODEL_SOURCE_USER))
        return;
    way_set(lane, MODEL_BY_GET, &copy);
    way_set(lane, MODEL_BY_PUT, &copy);
}

struct words device_costs_text(void)
{
    const struct known known = known_read();
    if (!known.has_copy)
        return words_of("between host and device: not measured");
    struct words words = words_of("between host and device: %.1f us and %.3g GB/s, measured",
                                  known.copy.fixed_s * 1e6, 1e-9 / known.copy.growth_s_byte);
    if (known.has_pair)
        words_more(&words, "; opening another process's memory: %.0f us%s, measured",
                   known.pair.open_s * 1e6, known.pair.turns ? ", copies from there in turns" : "");
    return words;
}

/* Others may be opening a block of ours, but not while the page is locked. */
void device_costs_fini(void)
{
    copiers_check();
    if (page_lock()) {
        for (uint32_t i = 0; i < DEVICES_MAX; i++)
            if (costs.measures[i].copier) {
                if (is_me(&costs.page->devices[i].owner))
                    atomic_store_explicit(&costs.page->devices[i].owner, 0, memory_order_relaxed);
                if (is_me(&costs.page->devices[i].asker))
                    atomic_store_explicit(&costs.page->devices[i].asker, -1, memory_order_relaxed);
                costs.page->devices[i].processes--;
                blocks_free(&costs.measures[i]);
            }
        page_unlock();
    }
    atomic_store_explicit(&costs.open_page, NULL, memory_order_release);
    if (costs.page)
        munmap(costs.page, sizeof(*costs.page));
    if (costs.fd >= 0)
        close(costs.fd);
    costs.page = NULL;
    costs.fd = -1;
    atomic_init(&costs.mine, 0);
    atomic_init(&costs.used, 0);
    memset(costs.measures, 0, sizeof(costs.measures));
    costs.known = (struct known){.has_copy = false};
    memset(costs.turns_tried, 0, sizeof(costs.turns_tried));
}
