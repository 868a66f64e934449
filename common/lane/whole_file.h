/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that are read and written as a whole, or not at all. */
#ifndef COMMON_LANE_WHOLE_FILE_H
#define COMMON_LANE_WHOLE_FILE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "common/model/error.h"

#define WHOLE_FILE_PATH_CHARS 4096

/* The bytes of a file of so many at most, and of this user alone if it `is_own`; and a 0 behind
 * them, which the caller frees. Null with a sentence; *is_absent: there is no such file. Never
 * waits, as opening a pipe would. */
char *whole_file_read(const char *path, size_t most_bytes, bool is_own, size_t *length,
                      bool *is_absent, struct error_text *error);

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
