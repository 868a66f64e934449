/* SPDX-License-Identifier: BSD-3-Clause */
/* What the PML offers other components of Multilane, and how they find it. */
#ifndef MULTILANE_SERVICE_H
#define MULTILANE_SERVICE_H

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ompi_communicator_t;

/* The PML exports one constant of this type; dlsym(RTLD_DEFAULT, symbol) finds it, as with the
 * extensions of BTLs (multilane/extension.h). */
#define MULTILANE_SERVICE_VERSION 2
#define MULTILANE_SERVICE_NAME    mca_pml_multilane_service_v2
#define MULTILANE_SERVICE_SYMBOL  "mca_pml_multilane_service_v2"

/* A wait for a word of shared memory, in a collective operation. */
struct multilane_wait {
    const _Atomic uint32_t *word;
    uint32_t seen; /* over when the word differs */
    struct ompi_communicator_t *comm;
    int tag; /* Open MPI's for the operation */
    /* Called now and then in a long wait. OMPI_SUCCESS: it goes on. */
    int (*look)(const void *with);
    /* The rank that has not come yet; -1: it is not known. By the thread that waits. */
    int (*missing)(const void *with);
    const void *with;
};

/* --- collective operations, counted for the explain report, and noted for the black box --- */

enum multilane_call {
    MULTILANE_BARRIER,
    MULTILANE_BCAST,
    MULTILANE_REDUCE,
    MULTILANE_ALLREDUCE,
    MULTILANE_ALLGATHER,
    MULTILANE_ALLTOALL,
    MULTILANE_GATHER,
    MULTILANE_CALLS
};

static inline const char *multilane_call_name(unsigned call)
{
    static const char *const names[MULTILANE_CALLS] = {
        "MPI_Barrier",   "MPI_Bcast",    "MPI_Reduce", "MPI_Allreduce",
        "MPI_Allgather", "MPI_Alltoall", "MPI_Gather"};
    return call < MULTILANE_CALLS ? names[call] : "another operation";
}

/* What carries an operation. */
enum multilane_way {
    MULTILANE_BY_NODE,    /* its memory */
    MULTILANE_BY_LEADERS, /* of nodes, by their communicator's function */
    MULTILANE_BY_CHAIN,   /* of leaders */
    /* Open MPI's own function, and why. */
    MULTILANE_FIRST, /* of a communicator */
    MULTILANE_LARGE,
    MULTILANE_OPERAND, /* its type or MPI_Op */
    MULTILANE_UNEVEN,  /* nodes have unlike numbers of processes */
    MULTILANE_UNSHARED,
    MULTILANE_RECORDED,
    MULTILANE_DEVICE,
    MULTILANE_ULFM,
    MULTILANE_MANY, /* other communicators have levels */
    MULTILANE_NO_MEMORY,
    MULTILANE_NO_SHM,
    MULTILANE_APART, /* no two processes on one node */
    MULTILANE_SINGLE,
    MULTILANE_INTER,
    MULTILANE_CALL_WAYS
};

/* Of bytes that a process gives, or from a root gets: up to 8, 64, 512 ..., and the rest. */
#define MULTILANE_CALL_CLASSES 8u

static inline unsigned multilane_call_class(uint64_t bytes)
{
    unsigned class = bytes > 8 ? (63 - (unsigned) __builtin_clzll(bytes - 1)) / 3 : 0;
    return class < MULTILANE_CALL_CLASSES ? class : MULTILANE_CALL_CLASSES - 1;
}

struct multilane_call_count {
    _Atomic uint64_t calls, ns;
};

struct multilane_calls {
    struct multilane_call_count of[MULTILANE_CALLS][MULTILANE_CALL_CLASSES][MULTILANE_CALL_WAYS];
    _Atomic uint64_t left[MULTILANE_CALL_WAYS]; /* communicators without us, by reason */
    /* Null; or called before each operation, of which there were `turn` before on the communicator.
     * `root`: -1 where there is none. */
    void (*note)(struct ompi_communicator_t *comm, enum multilane_call call, int root,
                 uint64_t bytes, uint32_t turn);
};

struct multilane_service {
    uint32_t version;
    uint32_t struct_bytes;
    /* Does this process share its processor with others of the job? */
    bool (*shares)(void);
    /* Are messages recorded? Collective operations are to go by them then. */
    bool (*records)(void);
    /* Waits, and makes progress meanwhile. Who changes the word wakes this process (struct
     * multilane_commons). OMPI_SUCCESS: it has changed; else what the operation ends with. */
    int (*wait)(const struct multilane_wait *wait);
    /* Where a job that begins counts its operations. Null: nothing wants to know. */
    struct multilane_calls *(*calls)(void);
    /* Meets the process of a rank, as its first message would: what a BTL loses on its way there
     * goes by another lane from then on. */
    void (*contact)(struct ompi_communicator_t *comm, int rank);
};

/* Null: the PML is not there, or is another version. */
static inline const struct multilane_service *multilane_service_find(void)
{
    const struct multilane_service *service =
        (const struct multilane_service *) dlsym(RTLD_DEFAULT, MULTILANE_SERVICE_SYMBOL);
    return service && service->version == MULTILANE_SERVICE_VERSION &&
                   service->struct_bytes >= sizeof(*service)
               ? service
               : NULL;
}

#endif
