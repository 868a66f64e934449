/* SPDX-License-Identifier: BSD-3-Clause */
/* pml_multilane_explain: the plans of this process and how they were used, at the end of the job.
 */
#ifndef MULTILANE_EXPLAIN_H
#define MULTILANE_EXPLAIN_H

/* Writes the report where the parameters ask for one. Called while the classes are still there. */
void explain_write(void);

#endif
