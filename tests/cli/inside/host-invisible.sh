# No file of the host but its programs.
echo secret >"$TMP/secret"
"$PX" exec -- cat "$TMP/secret" 2>/dev/null && echo 'the host is visible'
"$PX" exec -c 'ls -A /root /mnt /srv /opt /media /boot 2>/dev/null; for f in /etc/shadow /root/.bashrc /var/lib/dpkg/status /run/px /work; do [ ! -e $f ] || echo "sees $f"; done'
"$PX" exec -c 'ls /' | grep -vE '^lib(32|x32)$'
