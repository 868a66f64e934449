/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that are read and written as a whole, or not at all. */
#ifndef COMMON_FILE_WHOLE_FILE_H
#define COMMON_FILE_WHOLE_FILE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "common/model/error.h"

#define WHOLE_FILE_PATH_CHARS 4096

enum whole_file_kind {
    WHOLE_FILE,      /* reading it never waits, as opening a pipe would */
    WHOLE_FILE_OWN,  /* the same, and it is this user's */
    WHOLE_FILE_INPUT /* a pipe as well, and for "-" the standard input */
};

/* Its bytes, so many at most, and a 0 behind them, which the caller frees. Null with a sentence;
 * *is_absent, if that is not null: there is no such file. */
char *whole_file_read(const char *path, size_t most_bytes, enum whole_file_kind kind,
                      size_t *length, bool *is_absent, struct error_text *error);
/* How complaints call an input of this name. */
const char *whole_file_input_name(const char *path);

/* A new file beside `path`, that takes its place at the end. */
struct whole_file {
    FILE *out;
    const char *path;
    char name[WHOLE_FILE_PATH_CHARS + 48];
};

/* Makes it, and the folders that it is in; of `mode` the umask allows its part. False with a
 * sentence. `path` stays until the end. */
bool whole_file_begin(struct whole_file *file, const char *path, mode_t mode,
                      struct error_text *error);
bool whole_file_end(struct whole_file *file, struct error_text *error);

/* As if it had not begun, but for the folders. */
void whole_file_drop(struct whole_file *file);

#endif
