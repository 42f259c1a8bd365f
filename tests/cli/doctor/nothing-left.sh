# Groups, segments, homes: what the doctor makes is gone when it is.
segments() { cat /proc/sysvipc/shm 2>/dev/null | awk -v pid="$1" '$5 == pid'; }
"$PX" doctor >/dev/null &
pid=$!                  # the launcher hands over by exec, so it is the doctor's too
wait "$pid" || true
find /sys/fs/cgroup -name "px-probe-$pid" 2>/dev/null || true
segments "$pid"
ls -A "$TMP"
echo end
