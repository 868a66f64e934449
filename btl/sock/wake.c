/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that waits for sockets while the threads of MPI sleep elsewhere. It only says that
 * something has come, and touches nothing else: before each sleep it is armed for one such word. */
#include "btl/sock/sock.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/lock/quiet_thread.h"

static struct {
    int events; /* what the thread waits for: `end`, and once what sock.poll_fd says */
    int end;
    pthread_t thread;
    bool runs; /* the following holds; by the thread that calls sock_wake_by */
    void (*rouse)(void);
} wake;

static void *wake_run(void *argument)
{
    struct epoll_event event;

    for (;;) {
        int count = epoll_wait(wake.events, &event, 1, -1);
        if (count == 1 && event.data.fd == wake.end)
            return argument;
        if (count == 1)
            wake.rouse();
    }
}

static bool watch(int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = fd};

    return epoll_ctl(wake.events, EPOLL_CTL_ADD, fd, &event) == 0;
}

static void files_close(void)
{
    if (wake.events >= 0)
        close(wake.events);
    if (wake.end >= 0)
        close(wake.end);
}

static bool wake_begin(void (*rouse)(void))
{
    wake.rouse = rouse;
    wake.events = epoll_create1(EPOLL_CLOEXEC);
    wake.end = eventfd(0, EFD_CLOEXEC);
    wake.runs = wake.events >= 0 && wake.end >= 0 && watch(wake.end, EPOLLIN) &&
                watch(sock.poll_fd, EPOLLONESHOT) &&
                quiet_thread_create(&wake.thread, NULL, wake_run, NULL) == 0;
    if (!wake.runs)
        files_close();
    return wake.runs;
}

static void wake_end(void)
{
    const uint64_t one = 1;

    /* It cannot fail: the count is 0. */
    if (write(wake.end, &one, sizeof(one)) == sizeof(one))
        pthread_join(wake.thread, NULL);
    files_close();
    wake.runs = false;
}

bool sock_wake_by(void (*rouse)(void))
{
    if (wake.runs && !rouse)
        wake_end();
    return rouse && (wake.runs || wake_begin(rouse));
}

void sock_wake_arm(void)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.fd = sock.poll_fd};

    /* Relaxed: read by the thread that sleeps now; another one that takes it asks as well. */
    atomic_store_explicit(&sock.slept, true, memory_order_relaxed);
    if (wake.runs)
        (void) epoll_ctl(wake.events, EPOLL_CTL_MOD, sock.poll_fd, &event);
}
