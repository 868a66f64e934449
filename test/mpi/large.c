// SPDX-License-Identifier: BSD-3-Clause
// Conformance: messages beyond 2 GiB, and counts whose bytes pass 2^31. Needs 9 GiB of free
// memory.
#define _GNU_SOURCE
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const size_t gib = (size_t) 1 << 30;

static size_t memory_available(void)
{
    FILE *file = fopen("/proc/meminfo", "r");
    char line[200];
    size_t kib = 0;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %zu kB", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib * 1024;
}

// Rank 0's figure decides for all.
static bool memory_is_short(size_t bytes)
{
    unsigned long long available = memory_available();
    OK(MPI_Bcast(&available, 1, MPI_UNSIGNED_LONG_LONG, 0, suite.comm));
    if (available >= bytes + 2 * gib)
        return false;
    suite_skip("needs %zu GiB of free memory and 2 beside, %llu are free", bytes / gib,
               available / gib);
    return true;
}

static unsigned char *map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED, "no memory for %zu bytes", bytes);
    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, bytes, MADV_HUGEPAGE); // to touch it all takes a tenth of the time
    return memory;
}

// What is sent repeats itself, in the same memory: an odd number of blocks, so that what is put
// wrong by a power of two is seen.
static const size_t period = (size_t) 1031 << 16;

static unsigned char *map_repeated(size_t bytes)
{
    unsigned char *memory = map(bytes);
    int file = memfd_create("period", 0);
    bool good = memory && file >= 0 && ftruncate(file, (off_t) period) == 0;
    for (size_t at = 0; good && at < bytes; at += period)
        good = mmap(memory + at, bytes - at < period ? bytes - at : period, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
    CHECK(good, "no memory for %zu bytes that repeat themselves", bytes);
    close(file);
    return good ? memory : NULL;
}

// One message from rank 0 to rank 1 of count items; the type has no gaps.
static void pass_on(MPI_Datatype type, int count, size_t bytes)
{
    MPI_Status status;
    MPI_Count got = -1;
    unsigned char *memory = NULL;
    if (suite.rank == 0 && (memory = map_repeated(bytes))) {
        pattern_fill(memory, period, bytes);
        OK(MPI_Send(memory, count, type, 1, 0, suite.comm));
    } else if (suite.rank == 1 && (memory = map(bytes))) {
        OK(MPI_Recv(memory, count, type, 0, 0, suite.comm, &status));
        for (size_t at = 0; at < bytes; at += period)
            CHECK_PATTERN(memory + at, bytes - at < period ? bytes - at : period, bytes,
                          "%zu bytes from %zu", bytes, at);
        int items = -1;
        OK(MPI_Get_count(&status, type, &items));
        CHECK(items == count, "MPI_Get_count gave %d of %d", items, count);
#if SUITE_MPI_4_1
        OK(MPI_Get_elements_c(&status, MPI_BYTE, &got));
#else
        OK(MPI_Get_elements_x(&status, MPI_BYTE, &got));
#endif
        CHECK(got == (MPI_Count) bytes, "MPI_Get_elements gave %lld of %zu", (long long) got,
              bytes);
    }
    if (memory)
        munmap(memory, bytes);
    OK(MPI_Barrier(suite.comm));
}

static void a_message_of_more_than_two_gib_arrives(void)
{
    MPI_Datatype block;
    size_t bytes = 5 * (gib / 2); // 2.5 GiB
    if (memory_is_short(bytes))
        return;
    OK(MPI_Type_contiguous(1 << 20, MPI_BYTE, &block));
    OK(MPI_Type_commit(&block));
    pass_on(block, 2560, bytes);
    OK(MPI_Type_free(&block));
}

static void a_count_of_more_than_two_gib_of_bytes_arrives(void)
{
    int count = 300000000; // of 8 bytes: 2.4e9
    if (memory_is_short(8 * (size_t) count))
        return;
    pass_on(MPI_DOUBLE, count, 8 * (size_t) count);
}

static void a_message_of_more_than_four_gib_arrives(void)
{
    MPI_Datatype block;
    size_t bytes = 9 * (gib / 2); // 4.5 GiB
    if (!suite.thorough) {
        suite_skip("only with --thorough");
        return;
    }
    if (memory_is_short(bytes))
        return;
    OK(MPI_Type_contiguous(1 << 20, MPI_BYTE, &block));
    OK(MPI_Type_commit(&block));
    pass_on(block, 4608, bytes);
    OK(MPI_Type_free(&block));
}

// With gaps, packed and unpacked by pieces: offsets within the message pass 2^31.
static void a_message_with_gaps_of_more_than_two_gib_arrives(void)
{
    MPI_Datatype gaps;
    size_t items = 280000000, span = items * 12;
    if (memory_is_short(2 * span))
        return;
    OK(MPI_Type_create_resized(MPI_DOUBLE, 0, 12, &gaps));
    OK(MPI_Type_commit(&gaps));
    unsigned char *memory = suite.rank < 2 ? map(span) : NULL;
    if (suite.rank == 0 && memory) {
        for (size_t i = 0; i < items; i++)
            memcpy(memory + 12 * i, &(uint64_t){i * 0x9E3779B97F4A7C15u}, 8);
        OK(MPI_Ssend(memory, (int) items, gaps, 1, 0, suite.comm));
    } else if (suite.rank == 1 && memory) {
        OK(MPI_Recv(memory, (int) items, gaps, 0, 0, suite.comm, MPI_STATUS_IGNORE));
        size_t wrong = 0;
        for (size_t i = 0; i < items; i++) {
            uint64_t value = i * 0x9E3779B97F4A7C15u;
            uint32_t gap = 0;
            wrong += memcmp(memory + 12 * i, &value, 8) != 0;
            wrong += memcmp(memory + 12 * i + 8, &gap, 4) != 0;
        }
        CHECK(wrong == 0, "%zu of %zu items or gaps are wrong", wrong, items);
    }
    if (memory)
        munmap(memory, span);
    OK(MPI_Barrier(suite.comm));
    OK(MPI_Type_free(&gaps));
}

#define CHAPTER "Point-to-Point, Message Data; Datatypes, Large Counts"

static const struct suite_case cases[] = {
    {"a_message_of_more_than_two_gib_arrives", CHAPTER, a_message_of_more_than_two_gib_arrives, 2},
    {"a_count_of_more_than_two_gib_of_bytes_arrives", CHAPTER,
     a_count_of_more_than_two_gib_of_bytes_arrives, 2},
    {"a_message_of_more_than_four_gib_arrives", CHAPTER, a_message_of_more_than_four_gib_arrives,
     2},
    {"a_message_with_gaps_of_more_than_two_gib_arrives", CHAPTER,
     a_message_with_gaps_of_more_than_two_gib_arrives, 2},
};

int main(int argc, char **argv)
{
    return suite_main(argc, argv, "large", cases, COUNT_OF(cases), MPI_THREAD_SINGLE);
}
