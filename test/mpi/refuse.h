/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the kernel refuse this process some calls, as what copies between the memories of two
 * processes, or all others the look into this one. */
#ifndef TEST_MPI_REFUSE_H
#define TEST_MPI_REFUSE_H

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* One call of several that go by the same number: where argument `index` has this value. */
static inline int call_refuse(unsigned call, unsigned index, unsigned value, unsigned error)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                 (unsigned) offsetof(struct seccomp_data, args) + 8 * index),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(rules) / sizeof(rules[0]), .filter = rules};

    return 0 == prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? prctl(PR_SET_SECCOMP, 2, &program) : -1;
}

/* Sleeping on a word that processes share; the C library's own sleeps are of other kinds. */
static inline int futex_refuse(void)
{
    return call_refuse(SYS_futex, 1, FUTEX_WAIT, ENOSYS);
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

/* As a daemon that drops its rights; only root can. */
static inline int rights_drop(void)
{
    return setgroups(0, NULL) == 0 && setgid(65534) == 0 ? setuid(65534) : -1;
}

/* What an administrator may refuse, by its name, or a system call, by its number; with ":enosys"
 * behind it the kernel says that it has no such call. 0, or -1 and errno. */
static inline int refuse(const char *text)
{
    char what[64];
    const char *behind = strchrnul(text, ':');
    unsigned error = strcmp(behind, ":enosys") == 0 ? ENOSYS : EPERM;

    snprintf(what, sizeof(what), "%.*s", (int) (behind - text), text);
    static const struct {
        const char *name;
        unsigned one, other;
    } calls[] = {
        {"no-copy", SYS_process_vm_readv, SYS_process_vm_writev},
        {"no-memfd", SYS_memfd_create, SYS_memfd_create},
        {"no-fallocate", SYS_fallocate, SYS_fallocate},
        {"no-random", SYS_getrandom, SYS_getrandom},
        {"no-pidfd", SYS_pidfd_open, SYS_pidfd_open},
        {"no-fcntl", SYS_fcntl, SYS_fcntl},
    };

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        if (strcmp(what, calls[i].name) == 0)
            return calls_refuse(calls[i].one, calls[i].other, error);
    if (*what >= '0' && *what <= '9')
        return calls_refuse((unsigned) atoi(what), (unsigned) atoi(what), error);
    if (strcmp(what, "no-seals") == 0)
        return call_refuse(SYS_fcntl, 1, F_ADD_SEALS, error);
    if (strcmp(what, "no-locks") == 0)
        return call_refuse(SYS_fcntl, 1, F_SETLK, error);
    if (strcmp(what, "no-futex") == 0)
        return futex_refuse();
    if (strcmp(what, "hide") == 0)
        return process_hide();
    if (strcmp(what, "setuid") == 0)
        return rights_drop();
    errno = EINVAL;
    return -1;
}

#endif
