/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables. Without memory a row or a cell is left out: a report is no reason to end a job. */
#include "common/report/table.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void table_init(struct table *table, int columns, const char *const *header)
{
    table->columns = columns < TABLE_COLUMNS_MAX ? columns : TABLE_COLUMNS_MAX;
    table->rows = 0;
    table->cells = NULL;
    table_row(table);
    for (int i = 0; i < table->columns; i++)
        table_cell(table, i, "%s", header[i]);
}

void table_row(struct table *table)
{
    char ***cells = realloc(table->cells, (size_t) (table->rows + 1) * sizeof(*cells));
    if (!cells)
        return;
    table->cells = cells;
    cells[table->rows] = calloc(TABLE_COLUMNS_MAX, sizeof(**cells));
    if (cells[table->rows])
        table->rows++;
}

void table_cell(struct table *table, int column, const char *format, ...)
{
    char text[256];
    va_list arguments;
    if (table->rows == 0 || column < 0 || column >= table->columns)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    char **cell = &table->cells[table->rows - 1][column];
    free(*cell);
    *cell = strdup(text);
}

static const char *cell_text(const struct table *table, int row, int column)
{
    const char *text = table->cells[row][column];
    return text ? text : "";
}

static bool is_numeric(const struct table *table, int column)
{
    for (int row = 1; row < table->rows; row++) {
        const char *text = cell_text(table, row, column);
        if (*text && !isdigit((unsigned char) *text))
            return false;
    }
    return table->rows > 1;
}

static int column_width(const struct table *table, int column)
{
    size_t width = 0;
    for (int row = 0; row < table->rows; row++)
        if (strlen(cell_text(table, row, column)) > width)
            width = strlen(cell_text(table, row, column));
    return (int) width;
}

void table_print(const struct table *table, FILE *file, const char *indent)
{
    for (int row = 0; row < table->rows; row++) {
        fputs(indent, file);
        for (int column = 0; column < table->columns; column++) {
            bool is_last = column + 1 == table->columns;
            int width = column_width(table, column);
            if (is_numeric(table, column))
                fprintf(file, "%*s", width, cell_text(table, row, column));
            else
                fprintf(file, "%-*s", is_last ? 0 : width, cell_text(table, row, column));
            if (!is_last)
                fputs("  ", file);
        }
        fputc('\n', file);
    }
}

void table_fini(struct table *table)
{
    for (int row = 0; row < table->rows; row++) {
        for (int column = 0; column < TABLE_COLUMNS_MAX; column++)
            free(table->cells[row][column]);
        free(table->cells[row]);
    }
    free(table->cells);
    table->cells = NULL;
    table->rows = 0;
}
