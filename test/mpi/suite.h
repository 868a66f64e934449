// SPDX-License-Identifier: BSD-3-Clause
// The frame of every conformance program: named cases, checks that say where they failed, a
// watchdog that names the case and the call that hangs.
#ifndef MULTILANE_TEST_MPI_SUITE_H
#define MULTILANE_TEST_MPI_SUITE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Open MPI 5.0 calls itself MPI 3.1 and offers what is new in MPI 4 all the same.
#define SUITE_MPI_4   (MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5)
#define SUITE_MPI_4_1 (MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1))

struct suite_case {
    const char *name;   // what must hold
    const char *clause; // the chapter and section of the MPI standard it comes from
    void (*run)(void);
    int ranks_least; // with fewer ranks the case is skipped, which is said
};

// What a case works with. comm is a fresh duplicate of MPI_COMM_WORLD that returns errors.
struct suite {
    MPI_Comm comm;
    int rank, size;
    int next, prev; // neighbours in a ring; the rank itself where it is alone
    int thread_level;
    bool oversubscribed; // fewer processors than ranks
    bool thorough;       // --thorough: the larger sizes and counts
};
extern struct suite suite;

struct suite_chapter {
    const char *name;
    const struct suite_case *cases;
    size_t case_count;
};
extern const struct suite_chapter suite_point, suite_request, suite_error, suite_datatype,
    suite_communicator, suite_onesided, suite_partitioned;

// Runs the chapters, of each the cases that the command line names (all by default). Returns the
// exit status.
int suite_run(int argc, char **argv, const struct suite_chapter *const *chapters, size_t count,
              int thread_level);

// The same for a program of one chapter.
int suite_main(int argc, char **argv, const char *program, const struct suite_case *cases,
               size_t case_count, int thread_level);

// For programs that start MPI themselves (sessions): everything but the calls that need
// MPI_COMM_WORLD.
int suite_main_without_mpi(int argc, char **argv, const char *program,
                           const struct suite_case *cases, size_t case_count);

void suite_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// Called by every rank of a case that cannot be run here; the reason is printed.
void suite_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));
void suite_at(const char *file, int line, const char *what);
int suite_failures(void);
// Renames what is running (for messages) and gives it the whole time limit again.
void suite_stage(const char *name);
// Called by the watchdog before it ends the program; may only write(2).
void suite_on_hang(void (*report)(void));
bool suite_library_is(int major, int minor_least, int minor_most);
// The PML that the job was told to use; Open MPI's default counts as ob1.
bool suite_pml_is(const char *name);
// The value of --name VALUE or --name=VALUE on the command line, or NULL.
const char *suite_option(const char *name);

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition))                                                                          \
            suite_fail(__FILE__, __LINE__, __VA_ARGS__);                                           \
    } while (0)

// An MPI call that has to succeed.
#define OK(call)                                                                                   \
    do {                                                                                           \
        suite_at(__FILE__, __LINE__, #call);                                                       \
        int ok_rc_ = (call);                                                                       \
        if (ok_rc_ != MPI_SUCCESS)                                                                 \
            suite_mpi_fail(__FILE__, __LINE__, #call, ok_rc_);                                     \
    } while (0)
void suite_mpi_fail(const char *file, int line, const char *call, int rc);

// An MPI call that has to fail with an error of this class.
#define EXPECT_CLASS(call, class)                                                                  \
    do {                                                                                           \
        suite_at(__FILE__, __LINE__, #call);                                                       \
        suite_expect_class(__FILE__, __LINE__, #call, (call), (class), #class);                    \
    } while (0)
void suite_expect_class(const char *file, int line, const char *call, int rc, int class,
                        const char *class_name);
int suite_class(int rc);

// Message contents: every byte follows from the key and its index.
void pattern_fill(void *buffer, size_t bytes, uint64_t key);
// The index of the first byte that differs, or -1.
ptrdiff_t pattern_check(const void *buffer, size_t bytes, uint64_t key);
bool all_bytes_are(const void *buffer, size_t bytes, unsigned char value);
#define CHECK_PATTERN(buffer, bytes, key, ...)                                                     \
    suite_check_pattern(__FILE__, __LINE__, (buffer), (bytes), (key), __VA_ARGS__)
void suite_check_pattern(const char *file, int line, const void *buffer, size_t bytes, uint64_t key,
                         const char *format, ...) __attribute__((format(printf, 6, 7)));

#define CHECK_STATUS(status, want_source, want_tag, want_bytes)                                    \
    suite_check_status(__FILE__, __LINE__, &(status), (want_source), (want_tag), (want_bytes))
void suite_check_status(const char *file, int line, const MPI_Status *status, int source, int tag,
                        size_t bytes);

// Message sizes on both sides of where a protocol may change. The list ends after count sizes.
extern const size_t suite_sizes[];
extern const size_t suite_size_count;
// The same, up to a size that keeps the case quick on a machine with few processors.
size_t suite_size_count_below(size_t largest);

void *suite_alloc(size_t bytes);
uint64_t random_next(uint64_t *state);

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#endif
