# A writable bind has no bound of its own: it is watched, and the box ended. What was there before does not count, nor does what was removed.
need jq python3
mkdir "$TMP/ws" && chmod 777 "$TMP/ws" && head -c 3m /dev/zero >"$TMP/ws/old"
ask() { "$PX" --json exec --disk 2m --timeout 60s --work-dir "$TMP/ws" -c "$1" | jq -c '[.status, .limits_hit[0].limit, .limits_hit[0].counter, .timed_out]' || true; rm -f "$TMP"/ws/[a-n]*; }
ask 'head -c 4m /dev/zero >a; sleep 50'
ask 'head -c 4m /dev/zero >a'
ask 'i=0; while [ $i -lt 3000 ]; do : >f$i; i=$((i + 1)); done; sleep 50'
ask 'python3 -c "
import os, time
f = open(\"hidden\", \"wb\")
os.unlink(\"hidden\")
f.write(bytes(4 << 20)); f.flush(); time.sleep(50)"'
ask 'head -c 1m /dev/zero >a; rm a; head -c 1m /dev/zero >b; echo fine'
ls "$TMP/ws"
