#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the tables of doc/parameters.md: the parameters that the components of a build register.

    doc/parameters.py BUILD            writes them into doc/parameters.md
    doc/parameters.py --check BUILD    only compares; status 77 where ompi_info cannot load this build

The text of doc/parameters.md outside of the tables is written by hand.
"""
import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.abspath(os.environ.get("srcdir") or os.path.join(os.path.dirname(__file__), ".."))
DOCUMENT = os.path.join(TOP, "doc", "parameters.md")
COMPONENTS = ("pml multilane", "btl shm", "btl sock", "btl verbs", "btl cuda", "coll node")
SKIPPED = 77

# The first pattern that a name matches; a name that matches none has the type of its value.
UNITS = (
    (r"_(latency|overhead|reg_cost|lost_s|hang_s)$", "seconds"),
    (r"_reg_growth$", "seconds a byte"),
    (r"_bandwidth$", "bytes a second"),
    (r"_ms$", "milliseconds"),
    (r"_bytes$|_(unexpected|queued|memory|eager)_max$", "bytes"),
    (r"_bias$", "factor"),
)
TYPES = {"int": "integer", "string": "text"}


def build_env(build):
    """What configure found, as test/build-env says it."""
    with open(os.path.join(build, "test", "build-env"), encoding="utf-8") as file:
        return dict(re.findall(r"^(\w+)='(.*)'$", file.read(), re.M))


def ompi_info(program, build, component, given):
    """{name: {field: text}} of a component, in the order of registration. `given` are values that
    a user might set; no value comes from the user or the site that runs this."""
    with tempfile.TemporaryDirectory() as home:
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith(("OMPI_MCA_", "PMIX_MCA_", "PRTE_MCA_"))}
        environment.update({"OMPI_MCA_" + name: value for name, value in given.items()})
        environment.update(HOME=home, OMPI_MCA_mca_base_param_files=os.path.join(home, "none"),
                           OMPI_MCA_mca_base_component_path=os.path.join(build, ".libs") +
                           ":SYS_DEFAULT")
        done = subprocess.run([program, "--parsable", "--level", "9", "--param"] + component.split(),
                              env=environment, capture_output=True, encoding="utf-8", check=False)
    parameters = {}
    prefix = "mca:" + component.replace(" ", ":") + ":param:"
    for line in done.stdout.splitlines():
        if line.startswith(prefix):
            name, field, value = (line[len(prefix):].split(":", 2) + ["", ""])[:3]
            if value[:1] == value[-1:] == '"':
                value = value[1:-1]
            parameters.setdefault(name, {}).setdefault(field, value)
    if not parameters and done.stderr:
        print(done.stderr.strip())
    return parameters


def cell(text):
    return " ".join(text.split()).replace("|", "\\|")


def row(name, parameter, is_settable):
    unit = next((unit for pattern, unit in UNITS if re.search(pattern, name)),
                TYPES.get(parameter["type"], parameter["type"]))
    if not is_settable:
        return f"| `{name}` | | {unit} | machine | {cell(parameter['help'])} |"
    default = f"`{parameter['value']}`" if parameter["value"] else "(none)"
    return f"| `{name}` | {default} | {unit} | user | {cell(parameter['help'])} |"


def table(program, build, component):
    """The lines of a component's table; none where this build does not have the component."""
    every_btl = {name.replace("btl_self_", "btl_" + component.split()[1] + "_", 1)
                 for name in ompi_info(program, build, "btl self", {})}
    own = {name: parameter
           for name, parameter in ompi_info(program, build, component, {}).items()
           if name not in every_btl and "help" in parameter}
    # What says where it comes from although it was given its own value cannot be set.
    given = ompi_info(program, build, component,
                      {name: parameter["value"] for name, parameter in own.items()})
    rows = [row(name, parameter, given[name]["source"] != "default")
            for name, parameter in own.items()]
    if not rows:
        return []
    return ["| parameter | default | unit or type | source | meaning |", "|---|---|---|---|---|"] + rows


def document(text, tables):
    """The document with the tables in their places."""
    for component, lines in tables.items():
        begin, end = f"<!-- begin: {component} -->\n", "<!-- end -->"
        place = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.S)
        if not place.search(text):
            sys.exit(f"doc/parameters.md has no place for the parameters of {component}: "
                     f"a line {begin.strip()} and a line {end}")
        body = begin + "".join(line + "\n" for line in lines) + end
        text = place.sub(lambda _: body, text)
    return text


def main(arguments):
    check = arguments[:1] == ["--check"]
    if len(arguments) != 1 + check:
        sys.exit(__doc__.strip())
    build = os.path.abspath(arguments[-1])
    env = build_env(build)
    if env["sanitizer"]:
        print(f"ompi_info cannot load components that were built with {env['sanitizer']}")
        return SKIPPED
    tables = {component: table(env["ompi_info"], build, component) for component in COMPONENTS}
    missing = [component for component in COMPONENTS if not tables[component]]
    if "pml multilane" in missing:
        sys.exit(f"{env['ompi_info']} finds no component pml multilane in {build}/.libs")
    with open(DOCUMENT, encoding="utf-8") as file:
        old = file.read()
    new = document(old, {component: lines for component, lines in tables.items() if lines})
    for component in missing:
        print(f"this build has no {component}: its table is left as it is")
    if check:
        if new == old:
            return 0
        for line in sorted(set(new.splitlines()) ^ set(old.splitlines())):
            print(("missing: " if line in new.splitlines() else "outdated: ") + line)
        sys.exit("doc/parameters.md is not what the components register now; run: "
                 f"{os.path.abspath(__file__)} {build}")
    with open(DOCUMENT, "w", encoding="utf-8") as file:
        file.write(new)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
