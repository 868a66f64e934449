/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables for people: columns as wide as their longest cell. */
#ifndef COMMON_REPORT_TABLE_H
#define COMMON_REPORT_TABLE_H

#include <stdio.h>

struct table {
    int columns;
    int row_count; /* the header row included */
    char **rows;   /* each with its cells between tabs */
};

/* An empty table; `header` names the columns, with a tab between two. */
void table_init(struct table *table, const char *header);

/* Adds a row: its cells with a tab between two. */
__attribute__((format(printf, 2, 3))) void table_row(struct table *table, const char *format, ...);

/* Prints it, each line after `indent`, and empties it. Columns whose cells all start with a digit
 * go to the right. */
void table_print(struct table *table, FILE *file, const char *indent);

#endif
