#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Makes configure and the Makefile.in files from a git checkout.
set -e
cd "$(dirname "$0")"
for tool in autoreconf automake libtoolize; do
    command -v $tool >/dev/null 2>&1 || {
        echo "autogen.sh: $tool not found; install autoconf, automake and libtool" >&2
        exit 1
    }
done
mkdir -p m4 build-aux
exec autoreconf --install --warnings=all,no-obsolete,no-portability "$@"
