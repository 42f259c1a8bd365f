# Work is counted.
need jq python3
"$PX" --json exec -- python3 -c 'a = bytearray(50 << 20); import time
end = time.process_time() + 0.3
while time.process_time() < end: pass' | jq -c '[.cpu_user_s + .cpu_sys_s >= 0.3, .wall_s >= 0.3, .memory_peak_bytes > 50000000]'
"$PX" --json exec -c 'dd if=/dev/zero of=/tmp/x bs=1k count=1 2>/dev/null; sh -c "i=0; while [ \$i -lt 300000 ]; do i=\$((i+1)); done"; exit 0' | jq '.cpu_user_s > 0.05'
