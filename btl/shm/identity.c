/* SPDX-License-Identifier: BSD-3-Clause */
/* The identity of this process, and which peers shared memory can reach. */
#include "btl/shm/shm.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/sum/fnv.h"
#include "opal/util/proc.h"

/* The number of the file system at /dev/shm, if a segment can be made there; else 0. */
static uint64_t shm_device_find(size_t bytes)
{
    struct statvfs space;
    struct stat status;

    if (access("/dev/shm", W_OK | X_OK) != 0 || stat("/dev/shm", &status) != 0 ||
        statvfs("/dev/shm", &space) != 0 ||
        (uint64_t) space.f_bavail * space.f_frsize < (uint64_t) bytes)
        return 0;
    return (uint64_t) status.st_dev;
}

/* By stat: where a container's filter refuses access, shm is a lane all the same. */
bool shm_identity_is_open(void)
{
    struct stat status;

    return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1 && stat("/proc/self/fd", &status) == 0;
}

static int node_find(void)
{
    unsigned cpu, node;

    return syscall(SYS_getcpu, &cpu, &node, NULL) == 0 ? (int) node : -1;
}

int shm_identity_fill(struct shm_record *record)
{
    memset(record, 0, sizeof(*record));
    record->version = SHM_RECORD_VERSION;
    record->pid = (int32_t) getpid();
    record->uid = (uint32_t) geteuid();
    record->pid_namespace = host_namespace("pid");
    record->user_namespace = host_namespace("user");
    record->time_namespace = host_namespace("time");
    record->started = shm_segment_process_started(record->pid);
    record->node = node_find();
    record->copies = (int32_t) shm.single_copy.number;
    record->proof_address = (uint64_t) (uintptr_t) &shm.proof;
    host_boot(record->boot);
    if (opal_process_info.nodename)
        record->host =
            fnv(FNV_BEGIN, opal_process_info.nodename, strlen(opal_process_info.nodename));
    record->shm_device =
        shm_device_find(SEGMENT_PAGE + (size_t) shm.peers_expected * sizeof(struct connection));
    if (!host_random(&record->memfd, sizeof(record->memfd)) ||
        !host_random(&record->file, sizeof(record->file)) ||
        !host_random(&record->proof_value, sizeof(record->proof_value)))
        return errno;
    shm.proof = record->proof_value;
    return 0;
}

const char *shm_identity_refuses(const struct shm_record *record, bool same_job,
                                 enum segment_kind *kind)
{
    const struct shm_record *own = &shm.record;

    /* Without /proc, in this process or that one, what Open MPI knows of their job has to do. */
    bool knows_boot = own->boot[0] != 0 && record->boot[0] != 0;

    if (knows_boot ? strncmp(own->boot, record->boot, sizeof(own->boot)) != 0 : !same_job)
        return "it runs on another machine";
    /* Hosts that share a kernel (containers, labs) stay apart unless one job covers them. */
    if (!same_job && own->host != record->host)
        return "it runs on another host";
    if (own->user_namespace == record->user_namespace && own->uid != record->uid)
        return "it belongs to another user";
    if (own->fd >= 0 && record->fd >= 0 && own->pid_namespace == record->pid_namespace &&
        own->user_namespace == record->user_namespace) {
        *kind = SEGMENT_MEMFD;
        return NULL;
    }
    *kind = SEGMENT_FILE;
    if (own->shm_device == 0 || record->shm_device == 0)
        return "only a file would lead to it (another container, or a process that the system "
               "closes to others), and one of the two cannot make one of the size needed in "
               "/dev/shm";
    if (own->shm_device != record->shm_device)
        return "only a file would lead to it, and it has a /dev/shm of its own";
    return NULL;
}
