# SPDX-License-Identifier: BSD-3-Clause
# Part handbuilt: an Open MPI built by hand from Debian's source package, with other options and, as
# most are, without its inner headers.
about="a hand-built Open MPI refuses foreign binaries and gets its own without inner headers (--long)"

. "$top/test/unit/run.sh"

release=$build_root/ompi-handbuilt
ompi=$release/inst

part_cannot_run() {
    if [ -z "$MULTILANE_LONG" ]; then
        echo "Open MPI is built for it, ten minutes: with --long"
    elif ! command -v dpkg-query >/dev/null; then
        echo "it takes Debian's source package, and this is not Debian"
    fi
}

handbuilt_ompi() {
    local cuda=
    [ ! -f /usr/local/cuda/include/cuda.h ] || cuda=--with-cuda=/usr/local/cuda
    [ -x "$ompi/bin/ompi_info" ] && return 0
    ompi_release "$release" '*' && mkdir -p "$release/build" && cd "$release/build" &&
        ../configure --prefix="$ompi" --enable-debug --disable-builtin-atomics $cuda \
            --disable-mpi-fortran --disable-oshmem --disable-io-romio --disable-man-pages \
            --without-verbs --without-ucx --without-libfabric --without-psm --without-psm2 &&
        make -j"$jobs" && make install
}

# A job on it, with the components in the folder $1.
handbuilt_run() {
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 LD_LIBRARY_PATH=$ompi/lib
    OMPI_MCA_mca_base_component_path=$1:SYS_DEFAULT:USER_DEFAULT timeout 60 "$ompi/bin/mpirun" \
        -n 2 --oversubscribe --mca opal_warn_on_missing_libcuda 0 "${@:2}"
}

# What was built for the packaged Open MPI of the same version says what differs, and is silent in a
# job that does not ask for it.
refuses_foreign() {
    local foreign=$build_root/foreign-bindist said
    rm -f "$build_root"/gcc/multilane-*-ompi*.tar.xz
    make -C "$build_root/gcc" bindist && rm -rf "$foreign" && mkdir -p "$foreign" &&
        tar -C "$foreign" --strip-components=1 -xf "$build_root"/gcc/multilane-*-ompi*.tar.xz || return 1
    said=$(handbuilt_run "$foreign/lib/openmpi" --mca pml multilane "$build_root/gcc/test/mpi/ring" 2>&1)
    echo "$said"
    grep -Eq 'pml/multilane will not load .*: opal_object_t_class is 40 in place of 16; ' <<<"$said" || return 1
    said=$(handbuilt_run "$foreign/lib/openmpi" "$build_root/gcc/test/mpi/ring" 2>&1) || return 1
    ! grep -i multilane <<<"$said"
}

built_for() { # NAME configure's arguments
    local dir=$build_root/$1
    mkdir -p "$dir" && cd "$dir" && "$sources/configure" --prefix="$dir/inst" --with-ompi="$ompi" \
        --with-component-dir="$dir/inst/components" "${@:2}" && make -j"$jobs" &&
        make install && make test/mpi/components || return 1
    handbuilt_run "$dir/inst/components" --mca pml multilane --mca btl self,shm test/mpi/components |
        tee said
    grep -q '^pml multilane' said && grep -q '^btl shm' said
}

part_run() {
    check handbuilt.ready unit_build gcc || return
    check handbuilt.ring make -C "$build_root/gcc" test/mpi/ring || return
    check handbuilt.openmpi handbuilt_ompi || return
    check handbuilt.refuses-foreign refuses_foreign
    check handbuilt.headers-of-release built_for handbuilt-release --with-ompi-headers="$release"
    check handbuilt.config-log built_for handbuilt-log --with-ompi-headers="$release" \
        --with-ompi-config-log="$release/build/config.log"
}
