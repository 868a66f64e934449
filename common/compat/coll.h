/* SPDX-License-Identifier: BSD-3-Clause */
/* What a collective component needs of Open MPI, and what of it differs between the series. */
#ifndef MULTILANE_COMPAT_COLL_H
#define MULTILANE_COMPAT_COLL_H

#include "ompi_config.h"

#include "common/compat/compat.h"
#include "common/compat/threads.h"
#include "mpi.h"
#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/base/coll_base_util.h"
#include "ompi/mca/coll/base/coll_tags.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/request/request.h"
#include "opal/class/opal_free_list.h"

/* A count, and arrays of counts and displacements, as the functions of a module take them. */
#if COMPAT_SERIES >= 60000
#define COMPAT_COLL_BASE_VERSION MCA_COLL_BASE_VERSION_3_0_0
typedef size_t compat_count;
typedef ompi_count_array_t compat_counts;
typedef ompi_disp_array_t compat_displs;

static inline size_t compat_counts_get(compat_counts counts, size_t i)
{
    return ompi_count_array_get(counts, i);
}

static inline ptrdiff_t compat_displs_get(compat_displs displs, size_t i)
{
    return ompi_disp_array_get(displs, i);
}

#else
#if COMPAT_SERIES >= 50000
#define COMPAT_COLL_BASE_VERSION MCA_COLL_BASE_VERSION_2_4_0
#else
#define COMPAT_COLL_BASE_VERSION MCA_COLL_BASE_VERSION_2_0_0
#endif
typedef int compat_count;
typedef const int *compat_counts;
typedef const int *compat_displs;

static inline size_t compat_counts_get(compat_counts counts, size_t i)
{
    return (size_t) counts[i];
}

static inline ptrdiff_t compat_displs_get(compat_displs displs, size_t i)
{
    return displs[i];
}

#endif

/* coll/han of 4.1 leaves a communicator that it cannot serve by its own entries in the
 * communicator's table, and calls what is there then: it must find no function that comes before
 * its own. Does it serve the communicator so far? */
static inline bool compat_coll_has_to_be_last(const ompi_communicator_t *comm)
{
#if COMPAT_SERIES < 50000
    const mca_coll_base_avail_coll_t *avail;
    OPAL_LIST_FOREACH(avail, comm->c_coll->module_list, mca_coll_base_avail_coll_t)
    if (strcmp(avail->ac_component_name, "han") == 0 &&
        comm->c_coll->coll_bcast_module == avail->ac_module)
        return true;
#else
    (void) comm;
#endif
    return false;
}

/* Puts a function of ours before the one that a communicator has so far. Up to 5.0 Open MPI takes
 * it from the module, and counts references to modules; since 6.0 modules do it, and nothing
 * counts. `below` is a copy of the communicator's table. */
#if COMPAT_SERIES >= 60000
#define COMPAT_COLL_INSTALL(comm, module, below, name, function)                                   \
    do {                                                                                           \
        if ((below)->coll_##name) {                                                                \
            (comm)->c_coll->coll_##name = (function);                                              \
            (comm)->c_coll->coll_##name##_module = (module);                                       \
        }                                                                                          \
    } while (0)
#define COMPAT_COLL_UNINSTALL(comm, module, below, name)                                           \
    do {                                                                                           \
        if ((comm)->c_coll->coll_##name##_module == (module)) {                                    \
            (comm)->c_coll->coll_##name = (below)->coll_##name;                                    \
            (comm)->c_coll->coll_##name##_module = (below)->coll_##name##_module;                  \
        }                                                                                          \
    } while (0)
#else
#define COMPAT_COLL_INSTALL(comm, module, below, name, function)                                   \
    do {                                                                                           \
        if ((below)->coll_##name) {                                                                \
            (module)->coll_##name = (function);                                                    \
            OBJ_RETAIN((below)->coll_##name##_module);                                             \
        }                                                                                          \
    } while (0)
#define COMPAT_COLL_UNINSTALL(comm, module, below, name)                                           \
    do {                                                                                           \
        if ((module)->coll_##name) {                                                               \
            (module)->coll_##name = NULL;                                                          \
            OBJ_RELEASE((below)->coll_##name##_module);                                            \
        }                                                                                          \
    } while (0)
#endif

#endif
