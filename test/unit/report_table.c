/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables that people read: columns as wide as their longest cell, figures to the right. */
#include "check.h"

#include <string.h>

#include "common/report/table.h"

static char *printed(const struct table *table, const char *indent)
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
    table_fini(table);
}

static void columns_are_as_wide_as_their_longest_cell(void)
{
    static const char *const header[] = {"lane", "bytes", "what"};
    struct table table;
    table_init(&table, 3, header);
    table_row(&table);
    table_cell(&table, 0, "%s", "shm");
    table_cell(&table, 1, "%d", 5);
    table_cell(&table, 2, "one");
    table_row(&table);
    table_cell(&table, 0, "%s", "verbs:mlx5_0:1");
    table_cell(&table, 1, "%d", 1234567);
    expect_text(&table, "  ",
                "  lane              bytes  what\n"
                "  shm                   5  one\n"
                "  verbs:mlx5_0:1  1234567  \n");
}

static void a_table_without_rows_is_its_header(void)
{
    static const char *const header[] = {"a", "b"};
    struct table table;
    table_init(&table, 2, header);
    expect_text(&table, "", "a  b\n");
}

static void a_cell_can_be_written_again(void)
{
    static const char *const header[] = {"a"};
    struct table table;
    table_init(&table, 1, header);
    table_row(&table);
    table_cell(&table, 0, "first");
    table_cell(&table, 0, "second");
    expect_text(&table, "", "a\nsecond\n");
}

static void cells_outside_are_left_out(void)
{
    static const char *const header[] = {"a", "b", "c", "d", "e", "f", "g",
                                         "h", "i", "j", "k", "l", "m", "n"};
    struct table table;
    char long_text[1000];
    memset(long_text, 'x', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    table_init(&table, 14, header);
    CHECK(table.columns == TABLE_COLUMNS_MAX, "%d columns", table.columns);
    table_row(&table);
    table_cell(&table, -1, "no");
    table_cell(&table, TABLE_COLUMNS_MAX, "no");
    table_cell(&table, 0, "%s", long_text);
    char *text = printed(&table, "");
    CHECK(!strstr(text, "no") && strstr(text, "xxx"), "%s", text);
    free(text);
    table_fini(&table);
    table_fini(&table); /* twice does no harm */
}

static void many_rows_are_kept(void)
{
    static const char *const header[] = {"n"};
    struct table table;
    char wanted[8];
    table_init(&table, 1, header);
    for (int i = 0; i < 5000; i++) {
        table_row(&table);
        table_cell(&table, 0, "%d", i);
    }
    CHECK(table.rows == 5001, "%d", table.rows);
    char *text = printed(&table, "");
    snprintf(wanted, sizeof(wanted), "%d\n", 4999);
    CHECK(strstr(text, wanted), "the last row");
    free(text);
    table_fini(&table);
}

int main(void)
{
    columns_are_as_wide_as_their_longest_cell();
    a_table_without_rows_is_its_header();
    a_cell_can_be_written_again();
    cells_outside_are_left_out();
    many_rows_are_kept();
    return check_end();
}
