# A command of a box that stays is told what it was refused, it alone; what belongs to no command is the box's.
need jq python3 perl setsid
trap '"$PX" box stop --all' EXIT
"$PX" box start --name l
"$PX" --json box exec l -c 'unshare -U true 2>/dev/null; unshare -U true 2>/dev/null; python3 -c "
import socket
try: socket.socket(40, 1)
except OSError as e: print(e.errno)"' | jq -c '.stdout, .status, (.denials[] | [.op, .target, .rule, .count])'
"$PX" --json box exec l -- true | jq -c '.denials, .isolation.missing - ["ids: the payload has the caller'"'"'s own id"]'
"$PX" box exec l -c 'unshare -U true 2>/dev/null; true'
try "$PX" box exec l -c 'unshare -U true 2>/dev/null; exit 4' 2>&1
# A process that outlives its command and has left its session: nobody's, but still answered with the same errno.
"$PX" --json box exec l -c 'setsid -f sh -c "until [ -e /tmp/go ]; do sleep 0.05; done; unshare -U true 2>/tmp/said; echo >/tmp/done"' | jq -c .denials
"$PX" --json box show l | jq -c .denials
"$PX" box exec l -c ': >/tmp/go; until [ -e /tmp/done ]; do sleep 0.05; done; cat /tmp/said'
"$PX" --json box show l | jq -c .denials
# Detached commands as well.
"$PX" box exec l -d -c 'unshare -U true'
"$PX" --json box attach l 2>/dev/null | jq -c '.denials[] | [.target, .count]'
"$PX" box stop l
# Under a profile of the user's each command has a listener of its own.
cat >p.json <<'P'
{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["getsid"], "action": "SCMP_ACT_ERRNO"}]}
P
"$PX" box start --name p --seccomp p.json
"$PX" --json box exec p -- python3 -c 'import os
for i in range(3):
    try: os.getsid(0)
    except OSError as e: print(e.errno)' | jq -c '.stdout, (.denials[] | [.target, .rule, .grant, .count])'
"$PX" --json box exec p -- true | jq -c .denials
"$PX" box stop p
"$PX" box start --name n --seccomp p.json --nofile 4
"$PX" --json box exec n -- perl -e 'syscall(124, 0)' | jq -c '[.exit_code, .denials[].count]'
# One that refuses the call by which the listener is handed on: it runs all the same, and the result says that nothing is told.
sed 's/getsid/sendmsg/' p.json >q.json
"$PX" box start --name q --seccomp q.json
"$PX" --json box exec q -- echo ran | jq -c '.stdout, .denials, (.isolation.missing[] | select(startswith("denials")))'
