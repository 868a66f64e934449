# SPDX-License-Identifier: BSD-3-Clause
# btl/sock with encryption (btl_sock_tls), where the kernel has TLS: on this machine or in the lab's
# virtual one. Elsewhere it is refused.
tls="--mca pml multilane --mca btl self,sock --mca btl_sock_tls 1 --mca mpi_yield_when_idle 1"
elsewhere_only 'series=tls.refused' 'asan=tls.@(refused|new-keys)'

# What the kernel counted of such connections, by its name.
tls_counted() {
    sed -n "s/^$1[[:space:]]*//p" /proc/net/tls_stat
}

# All that the job opened was encrypted at both ends, and nothing came that was not.
# shellcheck disable=SC2086
tls_traffic() { # RANKS [mpirun's arguments] -- PROGRAM...
    local sent received wrong ranks=$1
    shift
    sent=$(tls_counted TlsTxSw) received=$(tls_counted TlsRxSw) wrong=$(tls_counted TlsDecryptError)
    mpirun_run "$ranks" $tls "$@" || return 1
    echo "encrypted: $(($(tls_counted TlsTxSw) - sent)) ends that send, $(($(tls_counted TlsRxSw) - received)) that receive"
    [ "$(tls_counted TlsTxSw)" -ge $((sent + ranks)) ] && [ "$(tls_counted TlsRxSw)" -ge $((received + ranks)) ] &&
        [ "$(tls_counted TlsDecryptError)" = "$wrong" ]
}

# With new keys after each MiB. As many connections end.
tls_keys() {
    local before
    before=$(tls_counted TlsTxSw)
    tls_traffic 2 --mca btl_sock_tls_mib 1 -- traffic --seeds 1 --batches 40 || return 1
    [ $(($(tls_counted TlsTxSw) - before)) -gt 8 ]
}

if [ -e /proc/net/tls_stat ]; then
    check "${prefix}tls.new-keys" tls_keys
    # The virtual machine needs two minutes for the others.
    if [ -n "${MULTILANE_RDMA_LAB:-}" ] && [ -z "${MULTILANE_LONG:-}" ]; then
        skip "${prefix}tls.others" "two minutes in the virtual machine: with --long"
    else
        check "${prefix}tls.request" tls_traffic 2 -- conform request
        check "${prefix}tls.traffic" tls_traffic 3 -- traffic --seeds 1-2
        check "${prefix}tls.faults" tls_traffic 2 -x LD_PRELOAD="$build/test/fake/libsock_faults.so" \
            -x SOCK_FAULTS=5:20:500 -x ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0" -- traffic --seeds 1
    fi
    # shellcheck disable=SC2016
    mpi_says tls.one-end 'has another btl_sock_max_send_size, btl_sock_put_limit or btl_sock_tls' \
        2 --mca pml multilane --mca btl "self,$sm,sock" -- \
        "$BASH" -c 'OMPI_MCA_btl_sock_tls=$OMPI_COMM_WORLD_RANK exec "$0"' "$build/test/mpi/ring"
else
    # As root the job may have made the kernel load its TLS.
    tls_refused() {
        output_of 0 'no lane, as btl_sock_tls is 1: the kernel' \
            2 --mca pml multilane --mca btl "self,$sm,sock" --mca btl_sock_tls 1 -- ring || [ -e /proc/net/tls_stat ]
    }
    check "${prefix}tls.refused" tls_refused
    skip "${prefix}tls" "this kernel has no TLS, or has not loaded it (modprobe tls)"
fi
