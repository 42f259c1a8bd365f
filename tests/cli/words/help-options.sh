# Every option that works is in the help, none that does not.
"$PX" exec --help >"$TMP/help"
for name in preset base rootfs overlay persist changes apply discard keep work-dir bind tmpfs workdir env env-file net allow-net deny-net allow-host-loopback host-port publish dns http-proxy memory cpus cpu-time pids disk file-size nofile timeout output-limit output-end limits tty interactive user hostname require runtime seccomp apparmor timings name detach idle max-life plan report help command; do
    grep -q -- "--$name\b" "$TMP/help" || echo "--$name is missing"
done
for name in build deny without device; do
    ! grep -q -- "--$name " "$TMP/help" || echo "--$name is shown"
done
awk 'length > 130 { print "too wide: " $0 }' "$TMP/help"
