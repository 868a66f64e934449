# SPDX-License-Identifier: BSD-3-Clause
# Part arm64: built for arm64 by a cross compiler against Debian 12's Open MPI 4.1, and run by
# qemu-aarch64, which translates one process. Native mpirun starts two such processes, so nothing has to
# be registered with the kernel, and the root folder for arm64 is only unpacked, never entered.
#
# What this shows: types, alignment, bytes and calls of the other processor. What it cannot show: the
# order of memory accesses, since the translated ones keep x86's, which is stronger. That is what the
# exhaustive checks of the ring and the flow control (unit/walk.h) are for.
about="built for arm64, run by qemu: unit tests, MPI over shm and tcp with two processes"
runs_beside=1

. "$top/test/unit/run.sh"

arm64_root=$roots/arm64 arm64_build=$build_root/arm64
arm64_packages="libopenmpi-dev openmpi-bin libhwloc-dev libibverbs-dev libc6-dev openssl"
arm64_programs="ring conform traffic"
arm64_qemu="qemu-aarch64 -L $arm64_root"

part_cannot_run() {
    local missing
    missing=$(root_impossible)
    if [ -n "$missing" ]; then
        echo "$missing"
    elif [ "$(native_series)" != 4.1 ]; then
        echo "this machine's own mpirun starts the processes, and it must be of Open MPI 4.1 as they are"
    else
        missing=$(packages_need qemu-user gcc-aarch64-linux-gnu) || echo "$missing"
    fi
}

part_run() {
    check "$part.root" arm64_root_make || return
    check "$part.build" arm64_build_all || return
    arm64_unit
    arm64_mpi_all
}

arm64_root_make() {
    local include
    include=$(tr -s ' \n' ',,' <<<"$arm64_packages")
    [ "$($sudo cat "$arm64_root/.multilane" 2>/dev/null)" = "$include" ] && return 0
    $sudo rm -rf --one-file-system "$arm64_root"
    $sudo mkdir -p "$roots"
    # shellcheck disable=SC2046
    $sudo mmdebstrap --mode=root --variant=extract --architectures=arm64 --include="${include%,}" \
        --aptopt='Acquire::Check-Valid-Until "false"' --aptopt='Apt::Install-Recommends "false"' \
        bookworm "$arm64_root" $(debian_mirror) &&
        printf '%s\n' "$include" | $sudo tee "$arm64_root/.multilane" >/dev/null
}

# The Open MPI of the root folder as configure asks for it.
arm64_ompi_make() {
    local bin=$arm64_build/ompi/bin
    mkdir -p "$bin" &&
        printf '#!/bin/sh\n%s -0 mpicc.openmpi %s/usr/bin/opal_wrapper "$@" | sed "s|/usr/|%s/usr/|g"\n' \
            "$arm64_qemu" "$arm64_root" "$arm64_root" >"$bin/mpicc" &&
        printf '#!/bin/sh\nexec %s %s/usr/bin/ompi_info "$@"\n' "$arm64_qemu" "$arm64_root" >"$bin/ompi_info" &&
        chmod +x "$bin"/*
}

# gcc 12 takes the address that Open MPI's inlined atomics store for one that outlives its function.
arm64_build_all() {
    packages_need_to_build && sources_prepare && arm64_ompi_make || return 1
    export PKG_CONFIG_SYSROOT_DIR=$arm64_root
    export PKG_CONFIG_LIBDIR=$arm64_root/usr/lib/aarch64-linux-gnu/pkgconfig:$arm64_root/usr/share/pkgconfig
    build_make arm64 --host=aarch64-linux-gnu --with-ompi="$arm64_build/ompi" --enable-werror \
        CC="aarch64-linux-gnu-gcc --sysroot=$arm64_root" CFLAGS="-O2 -Wno-error=dangling-pointer" &&
        make -C "$arm64_build" -j"$jobs" check TESTS= \
            "$(make_show arm64 'check_PROGRAMS=$(filter test/unit/% '"$(printf 'test/mpi/%s ' $arm64_programs)"',$(check_PROGRAMS))')"
}

# Why a unit test does not run under qemu-user; nothing where it does.
arm64_cannot() {
    case $1 in
    bell_model | offer_model | ring_model | ring_move_model | node_model | return_model | sock_model)
        [ -n "$MULTILANE_LONG" ] || echo "translated, it takes too long for every change; --long runs it"
        ;;
    shm_segment) echo "qemu-user ignores MADV_DONTFORK and limits of address space" ;;
    pml_profile) echo "qemu-user does not translate multilane-plan, which the test starts" ;;
    verbs_library) echo "qemu-user does not translate what the test starts, which is itself" ;;
    memory_cuda | verbs_dmabuf) echo "qemu-user has no process_vm_readv, by which freed device memory is told" ;;
    cuda_list) echo "qemu-user has no process_vm_readv, by which the list of chunks is read" ;;
    esac
}

arm64_unit() {
    local programs program name reason
    programs=$(make_show arm64 '$(filter test/unit/%,$(check_PROGRAMS))')
    [ -n "$programs" ] || result failed "$part.unit" "make names no unit test"
    for program in $programs; do
        program=$arm64_build/$program
        name=${program##*/}
        reason=$(arm64_cannot "$name")
        if [ -n "$reason" ]; then
            skip "$part.unit.$name" "$reason"
        else
            # shellcheck disable=SC2086
            beside check "$part.unit.$name" env -C "$arm64_build" srcdir="$sources" \
                MULTILANE_WALKS="${MULTILANE_LONG:-no}" timeout 1800 $arm64_qemu "$program"
        fi
    done
    wait
}

arm64_mpi_all() {
    local lanes program all=(ring)
    [ -z "$MULTILANE_LONG" ] || all+=(conform "traffic --seeds 1-4")
    for lanes in self,shm self,tcp; do
        for program in "${all[@]}"; do
            # shellcheck disable=SC2086
            check "$part.mpi.${program%% *}.$lanes" arm64_mpi $lanes $program
        done
    done
    check "$part.mpi.point" arm64_mpi self,shm conform point
    check "$part.mpi.onesided" arm64_mpi self,shm conform onesided
    check "$part.mpi.traffic-shm" arm64_mpi self,shm traffic --seeds 1 --batches 10
    check "$part.mpi.traffic-tcp" arm64_mpi self,tcp traffic --seeds 1 --batches 10
    check "$part.mpi.traffic-vader" arm64_mpi self,vader traffic --seeds 1 --batches 10
}

# mpirun and PMIx's server are of this machine; PMIx's memory that processes share is not used, since
# locks in it are laid out differently.
arm64_mpi() { # LANES PROGRAM [arguments]
    local lanes=$1 program=$2 output status
    local allow=()
    shift 2
    [ "$(id -u)" != 0 ] || allow=(OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)
    # shellcheck disable=SC2086
    output=$(env "${allow[@]}" timeout --kill-after=10 120 mpirun.openmpi -n 2 --oversubscribe \
        -x PMIX_MCA_gds=hash -x OMPI_MCA_pml=multilane -x OMPI_MCA_btl="$lanes" -x OMPI_MCA_btl_tcp_if_include=lo \
        -x OMPI_MCA_mca_base_component_path="$arm64_build/inst/components:SYS_DEFAULT" \
        -x OMPI_MCA_pml_multilane_explain=1 $arm64_qemu "$arm64_build/test/mpi/$program" "$@" 2>&1 </dev/null)
    status=$?
    printf '%s\n' "$output"
    lanes=${lanes#self,}
    [ $status = 0 ] && grep -q "peer over ${lanes%%,*}" <<<"$output"
}
