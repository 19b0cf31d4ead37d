#!/usr/bin/env python3
"""Stands in for simple_switch_CLI with a switch: what it says is that of behavioral-model's tools/runtime_CLI.py.

In its folder are switch.json, which names tables and actions, and may be room.txt: how many groups the switch takes.
"""

import cmd
import json
import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))


def ends(names):
    """Names by the ends that only they have."""
    found = {}
    for name in names:
        parts = name.split(".")
        for start in range(len(parts)):
            end = ".".join(parts[start:])
            found[end] = None if end in found else name
    return {end: name for end, name in found.items() if name}


class Line(cmd.Cmd):
    prompt = "RuntimeCmd: "
    intro = "Control utility for runtime P4 table manipulation"

    def __init__(self):
        super().__init__()
        with open(os.path.join(FOLDER, "switch.json"), encoding="utf-8") as file:
            program = json.load(file)
        self.all = {table["name"]: table for pipeline in program["pipelines"] for table in pipeline["tables"]}
        self.tables = ends(self.all)
        self.actions = ends(action["name"] for action in program["actions"])
        self.groups, self.nodes, self.entries = set(), 0, {}
        room = os.path.join(FOLDER, "room.txt")
        self.room = int(open(room, encoding="utf-8").read()) if os.path.exists(room) else 4096

    def names(self, table, action):
        if table not in self.tables:
            print(f"Error: Invalid table name ({table})")
            return None
        known = self.actions.get(action)
        if known not in self.all[self.tables[table]]["actions"]:
            print(f"Error: Table {table} has no action {action}")
            return None
        return self.tables[table]

    def do_mc_mgrp_create(self, line):
        print("Creating multicast group", int(line))
        if len(self.groups) >= self.room:
            print("Invalid PRE operation (TABLE_FULL)")
            return
        self.groups.add(int(line))

    def do_mc_node_create(self, line):
        rid, *ports = line.split()
        bits = "".join("1" if str(port) in ports else "0" for port in reversed(range(max(map(int, ports)) + 1)))
        print("Creating node with rid", rid, ", port map", bits, "and lag map", "")
        if self.nodes >= self.room:
            print("Invalid PRE operation (TABLE_FULL)")
            return
        print("node was created with handle", self.nodes)
        self.nodes += 1

    def do_mc_node_associate(self, line):
        group, node = map(int, line.split())
        print("Associating node", node, "to multicast group", group)
        if group not in self.groups or node >= self.nodes:
            print("Invalid PRE operation (INVALID_L1_HANDLE)")

    def do_table_set_default(self, line):
        table, action, *data = line.split()
        if self.names(table, action):
            print("Setting default action of", table)
            print("{0:20} {1}".format("action:", action))
            print("{0:20} {1}".format("runtime data:", "\t".join(data)))

    def do_table_add(self, line):
        table, action, *rest = line.split()
        full = self.names(table, action)
        if not full:
            return
        print("Adding entry to", self.all[full]["match_type"], "match table", table)
        print("{0:20} {1}".format("match key:", "\t".join(rest[: rest.index("=>")])))
        print("{0:20} {1}".format("action:", action))
        entries = self.entries.setdefault(full, [])
        if len(entries) >= self.all[full]["max_size"]:
            print("Invalid table operation (TABLE_FULL)")
            return
        entries.append(rest)
        print("Entry has been added with handle", len(entries) - 1)

    def do_EOF(self, _line):
        print()
        return True


if "--no-switch" in sys.argv:
    print("Could not connect to thrift client on port 9090")
    print("Make sure the switch is running and that you have the right port")
    sys.exit(1)
print("Obtaining JSON from switch...")
print("Done")
Line().cmdloop()
