# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# JSON in tests. Source it after tap.sh.

# json EXPRESSION: reads a document from stdin and prints the Python expression, in which it is `o`.
json()
{
	python3 -c 'import json, sys; print(eval(sys.argv[1], {"o": json.load(sys.stdin)}))' "$1"
}
