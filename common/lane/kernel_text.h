/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel says in small files, those of /proc, of /sys and of cgroups. */
#ifndef COMMON_LANE_KERNEL_TEXT_H
#define COMMON_LANE_KERNEL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What one read gives of all that fits, as a text that ends; the path is given as to printf. How
 * many bytes that is, zeros among them in some files; below 0, and an empty text: it cannot be
 * read. */
__attribute__((format(printf, 3, 4))) ssize_t kernel_text(char *text, size_t size, const char *path,
                                                          ...);

/* What /proc/PID/stat says behind the program's name: first the process's state, a letter. Null: it
 * cannot be read. */
const char *kernel_process(int pid, char *text, size_t size);

/* The process that has started that one; 0: it cannot be read. */
int kernel_parent(int pid);

/* As kernel_text, of its first line alone, without the end of the line. False: it cannot be read.
 */
__attribute__((format(printf, 3, 4))) bool kernel_line(char *line, size_t size, const char *path,
                                                       ...);

#endif
