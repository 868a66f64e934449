// SPDX-License-Identifier: BSD-3-Clause
// Conformance, chapter One-Sided Communications: put, get, accumulate and their synchronisation,
// which use this PML or the lanes beside it.
#include "layout.h"
#include "suite.h"

#include <stdlib.h>
#include <string.h>

enum { WINDOW_INTS = 20000 };

static MPI_Win window_make(int **base)
{
    MPI_Win window;
    OK(MPI_Win_allocate(WINDOW_INTS * sizeof(int), sizeof(int), MPI_INFO_NULL, suite.comm, base,
                        &window));
    memset(*base, 0, WINDOW_INTS * sizeof(int));
    OK(MPI_Win_fence(0, window));
    return window;
}

static void puts_arrive_by_the_fence(void)
{
    static const int counts[] = {1, 100, 2000, WINDOW_INTS};
    int *base, *values = suite_alloc(WINDOW_INTS * sizeof(int));
    MPI_Win window = window_make(&base);
    for (size_t c = 0; c < COUNT_OF(counts); c++) {
        for (int i = 0; i < counts[c]; i++)
            values[i] = suite.rank * 100000 + i;
        OK(MPI_Win_fence(0, window));
        OK(MPI_Put(values, counts[c], MPI_INT, suite.next, 0, counts[c], MPI_INT, window));
        OK(MPI_Win_fence(0, window));
        for (int i = 0; i < counts[c]; i++)
            CHECK(base[i] == suite.prev * 100000 + i, "%d: element %d is %d", counts[c], i,
                  base[i]);
    }
    OK(MPI_Win_free(&window));
    free(values);
}

static void gets_read_what_is_there(void)
{
    int *base, *values = suite_alloc(WINDOW_INTS * sizeof(int));
    MPI_Win window = window_make(&base);
    for (int i = 0; i < WINDOW_INTS; i++)
        base[i] = suite.rank * 100000 + i;
    OK(MPI_Win_fence(0, window));
    OK(MPI_Get(values, WINDOW_INTS, MPI_INT, suite.next, 0, WINDOW_INTS, MPI_INT, window));
    OK(MPI_Win_fence(0, window));
    for (int i = 0; i < WINDOW_INTS; i++)
        CHECK(values[i] == suite.next * 100000 + i, "element %d is %d", i, values[i]);
    OK(MPI_Win_free(&window));
    free(values);
}

static void accumulates_add_up(void)
{
    int *base, one[100];
    MPI_Win window = window_make(&base);
    for (int i = 0; i < 100; i++)
        one[i] = i + 1;
    OK(MPI_Win_fence(0, window));
    for (int round = 0; round < 5; round++)
        OK(MPI_Accumulate(one, 100, MPI_INT, 0, 0, 100, MPI_INT, MPI_SUM, window));
    OK(MPI_Win_fence(0, window));
    for (int i = 0; i < 100 && suite.rank == 0; i++)
        CHECK(base[i] == 5 * suite.size * (i + 1), "element %d is %d", i, base[i]);
    OK(MPI_Win_free(&window));
}

static void derived_types_put_and_get(void)
{
    int *base, out[64], in[64] = {0};
    MPI_Datatype every_third;
    MPI_Win window = window_make(&base);
    for (int i = 0; i < 64; i++)
        out[i] = suite.rank * 1000 + i;
    OK(MPI_Type_vector(64, 1, 3, MPI_INT, &every_third));
    OK(MPI_Type_commit(&every_third));
    OK(MPI_Win_fence(0, window));
    OK(MPI_Put(out, 64, MPI_INT, suite.next, 10, 1, every_third, window));
    OK(MPI_Win_fence(0, window));
    for (int i = 0; i < 64; i++)
        CHECK(base[10 + 3 * i] == suite.prev * 1000 + i && base[11 + 3 * i] == 0,
              "element %d is %d, %d", i, base[10 + 3 * i], base[11 + 3 * i]);
    OK(MPI_Win_fence(0, window));
    OK(MPI_Get(in, 64, MPI_INT, suite.next, 10, 1, every_third, window));
    OK(MPI_Win_fence(0, window));
    for (int i = 0; i < 64; i++)
        CHECK(in[i] == suite.rank * 1000 + i, "got element %d: %d", i, in[i]);
    OK(MPI_Type_free(&every_third));
    OK(MPI_Win_free(&window));
}

static void post_start_complete_wait_pair_up(void)
{
    int *base, value;
    MPI_Group all, to, from;
    MPI_Win window = window_make(&base);
    OK(MPI_Comm_group(suite.comm, &all));
    OK(MPI_Group_incl(all, 1, &suite.next, &to));
    OK(MPI_Group_incl(all, 1, &suite.prev, &from));
    for (int round = 0; round < 20; round++) {
        value = suite.rank * 100 + round;
        OK(MPI_Win_post(from, 0, window));
        OK(MPI_Win_start(to, 0, window));
        OK(MPI_Put(&value, 1, MPI_INT, suite.next, round, 1, MPI_INT, window));
        OK(MPI_Win_complete(window));
        OK(MPI_Win_wait(window));
        CHECK(base[round] == suite.prev * 100 + round, "round %d: %d", round, base[round]);
    }
    OK(MPI_Group_free(&to));
    OK(MPI_Group_free(&from));
    OK(MPI_Group_free(&all));
    OK(MPI_Win_free(&window));
}

static void locks_exclude_each_other(void)
{
    int *base, rounds = suite.oversubscribed ? 10 : 50;
    MPI_Win window = window_make(&base);
    for (int i = 0; i < rounds; i++) {
        int value = 0;
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window));
        OK(MPI_Get(&value, 1, MPI_INT, 0, 5, 1, MPI_INT, window));
        OK(MPI_Win_flush(0, window));
        value++;
        OK(MPI_Put(&value, 1, MPI_INT, 0, 5, 1, MPI_INT, window));
        OK(MPI_Win_unlock(0, window));
    }
    OK(MPI_Barrier(suite.comm));
    int total = 0;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window));
    OK(MPI_Get(&total, 1, MPI_INT, 0, 5, 1, MPI_INT, window));
    OK(MPI_Win_unlock(0, window));
    CHECK(total == rounds * suite.size, "%d instead of %d", total, rounds * suite.size);
    OK(MPI_Win_free(&window));
}

static void atomics_are_atomic(void)
{
    int *base, rounds = suite.oversubscribed ? 20 : 100;
    MPI_Win window = window_make(&base);
    OK(MPI_Win_lock_all(0, window));
    int *seen = calloc((size_t) (rounds * suite.size), sizeof *seen);
    int one = 1, old = -1;
    for (int i = 0; i < rounds; i++) {
        OK(MPI_Fetch_and_op(&one, &old, MPI_INT, 0, 7, MPI_SUM, window));
        OK(MPI_Win_flush(0, window));
        CHECK(old >= 0 && old < rounds * suite.size, "old value %d", old);
        if (old >= 0 && old < rounds * suite.size)
            seen[old]++;
    }
    for (int i = 0; i < rounds; i++) {
        int now = 0, next, read = -1;
        do { // a counter by compare and swap
            next = now + 1;
            OK(MPI_Compare_and_swap(&next, &now, &read, MPI_INT, 0, 8, window));
            OK(MPI_Win_flush(0, window));
            if (read == now)
                break;
            now = read;
        } while (1);
    }
    OK(MPI_Win_unlock_all(window));
    OK(MPI_Allreduce(MPI_IN_PLACE, seen, rounds * suite.size, MPI_INT, MPI_SUM, suite.comm));
    for (int i = 0; i < rounds * suite.size; i++)
        CHECK(seen[i] == 1, "value %d was handed out %d times", i, seen[i]);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window));
    OK(MPI_Get(&old, 1, MPI_INT, 0, 8, 1, MPI_INT, window));
    OK(MPI_Win_unlock(0, window));
    CHECK(old == rounds * suite.size, "compare and swap counted to %d", old);
    free(seen);
    OK(MPI_Win_free(&window));
}

static void request_based_operations_complete(void)
{
    int *base, out[500], in[500], beside[500];
    MPI_Request requests[3];
    MPI_Win window = window_make(&base);
    for (int i = 0; i < 500; i++)
        out[i] = suite.rank + i;
    OK(MPI_Win_lock_all(0, window));
    OK(MPI_Rput(out, 500, MPI_INT, suite.next, 0, 500, MPI_INT, window, &requests[0]));
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    OK(MPI_Win_flush(suite.next, window));
    OK(MPI_Rget(in, 500, MPI_INT, suite.next, 0, 500, MPI_INT, window, &requests[0]));
    OK(MPI_Irecv(beside, 500, MPI_INT, suite.prev, 0, suite.comm, &requests[1]));
    OK(MPI_Isend(out, 500, MPI_INT, suite.next, 0, suite.comm, &requests[2]));
    OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    CHECK(memcmp(in, out, sizeof in) == 0, "what was put was not got back");
    CHECK(beside[499] == suite.prev + 499, "message beside the window: %d", beside[499]);
    OK(MPI_Win_unlock_all(window));
    OK(MPI_Win_free(&window));
}

static void dynamic_windows_attach_memory(void)
{
    MPI_Win window;
    int memory[100] = {0}, value = suite.rank + 1;
    MPI_Aint mine, theirs;
    if (suite.size == 1 && suite_library_is(4, 1, 1)) {
        suite_skip("4.1 has no one-sided component that makes dynamic windows in a single process");
        return;
    }
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, suite.comm, &window));
    OK(MPI_Win_attach(window, memory, sizeof memory));
    OK(MPI_Get_address(&memory[50], &mine));
    OK(MPI_Sendrecv(&mine, 1, MPI_AINT, suite.prev, 0, &theirs, 1, MPI_AINT, suite.next, 0,
                    suite.comm, MPI_STATUS_IGNORE));
    OK(MPI_Win_fence(0, window));
    OK(MPI_Put(&value, 1, MPI_INT, suite.next, theirs, 1, MPI_INT, window));
    OK(MPI_Win_fence(0, window));
    CHECK(memory[50] == suite.prev + 1, "memory holds %d", memory[50]);
    OK(MPI_Win_detach(window, memory));
    OK(MPI_Win_free(&window));
}

static void windows_over_users_memory(void)
{
    MPI_Win window;
    int *memory = suite_alloc(1000000), value[3] = {1, 2, 3};
    memset(memory, 0, 1000000);
    OK(MPI_Win_create(memory, 1000000, 1, MPI_INFO_NULL, suite.comm, &window));
    OK(MPI_Win_fence(0, window));
    OK(MPI_Put(value, 3, MPI_INT, suite.next, 999988, 3, MPI_INT, window));
    OK(MPI_Win_fence(0, window));
    CHECK(memory[249997] == 1 && memory[249999] == 3, "%d, %d", memory[249997], memory[249999]);
    OK(MPI_Win_free(&window));
    free(memory);
}

#define CHAPTER "One-Sided Communications, "

static const struct suite_case cases[] = {
    {"puts_arrive_by_the_fence", CHAPTER "Put", puts_arrive_by_the_fence, 1},
    {"gets_read_what_is_there", CHAPTER "Get", gets_read_what_is_there, 1},
    {"accumulates_add_up", CHAPTER "Accumulate Functions", accumulates_add_up, 1},
    {"derived_types_put_and_get", CHAPTER "Put, Get", derived_types_put_and_get, 1},
    {"post_start_complete_wait_pair_up", CHAPTER "General Active Target Synchronization",
     post_start_complete_wait_pair_up, 1},
    {"locks_exclude_each_other", CHAPTER "Lock", locks_exclude_each_other, 1},
    {"atomics_are_atomic", CHAPTER "Fetch and Op, Compare and Swap", atomics_are_atomic, 1},
    {"request_based_operations_complete", CHAPTER "Request-based Operations",
     request_based_operations_complete, 1},
    {"dynamic_windows_attach_memory", CHAPTER "Dynamically Attached Memory",
     dynamic_windows_attach_memory, 1},
    {"windows_over_users_memory", CHAPTER "Window Creation", windows_over_users_memory, 1},
};

const struct suite_chapter suite_onesided = {"onesided", cases, COUNT_OF(cases)};
