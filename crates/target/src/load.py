#!/usr/bin/env python3
"""Loads the commands.txt beside it into a running simple_switch, and stops at the first command that fails.

simple_switch_CLI goes on behind errors and ends with exit code 0. Arguments are passed on to it:

    python3 load.py --thrift-port 9090
"""

import os
import subprocess
import sys

PROMPT = b"RuntimeCmd: "
ERRORS = ("Error", "Invalid ", "***", "Traceback", "Could not")


def complaint(command, answer, nodes):
    """What is wrong with the answer to a command, if anything is."""
    for line in answer.splitlines():
        if line.startswith(ERRORS):
            full = command.startswith("mc_") and "TABLE_FULL" in line
            more = "; start the switch with the options that `weft subs compile` told" if full else ""
            return line + more
    if command.startswith("table_add ") and "has been added with handle" not in answer:
        return "the switch does not say that it has the entry"
    if command.startswith("mc_node_create ") and f"created with handle {nodes}\n" not in answer:
        return f"the node should have the handle {nodes}; start the switch anew, for it has nodes already"
    return None


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "commands.txt")
    with open(path, encoding="utf-8") as file:
        commands = file.read().splitlines()
    cli = subprocess.Popen(
        ["simple_switch_CLI", *sys.argv[1:]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )

    def answer():
        """What it says until it asks for a command, and whether it does."""
        said = b""
        while not said.endswith(PROMPT):
            part = os.read(cli.stdout.fileno(), 65536)
            if not part:
                return said.decode(errors="replace"), False
            said += part
        return said[: -len(PROMPT)].decode(errors="replace"), True

    said, asks = answer()
    if not asks:
        sys.exit(f"simple_switch_CLI takes no commands: {said.strip()}")
    nodes = 0
    for number, command in enumerate(commands, 1):
        cli.stdin.write(command.encode() + b"\n")
        cli.stdin.flush()
        said, asks = answer()
        wrong = complaint(command, said, nodes) or (None if asks else f"simple_switch_CLI ended: {said.strip()}")
        if wrong:
            cli.kill()
            sys.exit(f"commands.txt:{number}: {command}\n{wrong}")
        nodes += command.startswith("mc_node_create ")
    cli.stdin.close()
    cli.wait()
    print(f"{len(commands)} commands loaded")


if __name__ == "__main__":
    main()
