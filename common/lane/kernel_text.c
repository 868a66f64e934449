/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads small files. */
#include "common/lane/kernel_text.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static ssize_t text_read(char *text, size_t size, const char *format, va_list arguments)
{
    char path[PATH_MAX];
    bool fits = vsnprintf(path, sizeof(path), format, arguments) < (int) sizeof(path);
    int fd = fits ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    text[got < 0 ? 0 : got] = '\0';
    return got;
}

ssize_t kernel_text(char *text, size_t size, const char *path, ...)
{
    va_list arguments;
    va_start(arguments, path);
    ssize_t got = text_read(text, size, path, arguments);
    va_end(arguments);
    return got;
}

bool kernel_line(char *line, size_t size, const char *path, ...)
{
    va_list arguments;
    va_start(arguments, path);
    bool is_read = text_read(line, size, path, arguments) >= 0;
    va_end(arguments);
    line[strcspn(line, "\n")] = '\0';
    return is_read;
}

/* The name, in brackets, may hold anything. */
const char *kernel_process(int pid, char *text, size_t size)
{
    (void) kernel_text(text, size, "/proc/%d/stat", pid);
    const char *end = strrchr(text, ')');
    return end && end[1] == ' ' && end[2] ? end + 2 : NULL;
}

int kernel_parent(int pid)
{
    char text[1024];
    int parent = 0;
    const char *stat = kernel_process(pid, text, sizeof(text));
    return stat && sscanf(stat, "%*c %d", &parent) == 1 ? parent : 0;
}
