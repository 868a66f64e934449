#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The components go into Open MPI's own folder, which the environment shares: no variable has to be set.
set -eu
./configure --prefix="$PREFIX" --sysconfdir="$PREFIX/etc" --with-ompi="$PREFIX" \
    --with-ompi-headers="$SRC_DIR/openmpi-release" --with-component-dir="$PREFIX/lib/openmpi" \
    --with-verbs="$PREFIX" --without-cuda
make -j"${CPU_COUNT:-1}"
make install
rm -f "$PREFIX"/lib/openmpi/mca_*.la
