/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts and times operations where the explain report or the black box is asked for: these
 * functions come before the module's then, which otherwise are the communicator's. */
#include "coll/node/entry.h"
#include "coll/node/image.h"
#include "common/lock/clock.h"

static struct multilane_calls *counts;
/* Operations of this thread within each other: only the outermost is the program's. */
static _Thread_local uint32_t depth;

void count_into(struct multilane_calls *calls)
{
    counts = calls;
}

void count_left(enum multilane_way why)
{
    if (counts && depth == 0)
        atomic_fetch_add_explicit(&counts->left[why], 1, memory_order_relaxed);
}

static void count_one(enum multilane_call call, size_t bytes, enum multilane_way way, uint64_t ns)
{
    struct multilane_call_count *row = &counts->of[call][multilane_call_class(bytes)][way];
    atomic_fetch_add_explicit(&row->calls, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&row->ns, ns, memory_order_relaxed);
}

static void call_note(struct entry *entry, enum multilane_call call, int root, size_t bytes)
{
    if (depth == 0 && counts->note)
        counts->note(entry->comm, call, root, bytes, entry->turn++);
}

/* The body of a function: calls the module's with the arguments at the end. */
#define COUNTED(call, root, length, name, ...)                                                     \
    struct entry *entry = (struct entry *) module;                                                 \
    call_note(entry, call, root, length);                                                          \
    const enum multilane_way before = entry->way;                                                  \
    const uint64_t begun_ns = clock_read_ns(CLOCK_MONOTONIC);                                      \
    depth++;                                                                                       \
    entry->way = entry->usual;                                                                     \
    int status = entry->functions->coll_##name(__VA_ARGS__);                                       \
    if (--depth == 0)                                                                              \
        count_one(call, length, entry->way, clock_read_ns(CLOCK_MONOTONIC) - begun_ns);            \
    entry->way = before; /* of the operation that this one is a part of */                         \
    return status

static int counted_barrier(ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    COUNTED(MULTILANE_BARRIER, -1, 0, barrier, comm, module);
}

static int counted_bcast(void *buffer, compat_count count, ompi_datatype_t *type, int root,
                         ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    COUNTED(MULTILANE_BCAST, root, packed_bytes((size_t) count, type), bcast, buffer, count, type,
            root, comm, module);
}

static int counted_reduce(const void *from, void *to, compat_count count, ompi_datatype_t *type,
                          ompi_op_t *op, int root, ompi_communicator_t *comm,
                          mca_coll_base_module_t *module)
{
    COUNTED(MULTILANE_REDUCE, root, packed_bytes((size_t) count, type), reduce, from, to, count,
            type, op, root, comm, module);
}

static int counted_allreduce(const void *from, void *to, compat_count count, ompi_datatype_t *type,
                             ompi_op_t *op, ompi_communicator_t *comm,
                             mca_coll_base_module_t *module)
{
    COUNTED(MULTILANE_ALLREDUCE, -1, packed_bytes((size_t) count, type), allreduce, from, to, count,
            type, op, comm, module);
}

static int counted_allgather(const void *from, compat_count from_count, ompi_datatype_t *from_type,
                             void *to, compat_count count, ompi_datatype_t *type,
                             ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    COUNTED(MULTILANE_ALLGATHER, -1, packed_bytes((size_t) count, type), allgather, from,
            from_count, from_type, to, count, type, comm, module);
}

static int counted_alltoall(const void *from, compat_count from_count, ompi_datatype_t *from_type,
                            void *to, compat_count count, ompi_datatype_t *type,
                            ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    COUNTED(MULTILANE_ALLTOALL, -1,
            (size_t) ompi_comm_size(comm) * packed_bytes((size_t) count, type), alltoall, from,
            from_count, from_type, to, count, type, comm, module);
}

static int counted_gather(const void *from, compat_count from_count, ompi_datatype_t *from_type,
                          void *to, compat_count count, ompi_datatype_t *type, int root,
                          ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    size_t bytes = ompi_comm_rank(comm) == root ? packed_bytes((size_t) count, type)
                                                : packed_bytes((size_t) from_count, from_type);
    COUNTED(MULTILANE_GATHER, root, bytes, gather, from, from_count, from_type, to, count, type,
            root, comm, module);
}

const mca_coll_base_comm_coll_t *counted(const mca_coll_base_comm_coll_t *functions)
{
    static const mca_coll_base_comm_coll_t all = {
        .coll_barrier = counted_barrier,
        .coll_bcast = counted_bcast,
        .coll_reduce = counted_reduce,
        .coll_allreduce = counted_allreduce,
        .coll_allgather = counted_allgather,
        .coll_alltoall = counted_alltoall,
        .coll_gather = counted_gather,
    };
    return counts ? &all : functions;
}
