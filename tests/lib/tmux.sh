# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154
# A terminal to type on, by tmux, with a server of the test's own. Source it behind tap.sh.

if ! command -v tmux >/dev/null 2>&1; then
	skip_all "tmux is not installed"
fi
tmux_socket=$scratch/tmux.sock
at_exit 'tmux -S "$tmux_socket" kill-server 2>/dev/null'

# on_tmux ARGUMENT...: a command for the test's server.
on_tmux()
{
	tmux -S "$tmux_socket" -f /dev/null "$@"
}

# terminal COLUMNS LINES: a shell in $scratch, which prints "$ " for a prompt.
terminal()
{
	on_tmux kill-server 2>/dev/null
	(cd "$scratch" && on_tmux new-session -d -x "$1" -y "$2" "PS1='\$ ' ENV= exec sh")
}

# type TEXT: types it and Enter. press KEY: one key, such as C-c.
type_in()
{
	on_tmux send-keys -l "$1"
	on_tmux send-keys Enter
}
press()
{
	on_tmux send-keys "$1"
}

# What is on the screen, without empty lines.
screen()
{
	on_tmux capture-pane -p | grep -v '^ *$'
}

screen_has()
{
	screen | grep -qE -e "$1"
}

# sees DESCRIPTION PATTERN: the screen shows it within half a minute.
sees()
{
	if wait_for 30 screen_has "$2"; then
		ok "$1"
	else
		not_ok "$1" "not on the screen: $2
$(screen)"
	fi
}
