/* SPDX-License-Identifier: BSD-3-Clause */
/* All that differs between Open MPI 4.1, 5.0 and 6.0, under one name each; no other file has an
 * #if on a version. */
#ifndef MULTILANE_COMPAT_H
#define MULTILANE_COMPAT_H

#include "opal_config.h"
#include "opal/version.h"

/* 40100 for 4.1.x, 50000 for 5.0.x, 60000 for 6.0.x. */
#define COMPAT_SERIES (OPAL_MAJOR_VERSION * 10000 + OPAL_MINOR_VERSION * 100)

/* The start of a component's version block. */
#if COMPAT_SERIES >= 50000
#define COMPAT_PML_BASE_VERSION MCA_PML_BASE_VERSION_2_1_0
#define COMPAT_BTL_BASE_VERSION MCA_BTL_BASE_VERSION_3_3_0
#else
#define COMPAT_PML_BASE_VERSION MCA_PML_BASE_VERSION_2_0_0
#define COMPAT_BTL_BASE_VERSION MCA_BTL_BASE_VERSION_3_1_0
#endif

/* The component's own version, which ompi_info shows; Open MPI compares it with nothing. */
#define COMPAT_COMPONENT_VERSION                                                                   \
    MCA_BASE_MAKE_VERSION(component, MULTILANE_MAJOR, MULTILANE_MINOR, MULTILANE_RELEASE)

#endif
