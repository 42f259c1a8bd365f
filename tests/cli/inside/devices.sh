"$PX" exec -c 'ls /dev; for d in null zero full random urandom tty; do [ -c /dev/$d ] || echo "no $d"; done
echo text >/dev/null; head -c 3 /dev/zero | wc -c; head -c 4 /dev/urandom | wc -c; (echo x >/dev/full) 2>/dev/null || echo full'
