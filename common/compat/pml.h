/* SPDX-License-Identifier: BSD-3-Clause */
/* What a PML needs of Open MPI, and what of it differs between the series 4.1, 5.0 and 6.0. */
#ifndef MULTILANE_COMPAT_PML_H
#define MULTILANE_COMPAT_PML_H

#include "ompi_config.h"

#include "common/compat/btl.h"
#include "common/compat/threads.h"
#include "mpi.h"
#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/datatype/ompi_datatype_internal.h"
#include "ompi/errhandler/errhandler.h"
#include "ompi/errhandler/errhandler_predefined.h"
#include "ompi/mca/bml/base/base.h"
#include "ompi/mca/bml/bml.h"
#include "ompi/mca/pml/base/base.h"
#include "ompi/mca/pml/base/pml_base_bsend.h"
#include "ompi/mca/pml/base/pml_base_recvreq.h"
#include "ompi/mca/pml/base/pml_base_sendreq.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/message/message.h"
#include "ompi/proc/proc.h"
#include "ompi/request/request.h"
#include "ompi/runtime/mpiruntime.h"
#include "ompi/runtime/params.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/btl/btl.h"
#include "opal/runtime/opal_params.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/error.h"
#include "opal/util/output.h"
#if COMPAT_SERIES >= 50000
#include "ompi/runtime/ompi_rte.h"
#else
#include "ompi/mca/rte/rte.h"
#endif

/* Declares a function of the PML's module by the type that Open MPI has for it. */
#define PML_FUNCTION(kind, name) __typeof__(*(mca_pml_base_module_##kind##_fn_t) 0) name

/* The highest index of a communicator; Open MPI's own PML has the same. */
#define COMPAT_MAX_CONTEXT 65535u

/* What a PML module has beside the functions that all series know. Open MPI prints what
 * get_transports returns with ompi_display_comm, and calls all of it UCX's. */
#if COMPAT_SERIES >= 50000
#define COMPAT_PML_MODULE_REST(revoke, transports)                                                 \
    .pml_revoke_comm = (revoke), .pml_get_transports = (transports),
#define COMPAT_PML_FLAGS MCA_PML_BASE_FLAG_SUPPORTS_EXT_CID
#else
#define COMPAT_PML_MODULE_REST(revoke, transports) .pml_ft_event = NULL,
typedef struct {
    const char *transport_name, *device_name;
} mca_pml_transport_entry_t;
typedef struct {
    unsigned int count;
    mca_pml_transport_entry_t *entries;
} mca_pml_transports_t;
#define COMPAT_PML_FLAGS                           0
#endif

/* Communicators. Since 5.0 one made from a group has an index that differs from process to process,
 * and a name of 128 bits that does not. */
static inline uint32_t compat_comm_index(const ompi_communicator_t *comm)
{
#if COMPAT_SERIES >= 50000
    return comm->c_index;
#else
    return comm->c_contextid;
#endif
}

static inline bool compat_comm_has_common_index(const ompi_communicator_t *comm)
{
#if COMPAT_SERIES >= 50000
    return OMPI_COMM_IS_GLOBAL_INDEX(comm);
#else
    return true;
#endif
}

static inline void compat_comm_cid(const ompi_communicator_t *comm, uint64_t *base, uint64_t *sub)
{
#if COMPAT_SERIES >= 50000
    *base = comm->c_contextid.cid_base;
    *sub = comm->c_contextid.cid_sub.u64;
#else
    *base = *sub = comm->c_contextid;
#endif
}

/* Its name, as MPI_Comm_set_name gives it; never null. */
static inline const char *compat_comm_name(const ompi_communicator_t *comm)
{
    const char *name = comm->c_name; /* an array in 4.1, a pointer since 5.0 */
    return name ? name : "";
}

#if OPAL_ENABLE_FT_MPI

/* Must messages with this tag not be delivered any more? */
static inline bool compat_comm_refuses(ompi_communicator_t *comm, int tag)
{
    return (ompi_comm_is_revoked(comm) && !ompi_request_tag_is_ft(tag)) ||
           (ompi_comm_coll_revoked(comm) && ompi_request_tag_is_collective(tag));
}

static inline int compat_comm_refusal(ompi_communicator_t *comm)
{
    return ompi_comm_is_revoked(comm) ? MPI_ERR_REVOKED : MPI_ERR_PROC_FAILED;
}

static inline void compat_comm_mark_revoked(ompi_communicator_t *comm, bool collectives_only)
{
    comm->coll_revoked = true;
    if (!collectives_only)
        comm->comm_revoked = true;
}

static inline bool compat_proc_is_active(ompi_proc_t *proc)
{
    return ompi_proc_is_active(proc);
}

static inline bool compat_ft_is_on(void)
{
    return ompi_ftmpi_enabled;
}

/* True: fault tolerance is on and deals with the loss of this process. */
static inline bool compat_proc_failed(ompi_proc_t *proc)
{
    if (!ompi_ftmpi_enabled || !proc)
        return false;
    ompi_errhandler_proc_failed(proc);
    return true;
}

/* Why no message from `source` can come any more; OMPI_SUCCESS if one can. */
static inline int compat_comm_receive_error(ompi_communicator_t *comm, int source, int tag)
{
    if (!ompi_ftmpi_enabled || ompi_request_tag_is_ft(tag))
        return OMPI_SUCCESS;
    if (ompi_comm_is_revoked(comm))
        return MPI_ERR_REVOKED;
    if (source == OMPI_ANY_SOURCE)
        return ompi_comm_is_any_source_enabled(comm) ? OMPI_SUCCESS : MPI_ERR_PROC_FAILED;
    return ompi_comm_is_proc_active(comm, source, OMPI_COMM_IS_INTER(comm)) ? OMPI_SUCCESS
                                                                            : MPI_ERR_PROC_FAILED;
}

/* The result of a blocking receive. A failure only interrupts one from any source: it ends here,
 * without a message if it has none yet, and else with its message, which may be on its way. */
static inline int compat_recv_status(ompi_request_t *request)
{
    const ompi_status_public_t *status = &request->req_status;

    if (OPAL_LIKELY(status->MPI_ERROR != MPI_ERR_PROC_FAILED_PENDING))
        return status->MPI_ERROR;
    /* Each time: its sender may be lost meanwhile, and nothing more comes. */
    for (ompi_request_cancel(request); !REQUEST_COMPLETE(request); ompi_request_cancel(request))
        opal_progress();
    opal_atomic_rmb();
    if (status->_cancelled)
        return MPI_ERR_PROC_FAILED;
    return status->MPI_ERROR == MPI_ERR_PROC_FAILED_PENDING ? MPI_SUCCESS : status->MPI_ERROR;
}

#else

static inline bool compat_ft_is_on(void)
{
    return false;
}

static inline bool compat_comm_refuses(ompi_communicator_t *comm, int tag)
{
    return false;
}

static inline int compat_comm_refusal(ompi_communicator_t *comm)
{
    return MPI_ERR_OTHER;
}

static inline void compat_comm_mark_revoked(ompi_communicator_t *comm, bool collectives_only)
{
}

static inline bool compat_proc_is_active(ompi_proc_t *proc)
{
    return true;
}

static inline bool compat_proc_failed(ompi_proc_t *proc)
{
    return false;
}

static inline int compat_comm_receive_error(ompi_communicator_t *comm, int source, int tag)
{
    return OMPI_SUCCESS;
}

static inline int compat_recv_status(ompi_request_t *request)
{
    return request->req_status.MPI_ERROR;
}

#endif

/* Is an error on this communicator the end of the job, as it is unless the user says otherwise? */
static inline bool compat_comm_errors_end_job(const ompi_communicator_t *comm)
{
    return comm->error_handler == &ompi_mpi_errors_are_fatal.eh;
}

/* Is MPI_Init over? Where sessions begin MPI there is none. */
static inline bool compat_mpi_has_begun(void)
{
    return ompi_mpi_state != OMPI_MPI_STATE_INIT_STARTED;
}

/* Is MPI there by sessions alone? */
static inline bool compat_mpi_is_of_sessions(void)
{
    return ompi_mpi_state == OMPI_MPI_STATE_NOT_INITIALIZED ||
           ompi_mpi_state == OMPI_MPI_STATE_FINALIZE_COMPLETED;
}

/* Acquire, against ompi_request_complete: its status is there as well, which Open MPI's
 * REQUEST_COMPLETE does not say up to 5.0. A builtin: the member is Open MPI's, and not _Atomic. */
static inline bool request_is_complete(const ompi_request_t *request)
{
    return __atomic_load_n(&request->req_complete, __ATOMIC_ACQUIRE) == REQUEST_COMPLETED;
}

/* In MPI_Finalize? */
static inline bool compat_mpi_is_finalizing(void)
{
    return ompi_mpi_state >= OMPI_MPI_STATE_FINALIZE_STARTED &&
           ompi_mpi_state != OMPI_MPI_STATE_FINALIZE_COMPLETED; /* sessions may go on */
}

/* The class of error for a peer that failed, on series that know one. */
#ifdef MPI_ERR_PROC_FAILED
#define COMPAT_ERR_PROC_FAILED MPI_ERR_PROC_FAILED
#else
#define COMPAT_ERR_PROC_FAILED MPI_ERR_OTHER
#endif
#ifdef MPI_ERR_REVOKED
#define COMPAT_ERR_REVOKED MPI_ERR_REVOKED
#else
#define COMPAT_ERR_REVOKED MPI_ERR_OTHER
#endif

/* What a send to a rank without a lane returns. */
static inline int compat_unreachable(ompi_communicator_t *comm, int rank)
{
    ompi_proc_t *proc = ompi_comm_peer_lookup(comm, rank);
    return proc && !compat_proc_is_active(proc) ? COMPAT_ERR_PROC_FAILED : OMPI_ERR_UNREACH;
}

/* The request of a send that is complete. Since MPI 4.0 cancelling a send is deprecated, and Open
 * MPI warns if it is asked to. */
static inline ompi_request_t *compat_empty_send_request(void)
{
#if MPI_VERSION >= 4
    if (OPAL_UNLIKELY(ompi_pml_base_warn_dep_cancel_send_level !=
                      OMPI_PML_BASE_WARN_DEP_CANCEL_SEND_NEVER))
        return &ompi_request_empty_send;
#endif
    return &ompi_request_empty;
}

static inline int compat_send_cancel(ompi_request_t *request, int flag)
{
#if MPI_VERSION >= 4
    return mca_pml_cancel_send_callback(request, flag);
#else
    return OMPI_SUCCESS;
#endif
}

#endif
