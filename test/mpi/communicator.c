// SPDX-License-Identifier: BSD-3-Clause
// Conformance, chapters Groups, Contexts, Communicators and Virtual Topologies: that communicators
// keep messages apart, whatever they were made by, and end cleanly.
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A ring on any intracommunicator, eager and rendezvous.
static void ring_on(MPI_Comm comm, const char *what)
{
    static const size_t sizes[] = {0, 8, 5000, 200000};
    int rank, size;
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    int next = (rank + 1) % size, prev = (rank + size - 1) % size;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        size_t bytes = sizes[i];
        unsigned char *out = suite_alloc(bytes), *in = suite_alloc(bytes);
        MPI_Status status;
        pattern_fill(out, bytes, (uint64_t) rank);
        OK(MPI_Sendrecv(out, (int) bytes, MPI_BYTE, next, 1, in, (int) bytes, MPI_BYTE, prev, 1,
                        comm, &status));
        CHECK_STATUS(status, prev, 1, bytes);
        CHECK_PATTERN(in, bytes, (uint64_t) prev, "%s, %zu bytes", what, bytes);
        free(out);
        free(in);
    }
    int sum = 0, one = 1;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == size, "%s: sum %d of %d", what, sum, size);
}

static void duplicates_keep_messages_apart(void)
{
    enum { COMMS = 10 };
    MPI_Comm comms[COMMS];
    MPI_Request requests[COMMS];
    int out[COMMS], in = -1;
    for (int i = 0; i < COMMS; i++) {
        OK(MPI_Comm_dup(suite.comm, &comms[i]));
        out[i] = i;
        OK(MPI_Isend(&out[i], 1, MPI_INT, suite.next, 0, comms[i], &requests[i]));
    }
    for (int i = COMMS - 1; i >= 0; i--) {
        MPI_Status status;
        OK(MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comms[i], &status));
        CHECK(in == i, "communicator %d brought %d", i, in);
        CHECK_STATUS(status, suite.prev, 0, sizeof in);
    }
    OK(MPI_Waitall(COMMS, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < COMMS; i++)
        OK(MPI_Comm_free(&comms[i]));
}

static void splits_work_in_any_order(void)
{
    for (int colours = 1; colours <= suite.size; colours++) {
        for (int reverse = 0; reverse < 2; reverse++) {
            MPI_Comm part;
            int rank, colour = suite.rank % colours;
            OK(MPI_Comm_split(suite.comm, colour, reverse ? -suite.rank : suite.rank, &part));
            OK(MPI_Comm_rank(part, &rank));
            int members = (suite.size - colour + colours - 1) / colours;
            int place = suite.rank / colours;
            CHECK(rank == (reverse ? members - 1 - place : place), "rank %d in the part", rank);
            ring_on(part, "a split");
            OK(MPI_Comm_free(&part));
        }
    }
    MPI_Comm none;
    OK(MPI_Comm_split(suite.comm, suite.rank == 0 ? MPI_UNDEFINED : 1, 0, &none));
    CHECK((none == MPI_COMM_NULL) == (suite.rank == 0), "MPI_UNDEFINED gave a communicator");
    if (none != MPI_COMM_NULL) {
        ring_on(none, "a split without rank 0");
        OK(MPI_Comm_free(&none));
    }
}

static void groups_make_communicators(void)
{
    MPI_Group all, some;
    MPI_Comm made;
    int last = suite.size - 1, ranges[1][3] = {{last, 0, -1}};
    OK(MPI_Comm_group(suite.comm, &all));
    OK(MPI_Group_range_incl(all, 1, ranges, &some));
    OK(MPI_Comm_create(suite.comm, some, &made));
    ring_on(made, "MPI_Comm_create, reversed");
    OK(MPI_Comm_free(&made));
    OK(MPI_Group_free(&some));
    // only the members of the group call this one
    ranges[0][0] = suite.rank % 2;
    ranges[0][1] = last;
    ranges[0][2] = 2;
    OK(MPI_Group_range_incl(all, 1, ranges, &some));
    OK(MPI_Comm_create_group(suite.comm, some, 7, &made));
    ring_on(made, "MPI_Comm_create_group");
    OK(MPI_Comm_free(&made));
    OK(MPI_Group_free(&some));
    OK(MPI_Group_free(&all));
}

static void idup_and_split_type_work(void)
{
    MPI_Comm made, shared;
    MPI_Request request;
    OK(MPI_Comm_idup(suite.comm, &made, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    ring_on(made, "MPI_Comm_idup");
    OK(MPI_Comm_free(&made));
    OK(MPI_Comm_split_type(suite.comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared));
    ring_on(shared, "MPI_Comm_split_type");
    OK(MPI_Comm_free(&shared));
}

static void ring_with_assertions(const char *const *assertions, size_t count)
{
    MPI_Info info;
    MPI_Comm made;
    OK(MPI_Info_create(&info));
    for (size_t i = 0; i < count; i++)
        OK(MPI_Info_set(info, assertions[i], "true"));
    OK(MPI_Comm_dup_with_info(suite.comm, info, &made));
    OK(MPI_Info_free(&info));
    ring_on(made, assertions[0]);
    OK(MPI_Comm_free(&made));
}

static void assertions_against_wildcards_change_nothing(void)
{
    ring_with_assertions((const char *const[]){"mpi_assert_no_any_source", "mpi_assert_no_any_tag",
                                               "mpi_assert_exact_length"},
                         3);
}

static void allowed_overtaking_changes_no_exchange(void)
{
    if (suite_pml_is("ob1") && suite_library_is(6, 0, 0)) {
        suite_skip("6.0's ob1 hangs in MPI_Allreduce on a communicator that allows overtaking");
        return;
    }
    ring_with_assertions((const char *const[]){"mpi_assert_allow_overtaking"}, 1);
}

static void many_communicators_at_once(void)
{
    int count = suite.thorough ? 2000 : 200;
    MPI_Comm *comms = suite_alloc((size_t) count * sizeof *comms);
    for (int i = 0; i < count; i++)
        OK(MPI_Comm_dup(suite.comm, &comms[i]));
    for (int i = 0; i < count; i++) {
        int out = i, in = -1, k = (i * 7 + 3) % count;
        OK(MPI_Sendrecv(&out, 1, MPI_INT, suite.next, 0, &in, 1, MPI_INT, suite.prev, 0, comms[k],
                        MPI_STATUS_IGNORE));
        CHECK(in == i, "communicator %d brought %d", k, in);
    }
    for (int i = 0; i < count; i++)
        OK(MPI_Comm_free(&comms[i]));
    free(comms);
}

// Context identifiers come back and are used again: old messages must not appear in new places.
static void communicators_come_and_go(void)
{
    for (int i = 0; i < 300; i++) {
        MPI_Comm comm;
        int out = i, in = -1;
        OK(MPI_Comm_dup(suite.comm, &comm));
        OK(MPI_Sendrecv(&out, 1, MPI_INT, suite.next, 0, &in, 1, MPI_INT, suite.prev, 0, comm,
                        MPI_STATUS_IGNORE));
        CHECK(in == i, "round %d brought %d", i, in);
        OK(MPI_Comm_free(&comm));
    }
}

// A message may arrive on a communicator before this process has it.
static void messages_for_a_communicator_not_yet_made_here_wait(void)
{
    for (int round = 0; round < 30; round++) {
        MPI_Comm comm;
        int out[2] = {round, suite.rank}, in[2] = {-1, -1};
        OK(MPI_Comm_dup(suite.comm, &comm));
        MPI_Request request;
        OK(MPI_Isend(out, 2, MPI_INT, suite.next, 0, comm, &request));
        OK(MPI_Recv(in, 2, MPI_INT, suite.prev, 0, comm, MPI_STATUS_IGNORE));
        CHECK(in[0] == round && in[1] == suite.prev, "received %d, %d", in[0], in[1]);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Comm_free(&comm));
    }
}

// MPI_Comm_free only marks: what is pending completes.
static void a_freed_communicator_completes_what_is_pending(void)
{
    static const size_t sizes[] = {8, 5000, 400000};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        size_t bytes = sizes[i];
        MPI_Comm comm;
        MPI_Request requests[2];
        unsigned char *out = suite_alloc(bytes), *in = suite_alloc(bytes);
        pattern_fill(out, bytes, (uint64_t) suite.rank);
        OK(MPI_Comm_dup(suite.comm, &comm));
        OK(MPI_Irecv(in, (int) bytes, MPI_BYTE, suite.prev, 0, comm, &requests[0]));
        OK(MPI_Isend(out, (int) bytes, MPI_BYTE, suite.next, 0, comm, &requests[1]));
        OK(MPI_Comm_free(&comm));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        CHECK_PATTERN(in, bytes, (uint64_t) suite.prev, "%zu bytes", bytes);
        free(out);
        free(in);
    }
}

// ---- intercommunicators ----

static MPI_Comm halves_joined(MPI_Comm *half)
{
    MPI_Comm inter;
    int side = suite.rank % 2;
    OK(MPI_Comm_split(suite.comm, side, suite.rank, half));
    OK(MPI_Intercomm_create(*half, 0, suite.comm, !side, 5, &inter));
    return inter;
}

static void intercommunicators_carry_messages(void)
{
    static const size_t sizes[] = {0, 8, 3000, 100000};
    MPI_Comm half, inter;
    int rank, remote, local;
    inter = halves_joined(&half);
    OK(MPI_Comm_rank(inter, &rank));
    OK(MPI_Comm_size(inter, &local));
    OK(MPI_Comm_remote_size(inter, &remote));
    CHECK(local + remote == suite.size, "%d and %d ranks", local, remote);
    int base = suite.rank % 2;
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        size_t bytes = sizes[s];
        unsigned char *out = suite_alloc(bytes), *in = suite_alloc(bytes);
        MPI_Request *requests = suite_alloc((size_t) remote * sizeof *requests);
        pattern_fill(out, bytes, (uint64_t) suite.rank);
        for (int i = 0; i < remote; i++)
            OK(MPI_Isend(out, (int) bytes, MPI_BYTE, i, 3, inter, &requests[i]));
        for (int i = 0; i < remote; i++) {
            MPI_Status status;
            OK(MPI_Recv(in, (int) bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, inter, &status));
            int world = 2 * status.MPI_SOURCE + !base;
            CHECK(status.MPI_TAG == 3 && world < suite.size, "tag %d source %d", status.MPI_TAG,
                  status.MPI_SOURCE);
            CHECK_PATTERN(in, bytes, (uint64_t) world, "from %d, %zu bytes", world, bytes);
        }
        OK(MPI_Waitall(remote, requests, MPI_STATUSES_IGNORE));
        OK(MPI_Barrier(inter));
        free(requests);
        free(out);
        free(in);
    }
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&half));
}

static void intercommunicators_merge_and_duplicate(void)
{
    MPI_Comm half, inter = halves_joined(&half), twin, merged;
    OK(MPI_Comm_dup(inter, &twin));
    int value = suite.rank, in = -1;
    if (suite.rank < 2) {
        OK(MPI_Sendrecv(&value, 1, MPI_INT, 0, 0, &in, 1, MPI_INT, 0, 0, twin, MPI_STATUS_IGNORE));
        CHECK(in == 1 - suite.rank, "received %d", in);
    }
    OK(MPI_Intercomm_merge(inter, suite.rank % 2, &merged));
    ring_on(merged, "a merged intercommunicator");
    OK(MPI_Comm_free(&merged));
    OK(MPI_Comm_free(&twin));
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&half));
}

static void intercommunicator_collectives_work(void)
{
    MPI_Comm half, inter = halves_joined(&half);
    int remote, sum = -1, expected = 0;
    OK(MPI_Comm_remote_size(inter, &remote));
    OK(MPI_Allreduce(&suite.rank, &sum, 1, MPI_INT, MPI_SUM, inter));
    for (int i = !(suite.rank % 2); i < suite.size; i += 2)
        expected += i;
    CHECK(sum == expected, "sum of the others is %d, expected %d", sum, expected);
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&half));
}

// ---- topologies, collectives above the PML ----

static void cartesian_neighbours_exchange(void)
{
    MPI_Comm grid;
    int dims[2] = {0, 0}, periods[2] = {1, 0}, rank;
    OK(MPI_Dims_create(suite.size, 2, dims));
    OK(MPI_Cart_create(suite.comm, 2, dims, periods, 1, &grid));
    OK(MPI_Comm_rank(grid, &rank));
    for (int dimension = 0; dimension < 2; dimension++) {
        int from, to, in = -5;
        OK(MPI_Cart_shift(grid, dimension, 1, &from, &to));
        OK(MPI_Sendrecv(&rank, 1, MPI_INT, to, 0, &in, 1, MPI_INT, from, 0, grid,
                        MPI_STATUS_IGNORE));
        CHECK(in == (from == MPI_PROC_NULL ? -5 : from), "from %d came %d", from, in);
    }
    int out[4], in[4] = {-5, -5, -5, -5};
    for (int i = 0; i < 4; i++)
        out[i] = rank;
    OK(MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, grid));
    for (int dimension = 0; dimension < 2; dimension++) {
        int low, high;
        OK(MPI_Cart_shift(grid, dimension, 1, &low, &high));
        CHECK(in[2 * dimension] == (low == MPI_PROC_NULL ? -5 : low) &&
                  in[2 * dimension + 1] == (high == MPI_PROC_NULL ? -5 : high),
              "neighbours in dimension %d: %d and %d", dimension, in[2 * dimension],
              in[2 * dimension + 1]);
    }
    OK(MPI_Comm_free(&grid));
}

static void blocking_collectives_agree(void)
{
    static const int counts[] = {1, 100, 5000, 60000};
    for (size_t c = 0; c < COUNT_OF(counts); c++) {
        int count = counts[c], all = count * suite.size;
        int *out = suite_alloc((size_t) all * sizeof *out);
        int *in = suite_alloc((size_t) all * sizeof *in);
        for (int i = 0; i < all; i++)
            out[i] = suite.rank * 1000000 + i;
        OK(MPI_Alltoall(out, count, MPI_INT, in, count, MPI_INT, suite.comm));
        for (int i = 0; i < all; i++)
            CHECK(in[i] == i / count * 1000000 + suite.rank * count + i % count, "alltoall %d", i);
        OK(MPI_Allreduce(out, in, count, MPI_INT, MPI_MAX, suite.comm));
        for (int i = 0; i < count; i++)
            CHECK(in[i] == (suite.size - 1) * 1000000 + i, "allreduce %d: %d", i, in[i]);
        for (int root = 0; root < suite.size; root++) {
            memset(in, 0, (size_t) all * sizeof *in);
            OK(MPI_Gather(out, count, MPI_INT, in, count, MPI_INT, root, suite.comm));
            for (int i = 0; i < all && suite.rank == root; i++)
                CHECK(in[i] == i / count * 1000000 + i % count, "gather %d: %d", i, in[i]);
            int *data = suite.rank == root ? out : in;
            OK(MPI_Bcast(data, all, MPI_INT, root, suite.comm));
            CHECK(data[all - 1] == root * 1000000 + all - 1, "broadcast from %d", root);
        }
        OK(MPI_Scan(out, in, count, MPI_INT, MPI_MIN, suite.comm));
        CHECK(in[count - 1] == count - 1, "scan: %d", in[count - 1]);
        free(out);
        free(in);
    }
}

static void nonblocking_collectives_overlap_messages(void)
{
    enum { OVERLAP = 12, COUNT = 2000 };
    MPI_Request requests[2 * OVERLAP + 2];
    int(*sums)[COUNT] = suite_alloc(sizeof(int[COUNT]) * OVERLAP);
    int(*values)[COUNT] = suite_alloc(sizeof(int[COUNT]) * OVERLAP);
    int in = -1;
    for (int i = 0; i < OVERLAP; i++) {
        for (int k = 0; k < COUNT; k++)
            values[i][k] = suite.rank + i;
        OK(MPI_Iallreduce(values[i], sums[i], COUNT, MPI_INT, MPI_SUM, suite.comm, &requests[i]));
        OK(MPI_Ibarrier(suite.comm, &requests[OVERLAP + i]));
    }
    OK(MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, suite.comm, &requests[2 * OVERLAP]));
    OK(MPI_Isend(&suite.rank, 1, MPI_INT, suite.next, 3, suite.comm, &requests[2 * OVERLAP + 1]));
    OK(MPI_Waitall(2 * OVERLAP + 2, requests, MPI_STATUSES_IGNORE));
    CHECK(in == suite.prev, "received %d", in);
    for (int i = 0; i < OVERLAP; i++)
        CHECK(sums[i][COUNT - 1] == suite.size * (suite.size - 1) / 2 + i * suite.size,
              "sum %d is %d", i, sums[i][COUNT - 1]);
    free(sums);
    free(values);
}

#define CONSTRUCTORS "Groups, Contexts, Communicators, Communicator Constructors"
#define INTER        "Groups, Contexts, Communicators, Inter-Communication"

static const struct suite_case cases[] = {
    {"duplicates_keep_messages_apart", CONSTRUCTORS, duplicates_keep_messages_apart, 1},
    {"splits_work_in_any_order", CONSTRUCTORS, splits_work_in_any_order, 1},
    {"groups_make_communicators", CONSTRUCTORS, groups_make_communicators, 2},
    {"idup_and_split_type_work", CONSTRUCTORS, idup_and_split_type_work, 1},
    {"assertions_against_wildcards_change_nothing",
     "Groups, Contexts, Communicators, Communicator Info",
     assertions_against_wildcards_change_nothing, 1},
    {"allowed_overtaking_changes_no_exchange", "Groups, Contexts, Communicators, Communicator Info",
     allowed_overtaking_changes_no_exchange, 1},
    {"many_communicators_at_once", CONSTRUCTORS, many_communicators_at_once, 1},
    {"communicators_come_and_go", "Groups, Contexts, Communicators, Communicator Destructors",
     communicators_come_and_go, 1},
    {"messages_for_a_communicator_not_yet_made_here_wait", CONSTRUCTORS,
     messages_for_a_communicator_not_yet_made_here_wait, 1},
    {"a_freed_communicator_completes_what_is_pending",
     "Groups, Contexts, Communicators, Communicator Destructors",
     a_freed_communicator_completes_what_is_pending, 1},
    {"intercommunicators_carry_messages", INTER, intercommunicators_carry_messages, 2},
    {"intercommunicators_merge_and_duplicate", INTER, intercommunicators_merge_and_duplicate, 2},
    {"intercommunicator_collectives_work", INTER, intercommunicator_collectives_work, 2},
    {"cartesian_neighbours_exchange", "Virtual Topologies, Cartesian Shift and Neighborhoods",
     cartesian_neighbours_exchange, 1},
    {"blocking_collectives_agree", "Collective Communication", blocking_collectives_agree, 1},
    {"nonblocking_collectives_overlap_messages", "Collective Communication, Nonblocking",
     nonblocking_collectives_overlap_messages, 1},
};

const struct suite_chapter suite_communicator = {"communicator", cases, COUNT_OF(cases)};
