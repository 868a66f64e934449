#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Says which RDMA devices this host has, what they are set to, and what is wrong with that.

Needs no root. Prints lines "fact ..." and, of what would keep a port from being a lane, "problem ...",
each with the host's name. test/lab/real runs it on each host.
"""

import argparse
import os
import re
import resource
import shutil
import subprocess

# Below this a port cannot register what btl/verbs needs for a few peers.
MEMLOCK_LEAST = 64 << 20
GIDS_SHOWN = 4


def read(*path):
    """The first line of a file of the kernel; "" where it is not there or may not be read, as the
    files of empty GIDs may not."""
    try:
        with open(os.path.join(*path), encoding="utf-8", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return ""


def names(*path):
    try:
        return sorted(os.listdir(os.path.join(*path)), key=lambda name: (len(name), name))
    except OSError:
        return []


def word_of(text):
    """"4: ACTIVE" is ACTIVE."""
    return text.partition(":")[2].strip() or text


def gids_of(port):
    """(index, kind, interface, GID) of each entry in use."""
    found = []
    for index in names(port, "gids"):
        gid = read(port, "gids", index)
        kind = read(port, "gid_attrs", "types", index)
        if gid and gid.replace(":", "").strip("0") and kind:
            found.append((int(index), kind, read(port, "gid_attrs", "ndevs", index), gid))
    return found


def ports_of(root):
    """Each port of each device, as a dictionary."""
    devices = os.path.join(root, "sys/class/infiniband")
    found = []
    for device in names(devices):
        for number in names(devices, device, "ports"):
            port = os.path.join(devices, device, "ports", number)
            found.append({
                "device": device, "port": number,
                "state": word_of(read(port, "state")), "link": read(port, "link_layer"),
                "physical": word_of(read(port, "phys_state")), "rate": read(port, "rate"),
                "lid": read(port, "lid"), "pkey": read(port, "pkeys", "0"), "gids": gids_of(port),
                "firmware": read(devices, device, "fw_ver"), "kind": read(devices, device, "node_type"),
                "board": read(devices, device, "board_id") or read(devices, device, "hca_type"),
                "numa": read(devices, device, "device", "numa_node"),
                "pcie": " x".join(filter(None, (
                    read(devices, device, "device", "current_link_speed"),
                    read(devices, device, "device", "current_link_width"))))})
    return found


def port_facts(port):
    line = (f"{port['device']}:{port['port']} {port['state']} {port['link']}, {port['rate']}, "
            f"board {port['board'] or 'unknown'}, firmware {port['firmware'] or 'unknown'}, "
            f"NUMA node {port['numa'] or 'unknown'}, PCIe {port['pcie'] or 'unknown'}, "
            f"LID {port['lid'] or 'none'}, P_Key {port['pkey'] or 'none'}")
    shown = port["gids"][:GIDS_SHOWN]
    lines = [line] + [f"{port['device']}:{port['port']} GID {index} {kind} {interface or '-'} {gid}"
                      for index, kind, interface, gid in shown]
    if len(port["gids"]) > len(shown):
        lines.append(f"{port['device']}:{port['port']} and {len(port['gids']) - len(shown)} more GIDs")
    return lines


def port_problem(port):
    """Why this port can be no lane, and what to do; None where it can."""
    name = f"{port['device']} port {port['port']}"
    if "iWARP" in port["kind"] or "RNIC" in port["kind"]:
        return f"{name} speaks iWARP, which btl/verbs does not: use tcp over its interface"
    if port["state"] == "INIT" and port["link"] == "InfiniBand":
        return f"{name} is INIT: no subnet manager has set it up; start opensm, or ask who runs the switch"
    if port["state"] != "ACTIVE":
        what = "the cable and the switch" if port["link"] == "InfiniBand" else \
            "the cable, and that its interface is up (ip link)"
        return f"{name} is {port['state'] or 'in no known state'} ({port['physical']}): check {what}"
    if not port["gids"]:
        return f"{name} has no GID that can be read: give its interface an address (ip address add)"
    if port["link"] == "Ethernet" and not any("v2" in gid[1] for gid in port["gids"]):
        return f"{name} has GIDs of RoCE v1 only, which no router passes on: set it to RoCE v2"
    return None


def problems_of(root, ports, memlock):
    found = []
    if not ports:
        found.append("this host has no RDMA device (/sys/class/infiniband is empty): load its driver, "
                     "or for soft RoCE: rdma link add NAME type rxe netdev INTERFACE")
    found += [problem for problem in map(port_problem, ports) if problem]
    folder = os.path.join(root, "dev/infiniband")
    doors = [name for name in names(folder) if name.startswith("uverbs")]
    if ports and not doors:
        found.append("/dev/infiniband has no uverbs device: load the module ib_uverbs")
    for name in doors:
        if not os.access(os.path.join(folder, name), os.R_OK | os.W_OK):
            found.append(f"this user may not open /dev/infiniband/{name}: ask root for mode 0666 or "
                         "for the device's group")
    if memlock != resource.RLIM_INFINITY and memlock < MEMLOCK_LEAST and os.geteuid() != 0:
        found.append(f"a process may lock {memlock} bytes: set memlock to unlimited in "
                     "/etc/security/limits.conf, and LimitMEMLOCK=infinity for the service that starts jobs")
    return found


def output_of(*command):
    if not shutil.which(command[0]):
        return ""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def package_version(debian, redhat):
    return output_of("dpkg-query", "-W", "-f", "${Version}", debian) or \
        output_of("rpm", "-q", "--qf", "%{VERSION}-%{RELEASE}", redhat) or "unknown"


def host_facts(root, memlock):
    ucx = re.search(r"\d+\.\d+\.\d+", output_of("ucx_info", "-v")) or \
        re.search(r"\d+\.\d+\.\d+", package_version("libucx0", "ucx"))
    peer = [name for name in ("nvidia_peermem", "nv_peer_mem")
            if os.path.isdir(os.path.join(root, "sys/module", name))]
    return [f"Linux {os.uname().release} {os.uname().machine}",
            f"rdma-core {package_version('libibverbs1', 'libibverbs')}",
            f"ucx {ucx.group() if ucx else 'not found'}",
            "memlock " + ("unlimited" if memlock == resource.RLIM_INFINITY else f"{memlock} bytes"),
            f"GPU memory by {', '.join(peer) if peer else 'dmabuf only'}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--root", default="/", help="where sys and dev are (/)")
    root = parser.parse_args().root
    memlock = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    ports = ports_of(root)
    host = os.uname().nodename
    for fact in host_facts(root, memlock) + [line for port in ports for line in port_facts(port)]:
        print(f"fact {host}: {fact}")
    for problem in problems_of(root, ports, memlock):
        print(f"problem {host}: {problem}")


if __name__ == "__main__":
    main()
