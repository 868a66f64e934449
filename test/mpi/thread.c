// SPDX-License-Identifier: BSD-3-Clause
// Conformance, chapter MPI and Threads: MPI_THREAD_MULTIPLE in all parts of point-to-point
// communication, with other parts of MPI beside it.
#include "suite.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4 };

static int rounds_here(int rounds)
{
    return suite.thorough ? 10 * rounds : suite.oversubscribed ? rounds / 4 : rounds;
}

static void run_threads(int count, void *(*body)(void *) )
{
    pthread_t threads[THREADS];
    for (long i = 0; i < count; i++)
        CHECK(pthread_create(&threads[i], NULL, body, (void *) i) == 0, "no thread %ld", i);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

static bool threads_missing(void)
{
    if (suite.thread_level == MPI_THREAD_MULTIPLE)
        return false;
    suite_skip("this MPI library gives thread level %d", suite.thread_level);
    return true;
}

static size_t bytes_of_round(int round)
{
    static const size_t sizes[] = {0, 8, 100, 4000, 9, 40000, 256, 8, 120000, 64};
    return sizes[(size_t) round % COUNT_OF(sizes)];
}

// Each thread talks with its counterpart next door by a tag of its own.
static void *pair_by_tag(void *argument)
{
    int thread = (int) (long) argument;
    unsigned char *out = suite_alloc(120000), *in = suite_alloc(120000);
    for (int round = 0; round < rounds_here(200); round++) {
        size_t bytes = bytes_of_round(round + thread);
        uint64_t key = (uint64_t) (thread * 100000 + round);
        MPI_Request request;
        MPI_Status status;
        pattern_fill(out, bytes, key);
        OK(MPI_Irecv(in, (int) bytes, MPI_BYTE, round % 3 ? suite.prev : MPI_ANY_SOURCE, thread,
                     suite.comm, &request));
        OK(MPI_Send(out, (int) bytes, MPI_BYTE, suite.next, thread, suite.comm));
        OK(MPI_Wait(&request, &status));
        CHECK_STATUS(status, suite.prev, thread, bytes);
        CHECK_PATTERN(in, bytes, key, "thread %d round %d", thread, round);
    }
    free(out);
    free(in);
    return NULL;
}

static void threads_with_tags_of_their_own(void)
{
    if (!threads_missing())
        run_threads(THREADS, pair_by_tag);
}

static MPI_Comm thread_comms[THREADS];

static void *pair_by_communicator(void *argument)
{
    int thread = (int) (long) argument;
    MPI_Comm comm = thread_comms[thread];
    unsigned char *out = suite_alloc(120000), *in = suite_alloc(120000);
    for (int round = 0; round < rounds_here(150); round++) {
        size_t bytes = bytes_of_round(round);
        MPI_Status status;
        pattern_fill(out, bytes, (uint64_t) round);
        MPI_Request request;
        OK(MPI_Issend(out, (int) bytes, MPI_BYTE, suite.next, round, comm, &request));
        OK(MPI_Recv(in, (int) bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK_STATUS(status, suite.prev, round, bytes);
        CHECK_PATTERN(in, bytes, (uint64_t) round, "thread %d round %d", thread, round);
        if (round % 50 == 0) {
            int sum = 0;
            OK(MPI_Allreduce(&thread, &sum, 1, MPI_INT, MPI_SUM, comm));
            CHECK(sum == thread * suite.size, "sum %d in thread %d", sum, thread);
        }
    }
    free(out);
    free(in);
    return NULL;
}

static void threads_with_communicators_of_their_own(void)
{
    if (threads_missing())
        return;
    for (int i = 0; i < THREADS; i++)
        OK(MPI_Comm_dup(suite.comm, &thread_comms[i]));
    run_threads(THREADS, pair_by_communicator);
    for (int i = 0; i < THREADS; i++)
        OK(MPI_Comm_free(&thread_comms[i]));
}

// All threads send to rank 0, whose threads take whatever comes: each message exactly once.
static pthread_mutex_t taken_lock = PTHREAD_MUTEX_INITIALIZER; // guards taken
static unsigned char *taken;

static void *take_anything(void *argument)
{
    int thread = (int) (long) argument, each = rounds_here(200);
    if (suite.rank != 0) {
        for (int i = 0; i < each; i++) {
            int value = (suite.rank * THREADS + thread) * each + i;
            OK(MPI_Send(&value, 1, MPI_INT, 0, i % 7, suite.comm));
        }
        return NULL;
    }
    for (int i = 0; i < each * (suite.size - 1); i++) {
        int value = -1;
        OK(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, suite.comm,
                    MPI_STATUS_IGNORE));
        CHECK(value >= 0 && value < suite.size * THREADS * each, "received %d", value);
        if (value < 0 || value >= suite.size * THREADS * each)
            continue;
        pthread_mutex_lock(&taken_lock);
        taken[value]++;
        pthread_mutex_unlock(&taken_lock);
    }
    return NULL;
}

static void wildcards_in_many_threads_take_each_message_once(void)
{
    if (threads_missing())
        return;
    int each = rounds_here(200), all = suite.size * THREADS * each;
    taken = calloc((size_t) all, 1);
    run_threads(THREADS, take_anything);
    for (int i = THREADS * each; i < all && suite.rank == 0; i++)
        CHECK(taken[i] == 1, "message %d was received %d times", i, taken[i]);
    free(taken);
}

// Messages of unknown length: only matched probes are safe with threads.
static void *matched_probe_in_threads(void *argument)
{
    int thread = (int) (long) argument, each = rounds_here(200);
    for (int i = 0; i < each; i++) {
        size_t bytes = bytes_of_round(i);
        unsigned char *out = suite_alloc(bytes);
        MPI_Request request;
        MPI_Message message;
        MPI_Status status;
        int count = -1;
        pattern_fill(out, bytes, bytes);
        OK(MPI_Isend(out, (int) bytes, MPI_BYTE, suite.next, thread, suite.comm, &request));
        OK(MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, suite.comm, &message, &status));
        OK(MPI_Get_count(&status, MPI_BYTE, &count));
        CHECK(count >= 0, "count %d", count);
        unsigned char *in = suite_alloc((size_t) (count > 0 ? count : 0));
        OK(MPI_Mrecv(in, count, MPI_BYTE, &message, MPI_STATUS_IGNORE));
        CHECK_PATTERN(in, (size_t) count, (uint64_t) count, "%d bytes", count);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        free(out);
        free(in);
    }
    return NULL;
}

static void matched_probes_in_many_threads(void)
{
    if (!threads_missing())
        run_threads(THREADS, matched_probe_in_threads);
}

// A request started by one thread and completed by another.
static MPI_Request handed[THREADS][2];
static int handed_in[THREADS], handed_out[THREADS];

static void *complete_others(void *argument)
{
    int thread = (int) (long) argument, other = (thread + 1) % THREADS;
    OK(MPI_Waitall(2, handed[other], MPI_STATUSES_IGNORE));
    return NULL;
}

static void requests_complete_in_another_thread(void)
{
    if (threads_missing())
        return;
    for (int round = 0; round < rounds_here(100); round++) {
        for (int i = 0; i < THREADS; i++) {
            handed_out[i] = round * 10 + i;
            handed_in[i] = -1;
            OK(MPI_Irecv(&handed_in[i], 1, MPI_INT, suite.prev, i, suite.comm, &handed[i][0]));
            OK(MPI_Isend(&handed_out[i], 1, MPI_INT, suite.next, i, suite.comm, &handed[i][1]));
        }
        run_threads(THREADS, complete_others);
        for (int i = 0; i < THREADS; i++)
            CHECK(handed_in[i] == round * 10 + i, "round %d: %d", round, handed_in[i]);
    }
}

// One thread blocks in a receive; the message comes from another thread of the same process.
static void *receive_from_oneself(void *argument)
{
    int in = -1;
    (void) argument;
    OK(MPI_Recv(&in, 1, MPI_INT, suite.rank, 1, suite.comm, MPI_STATUS_IGNORE));
    CHECK(in == 4711, "received %d", in);
    return NULL;
}

static void a_blocked_thread_does_not_block_the_others(void)
{
    pthread_t receiver;
    if (threads_missing())
        return;
    for (int round = 0; round < 20; round++) {
        int value = 4711;
        CHECK(pthread_create(&receiver, NULL, receive_from_oneself, NULL) == 0, "no thread");
        OK(MPI_Barrier(suite.comm));
        OK(MPI_Ssend(&value, 1, MPI_INT, suite.rank, 1, suite.comm));
        pthread_join(receiver, NULL);
    }
}

// Communicators made and freed by all threads while messages flow.
static void *make_communicators(void *argument)
{
    int thread = (int) (long) argument;
    for (int i = 0; i < rounds_here(40); i++) {
        MPI_Comm comm;
        int out = i, in = -1;
        OK(MPI_Comm_dup(thread_comms[thread], &comm));
        OK(MPI_Sendrecv(&out, 1, MPI_INT, suite.next, 0, &in, 1, MPI_INT, suite.prev, 0, comm,
                        MPI_STATUS_IGNORE));
        CHECK(in == i, "received %d", in);
        OK(MPI_Barrier(comm));
        OK(MPI_Comm_free(&comm));
    }
    return NULL;
}

static void communicators_are_made_in_many_threads(void)
{
    if (threads_missing())
        return;
    for (int i = 0; i < THREADS; i++)
        OK(MPI_Comm_dup(suite.comm, &thread_comms[i]));
    run_threads(THREADS, make_communicators);
    for (int i = 0; i < THREADS; i++)
        OK(MPI_Comm_free(&thread_comms[i]));
}

// Receives are cancelled by one thread while others receive.
static void *cancel_or_receive(void *argument)
{
    int thread = (int) (long) argument;
    if (thread != 0)
        return pair_by_tag(argument);
    for (int i = 0; i < rounds_here(150); i++) {
        int in = -1, cancelled = 0;
        MPI_Request request;
        MPI_Status status;
        OK(MPI_Irecv(&in, 1, MPI_INT, i % 2 ? suite.prev : MPI_ANY_SOURCE, 1000, suite.comm,
                     &request));
        OK(MPI_Cancel(&request));
        OK(MPI_Wait(&request, &status));
        OK(MPI_Test_cancelled(&status, &cancelled));
        CHECK(cancelled, "round %d was not cancelled", i);
    }
    return NULL;
}

static void cancel_beside_receives(void)
{
    if (!threads_missing())
        run_threads(THREADS, cancel_or_receive);
}

// The buffer is the process's, and what is in it is counted by whichever thread comes along.
static void *send_buffered(void *argument)
{
    /* Threads of several ranks wait for each other's turns; to count at the same moment takes one.
     */
    int thread = (int) (long) argument, rounds = suite.size == 1 ? 40000 : rounds_here(400);
    for (int round = 0; round < rounds; round++) {
        int out = round, in = -1;
        OK(MPI_Bsend(&out, 1, MPI_INT, suite.next, thread, suite.comm));
        OK(MPI_Recv(&in, 1, MPI_INT, suite.prev, thread, suite.comm, MPI_STATUS_IGNORE));
        CHECK(in == round, "thread %d round %d: %d", thread, round, in);
    }
    return NULL;
}

static void buffered_sends_in_many_threads(void)
{
    enum { ROOM = 1 << 20 };
    void *buffer = suite_alloc(ROOM), *detached = NULL;
    int size = 0;
    if (!threads_missing()) {
        OK(MPI_Buffer_attach(buffer, ROOM));
        run_threads(THREADS, send_buffered);
        OK(MPI_Buffer_detach(&detached, &size));
        CHECK(detached == buffer && size == ROOM, "%d bytes at %p", size, detached);
    }
    free(buffer);
}

static void the_main_thread_is_known(void)
{
    int main_thread = 0, level = -1;
    OK(MPI_Is_thread_main(&main_thread));
    OK(MPI_Query_thread(&level));
    CHECK(main_thread && level == suite.thread_level, "main %d level %d", main_thread, level);
}

#define CHAPTER "Process Initialization, MPI and Threads"

static const struct suite_case cases[] = {
    {"the_main_thread_is_known", CHAPTER, the_main_thread_is_known, 1},
    {"threads_with_tags_of_their_own", CHAPTER, threads_with_tags_of_their_own, 1},
    {"threads_with_communicators_of_their_own", CHAPTER, threads_with_communicators_of_their_own,
     1},
    {"wildcards_in_many_threads_take_each_message_once", CHAPTER,
     wildcards_in_many_threads_take_each_message_once, 2},
    {"matched_probes_in_many_threads", CHAPTER, matched_probes_in_many_threads, 1},
    {"requests_complete_in_another_thread", CHAPTER, requests_complete_in_another_thread, 1},
    {"a_blocked_thread_does_not_block_the_others", CHAPTER,
     a_blocked_thread_does_not_block_the_others, 1},
    {"communicators_are_made_in_many_threads", CHAPTER, communicators_are_made_in_many_threads, 1},
    {"cancel_beside_receives", CHAPTER, cancel_beside_receives, 1},
    {"buffered_sends_in_many_threads", CHAPTER, buffered_sends_in_many_threads, 1},
};

int main(int argc, char **argv)
{
    return suite_main(argc, argv, "thread", cases, COUNT_OF(cases), MPI_THREAD_MULTIPLE);
}
