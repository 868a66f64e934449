/* SPDX-License-Identifier: BSD-3-Clause */
/* SIGPIPE at the end of MPI. */
#include "base/sigpipe.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

static struct sigaction before;
static bool is_ignored;

void sigpipe_ignore(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    if (!is_ignored && sigaction(SIGPIPE, &ignore, &before) == 0)
        is_ignored = true;
}

void sigpipe_restore(void)
{
    struct sigaction now;
    if (is_ignored && sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler == SIG_IGN)
        sigaction(SIGPIPE, &before, NULL);
    is_ignored = false;
}
