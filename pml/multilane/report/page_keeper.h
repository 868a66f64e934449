/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps this process's page: from progress, by the clock. */
#ifndef MULTILANE_PAGE_KEEPER_H
#define MULTILANE_PAGE_KEEPER_H

/* Makes the page and begins to keep it. OMPI_ERR_OUT_OF_RESOURCE: no memory. */
int page_keeper_begin(void);
void page_keeper_end(void);

#endif
