#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Makes configure and the Makefile.in files from a git checkout.
set -e
unset CDPATH # cd would look there first
cd "$(dirname "$0")"
for tool in autoreconf automake libtoolize; do
    command -v $tool >/dev/null 2>&1 || {
        echo "autogen.sh: $tool not found; install autoconf, automake and libtool" >&2
        exit 1
    }
done
mkdir -p m4 build-aux
autoreconf --install --warnings=all,no-obsolete,no-portability "$@"
# It stays as old as it is where nothing in it changes, and make would then make it anew, also in a
# folder that cannot be written.
touch config.h.in
