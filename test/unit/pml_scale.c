/* SPDX-License-Identifier: BSD-3-Clause */
/* What a job of a million ranks costs one process: of communicators that are not used or are freed,
 * of the peers that are met, and of a walk over all ranks (doc/scale.md). */
#include "check.h"

#include <malloc.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "entry/calls.h"
#include "lanes_standin.h"
#include "match/comm.h"
#include "contact/contact.h"

#define RANKS 1000000u
#define PEERS 4096u

/* What one more may take. */
#define UNUSED_COMM_MAX 131072 /* two pages of the largest kind */
#define PEER_MAX        1024   /* bytes of the heap */

static void peer_contacted(struct peer *peer, uint32_t window)
{
    (void) peer, (void) window;
}

/* Bytes of a block that are in memory. */
static size_t resident_bytes(const void *block, size_t bytes)
{
    uintptr_t page = (uintptr_t) sysconf(_SC_PAGESIZE), first = (uintptr_t) block / page * page;
    size_t pages = ((uintptr_t) block + bytes - first + page - 1) / page, count = 0;
    unsigned char *in_memory = malloc(pages);

    CHECK(mincore((void *) first, pages * page, in_memory) == 0, "%zu pages", pages);
    for (size_t i = 0; i < pages; i++)
        count += in_memory[i] & 1;
    free(in_memory);
    return count * page;
}

static double heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();

    return (double) info.uordblks + (double) info.hblkhd;
}

/* That of a sanitizer counts nothing here, and may clear what it gives. */
static bool allocator_is_libc(void)
{
    return heap_bytes() > 0;
}

/* Of all ranks. Its own class would list it with all communicators of Open MPI. */
static void comm_forge(ompi_communicator_t *ompi, ompi_group_t *group, uint32_t index)
{
    OBJ_CONSTRUCT(&ompi->super, opal_infosubscriber_t);
#if COMPAT_SERIES >= 50000
    ompi->c_flags = OMPI_COMM_GLOBAL_INDEX; /* its index is that of all its processes */
    ompi->c_index = index;
#else
    ompi->c_contextid = index;
#endif
    ompi->c_remote_group = ompi->c_local_group = group;
    CHECK(module_add_comm(ompi) == OMPI_SUCCESS, "communicator %u", index);
}

static void comm_cost(void)
{
    static ompi_group_t group = {.grp_proc_count = (int) RANKS};
    static ompi_communicator_t ompi;

    comm_forge(&ompi, &group, 10);
    size_t all = sizeof(struct mca_pml_comm_t) + RANKS * sizeof(ompi.c_pml_comm->peers[0]);
    size_t there = resident_bytes(ompi.c_pml_comm, all);
    printf("a communicator of %u ranks before its first message: %zu bytes, %zu in memory\n", RANKS,
           all, there);
    CHECK(there <= UNUSED_COMM_MAX || !allocator_is_libc(), "%zu bytes", there);
}

static size_t names; /* of processes, looked up */

opal_process_name_t __wrap_comm_name_of(const struct mca_pml_comm_t *comm, uint32_t rank);
opal_process_name_t __wrap_comm_name_of(const struct mca_pml_comm_t *comm, uint32_t rank)
{
    (void) comm;
    names++;
    return (opal_process_name_t){.jobid = multilane.me.jobid, .vpid = rank};
}

/* Once a process of another job was met: one that has none does not ask of the others' ranks. */
static void free_cost(void)
{
    static ompi_group_t group = {.grp_proc_count = 2};
    static ompi_communicator_t ompi;
    static struct peer other = {.is_of_other_job = true};

    comm_forge(&ompi, &group, 11);
    multilane.other_job_peers = &other;
    names = 0;
    module_del_comm(&ompi);
    multilane.other_job_peers = NULL;
    CHECK(names <= 2, "%zu names", names);
}

static void peers_cost(ompi_proc_t *process)
{
    double before = heap_bytes();

    /* Far from each other, as neighbours in three dimensions are. */
    for (uint32_t i = 0; i < PEERS; i++) {
        opal_process_name_t name = {.jobid = multilane.me.jobid, .vpid = i * (RANKS / PEERS)};
        CHECK(peer_contact(name, process), "rank %u", name.vpid);
    }
    double each = (heap_bytes() - before) / PEERS;
    printf("a peer that was met: %.0f bytes\n", each);
    CHECK((each > 0 && each <= PEER_MAX) || !allocator_is_libc(), "%.0f bytes", each);
}

static void walk_cost(void)
{
    struct timespec from, to;
    unsigned count = 0;

    clock_gettime(CLOCK_MONOTONIC, &from);
    for (const struct peer *peer = peer_next(NULL); peer; peer = peer_next(peer))
        count++;
    clock_gettime(CLOCK_MONOTONIC, &to);
    printf("a walk over all ranks: %.2f ms\n",
           (double) (to.tv_sec - from.tv_sec) * 1e3 + (double) (to.tv_nsec - from.tv_nsec) * 1e-6);
    CHECK(count == PEERS, "%u peers", count);
}

int main(void)
{
    standin_begin();
    struct peer *stranger = standin_peer();
    standin_reach(stranger, standin_btl("self", 1000));
    ompi_proc_t *process = ompi_proc_local_proc = stranger->proc;
    contact_events.contacted = peer_contacted;
    OBJ_CONSTRUCT(&multilane.orphans, opal_list_t);
    multilane.me = (opal_process_name_t){.jobid = 0xabcd0001u, .vpid = 0};
    multilane.local_peer_count = RANKS;
    multilane.local_peers = calloc(RANKS, sizeof(*multilane.local_peers));

    comm_cost();
    free_cost();
    peers_cost(process);
    walk_cost();
    return check_end();
}
