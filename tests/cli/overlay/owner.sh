# Everything in a root belongs to the box's user, whoever calls px: also what only its owner may read.
need_overlay
echo secret >"$TMP/rootfs/etc/shadow"
chmod 600 "$TMP/rootfs/etc/shadow"
"$PX" exec --rootfs "$TMP/rootfs" --overlay -c '
    cat /etc/shadow && echo mine >/etc/shadow && cat /etc/shadow
    /bin/busybox stat -c "%u:%g %a %n" / /etc /etc/shadow /etc/passwd /bin/busybox; cat /etc/passwd'
"$PX" exec --rootfs "$TMP/rootfs" --overlay --user 7:8 -c 'touch /x && /bin/busybox stat -c %u:%g /x /etc/shadow'
