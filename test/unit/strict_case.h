/* SPDX-License-Identifier: BSD-3-Clause */
/* Cases over the strict stand-in for devices, each in a process with a device of its own. */
#ifndef MULTILANE_TEST_STRICT_CASE_H
#define MULTILANE_TEST_STRICT_CASE_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* `words`: of MULTILANE_STRICT_VERBS. Returns 1 if the case failed. */
static int case_run(const char *words, void (*run)(void))
{
    int status = 0;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        setenv("MULTILANE_STRICT_VERBS", words, 1);
        unsetenv("MULTILANE_STRICT_FABRIC");
        run();
        exit(check_end());
    }
    waitpid(pid, &status, 0);
    return status != 0;
}

#endif
