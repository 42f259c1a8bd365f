# Environment, directory, name, privileges, descriptors: as in a native box.
need runc crun ps
cat >"$TMP/look" <<'LOOK'
cd /
env | sort
hostname
cat /etc/hosts | tail -1
grep -E '^(Cap|NoNewPrivs|Seccomp:|SigBlk|SigIgn)' /proc/self/status
ls /proc/self/fd | wc -l
ls /proc | grep -c '^1$' || true
ps -e -o comm= >/tmp/list
sort /tmp/list
LOOK
for runtime in native runc crun; do
    "$PX" exec --runtime $runtime -e A='b c' -e CALLER_SECRET= --hostname box -w /tmp -v "$TMP/look:/look:ro" -- /bin/sh /look >"$TMP/$runtime"
done
cmp "$TMP/native" "$TMP/runc" && cmp "$TMP/native" "$TMP/crun" && echo the same
grep -c '^A=b c$' "$TMP/runc"
