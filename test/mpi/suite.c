// SPDX-License-Identifier: BSD-3-Clause
// The frame of every conformance program: runs named cases, gathers failures over all ranks and
// ends the job by name when a case hangs.
#define _GNU_SOURCE
#include "suite.h"

#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct suite suite;

enum { EXIT_HUNG = 86, HANG_GRACE_S = 3, FAILURES_SHOWN = 20 };

static const char *program_name = "?";
static const char *volatile case_name = "start";
static int case_seconds = 120;
static bool verbose;
static int argument_count;
static char **arguments;
static atomic_int failures; // relaxed: only a count, read after threads have been joined
static bool skipped;
static char skip_reason[256];

// Where a thread is, for the watchdog. The handler runs in one thread only, so the last call of any
// thread is kept; that is exact for the programs that have one.
// (Relaxed: each is looked at alone.)
static _Atomic(const char *) at_file = "?";
static _Atomic(const char *) at_what = "?";
static atomic_int at_line;

void suite_at(const char *file, int line, const char *what)
{
    atomic_store_explicit(&at_file, file, memory_order_relaxed);
    atomic_store_explicit(&at_line, line, memory_order_relaxed);
    atomic_store_explicit(&at_what, what, memory_order_relaxed);
}

int suite_failures(void)
{
    return atomic_load_explicit(&failures, memory_order_relaxed);
}

void suite_fail(const char *file, int line, const char *format, ...)
{
    int count = atomic_fetch_add_explicit(&failures, 1, memory_order_relaxed) + 1;
    if (count > FAILURES_SHOWN)
        return;
    char text[600];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fprintf(stderr, "FAIL %s %s rank %d of %d, %s:%d: %s%s\n", program_name, case_name, suite.rank,
            suite.size, file, line, text,
            count == FAILURES_SHOWN ? " (further failures of this rank are only counted)" : "");
}

void suite_mpi_fail(const char *file, int line, const char *call, int rc)
{
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    if (MPI_Error_string(rc, text, &length) != MPI_SUCCESS)
        snprintf(text, sizeof text, "unknown");
    suite_fail(file, line, "%s returned %d (%s)", call, rc, text);
}

int suite_class(int rc)
{
    int class = MPI_ERR_UNKNOWN;
    if (rc == MPI_SUCCESS)
        return MPI_SUCCESS;
    MPI_Error_class(rc, &class);
    return class;
}

void suite_expect_class(const char *file, int line, const char *call, int rc, int class,
                        const char *class_name)
{
    if (suite_class(rc) != class)
        suite_fail(file, line, "%s returned %d of class %d, expected %s (%d)", call, rc,
                   suite_class(rc), class_name, class);
}

void suite_skip(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(skip_reason, sizeof skip_reason, format, list);
    va_end(list);
    skipped = true;
}

bool suite_library_is(int major, int minor_least, int minor_most)
{
#if defined(OMPI_MAJOR_VERSION)
    return OMPI_MAJOR_VERSION == major && OMPI_MINOR_VERSION >= minor_least &&
           OMPI_MINOR_VERSION <= minor_most;
#else
    (void) major, (void) minor_least, (void) minor_most;
    return false;
#endif
}

bool suite_pml_is(const char *name)
{
    const char *told = getenv("OMPI_MCA_pml");
    return strcmp(told && *told ? told : "ob1", name) == 0;
}

const char *suite_option(const char *name)
{
    size_t length = strlen(name);
    for (int i = 1; i < argument_count; i++) {
        if (strncmp(arguments[i], "--", 2) != 0 || strncmp(arguments[i] + 2, name, length) != 0)
            continue;
        const char *rest = arguments[i] + 2 + length;
        if (*rest == '=')
            return rest + 1;
        if (*rest == '\0')
            return i + 1 < argument_count ? arguments[i + 1] : "";
    }
    return NULL;
}

// ---- the watchdog ----

static void (*hang_details)(void);

void suite_on_hang(void (*report)(void))
{
    hang_details = report;
}

void suite_stage(const char *name)
{
    static char kept[120];
    snprintf(kept, sizeof kept, "%s", name);
    case_name = kept;
    alarm((unsigned) case_seconds);
}

static void hang_report(int signal_number)
{
    (void) signal_number;
    char text[400];
    int length = snprintf(text, sizeof text,
                          "FAIL %s %s rank %d of %d did not end in %d s, last call %s:%d: %s\n",
                          program_name, case_name, suite.rank, suite.size, case_seconds,
                          atomic_load_explicit(&at_file, memory_order_relaxed),
                          atomic_load_explicit(&at_line, memory_order_relaxed),
                          atomic_load_explicit(&at_what, memory_order_relaxed));
    if (length > 0)
        (void) !write(STDERR_FILENO, text,
                      (size_t) length < sizeof text ? (size_t) length : sizeof text - 1);
    if (hang_details)
        hang_details();
    void *frames[40];
    int depth = backtrace(frames, 40);
    backtrace_symbols_fd(frames, depth, STDERR_FILENO);
    sleep(HANG_GRACE_S); // the launcher ends the others at the first exit; let them speak too
    _exit(EXIT_HUNG);
}

static void watchdog_start(void)
{
    void *frames[2];
    backtrace(frames, 2); // loads the unwinder now: doing so inside the handler could deadlock
    struct sigaction action = {.sa_handler = hang_report};
    sigaction(SIGALRM, &action, NULL);
}

// ---- patterns ----

uint64_t random_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static uint64_t pattern_word(uint64_t key, uint64_t index)
{
    uint64_t z = (key + 1) * 0xD1342543DE82EF95u + index * 0x9E3779B97F4A7C15u;
    z ^= z >> 29;
    z *= 0xBF58476D1CE4E5B9u;
    return z ^ (z >> 32);
}

void pattern_fill(void *buffer, size_t bytes, uint64_t key)
{
    unsigned char *out = buffer;
    size_t i = 0;
    for (; bytes - i >= 8; i += 8) // of a length that the compiler knows: no call
        memcpy(out + i, &(uint64_t){pattern_word(key, i / 8)}, 8);
    if (i < bytes)
        memcpy(out + i, &(uint64_t){pattern_word(key, i / 8)}, bytes - i);
}

ptrdiff_t pattern_check(const void *buffer, size_t bytes, uint64_t key)
{
    const unsigned char *in = buffer;
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t word = pattern_word(key, i / 8);
        size_t piece = bytes - i < 8 ? bytes - i : 8;
        if (piece == 8 ? memcmp(in + i, &word, 8) == 0 : memcmp(in + i, &word, piece) == 0)
            continue;
        for (size_t k = 0; k < piece; k++)
            if (in[i + k] != ((unsigned char *) &word)[k])
                return (ptrdiff_t) (i + k);
    }
    return -1;
}

bool all_bytes_are(const void *buffer, size_t bytes, unsigned char value)
{
    const unsigned char *in = buffer;
    for (size_t i = 0; i < bytes; i++)
        if (in[i] != value)
            return false;
    return true;
}

void suite_check_pattern(const char *file, int line, const void *buffer, size_t bytes, uint64_t key,
                         const char *format, ...)
{
    ptrdiff_t at = pattern_check(buffer, bytes, key);
    if (at < 0)
        return;
    char text[400];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    suite_fail(file, line, "%s: byte %td of %zu is wrong (0x%02x)", text, at, bytes,
               ((const unsigned char *) buffer)[at]);
}

void suite_check_status(const char *file, int line, const MPI_Status *status, int source, int tag,
                        size_t bytes)
{
    int count = -1, cancelled = -1;
    MPI_Get_count(status, MPI_BYTE, &count);
    MPI_Test_cancelled(status, &cancelled);
    if (status->MPI_SOURCE != source || status->MPI_TAG != tag || count != (int) bytes || cancelled)
        suite_fail(file, line,
                   "status says source %d tag %d bytes %d cancelled %d, expected %d %d %zu 0",
                   status->MPI_SOURCE, status->MPI_TAG, count, cancelled, source, tag, bytes);
}

const size_t suite_sizes[] = {
    0,       1,       2,       3,       7,        8,       9,       15,      16,      31,
    32,      48,      63,      64,      65,       127,     128,     200,     255,     256,
    257,     1000,    1024,    2047,    4000,     4032,    4080,    4095,    4096,    4097,
    8191,    8192,    12288,   16384,   32700,    32767,   32768,   32769,   65535,   65536,
    65537,   100003,  131072,  131073,  262144,   524289,  1048575, 1048576, 1048577, 2097153,
    3000001, 4194304, 4194309, 8388611, 16777217, 33554432};
const size_t suite_size_count = COUNT_OF(suite_sizes);

size_t suite_size_count_below(size_t largest)
{
    size_t count = 0;
    while (count < suite_size_count && suite_sizes[count] <= largest)
        count++;
    return count;
}

void *suite_alloc(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory) {
        fprintf(stderr, "FAIL %s %s rank %d: no memory for %zu bytes\n", program_name, case_name,
                suite.rank, bytes);
        _exit(1);
    }
    return memory;
}

// ---- running ----

static bool case_wanted(const char *name)
{
    bool any = false;
    for (int i = 1; i < argument_count; i++) {
        const char *value = NULL;
        if (strncmp(arguments[i], "--case=", 7) == 0)
            value = arguments[i] + 7;
        else if (strcmp(arguments[i], "--case") == 0 && i + 1 < argument_count)
            value = arguments[i + 1];
        if (!value)
            continue;
        any = true;
        if (strcmp(value, name) == 0)
            return true;
    }
    return !any;
}

static bool list_and_done(const struct suite_case *cases, size_t count)
{
    for (int i = 1; i < argument_count; i++) {
        if (strcmp(arguments[i], "--list") != 0)
            continue;
        for (size_t k = 0; k < count; k++)
            printf("%-40s from %d ranks  %s\n", cases[k].name, cases[k].ranks_least,
                   cases[k].clause);
        return true;
    }
    return false;
}

static void options_read(int argc, char **argv, const char *program)
{
    program_name = program;
    argument_count = argc;
    arguments = argv;
    const char *seconds = suite_option("seconds");
    if (seconds)
        case_seconds = atoi(seconds);
    verbose = suite_option("verbose") != NULL;
    suite.thorough = suite_option("thorough") != NULL;
}

static void case_enter(const struct suite_case *this_case)
{
    case_name = this_case->name;
    skipped = false;
    suite_at("suite.c", 0, "case not begun");
    alarm((unsigned) case_seconds);
}

static void world_learn(void)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &suite.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &suite.size);
    suite.next = (suite.rank + 1) % suite.size;
    suite.prev = (suite.rank + suite.size - 1) % suite.size;
    suite.oversubscribed = suite.size > (int) sysconf(_SC_NPROCESSORS_ONLN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
}

// Runs one case; returns the failures of all ranks in it.
static int case_run(const struct suite_case *this_case)
{
    int before = suite_failures();
    case_enter(this_case);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &suite.comm));
    OK(MPI_Comm_set_errhandler(suite.comm, MPI_ERRORS_RETURN));
    this_case->run();
    OK(MPI_Comm_free(&suite.comm));
    int mine = suite_failures() - before, all = 0;
    OK(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    alarm(0);
    mine = suite_failures() - before; // the sum may have failed as well
    return all > mine ? all : mine;
}

struct totals {
    int passed, failed, skipped;
};

// Nothing done is not done well: the name of a case may be wrong. Where all is skipped, so is the
// test (test/lib.sh).
enum { STATUS_SKIPPED = 77 };

static int totals_status(const struct totals *totals)
{
    if (totals->failed)
        return 1;
    return totals->passed ? 0 : totals->skipped ? STATUS_SKIPPED : 2;
}

static void totals_print(const struct totals *totals)
{
    if (suite.rank == 0)
        printf("%s: %d ranks, %d passed, %d failed, %d skipped\n", program_name, suite.size,
               totals->passed, totals->failed, totals->skipped);
    fflush(stdout);
}

static void case_account(struct totals *totals, const struct suite_case *this_case, int failed)
{
    if (failed)
        totals->failed++;
    else if (skipped)
        totals->skipped++;
    else
        totals->passed++;
    if (suite.rank != 0)
        return;
    if (failed)
        fprintf(stderr, "FAILED %s %s with %d ranks: %d checks (%s)\n", program_name,
                this_case->name, suite.size, failed, this_case->clause);
    else if (skipped)
        printf("skip %s %s: %s\n", program_name, this_case->name, skip_reason);
    else if (verbose)
        printf("ok %s %s\n", program_name, this_case->name);
    fflush(stdout);
}

static void chapter_run(const struct suite_chapter *chapter, struct totals *totals)
{
    for (size_t i = 0; i < chapter->case_count; i++) {
        const struct suite_case *this_case = &chapter->cases[i];
        if (!case_wanted(this_case->name))
            continue;
        int failed = 0;
        if (suite.size < this_case->ranks_least) {
            suite_skip("needs %d ranks", this_case->ranks_least);
        } else {
            failed = case_run(this_case);
        }
        case_account(totals, this_case, failed);
    }
}

int suite_run(int argc, char **argv, const struct suite_chapter *const *chapters, size_t count,
              int thread_level)
{
    options_read(argc, argv, chapters[0]->name);
    bool listed = false;
    for (size_t i = 0; i < count; i++)
        listed = list_and_done(chapters[i]->cases, chapters[i]->case_count);
    if (listed)
        return 0;
    watchdog_start();
    alarm((unsigned) case_seconds);
    if (MPI_Init_thread(&argc, &argv, thread_level, &suite.thread_level) != MPI_SUCCESS)
        return 1;
    world_learn();
    struct totals all = {0, 0, 0};
    for (size_t i = 0; i < count; i++) {
        struct totals totals = {0, 0, 0};
        program_name = chapters[i]->name;
        chapter_run(chapters[i], &totals);
        totals_print(&totals);
        all.passed += totals.passed;
        all.failed += totals.failed;
        all.skipped += totals.skipped;
    }
    case_name = "MPI_Finalize";
    alarm((unsigned) case_seconds);
    MPI_Finalize();
    alarm(0);
    return totals_status(&all);
}

int suite_main(int argc, char **argv, const char *program, const struct suite_case *cases,
               size_t case_count, int thread_level)
{
    const struct suite_chapter chapter = {program, cases, case_count};
    const struct suite_chapter *const chapters[] = {&chapter};
    return suite_run(argc, argv, chapters, 1, thread_level);
}

int suite_main_without_mpi(int argc, char **argv, const char *program,
                           const struct suite_case *cases, size_t case_count)
{
    options_read(argc, argv, program);
    if (list_and_done(cases, case_count))
        return 0;
    watchdog_start();
    suite.size = 1;
    struct totals totals = {0, 0, 0};
    for (size_t i = 0; i < case_count; i++) {
        if (!case_wanted(cases[i].name))
            continue;
        int before = suite_failures();
        case_enter(&cases[i]);
        cases[i].run();
        alarm(0);
        case_account(&totals, &cases[i], suite_failures() - before);
    }
    totals_print(&totals);
    return suite_failures() ? 1 : totals_status(&totals);
}
