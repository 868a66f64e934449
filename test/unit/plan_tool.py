#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""multilane-plan as a user meets it: the equation against fractions, its outputs, its refusals.

Run in the build folder, where the program lies, or with its path as the only argument.
"""
import json
import math
import os
import random
import re
import subprocess
import sys
from fractions import Fraction

PROGRAM = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "multilane-plan")
LARGEST = 2**52

EXAMPLE = """bias = 0.99               # d
[lane fast]
use = both                # eager | rndv | both
latency = 1.3e-6          # seconds
bandwidth = 12.5e9        # bytes a second
overhead = 0.2e-6
reg_cost = 1e-6
reg_growth = 0.06e-9      # seconds a byte
"""

failures = 0


def check(holds, *what):
    global failures
    if not holds:
        failures += 1
        print("does not hold:", *what, file=sys.stderr)


def run(*arguments, text=""):
    """Runs the program on a file's content, given to it on standard input."""
    content = text if isinstance(text, bytes) else text.encode()
    done = subprocess.run([PROGRAM, *arguments], input=content, capture_output=True, timeout=60)
    return done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace")


# --- the equation against fractions ---------------------------------------------------------------

KEYS = ("latency", "bandwidth", "overhead", "reg_cost", "reg_growth")


def lane_text(name, lane):
    return "[lane %s]\nuse = %s\n" % (name, lane["use"]) + "".join(
        "%s = %r\n" % (key, lane[key]) for key in KEYS)


def file_text(bias, lanes):
    return "bias = %r\n" % bias + "".join(
        lane_text("lane%d" % i, lane) for i, lane in enumerate(lanes))


def total(lanes, use, key):
    return sum((Fraction(lane[key]) for lane in lanes if lane["use"] in (use, "both")), Fraction(0))


def expected(bias, lanes, rrc):
    """The equation of the first document, in fractions of the doubles."""
    d = Fraction(bias)
    latency = max(Fraction(lane["latency"]) for lane in lanes if lane["use"] in ("rndv", "both"))
    num = (d * ((1 + rrc) * total(lanes, "rndv", "reg_cost") + 4 * latency
                + 3 * total(lanes, "rndv", "overhead"))
           - total(lanes, "eager", "reg_cost") - total(lanes, "eager", "overhead"))
    den = (total(lanes, "eager", "reg_growth") + 1 / total(lanes, "eager", "bandwidth")
           - d * ((1 + rrc) * total(lanes, "rndv", "reg_growth")
                  + 1 / total(lanes, "rndv", "bandwidth")))
    if num > 0 and den > 0:
        size = max(1, math.ceil(num / den))
        return ("at", size) if size <= LARGEST else ("never", None)
    if num <= 0 and den >= 0:
        return ("always", None)
    if num < 0 and den < 0:
        size = math.floor(num / den)
        return ("below", min(size, LARGEST)) if size >= 1 else ("never", None)
    return ("never", None)


def check_equation(bias, lanes, seen):
    text = file_text(bias, lanes)
    status, out, err = run("--equation", "--json", "-", text=text)
    check(status == 0, text, err)
    if status:
        return
    for line in json.loads(out)["equation"]:
        rrc = 1 if line["protocol"] == "rndv-get" else 0
        want = expected(bias, lanes, rrc)
        got = (line["kind"], line.get("bytes"))
        seen[want[0]] = seen.get(want[0], 0) + 1
        check(got == want, "%s: %s, in fractions %s, for\n%s" % (line["protocol"], got, want, text))


def value(chance, middle):
    return chance.choice([0.0, middle, middle * 10 ** chance.uniform(-3, 3),
                          middle * 10 ** chance.uniform(-3, 3), round(middle * 7, 12)])


def random_lane(chance, use):
    return {"use": use, "latency": value(chance, 1e-6), "bandwidth": value(chance, 1e10) or 1e10,
            "overhead": value(chance, 1e-7), "reg_cost": value(chance, 1e-6),
            "reg_growth": value(chance, 1e-10)}


def random_lanes(chance):
    lanes = [random_lane(chance, "eager"), random_lane(chance, "rndv")]
    for _ in range(chance.randrange(4)):
        lanes.append(random_lane(chance, chance.choice(["eager", "rndv", "both"])))
    return lanes


def equation_is_exact(chance, seen):
    for _ in range(400):
        check_equation(chance.choice([0.99, 0.5, 1.0, chance.uniform(0.5, 1.2)]),
                       random_lanes(chance), seen)


def near_ties_are_exact(chance, seen):
    """An eager overhead is set so that the two sides meet within a bit of a whole size."""
    tried = 0
    while tried < 150:
        lanes, bias = random_lanes(chance), 0.99
        lanes[0]["overhead"] = 0.0
        rrc = chance.randrange(2)
        kind, size = expected(bias, lanes, rrc)
        if kind != "at" or not 10 < size < 2**45:
            continue
        tried += 1
        low, high = 0.0, 1e6  # the overhead at which `size - 5` is the threshold, to the last bit
        while math.nextafter(low, high) < high:
            middle = (low + high) / 2
            lanes[0]["overhead"] = middle
            now = expected(bias, lanes, rrc)
            if now[0] == "at" and now[1] > size - 5:
                low = middle
            else:
                high = middle
        for overhead in (math.nextafter(low, 0), low, high, math.nextafter(high, 1e9)):
            lanes[0]["overhead"] = overhead
            check_equation(bias, lanes, seen)


# --- outputs ----------------------------------------------------------------------------------------


def the_example_prints_as_documented():
    status, out, err = run("--equation", "-", text=EXAMPLE)
    check((status, out, err) == (0, "rndv-am at 3951429\nrndv-get never\n", ""), out, err)
    status, out, _ = run("--equation", "--verbose", "-", text=EXAMPLE)
    for term in ("ecost", "egro", "ebw", "eover", "rcost", "rgro", "rbw", "rover", "rlat", "num",
                 "den", "d ", "rrc"):
        check("\n  %s" % term in out, term, "is missing in", out)
    status, out, _ = run("-", text=EXAMPLE)
    rows = [line.split() for line in out.splitlines()[2:]]
    check([row[:3] for row in rows] == [["0", "3951428", "eager-zcopy"],
                                        ["3951429", "inf", "rndv-am"]], out)


def beyond_is_said():
    text = file_text(0.5, [
        {"use": "eager", "latency": 0.0, "bandwidth": 1e9, "overhead": 0.0, "reg_cost": 0.0,
         "reg_growth": 0.0},
        {"use": "rndv", "latency": 1e8, "bandwidth": 1e9, "overhead": 0.0, "reg_cost": 0.0,
         "reg_growth": 0.0}])
    _, out, _ = run("--equation", "-", text=text)
    check(out.startswith("rndv-am never (") and "2^52" in out.splitlines()[0], out)


def json_is_utf_8_whatever_a_lane_is_called():
    for name, shown in ((b"f\xe4st", "f?st"), ("schnäll".encode(), "schnäll")):
        status, out, err = run("--json", "-", text=EXAMPLE.encode().replace(b"fast", name))
        check(not status and shown in json.dumps(json.loads(out), ensure_ascii=False), name, out, err)


def json_agrees_with_text_and_covers_every_size():
    status, out, _ = run("--json", "--predict", "0", "1", "4k", "3951428", "3951429", "1g", "-",
                         text=EXAMPLE)
    report = json.loads(out)
    check(status == 0 and report["version"] == 1, out)
    next_bytes = 0
    for entry in report["plan"]:
        check(entry["first_bytes"] == next_bytes, entry)
        check(abs(sum(lane["share"] for lane in entry["lanes"]) - 1) < 1e-12, entry)
        next_bytes = None if entry["last_bytes"] is None else entry["last_bytes"] + 1
    check(next_bytes is None, "the last size is bounded")
    for size in (0, 1, 4096, 3951428, 3951429, 2**30):
        rows = [row for row in report["predictions"] if row["bytes"] == size]
        chosen = [row for row in rows if row["chosen"]]
        check(len(chosen) == 1, size, rows)
        for row in rows:
            stages = sum(row[key] for key in ("sender_s", "wire_s", "receiver_s", "latency_s"))
            check(math.isclose(stages, row["takes_s"], rel_tol=1e-12), row)
            check(chosen[0]["takes_s"] <= row["takes_s"] * (1 + 1e-12), size, rows)


def lanes_of_one_way_and_infinite_ones_are_printed():
    text = EXAMPLE + "[lane reads]\nget_bandwidth = 1e10\nget_latency = 1e-6\n"
    status, out, err = run("--verbose", "-", text=text)
    check(status == 0 and re.search(r"\n  reads +get +inf +1us ", out), status, out, err)
    status, out, err = run("--equation", "--json", "-", text=EXAMPLE.replace("12.5e9", "1e30"))
    check(status == 0, err)
    check("null" in json.dumps(json.loads(out, parse_constant=lambda name: name)["equation"]), out)
    check("nfinity" not in out and "inf" not in out, out)


def a_lane_that_can_copy_or_send_in_place_shows_which():
    text = EXAMPLE + "copied_max = 16k\ncopy_growth = 0.2e-9\n"  # 1 us / 0.14 ns: 7142.9
    status, out, err = run("-", text=text)
    check(status == 0 and "fast, in place" in out, out, err)
    entries = json.loads(run("--json", "-", text=text)[1])["plan"]
    check([(entry["first_bytes"], entry["protocol"], entry.get("copied")) for entry in entries] ==
          [(0, "eager-copy", None), (7143, "eager-zcopy", False), (3951429, "rndv-am", False)],
          entries)
    dear = json.loads(run("--json", "-", text=text.replace("1e-6\nreg_g", "1\nreg_g"))[1])["plan"]
    check([entry.get("copied") for entry in dear] == [None, True, True, False], dear)  # 1 s: 15 GB


# The lanes that btl/shm and btl/verbs declare, for large messages.
SHM = """[lane shm]
can = send get
group = node
send_latency = 80e-9
send_overhead = 100e-9
send_bandwidth = 27e9
get_latency = 60e-9
get_overhead = 1.5e-6
get_bandwidth = 11e9
"""


def port_text(bytes_s, can, shared=True):
    return "[lane verbs]\ncan = %s\nlatency = 1e-6\noverhead = 0.4e-6\nbandwidth = %r\n%s" % (
        can, bytes_s, "shared = %r\n" % bytes_s if shared else "")


def plan_of(text, *options):
    status, out, err = run("--json", *options, "-", text=text)
    check(status == 0, err)
    return json.loads(out)["plan"] if not status else []


def a_port_is_shared_by_the_ranks_of_a_node():
    for gigabits in (100, 200, 400, 800):
        bytes_s = gigabits * 1e9 / 8 * 0.95
        for ranks in (1, 8, 64, 128):
            # Between nodes: the equation with the part of the port that a rank has.
            part = bytes_s / min(ranks, 8)
            lane = {"use": "both", "latency": 1e-6, "bandwidth": part, "overhead": 0.4e-6,
                    "reg_cost": 0.0, "reg_growth": 0.0}
            want = expected(0.99, [lane], 0)
            plan = plan_of(port_text(bytes_s, "send"), "--ranks", str(ranks))
            check([(entry["first_bytes"], entry["protocol"]) for entry in plan] ==
                  [(0, "eager-zcopy"), (want[1], "rndv-am")], gigabits, ranks, want, plan)
            # Inside a node: never in place of shared memory, since a message takes the port twice.
            text = SHM + port_text(bytes_s, "send get put") + "group = node\n"
            plan = plan_of(text, "--ranks", str(ranks), "--same-node")
            lanes = {lane["name"] for entry in plan for lane in entry["lanes"]}
            check(lanes == {"shm"}, gigabits, ranks, plan)
    # Alone, a process would have taken it.
    text = SHM + port_text(47.5e9, "send get put", shared=False) + "group = node\n"
    plan = plan_of(text, "--ranks", "8", "--same-node")
    check(plan[-1]["lanes"][0]["name"] == "verbs", plan)
    # Where shared memory is slow and few ranks share a fast port, the port is the quicker way.
    text = (SHM.replace("27e9", "12e9") + port_text(95e9, "send get put") + "group = node\n")
    plan = plan_of(text, "--ranks", "2", "--same-node")
    check(plan[-1]["lanes"][0]["name"] == "verbs", plan)


def what_decides_a_switch_is_said():
    lane = "[lane l]\nlatency = 20e-6\nbandwidth = 1.25e9\noverhead = 10e-6\nzcopied_max = 1m\n"

    def decided(*options, before=""):
        status, out, err = run("--json", *options, "-", text=before + lane)
        check(status == 0, err)
        return [(entry["first_bytes"], entry["decided_by"]) for entry in json.loads(out)["plan"][1:]]

    check(decided() == [(12362500, "equation")], decided())
    check(decided(before="credit = 1m\n") == [(1048577, "credit")], "credit")
    check(decided(before="eager_max = 1k\ncredit = 1m\n") == [(1025, "eager_max")], "eager_max")
    check(decided(before="eager_max = 1m\ncredit = 1k\n") == [(1025, "credit")], "credit below")
    check(decided("--protocol", "rndv-am:5000-inf") == [(5000, "forced")], "forced")
    out = run("--verbose", "-", text="credit = 1m\n" + lane)[1]
    check("at 1048577: credit; by the equation it would lie at 123625" in out, out)
    out = run("--verbose", "-", text=lane)[1]
    check("at 12362500: equation: the lines meet here" in out, out)


def where_a_number_comes_from_is_said():
    out = run("--verbose", "-", text="[lane l]\nlatency = 20e-6\nbandwidth = 2e9\n"
              "[range l 1m]\nlatency = 10e-6\n")[1]
    rows = re.findall(r"\n  l +(?:send|get|put) +(\w+) .*  (\S.*)", out)
    check(rows and all(row[1].startswith("default, latency user, bandwidth user") for row in rows), rows)
    check({row[0] for row in rows} == {"1m", "inf"}, rows)


def options_change_the_plan():
    def protocols(*options, text=EXAMPLE):
        status, out, err = run("--json", *options, "-", text=text)
        check(status == 0, options, err)
        return [entry["protocol"] for entry in json.loads(out)["plan"]]

    check(protocols("--protocol", "rndv-get") == ["eager-zcopy", "rndv-get"], "--protocol")
    check(protocols("--protocol=rndv-put:1-2") ==
          ["eager-zcopy", "rndv-put", "eager-zcopy", "rndv-am"], "--protocol=")
    check(protocols("--bias", "1.01") == ["eager-zcopy"], "--bias")
    check(protocols("--stream") != [], "--stream")
    cluster = EXAMPLE + "[cluster]\nsend_overhead = 1\nsend_gap = 2\nlatency = 4\n" \
        "receive_overhead = 1.5\nuser_overhead = 0.5\nprocesses = 16\npacket = 10\n"
    _, out, err = run("--predict", "50", "-", text=cluster)
    check("one-way (2.6)    15s" in out and "broadcast (2.8)  60s as printed" in out, out, err)


def options_of_the_buffer_change_the_plan():
    def starts(*options, text=EXAMPLE):
        return [entry["first_bytes"] for entry in plan_of(text, *options)]

    # (0.99 * (1 + 4 * 1.3 + 3 * 0.2) - 1.2) us / (1 % of (0.06 + 0.08) ns); less 1.5 us for the acknowledgement.
    check(starts() == [0, 3951429] and starts("--sync") == [0, 2880000], starts("--sync"))
    cached = EXAMPLE + "reg_cached = 0\n"  # (0.99 * (4 * 1.3 + 3 * 0.2) - 0.2) us / (1 % of 0.08 ns)
    check(starts(text=cached) == [0, 3951429] and starts("--registered", text=cached) == [0, 6927500],
          starts("--registered", text=cached))
    copied = EXAMPLE + "copied_max = 16k\ncopy_growth = 0.2e-9\n"  # what lies apart is copied as long as it may be
    for pieces in "5", "0":
        check(starts("--pieces", pieces, text=copied)[:2] == [0, 16385], pieces)


def options_of_lanes_change_the_plan():
    text = "".join(f"[lane {name}]\nlatency = {latency}\nbandwidth = {bandwidth}\noverhead = 1e-6\n"
                   for name, latency, bandwidth in (("a", 2e-6, 1e9), ("b", 20e-6, 1e8), ("c", 2e-6, 1e9)))

    def lanes(*options):
        return [(entry["protocol"], len(entry["lanes"])) for entry in plan_of(text, *options)]

    check([count for _, count in lanes()] == [1, 2, 3, 3], lanes())
    check([count for _, count in lanes("--every-lane")] == [3, 3], lanes("--every-lane"))
    check({count for name, count in lanes("--eager-lanes", "1") if name == "eager-zcopy"} == {1}, "--eager-lanes")
    check(("rndv-am", 1) in lanes("--rndv-lanes", "1", "--protocol", "rndv-am:1m-inf"), "--rndv-lanes")


# --- refusals ---------------------------------------------------------------------------------------

BAD_FILES = [  # content, words that the sentence must have
    ("[lane a]\nbandwidth = -1\n", ["2", "bandwidth", "-1"]),
    ("[lane a]\nbandwidth = nan\n", ["2", "bandwidth", "nan"]),
    ("[lane a]\nbandwidth = inf\n", ["2", "bandwidth", "inf"]),
    ("[lane a]\nbandwidth = 0\n", ["2", "bandwidth", "0"]),
    ("[lane a]\nbandwidth = 1e999\n", ["2", "bandwidth", "1e999"]),
    ("[lane a]\nbandwidth = 1e300\n", ["2", "bandwidth", "1e300"]),
    ("[lane a]\nbandwidth = 1GB\n", ["2", "bandwidth", "1GB"]),
    ("[lane a]\nbandwidth =\n", ["2", "bandwidth"]),
    ("[lane a]\nbandwidth = 1\nlatency = -1e-6\n", ["3", "latency", "-1e-6"]),
    ("[lane a]\nbandwidth = 1\ncopy_growth = fast\n", ["3", "copy_growth", "fast"]),
    ("[lane a]\nbandwidth = 1\ncopy_growth = -1e-9\n", ["copy_growth", "-1e-9"]),
    ("[lane a]\nbandwidth = 1\ncopy_growth = 1e300\n", ["a", "copy_growth", "1e+300"]),
    ("[lane a]\nbandwidth = 1\nshared = -1\n", ["3", "shared", "-1"]),
    ("[lane a]\nbandwidth = 1\nshared = 0\n", ["3", "shared", "0"]),
    ("[lane a]\nbandwidth = 1\nspeed = 3\n", ["3", "speed", "3"]),
    ("[lane a]\nbandwidth = 1\nbandwidth = 2\n", ["3", "bandwidth", "2"]),
    ("[lane a]\nbandwidth = 1\n[lane a]\nbandwidth = 1\n", ["3", "a", "line 1"]),
    ("[lane a]\nlatency = 1e-6\n", ["1", "a", "bandwidth"]),
    ("[lane a]\nbandwidth = 1\nuse = some\n", ["3", "use", "some"]),
    ("[lane a]\nbandwidth = 1\ncan = fly\n", ["3", "can", "fly", "atomics"]),
    ("[lane a]\nbandwidth = 1\noverhead = 1\noverhead_send = 1\n", ["4", "overhead_send"]),
    ("[lane]\nbandwidth = 1\n", ["1", "lane"]),
    ("[road a]\n", ["1", "road a"]),
    ("[lane a\n", ["1", "[lane a"]),
    ("lane a\n", ["1", "lane a"]),
    ("bias = 0\n", ["1", "bias", "0"]),
    ("bias = 1e9\n", ["1", "bias", "1e9"]),
    ("speed = 1\n", ["1", "speed"]),
    ("[range a 4k]\n", ["1", "a"]),
    ("[lane a]\nbandwidth = 1\n[range a 4k]\n[range a 1k]\n", ["4", "range a 1k"]),
    ("[copy disk]\n", ["1", "disk"]),
    ("[lane a]\nbandwidth = 1\n[cluster]\n", ["cluster", "L"]),
    ("[lane a]\nbandwidth = 1\n[cluster]\nlatency_8 = 1\nlatency_4 = 1\n", ["5", "latency_4", "order"]),
    ("[lane a]\nbandwidth = 1\n[cluster]\nlatency = 1\npacket = 0\n", ["cluster", "packet of 0"]),
    ("[lane a]\nbandwidth = 1\n[cluster]\nsend_gap = 1e10\n", ["4", "send_gap", "1e+09"]),
    ("".join("[lane %d]\nbandwidth = 1\n" % i for i in range(17)), ["33", "16"]),
    ("# nothing\n", ["no lane"]),
    ("", ["empty"]),
    (b"\x7fELF\x02\x01\x01\0\0\0", ["1", "0x7f"]),
    (b"[lane a]\nband\0width = 1\n", ["2", "0x00"]),
    ("x" * 1000, ["1", "1000"]),
    ("# much\n" * 200000, ["larger than 1048576 bytes"]),
]


def check_refusal(result, words, what):
    status, out, err = result
    check(status == 2 and out == "", what, status, out)
    check(err.count("\n") == 1 and err.startswith("multilane-plan: "), what, repr(err))
    for word in words:
        check(word in err, what, "lacks", repr(word), err)


def bad_files_are_refused_in_one_sentence():
    for content, words in BAD_FILES:
        for mode in ([], ["--equation"], ["--json", "--predict", "4k"]):
            check_refusal(run(*mode, "-", text=content), ["standard input"] + words,
                          repr(content[:60]))
    check_refusal(run("/nonexistent/lanes"), ["/nonexistent/lanes"], "no file")
    check_refusal(run("/"), ["/"], "a folder")
    check_refusal(run("--equation", "-", text="[lane a]\nuse = eager\nbandwidth = 1\n"), ["rndv"],
                  "no rendezvous lane")
    check_refusal(run("-", text="[lane a]\nuse = rndv\nbandwidth = 1\n"), ["0 bytes", "a"],
                  "no eager lane")


def bad_options_are_refused_in_one_sentence():
    for options, words in (
            ([], ["FILE"]), (["-", "-"], ["one FILE"]), (["--colour", "-"], ["--colour"]),
            (["-json", "-"], ["no option -j;"]), (["--predict", "-"], ["--predict"]),
            (["--predict", "4q", "-"], ["--predict", "4q"]), (["--bias", "x", "-"], ["--bias", "x"]),
            (["--bias", "0", "-"], ["bias"]), (["--json=1", "-"], ["--json"]),
            (["--memory", "tape", "-"], ["--memory"]),
            (["--eager-lanes", "-1", "-"], ["--eager-lanes", "-1"]),
            (["--ranks", "-1", "-"], ["--ranks", "-1"]),
            (["--predict"] + ["4k"] * 65 + ["-"], ["4k", "-"]),
            (["--profile", "-"], ["profile"]), (["--profile", "--json", "-"], ["--profile"]),
            (["--protocol", "rendezvous", "-"], ["--protocol", "rendezvous", "rndv-staged"])):
        check_refusal(run(*options, text=EXAMPLE), words, options)


def output_that_cannot_be_written_is_reported():
    if not os.path.exists("/dev/full"):
        print("there is no /dev/full: a full disk was not tried")
        return
    with open("/dev/full", "w") as full:
        done = subprocess.run([PROGRAM, "-"], input=EXAMPLE.encode(), stdout=full,
                              stderr=subprocess.PIPE, timeout=60)
    check(done.returncode == 1 and done.stderr.count(b"\n") == 1, done)


def main():
    chance, seen = random.Random(71), {}
    the_example_prints_as_documented()
    beyond_is_said()
    json_is_utf_8_whatever_a_lane_is_called()
    json_agrees_with_text_and_covers_every_size()
    lanes_of_one_way_and_infinite_ones_are_printed()
    a_lane_that_can_copy_or_send_in_place_shows_which()
    a_port_is_shared_by_the_ranks_of_a_node()
    what_decides_a_switch_is_said()
    where_a_number_comes_from_is_said()
    options_change_the_plan()
    options_of_the_buffer_change_the_plan()
    options_of_lanes_change_the_plan()
    bad_files_are_refused_in_one_sentence()
    bad_options_are_refused_in_one_sentence()
    output_that_cannot_be_written_is_reported()
    equation_is_exact(chance, seen)
    near_ties_are_exact(chance, seen)
    check(all(seen.get(kind, 0) > 20 for kind in ("at", "always", "never", "below")), seen)
    print("thresholds compared with fractions:", seen)
    print("failed:" if failures else "passed", failures or "")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
