/* SPDX-License-Identifier: BSD-3-Clause */
/* At the end of MPI a process that leaves later than its peers writes to connections of btl/tcp
 * that they have closed, and Open MPI does not shield it from SIGPIPE. */
#ifndef MULTILANE_SIGPIPE_H
#define MULTILANE_SIGPIPE_H

void sigpipe_ignore(void);
/* Sets what was there before, unless the program has set another one since. */
void sigpipe_restore(void);

#endif
