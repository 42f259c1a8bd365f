# The filter in force, in the containers' format; what is printed can be given back, and then says the same.
need jq python3
"$PX" policy show --seccomp | jq -r '.defaultAction, (.architectures | join(" ")), (.syscalls | map(select(.args | not)) | map(.action) | unique | join(" "))'
"$PX" policy show --seccomp >default.json
"$PX" policy show --seccomp strict >strict.json
allows() { jq -r --arg name "$2" '[.syscalls[] | select(.names | index($name)) | .action] | unique | join(" ")' "$1"; }
for name in read socket inotify_init1 unshare ioctl; do
    echo "$name: $(allows default.json $name), $(allows strict.json $name)"
done
"$PX" exec --seccomp strict.json -- python3 -c '
import socket
socket.socketpair()
try:
    socket.socket()
except OSError as e:
    print(e.strerror)'
"$PX" policy show --seccomp strict.json >again.json
jq -S '[.syscalls[] | select(.args | not) | select(.action == "SCMP_ACT_ALLOW") | .names[]] | sort' strict.json >a
jq -S '[.syscalls[] | select(.args | not) | select(.action == "SCMP_ACT_ALLOW") | .names[]] | sort' again.json >b
cmp a b && echo 'the same calls'
