/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for Open MPI's fint_2_int.h, which Debian does not install: the one conversion that the
 * header of operators uses. */
#ifndef MULTILANE_COMPAT_FINT_2_INT_H
#define MULTILANE_COMPAT_FINT_2_INT_H

#include "mpi.h"

#define OMPI_INT_2_FINT(number) ((MPI_Fint) (number))

#endif
