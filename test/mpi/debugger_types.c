/* SPDX-License-Identifier: BSD-3-Clause */
/* The types that Open MPI's library for debuggers asks for (queues.py), described for gdb: all of
 * these headers, used or not. */
#include "ompi_config.h"

#include "ompi/communicator/communicator.h"
#include "ompi/group/group.h"
#include "ompi/mca/pml/base/pml_base_recvreq.h"
#include "ompi/mca/pml/base/pml_base_request.h"
#include "ompi/mca/pml/base/pml_base_sendreq.h"
#include "ompi/mca/topo/base/base.h"
#include "ompi/mca/topo/topo.h"

extern int debugger_types;
int debugger_types;
