need runc crun
[ -x /usr/bin/python3 ] || skip "there is no /usr/bin/python3 here"
cat >"$TMP/look" <<'LOOK'
import os, socket
print(sorted(os.listdir("/sys/class/net")) if os.path.isdir("/sys/class/net") else len(open("/proc/net/dev").readlines()) - 2)
try:
    s = socket.create_server(("127.0.0.1", 0))
    c = socket.create_connection(s.getsockname(), 5)
    print("through lo")
except OSError as e:
    print(e.strerror)
LOOK
for runtime in native runc crun; do
    for net in none loopback; do
        "$PX" exec --runtime $runtime --net $net -v "$TMP/look:/look.py:ro" -- python3 /look.py
    done >"$TMP/$runtime"
    inside=$("$PX" exec --runtime $runtime --net host -- readlink /proc/self/ns/net)
    [ "$inside" = "$(readlink /proc/self/ns/net)" ] && echo shared
done
cmp "$TMP/native" "$TMP/runc" && cmp "$TMP/native" "$TMP/crun" && cat "$TMP/runc"
