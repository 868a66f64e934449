/* SPDX-License-Identifier: BSD-3-Clause */
/* The answers of Open MPI's configure that are the same wherever Multilane runs (Linux with glibc,
 * 64 bits, gcc or clang), as far as its headers ask; config/ompi-headers.sh adds the others. */
#ifndef MULTILANE_PLATFORM_H
#define MULTILANE_PLATFORM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#define HAVE_ARPA_INET_H             1
#define HAVE_ASPRINTF                1
#define HAVE_DECL_AF_INET6           1
#define HAVE_DECL_AF_UNSPEC          1
#define HAVE_DECL_PF_INET6           1
#define HAVE_DECL_PF_UNSPEC          1
#define HAVE_DECL___FUNC__           1
#define HAVE_INTPTR_T                1
#define HAVE_INTTYPES_H              1
#define HAVE_LONG_DOUBLE             1
#define HAVE_LONG_LONG               1
#define HAVE_NETINET_IN_H            1
#define HAVE_SNPRINTF                1
#define HAVE_SOCKLEN_T               1
#define HAVE_STRINGS_H               1
#define HAVE_STRUCT_SOCKADDR_IN      1
#define HAVE_STRUCT_SOCKADDR_IN6     1
#define HAVE_STRUCT_SOCKADDR_STORAGE 1
#define HAVE_SYS_PARAM_H             1
#define HAVE_SYS_SELECT_H            1
#define HAVE_SYS_SOCKET_H            1
#define HAVE_SYS_TIME_H              1
#define HAVE_SYS_TYPES_H             1
#define HAVE_SYS_UIO_H               1
#define HAVE_SYS_UN_H                1
#define HAVE_UINTPTR_T               1
#define HAVE_UNISTD_H                1
#define HAVE_UNIX_BYTESWAP           1
#define HAVE_VASPRINTF               1
#define HAVE_VSNPRINTF               1
#define HAVE___INT128                1

#define SIZEOF_CHAR        1
#define SIZEOF_SHORT       2
#define SIZEOF_INT         4
#define SIZEOF_LONG        8
#define SIZEOF_LONG_LONG   8
#define SIZEOF_FLOAT       4
#define SIZEOF_DOUBLE      8
#define SIZEOF_LONG_DOUBLE __SIZEOF_LONG_DOUBLE__
#define SIZEOF_SIZE_T      8
#define SIZEOF_SSIZE_T     8
#define SIZEOF_VOID_P      8

#define OPAL_ALIGNMENT_BOOL                1
#define OPAL_ALIGNMENT_INT8                1
#define OPAL_ALIGNMENT_INT16               2
#define OPAL_ALIGNMENT_INT32               4
#define OPAL_ALIGNMENT_INT64               8
#define OPAL_ALIGNMENT_LONG                8
#define OPAL_ALIGNMENT_WCHAR               4
#define OPAL_ALIGNMENT_FLOAT               4
#define OPAL_ALIGNMENT_DOUBLE              8
#define OPAL_ALIGNMENT_LONG_DOUBLE         __SIZEOF_LONG_DOUBLE__
#define OPAL_ALIGNMENT_FLOAT_COMPLEX       4
#define OPAL_ALIGNMENT_DOUBLE_COMPLEX      8
#define OPAL_ALIGNMENT_LONG_DOUBLE_COMPLEX __SIZEOF_LONG_DOUBLE__

/* Fortran's types say their sizes. */
#define OMPI_FORTRAN_HANDLE_MAX       2147483647
#define OMPI_SIZEOF_FORTRAN_INTEGER   4
#define OMPI_SIZEOF_FORTRAN_INTEGER1  1
#define OMPI_SIZEOF_FORTRAN_INTEGER2  2
#define OMPI_SIZEOF_FORTRAN_INTEGER4  4
#define OMPI_SIZEOF_FORTRAN_INTEGER8  8
#define OMPI_SIZEOF_FORTRAN_INTEGER16 16
#define OMPI_SIZEOF_FORTRAN_LOGICAL   4
#define OMPI_SIZEOF_FORTRAN_LOGICAL1  1
#define OMPI_SIZEOF_FORTRAN_LOGICAL2  2
#define OMPI_SIZEOF_FORTRAN_LOGICAL4  4
#define OMPI_SIZEOF_FORTRAN_LOGICAL8  8
#define OMPI_SIZEOF_FORTRAN_LOGICAL16 16
#define OMPI_SIZEOF_FORTRAN_REAL      4
#define OMPI_SIZEOF_FORTRAN_REAL2     2
#define OMPI_SIZEOF_FORTRAN_REAL4     4
#define OMPI_SIZEOF_FORTRAN_REAL8     8
#define OMPI_SIZEOF_FORTRAN_REAL16    16

#define OPAL_HAVE_ATTRIBUTE_ALIGNED       1
#define OPAL_HAVE_ATTRIBUTE_ALWAYS_INLINE 1
#define OPAL_HAVE_ATTRIBUTE_COLD          1
#define OPAL_HAVE_ATTRIBUTE_CONST         1
#define OPAL_HAVE_ATTRIBUTE_FORMAT        1
#define OPAL_HAVE_ATTRIBUTE_HOT           1
#define OPAL_HAVE_ATTRIBUTE_MALLOC        1
#define OPAL_HAVE_ATTRIBUTE_MAY_ALIAS     1
#define OPAL_HAVE_ATTRIBUTE_NOINLINE      1
#define OPAL_HAVE_ATTRIBUTE_NONNULL       1
#define OPAL_HAVE_ATTRIBUTE_NORETURN      1
#define OPAL_HAVE_ATTRIBUTE_PACKED        1
#define OPAL_HAVE_ATTRIBUTE_PURE          1
#define OPAL_HAVE_ATTRIBUTE_UNUSED        1
#define OPAL_HAVE_ATTRIBUTE_VISIBILITY    1

#define OPAL_C_GCC_INLINE_ASSEMBLY   1
#define OPAL_C_HAVE_BUILTIN_EXPECT   1
#define OPAL_C_HAVE_BUILTIN_PREFETCH 1
#define OPAL_C_HAVE__GENERIC         1
#define OPAL_C_HAVE__THREAD_LOCAL    1
#define OPAL_C_HAVE___THREAD         1
#define OPAL_HAVE_WEAK_SYMBOLS       1
#define OPAL_ASSEMBLY_BUILTIN        OPAL_BUILTIN_GCC
#if defined(__x86_64__)
#define OPAL_ASSEMBLY_ARCH OPAL_X86_64
#elif defined(__aarch64__)
#define OPAL_ASSEMBLY_ARCH OPAL_ARM64
#else
#define OPAL_ASSEMBLY_ARCH OPAL_BUILTIN_GCC
#endif

#define OPAL_COUNT_TYPE long long
#define OPAL_COUNT_MAX  0x7fffffffffffffffll

#define OMPI_RTE_ORTE              1
#define OMPI_WANT_PERUSE           0 /* its place in a communicator depends on this line alone */
#define OMPI_PROC_ENDPOINT_TAG_BML 0

/* 4.1's parts that could have been others: no event is used here, and the hwloc that is used is the
 * system's. */
#define MCA_rte_IMPLEMENTATION_HEADER   "ompi/mca/rte/orte/rte_orte.h"
#define MCA_event_IMPLEMENTATION_HEADER "multilane_event.h"
#define MCA_hwloc_IMPLEMENTATION_HEADER "opal/mca/hwloc/external/external.h"
#define MCA_hwloc_external_header       "hwloc.h"

/* From 5.0 on. */
#define MCA_threads_base_include_HEADER       "opal/mca/threads/pthreads/threads_pthreads_threads.h"
#define MCA_threads_mutex_base_include_HEADER "opal/mca/threads/pthreads/threads_pthreads_mutex.h"

#endif
