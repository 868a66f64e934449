# SPDX-License-Identifier: BSD-3-Clause
# multilane-doctor on nodes made up: what each line says, and that it says what to do. Between nodes, --job is in
# rails.sh (rails.doctor).
elsewhere_only 'series=doctor.@(here|bad-plugin|other-version|nodes|job)' # where Open MPI answers
doctor_folder=$build/doctor-test
rm -rf "$doctor_folder"
mkdir -p "$doctor_folder/home" "$doctor_folder/bin"

doctor() { # as a user runs it, with the programs of this build beside mpirun
    env HOME="$doctor_folder/home" XDG_CACHE_HOME="$doctor_folder/home" \
        PATH="$doctor_folder/bin:$build:$(dirname "$mpirun"):$PATH" \
        timeout 100 "${doctor_runs:-$top/tools/multilane-doctor}" "$@" 2>&1
}
ln -sf "$mpirun" "$doctor_folder/bin/mpirun"

# doctor_says STATUS REGEX...: it ends so, and has a line for each.
doctor_says() {
    local wanted=$1 output status regex
    shift
    output=$(doctor ${doctor_arguments:-})
    status=$?
    printf '%s\n' "$output"
    [ $status = "$wanted" ] || { echo "(ended with status $status)"; return 1; }
    for regex; do
        grep -Eq -- "$regex" <<<"$output" || { echo "(nothing above matches: $regex)"; return 1; }
    done
}

doctor_here() {
    doctor_says 0 "^ok    Open MPI     ${ompi_version//./\\.}" "^ok    plugin       [0-9.]+ loads from $component_dir" \
        '^ok    job ' '^ok    lane shm     shm:shm$' '^(ok|off)   +lane cuda ' \
        '^note  profile +no profile' '^ok    processors ' '^(ok|note)  +ptrace ' '^(ok|note)  +memlock ' \
        '^(ok|note)  +/dev/shm ' '^(ok|note)  +cgroup .*processor time|^note  cgroup ' '^(ok|off|note)  +RDMA ' \
        '^(ok|off|note)  +GPU ' 'setting +OMPI_MCA_mca_base_component_path='
}

doctor_no_plugin() {
    OMPI_MCA_mca_base_component_path=$doctor_folder/nothing doctor_says 1 \
        "^FAIL  plugin .*is in none of the folders .*$doctor_folder/nothing" '-> install it there, or .*env\.sh' \
        '^ok    processors '
}

# A file that is there and cannot be loaded.
doctor_bad_plugin() {
    mkdir -p "$doctor_folder/bad" && echo nonsense >"$doctor_folder/bad/mca_pml_multilane.so" || return 1
    OMPI_MCA_mca_base_component_path=$doctor_folder/bad:SYS_DEFAULT doctor_says 1 \
        "^FAIL  plugin .*$doctor_folder/bad/mca_pml_multilane.so does not load: .*(invalid|too short)" '-> build Multilane for'
}

# Another release than the one built for; another MPI; two that do not belong together; none.
doctor_other_version() {
    LD_PRELOAD=$build/.libs/libpreload_other.so doctor_says 1 'FAIL .*(3\.9\.9|will not load)'
}
doctor_other_mpi() {
    printf '#!/bin/sh\necho "HYDRA build details:"\n' >"$doctor_folder/bin/mpirun.other"
    doctor_mpirun mpirun.other doctor_says 1 '^FAIL  Open MPI .*says "HYDRA' '-> load the module of Open MPI'
}
doctor_two_versions() {
    printf '#!/bin/sh\necho "mpirun (Open MPI) 2.1.0"\n' >"$doctor_folder/bin/mpirun.old"
    doctor_mpirun mpirun.old doctor_says 1 '^FAIL  Open MPI .*but .* says ".* 2\.1\.0"' '-> put the bin folder of one'
}
doctor_mpirun() { # FILE COMMAND...: with that one as mpirun
    local status
    chmod +x "$doctor_folder/bin/$1"
    ln -sf "$1" "$doctor_folder/bin/mpirun"
    "${@:2}"
    status=$?
    ln -sf "$mpirun" "$doctor_folder/bin/mpirun"
    return $status
}
doctor_ompi_info() { # COMMANDS FOLDER: an ompi_info there that is these of sh, with the real one in $real
    mkdir -p "$2"
    printf '#!/bin/sh\nreal=%s\n%s\n' "$ompi_info" "$1" >"$2/ompi_info"
    chmod +x "$2/ompi_info"
}
doctor_no_dlopen() {
    local status
    doctor_ompi_info 'case $* in *--config*) echo option:dlopen:no ;; *) exec "$real" "$@" ;; esac' "$doctor_folder/bin"
    doctor_says 1 '^FAIL  Open MPI .*built without dlopen' '-> use an Open MPI .*--disable-dlopen'
    status=$?
    rm "$doctor_folder/bin/ompi_info"
    return $status
}
doctor_no_open_mpi() {
    local tools=$doctor_folder/tools output status
    mkdir -p "$tools"
    ln -sf /bin/* /usr/bin/* "$tools/"
    rm -f "$tools"/{mpi,ompi,orte,prte,prun}*
    output=$(PATH=$tools "$top/tools/multilane-doctor" 2>&1)
    status=$?
    printf '%s\n' "$output"
    [ $status = 1 ] && grep -q '^FAIL  Open MPI .*there is no mpirun on PATH' <<<"$output" &&
        grep -q '^ok    processors ' <<<"$output"
}

# Interfaces of a made-up node: two in one subnet, one without a link, a container's bridge, one that an
# adapter belongs to, a tunnel, one that the caller excludes, and one at half duplex inside another's subnet. Routes
# that are no network more: with another metric, inside a wider one, RHEL 7's zeroconf, Calico's blackhole. One
# that hosts give themselves.
doctor_networks() { # FOLDER
    local net=$1/sys/class/net
    mkdir -p "$1/proc/net" "$net"/{eth0/device,eth1/device,eth2/device,eth3/device,docker0/bridge,docker0/brif/veth1} \
        "$net"/{br0/bridge,br0/brif/eth4,eth4/device,wg0}
    echo 9000 | tee "$net"/{eth0,eth1,eth2,eth3,docker0,br0,wg0}/mtu >/dev/null
    echo 25000 >"$net/eth0/speed"
    echo -1 >"$net/eth1/speed"
    echo 0 | tee "$net"/{eth2,docker0}/carrier >/dev/null
    mkdir -p "$net/eth7/device" && echo half >"$net/eth7/duplex"
    echo 65534 >"$net/wg0/type"
    mkdir -p "$net/eth5/device" && echo 0x1002 >"$net/eth5/flags"
    echo 0x1003 >"$net/eth0/flags"
    echo 1420 >"$net/wg0/mtu"
    echo "fd000000000000000000000000000001 09 40 00 80 eth6" >"$1/proc/net/if_inet6"
    {
        printf 'Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n'
        printf '%s %s %s 0001 0 0 0 %s 0 0 0\n' eth0 00000000 01004D0A 00000000 eth0 00004D0A 00000000 0000FFFF \
            eth1 00004D0A 00000000 0000FFFF eth2 00004E0A 00000000 0000FFFF eth3 00004F0A 00000000 0000FFFF \
            br0 0000500A 00000000 00FFFFFF docker0 000011AC 00000000 0000FFFF wg0 0000520A 00000000 00FFFFFF \
            eth7 8000500A 00000000 80FFFFFF \
            eth0 00004D0A 00000000 0000FFFF eth2 00004E0A 00000000 00FFFFFF eth3 0000FEA9 00000000 0000FFFF \
            eth8 0000FEA9 00000000 0000FFFF '*' 0000530A 00000000 0000FFFF
    } >"$1/proc/net/route"
}

# Where this machine has the driver's library the page has no word about it.
driver_is_here() {
    local folder folders
    IFS=: read -r -a folders <<<"${LD_LIBRARY_PATH:-}"
    for folder in "${folders[@]}"; do [ ! -e "$folder/libcuda.so.1" ] || return 0; done
    PATH=$PATH:/usr/sbin:/sbin ldconfig -p | grep -q 'libcuda\.so\.1'
}

# A node made of files: nothing may copy, half a processor, little memory, one port up and one down.
doctor_made_up() {
    local node=$doctor_folder/node port=sys/class/infiniband/mlx5_0/ports no_driver='^note  GPU          libcuda.so.1 is not found'
    ! driver_is_here || no_driver='^ok    GPU '
    mkdir -p "$node"/proc/{self,sys/kernel/yama,driver/nvidia/gpus/0000:01:00.0} "$node/sys/fs/cgroup/slurm/job1" \
        "$node/$port"/{1/gids,1/gid_attrs/types,2}
    doctor_networks "$node"
    echo 2 >"$node/proc/sys/kernel/yama/ptrace_scope"
    echo 0::/slurm/job1 >"$node/proc/self/cgroup"
    echo 50000 100000 >"$node/sys/fs/cgroup/slurm/cpu.max"
    echo max 100000 >"$node/sys/fs/cgroup/slurm/job1/cpu.max"
    echo 268435456 >"$node/sys/fs/cgroup/slurm/job1/memory.max"
    echo '4: ACTIVE' >"$node/$port/1/state"
    echo '1: DOWN' >"$node/$port/2/state"
    echo Ethernet >"$node/$port/1/link_layer"
    echo '100 Gb/sec (4X EDR)' >"$node/$port/1/rate"
    echo 0000:0000:0000:0000:0000:ffff:0a4d:0001 >"$node/$port/1/gids/1"
    echo 'RoCE v2' >"$node/$port/1/gid_attrs/types/1"
    doctor_other_ports "$node/sys/class/infiniband"
    printf 'Model: \t\t NVIDIA H100\n' >"$node/proc/driver/nvidia/gpus/0000:01:00.0/information"
    (
        ulimit -l 64 && ulimit -n 512 || exit 1
        OMPI_MCA_btl_sock_if=^eth3,wg0 OMPI_MCA_btl_tcp_if_include='' OMPI_MCA_btl_tcp_if_exclude=127.0.0.1/8,10.79.0.0/16 \
            MULTILANE_DOCTOR_ROOT=$node doctor_says 0 '^note  ptrace .*is 2' '-> sysctl kernel.yama' \
            '^note  memlock      64 KiB' '-> memlock unlimited' '^note  files        512' \
            '^note  cgroup .* the time of 0\.5' '^note  cgroup       256 MiB of memory' \
            '^ok    RDMA         mlx5_0:1 Ethernet, 100 Gb/sec .*1:0000.*0001 \(RoCE v2\)' \
            '^note  RDMA         mlx5_0:2 is DOWN' '^note  RDMA .*no /dev/infiniband' \
            '^ok    RDMA         mlx5_1:1 Ethernet, , GIDs$' "-> it has only the link's own GID" \
            '^ok    RDMA         mlx5_2:1 InfiniBand, , GIDs 0:fe80:.*:9abc \(InfiniBand\)$' \
            '^ok    networks     eth0 10\.77\.0\.0/16, MTU 9000, 25000 Mbit/s$' \
            '^note  networks     eth0 eth1: all in the same subnet 10\.77\.0\.0/16' \
            '^note  networks     eth2 .*it has no link' '^ok    networks     br0 10\.80\.0\.0/24' \
            '^note  networks     docker0 172\.17\.0\.0/16.*a bridge inside.* to reach them$' '-> leave it out: .*,docker0$' \
            '^ok    networks     eth8 169\.254\.0\.0/16, .*, for btl/tcp alone$' \
            '^note  networks     wg0 .*, for btl/tcp alone: a tunnel' '^off   networks     eth3 .*is used by no lane' \
            '^ok    networks     a job that names btl/sock uses eth0 eth1 br0 eth7 eth6 .IPv6. \(btl_sock_if' \
            '^note  networks     eth7 10\.80\.0\.128/25.*half duplex' '^note  networks     eth7 10\.80\.0\.128/25 lies inside br0 10\.80\.0\.0/24' \
            '^note  networks     eth5 is down' '^note  networks     MTUs differ: eth0 9000, .*wg0 1420' \
            '^ok    GPU          NVIDIA H100' '^note  GPU .*no /dev/nvidiactl' '^note  /dev/shm     is not there' \
            "$no_driver"
    ) >"$doctor_folder/made-up"
    local status=$?
    cat "$doctor_folder/made-up"
    [ $status = 0 ] && ! grep -E 'eth0 eth0|eth2 .*lies inside|eth3 169|networks +\*' "$doctor_folder/made-up" || return 1
    # What --nodes compares has no address of one node. The driver's library is where this shell's loader is told to look.
    : >"$node/libcuda.so.1"
    LD_LIBRARY_PATH=$doctor_folder:$node MULTILANE_DOCTOR_ROOT=$node doctor --of-this-node | tee "$doctor_folder/made-up"
    grep -q 'mlx5_0:1 Ethernet, .*, GIDs 1 (RoCE v2)' "$doctor_folder/made-up" &&
        grep -q 'a job that names btl/sock uses eth0 eth1 eth3 br0 wg0 eth7 eth6 (IPv6) ' "$doctor_folder/made-up" &&
        ! grep 'libcuda.so.1 is not found' "$doctor_folder/made-up"
}

# RoCE without an address has the GID of its link alone; on InfiniBand that is the right one.
doctor_other_ports() { # FOLDER
    local device
    for device in mlx5_1 mlx5_2; do
        mkdir -p "$1/$device/ports/1/gids"
        echo '4: ACTIVE' >"$1/$device/ports/1/state"
        echo fe80:0000:0000:0000:0000:0012:3456:9abc >"$1/$device/ports/1/gids/0"
    done
    echo Ethernet >"$1/mlx5_1/ports/1/link_layer"
    echo InfiniBand >"$1/mlx5_2/ports/1/link_layer"
}

# Control groups of version 1, as Slurm makes them: the limits stand in the job's own, not at the mount. What a
# script sets for OpenMP is no number of processors, and the page has one line for its folder.
doctor_group_of_version_1() {
    local node=$doctor_folder/version-1 cpu memory
    cpu=$node/sys/fs/cgroup/cpu,cpuacct/slurm/job1 memory=$node/sys/fs/cgroup/memory/slurm
    mkdir -p "$node/proc/self" "$cpu/step0" "$memory/job1"
    printf '%s\n' 4:memory:/slurm/job1 3:cpu,cpuacct:/slurm/job1/step0 0::/ >"$node/proc/self/cgroup"
    echo 50000 >"$cpu/cpu.cfs_quota_us"
    echo 100000 >"$cpu/cpu.cfs_period_us"
    echo -1 >"$cpu/step0/cpu.cfs_quota_us"
    echo 268435456 >"$memory/memory.limit_in_bytes"
    echo 9223372036854771712 >"$memory/job1/memory.limit_in_bytes"
    (
        cd "$top/tools" || exit 1
        export CDPATH=. OMP_NUM_THREADS=1000 OMP_THREAD_LIMIT=1000 MULTILANE_DOCTOR_ROOT=$node
        doctor_runs=./multilane-doctor doctor_says 0 '^note  cgroup .* the time of 0\.5' \
            '^note  cgroup       256 MiB of memory' "^ok    processors   $(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc) of "
    )
}

# A limit that not every root may lift.
doctor_unlimited() {
    # shellcheck disable=SC2317
    ulimit() { echo unlimited; }
    export -f ulimit
    doctor_says 0 '^ok    memlock      unlimited$' '^ok    files        unlimited'
}

# A container's /dev/shm.
doctor_small_shm() {
    printf '#!/bin/sh\nmount -t tmpfs -o size=8m tmpfs /dev/shm && exec "%s"\n' "$top/tools/multilane-doctor" \
        >"$doctor_folder/small-shm"
    chmod +x "$doctor_folder/small-shm"
    printf '#!/bin/sh\nexec unshare --mount --propagation %s "%s"\n' "$(mount_propagation)" \
        "$doctor_folder/small-shm" >"$doctor_folder/small-shm-alone"
    chmod +x "$doctor_folder/small-shm-alone"
    doctor_runs=$doctor_folder/small-shm-alone doctor_says 0 '^note  /dev/shm     [0-9]* of 8 MiB are free' '-> remove what ended jobs'
}

# Another PML in the environment, and a second plugin that is not used.
doctor_precedence() {
    mkdir -p "$doctor_folder/second" && ln -sf "$component_dir/mca_pml_multilane.so" "$doctor_folder/second" || return 1
    OMPI_MCA_pml=ob1 OMPI_MCA_mca_base_component_path=$OMPI_MCA_mca_base_component_path:$doctor_folder/second \
        doctor_says 0 '^note  PML +pml is "ob1" by environment' '^note  plugin .*another one in .*/second' &&
        OMPI_MCA_pml=multilane,ob1 doctor_says 0 '^ok    PML +jobs use Multilane without being asked' &&
        OMPI_MCA_pml=ob1,multilane doctor_says 0 '^note  PML +pml is "ob1,multilane" .*: a job gets that, not Multilane'
}

# As a service may start it.
doctor_without_home() {
    printf '#!/bin/sh\nunset HOME\nexec "%s"\n' "$top/tools/multilane-doctor" >"$doctor_folder/no-home"
    chmod +x "$doctor_folder/no-home"
    doctor_runs=$doctor_folder/no-home doctor_says 0 '^ok    job '
}

# --nodes: what this node says by way of mpirun; then what a job of three nodes would say, of which one
# has another release, one wrote its lines behind those of another, and mpirun failed.
doctor_nodes() {
    doctor_says 0 '^ok    Open MPI     ' '^ok    nodes        1 answered, and are alike' '^ok    processors '
}
doctor_nodes_differ() {
    cat >"$doctor_folder/bin/mpirun.three" <<'EOT'
#!/bin/sh
[ "$1" != --version ] || exec "${0%/*}/mpirun.real" --version
line() { printf 'multilane-doctor:%s\t%s\t%s\t%s\t%s' "$@"; }
line a ok 'Open MPI' '4.1.4, /usr/bin/mpirun' ''; echo
line a ok files 'many may be open' ''
line b ok 'Open MPI' '4.1.4, /usr/bin/mpirun' ''; echo
line b ok files 'many may be open' ''; echo
line c FAIL 'Open MPI' '3.1.0 is none' 'load another'; echo
line c ok files 'many may be open' ''; echo
echo 'multilane-doctor:c	cut short'
echo 'node d does not answer'
exit 3
EOT
    ln -sf "$mpirun" "$doctor_folder/bin/mpirun.real"
    doctor_mpirun mpirun.three doctor_says 1 '^ok    Open MPI     4\.1\.4' '^ +on a b$' '^FAIL  Open MPI     3\.1\.0' \
        '^ +on c$' '-> load another' '^ok    files        many' '^note  nodes +3 answered, and differ in: Open MPI$' \
        '^FAIL  nodes +mpirun ended with status 3:' '\| node d does not answer'
}

# Node b has a Multilane of another version in the folder of that name.
doctor_nodes_versions() {
    doctor_ompi_info '"$real" "$@" | sed "s/^\(mca:pml:multilane:version:.*component:\)[0-9.]*/\10.0.9/"' \
        "$doctor_folder/old"
    cat >"$doctor_folder/bin/mpirun.two" <<'EOT'
#!/bin/sh
here=${0%/*}
[ "$1" != --version ] || exec "$here/mpirun.real" --version
while [ "$2" != --of-this-node ]; do shift; done
SLURMD_NODENAME=a "$@"
SLURMD_NODENAME=b PATH=$here/../old:$PATH exec "$@"
EOT
    ln -sf "$mpirun" "$doctor_folder/bin/mpirun.real"
    doctor_mpirun mpirun.two doctor_says 0 '^ok    plugin       [0-9.]+ loads' '^ok    plugin       0\.0\.9 loads' \
        '^ +on b$' '^note  nodes +2 answered, and differ in: plugin$'
}

# A node that does not answer. A made-up timeout makes 1 s of the limit of 120.
doctor_nodes_silent() {
    local status
    printf '#!/bin/sh\n[ "$1" = 120 ] && shift && set -- 1 "$@"\nexec %s "$@"\n' "$(command -v timeout)" \
        >"$doctor_folder/bin/timeout"
    cat >"$doctor_folder/bin/mpirun.silent" <<'EOT'
#!/bin/sh
[ "$1" != --version ] || exec "${0%/*}/mpirun.real" --version
printf 'multilane-doctor:%s\t%s\t%s\t%s\t%s\n' a ok files 'many may be open' ''
exec sleep 60
EOT
    chmod +x "$doctor_folder/bin/timeout"
    ln -sf "$mpirun" "$doctor_folder/bin/mpirun.real"
    doctor_mpirun mpirun.silent doctor_says 1 '^ok    files        many' '^ok    nodes        1 answered' \
        '^FAIL  nodes +not all of them answered within 120 s' '-> leave it out'
    status=$?
    rm "$doctor_folder/bin/timeout"
    return $status
}

# --job as the program of a job; and without one.
doctor_job() {
    local output
    output=$(mpirun_run 2 --mca pml multilane --mca btl self,shm -- "$build/inst/bin/multilane-doctor" --job 2>&1) &&
        grep -Eq ' shm:shm +[0-9.]+ +[0-9.]+ +[0-9.]+ *$' <<<"$output" &&
        grep -q '^1 lanes of 1 nodes, each alone: 0 lead nowhere' <<<"$output" || { printf '%s\n' "$output"; return 1; }
    output=$(mpirun_run 2 --mca pml ob1 -- "$build/inst/bin/multilane-doctor" --job 2>&1)
    [ $? != 0 ] && grep -q '^multilane-doctor --job: this job does not run .*--mca pml multilane' <<<"$output" ||
        { printf '%s\n' "$output"; return 1; }
    output=$(doctor --job)
    [ $? = 2 ] && grep 'no job has started this process: mpirun -n 2' <<<"$output"
}

doctor_bad_option() {
    local output
    output=$(doctor --page)
    [ $? = 2 ] && grep -q '^usage: multilane-doctor' <<<"$output" && grep 'takes no "--page"' <<<"$output"
}

if [ -n "$sanitizer" ]; then
    skip "${prefix}doctor" "a sanitizer has to be in the program, and ompi_info is without"
else
    check "${prefix}doctor.here" doctor_here
    check "${prefix}doctor.no-plugin" doctor_no_plugin
    check "${prefix}doctor.bad-plugin" doctor_bad_plugin
    check "${prefix}doctor.other-version" doctor_other_version
    check "${prefix}doctor.other-mpi" doctor_other_mpi
    check "${prefix}doctor.two-versions" doctor_two_versions
    check "${prefix}doctor.no-open-mpi" doctor_no_open_mpi
    check "${prefix}doctor.no-dlopen" doctor_no_dlopen
    check "${prefix}doctor.made-up-node" doctor_made_up
    check "${prefix}doctor.group-of-version-1" doctor_group_of_version_1
    check "${prefix}doctor.unlimited" doctor_unlimited
    check "${prefix}doctor.precedence" doctor_precedence
    check "${prefix}doctor.without-home" doctor_without_home
    doctor_arguments='--nodes --host localhost:1'
    check "${prefix}doctor.nodes" doctor_nodes
    check "${prefix}doctor.nodes-differ" doctor_nodes_differ
    check "${prefix}doctor.nodes-versions" doctor_nodes_versions
    check "${prefix}doctor.nodes-silent" doctor_nodes_silent
    doctor_arguments=
    if unshare --mount --propagation "$(mount_propagation)" true 2>/dev/null; then
        check "${prefix}doctor.small-shm" doctor_small_shm
    else
        skip "${prefix}doctor.small-shm" "a small /dev/shm needs a mount namespace"
    fi
    check "${prefix}doctor.job" doctor_job
    check "${prefix}doctor.bad-option" doctor_bad_option
fi
