/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints which PML and which BTL modules a job has: rank 0 does, after it has talked to its
 * neighbour, so that late choices are made. Not a portable MPI program: it reads Open MPI's own
 * lists. */
#include "ompi_config.h"
#include "ompi/mca/pml/base/base.h"
#include "opal/mca/btl/base/base.h"

#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, size, token = 1, got = 0;
    mca_btl_base_selected_module_t *module;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Sendrecv(&token, 1, MPI_INT, (rank + 1) % size, 0, &got, 1, MPI_INT,
                 (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (0 == rank) {
        printf("pml %s\n", mca_pml_base_selected_component.pmlm_version.mca_component_name);
        OPAL_LIST_FOREACH(module, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t)
        {
            printf("btl %s\n", module->btl_component->btl_version.mca_component_name);
        }
        fflush(stdout);
    }
    MPI_Finalize();
    return got == token ? 0 : 1;
}
