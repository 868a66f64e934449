/* SPDX-License-Identifier: BSD-3-Clause */
/* Times a ring of chunks between the kernels of two processes, on one device or on two: one fills
 * chunks, the other empties them. With dual state each end polls a counter in its own memory, with
 * single state both poll the word of the chunk. The ring lies in the receiver's device memory, or
 * in pinned host memory, so that the bus plays a far link. Needs a real GPU; where there is none it
 * says so and measures nothing.
 *
 * device_ring [--check] [--limit-s S]: with --check every step goes once, with small chunks, and
 * its bytes are looked at; nothing is timed, so that a stand-in for the driver will do. A step that
 * takes longer than S seconds (5) is cut and named, and the ones behind it are run by new
 * processes. */
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/memory/driver.h"

#include "test/bench/device_ring.h"
#include "test/bench/median.h"
#include "test/fake/cuda_calls.h"

extern const unsigned char device_ring_image[];
extern const size_t device_ring_image_bytes;

enum end { SENDER, RECEIVER, ENDS };
enum place { DEVICE, HOST };
enum kind { POLL_NEAR, POLL_FAR, TURN, FLOW };
enum { THREADS = 512, DEPTH = 4, RUNS = 5, CUTS_MOST = 3, NOTHING_STATUS = 3 };
enum { BLOCKS_MOST = 32, CHUNK_MOST = 512 << 10, CHECK_SMALLER = 64 };

#define RING_BYTES  ((size_t) BLOCKS_MOST * DEPTH * CHUNK_MOST)
#define LINES_BYTES ((size_t) BLOCKS_MOST * DEPTH * RING_LINE_BYTES)
#define AREA_BYTES  (RING_BYTES + 2 * LINES_BYTES)
#define USER_BYTES  ((size_t) 256 << 20)
#define LOOKS       (2u << 20)
static const double run_s = 0.02; /* a run that is timed takes as long, if there are bytes enough */

struct step {
    enum kind kind;
    enum place place;
    uint32_t is_single, blocks, depth, chunk_bytes;
};

static struct step steps[80];
static int steps_count;
static bool is_check;
static double limit_s = 5;

/* What both processes and the one that watches them map. */
static struct shared {
    pthread_barrier_t barrier;
    struct driver_ipc_handle handles[ENDS];
    /* Relaxed, what is atomic: the parent only looks, and barriers order the rest. */
    _Atomic int step; /* under way; below 0: none yet */
    _Atomic double until_s;
    uint64_t count; /* chunks of a block in the next run; 0: no more */
    double results[80];
    _Atomic bool has_no_host; /* it could not be pinned */
    char said[200];
} * shared;
static unsigned char *host_area;

/* --- this process's end -------------------------------------------------------------------------
 */

static enum end self;
static driver_ptr areas[ENDS], user, moved;
static driver_stream stream;
static driver_function kernel;

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

static driver_ptr address(const void *bytes)
{
    return (driver_ptr) (uintptr_t) bytes;
}

static const char *step_name(int i)
{
    static char name[120];
    static const char *const kinds[] = {"polls near", "polls far", "turns", "flow"};
    const struct step *step = &steps[i];
    if (i < 0)
        return "the beginning";
    snprintf(name, sizeof(name), "%s, ring in %s memory, %s state, %u blocks, chunks of %u B",
             kinds[step->kind], step->place == DEVICE ? "device" : "host",
             step->is_single ? "single" : "dual", step->blocks, step->chunk_bytes);
    return name;
}

static _Noreturn void ended(int status, const char *what, const char *why)
{
    snprintf(shared->said, sizeof(shared->said), "%s%s%s", what, *why ? ": " : "", why);
    _exit(status);
}

static void must(driver_result result, const char *what)
{
    char words[160];
    if (result != DRIVER_SUCCESS)
        ended(1, what, driver_words(result, words, sizeof(words)));
}

static void together(void)
{
    pthread_barrier_wait(&shared->barrier);
}

/* Two devices where they reach each other's memory, else one for both. */
static int device_choose(void)
{
    int count = 0, can = 0;
    must(driver.device_count(&count), "cuDeviceGetCount");
    if (count == 0)
        ended(NOTHING_STATUS, "the driver knows of no device", "");
    if (count > 1)
        must(driver.device_can_access(&can, 0, 1), "cuDeviceCanAccessPeer");
    if (self == RECEIVER)
        printf("device_ring: %s, %d threads a block\n",
               can ? "two devices" : "one device for both processes", THREADS);
    return can && self == RECEIVER ? 1 : 0;
}

static void device_begin(void)
{
    char words[160];
    driver_context context;
    driver_module module;
    dlopen("libcuda.so.1", RTLD_NOW); /* as programs that use a device have it */
    if (!driver_load())
        ended(NOTHING_STATUS, driver_why(), "");
    bool is_standin = strstr(driver_words(DRIVER_SUCCESS, words, sizeof(words)), "stand-in");
    if (is_standin && !is_check)
        ended(NOTHING_STATUS, "the driver is a stand-in, which has no speed of its own", "");
    if (!is_standin && device_ring_image_bytes == 0)
        ended(NOTHING_STATUS, "this Multilane was built without nvcc", "");
    if (!driver.launch || !driver.module_load || !driver.module_function)
        ended(NOTHING_STATUS, "the driver is too old for kernels", "");
    must(driver.init(0), "cuInit");
    must(driver.primary_retain(&context, device_choose()), "a context");
    must(driver.context_push(context), "cuCtxPushCurrent");
    must(driver.stream_create(&stream, DRIVER_STREAM_NON_BLOCKING), "cuStreamCreate");
    must(driver.module_load(&module, is_standin ? (const void *) "stand-in" : device_ring_image),
         "cuModuleLoadData");
    must(driver.module_function(&kernel, module, "multilane_ring"), "cuModuleGetFunction");
}

static size_t user_bytes(void)
{
    return is_check ? USER_BYTES / CHECK_SMALLER : USER_BYTES;
}

static uint64_t word_of(uint64_t i)
{
    return (i + 1) * 0x9e3779b97f4a7c15;
}

static void memory_begin(void)
{
    static const uint64_t none[BLOCKS_MOST];
    must(driver.mem_alloc(&areas[self], AREA_BYTES), "cuMemAlloc");
    must(driver.mem_alloc(&user, user_bytes()), "cuMemAlloc");
    must(driver.mem_alloc(&moved, sizeof(none)), "cuMemAlloc");
    driver_result pinned = driver.host_pin(host_area, AREA_BYTES, DRIVER_HOST_PORTABLE);
    if (pinned != DRIVER_SUCCESS) {
        printf("device_ring: no ring in host memory, which cannot be pinned: error %d\n", pinned);
        atomic_store_explicit(&shared->has_no_host, true, memory_order_relaxed);
    }
    uint64_t *words = calloc(1, user_bytes());
    for (uint64_t i = 0; words && i < user_bytes() / sizeof(*words); i++)
        words[i] = self == SENDER ? word_of(i) : 0;
    must(words ? cuda_copy(user, address(words), user_bytes()) : DRIVER_OUT_OF_MEMORY, "a copy");
    free(words);
    must(driver.ipc_export(&shared->handles[self], areas[self]), "cuIpcGetMemHandle");
    together();
    must(driver.ipc_open(&areas[!self], shared->handles[!self], DRIVER_IPC_LAZY_PEER_ACCESS),
         "cuIpcOpenMemHandle");
}

static void lines_clear(void)
{
    static const unsigned char zeros[2 * LINES_BYTES];
    must(cuda_copy(areas[self] + RING_BYTES, address(zeros), sizeof(zeros)), "a copy");
    if (self == RECEIVER)
        memset(host_area + RING_BYTES, 0, sizeof(zeros));
}

static struct ring_job job_of(const struct step *step, uint64_t count)
{
    driver_ptr ring = step->place == DEVICE ? areas[RECEIVER] : address(host_area);
    driver_ptr filled = ring + RING_BYTES, emptied = areas[SENDER] + RING_BYTES + LINES_BYTES;
    bool waits_filled = step->is_single || self == RECEIVER,
         tells_filled = step->is_single || self == SENDER;
    return (struct ring_job){.user = user,
                             .chunks = ring,
                             .waits = waits_filled ? filled : emptied,
                             .tells = tells_filled ? filled : emptied,
                             .moved = moved,
                             .count = count,
                             .blocks = step->blocks,
                             .depth = step->depth,
                             .chunk_bytes = step->chunk_bytes,
                             .looks = LOOKS,
                             .is_sender = self == SENDER,
                             .is_single = step->is_single};
}

/* Seconds until this end's kernel has ended; `least`: the fewest chunks that a block of it moved.
 */
static double kernel_run(struct ring_job *job, uint64_t *least)
{
    uint64_t each[BLOCKS_MOST];
    void *arguments[] = {job};
    double begun = now_s();
    must(driver.launch(kernel, job->blocks, 1, 1, THREADS, 1, 1, 0, stream, arguments, NULL),
         "cuLaunchKernel");
    must(driver.stream_synchronize(stream), "the kernel");
    double taken = now_s() - begun;
    must(cuda_copy(address(each), moved, sizeof(each)), "a copy");
    *least = each[0];
    for (uint32_t i = 1; i < job->blocks; i++)
        *least = each[i] < *least ? each[i] : *least;
    return taken;
}

static double both_run(const struct step *step, uint64_t count)
{
    struct ring_job job = job_of(step, count);
    uint64_t least;
    lines_clear();
    together();
    double taken = kernel_run(&job, &least);
    if (least < count)
        ended(1, "a kernel gave up waiting for the other process's", "");
    together();
    return taken;
}

/* --- steps --------------------------------------------------------------------------------------
 */

/* One end's kernel waits in vain: it has to give up, and what a look took is known. */
static double poll_run(const struct step *step)
{
    struct ring_job job = job_of(step, 1);
    uint64_t least;
    job.first = 1 << 30;
    job.looks = is_check ? 1000 : 100000;
    lines_clear();
    together();
    double taken = (step->kind == POLL_NEAR) == (self == RECEIVER) ? kernel_run(&job, &least) : 0;
    if (taken > 0 && least != 0)
        ended(1, "a kernel that nothing was there for did not give up", "");
    together();
    return taken * 1e9 / job.looks;
}

static void bytes_check(const struct step *step, uint64_t count)
{
    size_t bytes = step->blocks * count * step->chunk_bytes;
    uint64_t *words = calloc(1, bytes);
    if (self == RECEIVER && words)
        must(cuda_copy(user, address(words), bytes), "a copy");
    both_run(step, count);
    if (self == RECEIVER && words)
        must(cuda_copy(address(words), user, bytes), "a copy");
    for (size_t i = 0; self == RECEIVER && words && i < bytes / sizeof(*words); i++)
        if (words[i] != word_of(i))
            ended(1, "bytes are wrong that came through the ring", "");
    free(words);
}

/* Seconds a chunk of each block. The receiver says how many. */
static double chunk_s(const struct step *step)
{
    uint64_t most = user_bytes() / step->blocks / step->chunk_bytes, count = 2 * step->depth + 1;
    double taken[RUNS];
    for (;;) {
        double once = both_run(step, count);
        if (self == RECEIVER)
            shared->count = once < run_s && count < most ? count * 4 < most ? count * 4 : most : 0;
        together();
        if (shared->count == 0)
            break;
        count = shared->count;
    }
    for (int i = 0; i < RUNS; i++)
        taken[i] = both_run(step, count);
    return median(taken, RUNS) / (double) count;
}

static double step_run(const struct step *step)
{
    if (step->kind == POLL_NEAR || step->kind == POLL_FAR)
        return poll_run(step);
    bytes_check(step, 2 * step->depth + 1);
    if (is_check)
        return 0;
    double took = chunk_s(step);
    return step->kind == TURN ? took * 1e6 : 1e-9 * step->blocks * step->chunk_bytes / took;
}

/* Dual and single state of the same ring stand in one line. */
static void step_print(int i)
{
    const struct step *step = &steps[i];
    const char *where = step->place == DEVICE ? "device" : "host",
               *unit = step->kind == TURN ? "us a turn" : "GB/s";
    if (is_check)
        return;
    if (step->kind == POLL_NEAR || step->kind == POLL_FAR)
        printf("%-6s  a look %s: %.0f ns\n", where, step->kind == POLL_NEAR ? "near" : "far",
               shared->results[i]);
    else if (step->is_single)
        printf("%-6s  %2u blocks  %6u B  dual %8.2f  single %8.2f %s\n", where, step->blocks,
               step->chunk_bytes, shared->results[i - 1], shared->results[i], unit);
    fflush(stdout);
}

static _Noreturn void end_run(int from)
{
    device_begin();
    memory_begin();
    for (int i = from; i < steps_count; i++) {
        if (steps[i].place == HOST &&
            atomic_load_explicit(&shared->has_no_host, memory_order_relaxed))
            continue;
        together();
        if (self == RECEIVER) {
            atomic_store_explicit(&shared->step, i, memory_order_relaxed);
            atomic_store_explicit(&shared->until_s, now_s() + limit_s, memory_order_relaxed);
        }
        together();
        double result = step_run(&steps[i]);
        if ((self == RECEIVER) == (steps[i].kind != POLL_FAR)) {
            shared->results[i] = result;
            step_print(i);
        }
    }
    fflush(stdout);
    _exit(0);
}

static void step_add(enum kind kind, enum place place, unsigned blocks, unsigned depth,
                     unsigned chunk_bytes, bool is_single)
{
    steps[steps_count++] = (struct step){kind, place, is_single, blocks, depth, chunk_bytes};
}

static void steps_make(void)
{
    step_add(POLL_NEAR, DEVICE, 1, 1, 16, false);
    for (enum place place = DEVICE; place <= HOST; place++) {
        step_add(POLL_FAR, place, 1, 1, 16, true);
        for (int single = 0; single < 2; single++)
            step_add(TURN, place, 1, 1, 16, single);
        for (unsigned chunk = 8 << 10; chunk <= CHUNK_MOST; chunk *= 4)
            for (unsigned blocks = 1; blocks <= BLOCKS_MOST;
                 blocks = blocks == 16 ? 32 : blocks * 4)
                for (int single = 0; single < 2; single++)
                    step_add(FLOW, place, blocks, DEPTH, is_check ? chunk / CHECK_SMALLER : chunk,
                             single);
    }
}

/* --- the process that watches -------------------------------------------------------------------
 */

static void end_start(pid_t *pid, enum end end, int from)
{
    fflush(stdout);
    *pid = fork();
    if (*pid == 0) {
        self = end;
        end_run(from);
    }
    if (*pid < 0) {
        perror("device_ring: fork");
        exit(1);
    }
}

static void both_kill(const pid_t *pids)
{
    for (int i = 0; i < ENDS; i++)
        if (pids[i] > 0)
            kill(pids[i], SIGKILL);
}

/* The status of the first that ended otherwise than well; 0: both did; -1: the limit came first. */
static int both_watch(pid_t *pids)
{
    static const struct timespec a_while = {0, 20000000};
    sigset_t ends;
    int first = 0;
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    for (int left = ENDS; left > 0;) {
        sigtimedwait(&ends, NULL, &a_while);
        for (int i = 0; i < ENDS; i++) {
            int status;
            if (pids[i] <= 0 || waitpid(pids[i], &status, WNOHANG) != pids[i])
                continue;
            pids[i] = 0;
            left--;
            if (status != 0 && first == 0) {
                first = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
                both_kill(pids);
            }
        }
        if (left > 0 && now_s() > atomic_load_explicit(&shared->until_s, memory_order_relaxed)) {
            if (first == -1)
                return -1; /* it is killed, and does not go */
            first = -1;
            atomic_store_explicit(&shared->until_s, now_s() + limit_s, memory_order_relaxed);
            both_kill(pids);
        }
    }
    return first;
}

static void shared_begin(void)
{
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->barrier, &attributes, ENDS);
    atomic_store_explicit(&shared->step, -1, memory_order_relaxed);
    atomic_store_explicit(&shared->has_no_host, false, memory_order_relaxed);
    atomic_store_explicit(&shared->until_s, now_s() + 4 * limit_s, memory_order_relaxed);
}

static bool arguments_read(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--check") == 0)
            is_check = true;
        else if (strcmp(argv[i], "--limit-s") != 0 || i + 1 >= argc ||
                 (limit_s = atof(argv[++i])) <= 0)
            return false;
    return true;
}

static void *map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED)
        return memory;
    perror("device_ring: mmap");
    exit(1);
}

int main(int argc, char **argv)
{
    int from = 0, cuts = 0;
    bool is_through = false;
    sigset_t ends;
    if (!arguments_read(argc, argv)) {
        fprintf(stderr, "device_ring: it knows --check and --limit-s SECONDS\n");
        return 2;
    }
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    steps_make();
    shared = map(sizeof(*shared));
    host_area = map(AREA_BYTES);
    while (from < steps_count) {
        pid_t pids[ENDS];
        shared_begin();
        end_start(&pids[SENDER], SENDER, from);
        end_start(&pids[RECEIVER], RECEIVER, from);
        int status = both_watch(pids),
            step = atomic_load_explicit(&shared->step, memory_order_relaxed);
        if (status == 0) {
            is_through = true;
            break;
        }
        if (status == NOTHING_STATUS) {
            printf("device_ring: nothing measured: %s\n", shared->said);
            return 0;
        }
        fprintf(stderr, "device_ring: %s: %s\n", step_name(step),
                status == -1      ? "cut, as it ran into its limit"
                : shared->said[0] ? shared->said
                                  : "a process broke off");
        if (step < 0 || ++cuts == CUTS_MOST)
            break;
        shared->results[step] = NAN;
        step_print(step);
        shared->said[0] = '\0';
        from = step + 1;
    }
    if (is_check && cuts == 0 && is_through)
        printf("device_ring: %d steps looked at, 0 wrong\n", steps_count);
    return cuts > 0 || !is_through;
}
