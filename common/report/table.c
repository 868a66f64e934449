/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables. Without memory a row is left out: a report is no reason to end a job. */
#include "common/report/table.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void table_init(struct table *table, const char *header)
{
    *table = (struct table){.columns = 1};
    for (const char *c = header; *c; c++)
        table->columns += *c == '\t';
    table_row(table, "%s", header);
}

void table_row(struct table *table, const char *format, ...)
{
    char **rows = realloc(table->rows, (size_t) (table->row_count + 1) * sizeof(*rows));
    va_list arguments;
    if (!rows)
        return;
    table->rows = rows;
    va_start(arguments, format);
    if (vasprintf(&rows[table->row_count], format, arguments) >= 0)
        table->row_count++;
    va_end(arguments);
}

/* The text of a cell, which is not ended; a row may have fewer cells than the header. */
static const char *cell_of(const struct table *table, int row, int column, int *length)
{
    const char *text = table->rows[row];
    for (; column > 0; column--) {
        text += strcspn(text, "\t");
        text += *text == '\t';
    }
    *length = (int) strcspn(text, "\t");
    return text;
}

static bool is_numeric(const struct table *table, int column)
{
    for (int row = 1; row < table->row_count; row++) {
        int length;
        const char *text = cell_of(table, row, column, &length);
        if (length && !isdigit((unsigned char) *text))
            return false;
    }
    return table->row_count > 1;
}

static int column_width(const struct table *table, int column)
{
    int width = 0;
    for (int row = 0; row < table->row_count; row++) {
        int length;
        cell_of(table, row, column, &length);
        width = length > width ? length : width;
    }
    return width;
}

void table_print(struct table *table, FILE *file, const char *indent)
{
    for (int row = 0; row < table->row_count; row++) {
        fputs(indent, file);
        for (int column = 0; column < table->columns; column++) {
            int length, width = column_width(table, column);
            const char *text = cell_of(table, row, column, &length);
            bool is_last = column + 1 == table->columns;
            if (is_numeric(table, column))
                fprintf(file, "%*.*s", width, length, text);
            else
                fprintf(file, "%-*.*s", is_last ? 0 : width, length, text);
            fputs(is_last ? "\n" : "  ", file);
        }
    }
    for (int row = 0; row < table->row_count; row++)
        free(table->rows[row]);
    free(table->rows);
    *table = (struct table){0};
}
