/* SPDX-License-Identifier: BSD-3-Clause */
/* Every collective operation that reads or writes with the processor, on images of its buffers.
 * MPI_Bcast is none of them, nor are those between neighbours: they only send and receive. */
#include "coll/multilane/coll.h"

/* --- what is sent and received, by whom --- */

static struct blocks one(size_t elements, ompi_datatype_t *type)
{
    return (struct blocks){.count = 1, .elements = elements, .kind = BLOCKS_ONE, .type = type};
}

static struct blocks by_extent(size_t count, compat_counts counts, compat_displs displs,
                               ompi_datatype_t *type)
{
    return (struct blocks){
        .count = count, .kind = BLOCKS_BY_EXTENT, .counts = counts, .displs = displs, .type = type};
}

static struct blocks by_byte(size_t count, compat_counts counts, compat_displs displs,
                             ompi_datatype_t *const *types)
{
    return (struct blocks){
        .count = count, .kind = BLOCKS_BY_BYTE, .counts = counts, .displs = displs, .types = types};
}

/* What not every process sends or receives. */
static struct blocks only(bool condition, struct blocks blocks)
{
    if (!condition)
        blocks.count = 0;
    return blocks;
}

static bool is_root(ompi_communicator_t *comm, int root)
{
    return OMPI_COMM_IS_INTER(comm) ? root == MPI_ROOT : root == ompi_comm_rank(comm);
}

/* Does the process have a part beside that of the root's? */
static bool has_part(ompi_communicator_t *comm, int root)
{
    return !OMPI_COMM_IS_INTER(comm) || root >= 0;
}

/* The processes that this one exchanges with. */
static size_t others(ompi_communicator_t *comm)
{
    return (size_t) (OMPI_COMM_IS_INTER(comm) ? ompi_comm_remote_size(comm) : ompi_comm_size(comm));
}

static size_t locals(ompi_communicator_t *comm)
{
    return (size_t) ompi_comm_size(comm);
}

static size_t sum(ompi_communicator_t *comm, compat_counts counts)
{
    size_t all = 0;

    for (size_t i = 0; i < locals(comm); i++)
        all += compat_counts_get(counts, i);
    return all;
}

/* What a process gets of a reduction that is scattered. In place, it is read out of the whole. */
static struct blocks scattered(ompi_communicator_t *comm, const void *sbuf, compat_counts counts,
                               ompi_datatype_t *type)
{
    return one(sbuf == MPI_IN_PLACE ? sum(comm, counts)
                                    : compat_counts_get(counts, (size_t) ompi_comm_rank(comm)),
               type);
}

/* --- the operations --- */

#define ARGUMENTS(...) __VA_ARGS__

/* The three functions of one: blocking, nonblocking and persistent. `sent` and `received` are the
 * blocks that this process sends from `sbuf` and receives into `rbuf`; `keeps` as in struct
 * staging. */
#define OPERATION(name, parameters, arguments, sent, received, keeps)                              \
    static int name(ARGUMENTS parameters, ompi_communicator_t *comm,                               \
                    mca_coll_base_module_t *module)                                                \
    {                                                                                              \
        const coll_module_t *own = (coll_module_t *) module;                                       \
        struct staging staging;                                                                    \
        int status = staging_make(&staging, comm, &sbuf, sent, &rbuf, received, keeps);            \
        if (status != OMPI_SUCCESS)                                                                \
            return status;                                                                         \
        status = staging_fill(&staging);                                                           \
        if (status == OMPI_SUCCESS)                                                                \
            status = own->below.coll_##name(ARGUMENTS arguments, comm,                             \
                                            own->below.coll_##name##_module);                      \
        return staging_end(&staging, status);                                                      \
    }                                                                                              \
    static int i##name(ARGUMENTS parameters, ompi_communicator_t *comm, ompi_request_t **request,  \
                       mca_coll_base_module_t *module)                                             \
    {                                                                                              \
        const coll_module_t *own = (coll_module_t *) module;                                       \
        struct staging staging;                                                                    \
        int status = staging_make(&staging, comm, &sbuf, sent, &rbuf, received, keeps);            \
        if (status != OMPI_SUCCESS)                                                                \
            return status;                                                                         \
        status = staging_fill(&staging);                                                           \
        if (status == OMPI_SUCCESS)                                                                \
            status = own->below.coll_i##name(ARGUMENTS arguments, comm, request,                   \
                                             own->below.coll_i##name##_module);                    \
        return request_before(&staging, status, request, false);                                   \
    }                                                                                              \
    static int name##_init(ARGUMENTS parameters, ompi_communicator_t *comm,                        \
                           struct ompi_info_t *info, ompi_request_t **request,                     \
                           mca_coll_base_module_t *module)                                         \
    {                                                                                              \
        const coll_module_t *own = (coll_module_t *) module;                                       \
        struct staging staging;                                                                    \
        int status = staging_make(&staging, comm, &sbuf, sent, &rbuf, received, keeps);            \
        if (status != OMPI_SUCCESS)                                                                \
            return status;                                                                         \
        status = own->below.coll_##name##_init(ARGUMENTS arguments, comm, info, request,           \
                                               own->below.coll_##name##_init_module);              \
        return request_before(&staging, status, request, true);                                    \
    }

#define REDUCTION                                                                                  \
    (const void *sbuf, void *rbuf, compat_count count, ompi_datatype_t *type, ompi_op_t *op)
#define EXCHANGE                                                                                   \
    (const void *sbuf, compat_count scount, ompi_datatype_t *stype, void *rbuf,                    \
     compat_count rcount, ompi_datatype_t *rtype)
#define EXCHANGE_V                                                                                 \
    (const void *sbuf, compat_counts scounts, compat_displs sdispls, ompi_datatype_t *stype,       \
     void *rbuf, compat_counts rcounts, compat_displs rdispls, ompi_datatype_t *rtype)

OPERATION(allreduce, REDUCTION, (sbuf, rbuf, count, type, op), one((size_t) count, type),
          one((size_t) count, type), false)
OPERATION(scan, REDUCTION, (sbuf, rbuf, count, type, op), one((size_t) count, type),
          one((size_t) count, type), false)
/* The first process receives nothing. */
OPERATION(exscan, REDUCTION, (sbuf, rbuf, count, type, op), one((size_t) count, type),
          one((size_t) count, type), true)
OPERATION(reduce,
          (const void *sbuf, void *rbuf, compat_count count, ompi_datatype_t *type, ompi_op_t *op,
           int root),
          (sbuf, rbuf, count, type, op, root),
          only(has_part(comm, root), one((size_t) count, type)),
          only(is_root(comm, root), one((size_t) count, type)), false)
OPERATION(reduce_scatter,
          (const void *sbuf, void *rbuf, compat_counts counts, ompi_datatype_t *type,
           ompi_op_t *op),
          (sbuf, rbuf, counts, type, op), one(sum(comm, counts), type),
          scattered(comm, sbuf, counts, type), false)
OPERATION(reduce_scatter_block, REDUCTION, (sbuf, rbuf, count, type, op),
          one((size_t) count *locals(comm), type),
          one((size_t) count *(sbuf == MPI_IN_PLACE ? locals(comm) : 1), type), false)

OPERATION(allgather, EXCHANGE, (sbuf, scount, stype, rbuf, rcount, rtype),
          one((size_t) scount, stype), one((size_t) rcount *others(comm), rtype), false)
OPERATION(allgatherv,
          (const void *sbuf, compat_count scount, ompi_datatype_t *stype, void *rbuf,
           compat_counts rcounts, compat_displs rdispls, ompi_datatype_t *rtype),
          (sbuf, scount, stype, rbuf, rcounts, rdispls, rtype), one((size_t) scount, stype),
          by_extent(others(comm), rcounts, rdispls, rtype), false)
OPERATION(alltoall, EXCHANGE, (sbuf, scount, stype, rbuf, rcount, rtype),
          one((size_t) scount *others(comm), stype), one((size_t) rcount *others(comm), rtype),
          false)
OPERATION(alltoallv, EXCHANGE_V, (sbuf, scounts, sdispls, stype, rbuf, rcounts, rdispls, rtype),
          by_extent(others(comm), scounts, sdispls, stype),
          by_extent(others(comm), rcounts, rdispls, rtype), false)
OPERATION(alltoallw,
          (const void *sbuf, compat_counts scounts, compat_displs sdispls,
           ompi_datatype_t *const *stypes, void *rbuf, compat_counts rcounts, compat_displs rdispls,
           ompi_datatype_t *const *rtypes),
          (sbuf, scounts, sdispls, stypes, rbuf, rcounts, rdispls, rtypes),
          by_byte(others(comm), scounts, sdispls, stypes),
          by_byte(others(comm), rcounts, rdispls, rtypes), false)

OPERATION(gather,
          (const void *sbuf, compat_count scount, ompi_datatype_t *stype, void *rbuf,
           compat_count rcount, ompi_datatype_t *rtype, int root),
          (sbuf, scount, stype, rbuf, rcount, rtype, root),
          only(has_part(comm, root), one((size_t) scount, stype)),
          only(is_root(comm, root), one((size_t) rcount *others(comm), rtype)), false)
OPERATION(gatherv,
          (const void *sbuf, compat_count scount, ompi_datatype_t *stype, void *rbuf,
           compat_counts rcounts, compat_displs rdispls, ompi_datatype_t *rtype, int root),
          (sbuf, scount, stype, rbuf, rcounts, rdispls, rtype, root),
          only(has_part(comm, root), one((size_t) scount, stype)),
          only(is_root(comm, root), by_extent(others(comm), rcounts, rdispls, rtype)), false)
OPERATION(scatter,
          (const void *sbuf, compat_count scount, ompi_datatype_t *stype, void *rbuf,
           compat_count rcount, ompi_datatype_t *rtype, int root),
          (sbuf, scount, stype, rbuf, rcount, rtype, root),
          only(is_root(comm, root), one((size_t) scount *others(comm), stype)),
          only(has_part(comm, root), one((size_t) rcount, rtype)), false)
OPERATION(scatterv,
          (const void *sbuf, compat_counts scounts, compat_displs sdispls, ompi_datatype_t *stype,
           void *rbuf, compat_count rcount, ompi_datatype_t *rtype, int root),
          (sbuf, scounts, sdispls, stype, rbuf, rcount, rtype, root),
          only(is_root(comm, root), by_extent(others(comm), scounts, sdispls, stype)),
          only(has_part(comm, root), one((size_t) rcount, rtype)), false)

static int reduce_local(const void *in, void *in_out, compat_count count, ompi_datatype_t *type,
                        ompi_op_t *op, mca_coll_base_module_t *module)
{
    const coll_module_t *own = (coll_module_t *) module;
    struct blocks all = one((size_t) count, type);
    struct staging staging;
    int status = staging_make(&staging, own->comm, &in, all, &in_out, all, true);

    if (status != OMPI_SUCCESS)
        return status;
    status = staging_fill(&staging);
    if (status == OMPI_SUCCESS)
        status = own->below.coll_reduce_local(in, in_out, count, type, op,
                                              own->below.coll_reduce_local_module);
    return staging_end(&staging, status);
}

/* --- modules --- */

#define EACH_OF(name, do_it) do_it(name) do_it(i##name) do_it(name##_init)
#define EACH(do_it)                                                                                \
    EACH_OF(allreduce, do_it)                                                                      \
    EACH_OF(scan, do_it)                                                                           \
    EACH_OF(exscan, do_it)                                                                         \
    EACH_OF(reduce, do_it)                                                                         \
    EACH_OF(reduce_scatter, do_it)                                                                 \
    EACH_OF(reduce_scatter_block, do_it)                                                           \
    EACH_OF(allgather, do_it)                                                                      \
    EACH_OF(allgatherv, do_it)                                                                     \
    EACH_OF(alltoall, do_it)                                                                       \
    EACH_OF(alltoallv, do_it)                                                                      \
    EACH_OF(alltoallw, do_it)                                                                      \
    EACH_OF(gather, do_it)                                                                         \
    EACH_OF(gatherv, do_it)                                                                        \
    EACH_OF(scatter, do_it)                                                                        \
    EACH_OF(scatterv, do_it)                                                                       \
    do_it(reduce_local)

/* Those that are in use: first that of MPI_COMM_SELF, which no failure of a process reaches, then
 * the oldest. */
static struct {
    opal_mutex_t lock; /* guards all below, and the links */
    coll_module_t *first;
} used = {.lock = OPAL_MUTEX_STATIC_INIT};

/* False: another thread has freed it, and is about to remove its module. */
static bool comm_retain(ompi_communicator_t *comm)
{
    opal_object_t *object = (opal_object_t *) comm;
    int32_t count = object->obj_reference_count;

    while (count > 0)
        if (opal_atomic_compare_exchange_strong_32(&object->obj_reference_count, &count, count + 1))
            return true;
    return false;
}

/* While the lock is held the memory of each is there, as its module removes itself first. */
ompi_communicator_t *module_comm_hold(void)
{
    OPAL_THREAD_LOCK(&used.lock);
    coll_module_t *module = used.first;
    while (module && !comm_retain(module->comm))
        module = module->next;
    OPAL_THREAD_UNLOCK(&used.lock);
    return module ? module->comm : NULL;
}

static void used_add(coll_module_t *module)
{
    OPAL_THREAD_LOCK(&used.lock);
    coll_module_t **end = &used.first;
    while (*end && module->comm != MPI_COMM_SELF)
        end = &(*end)->next;
    module->next = *end;
    *end = module;
    OPAL_THREAD_UNLOCK(&used.lock);
}

static void module_destruct(coll_module_t *module)
{
    OPAL_THREAD_LOCK(&used.lock);
    coll_module_t **at = &used.first;
    while (*at && *at != module)
        at = &(*at)->next;
    if (*at)
        *at = module->next;
    OPAL_THREAD_UNLOCK(&used.lock);
}

static int module_enable(mca_coll_base_module_t *module, ompi_communicator_t *comm)
{
    coll_module_t *own = (coll_module_t *) module;

    used_add(own);
    own->below = *comm->c_coll;
#define INSTALL(name) COMPAT_COLL_INSTALL(comm, module, &own->below, name, name);
    EACH(INSTALL)
    return OMPI_SUCCESS;
}

static int module_disable(mca_coll_base_module_t *module, ompi_communicator_t *comm)
{
    coll_module_t *own = (coll_module_t *) module;

#define UNINSTALL(name) COMPAT_COLL_UNINSTALL(comm, module, &own->below, name);
    EACH(UNINSTALL)
    return OMPI_SUCCESS;
}

OBJ_CLASS_INSTANCE(coll_module_t, mca_coll_base_module_t, NULL, module_destruct);

mca_coll_base_module_t *module_new(ompi_communicator_t *comm)
{
    coll_module_t *module = OBJ_NEW(coll_module_t);

    if (!module)
        return NULL;
    module->comm = comm;
    module->super.coll_module_enable = module_enable;
    module->super.coll_module_disable = module_disable;
    return &module->super;
}
