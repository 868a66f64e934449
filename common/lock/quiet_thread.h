/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that takes no signals: they are for the program's own. */
#ifndef COMMON_LOCK_QUIET_THREAD_H
#define COMMON_LOCK_QUIET_THREAD_H

#include <pthread.h>
#include <signal.h>

/* As pthread_create. */
static inline int quiet_thread_create(pthread_t *thread, const pthread_attr_t *attribute,
                                      void *(*run)(void *), void *argument)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, attribute, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

#endif
