/* SPDX-License-Identifier: BSD-3-Clause */
/* What of Open MPI datatypes need, without a job. */
#ifndef TEST_UNIT_OPEN_MPI_H
#define TEST_UNIT_OPEN_MPI_H

#include "common/compat/pml.h"
#include "ompi/datatype/ompi_datatype.h"

#if COMPAT_SERIES >= 50000
#include "opal/mca/accelerator/accelerator.h"
#include "opal/runtime/opal.h"

/* Convertors ask the accelerator framework, which is not open here, from Open MPI 5.0 on. */
static int no_device_memory(const void *address, int *device, uint64_t *flags)
{
    (void) address;
    (void) device;
    *flags = 0;
    return 0;
}

static inline void framework_begin(void)
{
    static opal_finalize_domain_t domain; /* what datatypes give back at the end is noted there */
    OBJ_CONSTRUCT(&domain, opal_finalize_domain_t);
    opal_finalize_domain_init(&domain, "unit test");
    opal_finalize_set_domain(&domain);
    opal_accelerator.check_addr = no_device_memory;
}
#else
static inline void framework_begin(void)
{
}
#endif

/* The convertor of this machine. Once. */
static inline opal_convertor_t *open_mpi_begin(void)
{
    framework_begin();
    ompi_datatype_init(); /* makes the convertor */
    return ompi_mpi_local_convertor;
}

#endif
