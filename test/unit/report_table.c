/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables that people read: columns as wide as their longest cell, figures to the right. */
#include "check.h"

#include <string.h>

#include "common/report/table.h"

static char *printed(struct table *table, const char *indent)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    table_print(table, file, indent);
    fclose(file);
    return text;
}

static void expect_text(struct table *table, const char *indent, const char *wanted)
{
    char *text = printed(table, indent);
    CHECK(strcmp(text, wanted) == 0, "it is\n%snot\n%s", text, wanted);
    free(text);
}

static void columns_are_as_wide_as_their_longest_cell(void)
{
    struct table table;
    table_init(&table, "lane\tbytes\twhat");
    table_row(&table, "%s\t%d\tone", "shm", 5);
    table_row(&table, "%s\t%d", "verbs:mlx5_0:1", 1234567);
    expect_text(&table, "  ",
                "  lane              bytes  what\n"
                "  shm                   5  one\n"
                "  verbs:mlx5_0:1  1234567  \n");
}

static void a_table_without_rows_is_its_header(void)
{
    struct table table;
    table_init(&table, "a\tb");
    expect_text(&table, "", "a  b\n");
}

static void empty_cells_keep_their_place(void)
{
    struct table table;
    table_init(&table, "a\tb\tc");
    table_row(&table, "x\t\t%d", 3);
    table_row(&table, "\t7\t");
    expect_text(&table, "",
                "a  b  c\n"
                "x     3\n"
                "   7   \n");
}

static void cells_outside_are_left_out(void)
{
    struct table table;
    char long_text[1000];
    memset(long_text, 'x', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    table_init(&table, "a\tb");
    table_row(&table, "%s\t1\tno", long_text);
    char *text = printed(&table, "");
    CHECK(!strstr(text, "no") && strstr(text, long_text), "%s", text);
    free(text);
    text = printed(&table, ""); /* it is empty now, which does no harm */
    CHECK(strcmp(text, "") == 0, "%s", text);
    free(text);
}

static void many_rows_are_kept(void)
{
    struct table table;
    char wanted[8];
    table_init(&table, "n");
    for (int i = 0; i < 5000; i++)
        table_row(&table, "%d", i);
    CHECK(table.row_count == 5001, "%d", table.row_count);
    char *text = printed(&table, "");
    snprintf(wanted, sizeof(wanted), "%d\n", 4999);
    CHECK(strstr(text, wanted), "the last row");
    free(text);
}

int main(void)
{
    columns_are_as_wide_as_their_longest_cell();
    a_table_without_rows_is_its_header();
    empty_cells_keep_their_place();
    cells_outside_are_left_out();
    many_rows_are_kept();
    return check_end();
}
