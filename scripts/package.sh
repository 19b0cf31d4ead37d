#!/bin/bash
# A program for users: without symbols and line tables, which stand in a file of their own beside it.
#
#   scripts/package.sh PROGRAM FOLDER
#
# makes FOLDER/NAME and FOLDER/NAME.debug. A debugger finds the second by itself if it lies beside the first.
set -euo pipefail

if [ $# != 2 ] || [ ! -f "$1" ]; then
    echo "usage: scripts/package.sh PROGRAM FOLDER" >&2
    exit 2
fi
command -v objcopy >/dev/null || { echo "scripts/package.sh needs objcopy (Debian, Fedora: package binutils)" >&2; exit 1; }
name=$(basename "$1")
mkdir -p "$2"
objcopy --only-keep-debug "$1" "$2/$name.debug"
chmod 644 "$2/$name.debug"
# In the folder, so that the link says the name alone.
program=$(realpath "$1")
cd "$2"
objcopy --strip-all --add-gnu-debuglink="$name.debug" "$program" "$name.partial"
mv "$name.partial" "$name"
