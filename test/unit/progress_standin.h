/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for Open MPI's progress where a unit test runs without a job: it keeps what is
 * registered, and the test calls it. */
#ifndef TEST_UNIT_PROGRESS_STANDIN_H
#define TEST_UNIT_PROGRESS_STANDIN_H

/* One round of what the code under test has registered; the number of things done. */
int progress_standin_run(void);

#endif
