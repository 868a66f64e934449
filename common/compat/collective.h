/* SPDX-License-Identifier: BSD-3-Clause */
/* Which collective operation a message belongs to: Open MPI tells it by the tag, below -1. */
#ifndef MULTILANE_COMPAT_COLLECTIVE_H
#define MULTILANE_COMPAT_COLLECTIVE_H

#include "ompi_config.h"

#include "multilane/page.h"
#include "ompi/mca/coll/base/coll_tags.h"

/* The tags of blocking ones lie in one row, in all series in the same order. */
static inline enum page_collective compat_collective_of_tag(int tag)
{
    _Static_assert(MCA_COLL_BASE_TAG_ALLGATHER - MCA_COLL_BASE_TAG_SCATTERV ==
                       PAGE_SCATTERV - PAGE_ALLGATHER,
                   "the collectives of the page are in the order of Open MPI's tags");
    _Static_assert(MCA_COLL_BASE_TAG_ALLGATHER - MCA_COLL_BASE_TAG_BARRIER ==
                       PAGE_BARRIER - PAGE_ALLGATHER,
                   "as above");
    if (tag >= PAGE_ANY)
        return PAGE_NO_COLLECTIVE;
    if (tag <= MCA_COLL_BASE_TAG_ALLGATHER && tag >= MCA_COLL_BASE_TAG_SCATTERV)
        return (enum page_collective)(PAGE_ALLGATHER + (MCA_COLL_BASE_TAG_ALLGATHER - tag));
    if (tag <= MCA_COLL_BASE_TAG_NONBLOCKING_BASE && tag >= MCA_COLL_BASE_TAG_NEIGHBOR_END)
        return PAGE_NONBLOCKING;
    return PAGE_OTHER_INTERNAL;
}

#endif
