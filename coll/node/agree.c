/* SPDX-License-Identifier: BSD-3-Clause */
/* All processes of a communicator choose alike. */
#include "coll/node/node.h"
#include "common/memory/driver.h"

enum multilane_way node_hindrance(bool has_memory)
{
    if (!has_memory)
        return MULTILANE_NO_MEMORY;
    if (driver_load() || device_memory_possible)
        return MULTILANE_DEVICE;
    return node_records() ? MULTILANE_RECORDED : MULTILANE_BY_NODE;
}

/* It needs no memory: one that has none says so. */
bool all_agree(struct entry *entry, enum multilane_way why, bool *shares, bool unshared_too,
               int *status)
{
    uint32_t mine[3] = {(uint32_t) why, *shares, !unshared_too}, all[3] = {0, 0, 0};
    *status = entry->below.coll_allreduce(mine, all, 3, MPI_UINT32_T, MPI_MAX, entry->comm,
                                          entry->below.coll_allreduce_module);
    *shares = all[1] != 0;
    entry->without =
        all[0] || *shares || !all[2] ? (enum multilane_way) all[0] : MULTILANE_UNSHARED;
    return *status == OMPI_SUCCESS && entry->without == MULTILANE_BY_NODE;
}
