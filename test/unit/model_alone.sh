#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# common/model and tools/model are built on their own, without Open MPI, by every compiler that is here, with and
# without optimisation: it must compile as plain C11 and decide the same each time.
set -eu
source=${srcdir:-.}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
first=
built=0
for compiler in gcc clang; do
    command -v "$compiler" >/dev/null || {
        echo "$compiler is not here and is left out"
        continue
    }
    for level in -O0 -O2 -O3; do
        "$compiler" -std=c11 "$level" -Wall -Wextra -Wpedantic -Werror -ffp-contract=off \
            -I"$source" -o "$folder/digest" "$source"/common/model/*.c "$source"/tools/model/*.c \
            "$source/test/unit/model_digest.c" -lm
        digest=$("$folder/digest")
        echo "$compiler $level: $digest"
        built=$((built + 1))
        first=${first:-$digest}
        if [ "$digest" != "$first" ]; then
            echo "the model decides otherwise with $compiler $level than with the first build" >&2
            exit 1
        fi
    done
done
if [ "$built" -eq 0 ]; then
    echo "neither gcc nor clang is here: nothing was compared" >&2
    exit 77
fi
