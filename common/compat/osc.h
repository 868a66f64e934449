/* SPDX-License-Identifier: BSD-3-Clause */
/* What a component of one-sided communication needs of Open MPI, and what of it differs between the
 * series. */
#ifndef MULTILANE_COMPAT_OSC_H
#define MULTILANE_COMPAT_OSC_H

#include "ompi_config.h"

#include "common/compat/compat.h"
#include "common/compat/threads.h"
#include "mpi.h"
#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/osc/base/base.h"
#include "ompi/mca/osc/osc.h"
#include "ompi/win/win.h"

#if COMPAT_SERIES >= 60000
#define COMPAT_OSC_BASE_VERSION OMPI_OSC_BASE_VERSION_4_0_0
typedef ptrdiff_t compat_disp_unit;
typedef size_t compat_osc_count;
#else
#define COMPAT_OSC_BASE_VERSION OMPI_OSC_BASE_VERSION_3_0_0
typedef int compat_disp_unit;
typedef int compat_osc_count;
#endif

#endif
