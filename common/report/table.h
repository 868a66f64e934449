/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables for people: columns as wide as their longest cell. */
#ifndef COMMON_REPORT_TABLE_H
#define COMMON_REPORT_TABLE_H

#include <stdio.h>

#define TABLE_COLUMNS_MAX 12

struct table {
    int columns;
    int rows; /* the header row included */
    char ***cells;
};

/* An empty table; the strings of `header` name the columns. */
void table_init(struct table *table, int columns, const char *const *header);

/* Adds a row of empty cells. */
void table_row(struct table *table);

/* Writes a cell of the last row. */
__attribute__((format(printf, 3, 4))) void table_cell(struct table *table, int column,
                                                      const char *format, ...);

/* Prints it, each line after `indent`. Columns whose cells all start with a digit go to the right.
 */
void table_print(const struct table *table, FILE *file, const char *indent);
void table_fini(struct table *table);

#endif
