/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the kernel refuse this process some calls, as what copies between the memories of two
 * processes, or all others the look into this one. */
#ifndef TEST_MPI_REFUSE_H
#define TEST_MPI_REFUSE_H

#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* From now on, for ever, and for what it starts, these two end with `error`. */
static inline int calls_refuse(unsigned one, unsigned other, unsigned error)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, one, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, other, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(rules) / sizeof(rules[0]), .filter = rules};

    return 0 == prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? prctl(PR_SET_SECCOMP, 2, &program) : -1;
}

static inline int copy_refuse(void)
{
    return calls_refuse(SYS_process_vm_readv, SYS_process_vm_writev, EPERM);
}

/* Sleeping on a word that processes share; the C library's own sleeps are of other kinds. */
static inline int futex_refuse(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FUTEX_WAIT, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(rules) / sizeof(rules[0]), .filter = rules};

    return 0 == prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? prctl(PR_SET_SECCOMP, 2, &program) : -1;
}

/* As after the start of a program whose file may be executed and not read; root does without its
 * right to look into everything. */
static inline int process_hide(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

    if (0 != syscall(SYS_capget, &header, data))
        return -1;
    data[0].effective &= ~(1u << CAP_SYS_PTRACE);
    data[0].permitted &= ~(1u << CAP_SYS_PTRACE);
    return 0 == syscall(SYS_capset, &header, data) ? prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) : -1;
}

#endif
