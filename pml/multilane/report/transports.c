/* SPDX-License-Identifier: BSD-3-Clause */
/* The lanes to a rank by name and device, as Open MPI's table of connections shows them. */
#include "report/report.h"

#include <stdlib.h>
#include <string.h>

#include "match/comm.h"
#include "plan/peer_class.h"

/* "tcp" and "eth0" of the lane that reports call "tcp:eth0". The texts live as long as the class.
 */
static mca_pml_transport_entry_t transport_of(const struct peer_class *class, int lane)
{
    const char *device = strchr(class->lanes[lane].name, ':');
    return (mca_pml_transport_entry_t){.transport_name = lane_name_of(class->btls[lane]),
                                       .device_name = device ? device + 1 : "memory"};
}

mca_pml_transports_t *transports_of_rank(ompi_communicator_t *comm, int rank)
{
    const struct peer *peer = comm->c_pml_comm ? comm_peer(comm->c_pml_comm, rank) : NULL;
    const struct peer_class *class = peer ? peer_class_now(peer) : NULL;
    if (!class)
        return NULL;
    int count = class_lanes_described(class);
    mca_pml_transports_t *transports = malloc(sizeof(*transports));
    mca_pml_transport_entry_t *entries = calloc((size_t) count + 1, sizeof(*entries));
    if (!transports || !entries) {
        free(transports);
        free(entries);
        return NULL;
    }
    for (int i = 0; i < count; i++)
        entries[i] = transport_of(class, i);
    transports->count = (unsigned) count;
    transports->entries = entries;
    return transports;
}
